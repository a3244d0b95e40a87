//! The parameters of requests: the members of `params` that any method has.
//!
//! Members are borrowed as raw text and decoded by the method that needs them. Unknown members are skipped.
//!
//! Elsewhere: `_meta` (`request::meta`), and which method needs which member (`dispatch`).

use std::borrow::Cow;

use promptshelf_core::{RawArgumentValue, RawArguments, Variables};
use promptshelf_service::TraceContext;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::{
    error_code::WireError,
    json::{Entries, MAX_MEMBERS, is_object, members, object, present, present_object, text},
};

/// The parameters of a request or notification. Mistakes are reported by [`check`](Params::check) and by the methods
/// that read members.
#[derive(Debug, Default)]
pub(crate) struct Params<'a> {
    /// Boxed, because messages are moved often and these have half a kilobyte.
    members: Box<Members<'a>>,
    is_malformed: bool,
}

/// The members of `params`, undecoded. serde rejects an object that has one of them twice.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Members<'a> {
    /// Decoded with the message, because every method needs it.
    #[serde(borrow, rename = "_meta")]
    meta: Meta<'a>,
    #[serde(borrow, deserialize_with = "present")]
    name: Option<&'a RawValue>,
    /// Decoded with the message, because they can be long.
    #[serde(borrow)]
    arguments: Arguments<'a>,
    #[serde(borrow, deserialize_with = "present")]
    cursor: Option<&'a RawValue>,
    #[serde(borrow, deserialize_with = "present")]
    uri: Option<&'a RawValue>,
    #[serde(borrow, rename = "ref", deserialize_with = "present")]
    reference: Option<&'a RawValue>,
    #[serde(borrow, deserialize_with = "present")]
    argument: Option<&'a RawValue>,
    #[serde(borrow, deserialize_with = "present")]
    context: Option<&'a RawValue>,
    #[serde(borrow, deserialize_with = "present")]
    notifications: Option<&'a RawValue>,
    #[serde(borrow, deserialize_with = "present")]
    level: Option<&'a RawValue>,
    #[serde(borrow, deserialize_with = "present")]
    protocol_version: Option<&'a RawValue>,
    #[serde(borrow, deserialize_with = "present")]
    request_id: Option<&'a RawValue>,
    #[serde(borrow, deserialize_with = "present")]
    capabilities: Option<&'a RawValue>,
    #[serde(borrow, deserialize_with = "present")]
    client_info: Option<&'a RawValue>,
    #[serde(borrow, deserialize_with = "present")]
    input_responses: Option<&'a RawValue>,
    #[serde(borrow, deserialize_with = "present")]
    request_state: Option<&'a RawValue>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Params<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Params<'a>, D::Error> {
        present_object(deserializer).map(|members| Params { members, is_malformed: false })
    }
}

impl<'a> Params<'a> {
    /// Returns the parameters of a message whose `params` cannot be read.
    pub(crate) fn malformed() -> Params<'a> {
        Params { is_malformed: true, ..Params::default() }
    }

    /// Checks the shape of `params` itself.
    pub(crate) fn check(&self) -> Result<(), WireError> {
        if self.is_malformed {
            Err(WireError::invalid_params("`params` must be an object with unique member names"))
        } else {
            Ok(())
        }
    }

    /// Returns the trace that the request belongs to, without checking anything else.
    pub(crate) fn trace(&self) -> Option<TraceContext<'a>> {
        self.members.meta.get()?.trace()
    }

    pub(crate) fn meta(&self) -> Result<&RequestMeta<'a>, WireError> {
        self.members.meta.get().ok_or_else(|| {
            WireError::invalid_meta(format!(
                "`_meta` must be an object with unique member names, at most {MAX_MEMBERS} of them"
            ))
        })
    }

    pub(crate) fn name(&self) -> Result<Cow<'a, str>, WireError> {
        required("name", self.members.name)
    }

    pub(crate) fn uri(&self) -> Result<Cow<'a, str>, WireError> {
        required("uri", self.members.uri)
    }

    pub(crate) fn level(&self) -> Result<Cow<'a, str>, WireError> {
        required("level", self.members.level)
    }

    pub(crate) fn protocol_version(&self) -> Result<Cow<'a, str>, WireError> {
        required("protocolVersion", self.members.protocol_version)
    }

    pub(crate) fn cursor(&self) -> Result<Option<Cow<'a, str>>, WireError> {
        self.members.cursor.map(|cursor| required("cursor", Some(cursor))).transpose()
    }

    pub(crate) fn notifications(&self) -> Option<&'a RawValue> {
        self.members.notifications
    }

    /// Returns the client's capabilities, as `initialize` declares them.
    pub(crate) fn capabilities(&self) -> Option<&'a RawValue> {
        self.members.capabilities
    }

    /// Returns the client program as `initialize` or `_meta` declares it, as it was sent.
    pub(crate) fn client_info(&self) -> Option<&'a str> {
        let of_request = self.members.meta.get().and_then(RequestMeta::client_info);
        of_request.or(self.members.client_info).map(RawValue::get)
    }

    pub(crate) fn input_responses(&self) -> Option<&'a RawValue> {
        self.members.input_responses
    }

    pub(crate) fn request_state(&self) -> Option<&'a RawValue> {
        self.members.request_state
    }

    pub(crate) fn request_id(&self) -> Option<&'a RawValue> {
        self.members.request_id
    }

    pub(crate) fn arguments(&self) -> Result<&RawArguments<'a>, WireError> {
        match &self.members.arguments {
            Arguments::Read(arguments) => Ok(arguments),
            Arguments::NotAnObject => Err(WireError::invalid_params("`arguments` must be an object")),
            Arguments::Unreadable => Err(WireError::invalid_params(format!(
                "`arguments` must have at most {MAX_MEMBERS} members, with Unicode names"
            ))),
        }
    }

    /// Returns the target of `completion/complete`.
    pub(crate) fn completion(&self) -> Result<CompletionRequest<'a>, WireError> {
        #[derive(Deserialize)]
        struct Reference<'a> {
            #[serde(borrow, rename = "type")]
            kind: Cow<'a, str>,
            #[serde(borrow, default)]
            name: Option<Cow<'a, str>>,
            #[serde(borrow, default)]
            uri: Option<Cow<'a, str>>,
        }
        #[derive(Deserialize)]
        struct Argument<'a> {
            #[serde(borrow)]
            name: Cow<'a, str>,
            #[serde(borrow)]
            value: Cow<'a, str>,
        }
        let malformed =
            || WireError::invalid_params("`ref` must be a reference such as {\"type\":\"ref/prompt\",\"name\":\"…\"}");
        let reference: Reference<'a> = self.members.reference.and_then(object).ok_or_else(malformed)?;
        let target = match (&*reference.kind, reference.name, reference.uri) {
            ("ref/prompt", Some(name), _) => CompletionTarget::Prompt(name),
            ("ref/resource", _, Some(uri)) => CompletionTarget::Resource(uri),
            _ => return Err(malformed()),
        };
        let malformed =
            || WireError::invalid_params("`argument` must be an object with the strings `name` and `value`");
        let argument: Argument<'a> = self.members.argument.and_then(object).ok_or_else(malformed)?;
        Ok(CompletionRequest { target, argument: argument.name, typed: argument.value })
    }

    /// Returns the arguments that are already filled in, from `context` of `completion/complete`.
    pub(crate) fn completion_context(&self) -> Result<Variables, WireError> {
        #[derive(Deserialize)]
        struct Context<'a> {
            #[serde(borrow, default, deserialize_with = "present")]
            arguments: Option<&'a RawValue>,
        }
        let malformed = || WireError::invalid_params("`context.arguments` must be an object with strings");
        let Some(context) = self.members.context else { return Ok(Variables::new()) };
        let context: Context<'_> = object(context).ok_or_else(malformed)?;
        context.arguments.map_or_else(|| Some(Variables::new()), members).ok_or_else(malformed)
    }
}

/// The arguments of a prompt or tool. A value that is not a string stays as it was sent: prompts report it together with
/// the other problems, and tools read it.
#[derive(Debug)]
enum Arguments<'a> {
    Read(RawArguments<'a>),
    NotAnObject,
    Unreadable,
}

impl Default for Arguments<'_> {
    fn default() -> Self {
        Arguments::Read(RawArguments::new())
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Arguments<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Arguments<'a>, D::Error> {
        Ok(match Entries::<'a, ArgumentValue<'a>>::deserialize(deserializer)? {
            // Collected in place: a second list would take as much memory again.
            Entries::Read(entries) => {
                Arguments::Read(entries.into_iter().map(|(name, ArgumentValue(value))| (name, value)).collect())
            }
            Entries::NotAnObject => Arguments::NotAnObject,
            Entries::Unreadable => Arguments::Unreadable,
        })
    }
}

/// Reads arguments from the text of an object; `None` for any other value.
pub(crate) fn arguments_of(json: &str) -> Option<RawArguments<'_>> {
    match serde_json::from_str(json).ok()? {
        Arguments::Read(arguments) => Some(arguments),
        Arguments::NotAnObject | Arguments::Unreadable => None,
    }
}

/// The value of an argument. It is classified while the object is read, so that only one list exists.
struct ArgumentValue<'a>(RawArgumentValue<'a>);

impl<'de: 'a, 'a> Deserialize<'de> for ArgumentValue<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ArgumentValue<'a>, D::Error> {
        <&'a RawValue>::deserialize(deserializer).map(argument_value).map(ArgumentValue)
    }
}

fn argument_value(raw: &RawValue) -> RawArgumentValue<'_> {
    match raw.get().starts_with('"').then(|| text(raw)).flatten() {
        Some(text) => RawArgumentValue::Text(text),
        None => RawArgumentValue::Other(Cow::Borrowed(raw.get())),
    }
}

/// Reads a member that must be a string.
fn required<'a>(name: &str, member: Option<&'a RawValue>) -> Result<Cow<'a, str>, WireError> {
    let member = member.ok_or_else(|| WireError::invalid_params(format!("`{name}` is missing")))?;
    text(member).ok_or_else(|| WireError::invalid_params(format!("`{name}` must be a string")))
}

/// The parameters of `completion/complete`, except its context.
#[derive(Debug)]
pub(crate) struct CompletionRequest<'a> {
    pub(crate) target: CompletionTarget<'a>,
    pub(crate) argument: Cow<'a, str>,
    pub(crate) typed: Cow<'a, str>,
}

#[derive(Debug)]
pub(crate) enum CompletionTarget<'a> {
    Prompt(Cow<'a, str>),
    Resource(Cow<'a, str>),
}

/// The severities of RFC 5424, as `logging/setLevel` and `_meta` name them, in ascending order.
pub(crate) const LOG_LEVELS: [&str; 8] =
    ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

/// The members of `_meta` that this server uses (2026-07-28, *Base protocol / _meta*), undecoded.
#[derive(Debug, Default)]
pub(crate) struct RequestMeta<'a> {
    protocol_version: Option<&'a RawValue>,
    client_capabilities: Option<&'a RawValue>,
    client_info: Option<&'a RawValue>,
    log_level: Option<&'a RawValue>,
    traceparent: Option<&'a RawValue>,
    tracestate: Option<&'a RawValue>,
}

/// `_meta` as it was sent; `None` if it is malformed. A mistake in it does not make the rest of a message unreadable.
#[derive(Debug)]
struct Meta<'a>(Option<RequestMeta<'a>>);

impl<'a> Meta<'a> {
    fn get(&self) -> Option<&RequestMeta<'a>> {
        self.0.as_ref()
    }
}

/// Returns an absent `_meta`, which has no member.
impl Default for Meta<'_> {
    fn default() -> Self {
        Meta(Some(RequestMeta::default()))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Meta<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Meta<'a>, D::Error> {
        Ok(Meta(match Entries::deserialize(deserializer)? {
            Entries::Read(members) => RequestMeta::read(members),
            Entries::NotAnObject | Entries::Unreadable => None,
        }))
    }
}

impl<'a> RequestMeta<'a> {
    /// Picks the members that are used; `None` if one of them occurs twice.
    fn read(members: Vec<(Cow<'a, str>, &'a RawValue)>) -> Option<RequestMeta<'a>> {
        let mut meta = RequestMeta::default();
        for (name, value) in members {
            let member = match &*name {
                "io.modelcontextprotocol/protocolVersion" => &mut meta.protocol_version,
                "io.modelcontextprotocol/clientCapabilities" => &mut meta.client_capabilities,
                "io.modelcontextprotocol/clientInfo" => &mut meta.client_info,
                "io.modelcontextprotocol/logLevel" => &mut meta.log_level,
                "traceparent" => &mut meta.traceparent,
                "tracestate" => &mut meta.tracestate,
                _ => continue,
            };
            if member.replace(value).is_some() {
                return None;
            }
        }
        Some(meta)
    }

    /// Returns whether the request has a member that only modern requests have.
    pub(crate) fn is_modern(&self) -> bool {
        self.protocol_version.is_some() || self.client_capabilities.is_some()
    }

    pub(crate) fn client_capabilities(&self) -> Option<&'a RawValue> {
        self.client_capabilities
    }

    pub(crate) fn client_info(&self) -> Option<&'a RawValue> {
        self.client_info
    }

    pub(crate) fn trace(&self) -> Option<TraceContext<'a>> {
        Some(TraceContext { parent: self.traceparent.and_then(text)?, state: self.tracestate.and_then(text) })
    }

    /// Checks that all members that a modern request needs are present, and returns its protocol version.
    pub(crate) fn require(&self) -> Result<Cow<'a, str>, WireError> {
        let key = |name: &str| format!("io.modelcontextprotocol/{name}");
        let missing = |name: &str| WireError::invalid_meta(format!("`{}` is missing in `_meta`", key(name)));
        let invalid = |name: &str, expected: &str| {
            WireError::invalid_meta(format!("`{}` in `_meta` must be {expected}", key(name)))
        };
        let version = self.protocol_version.ok_or_else(|| missing("protocolVersion"))?;
        let version = text(version).ok_or_else(|| invalid("protocolVersion", "a string"))?;
        let capabilities = self.client_capabilities.ok_or_else(|| missing("clientCapabilities"))?;
        if !is_object(capabilities) {
            return Err(invalid("clientCapabilities", "an object"));
        }
        if self.client_info.is_some_and(|client| !is_object(client)) {
            return Err(invalid("clientInfo", "an object"));
        }
        let is_level = |level: &RawValue| text(level).is_some_and(|level| LOG_LEVELS.contains(&&*level));
        if self.log_level.is_some_and(|level| !is_level(level)) {
            return Err(invalid("logLevel", "a log level such as `info`"));
        }
        Ok(version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_params<T>(params: &str, read: impl FnOnce(&Params<'_>) -> T) -> T {
        read(&serde_json::from_str(params).unwrap_or_else(|_| Params::malformed()))
    }

    fn mistake(params: &str) -> Option<String> {
        with_params(params, |params| params.check().err().map(|error| error.message))
    }

    #[test]
    fn unrepresentable_value_invalidates_only_its_member() {
        let sent = r#"{"name":"\ud800","uri":1e400,"cursor":"c","arguments":{"a":1e400,"b":"\udc00","c":"\n"}}"#;
        with_params(sent, |params| {
            params.check().expect("they are an object");
            assert_eq!(params.name().expect_err("not a string").message, "`name` must be a string");
            assert_eq!(params.uri().expect_err("not a string").message, "`uri` must be a string");
            assert_eq!(params.cursor().expect("it is one"), Some("c".into()));
            let given = params.arguments().expect("they are an object");
            assert_eq!(given.get("a"), Some(&RawArgumentValue::Other("1e400".into())));
            assert_eq!(given.get("b").map(RawArgumentValue::kind), Some("string that is not Unicode"));
            assert_eq!(given.get("c"), Some(&RawArgumentValue::Text("\n".into())));
        });

        let many = |members| format!("{{\"arguments\":{{{}}}}}", vec![r#""a":1"#; members].join(","));
        let given = |sent: &str| {
            with_params(sent, |params| params.arguments().map(RawArguments::len).map_err(|error| error.message))
        };
        let unreadable = "`arguments` must have at most 1024 members, with Unicode names";
        assert_eq!(given(&many(1_024)), Ok(1_024));
        assert_eq!(given(&many(1_025)), Err(unreadable.to_owned()));
        assert_eq!(given(r#"{"arguments":{"\ud800":"x"}}"#), Err(unreadable.to_owned()));

        for no_object in ["1e400", r#""\ud800""#, r#"{"\ud800":1}"#] {
            assert_eq!(
                mistake(no_object).as_deref(),
                Some("`params` must be an object with unique member names"),
                "{no_object}"
            );
        }
        for unread in [r#"{"x":"\ud800"}"#, r#"{"x":{"y":1e400}}"#, r#"{"_meta":{"x":["\ud800"]}}"#] {
            assert_eq!(mistake(unread), None, "{unread}");
        }
    }

    #[test]
    fn params_must_be_object_with_unique_members() {
        for other in ["[]", r#"[{"a":1},2]"#, r#""text""#, r#""\n""#, "true", "null", "1", "-1", "1.5"] {
            let said = mistake(other);
            assert_eq!(said.as_deref(), Some("`params` must be an object with unique member names"), "{other}");
        }
        for twice in [r#"{"name":1,"name":1}"#, r#"{"uri":"a","\u0075ri":"b"}"#, r#"{"_meta":null,"_meta":{}}"#] {
            assert_eq!(
                mistake(twice).as_deref(),
                Some("`params` must be an object with unique member names"),
                "{twice}"
            );
        }
        for fine in ["{}", r#"{"name":1,"x":[{}],"x":{}}"#, r#"{"cursor":null}"#] {
            assert_eq!(mistake(fine), None, "{fine}");
        }
    }
}

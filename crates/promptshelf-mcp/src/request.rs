//! What requests say: the members that any method has, borrowed, and `_meta`.

use std::{borrow::Cow, fmt, marker::PhantomData};

use promptshelf_core::{Given, GivenValue, Variables};
use promptshelf_service::TraceContext;
use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

use crate::{
    error_code::WireError,
    jsonrpc::{Fault, Message, object, present, text},
};

/// The members of `params` that some method has. What is not asked for is
/// passed over unread.
///
/// They are read together with the message that they stand in, so what is wrong
/// with them is kept until somebody needs them ([`Params::check`]).
#[derive(Debug, Default)]
pub(crate) struct Params<'a> {
    meta: Option<&'a RawValue>,
    name: Option<&'a RawValue>,
    arguments: Option<&'a RawValue>,
    cursor: Option<&'a RawValue>,
    uri: Option<&'a RawValue>,
    reference: Option<&'a RawValue>,
    argument: Option<&'a RawValue>,
    context: Option<&'a RawValue>,
    notifications: Option<&'a RawValue>,
    level: Option<&'a RawValue>,
    protocol_version: Option<&'a RawValue>,
    request_id: Option<&'a RawValue>,
    capabilities: Option<&'a RawValue>,
    input_responses: Option<&'a RawValue>,
    request_state: Option<&'a RawValue>,
    mistake: Option<&'static str>,
}

impl<'a> Params<'a> {
    /// The place of a member.
    fn member(&mut self, name: &str) -> Option<&mut Option<&'a RawValue>> {
        Some(match name {
            "_meta" => &mut self.meta,
            "name" => &mut self.name,
            "arguments" => &mut self.arguments,
            "cursor" => &mut self.cursor,
            "uri" => &mut self.uri,
            "ref" => &mut self.reference,
            "argument" => &mut self.argument,
            "context" => &mut self.context,
            "notifications" => &mut self.notifications,
            "level" => &mut self.level,
            "protocolVersion" => &mut self.protocol_version,
            "requestId" => &mut self.request_id,
            "capabilities" => &mut self.capabilities,
            "inputResponses" => &mut self.input_responses,
            "requestState" => &mut self.request_state,
            _ => return None,
        })
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Params<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Params<'a>, D::Error> {
        deserializer.deserialize_any(Members)
    }
}

/// Reads `params`, whatever stands there.
struct Members;

impl Members {
    fn no_object<'a>() -> Params<'a> {
        Params { mistake: Some("`params` has to be an object"), ..Params::default() }
    }
}

impl<'de> Visitor<'de> for Members {
    type Value = Params<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Params<'de>, A::Error> {
        let mut params = Params::default();
        while let Some(Key(name)) = map.next_key::<Key<'de>>()? {
            let Some(member) = params.member(&name) else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            // Which one of two counts nobody can know, so that none does.
            if member.replace(map.next_value()?).is_some() {
                params.mistake = Some("A member of `params` is there twice");
            }
        }
        Ok(params)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Params<'de>, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Members::no_object())
    }

    fn visit_str<E>(self, _: &str) -> Result<Params<'de>, E> {
        Ok(Members::no_object())
    }

    fn visit_bool<E>(self, _: bool) -> Result<Params<'de>, E> {
        Ok(Members::no_object())
    }

    fn visit_i64<E>(self, _: i64) -> Result<Params<'de>, E> {
        Ok(Members::no_object())
    }

    fn visit_u64<E>(self, _: u64) -> Result<Params<'de>, E> {
        Ok(Members::no_object())
    }

    fn visit_f64<E>(self, _: f64) -> Result<Params<'de>, E> {
        Ok(Members::no_object())
    }

    fn visit_unit<E>(self) -> Result<Params<'de>, E> {
        Ok(Members::no_object())
    }
}

/// The name of a member, borrowed where it holds no escapes.
#[derive(Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

/// Whether messages can be one batch: 2025-03-26 keeps `initialize` out of all
/// of them, and 2026-07-28 has none. One that cannot be is refused as a whole,
/// because nothing says what the rest of it would then mean.
pub(crate) fn check_batch(batch: &[Result<Message<'_>, Fault>]) -> Result<(), WireError> {
    for message in batch.iter().flatten() {
        let Message::Request(request) = message else { continue };
        if request.method == "initialize" {
            return Err(WireError::invalid_request("`initialize` cannot be part of a batch"));
        }
        if request.params.check().and_then(|()| request.params.meta()).is_ok_and(|meta| meta.is_modern()) {
            return Err(WireError::no_batches());
        }
    }
    Ok(())
}

impl<'a> Params<'a> {
    /// Whether they are what they have to be; absent ones are.
    pub(crate) fn check(&self) -> Result<(), WireError> {
        self.mistake.map_or(Ok(()), |mistake| Err(WireError::invalid_params(mistake)))
    }

    /// The trace that a request says it belongs to, whatever else it says.
    pub(crate) fn trace(&self) -> Option<TraceContext<'a>> {
        self.meta().ok()?.trace()
    }

    /// What the request says about itself.
    pub(crate) fn meta(&self) -> Result<RequestMeta<'a>, WireError> {
        RequestMeta::parse(self.meta)
    }

    /// A member that has to be a string.
    fn required(&self, name: &str, raw: Option<&'a RawValue>) -> Result<Cow<'a, str>, WireError> {
        let raw = raw.ok_or_else(|| WireError::invalid_params(format!("`{name}` is missing")))?;
        text(raw).ok_or_else(|| WireError::invalid_params(format!("`{name}` has to be a string")))
    }

    pub(crate) fn name(&self) -> Result<Cow<'a, str>, WireError> {
        self.required("name", self.name)
    }

    pub(crate) fn uri(&self) -> Result<Cow<'a, str>, WireError> {
        self.required("uri", self.uri)
    }

    pub(crate) fn level(&self) -> Result<Cow<'a, str>, WireError> {
        self.required("level", self.level)
    }

    pub(crate) fn protocol_version(&self) -> Result<Cow<'a, str>, WireError> {
        self.required("protocolVersion", self.protocol_version)
    }

    pub(crate) fn cursor(&self) -> Result<Option<Cow<'a, str>>, WireError> {
        self.cursor.map(|cursor| self.required("cursor", Some(cursor))).transpose()
    }

    pub(crate) fn notifications(&self) -> Option<&'a RawValue> {
        self.notifications
    }

    /// What a client can do, as `initialize` says it.
    pub(crate) fn capabilities(&self) -> Option<&'a RawValue> {
        self.capabilities
    }

    /// What the person answered to a question of this server.
    pub(crate) fn input_responses(&self) -> Option<&'a RawValue> {
        self.input_responses
    }

    /// What this server gave the client to carry.
    pub(crate) fn request_state(&self) -> Option<&'a RawValue> {
        self.request_state
    }

    pub(crate) fn request_id(&self) -> Option<&'a RawValue> {
        self.request_id
    }

    /// What a caller sent for a prompt's arguments. Values that are no strings
    /// are kept as such, so that they are reported together with other problems.
    pub(crate) fn arguments(&self) -> Result<Given<'a>, WireError> {
        match self.arguments {
            None => Ok(Given::new()),
            Some(raw) => given(raw).ok_or_else(|| WireError::invalid_params("`arguments` has to be an object")),
        }
    }

    /// What is to be completed, the argument's name, and what has been typed.
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
        let malformed = || {
            WireError::invalid_params("`ref` has to be a reference such as {\"type\":\"ref/prompt\",\"name\":\"…\"}")
        };
        let reference: Reference<'a> = self.reference.and_then(object).ok_or_else(malformed)?;
        let target = match (&*reference.kind, reference.name, reference.uri) {
            ("ref/prompt", Some(name), _) => Target::Prompt(name),
            ("ref/resource", _, Some(uri)) => Target::Resource(uri),
            _ => return Err(malformed()),
        };
        let malformed =
            || WireError::invalid_params("`argument` has to be an object with the strings `name` and `value`");
        let argument: Argument<'a> = self.argument.and_then(object).ok_or_else(malformed)?;
        Ok(CompletionRequest { target, argument: argument.name, typed: argument.value })
    }

    /// Arguments that are already filled in.
    pub(crate) fn completion_context(&self) -> Result<Variables, WireError> {
        #[derive(Deserialize)]
        struct Context {
            #[serde(default)]
            arguments: Variables,
        }
        let malformed = || WireError::invalid_params("`context.arguments` has to be an object with strings");
        let Some(context) = self.context else { return Ok(Variables::new()) };
        object::<Context>(context).map(|context| context.arguments).ok_or_else(malformed)
    }
}

/// What is to be completed.
#[derive(Debug)]
pub(crate) struct CompletionRequest<'a> {
    pub(crate) target: Target<'a>,
    pub(crate) argument: Cow<'a, str>,
    pub(crate) typed: Cow<'a, str>,
}

#[derive(Debug)]
pub(crate) enum Target<'a> {
    Prompt(Cow<'a, str>),
    Resource(Cow<'a, str>),
}

/// The names and values of an object, in their order.
fn given(raw: &RawValue) -> Option<Given<'_>> {
    struct Values<V>(PhantomData<V>);

    impl<'de, V: Deserialize<'de> + Into<GivenValue<'de>>> Visitor<'de> for Values<V> {
        type Value = Given<'de>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Given<'de>, A::Error> {
            let mut given = Given::new();
            while let Some((Key(name), value)) = map.next_entry::<Key<'de>, V>()? {
                given.push(name, value.into());
            }
            Ok(given)
        }
    }

    fn read<'a, V: Deserialize<'a> + Into<GivenValue<'a>>>(raw: &'a RawValue) -> Option<Given<'a>> {
        serde_json::Deserializer::from_str(raw.get()).deserialize_map(Values(PhantomData::<V>)).ok()
    }

    // Where something else than strings was sent, the second pass tells what.
    read::<Text<'_>>(raw).or_else(|| read::<Any<'_>>(raw))
}

#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'a> From<Text<'a>> for GivenValue<'a> {
    fn from(Text(text): Text<'a>) -> GivenValue<'a> {
        GivenValue::Text(text)
    }
}

#[derive(Deserialize)]
struct Any<'a>(#[serde(borrow)] &'a RawValue);

impl<'a> From<Any<'a>> for GivenValue<'a> {
    fn from(Any(value): Any<'a>) -> GivenValue<'a> {
        match text(value) {
            Some(text) => GivenValue::Text(text),
            None => GivenValue::Other(kind(value)),
        }
    }
}

/// What a JSON value is, in JSON's words.
fn kind(raw: &RawValue) -> &'static str {
    match raw.get().as_bytes().first() {
        Some(b'{') => "object",
        Some(b'[') => "array",
        Some(b't' | b'f') => "boolean",
        Some(b'n') => "null",
        Some(b'"') => "string",
        _ => "number",
    }
}

/// What a request says about itself (2026-07-28, *Base protocol / _meta*).
#[derive(Debug, Default, Deserialize)]
pub(crate) struct RequestMeta<'a> {
    #[serde(borrow, default, rename = "io.modelcontextprotocol/protocolVersion", deserialize_with = "present")]
    protocol_version: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "io.modelcontextprotocol/clientCapabilities", deserialize_with = "present")]
    client_capabilities: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "io.modelcontextprotocol/clientInfo", deserialize_with = "present")]
    client_info: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "io.modelcontextprotocol/logLevel", deserialize_with = "present")]
    log_level: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    traceparent: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    tracestate: Option<&'a RawValue>,
}

/// The severities of RFC 5424, as `logging/setLevel` and `_meta` name them,
/// from the least to the most severe.
pub(crate) const LOG_LEVELS: [&str; 8] =
    ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

impl<'a> RequestMeta<'a> {
    fn parse(raw: Option<&'a RawValue>) -> Result<RequestMeta<'a>, WireError> {
        let Some(raw) = raw else { return Ok(RequestMeta::default()) };
        let malformed = || WireError::invalid_meta("`_meta` has to be an object in which no key is there twice");
        if !raw.get().starts_with('{') {
            return Err(malformed());
        }
        serde_json::from_str(raw.get()).map_err(|_| malformed())
    }

    /// Whether it has one of the keys that only requests of the modern era have.
    pub(crate) fn is_modern(&self) -> bool {
        self.protocol_version.is_some() || self.client_capabilities.is_some()
    }

    /// What the client can do, as a modern request says it.
    pub(crate) fn client_capabilities(&self) -> Option<&'a RawValue> {
        self.client_capabilities
    }

    /// The trace that the request says it belongs to.
    pub(crate) fn trace(&self) -> Option<TraceContext<'a>> {
        Some(TraceContext { parent: text(self.traceparent?)?, state: self.tracestate.and_then(text) })
    }

    /// The revision that the request says it is of, once everything that a
    /// modern request has to say is there.
    pub(crate) fn require(&self) -> Result<Cow<'a, str>, WireError> {
        let key = |name: &str| format!("io.modelcontextprotocol/{name}");
        let missing = |name: &str| WireError::invalid_meta(format!("`_meta` needs the key `{}`", key(name)));
        let wrong = |name: &str, wanted: &str| {
            WireError::invalid_meta(format!("`{}` in `_meta` has to be {wanted}", key(name)))
        };
        let version = self.protocol_version.ok_or_else(|| missing("protocolVersion"))?;
        let version = text(version).ok_or_else(|| wrong("protocolVersion", "a string"))?;
        let capabilities = self.client_capabilities.ok_or_else(|| missing("clientCapabilities"))?;
        if !capabilities.get().starts_with('{') {
            return Err(wrong("clientCapabilities", "an object"));
        }
        if self.client_info.is_some_and(|client| !client.get().starts_with('{')) {
            return Err(wrong("clientInfo", "an object"));
        }
        if self.log_level.is_some_and(|level| !text(level).is_some_and(|level| LOG_LEVELS.contains(&&*level))) {
            return Err(wrong("logLevel", "a log level"));
        }
        Ok(version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jsonrpc::{Incoming, parse};

    fn mistake(params: &str) -> Option<String> {
        let message = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{params}}}"#);
        let Ok(Incoming::One(Message::Request(request))) = parse(message.as_bytes()) else {
            panic!("{message} is a request");
        };
        request.params.check().err().map(|error| error.message)
    }

    #[test]
    fn params_are_an_object_and_have_a_member_once() {
        for other in ["[]", r#"[{"a":1},2]"#, r#""text""#, r#""\n""#, "true", "null", "1", "-1", "1.5"] {
            let said = mistake(other);
            assert_eq!(said.as_deref(), Some("`params` has to be an object"), "{other}");
        }
        for twice in [r#"{"name":1,"name":1}"#, r#"{"uri":"a","\u0075ri":"b"}"#, r#"{"_meta":null,"_meta":{}}"#] {
            assert_eq!(mistake(twice).as_deref(), Some("A member of `params` is there twice"), "{twice}");
        }
        for fine in ["{}", r#"{"name":1,"x":[{}],"x":{}}"#, r#"{"cursor":null}"#] {
            assert_eq!(mistake(fine), None, "{fine}");
        }
    }
}

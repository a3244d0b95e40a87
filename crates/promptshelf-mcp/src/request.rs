//! What requests say: the members that any method has, borrowed.

mod meta;
mod sent;

use std::borrow::Cow;

use promptshelf_core::{RawArguments, Variables};
use promptshelf_service::TraceContext;
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, IgnoredAny, MapAccess},
};
use serde_json::value::RawValue;

use self::sent::{Key, Members, Sent, Way};
pub(crate) use self::{
    meta::{LOG_LEVELS, RequestMeta},
    sent::members,
};
use crate::{
    error_code::WireError,
    jsonrpc::{Fault, Message, object, present},
};

/// The members of `params` that some method has. What is not asked for is
/// passed over unread.
///
/// They are read together with the message that they stand in, so what is wrong
/// with them is kept until somebody needs them ([`Params::check`]).
#[derive(Debug, Default)]
pub(crate) struct Params<'a> {
    meta: Option<Sent<'a, RequestMeta<'a>>>,
    name: Option<Sent<'a>>,
    arguments: Option<Sent<'a, RawArguments<'a>>>,
    cursor: Option<Sent<'a>>,
    uri: Option<Sent<'a>>,
    reference: Option<&'a RawValue>,
    argument: Option<&'a RawValue>,
    context: Option<&'a RawValue>,
    notifications: Option<&'a RawValue>,
    level: Option<Sent<'a>>,
    protocol_version: Option<Sent<'a>>,
    request_id: Option<&'a RawValue>,
    capabilities: Option<&'a RawValue>,
    input_responses: Option<&'a RawValue>,
    request_state: Option<&'a RawValue>,
    mistake: Option<&'static str>,
}

/// Params with members that are read [together](Way::Together). There is so much in them that
/// they are filled in where they stay.
#[derive(Debug, Default)]
pub(crate) struct ParamsTogether<'a>(pub(crate) Box<Params<'a>>);

impl<'de: 'a, 'a> Deserialize<'de> for ParamsTogether<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ParamsTogether<'a>, D::Error> {
        Way::Together.value().deserialize(deserializer).map(Params::of).map(ParamsTogether)
    }
}

/// Params with members that are read [apart](Way::Apart).
#[derive(Debug, Default)]
pub(crate) struct ParamsApart<'a>(pub(crate) Box<Params<'a>>);

impl<'de: 'a, 'a> Deserialize<'de> for ParamsApart<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ParamsApart<'a>, D::Error> {
        Way::Apart.value().deserialize(deserializer).map(Params::of).map(ParamsApart)
    }
}

impl<'a> Members<'a> for Box<Params<'a>> {
    fn read<A: MapAccess<'a>>(mut map: A, way: Way) -> Result<Box<Params<'a>>, A::Error> {
        let mut params = Box::<Params<'a>>::default();
        while let Some(Key(name)) = map.next_key()? {
            let was_there = match &*name {
                "_meta" => params.meta.replace(map.next_value_seed(way.value())?).is_some(),
                "name" => params.name.replace(map.next_value_seed(way.value())?).is_some(),
                "arguments" => params.arguments.replace(map.next_value_seed(way.value())?).is_some(),
                "cursor" => params.cursor.replace(map.next_value_seed(way.value())?).is_some(),
                "uri" => params.uri.replace(map.next_value_seed(way.value())?).is_some(),
                "ref" => params.reference.replace(map.next_value()?).is_some(),
                "argument" => params.argument.replace(map.next_value()?).is_some(),
                "context" => params.context.replace(map.next_value()?).is_some(),
                "notifications" => params.notifications.replace(map.next_value()?).is_some(),
                "level" => params.level.replace(map.next_value_seed(way.value())?).is_some(),
                "protocolVersion" => params.protocol_version.replace(map.next_value_seed(way.value())?).is_some(),
                "requestId" => params.request_id.replace(map.next_value()?).is_some(),
                "capabilities" => params.capabilities.replace(map.next_value()?).is_some(),
                "inputResponses" => params.input_responses.replace(map.next_value()?).is_some(),
                "requestState" => params.request_state.replace(map.next_value()?).is_some(),
                _ => {
                    map.next_value::<IgnoredAny>()?;
                    false
                }
            };
            // Which one of two counts nobody can know, so that none does.
            if was_there {
                params.mistake = Some("A member of `params` is there twice");
            }
        }
        Ok(params)
    }
}

/// Whether messages can be one batch: 2025-03-26 keeps `initialize` out of all
/// of them, and 2026-07-28 has none. One that cannot be is refused as a whole,
/// because nothing says what the rest of it would then mean.
pub(crate) fn check_batch(batch: &[Result<Message<'_>, Fault>]) -> Result<(), WireError> {
    for message in batch.iter().flatten() {
        let Message::Request(request) = message else { continue };
        if request.method == "initialize" {
            return Err(WireError::invalid_request("`initialize` cannot be part of a batch"));
        }
        if request.params.check().and_then(|()| request.params.meta()).is_ok_and(RequestMeta::is_modern) {
            return Err(WireError::no_batches());
        }
    }
    Ok(())
}

impl<'a> Params<'a> {
    fn of(sent: Sent<'a, Box<Params<'a>>>) -> Box<Params<'a>> {
        match sent {
            Sent::Object(params) => params,
            _ => Box::new(Params { mistake: Some("`params` has to be an object"), ..Params::default() }),
        }
    }

    /// Whether they are what they have to be; absent ones are.
    pub(crate) fn check(&self) -> Result<(), WireError> {
        self.mistake.map_or(Ok(()), |mistake| Err(WireError::invalid_params(mistake)))
    }

    /// The trace that a request says it belongs to, whatever else it says.
    pub(crate) fn trace(&self) -> Option<TraceContext<'_>> {
        self.meta().ok()?.trace()
    }

    /// What the request says about itself.
    pub(crate) fn meta(&self) -> Result<&RequestMeta<'a>, WireError> {
        match &self.meta {
            None => Ok(RequestMeta::NOTHING),
            Some(Sent::Object(meta)) if meta.is_clear() => Ok(meta),
            Some(_) => Err(WireError::invalid_meta("`_meta` has to be an object in which no key is there twice")),
        }
    }

    pub(crate) fn name(&self) -> Result<&str, WireError> {
        required("name", self.name.as_ref())
    }

    pub(crate) fn uri(&self) -> Result<&str, WireError> {
        required("uri", self.uri.as_ref())
    }

    pub(crate) fn level(&self) -> Result<&str, WireError> {
        required("level", self.level.as_ref())
    }

    pub(crate) fn protocol_version(&self) -> Result<&str, WireError> {
        required("protocolVersion", self.protocol_version.as_ref())
    }

    pub(crate) fn cursor(&self) -> Result<Option<&str>, WireError> {
        self.cursor.as_ref().map(|cursor| required("cursor", Some(cursor))).transpose()
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

    /// What a caller sent for a prompt's arguments.
    pub(crate) fn arguments(&self) -> Result<&RawArguments<'a>, WireError> {
        static NOTHING: RawArguments<'static> = RawArguments::new();
        let Some(arguments) = &self.arguments else { return Ok(&NOTHING) };
        match arguments {
            Sent::Object(given) => Ok(given),
            Sent::Other(sent::UNREADABLE) => Err(WireError::invalid_params(format!(
                "`arguments` has more than {} members, or a name that is no Unicode text",
                sent::MAX_MEMBERS
            ))),
            _ => Err(WireError::invalid_params("`arguments` has to be an object")),
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
        struct Context<'a> {
            #[serde(borrow, default, deserialize_with = "present")]
            arguments: Option<&'a RawValue>,
        }
        let malformed = || WireError::invalid_params("`context.arguments` has to be an object with strings");
        let Some(context) = self.context else { return Ok(Variables::new()) };
        let context: Context<'_> = object(context).ok_or_else(malformed)?;
        context.arguments.map_or_else(|| Some(Variables::new()), members).ok_or_else(malformed)
    }
}

/// A member that has to be a string.
fn required<'s>(name: &str, sent: Option<&'s Sent<'_>>) -> Result<&'s str, WireError> {
    let sent = sent.ok_or_else(|| WireError::invalid_params(format!("`{name}` is missing")))?;
    sent.text().ok_or_else(|| WireError::invalid_params(format!("`{name}` has to be a string")))
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

#[cfg(test)]
mod tests {
    use promptshelf_core::RawArgumentValue;
    use proptest::{collection::vec, prelude::*, sample::select};

    use super::*;
    use crate::jsonrpc::{Incoming, parse};

    /// What is made of a request's `params`.
    fn of<T>(params: &str, ask: impl FnOnce(&Params<'_>) -> T) -> T {
        let message = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{params}}}"#);
        match parse(message.as_bytes()) {
            Ok(Incoming::One(Message::Request(request))) => ask(&request.params),
            _ => panic!("{message} is a request"),
        }
    }

    fn mistake(params: &str) -> Option<String> {
        of(params, |params| params.check().err().map(|error| error.message))
    }

    /// Values of every kind, under names that mean something here and others.
    fn any_value() -> impl Strategy<Value = String> {
        let plain = ["null", "true", "1", "-2.5e3", "\"\"", "\"a\"", "\"\\n\"", "\"\\ud83d\\ude00\"", "[]", "{}"];
        let names = ["name", "uri", "arguments", "_meta", "context", "x", "\\u0075ri", "traceparent"];
        let protocol = "io.modelcontextprotocol/protocolVersion";
        let name = select(names.into_iter().chain([protocol]).collect::<Vec<_>>());
        select(plain.to_vec()).prop_map(str::to_owned).prop_recursive(3, 12, 4, move |inner| {
            let members = vec((name.clone(), inner.clone()), 0..5).prop_map(|members| {
                let members: Vec<String> = members.into_iter().map(|(name, it)| format!(r#""{name}": {it}"#)).collect();
                format!("{{{}}}", members.join(","))
            });
            prop_oneof![members, vec(inner, 0..3).prop_map(|items| format!("[{}]", items.join(", ")))]
        })
    }

    proptest! {
        #[test]
        fn members_say_the_same_read_together_and_apart(params in any_value()) {
            let ParamsTogether(together) = serde_json::from_str(&params).expect("they can be read");
            let ParamsApart(apart) = serde_json::from_str(&params).expect("they can be read");
            prop_assert_eq!(format!("{together:?}"), format!("{apart:?}"));
        }
    }

    #[test]
    fn what_no_text_or_number_can_hold_is_wrong_by_itself() {
        let sent = r#"{"name":"\ud800","uri":1e400,"cursor":"c","arguments":{"a":1e400,"b":"\udc00","c":"\n"}}"#;
        of(sent, |params| {
            params.check().expect("they are an object");
            assert_eq!(params.name().expect_err("it is no text").message, "`name` has to be a string");
            assert_eq!(params.uri().expect_err("it is no text").message, "`uri` has to be a string");
            assert_eq!(params.cursor().expect("it is one"), Some("c"));
            let given = params.arguments().expect("they are an object");
            assert_eq!(given.get("a"), Some(&RawArgumentValue::Other("number")));
            assert_eq!(given.get("b"), Some(&RawArgumentValue::Other("string that is no Unicode text")));
            assert_eq!(given.get("c"), Some(&RawArgumentValue::Text("\n".into())));
        });

        let many = |members| format!("{{\"arguments\":{{{}}}}}", vec![r#""a":1"#; members].join(","));
        let given =
            |sent: &str| of(sent, |params| params.arguments().map(RawArguments::len).map_err(|error| error.message));
        let unreadable = "`arguments` has more than 65536 members, or a name that is no Unicode text";
        assert_eq!(given(&many(65_536)), Ok(65_536));
        assert_eq!(given(&many(65_537)), Err(unreadable.to_owned()));
        assert_eq!(given(r#"{"arguments":{"\ud800":"x"}}"#), Err(unreadable.to_owned()));

        for no_object in ["1e400", r#""\ud800""#, r#"{"\ud800":1}"#] {
            assert_eq!(mistake(no_object).as_deref(), Some("`params` has to be an object"), "{no_object}");
        }
        for unread in [r#"{"x":"\ud800"}"#, r#"{"x":{"y":1e400}}"#, r#"{"_meta":{"x":["\ud800"]}}"#] {
            assert_eq!(mistake(unread), None, "{unread}");
        }
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

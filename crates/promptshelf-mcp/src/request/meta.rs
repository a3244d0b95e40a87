//! `_meta`: protocol version, capabilities, log level and trace of a request.

use std::borrow::Cow;

use promptshelf_service::TraceContext;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::{
    error_code::WireError,
    json::{Entries, is_object, text},
};

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
pub(super) struct Meta<'a>(Option<RequestMeta<'a>>);

impl<'a> Meta<'a> {
    pub(super) fn get(&self) -> Option<&RequestMeta<'a>> {
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

//! `_meta`: what a request says about itself.

use std::borrow::Cow;

use promptshelf_service::TraceContext;
use serde::de::{IgnoredAny, MapAccess};
use serde_json::value::RawValue;

use super::sent::{Key, Members, Sent, Way};
use crate::error_code::WireError;

/// The severities of RFC 5424, as `logging/setLevel` and `_meta` name them,
/// from the least to the most severe.
pub(crate) const LOG_LEVELS: [&str; 8] =
    ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

/// What a request says about itself (2026-07-28, *Base protocol / _meta*).
#[derive(Debug, Default)]
pub(crate) struct RequestMeta<'a> {
    protocol_version: Option<Sent<'a>>,
    client_capabilities: Option<&'a RawValue>,
    client_info: Option<&'a RawValue>,
    log_level: Option<Sent<'a>>,
    traceparent: Option<Sent<'a>>,
    tracestate: Option<Sent<'a>>,
    /// Whether one of these keys is there twice.
    is_ambiguous: bool,
}

impl<'a> Members<'a> for RequestMeta<'a> {
    fn read<A: MapAccess<'a>>(mut map: A, way: Way) -> Result<RequestMeta<'a>, A::Error> {
        let mut meta = RequestMeta::default();
        while let Some(Key(name)) = map.next_key()? {
            let was_there = match &*name {
                "io.modelcontextprotocol/protocolVersion" => {
                    meta.protocol_version.replace(map.next_value_seed(way.value())?).is_some()
                }
                "io.modelcontextprotocol/clientCapabilities" => {
                    meta.client_capabilities.replace(map.next_value()?).is_some()
                }
                "io.modelcontextprotocol/clientInfo" => meta.client_info.replace(map.next_value()?).is_some(),
                "io.modelcontextprotocol/logLevel" => {
                    meta.log_level.replace(map.next_value_seed(way.value())?).is_some()
                }
                "traceparent" => meta.traceparent.replace(map.next_value_seed(way.value())?).is_some(),
                "tracestate" => meta.tracestate.replace(map.next_value_seed(way.value())?).is_some(),
                _ => {
                    map.next_value::<IgnoredAny>()?;
                    false
                }
            };
            meta.is_ambiguous |= was_there;
        }
        Ok(meta)
    }
}

impl<'a> RequestMeta<'a> {
    /// What a message without `_meta` says.
    pub(super) const NOTHING: &'static RequestMeta<'static> = &RequestMeta {
        protocol_version: None,
        client_capabilities: None,
        client_info: None,
        log_level: None,
        traceparent: None,
        tracestate: None,
        is_ambiguous: false,
    };

    /// Whether every key counts once.
    pub(super) fn is_clear(&self) -> bool {
        !self.is_ambiguous
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
    pub(crate) fn trace(&self) -> Option<TraceContext<'_>> {
        let parent = self.traceparent.as_ref()?.text()?;
        Some(TraceContext {
            parent: Cow::Borrowed(parent),
            state: self.tracestate.as_ref().and_then(Sent::text).map(Cow::Borrowed),
        })
    }

    /// The revision that the request says it is of, once everything that a
    /// modern request has to say is there.
    pub(crate) fn require(&self) -> Result<&str, WireError> {
        let key = |name: &str| format!("io.modelcontextprotocol/{name}");
        let missing = |name: &str| WireError::invalid_meta(format!("`_meta` needs the key `{}`", key(name)));
        let wrong = |name: &str, wanted: &str| {
            WireError::invalid_meta(format!("`{}` in `_meta` has to be {wanted}", key(name)))
        };
        let version = self.protocol_version.as_ref().ok_or_else(|| missing("protocolVersion"))?;
        let version = version.text().ok_or_else(|| wrong("protocolVersion", "a string"))?;
        let capabilities = self.client_capabilities.ok_or_else(|| missing("clientCapabilities"))?;
        if !capabilities.get().starts_with('{') {
            return Err(wrong("clientCapabilities", "an object"));
        }
        if self.client_info.is_some_and(|client| !client.get().starts_with('{')) {
            return Err(wrong("clientInfo", "an object"));
        }
        let is_level = |level: &Sent<'_>| level.text().is_some_and(|level| LOG_LEVELS.contains(&level));
        if self.log_level.as_ref().is_some_and(|level| !is_level(level)) {
            return Err(wrong("logLevel", "a log level"));
        }
        Ok(version)
    }
}

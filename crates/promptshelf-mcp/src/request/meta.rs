//! `_meta`: protocol version, capabilities, log level and trace of a request.

use std::borrow::Cow;

use promptshelf_service::TraceContext;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    error_code::WireError,
    json::{is_object, present, text},
};

/// The severities of RFC 5424, as `logging/setLevel` and `_meta` name them, in ascending order.
pub(crate) const LOG_LEVELS: [&str; 8] =
    ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

/// The members of `_meta` that this server uses (2026-07-28, *Base protocol / _meta*), undecoded.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct RequestMeta<'a> {
    #[serde(borrow, rename = "io.modelcontextprotocol/protocolVersion", deserialize_with = "present")]
    protocol_version: Option<&'a RawValue>,
    #[serde(borrow, rename = "io.modelcontextprotocol/clientCapabilities", deserialize_with = "present")]
    client_capabilities: Option<&'a RawValue>,
    #[serde(borrow, rename = "io.modelcontextprotocol/clientInfo", deserialize_with = "present")]
    client_info: Option<&'a RawValue>,
    #[serde(borrow, rename = "io.modelcontextprotocol/logLevel", deserialize_with = "present")]
    log_level: Option<&'a RawValue>,
    #[serde(borrow, deserialize_with = "present")]
    traceparent: Option<&'a RawValue>,
    #[serde(borrow, deserialize_with = "present")]
    tracestate: Option<&'a RawValue>,
}

impl<'a> RequestMeta<'a> {
    /// Returns whether the request has a member that only modern requests have.
    pub(crate) fn is_modern(&self) -> bool {
        self.protocol_version.is_some() || self.client_capabilities.is_some()
    }

    /// Returns the client's capabilities, as a modern request declares them.
    pub(crate) fn client_capabilities(&self) -> Option<&'a RawValue> {
        self.client_capabilities
    }

    /// Returns the client program, as a modern request declares it.
    pub(crate) fn client_info(&self) -> Option<&'a RawValue> {
        self.client_info
    }

    /// Returns the trace that the request belongs to.
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

//! Requests for a prompt of the API for programs.

use std::borrow::Cow;

use http::{HeaderName, HeaderValue, Method, header};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Deserialize, Serialize};

use crate::{api::ApiRequest, model::Arguments};

const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// The prompt to read: its template, or its messages with [`rendered`](PromptQuery::rendered).
///
/// ```
/// use promptshelf_client::PromptQuery;
///
/// let arguments = [("code".to_owned(), "SELECT".to_owned())].into();
/// let query = PromptQuery::new("explain-code").channel("production").rendered(arguments);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptQuery {
    name: String,
    channel: Option<String>,
    version: Option<u64>,
    arguments: Option<Arguments>,
}

impl PromptQuery {
    /// Selects the present version of a prompt in the server's default channel.
    #[must_use]
    pub fn new(name: impl Into<String>) -> PromptQuery {
        PromptQuery { name: name.into(), channel: None, version: None, arguments: None }
    }

    /// Selects a channel. A server of a folder has none.
    #[must_use]
    pub fn channel(self, channel: impl Into<String>) -> PromptQuery {
        PromptQuery { channel: Some(channel.into()), ..self }
    }

    /// Selects a version by its number. A server of a folder has none.
    #[must_use]
    pub fn version(self, version: u64) -> PromptQuery {
        PromptQuery { version: Some(version), ..self }
    }

    /// Requests the messages that the prompt renders to with these arguments, instead of the template. The server refuses
    /// values of sensitive arguments, because they are part of the URL.
    #[must_use]
    pub fn rendered(self, arguments: Arguments) -> PromptQuery {
        PromptQuery { arguments: Some(arguments), ..self }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn request(&self, etag: Option<&str>) -> ApiRequest {
        let mut query: Vec<(Cow<'static, str>, String)> = Vec::new();
        query.extend(self.channel.iter().map(|channel| ("channel".into(), channel.clone())));
        query.extend(self.version.iter().map(|version| ("version".into(), version.to_string())));
        if let Some(arguments) = &self.arguments {
            query.push(("rendered".into(), "true".to_owned()));
            let arguments = arguments.iter().map(|(name, value)| (format!("arguments.{name}").into(), value.clone()));
            query.extend(arguments);
        }
        let condition = |etag: &str| Some((header::IF_NONE_MATCH, HeaderValue::try_from(etag).ok()?));
        let headers: Vec<(HeaderName, HeaderValue)> = etag.and_then(condition).into_iter().collect();
        let path = format!("api/v1/prompts/{}", utf8_percent_encode(&self.name, SEGMENT));
        ApiRequest { method: Method::GET, path, query, headers, body: None }
    }
}

//! Prompts of the HTTP API, with a cache on disk that answers while the server is away.
//!
//! `query` makes the requests, `folder` has the files. Every read asks the server first, with the entity tag of the
//! stored answer.

mod folder;

use std::{
    borrow::Cow,
    io,
    path::PathBuf,
    sync::Arc,
    time::{Duration, SystemTime},
};

use http::{HeaderName, HeaderValue, Method, header};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use rmcp::model as wire;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::folder::{Entry, Folder};
use crate::{
    api::{ApiClient, ApiRequest, ApiResponse},
    content::Message,
    error::ClientError,
    model::Arguments,
};

/// Prompts of a server, by its HTTP API for programs, with the last answers on disk.
///
/// Each [`get`](PromptCache::get) asks the server, so an answer is never older than the server's state as long as it can
/// be reached. An unchanged prompt is not transferred again. While the server is away, the last answer is returned, with
/// its age.
///
/// A folder belongs to one identity at its servers: its readers get the prompts without a token. On Unix, only the
/// owner of the files can read them. Several processes can use one folder. It has at most 1,000 answers of up to 16 MiB;
/// those that were not confirmed for the longest time are removed. Rendered answers include the values of the arguments.
///
/// ```no_run
/// use std::time::Duration;
///
/// use promptshelf_client::{ApiClient, Confirmation, PromptCache, PromptQuery};
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), promptshelf_client::ClientError> {
/// let server = "https://prompts.example.com".parse()?;
/// let api = ApiClient::new(server, Some("psk_token"), None, Duration::from_secs(2)).await?;
/// let prompts = PromptCache::new(api, "/var/cache/reviews");
/// let prompt = prompts.get(&PromptQuery::new("code-review").channel("production")).await?;
/// if let Confirmation::Stale { age, reason } = &prompt.confirmation {
///     eprintln!("using a prompt of {age:?} ago: {reason}");
/// }
/// println!("{}", prompt.template.unwrap_or_default());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct PromptCache {
    api: ApiClient,
    folder: Arc<Folder>,
}

/// A prompt, from the server or from the cache.
#[derive(Debug)]
#[non_exhaustive]
pub struct CachedPrompt {
    /// The name.
    pub name: String,
    /// The channel; `None` if the server serves a folder.
    pub channel: Option<String>,
    /// The number of the version; `None` if the server serves a folder.
    pub version: Option<u64>,
    /// The purpose.
    pub description: Option<String>,
    /// The template; `None` in a rendered answer, and for a prompt written in code.
    pub template: Option<String>,
    /// The messages of a rendered answer; otherwise empty.
    pub messages: Vec<Message>,
    /// The answer as JSON.
    pub raw: Value,
    /// Whether the server has confirmed this version.
    pub confirmation: Confirmation,
    /// Why the answer could not be written to the cache.
    pub cache_error: Option<io::Error>,
}

/// Whether a prompt is the server's present one.
#[derive(Debug)]
#[non_exhaustive]
pub enum Confirmation {
    /// The server sent or confirmed it for this call.
    Confirmed,
    /// The server could not be asked. It is the last known version.
    Stale {
        /// The time since the server confirmed it; `None` if the clock was set back since.
        age: Option<Duration>,
        /// Why the server could not be asked.
        reason: ClientError,
    },
}

impl PromptCache {
    /// Creates a cache in a folder, which is created with the first answer. The timeout of `api` is the time after which
    /// a server that does not answer counts as away.
    #[must_use]
    pub fn new(api: ApiClient, folder: impl Into<PathBuf>) -> PromptCache {
        let folder = Arc::new(Folder::new(folder.into(), api.server().to_string()));
        PromptCache { api, folder }
    }

    /// Returns a prompt: the present one of the server, or the last known one while the server is away.
    ///
    /// Statuses of 500 and above, 408, 429, and answers that are not those of the API, such as the error page of a
    /// proxy, count as away. A refusal removes the stored answer.
    ///
    /// # Errors
    ///
    /// - [`ClientError::Refused`] if the API refuses the request, such as for an unknown prompt or invalid arguments;
    /// - [`ClientError::AuthenticationRequired`], [`ClientError::Forbidden`], [`ClientError::SignInFailed`] and
    ///   [`ClientError::Cancelled`] as [`ApiClient::send`];
    /// - if the server is away and no answer is stored, the reason: [`ClientError::Unreachable`],
    ///   [`ClientError::TimedOut`], [`ClientError::Refused`], [`ClientError::InvalidResponse`] or
    ///   [`ClientError::LimitExceeded`].
    pub async fn get(&self, query: &PromptQuery) -> Result<CachedPrompt, ClientError> {
        let known = self.blocking(query, Folder::read).await.flatten();
        // A stored answer that no longer parses is requested as a whole.
        let known = known.and_then(|entry| Some((parse(&entry.body, query).ok()?, entry)));
        let etag = known.as_ref().map(|(_, entry)| entry.etag());
        let requested = SystemTime::now();
        let response = self.api.send(&query.request(etag.as_deref())).await;
        let reason = match response.and_then(|response| read(response, query, etag.is_some())) {
            Ok(Answer::Present { prompt, body }) => {
                let write = move |folder: &Folder, query: &_| folder.write(query, &body, requested);
                let written = self.blocking(query, write).await;
                let cache_error = written.and_then(Result::err);
                return Ok(CachedPrompt { cache_error, ..*prompt });
            }
            Ok(Answer::Unsaved(prompt)) => return Ok(*prompt),
            Ok(Answer::Unchanged) => match known {
                Some((prompt, entry)) => {
                    let cache_error = entry.confirm(requested).err();
                    return Ok(CachedPrompt { cache_error, ..prompt });
                }
                None => ClientError::invalid_response("the server answered with 304 to a request without a condition"),
            },
            Err(error) if is_refusal(&error) => {
                self.blocking(query, Folder::remove).await;
                return Err(error);
            }
            Err(error @ (ClientError::SignInFailed { .. } | ClientError::Cancelled)) => return Err(error),
            Err(error) => error,
        };
        match known {
            Some((prompt, entry)) => Ok(stale(prompt, &entry, reason)),
            None => Err(reason),
        }
    }

    /// Works on the folder outside of the asynchronous runtime; `None` if the runtime is shutting down.
    async fn blocking<T: Send + 'static>(
        &self,
        query: &PromptQuery,
        work: impl FnOnce(&Folder, &PromptQuery) -> T + Send + 'static,
    ) -> Option<T> {
        let (folder, query) = (Arc::clone(&self.folder), query.clone());
        tokio::task::spawn_blocking(move || work(&folder, &query)).await.ok()
    }
}

fn stale(prompt: CachedPrompt, entry: &Entry, reason: ClientError) -> CachedPrompt {
    CachedPrompt { confirmation: Confirmation::Stale { age: entry.age(), reason }, ..prompt }
}

enum Answer {
    Present {
        prompt: Box<CachedPrompt>,
        body: Vec<u8>,
    },
    /// A prompt that must not be stored.
    Unsaved(Box<CachedPrompt>),
    Unchanged,
}

/// Whether the server has decided against the request. A status without the API's reason may be that of a proxy.
fn is_refusal(error: &ClientError) -> bool {
    match error {
        ClientError::AuthenticationRequired | ClientError::Forbidden { .. } => true,
        ClientError::Refused { status, .. } => *status < 500 && ![408, 429].contains(status),
        _ => false,
    }
}

fn read(response: ApiResponse, query: &PromptQuery, has_condition: bool) -> Result<Answer, ClientError> {
    let header = |name| response.headers.get(name).and_then(|value| value.to_str().ok());
    match response.status {
        200 => {
            let prompt = Box::new(parse(&response.body, query)?);
            // RFC 9111, section 5.2.2.5.
            let is_private = header(header::CACHE_CONTROL).is_some_and(|value| value.contains("no-store"));
            Ok(if is_private { Answer::Unsaved(prompt) } else { Answer::Present { prompt, body: response.body } })
        }
        304 if has_condition => Ok(Answer::Unchanged),
        status => Err(refused(status, header(header::CONTENT_TYPE), &response.body)),
    }
}

/// The members of a problem (RFC 9457) that explain it.
#[derive(Deserialize)]
struct Problem {
    title: String,
    detail: Option<String>,
}

fn refused(status: u16, media_type: Option<&str>, body: &[u8]) -> ClientError {
    let is_problem = media_type.is_some_and(|found| found.starts_with("application/problem+json"));
    match serde_json::from_slice::<Problem>(body) {
        Ok(problem) if is_problem => ClientError::Refused { status, message: problem.detail.unwrap_or(problem.title) },
        _ => ClientError::invalid_response(format!("the server answered with status {status}, and not as an API")),
    }
}

/// The members of an answer that have fields of their own.
#[derive(Deserialize)]
struct Facts {
    name: String,
    channel: Option<String>,
    version: Option<u64>,
    description: Option<String>,
    template: Option<String>,
    #[serde(default)]
    messages: Vec<wire::PromptMessage>,
}

fn parse(body: &[u8], query: &PromptQuery) -> Result<CachedPrompt, ClientError> {
    let invalid = |error: serde_json::Error| ClientError::InvalidResponse {
        reason: format!("the answer is not a prompt of promptshelf's API: {error}"),
        source: Some(Box::new(error)),
    };
    let raw: Value = serde_json::from_slice(body).map_err(invalid)?;
    let facts = Facts::deserialize(&raw).map_err(invalid)?;
    if facts.name != query.name() {
        return Err(ClientError::invalid_response("the answer is about another prompt"));
    }
    let Facts { name, channel, version, description, template, messages } = facts;
    let messages = messages.into_iter().map(Message::from_wire).collect();
    let (confirmation, cache_error) = (Confirmation::Confirmed, None);
    Ok(CachedPrompt { name, channel, version, description, template, messages, raw, confirmation, cache_error })
}

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

    fn name(&self) -> &str {
        &self.name
    }

    fn request(&self, etag: Option<&str>) -> ApiRequest {
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

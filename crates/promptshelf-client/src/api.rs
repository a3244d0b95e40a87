//! Requests to the HTTP API of a server, with the sign-in of its MCP endpoint.
//!
//! The paths and bodies of the API are the caller's; this module has the connection: TLS, tokens, time and size limits.

use std::{borrow::Cow, fmt, str::FromStr, time::Duration};

use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use url::Url;

use crate::{
    challenge::Challenge,
    client::{MAX_SIGN_INS, with_timeout},
    endpoint::Endpoint,
    error::ClientError,
    http::header_map,
    sdk_error::connection_reason,
    secure_url::is_secure_url,
    sign_in::{AuthSession, SignIn},
};

/// The largest answer in bytes: two files of 64 MiB in Base64 fit.
const MAX_RESPONSE: usize = 192 << 20;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The address of a server with an HTTP API: `https`, or `http` on this machine, without credentials.
///
/// It is the place below which the server has `mcp` and `api`. The URL of the MCP endpoint is accepted too:
///
/// ```
/// use promptshelf_client::ServerUrl;
///
/// let server: ServerUrl = "https://example.com/prompts/mcp".parse()?;
/// assert_eq!(server.to_string(), "https://example.com/prompts");
/// assert!("http://example.com".parse::<ServerUrl>().is_err());
/// # Ok::<(), promptshelf_client::ClientError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerUrl {
    /// The path ends with `/`.
    root: Url,
}

impl ServerUrl {
    /// Returns the MCP endpoint of the server.
    #[must_use]
    pub fn endpoint(&self) -> Endpoint {
        Endpoint::url(format!("{}mcp", self.root))
    }

    fn join(&self, path: &str, query: &[(Cow<'static, str>, String)]) -> Url {
        let mut url = self.root.clone();
        url.set_path(&format!("{}{path}", self.root.path()));
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        url
    }
}

impl FromStr for ServerUrl {
    type Err = ClientError;

    /// The text is not repeated in errors before it is known to contain no password.
    fn from_str(text: &str) -> Result<ServerUrl, ClientError> {
        let invalid = |reason: &str| ClientError::InvalidEndpoint(reason.to_owned());
        let expected = "expected the URL of a server, such as https://prompts.example.com";
        let mut root = Url::parse(text).map_err(|_| invalid(expected))?;
        if !matches!(root.scheme(), "http" | "https") {
            return Err(invalid(expected));
        }
        if !root.username().is_empty() || root.password().is_some() {
            return Err(invalid("the URL of the server has credentials: leave them out, and sign in or use a token"));
        }
        if root.query().is_some() || root.fragment().is_some() {
            return Err(invalid("the URL of the server has a query or a fragment: leave it out"));
        }
        if !is_secure_url(root.as_str()) {
            return Err(ClientError::InvalidEndpoint(format!(
                "{root} is not https: http is accepted on this machine only"
            )));
        }
        let path = root.path().trim_end_matches('/');
        let path = format!("{}/", path.strip_suffix("/mcp").unwrap_or(path));
        root.set_path(&path);
        Ok(ServerUrl { root })
    }
}

impl fmt::Display for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.root.as_str().trim_end_matches('/'))
    }
}

/// A request to an API.
#[derive(Clone, Debug)]
pub struct ApiRequest {
    /// The method.
    pub method: Method,
    /// The path below the address of the server.
    pub path: String,
    /// The parameters of the query, not encoded.
    pub query: Vec<(Cow<'static, str>, String)>,
    /// Further headers.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The body: JSON, unless the headers name another type.
    pub body: Option<Vec<u8>>,
}

/// The answer to a request, whatever its status.
#[derive(Clone, Debug)]
pub struct ApiResponse {
    /// The status, never a redirect.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Vec<u8>,
}

/// A client of a server's HTTP API.
pub struct ApiClient {
    server: ServerUrl,
    headers: HeaderMap,
    client: reqwest::Client,
    auth: Option<AuthSession>,
    timeout: Duration,
}

impl ApiClient {
    /// Creates a client. A `token` is sent with every request; without one `sign_in` provides it, for the MCP endpoint of
    /// the server. `timeout` is the limit for one request. Nothing is sent before the first request, apart from renewing
    /// a stored sign-in.
    ///
    /// Must be called inside a Tokio runtime.
    ///
    /// # Errors
    ///
    /// [`ClientError::InvalidEndpoint`] for a token that cannot be sent, and errors of the stored sign-in.
    pub async fn new(
        server: ServerUrl,
        token: Option<&str>,
        sign_in: Option<&SignIn>,
        timeout: Duration,
    ) -> Result<ApiClient, ClientError> {
        let endpoint = server.endpoint();
        let endpoint = match token {
            Some(token) => endpoint.bearer(token)?,
            None => endpoint,
        };
        let headers = match &endpoint {
            Endpoint::Url { headers, .. } => header_map(headers)?.into_iter().collect(),
            Endpoint::Command { .. } => HeaderMap::new(),
        };
        let auth = match (sign_in, endpoint.sign_in_url()) {
            (Some(sign_in), Some(url)) => Some(with_timeout(timeout, AuthSession::new(url, sign_in)).await??),
            _ => None,
        };
        let client = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT_TIMEOUT)
            .build()
            .map_err(unreachable)?;
        Ok(ApiClient { server, headers, client, auth, timeout })
    }

    /// Returns the address of the server.
    #[must_use]
    pub fn server(&self) -> &ServerUrl {
        &self.server
    }

    /// Sends a request, and returns the answer, also one that is a refusal. Signs in if the server requires it.
    ///
    /// # Errors
    ///
    /// - [`ClientError::Unreachable`] and [`ClientError::TimedOut`] without a whole answer;
    /// - [`ClientError::AuthenticationRequired`], [`ClientError::Forbidden`], [`ClientError::SignInFailed`] and
    ///   [`ClientError::Cancelled`] if the server requires a sign-in or scopes that are missing;
    /// - [`ClientError::InvalidResponse`] for a redirect: no token follows it, wherever it leads;
    /// - [`ClientError::LimitExceeded`] for an answer of more than 192 MiB.
    pub async fn send(&self, request: &ApiRequest) -> Result<ApiResponse, ClientError> {
        for _ in 0..MAX_SIGN_INS {
            let sign_ins = self.auth.as_ref().map_or(0, AuthSession::sign_ins);
            let response = with_timeout(self.timeout, self.exchange(request)).await??;
            let Some(challenge) = self.challenge(&response) else { return Ok(response) };
            match &self.auth {
                Some(auth) => auth.sign_in(sign_ins, &challenge).await?,
                None => return Err(challenge.to_error()),
            }
        }
        let response = with_timeout(self.timeout, self.exchange(request)).await??;
        match self.challenge(&response) {
            Some(challenge) => Err(challenge.to_error()),
            None => Ok(response),
        }
    }

    async fn exchange(&self, request: &ApiRequest) -> Result<ApiResponse, ClientError> {
        let url = self.server.join(&request.path, &request.query);
        let mut sending = self.client.request(request.method.clone(), url).headers(self.headers.clone());
        if let Some(auth) = &self.auth
            && let Ok(token) = auth.http_client().get_access_token().await
        {
            sending = sending.bearer_auth(token);
        }
        for (name, value) in &request.headers {
            sending = sending.header(name, value);
        }
        if let Some(body) = &request.body {
            if !request.headers.iter().any(|(name, _)| name == header::CONTENT_TYPE) {
                sending = sending.header(header::CONTENT_TYPE, "application/json");
            }
            sending = sending.body(body.clone());
        }
        let mut response = sending.send().await.map_err(unreachable)?;
        let (status, headers) = (response.status(), response.headers().clone());
        if status.is_redirection() && status.as_u16() != 304 {
            return Err(ClientError::invalid_response(format!(
                "{} redirects to another address, which is not followed: use the final URL of the server",
                self.server
            )));
        }
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(unreachable)? {
            if body.len() + chunk.len() > MAX_RESPONSE {
                return Err(ClientError::LimitExceeded(format!("an answer is larger than {MAX_RESPONSE} bytes")));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(ApiResponse { status: status.as_u16(), headers, body })
    }

    fn challenge(&self, response: &ApiResponse) -> Option<Challenge> {
        let header = response.headers.get(header::WWW_AUTHENTICATE).and_then(|value| value.to_str().ok());
        Challenge::of_status(response.status, header, &self.server.root)
    }
}

impl fmt::Debug for ApiClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ApiClient({})", self.server)
    }
}

fn unreachable(error: reqwest::Error) -> ClientError {
    let reason = connection_reason(&error);
    ClientError::Unreachable { reason, source: Some(Box::new(error.without_url())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        text.parse::<ServerUrl>().map_or_else(|error| format!("error: {error}"), |server| server.to_string())
    }

    #[test]
    fn server_is_named_by_its_root_or_its_endpoint() {
        for text in
            ["https://example.com", "https://example.com/", "https://example.com/mcp", "https://example.com/mcp/"]
        {
            assert_eq!(shown(text), "https://example.com");
        }
        assert_eq!(shown("https://example.com/a/mcp"), "https://example.com/a");
        assert_eq!(shown("http://127.0.0.1:8080"), "http://127.0.0.1:8080");
        let server: ServerUrl = "https://example.com/a".parse().expect("a server");
        assert_eq!(server.endpoint().to_string(), "https://example.com/a/mcp");
        let url = server.join("api/v1/channels", &[("prompt".into(), "a b&c".to_owned())]);
        assert_eq!(url.as_str(), "https://example.com/a/api/v1/channels?prompt=a+b%26c");
    }

    // req: S-110
    #[test]
    fn unencrypted_and_password_urls_are_refused() {
        for text in ["http://example.com", "http://evil.example\\@localhost/", "http://localhost.evil.example/"] {
            assert!(shown(text).starts_with("error: ") && shown(text).contains("https"), "{text}: {}", shown(text));
        }
        for text in
            ["https://ada:secret@example.com", "https://secret@example.com", "ftp://secret@example.com", "secret"]
        {
            assert!(shown(text).starts_with("error: ") && !shown(text).contains("secret"), "{text}: {}", shown(text));
        }
        for text in ["https://example.com/?a=b", "https://example.com/#a", "sqlite:team.db", ""] {
            assert!(shown(text).starts_with("error: "), "{text}");
        }
    }
}

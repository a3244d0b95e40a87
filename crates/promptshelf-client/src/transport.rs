//! The three ways to a server, and finding out which era it speaks.

use std::{
    collections::{HashMap, VecDeque},
    process::Stdio,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use http::{HeaderName, HeaderValue};
use rmcp::{
    model::ProtocolVersion,
    service::{
        ClientCacheConfig, ClientInitializeError, ClientLifecycleMode, RoleClient, RunningService,
        serve_client_with_lifecycle,
    },
    transport::{
        IntoTransport, StreamableHttpClientTransport, async_rw::AsyncRwTransport,
        streamable_http_client::StreamableHttpClientTransportConfig,
    },
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite},
    process::{Child, ChildStderr, Command},
    sync::watch,
    task::JoinHandle,
};

use super::{
    ClientError, Target,
    conversation::Conversation,
    error::Challenge,
    sign_in::Gate,
    unasked::{HttpClient, Unasked},
};
use promptshelf_server::Library;

/// The longest line that a process may send, in bytes: a prompt with images fits.
const LONGEST_LINE: usize = 64 << 20;
/// Codes of errors that only a server of the newest era gives.
const MODERN_CODES: std::ops::RangeInclusive<i32> = -32022..=-32020;
/// As much of a process's stderr as is kept for an error message, in bytes.
const LAST_WORDS: usize = 2 << 10;

/// How long the end of that is waited for when a process seems to have ended.
const HEARING_OUT: Duration = Duration::from_secs(3);
/// The most redirects that one request follows.
const MOST_REDIRECTS: usize = 10;

type Reader = Box<dyn AsyncRead + Send + Unpin>;
type Writer = Box<dyn AsyncWrite + Send + Unpin>;

/// An open connection.
pub(super) struct Connected {
    pub(super) service: RunningService<RoleClient, Conversation>,
    pub(super) lease: Lease,
}

/// What has to live as long as the connection.
#[derive(Default)]
pub(super) struct Lease {
    /// Killed when it is dropped.
    #[expect(dead_code, reason = "held, so that it lives")]
    child: Option<Child>,
    /// Aborted when the connection ends.
    tasks: Vec<JoinHandle<()>>,
    stderr: Arc<Mutex<VecDeque<u8>>>,
    /// Whether there is more to come on it.
    speaks: Option<watch::Receiver<bool>>,
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

impl Lease {
    /// Waits until a process that has ended has said all it had to say.
    pub(super) async fn hear_out(&self) {
        if let Some(mut speaks) = self.speaks.clone() {
            // A process that it has started can hold its stderr open.
            tokio::time::timeout(HEARING_OUT, speaks.wait_for(|speaks| !speaks)).await.ok();
        }
    }

    pub(super) fn last_words(&self) -> String {
        let kept: Vec<u8> = self.stderr.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect();
        String::from_utf8_lossy(&kept).trim().to_owned()
    }

    pub(super) fn with_last_words(&self, sentence: &str) -> String {
        match self.last_words() {
            words if words.is_empty() => sentence.to_owned(),
            words => format!("{sentence}; it said:\n{words}"),
        }
    }
}

/// Why an attempt has failed.
pub(super) struct Failed {
    pub(super) error: ClientError,
    /// What the server says about who may ask.
    pub(super) challenge: Option<Challenge>,
    /// Whether the other era may do better.
    may_be_older: bool,
}

impl From<ClientError> for Failed {
    fn from(error: ClientError) -> Failed {
        Failed { error, challenge: None, may_be_older: false }
    }
}

/// What a connection is made with.
pub(super) struct Plan<'a> {
    pub(super) target: &'a Target,
    pub(super) conversation: &'a Conversation,
    pub(super) gate: Option<&'a Gate>,
    /// Whether the server is known to be of the older era.
    pub(super) is_older: bool,
}

/// Connects in the newest era that the server speaks.
///
/// Some servers of the older era end, or answer outside of the protocol, when
/// they are asked for the newer one first. For them the connection is made a
/// second time, without asking; and where that is known, the other way round.
pub(super) async fn open(plan: &Plan<'_>) -> Result<Connected, Failed> {
    let probing = ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        legacy_version: Some(ProtocolVersion::V_2025_11_25),
    };
    let (one, other) = match plan.is_older {
        false => (probing, ClientLifecycleMode::Initialize),
        true => (ClientLifecycleMode::Initialize, probing),
    };
    let connected = match attempt(plan, one).await {
        Ok(connected) => connected,
        Err(failed) if !failed.may_be_older => return Err(failed),
        Err(first) => match attempt(plan, other).await {
            Ok(connected) => connected,
            // A server that is not there says so twice; the first time is as good.
            Err(Failed { error: ClientError::Down(_), .. }) => return Err(first),
            Err(second) => return Err(second),
        },
    };
    if let Some(server) = connected.service.peer().peer_info()
        && !ProtocolVersion::KNOWN_VERSIONS.contains(&server.protocol_version)
    {
        return Err(ClientError::Unexpected(format!("the server speaks only {}", server.protocol_version)).into());
    }
    let mut cache = ClientCacheConfig::default();
    // Whoever asks wants to know that a server is down.
    cache.serve_stale_on_error = false;
    connected.service.peer().set_response_cache_config(cache).await;
    Ok(connected)
}

/// One attempt.
async fn attempt(plan: &Plan<'_>, lifecycle: ClientLifecycleMode) -> Result<Connected, Failed> {
    let conversation = plan.conversation;
    match plan.target {
        Target::Folder(path) => {
            let library = Library::builder().folder(path).build().map_err(ClientError::from)?;
            let (ours, theirs) = tokio::io::duplex(64 << 10);
            let (reader, writer) = tokio::io::split(theirs);
            let following = library.loader().spawn();
            let server = library.server().clone();
            let serving = tokio::spawn(async move {
                let _following = following;
                server.serve_stdio(reader, writer).await.ok();
            });
            let lease = Lease { child: None, tasks: vec![serving], stderr: Arc::default(), speaks: None };
            let (reader, writer) = tokio::io::split(ours);
            start(conversation, pipes(reader, writer), lifecycle, lease).await
        }
        Target::Url { url, headers } => {
            let headers = header_map(headers)?;
            let mut config = StreamableHttpClientTransportConfig::with_uri(url.as_str()).custom_headers(headers);
            config.session_recovery_timeout = Duration::from_secs(10);
            let is_heard = conversation.is_heard();
            let client = match plan.gate {
                Some(gate) => HttpClient::SignedIn(gate.client()),
                None => HttpClient::Plain(http_client()?),
            };
            let transport = StreamableHttpClientTransport::with_client(Unasked { client, is_heard }, config);
            start(conversation, transport, lifecycle, Lease::default()).await
        }
        Target::Command { line, environment, folder } => {
            let mut child = spawn(line, environment, folder.as_deref())?;
            let (Some(stdin), Some(stdout), Some(stderr)) =
                (child.stdin.take(), child.stdout.take(), child.stderr.take())
            else {
                return Err(ClientError::Down("the command has no pipes".to_owned()).into());
            };
            let kept = Arc::new(Mutex::new(VecDeque::new()));
            let (ends, speaks) = watch::channel(true);
            let listening = tokio::spawn(listen(stderr, Arc::clone(&kept), ends));
            let lease = Lease { child: Some(child), tasks: vec![listening], stderr: kept, speaks: Some(speaks) };
            let transport = pipes(stdout, stdin).with_max_line_length(LONGEST_LINE);
            start(conversation, transport, lifecycle, lease).await
        }
    }
}

/// Two pipes, whatever they are: what the SDK makes of them is in the binary once.
fn pipes(
    reader: impl AsyncRead + Send + Unpin + 'static,
    writer: impl AsyncWrite + Send + Unpin + 'static,
) -> AsyncRwTransport<RoleClient, Reader, Writer> {
    AsyncRwTransport::new(Box::new(reader), Box::new(writer))
}

async fn start<T, E, A>(
    conversation: &Conversation,
    transport: T,
    lifecycle: ClientLifecycleMode,
    lease: Lease,
) -> Result<Connected, Failed>
where
    T: IntoTransport<RoleClient, E, A>,
    E: std::error::Error + Send + Sync + 'static,
{
    match serve_client_with_lifecycle(conversation.clone(), transport, lifecycle).await {
        Ok(service) => Ok(Connected { service, lease }),
        Err(error) => {
            if is_gone(&error) {
                lease.hear_out().await;
            }
            let challenge = Challenge::of_start(&error);
            let may_be_older = match &error {
                // Newer SDKs tell of older revisions, too, and speak them only after `initialize`.
                ClientInitializeError::NoCompatibleProtocolVersion { server_supported, .. } => {
                    server_supported.iter().any(|revision| revision.as_str() < ProtocolVersion::V_2026_07_28.as_str())
                }
                ClientInitializeError::JsonRpcError(error) => !MODERN_CODES.contains(&error.code.0),
                error => challenge.is_none() && !error.is_authorization_required(),
            };
            Err(Failed { error: ClientError::from_start(&error, &lease), challenge, may_be_older })
        }
    }
}

/// Whether the server seems to have ended.
fn is_gone(error: &ClientInitializeError) -> bool {
    match error {
        ClientInitializeError::ConnectionClosed(_) | ClientInitializeError::TransportError { .. } => true,
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => is_gone(fallback),
        _ => false,
    }
}

/// Follows redirects only on the same origin and where the message goes along:
/// anything else would hand headers to strangers or lose what was asked.
pub(super) fn http_client() -> Result<reqwest::Client, ClientError> {
    let redirects = reqwest::redirect::Policy::custom(|attempt| {
        let keeps_the_message = matches!(attempt.status().as_u16(), 307 | 308);
        let stays = attempt.previous().last().is_some_and(|from| from.origin() == attempt.url().origin());
        if attempt.previous().len() > MOST_REDIRECTS {
            attempt.error("too many redirects")
        } else if keeps_the_message && stays {
            attempt.follow()
        } else {
            attempt.stop()
        }
    });
    // Connections are not kept, as in the SDK's own client: answers that are not read to their last
    // byte would hold the next request up.
    let client = reqwest::Client::builder().pool_max_idle_per_host(0).redirect(redirects).build();
    client.map_err(|error| ClientError::Unexpected(format!("no HTTP client can be made: {error}")))
}

fn header_map(
    headers: &std::collections::BTreeMap<String, String>,
) -> Result<HashMap<HeaderName, HeaderValue>, ClientError> {
    let header = |(name, value): (&String, &String)| {
        let unusable = || ClientError::Target(format!("the header {name} cannot be sent"));
        let header = HeaderName::try_from(name.as_str()).map_err(|_| unusable())?;
        let mut value = HeaderValue::try_from(value.as_str()).map_err(|_| unusable())?;
        value.set_sensitive(true);
        Ok((header, value))
    };
    headers.iter().map(header).collect()
}

fn spawn(
    line: &[String],
    environment: &std::collections::BTreeMap<String, String>,
    folder: Option<&std::path::Path>,
) -> Result<Child, ClientError> {
    let [program, arguments @ ..] = line else {
        return Err(ClientError::Target("there is no command to start".to_owned()));
    };
    let mut command = Command::new(program);
    // Its stderr goes through us: a server has no way to the terminal of its own.
    command.args(arguments).envs(environment).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // In a group of its own, a server does not hear the Ctrl-C that is meant for us.
    #[cfg(unix)]
    command.process_group(0);
    if let Some(folder) = folder {
        command.current_dir(folder);
    }
    command
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| ClientError::Down(format!("`{program}` cannot be started: {error}")))
}

/// Keeps the end of what a process says on its stderr.
async fn listen(mut stderr: ChildStderr, kept: Arc<Mutex<VecDeque<u8>>>, ends: watch::Sender<bool>) {
    let mut buffer = [0; 1024];
    while let Ok(read @ 1..) = stderr.read(&mut buffer).await {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(&buffer[..read]);
        let surplus = kept.len().saturating_sub(LAST_WORDS);
        kept.drain(..surplus);
    }
    ends.send_replace(false);
}

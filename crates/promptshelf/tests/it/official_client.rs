//! The client of the official Rust SDK against the program: on both transports, in its newest revision and in older
//! ones.
//!
//! Our own transcripts cannot show whether another implementation interprets the protocol as we do.

mod guided;

use std::{collections::HashMap, time::Duration};

use promptshelf::{Library, mcp::Revision};
use rmcp::{
    ClientHandler, ClientLifecycleMode, ClientServiceExt, RoleClient, ServiceExt as _,
    model::{
        ClientCapabilities, ClientConfig, CompletionContext, ContentBlock, GetPromptRequestParams, Implementation,
        ProtocolVersion, ReadResourceRequestParams, ResourceContents, ResourceUpdatedNotificationParam, Role,
        ServerNotification, SubscribeRequestParams, SubscriptionFilter, UnsubscribeRequestParams,
    },
    service::{NotificationContext, RunningService, ServiceError},
    transport::{StreamableHttpClientTransport, TokioChildProcess},
};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::wire::{Folder, HttpWire, http_to_program, in_time, serve_command};

/// Forwards notifications to the test.
struct NotificationHandler {
    revision: Revision,
    sender: mpsc::UnboundedSender<String>,
}

impl ClientHandler for NotificationHandler {
    fn get_info(&self) -> ClientConfig {
        let about = Implementation::new("official-client", "1");
        ClientConfig::new(ClientCapabilities::default(), about).with_protocol_version(version(self.revision))
    }

    async fn on_prompt_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.sender.send("prompts".to_owned()).ok();
    }

    async fn on_resource_updated(&self, params: ResourceUpdatedNotificationParam, _: NotificationContext<RoleClient>) {
        self.sender.send(params.uri).ok();
    }
}

fn version(revision: Revision) -> ProtocolVersion {
    serde_json::from_value(json!(revision.as_str())).expect("the SDK knows this revision")
}

/// A client connected to the program, which serves a folder.
struct Peer {
    folder: Folder,
    client: RunningService<RoleClient, NotificationHandler>,
    notifications: mpsc::UnboundedReceiver<String>,
    /// The program, if the client did not start it.
    program: Option<HttpWire>,
}

impl Peer {
    async fn stdio(revision: Revision) -> Peer {
        let folder = Folder::copy_of("examples/library");
        let mut command = serve_command(folder.path());
        command.arg("--stdio");
        let builder = TokioChildProcess::builder(command).stderr(std::process::Stdio::null());
        let (transport, _) = builder.spawn().expect("the program starts");
        let (notifications, handler) = Peer::handler(revision);
        let client = match revision.is_modern() {
            false => handler.serve(transport).await,
            true => handler.serve_with_lifecycle(transport, modern(revision)).await,
        };
        Peer { folder, client: client.expect("a connection"), notifications, program: None }
    }

    async fn http(revision: Revision) -> Peer {
        let folder = Folder::copy_of("examples/library");
        let program = http_to_program(folder.path()).await;
        let transport = StreamableHttpClientTransport::from_uri(format!("http://{}/mcp", program.address()));
        let (notifications, handler) = Peer::handler(revision);
        let client = match revision.is_modern() {
            false => handler.serve(transport).await,
            true => handler.serve_with_lifecycle(transport, modern(revision)).await,
        };
        Peer { folder, client: client.expect("a connection"), notifications, program: Some(program) }
    }

    fn handler(revision: Revision) -> (mpsc::UnboundedReceiver<String>, NotificationHandler) {
        let (sender, notifications) = mpsc::unbounded_channel();
        (notifications, NotificationHandler { revision, sender })
    }

    async fn get(&self, name: &str, arguments: Value) -> Result<Vec<(Role, ContentBlock)>, ServiceError> {
        let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
        let params = GetPromptRequestParams::new(name).with_arguments(arguments);
        let result = self.client.get_prompt(params).await?;
        Ok(result.messages.into_iter().map(|message| (message.role, message.content)).collect())
    }

    async fn end(mut self) {
        in_time("the client's end", self.client.close()).await.expect("no panic");
        if let Some(program) = self.program {
            program.end().await;
        }
    }
}

fn modern(revision: Revision) -> ClientLifecycleMode {
    ClientLifecycleMode::Discover { preferred_versions: vec![version(revision)] }
}

/// Connects a client on each transport: in the newest revision, in the newest legacy one, and in the first one.
async fn peers() -> Vec<Peer> {
    let mut peers = Vec::new();
    for revision in [Revision::V2026_07_28, Revision::V2025_11_25, Revision::V2024_11_05] {
        peers.push(Peer::stdio(revision).await);
        peers.push(Peer::http(revision).await);
    }
    peers
}

fn kind(block: &ContentBlock) -> &'static str {
    match block {
        ContentBlock::Text(_) => "text",
        ContentBlock::Image(_) => "image",
        ContentBlock::Audio(_) => "audio",
        ContentBlock::Resource(_) => "resource",
        ContentBlock::ResourceLink(_) => "link",
        other => panic!("a block of no revision: {other:?}"),
    }
}

/// The prompts of the example library: name, arguments, kinds of the blocks, and words of the text.
fn examples() -> Vec<(&'static str, Value, &'static [&'static str], &'static str)> {
    vec![
        ("analyze-code", json!({ "language": "sql" }), &["text"], "analyze the sql code"),
        (
            "analyze-project",
            json!({ "timeframe": "7d", "file": "file:///src/main.py" }),
            &["text", "resource", "text", "resource", "text"],
            "the logs of the last 7d",
        ),
        ("caption-sound", json!({ "length": "5" }), &["text", "audio", "text"], "plays this sound"),
        ("code_review", json!({ "code": "a - b", "language": "go" }), &["text"], "```go\na - b\n```"),
        ("debug-error", json!({ "error": "KeyError" }), &["text", "text", "text"], "KeyError"),
        ("explain-code", json!({ "code": "len(x)", "reader": "expert" }), &["text"], "I know the language well"),
        ("git-commit", json!({ "changes": "fixed the page count" }), &["text"], "fixed the page count"),
        (
            "new-service",
            json!({ "purpose": "resize pictures", "language": "rust", "replicas": "3", "public": "true" }),
            &["text"],
            "resize pictures",
        ),
        ("onboarding", json!({ "name": "Ada" }), &["text", "link", "link"], "Ada joins our team"),
        ("read-chart", json!({}), &["text", "image", "text"], "how long the requests"),
        ("translate", json!({ "text": "The shelf is full.", "into": "Welsh" }), &["text"], "into Welsh"),
        ("write-tests", json!({ "file": "src/shelf.py" }), &["text", "resource", "text"], "with pytest"),
    ]
}

// req: Q1, Q9
#[tokio::test]
async fn official_client_lists_the_library() {
    for peer in peers().await {
        let library = Library::builder().folder(peer.folder.path()).build().expect("a library");
        let catalog = library.catalog();
        let prompts = peer.client.list_all_prompts().await.expect("a list");
        let names: Vec<&str> = prompts.iter().map(|prompt| prompt.name.as_str()).collect();
        assert_eq!(names, catalog.prompts().iter().map(|prompt| prompt.name().as_str()).collect::<Vec<_>>());
        assert_eq!(names, examples().iter().map(|(name, ..)| *name).collect::<Vec<_>>());
        let resources = peer.client.list_all_resources().await.expect("a list");
        let uris: Vec<&str> = resources.iter().map(|resource| resource.uri.as_str()).collect();
        assert_eq!(uris, catalog.resources().iter().map(|resource| resource.uri()).collect::<Vec<_>>());
        let templates = peer.client.list_all_resource_templates().await.expect("a list");
        assert_eq!(templates.len(), catalog.templates().len());
        let review = prompts.iter().find(|prompt| prompt.name == "code_review").expect("the prompt");
        let arguments = review.arguments.as_ref().expect("arguments");
        let required: Vec<_> = arguments.iter().map(|argument| (argument.name.as_str(), argument.required)).collect();
        assert_eq!(required, [("code", Some(true)), ("language", Some(false)), ("framework", Some(false))]);
        let revision = peer.client.service().revision;
        assert_eq!(review.title.is_some(), revision >= Revision::V2025_06_18, "{revision}");
        assert_eq!(review.icons.is_some(), revision >= Revision::V2025_11_25, "{revision}");
        peer.end().await;
    }
}

// req: DC2, DC3, Q1
#[tokio::test]
async fn official_client_gets_every_prompt() {
    for peer in peers().await {
        let revision = peer.client.service().revision;
        for (name, arguments, kinds, words) in examples() {
            let messages = peer.get(name, arguments).await.unwrap_or_else(|error| panic!("{name}: {error}"));
            let came: Vec<&str> = messages.iter().map(|(_, block)| kind(block)).collect();
            let known = kinds.iter().map(|kind| match *kind {
                "audio" if revision < Revision::V2025_03_26 => "text",
                "link" if revision < Revision::V2025_06_18 => "resource",
                kind => kind,
            });
            assert_eq!(came, known.collect::<Vec<_>>(), "{name} in {revision}");
            let text: String = messages.iter().filter_map(|(_, block)| block.as_text()).map(|it| &*it.text).collect();
            assert!(text.contains(words), "{name} in {revision}: {text}");
        }
        peer.end().await;
    }
}

// req: DC7
#[tokio::test]
async fn official_client_gets_error_details() {
    for peer in peers().await {
        let problem = |result: Result<Vec<(Role, ContentBlock)>, ServiceError>| match result {
            Err(ServiceError::McpError(error)) => (error.code.0, error.message.into_owned()),
            other => panic!("an error of the protocol, got {other:?}"),
        };
        assert_eq!(problem(peer.get("nobody", json!({})).await), (-32602, "Unknown prompt: nobody".to_owned()));
        let (code, message) = problem(peer.get("translate", json!({ "text": 7 })).await);
        assert_eq!(code, -32602);
        assert!(message.contains("`text` must be a string") && message.contains("`into` is required"), "{message}");
        let nothing = peer.client.read_resource(ReadResourceRequestParams::new("docs://nothing")).await;
        let Err(ServiceError::McpError(error)) = nothing else { panic!("an error, got {nothing:?}") };
        let modern = peer.client.service().revision.is_modern();
        assert_eq!(error.code.0, if modern { -32602 } else { -32002 });
        peer.end().await;
    }
}

#[tokio::test]
async fn official_client_completes_and_reads() {
    for peer in peers().await {
        let revision = peer.client.service().revision;
        let client = &peer.client;
        let languages = client.complete_prompt_simple("translate", "into", "po").await.expect("suggestions");
        assert!(languages.contains(&"Portuguese".to_owned()), "{languages:?}");
        let known = CompletionContext::with_arguments(HashMap::from([("language".to_owned(), "go".to_owned())]));
        let frameworks = client.complete_prompt_argument("code_review", "framework", "", Some(known)).await;
        let frameworks = frameworks.expect("suggestions").values;
        let knows_context = revision >= Revision::V2025_06_18;
        assert_eq!(frameworks == ["gin", "echo", "chi", "fiber"], knows_context, "{revision}: {frameworks:?}");
        let times = client.complete_resource_simple("logs://recent{?timeframe}", "timeframe", "2").await;
        assert_eq!(times.expect("suggestions"), ["24h"]);
        for uri in ["docs://style", "project:///docs/running.md", "logs://recent?timeframe=24h", "file:///src/main.py"]
        {
            let read = client.read_resource(ReadResourceRequestParams::new(uri)).await.expect("a resource");
            let [ResourceContents::TextResourceContents { uri: returned, text, .. }] = &read.contents[..] else {
                panic!("one text, got {read:?}");
            };
            assert!(returned == uri && !text.is_empty(), "{read:?}");
        }
        peer.end().await;
    }
}

// req: H2, K10, Q7, Q9
#[tokio::test]
async fn official_client_is_notified_of_edits_in_the_modern_era() {
    for mut peer in [Peer::stdio(Revision::V2026_07_28).await, Peer::http(Revision::V2026_07_28).await] {
        let filter = SubscriptionFilter::builder().prompts_list_changed().resource_subscription("docs://style").build();
        let mut subscription = peer.client.listen(filter.clone()).await.expect("a subscription");
        assert_eq!(*subscription.acknowledged(), filter);
        peer.client.list_all_prompts().await.expect("a list");
        peer.folder.edit("translate.md", "Translates a text", "Puts a text into another language");
        let notification = in_time("a notification", subscription.next()).await.expect("no error");
        assert!(matches!(notification, Some(ServerNotification::PromptListChangedNotification(_))), "{notification:?}");
        let prompts = peer.client.list_all_prompts().await.expect("a list");
        let translate = prompts.iter().find(|prompt| prompt.name == "translate").expect("the prompt");
        assert!(translate.description.as_ref().is_some_and(|it| it.starts_with("Puts a text")), "{translate:?}");
        peer.folder.edit("_sample-project/STYLE.md", "# Style guide", "# How we write");
        let notification = in_time("a notification", subscription.next()).await.expect("no error");
        let Some(ServerNotification::ResourceUpdatedNotification(updated)) = notification else {
            panic!("{notification:?}")
        };
        assert_eq!(updated.params.uri, "docs://style");
        subscription.cancel().await.expect("a cancellation");
        // No notification arrived outside the subscription.
        assert!(peer.notifications.try_recv().is_err());
        peer.end().await;
    }
}

/// Over HTTP this client opens its notification stream only if it received a session id.
// req: L33
#[tokio::test]
async fn official_client_is_notified_of_edits_over_legacy_http() {
    for revision in [Revision::V2025_11_25, Revision::V2025_03_26] {
        let mut peer = Peer::http(revision).await;
        let notified = async {
            let mut titles = ["Translates a text", "Puts a text into another language"].iter().cycle();
            let mut before = titles.next().expect("endless");
            // The stream opens in the background, so the first edits may precede it.
            loop {
                let after = titles.next().expect("endless");
                peer.folder.edit("translate.md", before, after);
                before = after;
                let next = tokio::time::timeout(Duration::from_millis(300), peer.notifications.recv()).await;
                if let Ok(notification) = next {
                    return notification;
                }
            }
        };
        assert_eq!(in_time("a notification", notified).await.as_deref(), Some("prompts"));
        peer.end().await;
    }
}

#[tokio::test]
#[expect(deprecated, reason = "the older era is what this is about")]
async fn official_client_is_notified_of_edits_in_the_legacy_era() {
    for revision in [Revision::V2025_11_25, Revision::V2024_11_05] {
        let mut peer = Peer::stdio(revision).await;
        peer.client.subscribe(SubscribeRequestParams::new("docs://style")).await.expect("a subscription");
        peer.folder.edit("translate.md", "Translates a text", "Puts a text into another language");
        assert_eq!(in_time("a notification", peer.notifications.recv()).await.as_deref(), Some("prompts"));
        peer.folder.edit("_sample-project/STYLE.md", "# Style guide", "# How we write");
        assert_eq!(in_time("a notification", peer.notifications.recv()).await.as_deref(), Some("docs://style"));
        peer.client.unsubscribe(UnsubscribeRequestParams::new("docs://style")).await.expect("its end");
        peer.folder.edit("_sample-project/STYLE.md", "# How we write", "# How we wrote");
        peer.folder.edit("translate.md", "Puts a text", "Says a text");
        assert_eq!(in_time("a notification", peer.notifications.recv()).await.as_deref(), Some("prompts"));
        peer.end().await;
    }
}

/// Without configuration the client probes the server and selects the newest revision.
// req: K11, M14, Q19
#[tokio::test]
async fn official_client_negotiates_newest_revision() {
    let folder = Folder::copy_of("examples/library");
    let mut command = serve_command(folder.path());
    command.arg("--stdio");
    let transport = TokioChildProcess::builder(command).stderr(std::process::Stdio::null()).spawn();
    let (_, handler) = Peer::handler(Revision::V2025_11_25);
    let mode = ClientLifecycleMode::Auto { preferred_versions: vec![ProtocolVersion::LATEST], legacy_version: None };
    let client =
        handler.serve_with_lifecycle(transport.expect("the program starts").0, mode).await.expect("a connection");
    let about = client.peer_info().expect("who answers");
    assert_eq!(about.protocol_version, version(Revision::V2026_07_28));
    assert_eq!(about.server_info.as_ref().map(|info| info.name.as_str()), Some("promptshelf-examples"));
    assert!(!client.list_all_prompts().await.expect("a list").is_empty());
    client.cancel().await.expect("no panic");
}

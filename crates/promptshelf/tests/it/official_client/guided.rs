//! A guided prompt of three steps with a condition, completed with the client of the official Rust SDK: in both eras,
//! over both transports, and across two servers that share a key.

use std::sync::{Arc, Mutex};

use promptshelf::mcp::Revision;
use promptshelf_testkit::folder::repository;
use rmcp::{
    ClientHandler, ClientServiceExt as _, ErrorData, RoleClient, ServiceExt as _,
    model::{
        ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationCapability,
        FormElicitationCapability, GetPromptRequestParams, GetPromptResponse, GetPromptResult, Implementation,
        InputRequest, InputRequiredResult, InputResponses,
    },
    service::{RequestContext, RunningService, ServiceError},
    transport::{StreamableHttpClientTransport, TokioChildProcess},
};
use serde_json::{Value, json};

use super::{modern, version};
use crate::{
    program::{Server, promptshelf},
    wire::serve_command,
};

const LANGUAGE: &str = "What will the service be written in?";
const FRAMEWORK: &str = "Which framework do you want to use?";
const RUNNING: &str = "How will it run?";

/// An elicitation handler with prepared answers; it declines every other question.
#[derive(Clone)]
struct Person {
    revision: Revision,
    answers: Value,
    questions: Arc<Mutex<Vec<String>>>,
}

impl Person {
    fn new(revision: Revision, answers: Value) -> Person {
        Person { revision, answers, questions: Arc::default() }
    }

    fn answer(&self, request: &ElicitRequestParams) -> ElicitResult {
        let ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } = request else {
            panic!("no page is to be visited");
        };
        self.questions.lock().expect("no panic").push(message.clone());
        let Some(answer) = self.answers.get(message) else { return ElicitResult::new(ElicitationAction::Decline) };
        for field in answer.as_object().into_iter().flatten().map(|(field, _)| field) {
            assert!(requested_schema.properties.contains_key(field), "{field} is requested: {requested_schema:?}");
        }
        ElicitResult::new(ElicitationAction::Accept).with_content(answer.clone())
    }

    fn questions(&self) -> Vec<String> {
        std::mem::take(&mut self.questions.lock().expect("no panic"))
    }
}

impl ClientHandler for Person {
    fn get_info(&self) -> ClientConfig {
        let mut elicitation = ElicitationCapability::default();
        elicitation.form = Some(FormElicitationCapability::default());
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = Some(elicitation);
        let about = Implementation::new("official-client", "1");
        ClientConfig::new(capabilities, about).with_protocol_version(version(self.revision))
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        Ok(self.answer(&request))
    }
}

fn all_answers() -> Value {
    json!({
        LANGUAGE: { "language": "python" },
        FRAMEWORK: { "framework": "django" },
        RUNNING: { "replicas": 5, "public": true },
    })
}

type Client = RunningService<RoleClient, Person>;

async fn stdio(person: &Person) -> Client {
    let mut command = serve_command(&repository("examples/library"));
    command.arg("--stdio");
    let transport = TokioChildProcess::builder(command).stderr(std::process::Stdio::null()).spawn();
    let (transport, _) = transport.expect("the program starts");
    let client = match person.revision.is_modern() {
        false => person.clone().serve(transport).await,
        true => person.clone().serve_with_lifecycle(transport, modern(person.revision)).await,
    };
    client.expect("a connection")
}

/// Starts the program over HTTP with a secret that another server may share.
fn server(secret: &str) -> Server {
    let mut command = promptshelf();
    command.arg("serve").arg(repository("examples/library")).args(["--http", "127.0.0.1:0"]);
    command.env("PROMPTSHELF_STATE_KEY", secret);
    Server::start(command)
}

async fn http(person: &Person, server: &Server) -> Client {
    let transport = StreamableHttpClientTransport::from_uri(server.url.as_str());
    let client = match person.revision.is_modern() {
        false => person.clone().serve(transport).await,
        true => person.clone().serve_with_lifecycle(transport, modern(person.revision)).await,
    };
    client.expect("a connection")
}

fn new_service() -> GetPromptRequestParams {
    let arguments = json!({ "purpose": "resize pictures" });
    GetPromptRequestParams::new("new-service").with_arguments(arguments.as_object().cloned().unwrap_or_default())
}

fn text(result: &GetPromptResult) -> String {
    result.messages[0].content.as_text().expect("a text").text.clone()
}

fn is_refusal(result: Result<GetPromptResult, ServiceError>) -> bool {
    matches!(result, Err(ServiceError::McpError(error)) if error.code.0 == -32602)
}

/// Runs the test on each transport and revision that supports elicitation.
async fn each(answers: &Value, walk: impl AsyncFn(&Client, &Person)) {
    for revision in [Revision::V2026_07_28, Revision::V2025_11_25, Revision::V2025_06_18] {
        let person = Person::new(revision, answers.clone());
        let client = stdio(&person).await;
        walk(&client, &person).await;
        client.cancel().await.expect("no panic");
    }
    let person = Person::new(Revision::V2026_07_28, answers.clone());
    let server = server("a secret of this server alone");
    let client = http(&person, &server).await;
    walk(&client, &person).await;
    client.cancel().await.expect("no panic");
}

// req: C12, DC5, DC6, I15, I23
#[tokio::test]
async fn three_steps_complete() {
    each(&all_answers(), async |client, person| {
        let text = text(&client.get_prompt(new_service()).await.expect("a prompt"));
        assert_eq!(person.questions(), [LANGUAGE, FRAMEWORK, RUNNING], "{}", person.revision);
        assert!(text.contains("written in python with django and runs in 5 copies"), "{text}");
        assert!(text.contains("People outside the company"), "{text}");
    })
    .await;
}

#[tokio::test]
async fn skipped_step_is_not_requested_and_declined_step_uses_defaults() {
    each(&json!({ LANGUAGE: { "language": "rust" } }), async |client, person| {
        let text = text(&client.get_prompt(new_service()).await.expect("a prompt"));
        assert_eq!(person.questions(), [LANGUAGE, RUNNING], "{}", person.revision);
        assert!(text.contains("written in rust and runs in 2 copies"), "{text}");
    })
    .await;
}

// req: I14
#[tokio::test]
async fn declined_required_step_returns_no_prompt() {
    each(&json!({}), async |client, person| {
        assert!(is_refusal(client.get_prompt(new_service()).await), "{}", person.revision);
        assert_eq!(person.questions(), [LANGUAGE]);
    })
    .await;
}

/// Legacy HTTP has no stream for elicitation requests, and 2024-11-05 has no elicitation.
// req: DC5, I23
#[tokio::test]
async fn clients_without_elicitation_get_arguments() {
    let server = server("a secret of this server alone");
    for revision in [Revision::V2025_11_25, Revision::V2024_11_05] {
        let person = Person::new(revision, all_answers());
        let mut clients = vec![http(&person, &server).await];
        if revision == Revision::V2024_11_05 {
            clients.push(stdio(&person).await);
        }
        for client in clients {
            assert!(is_refusal(client.get_prompt(new_service()).await), "{revision}");
            let mut params = new_service();
            let arguments = params.arguments.get_or_insert_default();
            arguments.insert("language".to_owned(), json!("rust"));
            arguments.insert("replicas".to_owned(), json!("7"));
            let text = text(&client.get_prompt(params).await.expect("a prompt"));
            assert!(text.contains("written in rust and runs in 7 copies"), "{text}");
            client.cancel().await.expect("no panic");
        }
        assert!(person.questions().is_empty(), "{revision}");
    }
}

/// Sends one round of a multi round-trip request, without the SDK's automatic answers.
async fn round(
    server: &Server,
    person: &Person,
    before: Option<&InputRequiredResult>,
) -> Result<GetPromptResponse, i32> {
    let mut params = new_service();
    if let Some(required) = before {
        let requests = required.input_requests.as_ref().expect("questions");
        let answers: InputResponses = requests
            .iter()
            .map(|(key, request)| {
                let InputRequest::Elicitation(request) = request else { panic!("a form, got {request:?}") };
                (key.clone(), serde_json::to_value(person.answer(&request.params)).expect("JSON"))
            })
            .collect();
        params.input_responses = Some(answers);
        params.request_state.clone_from(&required.request_state);
    }
    let client = http(person, server).await;
    let response = client.get_prompt_once(params).await;
    client.cancel().await.expect("no panic");
    response.map_err(|error| match error {
        ServiceError::McpError(error) => error.code.0,
        other => panic!("an error of the protocol, got {other}"),
    })
}

fn input_required(response: Result<GetPromptResponse, i32>) -> InputRequiredResult {
    match response {
        Ok(GetPromptResponse::InputRequired(required)) => required,
        other => panic!("a question, got {other:?}"),
    }
}

// req: I13
#[tokio::test]
async fn replica_continues_after_the_first_is_killed() {
    let person = Person::new(Revision::V2026_07_28, all_answers());
    let first = server("a secret that both servers know");
    let required = input_required(round(&first, &person, None).await);
    let further = input_required(round(&first, &person, Some(&required)).await);
    drop(first);

    let second = server("a secret that both servers know");
    let other = server("another secret of a third server");
    assert_eq!(round(&other, &person, Some(&further)).await.err(), Some(-32602));
    let last = input_required(round(&second, &person, Some(&further)).await);
    let Ok(GetPromptResponse::Complete(done)) = round(&second, &person, Some(&last)).await else {
        panic!("a prompt");
    };
    assert!(text(&done).contains("written in python with django and runs in 5 copies"), "{}", text(&done));
}

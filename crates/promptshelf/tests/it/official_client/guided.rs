//! A guided prompt of three steps with a condition, walked with the official
//! Rust SDK's client: in both eras, over both transports, and from a server that
//! dies to one that shares its key.

use std::sync::{Arc, Mutex};

use promptshelf::mcp::Revision;
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
    wire::{repository, serve_command},
};

const LANGUAGE: &str = "What will the service be written in?";
const FRAMEWORK: &str = "Which framework do you want to use?";
const RUNNING: &str = "How will it run?";

/// Answers forms: a question it has no answer for is declined.
#[derive(Clone)]
struct Person {
    revision: Revision,
    answers: Value,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Person {
    fn new(revision: Revision, answers: Value) -> Person {
        Person { revision, answers, asked: Arc::default() }
    }

    fn answer(&self, request: &ElicitRequestParams) -> ElicitResult {
        let ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } = request else {
            panic!("no page is to be visited");
        };
        self.asked.lock().expect("no panic").push(message.clone());
        let Some(answer) = self.answers.get(message) else { return ElicitResult::new(ElicitationAction::Decline) };
        for field in answer.as_object().into_iter().flatten().map(|(field, _)| field) {
            assert!(requested_schema.properties.contains_key(field), "{field} is asked for: {requested_schema:?}");
        }
        ElicitResult::new(ElicitationAction::Accept).with_content(answer.clone())
    }

    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().expect("no panic"))
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

fn willing() -> Value {
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

/// The program over HTTP, with a secret that another one may share.
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

/// Each wire on which questions can be asked.
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
async fn three_steps_are_walked() {
    each(&willing(), async |client, person| {
        let text = text(&client.get_prompt(new_service()).await.expect("a prompt"));
        assert_eq!(person.asked(), [LANGUAGE, FRAMEWORK, RUNNING], "{}", person.revision);
        assert!(text.contains("written in python with django and runs in 5 copies"), "{text}");
        assert!(text.contains("People outside the company"), "{text}");
    })
    .await;
}

#[tokio::test]
async fn skipped_step_is_not_requested_and_a_declined_one_uses_defaults() {
    each(&json!({ LANGUAGE: { "language": "rust" } }), async |client, person| {
        let text = text(&client.get_prompt(new_service()).await.expect("a prompt"));
        assert_eq!(person.asked(), [LANGUAGE, RUNNING], "{}", person.revision);
        assert!(text.contains("written in rust and runs in 2 copies"), "{text}");
    })
    .await;
}

// req: I14
#[tokio::test]
async fn declined_required_step_returns_no_prompt() {
    each(&json!({}), async |client, person| {
        assert!(is_refusal(client.get_prompt(new_service()).await), "{}", person.revision);
        assert_eq!(person.asked(), [LANGUAGE]);
    })
    .await;
}

/// Over HTTP the older era has no conversation to ask in, and 2024-11-05 no questions at all.
// req: DC5, I23
#[tokio::test]
async fn clients_without_elicitation_get_arguments() {
    let server = server("a secret of this server alone");
    for revision in [Revision::V2025_11_25, Revision::V2024_11_05] {
        let person = Person::new(revision, willing());
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
        assert!(person.asked().is_empty(), "{revision}");
    }
}

/// One round, answered by hand.
async fn round(
    server: &Server,
    person: &Person,
    before: Option<&InputRequiredResult>,
) -> Result<GetPromptResponse, i32> {
    let mut params = new_service();
    if let Some(asked) = before {
        let requests = asked.input_requests.as_ref().expect("questions");
        let answers: InputResponses = requests
            .iter()
            .map(|(key, request)| {
                let InputRequest::Elicitation(request) = request else { panic!("a form, and not {request:?}") };
                (key.clone(), serde_json::to_value(person.answer(&request.params)).expect("JSON"))
            })
            .collect();
        params.input_responses = Some(answers);
        params.request_state.clone_from(&asked.request_state);
    }
    let client = http(person, server).await;
    let response = client.get_prompt_once(params).await;
    client.cancel().await.expect("no panic");
    response.map_err(|error| match error {
        ServiceError::McpError(error) => error.code.0,
        other => panic!("an error of the protocol, and not {other}"),
    })
}

fn asks(response: Result<GetPromptResponse, i32>) -> InputRequiredResult {
    match response {
        Ok(GetPromptResponse::InputRequired(asked)) => asked,
        other => panic!("a question, and not {other:?}"),
    }
}

// req: I13
#[tokio::test]
async fn a_second_server_goes_on_where_the_first_one_was_killed() {
    let person = Person::new(Revision::V2026_07_28, willing());
    let first = server("a secret that both servers know");
    let asked = asks(round(&first, &person, None).await);
    let further = asks(round(&first, &person, Some(&asked)).await);
    drop(first);

    let second = server("a secret that both servers know");
    let stranger = server("another secret, of a stranger");
    assert_eq!(round(&stranger, &person, Some(&further)).await.err(), Some(-32602));
    let last = asks(round(&second, &person, Some(&further)).await);
    let Ok(GetPromptResponse::Complete(done)) = round(&second, &person, Some(&last)).await else {
        panic!("a prompt");
    };
    assert!(text(&done).contains("written in python with django and runs in 5 copies"), "{}", text(&done));
}

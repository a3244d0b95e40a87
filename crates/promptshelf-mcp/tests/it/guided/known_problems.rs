//! Problems that are reported before a form, and answers that name the arguments to send instead.

use promptshelf_core::{
    ArgumentDefinition, ArgumentType, CatalogHandle, Constraints, Definitions, PromptDefinition, check,
    usage::FormCounts,
};
use promptshelf_mcp::Server;
use promptshelf_service::{Service, Usage};
use serde_json::{Value, json};

use super::{accept, again, begin, forms, get, key, legacy, legacy_get, reply, start, text};
use crate::{library, stdio::Client};

/// A prompt with plain arguments next to one that a form requests.
fn booking() -> Client {
    counted_booking(&Usage::new())
}

fn counted_booking(usage: &Usage) -> Client {
    let argument = |name: &str| ArgumentDefinition::new(name).description(name.to_uppercase());
    let mut seats = argument("seats").kind(ArgumentType::Integer).required();
    seats.constraints = Some(Constraints { minimum: Some(1.0), maximum: Some(9.0), ..Constraints::default() }.into());
    let prompt = PromptDefinition::template("book", "{{ place }}, {{ seats }}, {{ day }}, {{ meal }}.")
        .description("Books seats")
        .argument(argument("place").required())
        .argument(seats)
        .argument(argument("day").kind(ArgumentType::Date).required().ask())
        .argument(argument("vegan").kind(ArgumentType::Boolean).ask())
        // Required only after an answer.
        .argument(argument("meal").required().when("vegan"));
    let checked = check(Definitions::from_iter([prompt]), None);
    assert!(checked.diagnostics.iter().all(|diagnostic| !diagnostic.is_error()), "{:?}", checked.diagnostics);
    let handle = CatalogHandle::new(checked.catalog);
    Client::of(Server::with_state_key(Service::new(handle.clone()).with_usage(usage, ""), key()), handle)
}

fn names(error: &Value) -> Vec<&str> {
    let problems = error["error"]["data"]["problems"].as_array().unwrap_or_else(|| panic!("problems, not {error}"));
    problems.iter().filter_map(|problem| problem["argument"].as_str()).collect()
}

fn book(id: u32, arguments: &Value, capabilities: &Value) -> Value {
    get(id, json!({ "name": "book", "arguments": arguments }), capabilities)
}

// req: I26
#[tokio::test]
async fn known_problems_precede_the_first_form() {
    let mut client = booking();
    for (arguments, expected) in [
        (json!({}), vec!["place", "seats"]),
        (json!({ "place": "Oslo" }), vec!["seats"]),
        (json!({ "place": "Oslo", "seats": "ten" }), vec!["seats"]),
        (json!({ "place": "Oslo", "seats": "10" }), vec!["seats"]),
        (json!({ "place": 7, "seats": "3", "day": "soon" }), vec!["place", "day"]),
        // The condition of `meal` is decided by an argument of the call.
        (json!({ "place": "Oslo", "seats": "3", "vegan": "yes" }), vec!["meal"]),
    ] {
        let refused = client.request(book(1, &arguments, &forms())).await;
        assert_eq!(refused["error"]["code"], -32602, "{arguments}: {refused}");
        assert_eq!(names(&refused), expected, "{arguments}");
    }
    // The condition of `meal` is not decided, and unknown arguments are ignored.
    let asked = client.request(book(2, &json!({ "place": "Oslo", "seats": "3", "x": "y" }), &forms())).await;
    assert!(asked["result"]["inputRequests"].is_object(), "{asked}");
}

// req: I23, I26
#[tokio::test]
async fn known_problems_precede_the_first_form_on_legacy_stdio() {
    for revision in ["2025-06-18", "2025-11-25"] {
        let mut client = legacy_booking(revision, forms()).await;
        let refused = client.request(legacy_book(&json!({ "place": "Oslo" }))).await;
        assert_eq!(names(&refused), ["seats"], "{revision}: {refused}");
        let asked = client.request(legacy_book(&json!({ "place": "Oslo", "seats": "3" }))).await;
        assert_eq!(asked["method"], "elicitation/create");
    }
}

async fn legacy_booking(revision: &str, capabilities: Value) -> Client {
    let mut client = booking();
    let params = json!({ "protocolVersion": revision, "capabilities": capabilities, "clientInfo": { "name": "t", "version": "1" } });
    client.request(json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params })).await;
    client
}

fn legacy_book(arguments: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": "prompts/get", "params": { "name": "book", "arguments": arguments } })
}

/// Every argument that a client without forms has to send is named at once, with its allowed values.
// req: I26, X22
#[tokio::test]
async fn client_without_forms_learns_all_arguments() {
    let mut client = booking();
    let refused = client.request(book(1, &json!({}), &json!({}))).await;
    assert_eq!(refused["error"]["code"], -32602);
    assert_eq!(names(&refused), ["place", "seats", "day"]);
    let refused = client.request(book(2, &json!({ "place": "Oslo", "seats": "3" }), &json!({}))).await;
    assert_eq!(refused["error"]["code"], -32021);
    assert_eq!(
        refused["error"]["message"],
        "This prompt asks the user a question, which requires the elicitation capability; without it, these arguments \
         must be sent: `day` is required (DAY); it must be a day, such as 2026-07-28"
    );
    assert_eq!(names(&refused), ["day"]);
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let refused = legacy_booking(revision, json!({})).await.request(legacy_book(&json!({}))).await;
        assert_eq!(names(&refused), ["place", "seats", "day"], "{revision}");
        let seats = &refused["error"]["data"]["problems"][1]["reason"];
        assert_eq!(seats, "is required (SEATS); it must be a whole number from 1 to 9");
    }
}

// req: I14, I26
#[tokio::test]
async fn unanswered_question_names_its_arguments() {
    let instead = "and the prompt was not rendered; these arguments can be sent instead: `language` is required \
                   (LANGUAGE); it must be one of rust, python; `tests` is optional (TESTS); it must be true or false";
    let mut client = start();
    let state = client.request(begin()).await["result"]["requestState"].clone();
    for (action, word) in [("decline", "declined"), ("cancel", "cancelled")] {
        let refused = client.request(again(2, &json!({ "basics": { "action": action } }), &state)).await;
        assert_eq!(refused["error"]["message"], format!("The user {word} the question, {instead}"));
        assert_eq!(names(&refused), ["language", "tests"]);

        let mut client = legacy("2025-11-25", forms()).await;
        let question = client.request(legacy_get(&json!({}))).await;
        let refused = client.request(reply(&question, &json!({ "action": action }))).await;
        assert_eq!(refused["error"]["message"], format!("The user {word} the question, {instead}"));
    }
    // With these arguments the question is not asked.
    let arguments = json!({ "language": "rust", "tests": "false" });
    let next = client.request(get(3, json!({ "name": "setup", "arguments": arguments }), &forms())).await;
    assert!(next["result"]["inputRequests"].get("basics").is_none(), "{next}");
}

#[tokio::test]
async fn reactions_to_forms_are_counted() {
    let usage = Usage::new();
    let mut client = counted_booking(&usage);
    let arguments = json!({ "place": "Oslo", "seats": "3" });
    for (answer, times) in [(json!({ "action": "decline" }), 2), (json!({ "action": "cancel" }), 1)] {
        for _ in 0..times {
            let asked = client.request(book(1, &arguments, &forms())).await;
            let question = asked["result"]["inputRequests"].as_object().and_then(|forms| forms.keys().next()).cloned();
            let question = question.unwrap_or_else(|| panic!("a form, not {asked}"));
            let state = &asked["result"]["requestState"];
            let answers = json!({ question: answer });
            let params =
                json!({ "name": "book", "arguments": arguments, "inputResponses": answers, "requestState": state });
            client.request(get(2, params, &forms())).await;
        }
    }
    let mut counted = FormCounts::default();
    usage.drain().values().for_each(|figures| counted.merge(figures.forms));
    assert_eq!(counted, FormCounts { accepted: 0, declined: 2, cancelled: 1 });
}

/// An edit can insert a first step, which the state of an earlier version would skip.
// req: I7, S-71
#[tokio::test]
async fn state_of_an_earlier_version_is_refused() {
    let mut client = start();
    let answer = json!({ "basics": accept(&json!({ "language": "rust" })) });
    let question = client.request(begin()).await;
    let second = client.request(again(2, &answer, &question["result"]["requestState"])).await;
    let state = &second["result"]["requestState"];
    let continued = json!({ "step_2": accept(&json!({ "workers": 3 })) });

    // Loading the same definitions again changes nothing.
    client.handle.replace(check(library::guided(), None).catalog);
    let third = client.request(again(3, &continued, state)).await;
    assert!(third["result"]["inputRequests"].get("more").is_some(), "{third}");

    let edits: [fn(&mut PromptDefinition); 3] = [
        |prompt| prompt.arguments.push(ArgumentDefinition::new("consent").description("Agree").required().ask()),
        |prompt| prompt.steps[0].message = Some("Do you accept the terms?".into()),
        |prompt| prompt.arguments[1].title = Some("Terms".into()),
    ];
    for edit in edits {
        let mut definitions = library::guided();
        let setup = definitions.prompts.iter_mut().find(|prompt| prompt.name == "setup").expect("the prompt");
        edit(std::sync::Arc::make_mut(setup));
        client.handle.replace(check(definitions, None).catalog);
        let refused = client.request(again(4, &continued, state)).await;
        let message = "The prompt has changed since it was begun; begin again without `requestState`";
        assert_eq!(refused["error"]["message"], message, "{refused}");
    }

    client.handle.replace(check(library::guided(), None).catalog);
    let third = client.request(again(5, &continued, state)).await;
    let done = json!({ "more": { "action": "decline" } });
    assert_eq!(
        text(&client.request(again(6, &done, &third["result"]["requestState"])).await),
        "shelf: rust, true, , 3, , ."
    );
}

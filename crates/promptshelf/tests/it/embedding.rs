//! The library as a dependency: the examples run, and output of embedding code cannot break the protocol.

use promptshelf::{Caller, Code, Library, Message, OpenError, PromptDefinition, RawArguments, ToolMode};
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

use crate::program::{Pipes, Server, example, initialize_request, library};

#[test]
fn code_example_serves_on_stdio() {
    let mut pipes = Pipes::start(example("code_prompts"));
    let answer = pipes.initialize();
    assert_eq!(answer["result"]["serverInfo"]["name"], "code-prompts", "{answer}");
    let answer = pipes.request(1, "prompts/list", &json!({}));
    let names: Vec<_> = answer["result"]["prompts"].as_array().expect("a list").iter().map(|it| &it["name"]).collect();
    assert_eq!(names, ["explain-code", "git-commit"]);
    let params = json!({ "name": "explain-code", "arguments": { "code": "x" } });
    let answer = pipes.request(2, "prompts/get", &params);
    let roles: Vec<_> = answer["result"]["messages"].as_array().expect("a list").iter().map(|it| &it["role"]).collect();
    assert_eq!(roles, ["user", "assistant", "user"]);
    assert!(pipes.rest().is_empty());
}

#[test]
fn axum_example_serves_folder_and_own_routes() {
    let folder = library(&[("hello.md", "---\ndescription: Greets\n---\nSay hello.\n")]);
    let mut command = example("in_axum");
    command.arg(folder.path().join("prompts")).arg("127.0.0.1:0");
    let server = Server::start(command);
    let (_, answer) = server.request("prompts/get", &json!({ "name": "hello" }));
    assert_eq!(answer["result"]["messages"][0]["content"]["text"], "Say hello.", "{answer}");
    let mut page = ureq::get(server.url.replace("/mcp", "/")).call().expect("the application answers");
    assert_eq!(page.body_mut().read_to_string().expect("text"), "1 prompts, at /mcp\n");
}

#[tokio::test]
async fn folder_and_code_are_one_library() {
    let folder = library(&[("hello.md", "---\ndescription: Greets\n---\nSay hello.\n")]);
    let bye = PromptDefinition::new("bye", |_| Ok(vec![Message::user("Say bye.")])).description("Parts");
    let library = Library::builder().folder(folder.path().join("prompts")).prompt(bye).build().expect("it is right");
    let names: Vec<String> = library.catalog().prompts().iter().map(|prompt| prompt.name().to_string()).collect();
    assert_eq!(names, ["bye", "hello"]);
    let answer = library.service().get(&Caller::local(), "bye", &RawArguments::new()).await.expect("a prompt");
    assert_eq!(answer.value().messages, [Message::user("Say bye.")]);
}

// req: A21
#[tokio::test]
async fn tools_are_declared_unless_they_are_disabled() {
    for (enabled, builder) in [
        (true, Library::builder()),
        (true, Library::builder().tools(ToolMode::Search)),
        (false, Library::builder().tools(ToolMode::Disabled)),
    ] {
        let server = builder.build().expect("a library").server().clone();
        let (client, program) = tokio::io::duplex(1 << 16);
        let (input, output) = tokio::io::split(program);
        tokio::spawn(async move { server.serve_stdio(input, output).await });
        let (answers, mut requests) = tokio::io::split(client);
        requests.write_all(format!("{}\n", initialize_request()).as_bytes()).await.expect("sent");
        let answer = BufReader::new(answers).lines().next_line().await.expect("a line").expect("an answer");
        let answer: serde_json::Value = serde_json::from_str(&answer).expect("JSON");
        assert_eq!(answer["result"]["capabilities"].get("tools").is_some(), enabled, "{answer}");
    }
}

#[test]
fn code_mistake_is_error_and_file_mistake_is_diagnostic() {
    let folder = library(&[("broken.md", "---\ndescription: x\n---\n{{ nobody }}\n")]);
    let opened = Library::builder().folder(folder.path().join("prompts")).build().expect("the rest is served");
    assert_eq!(opened.diagnostics()[0].code, Code::UndeclaredArgument);

    let broken = PromptDefinition::template("broken", "{{ nobody }}").description("x");
    match Library::builder().prompt(broken).build() {
        Err(OpenError::Prompts(errors)) => assert_eq!(errors[0].code, Code::UndeclaredArgument),
        other => panic!("it should be refused, not {other:?}"),
    }
    match Library::builder().folder("no/such/folder").build() {
        Err(OpenError::Source(error)) => assert!(error.is_not_found()),
        other => panic!("it should be refused, not {other:?}"),
    }
}

#[cfg(unix)]
mod stdout {
    use std::{
        env,
        process::Command,
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering},
        },
    };

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    const CHILD: &str = "PROMPTSHELF_TEST_NOISY_SERVER";

    /// Serves in the child process of the test below. In the test run itself it verifies that rendering prints;
    /// otherwise that test would prove nothing.
    #[test]
    fn noisy_server() {
        let printed = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&printed);
        let noisy = PromptDefinition::new("noisy", move |_| {
            println!("a careless line");
            count.fetch_add(1, Ordering::Relaxed);
            Ok(vec![Message::user("Done.")])
        });
        let panics = PromptDefinition::new("panics", |_| panic!("a mistake in the code of a prompt"));
        let library = Library::builder().prompt(noisy).prompt(panics).build().expect("a valid library");
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
        if env::var_os(CHILD).is_some() {
            runtime.block_on(library.serve_stdio()).expect("intact pipes");
            assert_eq!(printed.load(Ordering::Relaxed), 2, "the parent gets the prompt twice");
            return;
        }
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (input, output) = tokio::io::split(theirs);
        let responses = runtime.block_on(async {
            let server = library.server().clone();
            let serving = tokio::spawn(async move { server.serve_stdio(input, output).await });
            let (mut from_server, mut to_server) = tokio::io::split(ours);
            let get = json!({ "jsonrpc": "2.0", "id": 1, "method": "prompts/get", "params": { "name": "noisy" } });
            let requests = format!("{}\n{get}\n", initialize_request());
            to_server.write_all(requests.as_bytes()).await.expect("the server reads");
            to_server.shutdown().await.expect("an open pipe");
            let mut responses = String::new();
            from_server.read_to_string(&mut responses).await.expect("text");
            serving.await.expect("no panic").expect("a clean end");
            responses
        });
        assert_eq!(printed.load(Ordering::Relaxed), 1);
        assert!(responses.contains("Done.") && !responses.contains("careless"), "{responses}");
    }

    // req: K2
    #[test]
    fn output_of_prompt_code_does_not_reach_the_protocol() {
        let mut command = Command::new(env::current_exe().expect("this program has a path"));
        command.args(["embedding::stdout::noisy_server", "--exact", "--nocapture"]).env(CHILD, "1");
        let mut pipes = Pipes::start(command);
        pipes.send(&initialize_request().to_string());
        // The test runner prints its own lines first.
        while !pipes.line().starts_with('{') {}
        let answer = pipes.request(1, "prompts/get", &json!({ "name": "noisy" }));
        assert_eq!(answer["result"]["messages"][0]["content"]["text"], "Done.", "{answer}");
        let answer = pipes.request(2, "prompts/get", &json!({ "name": "panics" }));
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(2), &json!(-32603)), "{answer}");
        let answer = pipes.request(3, "prompts/get", &json!({ "name": "noisy" }));
        assert_eq!(answer["id"], 3, "{answer}");
        assert!(pipes.rest().is_empty());
    }
}

//! `list`, `get`, `complete` and `resources` with servers other than a folder: a URL, a command, or a configured
//! name. Also the client library itself.

use std::{fs, path::Path, sync::Arc};

use futures_util::TryStreamExt;
use insta::assert_snapshot;
use promptshelf::Library;
use promptshelf::client::{Client, ClientError, CompletionTarget, Endpoint};
use promptshelf_testkit::tcp_proxy::TcpProxy;
use serde_json::json;

use crate::{
    fake_server::FakeServer,
    program::{Folder, Server, example, library, promptshelf, run, shown},
};

const REVIEW: &str = "\
---
title: Review
description: Reviews code
arguments:
  - name: code
    description: The code to review
    required: true
  - name: language
    description: Its language
    enum: [rust, ruby, python]
---
Review this {{ language }} code: {{ code }}

{{ attach(\"dot.png\") }}

{{ attach(\"style.txt\") }}

{{ link(\"style.txt\") }}

{{ role(\"assistant\") }}
I will.
";

fn sample_folder() -> Folder {
    let folder = library(&[("review.md", REVIEW), ("style.txt", "Be `brief`.\n")]);
    fs::write(folder.path().join("prompts/dot.png"), b"\x89PNG\r\n\x1a\n0123").expect("a written file");
    folder
}

/// Connects a client to a folder's library over a pipe in memory. The library is reloaded when its files change.
async fn connect(folder: &Path) -> Client {
    let library = Library::builder().folder(folder).build().expect("a library");
    let (client_end, server_end) = tokio::io::duplex(64 << 10);
    tokio::spawn(async move {
        let _following = library.loader().spawn();
        let (reader, writer) = tokio::io::split(server_end);
        library.server().serve_stdio(reader, writer).await
    });
    let (reader, writer) = tokio::io::split(client_end);
    Client::from_io(reader, writer).await.expect("a connection")
}

/// Returns arguments that end with our own server as a command.
fn of_command(line: &[&str]) -> Vec<String> {
    let server = [env!("CARGO_BIN_EXE_promptshelf"), "serve", "prompts", "--stdio"];
    line.iter().chain(&["--"]).chain(&server).map(|word| (*word).to_owned()).collect()
}

fn ask(folder: &Folder, line: &[&str]) -> String {
    let line = of_command(line);
    run(folder, &line.iter().map(String::as_str).collect::<Vec<_>>())
}

// req: F5
#[test]
fn server_command_is_listed_and_completed() {
    let folder = sample_folder();
    assert_eq!(ask(&folder, &["list"]), run(&folder, &["list", "prompts"]));
    let complete = ["suggest", "review", "language", "ru"];
    let of_folder = run(&folder, &[&complete[..], &["-l", "prompts"]].concat());
    assert_eq!(ask(&folder, &complete), of_folder);
    assert!(of_folder.contains("ruby"));
}

#[test]
fn remote_prompt_is_printed_in_every_format() {
    let folder = sample_folder();
    let server = Server::of(&folder, &[]);
    let get = |more: &[&str]| {
        let line = ["get", "review", "--url", &server.url, "-a", "code=x", "-a", "language=rust"];
        run(&folder, &[&line[..], more].concat())
    };
    for format in ["text", "openai", "anthropic", "markdown"] {
        let of_folder = ["get", "review", "-l", "prompts", "-a", "code=x", "-a", "language=rust", "--format", format];
        let of_folder = run(&folder, &of_folder);
        // Links are resolved only by the library itself; a client has to read the resource.
        if !matches!(format, "openai" | "anthropic") {
            assert_eq!(get(&["--format", format]), of_folder);
        }
    }
    let shown = [get(&["--format", "markdown"]), get(&["--json"]), get(&["--out", "files"])].join("\n");
    let without_times: Vec<&str> = shown.lines().filter(|line| !line.contains("\"lastModified\"")).collect();
    assert_snapshot!(without_times.join("\n"));
    let files: Vec<_> = fs::read_dir(folder.path().join("files")).expect("it was made").collect();
    assert_eq!(files.len(), 1);
}

#[test]
fn resources_are_listed_and_read() {
    let folder = sample_folder();
    let read = ["resources", "prompts", "--read", "library:///style.txt"];
    assert_eq!(run(&folder, &read), "exit code: 0\n----- stdout -----\nBe `brief`.\n----- stderr -----\n");
    let missing = ask(&folder, &["resources", "--read", "library:///nothing.txt"]);
    assert!(missing.starts_with("exit code: 7\n"), "{missing}");
}

#[test]
fn server_name_is_resolved_in_client_configuration() {
    let folder = sample_folder();
    let server = json!({ "command": env!("CARGO_BIN_EXE_promptshelf"), "args": ["serve", "${LIBRARY}", "--stdio"] });
    let file = folder.path().join(".claude.json");
    fs::write(file, json!({ "mcpServers": { "mine": server } }).to_string()).expect("a written file");
    let line = |name: &str| {
        let mut command = promptshelf();
        command.args(["list", "--server", name]).current_dir(folder.path());
        command.env("LIBRARY", "prompts").env("HOME", folder.path());
        shown(command, "")
    };
    assert!(line("mine").starts_with("exit code: 0\n----- stdout -----\nreview\t"));
    let other = line("yours");
    assert!(other.starts_with("exit code: 2\n") && other.contains("the configured servers are mine"), "{other}");
}

#[test]
fn failures_have_distinct_exit_codes() {
    let folder = sample_folder();
    let refused = FakeServer::start(|method, _| match method {
        "prompts/get" => Some(json!({ "rpc-error": { "code": -32603, "message": "broken" } })),
        _ => None,
    });
    let code = |line: &[&str]| run(&folder, line).lines().next().map(str::to_owned).unwrap_or_default();
    assert_eq!(code(&["list", "--url", "http://127.0.0.1:1/mcp"]), "exit code: 9");
    assert_eq!(code(&["list", "--", "false"]), "exit code: 9");
    assert_eq!(code(&["list", "--", "no-such-program-anywhere"]), "exit code: 9");
    assert_eq!(code(&["list", "--timeout", "0.2", "--", "sleep", "20"]), "exit code: 10");
    assert_eq!(code(&["get", "x", "--url", &refused.url]), "exit code: 1");
    assert_eq!(code(&["list", "prompts", "--url", &refused.url]), "exit code: 2");
    assert!(ask(&folder, &["get", "revie"]).starts_with("exit code: 7\n"));
    assert!(ask(&folder, &["get", "review"]).starts_with("exit code: 8\n"));
}

// req: Q18
#[test]
fn environment_token_is_never_sent_in_clear() {
    let folder = sample_folder();
    let line = |url: &str| {
        let mut command = promptshelf();
        command.args(["list", "--url", url]).current_dir(folder.path()).env("PROMPTSHELF_TOKEN", "t");
        shown(command, "")
    };
    let server = FakeServer::start(|method, params| {
        let named = json!({ "name": params["(headers)"]["authorization"].as_str().unwrap_or("nobody") });
        (method == "prompts/list").then(|| json!({ "prompts": [named] }))
    });
    let known = line(&server.url);
    assert!(known.contains("\nBearer t\t"), "{known}");
    let clear = line("http://example.com/mcp");
    assert!(clear.starts_with("exit code: 2\n") && clear.contains("not https"), "{clear}");
}

#[test]
fn client_example_prints_a_prompt() {
    let folder = sample_folder();
    let mut command = example("client");
    command.arg("prompts").current_dir(folder.path());
    assert_snapshot!(shown(command, ""));
}

// req: G7, Q6
#[tokio::test]
async fn list_is_cached_until_the_server_notifies() {
    let folder = sample_folder();
    let path = folder.path().join("prompts");
    let client = connect(&path).await;
    let names = async || -> Vec<String> {
        let prompts: Vec<_> = client.prompts().try_collect().await.expect("a list");
        prompts.into_iter().map(|prompt| prompt.name).collect()
    };
    let mut changes = client.changes();
    assert_eq!(names().await, ["review"]);
    fs::write(path.join("other.md"), "---\ndescription: Other\n---\nHi\n").expect("a written file");
    assert!(changes.next().await);
    assert_eq!(names().await, ["other", "review"]);
}

#[tokio::test]
async fn completion_uses_context_and_errors_are_distinguished() {
    let folder = sample_folder();
    let client = connect(&folder.path().join("prompts")).await;
    let completion =
        client.complete(CompletionTarget::Prompt("review"), "language", "py", &[].into()).await.expect("a completion");
    assert_eq!(completion.values, ["python"]);
    let missing = client.get("review", &[].into()).await;
    assert!(missing.is_err_and(|error| error.is_invalid_params()));
    let nowhere = Client::connect(&Endpoint::url("http://127.0.0.1:1/mcp")).await;
    assert!(matches!(nowhere, Err(ClientError::Unreachable { .. })));
    let client = Arc::new(client);
    assert_eq!(client.revision().as_deref(), Some("2026-07-28"));
}

#[tokio::test]
async fn requests_in_succession_use_one_connection() {
    let server = Server::of(&library(&[("hello.md", "Say hello.\n")]), &[]);
    let authority: std::net::SocketAddr = server.authority().parse().expect("an address");
    let proxy = TcpProxy::start(authority.port()).await;
    let client = Client::connect(&Endpoint::url(format!("http://{}/mcp", proxy.address))).await.expect("a server");
    for _ in 0..20 {
        client.get("hello", &[].into()).await.expect("a prompt");
    }
    assert!(proxy.connections() <= 2, "{} connections", proxy.connections());
}

//! Elicitation during `promptshelf get` and in the chat, also by legacy servers, which send it within a request.

use std::{
    fs,
    process::Command,
    sync::{Arc, Mutex},
};

use promptshelf::client::{
    ConnectOptions, Elicitation, ElicitationHandler, ElicitationMode, ElicitationResponse, Endpoint,
};
use serde_json::json;

use crate::{
    chat::GUIDED,
    fake_server::FakeServer,
    program::{Folder, Server, library, promptshelf, shown},
    terminal::{CTRL_C, CTRL_D, SHIFT_TAB, Terminal},
};

/// A shell script of a legacy server: it serves the revision in `$1`, exits at a request of the other era, elicits a
/// colour within a request, and appends its requests to the file `$2`.
pub(crate) const LEGACY_SERVER: &str = r#"
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  printf '%s\n' "$line" | sed 's/.*"method":"\([a-z/]*\)".*/\1/' >> "$2"
  case "$line" in
    *'"server/discover"'*) exit 1 ;;
    *'"initialize"'*)
      result='{"protocolVersion":"'$1'","capabilities":{"prompts":{}},"serverInfo":{"name":"older","version":"1"}}' ;;
    *'"prompts/list"'*) result='{"prompts":[{"name":"paint"}]}' ;;
    *'"prompts/get"'*)
      form='{"type":"object","properties":{"colour":{"type":"string"}},"required":["colour"]}'
      echo '{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"Which?","requestedSchema":'$form'}}'
      read -r answer
      answer=$(printf '%s' "$answer" | sed 's/.*"result"://; s/["{}]//g')
      result='{"messages":[{"role":"user","content":{"type":"text","text":"['$answer']"}}]}' ;;
    *) continue ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
"#;

fn legacy_server_folder() -> Folder {
    let folder = library(&[]);
    fs::write(folder.path().join("older.sh"), LEGACY_SERVER).expect("a written file");
    folder
}

fn line(folder: &Folder, words: &[&str]) -> Command {
    let mut command = promptshelf();
    command.args(words).current_dir(folder.path());
    command.env("HOME", folder.path()).env("XDG_STATE_HOME", folder.path().join("state"));
    command
}

#[test]
fn legacy_server_elicits_within_a_request() {
    for revision in ["2025-06-18", "2025-11-25"] {
        let folder = legacy_server_folder();
        let get = ["get", "paint", "--", "sh", "older.sh", revision, "log"];
        for (keys, answer) in [
            ("green\r", "[action:accept,content:colour:green]"),
            (CTRL_D, "[action:decline]"),
            (CTRL_C, "[action:cancel]"),
        ] {
            let mut terminal = Terminal::start(line(&folder, &get));
            terminal.wait_for(&format!("sh older.sh {revision} log asks:"));
            terminal.wait_for("colour: ");
            terminal.press(keys);
            terminal.wait_for(answer);
            assert_eq!(terminal.end().0, Some(0));
        }
        // Without a terminal, elicitation is declined.
        let shown = shown(line(&folder, &get), "");
        assert!(shown.contains("[action:decline]"), "{shown}");
    }
}

#[test]
fn chat_shows_legacy_elicitation() {
    let folder = legacy_server_folder();
    let mut chat = Terminal::start(line(&folder, &["use", "--", "sh", "older.sh", "2025-06-18", "log"]));
    chat.wait_for("1 prompt (MCP 2025-06-18)");
    chat.line("/paint");
    chat.wait_for("colour: ");
    chat.press("green\r");
    chat.wait_for("[action:accept,content:colour:green]");
    chat.line("quit");
    assert_eq!(chat.end().0, Some(0));
}

#[test]
fn known_legacy_server_is_not_probed_again() {
    let folder = legacy_server_folder();
    let list = ["list", "--", "sh", "older.sh", "2025-06-18", "log"];
    let requests = || {
        assert!(shown(line(&folder, &list), "").starts_with("exit code: 0\n"));
        let requests = fs::read_to_string(folder.path().join("log")).expect("a recorded request");
        fs::remove_file(folder.path().join("log")).expect("it was there");
        requests
    };
    assert_eq!(requests(), "server/discover\ninitialize\nnotifications/initialized\nprompts/list\n");
    assert_eq!(requests(), "initialize\nnotifications/initialized\nprompts/list\n");
}

#[tokio::test]
async fn upgraded_server_is_detected() {
    let server = FakeServer::of(json!([{ "name": "new" }]), json!([]));
    let client = ConnectOptions::new().legacy(true).connect(&Endpoint::url(&server.url)).await.expect("a connection");
    assert!(!client.is_legacy());
    assert_eq!(client.all_prompts().await.expect("a list").len(), 1);
}

/// Accepts each elicitation with known values, and records the requested fields.
#[derive(Default)]
struct KnownAnswers(Mutex<Vec<String>>);

impl ElicitationHandler for KnownAnswers {
    fn elicit(
        &self,
        question: Elicitation,
    ) -> std::pin::Pin<Box<dyn Future<Output = ElicitationResponse> + Send + '_>> {
        let known = [("topic".to_owned(), json!("bees")), ("tone".to_owned(), json!("kind"))];
        let ElicitationMode::Form(fields) = &question.mode else { panic!("it is a form: {question:?}") };
        let names: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
        self.0.lock().expect("no panic").push(names.join(" "));
        let values = known.into_iter().filter(|(name, _)| names.contains(&name.as_str())).collect();
        Box::pin(std::future::ready(ElicitationResponse::Accept(values)))
    }
}

#[tokio::test]
async fn legacy_client_walks_guided_steps() {
    let folder = library(&[("guided.md", GUIDED)]);
    let prompts = folder.path().join("prompts").display().to_string();
    let server = Endpoint::command([env!("CARGO_BIN_EXE_promptshelf"), "serve", &prompts, "--stdio"]);
    let answers = Arc::new(KnownAnswers::default());
    let handler = Arc::clone(&answers) as Arc<dyn ElicitationHandler>;
    let client =
        ConnectOptions::new().legacy(true).elicitation_handler(handler).connect(&server).await.expect("a connection");
    assert_eq!((client.revision().as_deref(), client.is_legacy()), (Some("2025-11-25"), true));
    let got = client.get("guided", &[].into()).await.expect("all is answered");
    assert!(format!("{:?}", got.messages).contains("Write about bees in a kind tone."), "{got:?}");
    assert_eq!(*answers.0.lock().expect("no panic"), ["topic", "tone"]);
}

#[test]
fn guided_prompt_of_a_folder_works_at_a_terminal() {
    let folder = library(&[("guided.md", GUIDED)]);
    let mut terminal = Terminal::start(line(&folder, &["get", "guided", "-l", "prompts"]));
    terminal.wait_for("topic: ");
    terminal.press("bees\r");
    terminal.wait_for("tone: ");
    terminal.press(SHIFT_TAB);
    terminal.wait_for("topic: bees");
    terminal.press("\r");
    terminal.wait_for("tone: ");
    terminal.press("kind\r");
    terminal.wait_for("Write about bees in a kind tone.");
    assert_eq!(terminal.end().0, Some(0));
    let mut terminal = Terminal::start(line(&folder, &["get", "guided", "-l", "prompts"]));
    terminal.wait_for("topic: ");
    terminal.press(CTRL_C);
    assert_eq!(terminal.end().0, Some(11));
    let piped = shown(line(&folder, &["get", "guided", "-l", "prompts"]), "");
    assert!(piped.starts_with("exit code: 8\n"), "{piped}");
}

/// A guided prompt with a plain argument.
const BOOKING: &str = "\
---
description: Books seats
arguments:
  - name: place
    description: Where
    required: true
  - name: seats
    description: How many seats
    type: integer
    minimum: 1
    maximum: 9
    ask: true
    required: true
---
{{ seats }} seats in {{ place }}.
";

// req: I26
#[test]
fn script_learns_the_arguments_of_a_guided_prompt() {
    let folder = library(&[("book.md", BOOKING)]);
    let server = Server::of(&folder, &[]);
    let program = env!("CARGO_BIN_EXE_promptshelf");
    for target in
        [vec!["-l", "prompts"], vec!["--url", &*server.url], vec!["--", program, "serve", "prompts", "--stdio"]]
    {
        let get = |values: &[&str]| shown(line(&folder, &[&["get", "book"], values, &target[..]].concat()), "");
        let seats = "`seats` is required (How many seats); it must be a whole number from 1 to 9";
        let refused = get(&[]);
        assert!(refused.starts_with("exit code: 8\n"), "{refused}");
        assert!(refused.contains("`place` is required (Where)") && refused.contains(seats), "{refused}");
        // The suggested command line has them both.
        let help = refused.lines().find(|line| line.contains("help:")).expect("help");
        assert!(help.contains("place=") && help.contains("seats="), "{refused}");
        let refused = get(&["-a", "place=Oslo"]);
        assert!(refused.starts_with("exit code: 8\n") && refused.contains(seats), "{refused}");
        // The suggested command line has them both.
        let help = refused.lines().find(|line| line.contains("help:")).expect("help");
        assert!(help.contains("place=") && help.contains("seats="), "{refused}");
        let done = get(&["-a", "place=Oslo", "-a", "seats=2"]);
        assert!(done.contains("2 seats in Oslo."), "{done}");
    }
}

#[test]
fn declined_form_names_the_arguments_to_send_instead() {
    let folder = library(&[("book.md", BOOKING)]);
    for (key, word) in [(CTRL_C, "cancelled"), (CTRL_D, "declined")] {
        let mut terminal = Terminal::start(line(&folder, &["get", "book", "-a", "place=Oslo", "-l", "prompts"]));
        terminal.wait_for("seats");
        terminal.wait_for(": ");
        terminal.press(key);
        let (code, written) = terminal.end();
        let written = String::from_utf8_lossy(&written);
        assert_eq!(code, Some(11), "{written}");
        assert!(word == "cancelled" || written.contains("these arguments can be sent instead"), "{written}");
    }
    // A known problem comes before the form.
    let terminal = Terminal::start(line(&folder, &["get", "book", "-l", "prompts"]));
    let (code, written) = terminal.end();
    let written = String::from_utf8_lossy(&written);
    assert_eq!(code, Some(8), "{written}");
    assert!(written.contains("`place` is required (Where)") && !written.contains("`seats`"), "{written}");
}

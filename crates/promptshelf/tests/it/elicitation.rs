//! Questions in the middle of `promptshelf get`, and servers of the older era,
//! which put them in another way.

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
    program::{Folder, library, promptshelf, shown},
    terminal::{CTRL_C, CTRL_D, SHIFT_TAB, Terminal},
};

/// A server of the revision in `$1` that ends at a request of another era, elicits a colour in the middle of a
/// request, and records its requests in `$2`.
const OLDER: &str = r#"
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

fn older() -> Folder {
    let folder = library(&[]);
    fs::write(folder.path().join("older.sh"), OLDER).expect("it can be written");
    folder
}

fn line(folder: &Folder, words: &[&str]) -> Command {
    let mut command = promptshelf();
    command.args(words).current_dir(folder.path());
    command.env("HOME", folder.path()).env("XDG_STATE_HOME", folder.path().join("state"));
    command
}

#[test]
fn a_server_of_an_older_revision_asks_in_the_middle_of_a_request() {
    for revision in ["2025-06-18", "2025-11-25"] {
        let folder = older();
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
        // Without a terminal there is no person to ask.
        let shown = shown(line(&folder, &get), "");
        assert!(shown.contains("[action:decline]"), "{shown}");
    }
}

#[test]
fn the_chat_puts_the_questions_of_an_older_server() {
    let folder = older();
    let mut chat = Terminal::start(line(&folder, &["chat", "--", "sh", "older.sh", "2025-06-18", "log"]));
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
    let folder = older();
    let list = ["list", "--", "sh", "older.sh", "2025-06-18", "log"];
    let asked = || {
        assert!(shown(line(&folder, &list), "").starts_with("exit code: 0\n"));
        let asked = fs::read_to_string(folder.path().join("log")).expect("it was asked");
        fs::remove_file(folder.path().join("log")).expect("it was there");
        asked
    };
    assert_eq!(asked(), "server/discover\ninitialize\nnotifications/initialized\nprompts/list\n");
    assert_eq!(asked(), "initialize\nnotifications/initialized\nprompts/list\n");
}

#[tokio::test]
async fn a_server_that_has_become_newer_is_found_out() {
    let stranger = FakeServer::of(json!([{ "name": "new" }]), json!([]));
    let client = ConnectOptions::new().legacy(true).connect(&Endpoint::url(&stranger.url)).await.expect("it is there");
    assert!(!client.is_legacy());
    assert_eq!(client.all_prompts().await.expect("it lists").len(), 1);
}

/// Answers with known values, and records the questions.
#[derive(Default)]
struct Willing(Mutex<Vec<String>>);

impl ElicitationHandler for Willing {
    fn elicit(
        &self,
        question: Elicitation,
    ) -> std::pin::Pin<Box<dyn Future<Output = ElicitationResponse> + Send + '_>> {
        let known = [("topic".to_owned(), json!("bees")), ("tone".to_owned(), json!("kind"))];
        let ElicitationMode::Form(fields) = &question.mode else { panic!("it is a form: {question:?}") };
        let names: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
        self.0.lock().expect("nobody panics with it").push(names.join(" "));
        let values = known.into_iter().filter(|(name, _)| names.contains(&name.as_str())).collect();
        Box::pin(std::future::ready(ElicitationResponse::Accept(values)))
    }
}

#[tokio::test]
async fn our_own_server_asks_an_older_client_step_by_step() {
    let folder = library(&[("guided.md", GUIDED)]);
    let prompts = folder.path().join("prompts").display().to_string();
    let server = Endpoint::command([env!("CARGO_BIN_EXE_promptshelf"), "serve", &prompts, "--stdio"]);
    let willing = Arc::new(Willing::default());
    let answerer = Arc::clone(&willing) as Arc<dyn ElicitationHandler>;
    let client =
        ConnectOptions::new().legacy(true).elicitation_handler(answerer).connect(&server).await.expect("it is there");
    assert_eq!((client.revision().as_deref(), client.is_legacy()), (Some("2025-11-25"), true));
    let got = client.get("guided", &[].into()).await.expect("all is answered");
    assert!(format!("{:?}", got.messages).contains("Write about bees in a kind tone."), "{got:?}");
    assert_eq!(*willing.0.lock().expect("nobody panics with it"), ["topic", "tone"]);
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

//! Sessions of `promptshelf chat` at a pseudoterminal.

use std::{fs, process::Command};

use serde_json::json;

use crate::{
    fake_server::FakeServer,
    program::{Folder, Server, library, promptshelf},
    terminal::{CTRL_C, CTRL_D, SHIFT_TAB, TAB, Terminal, UP},
};

const ECHO: &str = "\
---
description: Says it again
arguments:
  - name: text
    description: What to say
    required: true
  - name: language
    description: Its language
    enum: [rust, ruby, python]
---
[{{ text }}|{{ language }}]
";

const HELLO: &str = "\
---
description: Greets
arguments:
  - name: who
    description: Whom to greet
    required: true
---
Hello, {{ who }}!
";

/// A prompt with two steps of one question each.
pub(crate) const GUIDED: &str = "\
---
description: Asks step by step
arguments:
  - name: topic
    description: About what
    ask: true
    required: true
  - name: tone
    description: How it sounds
    enum: [kind, formal]
    ask: true
    step: 2
    required: true
---
Write about {{ topic }} in a {{ tone }} tone.
";

fn command(folder: &Folder, line: &[&str]) -> Command {
    let mut command = promptshelf();
    command.arg("use").args(line).current_dir(folder.path()).env("XDG_STATE_HOME", folder.path().join("state"));
    command.env("HOME", folder.path());
    command
}

fn chat(folder: &Folder, line: &[&str]) -> Terminal {
    Terminal::start(command(folder, line))
}

fn quit(mut terminal: Terminal) -> String {
    terminal.line("quit");
    let (code, written) = terminal.end();
    assert_eq!(code, Some(0));
    String::from_utf8_lossy(&written).into_owned()
}

// req: Q20
#[test]
fn typed_values_arrive_unchanged() {
    let folder = library(&[("echo.md", ECHO)]);
    let mut chat = chat(&folder, &["prompts"]);
    chat.line("/echo text='two  words \"here\"\rand a second line' language=rust");
    chat.wait_for("[two  words \"here\"\r\nand a second line|rust]");
    chat.wait_for("1 message");
    quit(chat);
}

#[test]
fn tab_completes_prompts_and_values() {
    let folder = library(&[("echo.md", ECHO)]);
    let mut chat = chat(&folder, &["prompts"]);
    chat.wait_for("promptshelf> ");
    chat.press("/ec");
    chat.press(TAB);
    chat.wait_for("/echo");
    // The completion has inserted a space after the name.
    chat.press("x language=py");
    chat.press(TAB);
    chat.wait_for("language=python");
    chat.press("\r");
    chat.wait_for("[x|python]");
    quit(chat);
}

#[test]
fn first_tab_lists_the_prompts() {
    let folder = library(&[("echo.md", ECHO), ("other.md", "---\ndescription: Something else\n---\nHi.\n")]);
    let mut chat = chat(&folder, &["prompts"]);
    chat.wait_for("promptshelf> ");
    chat.press(TAB);
    chat.wait_for("/echo  Says it again");
    chat.wait_for("/other  Something else");
    chat.press(CTRL_C);
    quit(chat);
}

#[test]
fn unknown_argument_is_pointed_out() {
    let folder = library(&[("echo.md", ECHO), ("hello.md", HELLO)]);
    let mut chat = chat(&folder, &["prompts"]);
    chat.line("/hello wh=Ada");
    chat.wait_for("unknown argument `wh`; did you mean `who`?");
    chat.line("/hello 'wh=Ada'");
    chat.wait_for("Hello, wh=Ada!");
    chat.line("/echo colour=red language=rust");
    chat.wait_for("`colour` is not an argument");
    chat.wait_for("expected text, language");
    chat.wait_for("[colour=red|rust]");
    quit(chat);
}

#[test]
fn guided_prompt_requests_each_value_once() {
    let folder = library(&[("guided.md", GUIDED), ("echo.md", ECHO)]);
    let mut chat = chat(&folder, &["prompts"]);
    chat.line("/guided");
    // The forms of the prompt come at once: nothing is requested before them.
    chat.wait_for("prompts asks:");
    chat.wait_for("topic: ");
    chat.press("bees\r");
    chat.wait_for("tone: ");
    chat.press("formal\r");
    chat.wait_for("Write about bees in a formal tone.");
    let written = quit(chat);
    assert!(!written.contains("[topic]: ") && !written.contains("[tone]: "), "{written}");
}

#[test]
fn hints_show_missing_arguments_and_completions() {
    let folder = library(&[("echo.md", ECHO)]);
    let mut chat = chat(&folder, &["prompts"]);
    chat.wait_for("promptshelf> ");
    chat.press("/echo ");
    chat.wait_for("<text> [language]");
    chat.press("x language=ru");
    chat.wait_for("language=ru");
    chat.wait_for("st");
    chat.press(CTRL_C);
    quit(chat);
}

// req: Q11
#[test]
fn form_requests_missing_arguments_and_goes_back() {
    let folder = library(&[("echo.md", ECHO)]);
    let mut chat = chat(&folder, &["prompts"]);
    chat.line("/echo");
    chat.wait_for("<text>: ");
    chat.press("\r");
    chat.wait_for("expected a value");
    chat.wait_for("<text>: ");
    chat.press("first\r");
    chat.wait_for("[language]: ");
    chat.press(SHIFT_TAB);
    chat.wait_for("<text>: first");
    chat.press(" and more\r");
    chat.wait_for("[language]: ");
    chat.press("rust\r");
    chat.wait_for("[first and more|rust]");
    chat.line("/echo");
    chat.wait_for("<text>: ");
    // The earlier input for this argument comes back.
    chat.press(UP);
    chat.wait_for("first and more");
    chat.press(CTRL_C);
    chat.wait_for("cancelled");
    quit(chat);
}

#[test]
fn rejected_values_stay_in_the_form() {
    let folder = library(&[("echo.md", ECHO)]);
    let mut chat = chat(&folder, &["prompts"]);
    chat.line("/echo");
    chat.wait_for("Enter skips");
    chat.wait_for("<text>: ");
    chat.press("two words\r");
    chat.wait_for("[language]: ");
    chat.press("cobol\r");
    chat.wait_for("must be one of");
    chat.wait_for("promptshelf> ");
    chat.press(UP);
    chat.wait_for("/echo language=cobol text='two words'");
    chat.press(CTRL_C);
    quit(chat);
}

// req: I20, Q4
#[test]
fn guided_steps_go_back_and_can_be_cancelled() {
    let folder = library(&[("guided.md", GUIDED)]);
    let mut chat = chat(&folder, &["prompts"]);
    chat.line("/guided topic=");
    chat.wait_for("prompts asks:");
    chat.wait_for("topic: ");
    chat.press("bees\r");
    chat.wait_for("prompts asks:");
    chat.wait_for("2) formal");
    chat.wait_for("tone: ");
    chat.press(SHIFT_TAB);
    chat.wait_for("topic: bees");
    chat.press(" and wasps\r");
    chat.wait_for("tone: ");
    chat.press("loud\r");
    chat.wait_for("invalid:");
    // Wait for the next line: before it is shown, keys have another meaning. It is empty, for a number or a choice.
    chat.wait_for("tone: ");
    chat.press("2\r");
    chat.wait_for("Write about bees and wasps in a formal tone.");
    chat.line("/guided topic=");
    chat.wait_for("topic: ");
    chat.press(CTRL_C);
    chat.wait_for("cancelled");
    quit(chat);
}

#[test]
fn long_values_are_edited_in_an_editor() {
    let folder = library(&[("echo.md", ECHO)]);
    let editor = folder.path().join("editor.sh");
    fs::write(&editor, "printf 'one\\ntwo \"three\"\\n' > \"$1\"\n").expect("a written file");
    let mut command = command(&folder, &["prompts"]);
    command.env("EDITOR", format!("sh {}", editor.display()));
    let mut chat = Terminal::start(command);
    chat.line("/echo language=rust");
    chat.wait_for("<text>: ");
    chat.press("\x18\x05");
    chat.wait_for("two \"three\"");
    chat.press("\r");
    chat.wait_for("[one\r\ntwo \"three\"|rust]");
    quit(chat);
}

#[test]
fn server_prefix_only_on_name_clash() {
    let folder = library(&[("echo.md", ECHO), ("hello.md", "Hi.\n")]);
    fs::create_dir(folder.path().join("others")).expect("a folder");
    fs::write(folder.path().join("others/hello.md"), "Ho.\n").expect("a written file");
    let mut chat = chat(&folder, &["prompts", "others"]);
    chat.line("/prompts:hello");
    chat.wait_for("Hi.");
    chat.line("/others:hello");
    chat.wait_for("Ho.");
    chat.line("/echo x");
    chat.wait_for("[x|]");
    chat.line("/hello");
    chat.wait_for("several servers have this prompt: /prompts:hello, /others:hello");
    chat.wait_for("promptshelf> ");
    chat.press("/hel");
    chat.press(TAB);
    chat.press(TAB);
    chat.wait_for("/prompts:hello");
    chat.wait_for("/others:hello");
    chat.press(CTRL_C);
    quit(chat);
}

// req: Q20
#[test]
fn messages_are_shown_copied_saved_and_piped() {
    let talk = "Read this:\n\n{{ attach(\"note.txt\") }}\n\n{{ role(\"assistant\") }}\nI have.\n";
    let folder = library(&[("talk.md", talk), ("note.txt", "Remember the milk.\n")]);
    let mut chat = chat(&folder, &["prompts"]);
    chat.line("copy");
    chat.wait_for("no messages yet");
    chat.line("/talk");
    chat.wait_for("1 user");
    chat.wait_for("[resource library:///note.txt text/plain, 19 bytes]");
    chat.wait_for("3 assistant");
    chat.line("copy 3");
    chat.wait_for("\x1b]52;c;W2Fzc2lzdGFudF0KSSBoYXZlLgo=\x07");
    chat.line("save talk.md");
    chat.wait_for("written to talk.md");
    chat.line("save talk.md");
    chat.wait_for("exists already");
    chat.line("| tr a-z A-Z");
    chat.wait_for("REMEMBER THE MILK.");
    chat.line("show 2");
    chat.wait_for("Remember the milk.");
    quit(chat);
    let saved = fs::read_to_string(folder.path().join("talk.md")).expect("a written file");
    assert!(saved.starts_with("## User\n\nRead this:\n") && saved.ends_with("## Assistant\n\nI have.\n"), "{saved}");
}

// req: Q11
#[test]
fn links_are_read_on_request_only() {
    let linking = "See\n\n{{ link(\"note.txt\") }}\n";
    let folder = library(&[("linking.md", linking), ("note.txt", "Remember the milk.\n")]);
    let mut chat = chat(&folder, &["prompts"]);
    chat.line("/linking");
    let shown = chat.wait_for("`follow 2` reads it");
    assert!(!shown.contains("the milk"), "{shown}");
    chat.line("follow 2");
    chat.wait_for("Remember the milk.");
    chat.line("resources");
    chat.wait_for("promptshelf> ");
    chat.press("read library:///note.txt\r");
    chat.wait_for("Remember the milk.");
    quit(chat);
}

#[test]
fn images_need_terminal_support() {
    let png = b"\x89PNG\r\n\x1a\n0123";
    let folder = library(&[("picture.md", "Look\n\n{{ attach(\"dot.png\") }}\n")]);
    fs::write(folder.path().join("prompts/dot.png"), png).expect("a written file");
    let mut plain = chat(&folder, &["prompts"]);
    plain.line("/picture");
    plain.wait_for("[image image/png, 12 bytes; `save FOLDER/`");
    plain.line("save pictures/");
    plain.wait_for("written to pictures/");
    assert!(!quit(plain).contains("\x1b]1337"));
    let mut command = command(&folder, &["prompts"]);
    command.env("TERM_PROGRAM", "WezTerm");
    let mut able = Terminal::start(command);
    able.line("/picture");
    able.wait_for("\x1b]1337;File=inline=1;size=12;preserveAspectRatio=1:iVBORw0KGgowMTIz\x07");
    quit(able);
}

#[test]
fn changes_are_announced_and_compared() {
    let folder = library(&[("hello.md", "---\ndescription: Greets\n---\nHello.\n")]);
    let mut chat = chat(&folder, &["prompts"]);
    chat.line("/hello");
    chat.wait_for("1 message");
    chat.wait_for("promptshelf> ");
    fs::write(folder.path().join("prompts/new.md"), "---\ndescription: New\n---\nNew.\n").expect("a written file");
    chat.wait_for("prompts: new: new");
    fs::write(folder.path().join("prompts/hello.md"), "---\ndescription: Greets\n---\nGoodbye.\n")
        .expect("a written file");
    chat.press("/new\r");
    chat.wait_for("New.");
    let until_changed = |chat: &mut Terminal| {
        chat.line("/hello");
        chat.wait_for("1 message")
    };
    let mut shown = until_changed(&mut chat);
    while !shown.contains("Goodbye.") {
        shown = until_changed(&mut chat);
    }
    assert!(shown.contains("has changed since you used it") && shown.contains("-Hello."), "{shown}");
    quit(chat);
}

#[test]
fn unreachable_server_does_not_block_others() {
    let folder = library(&[("hello.md", "Hello.\n")]);
    let server = Server::of(&folder, &[]);
    let mut chat = chat(&folder, &[&server.url, "http://127.0.0.1:1/mcp"]);
    chat.wait_for("cannot reach the server");
    chat.line("/hello");
    chat.wait_for("Hello.");
    chat.line("servers");
    chat.wait_for("(MCP 2026-07-28)");
    quit(chat);
}

// req: Q11
#[test]
fn secret_elicitation_warns_and_can_be_declined() {
    let folder = library(&[]);
    let form = json!({ "type": "object", "properties": { "api_key": { "type": "string" } }, "required": ["api_key"] });
    let ask = json!({ "method": "elicitation/create", "params": { "mode": "form", "message": "Sign in", "requestedSchema": form } });
    let server = FakeServer::start(move |method, params| match method {
        "prompts/list" => Some(json!({ "prompts": [{ "name": "trap" }] })),
        "prompts/get" if params.get("inputResponses").is_none() => {
            Some(json!({ "resultType": "input_required", "inputRequests": { "q": ask }, "requestState": "s" }))
        }
        "prompts/get" => {
            let answer = params["inputResponses"]["q"].to_string();
            Some(json!({ "messages": [{ "role": "user", "content": { "type": "text", "text": answer } }] }))
        }
        _ => None,
    });
    let mut chat = chat(&folder, &[&server.url]);
    chat.line("/trap");
    chat.wait_for("this seems to request an API key");
    chat.wait_for("api_key: ");
    chat.press(CTRL_D);
    chat.wait_for("{\"action\":\"decline\"}");
    quit(chat);
}

#[test]
fn pasted_text_arrives_unchanged() {
    let folder = library(&[("echo.md", ECHO)]);
    let mut chat = chat(&folder, &["prompts"]);
    chat.line("/echo language=rust");
    chat.wait_for("<text>: ");
    chat.press("\x1b[200~first 'line'\rsecond \"line\"\x1b[201~");
    chat.wait_for("second \"line\"");
    chat.press("\r");
    chat.wait_for("[first 'line'\r\nsecond \"line\"|rust]");
    quit(chat);
}

#[test]
fn slow_request_shows_progress_and_can_be_cancelled() {
    let folder = library(&[]);
    let (answer, never) = std::sync::mpsc::channel::<()>();
    let never = std::sync::Mutex::new(never);
    let server = FakeServer::start(move |method, _| match method {
        "prompts/list" => Some(json!({ "prompts": [{ "name": "slow" }] })),
        "prompts/get" => {
            never.lock().ok()?.recv().ok();
            None
        }
        _ => None,
    });
    let mut chat = chat(&folder, &[&server.url]);
    chat.line("/slow");
    chat.wait_for("waiting for 127.0.0.1");
    chat.interrupt();
    chat.wait_for("cancelled");
    drop(answer);
    quit(chat);
}

#[test]
fn chat_requires_a_terminal() {
    let folder = library(&[("hello.md", "Hello.\n")]);
    let shown = crate::program::run(&folder, &["use", "prompts"]);
    assert!(shown.starts_with("exit code: 2\n") && shown.contains("`promptshelf use` needs a terminal"), "{shown}");
}

/// Values of sensitive arguments are typed in several ways, and none of them is written to disk.
// req: S-80
#[test]
fn sensitive_values_are_never_stored() {
    const SECRET: &str = "correct-horse";
    let login = "---\ndescription: Signs in\narguments:\n  - name: user\n    description: Who\n  - name: password\n    \
                 description: Secret\n    sensitive: true\n---\nAs {{ user }} with {{ password }}.\n";
    let folder = library(&[("login.md", login), ("echo.md", ECHO)]);
    let mut chat = chat(&folder, &["prompts"]);
    for line in [
        format!("/login user=ada password={SECRET}"),
        format!("/login ada {SECRET}"),
        format!("/login password={SECRET} and more"),
        format!("/login password='{SECRET}"),
        format!("/logn password={SECRET}"),
        "/echo text=kept".to_owned(),
    ] {
        chat.line(&line);
        if line.ends_with('\'') || line.contains("='") {
            chat.press(CTRL_C);
        }
    }
    chat.line("/login");
    chat.wait_for("[user]: ");
    chat.press("ada\r");
    chat.wait_for("[password]: ");
    chat.press(&format!("{SECRET}\r"));
    chat.wait_for(&format!("As ada with {SECRET}."));
    quit(chat);
    let mut stored = String::new();
    let mut folders = vec![folder.path().join("state")];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).expect("a folder").flatten() {
            match entry.path().is_dir() {
                true => folders.push(entry.path()),
                false => stored.push_str(&fs::read_to_string(entry.path()).unwrap_or_default()),
            }
        }
    }
    assert!(stored.contains("text=kept") && stored.contains("/login user=ada"), "{stored}");
    assert!(!stored.contains(SECRET), "{stored}");
}

//! Hostile servers: for any response, the terminal receives only the program's own control sequences, and no link,
//! icon or page of the server is fetched, opened or run.

use std::{
    io::{Read, Write},
    net::TcpListener,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
};

use serde_json::{Value, json};

use crate::{
    fake_server::FakeServer,
    program::{library, promptshelf, run},
    terminal::{CTRL_C, TAB, Terminal},
};

/// Runs a chat session with a hostile server: enters these lines, then ends the session.
fn session(server: &FakeServer, lines: &[&str]) -> String {
    let folder = library(&[]);
    let mut command = promptshelf();
    command.args(["use", "--timeout", "10", &server.url]).current_dir(folder.path());
    command.env("HOME", folder.path()).env("XDG_STATE_HOME", folder.path().join("state"));
    let mut terminal = Terminal::start(command);
    for line in lines {
        terminal.line(line);
    }
    terminal.line("quit");
    let (code, written) = terminal.end();
    assert_eq!(code, Some(0), "{}", String::from_utf8_lossy(&written));
    checked_output(&written)
}

/// Returns the written text, which must contain no control sequences other than those of the line editor: for the
/// cursor, for clearing, and for the mode of the keyboard.
fn checked_output(written: &[u8]) -> String {
    let text = String::from_utf8(written.to_vec()).expect("UTF-8");
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        if c == '\u{1b}' {
            assert_eq!(characters.next(), Some('['), "a control sequence that is no CSI: {text:?}");
            let parameters = |c: &char| c.is_ascii_digit() || matches!(c, ';' | '?');
            while characters.next_if(parameters).is_some() {}
            let last = characters.next();
            assert!(last.is_some_and(|c| "ABCDJKhlm".contains(c)), "a control sequence {last:?}: {text:?}");
        } else {
            let harmless = matches!(c, '\r' | '\n' | '\t') || !c.is_control();
            assert!(harmless, "the control character {c:?}: {text:?}");
            let hidden = matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
                | '\u{e0000}'..='\u{e007f}' | '\u{feff}' | '\u{2028}' | '\u{2029}');
            assert!(!hidden, "the invisible character {c:?}: {text:?}");
        }
    }
    text
}

/// Twenty texts that attack a terminal or mislead its user.
const ATTACKS: [&str; 20] = [
    "\u{1b}[2J\u{1b}[H",                                            // clears the screen
    "\u{1b}]0;sudo password:\u{7}",                                 // sets the title
    "\u{1b}]52;c;cm0gLXJmIH4=\u{7}",                                // fills the clipboard
    "\u{1b}]8;;https://evil.example\u{1b}\\bank\u{1b}]8;;\u{1b}\\", // hides a link's address
    "\u{1b}]1337;File=inline=1:AAAA\u{7}",                          // shows an image in iTerm2
    "\u{1b}_Ga=T,f=100;AAAA\u{1b}\\",                               // shows an image in kitty
    "\u{1b}P$q\"p\u{1b}\\",                                         // asks the terminal, which answers as if typed
    "\u{1b}[6n",                                                    // asks where the cursor is
    "\u{1b}[21t",                                                   // asks for the title
    "\u{1b}c",                                                      // resets the terminal
    "\u{9b}2J",                                                     // the same sequences in one byte
    "\u{9d}0;evil\u{9c}",
    "good\rEVIL",                                             // overwrites the line
    "evil\u{8}\u{8}\u{8}\u{8}good",                           // overwrites characters
    "\u{7}\u{7}\u{7}",                                        // rings
    "\u{202e}txt.exe",                                        // turns the reading direction
    "\u{2066}a\u{2069}\u{200f}b",                             // isolates and marks
    "\u{e0049}\u{e0067}\u{e006e}\u{e006f}\u{e0072}\u{e0065}", // text that only a model reads
    "in\u{200b}visi\u{2060}ble\u{feff}",                      // text that no search finds
    "a\u{2028}b\u{2029}c\u{0}d",                              // lines and ends that are none
];

/// A server that sends one text in every field of its responses.
fn server_sending(attack: &'static str) -> FakeServer {
    let text = |text: &str| json!({ "role": "user", "content": { "type": "text", "text": text } });
    let resource = json!({ "uri": format!("docs://{attack}"), "mimeType": attack, "text": attack });
    let messages = json!([
        text(attack),
        { "role": "assistant", "content": { "type": "image", "data": "AAAA", "mimeType": attack } },
        { "role": "user", "content": { "type": "image", "data": attack, "mimeType": attack } },
        { "role": "user", "content": { "type": "audio", "data": "AAAA", "mimeType": attack } },
        { "role": "user", "content": { "type": "resource", "resource": resource } },
        { "role": "user", "content": { "type": "resource_link", "uri": format!("docs://{attack}"), "name": attack, "title": attack } },
    ]);
    let form = json!({
        "type": "object",
        "properties": {
            "one": { "type": "string", "title": attack, "description": attack, "default": attack },
            attack: { "type": "string", "enum": [attack], "enumNames": [attack] },
        },
    });
    let argument = json!({ "name": format!("a{attack}"), "title": attack, "description": attack, "required": true });
    let list = json!([
        { "name": "plain", "title": attack, "description": attack },
        { "name": format!("n{attack}"), "description": attack, "arguments": [argument] },
        { "name": "typed", "arguments": [{ "name": "value" }, { "name": "other", "description": attack }] },
        { "name": "asks" },
        { "name": "fails" },
    ]);
    FakeServer::start(move |method, params| match (method, params["name"].as_str()) {
        ("prompts/list", _) => Some(json!({ "prompts": list })),
        ("prompts/get", Some("fails")) => Some(json!({ "rpc-error": { "code": -32602, "message": attack } })),
        ("prompts/get", Some("asks")) if params.get("inputResponses").is_none() => {
            let question = json!({ "mode": "form", "message": attack, "requestedSchema": form });
            let question = json!({ "method": "elicitation/create", "params": question });
            Some(json!({ "resultType": "input_required", "inputRequests": { "q": question } }))
        }
        ("prompts/get", _) => Some(json!({ "messages": messages })),
        ("completion/complete", _) => {
            Some(json!({ "completion": { "values": [attack, format!("x{attack}"), "xyz"] } }))
        }
        ("resources/list", _) => {
            Some(json!({ "resources": [{ "uri": format!("docs://{attack}"), "name": attack, "mimeType": attack }] }))
        }
        ("resources/templates/list", _) => Some(json!({ "resourceTemplates": [] })),
        ("resources/read", _) => Some(json!({ "contents": [{ "uri": attack, "mimeType": attack, "text": attack }] })),
        _ => None,
    })
}

// req: Q21, S-39
#[test]
fn twenty_attacks_leave_the_terminal_unharmed() {
    for attack in ATTACKS {
        let server = server_sending(attack);
        let folder = library(&[]);
        let mut command = promptshelf();
        command.args(["use", &server.url]).current_dir(folder.path());
        command.env("HOME", folder.path()).env("XDG_STATE_HOME", folder.path().join("state"));
        let mut terminal = Terminal::start(command);
        for line in
            ["prompts", "servers", "resources", "/plain", "show 1", "follow 6", "/fails", "read docs://x", "help"]
        {
            terminal.line(line);
        }
        terminal.wait_for("promptshelf> ");
        terminal.press("/typed x");
        terminal.press(TAB);
        terminal.press("yz\r");
        terminal.line("/asks");
        terminal.wait_for("one [optional]: ");
        terminal.press(CTRL_C);
        terminal.wait_for("cancelled");
        terminal.wait_for("promptshelf> ");
        terminal.press("/n");
        terminal.press(TAB);
        terminal.press(CTRL_C);
        terminal.line("quit");
        let (code, written) = terminal.end();
        assert_eq!(code, Some(0));
        checked_output(&written);
        let (list, resources, read) = (&["list"][..], &["resources"][..], &["resources", "--read", "docs://x"][..]);
        for (words, is_json) in [
            (list, false),
            (resources, false),
            (list, true),
            (resources, true),
            (read, true),
            (&["get", "plain"], true),
        ] {
            let mut command = promptshelf();
            command.args(words).args(["--url", &server.url]).current_dir(folder.path());
            command.args(is_json.then_some("--json"));
            let (code, written) = Terminal::start(command).end();
            let shown = checked_output(&written);
            assert!(code == Some(0) || words.contains(&"get"), "{words:?}: {shown}");
        }
    }
}

/// Errors are written to files and logs, which people read at a terminal.
// req: S-39
#[test]
fn errors_in_pipes_are_escaped() {
    for attack in ATTACKS {
        let server = server_sending(attack);
        let folder = library(&[]);
        for line in [&["get", "fails"][..], &["get", attack.trim_matches('\0')], &["resources", "--read", "docs://x"]] {
            if line.iter().any(|word| word.contains('\0')) {
                continue;
            }
            let shown = run(&folder, &[line, &["--url", &server.url]].concat());
            let (_, stderr) = shown.split_once("----- stderr -----\n").expect("both streams");
            assert!(!stderr.chars().any(|c| c != '\n' && c.is_control()), "{stderr:?}");
            checked_output(stderr.as_bytes());
        }
    }
}

/// A server whose list pages each name a next page.
fn listing(next: Value) -> FakeServer {
    let pages = AtomicUsize::new(0);
    FakeServer::start(move |method, _| {
        (method == "prompts/list").then(|| {
            let page = pages.fetch_add(1, Ordering::Relaxed);
            json!({ "prompts": [{ "name": format!("p{page}") }], "nextCursor": next })
        })
    })
}

// req: F1, F3, F5, Q6
#[test]
fn endless_lists_are_cut() {
    let folder = library(&[]);
    let list = |server: &FakeServer| run(&folder, &["list", "--url", &server.url]);
    let circle = list(&listing(json!("again")));
    assert!(circle.starts_with("exit code: 1\n") && circle.contains("is circular: page 2"), "{circle}");
    let huge = list(&listing(json!("x".repeat(100_000))));
    assert!(huge.contains("a cursor of 100000 bytes"), "{huge}");
}

// req: Q21
#[test]
fn names_and_counts_are_bounded() {
    let folder = library(&[]);
    let list = |prompts: Value| {
        let server = FakeServer::of(prompts, json!([]));
        run(&folder, &["list", "--url", &server.url])
    };
    assert!(list(json!([{ "name": "x".repeat(2000) }])).contains("2000 bytes; the limit is 1024"));
    let arguments: Vec<Value> = (0..300).map(|number| json!({ "name": format!("a{number}") })).collect();
    assert!(list(json!([{ "name": "many", "arguments": arguments }])).contains("has 300 arguments"));
    let long = list(json!([{ "name": "long", "description": "d".repeat(1 << 20) }]));
    assert!(long.len() < 20_000 && long.contains("dd…"));
}

#[test]
fn odd_entries_are_named_and_the_others_are_listed() {
    let folder = library(&[]);
    let odd = json!([
        { "name": "a" }, { "name": "odd\u{1b}[2J", "arguments": {} }, { "title": "nameless" }, { "name": "b", "description": 5 },
        { "name": "c" },
    ]);
    let server = FakeServer::of(odd, json!([{ "role": "user", "content": { "type": "text", "text": "hi" } }]));
    let listed = run(&folder, &["list", "--url", &server.url]);
    let (stdout, stderr) = listed.split_once("----- stderr -----\n").expect("both streams");
    assert!(stdout.starts_with("exit code: 0\n") && stdout.contains("\na\t\t\t\nc\t\t\t\n"), "{listed}");
    assert_eq!(stderr.matches("note: left out of the list: ").count(), 3, "{listed}");
    for named in ["`odd\\u{1b}[2J`", "a prompt without a name", "`b`"] {
        assert!(stderr.contains(named), "{named}: {listed}");
    }
    let many: Value = (0..100).map(|number| json!({ "name": format!("p{number}"), "title": 5 })).collect();
    let listed = run(&folder, &["list", "--url", &FakeServer::of(many, json!([])).url]);
    assert!(
        listed.contains("note: 90 more entries of the list are left out") && listed.lines().count() < 20,
        "{listed}"
    );
}

#[test]
fn sync_removes_no_file_of_a_prompt_that_became_odd() {
    let folder = library(&[]);
    let is_odd = Arc::new(AtomicBool::new(false));
    let server = FakeServer::start({
        let is_odd = Arc::clone(&is_odd);
        move |method, _| match method {
            "prompts/list" if is_odd.load(Ordering::Relaxed) => {
                Some(json!({ "prompts": [{ "name": "a" }, { "name": "b", "description": 5 }] }))
            }
            "prompts/list" => Some(json!({ "prompts": [{ "name": "a" }, { "name": "b" }] })),
            "prompts/get" => {
                Some(json!({ "messages": [{ "role": "user", "content": { "type": "text", "text": "hi" } }] }))
            }
            _ => None,
        }
    });
    let sync = || run(&folder, &["sync", &server.url, "--client", "claude-code", "--to", "out"]);
    let first = sync();
    assert!(first.starts_with("exit code: 0\n"), "{first}");
    let file = folder.path().join("out/.claude/commands/b.md");
    assert!(file.exists(), "{first}");
    is_odd.store(true, Ordering::Relaxed);
    let second = sync();
    assert!(second.starts_with("exit code: 1\n") && second.contains("no file is written or removed"), "{second}");
    assert!(file.exists());
}

#[test]
fn columns_in_a_pipe_have_no_control_characters() {
    let folder = library(&[]);
    let attack = "x\u{1b}]0;pwn\u{7}\u{9b}2J\u{8}y";
    let prompt = json!({ "name": "p", "title": attack, "description": attack, "arguments": [{ "name": attack }] });
    let server = FakeServer::start(move |method, _| match method {
        "prompts/list" => Some(json!({ "prompts": [prompt] })),
        "resources/list" => Some(json!({ "resources": [{ "uri": "a://b", "name": attack, "mimeType": attack }] })),
        "resources/templates/list" => Some(json!({ "resourceTemplates": [] })),
        "completion/complete" => Some(json!({ "completion": { "values": [attack] } })),
        _ => None,
    });
    for words in [&["list"][..], &["resources"], &["suggest", "p", "a"]] {
        let words: Vec<&str> = words.iter().copied().chain(["--url", &server.url]).collect();
        let shown = run(&folder, &words);
        assert!(shown.contains("x\\u{1b}]0;pwn\\u{7}\\u{9b}2J\\u{8}y"), "{shown}");
        assert!(!shown.contains(|c: char| c.is_control() && !matches!(c, '\n' | '\t')), "{shown:?}");
    }
    let json = run(&folder, &["list", "--json", "--url", &server.url]);
    let (_, json) = json.split_once("----- stdout -----\n").expect("stdout");
    let list: Value = serde_json::from_str(json.split("----- stderr").next().expect("stdout")).expect("JSON");
    assert_eq!(list["items"][0]["title"], attack);
}

// req: Q4, S-40
#[test]
fn endless_elicitation_is_stopped() {
    let server = FakeServer::start(|method, _| match method {
        "prompts/list" => Some(json!({ "prompts": [{ "name": "again" }] })),
        "prompts/get" => Some(json!({ "resultType": "input_required", "requestState": "s" })),
        _ => None,
    });
    let folder = library(&[]);
    let shown = run(&folder, &["get", "again", "--url", &server.url]);
    assert!(shown.contains("requires more input after 50 rounds"), "{shown}");
}

// req: Q10, Q13, S-37, S-39
#[test]
fn links_and_icons_are_never_fetched() {
    let fetched = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&fetched);
    let bait = FakeServer::start(move |_, _| {
        counted.fetch_add(1, Ordering::Relaxed);
        None
    });
    let icons = json!([{ "src": bait.url, "mimeType": "image/png" }]);
    let link = json!({ "type": "resource_link", "uri": bait.url, "name": "bait", "icons": icons });
    let page =
        json!({ "method": "elicitation/create", "params": { "mode": "url", "message": "Sign in", "url": bait.url } });
    let server = FakeServer::start(move |method, params| match method {
        "prompts/list" => Some(json!({ "prompts": [{ "name": "bait", "icons": icons }, { "name": "page" }] })),
        "prompts/get" if params["name"] == "page" && params.get("inputResponses").is_none() => {
            Some(json!({ "resultType": "input_required", "inputRequests": { "q": page } }))
        }
        "prompts/get" => Some(json!({ "messages": [{ "role": "user", "content": link }] })),
        _ => None,
    });
    let shown = session(&server, &["prompts", "/bait", "follow 1"]);
    assert!(shown.contains("method not found"), "the link is read from the server that sent it: {shown}");
    let folder = library(&[]);
    let mut command = promptshelf();
    command.args(["get", "page", "--url", &server.url]).current_dir(folder.path());
    let mut terminal = Terminal::start(command);
    terminal.wait_for(&format!("visit this page:\r\n\r\n  {}", bait.url));
    terminal.wait_for("Ctrl-D to decline: ");
    terminal.press("\r");
    terminal.wait_for("bait");
    assert_eq!(terminal.end().0, Some(0));
    assert_eq!(fetched.load(Ordering::Relaxed), 0);
}

#[test]
fn stderr_of_a_server_command_is_escaped() {
    let folder = library(&[]);
    let mut command = promptshelf();
    let script = "printf '\\033]0;evil\\007\\033[2Jbroken' >&2; exit 1";
    command.args(["list", "--", "sh", "-c", script]).current_dir(folder.path());
    let (code, written) = Terminal::start(command).end();
    assert_eq!(code, Some(9));
    let shown = checked_output(&written);
    assert!(shown.contains("\\u{1b}]0;evil\\u{7}\\u{1b}[2Jbroken"), "{shown}");
}

// req: S-40
#[test]
fn endless_response_is_cut() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}/mcp", listener.local_addr().expect("a bound listener"));
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || {
                let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n";
                let mut request = [0; 1 << 16];
                assert!(stream.read(&mut request).is_ok_and(|read| read > 0));
                stream.write_all(head.as_bytes()).ok();
                while stream.write_all(&[b' '; 1 << 16]).is_ok() {}
            });
        }
    });
    let folder = library(&[]);
    let shown = run(&folder, &["list", "--url", &url]);
    assert!(shown.starts_with("exit code: 1\n") && shown.contains("exceeds 16777216 bytes"), "{shown}");
}

//! The commands with `--url`: through the API of a server, with the same results as with the store.

mod rollouts;

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    process::Command,
    sync::mpsc,
    thread,
};

use promptshelf_testkit::{folder::Folder, nginx::Nginx};
use serde_json::{Value, json};

use super::{BYE, HELLO, Ran, Team, bytes};
use crate::program::{Server, promptshelf, shown};

const ALL: &[&str] = &["library:read", "library:propose", "library:review", "library:publish", "library:admin"];

/// A token that must not be shown.
const SECRET: &str = "psk_secret";

/// The people with tokens.
const PEOPLE: &[(&str, &[&str])] = &[
    ("ada", &["library:read", "library:propose"]),
    ("bob", &["library:read", "library:review", "library:publish"]),
    ("ci", &["library:read", "library:evaluate"]),
    ("eve", &["library:read", "library:publish"]),
    ("root", ALL),
];

/// A store that a server serves, and the tokens of its callers.
struct Served {
    team: Team,
    server: Server,
    tokens: Vec<(&'static str, String)>,
}

/// A command of one caller through the server.
struct Caller<'s> {
    served: &'s Served,
    token: &'s str,
}

impl Served {
    fn new(team: Team) -> Served {
        Served::with(team, "")
    }

    /// Serves the store with further settings.
    fn with(team: Team, settings: &str) -> Served {
        let mut lines = String::new();
        let mut tokens = Vec::new();
        for (name, scopes) in PEOPLE {
            let mut words = vec!["token", "new", *name, "--json"];
            words.extend(scopes.iter().flat_map(|scope| ["--scope", *scope]));
            let made: Value = serde_json::from_str(&team.ok(&words)).expect("JSON");
            lines.push_str(made["store"].as_str().expect("a line"));
            lines.push('\n');
            tokens.push((*name, made["token"].as_str().expect("a token").to_owned()));
        }
        fs::write(team.path("tokens"), lines).expect("written");
        let words = ["serve", &team.store, "--http", "127.0.0.1:0", "--metrics", "127.0.0.1:0", "--tokens", "tokens"];
        let mut command = team.command(&words);
        if !settings.is_empty() {
            team.write("ops", &[("server.toml", settings)]);
            command.env("PROMPTSHELF_CONFIG", team.path("ops/server.toml"));
        }
        let server = Server::start(command);
        Served { team, server, tokens }
    }

    fn url(&self) -> String {
        format!("http://{}", self.server.authority())
    }

    fn metrics(&self) -> String {
        let (_, url) = self.server.startup_log.split_once("metrics are served on ").expect("the address is logged");
        let url = url.split(['"', ' ', '\n']).next().expect("a URL");
        ureq::get(url).call().expect("an answer").body_mut().read_to_string().expect("text")
    }

    fn by(&self, name: &str) -> Caller<'_> {
        let (_, token) = self.tokens.iter().find(|(known, _)| *known == name).expect("a person");
        Caller { served: self, token }
    }
}

impl Caller<'_> {
    fn command(&self, words: &[&str]) -> Command {
        // Without the store in the environment: nothing but the server leads to it.
        let mut command = promptshelf();
        command.args(words).args(["--url", &self.served.url()]).current_dir(self.served.team.folder.path());
        command.env("PROMPTSHELF_TOKEN", self.token).env("USER", "mallory");
        command
    }

    fn run(&self, words: &[&str]) -> Ran {
        Ran::of(&shown(self.command(words), ""))
    }

    fn ok(&self, words: &[&str]) -> String {
        let ran = self.run(words);
        assert_eq!(ran.code, "0", "{words:?}\n{}{}", ran.stdout, ran.stderr);
        ran.stdout
    }

    fn json(&self, words: &[&str]) -> Value {
        let stdout = self.ok(&[words, &["--json"]].concat());
        serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{words:?}: {error}\n{stdout}"))
    }

    /// Runs an approval of the present changes of a proposal.
    fn approval(&self, words: &[&str]) -> Ran {
        let proposal = self.served.by("root").json(&["proposals", words[0]]);
        let digest = proposal["proposal"]["digest"].as_str().expect("a digest");
        self.run(&[&["approve"], words, &["--digest", digest, "--json"]].concat())
    }

    fn approve(&self, words: &[&str]) -> Value {
        let ran = self.approval(words);
        assert_eq!(ran.code, "0", "{words:?}\n{}{}", ran.stdout, ran.stderr);
        serde_json::from_str(&ran.stdout).expect("JSON")
    }

    fn approve_fails(&self, code: &str, words: &[&str]) -> String {
        let ran = self.approval(words);
        assert_eq!(ran.code, code, "{words:?}\n{}{}", ran.stdout, ran.stderr);
        ran.stderr
    }

    fn fails(&self, code: &str, words: &[&str]) -> String {
        let ran = self.run(words);
        assert_eq!(ran.code, code, "{words:?}\n{}{}", ran.stdout, ran.stderr);
        assert!(!ran.stderr.contains(self.token), "{}", ran.stderr);
        ran.stderr
    }
}

#[test]
fn team_works_through_a_server_as_on_the_store() {
    let team = Team::without_store();
    let copy = Folder::copy_of("examples/library");
    let library = copy.path();
    team.ok(&["init", "--from", library.to_str().expect("a path")]);
    let served = Served::new(team);
    let (ada, bob, root) = (served.by("ada"), served.by("bob"), served.by("root"));
    root.ok(&["policy", "--channel", "production", "--approvals", "1", "--four-eyes", "on"]);
    ada.ok(&["pull", "prompts"]);
    assert_eq!(bytes(&served.team.path("prompts")), bytes(library));
    served.team.folder.edit("prompts/explain-code.md", "step by step", "slowly, step by step");
    let checked = ada.json(&["publish", "prompts", "--dry-run"]);
    assert_eq!((&checked["state"], &checked["prompts"][0]["name"]), (&json!("open"), &json!("explain-code")));
    let open = ada.json(&["publish", "prompts", "-m", "Careful"]);
    assert_eq!(open, json!({ "channel": "production", "proposal": 2, "state": "open", "revision": null }));
    // A change voids approvals; only the author can make it.
    served.team.folder.edit("prompts/explain-code.md", "slowly, step by step", "very slowly, step by step");
    root.fails("14", &["publish", "prompts", "-m", "Not mine", "--proposal", "2"]);
    assert_eq!(ada.json(&["publish", "prompts", "-m", "More careful", "--proposal", "2"])["proposal"], 2);
    assert!(bob.ok(&["proposals"]).contains("More careful"));
    let shown = bob.ok(&["proposals", "2"]);
    assert!(shown.contains("very slowly, step by step") && shown.contains("approve http://127.0.0.1:"), "{shown}");
    // The suggested command names the reviewed changes.
    let approve = shown.lines().find_map(|line| line.strip_prefix("next: `promptshelf ")).expect("a suggestion");
    let words: Vec<&str> =
        approve.split('`').flat_map(|part| part.split(' ')).take_while(|word| !word.is_empty()).collect();
    let words: Vec<&str> = words.into_iter().filter(|word| !word.starts_with("http")).collect();
    assert_eq!(bob.json(&words)["revision"], 2);
    assert!(ada.ok(&["diff", "1", "2", "--rendered"]).contains("very slowly, step by step"));
    assert_eq!(ada.json(&["rollback", "--to", "1", "-m", "Slow"])["proposal"], 3);
    assert_eq!(bob.approve(&["3"])["revision"], 3);
    assert_eq!(root.json(&["promote", "--from", "production", "--to", "archive", "-m", "Copy"])["state"], "published");
    let history = ada.json(&["history"]);
    assert_eq!((&history["items"][1]["author"], &history["items"][1]["approvedBy"]), (&json!("ada"), &json!(["bob"])));
    served.team.folder.edit("prompts/translate.md", "---\n", "---\n# Mine\n");
    ada.ok(&["publish", "prompts", "-m", "To be rejected"]);
    assert_eq!(bob.json(&["reject", "5", "-m", "No"])["state"], "rejected");
    ada.ok(&["publish", "prompts", "-m", "To be withdrawn"]);
    assert_eq!(ada.json(&["reject", "6", "--withdraw"])["state"], "withdrawn");
    let emergency = root.json(&["publish", "prompts", "-m", "At once", "--emergency", "a leak"]);
    assert_eq!(emergency["revision"], 4);
    assert!(ada.ok(&["history", "--limit", "1"]).contains("EMERGENCY (a leak)"));
    // Another channel, and an old revision of it.
    let archive = format!("{}#archive@1", served.url());
    let ran = run_at(&served.team, &archive, ada.token, &["pull", "old"]);
    assert_eq!(ran.code, "0", "{}", ran.stderr);
    assert_eq!(bytes(&served.team.path("old")), bytes(&library));
    // The same words have the same results with the store.
    let at = history["items"][1]["at"].as_str().expect("a time");
    for words in [
        &["history"][..],
        &["history", "explain-code", "--at", at],
        &["proposals", "--all"],
        &["proposals", "2"],
        &["proposals", "--channel", "archive", "--all"],
        &["diff", "1", "archive"],
        &["diff", "production@1", "4", "--rendered"],
        &["policy"],
    ] {
        assert_eq!(ada.json(words), served.team.json(words), "{words:?}");
    }
    // The prompts are served meanwhile, and SQLite's files are those of the server.
    assert_eq!(served.team.revision("production"), 4);
}

#[test]
fn refusals_of_a_server_have_the_exit_codes_of_a_store() {
    let served = Served::new(Team::with(&[("hello.md", HELLO)]));
    let (ada, root) = (served.by("ada"), served.by("root"));
    root.ok(&["policy", "--channel", "production", "--approvals", "1", "--four-eyes", "on"]);
    for folder in ["one", "two"] {
        ada.ok(&["pull", folder]);
        served.team.write(folder, &[("hello.md", &format!("{HELLO}{folder}\n"))]);
    }
    // The policy.
    assert_eq!(root.json(&["publish", "one", "-m", "Own"])["proposal"], 2);
    assert!(root.approve_fails("13", &["2"]).contains("cannot approve their own"));
    // Conflicts.
    assert_eq!(root.approve(&["2", "--emergency", "a test"])["revision"], 2);
    let conflict = ada.fails("14", &["publish", "two", "-m", "Late"]);
    assert!(conflict.contains("hello.md") && conflict.contains("pull 'http://"), "{conflict}");
    root.approve_fails("14", &["2"]);
    // Scopes are named; a proposer makes no channel.
    let refused = ada.approve_fails("12", &["2"]);
    assert!(refused.contains("library:review"), "{refused}");
    assert!(ada.fails("12", &["policy", "--channel", "production", "--approvals", "0"]).contains("library:admin"));
    served.team.write("new", &[("bye.md", BYE)]);
    assert!(ada.fails("7", &["publish", "new", "--channel", "other", "-m", "New"]).contains("`other`"));
    // Unknown things.
    ada.fails("7", &["history", "--channel", "other"]);
    assert!(ada.fails("7", &["proposals", "99"]).contains("proposal 99"));
    ada.fails("7", &["rollback", "--to", "99", "-m", "Back"]);
    let ran = run_at(&served.team, &format!("{}#production@99", served.url()), ada.token, &["pull", "nothing"]);
    assert!(ran.code == "7" && ran.stderr.contains("revision 99"), "{}", ran.stderr);
    assert!(!served.team.path("nothing").exists());
    // Sign-in.
    let wrong = Caller { served: &served, token: "wrong" };
    assert!(wrong.fails("12", &["history"]).contains("did not accept the token in PROMPTSHELF_TOKEN"));
    // The metrics count operations by name, and have no paths, channels or numbers.
    let metrics = served.metrics();
    for (method, outcome) in [
        ("api/tree", "ok"),
        ("api/review", "policy"),
        ("api/propose", "conflict"),
        ("api/review", "insufficient-scope"),
        ("api/revisions", "not-found"),
        ("api", "sign-in-required"),
    ] {
        let label = format!("promptshelf_requests_total{{method=\"{method}\",outcome=\"{outcome}\"}}");
        assert!(metrics.contains(&label), "{label}\n{metrics}");
    }
    assert!(metrics.contains("promptshelf_request_duration_seconds_count{method=\"api/tree\"}"), "{metrics}");
    let of_api = metrics.lines().filter(|line| line.contains("method=\"api"));
    assert!(of_api.clone().all(|line| !line.contains("production") && !line.contains("99\"")), "{metrics}");
    // The command line.
    assert!(ada.fails("2", &["publish", "new", "-m", "New", "--as", "bob"]).contains("--as"));
    assert!(ada.fails("2", &["history", "--store", "sqlite:team.db"]).contains("both name the store"));
    let history = |url: &str| run_at(&served.team, url, SECRET, &["history"]);
    for url in ["http://prompts.example.com", "https://ada:psk_secret@prompts.example.com", "sqlite:team.db"] {
        let ran = history(url);
        assert_eq!(ran.code, "2", "{}", ran.stderr);
        assert!(!ran.stderr.contains(SECRET), "{}", ran.stderr);
    }
    // Neither a server without the API nor one that is away has a store.
    let folder = Server::of(&served.team.folder, &[]);
    let ran = history(&format!("http://{}", folder.authority()));
    assert!(ran.code == "15" && ran.stderr.contains("no API"), "{}", ran.stderr);
    let unused = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("an address");
    let ran = history(&format!("http://{unused}"));
    assert!(ran.code == "15" && ran.stderr.contains("does not answer"), "{}", ran.stderr);
    assert_eq!(served.team.revision("production"), 2);
}

/// Through nginx as it is installed, which accepts 1 MiB.
// req: S-521
#[test]
fn large_publish_is_sent_in_parts() {
    const FILES: usize = 30;

    let served = Served::new(Team::new());
    let proxied = format!("location / {{ proxy_pass http://{}; }}", served.server.authority());
    let nginx = Nginx::start(&format!("server {{ listen LISTEN; {proxied} }}"));
    let url = format!("http://{}", nginx.address());
    let (_, token) = served.tokens.iter().find(|(name, _)| *name == "root").expect("a person");
    let root = |words: &[&str]| {
        let ran = run_at(&served.team, &url, token, words);
        assert_eq!(ran.code, "0", "{words:?}\n{}{}\n{}", ran.stdout, ran.stderr, nginx.log());
        ran.stdout
    };
    let uploaded = || {
        let log = fs::read_to_string(nginx.folder().path().join("access.log")).expect("a log");
        log.lines().filter(|line| line.contains("\"PUT ") && line.contains("/uploads/")).count()
    };
    served.team.write("prompts", &[("hello.md", HELLO)]);
    for number in 0..FILES {
        // Half of them is not text. All of them together are larger than the largest body of a request.
        let text: Vec<u8> = (0..200_000_usize).map(|at| ((at * (number + 7)) % 251) as u8).collect();
        let text = if number % 2 == 0 { text } else { vec![b'a' + number as u8 % 26; 200_000] };
        fs::write(served.team.path(&format!("prompts/part-{number}.bin")), text).expect("written");
    }
    root(&["publish", "prompts", "-m", "Large"]);
    assert_eq!((served.team.revision("production"), uploaded()), (1, 0));
    root(&["pull", "copy"]);
    assert_eq!(bytes(&served.team.path("copy")), bytes(&served.team.path("prompts")));
    assert!(root(&["publish", "copy", "-m", "Nothing"]).starts_with("no changes"));
    // As text, this one would be six times as long.
    fs::write(served.team.path("copy/large.bin"), vec![0_u8; 5 << 20]).expect("written");
    root(&["publish", "copy", "-m", "A large file"]);
    assert_eq!((served.team.revision("production"), uploaded()), (2, 10));
    // A file is read again as bytes, and one that is stored is not uploaded again.
    root(&["pull", "again"]);
    assert_eq!(bytes(&served.team.path("again")), bytes(&served.team.path("copy")));
    // Nothing of a file that no server accepts is sent.
    let limits = "[limits]\nresource-bytes = 100000000\n";
    served.team.write("again", &[("promptshelf.toml", limits)]);
    fs::File::create(served.team.path("again/huge.bin")).and_then(|file| file.set_len(65 << 20)).expect("a file");
    let refused = run_at(&served.team, &url, token, &["publish", "again", "-m", "Too large"]);
    assert_ne!(refused.code, "0");
    assert!(refused.stderr.contains("huge.bin") && refused.stderr.contains("67108864"), "{refused:?}");
    assert_eq!((served.team.revision("production"), uploaded()), (2, 10));
}

/// Passes requests on, one for each connection, and loses the answers to the first `lost` ones that propose changes.
fn losing(server: std::net::SocketAddr, mut lost: usize) -> (String, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    let (sender, keys) = mpsc::channel();
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut reader = BufReader::new(stream.try_clone().expect("a descriptor"));
            let mut head = String::new();
            while reader.read_line(&mut head).is_ok_and(|read| read > 2) {}
            let value = |name: &str| {
                let line = head.lines().find(|line| line.to_ascii_lowercase().starts_with(&format!("{name}: ")));
                line.and_then(|line| line.split_once(": ")).map(|(_, value)| value.to_owned())
            };
            let mut body = vec![0; value("content-length").and_then(|length| length.parse().ok()).unwrap_or(0)];
            reader.read_exact(&mut body).expect("a body");
            let mut up = TcpStream::connect(server).expect("the server");
            let (first, rest) = head.split_once("\r\n").expect("a request");
            up.write_all(format!("{first}\r\nConnection: close\r\n{rest}").as_bytes()).expect("sent");
            up.write_all(&body).expect("sent");
            let mut answer = Vec::new();
            up.read_to_end(&mut answer).expect("an answer");
            if first.starts_with("POST ") && first.contains("/proposals") {
                sender.send(value("idempotency-key").expect("a key")).ok();
                if lost > 0 {
                    lost -= 1;
                    continue;
                }
            }
            stream.write_all(&answer).ok();
        }
    });
    (format!("http://{address}"), keys)
}

#[test]
fn change_whose_answer_is_lost_is_sent_again_and_happens_once() {
    let served = Served::new(Team::new());
    let (_, token) = served.tokens.iter().find(|(name, _)| *name == "root").expect("a person");
    served.team.write("prompts", &[("hello.md", HELLO)]);
    let server = served.server.authority().parse().expect("an address");
    let (url, keys) = losing(server, 2);
    let published = run_at(&served.team, &url, token, &["publish", "prompts", "-m", "Once"]);
    assert_eq!(published.code, "0", "{published:?}");
    assert!(published.stdout.contains("revision 1 (proposal 1)"), "{published:?}");
    let keys: Vec<String> = keys.try_iter().collect();
    assert!(keys.len() == 3 && keys.iter().all(|key| *key == keys[0]), "{keys:?}");
    assert_eq!(served.team.revision("production"), 1);
    let all = served.team.json(&["proposals", "--all"]);
    assert_eq!(all["items"].as_array().map(Vec::len), Some(1), "{all}");
}

/// A server that sends the same answer to every request, and passes on the requests.
fn answering(answer: impl Fn(&str) -> Vec<u8> + Send + 'static) -> (String, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    let (sender, requests) = mpsc::channel();
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let head = head(&stream);
            let answer = answer(head.lines().next().unwrap_or_default());
            if sender.send(head).is_err() {
                break;
            }
            stream.write_all(&answer).ok();
        }
    });
    (format!("http://{address}"), requests)
}

fn head(stream: &TcpStream) -> String {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while reader.read_line(&mut head).is_ok_and(|read| read > 2) {}
    let length = head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
    reader.take(length.unwrap_or(0)).read_to_end(&mut Vec::new()).ok();
    head
}

fn response(status: &str, kind: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}")
        .into_bytes()
}

fn run_at(team: &Team, url: &str, token: &str, words: &[&str]) -> Ran {
    let mut command = promptshelf();
    command.args(words).args(["--url", url]).current_dir(team.folder.path()).env("PROMPTSHELF_TOKEN", token);
    Ran::of(&shown(command, ""))
}

// req: S-110
#[test]
fn token_does_not_follow_a_redirect() {
    let team = Team::without_store();
    let (other, stolen) = answering(|_| response("200 OK", "application/json", "{}"));
    let moved = format!("HTTP/1.1 307 Moved\r\nlocation: {other}/x\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    let (url, requests) = answering(move |_| moved.clone().into_bytes());
    for words in [&["history"][..], &["promote", "--from", "a", "--to", "b", "-m", "Copy", "--prompt", "p"]] {
        let ran = run_at(&team, &url, SECRET, words);
        assert!(ran.code == "1" && ran.stderr.contains("redirects"), "{}", ran.stderr);
        assert!(!ran.stderr.contains(SECRET), "{}", ran.stderr);
    }
    assert!(requests.try_iter().count() >= 2);
    assert_eq!(stolen.try_iter().count(), 0, "no request follows");
}

// req: S-111
#[test]
fn answers_of_a_hostile_server_change_nothing() {
    let team = Team::without_store();
    let digest = promptshelf_store::Digest::of(HELLO.as_bytes()).to_string();
    let tree = |path: &str| {
        json!({
            "head": { "epoch": "e", "revision": 1 },
            "items": [{ "path": path, "digest": digest, "size": 5 }],
            "next": null,
        })
        .to_string()
    };
    let contents = |path: &str, text: &str| {
        json!({ "revision": 1, "files": [{ "path": path, "digest": digest, "content": { "text": text } }] }).to_string()
    };
    let answers = [
        // A path outside of the folder, a content that does not fit its digest, and pages that never end or are no JSON.
        (tree("../outside.md"), contents("../outside.md", HELLO), "1"),
        (tree("hello.md"), contents("hello.md", BYE), "1"),
        (tree("hello.md"), json!({ "revision": 1, "files": [] }).to_string(), "1"),
        (tree("hello.md").replace("null", "\"\""), contents("hello.md", HELLO), "0"),
        ("{\u{1b}[2J".to_owned(), String::new(), "1"),
        (String::new(), String::new(), "1"),
    ];
    for (number, (tree, contents, code)) in answers.into_iter().enumerate() {
        let (url, _requests) = answering(move |line| {
            response("200 OK", "application/json", if line.contains("/contents") { &contents } else { &tree })
        });
        let folder = format!("copy-{number}");
        let ran = run_at(&team, &url, SECRET, &["pull", &folder]);
        assert_eq!(ran.code, code, "{number}: {}{}", ran.stdout, ran.stderr);
        assert_eq!(team.path(&folder).exists(), code == "0", "{number}");
        assert!(!ran.stderr.contains('\u{1b}'), "{number}: {}", ran.stderr);
    }
    assert!(!team.path("outside.md").exists() && !team.path("../outside.md").exists());
    // A problem is shown without the control characters in it.
    let problem = json!({ "type": "urn:promptshelf:problem:odd", "detail": "\u{1b}[31mred\u{202e}" }).to_string();
    let (url, _requests) = answering(move |_| response("500 Error", "application/problem+json", &problem));
    let ran = run_at(&team, &url, SECRET, &["history"]);
    assert!(ran.code == "1" && ran.stderr.contains("red"), "{}", ran.stderr);
    assert!(!ran.stderr.contains(['\u{1b}', '\u{202e}']), "{}", ran.stderr);
}

#[cfg(unix)]
#[test]
fn runner_with_its_own_scope_opens_the_gate() {
    let program = r#"printf '{"scores":{"score":0.9},"cases":[{"passed":true}]}'"#;
    let settings = format!("[[evaluation]]\nname = \"quality\"\nprogram = [\"sh\", \"-c\", '''{program}''']\n");
    let served = Served::with(Team::with(&[("hello.md", HELLO)]), &settings);
    let (ada, bob, ci, root) = (served.by("ada"), served.by("bob"), served.by("ci"), served.by("root"));
    // A name that the settings do not have would stop every publish.
    assert!(root.fails("1", &["policy", "--channel", "production", "--evaluation", "qualita"]).contains("`quality`"));
    root.ok(&["policy", "--channel", "production", "--evaluation", "quality"]);
    ada.ok(&["pull", "copy"]);
    served.team.write("copy", &[("bye.md", BYE)]);
    ada.ok(&["publish", "copy", "-m", "Partings"]);
    let evaluate = ["evaluate", "--proposal", "2", "--config", "ops/server.toml"];
    let error = bob.fails("12", &evaluate);
    assert!(error.contains("library:evaluate"), "{error}");
    assert_eq!(bob.approve(&["2"])["state"], "open");
    let stored = ci.json(&evaluate);
    let result = &stored["evaluations"][0];
    assert_eq!((&result["author"], &result["prompt"], &result["passed"]), (&json!("ci"), &json!("bye"), &json!(true)));
    assert_eq!(result["cases"], json!([{ "name": "sample", "score": null, "passed": true, "reason": "" }]));
    assert_eq!(ci.json(&[&evaluate[..], &["--missing"]].concat())["evaluations"], json!([]));
    assert_eq!(bob.approve(&["2"])["state"], "published");
    assert_eq!(ci.json(&["evaluate", "--config", "ops/server.toml"])["evaluations"].as_array().map(Vec::len), Some(2));
}

/// Also with a policy that is met by an approval, and one that has to confirm each change.
// req: S-295
#[tokio::test(flavor = "multi_thread")]
async fn publish_through_a_server_names_the_recent_calls_that_it_breaks() {
    let team = Team::with(&[("hello.md", HELLO), ("bye.md", BYE)]);
    super::usage::calls(team.command(&["serve", &team.store, "--http", "127.0.0.1:0"])).await;
    let served = Served::new(team);
    let (ada, bob, root) = (served.by("ada"), served.by("bob"), served.by("root"));
    let broken = "  breaking: prompt hello: `who` is new and required: callers that do not send it will fail\n";
    let figures = "called 3 times by 1 client in the last 30 days\n";
    let required =
        HELLO.replace("arguments:\n", "arguments:\n  - name: who\n    description: Who\n    required: true\n");
    ada.ok(&["pull", "copy"]);
    served.team.write("copy", &[("hello.md", &required)]);
    let dry = ada.ok(&["publish", "copy", "--dry-run"]);
    assert!(dry.contains(broken) && dry.contains(figures), "{dry}");
    root.ok(&["policy", "--channel", "production", "--approvals", "1", "--four-eyes", "on", "--breaking", "off"]);
    let open = ada.ok(&["publish", "copy", "-m", "Who"]);
    assert!(open.contains("is open") && open.contains(broken) && open.contains(figures), "{open}");
    let shown = bob.ok(&["proposals", "2"]);
    assert!(shown.contains(figures) && shown.contains("--confirm argument-new-required:hello:who"), "{shown}");
    assert_eq!(bob.approve(&["2"])["state"], "open", "the change was not confirmed");
    let confirmed = bob.approve(&["2", "--confirm", "argument-new-required:hello:who"]);
    let recent = json!({ "which": "all", "argument": null, "calls": 3, "affected": 3, "clients": 1 });
    assert_eq!((&confirmed["revision"], &confirmed["effects"][0]["recent"]), (&json!(2), &recent), "{confirmed}");
    // Without conditions it is published, and said.
    served.team.policy(&["--approvals", "0", "--four-eyes", "off", "--breaking", "on"]);
    root.ok(&["pull", "fresh"]);
    fs::remove_file(served.team.path("fresh/bye.md")).expect("a file");
    let published = root.ok(&["publish", "fresh", "-m", "No partings"]);
    assert!(published.contains("breaking: prompt bye: is gone"), "{published}");
    assert!(published.contains("      called once by 1 client in the last 30 days\n"), "{published}");
}

// req: S-292
#[test]
fn looser_policy_is_a_proposal_through_a_server() {
    let served = Served::new(Team::with(&[("hello.md", HELLO)]));
    let (bob, root) = (served.by("bob"), served.by("root"));
    let production = ["policy", "--channel", "production"];
    root.ok(&[&production[..], &["--approvals", "1", "--four-eyes", "on", "-m", "Two people"]].concat());
    let proposed = root.ok(&[&production[..], &["--approvals", "0", "--four-eyes", "off", "-m", "Alone"]].concat());
    assert!(proposed.contains("is looser") && proposed.contains("approvals 1 → 0"), "{proposed}");
    assert_eq!(root.json(&production)["policy"]["approvals"], 1);
    let shown = bob.ok(&["proposals", "2"]);
    assert!(shown.contains("four-eyes on → off") && shown.contains(" 2 --digest"), "{shown}");
    root.approve_fails("13", &["2"]);
    assert_eq!(bob.approve(&["2"])["state"], "published");
    assert_eq!(root.json(&production)["policy"]["approvals"], 0);
    let history = bob.ok(&["history"]);
    assert!(history.contains("approvals 1 → 0, four-eyes on → off; approved by bob"), "{history}");
    assert!(history.contains("published under: 0 approvals") && history.contains("Two people"), "{history}");
    // With the store itself it is done, and says so.
    served.team.policy(&["--approvals", "2"]);
    served.team.policy(&["--approvals", "0", "--as", "olga"]);
    let told = served.team.json(&["history"])["policies"].clone();
    assert_eq!((&told[0]["actor"], &told[0]["byOperator"]), (&json!("olga"), &json!(true)));
    assert!(bob.ok(&["history"]).contains("with access to the database"));
}

/// Whatever is refused for another reason than rights.
#[test]
fn refusals_are_the_same_on_both_roads() {
    let served = Served::new(Team::with(&[("hello.md", HELLO)]));
    let (team, root) = (&served.team, served.by("root"));
    team.write("large", &[("hello.md", HELLO), ("notes.md", &"x".repeat(9 << 20))]);
    let long = "x".repeat(5_000);
    for words in [
        &["publish", "large", "-m", "Large", "--dry-run"][..],
        &["publish", "large", "-m", "Large", "--proposal", "99"],
        &["rollback", "--to", "99", "-m", "Back"],
        &["rollback", "--to", "1", "-m", &long],
        &["promote", "--from", "nowhere", "--to", "production", "-m", "Copy"],
        &["approve", "99", "--digest", "00000000"],
        &["reject", "99"],
        &["history", "--channel", "nowhere"],
    ] {
        let (local, remote) = (team.run(words), root.run(words));
        let neutral = |ran: &Ran| {
            // Suggested commands name the server, and the store only if it is not that of the environment.
            let parts = ran.stderr.split('`').enumerate().map(|(number, part)| match number % 2 {
                1 => part.replace(&format!(" {}", served.url()), ""),
                _ => part.to_owned(),
            });
            let stderr = parts.collect::<Vec<_>>().join("`");
            stderr.replace(&served.url(), "PLACE").replace(&team.store, "PLACE")
        };
        assert_ne!(local.code, "0", "{words:?}");
        assert_eq!((&local.code, neutral(&local)), (&remote.code, neutral(&remote)), "{words:?}");
    }
    assert_eq!(team.revision("production"), 1);
}

#[test]
fn commands_on_a_store_are_in_the_audit() {
    let team = Team::new();
    team.write("prompts", &[("hello.md", HELLO)]);
    let run = |words: &[&str], audit: &str| {
        let mut command = team.command(words);
        command.env("PROMPTSHELF_AUDIT", team.path(audit));
        Ran::of(&shown(command, ""))
    };
    assert_eq!(run(&["publish", "prompts", "-m", "First", "--as", "bob"], "audit.jsonl").code, "0");
    assert_ne!(run(&["rollback", "--to", "9", "-m", "Back"], "audit.jsonl").code, "0");
    assert_eq!(run(&["store", "gc"], "audit.jsonl").code, "0");
    let records: Vec<Value> =
        team.read("audit.jsonl").lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let record = |method: &str| records.iter().find(|record| record["method"] == method).expect("a record");
    let published = record("api/propose");
    assert_eq!((&published["caller"], &published["outcome"]), (&json!("bob"), &json!("ok")), "{published}");
    assert_eq!((&published["channel"], &published["revision"]), (&json!("production"), &json!(1)), "{published}");
    let refused = record("api/rollback");
    assert_eq!((&refused["caller"], &refused["outcome"]), (&json!("ada"), &json!("not-found")), "{refused}");
    assert_eq!((&record("store/gc")["caller"], &record("store/gc")["outcome"]), (&json!("ada"), &json!("ok")));
    // What cannot be recorded is not done.
    team.folder.edit("prompts/hello.md", "Say", "Shout");
    assert_ne!(run(&["publish", "prompts", "-m", "Second"], "missing/audit.jsonl").code, "0");
    assert_eq!(team.revision("production"), 1);
    // The settings of the operator hold, too.
    team.write("ops", &[("server.toml", "[audit]\nfile = \"own.jsonl\"\n")]);
    let mut command = team.command(&["history"]);
    command.env("PROMPTSHELF_CONFIG", team.path("ops/server.toml"));
    assert_eq!(Ran::of(&shown(command, "")).code, "0");
    assert!(team.read("ops/own.jsonl").contains("api/revisions"));
}

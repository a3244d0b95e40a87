//! Editing of a served folder, over real sockets, with a real folder.

use std::{
    fs,
    path::{Path, PathBuf},
};

use axum::http::Method;
use promptshelf_server::api::FolderApi;
use promptshelf_source::EditableFolder;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Answer, HELLO, Server, at, digest, refused, sign_in};

const JSON: (&str, &str) = ("Content-Type", "application/json");
const ORIGIN: (&str, &str) = ("Origin", "http://localhost");

/// A folder with `hello.md`, next to a file outside of the library, and a server that edits it.
struct Edited {
    server: Server,
    outside: TempDir,
}

impl Edited {
    async fn start(has_sign_in: bool) -> Edited {
        let outside = TempDir::new().expect("a folder");
        fs::write(outside.path().join("secret.txt"), "outside-secret").expect("written");
        let library = outside.path().join("library");
        fs::create_dir_all(library.join(".git")).expect("created");
        fs::write(library.join(".git/config"), "hidden-secret").expect("written");
        fs::write(library.join("hello.md"), HELLO).expect("written");
        let build = |builder: promptshelf_server::Builder| builder.folder(&library);
        let change = |options: &mut promptshelf_server::http::Options| {
            let folder = EditableFolder::open(&library).expect("a folder");
            options.api = None;
            options.folder = Some(FolderApi::new(folder, []));
            if has_sign_in {
                options.sign_in = Some(sign_in());
            }
        };
        let server = Server::with(build, change).await;
        Edited { server, outside }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.outside.path().join("library").join(path)
    }

    fn text(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).expect("a text")
    }

    async fn get(&self, caller: &str, path: &str) -> Answer {
        self.server.get(caller, &format!("/folder{path}")).await
    }

    async fn put(&self, caller: &str, path: &str, condition: (&str, &str), content: Value) -> Answer {
        let body = json!({ "content": content }).to_string();
        let path = at(&format!("/folder/files/{path}"));
        self.server.send(&Method::PUT, &path, caller, &[JSON, ORIGIN, condition], body.as_bytes()).await
    }

    async fn post(&self, path: &str, body: &Value) -> Answer {
        let path = at(&format!("/folder{path}"));
        self.server.send(&Method::POST, &path, "", &[JSON, ORIGIN], body.to_string().as_bytes()).await
    }

    async fn analyze(&self, path: &str, text: &str, more: Value) -> Value {
        let mut body = json!({ "path": path, "changes": [{ "path": path, "content": { "text": text } }] });
        for (name, value) in more.as_object().expect("an object") {
            body[name] = value.clone();
        }
        self.post("/analysis", &body).await.expect(200).json()
    }
}

fn tag(text: &str) -> String {
    format!("\"{}\"", digest(text))
}

fn text(text: &str) -> Value {
    json!({ "text": text })
}

fn files_below(folder: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder").filter_map(Result::ok) {
        match entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            true => names.extend(files_below(&entry.path())),
            false => names.push(entry.path().display().to_string()),
        }
    }
    names.sort();
    names
}

#[tokio::test]
async fn files_are_created_replaced_and_deleted() {
    let edited = Edited::start(false).await;
    let listed = edited.get("", "/files").await.expect(200).json();
    assert_eq!(listed["items"], json!([{ "path": "hello.md", "bytes": HELLO.len() }]));
    let read = edited.get("", "/files/hello.md").await.expect(200);
    assert_eq!((read.text(), read.etag()), (HELLO, tag(HELLO)));
    assert_eq!(read.header("content-disposition"), "attachment");
    let created = edited.put("", "git/commit.md", ("If-None-Match", "*"), text("Write it.\r\n")).await.expect(201);
    assert_eq!(created.etag(), tag("Write it.\r\n"));
    assert_eq!(edited.text("git/commit.md"), "Write it.\r\n");
    let replaced = edited.put("", "git/commit.md", ("If-Match", &created.etag()), text("Write all.\n")).await;
    assert_eq!(replaced.expect(200).etag(), tag("Write all.\n"));
    // The change is served before it is confirmed.
    let served = edited.server.send(&Method::GET, "/library/prompts/git-commit", "", &[], b"").await.expect(200);
    assert_eq!(served.json()["path"], "git/commit.md");
    let bytes = edited.put("", "a.png", ("If-None-Match", "*"), json!({ "base64": "iVBORw0KGgo=" })).await.expect(201);
    assert_eq!(fs::read(edited.path("a.png")).expect("read"), b"\x89PNG\r\n\x1a\n");
    let path = at("/folder/files/a.png");
    let condition = ("If-Match", bytes.etag());
    let gone = edited.server.send(&Method::DELETE, &path, "", &[ORIGIN, (condition.0, &condition.1)], b"").await;
    assert_eq!((gone.status, edited.path("a.png").exists()), (204, false));
    assert_eq!(edited.get("", "/files/a.png").await.problem(), refused(404, "not-found"));
    let temporary = files_below(&edited.path("")).into_iter().find(|path| path.contains("promptshelf-edit"));
    assert_eq!(temporary, None);
}

// req: S-162
#[tokio::test]
async fn change_on_disk_is_not_overwritten() {
    let edited = Edited::start(false).await;
    fs::write(edited.path("hello.md"), "Someone else.\n").expect("written");
    let refusal = edited.put("", "hello.md", ("If-Match", &tag(HELLO)), text("Mine.\n")).await;
    assert_eq!(refusal.problem(), refused(412, "changed"));
    assert_eq!(
        (&refusal.json()["content"], &refusal.json()["digest"]),
        (&text("Someone else.\n"), &json!(digest("Someone else.\n")))
    );
    let exists = edited.put("", "hello.md", ("If-None-Match", "*"), text("Mine.\n")).await;
    assert_eq!(exists.problem(), refused(409, "exists"));
    for condition in [("If-Match", "*"), ("X-None", "")] {
        let refusal = edited.put("", "hello.md", condition, text("Mine.\n")).await;
        assert!(matches!(refusal.problem().0, 400 | 428), "{refusal:?}");
    }
    let path = at("/folder/files/hello.md");
    let delete = edited.server.send(&Method::DELETE, &path, "", &[ORIGIN, ("If-Match", &tag(HELLO))], b"").await;
    assert_eq!(delete.problem(), refused(412, "changed"));
    let rename = json!({ "from": "hello.md", "to": "bye.md", "digest": digest(HELLO) });
    assert_eq!(edited.post("/rename", &rename).await.problem(), refused(412, "changed"));
    assert_eq!(edited.text("hello.md"), "Someone else.\n");
    fs::remove_file(edited.path("hello.md")).expect("removed");
    let gone = edited.put("", "hello.md", ("If-Match", &tag("Someone else.\n")), text("Mine.\n")).await;
    assert_eq!(gone.problem(), refused(404, "not-found"));
    assert!(!edited.path("hello.md").exists());
}

// req: S-211
#[tokio::test]
async fn names_that_other_systems_cannot_hold_are_refused() {
    let edited = Edited::start(false).await;
    for path in ["aux.md", "a%3Ab.md", "dot.", "space%20", "git/NUL.txt"] {
        let refusal = edited.put("", path, ("If-None-Match", "*"), text("x")).await;
        assert_eq!(refusal.problem(), refused(400, "invalid-request"), "{path}");
    }
    edited.put("", "git/Über.md", ("If-None-Match", "*"), text("x")).await.expect(201);
    for (path, reason) in [
        ("Hello.md", "`hello.md` and `Hello.md` are the same file on systems that ignore case"),
        ("git/über.md", "`git/Über.md` and `git/über.md` are the same file"),
        ("GIT/z.md", "`git` and `GIT` are the same file"),
        ("git/U%CC%88ber.md", r"as `git/\\u{dc}ber.md` and as `git/U\\u{308}ber.md`"),
    ] {
        let refusal = edited.put("", path, ("If-None-Match", "*"), text("x")).await;
        assert_eq!(refusal.problem(), refused(409, "exists"), "{path}");
        assert!(refusal.text().contains(reason), "{}", refusal.text());
    }
    let taken = json!({ "from": "hello.md", "to": "git/ÜBER.md", "digest": digest(HELLO) });
    assert_eq!(edited.post("/rename", &taken).await.problem(), refused(409, "exists"));
    assert_eq!(files_below(&edited.path("")).iter().filter(|path| path.ends_with(".md")).count(), 2);
    // A file does not stand in its own way.
    let own = json!({ "from": "hello.md", "to": "HELLO.md", "digest": digest(HELLO) });
    edited.post("/rename", &own).await.expect(200);
    assert_eq!(edited.text("HELLO.md"), HELLO);
}

#[tokio::test]
async fn document_describes_the_operations_of_the_folder() {
    let edited = Edited::start(false).await;
    let document = edited.server.get("", "/openapi.json").await.expect(200).json();
    for (path, method, answer) in [
        ("files", "get", json!({ "items": [{ "path": "hello.md", "bytes": 6 }], "next": null, "mayWrite": true })),
        ("files/{path}", "put", json!({ "digest": digest(HELLO) })),
        ("rename", "post", json!({ "changed": ["a.md"], "left": [] })),
        ("analysis", "post", edited.analyze("hello.md", HELLO, json!({ "arguments": {} })).await),
    ] {
        let operation = &document["paths"][format!("/api/v1/folder/{path}")][method];
        assert!(operation["security"][0]["token"].is_array(), "{path}: {operation}");
        let schema = &operation["responses"]["200"]["content"]["application/json"]["schema"];
        super::document::valid(&document, schema, &answer, path);
    }
    assert!(document["paths"]["/api/v1/channels"].is_null(), "the server has no store");
}

// req: S-162
#[tokio::test]
async fn one_of_several_changes_of_a_version_wins() {
    let edited = Edited::start(false).await;
    let condition = tag(HELLO);
    let texts: Vec<String> = (0..8).map(|number| format!("{number}\n").repeat(20_000)).collect();
    let changes = texts.iter().map(|new| edited.put("", "hello.md", ("If-Match", &condition), text(new)));
    let statuses: Vec<u16> = futures_util::future::join_all(changes).await.iter().map(|answer| answer.status).collect();
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "{statuses:?}");
    assert_eq!(statuses.iter().filter(|status| **status == 412).count(), 7, "{statuses:?}");
    let winner = statuses.iter().position(|status| *status == 200).expect("one");
    assert_eq!(edited.text("hello.md"), texts[winner]);
}

// req: S-161, S-310, S-311
#[tokio::test]
async fn paths_outside_of_the_library_are_refused() {
    let edited = Edited::start(false).await;
    let mut paths = vec![
        "..%2Fsecret.txt",
        "%2Fetc%2Fpasswd",
        ".git%2Fconfig",
        ".git/hooks%2Fpre-commit",
        "a%5C..%5Cb.md",
        "con.md",
        "a.md.orig",
        "a%00.md",
        ".hidden.md",
        "node_modules/a.md",
        "git~1%2Fconfig",
        "a%E2%80%8B.md",
        "a%E2%80%AEdm.md",
    ];
    #[cfg(unix)]
    {
        use std::os::unix::fs::symlink;
        symlink("../secret.txt", edited.path("out.md")).expect("a link");
        symlink("..", edited.path("up")).expect("a link");
        symlink(".git", edited.path("hidden")).expect("a link");
        symlink(".git/config", edited.path("inner.md")).expect("a link");
        paths.extend(["out.md", "up/secret.txt", "hidden/config", "inner.md", "hidden/hooks/x", "hidden/a/b/c.md"]);
    }
    let before = files_below(edited.outside.path());
    for path in paths {
        let read = edited.get("", &format!("/files/{path}")).await;
        assert!(matches!(read.problem().0, 400 | 404), "{path}: {read:?}");
        for condition in
            [("If-None-Match", "*".to_owned()), ("If-Match", tag("hidden-secret")), ("If-Match", tag("outside-secret"))]
        {
            let write = edited.put("", path, (condition.0, &condition.1), text("mine")).await;
            assert!(matches!(write.problem().0, 400 | 404 | 409), "{path}: {write:?}");
            assert!(!write.text().contains("-secret"), "{path}");
        }
    }
    assert_eq!(files_below(edited.outside.path()), before);
    assert_eq!(fs::read_to_string(edited.outside.path().join("secret.txt")).expect("read"), "outside-secret");
    assert_eq!(edited.text(".git/config"), "hidden-secret");
    // Not even an empty folder is made.
    assert!(!edited.path(".git/hooks").exists() && !edited.path(".git/a").exists());
}

// req: S-160
#[tokio::test]
async fn pages_of_other_origins_change_nothing() {
    let edited = Edited::start(false).await;
    let body = json!({ "content": { "text": "Mine.\n" } }).to_string();
    let path = at("/folder/files/hello.md");
    let condition = tag(HELLO);
    let condition = ("If-Match", condition.as_str());
    let form = ("Content-Type", "text/plain");
    let foreign = ("Origin", "https://evil.example");
    for (headers, expected) in [
        (vec![JSON, condition], refused(403, "foreign-request")),
        (vec![JSON, condition, foreign], refused(403, "foreign-request")),
        (vec![JSON, condition, ("Origin", "null")], refused(403, "foreign-request")),
        (vec![form, condition, ORIGIN], refused(415, "unsupported-media-type")),
    ] {
        let refusal = edited.server.send(&Method::PUT, &path, "", &headers, body.as_bytes()).await;
        assert_eq!(refusal.problem(), expected, "{headers:?}");
    }
    let delete = edited.server.send(&Method::DELETE, &path, "", &[condition], b"").await;
    assert_eq!(delete.problem(), refused(403, "foreign-request"));
    assert_eq!(edited.text("hello.md"), HELLO);
    let large = edited.put("", "large.md", ("If-None-Match", "*"), text(&"a".repeat(5 << 20))).await;
    assert_eq!(large.problem(), refused(413, "too-large"));
    assert!(!edited.path("large.md").exists());
}

/// A link to the settings is the settings.
// req: S-311
#[cfg(unix)]
#[tokio::test]
async fn settings_take_their_scope_under_every_path() {
    let edited = Edited::start(true).await;
    fs::write(edited.path("promptshelf.toml"), "title = \"Mine\"\n").expect("written");
    std::os::unix::fs::symlink("promptshelf.toml", edited.path("m.md")).expect("a link");
    std::os::unix::fs::symlink(".", edited.path("self")).expect("a link");
    let scope = refused(403, "insufficient-scope");
    let present = tag("title = \"Mine\"\n");
    for path in ["m.md", "self/promptshelf.toml", "self/self/PROMPTSHELF.toml", "self/m.md"] {
        assert_eq!(edited.get("paul", &format!("/files/{path}")).await.problem(), scope, "{path}");
        for condition in [("If-None-Match", "*"), ("If-Match", &*present)] {
            assert_eq!(edited.put("paul", path, condition, text("")).await.problem(), scope, "{path}");
        }
    }
    assert!(edited.get("admin", "/files/m.md").await.expect(200).text().contains("Mine"));
    edited.get("paul", "/files/self/hello.md").await.expect(200);
}

/// An agent or an editor that opens the folder would obey what an author of prompts has written.
// req: S-340
#[tokio::test]
async fn files_that_other_programs_obey_are_not_changed() {
    let edited = Edited::start(true).await;
    let present = [
        "CLAUDE.md",
        "sub/AGENTS.md",
        "mcp.json",
        "plugin/hooks/hooks.json",
        ".mcp.json",
        ".envrc",
        ".claude/settings.json",
        ".claude/agents/a.md",
        ".claude/commands/run.sh",
        ".vscode/tasks.json",
        ".github/workflows/ci.yml",
        ".git/hooks/pre-commit",
        ".husky/pre-commit",
    ];
    for path in present {
        fs::create_dir_all(edited.path(path).parent().expect("a folder")).expect("created");
        fs::write(edited.path(path), "theirs").expect("written");
    }
    #[cfg(unix)]
    std::os::unix::fs::symlink("sub", edited.path("link")).expect("a link");
    let listed = edited.get("paul", "/files").await.expect(200).json();
    let listed: Vec<&str> =
        listed["items"].as_array().expect("files").iter().filter_map(|it| it["path"].as_str()).collect();
    assert!(listed.contains(&"hello.md") && !listed.iter().any(|path| present.contains(path)), "{listed:?}");
    let absent = ["claude.MD", "sub/Gemini.md", "link/CLAUDE.local.md", "x/team.code-workspace", "AGENT\u{17f}.md"];
    let before = files_below(&edited.path(""));
    let encoded = |path: &str| path.replace('\u{17f}', "%C5%BF");
    for caller in ["paul", "admin"] {
        for path in present.iter().chain(&absent) {
            for condition in [("If-None-Match", "*".to_owned()), ("If-Match", tag("theirs"))] {
                let refusal = edited.put(caller, &encoded(path), (condition.0, &condition.1), text("mine")).await;
                assert!(matches!(refusal.problem().0, 400), "{caller} {path}: {refusal:?}");
            }
            let from = json!({ "from": path, "to": "a.md", "digest": digest("theirs") });
            let to = json!({ "from": "hello.md", "to": path, "digest": digest(HELLO) });
            for body in [from, to] {
                let path = at("/folder/rename");
                let body = body.to_string();
                let refusal = edited.server.send(&Method::POST, &path, caller, &[JSON, ORIGIN], body.as_bytes()).await;
                assert_eq!(refusal.problem().0, 400, "{caller} {body}: {refusal:?}");
            }
        }
        for path in present {
            let path = at(&format!("/folder/files/{path}"));
            let theirs = tag("theirs");
            let headers = [("If-Match", &*theirs), ORIGIN];
            assert_eq!(edited.server.send(&Method::DELETE, &path, caller, &headers, b"").await.problem().0, 400);
        }
    }
    assert_eq!(files_below(&edited.path("")), before);
    // A command of Claude Code is a prompt of the library too: an administrator may write it.
    let new = ("If-None-Match", "*");
    let command = ".claude/commands/fix.md";
    assert_eq!(edited.put("paul", command, new, text("!`id`\n")).await.problem(), refused(403, "insufficient-scope"));
    edited.put("admin", command, new, text("Fix it.\n")).await.expect(201);
    // What a library has of its own goes on.
    for path in ["_part.md", "sub/image.svg", "sub/team/SKILL.md", "sub/team/run.sh", "claude/notes.md"] {
        edited.put("paul", path, new, text("x\n")).await.expect(201);
    }
}

// req: S-165
#[tokio::test]
async fn each_change_takes_its_scope() {
    let edited = Edited::start(true).await;
    fs::write(edited.path("promptshelf.toml"), "title = \"Mine\"\n").expect("written");
    let scope = || refused(403, "insufficient-scope");
    let new = ("If-None-Match", "*");
    assert_eq!(edited.get("", "/files").await.problem(), refused(401, "sign-in-required"));
    assert_eq!(edited.get("stranger", "/files").await.problem(), scope());
    let listed = edited.get("reader", "/files").await.expect(200).json();
    assert_eq!(listed["mayWrite"], false);
    assert_eq!(edited.put("reader", "a.md", new, text("A.\n")).await.problem(), scope());
    assert_eq!(edited.put("ada", "a.md", new, text("A.\n")).await.problem(), scope());
    edited.put("paul", "a.md", new, text("A.\n")).await.expect(201);
    for path in ["promptshelf.toml", "PROMPTSHELF.toml"] {
        assert_eq!(edited.get("paul", &format!("/files/{path}")).await.problem(), scope());
        assert_eq!(edited.put("paul", path, new, text("")).await.problem(), scope());
    }
    let raised = json!({ "path": "hello.md", "changes": [{ "path": "promptshelf.toml", "content": { "text": "" } }] });
    let headers = [JSON, ORIGIN];
    let path = at("/folder/analysis");
    let refusal = edited.server.send(&Method::POST, &path, "paul", &headers, raised.to_string().as_bytes()).await;
    assert_eq!(refusal.problem(), scope());
    edited.get("admin", "/files/promptshelf.toml").await.expect(200);
    let records = edited.server.records.all();
    let written = records.iter().find(|one| one["caller"] == "paul" && one["outcome"] == "ok").expect("a record");
    assert_eq!((&written["method"], &written["path"]), (&json!("api/folder/write"), &json!("a.md")));
    assert!(!format!("{records:?}").contains("A.\\n"));
}

// req: S-163
#[tokio::test]
async fn analysis_leaves_nothing_behind() {
    let edited = Edited::start(false).await;
    let mine = "---\ndescription: Greets\narguments:\n  - name: whom\n    description: For example Ada\n    required: true\n---\nMy draft for {{ whom }}.\n";
    let result =
        edited.analyze("hello.md", mine, json!({ "arguments": {}, "complete": { "line": 7, "character": 18 } })).await;
    assert_eq!(result["diagnostics"]["hello.md"], Value::Null, "{result}");
    assert_eq!(result["messages"][0]["content"]["text"], "My draft for ‹whom›.");
    assert_eq!((&result["samples"], &result["prompt"]["arguments"][0]["name"]), (&json!(["whom"]), &json!("whom")));
    assert!(result["completions"].as_array().expect("a list").iter().any(|item| item["label"] == "whom"), "{result}");
    let result = edited.analyze("hello.md", mine, json!({ "arguments": { "whom": "Ada" } })).await;
    assert_eq!(result["messages"][0]["content"]["text"], "My draft for Ada.");
    // Another author's broken text is not shown with the draft, and the file is as it was.
    let broken = edited.analyze("hello.md", "---\ndescription: [\n---\n", json!({ "arguments": {} })).await;
    assert!(broken["diagnostics"]["hello.md"][0]["range"]["start"]["line"].is_number(), "{broken}");
    let other = "---\ndescription: Calls\n---\n{{ prompt(\"hello\") }}\n";
    let called = edited.analyze("other.md", other, json!({ "arguments": {} })).await;
    assert_eq!(called["messages"][0]["content"]["text"], "Say hello.");
    assert!(!format!("{broken}{called}").contains("My draft"));
    assert!(!edited.path("other.md").exists());
    assert_eq!(edited.text("hello.md"), HELLO);
}

// req: S-164
#[tokio::test]
async fn preview_reads_nothing_outside_of_the_library() {
    let edited = Edited::start(false).await;
    #[cfg(unix)]
    std::os::unix::fs::symlink("../secret.txt", edited.path("out.txt")).expect("a link");
    let manifest = format!("[roots.out]\npath = {:?}\n", edited.outside.path().display().to_string());
    for body in [
        "{{ attach(\"../secret.txt\") }}",
        "{{ attach(\"out.txt\") }}",
        "{{ attach(\".git/config\") }}",
        "{% include \"../secret.txt\" %}",
        "{% include \".git/config\" %}",
        "{{ attach(\"file:///etc/passwd\") }}",
        "{{ env.PATH }}{{ environ }}{{ self }}{{ config }}",
    ] {
        let changes = json!([
            { "path": "promptshelf.toml", "content": { "text": manifest } },
            { "path": "spy.md", "content": { "text": format!("---\ndescription: Spies\n---\n{body}\n") } },
        ]);
        let question = json!({ "path": "spy.md", "changes": changes, "arguments": {}, "tests": true });
        let answer = edited.post("/analysis", &question).await.expect(200);
        for secret in ["outside-secret", "hidden-secret", "root:", "/usr/bin"] {
            assert!(!answer.text().contains(secret), "{body}: {}", answer.text());
        }
        assert!(
            !answer.text().contains(&edited.outside.path().join("library").display().to_string()),
            "{}",
            answer.text()
        );
    }
}

#[tokio::test]
async fn rename_changes_every_reference() {
    let edited = Edited::start(false).await;
    edited.put("", "_shared/tone.md", ("If-None-Match", "*"), text("Be kind.\n")).await.expect(201);
    let caller = "---\ndescription: Calls\n---\n{{ prompt(\"hello\") }}\n{% include \"_shared/tone.md\" %}\nhello.md\n";
    edited.put("", "caller.md", ("If-None-Match", "*"), text(caller)).await.expect(201);
    let rename = json!({ "from": "hello.md", "to": "greet/person.md", "digest": digest(HELLO) });
    let answer = edited.post("/rename", &rename).await.expect(200).json();
    assert_eq!((&answer["changed"], &answer["left"]), (&json!(["caller.md"]), &json!([])));
    assert_eq!((edited.path("hello.md").exists(), edited.text("greet/person.md")), (false, HELLO.to_owned()));
    let rename = json!({ "from": "_shared/tone.md", "to": "_shared/voice.md", "digest": digest("Be kind.\n") });
    edited.post("/rename", &rename).await.expect(200);
    let renamed = caller.replace("\"hello\"", "\"greet-person\"").replace("_shared/tone.md", "_shared/voice.md");
    assert_eq!(edited.text("caller.md"), renamed);
    let result = edited.analyze("caller.md", &renamed, json!({ "arguments": {} })).await;
    assert_eq!(result["diagnostics"], json!({}), "{result}");
    let onto = json!({ "from": "caller.md", "to": "greet/person.md", "digest": digest(&renamed) });
    assert_eq!(edited.post("/rename", &onto).await.problem(), refused(409, "exists"));
}

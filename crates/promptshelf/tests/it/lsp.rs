//! Editor sessions over the Language Server Protocol, with the program at the other end of a pair of pipes.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    path::PathBuf,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use serde_json::{Value, json};
use tempfile::TempDir;

struct Editor {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    next: u64,
    folder: TempDir,
    /// The newest diagnostics of each file.
    diagnostics: std::collections::BTreeMap<String, Vec<Value>>,
}

impl Editor {
    /// Starts the server on a library with these files.
    fn open(files: &[(&str, &str)]) -> Editor {
        let folder = TempDir::new().expect("a folder");
        for (path, text) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().expect("a folder around it")).expect("folders");
            fs::write(path, text).expect("a file");
        }
        let mut child = Command::new(env!("CARGO_BIN_EXE_promptshelf"))
            .arg("lsp")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a started process");
        let (to, from) = (child.stdin.take().expect("stdin"), child.stdout.take().expect("stdout"));
        let diagnostics = std::collections::BTreeMap::new();
        let mut editor = Editor { child, to, from: BufReader::new(from), next: 0, folder, diagnostics };
        let root = editor.uri("");
        let root = root.trim_end_matches('/');
        let answer = editor.request(
            "initialize",
            json!({ "processId": null, "rootUri": root, "capabilities": {}, "workspaceFolders": [{ "uri": root, "name": "x" }] }),
        );
        assert_eq!(answer["serverInfo"]["name"], "promptshelf");
        assert_eq!(answer["capabilities"]["hoverProvider"], true);
        editor.notify("initialized", json!({}));
        editor
    }

    fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    fn uri(&self, path: &str) -> String {
        format!("file://{}", self.path(path).display())
    }

    fn write(&mut self, message: &Value) {
        let text = message.to_string();
        write!(self.to, "Content-Length: {}\r\n\r\n{text}", text.len()).expect("a listening server");
        self.to.flush().expect("a listening server");
    }

    fn read(&mut self) -> Value {
        let mut length = 0;
        loop {
            let mut line = String::new();
            assert!(self.from.read_line(&mut line).expect("a response") > 0, "the server has ended");
            match line.trim().split_once(": ") {
                Some(("Content-Length", value)) => length = value.parse().expect("a number"),
                Some(_) => {}
                None => break,
            }
        }
        let mut body = vec![0; length];
        self.from.read_exact(&mut body).expect("a whole message");
        serde_json::from_slice(&body).expect("JSON")
    }

    fn notify(&mut self, method: &str, params: Value) {
        self.write(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    fn request(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let id = self.next;
        self.write(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        loop {
            let message = self.read();
            if message["id"] == id {
                assert!(message.get("error").is_none(), "{message}");
                return message["result"].clone();
            }
            self.record(&message);
        }
    }

    fn record(&mut self, message: &Value) {
        if message["method"] == "textDocument/publishDiagnostics" {
            let uri = message["params"]["uri"].as_str().expect("a URI").to_owned();
            let found = message["params"]["diagnostics"].as_array().expect("a list").clone();
            self.diagnostics.insert(uri, found);
        }
    }

    fn edit(&mut self, path: &str, text: &str) {
        let uri = self.uri(path);
        self.notify(
            "textDocument/didChange",
            json!({ "textDocument": { "uri": uri, "version": 2 }, "contentChanges": [{ "text": text }] }),
        );
    }

    fn start_editing(&mut self, path: &str, text: &str) {
        let uri = self.uri(path);
        self.notify(
            "textDocument/didOpen",
            json!({ "textDocument": { "uri": uri, "languageId": "markdown", "version": 1, "text": text } }),
        );
    }

    /// Sends a partial change of a file: start and end as line and column, and the new text.
    fn edit_part(&mut self, path: &str, parts: &[([u32; 4], &str)]) {
        let uri = self.uri(path);
        let change = |([line, column, end_line, end_column], text): &([u32; 4], &str)| {
            let start = json!({ "line": line, "character": column });
            json!({ "range": { "start": start, "end": { "line": end_line, "character": end_column } }, "text": text })
        };
        let changes: Vec<Value> = parts.iter().map(change).collect();
        self.notify(
            "textDocument/didChange",
            json!({ "textDocument": { "uri": uri, "version": 3 }, "contentChanges": changes }),
        );
    }

    /// Returns the current diagnostics of a file: the response to a request comes after all earlier text has been
    /// checked.
    fn diagnostics(&mut self, path: &str) -> Vec<String> {
        let at = json!({ "textDocument": { "uri": self.uri(path) }, "position": { "line": 0, "character": 0 } });
        self.request("textDocument/hover", at);
        let found = self.diagnostics.get(&self.uri(path)).cloned().unwrap_or_default();
        let shown = |it: &Value| {
            let start = &it["range"]["start"];
            format!("{}:{} {}", start["line"], start["character"], it["message"].as_str().unwrap_or_default())
        };
        found.iter().map(shown).collect()
    }

    /// Sets a file's content to `text` without its `^`, and returns request parameters for that position.
    fn at(&mut self, path: &str, text: &str) -> Value {
        let (before, after) = text.split_once('^').expect("a cursor");
        self.edit(path, &format!("{before}{after}"));
        let line = before.matches('\n').count();
        let character = before.rsplit('\n').next().unwrap_or_default().encode_utf16().count();
        json!({ "textDocument": { "uri": self.uri(path) }, "position": { "line": line, "character": character } })
    }

    fn completes(&mut self, path: &str, text: &str) -> Vec<String> {
        let at = self.at(path, text);
        let items = self.request("textDocument/completion", at);
        let label = |item: &Value| item["label"].as_str().expect("a label").to_owned();
        items.as_array().expect("a list").iter().map(label).collect()
    }

    fn hovers(&mut self, path: &str, text: &str) -> String {
        let at = self.at(path, text);
        self.request("textDocument/hover", at)["contents"]["value"].as_str().unwrap_or_default().to_owned()
    }

    fn goes_to(&mut self, path: &str, text: &str) -> String {
        let at = self.at(path, text);
        let found = self.request("textDocument/definition", at);
        let uri = found["uri"].as_str().unwrap_or_default();
        let root = self.uri("");
        let start = &found["range"]["start"];
        format!("{}:{}:{}", uri.strip_prefix(&root).unwrap_or(uri), start["line"], start["character"])
    }

    fn close(mut self) {
        self.request("shutdown", Value::Null);
        self.notify("exit", Value::Null);
        assert!(self.child.wait().expect("an end").success());
    }
}

const HEAD: &str = "---\ndescription: Reviews\narguments:\n  - name: code\n    description: The code\n    required: true\n  - name: language\n    description: Its language\n---\n";

fn editor() -> (Editor, String) {
    let text = format!("{HEAD}Review {{{{ code }}}} {{{{ language }}}}\n");
    let mut editor = Editor::open(&[
        ("review.md", &text),
        ("greet.md", "---\ndescription: Greets\narguments:\n  - name: who\n    required: true\n---\nHi {{ who }}\n"),
        ("_shared/tone.md", "Be kind.\n"),
        ("charts/a b.png", "no picture"),
        ("lists/langs.txt", "rust\n"),
    ]);
    editor.start_editing("review.md", &text);
    (editor, text)
}

#[test]
fn unsaved_text_is_checked() {
    let (mut editor, text) = editor();
    assert_eq!(editor.diagnostics("review.md"), Vec::<String>::new());
    editor.edit("review.md", &text.replace("{{ language }}", "🙂 {{ langage }}"));
    assert_eq!(
        editor.diagnostics("review.md"),
        [
            "6:10 the argument `language` is declared but never used\nuse it in the text, or remove it",
            "9:24 `langage` is used but not declared as an argument\ndid you mean `language`?",
        ]
    );
    let code = &editor.diagnostics[&editor.uri("review.md")][1];
    assert_eq!(
        (&code["severity"], &code["code"], &code["source"]),
        (&json!(1), &json!("undeclared-argument"), &json!("promptshelf"))
    );
    editor.edit("review.md", &text);
    assert_eq!(editor.diagnostics("review.md"), Vec::<String>::new());
    editor.close();
}

#[test]
fn partial_changes_are_combined() {
    let (mut editor, _) = editor();
    editor.edit("review.md", &format!("{HEAD}🙂 {{{{ code }}}} {{{{ language }}}}\nüß\n"));
    editor.edit_part("review.md", &[([9, 6, 9, 10], "kode"), ([10, 1, 10, 2], "\n{{ x }}\n"), ([11, 3, 11, 4], "yz")]);
    assert_eq!(
        editor.diagnostics("review.md"),
        [
            "3:10 the argument `code` is declared but never used\nuse it in the text, or remove it",
            "9:6 `kode` is used but not declared as an argument\ndid you mean `code`?",
            "11:3 `yz` is used but not declared as an argument\nadd `- name: yz` under `arguments:`; if the braces are meant literally, put `{% raw %}` and `{% endraw %}` around them",
        ]
    );
    editor.close();
}

#[test]
fn review_findings_are_published_at_current_positions() {
    let (mut editor, text) = editor();
    editor.edit("review.md", &text.replace("Review ", "Review\u{202e} "));
    let diagnostics = editor.diagnostics("review.md");
    assert!(diagnostics.len() == 1 && diagnostics[0].starts_with("9:6 invisible character U+202E"), "{diagnostics:?}");
    editor.edit("review.md", &text.replace("Review ", "\n\n{{ x }}"));
    assert_eq!(editor.diagnostics("review.md").len(), 1);
    editor.close();
}

#[test]
fn manifest_and_foreign_files_are_completed() {
    let (mut editor, _) = editor();
    let has = |words: &[String], word: &str| words.iter().any(|it| it == word);
    editor.start_editing("promptshelf.toml", "");
    let words = editor.completes("promptshelf.toml", "[lim^]");
    assert!(has(&words, "limits") && has(&words, "roots") && !has(&words, "http"), "{words:?}");
    let words = editor.completes("promptshelf.toml", "[limits]\nfu^");
    assert!(has(&words, "fuel") && !has(&words, "limits"), "{words:?}");
    assert!(has(&editor.completes("promptshelf.toml", "[[resources]]\nfile = \"li^\""), "lists/langs.txt"));
    assert!(editor.hovers("promptshelf.toml", "[limits]\nfu^el = 1").contains("steps of the template engine"));

    editor.start_editing(".claude/commands/fix.md", "");
    let words = editor.completes(".claude/commands/fix.md", "---\narg^\n---\nx");
    assert!(has(&words, "argument-hint") && !has(&words, "tests"), "{words:?}");
    assert_eq!(editor.completes(".claude/commands/fix.md", "Fix $^"), ["$ARGUMENTS", "$1"]);
    assert_eq!(editor.completes(".claude/commands/fix.md", "Fix {{ ^ }}"), Vec::<String>::new());
    editor.start_editing(".gemini/commands/fix.toml", "");
    assert!(has(&editor.completes(".gemini/commands/fix.toml", "pro^"), "prompt"));
    assert_eq!(editor.completes(".gemini/commands/fix.toml", "prompt = \"Fix {{^\""), ["{{args}}"]);
    editor.start_editing("sum.prompt.yml", "");
    assert!(has(&editor.completes("sum.prompt.yml", "mes^"), "messages"));
    editor.start_editing("ask.prompt.md", "");
    assert_eq!(editor.completes("ask.prompt.md", "Ask ${^")[0], "${input:name:hint}");
    editor.close();
}

#[test]
fn unsaved_text_of_other_files_counts_until_discarded() {
    let (mut editor, text) = editor();
    editor.edit("review.md", &format!("{text}{{% include \"_new.md\" %}}"));
    assert_eq!(editor.diagnostics("review.md").len(), 1);
    // A file that exists only in the editor.
    editor.start_editing("_new.md", "New {{ oops }}");
    assert_eq!(editor.diagnostics("review.md"), Vec::<String>::new());
    assert_eq!(editor.diagnostics("_new.md").len(), 1);
    let uri = editor.uri("_new.md");
    editor.notify("textDocument/didClose", json!({ "textDocument": { "uri": uri } }));
    assert_eq!(editor.diagnostics("review.md").len(), 1);
    assert_eq!(editor.diagnostics("_new.md"), Vec::<String>::new());
    assert!(!editor.path("_new.md").exists());
    editor.close();
}

#[test]
fn broken_manifest_is_reported_and_the_rest_works() {
    let (mut editor, text) = editor();
    editor.start_editing("promptshelf.toml", "[limits]\nfuel = \"much\"\n");
    let diagnostics = editor.diagnostics("promptshelf.toml");
    assert_eq!(diagnostics.len(), 1, "{diagnostics:?}");
    assert!(diagnostics[0].starts_with("1:7 "), "{diagnostics:?}");
    editor.edit("promptshelf.toml", "[limits]\nfuel = 1000\n");
    assert_eq!(editor.diagnostics("promptshelf.toml"), Vec::<String>::new());
    editor.edit("review.md", &format!("{text}{{{{ x }}}}"));
    assert_eq!(editor.diagnostics("review.md").len(), 1);
    editor.close();
}

#[test]
fn completion_offers_valid_continuations() {
    let (mut editor, _) = editor();
    let with = |body: &str| format!("{HEAD}{body}");
    let words = editor.completes("review.md", &with("{{ co^"));
    assert!(["code", "language", "attach", "prompt"].iter().all(|word| words.iter().any(|it| it == word)), "{words:?}");
    assert!(editor.completes("review.md", &with("{{ code | ^ }}")).contains(&"fence".to_owned()));
    assert!(editor.completes("review.md", &with("{% if code is ^ %}")).contains(&"defined".to_owned()));
    assert!(editor.completes("review.md", &with("{% ^ %}")).contains(&"include".to_owned()));
    assert!(editor.completes("review.md", &with("{% include \"_sh^\" %}")).contains(&"_shared/tone.md".to_owned()));
    assert!(editor.completes("review.md", &with("{{ attach('^') }}")).contains(&"charts/a b.png".to_owned()));
    assert_eq!(editor.completes("review.md", &with("{{ role(\"^\") }}")), ["user", "assistant"]);
    assert!(editor.completes("review.md", &with("{{ prompt(\"^")).contains(&"greet".to_owned()));
    assert_eq!(editor.completes("review.md", &with("{{ prompt(\"greet\", ^) }}")), ["who"]);
    assert_eq!(editor.completes("review.md", &with("plain ^ text")), Vec::<String>::new());
    // Keys are completed even while the front matter is invalid.
    assert!(editor.completes("review.md", "---\nde^\n---\nx").contains(&"description".to_owned()));
    let keys = editor.completes("review.md", "---\narguments:\n  - name: a\n    req^\n---\nx");
    assert!(keys.contains(&"required".to_owned()) && !keys.contains(&"icons".to_owned()), "{keys:?}");
    assert!(
        editor.completes("review.md", "---\narguments:\n  - name: a\n    type: ^\n---\nx").contains(&"list".to_owned())
    );
    let keys = editor.completes("review.md", "---\ntests:\n  - complete:\n      ^\n---\nx");
    assert!(keys.contains(&"argument".to_owned()) && !keys.contains(&"required".to_owned()), "{keys:?}");
    let files = editor.completes("review.md", "---\narguments:\n  - name: a\n    complete: {file: lis^}\n---\nx");
    assert!(files.contains(&"lists/langs.txt".to_owned()), "{files:?}");
    editor.close();
}

#[test]
fn completion_replaces_the_typed_prefix() {
    let (mut editor, _) = editor();
    let at = editor.at("review.md", "x\n{% include \"_sh^ared\" %}");
    let items = editor.request("textDocument/completion", at);
    let edit = &items
        .as_array()
        .expect("a list")
        .iter()
        .find(|it| it["label"] == "_shared/tone.md")
        .expect("it is offered")["textEdit"];
    assert_eq!(edit["newText"], "_shared/tone.md");
    assert_eq!(
        (&edit["range"]["start"], &edit["range"]["end"]),
        (&json!({"line": 1, "character": 12}), &json!({"line": 1, "character": 15}))
    );
    editor.close();
}

#[test]
fn hover_and_definition_work_at_the_cursor() {
    let (mut editor, _) = editor();
    let with = |body: &str| format!("{HEAD}{body}");
    assert_eq!(
        editor.hovers("review.md", &with("{{ co^de }}")),
        "**code**\n\nargument · string · required\n\nThe code"
    );
    assert!(editor.hovers("review.md", &with("{{ att^ach('x') }}")).contains("attach"));
    assert!(editor.hovers("review.md", &with("{{ code | fen^ce }}")).contains("cannot close"));
    assert!(editor.hovers("review.md", &with("{{ attach('lists/la^ngs.txt') }}")).contains("text/plain, 5 bytes"));
    assert!(editor.hovers("review.md", &with("{{ prompt('gr^eet', who=code) }}")).contains("Greets"));
    assert!(editor.hovers("review.md", "---\ndescr^iption: x\n---\ny").contains("The purpose of the prompt"));
    assert_eq!(editor.hovers("review.md", &with("plain te^xt")), "");

    assert_eq!(editor.goes_to("review.md", &with("{{ lang^uage }}")), "review.md:6:10");
    assert_eq!(editor.goes_to("review.md", &with("{% include '_shared/to^ne.md' %}")), "_shared/tone.md:0:0");
    assert_eq!(editor.goes_to("review.md", &with("{{ attach('charts/a^ b.png') }}")), "charts/a%20b.png:0:0");
    assert_eq!(editor.goes_to("review.md", &with("{{ prompt('gr^eet', who=code) }}")), "greet.md:0:0");
    assert_eq!(editor.goes_to("review.md", &with("{{ prompt('greet', wh^o=code) }}")), "greet.md:3:10");
    assert_eq!(editor.goes_to("review.md", &with("{% include 'no^ne.md' %}")), ":null:null");
    editor.close();
}

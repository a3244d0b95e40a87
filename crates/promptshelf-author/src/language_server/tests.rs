//! Sessions with an editor in the same process.

use std::{fs, thread};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;

struct Editor {
    connection: Option<Connection>,
    server: Option<thread::JoinHandle<Result<(), LanguageServerError>>>,
    folder: TempDir,
    next: i32,
    /// The diagnostics that the server has sent, by path, the last ones last.
    published: BTreeMap<String, Vec<PublishDiagnosticsParams>>,
    /// What the server has asked for.
    requests: Vec<Request>,
    /// Whether requests of the server are refused.
    refuses: bool,
}

impl Editor {
    /// Opens all files of a library.
    fn open(files: &[(&str, &str)]) -> Editor {
        let editor = Editor::on(files, json!({}));
        for (path, text) in files {
            editor.begin(path, text);
        }
        editor
    }

    /// Opens the folder of a library, and none of its files. `workspace` are capabilities of the editor.
    fn on<T: AsRef<str>>(files: &[(T, T)], workspace: Value) -> Editor {
        Editor::with(files, workspace, false)
    }

    fn refusing(files: &[(&str, &str)], workspace: Value) -> Editor {
        Editor::with(files, workspace, true)
    }

    fn with<T: AsRef<str>>(files: &[(T, T)], workspace: Value, refuses: bool) -> Editor {
        let folder = TempDir::new().expect("a folder");
        let mut can = json!({ "workspaceEdit": { "resourceOperations": ["rename"], "documentChanges": true } });
        can.as_object_mut().expect("an object").extend(workspace.as_object().cloned().unwrap_or_default());
        let (server, connection) = Connection::memory();
        let server = thread::spawn(move || LanguageServer::new().serve(&server));
        let (published, requests) = (BTreeMap::new(), Vec::new());
        let connection = Some(connection);
        let mut editor = Editor { connection, server: Some(server), folder, next: 0, published, requests, refuses };
        for (path, text) in files {
            editor.write(path.as_ref(), text.as_ref());
        }
        let root = position::uri_of(editor.folder.path());
        let folders = json!([{ "uri": root, "name": "x" }]);
        let can = json!({ "workspace": can, "textDocument": { "publishDiagnostics": { "versionSupport": true } } });
        let params = json!({ "processId": null, "rootUri": root, "capabilities": can, "workspaceFolders": folders });
        editor.request("initialize", params);
        editor.notify("initialized", json!({}));
        editor
    }

    /// Writes a file without the editor.
    fn write(&self, path: &str, text: &str) {
        let path = self.folder.path().join(path);
        fs::create_dir_all(path.parent().expect("a folder around it")).expect("folders");
        fs::write(path, text).expect("a file");
    }

    /// Replaces the text of an open file.
    fn edit(&self, path: &str, version: i32, text: &str) {
        let file = json!({ "uri": self.uri(path), "version": version });
        let change = json!({ "textDocument": file, "contentChanges": [{ "text": text }] });
        self.notify("textDocument/didChange", change);
    }

    /// Receives a message; a request is answered with `null`, or refused.
    fn receive(&mut self) -> Option<Response> {
        match self.connection.as_ref().expect("an open connection").receiver.recv().expect("a message") {
            Message::Response(response) => return Some(response),
            Message::Request(request) => {
                let id = request.id.clone();
                let refused = || Response::new_err(id.clone(), ErrorCode::RequestFailed as i32, "no".to_owned());
                let response = if self.refuses { refused() } else { Response::new_ok(id.clone(), Value::Null) };
                self.send(Message::Response(response));
                self.requests.push(request);
            }
            Message::Notification(notification) => {
                let found: PublishDiagnosticsParams = serde_json::from_value(notification.params).expect("diagnostics");
                let root = format!("{}/", position::uri_of(self.folder.path()));
                let path = found.uri.as_ref().strip_prefix(&root).expect("a file of the library").to_owned();
                self.published.entry(path).or_default().push(found);
            }
        }
        None
    }

    /// The messages of the diagnostics that the editor shows for a file now.
    fn shown(&mut self, path: &str) -> Vec<String> {
        // What was sent before an answer has arrived.
        self.request("workspace/symbol", json!({ "query": "nothing has this name" }));
        let last = self.published.get(path).and_then(|all| all.last());
        last.iter().flat_map(|last| &last.diagnostics).map(|found| json!(found)["message"].to_string()).collect()
    }

    fn uri(&self, path: &str) -> String {
        position::uri_of(&self.folder.path().join(path))
    }

    fn send(&self, message: Message) {
        self.connection.as_ref().expect("an open connection").sender.send(message).expect("a listening server");
    }

    fn notify(&self, method: &str, params: Value) {
        self.send(Message::Notification(Notification::new(method.to_owned(), params)));
    }

    fn begin(&self, path: &str, text: &str) {
        let file = json!({ "uri": self.uri(path), "languageId": "markdown", "version": 1, "text": text });
        self.notify("textDocument/didOpen", json!({ "textDocument": file }));
    }

    fn ask(&mut self, method: &str, params: Value) -> Result<Value, String> {
        self.next += 1;
        let id = lsp_server::RequestId::from(self.next);
        self.send(Message::Request(Request { id: id.clone(), method: method.to_owned(), params }));
        loop {
            if let Some(response) = self.receive().filter(|response| response.id == id) {
                let answer = json!(response);
                return match answer.get("error") {
                    Some(error) => Err(error["message"].as_str().unwrap_or_default().to_owned()),
                    None => Ok(answer["result"].clone()),
                };
            }
        }
    }

    fn request(&mut self, method: &str, params: Value) -> Value {
        self.ask(method, params).expect(method)
    }

    fn of(&mut self, method: &str, path: &str, more: Value) -> Value {
        let mut params = json!({ "textDocument": { "uri": self.uri(path) } });
        params.as_object_mut().expect("an object").extend(more.as_object().cloned().unwrap_or_default());
        self.request(method, params)
    }

    /// The fixes of a line, by title, each with the text of the file afterwards.
    fn fixes(&mut self, path: &str, text: &str, line: u32) -> Vec<(String, String)> {
        let range = json!({ "start": { "line": line, "character": 0 }, "end": { "line": line, "character": 999 } });
        let context = json!({ "diagnostics": [], "only": ["quickfix"] });
        let actions = self.of("textDocument/codeAction", path, json!({ "range": range, "context": context }));
        let uri = self.uri(path);
        let applied = |action: &Value| {
            let edits = action["edit"]["changes"][&uri].as_array().cloned().unwrap_or_default();
            (action["title"].as_str().unwrap_or_default().to_owned(), apply(text, &edits))
        };
        actions.as_array().into_iter().flatten().map(applied).collect()
    }

    /// The texts after a rename, and the new path of a file.
    fn rename(&mut self, path: &str, at: (u32, u32), new: &str) -> Result<BTreeMap<String, String>, String> {
        let at = json!({ "line": at.0, "character": at.1 });
        let params = json!({ "textDocument": { "uri": self.uri(path) }, "position": at, "newName": new });
        let edit = self.ask("textDocument/rename", params)?;
        let root = format!("{}/", position::uri_of(self.folder.path()));
        let mut texts = BTreeMap::new();
        let mut add = |uri: &str, edits: &Value| {
            let path = uri.strip_prefix(&root).expect("a file of the library").to_owned();
            let text = fs::read_to_string(self.folder.path().join(&path)).expect("a file");
            texts.insert(path, apply(&text, edits.as_array().expect("a list")));
        };
        for (uri, edits) in edit["changes"].as_object().into_iter().flatten() {
            add(uri, edits);
        }
        let mut moved = Vec::new();
        for change in edit["documentChanges"].as_array().into_iter().flatten() {
            match change["kind"].as_str() {
                Some("rename") => moved.push(change["newUri"].as_str().unwrap_or_default().to_owned()),
                _ => add(change["textDocument"]["uri"].as_str().unwrap_or_default(), &change["edits"]),
            }
        }
        texts.extend(
            moved.into_iter().map(|uri| (uri.strip_prefix(&root).unwrap_or_default().to_owned(), String::new())),
        );
        Ok(texts)
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        if !thread::panicking() {
            self.request("shutdown", Value::Null);
            self.notify("exit", Value::Null);
            self.connection = None;
            if let Some(server) = self.server.take() {
                server.join().expect("no panic").expect("an orderly end");
            }
        }
    }
}

/// Applies the edits of an editor to a text, the last one first.
fn apply(text: &str, edits: &[Value]) -> String {
    let mut edits: Vec<lsp::TextEdit> =
        edits.iter().map(|edit| serde_json::from_value(edit.clone()).expect("a text edit")).collect();
    edits.sort_by_key(|edit| std::cmp::Reverse((edit.range.start.line, edit.range.start.character)));
    edits.into_iter().fold(text.to_owned(), |mut text, edit| {
        text.replace_range(position::span(&text, edit.range), &edit.new_text);
        text
    })
}

const REVIEW: &str = "---\ndescription: Reviews\narguments:\n  - name: code\n    description: The code\n    required: true\n  - name: tone\n    description: How\n    default: kind\n    when: code != \"tone\" and code\ntests:\n  - arguments: { code: x }\n---\n{# a\n   remark #}\nReview {{ code | upper }}.\n{% if tone %}\n{% include \"_tone.md\" %}\n{% endif %}\n";
const TONE: &str = "Be {{ tone }}.\n";
const CALLER: &str = "---\ndescription: Calls\narguments:\n  - name: text\n    description: The text\n    required: true\n---\n{{ role(\"user\") }}\n{{ prompt(\"review\", code=text) }}\n{{ role(\"assistant\") }}\nok\n";

fn library() -> Editor {
    Editor::open(&[("review.md", REVIEW), ("_tone.md", TONE), ("caller.md", CALLER)])
}

#[test]
fn findings_have_fixes_and_a_page() {
    let text = "---\ndescripton: Greets\narguments:\n  - name: who\n    description: Whom\n---\nHi {{ whoo }}, {{ who | uper }}\n";
    let mut editor = Editor::open(&[("hi.md", text)]);
    let fixed = editor.fixes("hi.md", text, 1);
    assert_eq!(fixed.len(), 1, "{fixed:?}");
    assert!(fixed[0].1.starts_with("---\ndescription: Greets\n"), "{fixed:?}");
    let fixed = editor.fixes("hi.md", text, 6);
    assert!(fixed.iter().any(|(_, text)| text.contains("Hi {{ who }}")), "{fixed:?}");
    assert!(fixed.iter().any(|(_, text)| text.contains("| upper")), "{fixed:?}");
    let whole = json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 0, "character": 0 } });
    let only = json!({ "range": whole, "context": { "diagnostics": [], "only": ["source"] } });
    let actions = editor.of("textDocument/codeAction", "hi.md", only);
    assert_eq!((actions.as_array().map(Vec::len), &actions[0]["kind"]), (Some(1), &json!("source.fixAll")));
    let edits = actions[0]["edit"]["changes"][&editor.uri("hi.md")].as_array().cloned().unwrap_or_default();
    let all = apply(text, &edits);
    assert!(all.contains("description: Greets") && all.contains("| upper"), "{all}");
    let found = editor.of(
        "textDocument/codeAction",
        "hi.md",
        json!({
            "range": { "start": { "line": 1, "character": 0 }, "end": { "line": 1, "character": 3 } },
            "context": { "diagnostics": [] },
        }),
    );
    let link = found[0]["diagnostics"][0]["codeDescription"]["href"].as_str().unwrap_or_default();
    assert!(link.ends_with("reference/diagnostics.html#unknown-key"), "{link}");
}

#[test]
fn argument_has_a_new_name_in_all_files() {
    let mut editor = library();
    let all = editor.of(
        "textDocument/references",
        "review.md",
        json!({
            "position": { "line": 15, "character": 12 }, "context": { "includeDeclaration": true },
        }),
    );
    assert_eq!(all.as_array().map(Vec::len), Some(6), "{all:#}");
    let texts = editor.rename("caller.md", (8, 24), "source").expect("it can be renamed");
    assert_eq!(texts.keys().collect::<Vec<_>>(), ["caller.md", "review.md"]);
    assert!(texts["caller.md"].contains("prompt(\"review\", source=text)"), "{texts:?}");
    for part in ["- name: source\n", "when: source != \"tone\" and source\n", "{ source: x }", "{{ source | upper }}"] {
        assert!(texts["review.md"].contains(part), "{part}: {texts:?}");
    }
    let texts = editor.rename("_tone.md", (0, 7), "style").expect("it can be renamed");
    assert!(texts["_tone.md"].contains("{{ style }}") && texts["review.md"].contains("{% if style %}"), "{texts:?}");
    assert!(texts["review.md"].contains("code != \"tone\""), "a text in a condition stays: {texts:?}");
    for (new, reason) in [("tone", "has an argument `tone`"), ("two words", "not a name"), ("attach", "is a function")]
    {
        let refused = editor.rename("review.md", (15, 12), new).expect_err("it cannot have this name");
        assert!(refused.contains(reason), "{refused}");
    }
    assert!(editor.rename("caller.md", (10, 0), "x").is_err());
}

#[test]
fn broken_file_does_not_hide_the_uses_of_its_argument() {
    let broken = REVIEW.replace("upper", "uper");
    let mut editor = Editor::open(&[("review.md", &broken), ("_tone.md", TONE), ("caller.md", CALLER)]);
    let texts = editor.rename("review.md", (15, 12), "source").expect("it can be renamed");
    assert!(texts["caller.md"].contains("source=text"), "{texts:?}");
}

#[test]
fn renamed_argument_of_a_shared_partial_breaks_no_other_prompt() {
    let other = REVIEW.replace("Reviews", "Reviews, too");
    let mut editor = Editor::open(&[("review.md", REVIEW), ("other.md", &other), ("_tone.md", TONE)]);
    let refused = editor.rename("review.md", (16, 7), "style").expect_err("another prompt uses the partial");
    assert!(refused.contains("`_tone.md` uses `tone` for `other.md`, too"), "{refused}");
    let texts = editor.rename("_tone.md", (0, 7), "style").expect("it can be renamed");
    assert_eq!(texts.keys().collect::<Vec<_>>(), ["_tone.md", "other.md", "review.md"]);
}

/// Front matter of a partial, mistakes in both files, a partial of a partial, and the tests of a prompt.
#[test]
fn argument_has_a_new_name_in_partials_whatever_else_is_wrong() {
    let head = "---\ndescription: Mails\narguments:\n  - name: topic\n    description: What\n";
    let mail = format!(
        "{head}tests:\n  - arguments: {{ topic: a }}\n    complete: {{ argument: topic, includes: [a] }}\n---\n\
         {{{{ topic | uper }}}}\n{{% include \"_a.md\" %}}\n"
    );
    let (a, b) = ("{{ topic }} {% include \"_b.md\" %}\n", "---\ntitle: B\n---\nOn {{ topic | uper }}.\n");
    let mut editor = Editor::open(&[("mail.md", &mail), ("_a.md", a), ("_b.md", b)]);
    let texts = editor.rename("mail.md", (9, 4), "subject").expect("it can be renamed");
    assert_eq!(texts["_a.md"], a.replace("topic", "subject"));
    assert_eq!(texts["_b.md"], b.replace("topic", "subject"));
    assert_eq!(texts["mail.md"], mail.replace("topic", "subject"));
    let from_partial = editor.rename("_b.md", (3, 6), "subject").expect("it can be renamed");
    assert_eq!(from_partial, texts);
}

#[test]
fn prompt_keeps_its_folder_and_ending_with_a_new_name() {
    let call = |name: &str| format!("---\ndescription: Calls\n---\n{{{{ prompt(\"{name}\") }}}}\n");
    let calls: Vec<(String, String)> =
        ["m", "md", "git-commit"].map(|name| (format!("of-{name}.md"), call(name))).into();
    let mut files = vec![("m.md", "One\n"), ("md.md", "Two\n"), ("git/commit.md", "Three\n")];
    files.extend(calls.iter().map(|(path, text)| (path.as_str(), text.as_str())));
    let mut editor = Editor::open(&files);
    for (from, to, path) in [("m", "mm", "mm.md"), ("md", "mx", "mx.md"), ("git-commit", "git-save", "git/save.md")] {
        let texts = editor.rename(&format!("of-{from}.md"), (3, 12), to).expect("it can be renamed");
        assert!(texts.contains_key(path), "{from}: {texts:?}");
        assert!(texts[&format!("of-{from}.md")].contains(&format!("prompt(\"{to}\")")), "{texts:?}");
    }
    let refused = editor.rename("of-git-commit.md", (3, 12), "save").expect_err("the folder stays");
    assert!(refused.contains("begins with its folder: choose one that begins with `git-`"), "{refused}");
}

#[test]
fn prompts_and_partials_have_new_names() {
    let mut editor = library();
    let texts = editor.rename("review.md", (17, 15), "_shared/tone.md").expect("it can be renamed");
    assert!(texts["review.md"].contains("include \"_shared/tone.md\"") && texts.contains_key("_shared/tone.md"));
    let texts = editor.rename("caller.md", (8, 12), "check").expect("it can be renamed");
    assert!(texts["caller.md"].contains("prompt(\"check\", code=text)") && texts.contains_key("check.md"), "{texts:?}");
    for new in ["caller", "two words"] {
        assert!(editor.rename("caller.md", (8, 12), new).is_err(), "{new}");
    }
    for new in ["../x.md", "/x.md", "", "_tone.md", "caller.md"] {
        assert!(editor.rename("review.md", (17, 15), new).is_err(), "{new}");
    }
}

#[test]
fn files_have_symbols_folds_words_and_defaults() {
    let mut editor = library();
    let symbols = editor.of("textDocument/documentSymbol", "review.md", json!({}));
    let children = symbols[0]["children"].as_array().expect("parts");
    let names: Vec<&str> = children.iter().filter_map(|it| it["name"].as_str()).collect();
    assert_eq!((&symbols[0]["name"], names.as_slice()), (&json!("review"), &["code", "tone", "test 1"][..]));
    let symbols = editor.of("textDocument/documentSymbol", "caller.md", json!({}));
    assert_eq!(symbols[0]["children"][2]["name"], "assistant");
    let found = editor.request("workspace/symbol", json!({ "query": "rvw" }));
    assert_eq!(found.as_array().map(Vec::len), Some(1), "{found}");
    assert_eq!(found[0]["name"], "review");

    let folds = editor.of("textDocument/foldingRange", "review.md", json!({}));
    let lines: Vec<_> = folds.as_array().into_iter().flatten().map(|it| (&it["startLine"], &it["endLine"])).collect();
    assert_eq!(json!(lines), json!([[0, 12], [13, 14], [16, 18]]));
    let folds = editor.of("textDocument/foldingRange", "caller.md", json!({}));
    assert_eq!(folds.as_array().map(Vec::len), Some(3), "{folds}");

    let whole = json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 99, "character": 0 } });
    let hints = editor.of("textDocument/inlayHint", "review.md", json!({ "range": whole }));
    assert_eq!((hints.as_array().map(Vec::len), &hints[0]["label"]), (Some(1), &json!(" = kind")));
    let hints = editor.of("textDocument/inlayHint", "_tone.md", json!({ "range": whole }));
    assert_eq!(hints[0]["position"], json!({ "line": 0, "character": 10 }));

    let mut words = |path: &str, source: &str| {
        let tokens = editor.of("textDocument/semanticTokens/full", path, json!({}));
        let data: Vec<u64> = tokens["data"].as_array().into_iter().flatten().filter_map(Value::as_u64).collect();
        let (mut line, mut column, mut words) = (0, 0, Vec::new());
        for token in data.chunks(5) {
            let [down, right, length, kind, _] = *token else { panic!("{token:?}") };
            column = if down == 0 { column + right } else { right };
            line += down;
            let text = source.lines().nth(usize::try_from(line).expect("small")).expect("a line");
            let (start, length) = (usize::try_from(column).expect("small"), usize::try_from(length).expect("small"));
            let kind = outline::TOKEN_TYPES[usize::try_from(kind).expect("small")];
            words.push(format!("{kind} {}", &text[start..start + length]));
        }
        words
    };
    let expected = [
        "property description",
        "property arguments",
        "property name",
        "parameter text",
        "property description",
        "property required",
        "function role",
        "string \"user\"",
        "function prompt",
        "string \"review\"",
        "parameter code",
        "variable text",
        "function role",
        "string \"assistant\"",
    ];
    assert_eq!(words("caller.md", CALLER), expected);
    let review = words("review.md", REVIEW);
    for part in [
        &["variable code", "string \"tone\"", "keyword and", "variable code", "property tests"][..],
        &["parameter tone"],
    ] {
        assert!(review.windows(part.len()).any(|words| words == part), "{part:?}: {review:?}");
    }
}

/// Lines that look like keys, and are not.
#[test]
fn values_of_front_matter_are_text() {
    let text = "---\n# name: x\ndescription: |\n  note: a\n  b: c\narguments:\n  - name: \"a b\" # c\n    complete: { by: x }\ntags: [a: b]\n---\nname: x\n";
    let kinds: Vec<u32> = outline::tokens("a.md", text).iter().map(|token| token.token_type).collect();
    let kinds: Vec<&str> = kinds.into_iter().map(|kind| outline::TOKEN_TYPES[kind as usize]).collect();
    assert_eq!(kinds, ["comment", "property", "property", "property", "parameter", "property", "property"]);
}

#[test]
fn front_matter_is_formatted_and_hover_shows_the_text() {
    let text = "---\ntags: [a]\ndescription:   'Greets'\nname: hi\n---\nHi!\n";
    let mut editor = Editor::open(&[("hi.md", text), ("review.md", REVIEW), ("_tone.md", TONE)]);
    let options = json!({ "options": { "tabSize": 2, "insertSpaces": true } });
    let edits = editor.of("textDocument/formatting", "hi.md", options.clone());
    let after = apply(text, edits.as_array().expect("edits"));
    assert_eq!(after, crate::format(&SourceText::new("hi.md", text)).expect("it is valid"));
    assert_ne!(after, text);
    assert_eq!(editor.of("textDocument/formatting", "review.md", options), json!([]));
    let hover = editor.of("textDocument/hover", "review.md", json!({ "position": { "line": 1, "character": 3 } }));
    let shown = hover["contents"]["value"].as_str().unwrap_or_default();
    assert!(
        shown.contains("With sample values:") && shown.contains("Review X.") && shown.contains("Be kind."),
        "{shown}"
    );
    let hover = editor.of("textDocument/hover", "review.md", json!({ "position": { "line": 15, "character": 19 } }));
    let shown = hover["contents"]["value"].as_str().unwrap_or_default();
    assert!(shown.contains("capital letters") && shown.contains("ABC"), "{shown}");
    let preview = editor.of("promptshelf/preview", "review.md", json!({}));
    assert_eq!(
        (&preview["name"], &preview["text"]),
        (&json!("review"), &json!("[user] text\nReview X.\n\nBe kind.\n"))
    );
    let completion =
        editor.of("textDocument/completion", "review.md", json!({ "position": { "line": 2, "character": 0 } }));
    let keys: Vec<&str> = completion.as_array().into_iter().flatten().filter_map(|it| it["label"].as_str()).collect();
    assert!(keys.contains(&"title") && !keys.contains(&"description") && !keys.contains(&"tests"), "{keys:?}");
}

#[test]
fn choices_are_completed_and_statements_explained() {
    let text = "---\ndescription: Replies\narguments:\n  - name: tone\n    description: How\n    enum: [kind, formal]\n---\n{% if tone == \"\" %}Hi{% endif %}\n{{ \"b\" if tone not in [\"kind\", \"\"] and tone }}\n{{ prompt(\"other\", mood=\"\") }}\n";
    let other = "---\ndescription: Other\narguments:\n  - name: mood\n    description: How\n    enum: [{ value: sad, title: Very sad }]\n---\n{{ mood }}\n";
    let mut editor = Editor::open(&[("reply.md", text), ("other.md", other)]);
    let labels = |editor: &mut Editor, line: u32, character: u32| {
        let at = json!({ "position": { "line": line, "character": character } });
        let items = editor.of("textDocument/completion", "reply.md", at);
        let label = |item: &Value| item["label"].as_str().unwrap_or_default().to_owned();
        items.as_array().into_iter().flatten().map(label).collect::<Vec<_>>()
    };
    for (line, character, expected) in
        [(7, 15, &["kind", "formal"][..]), (8, 32, &["kind", "formal"]), (9, 25, &["sad"])]
    {
        assert_eq!(labels(&mut editor, line, character), expected, "{line}");
    }
    assert_eq!(labels(&mut editor, 8, 4), [""; 0], "a string of its own");
    for (line, character, expected) in [
        (7, 4, "The text up to `endif`"),
        (7, 25, "Ends `if`."),
        (7, 9, "one of kind, formal"),
        (8, 8, "The text up to `endif`"),
        (8, 20, "Whether a list"),
        (9, 25, "one of sad"),
    ] {
        let at = json!({ "position": { "line": line, "character": character } });
        let hover = editor.of("textDocument/hover", "reply.md", at);
        let shown = hover["contents"]["value"].as_str().unwrap_or_default();
        assert!(shown.contains(expected), "{line}:{character}: {shown}");
    }
}

#[test]
fn everything_with_one_answer_is_fixed_to_the_end() {
    let text = "---\ndescripton: Greets people\narguments:\n  - name: tone\n    description: How, for example kind\n---\n{% if tone = “x” %}a{% end if %}\n{{ tone | uper }}\n";
    let mut editor = Editor::open(&[("hi.md", text)]);
    let whole = json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 0, "character": 0 } });
    let only = json!({ "range": whole, "context": { "diagnostics": [], "only": ["source.fixAll"] } });
    let before = editor.shown("hi.md");
    let actions = editor.of("textDocument/codeAction", "hi.md", only.clone());
    let edits = actions[0]["edit"]["changes"][&editor.uri("hi.md")].as_array().cloned().unwrap_or_default();
    let fixed = apply(text, &edits);
    assert!(fixed.contains("{% if tone == \"x\" %}a{% endif %}") && fixed.contains("| upper"), "{fixed}");
    assert!(edits.iter().all(|edit| edit["range"]["start"]["line"] != 2), "other lines stay: {edits:?}");
    assert_eq!(editor.shown("hi.md"), before, "an offer changes nothing");
    editor.edit("hi.md", 2, &fixed);
    let none: Vec<Value> = Vec::new();
    assert_eq!(editor.of("textDocument/codeAction", "hi.md", only), json!(none));
    assert_eq!(editor.shown("hi.md"), [""; 0]);
}

/// A file name breaks several rules, and has one answer.
#[test]
fn each_fix_is_offered_once() {
    let text = "---\ndescripton: Launches a rocket\n---\nGo!\n";
    let mut editor = Editor::open(&[("other.md", text)]);
    editor.begin("🚀 launch.md", text);
    let range = json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 9, "character": 0 } });
    let context = json!({ "range": range, "context": { "diagnostics": [] } });
    let actions = editor.of("textDocument/codeAction", "🚀 launch.md", context);
    let mut titles: Vec<&str> =
        actions.as_array().into_iter().flatten().filter_map(|it| it["title"].as_str()).collect();
    assert_eq!(titles.len(), 3, "{actions:#}");
    let renames = actions[0]["diagnostics"].as_array().map_or(0, Vec::len);
    assert!(renames > 1, "the fix belongs to all findings that it corrects: {actions:#}");
    titles.dedup();
    assert_eq!(titles.len(), 3, "{titles:?}");
    let all = actions[2]["edit"]["documentChanges"].as_array().cloned().unwrap_or_default();
    assert_eq!((all.len(), &all[1]["kind"]), (2, &json!("rename")), "{all:#?}");
}

/// Templates include a comment in place of the front matter of a partial: its file keeps the front matter.
#[test]
fn all_fixes_leave_the_rest_of_a_file_as_it_is() {
    let partial = "---\ntitle: Tone\n---\nBe {{ tone\u{200b} }}.\n";
    for mark in ["", "\u{feff}"] {
        let text = format!("{mark}{partial}");
        let mut editor = Editor::open(&[("a.md", "{{ tone }}{% include '_tone.md' %}\n")]);
        editor.begin("_tone.md", &text);
        let range = json!({ "start": { "line": 3, "character": 0 }, "end": { "line": 3, "character": 9 } });
        let context = json!({ "range": range, "context": { "diagnostics": [] } });
        let actions = editor.of("textDocument/codeAction", "_tone.md", context);
        let all = actions.as_array().into_iter().flatten().find(|action| action["kind"] == "source.fixAll");
        let changes = all.and_then(|all| all["edit"]["changes"].as_object()).expect("a fix of the whole file");
        let edits: Vec<&Value> = changes.values().flat_map(|edits| edits.as_array().into_iter().flatten()).collect();
        assert_eq!(edits.len(), 1, "{edits:#?}");
        assert_eq!(
            (&edits[0]["newText"], &edits[0]["range"]["start"]["line"]),
            (&json!("Be {{ tone }}.\n"), &json!(3))
        );
    }
}

#[test]
fn diagnostics_have_the_version_of_the_text() {
    let mut editor = Editor::on(&[("a.md", "{{ one }}\n"), ("b.md", "{{ two }}\n")], json!({}));
    editor.begin("a.md", "{{ one }}\n");
    editor.edit("a.md", 7, "{{ one }}\n{{ three }}\n");
    // An editor may have removed the marks of an older text.
    editor.edit("a.md", 8, "{{ one }}\n{{ three }}\n");
    assert!(editor.shown("a.md").iter().any(|found| found.contains("three")));
    let last = |editor: &Editor, path: &str| editor.published[path].last().and_then(|last| last.version);
    assert_eq!((last(&editor, "a.md"), last(&editor, "b.md")), (Some(8), None));
    let close = json!({ "textDocument": { "uri": editor.uri("a.md") } });
    editor.notify("textDocument/didClose", close);
    assert!(!editor.shown("a.md").iter().any(|found| found.contains("three")), "the file is checked as it is saved");
    assert_eq!(last(&editor, "a.md"), None);
}

/// Each change of another program, and the diagnostics afterwards.
#[test]
fn changes_of_other_programs_are_noticed() {
    let user = "---\ndescription: Replies to a message\n---\n{% include \"_shared/tone.md\" %}\n{{ attach(\"_shared/a.txt\") }}\n";
    let files =
        [("user.md", user), ("_shared/tone.md", "Be kind.\n"), ("_shared/a.txt", "data\n"), ("promptshelf.toml", "")];
    let watches = json!({ "didChangeWatchedFiles": { "dynamicRegistration": true, "relativePatternSupport": true } });
    let mut editor = Editor::on(&files, watches);
    assert_eq!(editor.shown("user.md"), [""; 0]);
    let asked = &editor.requests[0];
    assert_eq!((asked.method.as_str(), editor.requests.len()), ("client/registerCapability", 1));
    let registration = &asked.params["registrations"][0];
    assert_eq!(registration["method"], "workspace/didChangeWatchedFiles");
    let pattern = &registration["registerOptions"]["watchers"][0]["globPattern"];
    assert_eq!(pattern, &json!({ "baseUri": position::uri_of(editor.folder.path()), "pattern": "**/*" }));

    let (created, changed, deleted) = (1, 2, 3);
    let tell = |editor: &Editor, changes: &[(&str, i32)]| {
        let changes: Vec<Value> =
            changes.iter().map(|(path, kind)| json!({ "uri": editor.uri(path), "type": kind })).collect();
        editor.notify("workspace/didChangeWatchedFiles", json!({ "changes": changes }));
    };
    let remove = |editor: &Editor, path: &str| fs::remove_file(editor.folder.path().join(path)).expect("a file");
    editor.write("_shared/tone.md", "Be {{ mood }}.\n");
    tell(&editor, &[("_shared/tone.md", changed)]);
    assert!(editor.shown("_shared/tone.md").iter().any(|found| found.contains("mood")));
    editor.write("_shared/tone.md", "Be very kind.\n");
    tell(&editor, &[("_shared/tone.md", changed)]);
    assert_eq!(editor.shown("_shared/tone.md"), [""; 0]);
    // The open text counts, and files that it uses are noticed.
    editor.begin("user.md", user);
    fs::rename(editor.folder.path().join("_shared/tone.md"), editor.folder.path().join("_shared/voice.md"))
        .expect("a file");
    tell(&editor, &[("_shared/tone.md", deleted), ("_shared/voice.md", created)]);
    assert!(editor.shown("user.md").iter().any(|found| found.contains("_shared/tone.md")));
    editor.write("_shared/tone.md", "Be kind.\n");
    tell(&editor, &[("_shared/tone.md", created)]);
    assert_eq!(editor.shown("user.md"), [""; 0]);
    remove(&editor, "_shared/a.txt");
    tell(&editor, &[("_shared/a.txt", deleted)]);
    assert!(editor.shown("user.md").iter().any(|found| found.contains("_shared/a.txt")));
    // Some editors report a removed folder alone.
    fs::remove_dir_all(editor.folder.path().join("_shared")).expect("a folder");
    tell(&editor, &[("_shared", deleted)]);
    assert_eq!(editor.shown("user.md").len(), 2);
    editor.write("broken.md", "{{ nobody }}\n");
    tell(&editor, &[("broken.md", created)]);
    assert!(editor.shown("broken.md").iter().any(|found| found.contains("nobody")));
    remove(&editor, "broken.md");
    tell(&editor, &[("broken.md", deleted)]);
    assert_eq!(editor.shown("broken.md"), [""; 0]);
    editor.write("promptshelf.toml", "[limit]\n");
    tell(&editor, &[("promptshelf.toml", changed)]);
    assert!(editor.shown("promptshelf.toml").iter().any(|found| found.contains("limit")));
    // A folder becomes a library: its file is a partial of this one no longer.
    editor.write("inner/one.md", "{% include \"_two.md\" %}\n");
    editor.write("inner/_two.md", "{{ deep }}\n");
    tell(&editor, &[("inner/one.md", created), ("inner/_two.md", created)]);
    assert!(
        editor.shown("inner/one.md").iter().any(|found| found.contains("_two.md")),
        "{:?}",
        editor.shown("inner/one.md")
    );
    editor.begin("inner/one.md", "---\ndescription: Writes one thing\n---\n{% include \"_two.md\" %}\n");
    editor.write("inner/promptshelf.toml", "");
    tell(&editor, &[("inner/promptshelf.toml", created)]);
    assert_eq!(editor.shown("inner/one.md"), [""; 0]);
    assert!(editor.shown("inner/_two.md").iter().any(|found| found.contains("deep")));
}

/// An editor that reports nothing, or refuses to: files are looked at after each edit.
#[test]
fn files_are_looked_at_without_reports() {
    for watches in [false, true] {
        let can = json!({ "didChangeWatchedFiles": { "dynamicRegistration": watches } });
        let text = "---\ndescription: Replies to a message\n---\n{% include \"_tone.md\" %}\n";
        let mut editor = Editor::refusing(&[("a.md", text), ("_tone.md", "Be kind.\n")], can);
        editor.begin("a.md", text);
        assert_eq!(editor.shown("a.md"), [""; 0]);
        fs::remove_file(editor.folder.path().join("_tone.md")).expect("a file");
        editor.edit("a.md", 2, text);
        assert!(editor.shown("a.md").iter().any(|found| found.contains("_tone.md")));
        assert_eq!(editor.requests.len(), usize::from(watches));
    }
}

/// Unfinished and hostile texts have an answer to every question.
#[test]
fn unfinished_texts_have_answers() {
    let texts = [
        "",
        "---",
        "---\n",
        "{{",
        "{%",
        "{#",
        "{{ \"",
        "---\nname: a\n---\n{{ a.b | c('d\n",
        "{% raw %}{{ x }}",
        "é{{ ü|",
        "\u{feff}---\n---\n{{x}}",
    ];
    let mut editor = Editor::open(&[("a.md", "x")]);
    for text in texts {
        let change = json!({ "textDocument": { "uri": editor.uri("a.md"), "version": 2 }, "contentChanges": [{ "text": text }] });
        editor.notify("textDocument/didChange", change);
        let range = json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 9, "character": 9 } });
        let all = json!({
            "position": { "line": 9, "character": 9 }, "range": range, "context": { "diagnostics": [], "includeDeclaration": true },
            "options": { "tabSize": 2, "insertSpaces": true }, "newName": "x",
        });
        for method in [
            "completion",
            "hover",
            "definition",
            "references",
            "prepareRename",
            "codeAction",
            "formatting",
            "documentSymbol",
            "foldingRange",
            "semanticTokens/full",
            "inlayHint",
        ] {
            let mut params = all.clone();
            if method == "completion" {
                params["context"] = json!({ "triggerKind": 1 });
            }
            editor.of(&format!("textDocument/{method}"), "a.md", params);
        }
    }
}

/// The work of an answer grows with the text, and not with its square.
#[test]
fn long_texts_have_answers() {
    let texts = [
        "{{ a }}\n".repeat(40_000),
        "{{ é }} ".repeat(40_000),
        "{{ a\n".repeat(100_000),
        "{% if a %}\n".repeat(20_000),
    ];
    for text in texts {
        let tokens = outline::tokens("a.md", &text);
        assert!(tokens.len() >= 20_000, "{}", tokens.len());
        outline::folds("a.md", &text);
    }
}

/// One edit costs what it changes: everything else is the same object before and after.
#[test]
fn edit_in_a_large_library_checks_one_file() {
    let text = |name: &str, more: &str| format!("---\ndescription: Writes about {name}\n---\nAbout {name}{more}.\n");
    let files = (0..300).map(|number| (format!("p{number}.md"), text(&number.to_string(), "")));
    let files: Vec<(String, String)> = files.chain([("_tone.md".to_owned(), "Be kind.\n".to_owned())]).collect();
    let folder = TempDir::new().expect("a folder");
    for (path, text) in &files {
        fs::write(folder.path().join(path), text).expect("a file");
    }
    let mut workspace = Workspace::open(folder.path().to_owned(), LanguageServer::new().schemas);
    workspace.check();
    let prompts = |workspace: &Workspace| workspace.catalog.prompts().to_vec();
    let mut edit = |path: &str, text: &str| {
        let (before, texts) = (prompts(&workspace), workspace.texts().cloned().collect::<Vec<_>>());
        workspace.set_text(path, Some(text));
        // What the editor has not reported is not looked at.
        fs::write(folder.path().join("unseen.md"), "{{ nobody }}\n").expect("a file");
        let sent: Vec<String> =
            workspace.check().into_keys().map(|uri| uri.rsplit('/').next().unwrap_or_default().to_owned()).collect();
        fs::remove_file(folder.path().join("unseen.md")).expect("a file");
        let now = prompts(&workspace);
        let checked = now.iter().filter(|now| !before.iter().any(|before| Arc::ptr_eq(before, now))).count();
        let is_read = |now: &&Arc<SourceText>| !texts.iter().any(|before| Arc::ptr_eq(before, now));
        (workspace.texts().filter(is_read).count(), checked, sent)
    };
    assert_eq!(edit("p7.md", &text("7", " and 8")), (1, 1, Vec::new()));
    assert_eq!(edit("p7.md", &text("7", " {{ nobody }}")), (1, 0, vec!["p7.md".to_owned()]));
    assert_eq!(edit("p8.md", &text("8", " and 9")), (1, 1, Vec::new()));
    assert_eq!(edit("_tone.md", "Be very kind.\n"), (1, 0, Vec::new()));
    assert_eq!(edit("p7.md", &text("7", "")), (1, 1, vec!["p7.md".to_owned()]));
    // A file that is not saved yet.
    for more in ["", " things"] {
        let (_, checked, _) = edit("new.md", &text("new", more));
        assert_eq!(checked, 1);
    }
}

/// Prints how long an editor waits in a large library. Run it in an optimized program:
/// `cargo test --release -p promptshelf-author --lib -- --ignored --nocapture waiting_times`
#[test]
#[ignore = "it measures, and proves nothing"]
fn waiting_times_in_a_large_library() {
    const FILES: usize = 10_000;
    let prompt = |number: usize, more: &str| {
        let text = format!(
            "---\ndescription: Writes about topic {number}\narguments:\n  - name: topic\n    description: The topic, for example {number}\n    \
             required: true\n  - name: tone\n    description: The tone, for example kind\n    enum: [kind, formal]\n    default: kind\n---\n\
             Write about {{{{ topic | upper }}}} in folder {}.\n{more}\n{{% include \"_shared/tone.md\" %}}\n",
            number / 100
        );
        (format!("team{:02}/prompt{number:05}.md", number / 100), text)
    };
    let mut files: Vec<(String, String)> = (0..FILES).map(|number| prompt(number, "")).collect();
    files.push(("_shared/tone.md".to_owned(), "Write in a {{ tone }} tone.\n".to_owned()));
    files.push(("promptshelf.toml".to_owned(), String::new()));
    let start = std::time::Instant::now();
    let watches = json!({ "didChangeWatchedFiles": { "dynamicRegistration": true } });
    let mut editor = Editor::on(&files, watches);
    let (path, text) = prompt(4_200, "");
    editor.begin(&path, &text);
    editor.begin("_shared/tone.md", "Write in a {{ tone }} tone.\n");
    editor.shown(&path);
    eprintln!("first answer: {} ms", start.elapsed().as_millis());
    let mut version = 1;
    let median = |what: &str, count: usize, act: &mut dyn FnMut(usize)| {
        let mut times: Vec<_> = (0..count)
            .map(|round| {
                let start = std::time::Instant::now();
                act(round);
                start.elapsed()
            })
            .collect();
        times.sort();
        let ms = |round: usize| times[round].as_secs_f64() * 1e3;
        eprintln!("{what}: {:.1} ms, median {:.1} ms, most {:.1} ms", ms(0), ms(count / 2), ms(count - 1));
    };
    let mut wait = |editor: &mut Editor, shown: &str, path: &str, text: &str| {
        version += 1;
        let before = editor.published.get(shown).map_or(0, Vec::len);
        editor.edit(path, version, text);
        while editor.published.get(shown).map_or(0, Vec::len) == before {
            editor.receive();
        }
    };
    let broken = prompt(4_200, "{{ tpic }}").1;
    median("edit of a prompt", 40, &mut |round| {
        wait(&mut editor, &path, &path, if round.is_multiple_of(2) { &broken } else { &text });
    });
    let more = |round: usize| {
        format!("Write in a {{{{ tone }}}} tone{}.\n", if round.is_multiple_of(2) { " {{ tne }}" } else { "" })
    };
    median("edit of a partial", 10, &mut |round| {
        wait(&mut editor, "_shared/tone.md", "_shared/tone.md", &more(round));
        editor.shown(&path);
    });
    let at = |line: u32, character: u32| json!({ "position": { "line": line, "character": character }, "context": { "triggerKind": 1, "includeDeclaration": true } });
    median("completion of an argument", 20, &mut |_| drop(editor.of("textDocument/completion", &path, at(11, 16))));
    median("completion of a path", 20, &mut |_| drop(editor.of("textDocument/completion", &path, at(13, 20))));
    median("hover", 20, &mut |_| drop(editor.of("textDocument/hover", &path, at(11, 18))));
    median("workspace symbols", 20, &mut |_| {
        editor.request("workspace/symbol", json!({ "query": "prompt0999" }));
    });
    median("all workspace symbols", 20, &mut |_| drop(editor.request("workspace/symbol", json!({ "query": "" }))));
    median("references of an argument", 5, &mut |_| drop(editor.of("textDocument/references", &path, at(11, 16))));
    median("references of a partial", 5, &mut |_| drop(editor.of("textDocument/references", &path, at(13, 18))));
    median("references of an argument in a partial", 1, &mut |_| {
        editor.of("textDocument/references", "_shared/tone.md", at(0, 16));
    });
    median("inlay hints", 5, &mut |_| {
        editor.of(
            "textDocument/inlayHint",
            "_shared/tone.md",
            json!({ "range": { "start": { "line": 0, "character": 0 }, "end": { "line": 9, "character": 0 } } }),
        );
    });
}

/// An access rule that keeps the old name of a prompt closes nothing.
// req: S-610
#[test]
fn access_rules_follow_the_new_name_of_a_prompt() {
    let rules =
        "[[access]]\nroles = ['a']\nprompts = [\n  'greet', # greet\n  \"greet\",\n  \"greet*\", \"greeting\",\n]\n";
    let renamed = super::rename_prompt_references("promptshelf.toml", rules, "greet", "hello").expect("it is named");
    assert_eq!(renamed, rules.replace("'greet'", "'hello'").replace("\"greet\"", "\"hello\""));
    let replaced = "---\ndeprecated:\n  replacement: greet\n---\ngreet {% raw %}{{ prompt('greet') }}{% endraw %}";
    let renamed = super::rename_prompt_references("old.md", replaced, "greet", "hello").expect("it is named");
    assert_eq!(renamed, replaced.replace("replacement: greet", "replacement: hello"));
    assert_eq!(super::rename_prompt_references("promptshelf.toml", "[[access]", "greet", "hello"), None);
}

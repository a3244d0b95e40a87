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
}

impl Editor {
    /// Opens all files of a library.
    fn open(files: &[(&str, &str)]) -> Editor {
        let folder = TempDir::new().expect("a folder");
        for (path, text) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().expect("a folder around it")).expect("folders");
            fs::write(path, text).expect("a file");
        }
        let (server, connection) = Connection::memory();
        let server = thread::spawn(move || LanguageServer::new().serve(&server));
        let mut editor = Editor { connection: Some(connection), server: Some(server), folder, next: 0 };
        let root = position::uri_of(editor.folder.path());
        let can =
            json!({ "workspace": { "workspaceEdit": { "resourceOperations": ["rename"], "documentChanges": true } } });
        let folders = json!([{ "uri": root, "name": "x" }]);
        let params = json!({ "processId": null, "rootUri": root, "capabilities": can, "workspaceFolders": folders });
        editor.request("initialize", params);
        editor.notify("initialized", json!({}));
        for (path, text) in files {
            editor.begin(path, text);
        }
        editor
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
            let message = self.connection.as_ref().expect("an open connection").receiver.recv();
            if let Message::Response(response) = message.expect("an answer")
                && response.id == id
            {
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
    assert!(link.ends_with("diagnostics.md#unknown-key"), "{link}");
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

    let tokens = editor.of("textDocument/semanticTokens/full", "caller.md", json!({}));
    let data: Vec<u64> = tokens["data"].as_array().into_iter().flatten().filter_map(Value::as_u64).collect();
    let (mut line, mut column, mut words) = (0, 0, Vec::new());
    for token in data.chunks(5) {
        let [down, right, length, kind, _] = *token else { panic!("{token:?}") };
        column = if down == 0 { column + right } else { right };
        line += down;
        let text = CALLER.lines().nth(usize::try_from(line).expect("small")).expect("a line");
        let (start, length) = (usize::try_from(column).expect("small"), usize::try_from(length).expect("small"));
        let kind = outline::TOKEN_TYPES[usize::try_from(kind).expect("small")];
        words.push(format!("{kind} {}", &text[start..start + length]));
    }
    let expected = [
        "function role",
        "string \"user\"",
        "function prompt",
        "string \"review\"",
        "parameter code",
        "variable text",
        "function role",
        "string \"assistant\"",
    ];
    assert_eq!(words, expected);
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

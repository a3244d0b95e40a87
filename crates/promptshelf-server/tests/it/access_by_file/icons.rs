//! Icons that are closed files: in lists, links and the description of the server.

use std::fs;

use promptshelf_core::Code;
use promptshelf_mcp::HttpOptions;
use promptshelf_server::Library;
use promptshelf_service::Caller;
use promptshelf_source::Files;
use serde_json::{Value, json};

use super::{callers, send};

const MANIFEST: &str = r#"
[server]
icons = ["closed/logo.svg", "open.svg"]

[[resources]]
uri = "docs://open"
file = "open.txt"
icons = ["closed/logo.svg", "open.svg"]

[[access]]
folders = ["closed"]
roles = ["one"]
"#;

fn svg(text: &str) -> String {
    format!("<svg xmlns='http://www.w3.org/2000/svg'><desc>{text}</desc></svg>")
}

// req: S-217
#[tokio::test]
async fn icon_of_closed_file_is_shown_only_under_the_same_rule() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join("closed")).expect("a folder");
    let front = "---\ndescription: A greeting\nicons: [closed/logo.svg, open.svg]\n---\n";
    for (path, text) in [
        ("promptshelf.toml", MANIFEST.to_owned()),
        ("open.svg", svg("open")),
        ("open.txt", "Open.".to_owned()),
        ("closed/logo.svg", svg("secret")),
        ("closed/inner.md", format!("{front}Hello")),
        ("outer.md", format!("{front}Hello {{{{ link('docs://open') }}}}")),
    ] {
        fs::write(folder.path().join(path), text).expect("a file");
    }
    let library = Library::builder().source(Files::folder(folder.path())).build().expect("a library");
    let catalog = library.catalog();
    let uri = |path: &str| {
        catalog.find("outer").and_then(|prompt| {
            prompt.icons().iter().find(|icon| icon.file.as_deref() == Some(path)).map(|icon| icon.src.to_string())
        })
    };
    let (closed, open) = (uri("closed/logo.svg").expect("an icon"), uri("open.svg").expect("an icon"));
    let service = library.server().http(HttpOptions::default());

    let greeting = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" } });
    let requests =
        [("prompts/list", json!({})), ("resources/list", json!({})), ("prompts/get", json!({ "name": "outer" }))];
    let with = |more: (&'static str, Value)| requests.iter().cloned().chain([more]).collect::<Vec<_>>();
    for (revision, requests) in
        [("2025-11-25", with(("initialize", greeting))), ("2026-07-28", with(("server/discover", json!({}))))]
    {
        for (roles, caller) in callers().into_iter().chain([(vec!["one"], Caller::local())]) {
            for (method, params) in &requests {
                let answer = send(&service, &caller, revision, method, params.clone()).await;
                let case = format!("{roles:?} {method} in {revision}: {answer}");
                assert!(answer.contains(&open), "the open icon: {case}");
                let inner = (*method == "prompts/list" && roles.contains(&"one")).then_some(&closed);
                // A link is made for one caller, so it has the icons that the caller may read.
                let linked = (*method == "prompts/get" && roles.contains(&"one")).then_some(&closed);
                let count = [inner, linked].iter().flatten().count();
                assert_eq!(answer.matches(&closed).count(), count, "the closed icon: {case}");
            }
        }
    }
    let found: Vec<_> = library.diagnostics().iter().map(|found| (found.code, found.message.clone())).collect();
    let message = |owner| {
        let text = "has an access rule that requires more: lists leave it out";
        (Code::RestrictedContent, format!("the icon `closed/logo.svg` of {owner} {text}"))
    };
    for owner in ["the server", "the prompt `outer`", "the resource `docs://open`"] {
        assert!(found.contains(&message(owner)), "{owner}: {found:?}");
    }
    assert_eq!(found.len(), 3, "{found:?}");
}

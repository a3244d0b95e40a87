//! `promptshelf.toml`: its keys, and every mistake with its position.

use std::time::Duration;

use promptshelf_core::invisible::InvisiblePolicy;
use promptshelf_source::{Loader, Source as _};

use crate::library::{Library, WatchedLibrary, lines};

/// Returns the mistakes in a manifest that a server starts with.
fn mistakes(manifest: &str) -> Vec<String> {
    let library = Library::of(&[("promptshelf.toml", manifest)]);
    let error = library.try_read().expect_err("it is invalid");
    assert!(error.is_invalid_manifest());
    lines(error.diagnostics())
}

#[test]
fn every_key_is_read() {
    let library = Library::of(&[
        (
            "promptshelf.toml",
            r#"
[server]
name = "shelf"
title = "Shelf"
version = 1.2
description = "d"
website-url = "https://example.com"
instructions = "i"
icons = ["icon.svg", "https://example.com/i.png"]
[list]
page-size = 50
ttl = 5
[limits]
value-bytes = 1_000
output-bytes = 0xff
attachment-bytes = 3
messages = 4
fuel = 5
include-depth = 6
resource-bytes = 7
[arguments]
invisible = "reject"
[roots]
here = "."
"#,
        ),
        ("icon.svg", "<svg/>"),
        ("a.md", "hello"),
    ]);
    assert_eq!(library.mistakes(), [""; 0]);
    let definitions = library.read();
    let about = definitions.about;
    assert_eq!(about.name.as_deref(), Some("shelf"));
    assert_eq!(about.version.as_deref(), Some("1.2"));
    assert_eq!(about.website_url.as_deref(), Some("https://example.com"));
    assert_eq!(about.icons.len(), 2);
    assert!(about.icons[0].src.starts_with("data:image/svg+xml;base64,"));
    assert_eq!((definitions.policy.page_size, definitions.policy.ttl), (50, Duration::from_secs(5)));
    assert_eq!(definitions.policy.value_bytes, 1_000);
    assert_eq!(definitions.policy.invisible, InvisiblePolicy::Reject);
    let budget = definitions.policy.budget;
    assert_eq!((budget.output_bytes, budget.attachment_bytes, budget.messages), (255, 3, 4));
    assert_eq!((budget.fuel, budget.include_depth), (5, 6));
}

#[test]
fn every_mistake_is_reported_at_its_position() {
    assert_eq!(
        mistakes(
            r#"[serve]
[server]
nmae = "x"
title = ["x"]
website-url = "example.com"
icons = [{}]
[list]
page-size = 0
ttl = "1m"
[limits]
file-bytes = -1
fiel-bytes = 1
[roots]
a = ["x"]
"#
        ),
        [
            "promptshelf.toml:1:2: error[unknown-key]: unknown key `serve` (did you mean `server`?)",
            "promptshelf.toml:3:1: error[unknown-key]: unknown key `nmae` in [server] (did you mean `name`?)",
            "promptshelf.toml:4:9: error[wrong-type]: `title`: expected text, found a list",
            "promptshelf.toml:5:15: error[invalid-value]: `website-url`: expected a web address that starts with `https://`, got `example.com`",
            "promptshelf.toml:6:10: error[missing-key]: missing key `src` in an icon",
            "promptshelf.toml:8:13: error[invalid-value]: `page-size`: expected a whole number of at least 1, got 0",
            "promptshelf.toml:9:7: error[wrong-type]: `ttl`: expected a whole number of at least 0, found text",
            "promptshelf.toml:11:14: error[invalid-value]: `file-bytes`: expected a whole number of at least 1, got -1",
            "promptshelf.toml:12:1: error[unknown-key]: unknown key `fiel-bytes` in [limits] (did you mean `file-bytes`?)",
            "promptshelf.toml:14:5: error[wrong-type]: `a`: expected text, found a list",
        ]
    );
}

#[test]
fn every_mistake_in_a_resource_is_reported_at_its_position() {
    assert_eq!(
        mistakes(
            r#"[roots]
project = "../project"
[[resources]]
name = "nothing"
[[resources]]
uri = "a://b"
uri-template = "a://{b}"
file = "x"
[[resources]]
uri = "a://b"
file = "x"
text = "y"
[[resources]]
uri = "a://{b}"
file = "x"
[[resources]]
uri-template = "a://{name}"
file = "{nmae}.md"
[[resources]]
uri = "a://b"
file = "../x"
[[resources]]
uri = "a://b"
file = "/etc/passwd"
[[resources]]
uri = "a://b"
file = "x{"
[[resources]]
uri = "a://b"
files = "*.md"
[[resources]]
uri-template = "a://{+path}"
files = "*.md"
[[resources]]
uri = "a://{+path}"
files = "[z"
[[resources]]
uri = "a://b"
file = "x"
root = "projct"
audience = ["users", "user"]
priority = 2
mime-type = "markdown"
fiel = "x"
[[resources]]
uri-template = "a://{b}"
text = "x"
variables = [{ naem = "b" }]
"#
        ),
        [
            "promptshelf.toml:4:1: error[missing-key]: a resource must have one of `uri` and `uri-template`",
            "promptshelf.toml:4:1: error[missing-key]: a resource must have one of `file`, `files` and `text`",
            "promptshelf.toml:7:16: error[invalid-value]: a resource cannot have both `uri` and `uri-template`",
            "promptshelf.toml:12:8: error[invalid-value]: a resource cannot have both `file` and `text`",
            "promptshelf.toml:14:7: error[invalid-value]: a URI with variables is a URI template (use `uri-template` instead of `uri`)",
            "promptshelf.toml:18:8: error[undeclared-argument]: the path uses `{nmae}`, but the URI has no such variable (did you mean `name`?)",
            "promptshelf.toml:21:8: error[outside-library]: `file`: expected a path inside the library or its root (declare the folder under [roots], select it with `root`, and use a path relative to it)",
            "promptshelf.toml:24:8: error[outside-library]: `file`: expected a path inside the library or its root (declare the folder under [roots], select it with `root`, and use a path relative to it)",
            "promptshelf.toml:27:8: error[invalid-value]: `x{`: missing `}` after `{`",
            "promptshelf.toml:29:7: error[invalid-value]: with `files`, the URI must contain the file's path (add `{+path}` to it)",
            "promptshelf.toml:32:16: error[invalid-value]: with `files`, every file has a URI of its own (use `uri` with `{+path}`)",
            "promptshelf.toml:36:9: error[invalid-value]: invalid path pattern `[z`: unclosed character class; missing ']'",
            "promptshelf.toml:40:8: error[invalid-value]: unknown root `projct` (did you mean `project`?)",
            "promptshelf.toml:41:13: error[invalid-value]: `audience`: expected one of `user` and `assistant`, got `users` (did you mean `user`?)",
            "promptshelf.toml:42:12: error[invalid-value]: `priority`: expected a number from 0 to 1, got 2",
            "promptshelf.toml:43:13: error[invalid-value]: `mime-type`: expected a MIME type such as `text/markdown`, got `markdown`",
            "promptshelf.toml:44:1: error[unknown-key]: unknown key `fiel` in [[resources]] (did you mean `file`?)",
            "promptshelf.toml:48:16: warning[unknown-key]: unknown key `naem` in an argument (did you mean `name`?)",
            "promptshelf.toml:48:16: error[missing-key]: missing key `name` in an argument",
        ]
    );
}

#[test]
fn invalid_key_of_a_resource_is_not_reported_as_missing() {
    assert_eq!(
        mistakes(
            r#"[[resources]]
uri = ["a://b"]
file = "x"
[[resources]]
uri = "a://c"
text = { a = 1 }
[[resources]]
uri = "a://d"
file = "x"
text = []
variables = [{ name = "b" }, 1, []]
"#
        ),
        [
            "promptshelf.toml:2:7: error[wrong-type]: `uri`: expected text, found a list",
            "promptshelf.toml:6:8: error[wrong-type]: `text`: expected text, found a mapping",
            "promptshelf.toml:10:8: error[wrong-type]: `text`: expected text, found a list",
            "promptshelf.toml:11:33: error[wrong-type]: an argument: expected a mapping, found a list",
        ]
    );
}

#[test]
fn sections_of_a_wrong_type_are_reported_with_their_syntax() {
    assert_eq!(
        mistakes(
            "server = 1\nlist = []\nroots = \"x\"\nlimits.fuel = 99999999999999999999\n[resources]\nuri = \"a://b\"\n"
        ),
        [
            "promptshelf.toml:1:10: error[wrong-type]: `server`: expected a table, found a number (write it as a section, `[server]`)",
            "promptshelf.toml:2:8: error[wrong-type]: `list`: expected a table, found a list (write it as a section, `[list]`)",
            "promptshelf.toml:3:9: error[wrong-type]: `roots`: expected a table, found text (write it as a section, `[roots]`)",
            "promptshelf.toml:4:15: error[invalid-value]: `fuel`: expected a whole number below 2^63, got 99999999999999999999",
            "promptshelf.toml:5:1: error[wrong-type]: `resources`: expected a list of tables, found a mapping (write `[[resources]]`, with two brackets)",
        ]
    );
    assert_eq!(
        mistakes("resources = [1]"),
        [
            "promptshelf.toml:1:14: error[wrong-type]: `resources`: expected a table, found a number (write `[[resources]]`, with two brackets)"
        ]
    );
}

/// A value that no key accepts.
const NONSENSE: &str = "[[[{ no = \"such value\" }]]]";

#[test]
fn reader_checks_every_key_of_the_schema() {
    let schema = promptshelf_source::syntax::library_schema();
    let sections = schema["properties"].as_object().expect("sections");
    let mut count = 0;
    for (section, about) in sections {
        let (head, table) = match about["type"].as_str() {
            Some("array") => (format!("[[{section}]]"), &about["items"]),
            _ => (format!("[{section}]"), about),
        };
        assert!(about["description"].is_string(), "{section}");
        for (key, about) in table["properties"].as_object().into_iter().flatten() {
            let found = mistakes(&format!("{head}\n{key} = {NONSENSE}\n"));
            assert!(found.iter().any(|line| line.contains("error[wrong-type]")), "{section}.{key}: {found:?}");
            assert!(!found.iter().any(|line| line.contains("unknown-key")), "{section}.{key}: {found:?}");
            assert!(about["description"].is_string(), "{section}.{key}");
            count += 1;
        }
    }
    assert!(sections.len() == 7 && count > 40, "{count}");
}

#[test]
fn invalid_toml_is_an_error_of_one_line() {
    let library = Library::of(&[("promptshelf.toml", "\u{feff}[server]\nname = \"a\nfoo = 1\n[list\n")]);
    let error = library.try_read().expect_err("it is no TOML");
    assert!(error.is_invalid_manifest());
    let place = library.path("promptshelf.toml");
    let sentence = error.to_string();
    assert!(sentence.starts_with(&format!("{}:2:", place.display())), "{sentence}");
    assert!(sentence.ends_with("further mistake") || sentence.ends_with("further mistakes"), "{sentence}");
    assert!(!sentence.contains('\n'), "{sentence}");

    library.write("promptshelf.toml", b"\xff");
    let error = library.try_read().expect_err("it is not UTF-8");
    assert_eq!(error.to_string(), format!("{}:1:1: this file is not UTF-8", place.display()));
    library.write("promptshelf.toml", "resources = 1");
    let error = library.try_read().expect_err("it is no list");
    assert!(error.to_string().contains("write `[[resources]]`, with two brackets"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn broken_edit_keeps_the_last_good_manifest() {
    let library = Library::of(&[("promptshelf.toml", "[server]\nname = \"first\""), ("a.md", "hello")]);
    let mut watched = library.watch().await;
    let name = |catalog: &promptshelf_core::Catalog| catalog.about().name.clone();

    library.write("promptshelf.toml", "[server]\nname = ");
    watched
        .until("the mistake is reported", |_, report| {
            lines(&report.diagnostics).iter().any(|line| line.contains("promptshelf.toml:2:"))
        })
        .await;
    assert_eq!(name(&watched.loader.handle().current()).as_deref(), Some("first"));
    assert_eq!(watched.names(), ["a"]);

    library.write("promptshelf.toml", "");
    watched
        .until("the empty file is reported", |_, report| {
            lines(&report.diagnostics).iter().any(|line| line.contains("the file is empty"))
        })
        .await;
    assert_eq!(name(&watched.loader.handle().current()).as_deref(), Some("first"));

    library.write("promptshelf.toml", "[server]\nname = \"second\"");
    watched.until("the new name", |catalog, _| name(catalog).as_deref() == Some("second")).await;
    assert!(!watched.mistakes().iter().any(|fault| fault.contains("promptshelf.toml")));
    library.remove("promptshelf.toml");
    watched.until("no name", |catalog, _| name(catalog).is_none()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn roots_of_a_new_manifest_are_watched() {
    let library =
        Library::of(&[("a.md", "---\narguments:\n- {name: x, complete: {files: '*.txt', root: other}}\n---\n{{ x }}")]);
    let other = library.outside().join("other");
    std::fs::create_dir(&other).expect("folder");
    let mut watched = WatchedLibrary::of(library.source().poll_interval(None)).await;
    assert_eq!(watched.names(), [""; 0]);
    library.write("promptshelf.toml", "[roots]\nother = \"../other\"");
    watched.until("the prompt is served", |catalog, _| catalog.find("a").is_some()).await;

    std::fs::write(other.join("one.txt"), "").expect("file");
    watched
        .until("the path is completed", |catalog, _| {
            let argument = &catalog.find("a").expect("still there").arguments()[0];
            matches!(argument.completion(), Some(promptshelf_core::CompletionSource::RootPaths { paths, .. }) if **paths == ["one.txt"])
        })
        .await;
}

#[test]
fn missing_root_is_reported_and_the_rest_is_served() {
    let library = Library::of(&[("promptshelf.toml", "[roots]\nx = \"../nowhere\""), ("a.md", "hello")]);
    let mistakes = library.mistakes();
    assert_eq!(mistakes.len(), 1);
    assert!(
        mistakes[0].starts_with("promptshelf.toml:2:5: error[unreadable]: cannot read the root `x`: "),
        "{mistakes:?}"
    );
    assert!(library.source().read().is_ok());
    assert!(Loader::open(vec![Box::new(library.source())]).is_ok());
}

#[test]
fn operator_settings_are_refused_with_the_file_they_belong_in() {
    let found = mistakes("[auth]\nissuer = \"x\"\n[limits]\nfuel = 1\nsubscriptions = 1\n[tls]\n");
    let help =
        "(move it to server.toml, the operator's file: `serve --config FILE` or ~/.config/promptshelf/server.toml)";
    assert_eq!(
        found,
        [
            format!("promptshelf.toml:1:2: error[operator-setting]: [auth] belongs in server.toml {help}"),
            format!(
                "promptshelf.toml:5:1: error[operator-setting]: `subscriptions` in [limits] belongs in server.toml {help}"
            ),
            format!("promptshelf.toml:6:2: error[operator-setting]: [tls] belongs in server.toml {help}"),
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn operator_settings_in_an_edit_keep_the_last_good_manifest() {
    let library = Library::of(&[("promptshelf.toml", "[server]\nname = \"first\""), ("a.md", "hello")]);
    let mut watched = library.watch().await;
    library.write("promptshelf.toml", "[server]\nname = \"second\"\n[http]\nallow-remote = true\n");
    watched
        .until("it is reported", |_, report| {
            lines(&report.diagnostics).iter().any(|line| line.contains("error[operator-setting]: [http] belongs"))
        })
        .await;
    assert_eq!(watched.loader.handle().current().about().name.as_deref(), Some("first"));
}

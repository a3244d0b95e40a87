//! Diagnostics of `check`: a folder of thirty files with one mistake each, and a folder of a hundred valid files.

use insta::assert_snapshot;

use crate::program::{Folder, library, run};

/// A prompt that is valid apart from `arguments` and `body`.
fn prompt(arguments: &str, body: &str) -> String {
    format!("---\ndescription: Greets\n{arguments}---\n{body}\n")
}

fn argument(keys: &str) -> String {
    prompt(&format!("arguments:\n  - name: who\n    description: Whom to greet\n    {keys}\n"), "Hello {{ who }}!")
}

/// Path, text, and the line at which the mistake is reported.
fn mistakes() -> Vec<(&'static str, String, usize)> {
    let plain = |body: &str| prompt("", body);
    let secret = ["gh", "p_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"].concat();
    vec![
        ("01-yaml.md", "---\ndescription: \"Greets\nicons: []\n---\nHello\n".to_owned(), 2),
        ("02-open.md", "---\ndescription: Greets\nHello\n".to_owned(), 1),
        ("03-tab.md", "---\ndescription: Greets\narguments:\n\t- name: who\n---\nHello {{ who }}\n".to_owned(), 4),
        ("04-key.md", "---\ndescription: Greets\ntitel: Hello\n---\nHello\n".to_owned(), 3),
        ("05-kind.md", "---\ndescription: [Greets]\n---\nHello\n".to_owned(), 2),
        (
            "06-undeclared.md",
            prompt("arguments:\n  - name: who\n    description: Whom\n", "Hello {{ who }}{{ wo }}"),
            7,
        ),
        ("07-unused.md", prompt("arguments:\n  - name: who\n    description: Whom\n", "Hello"), 4),
        ("08-type.md", argument("type: strng"), 6),
        (
            "09-default.md",
            argument("{type: integer, default: many}")
                .replace("{type: integer, default: many}", "type: integer\n    default: many"),
            7,
        ),
        ("10-enum.md", argument("enum: [Ada, Grace]\n    default: Linus"), 7),
        ("11-pattern.md", argument("pattern: \"[a-z\""), 6),
        ("12-bounds.md", argument("minLength: 9\n    maxLength: 3"), 6),
        ("13-complete.md", argument("complete: { file: lists/names.txt }"), 6),
        ("14-by.md", argument("complete: { by: team, core: [Ada] }"), 6),
        (
            "15-circle.md",
            prompt(
                "arguments:\n  - name: a\n    description: A\n    complete: { by: b, x: [y] }\n  - name: b\n    description: B\n    complete: { by: a, y: [x] }\n",
                "Hello {{ a }} {{ b }}",
            ),
            6,
        ),
        ("16-partial.md", plain("Hello\n{% include \"_shared/nice.md\" %}"), 5),
        ("17-outside.md", plain("Hello\n{% include \"../secret.md\" %}"), 5),
        ("18-loop.md", plain("Hello\n{% include \"_loop.md\" %}"), 1),
        ("19-attachment.md", plain("Look:\n{{ attach(\"chart.pgn\") }}"), 5),
        ("20-resource.md", plain("Look:\n{{ attach(\"docs://stile\") }}"), 5),
        ("21-unclosed.md", plain("{% if true %}Hello"), 4),
        ("22-filter.md", prompt("arguments:\n  - name: who\n    description: Whom\n", "Hello\n{{ who | fense }}"), 8),
        ("23-role.md", plain("Hello\n{{ role(\"system\") }}\nBe nice."), 5),
        ("24-empty.md", plain(""), 4),
        ("25-name.md", "---\ndescription: Greets\nname: say hello\n---\nHello\n".to_owned(), 3),
        (
            "26-twice.md",
            prompt(
                "arguments:\n  - name: who\n    description: Whom\n  - name: who\n    description: Whom\n",
                "Hello {{ who }}",
            ),
            6,
        ),
        ("27-bidi.md", plain("Hello\nBe nice.\u{202e}"), 5),
        ("28-secret.md", plain(&format!("Hello\nUse {secret}.")), 5),
        ("29-undescribed.md", "Hello\n".to_owned(), 1),
        ("30-required.md", argument("required: yes"), 6),
    ]
}

#[test]
fn thirty_mistakes_are_reported_at_their_lines() {
    let mistakes = mistakes();
    assert_eq!(mistakes.len(), 30);
    let mut files: Vec<(&str, &str)> = mistakes.iter().map(|(path, text, _)| (*path, text.as_str())).collect();
    files.extend([
        ("_loop.md", "{% include \"_loop.md\" %}\n"),
        ("promptshelf.toml", "[[resources]]\nuri = \"docs://style\"\ntext = \"Be nice.\"\n"),
        ("chart.png", "no picture"),
    ]);
    let folder = library(&files);
    let found = found(&folder);
    for (path, _, line) in &mistakes {
        let path = if path.starts_with("18") { "_loop.md" } else { path };
        let of_file = || found.iter().filter(|found| found["location"]["path"] == format!("prompts/{path}"));
        assert!(
            of_file().any(|found| found["location"]["line"] == *line),
            "{path}:{line}: {:#?}",
            of_file().collect::<Vec<_>>()
        );
    }
    assert_snapshot!(lines(&found));
}

/// Returns the diagnostics of `check --format json`.
fn found(folder: &Folder) -> Vec<serde_json::Value> {
    let output = run(folder, &["check", "prompts", "--format", "json"]);
    let json =
        output.split_once("----- stdout -----\n").and_then(|(_, rest)| rest.split_once("----- stderr")).expect("both");
    let found: serde_json::Value = serde_json::from_str(json.0).expect("valid JSON");
    found["items"].as_array().expect("a list").clone()
}

/// Formats one diagnostic per line.
fn lines(found: &[serde_json::Value]) -> String {
    let lines = found.iter().map(|found| {
        let place = &found["location"];
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        format!(
            "{}:{}:{}: {}[{}]: {} ({})",
            text(&place["path"]),
            place["line"],
            place["column"],
            text(&found["severity"]),
            text(&found["code"]),
            text(&found["message"]),
            text(&found["help"]),
        )
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Mistakes in the manifest, the keys, the arguments and the text are all reported together.
#[test]
fn no_mistake_hides_another() {
    let keys = "description: Reviews: code\ntitle: \"Open\nversion: []\n";
    let arguments = "arguments:\n  - name: who\n    description: Whom\n    type: strng\n    default: x\n    minimum: 3\n  - name: day\n    type: date\n    default: soon\n";
    let text = "Hello {{ who }} {{ wo | fense }} {{ my day }}\n{% if who %}\n{{ attach(\"big.bin\") }}{% include \"_uses.md\" %}\n{% endfor %}";
    let folder = library(&[
        ("all.md", &format!("---\n{keys}{arguments}---\n{text}\n")),
        (
            "unread.md",
            "---\ndescription: Greets\narguments:\n  - name: who\n    description: a: b\n  - name: \"wo\n---\n{{ who }} {{ wo }} {{ who | fense }}\n",
        ),
        ("late.md", "\n---\ndescription: Greets\n---\nHello\n"),
        ("_uses.md", "{{ mood }}\n"),
        ("big.bin", &"x".repeat(2_000)),
        (
            "promptshelf.toml",
            "nmae = \"x\"\n[limits]\nfile-bytes = 1000\nvalue-bytes = \"many\"\n[http]\naddress = 3\n[[resources]]\nuri = \"docs://x\"\nfil = \"none.md\"\n",
        ),
    ]);
    assert_snapshot!(lines(&found(&folder)));
}

#[test]
fn sarif_and_github_report_equal_positions() {
    let folder = library(&[("hello.md", "---\ndescription: Greets\ntitel: Hello\n---\nHello {{ who }}\n")]);
    let [sarif, github] = ["sarif", "github"].map(|format| run(&folder, &["check", "prompts", "--format", format]));
    assert_snapshot!(format!("{sarif}\n{github}"));
}

/// `cargo xtask guard` measures the cost of such a check.
#[test]
fn hundred_valid_files_pass() {
    let text =
        argument("enum: [Ada, Grace, Linus]\n    default: Ada") + &"A line of text with {{ who }} in it.\n".repeat(50);
    let names: Vec<String> = (0..100).map(|number| format!("folder-{}/prompt-{number}.md", number % 7)).collect();
    let files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), text.as_str())).collect();
    let folder = library(&files);
    let output = run(&folder, &["check", "prompts", "--deny", "warnings"]);
    assert!(output.contains("prompts: 100 prompts, no findings"), "{output}");
}

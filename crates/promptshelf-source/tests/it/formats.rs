//! Prompt files of other programs, in the folders of those programs.

use promptshelf_core::{Catalog, ContentBlock, Part, Prompt, RawArguments, Role, Variables};
use promptshelf_source::{Files, Loader};
use proptest::prelude::*;

use crate::library::{Library, lines};

pub(crate) fn open_loader(library: &Library) -> Loader {
    Loader::open(vec![Box::new(library.source())]).expect("it can be read")
}

/// Renders a prompt; returns the role and the text or the file of each message.
pub(crate) fn messages_of(catalog: &Catalog, name: &str, given: &[(&str, &str)]) -> Vec<String> {
    let prompt = catalog.find(name).unwrap_or_else(|| panic!("there is no {name}"));
    let given = RawArguments::from_iter(given.iter().copied());
    let bound = prompt.bind(&given, 1 << 20).unwrap_or_else(|problems| panic!("{name}: {problems:?}"));
    let parts = prompt.render(catalog.render_context(), &bound).expect("it renders");
    parts.iter().map(shown).collect()
}

fn shown(part: &Part) -> String {
    let Part::Message(message) = part else { return "a resource of the server".to_owned() };
    let role = if message.role == Role::User { "user" } else { "assistant" };
    match &message.content {
        ContentBlock::Text(text) => format!("{role}: {}", text.text),
        ContentBlock::Resource(resource) => format!("{role}: <{}>", resource.contents.uri),
        other => format!("{role}: [{}]", other.kind()),
    }
}

pub(crate) fn arguments_of(catalog: &Catalog, name: &str) -> Vec<String> {
    let prompt = catalog.find(name).unwrap_or_else(|| panic!("there is no {name}"));
    let shown = |argument: &promptshelf_core::Argument| {
        format!("{}{}", argument.name(), if argument.required() { "!" } else { "" })
    };
    prompt.arguments().iter().map(shown).collect()
}

#[test]
fn one_file_of_each_format_is_served() {
    let library = Library::of(&[
        (
            ".claude/commands/git/fix.md",
            "---\nargument-hint: <issue> [priority]\nallowed-tools: Bash(git:*)\n---\nFix #$0 ($1)\n",
        ),
        (".opencode/command/audit.md", "---\ndescription: Audits\nagent: plan\n---\nAudit $ARGUMENTS\n"),
        (
            ".gemini/commands/git/commit.toml",
            "description = \"Commits\"\nprompt = \"\"\"\nCommit {{args}}\nlike {{this}}\n\"\"\"\n",
        ),
        (
            ".github/prompts/explain.prompt.md",
            "---\ndescription: Explains\nmode: ask\n---\nExplain ${selection} to ${input:who:the audience}, ${other}\n",
        ),
        (
            "sum.prompt.yml",
            "name: Sums up\ndescription: Sums up\nmessages:\n  - role: system\n    content: Be brief.\n  - role: user\n    content: |\n      Sum up:\n      {{text}}\n  - role: assistant\n    content: Gladly.\ntestData:\n  - text: a b c\n    expected: abc\n",
        ),
        (
            "pdf-forms/SKILL.md",
            "---\nname: pdf-forms\ndescription: Fills in forms\n---\nRead reference.md, then {{ fill }} $1.\n",
        ),
        ("pdf-forms/reference.md", "# Not a prompt"),
        (
            "peer.md",
            "---\nname: peer\ndescription: d\ncategory: review\narguments:\n  - name: lang\n    description: x\n    required: true\n---\nReview this {{lang}}\n",
        ),
    ]);
    let loader = open_loader(&library);
    let catalog = loader.handle().current();
    assert_eq!(lines(&loader.diagnostics()), Vec::<String>::new());
    let names: Vec<&str> = catalog.prompts().iter().map(|prompt| prompt.name().as_str()).collect();
    assert_eq!(names, ["audit", "explain", "git-commit", "git-fix", "pdf-forms", "peer", "sum"]);

    assert_eq!(arguments_of(&catalog, "git-fix"), ["issue!", "priority"]);
    assert_eq!(
        messages_of(&catalog, "git-fix", &[("issue", "7"), ("priority", "{{ 1 }}")]),
        ["user: Fix #7 ({{ 1 }})"]
    );
    assert_eq!(arguments_of(&catalog, "audit"), ["arguments"]);
    assert_eq!(messages_of(&catalog, "audit", &[("arguments", "a b")]), ["user: Audit a b"]);
    assert_eq!(messages_of(&catalog, "git-commit", &[("args", "now")]), ["user: Commit now\nlike {{this}}"]);
    assert_eq!(arguments_of(&catalog, "explain"), ["selection", "who!"]);
    assert_eq!(
        messages_of(&catalog, "explain", &[("who", "Ada"), ("selection", "x")]),
        ["user: Explain x to Ada, ${other}"]
    );
    assert_eq!(arguments_of(&catalog, "sum"), ["text!"]);
    assert_eq!(
        messages_of(&catalog, "sum", &[("text", "t")]),
        ["user: Be brief.", "user: Sum up:\nt", "assistant: Gladly."]
    );
    assert_eq!(messages_of(&catalog, "pdf-forms", &[]), ["user: Read reference.md, then {{ fill }} $1."]);
    assert_eq!(messages_of(&catalog, "peer", &[("lang", "rust")]), ["user: Review this rust"]);
    assert_eq!(catalog.find("peer").expect("it is there").tags(), ["review"]);
    assert_eq!(catalog.find("sum").expect("it is there").title(), Some("Sums up"));
    assert_eq!(catalog.find("git-fix").expect("it is there").description(), Some("Fix #$0 ($1)"));
}

#[test]
fn test_data_rows_become_tests() {
    let library = Library::of(&[(
        "a.prompt.yaml",
        "description: d\nmessages:\n- role: user\n  content: \"{{x}}\"\ntestData:\n- {x: 1, expected: one, judged: 2}\n- {x: \" two \", xx: 3}\n- four\nevaluators:\n- name: e\n  string: {contains: \"{{judged}}\"}\n",
    )]);
    let definitions = library.read();
    let tests = &definitions.prompts[0].tests;
    assert_eq!(tests.len(), 2);
    assert_eq!(tests[0].arguments, Variables::from([("x".to_owned(), "1".to_owned())]));
    assert_eq!((&tests[0].contains[..], &tests[1].contains[..]), (&["1".to_owned()][..], &["two".to_owned()][..]));
    assert_eq!(definitions.prompts[0].origin.locate("tests.1").to_string(), "a.prompt.yaml:7:3");
    assert_eq!(
        lines(&definitions.diagnostics),
        [
            "a.prompt.yaml:7:16: warning[no-effect]: no message uses `{{xx}}`",
            "a.prompt.yaml:8:3: warning[wrong-type]: a row of `testData`: expected a mapping, found text",
        ]
    );
}

#[test]
fn commands_are_not_run_and_reported() {
    let library = Library::of(&[
        (".claude/commands/a.md", "---\ndescription: d\n---\nNow:\n!`touch ran`\n"),
        (".gemini/commands/b.toml", "description = \"d\"\nprompt = '''\nNow:\n!{touch {ran} {{args}}}\n'''\n"),
    ]);
    let loader = open_loader(&library);
    assert_eq!(
        lines(&loader.diagnostics()),
        [
            ".claude/commands/a.md:5:1: warning[not-supported]: commands in prompts are never run; this is plain text (take the command's output as an argument)",
            ".gemini/commands/b.toml:4:1: warning[not-supported]: commands in prompts are never run; this is plain text (take the command's output as an argument)",
        ]
    );
    let catalog = loader.handle().current();
    assert_eq!(messages_of(&catalog, "a", &[]), ["user: Now:\n!`touch ran`"]);
    assert_eq!(messages_of(&catalog, "b", &[]), ["user: Now:\n!{touch {ran} {{args}}}"]);
    assert!(!library.path("ran").exists());
}

#[test]
fn only_library_files_are_attached() {
    let library = Library::of(&[
        (
            ".claude/commands/a.md",
            "---\ndescription: d\n---\nFollow @docs/style.txt and @../secret.txt, @docs/style.tx!\n",
        ),
        (
            ".gemini/commands/b.toml",
            "description = \"d\"\nprompt = \"One @{docs/style.txt} two @{/etc/passwd} @{ {{args}} }\"\n",
        ),
        ("docs/style.txt", "Be brief."),
    ]);
    std::fs::write(library.outside().join("secret.txt"), "secret").expect("written");
    let loader = open_loader(&library);
    let catalog = loader.handle().current();
    assert_eq!(
        messages_of(&catalog, "a", &[]),
        ["user: Follow @docs/style.txt and @../secret.txt, @docs/style.tx!", "user: <library:///docs/style.txt>"]
    );
    assert_eq!(
        messages_of(&catalog, "b", &[]),
        ["user: One", "user: <library:///docs/style.txt>", "user:  two @{/etc/passwd} @{ {{args}} }"]
    );
    let mistakes = lines(&loader.diagnostics());
    assert_eq!(mistakes.len(), 4, "{mistakes:#?}");
    assert!(
        mistakes[0].starts_with(
            ".claude/commands/a.md:4:28: warning[missing-file]: file `../secret.txt` not found in the library"
        ),
        "{mistakes:#?}"
    );
    assert!(mistakes[1].contains("did you mean `docs/style.txt`?"), "{mistakes:#?}");
    assert!(mistakes[3].contains("a file chosen by the caller is not attached"), "{mistakes:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn foreign_files_are_watched() {
    let library = Library::of(&[("x.md", "---\ndescription: d\n---\nx")]);
    let mut watched = library.watch().await;
    library.write(".claude/commands/team/a.md", "First @notes.txt");
    watched.until_text("team-a", "First").await;
    library.write(".claude/commands/team/a.md", "Second @notes.txt");
    watched.until_text("team-a", "Second").await;
    // A missing file is attached as soon as it exists.
    library.write("notes.txt", "Noted");
    watched.until_text("team-a", "Noted").await;
    library.remove(".claude/commands/team/a.md");
    watched.until("the prompt is gone", |catalog, _| catalog.find("team-a").is_none()).await;
}

#[test]
fn mistakes_are_reported_at_their_lines() {
    let library = Library::of(&[
        (".gemini/commands/a.toml", "description = \"d\"\nprmpt = \"x\"\n"),
        ("b.prompt.yml", "messages:\n  - role: boss\n    content: x\n  - content: y\n"),
        ("c.prompt.md", "---\nname: Two Words\ndescripton: d\n---\nx"),
    ]);
    let mistakes = library.mistakes();
    let starts = [
        ".gemini/commands/a.toml:1:1: error[missing-key]: missing key `prompt` in a command",
        ".gemini/commands/a.toml:2:1: warning[unknown-key]: unknown key `prmpt` in a command (did you mean `prompt`?)",
        "b.prompt.yml:2:11: error[invalid-value]: unknown role `boss`",
        "b.prompt.yml:4:5: error[missing-key]: missing key `role` in a message",
        "c.prompt.md:3:1: warning[unknown-key]: unknown key `descripton` in a prompt file of VS Code",
    ];
    assert_eq!(mistakes.len(), starts.len(), "{mistakes:#?}");
    for (fault, start) in mistakes.iter().zip(starts) {
        assert!(fault.starts_with(start), "{fault}");
    }
    let definitions = library.read();
    assert_eq!(definitions.prompts[0].name, "c");
    assert_eq!(definitions.prompts[0].title.as_deref(), Some("Two Words"));
}

#[test]
fn vs_code_file_with_arguments_has_the_native_format() {
    let text = "---\ndescription: d\narguments: [x]\n---\n{{ x | upper }}";
    let library = Library::of(&[("a.prompt.md", text)]);
    let loader = open_loader(&library);
    assert_eq!(messages_of(&loader.handle().current(), "a", &[("x", "hi")]), ["user: HI"]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn template_syntax_in_foreign_files_is_plain_text(
        text in "[a-z ]{0,4}(\\{\\{|\\{%|\\{#|\\}\\}|%\\}|#\\}|\\{% raw %\\}|[a-z(){}% ]){0,12}x"
    ) {
        let yaml = format!("description: d\nmessages:\n- role: user\n  content: {}\n", serde_json::json!(text));
        let toml = format!("description = \"d\"\nprompt = {}\n", serde_json::json!(text));
        let library = Library::of(&[
            (".claude/commands/a.md", &*format!("---\ndescription: d\n---\n{text}")),
            (".gemini/commands/b.toml", &toml),
            ("c.prompt.md", &*format!("---\ndescription: d\n---\n{text}")),
            ("d.prompt.yml", &yaml),
            ("e/SKILL.md", &*format!("---\nname: e\ndescription: d\n---\n{text}")),
        ]);
        let loader = open_loader(&library);
        let catalog = loader.handle().current();
        for name in ["a", "b", "c", "d", "e"] {
            let arguments = arguments_of(&catalog, name);
            // `{{x}}` is a placeholder in one format, and `{{args}}` in another.
            if arguments.is_empty() {
                prop_assert_eq!(messages_of(&catalog, name, &[]), [format!("user: {text}")]);
            } else {
                prop_assert!(name == "d" || text.contains("{{args}}"));
            }
        }
    }
}

#[test]
fn folders_of_other_programs_are_read_in_their_format() {
    let library = Library::of(&[
        ("p/.claude/commands/git/fix.md", "---\nargument-hint: <issue>\n---\nFix #$0\n"),
        ("p/.claude/skills/pdf/SKILL.md", "---\nname: pdf\ndescription: Fills in forms\n---\nRead reference.md.\n"),
        ("p/.claude/agents/agent.md", "Not a prompt.\n"),
        ("p/.gemini/commands/git/commit.toml", "prompt = \"Commit {{args}}\"\n"),
        ("p/.opencode/command/audit.md", "---\ndescription: Audits\n---\nAudit $ARGUMENTS\n"),
        ("p/.github/prompts/explain.prompt.md", "---\ndescription: Explains\n---\nExplain ${input:what}\n"),
        ("p/own/.claude/commands/promptshelf.toml", "[server]\nname = \"own\"\n"),
        ("p/own/.claude/commands/own.md", "---\ndescription: Own\n---\nCosts $1.\n"),
    ]);
    let served = |folder: &str| {
        let directory = Files::folder(library.path("p").join(folder));
        let loader = Loader::open(vec![Box::new(directory)]).expect("a library");
        let catalog = loader.handle().current();
        let shown = |prompt: &Prompt| (prompt.name().to_string(), arguments_of(&catalog, prompt.name().as_str()));
        catalog.prompts().iter().map(|prompt: &std::sync::Arc<Prompt>| shown(prompt)).collect::<Vec<_>>()
    };
    let one = |name: &str, argument: &str| (name.to_owned(), vec![argument.to_owned()]);
    assert_eq!(served(".claude/commands"), [one("git-fix", "issue!")]);
    assert_eq!(served(".claude"), [one("git-fix", "issue!"), ("pdf".to_owned(), vec![])]);
    for folder in [".gemini/commands", ".gemini"] {
        assert_eq!(served(folder), [one("git-commit", "args")], "{folder}");
    }
    for folder in [".opencode/command", ".opencode"] {
        assert_eq!(served(folder), [one("audit", "arguments")], "{folder}");
    }
    for folder in [".github/prompts", ".github"] {
        assert_eq!(served(folder), [one("explain", "what!")], "{folder}");
    }
    // A folder with a manifest is a library like any other.
    assert_eq!(served("own/.claude/commands"), [("own".to_owned(), vec![])]);
}

//! Files of other programs that lie in a project: what their programs load is served, or a finding says why not.

#[path = "../../../../fuzz/src/foreign_readers.rs"]
mod foreign_readers;

use promptshelf_core::{Catalog, Code, Diagnostic, Severity, check};
use promptshelf_source::{Files, MemoryTree, Source as _, check_tree_path, is_library_file, read_tree};
use proptest::prelude::*;

use crate::{
    formats::{arguments_of, messages_of, open_loader},
    library::{Library, lines},
};

/// A path of each reader of Markdown with front matter.
const READERS: &[&str] = &[
    ".claude/commands/it.md",
    ".claude/skills/it/SKILL.md",
    ".agents/skills/it/SKILL.md",
    ".github/skills/it/SKILL.md",
    ".gemini/skills/it/SKILL.md",
    ".codex/skills/it/SKILL.md",
    ".cursor/skills/it/SKILL.md",
    ".opencode/skills/it/SKILL.md",
    "skills/it/SKILL.md",
    ".github/prompts/it.prompt.md",
    "it.prompt.md",
    ".opencode/commands/it.md",
    ".opencode/command/it.md",
    ".cursor/commands/it.md",
    ".codex/prompts/it.md",
];

/// Front matter as people write it, and whether it is YAML with keys.
const FRONT_MATTER: &[(&str, bool)] = &[
    ("description: Tells stories. Words: scene, plot", false),
    ("description: \"Fix\" the issue", false),
    ("description: 'It's broken'", false),
    ("description: *important* review", false),
    ("description: @team review", false),
    ("description: % of coverage", false),
    ("description: & more", false),
    ("description: !important", false),
    ("description: {curly} text", false),
    ("description: {{ name }}", false),
    ("description: [square] text", false),
    ("description: > quoted", false),
    ("description: | piped", false),
    ("description: ? really", false),
    ("description: - dash", false),
    ("description: `git` helper", false),
    ("description: \"unclosed", false),
    ("description: one\ndescription: two", false),
    ("description: x\nallowed-tools: *", false),
    ("description: x\nallowed-tools:\n\t- Bash", false),
    ("description: x\nargument-hint: [a] [b]", false),
    ("description: x\nargument-hint: <optional: any>", false),
    ("description: x\nmodel: a: b", false),
    ("description: x\ntools: ['a', 'b'", false),
    ("description: x\nglobs: **/*.ts", false),
    ("description: x\nglobs: *.ts,*.tsx", false),
    ("description: x\nhooks: }{", false),
    ("description: x\n\tindented: y", false),
    ("description: x\n  deeper: y", false),
    ("description x\nmodel: y", false),
    ("just a line of text", false),
    ("- a\n- b", false),
    ("description: x\n---x: y", true),
    ("description: C:\\Users\\me \\d", true),
    ("description: [a, b]", true),
    ("description: {a: b}", true),
    ("description: 12\nversion: 1.10\nunheard-of: {a: [1, 2]}", true),
    ("description:\tx", true),
    ("Description: x", true),
    ("description: x\nargument-hint: [message]", true),
    ("description: >\n  folded\n  text", true),
    ("allowed-tools: Bash(git add:*), Bash(git status:*)", true),
    ("", true),
];

fn served(path: &str, text: &str) -> (Catalog, Vec<Diagnostic>) {
    let library = Library::of(&[(path, text)]);
    let checked = check(library.read(), None);
    (checked.catalog, checked.diagnostics)
}

// req: S-250
#[test]
fn front_matter_of_other_programs_never_costs_the_prompt() {
    for path in READERS {
        for (keys, is_yaml) in FRONT_MATTER {
            let text = format!("---\n{keys}\n---\nBody text\n");
            for text in [text.replace('\n', "\r\n"), text] {
                let (catalog, found) = served(path, &text);
                let rendered = catalog.find("it").map(|_| messages_of(&catalog, "it", &[]));
                assert_eq!(
                    rendered.as_deref(),
                    Some(&["user: Body text".to_owned()][..]),
                    "{path}: {keys}\n{found:#?}"
                );
                assert!(!found.iter().any(Diagnostic::is_error), "{path}: {keys}\n{found:#?}");
                let at_line = |found: &Diagnostic| found.code == Code::Syntax && found.location.line_column().0 > 1;
                // Commands document this key as text in brackets.
                let is_documented = keys.contains("argument-hint") && found.is_empty();
                assert!(*is_yaml || is_documented || found.iter().any(at_line), "{path}: {keys}\n{found:#?}");
            }
        }
    }
}

#[test]
fn unclosed_front_matter_is_kept_from_the_model() {
    for path in READERS {
        for end in ["\nBody text", "Body text", "----\nBody text", "...\nBody text"] {
            let (catalog, found) = served(path, &format!("---\ndescription: d\nmodel: x\n{end}\n"));
            assert_eq!(messages_of(&catalog, "it", &[]), ["user: Body text"], "{path} {end}");
            assert!(found.iter().any(|found| found.message.contains("not closed")), "{path}: {found:?}");
        }
    }
}

#[test]
fn values_that_are_not_yaml_are_used_as_text() {
    let library = Library::of(&[
        (".claude/commands/a.md", "---\ndescription: Tells: tales\nargument-hint: [pr] [who]\n---\nReview $0 for $1\n"),
        (".claude/commands/b.md", "---\ndescription: one\ndescription: two\n---\nBody\n"),
        (".claude/commands/c.md", "---\ndescription: `git` helper\nargument-hint: [message]\n---\nSay $ARGUMENTS\n"),
    ]);
    let catalog = check(library.read(), None).catalog;
    let description = |name: &str| catalog.find(name).and_then(|prompt| prompt.description().map(str::to_owned));
    assert_eq!(description("a").as_deref(), Some("Tells: tales"));
    assert_eq!(arguments_of(&catalog, "a"), ["pr", "who"]);
    assert_eq!(description("b").as_deref(), Some("two"), "as Claude Code reads it");
    assert_eq!(description("c").as_deref(), Some("`git` helper"));
    // The reason is the bracket, and not the indentation.
    let text = "---\ndescription: d\nargument-hint: [file] [line]\n---\nBody\n";
    let (_, found) = served(".github/prompts/it.prompt.md", text);
    assert!(lines(&found)[0].starts_with(
        ".github/prompts/it.prompt.md:3:22: warning[syntax]: unexpected text after the closing bracket; the value"
    ));
    let hint = catalog.find("c").map(|prompt| prompt.arguments()[0].description().map(str::to_owned));
    assert_eq!(hint.flatten().as_deref(), Some("[message]"));
}

#[test]
fn own_prompt_files_stay_strict() {
    for keys in ["description: a: b", "description: one\ndescription: two", "description: *x*"] {
        let (catalog, found) = served("a.md", &format!("---\n{keys}\n---\nBody"));
        assert!(catalog.prompts().is_empty() && found.iter().any(Diagnostic::is_error), "{keys}");
    }
}

proptest! {
    // req: S-250
    #[test]
    fn file_that_a_program_loads_is_served_or_reported(
        keys in prop::collection::vec(
            "(description|name|tools|argument-hint|x)?:? ?[\\[\\]{}*&!|>@%`\"'#,:?a-z \t-]{0,14}", 0..6),
        close in prop::sample::select(&["---", "----", "...", "", "---\r"][..]),
        body in "[a-z$`!@{}\\[\\]0-9 \\\\]{1,20}",
        reader in 0..READERS.len(),
    ) {
        let path = READERS[reader];
        let text = format!("---\n{}\n{close}\nWords {body}\n", keys.join("\n"));
        let (catalog, found) = served(path, &text);
        let explained = found.iter().any(|found| found.is_error() && found.location.source.path == path);
        prop_assert!(catalog.prompts().len() == 1 || explained, "{text}\n{found:#?}");
        prop_assert!(!found.iter().any(|found| found.code == Code::Syntax && found.is_error()), "{text}\n{found:#?}");
    }

    // req: S-250
    #[test]
    fn gemini_command_is_served_or_reported(body in "[a-z!@{} \\\\]{1,30}", description in "[a-z:'\\[ ]{0,8}") {
        let text = format!("description = \"{description}\"\nprompt = '''\nRun {body} {{{{args}}}}\n'''\n");
        let (catalog, found) = served(".gemini/commands/it.toml", &text);
        prop_assert_eq!(catalog.prompts().len(), 1, "{}\n{:#?}", text, found);
    }
}

// req: S-250
#[test]
fn seeds_of_the_fuzz_target_are_served() {
    let seeds = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/foreign");
    let mut count = 0;
    for seed in std::fs::read_dir(seeds).expect("seeds") {
        let bytes = std::fs::read(seed.expect("a seed").path()).expect("a file");
        let (path, text) = foreign_readers::split(&bytes).expect("a reader");
        if path.starts_with('_') {
            continue;
        }
        let (catalog, found) = served(path, std::str::from_utf8(text).expect("a text"));
        let is_literal = messages_of(&catalog, "it", &sent(&catalog)).concat().contains("---");
        assert!(!is_literal && !found.iter().any(Diagnostic::is_error), "{path}: {found:#?}");
        count += 1;
    }
    assert!(count >= foreign_readers::READERS.len() - 1);
}

/// Returns a value for each argument of the only prompt.
fn sent(catalog: &Catalog) -> Vec<(&str, &str)> {
    let prompt = catalog.find("it").expect("it is served");
    prompt.arguments().iter().map(|argument| (argument.name(), "one two")).collect()
}

// The expected texts are those that Claude Code 2.1.332 sent to a recording stand-in model.
#[test]
fn words_are_filled_in_as_claude_code_does() {
    let library = Library::of(&[
        (".claude/commands/zero.md", "First $0 second $1 third $2\n"),
        (".claude/commands/both.md", "A $ARGUMENTS[0] B $ARGUMENTS[1] C $1\n"),
        (".claude/commands/price.md", "Costs $5.00, $1,500 or $2M. Task: $ARGUMENTS\n"),
        (".claude/commands/awk.md", "```sh\nawk '{print $1}' file\n```\nThen $ARGUMENTS\n"),
        (".claude/commands/plain.md", "Costs $5.00 for `awk '{print $3}'`.\n"),
        (".claude/commands/escaped.md", "Keep \\$1 and \\$ARGUMENTS\n"),
        (".claude/commands/backslashes.md", r"1 \$0 2 \\$0 3 \\\$0 4 \\\\$0 x \$2M y \\$2M z \$HOME"),
        (".claude/commands/all.md", r"1 \$ARGUMENTS 2 \\$ARGUMENTS 3 \\\$ARGUMENTS"),
        (
            ".claude/commands/named.md",
            "---\narguments: [file, to-do]\n---\nF=$file T=$to-do X=$filex E=\\$file 0=$0 A=$ARGUMENTS\n",
        ),
        (".claude/commands/string.md", "---\narguments: a b\n---\n$b before $a\n"),
        (".claude/commands/hinted.md", "---\nargument-hint: [topic]\n---\nWrite.\n"),
        (".claude/skills/skilled/SKILL.md", "---\ndescription: d\n---\nSkill $0\n"),
    ]);
    let catalog = check(library.read(), None).catalog;
    let said = |name: &str, given: &[(&str, &str)]| messages_of(&catalog, name, given).concat();
    let words = &[("arg1", "ONE"), ("arg2", "TWO"), ("arg3", "THREE")];
    assert_eq!(said("zero", words), "user: First ONE second TWO third THREE");
    assert_eq!(said("zero", &words[..1]), "user: First ONE second $1 third $2");
    assert_eq!(said("both", &words[..2]), "user: A ONE B TWO C TWO");
    assert_eq!(arguments_of(&catalog, "price"), ["arguments"]);
    assert_eq!(said("price", &[]), "user: Costs $5.00, $1,500 or $2M. Task:");
    let given = &[("arguments", "ONE 'TWO X'")];
    assert_eq!(said("price", given), "user: Costs $5.00, TWO X,500 or $2M. Task: ONE 'TWO X'");
    assert_eq!(said("awk", &[]), "user: ```sh\nawk '{print $1}' file\n```\nThen");
    for (name, expected) in [("plain", "Costs $5.00 for `awk '{print $3}'`."), ("escaped", "Keep $1 and $ARGUMENTS")] {
        assert_eq!(arguments_of(&catalog, name), [""; 0]);
        assert_eq!(said(name, &[]), format!("user: {expected}"));
    }
    assert_eq!(said("backslashes", words), r"user: 1 $0 2 \\ONE 3 \\\ONE 4 \\\\ONE x $2M y \\$2M z \$HOME");
    assert_eq!(said("backslashes", &[]), r"user: 1 $0 2 \\$0 3 \\\$0 4 \\\\$0 x $2M y \\$2M z \$HOME");
    assert_eq!(said("all", &[("arguments", "ONE TWO")]), r"user: 1 $ARGUMENTS 2 \\ONE TWO 3 \\\ONE TWO");
    assert_eq!(arguments_of(&catalog, "named"), ["file", "to_do"]);
    let given = &[("file", "ONE"), ("to_do", "TWO")];
    assert_eq!(said("named", given), "user: F=ONE T=TWO X=$filex E=$file 0=ONE A=ONE TWO");
    assert_eq!(said("named", &[]), "user: F= T= X=$filex E=$file 0=$0 A=");
    assert_eq!(said("string", &[("a", "1"), ("b", "2")]), "user: 2 before 1");
    assert_eq!(said("hinted", &[("arguments", "x y")]), "user: Write.\n\n\nARGUMENTS: x y");
    assert_eq!(said("hinted", &[]), "user: Write.");
    assert_eq!(said("skilled", &[("arg1", "ONE")]), "user: Skill ONE");
}

// As Claude Code 2.1.332 sent them, too.
#[test]
fn declared_names_and_positions_go_together() {
    let library = Library::of(&[
        (".claude/commands/beyond.md", "---\narguments: [a]\n---\n$a $0 $1\n"),
        (".claude/commands/gap.md", "---\narguments: [pr, who]\n---\n$pr $who $2\n"),
        (".claude/commands/script.md", "---\narguments: [名前, 1st]\n---\nHi $名前 and $1st\n"),
        (".claude/commands/unused.md", "---\narguments: [pr]\n---\nNothing.\n"),
        (".claude/commands/reserved.md", "---\narguments: [role, in, loop]\n---\nAct as $role in $in: $loop\n"),
        (".claude/commands/hint.md", "---\nargument-hint: [role]\n---\nAct as $0\n"),
    ]);
    let checked = check(library.read(), None);
    let errors: Vec<_> = checked.diagnostics.iter().filter(|found| found.is_error()).collect();
    assert!(errors.is_empty(), "{errors:?}");
    let said = |name: &str, given: &[(&str, &str)]| messages_of(&checked.catalog, name, given).concat();
    assert_eq!(said("beyond", &[("a", "ONE"), ("arg2", "TWO")]), "user: ONE ONE TWO");
    assert_eq!(said("gap", &[("pr", "1"), ("who", "2"), ("arg3", "3")]), "user: 1 2 3");
    assert_eq!(said("script", &[("名前", "Ada"), ("1st", "x")]), "user: Hi Ada and x");
    assert_eq!(said("unused", &[("arguments", "x")]), "user: Nothing.\n\n\nARGUMENTS: x");
    assert_eq!(said("reserved", &[("role", "a"), ("in", "b"), ("loop", "c")]), "user: Act as a in b: c");
    assert_eq!(said("hint", &[("role", "a")]), "user: Act as a");
}

/// Names that mean something to templates mean nothing in a text without one.
#[test]
fn words_of_templates_are_names_of_arguments_elsewhere() {
    for word in
        ["role", "range", "dict", "loop", "not", "true", "namespace", "link", "attach", "in", "is", "self", "none"]
    {
        let library = Library::of(&[
            (".github/prompts/it.prompt.md", &format!("---\ndescription: d\n---\nAct as ${{input:{word}}}\n")),
            (
                "sum.prompt.yml",
                &format!("name: sum\ndescription: d\nmessages:\n- role: user\n  content: 'Sum {{{{{word}}}}}'\n"),
            ),
        ]);
        let checked = check(library.read(), None);
        assert!(!checked.diagnostics.iter().any(Diagnostic::is_error), "{word}: {:?}", lines(&checked.diagnostics));
        assert_eq!(messages_of(&checked.catalog, "it", &[(word, "x")]), ["user: Act as x"]);
        assert_eq!(messages_of(&checked.catalog, "sum", &[(word, "x")]), ["user: Sum x"]);
    }
}

#[test]
fn arguments_of_another_program_are_not_ours() {
    for key in ["arguments: pr who", "arguments: {a: b}", "arguments: [1, 2]", "arguments: [a, a]", "arguments: []"] {
        let text = format!("---\ndescription: d\n{key}\n---\nDo ${{input:x}} {{{{ y }}}} {{% z\n");
        let (catalog, _) = served(".github/prompts/it.prompt.md", &text);
        assert_eq!(messages_of(&catalog, "it", &[("x", "1")]), ["user: Do 1 {{ y }} {% z"], "{key}");
    }
    let (catalog, _) = served("it.prompt.md", "---\ndescription: d\narguments: [{name: y}]\n---\nDo {{ y }}\n");
    assert_eq!(messages_of(&catalog, "it", &[("y", "1")]), ["user: Do 1"]);
}

#[test]
fn names_of_documents_and_private_files_are_commands_of_other_programs() {
    let text = "---\ndescription: d\n---\nHi\n";
    let library = Library::of(&[
        (".claude/commands/README.md", text),
        (".claude/commands/TODO.md", text),
        (".claude/commands/_under.md", text),
        (".claude/commands/_team/x.md", text),
        (".claude/skills/_s/SKILL.md", text),
        (".claude/commands/sk/SKILL.md", text),
        (".claude/commands/a/b.md", text),
        (".claude/commands/a-b.md", "---\ndescription: d\n---\nFirst\n"),
        (".github/prompts/_q.prompt.md", text),
        (".gemini/commands/_p.toml", "description = \"d\"\nprompt = \"Hi\"\n"),
        ("README.md", text),
        ("_own.md", text),
    ]);
    let checked = check(library.read(), None);
    let names: Vec<_> = checked.catalog.prompts().iter().map(|prompt| prompt.name().as_str()).collect();
    assert_eq!(names, ["README", "TODO", "_p", "_q", "_s", "_team-x", "_under", "a-b", "sk"]);
    assert_eq!(messages_of(&checked.catalog, "a-b", &[]), ["user: First"]);
    let found = lines(&checked.diagnostics);
    let is_named =
        |line: &&String| line.starts_with(".claude/commands/a/b.md") && line.contains("`.claude/commands/a-b.md`");
    assert!(found.iter().any(|line| is_named(&line)), "{found:?}");
}

#[test]
fn older_habits_and_gaps_are_reported() {
    let library = Library::of(&[
        (".claude/commands/habit.md", "---\ndescription: d\n---\nFix $1 and $2\n"),
        (".claude/commands/price.md", "---\ndescription: d\n---\nCosts $5.00 and \\$3.\n"),
        (".claude/commands/fine.md", "---\ndescription: d\n---\nFix $0 and $1\n"),
        (".opencode/commands/open.md", "---\ndescription: d\n---\nFix $1 for $3\n"),
    ]);
    let found = library.mistakes();
    let found: Vec<&str> = found.iter().map(|line| line.split(" (").next().unwrap_or(line)).collect();
    assert_eq!(
        found,
        [
            ".claude/commands/habit.md:4:5: warning[word-position]: `$1` is the second word after the command: Claude Code counts from `$0`, and nothing uses the first one",
            ".claude/commands/price.md:4:7: hint[word-position]: `$5` is the sixth word after the command, and nothing uses the one before it; without it, `$5` stays as it is written",
            ".opencode/commands/open.md:4:12: warning[word-position]: `$3` is the third word after the command, and nothing uses the one before it; without it, `$3` is removed",
        ]
    );
}

// The expected texts of OpenCode are those that version 1.18.33 sent to a recording stand-in model.
#[test]
fn opencode_and_codex_count_from_one() {
    let library = Library::of(&[
        (".opencode/commands/all.md", "a=$1 b=$2 all=$ARGUMENTS esc \\$1 $2M\n"),
        (".opencode/commands/two.md", "a=$1 b=$2\n"),
        (".codex/prompts/fix.md", "---\nargument-hint: [file]\n---\nFix $1, not $$1 or $10\n"),
        (".codex/prompts/named.md", "Fix $FILE for $TICKET_ID and $1\n"),
        (".cursor/commands/plain.md", "Costs $1. $ARGUMENTS\n"),
    ]);
    let catalog = check(library.read(), None).catalog;
    let said = |name: &str, given: &[(&str, &str)]| messages_of(&catalog, name, given).concat();
    let given = &[("arguments", "ONE TWO THREE")];
    assert_eq!(said("all", given), "user: a=ONE b=TWO THREE all=ONE TWO THREE esc \\ONE TWO THREEM");
    assert_eq!(said("all", &[]), "user: a= b= all= esc \\ M");
    assert_eq!(said("two", &[("arg1", "ONE"), ("arg2", "TWO THREE")]), "user: a=ONE b=TWO THREE");
    assert_eq!(said("fix", &[("file", "a.rs")]), "user: Fix a.rs, not $$1 or a.rs0");
    assert_eq!(arguments_of(&catalog, "named"), ["FILE!", "TICKET_ID!"]);
    assert_eq!(said("named", &[("FILE", "a"), ("TICKET_ID", "7")]), "user: Fix a for 7 and $1");
    assert_eq!(said("plain", &[]), "user: Costs $1. $ARGUMENTS");
}

#[test]
fn unclosed_parts_of_gemini_commands_are_reported() {
    let library = Library::of(&[(
        ".gemini/commands/d.toml",
        "description = \"d\"\nprompt = \"\"\"\nRun !{git diff and then do {{args}} please, with @{x and @{y}.\n\"\"\"\n",
    )]);
    let checked = check(library.read(), None);
    assert_eq!(arguments_of(&checked.catalog, "d"), ["args"]);
    assert_eq!(
        messages_of(&checked.catalog, "d", &[("args", "it")]),
        ["user: Run !{git diff and then do it please, with @{x and @{y}."]
    );
    let unclosed = checked.diagnostics.iter().filter(|found| found.code == Code::Syntax);
    assert_eq!(unclosed.map(|found| found.location.line_column()).collect::<Vec<_>>(), [(3, 5), (3, 50)]);
}

#[test]
fn names_for_people_become_titles() {
    let library = Library::of(&[
        ("rules/react.md", "---\nname: React Rules\ndescription: d\n---\nUse hooks.\n"),
        ("skills/seo-tool/SKILL.md", "---\nname: SEO Tool\ndescription: d\n---\nBody\n"),
        (".claude/skills/a/SKILL.md", "---\nname: A Skill\ndescription: d\n---\nBody\n"),
        (".github/prompts/b.prompt.md", "---\nname: Be Good\ndescription: d\n---\nBody\n"),
        (".claude/commands/my command.md", "---\ndescription: d\n---\nBody\n"),
        ("my prompt file.md", "---\ndescription: d\n---\nBody\n"),
    ]);
    let checked = check(library.read(), None);
    let prompts = checked.catalog.prompts();
    assert_eq!(
        prompts.iter().map(|prompt| (prompt.name().as_str(), prompt.title())).collect::<Vec<_>>(),
        [
            ("a", Some("A Skill")),
            ("b", Some("Be Good")),
            ("my-command", None),
            ("my-prompt-file", None),
            ("rules-react", Some("React Rules")),
            ("seo-tool", Some("SEO Tool")),
        ]
    );
    let named = checked.diagnostics.iter().filter(|found| found.code == Code::InvalidName);
    assert_eq!(
        named.map(|found| &*found.location.source.path).collect::<Vec<_>>(),
        [".claude/commands/my command.md", "my prompt file.md", "rules/react.md", "skills/seo-tool/SKILL.md"]
    );
    assert!(!checked.diagnostics.iter().any(Diagnostic::is_error), "{:?}", lines(&checked.diagnostics));
}

#[test]
fn first_of_several_definitions_is_served() {
    let all = [
        ("plan.md", "---\ndescription: Plan\n---\nown\n"),
        ("skills/plan/SKILL.md", "---\nname: plan\ndescription: Plan\n---\nskill\n"),
        (".agents/skills/plan/SKILL.md", "---\ndescription: Plan\n---\nagents\n"),
        (".claude/skills/plan/SKILL.md", "---\ndescription: Plan\n---\nclaude skill\n"),
        (".claude/commands/plan.md", "---\ndescription: Plan\n---\nclaude\n"),
        (".github/prompts/plan.prompt.md", "---\ndescription: Plan\n---\ngithub\n"),
        ("plan.prompt.yml", "messages:\n- role: user\n  content: models\n"),
        (".gemini/commands/plan.toml", "prompt = \"gemini\"\n"),
        (".opencode/commands/plan.md", "---\ndescription: Plan\n---\nopencode\n"),
        (".cursor/commands/plan.md", "---\ndescription: Plan\n---\ncursor\n"),
        (".codex/prompts/plan.md", "---\ndescription: Plan\n---\ncodex\n"),
    ];
    let texts = [
        "own",
        "skill",
        "agents",
        "claude skill",
        "claude",
        "github",
        "models",
        "gemini",
        "opencode",
        "cursor",
        "codex",
    ];
    for (first, text) in texts.iter().enumerate() {
        let library = Library::of(&all[first..]);
        let checked = check(library.read(), None);
        assert_eq!(messages_of(&checked.catalog, "plan", &[]), [format!("user: {text}")]);
        let hidden: Vec<&Diagnostic> =
            checked.diagnostics.iter().filter(|found| found.code == Code::DuplicateName).collect();
        assert_eq!(hidden.len(), all.len() - first - 1);
        for found in hidden {
            assert_eq!(found.severity, Severity::Warning);
            assert_ne!(found.location.source.path, all[first].0);
            let order = found.help.as_deref().unwrap_or_default();
            assert!(found.message.contains(all[first].0) && order.contains("prompt files, skills"), "{found}");
        }
    }
}

// req: S-251
#[tokio::test(flavor = "multi_thread")]
async fn ambiguous_and_broken_names_keep_what_was_served() {
    let prompt = |text: &str| format!("---\ndescription: d\n---\n{text}\n");
    let broken = "---\ndescription: [\n---\nbroken\n";
    let library = Library::of(&[("a.md", &prompt("first")), ("z.md", &prompt("other"))]);
    let loader = open_loader(&library);
    let said = || {
        let catalog = loader.handle().current();
        catalog.find("a").map(|_| messages_of(&catalog, "a", &[]).concat())
    };
    // Two files of the same kind are an error for their name alone, and the last good version stays.
    library.write("b.md", "---\nname: a\ndescription: d\n---\nsecond\n");
    loader.reload().await.expect("it loads");
    assert_eq!(said().as_deref(), Some("user: first"));
    assert_eq!(loader.diagnostics().iter().filter(|found| found.is_error()).count(), 2);
    let fresh = check(library.read(), None).catalog;
    assert!(fresh.find("a").is_none() && fresh.find("z").is_some());
    library.remove("b.md");
    // A broken file of a higher rank keeps its last version, and another file does not take its place.
    library.write(".claude/commands/a.md", prompt("claude"));
    loader.reload().await.expect("it loads");
    library.write("a.md", broken);
    loader.reload().await.expect("it loads");
    assert_eq!(said().as_deref(), Some("user: first"));
    let fresh = check(library.read(), None);
    let is_about_both = |found: &Diagnostic| found.code == Code::DuplicateName && found.message.contains("`a.md`");
    assert!(fresh.catalog.find("a").is_none() && fresh.diagnostics.iter().any(is_about_both));
    library.remove("a.md");
    loader.reload().await.expect("it loads");
    assert_eq!(said().as_deref(), Some("user: claude"));
    // A new file of a higher rank with an error does not remove what is served.
    library.write("a.md", broken);
    loader.reload().await.expect("it loads");
    assert_eq!(said().as_deref(), Some("user: claude"));
    library.write("a.md", "---\ndescription: d\n---\n{{ undeclared }}\n");
    loader.reload().await.expect("it loads");
    assert_eq!(said().as_deref(), Some("user: claude"));
    library.write("a.md", prompt("own"));
    loader.reload().await.expect("it loads");
    assert_eq!(said().as_deref(), Some("user: own"));
    library.write("a.md", "---\ndescription: d\n---\n{{ undeclared }}\n");
    loader.reload().await.expect("it loads");
    assert_eq!(said().as_deref(), Some("user: own"));
}

// req: S-251
#[tokio::test(flavor = "multi_thread")]
async fn rule_of_any_definition_closes_the_prompt() {
    let closed = |library: &Library| {
        let catalog = check(library.read(), None).catalog;
        catalog.position("a").map(|index| !catalog.prompt_access(index).is_empty())
    };
    let own = "---\ndescription: d\n---\nown\n";
    let command = (".claude/commands/a.md", "---\ndescription: d\n---\nclaude\n");
    let library = Library::of(&[("a.md", own), command]);
    assert_eq!(closed(&library), Some(false));
    let library = Library::of(&[("a.md", "---\ndescription: d\naccess: { roles: [a] }\n---\nown\n"), command]);
    assert_eq!(closed(&library), Some(true));
    // The rule of a folder whose definition is not served.
    let rule = "[[access]]\nfolders = [\".claude\"]\nroles = [\"a\"]\n";
    let library = Library::of(&[("a.md", own), command, ("promptshelf.toml", rule)]);
    assert_eq!(closed(&library), Some(true));
    // A broken file with a rule, above a prompt that was open.
    let library = Library::of(&[command]);
    let loader = open_loader(&library);
    library.write("a.md", "---\ndescription: [\naccess: { roles: [a] }\n---\nown\n");
    loader.reload().await.expect("it loads");
    let catalog = loader.handle().current();
    assert_eq!(catalog.position("a").map(|index| catalog.prompt_access(index).len()), Some(1));
}

#[cfg(unix)]
#[test]
fn one_file_is_one_prompt_whatever_leads_to_it() {
    let library = Library::of(&[
        ("shared/a.md", "---\ndescription: d\n---\nHello $0\n"),
        (".claude/commands/fix.md", "---\ndescription: d\n---\nFix $0\n"),
        ("_texts/b.md", "---\ndescription: d\n---\nB $0\n"),
    ]);
    for (target, link) in [
        ("../../shared/a.md", ".claude/commands/a.md"),
        ("../.claude/commands", ".opencode/commands"),
        ("../../_texts/b.md", ".claude/commands/b.md"),
    ] {
        std::fs::create_dir_all(library.path(link).parent().expect("a folder")).expect("a folder");
        std::os::unix::fs::symlink(target, library.path(link)).expect("a link");
    }
    let checked = check(library.read(), None);
    let prompts = checked.catalog.prompts().iter();
    assert_eq!(
        prompts.map(|prompt| (prompt.name().as_str(), &*prompt.source().path)).collect::<Vec<_>>(),
        [("b", ".claude/commands/b.md"), ("fix", ".claude/commands/fix.md"), ("shared-a", "shared/a.md")]
    );
    let found = lines(&checked.diagnostics);
    assert!(!checked.diagnostics.iter().any(|found| found.code == Code::DuplicateName), "{found:?}");
}

// req: S-252
#[test]
fn file_with_another_ending_or_encoding_is_a_prompt_or_reported() {
    let own = "---\ndescription: d\naccess: { roles: [a] }\n---\nSecret\n";
    let utf16: Vec<u8> = [0xff, 0xfe].into_iter().chain(own.encode_utf16().flat_map(u16::to_le_bytes)).collect();
    let library = Library::of(&[
        ("secret.MD", own),
        ("b.markdown", own),
        ("AGENTS.md", own),
        ("c.Mdx", own),
        ("open.markdown", "# Open"),
        (".github/prompts/x.PROMPT.md", "---\ndescription: d\n---\nX\n"),
        ("y.Prompt.YML", "messages:\n- role: user\n  content: y\n"),
    ]);
    library.write("wide.md", &utf16);
    library.write("latin.md", b"---\ndescription: d\n---\nText\ncaf\xe9\n");
    library.write(".claude/commands/latin.md", b"caf\xe9\n");
    library.write("_part.md", b"caf\xe9\n");
    let definitions = library.read();
    let files = definitions.files.keys().filter(|path| !path.starts_with('_'));
    assert_eq!(files.collect::<Vec<_>>(), ["open.markdown"], "nothing with a rule is an ordinary file");
    let checked = check(definitions, None);
    let names: Vec<_> = checked.catalog.prompts().iter().map(|prompt| prompt.name().as_str()).collect();
    assert_eq!(names, ["secret", "x", "y"]);
    assert!(!checked.catalog.prompt_access(0).is_empty(), "its rule applies");
    for (path, code, line) in [
        ("b.markdown", Code::NoEffect, 3),
        ("c.Mdx", Code::NoEffect, 3),
        ("AGENTS.md", Code::NoEffect, 3),
        ("wide.md", Code::NotUtf8, 1),
        ("latin.md", Code::NotUtf8, 5),
        (".claude/commands/latin.md", Code::NotUtf8, 1),
        ("_part.md", Code::NotUtf8, 1),
        (".", Code::LeftOut, 1),
    ] {
        let fits = |found: &&Diagnostic| found.code == code && found.location.source.path == path;
        let found = checked.diagnostics.iter().find(fits).unwrap_or_else(|| panic!("{path}"));
        assert_eq!(found.location.line_column().0, line, "{found}");
        assert!(found.help.is_some(), "{found}");
    }
}

#[test]
fn documents_and_rules_of_a_repository_are_counted() {
    let text = "# A document";
    let library = Library::of(&[
        ("AGENTS.md", text),
        ("CLAUDE.md", text),
        ("CHANGELOG.md", text),
        ("docs/CONTRIBUTING.md", text),
        ("README.md", text),
        ("LICENSE-MIT.md", text),
        ("rules/style.mdc", text),
        (".cursor/rules/own.mdc", text),
        (".claude/commands/long.markdown", text),
        (".opencode/skills/y/Skill.md", text),
        ("changelog.md", "---\ndescription: d\n---\nA prompt\n"),
        (".claude/commands/at.md", "---\ndescription: d\n---\nSee @AGENTS.md, @app.route, @scope/name and @x.com\n"),
    ]);
    let checked = check(library.read(), None);
    let names: Vec<_> = checked.catalog.prompts().iter().map(|prompt| prompt.name().as_str()).collect();
    assert_eq!(names, ["at", "changelog"]);
    assert_eq!(
        lines(&checked.diagnostics),
        [
            ".:1:1: hint[left-out]: 1 file is no skill, by the name: `.opencode/skills/y/Skill.md` (rename the text of a skill to `SKILL.md`, in these letters)",
            ".:1:1: hint[left-out]: 1 file is not read as prompts, by their endings: `.claude/commands/long.markdown` (rename a prompt so that it ends in `.md`)",
            ".:1:1: hint[left-out]: 2 rules of Cursor are no prompts: `.cursor/rules/own.mdc`, `rules/style.mdc` (rules are for Cursor alone; a prompt is a file such as `review.md`)",
            ".:1:1: hint[left-out]: 5 files are not read as prompts, by their names: `AGENTS.md`, `CHANGELOG.md`, `CLAUDE.md` and 2 more (to serve one as a prompt, rename it in small letters, such as `changelog.md`)",
        ]
    );
}

#[test]
fn plugins_are_read_by_the_rules_of_their_programs() {
    // A folder, a revision that is made of it, and a commit have the same prompts.
    let served = |files: &[(&str, &str)], name: &str| {
        let library = Library::of(files);
        let checked = check(library.read(), None);
        let arguments = arguments_of(&checked.catalog, name);
        let tree = read_tree(&library.path(".")).expect("a tree");
        let kept = files.iter().copied().filter(|(path, _)| is_library_file(path)).collect::<MemoryTree>();
        for tree in [tree, kept] {
            assert!(tree.iter().all(|(path, _)| check_tree_path(path).is_ok()));
            let read = Files::tree(tree).read().expect("a tree");
            let revision = check(read.into_definitions(), None);
            assert_eq!(arguments_of(&revision.catalog, name), arguments, "{files:?}");
            assert_eq!(revision.catalog.prompts().len(), checked.catalog.prompts().len());
        }
        arguments
    };
    let manifest = (".claude-plugin/plugin.json", "{}");
    let command = ("commands/fix.md", "---\ndescription: Fixes: all\n---\nFix $0\n");
    let skill = ("skills/pdf/SKILL.md", "---\nname: pdf\ndescription: d\n---\nFill $0 in.\n");
    assert_eq!(served(&[command, manifest], "fix"), ["arg1"]);
    assert_eq!(served(&[skill, manifest], "pdf"), ["arg1"]);
    let command = ("commands/git/fix.toml", "prompt = \"Fix {{args}}\"\n");
    assert_eq!(served(&[command, ("gemini-extension.json", "{}")], "git-fix"), ["args"]);
    // The repository of `export --plugin`.
    let manifest = ("plugins/own/.claude-plugin/plugin.json", "{}");
    let command = ("plugins/own/commands/fix.md", "---\ndescription: Fixes: all\n---\nFix $0\n");
    let skill = ("plugins/own/skills/pdf/SKILL.md", "---\nname: pdf\ndescription: d\n---\nFill $0 in.\n");
    assert_eq!(served(&[command, skill, manifest], "fix"), ["arg1"]);
    assert_eq!(served(&[command, skill, manifest], "pdf"), ["arg1"]);
    let manifest = ("plugins/own/.cursor-plugin/plugin.json", "{}");
    assert_eq!(served(&[command, manifest], "fix"), [""; 0]);
    // A manifest of a plugin at the top hides no prompt without a word, and none from a library.
    let own = ("hi.md", "---\ndescription: d\n---\nHi\n");
    let foreign = (".github/prompts/v.prompt.md", "---\ndescription: d\n---\nHi\n");
    let command = ("commands/fix.md", "---\ndescription: Fixes: all\n---\nFix $0\n");
    let files = [own, foreign, command, (".claude-plugin/plugin.json", "{}")];
    let names = |files: &[(&str, &str)]| {
        let checked = check(Library::of(files).read(), None);
        let names = checked.catalog.prompts().iter().map(|prompt| prompt.name().to_string()).collect::<Vec<_>>();
        (names, lines(&checked.diagnostics))
    };
    let (served_names, found) = names(&files);
    assert_eq!(served_names, ["fix", "v"]);
    assert!(
        found.iter().any(|line| line.contains("warning[left-out]: 1 file is not served") && line.contains("`hi.md`")),
        "{found:?}"
    );
    let (served_names, found) = names(&[&files[..], &[("promptshelf.toml", "[server]\n")]].concat());
    assert_eq!(served_names, ["fix", "hi", "v"], "{found:?}");
    let command = ("plugins/own/commands/fix.md", "---\ndescription: Fixes: all\n---\nFix $0\n");
    let other = ("plugins/own/notes.md", "---\ndescription: d\n---\nOwn {{ format }}\n");
    assert!(check(Library::of(&[command, manifest, other]).read(), None).catalog.find("plugins-own-notes").is_none());
}

#[test]
fn front_matter_of_a_partial_reaches_no_model() {
    let library = Library::of(&[
        ("a.md", "---\ndescription: d\n---\nHi. {% include \"_shared/tone.md\" %}\n"),
        ("_shared/tone.md", "---\ntitle: Tone\ndescription: x\n---\nWrite kindly.\n"),
    ]);
    let checked = check(library.read(), None);
    assert_eq!(messages_of(&checked.catalog, "a", &[]), ["user: Hi. Write kindly."]);
    let found = lines(&checked.diagnostics);
    assert!(found.len() == 1 && found[0].starts_with("_shared/tone.md:2:1: warning[no-effect]"), "{found:?}");
    for (partial, expected) in [
        ("---\ntitle: Tone\nWrite kindly.\n", "Hi. Write kindly."),
        ("---\ntitle: Tone\ntags:\n  - a\n\nWrite kindly.\n", "Hi. Write kindly."),
        // A line that divides a text.
        ("---\nNote: write kindly.\n", "Hi. ---\nNote: write kindly."),
    ] {
        let library = Library::of(&[
            ("a.md", "---\ndescription: d\n---\nHi. {% include \"_tone.md\" %}\n"),
            ("_tone.md", partial),
        ]);
        let catalog = check(library.read(), None).catalog;
        assert_eq!(messages_of(&catalog, "a", &[]), [format!("user: {expected}")]);
    }
}

#[test]
fn attached_or_included_prompt_is_named_as_one() {
    let library = Library::of(&[
        ("a.md", "---\ndescription: d\n---\n{{ attach(\"x/b.md\") }}{% include \"c.md\" %}\n"),
        ("x/b.md", "---\ndescription: d\n---\nB\n"),
        ("c.md", "---\ndescription: [\n---\nB\n"),
    ]);
    let checked = check(library.read(), None);
    let of = |code| {
        let found = checked.diagnostics.iter().find(|found| found.code == code);
        found.map(ToString::to_string).unwrap_or_default()
    };
    let attached = of(Code::MissingFile);
    assert!(attached.contains("is the file of the prompt `x-b`") && attached.contains("`x/_b.md`"), "{attached}");
    let included = of(Code::MissingPartial);
    assert!(included.contains("is the file of the prompt `c`"), "{included}");
}

#[test]
fn front_matter_below_empty_lines_counts() {
    let library = Library::of(&[("a.md", "\n\n---\ndescription: d\naccess: { roles: [a] }\n---\nHi\n")]);
    let checked = check(library.read(), None);
    assert_eq!(messages_of(&checked.catalog, "a", &[]), ["user: Hi"]);
    assert!(!checked.catalog.prompt_access(0).is_empty());
    assert!(lines(&checked.diagnostics)[0].starts_with("a.md:3:1: warning[no-effect]"));
}

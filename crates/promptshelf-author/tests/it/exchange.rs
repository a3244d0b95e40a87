//! Prompts that come from other programs and go to them, there and back.

use promptshelf_author::{ExportFormat, Exported, ImportFormat, Imported, export, import, import_all};
use promptshelf_core::{BodyPiece, Prompt, SourceText};
use promptshelf_source::Loader;
use proptest::prelude::*;

use crate::library::{asks, lines, messages, opened};

fn imported(path: &str, text: &str) -> Imported {
    let format = ImportFormat::of(path, text).unwrap_or_else(|| panic!("{path} is of no known format"));
    import(&SourceText::new(path, text), format)
}

fn imported_together(files: &[(&str, &str)]) -> Vec<Imported> {
    let source =
        |(path, text): &(&str, &str)| (SourceText::new(*path, *text), ImportFormat::of(path, text).expect(path));
    import_all(&files.iter().map(source).collect::<Vec<_>>())
}

#[test]
fn prompt_declares_what_its_partials_use() {
    let all = imported_together(&[
        ("greet.prompt", "Hi {{name}}. {{>tone}} {{>sign mood=style}}\n"),
        ("both.prompt", "---\ninput:\n  schema:\n    mood: string\n---\n{{>sign mood=\"kind\"}}{{>sign}}\n"),
        ("again.prompt", "{{>sign mood=\"kind\"}} and {{>sign}}{{>loop}}\n"),
        ("_tone.prompt", "{{#if formal}}Dear {{title}}{{/if}} {{>inner}}\n"),
        ("_inner.prompt", "In {{language}}, {{#each topics}}{{this}}{{/each}}\n"),
        ("_sign.prompt", "{{mood}} {{sender}}\n"),
        ("_loop.prompt", "{{>loop}}{{more}}\n"),
    ]);
    let loader = shelved(&all);
    let catalog = loader.handle().current();
    assert_eq!(asks(&catalog, "greet"), ["name!", "formal", "title!", "language!", "topics", "style!", "sender!"]);
    assert_eq!(asks(&catalog, "both"), ["mood!", "sender!"]);
    let errors = errors(&loader);
    assert!(errors.iter().all(|error| error.starts_with("_loop.md")), "{errors:?}");
    assert!(all[2].files[0].text.contains("name: mood") && all[2].files[0].text.contains("name: more"));
}

/// What was lost, without its code.
fn lost(imported: &Imported) -> Vec<String> {
    let shown = |loss: &promptshelf_core::Diagnostic| {
        let (line, column) = loss.location.line_column();
        format!("{line}:{column} {}", loss.message)
    };
    imported.losses.iter().map(shown).collect()
}

/// A library of what was imported.
fn shelved(imports: &[Imported]) -> Loader {
    let files: Vec<(&str, &str)> =
        imports.iter().flat_map(|it| &it.files).map(|file| (file.path.as_str(), file.text.as_str())).collect();
    opened(&files)
}

fn errors(loader: &Loader) -> Vec<String> {
    lines(&loader.diagnostics()).into_iter().filter(|line| line.contains(": error")).collect()
}

fn template(imported: &Imported) -> &str {
    let text = &imported.files[0].text;
    let body = text.split_once("\n---\n").map_or(text.as_str(), |(_, body)| body);
    body.trim()
}

#[test]
fn dotprompt_becomes_typed_arguments_and_a_template() {
    let greet = imported(
        "prompts/greet.prompt",
        "---\nmodel: m\ndescription: Greets\ninput:\n  schema:\n    name: string, who to greet\n    style?: string\n    tags(array, words): string\n    people(array):\n      first: string\n    tone(enum, How): [kind, cold]\n    count?: integer\n  default:\n    style: warm\n---\n{{role \"system\"}}\nYou are {{style}}.\n{{#if name}}\nHi {{name}}{{else}}Hi\n{{/if}}\n{{#each people}}\n- {{this.first}} of {{../name}} ({{@index}})\n{{/each}}\n{{#each tags as |tag|}}{{tag}},{{/each}}{{#unless count}}none{{/unless}}\n{{>footer mood=tone}}\n{{role \"model\"}}\n{% {{json people}}\n",
    );
    let footer = imported("prompts/_footer.prompt", "Be {{mood}}.\n");
    assert_eq!(
        lost(&greet),
        [
            "2:1 `model` has no equivalent in a prompt and is omitted",
            "16:1 MCP has no role `system`; the text becomes a message of the user"
        ]
    );
    let loader = shelved(&[greet, footer]);
    assert_eq!(errors(&loader), Vec::<String>::new());
    let catalog = loader.handle().current();
    assert_eq!(asks(&catalog, "greet"), ["name!", "style", "tags!", "people!", "tone!", "count"]);
    let given = [("name", "Ada"), ("tags", "a,b"), ("people", r#"[{"first":"Bo"}]"#), ("tone", "kind")];
    assert_eq!(
        messages(&catalog, "greet", &given),
        ["user: You are warm.\nHi Ada- Bo of Ada (0)\na,b,none\nBe kind.", "assistant: {% [{\"first\":\"Bo\"}]",]
    );
}

#[test]
fn handlebars_find_their_counterparts() {
    let cases = [
        ("{{a.b.[0].c}} {{{d}}}", "{{ a.b[0].c }} {{ d }}"),
        ("{{! note }}x", "{# note #}x"),
        ("a {{~x~}} b", "a {{- x -}} b"),
        ("{{#if a}}1{{else if b}}2{{else}}3{{/if}}", "{% if a %}1{% elif b %}2{% else %}3{% endif %}"),
        ("{{#with a}}{{b}}{{../c}}{{/with}}", "{% with it = a %}{{ it.b }}{{ c }}{% endwith %}"),
        (
            "{{#each a}}{{#each b}}{{this}}{{@last}}{{/each}}{{/each}}",
            "{% for item in a %}{% for item2 in item.b %}{{ item2 }}{{ loop.last }}{% endfor %}{% endfor %}",
        ),
        ("{{#if (and (eq a \"x\") (not b))}}1{{/if}}", "{% if ((a == \"x\") and (not b)) %}1{% endif %}"),
        ("{{#ifEquals a 1}}x{{/ifEquals}}", "{% if a == 1 %}x{% endif %}"),
        ("\\{{x}} {#", "{{ \"{{\" }}x}} {{ \"{#\" }}"),
        ("{{>part a=1 b=c}}", "{% with a = 1, b = c %}{% include \"_part.md\" %}{% endwith %}"),
        ("{{lookup a b}}", "{{ a[b] }}"),
        ("{{#a}}x{{/a}}{{^b}}y{{/b}}", "{% if a %}x{% endif %}{% if not (b) %}y{% endif %}"),
        ("{{#a}}{{.}},{{/a}}", "{% for item in a %}{{ item }},{% endfor %}"),
        ("{{#if a.length}}x{{/if}}", "{% if (a | length) %}x{% endif %}"),
    ];
    for (handlebars, ours) in cases {
        let made = imported("x.prompt", handlebars);
        assert_eq!(template(&made), ours, "{handlebars}");
        assert_eq!(lost(&made), Vec::<String>::new(), "{handlebars}");
    }
}

#[test]
fn what_has_no_counterpart_is_said_and_never_dropped_silently() {
    let made = imported("x.prompt", "{{#shout a}}b{{/shout}} {{help a}} {{@key}} {{#if a}}c {{history}}{{/nope}}");
    assert_eq!(
        lost(&made),
        [
            "1:1 the block `#shout a` has no equivalent; its text stays unchanged",
            "1:25 unknown helper `help`; its text stays unchanged",
            "1:36 `@key` has no equivalent; its text stays unchanged",
            "1:45 `#if` is never closed",
            "1:56 the messages of an earlier conversation have no equivalent in a prompt and are omitted",
            "1:67 `/nope` has no opening tag",
        ]
    );
    let loader =
        shelved(&[imported("x.prompt", "---\ninput: {schema: {a: string}}\n---\n{{#shout a}}b{{/shout}} {{a}}")]);
    assert_eq!(messages(&loader.handle().current(), "x", &[("a", "1")]), ["user: {{#shout a}}b{{/shout}} 1"]);
}

#[test]
fn each_format_of_the_list_becomes_a_prompt_that_passes_the_check() {
    let files = [
        (
            "chat.prompty",
            "---\nname: Chat\ndescription: d\ninputs:\n  - {name: q, kind: string, required: true}\nsample: {who: Ada}\n---\nsystem:\nHelp {{who}}.\nUser:\n{{q}}\nassistant:\nYes.\n",
        ),
        (
            "old.prompty",
            "---\nname: old\ndescription: d\ntemplate: {format: mustache}\ninputs: {q: {type: integer}}\n---\nuser:\n{{q}} {%\n",
        ),
        (
            "r.yaml",
            "version: 1.0.0\ntitle: R\ndescription: d\ninstructions: In {{ l }}\nprompt: Do {{ l }}\nparameters:\n- {key: l, input_type: select, requirement: required, description: x, options: [a, b]}\n",
        ),
        ("patterns/sum_up/system.md", "# IDENTITY\nSum up {{topic}}.\n"),
        (
            "lf.json",
            "[{\"name\":\"a/b\",\"type\":\"text\",\"prompt\":\"{{x}} {% @@@langfusePrompt:name=old@@@\",\"version\":1,\"labels\":[]},\n\t{\"name\":\"a/b\",\"type\":\"chat\",\"prompt\":[{\"role\":\"assistant\",\"content\":\"{{y}}\"}],\"version\":9,\"labels\":[]}]",
        ),
        (
            "pl.json",
            "{\"prompt_name\":\"P L\",\"prompt_template\":{\"type\":\"completion\",\"template_format\":\"f-string\",\"input_variables\":[\"v\"],\"content\":[{\"type\":\"text\",\"text\":\"{v} {{x}}\"}]}}",
        ),
        ("p.csv", "act,prompt,for_devs,type,contributor\n\"C, D\",\"Say \"\"${w:hi}\"\" {{z}}\",TRUE,TEXT,me\n"),
    ];
    let imports: Vec<Imported> = files.iter().map(|(path, text)| imported(path, text)).collect();
    let loader = shelved(&imports);
    assert_eq!(errors(&loader), Vec::<String>::new());
    let catalog = loader.handle().current();
    let names: Vec<&str> = catalog.prompts().iter().map(|prompt| prompt.name().as_str()).collect();
    assert_eq!(names, ["a-b", "c-d", "chat", "old", "p-l", "r", "sum_up"]);
    assert_eq!(
        messages(&catalog, "chat", &[("who", "Bo"), ("q", "{{1}}")]),
        ["user: Help Bo.", "user: {{1}}", "assistant: Yes."]
    );
    assert_eq!(messages(&catalog, "old", &[("q", "1")]), ["user: 1 {%"]);
    assert_eq!(messages(&catalog, "r", &[("l", "b")]), ["user: In b", "user: Do b"]);
    assert_eq!(messages(&catalog, "sum_up", &[("topic", "t"), ("input", "i")]), ["user: # IDENTITY\nSum up t.\n\ni"]);
    assert_eq!(messages(&catalog, "a-b", &[("y", "1")]), ["assistant: 1"]);
    assert_eq!(messages(&catalog, "p-l", &[("v", "1")]), ["user: 1 {x}"]);
}

// req: S-255
#[test]
fn inputs_without_a_declaration_become_arguments() {
    let made = [
        imported(
            "noinput.prompt",
            "---\nmodel: x/y\n---\nTell {{who}} about {{topic}}.{{#if brief}} Briefly.{{/if}}\n",
        ),
        imported("basic.prompty", "---\nname: basic\ndescription: d\n---\nsystem:\nYou help.\n\nuser:\n{{question}}\n"),
        imported(
            "dir.yaml",
            "version: 1.0.0\ntitle: Guide\ndescription: x\ninstructions: \"Read {{ recipe_dir }}/guide.md\"\n",
        ),
        imported("list.prompt", "{{#each names}}{{this}}, {{/each}}{{#each people}}{{first}}{{/each}}{{person.name}}"),
    ];
    let loader = shelved(&made);
    assert_eq!(errors(&loader), Vec::<String>::new());
    let catalog = loader.handle().current();
    assert_eq!(asks(&catalog, "noinput"), ["who!", "topic!", "brief"]);
    assert_eq!(asks(&catalog, "basic"), ["question!"]);
    assert_eq!(asks(&catalog, "dir"), ["recipe_dir!"]);
    assert_eq!(messages(&catalog, "dir", &[("recipe_dir", "/r")]), ["user: Read /r/guide.md"]);
    assert_eq!(asks(&catalog, "list"), ["names", "people", "person!"]);
    assert_eq!(messages(&catalog, "list", &[("names", "a,b"), ("person", r#"{"name":"Bo"}"#)]), ["user: a, b, Bo"]);
}

#[test]
fn conditions_mean_what_they_meant() {
    let made = [
        imported(
            "r.yaml",
            "title: R\ndescription: d\nprompt: '{% if flag == \"true\" %}yes{% else %}no{% endif %}{% if n == \"5\" %} five{% endif %}'\nparameters:\n- {key: flag, input_type: boolean, requirement: required, description: x}\n- {key: n, input_type: number, requirement: required, description: x}\n",
        ),
        imported(
            "p.prompty",
            "---\nname: p\ndescription: d\nsample: {count: 3, on: false, all: [1]}\ninputs: {on: {description: x}}\n---\nuser:\n{% if count > 2 %}many{% endif %}{% if on %} on{% endif %} {{ all | length }}\n",
        ),
        imported("d.prompt", "---\ninput: {default: {on: false}}\n---\n{{#if on}}on{{else}}off{{/if}}"),
        imported(
            "m.prompty",
            "---\nname: m\ndescription: d\ntemplate: {format: mustache}\nsample: {vip: true, tags: [a], rows: [{n: 1}], who: {n: Bo}}\n---\nuser:\n{{#vip}}Dear{{/vip}}{{^vip}}Hi{{/vip}}{{#tags}} {{.}}{{/tags}}{{#rows}}-{{n}}{{/rows}}{{#who}} {{n}}{{/who}}\n",
        ),
    ];
    let undeclared = imported(
        "u.prompty",
        "---\nname: u\ndescription: d\n---\nuser:\n{% if n > 3 %}big{% else %}small{% endif %}{% if flag == true %} F{% else %} N{% endif %}\n",
    );
    let made = [&made[..], &[undeclared]].concat();
    let loader = shelved(&made);
    assert_eq!(errors(&loader), Vec::<String>::new());
    let catalog = loader.handle().current();
    assert_eq!(messages(&catalog, "u", &[("n", "1"), ("flag", "true")]), ["user: small F"]);
    assert_eq!(messages(&catalog, "u", &[("n", "10"), ("flag", "false")]), ["user: big N"]);
    assert_eq!(messages(&catalog, "r", &[("flag", "true"), ("n", "5")]), ["user: yes five"]);
    assert_eq!(messages(&catalog, "r", &[("flag", "false"), ("n", "6")]), ["user: no"]);
    assert_eq!(messages(&catalog, "p", &[("count", "3"), ("on", "false"), ("all", "[1]")]), ["user: many 1"]);
    assert_eq!(messages(&catalog, "d", &[]), ["user: off"]);
    let (rows, who) = (("rows", r#"[{"n":1},{"n":2}]"#), ("who", r#"{"n":"Ada"}"#));
    let given = [("vip", "true"), ("tags", r#"["x","y"]"#), rows, who];
    assert_eq!(messages(&catalog, "m", &given), ["user: Dear x y-1-2 Ada"]);
    let given = [("vip", "false"), ("tags", "[]"), ("rows", "[]"), ("who", "{}")];
    assert_eq!(messages(&catalog, "m", &given), ["user: Hi"]);
}

#[test]
fn names_become_variables_of_templates() {
    let made = [
        imported(".github/prompts/act.prompt.md", "---\ndescription: d\n---\nAct as ${input:role} ${input:tone}\n"),
        imported(".claude/commands/names.md", "---\ndescription: d\narguments: [名前, in]\n---\nHi $名前 $in\n"),
        imported("sum.prompt.yml", "name: sum\ndescription: d\nmessages:\n- role: user\n  content: 'Sum {{range}}'\n"),
        imported(".claude/commands/all.md", "---\ndescription: d\n---\nfirst=$0 all=$ARGUMENTS\n"),
    ];
    let loader = shelved(&made);
    assert_eq!(errors(&loader), Vec::<String>::new());
    let catalog = loader.handle().current();
    assert_eq!(asks(&catalog, "act"), ["role_!", "tone!"]);
    assert_eq!(messages(&catalog, "act", &[("role_", "a"), ("tone", "b")]), ["user: Act as a b"]);
    assert_eq!(messages(&catalog, "names", &[("arg1", "a"), ("in_", "b")]), ["user: Hi a b"]);
    assert_eq!(messages(&catalog, "sum", &[("range_", "a")]), ["user: Sum a"]);
    assert!(lost(&made[1]).iter().any(|loss| loss.contains("`名前` is called `arg1`")), "{:?}", lost(&made[1]));
    assert!(lost(&made[3]).iter().any(|loss| loss.contains("quotation marks do not join")), "{:?}", lost(&made[3]));
}

#[test]
fn comments_that_the_program_skips_are_not_part_of_the_text() {
    let made =
        imported("c.prompt", "# Copyright\n#\n# Licensed\n\n---\ndescription: d\n---\n{{!-- note --}}\nHi{{! x }}\n");
    let loader = shelved(&[made]);
    assert_eq!(errors(&loader), Vec::<String>::new());
    assert_eq!(messages(&loader.handle().current(), "c", &[]), ["user: Hi"]);
}

#[test]
fn folders_of_commands_name_them_in_every_program() {
    let path = |path: &str, format| {
        import(&SourceText::new(path, "description='d'\nprompt='x'"), format).files[0].path.clone()
    };
    assert_eq!(path("commands/plan.toml", ImportFormat::Gemini), "plan.md");
    assert_eq!(path("x/commands/git/plan.toml", ImportFormat::Gemini), "git-plan.md");
    assert_eq!(path(".codex/prompts/draft.md", ImportFormat::Claude), "draft.md");
    // The rules of placeholders are those of the program whose folder it is, or of `--from`.
    for (file, format, text) in [
        (".codex/prompts/draft.md", None, "Draft {{ arg1 }}"),
        ("x/draft.md", Some(ImportFormat::Codex), "Draft {{ arg1 }}"),
        (".cursor/commands/draft.md", None, "Draft $1"),
        ("x/draft.md", Some(ImportFormat::Cursor), "Draft $1"),
        (".opencode/commands/draft.md", None, "Draft {{ arg1 }}"),
        (".claude/commands/draft.md", None, "Draft {% if arg2 %}{{ arg2 }}{% else %}$1{% endif %}"),
    ] {
        let source = SourceText::new(file, "---\ndescription: d\n---\nDraft $1\n");
        let made = import(&source, format.or_else(|| ImportFormat::of(file, "")).expect("a format"));
        assert!(made.files[0].text.trim_end().ends_with(text), "{file}: {}", made.files[0].text);
    }
    assert_eq!(path("any/where/draft.md", ImportFormat::Claude), "draft.md");
    assert!(ImportFormat::Claude.can_have(".codex/prompts/draft.md", "").is_ok());
    assert!(ImportFormat::Claude.can_have("a/SKILL.md", "").is_err());
    assert!(ImportFormat::Claude.can_have("README.md", "").is_err());
    assert!(ImportFormat::Claude.can_have(".claude/commands/README.md", "").is_ok());
}

#[test]
fn a_table_of_prompts_becomes_a_file_a_row() {
    let made = imported(
        "p.csv",
        "act,prompt,for_devs,type,contributor\n\"A, B\",\"Say \"\"${w:hi}\"\" {{z}}\",TRUE,TEXT,me\nA B,again,FALSE,TEXT,you\n,,,,\n",
    );
    assert_eq!(
        lost(&made),
        ["3:1 duplicate title `A B`: this row becomes `a-b-2`", "4:1 a row without a title or a prompt is omitted"]
    );
    let loader = shelved(&[made]);
    let catalog = loader.handle().current();
    assert_eq!(messages(&catalog, "a-b", &[]), ["user: Say \"hi\" {{z}}"]);
    assert_eq!(catalog.find("a-b").expect("it is there").title(), Some("A, B"));
}

/// Cuts a table at each character: what is imported of it is whole.
#[test]
fn row_of_a_table_that_was_cut_is_refused_with_its_line() {
    const TABLE: &str = "act,prompt\nA,\"First, with\nlines\"\n\"B\",\"cut in the middle, with 5\"\" and \"\"z\"\"\"\n";
    let second = TABLE.find("\"B\"").expect("a row");
    for end in TABLE.find('\n').expect("a line") + 1..=TABLE.len() {
        let made = imported("p.csv", &TABLE[..end]);
        let is_open = TABLE[..end].matches('"').count() % 2 == 1;
        let row = if end > second { "4:1" } else { "2:1" };
        let refused = format!("{row} the quotation mark of this row is not closed");
        assert_eq!(lost(&made).iter().any(|lost| lost.starts_with(&refused)), is_open, "{end}: {:?}", lost(&made));
        let cut = made.files.iter().any(|file| file.path == "b.md");
        assert_eq!(cut, end > TABLE.find("cut").expect("it") && !is_open, "{end}");
    }
}

#[test]
fn a_recipe_that_is_no_recipe_is_an_error_and_no_file() {
    let made = import(&SourceText::new("r.yaml", "title: x\n"), ImportFormat::Goose);
    assert!(made.files.is_empty());
    assert_eq!(lost(&made), ["1:1 a recipe needs `instructions` or `prompt`"]);
}

const NATIVE: &[(&str, &str)] = &[
    (
        ".claude/commands/fix.md",
        "---\ndescription: Fixes\nargument-hint: <issue> [how fast]\nmodel: opus\n---\nFix #$0 {{ $1 }} {% raw %} @notes.txt\n",
    ),
    (".opencode/command/audit.md", "---\ndescription: Audits\nagent: plan\n---\nAudit {$ARGUMENTS}\n"),
    (
        ".gemini/commands/git/commit.toml",
        "description = \"Commits\"\nprompt = \"Commit {{args}} {# @{notes.txt} now\"\n",
    ),
    (
        ".github/prompts/ask.prompt.md",
        "---\ndescription: Asks\n---\nExplain ${selection} to ${input:who:whom} {{ x }}\n",
    ),
    (
        "sum.prompt.yml",
        "name: Sum\ndescription: Sums\nmodel: m\nmessages:\n- {role: system, content: Be brief}\n- {role: user, content: \"{{t}} {%\"}\n- {role: assistant, content: Yes}\ntestData:\n- {t: \"one: 1\", expected: two}\n",
    ),
    ("pdf/SKILL.md", "---\nname: pdf\ndescription: Forms\nlicense: MIT\n---\nDo {{ this }} $1\n"),
];

/// Something for every argument.
fn values(prompt: &Prompt) -> Vec<(String, String)> {
    prompt.arguments().iter().map(|argument| (argument.name().to_owned(), format!("<{}>", argument.name()))).collect()
}

fn said_with_all(loader: &Loader, name: &str) -> Vec<String> {
    let catalog = loader.handle().current();
    let values = values(catalog.find(name).unwrap_or_else(|| panic!("there is no {name}")));
    messages(&catalog, name, &values.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect::<Vec<_>>())
}

#[test]
fn a_file_that_is_read_live_says_the_same_when_it_is_imported() {
    let live = opened(NATIVE);
    let imports: Vec<Imported> = NATIVE.iter().map(|(path, text)| imported(&format!("project/{path}"), text)).collect();
    let files = imports.iter().flat_map(|it| &it.files).map(|file| (file.path.as_str(), file.text.as_str()));
    let ours = opened(&files.collect::<Vec<_>>());
    assert_eq!(errors(&ours), Vec::<String>::new());
    for name in ["fix", "audit", "git-commit", "ask", "sum", "pdf"] {
        assert_eq!(asks(&live.handle().current(), name), asks(&ours.handle().current(), name), "{name}");
        assert_eq!(said_with_all(&live, name), said_with_all(&ours, name), "{name}");
        let tests = |loader: &Loader| {
            let catalog = loader.handle().current();
            catalog.find(name).map(|prompt| prompt.definition().tests.clone()).unwrap_or_default()
        };
        assert_eq!(tests(&live), tests(&ours), "{name}");
        assert_eq!(tests(&live).is_empty(), name != "sum", "{name}");
    }
    let losses: Vec<String> = imports.iter().flat_map(lost).collect();
    assert_eq!(
        losses,
        [
            "4:1 `model` has no equivalent in a prompt and is omitted",
            "6:28 the file `notes.txt` is not attached; the text has its path",
            "3:1 `agent` has no equivalent in a prompt and is omitted",
            "2:30 the file `notes.txt` is not attached; the text has its path",
            "3:1 `model` has no equivalent in a prompt and is omitted",
            "5:10 MCP has no role `system`; the text becomes a message of the user",
            "9:17 expected answers of a model are not tested, and are omitted",
            "4:1 `license` has no equivalent in a prompt and is omitted",
        ]
    );
}

fn exported(files: &[(&str, &str)], name: &str, format: ExportFormat) -> (Loader, Exported) {
    let loader = opened(files);
    let catalog = loader.handle().current();
    let exported = export(catalog.find(name).expect("it is there"), format, None);
    (loader, exported)
}

const OURS: &str = "---\ndescription: Reviews\narguments:\n  - name: code\n    description: The code\n    required: true\n  - name: language\n    required: true\n---\nReview {{ language }}:\n\n{{ code }}\n";

#[test]
fn what_is_exported_says_the_same_when_it_is_read_again() {
    for format in [ExportFormat::Claude, ExportFormat::Vscode] {
        let (ours, file) = exported(&[("review.md", OURS)], "review", format);
        assert!(file.losses.iter().all(|loss| loss.what.contains("several words")), "{:?}", file.losses);
        let theirs = opened(&[(&file.path, &file.text)]);
        assert_eq!(said_with_all(&ours, "review"), said_with_all(&theirs, "review"), "{format:?}");
        let catalog = theirs.handle().current();
        assert_eq!(catalog.find("review").expect("it is there").description(), Some("Reviews"));
    }
    let one = "---\ndescription: \"Ends with \\\\ \\\"\"\narguments: [{name: args, description: What follows the command}]\n---\nDo \"\"\"{{ args }}\"\"\" \\\\ {{ \"{{\" }}\n";
    for format in [ExportFormat::Claude, ExportFormat::Gemini] {
        let (ours, file) = exported(&[("one.md", one)], "one", format);
        assert!(file.losses.is_empty(), "{:?}", file.losses);
        let theirs = opened(&[(&file.path, &file.text)]);
        let argument = asks(&theirs.handle().current(), "one");
        let theirs = messages(&theirs.handle().current(), "one", &[(&argument[0], "<args>")]);
        assert_eq!(said_with_all(&ours, "one"), theirs, "{format:?}");
    }
    let (ours, file) =
        exported(&[("still.md", "---\ndescription: d\n---\nBe {{ \"{{\" }} still.\n")], "still", ExportFormat::Skill);
    assert_eq!(file.path, "still/SKILL.md");
    let theirs = opened(&[(&file.path, &file.text)]);
    assert_eq!(said_with_all(&ours, "still"), said_with_all(&theirs, "still"));
}

#[test]
fn what_an_export_loses_is_said_at_its_line() {
    let text = "---\ntitle: T\ntags: [a]\naccess: {scopes: [x]}\ndescription: d\narguments:\n  - {name: x, type: integer, default: 1}\n  - {name: y}\n---\n{% if x %}A{% else %}B{% endif %}\n{% for i in range(x) %}{{ i }}{% endfor %}\n{{ y | upper }}{{ attach(\"n.txt\") }}{{ role(\"assistant\") }}$1 {% include \"_p.md\" %}{{ prompt(\"q\", z=y) }}\n";
    let files = [
        ("p.md", text),
        ("q.md", "---\ndescription: d\narguments: [z]\n---\nQ {{ z }}"),
        ("_p.md", "part {{ x + 1 }}"),
        ("n.txt", "n"),
    ];
    let (_, file) = exported(&files, "p", ExportFormat::Claude);
    assert_eq!(
        file.text,
        "---\ndescription: d\nargument-hint: \"[y]\"\n---\n\nA\n\n$ARGUMENTS\n@n.txt\n\nAssistant:\n\n\\$1 part\n\nUser:\n\nQ $ARGUMENTS\n"
    );
    let shown: Vec<String> = file.losses.iter().map(ToString::to_string).collect();
    let expected = [
        "the condition is dropped: its text is always included, and the text after `else` is left out: p.md:10:7",
        "the loop is dropped: its list is inserted unchanged: p.md:11:4",
        "the call is left out",
        "the filter `upper` is dropped: the value is inserted unchanged",
        "the computed value is left out: _p.md:1:9",
        "all messages become one text; their roles become lines in it",
        "files become references, and must exist in the project: `n.txt`",
        "`access` has no equivalent: everyone with the file can use the prompt",
        "keys have no equivalent: `title`, `tags`",
    ];
    assert_eq!(shown.len(), expected.len(), "{shown:#?}");
    for (shown, expected) in shown.iter().zip(expected) {
        assert!(shown.contains(expected), "{shown} / {expected}");
    }
}

#[test]
fn what_a_prompt_says_can_be_exported_whole() {
    let (loader, _) = exported(&[("review.md", OURS)], "review", ExportFormat::Claude);
    let catalog = loader.handle().current();
    let said = vec![BodyPiece::Text("Review rust.".to_owned())];
    let file = export(catalog.find("review").expect("it is there"), ExportFormat::Claude, Some(said));
    assert_eq!(file.text, "---\ndescription: Reviews\n---\n\nReview rust.\n");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn any_text_survives_being_imported(text in "x(\\{|\\}|\\{\\{|\\{%|\\{#|%\\}|\\{% raw %\\}|-%\\}|\\$1|[a-z \"\\\\]){0,14}x") {
        let command = format!("---\ndescription: d\n---\n{text}");
        let live = opened(&[(".claude/commands/a.md", &*command)]);
        let ours = shelved(&[imported(".claude/commands/a.md", &command)]);
        prop_assert_eq!(errors(&ours), Vec::<String>::new());
        prop_assert_eq!(said_with_all(&live, "a"), said_with_all(&ours, "a"));
    }

    #[test]
    fn no_handlebars_text_breaks_the_import(text in "(\\{\\{|\\}\\}|\\{\\{#if a|\\{\\{/if|\\{\\{else|\\{\\{#each a|\\{\\{>|~|\\{%|[a-z .\"@/]){0,16}") {
        let made = import(&SourceText::new("a.prompt", text), ImportFormat::Dotprompt);
        prop_assert!(made.losses.iter().all(|loss| !loss.is_error()));
    }
}

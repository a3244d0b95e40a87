//! Fixes: typical mistakes of a folder are corrected until only decisions are left.

use std::{
    collections::{BTreeMap, BTreeSet},
    convert::Infallible,
};

use promptshelf_author::{Change, Texts, Verdict, findings, fix_all, fixes, portable};
use promptshelf_core::{Catalog, Diagnostic, check};
use promptshelf_source::{Files, MemoryFile, MemoryTree, Source as _, decoded};
use proptest::prelude::*;

type Library = BTreeMap<String, Vec<u8>>;

const HEAD: &str = "---\ndescription: Writes\narguments:\n  - name: tone\n    description: How\n---\n";

fn read(files: &Library) -> Vec<Diagnostic> {
    checked(files).0
}

fn checked(files: &Library) -> (Vec<Diagnostic>, Catalog) {
    let tree: MemoryTree =
        files.iter().map(|(path, bytes)| (path.as_str(), MemoryFile::new(bytes.as_slice()))).collect();
    let checked = check(Files::tree(tree).lenient().read().expect("a library").into_definitions(), None);
    (findings(&checked.catalog, &checked.diagnostics), checked.catalog)
}

fn verdict(files: &Library) -> Verdict {
    let (findings, catalog) = checked(files);
    Verdict::new(findings, &catalog)
}

fn text_of(bytes: &[u8]) -> Option<String> {
    std::str::from_utf8(bytes).map_or_else(|_| decoded(bytes), |text| Some(text.to_owned()))
}

/// Corrects the texts as `check --fix` does. Returns the number of corrected findings, and the refused fixes.
fn fix_texts(files: &mut Library) -> (usize, Vec<(Diagnostic, String)>) {
    let check = |texts: &Texts| -> Result<Verdict, Infallible> {
        let mut present = files.clone();
        let changed = texts.iter().filter_map(|(path, text)| Some((path.clone(), text.clone()?.into_bytes())));
        present.extend(changed);
        Ok(verdict(&present))
    };
    let Ok(corrections) = fix_all(check, |path| text_of(&files[path]), |_| true);
    let count = corrections.files.values().map(|file| file.count).sum();
    files.extend(corrections.files.into_iter().map(|(path, file)| (path, file.text.into_bytes())));
    (count, corrections.refused)
}

/// Corrects texts and names of files. Returns the number of corrected findings.
fn fix(files: &mut Library) -> usize {
    let (mut count, _) = fix_texts(files);
    for found in read(files) {
        for fix in fixes(&found).into_iter().filter(|fix| fix.is_only) {
            if let Change::Rename(to) = fix.change
                && let Some(bytes) = files.remove(&fix.path)
            {
                files.insert(to, bytes);
                count += 1;
            }
        }
    }
    count
}

#[test]
fn typical_mistakes_are_corrected_and_decisions_stay() {
    let body = |text: &str| format!("{HEAD}{text}\n");
    let argument = |line: &str| {
        format!(
            "---\ndescription: Writes\narguments:\n  - name: tone\n    description: How\n    {line}\n---\n{{{{ tone }}}}\n"
        )
    };
    let key = |line: &str| format!("---\n{line}\n---\nHello\n");
    let utf16: Vec<u8> = std::iter::once(0xfeff_u16)
        .chain(key("description: größer").encode_utf16())
        .flat_map(u16::to_le_bytes)
        .collect();
    let mut windows = key("description: gr\u{1}\u{2}er").into_bytes();
    windows.iter_mut().for_each(|byte| {
        *byte = match *byte {
            1 => 0xf6,
            2 => 0xdf,
            other => other,
        }
    });
    let with_one_answer: Vec<(&str, Vec<u8>)> = vec![
        ("quotes-in-tag.md", body("{% if tone == “kind” %}Hi{% endif %}").into()),
        ("quotes-in-list.md", argument("enum: [“kind”, “formal”]").into()),
        ("windows.md", windows),
        ("utf16.md", utf16),
        ("my prompt file.md", body("{{ tone }}").into()),
        ("🚀 launch.md", body("{{ tone }} now").into()),
        ("dashes.md", "----\ndescription: Writes\n----\nHello\n".into()),
        ("dashes-after-spaces.md", " ---\ndescription: Writes\n ---\nHello\n".into()),
        ("end-after-spaces.md", "---\ndescription: Writes\n  ---\nHello\n".into()),
        ("end-of-a-word-processor.md", "---\ndescription: Writes\n—\nHello\n".into()),
        ("dashes-of-a-word-processor.md", "—-\ndescription: Writes\n—-\nHello\n".into()),
        ("marks-of-a-list.md", "---\ndescription: Writes\narguments:\n  – name: tone\n    description: How\n  • name: to\n    description: Whom\n---\n{{ tone }} {{ to }}\n".into()),
        ("invisible.md", body("{{ to\u{200b}ne }}").into()),
        ("colon.md", body("{{ tone | default: \"kind\" | upcase }}").into()),
        ("spaces-in-a-name.md", "---\ndescription: Writes\narguments:\n  - name: my tone\n    description: How\n---\n{{ my tone }} {{my tone|upper}}\n".into()),
        ("list.md", key("description: [a, b]").into()),
        ("filter.md", body("{{ tone | uppercase }}").into()),
        ("filter-near.md", body("{{ tone | uper }}").into()),
        ("include.md", body("{{ tone }} {% include _shared/tone.md %}").into()),
        ("include-near.md", body("{{ tone }} {% include \"_shared/tome.md\" %}").into()),
        (
            "tabs.md",
            "---\ndescription: Writes\narguments:\n\t- name: tone\n\t  description: How\n---\n{{ tone }}\n".into(),
        ),
        ("keys.md", key("desciption: Writes\ntitel: T").into()),
        ("name.md", body("{{ ton }}").into()),
        ("type.md", argument("type: strng").into()),
        ("default.md", argument("enum: [kind, formal]\n    default: Formal").into()),
        ("invisible.md", body("{{ tone }}\u{200b} x \u{202e} y").into()),
        ("end.md", body("{% if tone %}Hi{% end if %}").into()),
        ("else.md", body("{% if tone %}a{% else if tone == \"x\" %}b{% endif %}").into()),
        ("equals.md", body("{% if tone = \"x\" %}b{% endif %}").into()),
        ("and.md", body("{% if tone && tone != \"x\" %}b{% endif %}").into()),
        ("required.md", argument("required: yess").into()),
        ("colon.md", key("description: Note: this is one").into()),
        ("apostrophe.md", key("description: 'it's'").into()),
        ("role.md", body("{{ role(\"asistant\") }}{{ tone }}").into()),
        ("brace.md", body("{{ tone }").into()),
        ("mapping.md", "---\ndescription: Writes\narguments:\n  tone:\n    description: How\n---\n{{ tone }}\n".into()),
        ("no-break.md", key("description:\u{a0}Writes").into()),
    ];
    let with_decisions: Vec<(&str, Vec<u8>)> = vec![
        ("literal.md", key("description: Writes").replace("Hello", "Dear {{first_name}}").into()),
        ("claude.md", "---\ndescription: Writes\nmodel: opus\n---\nDo $ARGUMENTS\n".into()),
        ("clock.md", key("description: Writes").replace("Hello", "{{ today() }}").into()),
        ("number.md", argument("maxLength: many").into()),
    ];
    let mut files: BTreeMap<String, Vec<u8>> = BTreeMap::from([("_shared/tone.md".to_owned(), b"Be kind.\n".to_vec())]);
    let owned = |(path, bytes): &(&str, Vec<u8>)| ((*path).to_owned(), bytes.clone());
    files.extend(with_one_answer.iter().chain(&with_decisions).map(owned));
    let before = files.clone();
    let corrected = fix(&mut files);
    let left = read(&files);
    let shown: Vec<String> = left.iter().map(ToString::to_string).collect();
    for found in &left {
        let is_decision = with_decisions.iter().any(|(path, _)| *path == found.location.source.path);
        assert!(is_decision, "{found}\n{}", String::from_utf8_lossy(&files[&found.location.source.path]));
    }
    for (path, bytes) in &with_decisions {
        assert!(shown.iter().any(|found| found.starts_with(path)), "{path}: {shown:?}");
        assert_eq!(&files[*path], bytes, "{path} was changed");
    }
    assert_eq!(files["_shared/tone.md"], before["_shared/tone.md"]);
    assert!(corrected >= 30, "{corrected} findings");
    assert!(files.contains_key("my-prompt-file.md") && files.contains_key("launch.md"), "{:?}", files.keys());
    // A second run has nothing to do.
    let corrected = files.clone();
    assert_eq!(fix(&mut files), 0);
    assert_eq!(files, corrected);
}

/// A name is what other programs call a prompt, and an unknown encoding has no answer.
#[test]
fn names_and_texts_without_one_answer_stay() {
    let text = "---\ndescription: d\n---\nHi\n";
    let mut files: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    for path in [
        ".github/prompts/Review.prompt.md",
        "X.prompt.yml",
        ".claude/skills/MySkill/SKILL.md",
        "act.prompt.md",
        ".claude/commands/My Command.md",
        "名前.md",
        "Привет.md",
    ] {
        let text = if path.ends_with("yml") { "name: X Y\nmessages: [{role: user, content: Hi}]\n" } else { text };
        let text = text.replace("Hi", if path.starts_with("act") { "${input:role}" } else { "Hi" });
        files.insert(path.to_owned(), text.into_bytes());
    }
    let encoded = |bytes: &[u8]| [b"---\ndescription: d\n---\n", bytes, b"\n"].concat();
    // "Привет" in Windows-1251 and KOI8-R, "你好世界" in GBK, "こんにちは" in Shift-JIS.
    files.insert("cp1251.md".to_owned(), encoded(&[0xcf, 0xf0, 0xe8, 0xe2, 0xe5, 0xf2]));
    files.insert("koi8.md".to_owned(), encoded(&[0xf0, 0xd2, 0xc9, 0xd7, 0xc5, 0xd4]));
    files.insert("gbk.md".to_owned(), encoded(&[0xc4, 0xe3, 0xba, 0xc3, 0xca, 0xc0, 0xbd, 0xe7]));
    files.insert("sjis.md".to_owned(), encoded(&[0x82, 0xb1, 0x82, 0xf1, 0x82, 0xc9, 0x82, 0xbf, 0x82, 0xcd]));
    // A rule below the text, and a name that another argument has.
    files.insert("rule.md".to_owned(), b"---\ndescription: d\nHello world\n-----\nBye\n".to_vec());
    // A key that is there already, and names that would be exchanged.
    files.insert("key.md".to_owned(), b"---\ntitel: a\ntitle: b\ndescription: d\n---\nx\n".to_vec());
    let taken = "---\ndescription: d\narguments:\n  - name: my tone\n  - name: my_tone\n---\n{{ my_tone }}\n";
    files.insert("taken.md".to_owned(), taken.into());
    let before = files.clone();
    fix(&mut files);
    assert_eq!(files.keys().collect::<Vec<_>>(), before.keys().collect::<Vec<_>>());
    for path in ["cp1251.md", "koi8.md", "gbk.md", "sjis.md", "rule.md", "taken.md", "key.md"] {
        assert_eq!(files[path], before[path], "{path}");
        assert_eq!(decoded(&files[path]), None, "{path}");
    }
    for (name, expected) in [("Ünï x", "ueni-x"), ("Señor Łoś", "senor-los")] {
        assert_eq!(portable(name).as_deref(), Some(expected));
    }
}

/// One byte is `ê` in the western code page of Windows and `ę` in the central European one: where languages differ, nobody
/// can know.
#[test]
fn text_of_a_code_page_is_read_where_all_languages_agree() {
    let text = |bytes: &[u8]| decoded(bytes);
    for (bytes, expected) in [
        (&b"Gr\xf6\xdfe, \x93quotes\x94 \x96 5 \x80"[..], "Größe, “quotes” – 5 €"),
        (b"\x8cuvre, \xe0 l\x92\xe9t\xe9, gar\xe7on", "Œuvre, à l’été, garçon"),
        (b"\xbfQu\xe9 ma\xf1ana, se\xf1or M\xe1rquez?", "¿Qué mañana, señor Márquez?"),
        (b"R\xf8dgr\xf8d med fl\xf8de p\xe5 \xe6ble", "Rødgrød med fløde på æble"),
        (b"Prosz\xea \xf3sm\xb9 \xb3\xb9k\xea", "Proszę ósmą łąkę"),
        (b"P\xf8\xedli\x9a \x9elu\x9dou\xe8k\xfd k\xf9\xf2", "Příliš žluťoučký kůň"),
        (b"\xf5r\xfclt, t\xfbr\xf5, \xe1rv\xedz", "őrült, tűrő, árvíz"),
    ] {
        assert_eq!(text(bytes).as_deref(), Some(expected));
    }
    // Polish or French, Czech or French, Lithuanian or French.
    for bytes in [&b"Cze\x9c\xe6, prosz\xea"[..], b"tr\xe8s", b"k\xe0 \xe8ia"] {
        assert_eq!(text(bytes), None, "{bytes:?}");
    }
    // A byte is missing.
    assert_eq!(text(b"\xff\xfea\0b"), None);
}

#[test]
fn renamed_argument_is_not_named_back() {
    for body in ["{{ my_arg }}", "{{ my arg }} {{ my_arg }}", "{{ my arg }}"] {
        let text =
            format!("---\ndescription: d\narguments:\n  - name: my arg\n    description: How\n---\nUse {body}.\n");
        let mut files = BTreeMap::from([("a.md".to_owned(), text.into_bytes())]);
        fix(&mut files);
        let fixed = String::from_utf8_lossy(&files["a.md"]).into_owned();
        assert!(!fixed.contains("my arg") && read(&files).is_empty(), "{fixed}{:?}", read(&files));
    }
}

#[test]
fn advice_is_for_people_who_write_texts() {
    let text =
        |body: &str| BTreeMap::from([("a.md".to_owned(), format!("{HEAD}{{{{ tone }}}} {body}\n").into_bytes())]);
    for (body, advice) in [
        ("{{ today() }}", "there is no clock: add an argument of type `date`"),
        ("{{ tone | uppercase }}", "did you mean `upper`?"),
        ("{% include _a/b.md %}", "put quotation marks around the path"),
        ("$ARGUMENTS", "declare an argument"),
    ] {
        let found = read(&text(body));
        assert!(found.iter().any(|found| found.help.as_deref().is_some_and(|help| help.contains(advice))), "{found:?}");
    }
    for (line, advice) in [
        ("maxLength: many", "write a number"),
        ("required: maybe", "write `true` or `false`"),
        ("model: opus", "this looks like a command of Claude Code"),
    ] {
        let indent = if line.starts_with("model") { "" } else { "    " };
        let file = HEAD.replace("How\n---", &format!("How\n{indent}{line}\n---"));
        let found = read(&BTreeMap::from([("a.md".to_owned(), format!("{file}{{{{ tone }}}}\n").into_bytes())]));
        assert!(
            found.iter().any(|found| found.help.as_deref().is_some_and(|help| help.contains(advice))),
            "{line}: {found:?}"
        );
    }
}

#[test]
fn files_of_other_programs_keep_their_placeholders() {
    let files = BTreeMap::from([(
        ".claude/commands/a.md".to_owned(),
        b"---\ndescription: Does\nargument-hint: x\n---\nDo $ARGUMENTS\n".to_vec(),
    )]);
    assert!(read(&files).iter().all(|found| !found.message.contains("$ARGUMENTS")), "{:?}", read(&files));
}

#[test]
fn fix_that_makes_something_worse_is_refused_with_the_reason() {
    let prompt = |key: &str| format!("---\ndescription: d\n{key}\n---\nHi\n").into_bytes();
    let mut files = Library::from([
        ("a.md".to_owned(), prompt("aliasse: [other]")),
        ("b.md".to_owned(), prompt("nmae: other")),
        ("c.md".to_owned(), prompt("tgas: [internal]")),
        ("promptshelf.toml".to_owned(), b"[[access]]\ntags = [\"internal\"]\nroles = [\"ops\"]\n".to_vec()),
        ("d.md".to_owned(), prompt("titel: D")),
    ]);
    let (corrected, refused) = fix_texts(&mut files);
    assert_eq!((corrected, &files["a.md"], &files["d.md"]), (2, &prompt("aliases: [other]"), &prompt("title: D")));
    let reasons: Vec<(&str, &str)> =
        refused.iter().map(|(found, reason)| (&*found.location.source.path, &**reason)).collect();
    let expected =
        [("b.md", "the prompt of b.md would have another name"), ("c.md", "other access rules would apply to c.md")];
    assert_eq!(reasons, expected);
}

#[test]
fn key_that_is_more_than_a_slip_is_a_decision() {
    for (key, is_corrected) in
        [("titel: x", true), ("tag: [x]", true), ("note: zz", false), ("foo: true", false), ("stage: [x]", false)]
    {
        let text = format!("---\ndescription: d\n{key}\n---\nHi\n").into_bytes();
        let mut files = Library::from([("a.md".to_owned(), text.clone())]);
        assert_eq!((fix_texts(&mut files).0 == 1, files["a.md"] != text), (is_corrected, is_corrected), "{key}");
    }
}

/// Parts of files with mistakes that meet each other.
fn library() -> impl Strategy<Value = Library> {
    let key = || {
        prop::sample::select(vec![
            "description: d",
            "desciption: d",
            "titel: a",
            "title: b",
            "titlle: c",
            "tags: [internal]",
            "tgas: [internal]",
            "name: My-Prompt",
            "nmae: other",
            "aliases: [Review]",
            "acess: {roles: [ops]}",
            "access: {roles: [a]}",
            "description: Note: x",
            "description:\u{a0}x",
            "requird: yes",
            "deprecated: {replacement: Review}",
            "tool: yess",
        ])
    };
    let argument = || {
        prop::sample::select(vec![
            "my arg",
            "my-arg",
            "my_arg",
            "tone",
            "ton",
            "to\u{200b}ne",
            "Tone\n    type: strng",
            "x\n    titel: a\n    title: b",
            "y\n    enum: [“a”, “b”]",
            "z\n    default: 'it's'",
        ])
    };
    let body = || {
        prop::sample::select(vec![
            "{{ my arg }}",
            "{{ my_arg }}",
            "{{ my-arg }}",
            "{{ tone }}",
            "{{ ton }}",
            "{{ tone | uper }}",
            "{% if tone = “x” %}a{% endif %}",
            "{% set my_arg = 1 %}",
            "{{ prompt(\"Review\") }}",
            "{{ prompt(\"my-prompt\") }}",
            "{% include _part.md %}",
            "{% include \"_part.md\" %}",
            "{{ role(\"asistant\") }}",
            "Hi\u{200b}",
            "{{ tone }",
            "-----",
            "My-Prompt",
        ])
    };
    let lines = |mark: &'static str| prop::sample::select(vec![mark, mark, mark, "----", "—", " ---"]);
    let file = (
        lines("---"),
        prop::collection::vec(key(), 0..4),
        prop::collection::vec(argument(), 0..3),
        lines("---"),
        prop::collection::vec(body(), 0..4),
        prop::sample::select(vec!["", "\u{f6}", "\u{e0}", "\0"]),
    );
    let file = file.prop_map(|(open, keys, arguments, close, body, other)| {
        let keys: String = keys.iter().map(|key| format!("{key}\n")).collect();
        let list: String = arguments.iter().map(|name| format!("  - name: {name}\n    description: d\n")).collect();
        let list = if list.is_empty() { list } else { format!("arguments:\n{list}") };
        let mut bytes = format!("{open}\n{keys}{list}{close}\n{}", body.join(" ")).into_bytes();
        match other {
            "" => {}
            "\0" => bytes = [vec![0xff, 0xfe], bytes.into_iter().flat_map(|byte| [byte, 0]).skip(1).collect()].concat(),
            other => bytes.extend(other.chars().map(|c| u8::try_from(u32::from(c)).expect("Latin-1"))),
        }
        bytes
    });
    let path = prop::sample::select(vec![
        "a.md",
        "b.md",
        "My Prompt.md",
        "my-prompt.md",
        "Review.md",
        "review.md",
        "sub/Ünï.md",
        "_part.md",
        "_My Part.md",
    ]);
    let pattern = prop::sample::select(vec!["My-*", "my-prompt", "Review", "*", "[a-m]*", "Nobody"]);
    let rule = prop::option::of((pattern, prop::sample::select(vec!["prompts", "tags", "folders"])));
    (prop::collection::btree_map(path, file, 1..5), rule).prop_map(|(files, rule)| {
        let mut files: Library = files.into_iter().map(|(path, bytes)| (path.to_owned(), bytes)).collect();
        if let Some((pattern, key)) = rule {
            let value = if key == "tags" { "internal" } else { pattern };
            files.insert(
                "promptshelf.toml".to_owned(),
                format!("[[access]]\n{key} = [\"{value}\"]\nroles = [\"ops\"]\n").into_bytes(),
            );
        }
        files
    })
}

fn with_errors(findings: &[Diagnostic]) -> BTreeSet<String> {
    let errors = findings.iter().filter(|found| found.is_error());
    errors.map(|found| found.location.source.path.clone()).collect()
}

fn rules(catalog: &Catalog) -> BTreeMap<String, BTreeSet<String>> {
    let rules = |index| catalog.prompt_access(index).iter().map(|rule| format!("{rule:?}")).collect();
    catalog
        .prompts()
        .iter()
        .enumerate()
        .map(|(index, prompt)| (prompt.source().path.to_string(), rules(index)))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn fixes_leave_no_more_errors_and_the_same_access_rules_and_end(library in library()) {
        let mut files = library.clone();
        let (before, catalog) = checked(&files);
        fix_texts(&mut files);
        let (after, now) = checked(&files);
        for path in with_errors(&after).difference(&with_errors(&before)) {
            prop_assert!(false, "{path} has errors now: {after:?}");
        }
        let now = rules(&now);
        for (path, rules) in rules(&catalog) {
            prop_assert_eq!(now.get(&path), Some(&rules), "{}", path);
        }
        let corrected = files.clone();
        fix_texts(&mut files);
        prop_assert_eq!(files, corrected);
    }
}

/// Callers and access rules of a server use the name of a prompt that is served.
#[test]
fn prompt_that_is_served_keeps_its_name() {
    let file = |path: &str| (path.to_owned(), b"---\ndescription: Pays\n---\nHi\n".to_vec());
    let mut files: Library =
        ["Payroll.md", "Git/Commit.md", "a.b.md", "my prompt.md", "team/My note.md", "team/two words.md"]
            .map(file)
            .into();
    let renames = |files: &Library, is_only: bool| {
        let found = read(files);
        let fixes = found.iter().flat_map(fixes).filter(|fix| fix.is_only == is_only);
        let renames = fixes.filter_map(|fix| match fix.change {
            Change::Rename(to) => Some((fix.path, to)),
            _ => None,
        });
        renames.collect::<BTreeMap<String, String>>()
    };
    let expected = [("my prompt.md", "my-prompt.md"), ("team/two words.md", "team/two-words.md")];
    let expected = expected.map(|(from, to)| (from.to_owned(), to.to_owned()));
    assert_eq!(renames(&files, true), expected.into());
    let offered = renames(&files, false);
    assert_eq!(offered.get("Payroll.md").map(String::as_str), Some("payroll.md"), "{offered:?}");
    let names = |files: &Library| -> BTreeSet<String> {
        checked(files).1.prompts().iter().map(|prompt| prompt.name().to_string()).collect()
    };
    let before = names(&files);
    assert!(["Payroll", "Git-Commit", "team-My-note"].iter().all(|name| before.contains(*name)), "{before:?}");
    assert!(fix(&mut files) > 1 && files.contains_key("my-prompt.md"), "{files:?}");
    assert_eq!(names(&files), before);
}

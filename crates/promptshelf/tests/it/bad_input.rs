//! Every command with bad input: a sentence, an exit code, and nothing half done.

use std::{
    fs,
    io::Read as _,
    process::{Command, Stdio},
};

use crate::{
    program::{Folder, library, promptshelf, run, shown},
    terminal::Terminal,
};

const HELLO: &str = "---\ndescription: Greets\narguments:\n  - name: who\n    description: Whom\n    enum: [Ada, Bob]\n---\nHello {{ who }}!\n";

/// The commands that the help lists, without those that go on until they are stopped.
fn commands() -> Vec<String> {
    let listed = promptshelf().arg("--help").output().expect("it runs").stdout;
    let listed = String::from_utf8(listed).expect("text");
    let overview = listed.split("\nUsage:").next().unwrap_or_default();
    let names = overview.lines().filter_map(|line| line.strip_prefix("  ")?.split_whitespace().next());
    let names: Vec<String> = names.map(str::to_owned).collect();
    assert!(names.len() > 40, "{names:?}");
    names
}

fn here(folder: &Folder, line: &[&str]) -> Command {
    let mut command = promptshelf();
    let state = std::env::temp_dir().join("promptshelf-bad-input");
    command.args(line).current_dir(folder.path()).env("HOME", folder.path()).env("XDG_STATE_HOME", state);
    command.env_remove("PROMPTSHELF_STORE");
    command
}

// req: S-440
#[test]
fn unknown_options_and_missing_words_are_refused_in_a_sentence() {
    let folder = library(&[("hello.md", HELLO)]);
    let before = fs::read_dir(folder.path()).expect("a folder").count();
    for name in commands() {
        let ended = shown(here(&folder, &[&name, "--no-such-option"]), "");
        assert!(ended.starts_with("exit code: 2\n") && ended.contains("error: "), "{name}: {ended}");
        assert!(!ended.contains("panicked"), "{name}: {ended}");
        let help = shown(here(&folder, &[&name, "--help"]), "");
        assert!(help.starts_with("exit code: 0\n") && help.contains("Usage: promptshelf"), "{name}: {help}");
        let paths = ["nowhere/at/all", "-q"];
        if ["check", "test", "fmt", "list"].contains(&name.as_str()) {
            let ended = shown(here(&folder, &[&name, paths[0], paths[1]]), "");
            assert!(!ended.starts_with("exit code: 0\n") && ended.contains("nowhere"), "{name}: {ended}");
        }
    }
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), before, "nothing was written");
}

// req: S-441
#[test]
fn closed_pipe_and_colours_are_respected() {
    let files: Vec<(String, &str)> = (0..300).map(|number| (format!("p{number}.md"), "{{ nobody }}\n")).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
    let folder = library(&files);
    for line in [&["check", "prompts"][..], &["help"], &["explain"], &["check", "prompts", "--json"]] {
        let mut child = here(&folder, line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        let mut first = [0; 10];
        child.stdout.take().expect("a pipe").read_exact(&mut first).expect("some bytes");
        let ended = child.wait_with_output().expect("it ends");
        let stderr = String::from_utf8_lossy(&ended.stderr);
        assert!(!stderr.contains("panicked"), "{line:?}: {stderr}");
    }
    for (line, variable, has_colours) in [
        (&["check", "prompts"][..], "0", false),
        (&["check", "prompts", "--color", "always"], "0", true),
        (&["check", "prompts", "--color=always"], "1", true),
    ] {
        let mut command = here(&folder, line);
        if variable == "1" {
            command.env("NO_COLOR", "1");
        }
        let output = shown(command, "");
        assert_eq!(output.contains("\u{1b}["), has_colours, "{line:?}");
    }
}

// req: S-442
#[test]
fn long_names_and_bidirectional_text_stay_on_their_line() {
    let long = format!("{}.md", "n".repeat(250));
    let folder = library(&[(&long, HELLO), ("odd\u{202e}name.md", "Hi \u{202e}there\n"), ("hello.md", HELLO)]);
    for line in [&["check", "prompts"][..], &["list", "prompts"], &["test", "prompts"], &["fmt", "prompts", "--check"]]
    {
        let (_, written) = Terminal::start(here(&folder, line)).end();
        let text = String::from_utf8_lossy(&written);
        assert!(!text.contains('\u{202e}') && !text.contains("panicked"), "{line:?}: {text}");
    }
    let missing = run(&folder, &["get", "prompts", &"n".repeat(300)]);
    assert!(missing.starts_with("exit code: 7"), "{missing}");
}

#[test]
fn mistakes_in_many_prompts_are_one_screen() {
    let folder = library(&[("hello.md", HELLO)]);
    for number in 0..1_000 {
        fs::write(folder.path().join(format!("prompts/p{number}.md")), "{{ nobody }}\n").expect("a file");
    }
    let output = run(&folder, &["check", "prompts", "--client", "all"]);
    assert!(output.starts_with("exit code: 1"), "{}", &output[..200]);
    assert!(output.contains("1000 undeclared-argument"), "{}", &output[output.len() - 600..]);
    assert!(output.lines().count() < 200, "{} lines", output.lines().count());
}

#[test]
fn fixes_are_shown_and_written_once() {
    let folder = library(&[
        ("hello.md", "---\ndesciption: Greets\n---\nHi {{ who }}\n"),
        ("my note.md", "---\ndescription: Notes\n---\nNote\n"),
        ("twice.md", "---\ndescription: Twice\narguments: [tone]\n---\n{% if tone = “x” %}a{% end if %}\n"),
    ]);
    let dry = run(&folder, &["check", "prompts", "--fix", "--dry-run"]);
    assert!(dry.contains("+description: Greets") && dry.contains("would be corrected"), "{dry}");
    assert!(dry.contains("+{% if tone == \"x\" %}a{% endif %}"), "the second mistake is behind the first: {dry}");
    let read = |path: &str| fs::read_to_string(folder.path().join("prompts").join(path));
    assert!(read("hello.md").expect("a file").contains("desciption"));
    let fixed = run(&folder, &["check", "prompts", "--fix"]);
    let end = |output: &str| output.split_once("corrected\n").map(|(_, end)| end.to_owned());
    assert_eq!((end(&dry), &dry[..12]), (end(&fixed), &fixed[..12]), "a dry run ends with the same findings and code");
    assert!(fixed.contains("-desciption: Greets\n+description: Greets") && fixed.contains("my-note.md"), "{fixed}");
    // What needs a decision stays: `who` could be an argument or text.
    assert!(fixed.starts_with("exit code: 1") && fixed.contains("undeclared-argument"), "{fixed}");
    assert_eq!(read("hello.md").expect("a file"), "---\ndescription: Greets\n---\nHi {{ who }}\n");
    assert!(read("my-note.md").is_ok() && read("my note.md").is_err());
    assert!(run(&folder, &["check", "prompts", "--fix"]).contains("0 findings corrected"));
}

#[test]
fn file_keeps_its_name_if_the_new_one_is_taken_or_others_refer_to_it() {
    let prompt = "---\ndescription: d\n---\nHi\n";
    for (other, text) in [
        ("my-note.md", prompt),
        ("MY-NOTE.md", prompt),
        ("my  note.md", prompt),
        ("x.md", "---\ndescription: d\n---\n{% include \"my note.md\" %}\n"),
    ] {
        let folder = library(&[("my note.md", prompt), (other, text)]);
        let listed = |folder| run(folder, &["list", "prompts"]);
        let before = listed(&folder);
        let [dry, fixed] =
            [&["--dry-run"][..], &[]].map(|words| run(&folder, &[&["check", "prompts", "--fix"][..], words].concat()));
        let notes = |output: &str| output.lines().filter(|line| line.contains("keeps its name")).count();
        assert!(notes(&dry) > 0 && notes(&dry) == notes(&fixed), "{other}: {dry}{fixed}");
        let head = |output: &str| output.split_once("corrected\n").map(|(head, _)| head.to_owned());
        let done = dry.replace("would rename", "renamed").replace("would be corrected", "corrected");
        assert_eq!(head(&done), head(&fixed), "{other}");
        assert_eq!(listed(&folder).lines().count(), before.lines().count(), "{fixed}");
    }
}

#[test]
fn partials_and_byte_order_marks_are_corrected_in_the_file_that_is_there() {
    let front = "---\ntitle: of no use\n---\n";
    let folder = library(&[
        ("a.md", "---\ndescription: d\n---\n{% include \"_p/p.md\" %}{% include \"_p/q.md\" %}\n"),
        ("_p/p.md", &format!("{front}Hi {{{{ “x” }}}}\n")),
        ("_p/q.md", "\u{feff}Hi {{ “y” }}\n"),
    ]);
    let dry = run(&folder, &["check", "prompts", "--fix", "--dry-run"]);
    assert!(!dry.contains("cannot be changed"), "{dry}");
    let fixed = run(&folder, &["check", "prompts", "--fix"]);
    assert!(fixed.contains("2 findings corrected"), "{fixed}");
    let read = |path: &str| fs::read_to_string(folder.path().join("prompts").join(path)).expect("a file");
    assert_eq!(read("_p/p.md"), format!("{front}Hi {{{{ \"x\" }}}}\n"));
    assert_eq!(read("_p/q.md"), "\u{feff}Hi {{ \"y\" }}\n");
}

#[test]
fn text_in_an_unknown_encoding_stays_and_is_told() {
    let folder = library(&[("a.md", "---\ndescription: d\n---\nHi\n")]);
    let path = folder.path().join("prompts/a.md");
    let utf32: Vec<u8> = "\u{feff}---\nx: y\n---\nHi 😀\n".chars().flat_map(|c| u32::from(c).to_le_bytes()).collect();
    for bytes in [&b"na\xefve\n"[..], b"ch\xc3\xa0o b\xe1n\n", &utf32] {
        fs::write(&path, bytes).expect("a file");
        let checked = run(&folder, &["check", "prompts"]);
        assert!(!checked.contains("--fix"), "{checked}");
        let fixed = run(&folder, &["check", "prompts", "--fix"]);
        assert!(fixed.starts_with("exit code: 1\n") && fixed.contains("not-utf-8"), "{fixed}");
        assert_eq!(fs::read(&path).expect("a file"), bytes);
    }
}

#[test]
fn new_prompt_takes_no_name_from_another_one() {
    let folder = library(&[("git-commit.md", HELLO)]);
    let refused = run(&folder, &["new", "prompts", "git/commit"]);
    assert!(
        refused.starts_with("exit code: 1\n") && refused.contains("git-commit.md is called git-commit"),
        "{refused}"
    );
    assert!(!folder.path().join("prompts/git").exists());
}

#[test]
fn access_rule_in_a_file_of_another_program_is_an_error() {
    let folder = library(&[
        (".claude/commands/a.md", "---\ndescription: d\naccess:\n  roles: [ops]\n---\nHi\n"),
        ("sk/SKILL.md", "---\nname: sk\ndescription: d\nacess:\n  roles: [ops]\n---\nHi\n"),
    ]);
    let checked = run(&folder, &["check", "prompts"]);
    assert!(checked.starts_with("exit code: 1\n") && checked.matches("restricts nothing").count() == 2, "{checked}");
    let listed = run(&folder, &["list", "prompts"]);
    assert!(!listed.contains("sk"), "{listed}");
}

#[test]
fn values_are_for_arguments_of_the_chosen_prompts() {
    let argument = |name: &str| format!("---\ndescription: d\narguments: [{name}]\n---\nHi {{{{ {name} }}}}\n");
    let folder = library(&[("a.md", &argument("x")), ("b.md", &argument("y"))]);
    let export = |values: &[&str]| {
        let line = ["export", "prompts", "--format", "messages", "--to", "out"];
        let values = values.iter().flat_map(|value| ["--arg", value]);
        run(&folder, &line.into_iter().chain(values).collect::<Vec<_>>())
    };
    // Each prompt takes its own of them.
    let both = export(&["x=1", "y=2"]);
    assert!(!both.contains("has an argument") && !both.contains("has no argument"), "{both}");
    let unknown = export(&["x=1", "z=2"]);
    assert!(
        unknown.starts_with("exit code: 8") && unknown.contains("none of the prompts has an argument `z`"),
        "{unknown}"
    );
    let one = run(&folder, &["render", "a", "-l", "prompts", "--arg", "y=1"]);
    assert!(one.starts_with("exit code: 8") && one.contains("the prompt has no argument `y`"), "{one}");
}

#[test]
fn files_find_their_library_above() {
    let folder = library(&[
        ("promptshelf.toml", ""),
        ("team/a.md", "---\ndescription: A\ntests:\n  - contains: [A]\n---\nA {% include \"_tone.md\" %}\n"),
        ("b.md", "{{ nobody }}\n"),
        ("_tone.md", "Kindly.\n"),
    ]);
    let checked = run(&folder, &["check", "prompts/team/a.md"]);
    assert!(checked.starts_with("exit code: 0") && !checked.contains("nobody"), "{checked}");
    let tested = run(&folder, &["test", "prompts/team/a.md"]);
    assert!(tested.starts_with("exit code: 0") && tested.contains("1 test passed"), "{tested}");
    let both = run(&folder, &["check", "prompts/team/a.md", "prompts/b.md"]);
    assert!(both.starts_with("exit code: 1") && both.contains("prompts/b.md:1:4"), "{both}");
    let none = run(&folder, &["test", "prompts", "--filter", "nope"]);
    assert!(none.starts_with("exit code: 7") && none.contains("no test has `nope`"), "{none}");
    let mut formatted = promptshelf();
    formatted.args(["fmt", "-"]);
    let formatted = shown(formatted, "---\ndescription:   'x'\nname: a\n---\nHi\n");
    assert!(formatted.contains("---\nname: a\ndescription: \"x\"\n---\nHi\n"), "{formatted}");
    fs::write(folder.path().join("prompts/team/a.md"), "---\ndescription:   'x'\n---\nHi\n").expect("a file");
    let diff = run(&folder, &["fmt", "--diff", "prompts/team/a.md"]);
    assert!(diff.starts_with("exit code: 1") && diff.contains("+description: \"x\""), "{diff}");
}

#[test]
fn shells_are_offered_prompts_arguments_and_clients() {
    let folder = library(&[("hello.md", HELLO)]);
    let offered = |words: &[&str], index: &str| {
        let mut command = promptshelf();
        command.env("COMPLETE", "bash").env("_CLAP_COMPLETE_INDEX", index).env("_CLAP_IFS", "\n");
        command.env("_CLAP_COMPLETE_COMP_TYPE", "9").env("_CLAP_COMPLETE_SPACE", "true");
        command.args(["--", "promptshelf"]).args(words).current_dir(folder.path());
        shown(command, "")
    };
    for (words, index, expected) in [
        (&["get", "prompts", "he"][..], "3", "hello"),
        (&["get", "prompts", "hello", "w"], "4", "who="),
        (&["get", "prompts", "hello", "who=B"], "4", "who=Bob"),
        (&["check", "--client", "ze"], "3", "zed"),
        (&["get", "prompts", "hello", "who=B"], "4", "who=Bob"),
        (&["kno"], "1", "known-clients"),
        (&["explain", "missing-d"], "2", "missing-description"),
        (&["help", "templ"], "2", "templates"),
    ] {
        let offered = offered(words, index);
        assert!(offered.contains(expected), "{words:?}: {offered}");
    }
}

/// What bash inserts for the last word of a line. It divides words at `=` and `:`.
#[test]
fn bash_completes_words_with_signs_in_them() {
    let folder = library(&[("hello.md", HELLO)]);
    let store = run(&folder, &["init", "sqlite:team.db", "--from", "prompts"]);
    assert!(store.starts_with("exit code: 0"), "{store}");
    let program = env!("CARGO_BIN_EXE_promptshelf");
    for (line, expected) in [
        ("promptshelf get prompts hel", "hello"),
        ("promptshelf get prompts hello who=", "Ada Bob"),
        ("promptshelf get prompts hello who=B", "Bob"),
        ("promptshelf history sqlite:team.db --channel pro", "production"),
        ("promptshelf history sqlite:team.db#pro", "team.db#production"),
    ] {
        let divided = line.replace('=', " = ").replace(':', " : ");
        let words: Vec<&str> = divided.split_whitespace().collect();
        let last = words.last().copied().filter(|last| !["=", ":"].contains(last)).unwrap_or_default();
        let script = format!(
            "promptshelf() {{ '{program}' \"$@\"; }}; compopt() {{ :; }}; eval \"$(promptshelf completions bash)\"\n\
             COMP_LINE='{line}' COMP_TYPE=9 COMP_WORDS=({}) COMP_CWORD={}\n\
             _promptshelf promptshelf '{last}' ''; echo \"${{COMPREPLY[*]}}\"",
            words.join(" "),
            words.len() - 1
        );
        let output = Command::new("bash").arg("-c").arg(&script).current_dir(folder.path()).output().expect("bash");
        let (found, problem) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(found.trim_end(), expected, "{line}: {problem}");
    }
}

#[test]
fn words_of_rollouts_follow_the_grammar() {
    let folder = library(&[("hello.md", HELLO)]);
    for (line, expected) in [
        (&["init", "sqlite:team.db", "--from", "prompts"][..], "production"),
        (&["publish", "prompts", "--to", "sqlite:team.db#next", "-m", "x"], "next, a new channel, is at revision 1"),
        (&["rollout", "start", "sqlite:team.db", "production", "--to", "next"], "next is served to 10 %"),
        (&["rollout", "set", "sqlite:team.db", "production", "25%"], "next is served to 25 %"),
        (&["rollout", "list", "sqlite:team.db"], "production"),
        // A file of SQLite needs no scheme.
        (&["history", "team.db#next"], "+hello"),
        (&["publish", "prompts", "--to", "team.db", "-m", "x"], "no changes: production"),
        (&["rollout", "show", "sqlite:team.db", "production"], "25 %"),
        (&["rollout", "pause", "production", "--store", "sqlite:team.db"], "takes no steps"),
    ] {
        let shown = run(&folder, line);
        assert!(shown.starts_with("exit code: 0") && shown.contains(expected), "{line:?}: {shown}");
    }
    for (line, expected) in [
        (&["rollout", "set", "sqlite:team.db", "production", "101"][..], "from 0 to 100 per cent"),
        (&["proposals", "list", "sqlite:team.db"], "`list` is not a store"),
        (&["history", "prompts/hello.md", "x"], "the store in it is `sqlite:prompts/hello.md`"),
        (&["diff", "sqlite:team.db", "1..2"], "write two words: `1 2`"),
    ] {
        let shown = run(&folder, line);
        assert!(shown.starts_with("exit code: 2") && shown.contains(expected), "{line:?}: {shown}");
    }
    // The store in the library is not published to itself.
    let other = run(&folder, &["init", "sqlite:prompts/team.db"]);
    assert!(other.starts_with("exit code: 0"), "{other}");
    let published = run(&folder, &["publish", "prompts", "--to", "sqlite:prompts/team.db", "-m", "x"]);
    assert!(published.contains("left out team.db: it is the store itself"), "{published}");
}

#[test]
fn channel_of_a_store_is_read_like_a_folder() {
    let folder = library(&[("hello.md", HELLO)]);
    for (line, code, expected) in [
        (&["init", "team.db", "--from", "prompts"][..], 0, "production"),
        (&["list", "team.db"], 0, "hello"),
        (&["get", "sqlite:team.db#production@1", "hello", "who=Ada"], 0, "Hello Ada!"),
        (&["check", "team.db"], 0, "1 prompt, no findings"),
        (&["check", "team.db", "--fix"], 2, "a store is only read"),
        (&["list", "team.db#nowhere"], 7, "nowhere"),
        (&["list", "nowhere.db"], 15, "nowhere.db"),
        (&["new", "prompts", "customer reply"], 2, "such as `customer-reply`"),
        (&["sync", "prompts", "--client", "claude"], 2, "did you mean `claude-code`?"),
    ] {
        let shown = run(&folder, line);
        assert!(shown.starts_with(&format!("exit code: {code}\n")) && shown.contains(expected), "{line:?}: {shown}");
    }
    fs::write(folder.path().join("prompts/notes.txt"), "Hi").expect("a file");
    let named = run(&folder, &["check", "prompts/notes.txt"]);
    assert!(named.contains("this file is not read as a prompt, by its ending"), "{named}");
}

/// Ctrl-C between two files leaves whole files, and none of those next to them.
#[test]
fn interrupted_fmt_leaves_no_other_file() {
    let folder = library(&[("hello.md", HELLO)]);
    let path = |number: usize| folder.path().join(format!("prompts/p{number}.md"));
    for number in 0..3_000 {
        fs::write(path(number), "---\ndescription:   'x'\nname: a\n---\nHi\n").expect("a file");
    }
    let mut child = here(&folder, &["fmt", "prompts"]).stdout(std::process::Stdio::piped()).spawn().expect("it runs");
    // It has begun to write.
    let begun = std::time::Instant::now();
    while fs::read_to_string(path(0)).is_ok_and(|text| text.contains("'x'")) && begun.elapsed().as_secs() < 60 {
        std::thread::yield_now();
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("a running process");
    drop(child.stdout.take());
    let status = child.wait().expect("it ends");
    assert!(matches!(status.code(), Some(130 | 0)), "{status}");
    let names = fs::read_dir(folder.path().join("prompts")).expect("a folder");
    let others: Vec<_> =
        names.flatten().map(|it| it.file_name()).filter(|it| it.as_encoded_bytes()[0] == b'.').collect();
    assert!(others.is_empty(), "{others:?}");
}

//! The walls between crates and rooms.

use super::{
    Finding, Tree,
    code::{code_of, lines_with},
};

/// Which of our crates each crate may see. A new crate is entered here on
/// purpose, not by accident.
const MAY_SEE: &[(&str, &[&str])] = &[
    ("promptshelf-core", &[]),
    ("promptshelf-source", &["promptshelf-core"]),
    ("promptshelf-author", &["promptshelf-core", "promptshelf-source"]),
    ("promptshelf-service", &["promptshelf-core"]),
    ("promptshelf-mcp", &["promptshelf-core", "promptshelf-service"]),
    (
        "promptshelf-server",
        &["promptshelf-core", "promptshelf-source", "promptshelf-author", "promptshelf-service", "promptshelf-mcp"],
    ),
    // The server is here for folders: a client opens them in its own process.
    ("promptshelf-client", &["promptshelf-core", "promptshelf-server"]),
    ("promptshelf", EVERYTHING),
    ("xtask", &[]),
];

/// What the program is made of.
const EVERYTHING: &[&str] = &[
    "promptshelf-core",
    "promptshelf-source",
    "promptshelf-author",
    "promptshelf-service",
    "promptshelf-mcp",
    "promptshelf-server",
    "promptshelf-client",
];

/// What core must never know: runtimes, files, sockets, wire formats. `serde`
/// is here because core's own types derive nothing of it.
const UNKNOWN_TO_CORE: &[&str] = &[
    "axum",
    "cap-std",
    "http",
    "hyper",
    "notify",
    "reqwest",
    "rmcp",
    "serde",
    "tokio",
    "tokio-util",
    "tower",
    "tracing",
];

/// The rooms that write to stdout: what people asked for, or the protocol.
const MAY_PRINT: &[&str] = &[
    "crates/promptshelf/src/cli/commands",
    "crates/promptshelf/src/cli/chat",
    "crates/promptshelf-server/src/stdio",
    "crates/promptshelf-mcp/src/stdio",
];

/// Core ← source, core ← service ← mcp; nobody imports `promptshelf`; core
/// knows no runtime and no wire.
pub(super) fn dependencies_point_one_way(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let ours = |name: &str| tree.crates.iter().any(|it| it.name == name);
    for it in &tree.crates {
        let mut find = |message: String| findings.push(Finding::new(&it.name, 0, message));
        let Some((_, allowed)) = MAY_SEE.iter().find(|(name, _)| *name == it.name) else {
            find("a new crate: say in xtask/src/tidy/walls.rs what it may see".to_owned());
            continue;
        };
        for dependency in &it.dependencies {
            let name = dependency.name.as_str();
            if name == "promptshelf" && it.name != "promptshelf" {
                find("imports `promptshelf`, which nobody may".to_owned());
            } else if ours(name) && !allowed.contains(&name) && !dependency.for_tests {
                find(format!("imports `{name}`, which it must not see"));
            }
            if it.name == "promptshelf-core" && !dependency.for_tests && UNKNOWN_TO_CORE.contains(&name) {
                find(format!("depends on `{name}`, which core must not know"));
            }
        }
    }
    findings
}

/// The template engine can be replaced as long as few files know its name.
pub(super) fn only_template_rooms_name_minijinja(tree: &Tree) -> Vec<Finding> {
    let room = |path: &str| {
        let path = path.strip_prefix("crates/promptshelf-core/src/");
        path.is_some_and(|path| path.starts_with("template") || path.starts_with("filters"))
    };
    words_outside(tree, |path| is_source(path) && !room(path), &["minijinja"], "only core's template rooms name it")
}

/// Core computes. Whoever uses it brings the bytes and the time.
pub(super) fn core_does_no_io(tree: &Tree) -> Vec<Finding> {
    let core = |path: &str| path.starts_with("crates/promptshelf-core/src/");
    let words = ["fs::", "net::", "std::fs", "std::net", "std::process", "std::env", "SystemTime", "Instant"];
    words_outside(tree, core, &words, "core has no files, no sockets and no clock")
}

/// Over stdio, a stray line breaks the conversation.
pub(super) fn stdout_is_sacred(tree: &Tree) -> Vec<Finding> {
    let may_print = |path: &str| {
        MAY_PRINT.iter().any(|room| path.strip_prefix(room).is_some_and(|rest| rest.starts_with(['/', '.', '_'])))
    };
    let words = ["print!", "println!", "stdout()"];
    words_outside(tree, |path| is_source(path) && !may_print(path), &words, "stdout belongs to the protocol")
}

/// What is not done is not committed.
pub(super) fn nothing_is_left_to_be_done(tree: &Tree) -> Vec<Finding> {
    words_outside(tree, is_source, &["todo!", "unimplemented!", "dbg!"], "finish it, or leave it out")
}

/// A Rust file of a crate, its tests apart.
fn is_source(path: &str) -> bool {
    path.ends_with(".rs") && path.starts_with("crates/") && path.split('/').nth(2) == Some("src")
}

fn words_outside(tree: &Tree, looked_at: impl Fn(&str) -> bool, words: &[&str], why: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.texts.iter().filter(|(path, _)| looked_at(path)) {
        let code = code_of(text);
        for word in words {
            for line in lines_with(&code, word) {
                findings.push(Finding::new(path, line, format!("`{word}`: {why}")));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::{Crate, Dependency};

    fn depends(name: &str, on: &str, for_tests: bool) -> Crate {
        Crate { name: name.to_owned(), dependencies: vec![Dependency { name: on.to_owned(), for_tests }] }
    }

    fn problems(crates: Vec<Crate>) -> usize {
        dependencies_point_one_way(&Tree { crates, ..Tree::default() }).len()
    }

    fn none(name: &str) -> Crate {
        Crate { name: name.to_owned(), dependencies: Vec::new() }
    }

    #[test]
    fn mcp_may_see_service_but_source_may_not() {
        let service = || none("promptshelf-service");
        assert_eq!(problems(vec![service(), depends("promptshelf-mcp", "promptshelf-service", false)]), 0);
        assert_eq!(problems(vec![service(), depends("promptshelf-source", "promptshelf-service", false)]), 1);
        assert_eq!(problems(vec![service(), depends("promptshelf-source", "promptshelf-service", true)]), 0);
    }

    #[test]
    fn nobody_imports_the_binary_not_even_for_tests() {
        assert_eq!(problems(vec![none("promptshelf"), depends("promptshelf-mcp", "promptshelf", true)]), 1);
    }

    #[test]
    fn core_knows_no_runtime() {
        assert_eq!(problems(vec![depends("promptshelf-core", "tokio", false)]), 1);
        assert_eq!(problems(vec![depends("promptshelf-core", "tokio", true)]), 0);
        assert_eq!(problems(vec![depends("promptshelf-core", "bytes", false)]), 0);
    }

    #[test]
    fn a_crate_that_nobody_entered_is_a_finding() {
        assert_eq!(problems(vec![none("promptshelf-common")]), 1);
    }

    #[test]
    fn minijinja_may_be_named_in_the_template_rooms_and_in_comments() {
        let tree = Tree::of(&[
            ("crates/promptshelf-core/src/template/compile.rs", "use minijinja::Environment;"),
            ("crates/promptshelf-core/src/filters.rs", "use minijinja::Value;"),
            ("crates/promptshelf-core/src/prompt.rs", "// minijinja renders it\nuse minijinja::Error;"),
        ]);
        let findings = only_template_rooms_name_minijinja(&tree);
        assert_eq!(findings.len(), 1);
        assert_eq!((findings[0].path.as_str(), findings[0].line), ("crates/promptshelf-core/src/prompt.rs", 2));
    }

    #[test]
    fn a_clock_in_core_is_found_and_one_elsewhere_is_not() {
        let text = "use std::time::{Duration, Instant};";
        let tree =
            Tree::of(&[("crates/promptshelf-core/src/a.rs", text), ("crates/promptshelf-source/src/a.rs", text)]);
        assert_eq!(core_does_no_io(&tree).len(), 1);
    }

    #[test]
    fn only_the_command_line_and_the_pipe_may_print() {
        let text = "fn f() { println!(); eprintln!(); }";
        let tree = Tree::of(&[
            ("crates/promptshelf/src/cli/commands/list.rs", text),
            ("crates/promptshelf/src/cli/commands.rs", text),
            ("crates/promptshelf/src/cli/settings.rs", text),
            ("crates/promptshelf-mcp/src/stdio.rs", text),
            ("crates/promptshelf-mcp/src/http.rs", text),
            ("crates/promptshelf-mcp/tests/it/main.rs", text),
        ]);
        let findings = stdout_is_sacred(&tree);
        let paths: Vec<&str> = findings.iter().map(|finding| finding.path.as_str()).collect();
        assert_eq!(paths, ["crates/promptshelf-mcp/src/http.rs", "crates/promptshelf/src/cli/settings.rs"]);
    }

    #[test]
    fn a_macro_that_stands_for_unwritten_code_is_found() {
        let tree = Tree::of(&[("crates/promptshelf/src/a.rs", "fn f() { todo! {} }\nfn g() { \"todo!\" }")]);
        assert_eq!(nothing_is_left_to_be_done(&tree).len(), 1);
    }
}

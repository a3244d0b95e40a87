//! Boundaries between crates and modules.

use super::{
    Finding, Tree,
    code::{code_of, lines_with},
};

/// The crates of this project that each crate may depend on. A new crate is added here on purpose.
const ALLOWED: &[(&str, &[&str])] = &[
    ("promptshelf-core", &[]),
    ("promptshelf-source", &["promptshelf-core"]),
    ("promptshelf-author", &["promptshelf-core", "promptshelf-source"]),
    ("promptshelf-store", &["promptshelf-core", "promptshelf-source"]),
    ("promptshelf-git", &["promptshelf-core", "promptshelf-source"]),
    ("promptshelf-service", &["promptshelf-core"]),
    ("promptshelf-mcp", &["promptshelf-core", "promptshelf-service"]),
    (
        "promptshelf-server",
        &[
            "promptshelf-core",
            "promptshelf-source",
            "promptshelf-author",
            "promptshelf-store",
            "promptshelf-git",
            "promptshelf-service",
            "promptshelf-mcp",
        ],
    ),
    ("promptshelf-client", &[]),
    ("promptshelf-upstream", &["promptshelf-core", "promptshelf-source", "promptshelf-client"]),
    ("promptshelf", ALL),
    ("promptshelf-testkit", ALL),
    ("xtask", &[]),
];

/// The crates of the program.
const ALL: &[&str] = &[
    "promptshelf-core",
    "promptshelf-source",
    "promptshelf-author",
    "promptshelf-store",
    "promptshelf-git",
    "promptshelf-service",
    "promptshelf-mcp",
    "promptshelf-server",
    "promptshelf-client",
    "promptshelf-upstream",
];

/// The crate of our tests: only tests depend on it.
const TESTKIT: &str = "promptshelf-testkit";

/// Dependencies that core must not have: runtimes, files, sockets, wire formats. `serde` is listed because core's own
/// types do not derive its traits.
const FORBIDDEN_IN_CORE: &[&str] = &[
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

/// Crates that the client must not depend on, not even through others.
const FORBIDDEN_IN_CLIENT: &[&str] = &["axum", "cap-std", "minijinja", "notify", "promptshelf-server"];

/// The modules that write to stdout: the output of a command, or the protocol.
const MAY_PRINT: &[&str] = &[
    "crates/promptshelf/src/cli/commands",
    "crates/promptshelf/src/cli/chat",
    "crates/promptshelf/src/cli/output",
    "crates/promptshelf/src/cli/terminal",
    "crates/promptshelf-server/src/stdio",
    "crates/promptshelf-mcp/src/stdio",
];

/// Dependencies follow the table of crates; core depends on no runtime and no wire format.
pub(super) fn dependencies_point_one_way(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let ours = |name: &str| tree.crates.iter().any(|it| it.name == name);
    for it in &tree.crates {
        let mut find = |message: String| findings.push(Finding::new(&it.name, 0, message));
        let Some((_, allowed)) = ALLOWED.iter().find(|(name, _)| *name == it.name) else {
            find("new crate: add its allowed dependencies to xtask/src/tidy/walls.rs".to_owned());
            continue;
        };
        for dependency in &it.dependencies {
            let name = dependency.name.as_str();
            if name == "promptshelf" && it.name != "promptshelf" {
                find("depends on `promptshelf`, which no crate may".to_owned());
            } else if ours(name) && !allowed.contains(&name) && !dependency.for_tests {
                find(format!("depends on `{name}`, which the table of crates does not allow"));
            }
            if it.name == "promptshelf-core" && !dependency.for_tests && FORBIDDEN_IN_CORE.contains(&name) {
                find(format!("depends on `{name}`, which core must not use"));
            }
            if name == TESTKIT && !dependency.for_tests {
                find(format!("depends on `{TESTKIT}` outside its tests"));
            }
        }
    }
    findings
}

/// The client is for users of any server, so it must not bring the server's dependencies with it.
pub(super) fn client_is_small(tree: &Tree) -> Vec<Finding> {
    const CLIENT: &str = "promptshelf-client";
    let forbidden = tree.below_client.iter().filter(|name| FORBIDDEN_IN_CLIENT.contains(&name.as_str()));
    forbidden
        .map(|name| {
            let message =
                format!("`{name}` is below it: see `cargo tree --package {CLIENT} --edges normal --invert {name}`");
            Finding::new(CLIENT, 0, message)
        })
        .collect()
}

/// The template engine can be replaced as long as few files name it.
pub(super) fn only_template_modules_name_minijinja(tree: &Tree) -> Vec<Finding> {
    let template = |path: &str| {
        let path = path.strip_prefix("crates/promptshelf-core/src/");
        path.is_some_and(|path| path.starts_with("template") || path.starts_with("filters"))
    };
    words_outside(
        tree,
        |path| is_source(path) && !template(path),
        &["minijinja"],
        "only core's template modules name it",
    )
}

/// Core is pure: its caller passes in bytes and the time.
pub(super) fn core_does_no_io(tree: &Tree) -> Vec<Finding> {
    let core = |path: &str| path.starts_with("crates/promptshelf-core/src/");
    let words = ["fs::", "net::", "std::fs", "std::net", "std::process", "std::env", "SystemTime::now", "Instant"];
    words_outside(tree, core, &words, "core must not use files, sockets or clocks")
}

/// Over stdio, a stray line breaks the protocol.
pub(super) fn stdout_is_reserved(tree: &Tree) -> Vec<Finding> {
    let may_print = |path: &str| {
        MAY_PRINT.iter().any(|module| path.strip_prefix(module).is_some_and(|rest| rest.starts_with(['/', '.', '_'])))
    };
    let words = ["print!", "println!", "stdout()"];
    words_outside(tree, |path| is_source(path) && !may_print(path), &words, "stdout belongs to the protocol")
}

/// Placeholders for unfinished code are not committed.
pub(super) fn no_placeholders(tree: &Tree) -> Vec<Finding> {
    words_outside(tree, is_source, &["todo!", "unimplemented!", "dbg!"], "finish it, or remove it")
}

/// Whether a path is a Rust file of a crate outside its tests.
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
    fn no_crate_depends_on_the_binary_even_for_tests() {
        assert_eq!(problems(vec![none("promptshelf"), depends("promptshelf-mcp", "promptshelf", true)]), 1);
    }

    #[test]
    fn only_tests_depend_on_the_testkit() {
        assert_eq!(problems(vec![none(TESTKIT), depends("promptshelf-mcp", TESTKIT, true)]), 0);
        assert!(problems(vec![none(TESTKIT), depends("promptshelf-mcp", TESTKIT, false)]) > 0);
    }

    #[test]
    fn client_depends_on_no_crate_of_the_workspace() {
        for other in ["promptshelf-core", "promptshelf-server"] {
            assert_eq!(problems(vec![none(other), depends("promptshelf-client", other, false)]), 1);
        }
    }

    #[test]
    fn client_has_no_dependency_of_the_server() {
        let found = |client: Crate, below: &str| {
            let below_client = vec!["serde".to_owned(), below.to_owned()];
            client_is_small(&Tree { crates: vec![client], below_client, ..Tree::default() }).len()
        };
        assert_eq!(found(none("promptshelf-client"), "axum"), 1);
        assert_eq!(found(none("promptshelf-client"), "rmcp"), 0);
        assert_eq!(found(depends("promptshelf-client", "promptshelf-server", false), "axum"), 1);
    }

    #[test]
    fn core_depends_on_no_runtime() {
        assert_eq!(problems(vec![depends("promptshelf-core", "tokio", false)]), 1);
        assert_eq!(problems(vec![depends("promptshelf-core", "tokio", true)]), 0);
        assert_eq!(problems(vec![depends("promptshelf-core", "bytes", false)]), 0);
    }

    #[test]
    fn unlisted_crate_is_a_finding() {
        assert_eq!(problems(vec![none("promptshelf-common")]), 1);
    }

    #[test]
    fn template_modules_and_comments_may_name_minijinja() {
        let tree = Tree::of(&[
            ("crates/promptshelf-core/src/template/compile.rs", "use minijinja::Environment;"),
            ("crates/promptshelf-core/src/filters.rs", "use minijinja::Value;"),
            ("crates/promptshelf-core/src/prompt.rs", "// minijinja renders it\nuse minijinja::Error;"),
        ]);
        let findings = only_template_modules_name_minijinja(&tree);
        assert_eq!(findings.len(), 1);
        assert_eq!((findings[0].path.as_str(), findings[0].line), ("crates/promptshelf-core/src/prompt.rs", 2));
    }

    #[test]
    fn clock_is_found_in_core_only() {
        let text = "use std::time::{Duration, Instant};";
        let tree =
            Tree::of(&[("crates/promptshelf-core/src/a.rs", text), ("crates/promptshelf-source/src/a.rs", text)]);
        assert_eq!(core_does_no_io(&tree).len(), 1);
    }

    #[test]
    fn only_commands_and_stdio_may_print() {
        let text = "fn f() { println!(); eprintln!(); }";
        let tree = Tree::of(&[
            ("crates/promptshelf/src/cli/commands/list.rs", text),
            ("crates/promptshelf/src/cli/commands.rs", text),
            ("crates/promptshelf/src/cli/settings.rs", text),
            ("crates/promptshelf-mcp/src/stdio.rs", text),
            ("crates/promptshelf-mcp/src/http.rs", text),
            ("crates/promptshelf-mcp/tests/it/main.rs", text),
        ]);
        let findings = stdout_is_reserved(&tree);
        let paths: Vec<&str> = findings.iter().map(|finding| finding.path.as_str()).collect();
        assert_eq!(paths, ["crates/promptshelf-mcp/src/http.rs", "crates/promptshelf/src/cli/settings.rs"]);
    }

    #[test]
    fn placeholder_macro_is_found() {
        let tree = Tree::of(&[("crates/promptshelf/src/a.rs", "fn f() { todo! {} }\nfn g() { \"todo!\" }")]);
        assert_eq!(no_placeholders(&tree).len(), 1);
    }
}

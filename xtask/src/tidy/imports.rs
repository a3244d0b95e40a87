//! Module tree of a crate, and the names that each file imports from other files.
//!
//! - A path such as `crate::a::b::f()` in the code is an import, like a `use`. Comments, literals and tests are not
//!   read; method calls are not visible to a scanner.
//! - An import counts towards the file that *defines* the name: re-exports (`pub use`) and aliases are followed, so that
//!   a file which only gathers its children is not imported.
//! - A module is composed of its children, so the names that `a.rs` uses from `a/b.rs` are not imports. The reverse is:
//!   a child that uses `super::Name` depends on its parent.

use std::collections::{BTreeMap, BTreeSet};

use super::{Tree, code::code_of};

/// The files of one crate and their imports.
#[derive(Debug, Default)]
pub(super) struct Crate {
    /// Module path (`["crate", "cli", "chat"]`) to its file.
    modules: BTreeMap<Vec<String>, File>,
}

#[derive(Debug, Default)]
struct File {
    path: String,
    code: String,
    uses: Vec<Use>,
}

/// One name of a `use` declaration.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Use {
    path: Vec<String>,
    /// The name in this file; `*` for a glob.
    alias: String,
    public: bool,
}

/// Importing file to imported file to the names.
pub(super) type Imports = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

/// Re-exports are followed at most so often.
const MOST_HOPS: usize = 16;

impl Crate {
    /// Reads the modules below a root file, such as `crates/one/src/lib.rs`.
    pub(super) fn read(tree: &Tree, root: &str) -> Crate {
        let mut found = Crate::default();
        let folder = root.rsplit_once('/').map_or("", |(folder, _)| folder);
        found.add(tree, vec!["crate".to_owned()], root, folder);
        found
    }

    fn add(&mut self, tree: &Tree, module: Vec<String>, path: &str, folder: &str) {
        let Some(text) = tree.texts.get(path) else { return };
        let code = without_test_items(&code_of(text));
        for name in modules_of(&code) {
            let below = format!("{folder}/{name}");
            let mut paths = [format!("{below}.rs"), format!("{below}/mod.rs")].into_iter();
            if let Some(path) = paths.find(|path| tree.texts.contains_key(path)) {
                let mut module = module.clone();
                module.push(name);
                self.add(tree, module, &path, &below);
            }
        }
        let uses = uses_of(&code);
        self.modules.insert(module, File { path: path.to_owned(), code: without_uses(&code), uses });
    }

    /// Returns the imports between the files.
    pub(super) fn imports(&self) -> Imports {
        let mut imports = Imports::new();
        for (module, file) in &self.modules {
            let mut import = |path: &[String]| {
                if let Some((target, name)) = self.resolve(module, path, MOST_HOPS)
                    && !self.is_within(target, module)
                {
                    let from = imports.entry(file.path.clone()).or_default();
                    from.entry(target.to_owned()).or_default().insert(name);
                }
            };
            for item in &file.uses {
                // A re-export is an import where the file uses the name itself, and the alias of a module where a path
                // begins with it.
                let used = item.alias != "*" && has_word(&file.code, &item.alias);
                let absolute = self.absolute(module, &item.path);
                let is_module = absolute.is_some_and(|path| self.modules.contains_key(&path));
                if !is_module && (used || !item.public) {
                    import(&item.path);
                }
            }
            for path in paths_of(&file.code) {
                let alias = file.uses.iter().find(|item| item.alias == path[0]);
                match alias {
                    Some(item) => import(&[&item.path, &path[1..]].concat()),
                    None => import(&path),
                }
            }
        }
        imports
    }

    /// Whether a file is the module's own, or that of a module below it.
    fn is_within(&self, path: &str, module: &[String]) -> bool {
        self.modules.iter().any(|(other, file)| file.path == path && other.starts_with(module))
    }

    /// Returns the path from the root of the crate, if the path leads into it.
    fn absolute(&self, module: &[String], path: &[String]) -> Option<Vec<String>> {
        let mut base = module.to_vec();
        let mut rest = path;
        match path.first()?.as_str() {
            "crate" => {
                base.truncate(1);
                rest = &path[1..];
            }
            "self" => rest = &path[1..],
            "super" => {}
            first => {
                base.push(first.to_owned());
                if !self.modules.contains_key(&base) {
                    return None;
                }
                base.pop();
            }
        }
        while rest.first().is_some_and(|word| word == "super") {
            base.pop();
            rest = &rest[1..];
        }
        base.extend(rest.iter().cloned());
        Some(base)
    }

    /// Returns the file that defines the item of a path, and the name of the item.
    fn resolve(&self, module: &[String], path: &[String], hops: usize) -> Option<(&str, String)> {
        let absolute = self.absolute(module, path)?;
        let depth = (1..=absolute.len()).rev().find(|length| self.modules.contains_key(&absolute[..*length]))?;
        let (home, rest) = absolute.split_at(depth);
        let file = &self.modules[home];
        let Some(name) = rest.first().filter(|name| *name != "*") else {
            return Some((&file.path, "*".to_owned()));
        };
        if hops == 0 || defines(&file.code, name) {
            return Some((&file.path, name.clone()));
        }
        if let Some(item) = file.uses.iter().find(|item| item.alias == *name) {
            return self.resolve(home, &[&item.path, &rest[1..]].concat(), hops - 1);
        }
        let globs = file.uses.iter().filter(|item| item.alias == "*");
        let through = globs.filter_map(|item| {
            let path = [&item.path[..item.path.len() - 1], rest].concat();
            let (target, name) = self.resolve(home, &path, hops - 1)?;
            let target_file = self.modules.values().find(|file| file.path == target)?;
            defines(&target_file.code, &name).then_some((target, name))
        });
        through.into_iter().next().or_else(|| Some((&file.path, name.clone())))
    }
}

/// Removes items behind `#[cfg(test)]` that end with a semicolon: `mod tests;` and `use`.
fn without_test_items(code: &str) -> String {
    let mut kept = String::with_capacity(code.len());
    let mut rest = code;
    while let Some(at) = rest.find("#[cfg(test)]") {
        kept.push_str(&rest[..at]);
        let item = &rest[at..];
        let end = item.find([';', '{']).map_or(item.len(), |end| end + 1);
        // The body of a function or an `impl` for tests stays: it is short, and rare outside a module of tests.
        rest = if item[..end].ends_with(';') { &item[end..] } else { &item["#[cfg(test)]".len()..] };
    }
    kept + rest
}

/// Returns the names of `mod name;`.
fn modules_of(code: &str) -> Vec<String> {
    let declaration = |line: &str| {
        let line = line.trim();
        let line = line.strip_prefix("pub").map_or(line, |rest| match rest.trim_start().strip_prefix('(') {
            Some(scope) => scope.split_once(')').map_or("", |(_, rest)| rest),
            None => rest,
        });
        Some(line.trim_start().strip_prefix("mod ")?.strip_suffix(';')?.to_owned())
    };
    code.lines().filter_map(declaration).collect()
}

/// Returns where each `use` declaration begins and ends.
fn declarations(code: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut start = 0;
    for line in code.split_inclusive('\n') {
        let words = line.trim_start();
        let words = words.strip_prefix("pub").map_or(words, |rest| match rest.strip_prefix('(') {
            Some(scope) => scope.split_once(") ").map_or("", |(_, rest)| rest),
            None => rest.trim_start(),
        });
        if words.starts_with("use ") && found.last().is_none_or(|(_, end)| *end <= start) {
            let end = code[start..].find(';').map_or(code.len(), |end| start + end + 1);
            found.push((start, end));
        }
        start += line.len();
    }
    found
}

fn without_uses(code: &str) -> String {
    let mut kept = String::with_capacity(code.len());
    let mut at = 0;
    for (start, end) in declarations(code) {
        kept.push_str(&code[at..start]);
        at = end;
    }
    kept + &code[at..]
}

fn uses_of(code: &str) -> Vec<Use> {
    let mut found = Vec::new();
    for (start, end) in declarations(code) {
        let declaration = code[start..end].trim();
        let public = declaration.starts_with("pub");
        if let Some((_, tree)) = declaration.trim_end_matches(';').split_once("use ") {
            names(tree, &[], public, &mut found);
        }
    }
    found
}

/// Adds the names of a tree such as `crate::{a::{B, C as D}, e::*}`.
fn names(tree: &str, before: &[String], public: bool, found: &mut Vec<Use>) {
    let tree = tree.trim();
    if let Some((prefix, group)) = tree.split_once('{') {
        let mut path = before.to_vec();
        path.extend(prefix.split("::").map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned));
        let group = group.trim_end().strip_suffix('}').unwrap_or(group);
        let (mut depth, mut start) = (0, 0);
        for (at, c) in group.char_indices().chain([(group.len(), ',')]) {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 0 => {
                    names(&group[start..at], &path, public, found);
                    start = at + 1;
                }
                _ => {}
            }
        }
        return;
    }
    let (tree, alias) = tree.split_once(" as ").map_or((tree, None), |(tree, alias)| (tree, Some(alias.trim())));
    let mut path = before.to_vec();
    path.extend(tree.split("::").map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned));
    // `use crate::a::{self}` imports `a`.
    if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
        path.pop();
    }
    if let Some(last) = path.last().filter(|_| !tree.is_empty()) {
        let alias = alias.map_or_else(|| last.clone(), str::to_owned);
        found.push(Use { alias, public, path });
    }
}

/// Returns the paths with at least two parts in the code.
fn paths_of(code: &str) -> BTreeSet<Vec<String>> {
    let mut found = BTreeSet::new();
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let mut rest = code;
    while let Some(start) = rest.find(word) {
        let before = rest[..start].ends_with("::");
        let mut parts = Vec::new();
        let mut at = start;
        loop {
            let end = rest[at..].find(|c| !word(c)).map_or(rest.len(), |end| at + end);
            parts.push(rest[at..end].to_owned());
            at = end;
            if rest[at..].starts_with("::") && rest[at + 2..].starts_with(|c: char| c.is_alphabetic() || c == '_') {
                at += 2;
            } else {
                break;
            }
        }
        if parts.len() > 1 && !before {
            found.insert(parts);
        }
        rest = &rest[at..];
    }
    found
}

/// Whether the code defines an item of this name.
fn defines(code: &str, name: &str) -> bool {
    const KINDS: [&str; 9] = ["fn", "struct", "enum", "trait", "type", "const", "static", "union", "macro_rules!"];
    code.match_indices(name).any(|(at, _)| {
        let before = code[..at].trim_end_matches(' ');
        let after = code[at + name.len()..].chars().next();
        before.len() < at
            && !after.is_some_and(|c| c.is_alphanumeric() || c == '_')
            && KINDS.iter().any(|kind| before.ends_with(kind))
    })
}

fn has_word(code: &str, word: &str) -> bool {
    let open = |side: Option<char>| !side.is_some_and(|c| c.is_alphanumeric() || c == '_');
    code.match_indices(word)
        .any(|(at, _)| open(code[..at].chars().next_back()) && open(code[at + word.len()..].chars().next()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn imports(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<(String, &str)> =
            files.iter().map(|(path, text)| (format!("crates/one/src/{path}"), *text)).collect();
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        let found = Crate::read(&Tree::of(&files), "crates/one/src/lib.rs").imports();
        let name = |path: &str| path.trim_start_matches("crates/one/src/").to_owned();
        let names = |names: &BTreeSet<String>| names.iter().cloned().collect::<Vec<_>>().join(" ");
        found
            .iter()
            .flat_map(|(from, to)| {
                to.iter().map(move |(to, items)| format!("{} {}: {}", name(from), name(to), names(items)))
            })
            .collect()
    }

    const LIB: (&str, &str) = ("lib.rs", "mod a;\nmod b;\npub use b::Public;\n");

    #[test]
    fn every_kind_of_path_is_an_import() {
        for text in [
            "use crate::b::Item;",
            "use super::b::{Item};",
            "use crate::{b::{Other as O, Item as I}};\nfn f() { I }",
            "fn f() -> crate::b::Item { todo }",
            "use crate::b;\nfn f() { b::Item::new() }",
            "use crate::b as other;\nfn f() { other::Item::new() }",
            "fn f() { use super::b::Item; }",
        ] {
            let found = imports(&[LIB, ("a.rs", text), ("b.rs", "pub struct Item;\npub struct Other;")]);
            assert_eq!(found.len(), 1, "{text}: {found:?}");
            assert!(found[0].starts_with("a.rs b.rs: ") && found[0].contains("Item"), "{text}: {found:?}");
        }
    }

    #[test]
    fn comments_literals_tests_and_declarations_are_not_imports() {
        for text in [
            "// use crate::b::Item;\n/// [`Item`](crate::b::Item)",
            "const A: &str = \"crate::b::Item\";",
            "#[cfg(test)]\nmod tests {\n    use crate::b::Item;\n}\n",
            "#[cfg(test)]\nuse crate::b::Item;\n",
            "use crate::b;\n",
            "use b::Item;\nfn f() { std::mem::take(b) }",
        ] {
            assert_eq!(imports(&[LIB, ("a.rs", text), ("b.rs", "pub struct Item;")]), [""; 0], "{text}");
        }
    }

    #[test]
    fn re_exports_are_followed_to_the_definition() {
        let parent =
            "mod child;\npub(crate) use child::{Item, Other as Renamed};\npub(crate) use child::deep::*;\nfn own() {}";
        let files = |text| {
            [
                LIB,
                ("a.rs", text),
                ("b.rs", parent),
                ("b/child.rs", "pub(crate) mod deep;\npub struct Item;\npub struct Other;"),
                ("b/child/deep.rs", "pub enum Far {}"),
            ]
        };
        assert_eq!(imports(&files("use crate::b::Item;")), ["a.rs b/child.rs: Item"]);
        assert_eq!(imports(&files("use crate::b::Renamed;")), ["a.rs b/child.rs: Other"]);
        assert_eq!(imports(&files("use crate::b::Far;")), ["a.rs b/child/deep.rs: Far"]);
        assert_eq!(imports(&files("use crate::b::own;")), ["a.rs b.rs: own"]);
        assert_eq!(imports(&files("use crate::Public;")), ["a.rs b.rs: Public"]);
    }

    #[test]
    fn child_imports_its_parent_and_not_the_reverse() {
        let found = imports(&[
            ("lib.rs", "mod a;\npub use a::Item;"),
            ("a.rs", "mod child;\npub use child::Item;\npub struct Own(Item);"),
            ("a/child.rs", "use super::Own;\npub struct Item;"),
        ]);
        assert_eq!(found, ["a/child.rs a.rs: Own"]);
    }
}

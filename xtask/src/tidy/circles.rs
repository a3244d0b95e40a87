//! Circles of imports between the files of a crate.
//!
//! `imports.rs` defines what counts as an import. Files that import one another, directly or through others, cannot be
//! read, tested or moved one at a time.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::{
    Tree,
    imports::{Crate, Imports},
};

/// Files of one crate that import one another.
#[derive(Debug)]
pub(super) struct Circle {
    pub(super) package: String,
    pub(super) files: BTreeSet<String>,
    /// A shortest way around, as text: one import a line.
    pub(super) example: String,
}

/// Finds the circles of all crates.
pub(super) fn circles(tree: &Tree) -> Vec<Circle> {
    let mut found = Vec::new();
    for root in roots(tree) {
        let package = root.strip_prefix("crates/").unwrap_or(root).split('/').next().unwrap_or_default();
        let imports = Crate::read(tree, root).imports();
        for files in components(&imports) {
            let example = shortest(&imports, &files);
            found.push(Circle { package: package.to_owned(), files, example });
        }
    }
    found
}

/// Returns the root files of libraries and programs.
fn roots(tree: &Tree) -> impl Iterator<Item = &str> {
    tree.texts.keys().map(String::as_str).filter(|path| {
        (path.starts_with("crates/") || path.starts_with("xtask/"))
            && path.contains("/src/")
            && (path.ends_with("/src/lib.rs") || path.ends_with("/main.rs"))
    })
}

/// Returns the strongly connected components of more than one file.
fn components(imports: &Imports) -> Vec<BTreeSet<String>> {
    let reachable: BTreeMap<&String, BTreeSet<&String>> =
        imports.keys().map(|file| (file, reach(imports, file))).collect();
    let mut found: Vec<BTreeSet<String>> = Vec::new();
    for (file, below) in &reachable {
        if found.iter().any(|files| files.contains(*file)) {
            continue;
        }
        let together = below.iter().filter(|other| reachable.get(*other).is_some_and(|back| back.contains(file)));
        let together: BTreeSet<String> = together.map(|other| (*other).clone()).collect();
        if together.len() > 1 {
            found.push(together);
        }
    }
    found
}

/// Returns the files that a file imports, directly or through others.
fn reach<'a>(imports: &'a Imports, file: &String) -> BTreeSet<&'a String> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&String> = imports.get(file).into_iter().flat_map(BTreeMap::keys).collect();
    while let Some(next) = open.pop() {
        if reached.insert(next) {
            open.extend(imports.get(next).into_iter().flat_map(BTreeMap::keys));
        }
    }
    reached
}

/// Describes a shortest circle among these files.
fn shortest(imports: &Imports, files: &BTreeSet<String>) -> String {
    let way = files.iter().filter_map(|start| way_back(imports, files, start)).min_by_key(Vec::len).unwrap_or_default();
    let step = |pair: &[&String]| {
        let names: Vec<&str> = imports[pair[0]][pair[1]].iter().map(String::as_str).collect();
        format!("    {} imports {} from {}", pair[0], names.join(", "), pair[1])
    };
    way.windows(2).map(step).collect::<Vec<_>>().join("\n")
}

/// Returns the files of a shortest way from `start` back to it.
fn way_back<'a>(imports: &'a Imports, files: &'a BTreeSet<String>, start: &'a String) -> Option<Vec<&'a String>> {
    let mut before: BTreeMap<&String, &String> = BTreeMap::new();
    let mut open = VecDeque::from([start]);
    while let Some(file) = open.pop_front() {
        for next in imports.get(file).into_iter().flat_map(BTreeMap::keys).filter(|next| files.contains(*next)) {
            if next == start {
                let mut way = vec![start, file];
                while let Some(previous) = before.get(way[way.len() - 1]) {
                    way.push(previous);
                }
                way.reverse();
                if way[0] != start {
                    way.insert(0, start);
                }
                return Some(way);
            }
            if !before.contains_key(next) {
                before.insert(next, file);
                open.push_back(next);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> Tree {
        Tree::of(files)
    }

    #[test]
    fn circle_is_found_with_its_names() {
        let found = circles(&tree(&[
            ("crates/one/src/lib.rs", "mod a;\nmod b;\nmod c;\nmod d;"),
            ("crates/one/src/a.rs", "use crate::b::B;\npub struct A(B);"),
            ("crates/one/src/b.rs", "use crate::c::C;\npub struct B(C);"),
            ("crates/one/src/c.rs", "use crate::{a::A, d::D};\npub struct C(A, D);"),
            ("crates/one/src/d.rs", "pub struct D;"),
        ]));
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].package.as_str(), found[0].files.len()), ("one", 3));
        let expected = "    crates/one/src/a.rs imports B from crates/one/src/b.rs\n    \
                        crates/one/src/b.rs imports C from crates/one/src/c.rs\n    \
                        crates/one/src/c.rs imports A from crates/one/src/a.rs";
        assert_eq!(found[0].example, expected);
    }

    #[test]
    fn layers_and_tests_are_not_circles() {
        let found = circles(&tree(&[
            ("crates/one/src/lib.rs", "pub mod a;\npub mod b;\npub use a::A;"),
            ("crates/one/src/a.rs", "use crate::b::B;\npub struct A(B);"),
            ("crates/one/src/b.rs", "pub struct B;\n#[cfg(test)]\nmod tests {\n    use crate::A;\n}"),
            ("crates/two/src/cli/main.rs", "mod a;\nfn main() { a::run() }"),
            ("crates/two/src/cli/a.rs", "pub(crate) fn run() {}"),
        ]));
        assert!(found.is_empty(), "{found:?}");
    }
}

//! Resources that are read from a file on each request.
//!
//! Values from the caller's URI become parts of a path here. Anything other than a regular file below the folder is
//! therefore answered with "not found", and the answer deliberately does not include the reason.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use promptshelf_core::{BoxFuture, MimeType, ReadBody, ReadError, ReadResource, Variables};

use crate::{
    file_role::{MANIFEST, is_backup},
    format::GOLDEN,
    media_type,
    places::{self, Places, join},
    root_grants::RootGrants,
    tree::{FileError, Tree},
};

#[derive(Clone, Debug)]
pub(crate) struct FileReader {
    /// Opens the folder again for each read, because another one may have taken its place, or a grant been revoked.
    pub(crate) grants: RootGrants,
    /// The declared root; the library itself without one.
    pub(crate) root: Option<PathBuf>,
    /// The absolute path of this folder without symbolic links, when the library was read.
    pub(crate) folder: String,
    pub(crate) places: Arc<Places>,
    pub(crate) path: PathTemplate,
    /// The largest accepted file, in bytes.
    pub(crate) limit: u64,
    /// The declared type; `None` to derive it from the file.
    pub(crate) mime_type: Option<MimeType>,
}

impl FileReader {
    /// Opens the folder, and returns the path without links that leads to a file in it. Access was decided for the place
    /// that the links led to when the library was read: a path that leads elsewhere by now has to wait for the next read.
    fn open(&self, path: &str) -> Option<(Tree, String)> {
        let root = self.root.as_deref().unwrap_or(Path::new(""));
        let (root, folder) = self.grants.open_with_path(root).ok()?;
        let inside = root.canonicalize(path).ok()?;
        let place = self.places.relative(&join(&places::text(&folder), &inside));
        let is_private = place == MANIFEST && self.path.as_fixed().is_none();
        (place == self.place_of(path) && !is_private).then_some((root, inside))
    }

    fn place_of(&self, path: &str) -> String {
        self.places.place(&join(&self.folder, path))
    }

    fn read_now(&self, variables: &Variables) -> Result<ReadBody, ReadError> {
        let path = self.path.expand(variables).ok_or(ReadError::NotFound)?;
        let (root, inside) = self.open(&path).ok_or(ReadError::NotFound)?;
        let file = root.read(&inside, self.limit).map_err(|refusal| match refusal {
            FileError::TooLarge(_) => ReadError::TooLarge { limit: self.limit },
            _ => ReadError::NotFound,
        })?;
        let modified = file.state.modified();
        let mime_type = match &self.mime_type {
            Some(mime_type) => mime_type.clone(),
            None => media_type::of(&path, &file.bytes),
        };
        Ok(ReadBody { body: media_type::body(&mime_type, file.bytes.into_vec()), mime_type: Some(mime_type), modified })
    }

    fn version_now(&self, variables: &Variables) -> Option<u64> {
        let path = self.path.expand(variables)?;
        let (root, inside) = self.open(&path)?;
        root.version(&inside).ok()
    }
}

impl ReadResource for FileReader {
    fn place(&self, variables: &Variables) -> Option<String> {
        Some(self.place_of(&self.path.expand(variables)?))
    }

    fn variables_of(&self, path: &str) -> Vec<Variables> {
        let absolute = self.places.absolute(path);
        let inside = absolute.strip_prefix(self.folder.trim_end_matches('/')).and_then(|rest| rest.strip_prefix('/'));
        inside.map_or_else(Vec::new, |inside| self.path.solve(inside))
    }

    fn folder(&self) -> Option<String> {
        Some(self.places.place(&join(&self.folder, self.path.folder())))
    }

    fn read<'a>(&'a self, variables: &'a Variables) -> BoxFuture<'a, Result<ReadBody, ReadError>> {
        let (reader, variables) = (self.clone(), variables.clone());
        Box::pin(async move {
            let reading = tokio::task::spawn_blocking(move || reader.read_now(&variables));
            reading.await.unwrap_or_else(|error| Err(ReadError::Failed(format!("cannot read a file: {error}"))))
        })
    }

    fn version<'a>(&'a self, variables: &'a Variables) -> BoxFuture<'a, Option<u64>> {
        let (reader, variables) = (self.clone(), variables.clone());
        Box::pin(
            async move { tokio::task::spawn_blocking(move || reader.version_now(&variables)).await.ok().flatten() },
        )
    }
}

const MAX_SOLUTIONS: usize = 256;

/// A path relative to a folder, with placeholders for the variables of a URI template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PathTemplate {
    pieces: Vec<Piece>,
    /// The number of path parts before the first placeholder. Only these may be hidden.
    fixed_parts: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Literal(String),
    /// `{x}` is one part of the path or a piece of one; `{+x}` may contain several parts.
    Variable {
        name: String,
        is_path: bool,
    },
}

impl PathTemplate {
    pub(crate) fn parse(text: &str) -> Result<PathTemplate, String> {
        let (mut pieces, mut rest) = (Vec::new(), text);
        while let Some(open) = rest.find('{') {
            let close = rest[open..].find('}').ok_or("missing `}` after `{`")? + open;
            if open > 0 {
                pieces.push(Piece::Literal(rest[..open].to_owned()));
            }
            let inside = &rest[open + 1..close];
            let name = inside.strip_prefix('+').unwrap_or(inside);
            let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '-' | '%');
            if name.is_empty() || !name.chars().all(is_name) {
                return Err(format!(
                    "invalid placeholder `{{{inside}}}`: use `{{name}}`, or `{{+name}}` for several parts of a path"
                ));
            }
            pieces.push(Piece::Variable { name: name.to_owned(), is_path: name.len() < inside.len() });
            rest = &rest[close + 1..];
        }
        if !rest.is_empty() {
            pieces.push(Piece::Literal(rest.to_owned()));
        }
        let is_fixed = !pieces.iter().any(|piece| matches!(piece, Piece::Variable { .. }));
        let fixed_parts = match pieces.first() {
            Some(Piece::Literal(literal)) if is_fixed => literal.split('/').count(),
            Some(Piece::Literal(literal)) => literal.matches('/').count(),
            _ => 0,
        };
        if pieces.is_empty() {
            return Err("a path cannot be empty".to_owned());
        }
        Ok(PathTemplate { pieces, fixed_parts })
    }

    /// Creates a template without placeholders.
    pub(crate) fn fixed(path: &str) -> PathTemplate {
        PathTemplate { pieces: vec![Piece::Literal(path.to_owned())], fixed_parts: path.split('/').count() }
    }

    /// Returns the path of a template without placeholders.
    pub(crate) fn as_fixed(&self) -> Option<&str> {
        match &*self.pieces {
            [Piece::Literal(path)] => Some(path),
            _ => None,
        }
    }

    pub(crate) fn folder(&self) -> &str {
        match self.pieces.first() {
            Some(Piece::Literal(literal)) => literal.rsplit_once('/').map_or("", |(folder, _)| folder),
            _ => "",
        }
    }

    /// Returns the values with which [`expand`](PathTemplate::expand) returns a path. If there are too many of them,
    /// returns no values, which stands for any.
    pub(crate) fn solve(&self, path: &str) -> Vec<Variables> {
        let mut found = Vec::new();
        solve(&self.pieces, path, &mut Variables::new(), &mut found);
        if found.len() > MAX_SOLUTIONS {
            return vec![Variables::new()];
        }
        found.retain(|variables| self.expand(variables).as_deref() == Some(path));
        found
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Variable { name, .. } => Some(&**name),
            Piece::Literal(_) => None,
        })
    }

    /// Inserts values for the placeholders; `None` if the path must not be read. The folder is confined as well; this
    /// check keeps hidden files unreadable, and each file under a single name.
    pub(crate) fn expand(&self, variables: &Variables) -> Option<String> {
        let mut path = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Literal(literal) => path.push_str(literal),
                Piece::Variable { name, is_path } => {
                    let value = variables.get(name)?;
                    if value.is_empty() || (!is_path && value.contains('/')) {
                        return None;
                    }
                    path.push_str(value);
                }
            }
        }
        // On Windows a colon separates a stream or a drive, and a backslash separates parts like a slash.
        let forbidden: &[char] = if cfg!(windows) { &['\0', '\\', ':'] } else { &['\0', '\\'] };
        let is_allowed = |(index, part): (usize, &str)| {
            let is_public = || !part.starts_with('.') && !is_backup(part) && !part.ends_with(GOLDEN);
            !part.is_empty() && part != "." && part != ".." && (index < self.fixed_parts || is_public())
        };
        (!path.contains(forbidden) && path.split('/').enumerate().all(is_allowed)).then_some(path)
    }
}

/// Collects the values with which pieces give a path, as far as they are distinct from each other.
fn solve(pieces: &[Piece], path: &str, variables: &mut Variables, found: &mut Vec<Variables>) {
    match pieces {
        [] if path.is_empty() => found.push(variables.clone()),
        [] => {}
        [Piece::Literal(literal), rest @ ..] => {
            if let Some(path) = path.strip_prefix(&**literal) {
                solve(rest, path, variables, found);
            }
        }
        [Piece::Variable { name, is_path }, rest @ ..] => {
            let end = if *is_path { path.len() } else { path.find('/').unwrap_or(path.len()) };
            // A variable at the end takes everything.
            let ends = path[..end].char_indices().map(|(start, c)| start + c.len_utf8());
            for end in ends.filter(|end| !rest.is_empty() || *end == path.len()) {
                if found.len() > MAX_SOLUTIONS {
                    return;
                }
                if variables.get(name).is_some_and(|known| *known != path[..end]) {
                    continue;
                }
                let before = variables.insert(name.clone(), path[..end].to_owned());
                solve(rest, &path[end..], variables, found);
                match before {
                    Some(before) => variables.insert(name.clone(), before),
                    None => variables.remove(name),
                };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expand(template: &str, value: &str) -> Option<String> {
        let variables = Variables::from([("x".to_owned(), value.to_owned())]);
        PathTemplate::parse(template).expect("parses").expand(&variables)
    }

    #[test]
    fn values_are_inserted() {
        assert_eq!(expand("logs/{x}.log", "1h").as_deref(), Some("logs/1h.log"));
        assert_eq!(expand("{+x}", "src/main.rs").as_deref(), Some("src/main.rs"));
        assert_eq!(expand(".github/{x}", "a.yml").as_deref(), Some(".github/a.yml"));
        assert_eq!(expand("a{x}", "..b").as_deref(), Some("a..b"));
    }

    // req: R-2
    #[test]
    fn values_cannot_leave_the_folder() {
        for value in [
            "..",
            "../a",
            "a/../b",
            "a/..",
            "/etc/passwd",
            "a//b",
            "a/",
            "",
            ".",
            "./a",
            ".env",
            "a/.git/config",
            "a\0b",
            "a\\..\\b",
        ] {
            assert_eq!(expand("{+x}", value), None, "{value:?}");
            assert_eq!(expand("docs/{x}", value), None, "{value:?}");
        }
        assert_eq!(expand("docs/{x}.md", "a/b"), None);
        assert_eq!(expand("docs/.{x}", "env"), None);
        assert_eq!(expand("docs/{x}.", "."), None);
    }

    // req: S-50
    #[test]
    fn values_cannot_name_backups() {
        for value in ["a.md.bak", "a.md.ORIG", "a.md~", "a/b.swp", "a.md.1", "a.golden.md"] {
            assert_eq!(expand("{+x}", value), None, "{value}");
        }
        assert_eq!(expand("old.bak/{x}", "a.md").as_deref(), Some("old.bak/a.md"));
    }

    // req: S-48
    #[test]
    fn solving_inverts_expansion() {
        let solve = |template: &str, path: &str| -> Vec<Vec<String>> {
            let solved = PathTemplate::parse(template).expect("parses").solve(path);
            solved.into_iter().map(|variables| variables.into_values().collect()).collect()
        };
        assert_eq!(solve("logs/{x}.log", "logs/1h.log"), [["1h"]]);
        assert_eq!(solve("{+x}", "a/b/c.md"), [["a/b/c.md"]]);
        assert_eq!(solve("{+x}/{y}.md", "a/b/c.md"), [["a/b", "c"]]);
        assert_eq!(solve("{x}-{y}", "a-b-c"), [["a", "b-c"], ["a-b", "c"]]);
        assert_eq!(solve("{x}/{x}", "a/a"), [["a"]]);
        assert!(solve("{x}/{x}", "a/b").is_empty() && solve("{x}.log", "a/b.log").is_empty());
        assert!(solve("{x}", ".env").is_empty());
        assert_eq!(solve("{+x}{+y}{+z}", &"a".repeat(60)), [Vec::<String>::new()], "any values");
    }

    #[test]
    fn invalid_templates_are_rejected() {
        for template in ["", "{", "a{x", "{}", "{+}", "{a b}", "{?x}"] {
            assert!(PathTemplate::parse(template).is_err(), "{template}");
        }
        assert_eq!(PathTemplate::parse("a/.b/c").expect("parses").expand(&Variables::new()).as_deref(), Some("a/.b/c"));
    }
}

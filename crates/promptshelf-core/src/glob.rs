//! Globs: patterns of paths, names and URIs. All of them are made here, within bounds.

use std::fmt;

use globset::{ErrorKind, GlobBuilder, GlobSet, GlobSetBuilder};

/// The longest glob that an author writes, in bytes.
const MAX_BYTES: usize = 1_000;

/// The longest glob that is made of names and values, in bytes.
pub(crate) const MAX_MADE_BYTES: usize = 64 << 10;

const MAX_ALTERNATIVES: usize = 100;

const MAX_STARS: usize = 50;

const MAX_DEPTH: usize = 3;

const MAX_SHOWN: usize = 60;

/// A compiled glob.
#[derive(Clone, Debug)]
pub struct Glob(GlobSet);

/// The reason why a glob cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GlobError {
    /// The glob, shortened.
    pub glob: String,
    /// The reason.
    pub reason: String,
    /// Whether the glob is larger than a glob may be.
    pub is_too_large: bool,
}

impl fmt::Display for GlobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`: {}", self.glob, self.reason)
    }
}

impl Glob {
    /// Compiles a glob for paths, in which `*` and `?` match no slash.
    ///
    /// # Errors
    ///
    /// The glob is invalid, or larger than a glob may be.
    pub fn path(text: &str) -> Result<Glob, GlobError> {
        written(text)?;
        compile(text, true, false)
    }

    /// Compiles a glob for names or URIs, in which `*` and `?` match slashes too.
    ///
    /// # Errors
    ///
    /// The glob is invalid, or larger than a glob may be.
    pub fn name(text: &str) -> Result<Glob, GlobError> {
        written(text)?;
        compile(text, false, false)
    }

    /// Compiles a glob that may be made of names and values, and thus be longer.
    pub(crate) fn made(text: &str, literal_separator: bool, is_any_case: bool) -> Result<Glob, GlobError> {
        compile(text, literal_separator, is_any_case)
    }

    /// Returns whether the glob matches a text.
    #[must_use]
    pub fn is_match(&self, text: &str) -> bool {
        self.0.is_match(text)
    }
}

/// Returns a glob that matches exactly this text.
#[must_use]
pub fn escape_glob(text: &str) -> String {
    globset::escape(text)
}

fn refused(text: &str, reason: impl Into<String>) -> GlobError {
    let mut glob: String = text.chars().take(MAX_SHOWN).collect();
    if glob.len() < text.len() {
        glob.push('…');
    }
    GlobError { glob, reason: reason.into(), is_too_large: true }
}

fn written(text: &str) -> Result<(), GlobError> {
    if text.len() > MAX_BYTES {
        return Err(refused(text, format!("it is longer than {MAX_BYTES} bytes")));
    }
    let shape = Shape::of(text);
    if shape.alternatives > MAX_ALTERNATIVES {
        return Err(refused(text, format!("it has more than {MAX_ALTERNATIVES} alternatives")));
    }
    if shape.stars > MAX_STARS {
        return Err(refused(text, format!("it has more than {MAX_STARS} stars")));
    }
    Ok(())
}

fn compile(text: &str, literal_separator: bool, is_any_case: bool) -> Result<Glob, GlobError> {
    if text.len() > MAX_MADE_BYTES {
        return Err(refused(text, format!("it is longer than {MAX_MADE_BYTES} bytes")));
    }
    // Deeper ones overflow the stack of the parser.
    if Shape::of(text).depth > MAX_DEPTH {
        return Err(refused(text, format!("its braces are nested more than {MAX_DEPTH} deep")));
    }
    let built = GlobBuilder::new(text).literal_separator(literal_separator).case_insensitive(is_any_case).build();
    // Unlike the matcher of a single glob, a set reports a glob that is too large, instead of panicking.
    let set = built.and_then(|glob| GlobSetBuilder::new().add(glob).build());
    let is_too_large = |error: &globset::Error| matches!(error.kind(), ErrorKind::Regex(_));
    set.map(Glob)
        .map_err(|error| GlobError { is_too_large: is_too_large(&error), ..refused(text, error.kind().to_string()) })
}

#[derive(Default)]
struct Shape {
    depth: usize,
    alternatives: usize,
    stars: usize,
}

impl Shape {
    /// Reads escapes and classes as globset does, so that no brace is missed.
    fn of(text: &str) -> Shape {
        let mut shape = Shape::default();
        let mut depth = 0_usize;
        let mut rest = text.chars().peekable();
        while let Some(next) = rest.next() {
            match next {
                '\\' => _ = rest.next(),
                '[' => {
                    rest.next_if(|next| matches!(next, '!' | '^'));
                    // A `]` directly after the beginning belongs to the class.
                    rest.next_if_eq(&']');
                    rest.by_ref().find(|next| *next == ']');
                }
                '{' => {
                    depth += 1;
                    shape.alternatives += 1;
                    shape.depth = shape.depth.max(depth);
                }
                '}' => depth = depth.saturating_sub(1),
                ',' if depth > 0 => shape.alternatives += 1,
                '*' => shape.stars += 1,
                _ => {}
            }
        }
        shape
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // req: S-470
    #[test]
    fn glob_beyond_the_bounds_is_refused_and_never_panics() {
        let nested = |levels: usize| format!("{}{}", "{a,".repeat(levels), "}".repeat(levels));
        for (glob, reason) in [
            (nested(40), "nested more than 3 deep"),
            (nested(6_000), "longer than 1000 bytes"),
            (r"\[{]a,".repeat(40), "nested more than 3 deep"),
            ("[!]{]{a,".repeat(40), "nested more than 3 deep"),
            (format!("{{{}}}", "a,".repeat(200)), "more than 100 alternatives"),
            ("*a".repeat(100), "more than 50 stars"),
            ("a".repeat(1_001), "longer than 1000 bytes"),
        ] {
            for found in [Glob::path(&glob), Glob::name(&glob)] {
                let error = found.expect_err("it is beyond a bound");
                assert!(error.reason.contains(reason), "{error}");
                assert!(error.glob.len() < 100, "{error}");
            }
        }
        for glob in [nested(6_000), r"\[{]a,".repeat(9_000), "{".repeat(60_000), "[".repeat(60_000)] {
            assert!(Glob::made(&glob, true, true).is_err(), "{}", &glob[..20]);
        }
        // Too large for the regular expression of a matcher.
        let classes = format!("{{{}}}", vec!["[!a]?é*"; 7_000].join(","));
        drop(Glob::made(&classes, false, true));
    }

    #[test]
    fn glob_within_the_bounds_matches() {
        assert!(Glob::path("{src,{lib,bin}}/**/*.{rs,md}").expect("a glob").is_match("lib/a/b.md"));
        assert!(!Glob::path("*.md").expect("a glob").is_match("a/b.md"));
        assert!(Glob::name("docs://*").expect("a glob").is_match("docs://a/b"));
        let values: Vec<String> = (0..1_000).map(|value| format!("value{value}")).collect();
        let made = Glob::made(&format!("a/{{{}}}.md", values.join(",")), true, false).expect("a glob");
        assert!(made.is_match("a/value999.md"));
        assert!(Glob::path(&escape_glob("a[{*")).expect("a glob").is_match("a[{*"));
    }
}

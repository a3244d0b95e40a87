//! The rules by which programs fill in their commands, one table for reading and writing, each with the version of the
//! program that it was checked against.

use std::ops::Range;

/// How a program fills in the text after a command.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CommandRules {
    /// The program.
    pub program: &'static str,
    /// The version, or the documentation, that the rules were checked against.
    pub checked: &'static str,
    /// The number of the first word: `$0` or `$1`. `None` if the program has no placeholders.
    pub first: Option<usize>,
    /// The largest number of a placeholder; further digits are text.
    pub highest: Option<usize>,
    /// Whether a placeholder without a word stays as it is written; otherwise it becomes empty.
    pub keeps_missing: bool,
    /// Whether the placeholder with the largest number takes all further words.
    pub last_takes_rest: bool,
    /// Whether a number that is followed by a letter, a digit or `_` is text, as in `$2M`.
    pub needs_boundary: bool,
    /// Whether `$ARGUMENTS[0]` is a word.
    pub has_indexes: bool,
    /// Whether one backslash before `$` and a digit, `ARGUMENTS` or a name is removed and keeps them as text. More than
    /// one backslash has no meaning.
    pub has_escapes: bool,
    /// The placeholders with names.
    pub names: PlaceholderNames,
    /// The text before the arguments, which a program adds to a command without placeholders; empty if it drops them.
    pub appended: &'static str,
    /// Whether `@path` is a file and `` !`command` `` a command.
    pub has_inserts: bool,
}

/// Placeholders with names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlaceholderNames {
    /// None.
    None,
    /// `$name` for each name in the key `arguments`, in the order of the words.
    Declared,
    /// `$NAME` in capital letters, for a value that is passed as `NAME=value`.
    Capitals,
}

/// Claude Code's commands and skills.
pub const CLAUDE_CODE: CommandRules = CommandRules {
    program: "Claude Code",
    checked: "2.1.332",
    first: Some(0),
    highest: None,
    keeps_missing: true,
    last_takes_rest: false,
    needs_boundary: true,
    has_indexes: true,
    has_escapes: true,
    names: PlaceholderNames::Declared,
    appended: "\n\nARGUMENTS: ",
    has_inserts: true,
};

/// OpenCode's commands.
pub const OPENCODE: CommandRules = CommandRules {
    program: "OpenCode",
    checked: "1.18.33",
    first: Some(1),
    highest: None,
    keeps_missing: false,
    last_takes_rest: true,
    needs_boundary: false,
    has_indexes: false,
    has_escapes: false,
    names: PlaceholderNames::None,
    appended: "\n\n",
    has_inserts: true,
};

/// Codex's prompts.
pub const CODEX: CommandRules = CommandRules {
    program: "Codex",
    checked: "source of custom prompts at 09e67f2; 0.169.0 has skills only",
    first: Some(1),
    highest: Some(9),
    keeps_missing: false,
    last_takes_rest: false,
    needs_boundary: false,
    has_indexes: false,
    has_escapes: false,
    names: PlaceholderNames::Capitals,
    appended: "",
    has_inserts: false,
};

/// Cursor's commands.
pub const CURSOR: CommandRules = CommandRules {
    program: "Cursor",
    checked: "documentation of commands, 2026-11",
    first: None,
    highest: None,
    keeps_missing: true,
    last_takes_rest: false,
    needs_boundary: false,
    has_indexes: false,
    has_escapes: false,
    names: PlaceholderNames::None,
    appended: "\n\n",
    has_inserts: true,
};

/// A part of a text that a program replaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Placeholder {
    /// The whole text after the command.
    All,
    /// A word, counted from zero.
    Word(usize),
    /// A name, by its index among the declared ones, or as it is written.
    Named(String),
    /// A placeholder, or text that begins like one, that stays as text; this is the length of the mark before it.
    Escaped(usize),
    /// A command of the shell.
    Shell,
    /// A file, by its path.
    File(String),
}

impl CommandRules {
    /// Returns the placeholder for the word at an index, counted from zero.
    ///
    /// ```
    /// use promptshelf_source::syntax::{CLAUDE_CODE, CURSOR, OPENCODE};
    ///
    /// assert_eq!(CLAUDE_CODE.word(0).as_deref(), Some("$0"));
    /// assert_eq!(OPENCODE.word(0).as_deref(), Some("$1"));
    /// assert_eq!(CURSOR.word(0), None);
    /// ```
    #[must_use]
    pub fn word(&self, index: usize) -> Option<String> {
        let number = self.first? + index;
        self.highest.is_none_or(|highest| number <= highest).then(|| format!("${number}"))
    }

    /// Returns the parts of a text that the program would replace, read or run, if these names are declared.
    ///
    /// ```
    /// use promptshelf_source::syntax::{CLAUDE_CODE, OPENCODE};
    ///
    /// let text = r"$5.00, \$1, $2M, $name and !`ls`";
    /// assert_eq!(CLAUDE_CODE.special(text, &["name"]), ["$5", r"\$1", "$name", "!`ls`"]);
    /// assert_eq!(OPENCODE.special(text, &[]), ["$5", "$1", "$2", "!`ls`"]);
    /// ```
    #[must_use]
    pub fn special<'t>(&self, text: &'t str, names: &[&str]) -> Vec<&'t str> {
        self.placeholders(text, names).into_iter().map(|(span, _)| &text[span]).collect()
    }

    /// Returns the placeholders of a text.
    #[must_use]
    pub fn placeholders(&self, text: &str, names: &[&str]) -> Vec<(Range<usize>, Placeholder)> {
        let mut all = Vec::new();
        let mut at = 0;
        while let Some(offset) = text[at..].find(['$', '!', '@']) {
            let start = at + offset;
            if let Some(end) = self.escaped(text, start, names) {
                all.push((start - 1..end, Placeholder::Escaped(1)));
                at = end;
                continue;
            }
            let Some((end, placeholder)) = self.at(text, start, names) else {
                // Codex: `$$` is text, with what follows.
                let is_pair = self.names == PlaceholderNames::Capitals && text[start..].starts_with("$$");
                at = start + if is_pair { 2 } else { 1 };
                continue;
            };
            all.push((start..end, placeholder));
            at = end;
        }
        all
    }

    /// Returns the end of an escaped placeholder whose `$` is at this place.
    fn escaped(&self, text: &str, start: usize, names: &[&str]) -> Option<usize> {
        let before = text[..start].strip_suffix('\\').filter(|_| self.has_escapes)?;
        let after = text[start..].strip_prefix('$').filter(|_| !before.ends_with('\\'))?;
        // A digit is enough: the backslash of `\$2M` is removed, too.
        let digit = after.starts_with(|c: char| c.is_ascii_digit()).then_some(1);
        let length = self.value(after, names).map(|(length, _)| length).or(digit)?;
        Some(start + 1 + length)
    }

    fn at(&self, text: &str, start: usize, names: &[&str]) -> Option<(usize, Placeholder)> {
        let rest = &text[start..];
        match rest.as_bytes().first()? {
            b'$' => {
                self.first?;
                let (length, placeholder) = self.value(&rest[1..], names)?;
                Some((start + 1 + length, placeholder))
            }
            b'!' if self.has_inserts => {
                let command = rest.strip_prefix("!`")?.lines().next().unwrap_or_default();
                let length = command.find('`').filter(|length| *length > 0)?;
                Some((start + 2 + length + 1, Placeholder::Shell))
            }
            b'@' if self.has_inserts => {
                let (length, path) = file(&text[..start], &rest[1..])?;
                Some((start + 1 + length, Placeholder::File(path)))
            }
            _ => None,
        }
    }

    /// Reads the text after a `$`; returns the length of the placeholder.
    fn value(&self, after: &str, names: &[&str]) -> Option<(usize, Placeholder)> {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if let Some(rest) = after.strip_prefix("ARGUMENTS") {
            let index = rest.strip_prefix('[').and_then(|rest| rest.split_once(']')).map(|(index, _)| index);
            let index = index.filter(|index| self.has_indexes && index.bytes().all(|byte| byte.is_ascii_digit()));
            return Some(match index.and_then(|index| Some((index.len(), index.parse().ok()?))) {
                Some((length, index)) => ("ARGUMENTS[]".len() + length, Placeholder::Word(index)),
                None => ("ARGUMENTS".len(), Placeholder::All),
            });
        }
        let fits = |name: &&&str| {
            let is_number = name.bytes().all(|byte| byte.is_ascii_digit());
            let ends = |rest: &str| !rest.starts_with(is_word) && !rest.starts_with('[');
            !is_number && after.strip_prefix(**name).is_some_and(ends)
        };
        let declared = names.iter().filter(|_| self.names == PlaceholderNames::Declared).filter(fits);
        if let Some(name) = declared.max_by_key(|name| name.len()) {
            return Some((name.len(), Placeholder::Named((*name).to_owned())));
        }
        let mut digits = after.len() - after.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        if digits > 0 {
            if self.highest.is_some() {
                digits = 1;
            }
            if self.needs_boundary && after[digits..].starts_with(is_word) {
                return None;
            }
            let number: usize = after[..digits].parse().ok()?;
            let index = number.checked_sub(self.first?)?;
            return Some((digits, Placeholder::Word(index)));
        }
        match self.names {
            PlaceholderNames::None | PlaceholderNames::Declared => None,
            PlaceholderNames::Capitals => {
                let is_capital = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
                let length = after.len() - after.trim_start_matches(is_capital).len();
                let name = after[..length].trim_start_matches(|c: char| !c.is_ascii_uppercase());
                (length > 0 && name.len() == length).then(|| (length, Placeholder::Named(name.to_owned())))
            }
        }
    }
}

/// Reads the text after an `@` as the path of a file; returns its length.
fn file(before: &str, after: &str) -> Option<(usize, String)> {
    if before.chars().next_back().is_some_and(|c| !c.is_whitespace() && c != '(') {
        return None;
    }
    let path = after.split(|c: char| c.is_whitespace() || "`'\"<>|".contains(c)).next().unwrap_or_default();
    let path = path.trim_end_matches(['.', ',', ';', ':', '!', '?', ')']);
    // `@name` mentions a person, and the file of `@$1` is only known at the time of the call.
    let is_path = path.contains(['/', '.']) && !path.contains('$') && !path.ends_with('/');
    is_path.then(|| (path.len(), path.strip_prefix("./").unwrap_or(path).to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(rules: &CommandRules, text: &str) -> Vec<Placeholder> {
        rules.placeholders(text, &["file", "file-name"]).into_iter().map(|(_, placeholder)| placeholder).collect()
    }

    fn named(name: &str) -> Placeholder {
        Placeholder::Named(name.to_owned())
    }

    // Each text was sent by a command of the program to a recording stand-in model.
    #[test]
    fn claude_code_counts_from_zero_and_keeps_text() {
        use Placeholder::{All, Escaped, Word};
        for (text, expected) in [
            ("$0 $1 $2 $10", vec![Word(0), Word(1), Word(2), Word(10)]),
            ("$ARGUMENTS $ARGUMENTS[0] $ARGUMENTS[x]", vec![All, Word(0), All]),
            ("$ARGUMENTS_x $ARGUMENTSx", vec![All, All]),
            ("$5.00 $1,500 $2M $0abc $0_x x$0y ${0}", vec![Word(5), Word(1)]),
            ("awk '{print $1}' $$0 $0-x $00 $01", vec![Word(1), Word(0), Word(0), Word(0), Word(1)]),
            (r"\$1 \$ARGUMENTS \$ARGUMENTS[0] \$ARGUMENTSx", vec![Escaped(1), Escaped(1), Escaped(1), Escaped(1)]),
            (r"\$1 \\$1 \\\$1 \\\\$1 \\\\\$1", vec![Escaped(1), Word(1), Word(1), Word(1), Word(1)]),
            (r"\\$ARGUMENTS \\\$ARGUMENTS \\\$ARGUMENTS[0] \\\$file", vec![All, All, Word(0), named("file")]),
            (r"\$0abc \$2M \\$2M \$$0 $\$0 \$\$0", vec![Escaped(1), Escaped(1), Word(0), Escaped(1), Escaped(1)]),
            (r"\$file \$file-x \$filex \$file[0] \$HOME \$", vec![Escaped(1), Escaped(1)]),
            (
                "$file $filex $file_x $file[0] $file-name $file-x",
                vec![named("file"), named("file-name"), named("file")],
            ),
        ] {
            assert_eq!(read(&CLAUDE_CODE, text), expected, "{text}");
        }
    }

    #[test]
    fn opencode_and_codex_count_from_one() {
        use Placeholder::{All, Word};
        let text = r"$1 $0 $10 $2M \$3 $ARGUMENTS[0] $$4 $NAME $name";
        assert_eq!(read(&OPENCODE, text), [Word(0), Word(9), Word(1), Word(2), All, Word(3)]);
        assert_eq!(read(&CODEX, text), [Word(0), Word(0), Word(1), Word(2), All, named("NAME")]);
        assert_eq!(read(&CURSOR, text), []);
    }

    #[test]
    fn inserts_are_distinguished_from_prose() {
        let file = |path: &str| Placeholder::File(path.to_owned());
        assert_eq!(read(&CLAUDE_CODE, "!`git diff` wow! `x`"), [Placeholder::Shell]);
        assert_eq!(read(&CLAUDE_CODE, "see @src/a.rs, (@b.md) me@c.de @team @$x.y"), [file("src/a.rs"), file("b.md")]);
    }
}

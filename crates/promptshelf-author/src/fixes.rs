//! Changes that correct findings: for `check --fix`, the code actions of editors, and the page.
//!
//! A change is derived from a finding and the text that it points into. Those with one answer are applied without a
//! question; of the others, an editor offers each.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

use promptshelf_core::{
    Catalog, Code, Diagnostic,
    invisible::{describe, hidden},
    is_slip, nearest,
};
use promptshelf_source::{
    CONVERTIBLE, ForeignSyntax,
    syntax::{LIBRARY_FILE, front_matter},
};
use unicode_normalization::UnicodeNormalization as _;

/// A replacement in the file of a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// Bytes of the text.
    pub range: Range<usize>,
    /// The new text.
    pub text: String,
}

/// What a fix does with a file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// Replaces parts of the text.
    Edits(Vec<Edit>),
    /// Gives the file another path.
    Rename(String),
    /// Writes the file as UTF-8; [`decoded`](promptshelf_source::decoded) returns the text.
    Decode,
}

/// A change that corrects a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fix {
    /// The change in a few words, such as "Change `titel` to `title`".
    pub title: String,
    /// The path of the file.
    pub path: String,
    /// The change.
    pub change: Change,
    /// Whether there is no other answer, so that the change needs no decision.
    pub is_only: bool,
}

/// Returns the changes that would correct a finding, the best first.
///
/// ```
/// use promptshelf_author::{Change, fixes};
/// use promptshelf_core::{Code, Diagnostic, Location, SourceText};
///
/// let source = SourceText::new("a.md", "---\ntitel: A\n---\nHi\n");
/// let found = Diagnostic::warning(Code::UnknownKey, Location::new(&source, 4..9), "unknown key").help("did you mean `title`?");
/// let fixes = fixes(&found);
/// let Change::Edits(edits) = &fixes[0].change else { panic!("it is an edit") };
/// assert_eq!((edits[0].range.clone(), edits[0].text.as_str(), fixes[0].is_only), (4..9, "title", true));
/// ```
#[must_use]
pub fn fixes(found: &Diagnostic) -> Vec<Fix> {
    let Some((change, title, is_only)) = only(found).map(|(change, title)| (change, title, true)) else {
        return choices(found);
    };
    vec![Fix { title, path: found.location.source.path.clone(), change, is_only }]
}

/// Returns the other path of its file that is the only correction of a finding.
///
/// ```
/// use promptshelf_author::renamed_to;
/// use promptshelf_core::{Code, Diagnostic, Location, SourceText};
///
/// let source = SourceText::new("team/code review.md", "Hi\n");
/// let message = "the name of this file cannot be that of a prompt, which is called `team-code-review` instead";
/// let found = Diagnostic::warning(Code::InvalidName, Location::new(&source, 0..0), message);
/// assert_eq!(renamed_to(&found).as_deref(), Some("team/code-review.md"));
/// ```
#[must_use]
pub fn renamed_to(found: &Diagnostic) -> Option<String> {
    fixes(found).into_iter().filter(|fix| fix.is_only).find_map(|fix| match fix.change {
        Change::Rename(to) => Some(to),
        Change::Edits(_) | Change::Decode => None,
    })
}

/// What a check says of a library: the findings, and the names and access rules of its prompts.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    findings: Vec<Diagnostic>,
    /// By path.
    prompts: BTreeMap<String, Served>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Served {
    names: BTreeSet<String>,
    aliases: BTreeSet<String>,
    access: BTreeSet<String>,
}

impl Verdict {
    /// Joins [`findings`](fn@crate::findings) with the access rules of the catalog.
    #[must_use]
    pub fn new(findings: Vec<Diagnostic>, catalog: &Catalog) -> Verdict {
        let mut prompts: BTreeMap<String, Served> = BTreeMap::new();
        for (index, prompt) in catalog.prompts().iter().enumerate() {
            let served = prompts.entry(prompt.source().path.clone()).or_default();
            served.names.insert(prompt.name().to_string());
            served.aliases.extend(prompt.aliases());
            served.access.extend(catalog.prompt_access(index).iter().map(|rule| format!("{rule:?}")));
        }
        Verdict { findings, prompts }
    }

    /// The findings.
    #[must_use]
    pub fn findings(&self) -> &[Diagnostic] {
        &self.findings
    }

    /// Returns the number of errors of each file: before all, of those that hide others.
    fn errors(&self) -> BTreeMap<&str, (usize, usize)> {
        let mut errors: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        for found in self.findings.iter().filter(|found| found.is_error()) {
            let (hiding, all) = errors.entry(&found.location.source.path).or_default();
            *hiding += usize::from(matches!(found.code, Code::NotUtf8 | Code::Syntax | Code::TemplateSyntax));
            *all += 1;
        }
        errors
    }

    /// Returns why a library is worse than it was.
    fn objection(&self, before: &Verdict) -> Option<String> {
        let known = before.errors();
        if let Some((path, _)) = self.errors().into_iter().find(|(path, now)| now > known.get(path).unwrap_or(&(0, 0)))
        {
            let of_file = |found: &&Diagnostic| found.is_error() && found.location.source.path == path;
            let is_new = |found: &&Diagnostic| !before.findings.iter().any(|old| old.message == found.message);
            let errors: Vec<&Diagnostic> = self.findings.iter().filter(of_file).collect();
            let error = errors.iter().copied().find(is_new).or_else(|| errors.first().copied())?;
            return Some(format!("{path} would have the error: {}", error.message));
        }
        before.prompts.iter().find_map(|(path, was)| match self.prompts.get(path) {
            None => Some(format!("the prompt of {path} would not be served")),
            Some(now) if now.access != was.access => Some(format!("other access rules would apply to {path}")),
            Some(now) if now.names != was.names => Some(format!("the prompt of {path} would have another name")),
            Some(_) => None,
        })
    }
}

/// A file with another text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Corrected {
    /// The new text.
    pub text: String,
    /// The number of corrected findings.
    pub count: usize,
}

/// What [`fix_all`] has found.
#[derive(Debug, Default)]
pub struct Corrections {
    /// The files that change, by path.
    pub files: BTreeMap<String, Corrected>,
    /// The findings that would be corrected if nothing else became worse, with the reasons.
    pub refused: Vec<(Diagnostic, String)>,
    /// Of the library with all corrections.
    pub verdict: Verdict,
}

/// The texts of a library that differ from those of its files; `None` for one that does not any more.
pub type Texts = BTreeMap<String, Option<String>>;

/// How often fixes are tried, among them those that were refused: others can make them right.
const MOST_PASSES: usize = 4;
const MOST_ROUNDS: usize = 100;

/// Returns the texts in which no finding has a single answer: some mistakes are found only after others are corrected. A
/// change is kept if no file has more errors with it, and every prompt is served under the same name and access rules.
///
/// `check` checks the library with some texts, `read` returns the text of a file, converted if it has another encoding, and
/// `is_wanted` says which findings are corrected. Renamed files have other prompts: they are among the findings of the result.
///
/// # Errors
///
/// Those of `check`.
pub fn fix_all<E>(
    check: impl FnMut(&Texts) -> Result<Verdict, E>,
    read: impl FnMut(&str) -> Option<String>,
    is_wanted: impl Fn(&Diagnostic) -> bool,
) -> Result<Corrections, E> {
    let mut fixing = Fixing { check, read, texts: Texts::new(), corrections: Corrections::default() };
    fixing.corrections.verdict = (fixing.check)(&fixing.texts)?;
    for _ in 0..MOST_PASSES {
        fixing.corrections.refused.clear();
        let mut has_changed = false;
        for _ in 0..MOST_ROUNDS {
            if !fixing.apply(&fixing.candidates(&is_wanted))? {
                break;
            }
            has_changed = true;
        }
        if !has_changed {
            break;
        }
    }
    Ok(fixing.corrections)
}

struct Fixing<C, R> {
    check: C,
    read: R,
    texts: Texts,
    corrections: Corrections,
}

impl<C, R> Fixing<C, R> {
    fn candidates(&self, is_wanted: impl Fn(&Diagnostic) -> bool) -> Vec<Diagnostic> {
        let Corrections { verdict, refused, .. } = &self.corrections;
        let is_of_encoding = |found: &&Diagnostic| found.code == Code::NotUtf8;
        let unread: BTreeSet<&str> =
            verdict.findings.iter().filter(is_of_encoding).map(|found| &*found.location.source.path).collect();
        let is_candidate = |found: &&Diagnostic| {
            let is_refused = |(other, _): &(Diagnostic, String)| other == *found;
            let is_read = found.code == Code::NotUtf8 || !unread.contains(&*found.location.source.path);
            let is_text = |fix: &Fix| fix.is_only && !matches!(fix.change, Change::Rename(_));
            is_read && fixes(found).iter().any(is_text) && is_wanted(found) && !refused.iter().any(is_refused)
        };
        verdict.findings.iter().filter(is_candidate).cloned().collect()
    }

    /// Applies what corrects some findings, or a part of them. Returns whether it has changed a text.
    fn apply<E>(&mut self, findings: &[Diagnostic]) -> Result<bool, E>
    where
        C: FnMut(&Texts) -> Result<Verdict, E>,
        R: FnMut(&str) -> Option<String>,
    {
        let mut changes: Vec<(FixedFile, String)> = Vec::new();
        for file in only_fixes(findings) {
            let known = self.texts.get(&file.path).cloned().flatten();
            let Some(old) = known.or_else(|| (self.read)(&file.path)) else { continue };
            let checked = findings.iter().map(|found| &found.location.source).find(|source| source.path == file.path);
            let new = match &file.change {
                Change::Edits(edits) => checked.and_then(|checked| edited_as_checked(&old, &checked.text, edits)),
                Change::Decode => Some(old),
                Change::Rename(_) => None,
            };
            changes.extend(new.map(|new| (file, new)));
        }
        if changes.is_empty() {
            return Ok(false);
        }
        let before = self.texts.clone();
        self.texts.extend(changes.iter().map(|(file, new)| (file.path.clone(), Some(new.clone()))));
        let verdict = (self.check)(&self.texts)?;
        if let Some(reason) = verdict.objection(&self.corrections.verdict) {
            let restored = |path: &String| (path.clone(), before.get(path).cloned().flatten());
            self.texts.extend(changes.iter().map(|(file, _)| restored(&file.path)));
            let (one, other) = findings.split_at(findings.len() / 2);
            if let ([], [found]) = (one, other) {
                self.corrections.refused.push((found.clone(), reason));
                return Ok(false);
            }
            // The texts of the other ones would have changed.
            return Ok(self.apply(one)? || self.apply(other)?);
        }
        self.corrections.verdict = verdict;
        for (file, text) in changes {
            let corrected = Corrected { text: String::new(), count: 0 };
            let corrected = self.corrections.files.entry(file.path).or_insert(corrected);
            corrected.text = text;
            corrected.count += file.count;
        }
        Ok(true)
    }
}

struct FixedFile {
    path: String,
    change: Change,
    /// The number of corrected findings.
    count: usize,
}

/// Returns the changes of all findings with one answer, joined by file. Fixes that touch the same text wait for the next
/// check.
fn only_fixes(findings: &[Diagnostic]) -> Vec<FixedFile> {
    let mut files: BTreeMap<String, FixedFile> = BTreeMap::new();
    for fix in findings.iter().flat_map(fixes).filter(|fix| fix.is_only) {
        match files.get_mut(&fix.path) {
            None => {
                files.insert(fix.path.clone(), FixedFile { path: fix.path, change: fix.change, count: 1 });
            }
            Some(FixedFile { change: Change::Edits(edits), count, .. }) => match fix.change {
                Change::Edits(new) if new.iter().all(|edit| edits.contains(edit)) => *count += 1,
                Change::Edits(new) if !new.iter().any(|edit| edits.iter().any(|other| overlap(edit, other))) => {
                    edits.extend(new);
                    edits.sort_by_key(|edit| edit.range.start);
                    *count += 1;
                }
                _ => {}
            },
            // A decoded file is checked again first.
            Some(_) => {}
        }
    }
    files.into_values().collect()
}

fn overlap(one: &Edit, other: &Edit) -> bool {
    one.range.start < other.range.end && other.range.start < one.range.end || one.range.start == other.range.start
}

/// Applies edits, which are ordered and do not overlap, to a text.
#[must_use]
pub fn edited(text: &str, edits: &[Edit]) -> String {
    let (mut result, mut at) = (String::with_capacity(text.len()), 0);
    for edit in edits {
        let (Some(kept), true) = (text.get(at..edit.range.start), edit.range.end <= text.len()) else { continue };
        result.push_str(kept);
        result.push_str(&edit.text);
        at = edit.range.end;
    }
    result + text.get(at..).unwrap_or_default()
}

/// Applies edits of the text that was checked to that of the file, in which a byte order mark can come before it, and other
/// text can stand where a partial has a comment. `None` if the file has changed.
fn edited_as_checked(text: &str, checked: &str, edits: &[Edit]) -> Option<String> {
    let mark = text.len().checked_sub(checked.len())?;
    if !text[..mark].chars().all(|c| c == '\u{feff}') {
        return None;
    }
    let edits = edits.iter().map(|edit| {
        let range = edit.range.start + mark..edit.range.end + mark;
        let is_same = text.get(range.clone())? == checked.get(edit.range.clone())?;
        is_same.then(|| Edit { range, text: edit.text.clone() })
    });
    Some(edited(text, &edits.collect::<Option<Vec<_>>>()?))
}

fn replaced(range: Range<usize>, text: impl Into<String>) -> Change {
    Change::Edits(vec![Edit { range, text: text.into() }])
}

/// Returns the only sensible change, with its title.
fn only(found: &Diagnostic) -> Option<(Change, String)> {
    let (source, span) = (&found.location.source, found.location.span());
    let text = &*source.text;
    let at = text.get(span.clone())?;
    if found.code == Code::NotUtf8 {
        let is_convertible = found.help.as_deref().is_some_and(|help| help.starts_with(CONVERTIBLE));
        return is_convertible.then(|| (Change::Decode, "Convert the file to UTF-8".to_owned()));
    }
    // Only if the prompt keeps its name: callers and access rules of the server may use it.
    if is_of_file_name(found) {
        return renamed(found).filter(|(name, ..)| keeps_name(found, name)).map(|(_, change, title)| (change, title));
    }
    if found.code == Code::InvisibleCharacter && !at.is_empty() {
        return Some((replaced(span, ""), "Remove the invisible characters".to_owned()));
    }
    if let Some(change) = suggested(found, at) {
        return Some(change);
    }
    let line = line_of(text, span.start);
    let message = found.message.as_str();
    if let Some(change) = list_dashes(found) {
        return Some(change);
    }
    match found.code {
        Code::TemplateSyntax | Code::Syntax if hidden(&text[line.clone()]).next().is_some() => {
            let edits = hidden(&text[line.clone()]).map(|(offset, c)| {
                let start = line.start + offset;
                Edit { range: start..start + c.len_utf8(), text: String::new() }
            });
            Some((Change::Edits(edits.collect()), "Remove the invisible characters".to_owned()))
        }
        Code::InvalidName => renamed_argument(found, text, at),
        Code::NoEffect if message.starts_with(LATE) => {
            let is_blank = text[..span.start].trim().is_empty();
            is_blank.then(|| (replaced(0..span.start, ""), "Begin with the three dashes".to_owned()))
        }
        Code::TemplateSyntax => template_syntax(found, text, &span),
        Code::UnknownFunction => {
            let (_, meant) = SYNONYMS.iter().find(|(word, _)| word.eq_ignore_ascii_case(at))?;
            Some((replaced(span, *meant), changed(at, meant)))
        }
        Code::InvalidCall if is_path(at) => {
            Some((replaced(span, format!("\"{at}\"")), "Put quotation marks around the path".to_owned()))
        }
        Code::InvalidCall if message.starts_with("unknown role") => {
            let word = at.trim_matches(['"', '\'']);
            let meant = nearest(word, ["user", "assistant"])?;
            let start = span.start + at.find(word)?;
            Some((replaced(start..start + word.len(), meant), changed(word, meant)))
        }
        Code::Syntax if message.starts_with("typographic") => {
            let inner = at.strip_prefix(DOUBLE)?.strip_suffix(DOUBLE)?;
            (!inner.contains(['"', '\\'])).then(|| (replaced(span, format!("\"{inner}\"")), QUOTES.to_owned()))
        }
        Code::Syntax if message.starts_with("tabs") => tabs(text),
        Code::Syntax if message.starts_with("this line is not one of three dashes") => {
            let lines = dashes(text);
            let edits = lines.into_iter().map(|range| Edit { range, text: "---".to_owned() });
            Some((Change::Edits(edits.collect()), "Write three dashes".to_owned()))
        }
        Code::Syntax if message.starts_with("the front matter is not closed") => {
            let mut start = 0;
            let ranges = text.split_inclusive('\n').map(|line| {
                start += line.len();
                start - line.len()..start - line.len() + line.trim_end().len()
            });
            let ends: Vec<Range<usize>> = ranges.skip(1).filter(|range| is_dashes(&text[range.clone()])).collect();
            let [end] = ends.as_slice() else { return None };
            // A rule below the text is no end of the keys.
            let is_of_keys = |line: &str| {
                line.is_empty()
                    || line.starts_with([' ', '\t', '-', '#'])
                    || line.split_once(':').is_some_and(|(key, _)| is_key(key))
            };
            if !text[..end.start].lines().all(is_of_keys) {
                return None;
            }
            Some((replaced(end.clone(), "---"), "Write three dashes".to_owned()))
        }
        Code::Syntax if message.contains("second `: `") => {
            let start = line.start + text[line.clone()].find(": ")? + 2;
            quoted(text, start..line.end)
        }
        Code::Syntax if message.contains("closing quotation mark") => {
            let start = line.start + text[line.clone()].find(": '")? + 2;
            let value = text[start..line.end].trim_end();
            let inner = value.strip_prefix('\'')?.strip_suffix('\'')?;
            let is_plain = !inner.contains(['"', '\\']) && !inner.contains("''");
            let change =
                || (replaced(start..start + value.len(), format!("\"{inner}\"")), "Use double quotes".to_owned());
            is_plain.then(change)
        }
        Code::WrongType if message.contains("expected text, found a list") => quoted(text, span),
        Code::WrongType if message.contains("expected `true` or `false`") => {
            let meant = nearest(at.trim(), ["true", "yes", "on", "false", "no", "off"])?;
            let value = if ["true", "yes", "on"].contains(&meant) { "true" } else { "false" };
            Some((replaced(span, value), changed(at, value)))
        }
        Code::WrongType if message.starts_with("`arguments`: expected a list, found a mapping") => {
            arguments_as_list(text, span)
        }
        Code::WrongType if message.starts_with("the front matter") => no_break_spaces(text),
        _ => None,
    }
}

const QUOTES: &str = "Write straight quotation marks";
const DOUBLE: [char; 4] = ['“', '”', '„', '‟'];
const SINGLE: [char; 4] = ['‘', '’', '‚', '‛'];

/// Names of other template languages for filters.
const SYNONYMS: [(&str, &str); 12] = [
    ("uppercase", "upper"),
    ("upcase", "upper"),
    ("toUpperCase", "upper"),
    ("lowercase", "lower"),
    ("downcase", "lower"),
    ("toLowerCase", "lower"),
    ("capitalise", "capitalize"),
    ("strip", "trim"),
    ("size", "length"),
    ("len", "length"),
    ("titlecase", "title"),
    ("to_json", "tojson"),
];

fn changed(from: &str, to: &str) -> String {
    format!("Change `{from}` to `{to}`")
}

/// Returns the change of "did you mean" to the word that the finding marks.
fn suggested(found: &Diagnostic, at: &str) -> Option<(Change, String)> {
    let meant = found.help.as_deref()?.strip_prefix("did you mean `")?.split_once("`?")?.0;
    let word = at.trim_matches(['"', '\'']);
    if word.contains(['\n', ' ']) || meant.contains(' ') || nearest(word, [meant]).is_none() {
        return None;
    }
    // Another word than a key with one slip is a decision.
    let is_key = found.code == Code::UnknownKey;
    if is_key
        && (!is_slip(word, meant)
            || siblings(&found.location.source.text, found.location.span().start).contains(&meant))
    {
        return None;
    }
    // `{% end if %}`
    let text = &*found.location.source.text;
    let start = found.location.span().start + at.find(word)?;
    let mut end = start + word.len();
    if word == "end" && text[end..].trim_start().starts_with(meant.strip_prefix("end")?) {
        end += text[end..].len() - text[end..].trim_start().len() + meant.len() - "end".len();
    }
    Some((replaced(start..end, meant), changed(word, meant)))
}

/// Returns the keys that the mapping around an offset has on other lines.
pub(crate) fn siblings(text: &str, offset: usize) -> Vec<&str> {
    let line = line_of(text, offset).start;
    let end = text[offset..].find('\n').map_or(text.len(), |newline| offset + newline + 1);
    let own = &text[line..end];
    let depth = depth_of(own);
    let is_first_of_item = own.trim_start().starts_with("- ");
    let mut keys = Vec::new();
    let is_blank = |line: &&str| line.trim().is_empty() || line.trim_start().starts_with('#');
    if !is_first_of_item {
        for line in text[..line].lines().rev().filter(|line| !is_blank(line)) {
            match depth_of(line) {
                less if less < depth || line.trim_end() == "---" || line.starts_with('[') => break,
                same if same == depth => keys.extend(key_of(line)),
                _ => continue,
            }
            if line.trim_start().starts_with("- ") {
                break;
            }
        }
    }
    for line in text[end..].lines().filter(|line| !is_blank(line)) {
        match depth_of(line) {
            less if less < depth || line.trim_end() == "---" || line.starts_with('[') => break,
            same if same == depth && line.trim_start().starts_with("- ") => break,
            same if same == depth => keys.extend(key_of(line)),
            _ => {}
        }
    }
    keys
}

fn key_of(line: &str) -> Option<&str> {
    let key = line.trim_start_matches([' ', '-']).split([':', '=']).next()?.trim();
    (!key.is_empty()).then_some(key)
}

pub(crate) fn depth_of(line: &str) -> usize {
    line.len() - line.trim_start_matches([' ', '-']).len()
}

fn template_syntax(found: &Diagnostic, text: &str, span: &Range<usize>) -> Option<(Change, String)> {
    let at = &text[span.clone()];
    let before = &text[..span.start];
    if at.contains(DOUBLE) || at.contains(SINGLE) {
        let start = before.rfind("{{").max(before.rfind("{%"))?;
        let end = text[start..].find(['}', '\n']).map_or(text.len(), |length| start + length);
        let marks = text[start..end].char_indices().filter_map(|(offset, c)| {
            let straight = if DOUBLE.contains(&c) {
                "\""
            } else if SINGLE.contains(&c) {
                "'"
            } else {
                return None;
            };
            let range = start + offset..start + offset + c.len_utf8();
            Some(Edit { range, text: straight.to_owned() })
        });
        return Some((Change::Edits(marks.collect()), QUOTES.to_owned()));
    }
    let operators = [("&&", "and"), ("||", "or"), ("=", "==")];
    if let Some((written, meant)) = operators.iter().find(|(written, _)| text[span.start..].starts_with(written)) {
        let is_asked = found.help.as_deref().is_some_and(|help| help.contains(&format!("`{meant}`")));
        let range = span.start..span.start + written.len();
        return is_asked.then(|| (replaced(range, *meant), changed(written, meant)));
    }
    if let Some((range, call)) = call_with_colon(text, span) {
        let title = changed(&text[range.clone()], &call);
        return Some((replaced(range, call), title));
    }
    if at == "if" && before.trim_end().ends_with("else") {
        let start = before.trim_end().len() - "else".len();
        return Some((replaced(start..span.end, "elif"), changed("else if", "elif")));
    }
    // `{{ name }` at the end of a line
    if found.message.contains("`{{` is not closed") && at.trim_end().ends_with('}') && !at.contains('\n') {
        let end = span.start + at.trim_end().len();
        return Some((replaced(end..end, "}"), "Add the second `}`".to_owned()));
    }
    None
}

fn line_of(text: &str, offset: usize) -> Range<usize> {
    let start = text[..offset].rfind('\n').map_or(0, |newline| newline + 1);
    let end = text[offset..].find(['\n', '\r']).map_or(text.len(), |length| offset + length);
    start..end
}

/// Puts a value of one line into quotation marks.
fn quoted(text: &str, range: Range<usize>) -> Option<(Change, String)> {
    let written = text.get(range.clone())?.trim_end();
    // The marks of a word processor are meant, and are none of YAML's.
    let value = written.trim_matches(['“', '”', '„', '«', '»']);
    let is_plain = !value.is_empty() && !value.contains(['"', '\\', '\n']) && !value.contains(" #");
    let change = || {
        let range = range.start..range.start + written.len();
        (replaced(range, format!("\"{value}\"")), "Put the value in quotation marks".to_owned())
    };
    is_plain.then(change)
}

fn is_path(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
    text.contains('.') && text.chars().all(is_part)
}

/// Replaces tabs in the indentation of the front matter by two spaces each.
fn tabs(text: &str) -> Option<(Change, String)> {
    let (keys, _) = front_matter(text)?;
    let mut edits = Vec::new();
    let mut start = keys.start;
    for line in text[keys].split_inclusive('\n') {
        let indent = line.len() - line.trim_start_matches([' ', '\t']).len();
        if line[..indent].contains('\t') {
            edits.push(Edit { range: start..start + indent, text: line[..indent].replace('\t', "  ") });
        }
        start += line.len();
    }
    (!edits.is_empty()).then(|| (Change::Edits(edits), "Indent with spaces".to_owned()))
}

fn no_break_spaces(text: &str) -> Option<(Change, String)> {
    const SPACE: char = '\u{a0}';

    let (keys, _) = front_matter(text)?;
    let spaces = text[keys.clone()].match_indices(SPACE).map(|(offset, found)| {
        let start = keys.start + offset;
        Edit { range: start..start + found.len(), text: " ".to_owned() }
    });
    let edits: Vec<Edit> = spaces.collect();
    (!edits.is_empty()).then(|| (Change::Edits(edits), "Replace no-break spaces".to_owned()))
}

/// Turns `name:` with keys below it into `- name: name`.
fn arguments_as_list(text: &str, span: Range<usize>) -> Option<(Change, String)> {
    let start = line_of(text, span.start).start;
    let lines: Vec<&str> = text.get(start..span.end)?.split_inclusive('\n').collect();
    let base = lines.first()?.len() - lines.first()?.trim_start().len();
    let (mut edits, mut at) = (Vec::new(), start);
    for line in lines {
        let indent = line.len() - line.trim_start().len();
        if indent == base {
            let name = line.trim().strip_suffix(':')?;
            let range = at + indent..at + line.trim_end().len();
            edits.push(Edit { range, text: format!("- name: {name}") });
        } else if indent < base + 2 && !line.trim().is_empty() {
            return None;
        }
        at += line.len();
    }
    Some((Change::Edits(edits), "Write the arguments as a list".to_owned()))
}

/// The beginning of the message about front matter with something above it.
pub(crate) const LATE: &str = "front matter starts in the first line";

/// Returns the section of `promptshelf.toml` with a key.
fn section_of(key: &str) -> Option<String> {
    let schema = crate::schema::library();
    let sections = schema["properties"].as_object()?;
    sections.iter().find(|(_, section)| section["properties"][key].is_object()).map(|(name, _)| name.clone())
}

/// What word processors make of `-`, `--` and `---`.
const DASHES: [char; 7] = ['-', '‐', '‑', '–', '—', '―', '−'];

/// Returns whether a line has dashes only.
pub(crate) fn is_dashes(line: &str) -> bool {
    let line = line.trim();
    line.chars().all(|c| DASHES.contains(&c)) && (line.len() > 1)
}

/// Returns the lines that were meant as the delimiters of front matter: the first one, and the next one with dashes only.
/// None if the first is right. Without a key below it, only a line of more than three dashes is one.
pub(crate) fn dashes(text: &str) -> Vec<Range<usize>> {
    let (mut found, mut start) = (Vec::new(), 0);
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    let has_key = lines.next().and_then(|line| line.split_once(':')).is_some_and(|(key, _)| is_key(key));
    let is_long = first.len() > 3 && first.trim_end().bytes().all(|byte| byte == b'-');
    // After spaces, it is reported as front matter that begins late, if the end is right.
    let is_right =
        first.trim_end() == "---" || first.trim() == "---" && text.lines().any(|line| line.trim_end() == "---");
    if is_right || !is_dashes(first) || !(has_key || is_long) {
        return found;
    }
    for line in text.split_inclusive('\n') {
        let trimmed = line.trim_end();
        if is_dashes(trimmed) {
            found.push(start..start + trimmed.len());
        }
        if found.len() == 2 {
            break;
        }
        start += line.len();
    }
    found
}

fn is_key(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
}

/// Replaces the dashes and bullets of word processors at the beginning of list items.
fn list_dashes(found: &Diagnostic) -> Option<(Change, String)> {
    list_dash(found)?;
    let text = &*found.location.source.text;
    let (keys, _) = front_matter(text)?;
    let (mut edits, mut start) = (Vec::new(), keys.start);
    for line in text[keys].split_inclusive('\n') {
        if let Some((at, dash)) = mark_of(line) {
            edits.push(Edit { range: start + at..start + at + dash.len_utf8(), text: "-".to_owned() });
        }
        start += line.len();
    }
    Some((Change::Edits(edits), "Write the items of a list with `-`".to_owned()))
}

/// Returns the dash or bullet of a word processor that a finding about a list or its indentation comes from.
fn list_dash(found: &Diagnostic) -> Option<char> {
    let is_list = found.code == Code::WrongType && found.message.contains("expected a list, found");
    let is_below = found.code == Code::Syntax && found.message.starts_with("this line is indented");
    if !is_list && !is_below {
        return None;
    }
    let (text, at) = (&*found.location.source.text, found.location.span().start);
    let before = text.get(..line_of(text, at).start)?.lines().next_back();
    [Some(line_at(found)), before].into_iter().flatten().find_map(mark_of).map(|(_, dash)| dash)
}

fn mark_of(line: &str) -> Option<(usize, char)> {
    let at = line.len() - line.trim_start().len();
    let dash = line[at..].chars().next().filter(|c| "–—−‐‑•·".contains(*c))?;
    line[at + dash.len_utf8()..].starts_with([' ', '\u{a0}']).then_some((at, dash))
}

/// Returns `default: "kind"` of other template languages, and the call that it is here.
fn call_with_colon(text: &str, span: &Range<usize>) -> Option<(Range<usize>, String)> {
    let rest = text.get(span.start..)?.strip_prefix(':')?;
    let before = text[..span.start].trim_end();
    let name = before.rsplit(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).next().filter(|it| !it.is_empty())?;
    if !before[..before.len() - name.len()].trim_end().ends_with('|') {
        return None;
    }
    let end = rest.find(['|', '}', '\n']).filter(|end| !rest[*end..].starts_with('\n'))?;
    let values = rest[..end].trim();
    let range = before.len() - name.len()..span.start + 1 + rest[..end].trim_end().len();
    (!values.is_empty() && !values.contains('{')).then(|| (range, format!("{name}({values})")))
}

/// Gives an argument the name of the help, in the front matter and wherever the template has it as a tag of its own.
fn renamed_argument(found: &Diagnostic, text: &str, at: &str) -> Option<(Change, String)> {
    let name = found.help.as_deref()?.strip_prefix("write `")?.strip_suffix('`')?;
    let (keys, _) = front_matter(text)?;
    let span = found.location.span();
    let written = at.trim_matches(['"', '\'']);
    if written.is_empty() || !(keys.start <= span.start && span.end <= keys.end) {
        return None;
    }
    // Another argument has the name.
    let is_taken = |line: &str| {
        line.trim_start_matches([' ', '-']).strip_prefix("name:").is_some_and(|value| value.trim() == name)
    };
    if text[keys.clone()].lines().any(is_taken) {
        return None;
    }
    let start = span.start + at.find(written)?;
    let mut edits = vec![Edit { range: start..start + written.len(), text: name.to_owned() }];
    for (offset, _) in text[keys.end..].match_indices(written) {
        let range = keys.end + offset..keys.end + offset + written.len();
        let is_tag = text[..range.start].trim_end_matches(' ').ends_with("{{")
            && text[range.end..].trim_start_matches(' ').starts_with(['}', '|']);
        if is_tag {
            edits.push(Edit { range, text: name.to_owned() });
        }
    }
    Some((Change::Edits(edits), changed(written, name)))
}

/// Whether a finding is about the name that a prompt has from its file. Those of arguments are elsewhere in the text.
fn is_of_file_name(found: &Diagnostic) -> bool {
    matches!(found.code, Code::InvalidName | Code::UnportableName) && found.location.span().start == 0
}

/// Whether the prompt of a file has the same name without the spaces.
fn keeps_name(found: &Diagnostic, name: &str) -> bool {
    found.code == Code::InvalidName && found.message.contains(&format!("{name}` instead"))
}

/// Gives a file a name that every client accepts: the name, the change, and its title. Files of other programs keep theirs: it
/// is the name there.
fn renamed(found: &Diagnostic) -> Option<(String, Change, String)> {
    let source = &found.location.source;
    if ForeignSyntax::for_path(&source.path).is_some() {
        return None;
    }
    let (folder, file) =
        source.path.rsplit_once('/').map_or(("", source.path.as_str()), |(folder, file)| (folder, file));
    let (stem, ending) = file.rsplit_once('.')?;
    if has_name(&source.text) {
        return None;
    }
    let name = portable(stem).filter(|_| !stem.chars().any(|c| c.is_alphabetic() && latin(c).is_none()))?;
    let slash = if folder.is_empty() { "" } else { "/" };
    let path = format!("{folder}{slash}{name}.{ending}");
    let title = format!("Rename the file to `{name}.{ending}`");
    (path != source.path).then_some((name, Change::Rename(path), title))
}

/// Returns whether the front matter names the prompt, so that the file's name is not its name.
fn has_name(text: &str) -> bool {
    let keys = front_matter(text).map(|(keys, _)| &text[keys]).unwrap_or_default();
    keys.lines().any(|line| line.starts_with("name:"))
}

/// Returns the name of lower-case letters, digits and `-` that is nearest to a text.
#[must_use]
pub fn portable(text: &str) -> Option<String> {
    let mut name = String::new();
    for c in text.chars() {
        match c {
            c if c.is_ascii_digit() => name.push(c),
            c if latin(c).is_some() => name.push_str(&latin(c).unwrap_or_default()),
            '_' if !name.is_empty() && !name.ends_with(['_', '-']) => name.push('_'),
            _ if !name.is_empty() && !name.ends_with(['_', '-']) => name.push('-'),
            _ => {}
        }
    }
    let name = name.trim_end_matches(['-', '_']);
    (!name.is_empty() && name.len() <= 64).then(|| name.to_owned())
}

/// Returns the small letters of ASCII for a letter, as German texts write it or without its accent.
fn latin(c: char) -> Option<String> {
    let written = match c {
        'ä' | 'Ä' => "ae",
        'ö' | 'Ö' => "oe",
        'ü' | 'Ü' => "ue",
        'ß' => "ss",
        'æ' | 'Æ' => "ae",
        'ø' | 'Ø' => "o",
        'œ' | 'Œ' => "oe",
        'ł' | 'Ł' => "l",
        _ => {
            let base = std::iter::once(c).nfd().next().filter(char::is_ascii_alphabetic)?;
            return Some(base.to_ascii_lowercase().to_string());
        }
    };
    Some(written.to_owned())
}

/// Returns the changes of a finding that needs a decision.
fn choices(found: &Diagnostic) -> Vec<Fix> {
    let (source, span) = (&found.location.source, found.location.span());
    let text = &*source.text;
    let fix = |title: String, change| Fix { title, path: source.path.clone(), change, is_only: false };
    if is_of_file_name(found) {
        return renamed(found).map(|(_, change, title)| fix(title, change)).into_iter().collect();
    }
    let mut fixes = Vec::new();
    let Some(at) = text.get(span.clone()).filter(|at| !at.is_empty()) else { return fixes };
    let is_name = |word: &str| word.chars().all(|c| c.is_alphanumeric() || c == '_');
    match found.code {
        Code::UndeclaredArgument if is_name(at) => {
            if let Some(edit) = declaration(text, at) {
                fixes.push(fix(format!("Declare the argument `{at}`"), Change::Edits(vec![edit])));
            }
            if let Some(tag) = tag_around(text, &span) {
                let literal = format!("{{% raw %}}{}{{% endraw %}}", &text[tag.clone()]);
                fixes.push(fix("Keep the braces as text".to_owned(), replaced(tag, literal)));
            }
        }
        Code::TemplateSyntax | Code::UnknownFunction => {
            if let Some(tag) = tag_around(text, &span) {
                let literal = format!("{{% raw %}}{}{{% endraw %}}", &text[tag.clone()]);
                fixes.push(fix("Keep the braces as text".to_owned(), replaced(tag, literal)));
            }
        }
        Code::BareText => {
            if let Some(tag) = tag_around(text, &span) {
                let inside = text[tag.clone()].trim_start_matches("{{").trim_end_matches("}}").trim();
                for filter in ["fence".to_owned(), format!("xml(\"{at}\")")] {
                    let enclosed = format!("{{{{ {inside} | {filter} }}}}");
                    fixes.push(fix(format!("Enclose the value with `{filter}`"), replaced(tag.clone(), enclosed)));
                }
            }
        }
        Code::UnknownKey if !at.contains('\n') => {
            let line = line_of(text, span.start);
            let end = (line.end + 1).min(text.len());
            let has_block = text[end..].starts_with([' ', '\t']);
            if !has_block {
                fixes.push(fix(format!("Remove the key `{at}`"), replaced(line.start..end, "")));
            }
        }
        _ => {}
    }
    fixes
}

/// Returns the tag of a template around a position.
fn tag_around(text: &str, span: &Range<usize>) -> Option<Range<usize>> {
    let start = text[..span.start].rfind('{')?.checked_sub(1)?;
    let close = match text.get(start..start + 2)? {
        "{{" => "}}",
        "{%" => "%}",
        _ => return None,
    };
    let end = span.end + text.get(span.end..)?.find(close)? + close.len();
    (!text[start..end].contains('\n')).then_some(start..end)
}

/// Returns the edit that declares an argument.
fn declaration(text: &str, name: &str) -> Option<Edit> {
    let (keys, _) = front_matter(text)?;
    let entry = format!("  - name: {name}\n    description: \"\"\n");
    let front = &text[keys.clone()];
    let at = match front.lines().position(|line| line.trim_end() == "arguments:") {
        Some(number) => {
            let before: usize = front.split_inclusive('\n').take(number + 1).map(str::len).sum();
            let inside = front[before..].split_inclusive('\n').take_while(|line| line.starts_with([' ', '-', '\t']));
            keys.start + before + inside.map(str::len).sum::<usize>()
        }
        None => return Some(Edit { range: keys.end..keys.end, text: format!("arguments:\n{entry}") }),
    };
    Some(Edit { range: at..at, text: entry })
}

/// Adds advice to a finding that has none, and better advice for words of other languages.
pub(crate) fn advise(found: &mut Diagnostic) {
    let at = found.location.source.text.get(found.location.span()).unwrap_or_default();
    let message = found.message.as_str();
    let advice = match found.code {
        Code::UnknownFunction if ["today", "now", "date", "strftime", "time"].contains(&at) => {
            Some("there is no clock: add an argument of type `date`".to_owned())
        }
        Code::UnknownFunction => {
            let synonym = SYNONYMS.iter().find(|(word, _)| word.eq_ignore_ascii_case(at));
            synonym.map(|(_, meant)| format!("did you mean `{meant}`?"))
        }
        Code::InvalidCall if is_path(at) && message.contains("must be a literal") => {
            Some(format!("put quotation marks around the path: `\"{at}\"`"))
        }
        Code::TemplateSyntax if at == "if" && message.starts_with("unexpected") => {
            Some("write `{% elif … %}`".to_owned())
        }
        Code::TemplateSyntax if at == ":" => call_with_colon(&found.location.source.text, &found.location.span())
            .map(|(_, call)| format!("write `{call}`")),
        Code::NoEffect if message.starts_with(LATE) && found.location.line_column().0 == 1 => {
            Some("remove the spaces before the dashes".to_owned())
        }
        Code::WrongType if message.starts_with("the front matter") && line_at(found).contains(":\u{a0}") => Some(
            "a no-break space (U+00A0) stands after the colon, and looks like a space: write an ordinary space".to_owned(),
        ),
        Code::WrongType | Code::Syntax if list_dash(found).is_some() => {
            list_dash(found).map(|dash| format!("`{dash}` does not begin an item of a list: write `-`"))
        }
        Code::TemplateSyntax if at == "$" => Some("write the name without `$`: `{{ name }}`".to_owned()),
        Code::TemplateSyntax if at == "end" && found.help.is_none() => Some("write the end of the block: `{% endif %}` or `{% endfor %}`".to_owned()),
        Code::TemplateSyntax | Code::Syntax if hidden(line_at(found)).next().is_some() => {
            hidden(line_at(found)).next().map(|(_, c)| {
                format!("this line has an invisible character, U+{:04X}, {}: remove it", u32::from(c), describe(c))
            })
        }
        Code::UnknownKey if found.location.source.path == LIBRARY_FILE && section_of(at).is_some() => {
            section_of(at).map(|section| format!("`{at}` belongs into `[{section}]`: write it below a line `[{section}]`"))
        }
        Code::TemplateSyntax | Code::UnknownKey if line_at(found).contains('\u{a0}') => Some(
            "this line has a no-break space (U+00A0), which looks like a space: write ordinary spaces".to_owned(),
        ),
        Code::UndeclaredArgument => minus(found),
        Code::UnusedArgument => written_otherwise(found, at),
        Code::UnknownKey if OTHER_KEYS.iter().any(|(word, _)| *word == at) => {
            let meant = OTHER_KEYS.iter().find(|(word, _)| *word == at).map(|(_, meant)| *meant);
            meant.map(|meant| format!("did you mean `{meant}`?"))
        }
        Code::UnknownKey if CLAUDE_KEYS.contains(&at) => Some(
            "this looks like a command of Claude Code: move the file to `.claude/commands`, or convert it with `promptshelf import`"
                .to_owned(),
        ),
        Code::WrongType if found.help.is_none() => [
            ("expected text, found a list", "put it in quotation marks, or write one text"),
            ("expected text", "put it in quotation marks"),
            ("number, found", "write a number, such as 100"),
            ("expected `true` or `false`", "write `true` or `false`, without quotation marks"),
        ]
        .iter()
        .find(|(part, _)| message.contains(part))
        .map(|(_, advice)| (*advice).to_owned()),
        _ => None,
    };
    if let Some(advice) = advice {
        found.help = Some(advice);
    }
}

/// Words of other programs for keys.
const OTHER_KEYS: [(&str, &str); 9] = [
    ("args", "arguments"),
    ("parameters", "arguments"),
    ("params", "arguments"),
    ("variables", "arguments"),
    ("inputs", "arguments"),
    ("options", "enum"),
    ("choices", "enum"),
    ("values", "enum"),
    ("regex", "pattern"),
];

fn line_at(found: &Diagnostic) -> &str {
    let text = &found.location.source.text;
    &text[line_of(text, found.location.span().start)]
}

/// Explains `{{ first-name }}`, which subtracts two arguments.
fn minus(found: &Diagnostic) -> Option<String> {
    let (text, span) = (&found.location.source.text, found.location.span());
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    let start = text[..span.start].trim_end_matches(is_part).len();
    let end = text.len() - text[span.end..].trim_start_matches(is_part).len();
    let written = text[start..end].trim_matches('-');
    let meant = written.replace('-', "_");
    let is_declared = text.lines().any(|line| {
        let declared = line.trim_start().strip_prefix("- name:").map(|name| name.trim().trim_matches(['"', '\'']));
        declared == Some(meant.as_str()) || declared == Some(written)
    });
    (written.contains('-') && is_declared)
        .then(|| format!("write `{meant}`: between names, `-` means minus, so names of arguments have `_`"))
}

/// Finds an unused argument in the braces of another language.
fn written_otherwise(found: &Diagnostic, name: &str) -> Option<String> {
    let text = &found.location.source.text;
    let name = name.trim_matches(['"', '\'']);
    let forms = [format!("${{{name}}}"), format!("{{{name}}}"), format!("{{ {name} }}"), format!("${name}")];
    let body = front_matter(text).map_or(0, |(keys, _)| keys.end);
    let (at, form) = forms.iter().find_map(|form| text[body..].find(form.as_str()).map(|at| (body + at, form)))?;
    let is_whole = !text[at + form.len()..].starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == '}');
    let line = text[..at].matches('\n').count() + 1;
    is_whole.then(|| format!("write `{{{{ {name} }}}}` in line {line}: `{form}` is sent to models as it stands"))
}

/// Keys of commands of Claude Code that files of a library do not have.
const CLAUDE_KEYS: [&str; 4] = ["argument-hint", "allowed-tools", "model", "disable-model-invocation"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn siblings_are_the_other_keys_of_a_mapping() {
        let is = |text: &str, expected: &[&str]| {
            let offset = text.find('^').expect("a cursor");
            assert_eq!(siblings(&text.replacen('^', "", 1), offset), expected, "{text}");
        };
        is("---\ntitle: a\nde^\ntags: []\n---\nx: y\n", &["title", "tags"]);
        is("arguments:\n  - name: a\n    ty^\n    required: true\n  - name: b\n", &["name", "required"]);
        is("arguments:\n  - name: a\n  - na^\n    type: text\nnext: 1\n", &["type"]);
        is("a = 1\n[limits]\nfuel = 1\nby^\n[roots]\nx = 1\n", &["fuel"]);
    }
}

//! The difference between two catalogs in words: what callers of prompts and resources will notice.

mod access;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt,
    sync::Arc,
};

use promptshelf_core::{
    Access, AccessSet, Argument, ArgumentType, Catalog, Deprecation, LABELS, Label, Prompt, Resource, RulePart,
    is_interrupted,
};

/// How a difference affects callers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Impact {
    /// Calls that succeeded will fail.
    Breaking,
    /// More callers than before get access, or values are no longer protected.
    Opening,
    /// Callers notice it and nothing fails.
    Notice,
}

impl Impact {
    /// Returns a stable identifier, such as `breaking`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Impact::Breaking => "breaking",
            Impact::Opening => "opening",
            Impact::Notice => "notice",
        }
    }
}

/// The calls of a prompt that a difference affects, as far as names of arguments decide it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum AffectedCalls {
    /// None, or those that names of arguments do not decide.
    #[default]
    Unknown,
    /// Every call.
    All,
    /// Calls that leave this argument out.
    Omitting(String),
    /// Calls that send this argument. If only some of its values are affected, these are at most as many calls.
    Sending(String),
}

/// The part of a library that a difference is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Subject {
    /// The server's description and limits.
    Library,
    /// A prompt.
    Prompt,
    /// A resource or a resource template.
    Resource,
}

impl Subject {
    /// Returns a stable identifier, such as `prompt`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Subject::Library => "library",
            Subject::Prompt => "prompt",
            Subject::Resource => "resource",
        }
    }
}

/// A difference between two catalogs, as a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Difference {
    /// How it affects callers.
    pub impact: Impact,
    /// The kind of the changed part.
    pub subject: Subject,
    /// The name of the prompt, or the URI of the resource; empty for the library.
    pub name: String,
    /// The stable name of the sentence, such as `argument-required`; one of [`Difference::CODES`].
    pub code: &'static str,
    /// The values of the sentence, by name, such as `argument`. Lists are quoted and separated by commas.
    pub values: BTreeMap<&'static str, String>,
    /// The difference and its effect, without the name of the subject.
    pub text: String,
    /// The calls that it affects.
    pub affects: AffectedCalls,
}

impl Difference {
    /// All codes.
    pub const CODES: &[&str] = &[
        "access-changed",
        "access-closed",
        "access-opened",
        "alias-gone",
        "argument-asked",
        "argument-bytes",
        "argument-default",
        "argument-default-none",
        "argument-gone",
        "argument-new",
        "argument-new-required",
        "argument-not-asked",
        "argument-not-sensitive",
        "argument-optional",
        "argument-required",
        "argument-sensitive",
        "argument-text-changed",
        "argument-text-gone",
        "argument-text-new",
        "choices-gone",
        "choices-new",
        "deprecated",
        "deprecated-for",
        "deprecated-no-longer",
        "diagnostics-changed",
        "diagnostics-closed",
        "diagnostics-opened",
        "instructions",
        "new",
        "page-size",
        "prompt-gone",
        "prompt-renamed",
        "prompt-renamed-alias",
        "resource-gone",
        "text-changed",
        "text-gone",
        "text-new",
        "value-any",
        "value-choices",
        "value-max-length",
        "value-max-length-none",
        "value-maximum",
        "value-maximum-none",
        "value-min-length",
        "value-min-length-none",
        "value-minimum",
        "value-minimum-none",
        "value-pattern",
        "value-pattern-none",
        "value-type",
    ];

    fn with(&mut self, name: &'static str, value: impl Into<String>) -> &mut Difference {
        self.values.insert(name, value.into());
        self
    }

    fn affecting(&mut self, calls: AffectedCalls) -> &mut Difference {
        self.affects = calls;
        self
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference { impact, subject, name, text, .. } = self;
        write!(f, "{}: {}", impact.as_str(), subject.as_str())?;
        if name.is_empty() { write!(f, ": {text}") } else { write!(f, " {name}: {text}") }
    }
}

/// Returns the differences between two catalogs that callers will notice, the breaking ones first, then by subject and
/// name. Differences of texts and contents are not among them: renderings show those.
///
/// ```
/// use promptshelf_author::{Impact, differences};
/// use promptshelf_core::{ArgumentDefinition, Definitions, PromptDefinition, check};
///
/// let catalog = |argument| {
///     let prompt = PromptDefinition::template("review", "Review this {{ language }} code.").argument(argument);
///     check(Definitions::from_iter([prompt]), None).catalog
/// };
/// let before = catalog(ArgumentDefinition::new("language"));
/// let after = catalog(ArgumentDefinition::new("language").required());
/// let found = differences(&before, &after);
/// assert_eq!(found[0].impact, Impact::Breaking);
/// assert_eq!(found[0].text, "`language` became required: callers that leave it out will fail");
/// ```
#[must_use]
pub fn differences(before: &Catalog, after: &Catalog) -> Vec<Difference> {
    let mut found = Vec::new();
    library(before, after, &mut found);
    prompts(before, after, &mut found);
    resources(before, after, &mut found);
    found.sort_by(|a, b| (a.impact, a.subject, &a.name).cmp(&(b.impact, b.subject, &b.name)));
    found
}

/// What more callers may read than before, all by the same change of rules.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Opened {
    /// The names or paths, sorted.
    pub names: Vec<String>,
    /// The callers who may read it now.
    pub now: String,
    /// Those who might before.
    pub before: String,
}

#[derive(Default)]
struct Openings(BTreeMap<(String, String), BTreeSet<String>>);

impl Openings {
    fn add(&mut self, name: &str, (before, now): (&[Arc<Access>], &[Arc<Access>])) {
        if access::opens(before, now) {
            let group = (access::described(now), access::described(before));
            self.0.entry(group).or_default().insert(name.to_owned());
        }
    }

    fn listed(self) -> Vec<Opened> {
        let group =
            |((now, before), names): (_, BTreeSet<String>)| Opened { names: names.into_iter().collect(), now, before };
        self.0.into_iter().map(group).collect()
    }
}

/// Returns the prompts that access rules close less than those with the same names in another catalog.
#[must_use]
pub fn opened_prompts<'p>(before: &Catalog, after: &Catalog, names: impl IntoIterator<Item = &'p str>) -> Vec<Opened> {
    let mut found = Openings::default();
    for name in names.into_iter().filter(|name| before.find(name).is_some()) {
        found.add(name, (&of_prompt(before, name), &of_prompt(after, name)));
    }
    found.listed()
}

/// Returns the files that access rules close less than before. Rules apply to files, whether a prompt attaches them or not.
#[must_use]
pub fn opened_files<'p>(before: &Catalog, after: &Catalog, paths: impl IntoIterator<Item = &'p str>) -> Vec<Opened> {
    let mut found = Openings::default();
    for path in paths {
        found.add(path, (&before.path_access(path).rules, &after.path_access(path).rules));
    }
    found.listed()
}

/// Returns the files that are closed less than others were: those of each group now, and its paths before. Any file of a group
/// may have the text of any other one.
#[must_use]
pub fn opened_moves<'p>(
    before: &Catalog,
    after: &Catalog,
    groups: impl IntoIterator<Item = (Vec<&'p str>, Vec<&'p str>)>,
) -> Vec<Opened> {
    let mut found = Openings::default();
    if !before.restricts_contents() {
        return Vec::new();
    }
    for (known, now) in groups {
        let mut old = by_rules(before, &known);
        old.retain(|(rules, _)| !rules.is_empty());
        if old.is_empty() {
            continue;
        }
        for (new, paths) in by_rules(after, &now) {
            for (old, _) in &old {
                if is_interrupted() {
                    return found.listed();
                }
                if access::opens(old, &new) {
                    paths.iter().for_each(|path| found.add(path, (old, &new)));
                }
            }
        }
    }
    found.listed()
}

fn by_rules<'p>(catalog: &Catalog, paths: &[&'p str]) -> Vec<(AccessSet, Vec<&'p str>)> {
    let mut groups: Vec<(AccessSet, Vec<&'p str>)> = Vec::new();
    for path in paths {
        let rules = catalog.path_access(path).rules;
        match groups.iter_mut().find(|(known, _)| *known == rules) {
            Some((_, paths)) => paths.push(path),
            None => groups.push((rules, vec![path])),
        }
    }
    groups
}

/// Returns the patterns of rules that close less than before, or are gone: whatever fits them later is open to more callers.
/// `is_told` says for which of them a prompt, resource or file is told of already.
pub fn opened_rules(before: &Catalog, after: &Catalog, is_told: impl Fn(&RulePart<'_>) -> bool) -> Vec<Opened> {
    let mut found = Openings::default();
    let new: Vec<RulePart<'_>> = after.rule_parts().collect();
    for old in before.rule_parts() {
        let now: AccessSet =
            new.iter().filter(|part| part.is_same(&old)).map(|part| Arc::clone(part.access())).collect();
        let before = [Arc::clone(old.access())];
        if access::opens(&before, &now) && !is_told(&old) {
            found.add(&format!("{} {}", old.key(), old.text()), (&before, &now));
        }
    }
    found.listed()
}

/// A text that more callers receive than before, in a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpenedText {
    /// The name of the prompt.
    pub prompt: String,
    /// The file that it includes, or the prompt that it calls.
    pub content: String,
    /// What its callers receive now.
    pub text: String,
}

/// Returns the texts of closed files and prompts that a prompt includes or calls now, and did not before, although its
/// callers may not read them.
#[must_use]
pub fn opened_texts(before: &Catalog, after: &Catalog) -> Vec<OpenedText> {
    let mut found = Vec::new();
    for (index, prompt) in after.prompts().iter().enumerate() {
        let own = after.prompt_access(index);
        let old = before.position(prompt.name().as_str());
        let known = old.map(|index| before.contained_texts(index)).unwrap_or_default();
        for (content, rules) in after.contained_texts(index) {
            if access::opens(&rules, own) && !known.iter().any(|(known, _)| *known == content) {
                let (to, only) = (access::described(own), access::described(&rules));
                let text = format!("{to} receive the text of `{content}` now, which is open to {only}");
                found.push(OpenedText { prompt: prompt.name().to_string(), content, text });
            }
        }
    }
    found
}

struct Notes<'a> {
    subject: Subject,
    name: &'a str,
    found: &'a mut Vec<Difference>,
}

impl Notes<'_> {
    fn add(&mut self, impact: Impact, code: &'static str, text: impl Into<String>) -> &mut Difference {
        debug_assert!(Difference::CODES.contains(&code), "{code} is not listed");
        let (subject, name) = (self.subject, self.name.to_owned());
        self.found.push_mut(Difference {
            impact,
            subject,
            name,
            code,
            values: BTreeMap::new(),
            text: text.into(),
            affects: AffectedCalls::Unknown,
        })
    }

    /// Adds a changed text of the subject; `what` names it.
    fn text(&mut self, what: &str, before: Option<&str>, after: Option<&str>) {
        if let Some((code, text, value)) = changed_text(["text-gone", "text-new", "text-changed"], what, before, after)
        {
            self.add(Impact::Notice, code, text)
                .with("what", what.to_lowercase().replace(' ', "-"))
                .with("text", value);
        }
    }

    /// Compares the values of a key; a key with one value is a word, one with several the plural of it.
    fn values(&mut self, key: &str, before: &[String], after: &[String]) {
        if before == after {
            return;
        }
        let (code, text) = match (before, after) {
            (_, []) => ("text-gone", format!("has no {key} any more")),
            ([], after) => ("text-new", format!("has the {key} {} now", listed(after))),
            (_, after) => ("text-changed", format!("has the {key} {} now", listed(after))),
        };
        self.add(Impact::Notice, code, text).with("what", key).with("text", enumerated(after));
    }
}

/// The code, the sentence and the new value of a changed text. The codes are those of a removed, a new and another text.
fn changed_text(
    codes: [&'static str; 3],
    what: &str,
    before: Option<&str>,
    after: Option<&str>,
) -> Option<(&'static str, String, String)> {
    let [gone, new, changed] = codes;
    match (before, after) {
        _ if before == after => None,
        (_, None) => Some((gone, format!("the {what} is gone"), String::new())),
        (None, Some(text)) => Some((new, format!("has a {what} now: {}", short(text)), short(text))),
        (Some(_), Some(text)) => Some((changed, format!("the {what} is now {}", short(text)), short(text))),
    }
}

const MAX_QUOTED: usize = 120;

fn short(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_QUOTED) {
        Some((end, _)) => format!("“{}…”", line[..end].trim_end()),
        None => format!("“{line}”"),
    }
}

const MOST: usize = 12;

/// Joins values for a sentence: "`a`, `b` and `c`".
fn listed(values: &[String]) -> String {
    let all: Vec<String> = values.iter().map(|value| format!("`{value}`")).collect();
    match all.as_slice() {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] if all.len() <= MOST => format!("{} and {last}", first.join(", ")),
        _ => format!("{} and {} more", all[..MOST].join(", "), all.len() - MOST),
    }
}

/// Joins values without words of a language: "`a`, `b`, `c`".
fn enumerated(values: &[String]) -> String {
    let shown: Vec<String> = values.iter().take(MOST).map(|value| format!("`{value}`")).collect();
    let more = if values.len() > MOST { format!(", … (+{})", values.len() - MOST) } else { String::new() };
    shown.join(", ") + &more
}

fn library(before: &Catalog, after: &Catalog, found: &mut Vec<Difference>) {
    let mut notes = Notes { subject: Subject::Library, name: "", found };
    let (old, new) = (before.about(), after.about());
    notes.text("name", old.name.as_deref(), new.name.as_deref());
    notes.text("title", old.title.as_deref(), new.title.as_deref());
    notes.text("description", old.description.as_deref(), new.description.as_deref());
    if old.instructions != new.instructions {
        notes.add(Impact::Notice, "instructions", "the instructions for models changed");
    }
    let (old, new) = (before.policy(), after.policy());
    if new.value_bytes < old.value_bytes {
        let text = format!("values of arguments have at most {} bytes: longer ones will fail", new.value_bytes);
        notes.add(Impact::Breaking, "argument-bytes", text).with("n", new.value_bytes.to_string());
    }
    if new.page_size != old.page_size {
        let text = format!("lists have {} entries on a page now", new.page_size);
        notes.add(Impact::Notice, "page-size", text).with("n", new.page_size.to_string());
    }
    access::compare(&mut notes, access::Part::Diagnostics, &before.diagnostics_access(), &after.diagnostics_access());
}

fn prompts(before: &Catalog, after: &Catalog, found: &mut Vec<Difference>) {
    let added: Vec<&Prompt> = after
        .prompts()
        .iter()
        .filter(|prompt| before.find(prompt.name().as_str()).is_none())
        .map(|prompt| &**prompt)
        .collect();
    let added_by_path: HashMap<&str, &Prompt> =
        added.iter().map(|prompt| (prompt.source().path.as_str(), *prompt)).collect();
    for old in before.prompts().iter() {
        let name = old.name().as_str();
        let mut notes = Notes { subject: Subject::Prompt, name, found };
        let alias = after.position_of_alias(name).and_then(|index| after.prompts().get(index));
        if let (None, Some(renamed)) = (after.find(name), alias) {
            let text = format!("is called `{}` now, and still served under the old name", renamed.name());
            notes.add(Impact::Notice, "prompt-renamed-alias", text).with("now", renamed.name().as_str());
        }
        let Some(new) = after.find(name).or(alias) else {
            let lost = match added_by_path.get(old.source().path.as_str()) {
                Some(renamed) => {
                    let text = format!("is called `{}` now: callers of the old name will fail", renamed.name());
                    notes.add(Impact::Breaking, "prompt-renamed", text).with("now", renamed.name().as_str())
                }
                None => notes.add(Impact::Breaking, "prompt-gone", "is gone: callers will fail"),
            };
            lost.affecting(AffectedCalls::All);
            if let Some(renamed) = added_by_path.get(old.source().path.as_str()) {
                let (old, new) = (of_prompt(before, name), of_prompt(after, renamed.name().as_str()));
                access::compare(&mut notes, access::Part::Subject, &old, &new);
            }
            continue;
        };
        notes.text("title", old.title(), new.title());
        notes.text("description", old.description(), new.description());
        compare_arguments(&mut notes, old.arguments(), new.arguments());
        notes.values("tags", old.tags(), new.tags());
        for Label { key, .. } in LABELS {
            notes.values(key, old.labels().get(key), new.labels().get(key));
        }
        match (old.deprecation(), new.deprecation()) {
            (before, after) if before == after => {}
            (_, None) => {
                notes.add(Impact::Notice, "deprecated-no-longer", "is no longer deprecated");
            }
            (_, Some(now)) => deprecated(&mut notes, now),
        }
        let now = of_prompt(after, new.name().as_str());
        access::compare(&mut notes, access::Part::Subject, &of_prompt(before, name), &now);
        for lost in
            old.aliases().filter(|alias| after.find(alias).is_none() && after.position_of_alias(alias).is_none())
        {
            let text = format!("is no longer served under the former name `{lost}`: callers of it will fail");
            notes.add(Impact::Breaking, "alias-gone", text).with("name", lost);
        }
    }
    for new in added.into_iter().filter(|new| !new.aliases().any(|alias| before.find(&alias).is_some())) {
        let mut notes = Notes { subject: Subject::Prompt, name: new.name().as_str(), found };
        access::new(&mut notes, &of_prompt(after, new.name().as_str()));
    }
}

fn deprecated(notes: &mut Notes<'_>, deprecation: &Deprecation) {
    let replacement = deprecation.replacement.as_deref();
    let message = deprecation.message.as_deref().map(short);
    let instead = replacement.map(|name| format!(" in favour of `{name}`")).unwrap_or_default();
    let reason = message.as_ref().map(|message| format!(": {message}")).unwrap_or_default();
    let code = if replacement.is_some() { "deprecated-for" } else { "deprecated" };
    let added = notes.add(Impact::Notice, code, format!("is deprecated now{instead}{reason}"));
    added.with("now", replacement.unwrap_or_default()).with("message", message.unwrap_or_default());
}

fn of_prompt(catalog: &Catalog, name: &str) -> AccessSet {
    catalog.position(name).map(|index| catalog.prompt_access(index).to_vec()).unwrap_or_default()
}

fn resources(before: &Catalog, after: &Catalog, found: &mut Vec<Difference>) {
    let declared = |catalog: &'_ Catalog| -> BTreeMap<String, Arc<Resource>> {
        let all = catalog.resources().iter().chain(catalog.templates());
        all.map(|resource| (resource.uri().to_owned(), Arc::clone(resource))).collect()
    };
    let (old, new) = (declared(before), declared(after));
    for (uri, resource) in &old {
        let mut notes = Notes { subject: Subject::Resource, name: uri, found };
        let Some(now) = new.get(uri) else {
            notes.add(Impact::Breaking, "resource-gone", "is gone: clients that read it will fail");
            continue;
        };
        notes.text("title", resource.title(), now.title());
        notes.text("description", resource.description(), now.description());
        let kind = |resource: &Resource| resource.mime_type().map(|kind| kind.as_str().to_owned());
        notes.text("MIME type", kind(resource).as_deref(), kind(now).as_deref());
        compare_arguments(&mut notes, resource.variables(), now.variables());
        access::compare(
            &mut notes,
            access::Part::Subject,
            &before.declared_access(resource),
            &after.declared_access(now),
        );
    }
    for (uri, resource) in new.iter().filter(|(uri, _)| !old.contains_key(*uri)) {
        let mut notes = Notes { subject: Subject::Resource, name: uri, found };
        access::new(&mut notes, &after.declared_access(resource));
    }
}

const FAILS: &str = ": callers that send other values will fail";

fn compare_arguments(notes: &mut Notes<'_>, before: &[Argument], after: &[Argument]) {
    for old in before {
        match after.iter().find(|new| new.name() == old.name()) {
            Some(new) => Arguments { notes, old, new }.compare(),
            None => {
                let text = format!("`{}` is gone: values that callers send are ignored", old.name());
                let gone = notes.add(Impact::Notice, "argument-gone", text).with("argument", old.name());
                gone.affecting(AffectedCalls::Sending(old.name().to_owned()));
            }
        }
    }
    for new in after.iter().filter(|new| !before.iter().any(|old| old.name() == new.name())) {
        let name = new.name();
        let added = if new.required() {
            let text = format!("`{name}` is new and required: callers that do not send it will fail");
            notes.add(Impact::Breaking, "argument-new-required", text).affecting(AffectedCalls::All)
        } else {
            notes.add(Impact::Notice, "argument-new", format!("`{name}` is new and optional"))
        };
        added.with("argument", name);
    }
}

struct Arguments<'n, 'a> {
    notes: &'n mut Notes<'a>,
    old: &'n Argument,
    new: &'n Argument,
}

impl Arguments<'_, '_> {
    fn compare(mut self) {
        let (old, new) = (self.old, self.new);
        let name = new.name();
        match (old.required(), new.required()) {
            (false, true) => {
                let text = format!("`{name}` became required: callers that leave it out will fail");
                let required = self.add(Impact::Breaking, "argument-required", text);
                required.affecting(AffectedCalls::Omitting(name.to_owned()));
            }
            (true, false) => {
                self.add(Impact::Notice, "argument-optional", format!("`{name}` became optional"));
            }
            _ => {}
        }
        self.kind();
        self.choices();
        self.constraints();
        if old.default_value() != new.default_value() {
            match new.default_value() {
                Some(value) => {
                    let text = format!("the default of `{name}` is now {}", short(value));
                    self.add(Impact::Notice, "argument-default", text).with("text", short(value));
                }
                None => {
                    self.add(Impact::Notice, "argument-default-none", format!("`{name}` has no default any more"));
                }
            }
        }
        match (old.is_asked(), new.is_asked()) {
            (false, true) => {
                self.add(Impact::Notice, "argument-asked", format!("`{name}` is now asked for in a form"));
            }
            (true, false) => {
                self.add(Impact::Notice, "argument-not-asked", format!("`{name}` is no longer asked for in a form"));
            }
            _ => {}
        }
        match (old.is_sensitive(), new.is_sensitive()) {
            (true, false) => {
                let text = format!("`{name}` is no longer sensitive: its values can appear in logs, errors and links");
                self.add(Impact::Opening, "argument-not-sensitive", text);
            }
            (false, true) => {
                self.add(Impact::Notice, "argument-sensitive", format!("`{name}` is sensitive now"));
            }
            _ => {}
        }
        let codes = ["argument-text-gone", "argument-text-new", "argument-text-changed"];
        let what = format!("description of `{name}`");
        if let Some((code, text, value)) = changed_text(codes, &what, old.description(), new.description()) {
            self.add(Impact::Notice, code, text).with("text", value);
        }
    }

    fn add(&mut self, impact: Impact, code: &'static str, text: impl Into<String>) -> &mut Difference {
        self.notes.add(impact, code, text).with("argument", self.new.name())
    }

    fn fails(&mut self, code: &'static str, text: &str) -> &mut Difference {
        let sending = AffectedCalls::Sending(self.new.name().to_owned());
        self.add(Impact::Breaking, code, format!("{text}{FAILS}")).affecting(sending)
    }

    fn kind(&mut self) {
        let (old, new) = (self.old.kind(), self.new.kind());
        if old == new {
            return;
        }
        let text = format!("`{}` is of type {} now, before {}", self.new.name(), new.as_str(), old.as_str());
        let changed = match new {
            // Every value of the other types is a text.
            ArgumentType::String | ArgumentType::Text => self.add(Impact::Notice, "value-type", text),
            _ => self.fails("value-type", &text),
        };
        changed.with("before", old.as_str()).with("now", new.as_str());
    }

    fn choices(&mut self) {
        let values = |argument: &'_ Argument| -> Vec<String> {
            argument.choices().iter().map(|choice| choice.value.clone()).collect()
        };
        let (before, after) = (values(self.old), values(self.new));
        let name = self.new.name();
        let without = |one: &[String], other: &[String]| {
            one.iter().filter(|value| !other.contains(value)).cloned().collect::<Vec<String>>()
        };
        if before.is_empty() && !after.is_empty() {
            let text = format!("`{name}` only accepts {} now", listed(&after));
            self.fails("value-choices", &text).with("values", enumerated(&after));
            return;
        }
        if !before.is_empty() && after.is_empty() {
            self.add(Impact::Notice, "value-any", format!("`{name}` accepts any value now"));
            return;
        }
        let (gone, added) = (without(&before, &after), without(&after, &before));
        if !gone.is_empty() {
            let text = format!("`{name}` no longer accepts {}: callers that send it will fail", listed(&gone));
            let sending = AffectedCalls::Sending(name.to_owned());
            let removed = self.add(Impact::Breaking, "choices-gone", text).affecting(sending);
            removed.with("values", enumerated(&gone));
        }
        if !added.is_empty() {
            let text = format!("`{name}` also accepts {}", listed(&added));
            self.add(Impact::Notice, "choices-new", text).with("values", enumerated(&added));
        }
    }

    fn constraints(&mut self) {
        let (before, after) = (self.old.definition().constraints(), self.new.definition().constraints());
        let name = self.new.name();
        if before.pattern != after.pattern {
            match &after.pattern {
                Some(pattern) => {
                    let text = format!("`{name}` must match `{pattern}` now");
                    self.fails("value-pattern", &text).with("now", pattern);
                }
                None => {
                    let text = format!("`{name}` needs to match no pattern any more");
                    self.add(Impact::Notice, "value-pattern-none", text);
                }
            }
        }
        let number = |length: Option<usize>| length.map(|length| length as f64);
        // The codes of a limit and of its removal, the limit in words, whether a larger number is stricter, its unit.
        let limits = [
            (
                ["value-min-length", "value-min-length-none"],
                ("at least", true, " characters"),
                (number(before.min_length), number(after.min_length)),
            ),
            (
                ["value-max-length", "value-max-length-none"],
                ("at most", false, " characters"),
                (number(before.max_length), number(after.max_length)),
            ),
            (["value-minimum", "value-minimum-none"], ("at least", true, ""), (before.minimum, after.minimum)),
            (["value-maximum", "value-maximum-none"], ("at most", false, ""), (before.maximum, after.maximum)),
        ];
        for ([code, none], (word, is_lower_bound, unit), (before, after)) in limits {
            // Only counts are named `n`: their words depend on it.
            let (verb, value) = if unit.is_empty() { ("is", "number") } else { ("has", "n") };
            match (before, after) {
                _ if before == after => {}
                (_, Some(limit)) => {
                    let is_stricter =
                        before.is_none_or(|before| if is_lower_bound { limit > before } else { limit < before });
                    let text = format!("`{name}` {verb} {word} {limit}{unit} now");
                    let changed =
                        if is_stricter { self.fails(code, &text) } else { self.add(Impact::Notice, code, text) };
                    changed.with(value, limit.to_string());
                }
                (Some(limit), None) => {
                    let text = format!("`{name}` no longer needs to have {word} {limit}{unit}");
                    self.add(Impact::Notice, none, text).with(value, limit.to_string());
                }
                (None, None) => {}
            }
        }
    }
}

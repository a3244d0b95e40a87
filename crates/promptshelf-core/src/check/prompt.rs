//! The check of one definition, which returns a prompt or diagnostics.

use std::{collections::HashSet, ops::Range, sync::Arc};

use super::{Scope, arguments, calls, partials, pieces};
use crate::{
    argument::{Argument, Declared},
    catalog::glob_of,
    check::arguments::name_fault,
    definition::{ArgumentType, Body, CompletionSource, PromptDefinition, PromptFunction},
    diagnostic::{Code, Diagnostic, Location, SourceText, nearest},
    name::PromptName,
    prompt::{CheckedBody, Prompt, Uses},
    template::{
        Lint, MAX_INCLUDE_DEPTH, Template, condition_names, is_filter, known_globals,
        lint::{PromptCall, Use},
        or_literally,
    },
    uri_template::{is_uri, label_fault, scheme},
};

/// Returns whether a check would return this prompt of the previous catalog again.
pub(super) fn is_unchanged(before: &Prompt, definition: &PromptDefinition, scope: &Scope<'_>) -> bool {
    let is_settled = match (&before.body, &definition.body) {
        (CheckedBody::Template(template), _) => template.budget() == &*scope.budget,
        (CheckedBody::Pieces(_), Body::Pieces(pieces)) => pieces::are_settled(pieces, &before.uses().attachments),
        _ => false,
    };
    let usual = scope.catalog.policy().invisible;
    is_settled
        && before.arguments.iter().all(|it| it.invisible == it.definition().invisible.unwrap_or(usual))
        && before.definition.is_same(definition)
        && !before.uses().depends_on_others
        && before
            .uses()
            .prompts
            .iter()
            .all(|(name, known)| scope.prompt(name).is_ok_and(|now| Arc::ptr_eq(&now, known)))
        && before
            .uses()
            .partials
            .iter()
            .all(|partial| scope.files.partials.get(&partial.path).is_some_and(|now| Arc::ptr_eq(now, partial)))
        && before
            .uses()
            .attachments
            .iter()
            .all(|(path, file)| scope.files.by_path.get(path).is_some_and(|now| Arc::ptr_eq(now, file)))
}

/// Checks one prompt. A prompt with errors cannot be served.
pub(super) fn check(definition: Arc<PromptDefinition>, scope: &Scope<'_>) -> Result<Prompt, Vec<Diagnostic>> {
    let mut found = Vec::new();
    let name = match PromptName::new(&definition.name) {
        Ok(name) => Some(name),
        Err(error) => {
            found.push(
                Diagnostic::error(Code::InvalidName, definition.origin.locate("name"), error.to_string())
                    .help("use lower-case letters, digits, `-` and `_`"),
            );
            None
        }
    };
    if name.as_ref().is_some_and(|name| !name.is_portable()) {
        let message = if definition.name.starts_with('-') {
            format!("the name `{}` begins with `-`, as options of command lines do", definition.name)
        } else {
            format!("some clients will change the name `{}`", definition.name)
        };
        found.push(
            Diagnostic::warning(Code::UnportableName, definition.origin.locate("name"), message)
                .help("use up to 64 lower-case letters, digits, `-` and single `_`"),
        );
    }
    if definition.description.as_deref().is_none_or(|description| description.trim().is_empty()) {
        let message = format!("the prompt `{}` has no description", definition.name);
        found.push(
            Diagnostic::warning(Code::MissingDescription, definition.origin.locate("description"), message)
                .help("add one sentence that describes the prompt; people choose by it"),
        );
    }
    let declared = |index| Declared::Prompt(Arc::clone(&definition), index);
    // Those of other programs may have any name: they are no variables.
    let has_template = !matches!(definition.body, Body::Function(PromptFunction::Remote(_)) | Body::Pieces(_));
    let arguments = arguments::check(
        &definition.arguments,
        declared,
        "arguments",
        has_template,
        &definition.origin,
        scope,
        &mut found,
    );
    check_meta(&definition, &mut found);
    check_guided(&definition, &arguments, &mut found);
    let mut parts = Parts::default();
    let body = match &definition.body {
        Body::Function(function) => Some(CheckedBody::Function(function.clone())),
        Body::Pieces(pieces) => {
            pieces::check(&definition, pieces, scope, &mut parts.uses.attachments, &mut found).map(CheckedBody::Pieces)
        }
        Body::Template { range } => {
            template(&definition, range, scope, &mut parts, &mut found).map(CheckedBody::Template)
        }
    };
    limit(&mut found);
    let depends_on_others = parts.needs_resources || !arguments::depend_only_on_definition(&arguments);
    match (name, body) {
        (Some(name), Some(body)) if !found.iter().any(Diagnostic::is_error) => {
            let uses = Uses { warnings: found, depends_on_others, ..parts.uses };
            Ok(Prompt::new(name, definition, arguments, body, uses))
        }
        _ => Err(found),
    }
}

/// The most findings of one prompt: a text that many prompts include has its mistakes in each of them.
const MAX_FOUND: usize = 100;

/// Keeps the first findings, errors before others.
fn limit(found: &mut Vec<Diagnostic>) {
    if found.len() > MAX_FOUND {
        found.sort_by_key(|diagnostic| !diagnostic.is_error());
        found.truncate(MAX_FOUND);
        found.shrink_to_fit();
        found.iter_mut().last().into_iter().for_each(|last| last.message += "; and there are more in this prompt");
    }
}

#[derive(Default)]
struct Parts {
    uses: Uses,
    needs_resources: bool,
}

fn place(source: &Arc<SourceText>, base: usize, span: &Range<usize>) -> Location {
    Location::new(source, base + span.start..base + span.end)
}

fn template(
    definition: &PromptDefinition,
    range: &Range<usize>,
    scope: &Scope<'_>,
    parts: &mut Parts,
    found: &mut Vec<Diagnostic>,
) -> Option<Template> {
    let source = &definition.origin.source;
    let text = source.text.get(range.clone()).unwrap_or_default();
    if text.trim().is_empty() {
        let message = format!("the prompt `{}` has no text", definition.name);
        found.push(
            Diagnostic::error(Code::EmptyPrompt, place(source, range.start, &(0..0)), message)
                .help("write the prompt's text below the front matter"),
        );
        return None;
    }
    let (first, lint) = (found.len(), Lint::of(text));
    let own = partials::Including { source: Arc::clone(source), base: range.start };
    let mut used = Named::default();
    let depth = scope.budget.include_depth.min(MAX_INCLUDE_DEPTH);
    used.includes = lint.partials.iter().map(|include| (include.name.clone(), own.at(&include.span))).collect();
    let included = partials::collect(&own, &lint.partials, scope, depth, &mut parts.uses.partials, found);
    used.take(&own, &lint, definition, scope, parts, found);
    for (including, lint) in included {
        used.take(&including, &lint, definition, scope, parts, found);
    }
    for (including, call) in &used.calls {
        calls::check(definition, including, call, scope, &mut parts.uses.prompts, found);
    }
    check_names(definition, &used, found);
    for error in found[first..].iter_mut().filter(|error| error.is_error() && error.related.is_empty()) {
        if !Arc::ptr_eq(&error.location.source, source) {
            let (place, label) = included_at(definition, &used, &error.location);
            error.related.push((place, label.to_owned()));
        }
    }
    if found.iter().any(Diagnostic::is_error) {
        return None;
    }
    Some(Template::new(Arc::clone(source), range.clone(), &parts.uses.partials, &scope.budget))
}

/// The names in the texts of a prompt: its template and the partials.
#[derive(Default)]
struct Named {
    variables: Vec<Name>,
    called: Vec<Name>,
    calls: Vec<(partials::Including, PromptCall)>,
    /// Names that one of the texts defines; the texts that it includes may use them.
    bound: HashSet<String>,
    own_is_taken: bool,
    /// Whether a part of a text could not be parsed, and may use any name.
    is_unread: bool,
    /// The partials that the prompt's own text includes, with the location of each include.
    includes: Vec<(String, Location)>,
}

/// A name that a text uses and does not define.
struct Name {
    name: String,
    location: Location,
    in_partial: bool,
}

impl Named {
    fn take(
        &mut self,
        own: &partials::Including,
        lint: &Lint,
        definition: &PromptDefinition,
        scope: &Scope<'_>,
        parts: &mut Parts,
        found: &mut Vec<Diagnostic>,
    ) {
        let at = |span: &Range<usize>| place(&own.source, own.base, span);
        self.is_unread |= !lint.syntax.is_empty();
        found.extend(lint.syntax.iter().map(|error| error.clone().at(at(&error.span))));
        for fault in lint.faults.iter().take(MAX_FOUND) {
            let mut diagnostic = Diagnostic::error(fault.code, at(&fault.span), fault.message.clone());
            diagnostic.help.clone_from(&fault.help);
            found.push(diagnostic);
        }
        found.extend(lint.operands.iter().filter_map(|(operand, is_number)| {
            let kind = definition.arguments.iter().find(|argument| argument.name == operand.name)?.kind;
            misfit(&operand.name, kind, *is_number)
                .map(|(message, help)| Diagnostic::error(Code::InvalidCall, at(&operand.span), message).help(help))
        }));
        for (target, is_link) in lint.attached.iter().map(|a| (a, false)).chain(lint.linked.iter().map(|l| (l, true))) {
            target_exists(target, is_link, at(&target.span), scope, parts, found);
        }
        for name in &lint.computed {
            parts.uses.computes_names = true;
            parts.uses.globs.extend(glob_of(name, definition));
        }
        self.calls.extend(lint.calls.iter().map(|call| (own.clone(), call.clone())));
        // The prompt's own text is added first.
        let in_partial = std::mem::replace(&mut self.own_is_taken, true);
        let name = |used: &Use| Name { location: at(&used.span), name: used.name.clone(), in_partial };
        self.variables.extend(lint.variables.iter().map(name));
        self.called.extend(lint.called.iter().map(name));
        self.bound.extend(lint.bound.iter().cloned());
    }
}

/// Returns why a calculation with an argument of this type never gives anything.
fn misfit(name: &str, kind: ArgumentType, is_number: bool) -> Option<(String, String)> {
    use ArgumentType::{Boolean, Date, Integer, List, Number, String, Text};
    match (kind, is_number) {
        (String | Text | Date | List, true) => Some((
            format!("`{name}` is no number: its type is {}", kind.as_str()),
            format!("declare `type: integer` or `type: number`, or write `({name} | int)` or `({name} | length)`"),
        )),
        (Integer | Number | Boolean | List, false) => Some((
            format!("`+` does not join a text and `{name}`, whose type is {}", kind.as_str()),
            "write `~` to join".to_owned(),
        )),
        _ => None,
    }
}

/// Returns the location at which a prompt includes the partial of a diagnostic; the prompt's name if another partial
/// includes it.
fn included_at(definition: &PromptDefinition, used: &Named, inside: &Location) -> (Location, &'static str) {
    match used.includes.iter().find(|(name, _)| *name == inside.source.path) {
        Some((_, place)) => (place.clone(), "included here by this prompt"),
        None => (definition.origin.locate("name"), "included by this prompt"),
    }
}

fn target_exists(
    target: &Use,
    is_link: bool,
    location: Location,
    scope: &Scope<'_>,
    parts: &mut Parts,
    found: &mut Vec<Diagnostic>,
) {
    if let Some(file) = scope.files.by_path.get(&target.name) {
        if !is_link {
            scope.note_mismatch(&target.name, location.clone(), found);
        }
        let is_hidden = !file.is_served();
        parts.needs_resources |= is_link && is_hidden;
        if is_link && is_hidden && !scope.files.declared.contains_key(&target.name) {
            let message =
                format!("`{}` cannot be linked: files whose path has a leading `_` are not served", target.name);
            found.push(
                Diagnostic::error(Code::UnknownResource, location, message)
                    .help("declare it under [[resources]] in promptshelf.toml, or attach it"),
            );
        }
        parts.uses.attachments.insert(target.name.clone(), Arc::clone(file));
    } else if let Some(reason) = scope.unread.get(&target.name) {
        let message = format!("`{}` cannot be attached: {}", target.name, reason.message);
        let diagnostic = Diagnostic::error(reason.code, location, message);
        found.push(Diagnostic { help: reason.help.clone(), ..diagnostic });
    } else if is_uri(&target.name) {
        if scope.catalog.find_resource(&target.name).is_none()
            && let Some(file) = scope.files.find(&target.name)
        {
            parts.uses.attachments.insert(file.path.clone(), Arc::clone(file));
        }
        parts.needs_resources |= !is_link;
        if !is_link && scope.catalog.find_resource(&target.name).is_some() {
            parts.uses.resources.insert(target.name.clone());
        }
        if let Some(fault) = label_fault(&target.name).filter(|_| is_link) {
            found.push(Diagnostic::error(Code::InvalidCall, location, fault));
            return;
        }
        let is_own = scope.catalog.find_resource(&target.name).is_some() || scope.files.find(&target.name).is_some();
        if !is_link && !is_own {
            let message = format!("this server does not serve the resource `{}`", target.name);
            let known = scope.catalog.resources().iter().map(|resource| resource.uri());
            let help = nearest(&target.name, known).map_or_else(
                || "declare it under [[resources]] in promptshelf.toml, or link to it".to_owned(),
                |near| format!("did you mean `{near}`?"),
            );
            found.push(Diagnostic::error(Code::UnknownResource, location, message).help(help));
        }
    } else if let Some((message, help)) = scope.prompt_file(&target.name) {
        found.push(Diagnostic::error(Code::MissingFile, location, message).help(help));
    } else {
        let message = format!("file `{}` not found in the library", target.name);
        let known = scope.files.by_path.keys().map(String::as_str);
        let help = nearest(&target.name, known).map_or_else(
            || "paths begin at the library's folder, with `/` between their parts".to_owned(),
            |near| format!("did you mean `{near}`?"),
        );
        found.push(Diagnostic::error(Code::MissingFile, location, message).help(help));
    }
}

fn check_names(definition: &PromptDefinition, used: &Named, found: &mut Vec<Diagnostic>) {
    let declared = || definition.arguments.iter().map(|argument| argument.name.as_str());
    let all: HashSet<&str> = declared().collect();
    let is_known = |used_name: &Name| {
        all.contains(used_name.name.as_str()) || (used_name.in_partial && used.bound.contains(&used_name.name))
    };
    for variable in used.variables.iter().filter(|variable| !is_known(variable)).take(MAX_FOUND) {
        let name = &variable.name;
        let help = match nearest(name, declared()) {
            Some(near) => format!("did you mean `{near}`?"),
            None if name_fault(name).is_some() => {
                or_literally(Some("write statements between `{%` and `%}`".to_owned()))
            }
            None => or_literally(Some(format!("add `- name: {name}` under `arguments:`"))),
        };
        let message = match name_fault(name) {
            Some(_) => format!("`{name}` is a word of the template language and cannot be inserted"),
            None => format!("`{name}` is used but not declared as an argument"),
        };
        found.push(Diagnostic::error(Code::UndeclaredArgument, variable.location.clone(), message).help(help));
    }
    for called in used.called.iter().take(MAX_FOUND) {
        found.extend(unknown_function(called, all.contains(called.name.as_str()), used));
    }
    let conditions = definition.arguments.iter().filter_map(|argument| argument.when.as_deref());
    let mut in_use: HashSet<String> = conditions.flat_map(condition_names).collect();
    in_use.extend(definition.arguments.iter().filter_map(|argument| match &argument.completion {
        Some(CompletionSource::By { argument: by, .. }) => Some(by.clone()),
        _ => None,
    }));
    in_use.extend(used.variables.iter().chain(&used.called).map(|used| used.name.clone()));
    for (index, argument) in definition.arguments.iter().enumerate() {
        // A name that cannot be used is reported as such.
        if !in_use.contains(&argument.name) && !used.is_unread && name_fault(&argument.name).is_none() {
            let message = format!("the argument `{}` is declared but never used", argument.name);
            let location = definition.origin.locate(&format!("arguments.{index}.name"));
            found.push(
                Diagnostic::warning(Code::UnusedArgument, location, message).help("use it in the text, or remove it"),
            );
        }
    }
}

fn unknown_function(called: &Name, is_argument: bool, used: &Named) -> Option<Diagnostic> {
    let name = &called.name;
    if called.in_partial && used.bound.contains(name) {
        return None;
    }
    let message = if is_argument {
        format!("the argument `{name}` cannot be called")
    } else {
        format!("unknown function `{name}`")
    };
    let mut diagnostic = Diagnostic::error(Code::UnknownFunction, called.location.clone(), message);
    diagnostic.help = match nearest(name, known_globals()) {
        _ if is_argument => None,
        _ if is_filter(name) => Some(format!("`{name}` is a filter: write `… | {name}` after a value")),
        Some(near) => Some(format!("did you mean `{near}`?")),
        None => Some(or_literally(None)),
    };
    Some(diagnostic)
}

// Keys of `_meta`: `[prefix/]name`, with prefixes that the protocol reserves (all revisions from 2025-06-18,
// *General fields*).

fn check_meta(definition: &PromptDefinition, found: &mut Vec<Diagnostic>) {
    for key in definition.meta.keys() {
        let place = definition.origin.locate("_meta");
        let fault = match key.rsplit_once('/') {
            Some((prefix, _)) if is_reserved(prefix) => "is reserved for the protocol",
            Some((prefix, _)) if is_own(prefix) => "is reserved for the provenance of prompts",
            Some((prefix, name)) if prefix.split('.').all(is_label) && is_name(name) => continue,
            None if is_name(key) => continue,
            _ => "is not a valid key of `_meta`",
        };
        found.push(
            Diagnostic::error(Code::InvalidName, place, format!("`{key}` {fault}"))
                .help("write it as `com.example/name`, with a domain of your own"),
        );
    }
}

/// Returns whether the protocol reserves a prefix: by its first or second label, or by its last but one, depending on
/// the revision.
fn is_reserved(prefix: &str) -> bool {
    let labels: Vec<&str> = prefix.split('.').collect();
    let last_but_one = labels.len().saturating_sub(2);
    [0, 1, last_but_one].iter().any(|at| matches!(labels.get(*at), Some(&("modelcontextprotocol" | "mcp"))))
}

/// Whether a prefix is that of provenance and of sensitive arguments, which authors must not be able to write.
fn is_own(prefix: &str) -> bool {
    ["dev.promptshelf", "promptshelf"].iter().any(|own| prefix.eq_ignore_ascii_case(own))
}

fn is_label(label: &str) -> bool {
    let bytes = label.as_bytes();
    bytes.first().is_some_and(u8::is_ascii_alphabetic)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
}

fn is_name(name: &str) -> bool {
    let bytes = name.as_bytes();
    let ends = |byte: Option<&u8>| byte.is_none_or(u8::is_ascii_alphanumeric);
    ends(bytes.first())
        && ends(bytes.last())
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
}

fn check_guided(definition: &PromptDefinition, arguments: &[Argument], found: &mut Vec<Diagnostic>) {
    for (index, argument) in arguments.iter().enumerate() {
        conditions(definition, &arguments[..index], index, argument, found);
        if argument.is_asked() && sounds_secret(argument.name()) {
            let message = format!("`{}` looks like a secret, and forms must not ask for secrets", argument.name());
            found.push(
                Diagnostic::warning(
                    Code::AsksForSecret,
                    definition.origin.locate(&format!("arguments.{index}.name")),
                    message,
                )
                .help("ask for it on a page: add a step with a `url`"),
            );
        }
    }
    let asking_steps: HashSet<u32> =
        arguments.iter().filter(|argument| argument.is_asked()).map(Argument::step).collect();
    let mut seen = HashSet::new();
    let mut keys = HashSet::new();
    for (index, step) in definition.steps.iter().enumerate() {
        let place = |part: &str| definition.origin.locate(&format!("steps.{index}.{part}"));
        if !seen.insert(step.number) {
            let message = format!("step {} is described twice", step.number);
            found.push(Diagnostic::error(Code::DuplicateName, place("step"), message));
        }
        if let Some(key) = step.key.as_deref().filter(|key| !keys.insert(*key)) {
            found.push(Diagnostic::error(Code::DuplicateName, place("key"), format!("two steps have the key `{key}`")));
        }
        match &step.url {
            Some(url) if scheme(url).as_deref() != Some("https") => {
                let message = format!("clients cannot open `{url}`");
                found.push(Diagnostic::error(Code::InvalidValue, place("url"), message).help("use an https: URL"));
            }
            Some(_) if asking_steps.contains(&step.number) => {
                let message = format!("step {} opens a page, and cannot show a form as well", step.number);
                found.push(
                    Diagnostic::error(Code::InvalidCondition, place("url"), message)
                        .help("give the form a step of its own"),
                );
            }
            None if !asking_steps.contains(&step.number) => {
                let message = format!("no argument is asked for in step {}", step.number);
                found.push(
                    Diagnostic::warning(Code::NoEffect, place("step"), message)
                        .help("give an argument `ask: true` and this `step`, or the step a `url`"),
                );
            }
            _ => {}
        }
    }
}

/// Returns whether an argument's name suggests a secret. MCP (*Elicitation*) requires that such values are entered on
/// a page, not in a client's form.
fn sounds_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace(['-', '_'], "");
    ["password", "passwd", "passphrase", "secret", "apikey", "accesstoken", "authtoken", "credential", "privatekey"]
        .iter()
        .any(|word| name.contains(word))
}

/// Checks when one argument is requested: its step and its condition.
fn conditions(
    definition: &PromptDefinition,
    before: &[Argument],
    index: usize,
    argument: &Argument,
    found: &mut Vec<Diagnostic>,
) {
    let place = |part: &str| definition.origin.locate(&format!("arguments.{index}.{part}"));
    for (part, is_there) in
        [("step", argument.definition().step.is_some()), ("when", argument.definition().when.is_some())]
    {
        if is_there && !argument.is_asked() {
            let message = format!("`{part}` has no effect: the argument `{}` is not asked for", argument.name());
            found.push(Diagnostic::warning(Code::NoEffect, place(part), message).help("add `ask: true`"));
        }
    }
    let Some(condition) = &argument.condition else { return };
    for name in condition.names().to_vec() {
        let message = match before.iter().find(|other| other.name() == name) {
            Some(other) if other.is_asked() && other.step() > argument.step() => {
                format!("`{name}` is asked for in a later step than `{}`, whose condition uses it", argument.name())
            }
            Some(_) => continue,
            None if definition.arguments.iter().any(|other| other.name == name) => {
                format!("the condition uses `{name}`, which is not declared before `{}`", argument.name())
            }
            None => format!("the condition uses the unknown argument `{name}`"),
        };
        let mut diagnostic = Diagnostic::error(Code::InvalidCondition, place("when"), message);
        diagnostic.help = nearest(&name, before.iter().map(Argument::name))
            .map(|near| format!("did you mean `{near}`?"))
            .filter(|_| !definition.arguments.iter().any(|other| other.name == name));
        found.push(diagnostic);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // req: B10
    #[test]
    fn meta_keys_are_valid_and_not_reserved() {
        let faults = |key: &str| {
            let mut definition = PromptDefinition::template("it", "text");
            definition.meta.insert(key.to_owned(), serde_json::Value::Null);
            let mut found = Vec::new();
            check_meta(&definition, &mut found);
            found.len()
        };
        for good in ["owner", "com.example/owner", "a/b_c.d-e", "com.example.mcp/x", "example/", "team-1.de/x1"] {
            assert_eq!(faults(good), 0, "{good}");
        }
        let reserved = [
            "modelcontextprotocol.io/x",
            "io.modelcontextprotocol/x",
            "mcp.dev/x",
            "com.example.mcp.tools/x",
            "com.mcp.tools/x",
            "api.modelcontextprotocol.org/x",
            "mcp/x",
            "dev.promptshelf/approvedBy",
            "Dev.PromptShelf/version",
            "promptshelf/sensitive",
        ];
        for bad in reserved.into_iter().chain([
            "/x",
            "a..b/x",
            "1a/x",
            "a-/x",
            "a/b/c",
            "-x",
            "x-",
            "a b",
            "ü",
            "com.example/x y",
        ]) {
            assert_eq!(faults(bad), 1, "{bad}");
        }
    }
}

//! The check of one definition, which returns a prompt or diagnostics.

use std::{collections::HashSet, ops::Range, sync::Arc};

use super::{arguments, calls, partials, pieces, scope::Scope};
use crate::{
    argument::Declared,
    catalog::glob_of,
    definition::{ArgumentType, Body, PromptDefinition, PromptFunction},
    diagnostic::{Code, Diagnostic, Location, SourceText, nearest},
    name::PromptName,
    prompt::{CheckedBody, Prompt, Uses},
    template::{
        Lint, MAX_INCLUDE_DEPTH, Template,
        lint::{PromptCall, Use},
    },
    uri_template::{is_uri, label_fault},
};

mod guided;
mod meta;
mod names;

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
        let message = format!("some clients will change the name `{}`", definition.name);
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
    let is_remote = matches!(definition.body, Body::Function(PromptFunction::Remote(_)));
    let arguments = arguments::check(
        &definition.arguments,
        declared,
        "arguments",
        !is_remote,
        &definition.origin,
        scope,
        &mut found,
    );
    meta::check(&definition, &mut found);
    guided::check(&definition, &arguments, &mut found);
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
    names::check(definition, &used, found);
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

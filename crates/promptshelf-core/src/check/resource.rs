//! The check of resource declarations, which returns resources.

use std::{cell::RefCell, collections::BTreeMap, sync::Arc};

use super::{Scope, Uris, arguments};
use crate::{
    argument::{Argument, Declared},
    catalog::Catalog,
    content::{MimeType, ResourceBody},
    definition::{ArgumentDefinition, ResourceContent, ResourceDefinition},
    diagnostic::{Code, Diagnostic, SourceText, nearest},
    invisible::InvisiblePolicy,
    library_files::LibraryFiles,
    resource::{Address, CheckedContent, Resource, Resources},
    template::{Lint, Template},
    uri_template::{UriTemplate, is_uri},
};

pub(super) fn check_all(
    definitions: Vec<ResourceDefinition>,
    files: &mut LibraryFiles,
    catalog: &mut Catalog,
    found: &mut Vec<Diagnostic>,
) {
    let fixed = definitions.iter().filter(|definition| !definition.uri.contains('{'));
    let uris = Uris::Declared(fixed.map(|definition| definition.uri.clone()).collect());
    let mut by_uri: BTreeMap<String, Option<Arc<Resource>>> = BTreeMap::new();
    let budget = Arc::new(catalog.policy.budget);
    for definition in definitions {
        let location = definition.origin.locate("uri");
        let uri = definition.uri.clone();
        if let Some(first) = by_uri.get_mut(&uri) {
            let message = format!("the resource `{uri}` is declared more than once, and is not served");
            let mut diagnostic = Diagnostic::error(Code::DuplicateName, location, message);
            if let Some(first) = first.take() {
                diagnostic = diagnostic.also(first.definition.origin.locate("uri"), "also declared here");
            }
            found.push(diagnostic);
            continue;
        }
        let unread = BTreeMap::new();
        let budget = Arc::clone(&budget);
        let (unread, mismatched) = (&unread, &unread);
        let lints = RefCell::default();
        let scope = Scope { budget, files, uris: &uris, catalog, prompts: None, unread, mismatched, lints };
        match check(definition, &scope) {
            Ok((resource, warnings)) => {
                found.extend(warnings);
                by_uri.insert(uri, Some(Arc::new(resource)));
            }
            Err(diagnostics) => found.extend(diagnostics),
        }
    }
    let (templates, fixed): (Vec<_>, Vec<_>) =
        by_uri.into_values().flatten().partition(|resource: &Arc<Resource>| resource.is_template());
    catalog.resources = Resources { fixed: fixed.into(), templates: templates.into() };
    for resource in &*catalog.resources.fixed {
        if let CheckedContent::File(file) = &resource.content {
            files.declared.entry(file.path.clone()).or_insert_with(|| Arc::from(resource.uri()));
        }
    }
}

fn check(definition: ResourceDefinition, scope: &Scope<'_>) -> Result<(Resource, Vec<Diagnostic>), Vec<Diagnostic>> {
    let mut found = Vec::new();
    let address = address(&definition, &mut found);
    let names: Vec<String> = match &address {
        Some(Address::Template(template)) => template.names().map(str::to_owned).collect(),
        _ => Vec::new(),
    };
    let variables = variables(&definition, &names, scope, &mut found);
    let mut mime_type = definition.mime_type.clone();
    let content = match &definition.content {
        ResourceContent::Fixed(body) => Some(CheckedContent::Fixed(body.clone())),
        ResourceContent::Reader(reader) => Some(CheckedContent::Reader(Arc::clone(reader))),
        ResourceContent::Template(text) => template(text, &definition, &names, scope, &mut found),
        ResourceContent::LibraryFile(path) => match scope.files.by_path.get(path) {
            Some(file) => {
                mime_type.get_or_insert_with(|| file.mime_type.clone());
                Some(CheckedContent::File(Arc::clone(file)))
            }
            None => {
                let message = format!("file `{path}` not found in the library");
                let mut diagnostic = Diagnostic::error(Code::MissingFile, definition.origin.locate("file"), message);
                diagnostic.help = nearest(path, scope.files.by_path.keys().map(String::as_str))
                    .map(|near| format!("did you mean `{near}`?"));
                found.push(diagnostic);
                None
            }
        },
    };
    let default = match &content {
        Some(CheckedContent::Template(_) | CheckedContent::Fixed(ResourceBody::Text(_))) => MimeType::plain_text(),
        _ => MimeType::octet_stream(),
    };
    match (address, content) {
        (Some(address), Some(content)) if !found.iter().any(Diagnostic::is_error) => {
            Ok((Resource { definition, address, variables, mime_type: mime_type.unwrap_or(default), content }, found))
        }
        _ => Err(found),
    }
}

fn address(definition: &ResourceDefinition, found: &mut Vec<Diagnostic>) -> Option<Address> {
    let place = || definition.origin.locate("uri");
    if definition.uri.contains('{') {
        return match UriTemplate::parse(&definition.uri) {
            Ok(template) => Some(Address::Template(template)),
            Err(reason) => {
                found.push(Diagnostic::error(Code::InvalidValue, place(), format!("`{}`: {reason}", definition.uri)));
                None
            }
        };
    }
    if !is_uri(&definition.uri) {
        let message = format!("invalid URI `{}`", definition.uri);
        found.push(
            Diagnostic::error(Code::InvalidValue, place(), message)
                .help("begin it with a scheme, as in `docs://style-guide`"),
        );
        return None;
    }
    Some(Address::Uri(Arc::from(&*definition.uri)))
}

fn variables(
    definition: &ResourceDefinition,
    names: &[String],
    scope: &Scope<'_>,
    found: &mut Vec<Diagnostic>,
) -> Vec<Argument> {
    let origin = &definition.origin;
    for (index, variable) in definition.variables.iter().enumerate() {
        if !names.contains(&variable.name) {
            let message = format!("the URI template `{}` has no variable `{}`", definition.uri, variable.name);
            let mut diagnostic =
                Diagnostic::error(Code::UndeclaredArgument, origin.locate(&format!("variables.{index}.name")), message);
            diagnostic.help =
                nearest(&variable.name, names.iter().map(String::as_str)).map(|near| format!("did you mean `{near}`?"));
            found.push(diagnostic);
        }
    }
    let alone = |index: u32| Declared::Alone(Arc::new(definition.variables[index as usize].clone()));
    let declared = arguments::check(&definition.variables, alone, "variables", true, origin, scope, found);
    let of_name = |name: &String| {
        let known = declared.iter().find(|variable| variable.name() == name).cloned();
        let usual = scope.catalog.policy().invisible;
        let undeclared = || Declared::Alone(Arc::new(ArgumentDefinition::new(name.clone())));
        let mut variable = known.unwrap_or_else(|| Argument::new(undeclared(), usual).0);
        if variable.invisible == InvisiblePolicy::Strip {
            // Otherwise two URIs would identify one resource, and access rules would apply to one of them only.
            variable.invisible = InvisiblePolicy::Reject;
        }
        variable
    };
    names.iter().map(of_name).collect()
}

fn template(
    text: &str,
    definition: &ResourceDefinition,
    names: &[String],
    scope: &Scope<'_>,
    found: &mut Vec<Diagnostic>,
) -> Option<CheckedContent> {
    let place = || definition.origin.locate("text");
    let lint = Lint::of(text);
    if !lint.syntax.is_empty() {
        found.extend(lint.syntax.into_iter().map(|error| error.at(place())));
        return None;
    }
    for fault in lint.faults {
        let mut diagnostic = Diagnostic::error(fault.code, place(), fault.message);
        diagnostic.help = fault.help;
        found.push(diagnostic);
    }
    for function in &lint.structure {
        let message = format!("`{}` cannot be used here: the text of a resource has no messages", function.name);
        found.push(Diagnostic::error(Code::InvalidCall, place(), message));
    }
    for function in &lint.called {
        let message = format!("unknown function `{}`", function.name);
        found.push(Diagnostic::error(Code::UnknownFunction, place(), message));
    }
    for used in lint.variables.iter().filter(|used| !names.contains(&used.name)) {
        let message = format!("`{}` is used but is not a variable of `{}`", used.name, definition.uri);
        found.push(Diagnostic::error(Code::UndeclaredArgument, place(), message));
    }
    if let Some(partial) = lint.partials.first() {
        let message = format!("a resource's text cannot include `{}`", partial.name);
        found.push(Diagnostic::error(Code::InvalidCall, place(), message).help("serve a file instead"));
    }
    let source = SourceText::new(definition.uri.as_str(), text);
    Some(CheckedContent::Template(Box::new(Template::new(source, 0..text.len(), &[], &scope.budget))))
}

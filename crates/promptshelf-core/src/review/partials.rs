//! Partials that no prompt includes.

use std::collections::HashSet;

use crate::{
    catalog::Catalog,
    content::ResourceBody,
    diagnostic::{Code, Diagnostic, Location, SourceText},
};

pub(super) fn check(catalog: &Catalog, found: &mut Vec<Diagnostic>) {
    let used: HashSet<&str> = catalog
        .prompts()
        .iter()
        .flat_map(|prompt| {
            let partials = prompt.uses.partials.iter().map(|partial| &*partial.path);
            partials.chain(prompt.uses.attachments.keys().map(String::as_str))
        })
        .chain(catalog.files.declared.keys().map(String::as_str))
        .collect();
    for (path, file) in &catalog.files.by_path {
        let ResourceBody::Text(text) = &file.body else { continue };
        // Below a `_` there may be anything. Only what speaks the template's
        // language was surely written to be included.
        if !file.is_served() && text.contains("{{") && !used.contains(&**path) && is_template(path) {
            let source = SourceText::new(path, "");
            let message = "no prompt includes this partial";
            let help = format!("write {{% include \"{path}\" %}} where it belongs, or delete the file");
            found.push(Diagnostic::warning(Code::UnusedPartial, Location::file(&source), message).help(help));
        }
    }
}

fn is_template(path: &str) -> bool {
    [".md", ".txt", ".j2", ".jinja"].iter().any(|ending| path.ends_with(ending))
}

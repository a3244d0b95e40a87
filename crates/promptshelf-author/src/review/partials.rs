//! Partials that no prompt includes.

use promptshelf_core::{Catalog, Code, Diagnostic, Location, ResourceBody, SourceText};
use std::collections::HashSet;

pub(super) fn check(catalog: &Catalog, found: &mut Vec<Diagnostic>) {
    let used: HashSet<&str> = catalog
        .prompts()
        .iter()
        .flat_map(|prompt| {
            let partials = prompt.includes().map(|partial| &*partial.path);
            partials.chain(prompt.attachments().map(|(path, _)| path))
        })
        .chain(catalog.declared_file_paths())
        .collect();
    for (path, file) in catalog.file_paths().filter_map(|path| Some((path, catalog.file(path)?))) {
        let ResourceBody::Text(text) = &file.body else { continue };
        // Files below `_` can serve any purpose. Only those with template syntax are certainly meant to be included.
        if !file.is_served() && text.contains("{{") && !used.contains(path) && is_template(path) {
            let source = SourceText::new(path, "");
            let message = "no prompt includes this partial";
            let help = format!("include it with {{% include \"{path}\" %}}, or delete the file");
            found.push(Diagnostic::warning(Code::UnusedPartial, Location::file(&source), message).help(help));
        }
    }
}

fn is_template(path: &str) -> bool {
    [".md", ".txt", ".j2", ".jinja"].iter().any(|ending| path.ends_with(ending))
}

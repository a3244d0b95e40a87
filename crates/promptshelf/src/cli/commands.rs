//! The command line: `syntax` says what can be typed, and a file a verb what it does.

pub(crate) mod audit;
pub(crate) mod check;
pub(crate) mod clients;
pub(crate) mod complete;
pub(crate) mod diagnostics;
pub(crate) mod explain;
pub(crate) mod export;
pub(crate) mod fmt;
pub(crate) mod get;
mod github;
pub(crate) mod import;
pub(crate) mod list;
pub(crate) mod lsp;
pub(crate) mod markdown;
mod model_api;
pub(crate) mod new;
pub(crate) mod remote;
pub(crate) mod render;
mod sarif;
pub(crate) mod saved;
pub(crate) mod schema;
pub(crate) mod serve;
pub(crate) mod show;
pub(crate) mod state;
pub(crate) mod test;
pub(crate) mod token;
pub(crate) mod values;
pub(crate) mod visible;
mod wire;

use std::{io::Write, path::Path};

use promptshelf_server::Library;

pub(crate) use crate::args::{
    AuditArguments, CheckArguments, CheckFormat, CompleteArguments, Deny, GetArguments, GetFormat, HttpArguments,
    LibraryOption, ListArguments, ServeArguments, TokenArguments, ValueArguments,
    author::{
        ClientsArguments, ExplainArguments, FmtArguments, NewArguments, RenderArguments, SchemaArguments, SchemaFile,
        Template, TestArguments,
    },
    client::{ChatArguments, ResourcesArguments, SignInArguments, SignOutArguments},
};
pub(crate) use crate::output;
use crate::output::Output;

/// `1 prompt`, `2 prompts`.
pub(crate) fn count(number: usize, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

/// What a check has found, in words.
fn found(errors: usize, warnings: usize) -> String {
    match (errors, warnings) {
        (0, 0) => "nothing is wrong".to_owned(),
        (errors, 0) => count(errors, "error"),
        (0, warnings) => count(warnings, "warning"),
        (errors, warnings) => format!("{} and {}", count(errors, "error"), count(warnings, "warning")),
    }
}

/// Says on stderr that a verb saw less than the library holds.
fn mention_errors(library: &Library, folder: &Path) {
    let errors = library.diagnostics().iter().filter(|diagnostic| diagnostic.is_error()).count();
    if errors > 0 {
        let mut paper = Output::stderr();
        let folder = paper.line(&folder.display().to_string()).into_owned();
        let found = count(errors, "error");
        writeln!(paper.out, "note: {found} in the library; `promptshelf check {folder}` shows what is left out").ok();
    }
}

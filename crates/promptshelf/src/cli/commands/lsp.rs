//! `promptshelf lsp`: a language server for editors.

use std::path::PathBuf;

use clap::Args;
use promptshelf_author::LanguageServer;

use crate::{
    exit::{Exit, Failure},
    library::granted_roots,
};

const LSP_EXAMPLES: &str = "\
Editors start this command for Markdown, YAML and TOML files. It reports the
findings of `check` while you type, completes arguments, functions, filters,
paths and keys, documents the word at the cursor, and goes to definitions.";

#[derive(Debug, Args)]
#[command(after_help = LSP_EXAMPLES)]
pub(crate) struct LspArguments {
    /// The folder of prompt files [default: the editor's folder, or the one with promptshelf.toml around a file]
    #[arg(value_name = "LIBRARY")]
    pub(crate) library: Option<PathBuf>,
}

pub(crate) fn run(arguments: &LspArguments) -> Result<(), Failure> {
    let mut server = LanguageServer::new().granted_roots(granted_roots(None));
    if let Some(library) = &arguments.library {
        server = server.library(library);
    }
    server.serve_stdio().map_err(|error| Failure::new(Exit::Failed, error.to_string()))
}

//! `promptshelf lsp`: the language server, on stdin and stdout.

use std::path::PathBuf;

use clap::Args;
use promptshelf_author::LanguageServer;

use crate::{
    exit::{Exit, Failure},
    library::granted_roots,
};

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct LspArguments {
    /// The folder of prompt files [default: the editor's folder, or the one with promptshelf.toml around a file]
    #[arg(value_name = "LIBRARY")]
    library: Option<PathBuf>,
}

const EXAMPLES: &str = "\
An editor starts this on stdin and stdout, for Markdown, YAML and TOML files. It shows the findings of `check` while you type,
completes arguments, functions, filters, paths and keys, explains the word at the cursor, and goes to its definition.";

pub(crate) fn run(arguments: &LspArguments) -> Result<(), Failure> {
    let mut server = LanguageServer::new().granted_roots(granted_roots(None));
    if let Some(library) = &arguments.library {
        server = server.library(library);
    }
    server.serve_stdio().map_err(|error| Failure::new(Exit::Failed, error.to_string()))
}

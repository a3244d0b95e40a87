//! `promptshelf lsp`: the language server, on stdin and stdout.

use promptshelf_author::LanguageServer;

use crate::{
    args::exchange::LspArguments,
    exit::{Exit, Failure},
    library::granted_roots,
};

pub(crate) fn run(arguments: &LspArguments) -> Result<(), Failure> {
    let mut server = LanguageServer::new().granted_roots(granted_roots(None));
    if let Some(library) = &arguments.library {
        server = server.library(library);
    }
    server.serve_stdio().map_err(|error| Failure::new(Exit::Failed, error.to_string()))
}

//! A language server: diagnostics, completion, hover and definitions in editors (Language Server
//! Protocol 3.17).
//!
//! Open files replace the files on disk, saved or not, and go through the same check as a load. One
//! thread is enough: a library is checked in milliseconds.
//!
//! Framing and the protocol's types are the work of `lsp-server` and `gen-lsp-types`, which rust-analyzer
//! uses, too.

mod analyzer;
mod completion;
mod cursor;
mod error;
mod hover;
mod keys;
mod locate;
mod position;
mod references;
mod schema_query;
mod session;
mod vocabulary;
mod workspace;

use std::path::PathBuf;

use gen_lsp_types::{
    CompletionOptions, DefinitionProvider, HoverProvider, InitializeParams, InitializeResult, ServerCapabilities,
    ServerInfo, TextDocumentSync, TextDocumentSyncKind, WorkspaceFolders,
};
use lsp_server::Connection;
use serde_json::Value;

pub use self::{
    analyzer::{Analysis, Analyzer},
    error::LanguageServerError,
    references::{rename_file_references, rename_prompt_references},
};
use self::{session::Session, workspace::WorkspaceOptions};
use crate::schema;

/// A language server for one editor.
///
/// ```no_run
/// use promptshelf_author::LanguageServer;
///
/// # fn main() -> Result<(), promptshelf_author::LanguageServerError> {
/// LanguageServer::new().library("prompts").serve_stdio()
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct LanguageServer {
    library: Option<PathBuf>,
    schemas: WorkspaceOptions,
}

impl Default for LanguageServer {
    fn default() -> LanguageServer {
        LanguageServer::new()
    }
}

impl LanguageServer {
    /// Creates a server that finds libraries in the editor's folders.
    #[must_use]
    pub fn new() -> LanguageServer {
        LanguageServer {
            library: None,
            schemas: WorkspaceOptions {
                prompt: schema::prompt(),
                library: schema::library(),
                granted_roots: Vec::new(),
            },
        }
    }

    /// Serves this library instead of those in the editor's folders.
    #[must_use]
    pub fn library(mut self, folder: impl Into<PathBuf>) -> LanguageServer {
        self.library = Some(folder.into());
        self
    }

    /// Replaces the JSON Schema by which keys of `promptshelf.toml` are completed.
    #[must_use]
    pub fn library_schema(mut self, schema: Value) -> LanguageServer {
        self.schemas.library = schema;
        self
    }

    /// Grants folders outside of a library, so that its `[roots]` may point to them or below them.
    #[must_use]
    pub fn granted_roots(mut self, folders: impl IntoIterator<Item = PathBuf>) -> LanguageServer {
        self.schemas.granted_roots = folders.into_iter().collect();
        self
    }

    /// Serves an editor on stdin and stdout until it shuts the server down.
    ///
    /// # Errors
    ///
    /// [`LanguageServerError`] if the connection ends early, or the editor violates the protocol.
    pub fn serve_stdio(self) -> Result<(), LanguageServerError> {
        let (connection, threads) = Connection::stdio();
        let outcome = self.serve(&connection);
        drop(connection);
        outcome?;
        Ok(threads.join()?)
    }

    fn serve(self, connection: &Connection) -> Result<(), LanguageServerError> {
        let (id, params) = connection.initialize_start().map_err(LanguageServerError::protocol)?;
        let params: InitializeParams = serde_json::from_value(params).map_err(LanguageServerError::protocol)?;
        let result = InitializeResult {
            capabilities: capabilities(),
            server_info: Some(ServerInfo {
                name: "promptshelf".to_owned(),
                version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            }),
        };
        let result = serde_json::to_value(result).map_err(LanguageServerError::protocol)?;
        connection.initialize_finish(id, result).map_err(LanguageServerError::protocol)?;
        let folders = self.library.map_or_else(|| folders(&params), |library| vec![absolute(library)]);
        let mut session = Session::new(connection, folders, self.schemas);
        session.start();
        session.run()
    }
}

fn capabilities() -> ServerCapabilities {
    let triggers = ["{", "|", "\"", "'", "/", "(", ",", " "];
    ServerCapabilities {
        text_document_sync: Some(TextDocumentSync::Kind(TextDocumentSyncKind::Incremental)),
        completion_provider: Some(CompletionOptions {
            trigger_characters: Some(triggers.map(str::to_owned).to_vec()),
            ..CompletionOptions::default()
        }),
        hover_provider: Some(HoverProvider::Bool(true)),
        definition_provider: Some(DefinitionProvider::Bool(true)),
        ..ServerCapabilities::default()
    }
}

/// Returns the folders that the editor has open; the current folder if it names none.
fn folders(params: &InitializeParams) -> Vec<PathBuf> {
    let open = match &params.workspace_folders_initialize_params.workspace_folders {
        Some(WorkspaceFolders::WorkspaceFolderList(folders)) => {
            folders.iter().filter_map(|folder| position::path_of(folder.uri.as_ref())).collect()
        }
        _ => Vec::new(),
    };
    if !open.is_empty() {
        return open;
    }
    #[expect(deprecated, reason = "older editors send `rootUri` only")]
    let root = params.root_uri.as_ref().and_then(|uri| position::path_of(uri.as_ref()));
    vec![root.unwrap_or_else(|| absolute(PathBuf::from(".")))]
}

fn absolute(path: PathBuf) -> PathBuf {
    std::path::absolute(&path).unwrap_or(path)
}

//! `promptshelf lsp`: help for editors, over the Language Server Protocol.
//!
//! What an editor has open counts, saved or not: it is read in the place of the
//! files and goes through the same check as everything else. The protocol's
//! frames and its beginning and end are `lsp-server`'s, which rust-analyzer is
//! built on, and its types are `gen-lsp-types`', made from the protocol's own
//! description and used by rust-analyzer too. One thread is enough: a library
//! is checked in milliseconds.

mod complete;
mod cursor;
mod explain;
mod keys;
mod place;
mod schema;
mod shelf;
mod words;

use std::{collections::BTreeMap, path::PathBuf};

use clap::Args;
use gen_lsp_types::{
    CompletionOptions, CompletionParams, CompletionResponse, DefinitionParams, DefinitionProvider,
    DidChangeTextDocumentParams, DidCloseTextDocumentParams, DidOpenTextDocumentParams, HoverParams, HoverProvider,
    InitializeParams, InitializeResult, PublishDiagnosticsParams, ServerCapabilities, ServerInfo,
    TextDocumentContentChangeEvent as Change, TextDocumentPositionParams, TextDocumentSync, TextDocumentSyncKind, Uri,
    WorkspaceFolders,
};
use lsp_server::{Connection, ErrorCode, Message, Notification, Request, Response};
use serde::{Serialize, de::DeserializeOwned};

use self::{cursor::Cursor, shelf::Shelf};
use crate::exit::{Exit, Failure};

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct LspArguments {
    /// The folder of prompt files [default: the editor's folder, or the one with promptshelf.toml around a file]
    #[arg(value_name = "LIBRARY")]
    library: Option<PathBuf>,
}

const EXAMPLES: &str = "\
An editor starts this on stdin and stdout, for Markdown, YAML and TOML files. It shows what `check` would say while you type,
completes arguments, functions, filters, paths and keys, explains what the cursor is on, and goes to where it is defined.";

pub(crate) fn run(arguments: &LspArguments) -> Result<(), Failure> {
    let (connection, threads) = Connection::stdio();
    let outcome = serve(&connection, arguments.library.clone());
    drop(connection);
    outcome?;
    Ok(threads.join()?)
}

fn broken(error: impl std::fmt::Display) -> Failure {
    Failure::new(Exit::Failed, format!("the editor's side of the conversation is broken: {error}"))
}

fn serve(connection: &Connection, library: Option<PathBuf>) -> Result<(), Failure> {
    let (id, params) = connection.initialize_start().map_err(broken)?;
    let params: InitializeParams = serde_json::from_value(params).map_err(broken)?;
    let result = InitializeResult {
        capabilities: capabilities(),
        server_info: Some(ServerInfo {
            name: "promptshelf".to_owned(),
            version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        }),
    };
    connection.initialize_finish(id, serde_json::to_value(result).map_err(broken)?).map_err(broken)?;
    let folders = library.map_or_else(|| folders(&params), |library| vec![absolute(library)]);
    let mut session = Session { connection, folders, shelves: Vec::new(), open: BTreeMap::new(), is_stale: false };
    session.start();
    session.run()
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

/// The folders that the editor has open.
fn folders(params: &InitializeParams) -> Vec<PathBuf> {
    let given = match &params.workspace_folders_initialize_params.workspace_folders {
        Some(WorkspaceFolders::WorkspaceFolderList(folders)) => {
            folders.iter().filter_map(|folder| place::path_of(folder.uri.as_ref())).collect()
        }
        _ => Vec::new(),
    };
    if !given.is_empty() {
        return given;
    }
    #[expect(deprecated, reason = "older editors say nothing else")]
    let root = params.root_uri.as_ref().and_then(|uri| place::path_of(uri.as_ref()));
    vec![root.unwrap_or_else(|| absolute(PathBuf::from(".")))]
}

fn absolute(path: PathBuf) -> PathBuf {
    std::path::absolute(&path).unwrap_or(path)
}

struct Session<'c> {
    connection: &'c Connection,
    /// Where libraries are looked for.
    folders: Vec<PathBuf>,
    shelves: Vec<Shelf>,
    /// What the editor has open, by URI.
    open: BTreeMap<String, String>,
    /// Whether something has changed since the last check.
    is_stale: bool,
}

impl Session<'_> {
    fn start(&mut self) {
        for folder in self.folders.clone() {
            // Elsewhere, a library is opened with the first of its files.
            if folder.join(shelf::MANIFEST).is_file() || self.folders.len() == 1 {
                self.shelves.push(Shelf::open(folder));
            }
        }
        self.is_stale = true;
    }

    fn run(&mut self) -> Result<(), Failure> {
        loop {
            // What has piled up is taken in before anything is checked.
            let message = match self.connection.receiver.try_recv() {
                Ok(message) => message,
                Err(_) => {
                    self.refresh()?;
                    match self.connection.receiver.recv() {
                        Ok(message) => message,
                        Err(_) => return Ok(()),
                    }
                }
            };
            match message {
                Message::Request(request) => {
                    if self.connection.handle_shutdown(&request).map_err(broken)? {
                        return Ok(());
                    }
                    self.refresh()?;
                    let response = self.answer(request);
                    self.send(Message::Response(response))?;
                }
                Message::Notification(notification) => self.note(notification),
                Message::Response(_) => {}
            }
        }
    }

    fn send(&self, message: Message) -> Result<(), Failure> {
        self.connection.sender.send(message).map_err(broken)
    }

    /// Checks what has changed, and tells the editor what is wrong.
    fn refresh(&mut self) -> Result<(), Failure> {
        if !std::mem::take(&mut self.is_stale) {
            return Ok(());
        }
        let mut found = Vec::new();
        for shelf in &mut self.shelves {
            found.extend(shelf.check());
        }
        for (uri, diagnostics) in found {
            let params = PublishDiagnosticsParams { uri: Uri::from(uri), version: None, diagnostics };
            let method = "textDocument/publishDiagnostics".to_owned();
            self.send(Message::Notification(Notification::new(method, params)))?;
        }
        Ok(())
    }

    fn note(&mut self, notification: Notification) {
        match notification.method.as_str() {
            "textDocument/didOpen" => {
                if let Some(params) = parsed::<DidOpenTextDocumentParams>(notification.params) {
                    self.changed(params.text_document.uri.as_ref(), Some(params.text_document.text));
                }
            }
            "textDocument/didChange" => {
                if let Some(params) = parsed::<DidChangeTextDocumentParams>(notification.params) {
                    let uri = params.text_document.text_document_identifier.uri;
                    let text = self.open.remove(uri.as_ref()).unwrap_or_default();
                    let text = params.content_changes.into_iter().fold(text, edited);
                    self.changed(uri.as_ref(), Some(text));
                }
            }
            "textDocument/didClose" => {
                if let Some(params) = parsed::<DidCloseTextDocumentParams>(notification.params) {
                    self.changed(params.text_document.uri.as_ref(), None);
                }
            }
            "textDocument/didSave" | "workspace/didChangeWatchedFiles" => self.is_stale = true,
            _ => {}
        }
    }

    fn changed(&mut self, uri: &str, text: Option<String>) {
        if let Some((index, path)) = self.shelf_of(uri) {
            self.shelves[index].set_unsaved(&path, text.as_deref());
            self.is_stale = true;
        }
        match text {
            Some(text) => self.open.insert(uri.to_owned(), text),
            None => self.open.remove(uri),
        };
    }

    /// The library that a file is in, and its path there. Opens the library
    /// when this is the first of its files.
    fn shelf_of(&mut self, uri: &str) -> Option<(usize, String)> {
        let file = place::path_of(uri)?;
        let around = file.ancestors().skip(1);
        let root = around
            .take_while(|folder| self.folders.iter().any(|open| folder.starts_with(open)))
            .find(|folder| folder.join(shelf::MANIFEST).is_file())
            .map(std::path::Path::to_owned)
            .or_else(|| self.folders.iter().find(|folder| file.starts_with(folder)).cloned())?;
        let index = match self.shelves.iter().position(|shelf| shelf.folder() == root) {
            Some(index) => index,
            None => {
                self.shelves.push(Shelf::open(root.clone()));
                self.shelves.len() - 1
            }
        };
        Some((index, place::inside(&root, &file)?))
    }

    fn answer(&mut self, request: Request) -> Response {
        let Request { id, method, params } = request;
        let position: Option<TextDocumentPositionParams> = match method.as_str() {
            "textDocument/completion" => {
                parsed::<CompletionParams>(params).map(|params| params.text_document_position_params)
            }
            "textDocument/hover" => parsed::<HoverParams>(params).map(|params| params.text_document_position_params),
            "textDocument/definition" => {
                parsed::<DefinitionParams>(params).map(|params| params.text_document_position_params)
            }
            _ => {
                let message = format!("{method} is not served");
                return Response::new_err(id, ErrorCode::MethodNotFound as i32, message);
            }
        };
        let Some(position) = position else {
            return Response::new_err(id, ErrorCode::InvalidParams as i32, "this cannot be understood".to_owned());
        };
        let uri = position.text_document.uri.as_ref().to_owned();
        let found = self.shelf_of(&uri);
        let (Some((index, path)), Some(text)) = (found, self.open.get(&uri)) else {
            return Response::new_ok(id, serde_json::Value::Null);
        };
        let offset = place::offset(text, position.position);
        let shelf = &self.shelves[index];
        let cursor = Cursor::at(&path, text, offset);
        match method.as_str() {
            "textDocument/completion" => {
                let items = complete::items(shelf, &path, text, &cursor);
                answered(id, Some(CompletionResponse::CompletionItemList(items)))
            }
            "textDocument/hover" => answered(id, explain::hover(shelf, &path, text, &cursor)),
            _ => answered(id, explain::definition(shelf, &path, &cursor)),
        }
    }
}

/// A text after one change.
fn edited(mut text: String, change: Change) -> String {
    match change {
        Change::TextDocumentContentChangeWholeDocument(whole) => whole.text,
        Change::TextDocumentContentChangePartial(part) => {
            let start = place::offset(&text, part.range.start);
            let end = place::offset(&text, part.range.end).max(start);
            text.replace_range(start..end, &part.text);
            text
        }
    }
}

fn answered<T: Serialize>(id: lsp_server::RequestId, answer: Option<T>) -> Response {
    Response::new_ok(id, answer)
}

fn parsed<T: DeserializeOwned>(params: serde_json::Value) -> Option<T> {
    serde_json::from_value(params)
        .inspect_err(|error| tracing::warn!("what the editor sent cannot be understood: {error}"))
        .ok()
}

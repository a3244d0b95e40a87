//! One connection with an editor: its open files, and the responses to its requests.

use std::{collections::BTreeMap, path::PathBuf};

use gen_lsp_types::{
    CompletionParams, CompletionResponse, DefinitionParams, DidChangeTextDocumentParams, DidCloseTextDocumentParams,
    DidOpenTextDocumentParams, HoverParams, PublishDiagnosticsParams, TextDocumentContentChangeEvent as Change,
    TextDocumentPositionParams, Uri,
};
use lsp_server::{Connection, ErrorCode, Message, Notification, Request, Response};
use promptshelf_source::syntax::LIBRARY_FILE;
use serde::{Serialize, de::DeserializeOwned};

use super::{
    completion,
    error::LanguageServerError,
    hover,
    locate::cursor_at,
    position,
    workspace::{Workspace, WorkspaceOptions},
};

pub(super) struct Session<'c> {
    connection: &'c Connection,
    folders: Vec<PathBuf>,
    workspaces: Vec<Workspace>,
    open: BTreeMap<String, String>,
    /// Whether something has changed since the last check.
    is_stale: bool,
    schemas: WorkspaceOptions,
}

impl<'c> Session<'c> {
    pub(super) fn new(connection: &'c Connection, folders: Vec<PathBuf>, schemas: WorkspaceOptions) -> Session<'c> {
        Session { connection, folders, workspaces: Vec::new(), open: BTreeMap::new(), is_stale: false, schemas }
    }

    pub(super) fn start(&mut self) {
        for folder in self.folders.clone() {
            // In other folders, a library is opened together with the first of its files.
            if folder.join(LIBRARY_FILE).is_file() || self.folders.len() == 1 {
                self.workspaces.push(Workspace::open(folder, self.schemas.clone()));
            }
        }
        self.is_stale = true;
    }

    /// Serves the connection until the editor shuts down.
    pub(super) fn run(&mut self) -> Result<(), LanguageServerError> {
        loop {
            // All pending messages are applied before anything is checked.
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
                    if self.connection.handle_shutdown(&request).map_err(LanguageServerError::protocol)? {
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

    fn send(&self, message: Message) -> Result<(), LanguageServerError> {
        self.connection.sender.send(message).map_err(LanguageServerError::protocol)
    }

    fn refresh(&mut self) -> Result<(), LanguageServerError> {
        if !std::mem::take(&mut self.is_stale) {
            return Ok(());
        }
        let mut found = Vec::new();
        for workspace in &mut self.workspaces {
            found.extend(workspace.check());
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
        if let Some((index, path)) = self.workspace_of(uri) {
            self.workspaces[index].files().set_unsaved(&path, text.as_deref());
            self.is_stale = true;
        }
        match text {
            Some(text) => self.open.insert(uri.to_owned(), text),
            None => self.open.remove(uri),
        };
    }

    /// Returns the index of the library that contains a file, and the file's path in it. Opens the library if
    /// necessary.
    fn workspace_of(&mut self, uri: &str) -> Option<(usize, String)> {
        let file = position::path_of(uri)?;
        let around = file.ancestors().skip(1);
        let root = around
            .take_while(|folder| self.folders.iter().any(|open| folder.starts_with(open)))
            .find(|folder| folder.join(LIBRARY_FILE).is_file())
            .map(std::path::Path::to_owned)
            .or_else(|| self.folders.iter().find(|folder| file.starts_with(folder)).cloned())?;
        let index = match self.workspaces.iter().position(|workspace| workspace.folder() == root) {
            Some(index) => index,
            None => {
                self.workspaces.push(Workspace::open(root.clone(), self.schemas.clone()));
                self.workspaces.len() - 1
            }
        };
        Some((index, position::inside(&root, &file)?))
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
                let message = format!("unknown method {method}");
                return Response::new_err(id, ErrorCode::MethodNotFound as i32, message);
            }
        };
        let Some(position) = position else {
            return Response::new_err(id, ErrorCode::InvalidParams as i32, "invalid parameters".to_owned());
        };
        let uri = position.text_document.uri.as_ref().to_owned();
        let found = self.workspace_of(&uri);
        let (Some((index, path)), Some(text)) = (found, self.open.get(&uri)) else {
            return Response::new_ok(id, serde_json::Value::Null);
        };
        let offset = position::offset(text, position.position);
        let workspace = &self.workspaces[index];
        let cursor = cursor_at(&path, text, offset);
        match method.as_str() {
            "textDocument/completion" => {
                let items = completion::items(workspace, &path, text, &cursor);
                answered(id, Some(CompletionResponse::CompletionItemList(items)))
            }
            "textDocument/hover" => answered(id, hover::hover(workspace, &path, text, &cursor)),
            _ => answered(id, hover::definition(workspace, &path, &cursor)),
        }
    }
}

fn edited(mut text: String, change: Change) -> String {
    match change {
        Change::TextDocumentContentChangeWholeDocument(whole) => whole.text,
        Change::TextDocumentContentChangePartial(part) => {
            let start = position::offset(&text, part.range.start);
            let end = position::offset(&text, part.range.end).max(start);
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
        .inspect_err(|error| tracing::warn!("invalid parameters from the editor: {error}"))
        .ok()
}

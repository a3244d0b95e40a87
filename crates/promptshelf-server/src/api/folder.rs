//! Files of the served folder, one by one, and their analysis: for the page's editor. The routes exist only where the
//! operator enables editing.
//!
//! A change names the content that it replaces, in `If-Match`; a refusal carries the present content, so that the editor
//! can compare all three.

use std::{fmt, path::PathBuf, sync::Arc};

use axum::{
    Router,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    middleware,
    response::IntoResponse,
    routing::any,
};
use parking_lot::Mutex;
use promptshelf_author::Analyzer;
use promptshelf_core::{Prompt, is_interrupted};
use promptshelf_source::{EditError, EditableFolder, ListedFile, MemoryFile, MemoryTree};
use promptshelf_store::Digest;
use promptshelf_wire::{
    AnalysisBody, Document, FileContent, FolderFile, FolderFiles, Page, RenameBody, Scope, WriteBody, WrittenFile, op,
};
use tokio::task::spawn_blocking;

use super::{
    admit::{Checks, admit},
    analysis::{Question, in_pool},
    call::{Answer, Call, Context, Operations, Part, Site},
    content::decoded,
    etag::{self, Tag},
    folder_rename::renamed,
    problem::{Problem, not_allowed, unknown},
    request::MAX_ALL,
};
use crate::library::Library;

/// The settings of a library, with access rules and possibly tokens of callers.
const MANIFEST: &str = "promptshelf.toml";

const GOLDEN: &str = ".golden.md";

/// Editing of the served folder, mounted at `/api/v1/folder` by [`Options::folder`](crate::http::Options::folder).
///
/// With sign-in, reading takes the scope `library:read`, and changes `library:publish`, because they are served at once.
/// Reading and changing `promptshelf.toml` takes `library:admin`, and so do changes of prompts in the folders of other
/// programs, such as `.claude/commands`. Without sign-in every caller who reaches the server may
/// change every file.
#[derive(Clone)]
pub struct FolderApi {
    folder: Arc<EditableFolder>,
    analyzers: Arc<Mutex<FolderAnalyzers>>,
}

/// Idle analyzers of the folder. One that is in use is taken out: whoever comes meanwhile gets another one.
struct FolderAnalyzers {
    idle: Vec<Analyzer>,
    granted_roots: Vec<PathBuf>,
}

const ANALYZERS: usize = 2;

impl FolderApi {
    /// Creates the API of a folder, and removes what an interrupted change has left there. `granted_roots` are the folders
    /// outside of the library that its `[roots]` may point to.
    #[must_use]
    pub fn new(folder: EditableFolder, granted_roots: impl IntoIterator<Item = PathBuf>) -> FolderApi {
        folder.remove_leftovers();
        let analyzers = FolderAnalyzers { idle: Vec::new(), granted_roots: granted_roots.into_iter().collect() };
        FolderApi { folder: Arc::new(folder), analyzers: Arc::new(Mutex::new(analyzers)) }
    }

    /// Grants folders outside of the library to previews, instead of those granted before.
    pub fn grant_roots(&self, folders: impl IntoIterator<Item = PathBuf>) {
        let analyzers = FolderAnalyzers { idle: Vec::new(), granted_roots: folders.into_iter().collect() };
        *self.analyzers.lock() = analyzers;
    }

    fn analyze<T>(&self, work: impl FnOnce(&mut Analyzer) -> T) -> T {
        let (idle, granted_roots) = {
            let mut analyzers = self.analyzers.lock();
            (analyzers.idle.pop(), analyzers.granted_roots.clone())
        };
        let mut analyzer = idle.unwrap_or_else(|| Analyzer::of_folder(self.folder.path(), granted_roots.clone()));
        let result = work(&mut analyzer);
        // One whose work was stopped has read the folder in part. Work may make way for others here: not with the lock.
        let is_whole = !is_interrupted();
        let mut analyzers = self.analyzers.lock();
        if is_whole && analyzers.granted_roots == granted_roots && analyzers.idle.len() < ANALYZERS {
            analyzers.idle.push(analyzer);
        }
        result
    }
}

impl fmt::Debug for FolderApi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FolderApi({})", self.folder.path().display())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Change,
}

#[derive(Clone)]
pub(super) struct FolderState {
    api: FolderApi,
    library: Library,
    site: Site,
}

impl Part for FolderState {
    fn site(&self) -> &Site {
        &self.site
    }
}

impl Context<FolderState> {
    async fn with_files<T: Send + 'static>(
        &self,
        work: impl FnOnce(&EditableFolder) -> Result<T, EditError> + Send + 'static,
    ) -> Result<T, Problem> {
        let folder = Arc::clone(&self.state.api.folder);
        spawn_blocking(move || work(&folder)).await.map_err(|_| Problem::internal())?.map_err(Problem::from)
    }

    async fn admit_path(&self, path: &str, access: Access) -> Result<(), Problem> {
        if self.has(Scope::Admin) {
            return Ok(());
        }
        let path = path.to_owned();
        if self.with_files(move |folder| Ok(is_for_administrators(folder, &path, access))).await? {
            self.require(&[Scope::Admin])
        } else {
            Ok(())
        }
    }

    /// Serves a change before it is confirmed: whatever the editor asks next is answered with it.
    async fn reload(&self) {
        // A library that cannot be loaded is reported to its authors; the file was saved nevertheless.
        self.state.library.loader().reload().await.ok();
    }
}

pub(crate) fn routes(api: &FolderApi, library: &Library, site: Site) -> Router {
    let checks = Checks { endpoint: site.endpoint.clone(), library: library.clone() };
    let state = FolderState { api: api.clone(), library: library.clone(), site };
    operations(Document::default())
        .into_router(state)
        .route("/api/v1/folder/{*rest}", any(unknown))
        .method_not_allowed_fallback(not_allowed)
        .layer(middleware::from_fn_with_state(checks, admit))
}

pub(super) fn operations(document: Document) -> Operations<FolderState> {
    Operations::new(document)
        .on(list_folder)
        .on(read_in_folder)
        .on(write_in_folder)
        .on(delete_in_folder)
        .on(rename_in_folder)
        .on(analyze_folder)
}

async fn list_folder(call: Call<op::ListFolder, FolderState>) -> Answer {
    let files = call.with_files(EditableFolder::list).await?;
    let file = |ListedFile { path, bytes, .. }: ListedFile| FolderFile { path, bytes };
    let files = files.into_iter().map(file);
    let Page { items, next } = call.paging.of_sorted(files, MAX_ALL, |file| file.path.clone())?;
    call.answer(&FolderFiles { items, next, may_write: call.has(Scope::Publish) })
}

async fn read_in_folder(call: Call<op::ReadInFolder, FolderState>) -> Answer {
    let path = &call.path.path;
    call.note("path", path);
    call.admit_path(path, Access::Read).await?;
    let path = path.clone();
    let bytes = call.with_files(move |folder| folder.read(&path)).await?;
    let tag = Tag::of(&bytes);
    let kind = match std::str::from_utf8(&bytes) {
        Ok(_) => "text/plain; charset=utf-8",
        Err(_) => "application/octet-stream",
    };
    let mut response = bytes.into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response.headers_mut().insert(header::CONTENT_DISPOSITION, HeaderValue::from_static("attachment"));
    etag::conditional(&call.headers, &tag, response)
}

async fn write_in_folder(call: Call<op::WriteInFolder, FolderState>) -> Answer {
    let path = &call.path.path;
    call.note("path", path);
    require_origin(&call.headers)?;
    call.admit_path(path, Access::Change).await?;
    let is_new = etag::is_creation(&call.headers)?;
    let expected = if is_new { Vec::new() } else { etag::expected(&call.headers)? };
    let body: WriteBody = call.body().await?;
    let bytes = decoded(body.content, "The content")?;
    let digest = Digest::of(&bytes);
    let path = path.clone();
    let write = move |folder: &EditableFolder| {
        if is_new {
            folder.create(&path, &bytes)
        } else {
            folder.replace(&path, &bytes, |now| is_one_of(&expected, now))
        }
    };
    call.with_files(write).await?;
    call.reload().await;
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    call.tagged(status, &WrittenFile { digest }, &Tag::of_file(&digest))
}

async fn delete_in_folder(call: Call<op::DeleteInFolder, FolderState>) -> Answer {
    let path = &call.path.path;
    call.note("path", path);
    require_origin(&call.headers)?;
    call.admit_path(path, Access::Change).await?;
    let expected = etag::expected(&call.headers)?;
    let path = path.clone();
    call.with_files(move |folder| folder.delete(&path, |now| is_one_of(&expected, now))).await?;
    call.reload().await;
    Ok(StatusCode::NO_CONTENT.into_response())
}

async fn rename_in_folder(call: Call<op::RenameInFolder, FolderState>) -> Answer {
    require_origin(&call.headers)?;
    let RenameBody { from, to, digest } = call.body().await?;
    call.note("path", &from);
    call.note("to", &to);
    for path in [&from, &to] {
        call.admit_path(path, Access::Change).await?;
    }
    let (api, caller) = (call.state.api.clone(), call.caller().clone());
    let is_administrator = call.has(Scope::Admin);
    let work = move || api.analyze(|analyzer| renamed(&api.folder, analyzer, (&from, &to), digest, is_administrator));
    // A task of its own: a rename that has begun is completed.
    let renamed = tokio::spawn(async move { in_pool(&caller, work).await }).await;
    let renamed = renamed.map_err(|_| Problem::internal())??.map_err(Problem::from)?;
    call.reload().await;
    call.changed(StatusCode::OK, &renamed, &digest)
}

async fn analyze_folder(call: Call<op::AnalyzeFolder, FolderState>) -> Answer {
    let body: AnalysisBody = call.body().await?;
    let question = Question::of(body)?;
    call.note("path", question.path());
    // Unsaved settings could raise the limits of a preview.
    for path in question.paths() {
        call.admit_path(path, Access::Read).await?;
    }
    let api = call.state.api.clone();
    let result = in_pool(call.caller(), move || {
        api.analyze(|analyzer| question.answer(analyzer, |prompt| golden_files(&api.folder, prompt)))
    })
    .await?;
    call.answer(&result)
}

/// Reads the golden files of a prompt's tests, which are next to its file.
fn golden_files(folder: &EditableFolder, prompt: &Prompt) -> MemoryTree {
    let parent = prompt.source().path.rsplit_once('/').map(|(parent, _)| format!("{parent}/")).unwrap_or_default();
    let names = prompt.definition().tests.iter().filter_map(|test| test.golden.as_deref());
    let paths = names.map(|name| format!("{parent}{name}")).filter(|path| path.ends_with(GOLDEN));
    paths.filter_map(|path| Some((path.clone(), MemoryFile::new(folder.read(&path).ok()?)))).collect()
}

/// Whether a path leads to the library's settings, also on a file system that ignores case, or a change is one of a
/// prompt that another program obeys too, in its hidden folder.
pub(super) fn is_for_administrators(folder: &EditableFolder, path: &str, access: Access) -> bool {
    let is_restricted =
        |path: &str| path.eq_ignore_ascii_case(MANIFEST) || (access == Access::Change && path.starts_with('.'));
    path.eq_ignore_ascii_case(MANIFEST) || folder.canonical(path).is_ok_and(|canonical| is_restricted(&canonical))
}

/// Refuses a change without `Origin`. Every browser sends it, and the host check has compared it: a request without it
/// does not come from the page.
fn require_origin(headers: &HeaderMap) -> Result<(), Problem> {
    if headers.contains_key(header::ORIGIN) {
        return Ok(());
    }
    Err(Problem::foreign("The header Origin is missing: send the origin of this server, such as http://127.0.0.1:8080"))
}

fn is_one_of(expected: &[String], now: &[u8]) -> bool {
    let digest = Digest::of(now).to_string();
    expected.contains(&digest)
}

impl From<EditError> for Problem {
    fn from(error: EditError) -> Problem {
        let detail = error.to_string();
        match error {
            EditError::InvalidPath(reason) => Problem::invalid_path("The path is refused", &reason),
            EditError::Outside | EditError::Obeyed | EditError::NotAFile | EditError::Link => {
                Problem::invalid(format!("The path is refused: {detail}"))
            }
            EditError::NotFound => Problem::not_found("The file"),
            EditError::Exists | EditError::SamePath(_) => Problem::exists(detail),
            EditError::Changed { present } => {
                let content = serde_json::to_value(FileContent::of(&present)).unwrap_or_default();
                Problem::changed(detail, content, Digest::of(&present))
            }
            EditError::TooLarge { .. } => {
                Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", "The file is too large", detail)
            }
            error => {
                tracing::error!("the folder cannot be edited: {error}");
                let detail = format!("The file was not changed: {error}");
                Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "not-written", "The file cannot be written", detail)
            }
        }
    }
}

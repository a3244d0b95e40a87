//! Files of the served folder, one by one, and their analysis: for the page's editor. The routes exist only where the
//! operator enables editing.
//!
//! A change names the content that it replaces, in `If-Match`; a refusal carries the present content, so that the editor
//! can compare all three.

use std::{
    fmt,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use axum::{
    Router,
    extract::State,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    middleware,
    response::{IntoResponse, Response},
    routing::{any, get, post},
};
use promptshelf_author::{Analyzer, rename_file_references, rename_prompt_references};
use promptshelf_core::Prompt;
use promptshelf_mcp::HttpService;
use promptshelf_source::{EditError, EditableFolder, ListedFile, MemoryFile, MemoryTree};
use promptshelf_store::Digest;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::Semaphore;

use super::{
    CHECKS,
    admit::{Checks, admit},
    analysis::{AnalysisBody, Question, in_background},
    content::FileContent,
    etag::{self, Tag},
    operation::{ApiCaller, Operation, Scope},
    problem::{Problem, not_allowed, unknown},
    request::{ApiPath, Unread},
};
use crate::library::Library;

/// The settings of a library, with access rules and possibly tokens of callers.
const MANIFEST: &str = "promptshelf.toml";

/// The ending of golden files.
const GOLDEN: &str = ".golden.md";

/// Editing of the served folder, mounted at `/api/v1/folder` by [`Options::folder`](crate::http::Options::folder).
///
/// With sign-in, reading takes the scope `library:read`, and changes `library:publish`, because they are served at once.
/// Reading and changing `promptshelf.toml` takes `library:admin`. Without sign-in every caller who reaches the server may
/// change every file.
#[derive(Clone)]
pub struct FolderApi {
    folder: Arc<EditableFolder>,
    analyzer: Arc<Mutex<Analyzer>>,
    /// One permit for each analysis that runs: each can take a processor for seconds.
    analyses: Arc<Semaphore>,
}

impl FolderApi {
    /// Creates the API of a folder. `analyzer` is that of the same folder.
    #[must_use]
    pub fn new(folder: EditableFolder, analyzer: Analyzer) -> FolderApi {
        FolderApi {
            folder: Arc::new(folder),
            analyzer: Arc::new(Mutex::new(analyzer)),
            analyses: Arc::new(Semaphore::new(CHECKS)),
        }
    }
}

impl FolderApi {
    /// Grants folders outside of the library to previews, instead of those granted before. Waits for an analysis that
    /// runs.
    pub fn grant_roots(&self, folders: impl IntoIterator<Item = PathBuf>) {
        self.analyzer.lock().unwrap_or_else(PoisonError::into_inner).grant_roots(folders);
    }
}

impl fmt::Debug for FolderApi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FolderApi({})", self.folder.path().display())
    }
}

#[derive(Clone)]
struct FolderState {
    api: FolderApi,
    library: Library,
    endpoint: HttpService,
    has_sign_in: bool,
}

impl FolderState {
    fn begin(&self, caller: ApiCaller, method: &'static str, scope: Scope) -> Result<Operation, Problem> {
        Operation::begin(self.library.service(), caller.0, self.has_sign_in, method, &[scope])
    }

    /// Works with the folder on another thread.
    async fn with_files<T: Send + 'static>(
        &self,
        work: impl FnOnce(&EditableFolder) -> Result<T, EditError> + Send + 'static,
    ) -> Result<T, Problem> {
        let folder = Arc::clone(&self.api.folder);
        in_background(move || work(&folder)).await?.map_err(Problem::from)
    }

    /// Serves a change before it is confirmed: whatever the editor asks next is answered with it.
    async fn reload(&self) {
        // A library that cannot be loaded is reported to its authors; the file was saved nevertheless.
        self.library.loader().reload().await.ok();
    }
}

/// Returns the routes, for callers that authentication has looked at.
pub(crate) fn routes(api: &FolderApi, library: &Library, endpoint: &HttpService, has_sign_in: bool) -> Router {
    let state = FolderState { api: api.clone(), library: library.clone(), endpoint: endpoint.clone(), has_sign_in };
    let checks = Checks { endpoint: endpoint.clone(), library: library.clone() };
    Router::new()
        .route("/api/v1/folder/files", get(list))
        .route("/api/v1/folder/files/{*path}", get(read).put(write).delete(delete))
        .route("/api/v1/folder/rename", post(rename))
        .route("/api/v1/folder/analysis", post(analyze))
        .route("/api/v1/folder/{*rest}", any(unknown))
        .method_not_allowed_fallback(not_allowed)
        .with_state(state)
        .layer(middleware::from_fn_with_state(checks, admit))
}

async fn list(State(state): State<FolderState>, caller: ApiCaller, headers: HeaderMap) -> Result<Response, Problem> {
    let operation = state.begin(caller, "api/folder/files", Scope::Read)?;
    let answer = async {
        let files = state.with_files(EditableFolder::list).await?;
        let file = |ListedFile { path, bytes, .. }: &ListedFile| json!({ "path": path, "bytes": bytes });
        let files: Vec<_> = files.iter().map(file).collect();
        etag::json(&headers, &json!({ "files": files, "mayWrite": operation.has(Scope::Publish) }))
    }
    .await;
    Ok(operation.end(answer))
}

async fn read(
    State(state): State<FolderState>,
    caller: ApiCaller,
    ApiPath(path): ApiPath<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let mut operation = state.begin(caller, "api/folder/file", Scope::Read)?;
    operation.note("path", &path);
    let answer = async {
        admit_path(&operation, &path)?;
        let bytes = state.with_files(move |folder| folder.read(&path)).await?;
        let tag = Tag::of(&bytes);
        let kind = match std::str::from_utf8(&bytes) {
            Ok(_) => "text/plain; charset=utf-8",
            Err(_) => "application/octet-stream",
        };
        let mut response = bytes.into_response();
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        response.headers_mut().insert(header::CONTENT_DISPOSITION, HeaderValue::from_static("attachment"));
        etag::conditional(&headers, &tag, response)
    }
    .await;
    Ok(operation.end(answer))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WriteBody {
    content: FileContent,
}

async fn write(
    State(state): State<FolderState>,
    caller: ApiCaller,
    ApiPath(path): ApiPath<String>,
    request: Unread,
) -> Result<Response, Problem> {
    let mut operation = state.begin(caller, "api/folder/write", Scope::Publish)?;
    operation.note("path", &path);
    let answer = async {
        admit_path(&operation, &path)?;
        require_origin(request.headers())?;
        let is_new = etag::is_creation(request.headers())?;
        let expected = if is_new { Vec::new() } else { etag::expected(request.headers())? };
        let body: WriteBody = request.json(&state.endpoint).await?;
        let bytes = body.content.into_bytes("The content")?;
        let digest = Digest::of(&bytes);
        state
            .with_files(move |folder| match is_new {
                true => folder.create(&path, &bytes),
                false => folder.replace(&path, &bytes, |now| is_one_of(&expected, now)),
            })
            .await?;
        state.reload().await;
        let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
        etag::tagged(status, &json!({ "digest": digest }), &Tag::of_file(&digest))
    }
    .await;
    Ok(operation.end(answer))
}

async fn delete(
    State(state): State<FolderState>,
    caller: ApiCaller,
    ApiPath(path): ApiPath<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let mut operation = state.begin(caller, "api/folder/delete", Scope::Publish)?;
    operation.note("path", &path);
    let answer = async {
        admit_path(&operation, &path)?;
        require_origin(&headers)?;
        let expected = etag::expected(&headers)?;
        state.with_files(move |folder| folder.delete(&path, |now| is_one_of(&expected, now))).await?;
        state.reload().await;
        Ok(StatusCode::NO_CONTENT.into_response())
    }
    .await;
    Ok(operation.end(answer))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RenameBody {
    from: String,
    to: String,
    digest: Digest,
}

async fn rename(State(state): State<FolderState>, caller: ApiCaller, request: Unread) -> Result<Response, Problem> {
    let mut operation = state.begin(caller, "api/folder/rename", Scope::Publish)?;
    let answer = async {
        require_origin(request.headers())?;
        let RenameBody { from, to, digest } = request.json(&state.endpoint).await?;
        operation.note("path", &from);
        operation.note("to", &to);
        for path in [&from, &to] {
            admit_path(&operation, path)?;
        }
        let _permit = state.api.analyses.acquire().await;
        let api = state.api.clone();
        let may_change_manifest = operation.has(Scope::Admin);
        let renamed = in_background(move || {
            let mut analyzer = api.analyzer.lock().unwrap_or_else(PoisonError::into_inner);
            renamed(&api.folder, &mut analyzer, (&from, &to), digest, may_change_manifest)
        });
        let (changed, left) = renamed.await?.map_err(Problem::from)?;
        state.reload().await;
        etag::changed(StatusCode::OK, &json!({ "changed": changed, "left": left }), &digest)
    }
    .await;
    Ok(operation.end(answer))
}

/// Renames a file and every reference to it. Returns the files whose references were changed, and those in which they
/// could not be.
fn renamed(
    folder: &EditableFolder,
    analyzer: &mut Analyzer,
    (from, to): (&str, &str),
    digest: Digest,
    may_change_manifest: bool,
) -> Result<(Vec<String>, Vec<String>), EditError> {
    // A library that cannot be analysed has no prompts to refer to.
    let mut name_of = |path: &str| {
        let analysis = analyzer.analyze(&[].into()).ok()?;
        analysis.prompt(path).map(|prompt| prompt.name().to_string())
    };
    let old_name = name_of(from);
    folder.rename(from, to, |now| Digest::of(now) == digest)?;
    let names = old_name.zip(name_of(to)).filter(|(old, new)| old != new);
    let (mut changed, mut left) = (Vec::new(), Vec::new());
    for ListedFile { path, .. } in folder.list()? {
        let Ok(text) = folder.read(&path).map_err(drop).and_then(|bytes| String::from_utf8(bytes).map_err(drop)) else {
            continue;
        };
        let mut edited = rename_file_references(&path, &text, from, to);
        if let Some((old, new)) = &names {
            let now = edited.as_deref().unwrap_or(&text);
            edited = rename_prompt_references(&path, now, old, new).or(edited);
        }
        let Some(edited) = edited else { continue };
        let is_permitted = path != MANIFEST || may_change_manifest;
        match is_permitted && folder.replace(&path, edited.as_bytes(), |now| now == text.as_bytes()).is_ok() {
            true => changed.push(path),
            false => left.push(path),
        }
    }
    Ok((changed, left))
}

async fn analyze(State(state): State<FolderState>, caller: ApiCaller, request: Unread) -> Result<Response, Problem> {
    let mut operation = state.begin(caller, "api/folder/analysis", Scope::Read)?;
    let answer = async {
        let body: AnalysisBody = request.json(&state.endpoint).await?;
        let question = Question::of(body)?;
        operation.note("path", question.path());
        // Unsaved settings could raise the limits of a preview.
        question.paths().try_for_each(|path| admit_path(&operation, path))?;
        // A closed semaphore would be an error; it is never closed.
        let _permit = state.api.analyses.acquire().await;
        let api = state.api.clone();
        let result = in_background(move || {
            let mut analyzer = api.analyzer.lock().unwrap_or_else(PoisonError::into_inner);
            question.answer(&mut analyzer, |prompt| golden_files(&api.folder, prompt))
        })
        .await?;
        etag::changed(StatusCode::OK, &result, &result)
    }
    .await;
    Ok(operation.end(answer))
}

/// Reads the golden files of a prompt's tests, which are next to its file.
fn golden_files(folder: &EditableFolder, prompt: &Prompt) -> MemoryTree {
    let parent = prompt.source().path.rsplit_once('/').map(|(parent, _)| format!("{parent}/")).unwrap_or_default();
    let names = prompt.definition().tests.iter().filter_map(|test| test.golden.as_deref());
    let paths = names.map(|name| format!("{parent}{name}")).filter(|path| path.ends_with(GOLDEN));
    paths.filter_map(|path| Some((path.clone(), MemoryFile::new(folder.read(&path).ok()?)))).collect()
}

/// Checks the permission for the library's settings.
fn admit_path(operation: &Operation, path: &str) -> Result<(), Problem> {
    // Also on a file system that ignores case.
    if path.eq_ignore_ascii_case(MANIFEST) { operation.require(&[Scope::Admin]) } else { Ok(()) }
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
            EditError::InvalidPath(_) | EditError::Outside | EditError::NotAFile | EditError::Link => {
                Problem::invalid(format!("The path is refused: {detail}"))
            }
            EditError::NotFound => Problem::not_found("The file"),
            EditError::Exists => Problem::new(StatusCode::CONFLICT, "exists", "The file exists", detail),
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

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
    routing::any,
};
use promptshelf_author::Analyzer;
use promptshelf_core::{Prompt, is_interrupted};
use promptshelf_mcp::HttpService;
use promptshelf_source::{EditError, EditableFolder, ListedFile, MemoryFile, MemoryTree};
use promptshelf_store::Digest;
use serde::{Deserialize, Serialize};
use tokio::task::spawn_blocking;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    admit::{Checks, admit},
    analysis::{AnalysisBody, AnalysisResult, Question, in_pool},
    content::FileContent,
    etag::{self, Tag},
    operation::{ApiCaller, Operation, Scope},
    problem::{Problem, not_allowed, unknown},
    rename::Renaming,
    request::{ApiPath, Unread},
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
    /// Creates the API of a folder. `granted_roots` are the folders outside of the library that its `[roots]` may point to.
    #[must_use]
    pub fn new(folder: EditableFolder, granted_roots: impl IntoIterator<Item = PathBuf>) -> FolderApi {
        let analyzers = FolderAnalyzers { idle: Vec::new(), granted_roots: granted_roots.into_iter().collect() };
        FolderApi { folder: Arc::new(folder), analyzers: Arc::new(Mutex::new(analyzers)) }
    }

    /// Grants folders outside of the library to previews, instead of those granted before.
    pub fn grant_roots(&self, folders: impl IntoIterator<Item = PathBuf>) {
        let analyzers = FolderAnalyzers { idle: Vec::new(), granted_roots: folders.into_iter().collect() };
        *self.analyzers.lock().unwrap_or_else(PoisonError::into_inner) = analyzers;
    }

    fn analyze<T>(&self, work: impl FnOnce(&mut Analyzer) -> T) -> T {
        let (idle, granted_roots) = {
            let mut analyzers = self.analyzers.lock().unwrap_or_else(PoisonError::into_inner);
            (analyzers.idle.pop(), analyzers.granted_roots.clone())
        };
        let mut analyzer = idle.unwrap_or_else(|| Analyzer::of_folder(self.folder.path(), granted_roots.clone()));
        let result = work(&mut analyzer);
        let mut analyzers = self.analyzers.lock().unwrap_or_else(PoisonError::into_inner);
        // One whose work was stopped has read the folder in part.
        if !is_interrupted() && analyzers.granted_roots == granted_roots && analyzers.idle.len() < ANALYZERS {
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
enum Access {
    Read,
    Change,
}

#[derive(Clone)]
pub(super) struct FolderState {
    api: FolderApi,
    library: Library,
    endpoint: HttpService,
    has_sign_in: bool,
}

impl FolderState {
    fn begin(&self, caller: ApiCaller, method: &'static str, scope: Scope) -> Result<Operation, Problem> {
        Operation::begin(self.library.service(), caller.0, self.has_sign_in, method, &[scope])
    }

    async fn with_files<T: Send + 'static>(
        &self,
        work: impl FnOnce(&EditableFolder) -> Result<T, EditError> + Send + 'static,
    ) -> Result<T, Problem> {
        let folder = Arc::clone(&self.api.folder);
        spawn_blocking(move || work(&folder)).await.map_err(|_| Problem::internal())?.map_err(Problem::from)
    }

    async fn admit_path(&self, operation: &Operation, path: &str, access: Access) -> Result<(), Problem> {
        if operation.has(Scope::Admin) {
            return Ok(());
        }
        let path = path.to_owned();
        if self.with_files(move |folder| Ok(is_for_administrators(folder, &path, access))).await? {
            operation.require(&[Scope::Admin])
        } else {
            Ok(())
        }
    }

    /// Serves a change before it is confirmed: whatever the editor asks next is answered with it.
    async fn reload(&self) {
        // A library that cannot be loaded is reported to its authors; the file was saved nevertheless.
        self.library.loader().reload().await.ok();
    }
}

pub(crate) fn routes(api: &FolderApi, library: &Library, endpoint: &HttpService, has_sign_in: bool) -> Router {
    let state = FolderState { api: api.clone(), library: library.clone(), endpoint: endpoint.clone(), has_sign_in };
    let checks = Checks { endpoint: endpoint.clone(), library: library.clone() };
    let (routes, _) = OpenApiRouter::new().nest("/api/v1/folder", described()).split_for_parts();
    routes
        .route("/api/v1/folder/{*rest}", any(unknown))
        .method_not_allowed_fallback(not_allowed)
        .with_state(state)
        .layer(middleware::from_fn_with_state(checks, admit))
}

/// The operations, each described where its handler is. Paths are relative to `/api/v1/folder`.
pub(super) fn described() -> OpenApiRouter<FolderState> {
    OpenApiRouter::new()
        .routes(routes!(list_folder))
        .routes(routes!(read_in_folder, write_in_folder, delete_in_folder))
        .routes(routes!(rename_in_folder))
        .routes(routes!(analyze_folder))
}

/// The files of the folder.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct FolderFiles {
    /// Sorted by path; at most 200,000.
    files: Vec<FolderFile>,
    /// Whether the caller may change files.
    may_write: bool,
}

/// A file of the folder.
#[derive(Debug, Serialize, ToSchema)]
struct FolderFile {
    /// Relative to the library, with `/` between its parts.
    path: String,
    /// The size in bytes.
    bytes: u64,
}

/// Lists the files of the served folder
#[utoipa::path(get, path = "/files", tag = "folder", security(("token" = ["library:read"])),
    responses((status = 200, body = FolderFiles), (status = 304)))]
async fn list_folder(
    State(state): State<FolderState>,
    caller: ApiCaller,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let operation = state.begin(caller, "api/folder/files", Scope::Read)?;
    let answer = async {
        let files = state.with_files(EditableFolder::list).await?;
        let file = |ListedFile { path, bytes, .. }: ListedFile| FolderFile { path, bytes };
        let files = files.into_iter().map(file).collect();
        etag::json(&headers, &FolderFiles { files, may_write: operation.has(Scope::Publish) })
    }
    .await;
    Ok(operation.end(answer))
}

/// Returns the content of a file of the folder; its ETag is the digest
#[utoipa::path(get, path = "/files/{*path}", tag = "folder", security(("token" = ["library:read"])),
    params(("path" = String, Path, description = "The path of the file. It may contain `/`")),
    responses((status = 200, description = "The bytes of the file, as text/plain in UTF-8 if they are text", body = String, content_type = "text/plain"), (status = 304)))]
async fn read_in_folder(
    State(state): State<FolderState>,
    caller: ApiCaller,
    ApiPath(path): ApiPath<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let mut operation = state.begin(caller, "api/folder/file", Scope::Read)?;
    operation.note("path", &path);
    let answer = async {
        state.admit_path(&operation, &path, Access::Read).await?;
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

/// The new content of a file.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct WriteBody {
    /// All of it.
    content: FileContent,
}

/// A written file.
#[derive(Debug, Serialize, ToSchema)]
struct WrittenFile {
    /// The digest of its content.
    digest: Digest,
}

/// Creates a file of the folder with `If-None-Match: *`, or replaces the content whose digest is in `If-Match`
#[utoipa::path(put, path = "/files/{*path}", tag = "folder", security(("token" = ["library:publish"])),
    params(("path" = String, Path, description = "The path of the file. It may contain `/`")), request_body = WriteBody,
    responses((status = 200, body = WrittenFile), (status = 201, body = WrittenFile)))]
async fn write_in_folder(
    State(state): State<FolderState>,
    caller: ApiCaller,
    ApiPath(path): ApiPath<String>,
    request: Unread,
) -> Result<Response, Problem> {
    let mut operation = state.begin(caller, "api/folder/write", Scope::Publish)?;
    operation.note("path", &path);
    let answer = async {
        require_origin(request.headers())?;
        state.admit_path(&operation, &path, Access::Change).await?;
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
        etag::tagged(status, &WrittenFile { digest }, &Tag::of_file(&digest))
    }
    .await;
    Ok(operation.end(answer))
}

/// Deletes the file of the folder whose digest is in `If-Match`
#[utoipa::path(delete, path = "/files/{*path}", tag = "folder", security(("token" = ["library:publish"])),
    params(("path" = String, Path, description = "The path of the file. It may contain `/`")),
    responses((status = 204)))]
async fn delete_in_folder(
    State(state): State<FolderState>,
    caller: ApiCaller,
    ApiPath(path): ApiPath<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let mut operation = state.begin(caller, "api/folder/delete", Scope::Publish)?;
    operation.note("path", &path);
    let answer = async {
        require_origin(&headers)?;
        state.admit_path(&operation, &path, Access::Change).await?;
        let expected = etag::expected(&headers)?;
        state.with_files(move |folder| folder.delete(&path, |now| is_one_of(&expected, now))).await?;
        state.reload().await;
        Ok(StatusCode::NO_CONTENT.into_response())
    }
    .await;
    Ok(operation.end(answer))
}

/// A rename of a file.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct RenameBody {
    /// The path of the file.
    from: String,
    /// Its new path, which must be free.
    to: String,
    /// The digest of its content.
    digest: Digest,
}

/// A renamed file.
#[derive(Debug, Serialize, ToSchema)]
struct RenamedFile {
    /// The files whose references were changed.
    changed: Vec<String>,
    /// The files with references that the caller has to change.
    left: Vec<String>,
}

/// Renames a file of the folder and every reference to it
#[utoipa::path(post, path = "/rename", tag = "folder", security(("token" = ["library:publish"])),
    request_body = RenameBody, responses((status = 200, body = RenamedFile)))]
async fn rename_in_folder(
    State(state): State<FolderState>,
    caller: ApiCaller,
    request: Unread,
) -> Result<Response, Problem> {
    let mut operation = state.begin(caller, "api/folder/rename", Scope::Publish)?;
    let answer = async {
        require_origin(request.headers())?;
        let RenameBody { from, to, digest } = request.json(&state.endpoint).await?;
        operation.note("path", &from);
        operation.note("to", &to);
        for path in [&from, &to] {
            state.admit_path(&operation, path, Access::Change).await?;
        }
        let (api, caller) = (state.api.clone(), operation.caller().clone());
        let is_administrator = operation.has(Scope::Admin);
        let work =
            move || api.analyze(|analyzer| renamed(&api.folder, analyzer, (&from, &to), digest, is_administrator));
        // A task of its own: a rename that has begun is completed.
        let renamed = tokio::spawn(async move { in_pool(&caller, work).await }).await;
        let renamed = renamed.map_err(|_| Problem::internal())??.map_err(Problem::from)?;
        state.reload().await;
        etag::changed(StatusCode::OK, &renamed, &digest)
    }
    .await;
    Ok(operation.end(answer))
}

fn renamed(
    folder: &EditableFolder,
    analyzer: &mut Analyzer,
    (from, to): (&str, &str),
    digest: Digest,
    is_administrator: bool,
) -> Result<RenamedFile, EditError> {
    // A library that cannot be analysed has no prompts to refer to.
    let mut name_of = |path: &str| {
        let analysis = analyzer.analyze(&[].into()).ok()?;
        analysis.prompt(path).map(|prompt| prompt.name().to_string())
    };
    let old_name = name_of(from);
    folder.rename(from, to, |now| Digest::of(now) == digest)?;
    let renaming = Renaming::new(from, to, (old_name, name_of(to)));
    let (mut changed, mut left) = (Vec::new(), Vec::new());
    for ListedFile { path, .. } in folder.list()? {
        let Ok(text) = folder.read(&path).map_err(drop).and_then(|bytes| String::from_utf8(bytes).map_err(drop)) else {
            continue;
        };
        let Some(edited) = renaming.edited(&path, &text) else { continue };
        let is_permitted = is_administrator || !is_for_administrators(folder, &path, Access::Change);
        match is_permitted && folder.replace(&path, edited.as_bytes(), |now| now == text.as_bytes()).is_ok() {
            true => changed.push(path),
            false => left.push(path),
        }
    }
    Ok(RenamedFile { changed, left })
}

/// Analyses unsaved files of the folder without storing them
#[utoipa::path(post, path = "/analysis", tag = "folder", security(("token" = ["library:read"])),
    request_body = AnalysisBody, responses((status = 200, body = AnalysisResult)))]
async fn analyze_folder(
    State(state): State<FolderState>,
    caller: ApiCaller,
    request: Unread,
) -> Result<Response, Problem> {
    let mut operation = state.begin(caller, "api/folder/analysis", Scope::Read)?;
    let answer = async {
        let body: AnalysisBody = request.json(&state.endpoint).await?;
        let question = Question::of(body)?;
        operation.note("path", question.path());
        // Unsaved settings could raise the limits of a preview.
        for path in question.paths() {
            state.admit_path(&operation, path, Access::Read).await?;
        }
        let api = state.api.clone();
        let result = in_pool(operation.caller(), move || {
            api.analyze(|analyzer| question.answer(analyzer, |prompt| golden_files(&api.folder, prompt)))
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

/// Whether a path leads to the library's settings, also on a file system that ignores case, or a change is one of a
/// prompt that another program obeys too, in its hidden folder.
fn is_for_administrators(folder: &EditableFolder, path: &str, access: Access) -> bool {
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
            EditError::InvalidPath(_)
            | EditError::Outside
            | EditError::Obeyed
            | EditError::NotAFile
            | EditError::Link => Problem::invalid(format!("The path is refused: {detail}")),
            EditError::NotFound => Problem::not_found("The file"),
            EditError::Exists | EditError::SameIgnoringCase { .. } => Problem::exists(detail),
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

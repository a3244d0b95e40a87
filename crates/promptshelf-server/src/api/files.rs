//! Files of channels: lists, contents, differences.

use std::collections::BTreeMap;

use axum::{
    extract::State,
    http::{HeaderMap, HeaderValue, header},
    response::{IntoResponse, Response},
};
use promptshelf_store::{ChannelName, Digest, FileChange, FileEntry, Served};

use super::{
    etag::{self, Tag},
    model::{Diff, DiffQuery, FileQuery, PromptDiff, Tree, TreeQuery},
    operation::{ApiCaller, ApiState, Scope},
    problem::Problem,
    request::{ApiPath, ApiQuery, page_size, page_size_up_to},
};

const MAX_TREE_PAGE: usize = 10_000;

/// Lists the files of a revision
#[utoipa::path(get, path = "/channels/{channel}/tree", tag = "files", security(("token" = ["library:read"])),
    params(("channel" = ChannelName, Path), TreeQuery), responses((status = 200, body = Tree), (status = 304)))]
pub(super) async fn get_tree(
    State(state): State<ApiState>,
    caller: ApiCaller,
    ApiPath(channel): ApiPath<ChannelName>,
    ApiQuery(query): ApiQuery<TreeQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let operation = state.begin_on(&channel, caller.0, "api/tree", &[Scope::Read])?;
    let answer = async {
        let limit = page_size_up_to(MAX_TREE_PAGE, query.limit)?;
        let (head, files) = state.store().await?.files(&channel, query.revision).await?;
        let (files, next) = page(files, query.after.as_deref(), limit, |file: &FileEntry| &file.path);
        etag::json(&headers, &Tree { head, files, next })
    }
    .await;
    Ok(operation.end(answer))
}

/// Returns the content of a file; its ETag is the digest
#[utoipa::path(get, path = "/channels/{channel}/files/{*path}", tag = "files", security(("token" = ["library:read"])),
    params(("channel" = ChannelName, Path),
        ("path" = String, Path, description = "The path of the file. It may contain `/`"), FileQuery),
    responses((status = 200, description = "The bytes of the file, as text/plain in UTF-8 if they are text", body = String, content_type = "text/plain"), (status = 304)))]
pub(super) async fn get_file(
    State(state): State<ApiState>,
    caller: ApiCaller,
    ApiPath((channel, path)): ApiPath<(ChannelName, String)>,
    ApiQuery(query): ApiQuery<FileQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let mut operation = state.begin_on(&channel, caller.0, "api/file", &[Scope::Read])?;
    operation.note("path", &path);
    let answer = async {
        let store = state.store().await?;
        let (head, file) = store.file(&channel, query.revision, &path).await?;
        let missing = || Problem::not_found(&format!("The file {path:?} at revision {}", head.revision));
        let file = file.ok_or_else(missing)?;
        let contents = store.blobs(&[file.digest]).await?;
        let (_, bytes) = contents.into_iter().next().ok_or_else(missing)?;
        let kind = match std::str::from_utf8(&bytes) {
            Ok(_) => "text/plain; charset=utf-8",
            Err(_) => "application/octet-stream",
        };
        let mut response = bytes.to_vec().into_response();
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        response.headers_mut().insert(header::CONTENT_DISPOSITION, HeaderValue::from_static("attachment"));
        etag::conditional(&headers, &Tag::of_file(&file.digest), response)
    }
    .await;
    Ok(operation.end(answer))
}

/// Compares two revisions, of one channel or of two
#[utoipa::path(get, path = "/channels/{channel}/diff", tag = "files", security(("token" = ["library:read"])),
    params(("channel" = ChannelName, Path), DiffQuery), responses((status = 200, body = Diff), (status = 304)))]
pub(super) async fn get_diff(
    State(state): State<ApiState>,
    caller: ApiCaller,
    ApiPath(channel): ApiPath<ChannelName>,
    ApiQuery(query): ApiQuery<DiffQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let operation = state.begin_on(&channel, caller.0, "api/diff", &[Scope::Read])?;
    let answer = async {
        let limit = page_size(query.limit)?;
        let other = query.to_channel.as_ref().unwrap_or(&channel);
        operation.require_channel(other)?;
        let ((from, from_digest), left, served_left) = at(&state, &channel, Some(query.from)).await?;
        let ((to, to_digest), right, served_right) = at(&state, other, query.to).await?;
        let files = changed_files(left, right);
        let (files, next) = page(files, query.after.as_deref(), limit, |file: &FileChange| &file.path);
        let prompts = changed_prompts(served_left, served_right);
        etag::json(&headers, &Diff { from, from_digest, to, to_digest, files, next, prompts })
    }
    .await;
    Ok(operation.end(answer))
}

/// One side of a comparison: the number and the digest of the revision, its files and its prompts.
async fn at(
    state: &ApiState,
    channel: &ChannelName,
    revision: Option<u64>,
) -> Result<((u64, Option<Digest>), Vec<FileEntry>, Vec<Served>), Problem> {
    let store = state.store().await?;
    if revision == Some(0) {
        store.channel(channel).await?;
        return Ok(((0, None), Vec::new(), Vec::new()));
    }
    let (head, files) = store.files(channel, revision).await?;
    if head.revision == 0 {
        return Ok(((0, None), files, Vec::new()));
    }
    let served = store.served(channel, head.revision).await?;
    Ok(((head.revision, head.digest), files, served))
}

fn changed_files(left: Vec<FileEntry>, right: Vec<FileEntry>) -> Vec<FileChange> {
    let mut sides: BTreeMap<String, FileChange> = BTreeMap::new();
    let empty = |path: &str| FileChange { path: path.to_owned(), before: None, after: None };
    for file in left {
        sides.entry(file.path.clone()).or_insert_with(|| empty(&file.path)).before = Some(file.digest);
    }
    for file in right {
        sides.entry(file.path.clone()).or_insert_with(|| empty(&file.path)).after = Some(file.digest);
    }
    sides.into_values().filter(|change| change.before != change.after).collect()
}

fn changed_prompts(left: Vec<Served>, right: Vec<Served>) -> Vec<PromptDiff> {
    let mut sides: BTreeMap<String, PromptDiff> = BTreeMap::new();
    let empty = |name: &str| PromptDiff { name: name.to_owned(), from: None, to: None };
    for prompt in left {
        sides.entry(prompt.name.clone()).or_insert_with(|| empty(&prompt.name)).from = Some(prompt.version);
    }
    for prompt in right {
        sides.entry(prompt.name.clone()).or_insert_with(|| empty(&prompt.name)).to = Some(prompt.version);
    }
    sides.into_values().filter(|prompt| prompt.from != prompt.to).collect()
}

/// Cuts a page out of sorted items, and returns the key of its last item unless it is the last page. The key is a place in
/// the order and names no revision: every page has the digest of its revision.
pub(super) fn page<T>(
    items: Vec<T>,
    after: Option<&str>,
    limit: usize,
    path: impl Fn(&T) -> &String,
) -> (Vec<T>, Option<String>) {
    let mut items = items.into_iter().filter(|item| after.is_none_or(|after| path(item).as_str() > after));
    let shown: Vec<T> = items.by_ref().take(limit).collect();
    let next = items.next().and_then(|_| shown.last()).map(|last| path(last).clone());
    (shown, next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_cover_all_items_once() {
        let items: Vec<String> = ["a", "b", "c", "d", "e"].map(str::to_owned).to_vec();
        let mut seen = Vec::new();
        let mut after = None;
        loop {
            let (shown, next) = page(items.clone(), after.as_deref(), 2, |item: &String| item);
            seen.extend(shown);
            after = next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(seen, items);
        assert_eq!(page(items.clone(), None, 5, |item: &String| item).1, None);
        assert_eq!(page(Vec::new(), None, 5, |item: &String| item), (Vec::new(), None));
    }
}

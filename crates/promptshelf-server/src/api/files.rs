//! Files of channels: lists, contents, differences.

use std::collections::BTreeMap;

use axum::{
    http::{HeaderValue, header},
    response::IntoResponse,
};
use promptshelf_store::{ChannelName, Digest, FileChange, FileEntry, Served};
use promptshelf_wire::{Diff, Page, PromptDiff, Tree, op};

use super::{
    ApiState,
    call::{Answer, Call, Context, Operations},
    etag::{self, Tag},
    problem::Problem,
    request::{MAX_ALL, MAX_LIMIT},
};

/// Adds the operations of this module.
pub(super) fn operations(all: Operations<ApiState>) -> Operations<ApiState> {
    all.on(get_tree).on(get_file).on(get_diff)
}

async fn get_tree(call: Call<op::GetTree>) -> Answer {
    let channel = &call.path.channel;
    let (head, files) = call.store().await?.files(channel, call.query.revision).await?;
    let Page { items, next } = call.paging.of_sorted(files, MAX_ALL, |file| file.path.clone())?;
    call.answer(&Tree { head, items, next })
}

async fn get_file(call: Call<op::GetFile>) -> Answer {
    let channel = &call.path.channel;
    let path = &call.path.path;
    call.note("path", path);
    let store = call.store().await?;
    let (head, file) = store.file(channel, call.query.revision, path).await?;
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
    etag::conditional(&call.headers, &Tag::of_file(&file.digest), response)
}

async fn get_diff(call: Call<op::GetDiff>) -> Answer {
    let channel = &call.path.channel;
    let other = call.query.to_channel.as_ref().unwrap_or(channel);
    call.require_channel(other)?;
    let ((from, from_digest), left, served_left) = at(&call, channel, Some(call.query.from)).await?;
    let ((to, to_digest), right, served_right) = at(&call, other, call.query.to).await?;
    let files = changed_files(left, right);
    let Page { items, next } = call.paging.of_sorted(files, MAX_LIMIT, |file| file.path.clone())?;
    let prompts = changed_prompts(served_left, served_right);
    call.answer(&Diff { from, from_digest, to, to_digest, items, next, prompts })
}

/// One side of a comparison: the number and the digest of the revision, its files and its prompts.
async fn at(
    call: &Context,
    channel: &ChannelName,
    revision: Option<u64>,
) -> Result<((u64, Option<Digest>), Vec<FileEntry>, Vec<Served>), Problem> {
    let store = call.store().await?;
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
    let mut sides: BTreeMap<String, [Option<Served>; 2]> = BTreeMap::new();
    for (at, served) in [left, right].into_iter().enumerate() {
        for prompt in served {
            let name = prompt.name.clone();
            sides.entry(name).or_default()[at] = Some(prompt);
        }
    }
    let digest = |side: &Option<Served>| side.as_ref().map(|prompt| prompt.digest);
    let changed = sides.into_iter().filter(|(_, [from, to])| digest(from) != digest(to));
    let version = |side: Option<Served>| side.map(|prompt| prompt.version);
    changed.map(|(name, [from, to])| PromptDiff { name, from: version(from), to: version(to) }).collect()
}

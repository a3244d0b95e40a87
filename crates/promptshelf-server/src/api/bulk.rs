//! Many contents in one request: reading files, and uploading contents for later proposals.

use std::{collections::BTreeMap, sync::Arc};

use axum::http::StatusCode;
use promptshelf_store::{Digest, FileEntry, StoreError};
use promptshelf_wire::{
    FileContent, FileContents, FileWithContent, FilesBody, UploadBody, UploadProgress, Uploaded, op,
};

use super::{
    ApiState,
    call::{Answer, Call, Operations},
    channels::target_roles,
    content::{MAX_PATH, decoded},
    problem::Problem,
};

/// The bytes that a page of contents has at most, unless one file is larger.
const PAGE_BYTES: u64 = 4 << 20;

const MAX_PATHS: usize = 5_000;

/// Adds the operations of this module.
pub(super) fn operations(all: Operations<ApiState>) -> Operations<ApiState> {
    all.on(read_contents).on(upload).on(upload_part).on(get_upload)
}

async fn read_contents(call: Call<op::ReadContents>) -> Answer {
    let channel = &call.path.channel;
    let body: FilesBody = call.body().await?;
    if body.paths.len() > MAX_PATHS {
        return Err(Problem::invalid(format!("{} paths: at most {MAX_PATHS} are accepted", body.paths.len())));
    }
    let store = call.store().await?;
    let (head, present) = store.files(channel, body.revision).await?;
    call.note_number("revision", head.revision);
    call.note_number("files", body.paths.len() as u64);
    let page = page(&present, &body.paths).map_err(|path| {
        let path = &path[..path.floor_char_boundary(MAX_PATH)];
        Problem::not_found(&format!("The file {path:?} at revision {}", head.revision))
    })?;
    let digests: Vec<Digest> = page.iter().map(|file| file.digest).collect();
    let contents: BTreeMap<Digest, Arc<[u8]>> = store.blobs(&digests).await?.into_iter().collect();
    let content = |file: &FileEntry| {
        let content = FileContent::of(contents.get(&file.digest)?);
        Some(FileWithContent { path: file.path.clone(), digest: file.digest, content })
    };
    let files = page.iter().filter_map(|file| content(file)).collect();
    let answer = FileContents { revision: head.revision, files };
    call.answer(&answer)
}

/// Returns the first of the wanted files that fit a page; the path of one that does not exist as an error.
fn page<'f>(present: &'f [FileEntry], wanted: &[String]) -> Result<Vec<&'f FileEntry>, String> {
    let by_path: BTreeMap<&str, &FileEntry> = present.iter().map(|file| (file.path.as_str(), file)).collect();
    let mut bytes = 0;
    let mut page = Vec::new();
    for path in wanted {
        let file = by_path.get(path.as_str()).ok_or_else(|| path.clone())?;
        bytes += file.size;
        if bytes > PAGE_BYTES && !page.is_empty() {
            break;
        }
        page.push(*file);
    }
    Ok(page)
}

async fn upload(call: Call<op::Upload>) -> Answer {
    let channel = &call.path.channel;
    let body: UploadBody = call.body().await?;
    let roles = target_roles(&call, channel).await?;
    call.require_role(&roles.propose, "propose")?;
    let decoded = body.contents.into_iter().map(|content| decoded(content, "A content"));
    let contents = decoded.collect::<Result<Vec<Vec<u8>>, Problem>>()?;
    call.note_number("contents", contents.len() as u64);
    call.note_number("bytes", contents.iter().map(|content| content.len() as u64).sum());
    let digests = call.store().await?.add_contents(contents, &call.actor().name).await?;
    let answer = Uploaded { digests };
    call.answer(&answer)
}

/// The largest part of a content: proxies often accept no more than 1 MiB.
const PART_BYTES: usize = 768 << 10;

async fn upload_part(call: Call<op::UploadPart>) -> Answer {
    let (channel, digest) = (&call.path.channel, call.path.digest);
    let op::PartQuery { offset, size } = call.query;
    let bytes = call.bytes().await?;
    let roles = target_roles(&call, channel).await?;
    call.require_role(&roles.propose, "propose")?;
    call.note_number("offset", offset);
    call.note_number("bytes", bytes.len() as u64);
    if bytes.len() > PART_BYTES {
        let detail = format!("The part has {} bytes: at most {PART_BYTES} are accepted", bytes.len());
        return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", "The part is too large", detail));
    }
    // The last part needs all of them.
    let is_last = offset.saturating_add(bytes.len() as u64) >= size;
    let _memory = if is_last { call.state.api.referred.take(size).await } else { None };
    let caller = call.actor().name;
    let received = call.store().await?.add_part(&caller, digest, size, offset, &bytes).await;
    let received = received.map_err(|error| match error {
        StoreError::Changed { .. } => Problem::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "digest-mismatch",
            "The content does not fit its digest",
            "The parts together do not have this SHA-256, and are removed: the file has changed meanwhile, or a part was \
             damaged; start again",
        ),
        error => error.into(),
    })?;
    call.answer(&UploadProgress { received, is_complete: received == size })
}

async fn get_upload(call: Call<op::GetUpload>) -> Answer {
    let (received, is_complete) = call.store().await?.uploaded(&call.actor().name, call.path.digest).await?;
    call.answer(&UploadProgress { received, is_complete })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_has_one_file_and_more_while_they_fit() {
        let digest = Digest::of(b"");
        let file = |path: &str, size| FileEntry { path: path.to_owned(), digest, size };
        let present =
            [file("large", PAGE_BYTES + 1), file("a", PAGE_BYTES / 2), file("b", PAGE_BYTES / 2), file("c", 1)];
        let names = |wanted: &[&str]| {
            let wanted: Vec<String> = wanted.iter().map(|path| (*path).to_owned()).collect();
            page(&present, &wanted).map(|page| page.iter().map(|file| file.path.clone()).collect::<Vec<_>>())
        };
        assert_eq!(names(&["large", "a"]), Ok(vec!["large".to_owned()]));
        assert_eq!(names(&["a", "b", "c"]), Ok(vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!(names(&["c", "a"]), Ok(vec!["c".to_owned(), "a".to_owned()]));
        assert_eq!(names(&["c", "missing"]), Err("missing".to_owned()));
        assert_eq!(names(&[]), Ok(Vec::new()));
    }
}

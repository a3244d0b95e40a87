//! Files of several requests: trees, contents, and publishing. Contents that do not fit one request are uploaded
//! before the proposal that refers to them.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use http::header;
use promptshelf_source::{MemoryFile, MemoryTree};
use promptshelf_store::{
    Change, ChannelName, Digest, FileEntry, Head, MAX_FILE_BYTES, MAX_PROPOSAL_BYTES, Published, StoreError,
};
use promptshelf_wire::{ChangeBody, FileContent, FilesBody, NewContent, ProposalBody, UploadBody, op};

use super::{
    FileProgress,
    connection::{Answer, CallError, Connection, PAGE},
};

pub(super) type ChangedContent = (String, Option<Bytes>, Option<Bytes>);

type Bytes = Arc<[u8]>;

const TREE_PAGE: usize = 10_000;

/// The largest number of paths in a request for contents, and of their bytes.
const MAX_PATHS: usize = 1_000;

const MAX_PATH_BYTES: usize = 256 << 10;

/// The bytes of contents in one request; a larger file is uploaded in parts. Proxies often accept no more than 1 MiB.
const UPLOAD_BYTES: usize = 512 << 10;

/// The size from which on a file is read by itself, as bytes.
const LARGE_FILE: u64 = 4 << 20;

/// How often parts of an upload that another command makes at the same time are followed.
const MAX_RESUMED: usize = 100;

fn corrupt(what: impl Into<String>) -> StoreError {
    StoreError::Corrupt { what: what.into() }
}

fn bytes(content: FileContent) -> Answer<Bytes> {
    Ok(content.into_bytes().map_err(|_| corrupt("a content in the answer"))?.into())
}

/// Changes to publish.
pub(super) struct Publication {
    pub(super) channel: ChannelName,
    /// An open proposal to replace.
    pub(super) proposal: Option<u64>,
    pub(super) base: u64,
    pub(super) message: String,
    pub(super) emergency: Option<String>,
    pub(super) changes: Vec<Change>,
    pub(super) dry_run: bool,
}

impl Connection {
    pub(super) async fn proposal_contents(&self, id: u64) -> Answer<Vec<ChangedContent>> {
        let mut contents: Vec<ChangedContent> = Vec::new();
        let (mut digest, mut cursor) = (None, None::<String>);
        loop {
            let query = op::ContentsQuery::default();
            let page = self.page(&op::GetContents { id }, &query, cursor.as_ref(), PAGE).await?;
            if *digest.get_or_insert(page.digest) != page.digest {
                return Err(StoreError::Changed { what: format!("proposal {id}") }.into());
            }
            for file in page.items {
                let [before, after] = [file.before, file.after].map(|content| content.map(bytes));
                contents.push((file.path, before.transpose()?, after.transpose()?));
            }
            match page.next.filter(|next| cursor.as_ref() != Some(next)) {
                Some(next) => cursor = Some(next),
                None => return Ok(contents),
            }
        }
    }

    pub(super) async fn files(&self, channel: &ChannelName, revision: Option<u64>) -> Answer<(Head, Vec<FileEntry>)> {
        let mut files: Vec<FileEntry> = Vec::new();
        let (mut head, mut cursor) = (None::<Head>, None::<String>);
        loop {
            let revision = head.as_ref().map(|head| head.revision).or(revision);
            let tree = op::GetTree { channel: channel.clone() };
            let page = self.page(&tree, &op::TreeQuery { revision }, cursor.as_ref(), TREE_PAGE).await?;
            let first = head.get_or_insert_with(|| page.head.clone());
            if *first != page.head {
                return Err(StoreError::Changed { what: format!("the channel `{channel}`") }.into());
            }
            files.extend(page.items);
            match page.next.filter(|next| cursor.as_ref() != Some(next)) {
                Some(next) => cursor = Some(next),
                None => return Ok((first.clone(), files)),
            }
        }
    }

    pub(super) async fn contents(
        &self,
        channel: &ChannelName,
        revision: u64,
        files: &[&FileEntry],
    ) -> Answer<Vec<(Digest, Bytes)>> {
        let mut contents = Vec::with_capacity(files.len());
        let mut rest = files;
        while let Some(first) = rest.first() {
            if first.size > LARGE_FILE {
                contents.push((first.digest, self.file(channel, revision, first).await?));
                rest = &rest[1..];
                continue;
            }
            let mut size = 0;
            let fits = |file: &&&FileEntry| {
                size += file.path.len();
                size <= MAX_PATH_BYTES
            };
            let small = rest.iter().take_while(|file| file.size <= LARGE_FILE);
            let number = small.take(MAX_PATHS).take_while(fits).count().max(1);
            let paths = rest[..number].iter().map(|file| file.path.clone()).collect();
            let body = FilesBody { revision: Some(revision), paths };
            let page = self.send(&op::ReadContents { channel: channel.clone() }, &body).await?;
            let received = page.files.len();
            for (file, found) in rest.iter().zip(page.files) {
                let content = bytes(found.content)?;
                if found.path != file.path || Digest::of(&content) != file.digest {
                    return Err(corrupt(format!("{} in the answer", file.path)).into());
                }
                contents.push((file.digest, content));
            }
            if received == 0 || received > number {
                return Err(corrupt("the list of files in the answer").into());
            }
            rest = &rest[received..];
        }
        Ok(contents)
    }

    /// Reads a file as it is, which is shorter than as JSON.
    async fn file(&self, channel: &ChannelName, revision: u64, file: &FileEntry) -> Answer<Bytes> {
        let operation = op::GetFile { channel: channel.clone(), path: file.path.clone() };
        let content = self.bytes(&operation, &op::FileQuery { revision: Some(revision) }).await?;
        if Digest::of(&content) != file.digest {
            return Err(corrupt(format!("{} in the answer", file.path)).into());
        }
        Ok(content.into())
    }

    pub(super) async fn tree(&self, channel: &ChannelName, revision: Option<u64>) -> Answer<(Head, MemoryTree)> {
        let (head, files) = self.files(channel, revision).await?;
        let listed: Vec<&FileEntry> = files.iter().collect();
        let contents: HashMap<Digest, Bytes> =
            self.contents(channel, head.revision, &listed).await?.into_iter().collect();
        let file = |file: &FileEntry| Some((file.path.clone(), MemoryFile::new(contents.get(&file.digest)?.clone())));
        Ok((head, files.iter().filter_map(file).collect()))
    }

    pub(super) async fn publish(&self, publication: Publication) -> Answer<Published> {
        let Publication { channel, proposal, base, message, emergency, changes, dry_run } = publication;
        // Before anything is uploaded for a proposal of another channel.
        let replaced = match proposal {
            None => None,
            Some(id) => {
                let (present, tag) = self.tagged(&op::GetProposal { id }).await?;
                if present.channel != channel {
                    let reason = format!("proposal {id} is one of the channel `{}`", present.channel);
                    return Err(StoreError::State { reason }.into());
                }
                Some((id, tag))
            }
        };
        let size = fitting(&changes)?;
        let is_uploaded = size > UPLOAD_BYTES;
        if is_uploaded {
            self.upload(&channel, &changes).await?;
        }
        let content = |bytes: &Bytes| {
            if is_uploaded { NewContent::Digest(Digest::of(bytes)) } else { FileContent::of(bytes).into() }
        };
        let change = |Change { path, before, after }: Change| {
            let content = after.as_ref().map(content);
            ChangeBody { path, before, content }
        };
        let changes = changes.into_iter().map(change).collect();
        let body = ProposalBody { base, message, changes, emergency, dry_run };
        match replaced {
            None => self.send(&op::CreateProposal { channel }, &body).await,
            Some((id, tag)) => {
                let condition = Some((header::IF_MATCH, tag));
                let replaced = self.send_if(&op::ReplaceProposal { id }, &body, condition).await;
                replaced.map_err(|error| error.about(format!("proposal {id}")))
            }
        }
    }

    /// Uploads the new contents, each once.
    async fn upload(&self, channel: &ChannelName, changes: &[Change]) -> Answer<()> {
        let new = changes.iter().filter_map(|change| change.after.as_ref());
        let contents: BTreeMap<Digest, &Bytes> = new.map(|bytes| (Digest::of(bytes), bytes)).collect();
        let (large, small): (Vec<_>, Vec<_>) =
            contents.into_iter().partition(|(_, content)| content.len() > UPLOAD_BYTES);
        let mut progress = FileProgress::new(large.len() + small.len());
        for (digest, content) in large {
            self.upload_in_parts(channel, digest, content).await?;
            progress.advance(1);
        }
        let mut rest = small.as_slice();
        while !rest.is_empty() {
            let mut size = 0;
            let fits = |(_, content): &&(Digest, &Bytes)| {
                size += content.len();
                size <= UPLOAD_BYTES
            };
            let number = rest.iter().take_while(fits).count().max(1);
            let (batch, later) = rest.split_at(number);
            rest = later;
            let contents = batch.iter().map(|(_, content)| FileContent::of(content)).collect();
            let uploaded = self.send(&op::Upload { channel: channel.clone() }, &UploadBody { contents }).await?;
            if !uploaded.digests.iter().eq(batch.iter().map(|(digest, _)| digest)) {
                return Err(corrupt("an uploaded content").into());
            }
            progress.advance(number);
        }
        Ok(())
    }

    /// Uploads a large content, from where an earlier attempt has ended.
    async fn upload_in_parts(&self, channel: &ChannelName, digest: Digest, content: &Bytes) -> Answer<()> {
        let (channel, size) = (channel.clone(), content.len() as u64);
        let state = op::GetUpload { channel: channel.clone(), digest };
        let mut progress = self.get(&state).await?;
        for resumed in 0.. {
            if progress.is_complete {
                return Ok(());
            }
            let offset = progress.received;
            let start = usize::try_from(offset).unwrap_or(usize::MAX).min(content.len());
            let end = content.len().min(start + UPLOAD_BYTES);
            let operation = op::UploadPart { channel: channel.clone(), digest };
            progress = match self
                .send_bytes(&operation, &op::PartQuery { offset, size }, content[start..end].to_vec())
                .await
            {
                // The same file is uploaded by another command.
                Err(CallError::Store(StoreError::State { .. })) if resumed < MAX_RESUMED => self.get(&state).await?,
                sent => sent?,
            };
            if !progress.is_complete && progress.received <= offset {
                return Err(corrupt("the state of an upload").into());
            }
        }
        Ok(())
    }
}

/// Returns the size of all new contents. Names a file that no server accepts, before anything is sent.
fn fitting(changes: &[Change]) -> Answer<usize> {
    let mut all = 0;
    for Change { path, after, .. } in changes {
        let size = after.as_ref().map_or(0, |bytes| bytes.len());
        if size > MAX_FILE_BYTES {
            let reason = format!("`{path}` has {size} bytes: at most {MAX_FILE_BYTES} are accepted");
            return Err(StoreError::InvalidInput { reason }.into());
        }
        all += size;
    }
    if all > MAX_PROPOSAL_BYTES {
        let reason = format!("the changes have {all} bytes: at most {MAX_PROPOSAL_BYTES} are accepted in one proposal");
        return Err(StoreError::InvalidInput { reason }.into());
    }
    Ok(all)
}

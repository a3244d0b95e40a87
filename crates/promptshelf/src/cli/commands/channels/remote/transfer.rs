//! Files in both directions: lists, contents, and publishing. Contents that do not fit one request are uploaded before
//! the proposal that refers to them.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use http::{Method, header};
use promptshelf_source::{MemoryFile, MemoryTree};
use promptshelf_store::{Change, ChannelName, Digest, FileEntry, Head, Proposal, Publish, Published, StoreError};
use serde_json::json;

use super::{
    connection::{Remote, Request},
    error::about,
    model::{Bytes, ChangeBody, Content, FileContents, Tree, Uploaded},
};
use crate::commands::channels::{answer::Answer, progress::FileProgress};

const TREE_PAGE: usize = 10_000;
/// The largest number of paths in a request for contents, and of their bytes.
const MAX_PATHS: usize = 1_000;
const MAX_PATH_BYTES: usize = 256 << 10;
/// The bytes of contents in one request, unless one file is larger. Proxies often accept no more than 1 MiB.
const UPLOAD_BYTES: usize = 512 << 10;

impl Remote {
    pub(in crate::commands::channels) async fn files(
        &self,
        channel: &ChannelName,
        revision: Option<u64>,
    ) -> Answer<(Head, Vec<FileEntry>)> {
        let mut files: Vec<FileEntry> = Vec::new();
        let (mut head, mut after) = (None::<Head>, None::<String>);
        loop {
            let revision = head.as_ref().map(|head| head.revision).or(revision);
            let mut words = vec![("limit", TREE_PAGE.to_string())];
            words.extend(revision.map(|revision| ("revision", revision.to_string())));
            words.extend(after.iter().map(|after| ("after", after.clone())));
            let page: Tree = self.get(&format!("channels/{channel}/tree"), words).await?;
            let first = head.get_or_insert_with(|| page.head.clone());
            if *first != page.head {
                return Err(StoreError::Changed { what: format!("the channel `{channel}`") }.into());
            }
            files.extend(page.files);
            match page.next.filter(|next| after.as_ref().is_none_or(|after| next > after)) {
                Some(next) => after = Some(next),
                None => return Ok((first.clone(), files)),
            }
        }
    }

    pub(in crate::commands::channels) async fn contents(
        &self,
        channel: &ChannelName,
        revision: u64,
        files: &[&FileEntry],
    ) -> Answer<Vec<(Digest, Bytes)>> {
        let mut contents = Vec::with_capacity(files.len());
        let mut rest = files;
        while !rest.is_empty() {
            let mut bytes = 0;
            let fits = |file: &&&FileEntry| {
                bytes += file.path.len();
                bytes <= MAX_PATH_BYTES
            };
            let number = rest.iter().take(MAX_PATHS).take_while(fits).count().max(1);
            let paths: Vec<&str> = rest[..number].iter().map(|file| file.path.as_str()).collect();
            let path = format!("channels/{channel}/contents");
            let body = json!({ "revision": revision, "paths": paths });
            let page: FileContents = self.call(Request::new(Method::POST, &path).body(&body)).await?;
            let received = page.files.len();
            for (file, found) in rest.iter().zip(page.files) {
                let content = found.content.bytes()?;
                if found.path != file.path || Digest::of(&content) != file.digest {
                    return Err(StoreError::Corrupt { what: format!("{} in the server's answer", file.path) }.into());
                }
                contents.push((file.digest, content));
            }
            if received == 0 || received > number {
                return Err(StoreError::Corrupt { what: "the list of files in the server's answer".to_owned() }.into());
            }
            rest = &rest[received..];
        }
        Ok(contents)
    }

    pub(in crate::commands::channels) async fn tree(
        &self,
        channel: &ChannelName,
        revision: Option<u64>,
    ) -> Answer<(Head, MemoryTree)> {
        let (head, files) = self.files(channel, revision).await?;
        let listed: Vec<&FileEntry> = files.iter().collect();
        let contents: HashMap<Digest, Bytes> =
            self.contents(channel, head.revision, &listed).await?.into_iter().collect();
        let file = |file: &FileEntry| Some((file.path.clone(), MemoryFile::new(contents.get(&file.digest)?.clone())));
        Ok((head, files.iter().filter_map(file).collect()))
    }

    pub(in crate::commands::channels) async fn publish(&self, publish: Publish) -> Answer<Published> {
        let Publish { channel, base, message, proposal, emergency, changes, dry_run, .. } = publish;
        // Before anything is uploaded for a proposal of another channel.
        let replaced = match proposal {
            None => None,
            Some(id) => {
                let path = format!("proposals/{id}");
                let (present, tag) = self.tagged::<Proposal>(&path).await?;
                if present.channel != channel {
                    let reason = format!("proposal {id} is one of the channel `{}`", present.channel);
                    return Err(StoreError::State { reason }.into());
                }
                Some((path, tag))
            }
        };
        let size = changes.iter().filter_map(|change| change.after.as_ref()).map(|bytes| bytes.len()).sum::<usize>();
        let is_uploaded = size > UPLOAD_BYTES;
        if is_uploaded {
            self.upload(&channel, &changes).await?;
        }
        let content = |bytes: &Arc<[u8]>| match is_uploaded {
            true => Content::Digest(Digest::of(bytes)),
            false => Content::of(bytes),
        };
        let changes: Vec<ChangeBody<'_>> = changes
            .iter()
            .map(|Change { path, before, after }| ChangeBody {
                path,
                before: *before,
                content: after.as_ref().map(content),
            })
            .collect();
        let body = json!({
            "base": base,
            "message": message,
            "changes": changes,
            "emergency": emergency,
            "dryRun": dry_run,
        });
        let request = match &replaced {
            None => Request::new(Method::POST, &format!("channels/{channel}/proposals")),
            Some((path, tag)) => Request::new(Method::PUT, path).condition((header::IF_MATCH, tag.clone())),
        };
        let published = self.change(request.body(&body)).await;
        published.map_err(|error| about(error, &format!("proposal {}", proposal.unwrap_or_default())))
    }

    /// Uploads the new contents, each once.
    async fn upload(&self, channel: &ChannelName, changes: &[Change]) -> Answer<()> {
        let new = changes.iter().filter_map(|change| change.after.as_ref());
        let contents: BTreeMap<Digest, &Arc<[u8]>> = new.map(|bytes| (Digest::of(bytes), bytes)).collect();
        let contents: Vec<(Digest, &Arc<[u8]>)> = contents.into_iter().collect();
        let path = format!("channels/{channel}/uploads");
        let mut progress = FileProgress::new(contents.len());
        let mut rest = contents.as_slice();
        while !rest.is_empty() {
            let mut bytes = 0;
            let fits = |(_, content): &&(Digest, &Arc<[u8]>)| {
                bytes += content.len();
                bytes <= UPLOAD_BYTES
            };
            let number = rest.iter().take_while(fits).count().max(1);
            let (batch, later) = rest.split_at(number);
            rest = later;
            let encoded: Vec<Content> = batch.iter().map(|(_, content)| Content::of(content)).collect();
            let request = Request::new(Method::POST, &path).body(&json!({ "contents": encoded }));
            let uploaded: Uploaded = self.call(request).await?;
            if !uploaded.digests.iter().eq(batch.iter().map(|(digest, _)| digest)) {
                return Err(StoreError::Corrupt { what: "an uploaded content".to_owned() }.into());
            }
            progress.advance(number);
        }
        Ok(())
    }
}

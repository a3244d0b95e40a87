//! Contents that are stored before the proposal that refers to them.

use std::{collections::BTreeMap, time::Duration};

use crate::{
    StoreError,
    address::ChannelName,
    database::{Mode, Transaction},
    input,
    model::Digest,
    store::Store,
    tables::{
        blob::{self, Contents},
        channel, upload,
    },
};

impl Store {
    /// Stores contents for later proposals of a caller, and returns the digest of each, in their order.
    /// [`Store::remove_uploads`] and [`Store::gc`] remove those that no proposal refers to.
    ///
    /// # Errors
    ///
    /// [`StoreError::InvalidInput`] for a content that is too large for a file, [`StoreError::Quota`], and errors of the
    /// database. Nothing is stored then.
    pub async fn add_contents(&self, contents: Vec<Vec<u8>>, caller: &str) -> Result<Vec<Digest>, StoreError> {
        contents.iter().try_for_each(|content| input::content(content))?;
        let digests: Vec<Digest> = contents.iter().map(|content| Digest::of(content)).collect();
        let contents: Contents = digests.iter().copied().zip(contents.into_iter().map(Into::into)).collect();
        let mut transaction = self.database().begin(Mode::Write).await?;
        let result = async {
            blob::write(&mut transaction, &contents).await?;
            upload::add(&mut transaction, caller, &contents).await?;
            within(&mut transaction, caller, self.quota()).await
        }
        .await;
        transaction.finish(result).await?;
        Ok(digests)
    }

    /// Stores a part of a content for later proposals of a caller: the bytes after the `offset` first ones. Returns the number of
    /// bytes that are stored then. The last part completes the content, which has `size` bytes.
    ///
    /// # Errors
    ///
    /// [`StoreError::Changed`] if the parts together do not have the digest: they are removed. [`StoreError::State`] for a part that
    /// does not follow the stored ones, [`StoreError::InvalidInput`] for a content that is too large for a file or has another
    /// size than its first part said, [`StoreError::Quota`], and errors of the database. Nothing is stored then.
    pub async fn add_part(
        &self,
        caller: &str,
        digest: Digest,
        size: u64,
        offset: u64,
        bytes: &[u8],
    ) -> Result<u64, StoreError> {
        input::size(size)?;
        let mut transaction = self.database().begin(Mode::Write).await?;
        let part = Part { caller, digest, size, offset, bytes };
        let result = add_part(&mut transaction, &part, self.quota()).await;
        transaction.finish(result).await?.ok_or_else(|| StoreError::Changed { what: format!("the content {digest}") })
    }

    /// Returns the number of bytes of a content that a caller has uploaded in parts, and whether it is complete.
    ///
    /// # Errors
    ///
    /// Errors of the database.
    pub async fn uploaded(&self, caller: &str, digest: Digest) -> Result<(u64, bool), StoreError> {
        let mut transaction = self.database().begin(Mode::Read).await?;
        let result = async {
            match upload::size(&mut transaction, caller, digest).await? {
                Some(size) => Ok((size, true)),
                None => {
                    Ok((upload::started(&mut transaction, caller, digest).await?.map_or(0, |it| it.received), false))
                }
            }
        }
        .await;
        transaction.finish(result).await
    }

    /// Forgets uploads of so long ago, and removes their contents if no revision, proposal or other upload has them. Returns
    /// the number of contents and their bytes.
    ///
    /// # Errors
    ///
    /// Errors of the database.
    pub async fn remove_uploads(&self, older_than: Duration) -> Result<(u64, u64), StoreError> {
        let seconds = older_than.as_secs();
        let mut transaction = self.database().begin(Mode::Read).await?;
        let result = upload::has_older(&mut transaction, seconds).await;
        if !transaction.finish(result).await? {
            return Ok((0, 0));
        }
        // Nobody publishes one of them meanwhile.
        let mut transaction = self.database().begin(Mode::Exclusive).await?;
        let result = async {
            upload::remove_older_parts(&mut transaction, seconds).await?;
            let unused = upload::remove_older(&mut transaction, seconds).await?;
            let sizes = blob::sizes(&mut transaction, &unused).await?;
            blob::delete(&mut transaction, &unused).await?;
            Ok((sizes.len() as u64, sizes.values().sum()))
        }
        .await;
        transaction.finish(result).await
    }

    /// Returns the sizes of contents that a caller may refer to by digest: those that the caller has uploaded, and those of the channels
    /// that `is_shown` accepts. Who only knows a digest, or guesses one, learns nothing.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`] for a content that does not exist and for one that belongs to others alike, and errors of
    /// the database.
    pub async fn sizes_known_to(
        &self,
        caller: &str,
        digests: &[Digest],
        is_shown: impl Fn(&ChannelName) -> bool,
    ) -> Result<BTreeMap<Digest, u64>, StoreError> {
        let mut transaction = self.database().begin(Mode::Read).await?;
        let result = sizes(&mut transaction, caller, digests, is_shown).await;
        transaction.finish(result).await
    }
}

struct Part<'b> {
    caller: &'b str,
    digest: Digest,
    size: u64,
    offset: u64,
    bytes: &'b [u8],
}

/// Returns the number of bytes that are stored; `None` if the parts together have another digest, and are removed.
async fn add_part(
    transaction: &mut Transaction,
    part: &Part<'_>,
    quota: Option<u64>,
) -> Result<Option<u64>, StoreError> {
    let Part { caller, digest, size, offset, bytes } = *part;
    if let Some(size) = upload::size(transaction, caller, digest).await? {
        return Ok(Some(size));
    }
    let started = upload::started(transaction, caller, digest).await?;
    let (received, whole) = started.as_ref().map_or((0, size), |started| (started.received, started.whole));
    let end = offset.saturating_add(bytes.len() as u64);
    if whole != size || end > size {
        return Err(StoreError::invalid(format!(
            "the content has {whole} bytes, and the part ends after {end} of {size}"
        )));
    }
    if end <= received {
        return Ok(Some(received));
    }
    if offset != received {
        return Err(StoreError::state(format!("the next part begins after {received} bytes, not after {offset}")));
    }
    if end < size {
        upload::add_part(transaction, caller, digest, (offset, size), bytes, started.map(|it| it.at)).await?;
        within(transaction, caller, quota).await?;
        return Ok(Some(end));
    }
    let mut content = upload::parts(transaction, caller, digest, size).await?;
    content.extend_from_slice(bytes);
    upload::remove_parts(transaction, caller, digest).await?;
    if Digest::of(&content) != digest {
        return Ok(None);
    }
    let contents: Contents = [(digest, content.into())].into();
    blob::write(transaction, &contents).await?;
    upload::add(transaction, caller, &contents).await?;
    within(transaction, caller, quota).await?;
    Ok(Some(size))
}

/// Fails if a caller has stored more than a quota.
pub(crate) async fn within(transaction: &mut Transaction, caller: &str, quota: Option<u64>) -> Result<(), StoreError> {
    let Some(limit) = quota else { return Ok(()) };
    let used = upload::unpublished(transaction, caller).await?;
    if used > limit { Err(StoreError::Quota { limit, used }) } else { Ok(()) }
}

async fn sizes(
    transaction: &mut Transaction,
    caller: &str,
    digests: &[Digest],
    is_shown: impl Fn(&ChannelName) -> bool,
) -> Result<BTreeMap<Digest, u64>, StoreError> {
    let channels = channel::all(transaction).await?.into_iter().filter(|channel| is_shown(&channel.name));
    let channels: Vec<i64> = channels.map(|channel| channel.id).collect();
    let known = upload::known(transaction, caller, &channels, digests).await?;
    if let Some(other) = digests.iter().find(|digest| !known.contains(digest)) {
        return Err(StoreError::not_found(format!("the content {other}")));
    }
    blob::sizes(transaction, digests).await
}

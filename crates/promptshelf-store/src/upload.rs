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

pub(crate) mod rows {
    //! The contents that each caller has uploaded.

    use std::{collections::BTreeSet, sync::Arc};

    use super::blob::Contents;
    use crate::{
        StoreError,
        database::{Transaction, Value, insert, list},
        model::Digest,
    };

    const CHUNK: usize = 500;

    /// The bytes of a changed file besides its path: two digests and a size.
    const CHANGE: u64 = 72;

    /// The time for which what a caller has stored counts, in microseconds.
    const DAY: u64 = 24 * 60 * 60 * 1_000_000;

    pub(crate) async fn add(
        transaction: &mut Transaction,
        caller: &str,
        contents: &Contents,
    ) -> Result<(), StoreError> {
        let now = transaction.row(format!("SELECT {}", transaction.now()), vec![]).await?;
        let now = now.map_or(Ok(0), |row| row.int(0))?;
        let row = |(digest, bytes): (&Digest, &Arc<[u8]>)| {
            vec![caller.into(), (*digest).into(), (bytes.len() as u64).into(), now.into()]
        };
        let rows = contents.iter().map(row);
        let tail = "ON CONFLICT (caller, digest) DO UPDATE SET at = excluded.at";
        insert(transaction, "INSERT INTO ps_upload (caller, digest, size, at)", Box::new(rows), tail).await
    }

    /// Returns those of some contents that a caller has uploaded, or that revisions or proposals of some channels have.
    pub(crate) async fn known(
        transaction: &mut Transaction,
        caller: &str,
        channels: &[i64],
        digests: &[Digest],
    ) -> Result<BTreeSet<Digest>, StoreError> {
        let mut known = BTreeSet::new();
        let shown = list(0, channels.len());
        let of_channels: Vec<Value> = channels.iter().map(|channel| (*channel).into()).collect();
        for chunk in digests.chunks(CHUNK) {
            let wanted: Vec<Value> = chunk.iter().map(|digest| (*digest).into()).collect();
            let sql = format!("SELECT digest FROM ps_upload WHERE caller = $1 AND digest IN {}", list(1, chunk.len()));
            let uploaded = transaction.rows(sql, [vec![caller.into()], wanted.clone()].concat()).await?;
            let mut found = uploaded;
            if !channels.is_empty() {
                let digests = list(channels.len(), chunk.len());
                let values = [of_channels.clone(), wanted].concat();
                for sql in [
                    format!("SELECT DISTINCT digest FROM ps_entry WHERE channel IN {shown} AND digest IN {digests}"),
                    format!(
                        "SELECT DISTINCT c.after FROM ps_change c JOIN ps_proposal p ON p.id = c.proposal \
                         WHERE p.channel IN {shown} AND c.after IN {digests}"
                    ),
                ] {
                    found.extend(transaction.rows(sql, values.clone()).await?);
                }
            }
            for row in found {
                known.insert(row.digest(0)?);
            }
        }
        Ok(known)
    }

    /// Returns the bytes that a caller has stored in the last day, and that no revision has: contents, paths and messages.
    /// Contents that have begun to arrive count with their whole size.
    pub(crate) async fn unpublished(transaction: &mut Transaction, caller: &str) -> Result<u64, StoreError> {
        let now = transaction.now();
        let recent = format!("author = $1 AND at > {now} - $2 AND state <> 'published'");
        let mut sum = 0_u64;
        for (size, rows) in [
            (
                "u.size".to_owned(),
                format!(
                    "ps_upload u WHERE u.caller = $1 AND u.at > {now} - $2 \
                     AND NOT EXISTS (SELECT 1 FROM ps_entry e WHERE e.digest = u.digest)"
                ),
            ),
            ("whole".to_owned(), format!("ps_upload_part WHERE caller = $1 AND start = 0 AND at > {now} - $2")),
            ("OCTET_LENGTH(message)".to_owned(), format!("ps_proposal WHERE {recent}")),
            (
                format!("OCTET_LENGTH(c.path) + {CHANGE}"),
                format!("ps_change c WHERE c.proposal IN (SELECT id FROM ps_proposal WHERE {recent})"),
            ),
        ] {
            let sql = format!("SELECT CAST(COALESCE(SUM({size}), 0) AS BIGINT) FROM {rows}");
            let row = transaction.row(sql, vec![caller.into(), DAY.into()]).await?;
            sum += row.map_or(Ok(0), |row| row.number(0))?;
        }
        Ok(sum)
    }

    /// A content that has begun to arrive in parts.
    pub(crate) struct Started {
        pub(crate) received: u64,
        pub(crate) whole: u64,
        /// The time of the first part.
        pub(crate) at: i64,
    }

    /// Returns the size of a content that a caller has uploaded.
    pub(crate) async fn size(
        transaction: &mut Transaction,
        caller: &str,
        digest: Digest,
    ) -> Result<Option<u64>, StoreError> {
        let sql = "SELECT size FROM ps_upload WHERE caller = $1 AND digest = $2";
        let row = transaction.row(sql, vec![caller.into(), digest.into()]).await?;
        row.map(|row| row.number(0)).transpose()
    }

    pub(crate) async fn started(
        transaction: &mut Transaction,
        caller: &str,
        digest: Digest,
    ) -> Result<Option<Started>, StoreError> {
        let sql = "SELECT CAST(SUM(size) AS BIGINT) AS received, MIN(whole) AS whole, MIN(at) AS at FROM ps_upload_part \
                   WHERE caller = $1 AND digest = $2 HAVING COUNT(*) > 0";
        let row = transaction.row(sql, vec![caller.into(), digest.into()]).await?;
        row.map(|row| {
            Ok(Started { received: row.number("received")?, whole: row.number("whole")?, at: row.int("at")? })
        })
        .transpose()
    }

    /// Stores a part. `at` is the time of the first one, which is now without it.
    pub(crate) async fn add_part(
        transaction: &mut Transaction,
        caller: &str,
        digest: Digest,
        (start, whole): (u64, u64),
        bytes: &[u8],
        at: Option<i64>,
    ) -> Result<(), StoreError> {
        let now = transaction.now();
        let sql = format!(
            "INSERT INTO ps_upload_part (caller, digest, start, size, whole, at, bytes) \
             VALUES ($1, $2, $3, $4, $5, COALESCE($6, {now}), $7) ON CONFLICT (caller, digest, start) DO NOTHING"
        );
        let values = vec![
            caller.into(),
            digest.into(),
            start.into(),
            (bytes.len() as u64).into(),
            whole.into(),
            Value::Int(at),
            (&Arc::<[u8]>::from(bytes)).into(),
        ];
        transaction.run(sql, values).await
    }

    /// Returns the stored parts of a content, joined.
    pub(crate) async fn parts(
        transaction: &mut Transaction,
        caller: &str,
        digest: Digest,
        size: u64,
    ) -> Result<Vec<u8>, StoreError> {
        let sql = "SELECT start FROM ps_upload_part WHERE caller = $1 AND digest = $2 ORDER BY start";
        let starts = transaction.rows(sql, vec![caller.into(), digest.into()]).await?;
        let mut content = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
        for start in starts {
            let sql = "SELECT bytes FROM ps_upload_part WHERE caller = $1 AND digest = $2 AND start = $3";
            let row = transaction.row(sql, vec![caller.into(), digest.into(), start.int(0)?.into()]).await?;
            content.extend(row.map_or(Ok(Vec::new()), |row| row.bytes("bytes"))?);
        }
        Ok(content)
    }

    pub(crate) async fn remove_parts(
        transaction: &mut Transaction,
        caller: &str,
        digest: Digest,
    ) -> Result<(), StoreError> {
        let sql = "DELETE FROM ps_upload_part WHERE caller = $1 AND digest = $2";
        transaction.run(sql, vec![caller.into(), digest.into()]).await
    }

    pub(crate) async fn remove_older_parts(transaction: &mut Transaction, seconds: u64) -> Result<(), StoreError> {
        let sql = format!("DELETE FROM ps_upload_part WHERE at <= {} - $1", transaction.now());
        transaction.run(sql, vec![seconds.saturating_mul(1_000_000).into()]).await
    }

    pub(crate) async fn has_older(transaction: &mut Transaction, seconds: u64) -> Result<bool, StoreError> {
        let now = transaction.now();
        let sql = format!(
            "SELECT 1 FROM ps_upload WHERE at <= {now} - $1 UNION ALL SELECT 1 FROM ps_upload_part WHERE at <= {now} - $1 LIMIT 1"
        );
        Ok(transaction.row(sql, vec![seconds.saturating_mul(1_000_000).into()]).await?.is_some())
    }

    /// Forgets uploads of so long ago, and returns those of their contents that nothing else has.
    pub(crate) async fn remove_older(transaction: &mut Transaction, seconds: u64) -> Result<Vec<Digest>, StoreError> {
        let now = transaction.now();
        let sql = format!("DELETE FROM ps_upload WHERE at <= {now} - $1 RETURNING digest");
        let rows = transaction.rows(sql, vec![seconds.saturating_mul(1_000_000).into()]).await?;
        let removed = rows.iter().map(|row| row.digest("digest")).collect::<Result<BTreeSet<Digest>, StoreError>>()?;
        let mut unused: Vec<Digest> = Vec::new();
        for chunk in removed.into_iter().collect::<Vec<Digest>>().chunks(CHUNK) {
            let mut used = BTreeSet::new();
            for column in
                ["digest FROM ps_entry", "digest FROM ps_upload", "before FROM ps_change", "after FROM ps_change"]
            {
                let name = column.split(' ').next().unwrap_or_default();
                let sql = format!("SELECT DISTINCT {column} WHERE {name} IN {}", list(0, chunk.len()));
                let values = chunk.iter().map(|digest| (*digest).into()).collect();
                for row in transaction.rows(sql, values).await? {
                    used.insert(row.digest(0)?);
                }
            }
            unused.extend(chunk.iter().filter(|digest| !used.contains(digest)));
        }
        Ok(unused)
    }

    pub(crate) async fn prune(transaction: &mut Transaction) -> Result<(), StoreError> {
        transaction.run("DELETE FROM ps_upload WHERE digest NOT IN (SELECT digest FROM ps_blob)", vec![]).await
    }
}

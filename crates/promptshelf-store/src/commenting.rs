//! Reading and adding comments on proposals.

use crate::{
    StoreError,
    comment::{Comment, CommentLine, CommentSide, NewComment},
    database::{Mode, Transaction},
    draft::must_be_open,
    input,
    model::{Actor, FileChange},
    store::Store,
    tables::{blob, comment, proposal},
};

const MAX_COMMENTS: u64 = 1_000;

impl Store {
    /// Returns the comments on a proposal, the oldest first; at most 1,000 exist.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`] if the proposal does not exist, and errors of the database.
    pub async fn comments(&self, proposal: u64) -> Result<Vec<Comment>, StoreError> {
        let mut transaction = self.database().begin(Mode::Read).await?;
        let result = comments(&mut transaction, proposal).await;
        transaction.finish(result).await
    }

    /// Adds a comment to an open proposal.
    ///
    /// # Errors
    ///
    /// [`StoreError::Changed`] if the proposal has other changes by now, [`StoreError::State`] if it is not open or has
    /// 1,000 comments, [`StoreError::InvalidInput`] if the text is not accepted or the proposal does not change the
    /// line's file, [`StoreError::NotFound`], and errors of the database.
    pub async fn comment(&self, proposal: u64, new: &NewComment, actor: &Actor) -> Result<Comment, StoreError> {
        input::actor(actor)?;
        input::text("the comment", &new.text)?;
        let mut transaction = self.database().begin(Mode::Write).await?;
        let result = add(&mut transaction, proposal, new, actor).await;
        transaction.finish(result).await
    }
}

async fn comments(transaction: &mut Transaction, id: u64) -> Result<Vec<Comment>, StoreError> {
    proposal::get(transaction, id).await?;
    comment::of(transaction, id).await
}

async fn add(transaction: &mut Transaction, id: u64, new: &NewComment, actor: &Actor) -> Result<Comment, StoreError> {
    let proposal = proposal::lock(transaction, id).await?;
    must_be_open(&proposal)?;
    if proposal.digest != new.digest {
        return Err(StoreError::Changed { what: format!("proposal {id}") });
    }
    if comment::count(transaction, id).await? >= MAX_COMMENTS {
        return Err(StoreError::state(format!("proposal {id} has {MAX_COMMENTS} comments: no more are accepted")));
    }
    match (&new.path, new.line) {
        (None, None) => {}
        (None, Some(_)) => return Err(StoreError::invalid("a comment on a line needs the path of its file")),
        (Some(path), line) => {
            let change = proposal.changes.iter().find(|change| change.path == *path);
            let change =
                change.ok_or_else(|| StoreError::invalid(format!("proposal {id} does not change this file")))?;
            if let Some(line) = line {
                must_have(transaction, change, line).await?;
            }
        }
    }
    comment::add(transaction, id, new, &actor.name).await
}

/// Fails unless a content of a change has a line.
async fn must_have(transaction: &mut Transaction, change: &FileChange, line: CommentLine) -> Result<(), StoreError> {
    let digest = match line.side {
        CommentSide::Before => change.before,
        CommentSide::After => change.after,
    };
    let side = line.side.as_str();
    let digest = digest.ok_or_else(|| StoreError::invalid(format!("the file has no content {side} the change")))?;
    let contents = blob::read(transaction, &[digest]).await?;
    let lines = contents.first().map_or(0, |(_, bytes)| bytes.split(|byte| *byte == b'\n').count() as u64);
    if (1..=lines).contains(&line.number) {
        return Ok(());
    }
    let number = line.number;
    Err(StoreError::invalid(format!("the file has {lines} lines {side} the change: line {number} is not one of them")))
}

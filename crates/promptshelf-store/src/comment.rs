//! Comments on proposals: on the whole, on a file, or on a line of a file before or after the change.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{
    StoreError,
    database::{Mode, Transaction},
    draft::must_be_open,
    input,
    model::{Actor, Digest, FileChange},
    store::Store,
    tables::{blob, comment, proposal},
};

/// A comment on a proposal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Comment {
    /// Its number, unique in the store.
    pub id: u64,
    /// Its author.
    pub author: String,
    /// The text.
    pub text: String,
    /// The digest of the changes that it is about. It is outdated if the proposal has another digest by now.
    pub digest: Digest,
    /// The changed file; null for a comment on the whole proposal.
    pub path: Option<String>,
    /// The line of the file; null for a comment on the whole file.
    pub line: Option<CommentLine>,
    /// The time of the comment.
    pub at: Timestamp,
}

/// A line of a changed file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CommentLine {
    /// The content that has the line.
    pub side: CommentSide,
    /// The number of the line; 1 is the first one.
    pub number: u64,
}

/// A content of a changed file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum CommentSide {
    /// The content that the author started from.
    Before,
    /// The new content.
    After,
}

impl CommentSide {
    /// Returns the name that JSON and the database use.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            CommentSide::Before => "before",
            CommentSide::After => "after",
        }
    }

    pub(crate) fn from_name(name: &str) -> Option<CommentSide> {
        match name {
            "before" => Some(CommentSide::Before),
            "after" => Some(CommentSide::After),
            _ => None,
        }
    }
}

/// A comment to add.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = CommentBody))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NewComment {
    /// The digest of the changes that the author of the comment saw.
    pub digest: Digest,
    /// The changed file; `None` for the whole proposal.
    #[serde(default)]
    pub path: Option<String>,
    /// The line of the file; `None` for the whole file.
    #[serde(default)]
    pub line: Option<CommentLine>,
    /// The text, of 1 to 4,096 characters.
    pub text: String,
}

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

pub(crate) mod rows {
    //! Comments on proposals.

    use crate::{
        StoreError,
        comment::{Comment, CommentLine, CommentSide, NewComment},
        database::{Row, Transaction, malformed},
    };

    const COLUMNS: &str = "id, author, text, digest, path, side, line, at";

    fn comment(row: &Row) -> Result<Comment, StoreError> {
        let side =
            row.optional_text("side")?.map(|side| CommentSide::from_name(&side).ok_or_else(|| malformed("a side")));
        let line = match (side.transpose()?, row.optional_number("line")?) {
            (Some(side), Some(number)) => Some(CommentLine { side, number }),
            _ => None,
        };
        Ok(Comment {
            id: row.number("id")?,
            author: row.text("author")?,
            text: row.text("text")?,
            digest: row.digest("digest")?,
            path: row.optional_text("path")?,
            line,
            at: row.time("at")?,
        })
    }

    pub(crate) async fn of(transaction: &mut Transaction, proposal: u64) -> Result<Vec<Comment>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM ps_comment WHERE proposal = $1 ORDER BY id");
        transaction.rows(sql, vec![proposal.into()]).await?.iter().map(comment).collect()
    }

    pub(crate) async fn count(transaction: &mut Transaction, proposal: u64) -> Result<u64, StoreError> {
        let row = transaction.row("SELECT COUNT(*) FROM ps_comment WHERE proposal = $1", vec![proposal.into()]).await?;
        row.map_or(Ok(0), |row| row.number(0))
    }

    pub(crate) async fn add(
        transaction: &mut Transaction,
        proposal: u64,
        new: &NewComment,
        author: &str,
    ) -> Result<Comment, StoreError> {
        let now = transaction.now();
        let sql = format!(
            "INSERT INTO ps_comment (proposal, digest, path, side, line, author, text, at) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, {now}) RETURNING {COLUMNS}"
        );
        let values = vec![
            proposal.into(),
            new.digest.into(),
            new.path.as_deref().into(),
            new.line.map(|line| line.side.as_str()).into(),
            new.line.map(|line| line.number).into(),
            author.into(),
            new.text.as_str().into(),
        ];
        let row = transaction.row(sql, values).await?;
        comment(&row.ok_or_else(|| malformed("no number of a comment"))?)
    }
}

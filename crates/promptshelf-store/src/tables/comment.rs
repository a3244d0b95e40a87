//! Comments on proposals.

use crate::{
    StoreError,
    comment::{Comment, CommentLine, CommentSide, NewComment},
    database::{Row, Transaction, malformed},
};

const COLUMNS: &str = "id, author, text, digest, path, side, line, at";

fn comment(row: &Row) -> Result<Comment, StoreError> {
    let side = row.optional_text("side")?.map(|side| CommentSide::from_name(&side).ok_or_else(|| malformed("a side")));
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

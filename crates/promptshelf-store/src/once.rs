//! Changes that happen once: the first answer to a request with a key, which all servers of the store give again.

use std::time::Duration;

use crate::{
    StoreError,
    database::{Mode, Transaction, Value},
    model::Digest,
    store::Store,
};

/// The time for which an answer is kept.
pub const ANSWER_KEPT: Duration = Duration::from_secs(24 * 60 * 60);

/// The time after which a request without an answer has failed with its server, and may be sent again.
const RUNNING: Duration = Duration::from_secs(5 * 60);

/// The most answers of a caller, and their bytes.
const MAX_ANSWERS: u64 = 1_000;
const MAX_BYTES: u64 = 64 << 20;

/// A request that the caller may send again. The key is the caller's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyedRequest {
    /// The identity of the caller.
    pub caller: String,
    /// The key, which stands for one change of the caller.
    pub key: String,
    /// The digest of everything that the request asks for.
    pub digest: Digest,
}

/// An answer, as it is given again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptAnswer {
    /// The status.
    pub status: u16,
    /// The ETag.
    pub tag: Option<String>,
    /// The body.
    pub body: Vec<u8>,
}

/// What is known of a request with a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim {
    /// It is the first one: its change is to be made, and then its answer kept or the key released.
    First,
    /// The first one has not been answered yet.
    Running,
    /// The answer to the first one.
    Answered(KeptAnswer),
    /// The caller has used the key for another request.
    Other,
    /// The caller has too many answers of the last day.
    TooMany,
}

impl Store {
    /// Claims the key of a request, unless the caller has used it in the last day.
    ///
    /// # Errors
    ///
    /// Errors of the database.
    pub async fn claim_key(&self, request: &KeyedRequest) -> Result<Claim, StoreError> {
        let mut transaction = self.database().begin(Mode::Write).await?;
        let result = claim(&mut transaction, request).await;
        transaction.finish(result).await
    }

    /// Keeps the answer to a request whose key was claimed.
    ///
    /// # Errors
    ///
    /// Errors of the database.
    pub async fn keep_answer(&self, request: &KeyedRequest, answer: &KeptAnswer) -> Result<(), StoreError> {
        let sql =
            "UPDATE ps_answer SET status = $4, tag = $5, body = $6 WHERE caller = $1 AND key = $2 AND request = $3";
        let KeptAnswer { status, tag, body } = answer;
        let answer = [u64::from(*status).into(), tag.as_deref().into(), Value::Bytes(Some(body.clone()))];
        self.change_key(request, sql, &answer).await
    }

    /// Releases the key of a request that changed nothing.
    ///
    /// # Errors
    ///
    /// Errors of the database.
    pub async fn release_key(&self, request: &KeyedRequest) -> Result<(), StoreError> {
        let sql = "DELETE FROM ps_answer WHERE caller = $1 AND key = $2 AND request = $3 AND status IS NULL";
        self.change_key(request, sql, &[]).await
    }

    async fn change_key(&self, request: &KeyedRequest, sql: &'static str, values: &[Value]) -> Result<(), StoreError> {
        let KeyedRequest { caller, key, digest } = request;
        let of_key = vec![caller.as_str().into(), key.as_str().into(), (*digest).into()];
        let mut transaction = self.database().begin(Mode::Write).await?;
        let result = transaction.run(sql, [of_key, values.to_vec()].concat()).await;
        transaction.finish(result).await
    }
}

async fn claim(transaction: &mut Transaction, request: &KeyedRequest) -> Result<Claim, StoreError> {
    let now = transaction.now();
    let KeyedRequest { caller, key, digest } = request;
    let of_key = || -> Vec<Value> { vec![caller.as_str().into(), key.as_str().into()] };
    let age = |time: Duration| Value::from(u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
    transaction.run(format!("DELETE FROM ps_answer WHERE at <= {now} - $1"), vec![age(ANSWER_KEPT)]).await?;
    let sql = format!("DELETE FROM ps_answer WHERE caller = $1 AND key = $2 AND status IS NULL AND at <= {now} - $3");
    transaction.run(sql, [of_key(), vec![age(RUNNING)]].concat()).await?;
    let sql = format!(
        "INSERT INTO ps_answer (caller, key, request, at) SELECT $1, $2, $3, {now} WHERE $4 > \
         (SELECT COUNT(*) FROM ps_answer WHERE caller = $1) AND $5 > \
         (SELECT COALESCE(SUM(LENGTH(body)), 0) FROM ps_answer WHERE caller = $1) \
         ON CONFLICT (caller, key) DO NOTHING RETURNING at"
    );
    let bounds = vec![(*digest).into(), MAX_ANSWERS.into(), MAX_BYTES.into()];
    if transaction.row(sql, [of_key(), bounds].concat()).await?.is_some() {
        return Ok(Claim::First);
    }
    let sql = "SELECT request, status, tag, body FROM ps_answer WHERE caller = $1 AND key = $2";
    let Some(row) = transaction.row(sql, of_key()).await? else { return Ok(Claim::TooMany) };
    if row.digest("request")? != *digest {
        return Ok(Claim::Other);
    }
    let Some(status) = row.optional_number("status")? else { return Ok(Claim::Running) };
    let (tag, body) = (row.optional_text("tag")?, row.bytes("body")?);
    Ok(Claim::Answered(KeptAnswer { status: u16::try_from(status).unwrap_or(500), tag, body }))
}

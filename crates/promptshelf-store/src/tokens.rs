//! Tokens for the sign-in of all servers that use the store. Only their digests are stored.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{
    StoreError,
    database::{Mode, Row, Transaction, Value, json, list},
    hints::{ALL_TOKENS, ChangeHints},
    input,
    model::{Actor, Digest},
    store::Store,
};

const MAX_TOKENS: u64 = 10_000;

const MAX_NAMES: usize = 50;

const COLUMNS: &str = "id, name, scopes, roles, created, creator, expires, revoked, revoker, used";

/// The beginning of the name of a caller with a token of the store. A name of the sign-in cannot be taken with one: rules
/// of access and four eyes compare names.
pub const TOKEN_CALLER: &str = "token/";

/// A token that is about to be created.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NewToken {
    /// The name of its owner: a program, for example. The caller is `token/NAME` in access rules and records.
    pub name: String,
    /// The scopes that the token grants.
    #[serde(default)]
    pub scopes: Vec<String>,
    /// The roles of the caller.
    #[serde(default)]
    pub roles: Vec<String>,
    /// The time at which the token expires; never without it.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub expires: Option<Timestamp>,
}

/// A token of a store, without the token itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct TokenInfo {
    /// The number of the token.
    pub id: u64,
    /// The name of its owner.
    pub name: String,
    /// The scopes that it grants.
    pub scopes: Vec<String>,
    /// The roles of the caller.
    pub roles: Vec<String>,
    /// The time at which it was created.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub created: Timestamp,
    /// Who created it.
    pub creator: String,
    /// The time at which it expires.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub expires: Option<Timestamp>,
    /// The time at which it was revoked.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub revoked: Option<Timestamp>,
    /// Who revoked it.
    pub revoker: Option<String>,
    /// The time of its last use, exact to a minute.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub used: Option<Timestamp>,
}

/// A value that differs after each creation and revocation of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenState {
    newest: u64,
    revoked: u64,
}

impl Store {
    /// Creates a token with the SHA-256 `digest`. Its name is that of a caller in rules and records: only `by_operator` can it
    /// be one that a token of another creator has or had.
    ///
    /// # Errors
    ///
    /// [`StoreError::InvalidInput`] for names that are not accepted or too many tokens, [`StoreError::State`] for the name of
    /// another one's token, and errors of the database.
    pub async fn create_token(
        &self,
        new: &NewToken,
        digest: Digest,
        actor: &Actor,
        by_operator: bool,
    ) -> Result<TokenInfo, StoreError> {
        check(new)?;
        input::actor(actor)?;
        let mut transaction = self.database().begin(Mode::Write).await?;
        let result = async {
            if !by_operator {
                must_be_free(&mut transaction, &new.name, actor).await?;
            }
            create(&mut transaction, new, digest, actor).await
        }
        .await;
        transaction.finish(result).await
    }

    /// Returns all tokens, the newest first: also expired and revoked ones.
    ///
    /// # Errors
    ///
    /// Errors of the database.
    pub async fn tokens(&self) -> Result<Vec<TokenInfo>, StoreError> {
        let mut transaction = self.database().begin(Mode::Read).await?;
        let result = transaction.rows(format!("SELECT {COLUMNS} FROM ps_token ORDER BY id DESC"), vec![]).await;
        transaction.finish(result).await?.iter().map(token).collect()
    }

    /// Returns the tokens that are not revoked, with their digests, and the state that they belong to.
    ///
    /// # Errors
    ///
    /// Errors of the database.
    pub async fn valid_tokens(&self) -> Result<(TokenState, Vec<(Digest, TokenInfo)>), StoreError> {
        let mut transaction = self.database().begin(Mode::Read).await?;
        let result = valid(&mut transaction).await;
        transaction.finish(result).await
    }

    /// Returns the state of the tokens, by which a server notices that they have changed.
    ///
    /// # Errors
    ///
    /// Errors of the database.
    pub async fn token_state(&self) -> Result<TokenState, StoreError> {
        let mut transaction = self.database().begin(Mode::Read).await?;
        let result = state(&mut transaction).await;
        transaction.finish(result).await
    }

    /// Revokes a token. One that is revoked stays as it is.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`], and errors of the database.
    pub async fn revoke_token(&self, id: u64, actor: &Actor) -> Result<TokenInfo, StoreError> {
        input::actor(actor)?;
        let mut transaction = self.database().begin(Mode::Write).await?;
        let result = revoke(&mut transaction, id, actor).await;
        transaction.finish(result).await
    }

    /// Records uses of tokens.
    ///
    /// # Errors
    ///
    /// Errors of the database.
    pub async fn note_token_uses(&self, uses: &[(u64, Timestamp)]) -> Result<(), StoreError> {
        let mut transaction = self.database().begin(Mode::Write).await?;
        let result = note_uses(&mut transaction, uses).await;
        transaction.finish(result).await
    }

    /// Listens to hints that tokens may have changed, as [`Store::hints`] does for channels.
    pub async fn token_hints(&self) -> ChangeHints {
        self.hints_of(ALL_TOKENS)
    }
}

fn check(new: &NewToken) -> Result<(), StoreError> {
    let is_name = |text: &str| !text.is_empty() && text.len() <= 128 && !text.contains(['/', ':']);
    if !is_name(&new.name) || new.name.trim() != new.name {
        return Err(StoreError::invalid(
            "the name of a token has 1 to 128 bytes, without `/` and `:`, and no space at its ends",
        ));
    }
    let is_line = |text: &str| !text.contains(char::is_control);
    if !is_line(&new.name) || !new.roles.iter().all(|role| is_line(role)) {
        return Err(StoreError::invalid("the name and the roles of a token have no control characters"));
    }
    input::text("the name of a token", &new.name)?;
    if new.scopes.len() > MAX_NAMES || new.roles.len() > MAX_NAMES {
        return Err(StoreError::invalid(format!("a token has at most {MAX_NAMES} scopes and roles")));
    }
    for scope in &new.scopes {
        // The characters of a scope: RFC 6749, section 3.3.
        if scope.is_empty()
            || scope.len() > 128
            || !scope.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"\\".contains(&byte))
        {
            return Err(StoreError::invalid("a scope is one word such as prompts:write, without spaces"));
        }
    }
    for role in &new.roles {
        if role.trim().is_empty() || role.len() > 128 {
            return Err(StoreError::invalid("a role is a name such as editor, of at most 128 bytes"));
        }
        input::text("a role", role)?;
    }
    match new.expires {
        Some(end) if end <= Timestamp::now() => Err(StoreError::invalid("the token would have expired already")),
        _ => Ok(()),
    }
}

async fn create(
    transaction: &mut Transaction,
    new: &NewToken,
    digest: Digest,
    actor: &Actor,
) -> Result<TokenInfo, StoreError> {
    let now = transaction.now();
    let count = format!("SELECT COUNT(*) FROM ps_token WHERE revoked IS NULL AND (expires IS NULL OR expires > {now})");
    if transaction.row(count, vec![]).await?.map_or(Ok(0), |row| row.number(0))? >= MAX_TOKENS {
        return Err(StoreError::invalid(format!(
            "a store has at most {MAX_TOKENS} valid tokens: revoke those in no use"
        )));
    }
    let sql = format!(
        "INSERT INTO ps_token (name, digest, scopes, roles, created, creator, expires) \
         VALUES ($1, $2, $3, $4, {now}, $5, $6) RETURNING {COLUMNS}"
    );
    let values = vec![
        new.name.as_str().into(),
        digest.into(),
        json(&new.scopes)?.into(),
        json(&new.roles)?.into(),
        actor.name.as_str().into(),
        Value::Int(new.expires.map(Timestamp::as_microsecond)),
    ];
    let row = transaction.row(sql, values).await?.ok_or_else(|| StoreError::not_found("the new token"))?;
    transaction.notify(ALL_TOKENS).await?;
    token(&row)
}

/// Fails for a name that a token of another creator has, or had before it was revoked.
async fn must_be_free(transaction: &mut Transaction, name: &str, actor: &Actor) -> Result<(), StoreError> {
    for row in transaction.rows("SELECT DISTINCT name, creator FROM ps_token", vec![]).await? {
        if input::same_name(&row.text("name")?, name) && !input::same_name(&row.text("creator")?, &actor.name) {
            return Err(StoreError::state(taken(name)));
        }
    }
    Ok(())
}

/// The reason against a name that stands for someone else already.
#[must_use]
pub fn taken(name: &str) -> String {
    format!("The name `{name}` stands for another caller already, in a token or in rules: choose another name")
}

async fn revoke(transaction: &mut Transaction, id: u64, actor: &Actor) -> Result<TokenInfo, StoreError> {
    let now = transaction.now();
    let sql = format!("UPDATE ps_token SET revoked = {now}, revoker = $2 WHERE id = $1 AND revoked IS NULL");
    transaction.run(sql, vec![id.into(), actor.name.as_str().into()]).await?;
    transaction.notify(ALL_TOKENS).await?;
    let row = transaction.row(format!("SELECT {COLUMNS} FROM ps_token WHERE id = $1"), vec![id.into()]).await?;
    token(&row.ok_or_else(|| StoreError::not_found(format!("token {id}")))?)
}

type Creators = BTreeMap<String, BTreeSet<String>>;

/// Returns who created the tokens of callers, and the tokens of those. A name can have had several tokens.
pub(crate) async fn creators(transaction: &mut Transaction, callers: BTreeSet<String>) -> Result<Creators, StoreError> {
    let mut creators = Creators::new();
    let mut next = callers;
    loop {
        let names = next.iter().filter(|caller| !creators.contains_key(*caller));
        let names: Vec<Value> = names.filter_map(|caller| Some(caller.strip_prefix(TOKEN_CALLER)?.into())).collect();
        if names.is_empty() {
            return Ok(creators);
        }
        let sql = format!("SELECT name, creator FROM ps_token WHERE name IN {}", list(0, names.len()));
        for caller in std::mem::take(&mut next) {
            creators.entry(caller).or_default();
        }
        for row in transaction.rows(sql, names).await? {
            let (name, creator) = (row.text("name")?, row.text("creator")?);
            next.insert(creator.clone());
            creators.entry(format!("{TOKEN_CALLER}{name}")).or_default().insert(creator);
        }
    }
}

/// Returns everyone behind a caller: who created the caller's token, who created the token of that one, and so on.
pub(crate) fn behind(creators: &Creators, caller: &str) -> Vec<String> {
    let mut found = BTreeSet::new();
    let mut waiting = vec![caller];
    while let Some(caller) = waiting.pop() {
        for creator in creators.get(caller).into_iter().flatten() {
            if found.insert(creator.clone()) {
                waiting.push(creator);
            }
        }
    }
    found.remove(caller);
    found.into_iter().collect()
}

async fn state(transaction: &mut Transaction) -> Result<TokenState, StoreError> {
    // Rows are never removed, and a revocation is never undone.
    let row = transaction
        .row("SELECT COALESCE(MAX(id), 0) AS newest, COUNT(revoked) AS revoked FROM ps_token", vec![])
        .await?;
    let row = row.ok_or_else(|| StoreError::not_found("the state of tokens"))?;
    Ok(TokenState { newest: row.number("newest")?, revoked: row.number("revoked")? })
}

async fn valid(transaction: &mut Transaction) -> Result<(TokenState, Vec<(Digest, TokenInfo)>), StoreError> {
    let state = state(transaction).await?;
    let sql = format!("SELECT {COLUMNS}, digest FROM ps_token WHERE revoked IS NULL");
    let rows = transaction.rows(sql, vec![]).await?;
    let tokens = rows.iter().map(|row| Ok((row.digest("digest")?, token(row)?)));
    Ok((state, tokens.collect::<Result<_, StoreError>>()?))
}

async fn note_uses(transaction: &mut Transaction, uses: &[(u64, Timestamp)]) -> Result<(), StoreError> {
    // In one order, so that two servers never wait for each other.
    let mut uses = uses.to_vec();
    uses.sort_unstable();
    for (id, at) in uses {
        let sql = "UPDATE ps_token SET used = $2 WHERE id = $1 AND (used IS NULL OR used < $2)";
        transaction.run(sql, vec![id.into(), at.into()]).await?;
    }
    Ok(())
}

fn token(row: &Row) -> Result<TokenInfo, StoreError> {
    Ok(TokenInfo {
        id: row.number("id")?,
        name: row.text("name")?,
        scopes: row.json("scopes")?,
        roles: row.json("roles")?,
        created: row.time("created")?,
        creator: row.text("creator")?,
        expires: row.optional_time("expires")?,
        revoked: row.optional_time("revoked")?,
        revoker: row.optional_text("revoker")?,
        used: row.optional_time("used")?,
    })
}

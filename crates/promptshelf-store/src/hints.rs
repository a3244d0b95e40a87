//! Hints that a channel may have changed: PostgreSQL's notifications.

use std::{future::pending, time::Duration};

use sqlx::{PgConnection, PgPool, Row as _, postgres::PgListener};
use tokio::{
    sync::mpsc::{self, error::TrySendError},
    task::JoinHandle,
};

use crate::{
    address::ChannelName,
    database::{CHANNEL_OF_HINTS, Database, listener_pool},
    store::Store,
};

const RETRY: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(10));

/// The payload of notifications for sources, which is not the name of a channel.
pub(crate) const ALL_SOURCES: &str = "*sources";

pub(crate) const ALL_TOKENS: &str = "*tokens";

impl Store {
    /// Listens to hints that a channel may have changed. A hint can be lost, and a pooler may deliver none: a follower
    /// also compares heads every second. Each use has a connection of its own until it is dropped.
    pub async fn hints(&self, channel: &ChannelName) -> ChangeHints {
        self.hints_of(channel.as_str())
    }

    pub(crate) fn hints_of(&self, payload: &str) -> ChangeHints {
        match self.database() {
            Database::Postgres(pool, ..) if self.url().has_notifications() => {
                // One waiting hint is enough.
                let (sender, hints) = mpsc::channel(1);
                let task = tokio::spawn(listen(listener_pool(pool), payload.to_owned(), sender));
                ChangeHints { hints: Some(hints), task: Some(task) }
            }
            Database::Postgres(..) | Database::Sqlite { .. } => ChangeHints { hints: None, task: None },
        }
    }
}

/// Waits for hints. Created by [`Store::hints`].
#[derive(Debug)]
pub struct ChangeHints {
    hints: Option<mpsc::Receiver<()>>,
    task: Option<JoinHandle<()>>,
}

impl ChangeHints {
    /// Waits for the next hint. A new connection is a hint too, because earlier hints are lost. Never returns where
    /// the database sends none. Cancel-safe.
    pub async fn next(&mut self) {
        if let Some(hints) = &mut self.hints
            && hints.recv().await.is_some()
        {
            return;
        }
        pending::<()>().await;
    }
}

impl Drop for ChangeHints {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

/// Sends a hint for each notification with this payload and after each connection, until the receiver is gone.
async fn listen(pool: PgPool, payload: String, hints: mpsc::Sender<()>) {
    let mut wait = RETRY.0;
    let hint = || !matches!(hints.try_send(()), Err(TrySendError::Closed(())));
    loop {
        match is_pooled(&pool).await {
            Ok(false) => {}
            // LISTEN would stay with a session of the server that others use next, and notifications would reach them.
            Ok(true) => return,
            Err(_) => {
                tokio::time::sleep(wait).await;
                wait = RETRY.1.min(wait * 2);
                continue;
            }
        }
        if let Ok(mut listener) = PgListener::connect_with(&pool).await
            && listener.listen(CHANNEL_OF_HINTS).await.is_ok()
        {
            wait = RETRY.0;
            if !hint() {
                return;
            }
            // `None` stands for a broken connection: notifications may be lost, so a new one begins with a hint.
            while let Ok(Some(notification)) = listener.try_recv().await {
                if notification.payload() == payload && !hint() {
                    return;
                }
            }
        }
        if hints.is_closed() {
            return;
        }
        tokio::time::sleep(wait).await;
        wait = RETRY.1.min(wait * 2);
    }
}

const ROUNDS: usize = 4;

/// Returns whether a pooler gives each transaction another session of the server, as PgBouncer does in transaction mode.
/// Two connections then have the same session one after the other, or one connection has several.
async fn is_pooled(pool: &PgPool) -> Result<bool, sqlx::Error> {
    let (mut one, mut other) = (pool.acquire().await?, pool.acquire().await?);
    let first = session(&mut one).await?;
    for _ in 0..ROUNDS {
        if session(&mut other).await? == first || session(&mut one).await? != first {
            return Ok(true);
        }
    }
    Ok(false)
}

async fn session(connection: &mut PgConnection) -> Result<i32, sqlx::Error> {
    sqlx::raw_sql("SELECT pg_backend_pid()").fetch_one(connection).await?.try_get(0)
}

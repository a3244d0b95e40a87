//! Requests to read a source again, which reach all servers that use the store.

use std::collections::BTreeMap;

use crate::{
    StoreError,
    database::{Mode, Transaction},
    hints::{ALL_SOURCES, ChangeHints},
    store::Store,
};

impl Store {
    /// Requests that all servers that use the store read sources with these names again.
    ///
    /// # Errors
    ///
    /// Errors of the database.
    pub async fn signal_sources(&self, sources: &[String]) -> Result<(), StoreError> {
        let mut transaction = self.database().begin(Mode::Write).await?;
        let result = add(&mut transaction, sources).await;
        transaction.finish(result).await
    }

    /// Returns the number of requests for each source. Another number than before means a new request.
    ///
    /// # Errors
    ///
    /// Errors of the database.
    pub async fn source_signals(&self) -> Result<BTreeMap<String, u64>, StoreError> {
        let mut transaction = self.database().begin(Mode::Read).await?;
        let result = all(&mut transaction).await;
        transaction.finish(result).await
    }

    /// Listens to hints that there may be new requests, as [`Store::hints`] does for channels.
    pub async fn source_hints(&self) -> ChangeHints {
        self.hints_of(ALL_SOURCES)
    }
}

async fn add(transaction: &mut Transaction, sources: &[String]) -> Result<(), StoreError> {
    // In one order, so that two servers never wait for each other.
    let mut sources: Vec<&str> = sources.iter().map(String::as_str).collect();
    sources.sort_unstable();
    for source in sources {
        let sql = "INSERT INTO ps_source_signal (source, signals) VALUES ($1, 1) \
                   ON CONFLICT (source) DO UPDATE SET signals = ps_source_signal.signals + 1";
        transaction.run(sql, vec![source.into()]).await?;
    }
    transaction.notify(ALL_SOURCES).await
}

async fn all(transaction: &mut Transaction) -> Result<BTreeMap<String, u64>, StoreError> {
    let rows = transaction.rows("SELECT source, signals FROM ps_source_signal", vec![]).await?;
    rows.iter().map(|row| Ok((row.text("source")?, row.number("signals")?))).collect()
}

//! The outbox of webhooks: registering webhooks, and the deliveries that wait.

use std::fmt;

use crate::{
    StoreError,
    address::ChannelName,
    announce,
    database::{Guard, Mode, Transaction},
    store::Store,
    tables::webhook,
    webhook::{DeadLetter, Delivery, DeliveryAttempt, Webhook, WebhookQueue},
};

/// The lock of the process that delivers: only one process of a store has it at a time. It ends when it is dropped, and
/// with the process.
pub struct DeliveryLock(Guard);

impl fmt::Debug for DeliveryLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DeliveryLock")
    }
}

impl DeliveryLock {
    /// Returns whether the lock is still held. It has to be called every few seconds: PostgreSQL ends the lock of a
    /// process that is silent for a minute.
    pub async fn is_held(&mut self) -> bool {
        self.0.is_held().await
    }

    /// Releases the lock.
    pub async fn release(self) {
        self.0.release().await;
    }
}

impl Store {
    /// Makes webhooks known, so that later changes queue deliveries for them; each server repeats it. Webhooks that no
    /// server has registered for a week are forgotten with their deliveries, and dead letters after 30 days.
    ///
    /// # Errors
    ///
    /// Errors of the database.
    pub async fn register_webhooks(&self, webhooks: &[Webhook]) -> Result<(), StoreError> {
        let mut transaction = self.database().begin(Mode::Write).await?;
        let result = register(&mut transaction, webhooks).await;
        transaction.finish(result).await
    }

    /// Takes the lock for deliveries, or returns `None` if another process has it.
    ///
    /// # Errors
    ///
    /// Errors of the database, and of the lock file next to an SQLite database.
    pub async fn lock_deliveries(&self) -> Result<Option<DeliveryLock>, StoreError> {
        Ok(Guard::try_lock(self.database(), self.url()).await?.map(DeliveryLock))
    }

    /// Returns the deliveries to the webhooks with these ids whose time has come: for each channel the oldest one that
    /// is pending, because the others have to wait for it.
    ///
    /// # Errors
    ///
    /// Errors of the database.
    pub async fn due_deliveries(&self, webhooks: &[String]) -> Result<Vec<Delivery>, StoreError> {
        if webhooks.is_empty() {
            return Ok(Vec::new());
        }
        let mut transaction = self.database().begin(Mode::Read).await?;
        let result = webhook::due(&mut transaction, webhooks).await;
        transaction.finish(result).await
    }

    /// Records that a delivery has arrived.
    ///
    /// # Errors
    ///
    /// Errors of the database. The event is then sent again.
    pub async fn delivered(&self, id: u64) -> Result<(), StoreError> {
        let mut transaction = self.database().begin(Mode::Write).await?;
        let result = webhook::delete(&mut transaction, id).await;
        transaction.finish(result).await
    }

    /// Records a failed attempt. Returns whether the delivery is a dead letter now.
    ///
    /// # Errors
    ///
    /// Errors of the database.
    pub async fn delivery_failed(&self, id: u64, attempt: &DeliveryAttempt) -> Result<bool, StoreError> {
        let mut transaction = self.database().begin(Mode::Write).await?;
        let result = webhook::failed(&mut transaction, id, attempt).await;
        transaction.finish(result).await
    }

    /// Returns the webhooks with the numbers of their deliveries.
    ///
    /// # Errors
    ///
    /// Errors of the database.
    pub async fn webhooks(&self) -> Result<Vec<WebhookQueue>, StoreError> {
        let mut transaction = self.database().begin(Mode::Read).await?;
        let result = webhook::queues(&mut transaction).await;
        transaction.finish(result).await
    }

    /// Returns the dead letters, the newest first; at most 1,000.
    ///
    /// # Errors
    ///
    /// Errors of the database.
    pub async fn dead_letters(&self) -> Result<Vec<DeadLetter>, StoreError> {
        let mut transaction = self.database().begin(Mode::Read).await?;
        let result = webhook::dead(&mut transaction, None).await;
        transaction.finish(result).await
    }

    /// Returns a dead letter.
    ///
    /// # Errors
    ///
    /// Errors of the database.
    pub async fn dead_letter(&self, id: u64) -> Result<Option<DeadLetter>, StoreError> {
        let mut transaction = self.database().begin(Mode::Read).await?;
        let result = webhook::dead(&mut transaction, Some(id)).await;
        Ok(transaction.finish(result).await?.pop())
    }

    /// Queues a dead letter again. It has the time of a new event until it is given up, and comes before later events of
    /// its channel that wait.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`] if it is not a dead letter, and errors of the database.
    pub async fn redeliver(&self, id: u64) -> Result<(), StoreError> {
        let mut transaction = self.database().begin(Mode::Write).await?;
        let result = webhook::requeue(&mut transaction, id).await;
        if transaction.finish(result).await? {
            Ok(())
        } else {
            Err(StoreError::not_found(format!("the dead letter {id}")))
        }
    }

    /// Announces that a server cannot load the newest revision of a channel; once for each revision.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`] for an unknown channel, and errors of the database.
    pub async fn report_broken(&self, name: &ChannelName, revision: u64, problem: &str) -> Result<(), StoreError> {
        let mut transaction = self.database().begin(Mode::Write).await?;
        let result = announce::broken(&mut transaction, name, revision, problem).await;
        transaction.finish(result).await
    }
}

async fn register(transaction: &mut Transaction, webhooks: &[Webhook]) -> Result<(), StoreError> {
    // In the order of ids, so that two servers never wait for each other.
    let mut webhooks: Vec<&Webhook> = webhooks.iter().collect();
    webhooks.sort_by(|one, other| one.id.cmp(&other.id));
    webhook::lock(transaction).await?;
    for one in webhooks {
        webhook::register(transaction, one).await?;
    }
    webhook::clean(transaction).await
}

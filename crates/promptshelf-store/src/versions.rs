//! The revisions with earlier versions of prompts.

use crate::{
    StoreError,
    address::ChannelName,
    database::Mode,
    model::{Head, Served},
    read::head_at,
    store::Store,
    tables::{channel, prompt},
};

impl Store {
    /// Returns the last revision of a channel that served a version of a prompt; `None` if none did, or its files have
    /// been removed by [`Store::prune`].
    ///
    /// # Errors
    ///
    /// As [`Store::channel`].
    pub async fn last_with_version(
        &self,
        channel: &ChannelName,
        prompt: &str,
        version: u64,
    ) -> Result<Option<(Head, Served)>, StoreError> {
        let mut transaction = self.database().begin(Mode::Read).await?;
        let result = async {
            let epoch = channel::epoch(&mut transaction).await?;
            let channel = channel::get(&mut transaction, channel).await?;
            let Some(served) = prompt::last_with(&mut transaction, channel.id, prompt, version).await? else {
                return Ok(None);
            };
            let revision = served.until.map_or(channel.revision, |until| until.saturating_sub(1));
            if revision < channel.oldest {
                return Ok(None);
            }
            Ok(Some((head_at(&mut transaction, &channel, epoch, revision).await?, served)))
        }
        .await;
        transaction.finish(result).await
    }
}

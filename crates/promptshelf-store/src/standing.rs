//! The versions of prompts in all channels, at a glance.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    StoreError,
    address::ChannelName,
    database::{Mode, Transaction},
    model::{ChannelInfo, Digest, Served},
    store::Store,
    tables::{channel, prompt},
};

const MAX_LIMIT: usize = 1_000;

/// Selects prompts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StandingQuery {
    /// Only prompts whose name contains this text; letter case does not count.
    pub text: Option<String>,
    /// Only prompts whose name sorts after this one.
    pub after: Option<String>,
    /// The largest number of prompts; at most 1,000 are returned.
    pub limit: usize,
}

/// Prompts with their newest versions in several channels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standings {
    /// The channels, by name.
    pub channels: Vec<ChannelInfo>,
    /// The prompts, by name.
    pub prompts: Vec<PromptStanding>,
    /// Whether prompts are left out because of the limit.
    pub has_more: bool,
}

/// The newest versions of a prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct PromptStanding {
    /// The name of the prompt.
    pub name: String,
    /// The channels that serve it, by name.
    pub channels: Vec<Standing>,
}

/// The version of a prompt in a channel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Standing {
    /// The channel.
    pub channel: ChannelName,
    /// The version number, which counts the versions of this channel.
    pub version: u64,
    /// The digest of the prompt's file and all that it brings in. Equal ones are equal texts in every channel.
    pub digest: Digest,
    /// The revision that it came with.
    pub since: u64,
}

impl Store {
    /// Returns the versions of prompts in the channels that `is_shown` accepts, by name.
    ///
    /// # Errors
    ///
    /// Errors of the database.
    pub async fn standings_of(
        &self,
        names: &[String],
        is_shown: impl Fn(&ChannelName) -> bool,
    ) -> Result<Vec<PromptStanding>, StoreError> {
        let mut transaction = self.database().begin(Mode::Read).await?;
        let result = standings_of(&mut transaction, names, is_shown).await;
        transaction.finish(result).await
    }

    /// Returns prompts with their newest versions in the channels that `is_shown` accepts.
    ///
    /// # Errors
    ///
    /// Errors of the database.
    pub async fn standings(
        &self,
        query: &StandingQuery,
        is_shown: impl Fn(&ChannelName) -> bool,
    ) -> Result<Standings, StoreError> {
        let mut transaction = self.database().begin(Mode::Read).await?;
        let result = standings(&mut transaction, query, is_shown).await;
        transaction.finish(result).await
    }
}

fn add(prompts: &mut BTreeMap<String, Vec<Standing>>, channel: &ChannelName, served: Served) {
    let Served { name, version, digest, since, .. } = served;
    prompts.entry(name).or_default().push(Standing { channel: channel.clone(), version, digest, since });
}

async fn standings_of(
    transaction: &mut Transaction,
    names: &[String],
    is_shown: impl Fn(&ChannelName) -> bool,
) -> Result<Vec<PromptStanding>, StoreError> {
    let mut prompts: BTreeMap<String, Vec<Standing>> = BTreeMap::new();
    for found in channel::all(transaction).await?.into_iter().filter(|found| is_shown(&found.name)) {
        for served in prompt::standing(transaction, found.id, names).await? {
            add(&mut prompts, &found.name, served);
        }
    }
    Ok(prompts.into_iter().map(|(name, channels)| PromptStanding { name, channels }).collect())
}

async fn standings(
    transaction: &mut Transaction,
    query: &StandingQuery,
    is_shown: impl Fn(&ChannelName) -> bool,
) -> Result<Standings, StoreError> {
    let epoch = channel::epoch(transaction).await?;
    let limit = query.limit.min(MAX_LIMIT);
    let mut prompts: BTreeMap<String, Vec<Standing>> = BTreeMap::new();
    let mut channels = Vec::new();
    for found in channel::all(transaction).await? {
        if !is_shown(&found.name) {
            continue;
        }
        // Each channel contributes all names of the page: those after them cannot be on it.
        let page =
            prompt::page(transaction, found.id, query.text.as_deref(), query.after.as_deref(), limit + 1).await?;
        for served in page {
            add(&mut prompts, &found.name, served);
        }
        channels.push(found.info(&epoch));
    }
    let has_more = prompts.len() > limit;
    let prompts = prompts.into_iter().take(limit).map(|(name, channels)| PromptStanding { name, channels }).collect();
    Ok(Standings { channels, prompts, has_more })
}

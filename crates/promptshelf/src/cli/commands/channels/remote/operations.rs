//! Channels, history, proposals and reviews.

use std::time::Duration;

use http::{Method, header};
use promptshelf_store::{
    ChannelInfo, ChannelName, Digest, HistoryQuery, NewReview, Policy, PolicyChange, PolicyGuard, PolicyOutcome,
    Promotion, Proposal, ProposalQuery, Published, Revision, Served, StoreError,
};
use promptshelf_wire::UsageReport;
use serde_json::json;

use super::{
    connection::{Remote, Request},
    error::about,
    model::{Channels, Content, Contents, PolicyAnswer, PolicyChanges, Proposals, Revisions, ServedPrompts},
};
use crate::commands::channels::answer::{Answer, ChangedContent};

/// The number of proposals or revisions that a query returns by default, as of a store.
const DEFAULT_LIMIT: usize = 100;
const PAGE: usize = 500;

impl Remote {
    pub(in crate::commands::channels) async fn channels(&self) -> Answer<Vec<ChannelInfo>> {
        let channels: Channels = self.get("channels", vec![]).await?;
        Ok(channels.channels)
    }

    pub(in crate::commands::channels) async fn channel(&self, channel: &ChannelName) -> Answer<ChannelInfo> {
        self.get(&format!("channels/{channel}"), vec![]).await
    }

    pub(in crate::commands::channels) async fn usage(
        &self,
        prompt: Option<&str>,
        since: Duration,
        detail: bool,
    ) -> Answer<UsageReport> {
        let mut query = vec![("since", format!("{}s", since.as_secs())), ("detail", detail.to_string())];
        query.extend(prompt.map(|prompt| ("prompt", prompt.to_owned())));
        self.get("usage", query).await
    }

    pub(in crate::commands::channels) async fn set_policy(
        &self,
        channel: &ChannelName,
        policy: &Policy,
        guard: &PolicyGuard,
        message: &str,
    ) -> Answer<PolicyOutcome> {
        let path = format!("channels/{channel}/policy");
        let what = format!("the policy of the channel `{channel}`");
        let condition = if *guard == PolicyGuard::Absent {
            (header::IF_NONE_MATCH, "*".to_owned())
        } else {
            let (present, tag) = self.tagged::<Policy>(&path).await?;
            if matches!(guard, PolicyGuard::Is(expected) if *expected != present) {
                return Err(StoreError::Changed { what }.into());
            }
            (header::IF_MATCH, tag)
        };
        let mut body = json!(policy);
        body["message"] = json!(message);
        let request = Request::new(Method::PUT, &path).body(&body).condition(condition);
        match self.call(request).await.map_err(|error| about(error, &what))? {
            PolicyAnswer::Proposed(proposal) => Ok(PolicyOutcome::Proposed(proposal)),
            PolicyAnswer::Changed(_) => Ok(PolicyOutcome::Changed(Box::new(self.channel(channel).await?))),
        }
    }

    pub(in crate::commands::channels) async fn policy_history(
        &self,
        channel: &ChannelName,
        limit: usize,
    ) -> Answer<Vec<PolicyChange>> {
        let mut changes = Vec::new();
        let mut before: Option<u64> = None;
        loop {
            let mut words = vec![("limit", (limit - changes.len()).min(PAGE).to_string())];
            words.extend(before.map(|before| ("before", before.to_string())));
            let page: PolicyChanges = self.get(&format!("channels/{channel}/policy/history"), words).await?;
            changes.extend(page.changes);
            match page.next.filter(|next| before.is_none_or(|before| *next < before)) {
                Some(next) if changes.len() < limit => before = Some(next),
                _ => return Ok(changes),
            }
        }
    }

    pub(in crate::commands::channels) async fn history(
        &self,
        channel: &ChannelName,
        query: &HistoryQuery,
    ) -> Answer<Vec<Revision>> {
        let limit = if query.limit == 0 { DEFAULT_LIMIT } else { query.limit };
        let mut revisions = Vec::new();
        let mut before = query.before;
        loop {
            let mut words = vec![("limit", (limit - revisions.len()).min(PAGE).to_string())];
            words.extend(query.prompt.iter().map(|prompt| ("prompt", prompt.clone())));
            words.extend(query.at.iter().map(|at| ("at", at.to_string())));
            words.extend(before.map(|before| ("before", before.to_string())));
            let page: Revisions = self.get(&format!("channels/{channel}/revisions"), words).await?;
            revisions.extend(page.revisions);
            match page.next.filter(|next| before.is_none_or(|before| *next < before)) {
                Some(next) if revisions.len() < limit => before = Some(next),
                _ => return Ok(revisions),
            }
        }
    }

    pub(in crate::commands::channels) async fn served(
        &self,
        channel: &ChannelName,
        revision: u64,
    ) -> Answer<Vec<Served>> {
        let path = format!("channels/{channel}/revisions/{revision}/prompts");
        let served: ServedPrompts = self.get(&path, vec![]).await?;
        Ok(served.prompts)
    }

    pub(in crate::commands::channels) async fn proposals(&self, query: &ProposalQuery) -> Answer<Vec<Proposal>> {
        let limit = if query.limit == 0 { DEFAULT_LIMIT } else { query.limit };
        let mut proposals = Vec::new();
        let mut before = query.before;
        loop {
            let mut words = vec![("limit", (limit - proposals.len()).min(PAGE).to_string())];
            words.extend(query.channel.iter().map(|channel| ("channel", channel.to_string())));
            words.extend(query.state.map(|state| ("state", state.as_str().to_owned())));
            words.extend(before.map(|before| ("before", before.to_string())));
            let page: Proposals = self.get("proposals", words).await?;
            proposals.extend(page.proposals);
            match page.next.filter(|next| before.is_none_or(|before| *next < before)) {
                Some(next) if proposals.len() < limit => before = Some(next),
                _ => return Ok(proposals),
            }
        }
    }

    pub(in crate::commands::channels) async fn proposal(&self, id: u64) -> Answer<Proposal> {
        self.get(&format!("proposals/{id}"), vec![]).await
    }

    pub(in crate::commands::channels) async fn proposal_contents(&self, id: u64) -> Answer<Vec<ChangedContent>> {
        let mut contents: Vec<ChangedContent> = Vec::new();
        let (mut digest, mut after) = (None, None::<String>);
        loop {
            let mut words = vec![("limit", PAGE.to_string())];
            words.extend(after.iter().map(|after| ("after", after.clone())));
            let page: Contents = self.get(&format!("proposals/{id}/contents"), words).await?;
            if *digest.get_or_insert(page.digest) != page.digest {
                return Err(StoreError::Changed { what: format!("proposal {id}") }.into());
            }
            for file in page.files {
                let [before, after] = [file.before, file.after].map(|content| content.map(Content::bytes));
                contents.push((file.path, before.transpose()?, after.transpose()?));
            }
            match page.next.filter(|next| after.as_ref().is_none_or(|after| next > after)) {
                Some(next) => after = Some(next),
                None => return Ok(contents),
            }
        }
    }

    pub(in crate::commands::channels) async fn publish_proposal(
        &self,
        id: u64,
        digest: Digest,
        emergency: &str,
    ) -> Answer<Published> {
        let path = format!("proposals/{id}/publish");
        let body = json!({ "digest": digest, "emergency": emergency });
        let published = self.change(Request::new(Method::POST, &path).body(&body)).await;
        published.map_err(|error| about(error, &format!("proposal {id}")))
    }

    pub(in crate::commands::channels) async fn review(&self, id: u64, review: &NewReview) -> Answer<Published> {
        let path = format!("proposals/{id}/reviews");
        let NewReview { verdict, digest, note, confirmed } = review;
        let body = json!({ "verdict": verdict, "digest": digest, "note": note, "confirmed": confirmed });
        let reviewed = self.change(Request::new(Method::POST, &path).body(&body)).await;
        reviewed.map_err(|error| about(error, &format!("proposal {id}")))
    }

    pub(in crate::commands::channels) async fn withdraw(&self, id: u64) -> Answer<Proposal> {
        let path = format!("proposals/{id}");
        let (_, tag) = self.tagged::<Proposal>(&path).await?;
        let request = Request::new(Method::DELETE, &path).condition((header::IF_MATCH, tag));
        self.call(request).await.map_err(|error| about(error, &format!("proposal {id}")))
    }

    pub(in crate::commands::channels) async fn promote(&self, promotion: &Promotion) -> Answer<Published> {
        let Promotion { from, to, prompts, all, message, dry_run } = promotion;
        let body = json!({ "from": from, "prompts": prompts, "all": all, "message": message, "dryRun": dry_run });
        self.change(Request::new(Method::POST, &format!("channels/{to}/promote")).body(&body)).await
    }

    pub(in crate::commands::channels) async fn rollback(
        &self,
        channel: &ChannelName,
        to: u64,
        prompt: Option<&str>,
        message: &str,
        dry_run: bool,
    ) -> Answer<Published> {
        let body = json!({ "to": to, "prompt": prompt, "message": message, "dryRun": dry_run });
        self.change(Request::new(Method::POST, &format!("channels/{channel}/rollback")).body(&body)).await
    }
}

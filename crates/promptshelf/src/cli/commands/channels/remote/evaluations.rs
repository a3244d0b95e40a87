//! Results of evaluations.

use http::Method;
use promptshelf_store::{ChannelName, Evaluation, EvaluationQuery, NewEvaluation, ProposalEvaluations};
use serde::Deserialize;
use serde_json::json;

use super::{
    connection::{Remote, Request},
    error::about,
};
use crate::commands::channels::answer::Answer;

/// A page of results.
#[derive(Deserialize)]
struct Evaluations {
    evaluations: Vec<Evaluation>,
}

impl Remote {
    pub(in crate::commands::channels) async fn proposal_evaluations(&self, id: u64) -> Answer<ProposalEvaluations> {
        self.get(&format!("proposals/{id}/evaluations"), vec![]).await
    }

    pub(in crate::commands::channels) async fn evaluations(
        &self,
        channel: &ChannelName,
        query: &EvaluationQuery,
    ) -> Answer<Vec<Evaluation>> {
        let EvaluationQuery { prompt, evaluation, digest, before, limit } = query;
        let mut words = vec![("limit", limit.to_string())];
        words.extend(prompt.iter().map(|prompt| ("prompt", prompt.clone())));
        words.extend(evaluation.iter().map(|evaluation| ("evaluation", evaluation.clone())));
        words.extend(digest.iter().map(|digest| ("digest", digest.to_string())));
        words.extend(before.iter().map(|before| ("before", before.to_string())));
        let page: Evaluations = self.get(&format!("channels/{channel}/evaluations"), words).await?;
        Ok(page.evaluations)
    }

    pub(in crate::commands::channels) async fn add_evaluation(
        &self,
        channel: &ChannelName,
        new: &NewEvaluation,
    ) -> Answer<Evaluation> {
        let request = Request::new(Method::POST, &format!("channels/{channel}/evaluations")).body(&json!(new));
        self.call(request).await.map_err(|error| about(error, &format!("the prompt `{}`", new.prompt)))
    }
}

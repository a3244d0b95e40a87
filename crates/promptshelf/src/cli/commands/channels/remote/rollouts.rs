//! Guarded rollouts.

use http::Method;
use promptshelf_store::{ChannelName, RolloutReport};
use serde::Deserialize;
use serde_json::json;

use super::connection::{Remote, Request};
use crate::commands::channels::answer::Answer;

/// The rollouts that the caller sees.
#[derive(Deserialize)]
struct Rollouts {
    rollouts: Vec<RolloutReport>,
}

impl Remote {
    pub(in crate::commands::channels) async fn rollouts(&self) -> Answer<Vec<RolloutReport>> {
        let Rollouts { rollouts } = self.get("rollouts", vec![]).await?;
        Ok(rollouts)
    }

    pub(in crate::commands::channels) async fn set_rollout(
        &self,
        channel: &ChannelName,
        target: Option<&ChannelName>,
        percent: u8,
        reason: &str,
    ) -> Answer<RolloutReport> {
        let body = json!({ "to": target, "percent": percent, "message": reason });
        self.call(Request::new(Method::POST, &format!("channels/{channel}/rollouts/share")).body(&body)).await
    }

    pub(in crate::commands::channels) async fn stop_rollout(
        &self,
        channel: &ChannelName,
        target: Option<&ChannelName>,
        reason: &str,
    ) -> Answer<RolloutReport> {
        let body = json!({ "to": target, "message": reason });
        self.call(Request::new(Method::POST, &format!("channels/{channel}/rollouts/stop")).body(&body)).await
    }
}

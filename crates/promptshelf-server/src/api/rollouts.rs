//! Guarded rollouts: their state and history, the share, and the stop.
//!
//! Reading needs `library:read`. A change needs the scope and the roles of publishing to the channel whose callers are
//! divided, and both channels must be shown to the caller.

use promptshelf_store::{Actor, ChannelName, RolloutReport, Store, StoreError};
use promptshelf_wire::{RolloutShareBody, RolloutStopBody, Rollouts, op};

use super::{
    call::{Answer, Call, Context},
    channels::existing,
    problem::Problem,
};

pub(super) async fn list_all_rollouts(call: Call<op::ListAllRollouts>) -> Answer {
    call.answer(&visible(&call, |_| true).await?)
}

pub(super) async fn list_rollouts(call: Call<op::ListRollouts>) -> Answer {
    let channel = &call.path.channel;
    existing(&call, channel).await?;
    call.answer(&visible(&call, |one| one.channel == *channel).await?)
}

pub(super) async fn set_rollout(call: Call<op::SetRollout>) -> Answer {
    let channel = &call.path.channel;
    let RolloutShareBody { to, percent, message, seen } = call.body().await?;
    call.note_number("percent", u64::from(percent));
    let (store, target, actor) = divided(&call, channel, to).await?;
    let message = message.as_deref().filter(|message| !message.trim().is_empty()).unwrap_or("set by hand");
    let report = store.set_rollout(channel, Some(&target), percent, message, seen, &actor).await?;
    call.answer(&report)
}

pub(super) async fn stop_rollout(call: Call<op::StopRollout>) -> Answer {
    let channel = &call.path.channel;
    let RolloutStopBody { to, message } = call.body().await?;
    let (store, target, actor) = divided(&call, channel, to).await?;
    let message = message.as_deref().filter(|message| !message.trim().is_empty()).unwrap_or("stopped by hand");
    let report = store.stop_rollout(channel, Some(&target), message, &actor).await?;
    call.answer(&report)
}

async fn visible(call: &Context, is_wanted: impl Fn(&RolloutReport) -> bool) -> Result<Rollouts, Problem> {
    let mut rollouts = call.store().await?.rollouts().await?;
    rollouts.retain(|one| is_wanted(one) && call.sees(&one.channel) && call.sees(&one.target));
    Ok(Rollouts { rollouts })
}

/// Returns the target of a rollout that the caller may change, and the author of the change.
async fn divided(
    call: &Context,
    channel: &ChannelName,
    to: Option<ChannelName>,
) -> Result<(Store, ChannelName, Actor), Problem> {
    let roles = existing(call, channel).await?.policy.roles;
    call.require_role(&roles.publish, "publish")?;
    let missing = |to: &str| StoreError::NotFound { what: format!("a rollout of {channel}{to}") };
    let target = match to {
        Some(target) => target,
        None => {
            let Rollouts { rollouts } = visible(call, |one| one.channel == *channel).await?;
            match <[RolloutReport; 1]>::try_from(rollouts) {
                Ok([only]) => only.target,
                Err(none) if none.is_empty() => return Err(missing("").into()),
                Err(_) => {
                    let reason = format!("{channel} has several rollouts: name one with `to`");
                    return Err(StoreError::InvalidInput { reason }.into());
                }
            }
        }
    };
    if !call.sees(&target) {
        return Err(missing(&format!(" to {target}")).into());
    }
    call.note("to", target.as_str());
    Ok((call.store().await?, target, call.actor()))
}

//! Guarded rollouts: their states and histories, the share, pause, stop and promotion.
//!
//! Reading needs `library:read`. A change needs the scope and the roles of publishing to the channel whose callers are
//! divided, and both channels must be shown to the caller.

use std::time::Duration;

use jiff::SignedDuration;
use promptshelf_store::{
    Actor, ChannelName, EffectImpact, PolicyRoles, Promotion, Reason, RolloutEdit, RolloutPhase, RolloutReport, Store,
    StoreError, Trees, loosened,
};
use promptshelf_wire::{Page, RolloutChangeBody, RolloutFinish, RolloutFinishBody, RolloutStartBody, RolloutStop, op};

use super::{
    ApiState,
    call::{Answer, Call, Context, Operations, Trust},
    channels::existing,
    problem::Problem,
    request::{MAX_LIMIT, Paging},
};

/// The most openings that a refusal or a reason names.
const NAMED: usize = 12;

const MAX_STEPS: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Adds the operations of this module.
pub(super) fn operations(all: Operations<ApiState>) -> Operations<ApiState> {
    all.on(list_all_rollouts).on(list_rollouts).on(start_rollout).on(change_rollout).on(finish_rollout)
}

async fn list_all_rollouts(call: Call<op::ListAllRollouts>) -> Answer {
    call.answer(&page(&call.paging, visible(&call, |_| true).await?)?)
}

async fn list_rollouts(call: Call<op::ListRollouts>) -> Answer {
    let channel = &call.path.channel;
    existing(&call, channel).await?;
    call.answer(&page(&call.paging, visible(&call, |one| one.channel == *channel).await?)?)
}

fn page(paging: &Paging, mut rollouts: Vec<RolloutReport>) -> Result<Page<RolloutReport>, Problem> {
    let key = |one: &RolloutReport| format!("{}\n{}", one.channel, one.target);
    rollouts.sort_by_cached_key(key);
    paging.of_sorted(rollouts, MAX_LIMIT, key)
}

async fn start_rollout(call: Call<op::StartRollout>) -> Answer {
    let channel = &call.path.channel;
    let RolloutStartBody { to, percent, steps, stop, message } = call.body().await?;
    let (store, actor, roles) = publisher(&call, channel).await?;
    call.require_channel(&to)?;
    call.note("to", to.as_str());
    let mut plan = call.rollout_defaults();
    plan.percent = percent.unwrap_or(plan.percent);
    if let Some(steps) = steps {
        plan.steps = interval(&steps)?;
    }
    if let Some(RolloutStop { errors, declined, latency }) = stop {
        (plan.errors, plan.declined, plan.latency) = (errors, declined, latency);
    }
    call.note_number("percent", u64::from(plan.percent));
    must_be_reviewed(&call, &roles, channel, &to).await?;
    match store.start_rollout(channel, &to, &plan, &reason(message, "started by hand"), &actor).await {
        Ok(report) => call.created(&report),
        Err(error) => Err(without_hidden(&call, channel, error).await?),
    }
}

async fn change_rollout(call: Call<op::ChangeRollout>) -> Answer {
    let channel = &call.path.channel;
    let RolloutChangeBody { to, percent, state, message, seen } = call.body().await?;
    if let Some(percent) = percent {
        call.note_number("percent", u64::from(percent));
    }
    if let Some(state) = state {
        call.note("state", state.as_str());
    }
    let (store, actor, roles) = publisher(&call, channel).await?;
    let found = divided(&call, channel, to).await?;
    if found.phase.is_over() && percent.is_some() {
        must_be_reviewed(&call, &roles, channel, &found.target).await?;
    }
    let usual = match state {
        Some(RolloutPhase::Stopped) => "stopped by hand",
        Some(RolloutPhase::Paused) => "paused by hand",
        Some(RolloutPhase::Running) if percent.is_none() => "resumed by hand",
        _ => "set by hand",
    };
    let edit = RolloutEdit { percent, phase: state, reason: reason(message, usual), seen };
    match store.change_rollout(channel, Some(&found.target), &edit, &actor).await {
        Ok(report) => call.answer(&report),
        Err(error) if found.phase.is_over() => Err(without_hidden(&call, channel, error).await?),
        Err(error) => Err(error.into()),
    }
}

/// Returns the refusal of a rollout that has to wait for another one. One that is hidden from the caller does not exist, and
/// cannot be stopped or finished either.
async fn without_hidden(call: &Context, channel: &ChannelName, error: StoreError) -> Result<Problem, Problem> {
    let StoreError::State { .. } = error else { return Ok(error.into()) };
    let is_other = |one: &RolloutReport| one.channel == *channel && !one.phase.is_over();
    let is_hidden =
        call.store().await?.rollouts().await?.iter().any(is_other) && visible(call, is_other).await?.is_empty();
    let reason = || format!("a rollout of the channel `{channel}` cannot begin now: ask who administers the channel");
    Ok(if is_hidden { StoreError::State { reason: reason() } } else { error }.into())
}

async fn finish_rollout(call: Call<op::FinishRollout>) -> Answer {
    let channel = &call.path.channel;
    let RolloutFinishBody { to, all, message } = call.body().await?;
    let (store, actor, roles) = publisher(&call, channel).await?;
    let RolloutReport { target, .. } = divided(&call, channel, to).await?;
    call.require_role(&roles.propose, "propose")?;
    let message = message.unwrap_or_default();
    let (from, to) = (target.clone(), channel.clone());
    let promotion = Promotion { from, to, prompts: Vec::new(), all, message, dry_run: false, ends_rollout: true };
    let promotion = match store.promote(&promotion, &call.actor_under(&roles), call.checker()).await {
        Ok(published) => {
            call.note_number("proposal", published.proposal.id);
            if let Some(revision) = published.proposal.revision {
                call.note_number("revision", revision);
            }
            Some(published)
        }
        Err(StoreError::Unchanged { .. }) => {
            store.finish_rollout(channel, &target, "the channel has the new version already", &actor).await?;
            None
        }
        Err(error) => return Err(error.into()),
    };
    let rollout = divided(&call, channel, Some(target)).await?;
    call.answer(&RolloutFinish { rollout, promotion })
}

/// Returns the names of what callers may read in the target of a rollout, and not in the channel.
async fn openings(
    call: &Context,
    channel: &ChannelName,
    target: &ChannelName,
) -> Result<impl Iterator<Item = String>, Problem> {
    let store = call.store().await?;
    let (_, before) = store.tree(channel, None).await?;
    let (_, after) = store.tree(target, None).await?;
    let trees = Trees { before: Some(before), after, source: None };
    let (_, effects) = call.checker().start(trees, false).await?;
    let openings = effects.into_iter().filter(|effect| effect.impact == EffectImpact::Opening);
    Ok(openings.map(|effect| effect.name))
}

/// Refuses a rollout to a channel with a looser policy, and one that opens something: a policy with approvals would ask for a
/// confirmation of the same change as a promotion. Without approvals, who may administer the channel decides.
async fn must_be_reviewed(
    call: &Context,
    roles: &PolicyRoles,
    channel: &ChannelName,
    target: &ChannelName,
) -> Result<(), Problem> {
    let policy = existing(call, channel).await?.policy;
    let asks = policy.approvals > 0 || policy.four_eyes;
    if call.actor_under(roles).may_administer && !asks {
        return Ok(());
    }
    // Callers would be served what nobody had to approve. Who uses the database itself may loosen the policy, too.
    let looser = loosened(&policy, &existing(call, target).await?.policy);
    if !looser.is_empty() && call.trust() != Trust::Operator {
        let conditions = looser.join(", ");
        let text = format!("{target} asks for less than {channel} ({conditions}): give it the same policy first");
        let reason = Reason::new("rollout-policy", text).with("target", target).with("channel", channel);
        return Err(StoreError::policy(vec![reason.with("conditions", conditions)]).into());
    }
    let opening = |name: String| {
        let text =
            format!("`{name}` opens something in {target}: promote it, so that the opening is confirmed by name");
        Reason::new("rollout-opening", text).with("name", name).with("target", target)
    };
    let reasons: Vec<Reason> = openings(call, channel, target).await?.take(NAMED).map(opening).collect();
    if reasons.is_empty() { Ok(()) } else { Err(StoreError::policy(reasons).into()) }
}

fn reason(message: Option<String>, usual: &str) -> String {
    message.filter(|message| !message.trim().is_empty()).unwrap_or_else(|| usual.to_owned())
}

fn interval(text: &str) -> Result<Option<Duration>, Problem> {
    if text == "off" {
        return Ok(None);
    }
    let duration = text.parse::<SignedDuration>().ok().and_then(|duration| Duration::try_from(duration).ok());
    match duration.filter(|duration| (Duration::from_secs(1)..=MAX_STEPS).contains(duration)) {
        Some(duration) => Ok(Some(duration)),
        None => {
            let reason =
                format!("expected a time from 1s to 720h between two steps, such as `1h`, or `off`, got `{text}`");
            Err(StoreError::InvalidInput { reason }.into())
        }
    }
}

async fn visible(call: &Context, is_wanted: impl Fn(&RolloutReport) -> bool) -> Result<Vec<RolloutReport>, Problem> {
    let mut rollouts = call.store().await?.rollouts().await?;
    rollouts.retain(|one| is_wanted(one) && call.sees(&one.channel) && call.sees(&one.target));
    Ok(rollouts)
}

/// Returns the author of a change, who may publish to the channel.
async fn publisher(call: &Context, channel: &ChannelName) -> Result<(Store, Actor, PolicyRoles), Problem> {
    let roles = existing(call, channel).await?.policy.roles;
    call.require_role(&roles.publish, "publish")?;
    Ok((call.store().await?, call.actor(), roles))
}

/// Returns the rollout to a target; without one, that which is not over, otherwise the one that was changed last.
async fn divided(call: &Context, channel: &ChannelName, to: Option<ChannelName>) -> Result<RolloutReport, Problem> {
    let is_wanted = |one: &RolloutReport| one.channel == *channel && to.as_ref().is_none_or(|to| one.target == *to);
    let found = visible(call, is_wanted).await?.into_iter().max_by_key(|one| (!one.phase.is_over(), one.changed_at));
    let to = to.as_ref().map(|to| format!(" to {to}")).unwrap_or_default();
    let found = found.ok_or_else(|| StoreError::NotFound { what: format!("a rollout of {channel}{to}") })?;
    call.note("to", found.target.as_str());
    Ok(found)
}

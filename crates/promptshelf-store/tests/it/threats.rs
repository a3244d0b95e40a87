//! The parts of the contract that defend against threats, on both databases.

use promptshelf_store::Store;

use crate::{contract, postgres, sqlite};

async fn on_postgres() -> Store {
    Store::create(&postgres::url()).await.unwrap()
}

// req: S-81
#[tokio::test(flavor = "multi_thread")]
async fn bad_input_is_refused_and_changes_nothing() {
    let place = sqlite::store().await;
    contract::publishing::bad_input_is_refused_and_changes_nothing(place.store.clone()).await;
    contract::publishing::bad_input_is_refused_and_changes_nothing(on_postgres().await).await;
}

// req: S-600
#[tokio::test(flavor = "multi_thread")]
async fn approval_does_not_outlive_the_right_to_review() {
    let place = sqlite::store().await;
    contract::reviewing::approval_does_not_outlive_the_right_to_review(place.store.clone()).await;
    contract::reviewing::approval_does_not_outlive_the_right_to_review(on_postgres().await).await;
}

// req: S-600
#[tokio::test(flavor = "multi_thread")]
async fn confirmation_does_not_outlive_the_right_to_review() {
    let place = sqlite::store().await;
    contract::reviewing::confirmation_does_not_outlive_the_right_to_review(place.store.clone()).await;
    contract::reviewing::confirmation_does_not_outlive_the_right_to_review(on_postgres().await).await;
}

// req: S-600
#[tokio::test(flavor = "multi_thread")]
async fn approval_beside_a_change_of_the_roles_does_not_count() {
    let place = sqlite::store().await;
    contract::reviewing::approval_beside_a_change_of_the_roles_does_not_count(place.store.clone()).await;
    contract::reviewing::approval_beside_a_change_of_the_roles_does_not_count(on_postgres().await).await;
}

// req: S-82
#[tokio::test(flavor = "multi_thread")]
async fn authors_cannot_approve_with_four_eyes() {
    let place = sqlite::store().await;
    contract::reviewing::authors_cannot_approve_with_four_eyes(place.store.clone()).await;
    contract::reviewing::authors_cannot_approve_with_four_eyes(on_postgres().await).await;
}

// req: S-83
#[tokio::test(flavor = "multi_thread")]
async fn replaced_proposal_needs_new_approvals() {
    let place = sqlite::store().await;
    contract::reviewing::replaced_proposal_needs_new_approvals(place.store.clone()).await;
    contract::reviewing::replaced_proposal_needs_new_approvals(on_postgres().await).await;
}

// req: S-83
#[tokio::test(flavor = "multi_thread")]
async fn approval_of_other_changes_is_refused() {
    let place = sqlite::store().await;
    contract::reviewing::approval_of_other_changes_is_refused(place.store.clone()).await;
    contract::reviewing::approval_of_other_changes_is_refused(on_postgres().await).await;
}

// req: S-195
#[tokio::test(flavor = "multi_thread")]
async fn result_of_an_unknown_version_is_refused() {
    let place = sqlite::store().await;
    contract::evaluating::result_of_an_unknown_version_is_refused(place.store.clone()).await;
    contract::evaluating::result_of_an_unknown_version_is_refused(on_postgres().await).await;
}

// req: S-201
#[tokio::test(flavor = "multi_thread")]
async fn replicas_agree_on_a_rollout_and_a_stop() {
    let place = sqlite::store().await;
    contract::rollouts::replicas_agree_on_a_rollout_and_a_stop(place.store.clone()).await;
    contract::rollouts::replicas_agree_on_a_rollout_and_a_stop(on_postgres().await).await;
}

// req: S-219
#[tokio::test(flavor = "multi_thread")]
async fn every_change_of_a_rollout_is_recorded_with_its_figures() {
    let place = sqlite::store().await;
    contract::rollouts::every_change_of_a_rollout_is_recorded_with_its_figures(place.store.clone()).await;
    contract::rollouts::every_change_of_a_rollout_is_recorded_with_its_figures(on_postgres().await).await;
}

// req: S-290
#[tokio::test(flavor = "multi_thread")]
async fn opening_is_confirmed_by_name() {
    let place = sqlite::store().await;
    contract::reviewing::opening_is_confirmed_by_name(place.store.clone()).await;
    contract::reviewing::opening_is_confirmed_by_name(on_postgres().await).await;
}

// req: S-480
#[tokio::test(flavor = "multi_thread")]
async fn confirmation_is_of_the_effect_as_it_was() {
    let place = sqlite::store().await;
    contract::reviewing::confirmation_is_of_the_effect_as_it_was(place.store.clone()).await;
    contract::reviewing::confirmation_is_of_the_effect_as_it_was(on_postgres().await).await;
}

// req: S-481
#[tokio::test(flavor = "multi_thread")]
async fn approval_is_of_the_message_too() {
    let place = sqlite::store().await;
    contract::reviewing::approval_is_of_the_message_too(place.store.clone()).await;
    contract::reviewing::approval_is_of_the_message_too(on_postgres().await).await;
}

// req: S-290
#[tokio::test(flavor = "multi_thread")]
async fn rollback_over_a_rule_needs_the_right_to_administer() {
    let place = sqlite::store().await;
    contract::reviewing::rollback_over_a_rule_needs_the_right_to_administer(place.store.clone()).await;
    contract::reviewing::rollback_over_a_rule_needs_the_right_to_administer(on_postgres().await).await;
}

// req: S-295
#[tokio::test(flavor = "multi_thread")]
async fn breaking_change_is_confirmed_by_name_if_the_policy_says_so() {
    let place = sqlite::store().await;
    contract::reviewing::breaking_change_is_confirmed_by_name_if_the_policy_says_so(place.store.clone()).await;
    contract::reviewing::breaking_change_is_confirmed_by_name_if_the_policy_says_so(on_postgres().await).await;
}

// req: S-292
#[tokio::test(flavor = "multi_thread")]
async fn looser_policy_needs_the_approvals_of_the_present_one() {
    let place = sqlite::store().await;
    contract::reviewing::looser_policy_needs_the_approvals_of_the_present_one(place.store.clone()).await;
    contract::reviewing::looser_policy_needs_the_approvals_of_the_present_one(on_postgres().await).await;
}

// req: S-270
#[tokio::test(flavor = "multi_thread")]
async fn clock_that_was_ahead_once_does_not_set_later_times() {
    let place = sqlite::store().await;
    contract::history::clock_that_was_ahead_once_does_not_set_later_times(place.store.clone()).await;
    contract::history::clock_that_was_ahead_once_does_not_set_later_times(on_postgres().await).await;
}

// req: S-341
#[tokio::test(flavor = "multi_thread")]
async fn creators_of_a_token_cannot_approve_its_proposals() {
    let place = sqlite::store().await;
    contract::tokens::creators_of_a_token_cannot_approve_its_proposals(place.store.clone()).await;
    contract::tokens::creators_of_a_token_cannot_approve_its_proposals(on_postgres().await).await;
}

// req: S-351, S-508
#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_published_has_a_quota() {
    let place = sqlite::store().await;
    contract::uploading::what_is_not_published_has_a_quota(place.store.clone()).await;
    contract::uploading::what_is_not_published_has_a_quota(on_postgres().await).await;
}

// req: S-351
#[tokio::test(flavor = "multi_thread")]
async fn old_uploads_that_nothing_refers_to_are_removed() {
    let place = sqlite::store().await;
    contract::uploading::old_uploads_that_nothing_refers_to_are_removed(place.store.clone()).await;
    contract::uploading::old_uploads_that_nothing_refers_to_are_removed(on_postgres().await).await;
}

// req: S-521
#[tokio::test(flavor = "multi_thread")]
async fn parts_resume_are_verified_counted_and_removed() {
    let place = sqlite::store().await;
    contract::uploading::parts_resume_are_verified_counted_and_removed(place.store.clone()).await;
    contract::uploading::parts_resume_are_verified_counted_and_removed(on_postgres().await).await;
}

// req: S-588
#[tokio::test(flavor = "multi_thread")]
async fn stopped_rollout_is_not_finished() {
    let place = sqlite::store().await;
    contract::rollouts::stopped_rollout_is_not_finished(place.store.clone()).await;
    contract::rollouts::stopped_rollout_is_not_finished(on_postgres().await).await;
}

//! The behaviour that every driver has, as functions over an empty store.

pub(crate) mod copying;
pub(crate) mod evaluating;
pub(crate) mod history;
pub(crate) mod publishing;
pub(crate) mod reading;
pub(crate) mod repeating;
pub(crate) mod reviewing;
pub(crate) mod rollouts;
pub(crate) mod source_signals;
pub(crate) mod tokens;
pub(crate) mod uploading;
pub(crate) mod usage;
pub(crate) mod webhooks;

/// Calls a macro with the names of the functions of the contract. Those that defend against a threat are in `threats`.
macro_rules! all {
    ($run:ident) => {
        $run! {
            publishing::first_publish_makes_the_channel_and_revision_1,
            publishing::independent_changes_do_not_conflict,
            publishing::two_edits_of_one_file_conflict,
            publishing::equal_change_is_not_made_twice,
            publishing::dry_run_stores_nothing,
            publishing::error_leaves_an_open_proposal,
            publishing::emergency_passes_over_the_policy_and_is_recorded,
            publishing::concurrent_writers_make_dense_revisions,
            publishing::unloadable_tree_is_never_published,
            publishing::check_sees_the_whole_resulting_tree,
            reading::delta_has_exactly_the_changes,
            reading::delta_is_complete_for_another_epoch_or_a_newer_revision,
            reading::unknown_names_are_not_found,
            reading::every_revision_stays_readable,
            reading::contents_are_read_by_digest,
            reading::hundred_thousand_files_fit,
            tokens::created_tokens_are_valid_until_they_are_revoked,
            tokens::tokens_with_unusable_names_are_refused,
            source_signals::requests_for_sources_are_counted_once_each,
            repeating::repeated_request_gets_the_first_answer,
            repeating::answers_of_a_caller_are_bounded,
            reviewing::approvals_of_the_policy_publish,
            reviewing::stored_approval_is_told_what_others_did_meanwhile,
            reviewing::revision_has_the_policy_that_it_met,
            reviewing::rejected_and_withdrawn_proposals_are_closed,
            reviewing::approval_of_outdated_changes_does_not_publish,
            reviewing::proposal_is_published_on_request_only_if_the_policy_is_met,
            reviewing::failing_tests_stop_a_publish_if_the_policy_says_so,
            reviewing::contents_of_a_proposal_are_readable,
            reviewing::only_the_author_replaces_or_withdraws,
            reviewing::comments_belong_to_lines_of_the_present_changes,
            reviewing::only_who_may_publish_publishes,
            reviewing::policy_changes_only_if_it_is_the_expected_one,
            copying::promotion_copies_all_files,
            copying::promotion_never_undoes_a_change_of_the_target,
            copying::promotion_of_a_prompt_brings_what_it_needs,
            copying::promotion_without_the_rule_of_its_source_is_an_opening,
            copying::promotion_lists_other_prompts_of_shared_files,
            copying::promotion_without_a_partial_is_refused,
            copying::promoted_prompt_replaces_its_old_file,
            copying::promotion_follows_the_policy_of_the_target,
            copying::rollback_makes_a_new_revision,
            copying::rollback_of_one_prompt_keeps_the_others,
            evaluating::required_evaluation_holds_a_publish_until_it_passes,
            evaluating::regression_against_the_served_version_holds_a_publish,
            evaluating::malformed_result_is_refused,
            history::channel_counts_its_own_versions,
            history::history_tells_what_was_served_at_a_time,
            history::history_of_a_prompt_has_its_revisions_only,
            history::garbage_is_removed_and_used_contents_stay,
            history::pruned_history_keeps_the_served_state,
            history::prompts_are_listed_with_their_versions_in_every_channel,
            history::new_epoch_changes_every_head,
            history::digests_tell_histories_apart,
            usage::figures_of_batches_are_merged_and_each_batch_counts_once,
            usage::old_hours_become_days_and_older_ones_are_removed,
            webhooks::changes_queue_events_in_the_order_of_commits,
            webhooks::failed_delivery_waits_dies_and_is_queued_again,
            webhooks::one_store_at_a_time_delivers,
            webhooks::broken_revision_is_announced_once,
            rollouts::rollout_has_phases_and_a_channel_has_one,
            rollouts::promotion_ends_a_rollout_and_every_change_is_announced,
        }
    };
}
pub(crate) use all;

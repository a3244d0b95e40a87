//! History, version numbers, retention.

use std::time::Duration;

use promptshelf_store::{HistoryQuery, PolicyGuard, PromptStanding, StandingQuery, Store, StoreError, Verdict};

use crate::sample::{actor, channel, policy, prompts, publish, review, tamper, texts};

pub(crate) async fn channel_counts_its_own_versions(store: Store) {
    publish(&store, "hidden", 0, &[("a.md", "", "A"), ("b.md", "", "B")]).await.unwrap();
    publish(&store, "hidden", 1, &[("a.md", "A", "A2")]).await.unwrap();
    publish(&store, "hidden", 2, &[("a.md", "A2", "A3")]).await.unwrap();
    // The texts of another channel, in another order, and others.
    let texts = ["A3", "X", "A", "A3", "A2", "A", "X2"];
    let expected = [1, 2, 3, 1, 4, 3, 5];
    for (revision, text) in texts.iter().enumerate() {
        let before = revision.checked_sub(1).map_or("", |at| texts[at]);
        let published = publish(&store, "open", revision as u64, &[("a.md", before, *text)]).await.unwrap();
        assert_eq!(published.prompts[0].version, expected[revision], "{text}");
    }
    let open = channel("open");
    let served = store.served(&open, 4).await.unwrap();
    assert_eq!((served[0].version, served[0].since, served[0].until), (1, 4, Some(5)));
    for version in 1..=7 {
        let last = store.last_with_version(&open, "a", version).await.unwrap();
        assert_eq!(last.is_some(), version <= 5, "{version}");
        assert!(last.is_none_or(|(_, served)| served.version == version));
        assert!(store.last_with_version(&open, "b", version).await.unwrap().is_none());
    }
    // The digest tells where the same text is served.
    let found = store.standings_of(&["a".to_owned()], |_| true).await.unwrap().remove(0).channels;
    assert!(found.len() == 2 && found[0].digest != found[1].digest, "{found:?}");
    publish(&store, "open", 7, &[("a.md", "X2", "A3")]).await.unwrap();
    let found = store.standings_of(&["a".to_owned()], |_| true).await.unwrap().remove(0).channels;
    assert_eq!((found[0].version, found[1].version, found[0].digest), (3, 1, found[1].digest));
}

pub(crate) async fn history_tells_what_was_served_at_a_time(store: Store) {
    publish(&store, "c", 0, &[("a.md", "", "A"), ("b.md", "", "B")]).await.unwrap();
    publish(&store, "c", 1, &[("a.md", "A", "A2")]).await.unwrap();
    publish(&store, "c", 2, &[("b.md", "B", "")]).await.unwrap();
    let c = channel("c");
    let all = store.history(&c, &HistoryQuery::default()).await.unwrap();
    assert_eq!(all.iter().map(|revision| revision.number).collect::<Vec<_>>(), [3, 2, 1]);
    for revision in &all {
        let at = HistoryQuery { at: Some(revision.at), ..HistoryQuery::default() };
        let found = store.history(&c, &at).await.unwrap();
        // Revisions within one tick of the clock have one time: the last of them was served then.
        let last = all.iter().find(|other| other.at == revision.at).unwrap();
        assert_eq!(found.iter().map(|found| found.number).collect::<Vec<_>>(), [last.number]);
    }
    let before = all[2].at - jiff::SignedDuration::from_micros(1);
    let query = HistoryQuery { at: Some(before), ..HistoryQuery::default() };
    assert!(store.history(&c, &query).await.unwrap().is_empty());
    let of_a = HistoryQuery { at: Some(all[0].at), prompt: Some("a".to_owned()), ..HistoryQuery::default() };
    assert_eq!(store.history(&c, &of_a).await.unwrap()[0].number, 2);
}

pub(crate) async fn clock_that_was_ahead_once_does_not_set_later_times(store: Store) {
    publish(&store, "c", 0, &[("a.md", "", "A")]).await.unwrap();
    let url = store.url().to_string();
    let years = "UPDATE ps_revision SET at = at + 315360000000000";
    let minutes = "UPDATE ps_revision SET at = at + 300000000 WHERE number = 2";
    tamper(&url, years).await;
    publish(&store, "c", 1, &[("a.md", "A", "A2")]).await.unwrap();
    tamper(&url, minutes).await;
    publish(&store, "c", 2, &[("a.md", "A2", "A3")]).await.unwrap();
    let all = store.history(&channel("c"), &HistoryQuery::default()).await.unwrap();
    let now = jiff::Timestamp::now();
    let [third, second, first] = all.as_slice() else { panic!("{all:?}") };
    assert!(first.at > now + jiff::SignedDuration::from_hours(24 * 3_000), "{first:?}");
    assert!(second.at < now + jiff::SignedDuration::from_mins(6), "{second:?}");
    assert!(second.clock_ahead.is_some_and(|seconds| seconds > 300_000_000), "{second:?}");
    // A clock that was set back by minutes sets no time back.
    assert_eq!((third.at, third.clock_ahead, first.clock_ahead), (second.at, None, None));
}

pub(crate) async fn history_of_a_prompt_has_its_revisions_only(store: Store) {
    publish(&store, "c", 0, &[("a.md", "", "A"), ("b.md", "", "B")]).await.unwrap();
    publish(&store, "c", 1, &[("b.md", "B", "B2")]).await.unwrap();
    publish(&store, "c", 2, &[("a.md", "A", "A2")]).await.unwrap();
    publish(&store, "c", 3, &[("a.md", "A2", "")]).await.unwrap();
    let numbers = async |query: HistoryQuery| {
        let history = store.history(&channel("c"), &query).await.unwrap();
        history.iter().map(|revision| revision.number).collect::<Vec<_>>()
    };
    let of_a = HistoryQuery { prompt: Some("a".to_owned()), ..HistoryQuery::default() };
    assert_eq!(numbers(of_a.clone()).await, [4, 3, 1]);
    assert_eq!(numbers(HistoryQuery { limit: 1, ..of_a.clone() }).await, [4]);
    assert_eq!(numbers(HistoryQuery { before: Some(3), ..of_a }).await, [1]);
    assert_eq!(numbers(HistoryQuery { before: Some(3), ..HistoryQuery::default() }).await, [2, 1]);
    assert!(numbers(HistoryQuery { prompt: Some("x' OR 1=1".to_owned()), ..Default::default() }).await.is_empty());
}

pub(crate) async fn garbage_is_removed_and_used_contents_stay(store: Store) {
    publish(&store, "c", 0, &[("a.md", "", "A")]).await.unwrap();
    publish(&store, "c", 1, &[("a.md", "A", "A2")]).await.unwrap();
    store.set_policy(&channel("c"), &policy(1, false), &PolicyGuard::Any, "", &actor("root")).await.unwrap();
    let open = publish(&store, "c", 2, &[("b.md", "", "open")]).await.unwrap().proposal;
    let closed = publish(&store, "c", 2, &[("b.md", "", "closed")]).await.unwrap().proposal;
    assert_eq!(store.gc().await.unwrap(), (0, 0));
    review(&store, closed.id, Verdict::Reject, "", None, "ben").await.unwrap();
    assert_eq!(store.gc().await.unwrap(), (1, 6));
    assert_eq!(texts(&store, "c", Some(1)).await.len(), 1);
    assert_eq!(store.proposal_contents(open.id).await.unwrap().len(), 1);
    let error = store.proposal_contents(closed.id).await.unwrap_err();
    assert!(matches!(error, StoreError::NotFound { .. }), "{error}");
    // Removed contents can come again.
    let again = publish(&store, "c", 2, &[("b.md", "", "closed")]).await.unwrap().proposal;
    review(&store, again.id, Verdict::Approve, "", None, "ben").await.unwrap();
    assert_eq!(texts(&store, "c", None).await[1].1, "closed");
}

pub(crate) async fn pruned_history_keeps_the_served_state(store: Store) {
    let c = channel("c");
    publish(&store, "c", 0, &[("a.md", "", "A"), ("b.md", "", "B")]).await.unwrap();
    let first = store.head(&c).await.unwrap();
    publish(&store, "c", 1, &[("a.md", "A", "A2")]).await.unwrap();
    publish(&store, "c", 2, &[("a.md", "A2", "A3"), ("b.md", "B", "")]).await.unwrap();
    assert_eq!(store.prune(Duration::from_secs(3_600)).await.unwrap(), 0);
    let (before, served) = (texts(&store, "c", None).await, store.served(&c, 3).await.unwrap());
    let last = store.revision(&c, 3).await.unwrap();
    let found = store.prunable(Duration::ZERO).await.unwrap().remove(0);
    assert_eq!((found.revisions, found.kept, found.oldest), (2, 1, 3));
    assert_eq!(store.prune(Duration::ZERO).await.unwrap(), 2);
    assert_eq!(store.prunable(Duration::ZERO).await.unwrap(), []);
    assert_eq!(store.gc().await.unwrap().0, 3);
    assert_eq!(texts(&store, "c", None).await, before);
    assert_eq!(store.served(&c, 3).await.unwrap(), served);
    assert_eq!(store.revision(&c, 3).await.unwrap(), last);
    assert_eq!(store.history(&c, &HistoryQuery::default()).await.unwrap().len(), 1);
    let error = store.files(&c, Some(2)).await.unwrap_err();
    assert!(error.to_string().contains("it has 3 to 3"), "{error}");
    // A replica from before reads everything again, and version numbers go on.
    assert!(store.delta(&c, Some(&first)).await.unwrap().is_complete);
    let published = publish(&store, "c", 3, &[("a.md", "A3", "A4")]).await.unwrap();
    assert_eq!(prompts(&published), [("a", 4, "changed")]);
    let published = publish(&store, "c", 4, &[("a.md", "A4", "A")]).await.unwrap();
    assert_eq!(prompts(&published), [("a", 1, "changed")]);
}

pub(crate) async fn new_epoch_changes_every_head(store: Store) {
    publish(&store, "one", 0, &[("a.md", "", "A")]).await.unwrap();
    let before = store.head(&channel("one")).await.unwrap();
    let epoch = store.new_epoch().await.unwrap();
    let after = store.head(&channel("one")).await.unwrap();
    assert_ne!(before.epoch, epoch);
    assert_eq!((after.epoch, after.revision), (epoch, 1));
    publish(&store, "one", 1, &[("a.md", "A", "A2")]).await.unwrap();
}

pub(crate) async fn digests_tell_histories_apart(store: Store) {
    let c = channel("c");
    assert_eq!(publish(&store, "c", 0, &[("a.md", "", "A")]).await.unwrap().proposal.revision, Some(1));
    let first = store.head(&c).await.unwrap();
    publish(&store, "c", 1, &[("a.md", "A", "A2")]).await.unwrap();
    publish(&store, "c", 2, &[("a.md", "A2", "A")]).await.unwrap();
    let head = store.head(&c).await.unwrap();
    let digests: Vec<_> =
        store.history(&c, &HistoryQuery::default()).await.unwrap().iter().map(|revision| revision.digest).collect();
    assert_eq!((digests[0], digests[2]), (head.digest, first.digest));
    assert!(digests.iter().all(Option::is_some) && digests[0] != digests[2], "equal files, other histories");
    // What a replica has is in the history, or it gets everything.
    let delta = store.delta(&c, Some(&first)).await.unwrap();
    assert!(!delta.is_complete);
    let other = promptshelf_store::Head { digest: head.digest, ..first.clone() };
    let delta = store.delta(&c, Some(&other)).await.unwrap();
    assert_eq!((delta.is_complete, delta.files.len()), (true, 1));
    let files = [("a.md", promptshelf_store::Digest::of(b"A"))].into_iter().collect();
    assert_eq!(delta.tree, Some(promptshelf_store::Digest::of_tree(&files)));
    // After retention the chain begins at the oldest revision.
    store.prune(Duration::ZERO).await.unwrap();
    assert_eq!(store.head(&c).await.unwrap(), head);
    assert_eq!(store.verify().await.unwrap()[0].misfit, None);
    publish(&store, "c", 3, &[("a.md", "A", "A4")]).await.unwrap();
    assert_eq!(store.verify().await.unwrap()[0].misfit, None);
}

pub(crate) async fn prompts_are_listed_with_their_versions_in_every_channel(store: Store) {
    publish(&store, "a", 0, &[("B.md", "", "1"), ("a_b.md", "", "1"), ("axb.md", "", "1")]).await.unwrap();
    publish(&store, "a", 1, &[("axb.md", "1", "2")]).await.unwrap();
    publish(&store, "b", 0, &[("axb.md", "", "1"), ("ä.md", "", "1")]).await.unwrap();
    publish(&store, "hidden", 0, &[("secret.md", "", "1")]).await.unwrap();
    let list = async |text: Option<&str>, after: Option<&str>, limit: usize| {
        let own = |text: Option<&str>| text.map(str::to_owned);
        let query = StandingQuery { text: own(text), after: own(after), limit };
        let found = store.standings(&query, |channel| channel.as_str() != "hidden").await.unwrap();
        assert_eq!(found.channels.len(), 2);
        let versions = |prompt: PromptStanding| {
            let channels = prompt.channels.iter().map(|at| format!("{} {}", at.channel, at.version));
            (prompt.name, channels.collect::<Vec<_>>().join(", "))
        };
        (found.prompts.into_iter().map(versions).collect::<Vec<_>>(), found.has_more)
    };
    let expect = |rows: &[(&str, &str)], has_more| {
        (rows.iter().map(|(name, at)| ((*name).to_owned(), (*at).to_owned())).collect::<Vec<_>>(), has_more)
    };
    let all = [("B", "a 1"), ("a_b", "a 1"), ("axb", "a 2, b 1"), ("ä", "b 1")];
    assert_eq!(list(None, None, 10).await, expect(&all, false));
    assert_eq!(list(None, None, 2).await, expect(&all[..2], true));
    assert_eq!(list(None, Some("a_b"), 2).await, expect(&all[2..], false));
    assert_eq!(list(Some("A_B"), None, 10).await, expect(&all[1..2], false), "no wildcard");
    assert_eq!(list(Some("%"), None, 10).await, expect(&[], false));
    assert_eq!(list(Some("!"), None, 10).await, expect(&[], false));
}

//! A checker of histories: what clients asked and were told while faults happened, against what the store has in the end.
//!
//! The newest revision of a channel is a number that only publishes raise, each by one. Then a history is linearizable exactly
//! if every publish has a revision of its own, and no call that began after another one had ended was told of an older
//! state than that one. The real order is known from clocks that no fault changes.

use std::collections::{BTreeMap, BTreeSet};

/// A call of a client. Times are of one monotonic clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// When it began.
    pub began: u64,
    /// When the answer arrived, or the client gave up.
    pub ended: u64,
    /// What was asked and told.
    pub what: What,
}

/// What was asked and told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// A publish with an id of its own in its message.
    Publish {
        /// The id.
        id: String,
        /// The answer.
        answer: Answer,
    },
    /// A read of the newest revision from the store.
    Head {
        /// Its number.
        revision: u64,
        /// Its digest.
        digest: String,
    },
    /// A read of a prompt from a replica, which may be behind.
    Served {
        /// The process of the replica; each start is another one.
        process: usize,
        /// The id in the text of the prompt.
        id: String,
    },
}

/// The answer to a publish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It is this revision.
    Revision(u64),
    /// It was refused, and is none.
    Refused,
    /// No answer came, or one that leaves it open.
    Unknown,
}

/// A revision that the store has in the end: its number, the id of its publish, its digest.
pub type Kept = (u64, String, String);

/// Returns what is wrong with a history.
#[must_use]
pub fn problems(calls: &[Call], kept: &[Kept]) -> Vec<String> {
    let mut problems = Vec::new();
    let numbers: Vec<u64> = kept.iter().map(|(number, ..)| *number).collect();
    if numbers != (1..=kept.len() as u64).collect::<Vec<_>>() {
        problems.push(format!("the revisions have gaps: {numbers:?}"));
    }
    let mut by_id: BTreeMap<&str, u64> = BTreeMap::new();
    for (number, id, _) in kept {
        if let Some(other) = by_id.insert(id, *number) {
            problems.push(format!("publish {id} was applied twice: as {other} and {number}"));
        }
    }
    let digests: BTreeMap<u64, &str> = kept.iter().map(|(number, _, digest)| (*number, digest.as_str())).collect();
    // When each kept revision can have come into being: its publish had begun.
    let mut begins: BTreeMap<u64, u64> = BTreeMap::new();
    for call in calls {
        let What::Publish { id, answer } = &call.what else { continue };
        let found = by_id.get(id.as_str()).copied();
        match (answer, found) {
            (Answer::Revision(told), found) if found != Some(*told) => {
                problems.push(format!("publish {id} was told to be revision {told}, and is {found:?}"));
            }
            (Answer::Refused, Some(found)) => {
                problems.push(format!("publish {id} was refused, and is revision {found}"));
            }
            _ => {}
        }
        if let Some(found) = found {
            begins.insert(found, call.began);
        }
    }
    let mut heads: Vec<(&Call, u64, bool)> = Vec::new();
    let mut served: BTreeMap<usize, Vec<(&Call, u64)>> = BTreeMap::new();
    for call in calls {
        match &call.what {
            What::Publish { answer: Answer::Revision(revision), .. } => heads.push((call, *revision, true)),
            What::Publish { .. } => {}
            What::Head { revision, digest } => {
                if *revision > 0 && digests.get(revision) != Some(&digest.as_str()) {
                    problems.push(format!("revision {revision} was read with digest {digest}, and has another one"));
                }
                heads.push((call, *revision, false));
            }
            What::Served { process, id } => match by_id.get(id.as_str()) {
                Some(revision) => served.entry(*process).or_default().push((call, *revision)),
                None => problems.push(format!("replica {process} served {id}, which never was a revision")),
            },
        }
    }
    let reads = heads.iter().filter(|(.., is_publish)| !is_publish).map(|(call, revision, _)| (*call, *revision));
    for (call, revision) in reads.chain(served.values().flatten().copied()) {
        if begins.get(&revision).is_some_and(|began| call.ended < *began) {
            problems.push(format!("revision {revision} was read before its publish had begun: {call:?}"));
        }
    }
    problems.extend(backwards("the store", heads));
    for (process, reads) in served {
        let reads = reads.into_iter().map(|(call, revision)| (call, revision, false)).collect();
        problems.extend(backwards(&format!("replica {process}"), reads));
    }
    let distinct: BTreeSet<String> = problems.into_iter().collect();
    distinct.into_iter().collect()
}

/// Returns the calls that were told of an older revision than a call that had ended before they began. A publish, which is
/// marked, has to be newer.
fn backwards(who: &str, mut calls: Vec<(&Call, u64, bool)>) -> Vec<String> {
    let mut problems = Vec::new();
    let mut ended: Vec<(u64, u64)> = calls.iter().map(|(call, revision, _)| (call.ended, *revision)).collect();
    ended.sort_unstable();
    calls.sort_by_key(|(call, ..)| call.began);
    let (mut at, mut newest) = (0, 0);
    for (call, revision, is_publish) in calls {
        while let Some((end, known)) = ended.get(at).filter(|(end, _)| *end < call.began) {
            let _ = end;
            newest = newest.max(*known);
            at += 1;
        }
        if revision < newest || (is_publish && revision == newest) {
            problems.push(format!("{who} told of revision {newest}, and of {revision} afterwards: {call:?}"));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(ids: &[&str]) -> Vec<Kept> {
        ids.iter().enumerate().map(|(at, id)| (at as u64 + 1, (*id).to_owned(), format!("d{}", at + 1))).collect()
    }

    fn publish(began: u64, ended: u64, id: &str, answer: Answer) -> Call {
        Call { began, ended, what: What::Publish { id: id.to_owned(), answer } }
    }

    fn head(began: u64, ended: u64, revision: u64) -> Call {
        Call { began, ended, what: What::Head { revision, digest: format!("d{revision}") } }
    }

    fn served(began: u64, ended: u64, process: usize, id: &str) -> Call {
        Call { began, ended, what: What::Served { process, id: id.to_owned() } }
    }

    /// Two publishes at the same time, an unanswered one, a refused one, and reads that overlap them.
    fn good() -> (Vec<Call>, Vec<Kept>) {
        let calls = vec![
            publish(0, 10, "a", Answer::Revision(1)),
            publish(20, 40, "b", Answer::Revision(3)),
            publish(20, 30, "c", Answer::Unknown),
            publish(50, 60, "d", Answer::Refused),
            publish(50, 60, "e", Answer::Unknown),
            head(21, 39, 1),
            head(25, 50, 3),
            head(41, 42, 3),
            served(11, 12, 0, "a"),
            served(100, 101, 0, "c"),
            served(100, 101, 1, "a"),
            served(110, 111, 0, "b"),
        ];
        (calls, kept(&["a", "c", "b"]))
    }

    #[test]
    fn linearizable_history_has_no_problem() {
        let (calls, kept) = good();
        assert_eq!(problems(&calls, &kept), [""; 0]);
    }

    #[test]
    fn each_kind_of_problem_is_found() {
        let (calls, all) = good();
        let with = |call: Call| [calls.clone(), vec![call]].concat();
        let found = |calls: &[Call], kept: &[Kept], words: &str| {
            let problems = problems(calls, kept);
            assert!(problems.iter().any(|problem| problem.contains(words)), "{words}: {problems:?}");
        };
        found(&calls, &all[1..], "gaps");
        found(&calls, &kept(&["a", "c"]), "told to be revision 3");
        found(&calls, &kept(&["a", "c", "b", "b"]), "applied twice");
        found(&calls, &kept(&["a", "c", "b", "d"]), "was refused, and is");
        found(&with(head(70, 71, 2)), &all, "the store told of revision 3, and of 2 afterwards");
        found(&with(publish(70, 71, "f", Answer::Revision(3))), &all, "told to be revision 3");
        found(&with(head(1, 5, 3)), &all, "before its publish had begun");
        found(&with(served(1, 5, 2, "b")), &all, "before its publish had begun");
        found(&with(served(120, 121, 0, "c")), &all, "replica 0 told of revision 3, and of 2 afterwards");
        found(&with(served(120, 121, 0, "d")), &all, "never was a revision");
        let other = Call { began: 70, ended: 71, what: What::Head { revision: 3, digest: "other".to_owned() } };
        found(&with(other), &all, "has another one");
        // A replica that starts again may be behind the one before; a process may not.
        assert_eq!(problems(&with(served(120, 121, 3, "a")), &all), [""; 0]);
    }

    #[test]
    fn two_publishes_in_turn_have_growing_revisions() {
        let calls = [publish(0, 1, "a", Answer::Revision(2)), publish(2, 3, "b", Answer::Revision(1))];
        assert_eq!(problems(&calls, &kept(&["b", "a"])).len(), 1);
    }
}

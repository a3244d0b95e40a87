//! The statistics of a guarded rollout: counts of two groups of callers, and the evidence that one of them fails more.
//!
//! The test may be looked at after every batch. For each alternative ratio the likelihood of the batches is compared with
//! that of the bound; the mean of these products is a nonnegative supermartingale that starts at 1 while the bound holds,
//! so it exceeds 1/α at any time with a probability of at most α (Ville's inequality). See `docs/design/rollout.md`.

/// The ratios that are tested, as multiples of the bound. Each has the same weight.
const ALTERNATIVES: [f64; RATIOS] = [1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0];

/// The number of alternatives.
pub const RATIOS: usize = 7;

/// Calls, and how many of them failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trials {
    /// All of them.
    pub count: u64,
    /// Those that failed.
    pub failures: u64,
}

impl Trials {
    /// Adds other trials.
    pub fn merge(&mut self, other: Trials) {
        self.count = self.count.saturating_add(other.count);
        self.failures = self.failures.saturating_add(other.failures);
    }
}

/// The evidence that the share of failures of the candidate is above that of the stable group, by more than a factor.
///
/// ```
/// use promptshelf_core::rollout::{Evidence, Trials};
///
/// let mut evidence = Evidence::default();
/// let stable = Trials { count: 900, failures: 9 };
/// evidence.add(2.0, Trials { count: 100, failures: 1 }, stable);
/// assert!(evidence.value() < 1.0);
/// evidence.add(2.0, Trials { count: 100, failures: 30 }, stable);
/// assert!(evidence.value() > 1e6);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Evidence {
    /// The logarithm of the likelihood ratio of each alternative.
    pub log_ratios: [f64; RATIOS],
}

impl Evidence {
    /// Adds a batch of calls of the same time. `bound` is the factor that is tolerated.
    pub fn add(&mut self, bound: f64, candidate: Trials, stable: Trials) {
        if candidate.count == 0 || stable.count == 0 {
            // Without a comparison the failures say nothing.
            return;
        }
        let (candidate_count, stable_count) = (candidate.count as f64, stable.count as f64);
        // Of the failures of a batch, this share is the candidate's if its rate is `ratio` times the other one.
        let share = |ratio: f64| ratio * candidate_count / (ratio * candidate_count + stable_count);
        let expected = share(bound);
        for (log_ratio, alternative) in self.log_ratios.iter_mut().zip(ALTERNATIVES) {
            let other = share(bound * alternative);
            *log_ratio += candidate.failures as f64 * (other / expected).ln();
            *log_ratio += stable.failures as f64 * ((1.0 - other) / (1.0 - expected)).ln();
        }
    }

    /// Returns the evidence against the bound: 1 for none. While the bound holds, it ever exceeds `x` with a probability of
    /// at most `1/x`.
    #[must_use]
    pub fn value(&self) -> f64 {
        self.log_ratios.iter().map(|log_ratio| log_ratio.min(700.0).exp()).sum::<f64>() / RATIOS as f64
    }
}

/// The number of callers in a [`FailingCallers`] and a [`CallerEvidence`].
pub const FAILING_CALLERS: usize = 8;

/// The callers of the candidate that failed in a batch, by hash, with their failures. If there are more, the rarest ones
/// share a place (Metwally, Agrawal and El Abbadi, *Efficient Computation of Frequent and Top-k Elements in Data Streams*,
/// 2005).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FailingCallers(pub [(u64, u64); FAILING_CALLERS]);

impl FailingCallers {
    /// Adds failures of a caller.
    pub fn add(&mut self, caller: u64, failures: u64) {
        let known = self.0.iter().position(|(known, count)| *count > 0 && *known == caller);
        let least = || (0..FAILING_CALLERS).min_by_key(|at| self.0[*at].1).unwrap_or_default();
        let at = known.unwrap_or_else(least);
        self.0[at] = (caller, self.0[at].1.saturating_add(failures));
    }

    /// Adds other callers.
    pub fn merge(&mut self, other: FailingCallers) {
        other
            .0
            .into_iter()
            .filter(|(_, failures)| *failures > 0)
            .for_each(|(caller, failures)| self.add(caller, failures));
    }
}

/// The part of the evidence that rests on each of the callers that failed most, as the logarithms of likelihood ratios.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CallerEvidence(pub [(u64, [f64; RATIOS]); FAILING_CALLERS]);

impl CallerEvidence {
    /// Adds the failing callers of a batch, of which both groups have this number of calls.
    pub fn add(&mut self, bound: f64, failing: FailingCallers, candidate: u64, stable: u64) {
        if candidate == 0 || stable == 0 {
            return;
        }
        let (candidate, stable) = (candidate as f64, stable as f64);
        let share = |ratio: f64| ratio * candidate / (ratio * candidate + stable);
        let weight = |(_, log_ratios): &(u64, [f64; RATIOS])| log_ratios[RATIOS - 1];
        for (caller, failures) in failing.0.into_iter().filter(|(_, failures)| *failures > 0) {
            let known = self.0.iter().position(|known| weight(known) > 0.0 && known.0 == caller);
            let order = |a: &usize, b: &usize| weight(&self.0[*a]).total_cmp(&weight(&self.0[*b]));
            let at = known.or_else(|| (0..FAILING_CALLERS).min_by(order)).unwrap_or_default();
            let (known, log_ratios) = &mut self.0[at];
            *known = caller;
            for (log_ratio, alternative) in log_ratios.iter_mut().zip(ALTERNATIVES) {
                *log_ratio += failures as f64 * (share(bound * alternative) / share(bound)).ln();
            }
        }
    }

    /// Returns the evidence that is left without the failures of any one caller: one alone proves nothing.
    #[must_use]
    pub fn left_without_one(&self, evidence: &Evidence) -> f64 {
        let without = |(_, own): &(u64, [f64; RATIOS])| {
            let mut left = *evidence;
            left.log_ratios.iter_mut().zip(own).for_each(|(log_ratio, own)| *log_ratio -= own);
            left.value()
        };
        self.0.iter().map(without).fold(evidence.value(), f64::min)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A deterministic generator (splitmix64).
    struct Random(u64);

    impl Random {
        fn next(&mut self) -> f64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = self.0;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            (z ^ (z >> 31)) as f64 / u64::MAX as f64
        }

        fn trials(&mut self, count: u64, rate: f64) -> Trials {
            let failures = (0..count).filter(|_| self.next() < rate).count() as u64;
            Trials { count, failures }
        }
    }

    /// The threshold of one of three tests that together alarm falsely in at most 1 % of rollouts.
    const THRESHOLD: f64 = 300.0;

    /// The numbers of `docs/guide/src/serving/rollout.md`: callers that fail, one after the other, while no other call does.
    #[test]
    fn failing_callers_that_stop_a_rollout_depend_on_its_share() {
        let needed = |percent: u64| {
            let (mut evidence, mut callers) = (Evidence::default(), CallerEvidence::default());
            (1..1_000_u64).find(|caller| {
                evidence.add(2.0, Trials { count: percent, failures: 1 }, Trials { count: 100 - percent, failures: 0 });
                let mut failing = FailingCallers::default();
                failing.add(*caller, 1);
                callers.add(2.0, failing, percent, 100 - percent);
                callers.left_without_one(&evidence) >= THRESHOLD
            })
        };
        assert_eq!([10, 30, 50, 80].map(needed), [6, 12, 21, 71].map(Some));
    }

    /// Simulated rollouts with 20 calls in a batch, looked at after each one. Returns the share that is stopped within
    /// 200 batches, and the median number of the candidate's calls until then.
    fn simulate(percent: u64, stable: f64, candidate: f64, runs: u64) -> (f64, u64) {
        let mut random = Random(percent * 1_000_003 + (stable * 1e6) as u64 * 31 + (candidate * 1e6) as u64);
        let mut delays = Vec::new();
        for _ in 0..runs {
            let (mut evidence, mut calls) = (Evidence::default(), 0);
            for _ in 0..200 {
                let of_candidate = (0..20).filter(|_| random.next() * 100.0 < percent as f64).count() as u64;
                calls += of_candidate;
                let failed = (random.trials(of_candidate, candidate), random.trials(20 - of_candidate, stable));
                evidence.add(2.0, failed.0, failed.1);
                if evidence.value() >= THRESHOLD {
                    delays.push(calls);
                    break;
                }
            }
        }
        delays.sort_unstable();
        let median = delays.get(delays.len() / 2).copied().unwrap_or_default();
        (delays.len() as f64 / runs as f64, median)
    }

    /// The table of `docs/design/rollout.md`; `-- --nocapture` prints it.
    // req: S-200
    #[test]
    fn false_alarms_stay_below_the_bound_and_regressions_are_found() {
        println!("| share | failures now | failures of the new version | stopped | median calls until then |");
        let row = |percent, stable, candidate| {
            let (stopped, calls) = simulate(percent, stable, candidate, 400);
            let delay = if stopped > 0.5 { calls.to_string() } else { "–".to_owned() };
            println!("| {percent} % | {stable} | {candidate} | {:.1} % | {delay} |", stopped * 100.0);
            (stopped, calls)
        };
        // At and below the bound of twice as many: at most 1 in 300, and 400 runs allow for chance.
        for (percent, stable, candidate) in
            [(10, 0.01, 0.01), (10, 0.01, 0.02), (10, 0.2, 0.4), (50, 0.05, 0.1), (90, 0.3, 0.6)]
        {
            let (stopped, _) = row(percent, stable, candidate);
            assert!(stopped <= 0.01, "{percent} % at {stable} and {candidate}: {stopped}");
        }
        for (percent, stable, candidate, within) in [
            (10, 0.01, 1.0, 10),
            (10, 0.01, 0.5, 20),
            (10, 0.01, 0.1, 200),
            (50, 0.01, 0.1, 600),
            (10, 0.0, 0.1, 100),
            (10, 0.1, 0.5, 100),
        ] {
            let (stopped, calls) = row(percent, stable, candidate);
            assert!(stopped > 0.95 && calls <= within, "{percent} % at {stable} and {candidate}: {stopped}, {calls}");
        }
    }

    /// Rollouts of the same version. A tenth of the callers fails in a fifth of its calls, with either version.
    fn simulate_callers(callers: usize, runs: u64) -> f64 {
        let mut random = Random(callers as u64);
        let mut stopped = 0;
        for _ in 0..runs {
            let all: Vec<(bool, f64)> =
                (0..callers).map(|_| (random.next() < 0.1, if random.next() < 0.1 { 0.2 } else { 0.0 })).collect();
            let mut evidence = Evidence::default();
            stopped += u64::from((0..200).any(|_| {
                let mut groups = [Trials::default(); 2];
                for _ in 0..20 {
                    let (is_candidate, rate) = all[(random.next() * callers as f64) as usize % callers];
                    let failed = u64::from(random.next() < rate);
                    groups[usize::from(is_candidate)].merge(Trials { count: 1, failures: failed });
                }
                evidence.add(2.0, groups[1], groups[0]);
                evidence.value() >= THRESHOLD
            }));
        }
        stopped as f64 / runs as f64
    }

    #[test]
    fn false_alarms_of_callers_that_differ_fall_with_their_number() {
        let shares = [20, 100, 500].map(|callers| simulate_callers(callers, 200));
        println!("callers 20, 100, 500: {shares:?}");
        assert!(shares[0] > shares[2] && shares[2] <= 0.03, "{shares:?}");
    }

    #[derive(Clone, Copy, Debug)]
    enum Dishonest {
        Nobody,
        Fails,
        Succeeds,
        FailsElsewhere,
    }

    /// Rollouts of ten hours, in which each caller is observed at most once in a period of five minutes, and calls in two
    /// thirds of them. The first callers have the new version. Returns the share that is stopped, and the median minute.
    fn simulate_dishonest(dishonest: Dishonest, of_candidate: usize, rates: [f64; 2], runs: u64) -> (f64, usize) {
        const CALLERS: usize = 40;
        let seed = of_candidate as u64 * 1_000_003 + (rates[1] * 1e4) as u64 + dishonest as u64;
        let mut random = Random(seed);
        let mut minutes = Vec::new();
        for _ in 0..runs {
            let (mut evidence, mut callers) = (Evidence::default(), CallerEvidence::default());
            for minute in (0..600).step_by(5) {
                let (mut groups, mut failing) = ([Trials::default(); 2], FailingCallers::default());
                for caller in 0..CALLERS {
                    let group = usize::from(caller < of_candidate);
                    let has_failed = match (dishonest, caller) {
                        (Dishonest::Fails, 0) => true,
                        (Dishonest::FailsElsewhere, _) if caller + 1 == CALLERS => true,
                        (Dishonest::Succeeds, 0) => false,
                        _ if random.next() > 0.67 => continue,
                        _ => random.next() < rates[group],
                    };
                    groups[group].merge(Trials { count: 1, failures: u64::from(has_failed) });
                    if has_failed && group == 1 {
                        failing.add(caller as u64, 1);
                    }
                }
                evidence.add(2.0, groups[1], groups[0]);
                callers.add(2.0, failing, groups[1].count, groups[0].count);
                if callers.left_without_one(&evidence) >= THRESHOLD {
                    minutes.push(minute);
                    break;
                }
            }
        }
        minutes.sort_unstable();
        (minutes.len() as f64 / runs as f64, minutes.get(minutes.len() / 2).copied().unwrap_or_default())
    }

    /// The second table of `docs/design/rollout.md`.
    // req: S-268
    #[test]
    fn one_dishonest_caller_stops_and_hides_nothing() {
        println!(
            "| dishonest caller | callers of 40 with the new version | failures now, then | stopped | median minute |"
        );
        let row = |dishonest, of_candidate, rates: [f64; 2]| {
            let (stopped, minute) = simulate_dishonest(dishonest, of_candidate, rates, 100);
            println!(
                "| {dishonest:?} | {of_candidate} | {}, {} | {:.0} % | {minute} |",
                rates[0],
                rates[1],
                stopped * 100.0
            );
            (stopped, minute)
        };
        for of_candidate in [4, 20] {
            for rate in [0.0, 0.01, 0.05] {
                let (stopped, _) = row(Dishonest::Fails, of_candidate, [rate, rate]);
                assert!(stopped <= 0.03, "{of_candidate} callers at {rate}: {stopped}");
            }
            for dishonest in [Dishonest::Nobody, Dishonest::Succeeds, Dishonest::FailsElsewhere] {
                let (stopped, minute) = row(dishonest, of_candidate, [0.01, 0.5]);
                assert!(stopped > 0.95 && minute <= 120, "{dishonest:?}, {of_candidate} callers: {stopped}, {minute}");
            }
        }
    }

    #[test]
    fn batch_without_both_groups_says_nothing() {
        let mut evidence = Evidence::default();
        evidence.add(2.0, Trials { count: 0, failures: 0 }, Trials { count: 9, failures: 9 });
        evidence.add(2.0, Trials { count: 9, failures: 9 }, Trials::default());
        assert_eq!(evidence, Evidence::default());
        // Overwhelming evidence stays a number.
        evidence.add(1.0, Trials { count: 1_000_000, failures: 1_000_000 }, Trials { count: 1_000_000, failures: 0 });
        assert!(evidence.value().is_finite() && evidence.value() > 1e100);
    }
}

//! A fault at each statement: every statement of every operation is refused, loses its connection, or is not answered.
//!
//! Afterwards the store is as before or as after the operation, the error is the documented one, and a repetition does what
//! the reference model says.

use promptshelf_store::Fault;
use promptshelf_testkit::{amount, figure};

use crate::sequences::{Edit, Place, Rules, Run, Step, Who};

const ADA: Who = Who { name: 0, may_publish: true, may_administer: true };
const BEN: Who = Who { name: 2, may_publish: true, may_administer: true };
const CLEO: Who = Who { name: 3, may_publish: false, may_administer: false };
const RULES: Rules = Rules {
    approvals: 1,
    four_eyes: false,
    checks: 0,
    tests: false,
    evaluations: 0,
    no_regression: false,
    no_breaking: false,
    role: 0,
    reviewers: 0,
};

fn edits(edits: &[(u8, Option<u8>)]) -> [Option<Edit>; 3] {
    std::array::from_fn(|at| edits.get(at).map(|(path, text)| Edit { path: *path, text: *text }))
}

fn publish(who: Who, to: u8, changes: &[(u8, Option<u8>)]) -> Step {
    let edits = edits(changes);
    Step::Publish { who, to, back: 0, edits, replace: None, expected: 2, urgent: false, dry: false }
}

/// A store with some of everything: two channels with history, an open proposal in one with a policy, events that wait,
/// a dead letter, a rollout, tokens, uploads and garbage.
fn beginning() -> Vec<Step> {
    vec![
        Step::Register { webhook: 0 },
        publish(ADA, 0, &[(0, Some(3)), (4, Some(0))]),
        publish(ADA, 0, &[(0, Some(4)), (1, Some(6))]),
        publish(ADA, 1, &[(0, Some(3)), (4, Some(0)), (2, Some(9))]),
        publish(ADA, 1, &[(1, Some(1)), (2, Some(10))]),
        Step::SetPolicy { who: ADA, channel: 1, rules: RULES, guard: 7, by_operator: true },
        // The proposal that is reviewed, published, replaced, withdrawn and commented on.
        publish(CLEO, 1, &[(0, Some(1)), (2, None)]),
        publish(CLEO, 2, &[(0, Some(2))]),
        Step::BeginRollout { from: 0, to: 1, percent: 10 },
        Step::CreateToken { who: BEN, helper: false },
        Step::AddUsage { batch: 0, prompt: 0, count: 3 },
        Step::Upload { text: 13 },
        Step::Deliver { fails: true },
        Step::Deliver { fails: true },
    ]
}

/// Every operation that changes a store, as one that succeeds after [`beginning`].
fn operations() -> Vec<Step> {
    let proposal = 0;
    vec![
        publish(BEN, 0, &[(0, Some(1)), (1, None), (5, Some(2))]),
        publish(CLEO, 1, &[(5, Some(2))]),
        // Stops the rollout to channel 1, where the file is open.
        publish(BEN, 0, &[(2, Some(9))]),
        Step::Publish {
            who: CLEO,
            to: 1,
            back: 0,
            edits: edits(&[(0, Some(2))]),
            replace: Some(proposal),
            expected: 1,
            urgent: false,
            dry: false,
        },
        Step::Rename { who: ADA, to: 0, from: 0, path: 3 },
        Step::Review { who: BEN, proposal, reject: false, stale: false, confirm: 2 },
        Step::Review { who: BEN, proposal, reject: true, stale: false, confirm: 0 },
        Step::PublishProposal { who: BEN, proposal, stale: false, urgent: true },
        Step::Withdraw { who: ADA, proposal },
        Step::Comment { who: BEN, proposal, path: Some(0), line: Some(1), after: true, stale: false },
        Step::Promote { who: ADA, from: 1, to: 0, prompts: [None, None], all: true, dry: false },
        Step::Promote { who: ADA, from: 1, to: 2, prompts: [Some(0), None], all: false, dry: false },
        Step::RollBack { who: ADA, channel: 0, back: 1, prompt: None, dry: false },
        Step::RollBack { who: ADA, channel: 0, back: 1, prompt: Some(0), dry: false },
        Step::SetPolicy { who: BEN, channel: 0, rules: RULES, guard: 2, by_operator: true },
        Step::SetPolicy { who: BEN, channel: 1, rules: Rules { approvals: 0, ..RULES }, guard: 7, by_operator: false },
        Step::Evaluate { who: BEN, channel: 0, prompt: 0, proposal: None, back: 0, score: 2, threshold: true },
        Step::Register { webhook: 1 },
        Step::Deliver { fails: false },
        Step::Deliver { fails: true },
        Step::Redeliver { letter: 0 },
        Step::ReportBroken { channel: 1, back: 0 },
        Step::BeginRollout { from: 1, to: 0, percent: 10 },
        Step::SetRollout { who: ADA, from: 0, to: 1, percent: Some(20) },
        Step::SetRollout { who: ADA, from: 0, to: 1, percent: None },
        Step::CreateToken { who: ADA, helper: true },
        Step::RevokeToken { who: ADA, token: 0 },
        Step::AddUsage { batch: 1, prompt: 0, count: 3 },
        Step::Signal { source: 0 },
        Step::Upload { text: 8 },
        Step::Collect,
        Step::Prune { keep: 0 },
        Step::NewEpoch,
    ]
}

/// Whether an operation on a store that was lost is one, by its error.
fn is_documented(fault: Fault, problem: &str) -> bool {
    match fault {
        Fault::Refused => problem.contains("store: Err(Database)"),
        Fault::Cut | Fault::Unanswered => problem.contains("store: Err(Unreachable)"),
    }
}

async fn faults(place: Place, normally: u64) {
    let mut first = Run::new(place).await;
    for step in beginning() {
        first.step(step).await.unwrap_or_else(|problem| panic!("{step:?}: {problem}"));
    }
    first.read_all(0).await.unwrap();
    let template = first.into_template().await;
    let (mut all, mut statements, mut turn) = (0, 0, 0);
    // Every so many of the faults; `FAULTS=1` tries all.
    let every = amount("FAULTS").unwrap_or(normally);
    for step in operations() {
        let told = |what: &str, problem: String| panic!("{step:?}: {what}: {problem}");
        // Without a fault: the state after the operation, and the number of its statements.
        let mut run = template.again().await;
        let before = run.model.clone();
        run.writer.break_statement(u64::MAX, Fault::Refused);
        run.step(step).await.unwrap_or_else(|problem| told("without a fault", problem));
        let count = u64::MAX - run.writer.unbroken_statements();
        let after = run.model.clone();
        run.end().await;
        statements += count;
        for number in 1..=count {
            for fault in [Fault::Refused, Fault::Cut, Fault::Unanswered] {
                turn += 1;
                if turn % every != 0 {
                    continue;
                }
                let what = format!("statement {number} of {count}, {fault:?}");
                let mut run = template.again().await;
                run.writer.break_statement(number, fault);
                let problem = run.step(step).await.err().unwrap_or_default();
                // The end of an operation that is refused anyway: its connection is closed, and nobody has to know.
                let is_rollback = number == count && problem.is_empty();
                assert!(is_rollback || is_documented(fault, &problem), "{step:?}: {what}: {problem}");
                all += 1;
                // As before, as after, or between the two transactions of a review.
                let between = run.only_reviewed(&before, step);
                let mut problems = Vec::new();
                // A commit whose answer is lost has happened, which not every state shows.
                let is_done = number == count && matches!(fault, Fault::Unanswered);
                let ends = if is_done { [&after, &before] } else { [&before, &after] };
                for state in ends.into_iter().chain(between.as_ref()) {
                    run.model = state.clone();
                    run.see_again().await.unwrap();
                    match run.read_all(0).await {
                        Ok(()) => {
                            problems.clear();
                            break;
                        }
                        Err(problem) => problems.push(problem),
                    }
                }
                assert!(problems.is_empty(), "{step:?}: {what}: neither as before nor as after: {problems:#?}");
                run.step(step).await.unwrap_or_else(|problem| told(&format!("{what}: repeated"), problem));
                run.read_all(0).await.unwrap_or_else(|problem| told(&format!("{what}: after the repetition"), problem));
                run.end().await;
            }
        }
    }
    let operations = operations().len();
    figure(&format!("faults at statements: {operations} operations, {statements} statements, {all} faults"));
}

// req: S-451
#[tokio::test]
async fn fault_at_each_statement_leaves_the_old_or_the_new_state_on_sqlite() {
    faults(Place::sqlite(), 7).await;
}

// req: S-451
#[tokio::test]
async fn fault_at_each_statement_leaves_the_old_or_the_new_state_on_postgres() {
    faults(Place::postgres(), 41).await;
}

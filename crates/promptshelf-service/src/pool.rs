//! Threads for work whose amount callers and authors choose: renderings, checks, comparisons, analyses, loading.
//!
//! The threads of the runtime answer all requests, so that none of them may compute for long. The places here are
//! bounded. Each caller has one for each [`Amount`], work makes way at its metered steps for callers who have used less of
//! late, and it ends with the request that wants it, or when it has computed for two minutes.

use std::{
    collections::{HashMap, HashSet},
    future::poll_fn,
    pin::Pin,
    sync::{
        Arc, LazyLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::Poll,
    thread,
    time::{Duration, Instant},
};

use parking_lot::{Condvar, Mutex, MutexGuard};
use promptshelf_core::Interrupt;
use tokio::{
    runtime::Handle,
    sync::{Notify, oneshot},
};

use crate::caller::Caller;

/// The amount of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Amount {
    /// Milliseconds up to a second: one rendering.
    Small,
    /// Up to the time-out of a request: the check of a library. It leaves one place to small work.
    Large,
}

/// The reason why there is no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Stopped {
    /// The panic hook has logged the reason.
    #[error("the work was stopped by a panic")]
    Panic,
    /// It has computed for too long.
    #[error("the work was stopped after {} seconds", LONGEST.as_secs())]
    Late,
}

/// The longest time for which one piece of work computes; the time in which it makes way for others does not count.
const LONGEST: Duration = Duration::from_secs(120);

/// How much more than a waiting caller another one has used when its work makes way.
const SLICE: Duration = Duration::from_millis(20);

/// The time between two looks of working threads at those who wait.
const LOOK: Duration = Duration::from_millis(1);

/// The time in which half of what a caller has used is forgotten.
const HALF_LIFE: Duration = Duration::from_secs(10);

/// The pieces of work that have begun, most of which make way for others: each of them occupies memory.
const BEGUN: usize = 32;

static TURNS: LazyLock<Mutex<Turns>> = LazyLock::new(|| {
    // Two at least, so that one caller alone does not delay all others.
    Mutex::new(Turns::with_places(thread::available_parallelism().map_or(1, usize::from).max(2)))
});

/// Notified when jobs get a place, or are no longer wanted.
static CHANGED: Condvar = Condvar::new();

/// Whether jobs wait for a place.
static IS_CONTENDED: AtomicBool = AtomicBool::new(false);

fn turns() -> MutexGuard<'static, Turns> {
    TURNS.lock()
}

/// Who computes and who waits. A place belongs to whoever has used least.
struct Turns {
    large_places: usize,
    jobs: Vec<Job>,
    next: u64,
    callers: HashMap<String, Used>,
}

struct Job {
    id: u64,
    caller: String,
    amount: Amount,
    state: State,
    has_begun: bool,
    is_unwanted: bool,
    computed: Duration,
    granted: Arc<Notify>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// For a place.
    Waiting,
    /// Since then.
    Computing(Instant),
    /// For something outside of the pool, such as another server.
    Idle,
}

impl Job {
    fn is_computing(&self) -> bool {
        matches!(self.state, State::Computing(_))
    }

    fn computed(&self, now: Instant) -> Duration {
        match self.state {
            State::Computing(since) => self.computed + now.saturating_duration_since(since),
            State::Waiting | State::Idle => self.computed,
        }
    }

    fn is_late(&self, now: Instant) -> bool {
        self.computed(now) > LONGEST
    }
}

/// What a caller has used of late.
struct Used {
    time: Duration,
    at: Instant,
}

impl Used {
    fn at(&self, now: Instant) -> Duration {
        let halves = now.saturating_duration_since(self.at).as_secs_f64() / HALF_LIFE.as_secs_f64();
        self.time.mul_f64(0.5_f64.powf(halves))
    }
}

impl Turns {
    fn with_places(large_places: usize) -> Turns {
        Turns { large_places, jobs: Vec::new(), next: 0, callers: HashMap::new() }
    }

    fn job(&self, id: u64) -> Option<&Job> {
        self.jobs.iter().find(|job| job.id == id)
    }

    fn used(&self, job: &Job, now: Instant) -> Duration {
        let before = self.callers.get(&job.caller).map_or(Duration::ZERO, |used| used.at(now));
        before + job.computed(now) - job.computed
    }

    /// Returns whether there is a place, apart from that of a job that may make way.
    fn has_place_for(&self, amount: Amount, leaving: Option<u64>) -> bool {
        let others = || self.jobs.iter().filter(|job| job.is_computing() && Some(job.id) != leaving);
        let large = others().filter(|job| job.amount == Amount::Large).count();
        others().count() <= self.large_places && (amount == Amount::Small || large < self.large_places)
    }

    /// Returns the jobs that may have a place: the first of each caller, unless too many have begun.
    fn candidates(&self) -> impl Iterator<Item = &Job> {
        let begun = self.jobs.iter().filter(|job| job.has_begun && job.state != State::Idle).count();
        let mut busy: HashSet<(Amount, &str)> =
            self.jobs.iter().filter(|job| job.has_begun).map(|job| (job.amount, job.caller.as_str())).collect();
        self.jobs.iter().filter(move |job| {
            let may = job.has_begun || begun < BEGUN && busy.insert((job.amount, job.caller.as_str()));
            may && job.state == State::Waiting
        })
    }

    /// Gives free places to those who have used least.
    fn grant(&mut self, now: Instant) {
        loop {
            let fitting = self.candidates().filter(|job| self.has_place_for(job.amount, None));
            let next = fitting.min_by_key(|job| (self.used(job, now), job.id)).map(|job| job.id);
            let Some(job) = self.jobs.iter_mut().find(|job| Some(job.id) == next) else { break };
            job.state = State::Computing(now);
            job.has_begun = true;
            job.granted.notify_one();
        }
        IS_CONTENDED.store(self.jobs.iter().any(|job| job.state == State::Waiting), Ordering::Relaxed);
        CHANGED.notify_all();
    }

    fn join(&mut self, caller: String, amount: Amount, now: Instant) -> (u64, Arc<Notify>) {
        self.next += 1;
        let granted = Arc::new(Notify::new());
        self.jobs.push(Job {
            id: self.next,
            caller,
            amount,
            state: State::Waiting,
            has_begun: false,
            is_unwanted: false,
            computed: Duration::ZERO,
            granted: Arc::clone(&granted),
        });
        self.grant(now);
        (self.next, granted)
    }

    /// Ends the turn of a job, if it has one, and gives its place to another one.
    fn set(&mut self, id: u64, state: State, now: Instant) {
        let Some(job) = self.jobs.iter_mut().find(|job| job.id == id) else { return };
        let time = job.computed(now) - job.computed;
        (job.computed, job.state) = (job.computed + time, state);
        let used = self.callers.entry(job.caller.clone()).or_insert(Used { time: Duration::ZERO, at: now });
        *used = Used { time: used.at(now) + time, at: now };
        self.grant(now);
    }

    /// Returns whether a job has to make way for another one.
    fn has_to_make_way(&self, id: u64, now: Instant) -> bool {
        let Some(job) = self.job(id).filter(|job| job.is_computing()) else { return false };
        let least = self.candidates().filter(|other| self.has_place_for(other.amount, Some(id)));
        least.map(|other| self.used(other, now) + SLICE).min().is_some_and(|least| least < self.used(job, now))
    }

    fn end(&mut self, id: u64, now: Instant) {
        self.set(id, State::Idle, now);
        self.jobs.retain(|job| job.id != id);
        self.callers.retain(|_, used| used.at(now) > LOOK);
        self.grant(now);
    }
}

/// A job as its threads know it.
struct Worker {
    id: u64,
    began: Instant,
    steps: AtomicU64,
    /// When its threads look at those who wait, in microseconds after it began.
    look_at: AtomicU64,
}

impl Worker {
    /// Makes way for others who have used less. Returns whether the work has to stop.
    fn step(&self) -> bool {
        // Reading the clock takes longer than many a step.
        let is_counted = self.steps.fetch_add(1, Ordering::Relaxed).is_multiple_of(256);
        if !is_counted && !IS_CONTENDED.load(Ordering::Relaxed) {
            return false;
        }
        let now = Instant::now();
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let since = micros(now - self.began);
        if since < self.look_at.load(Ordering::Relaxed) {
            return false;
        }
        self.look_at.store(since + micros(LOOK), Ordering::Relaxed);
        let mut turns = turns();
        if turns.has_to_make_way(self.id, now) {
            turns.set(self.id, State::Waiting, now);
        }
        self.wait(turns)
    }

    /// Waits for a place, unless it has one. Returns whether the work has to stop.
    fn wait(&self, mut turns: MutexGuard<'_, Turns>) -> bool {
        let is_waiting =
            |turns: &mut Turns| turns.job(self.id).is_some_and(|job| job.state == State::Waiting && !job.is_unwanted);
        CHANGED.wait_while(&mut turns, is_waiting);
        turns.job(self.id).is_some_and(|job| job.is_unwanted || job.is_late(Instant::now()))
    }

    /// Waits for a place after [`leave`](Worker::leave). Returns whether the work has to stop.
    fn enter(&self) -> bool {
        let mut turns = turns();
        if turns.job(self.id).is_some_and(|job| job.state == State::Idle) {
            turns.set(self.id, State::Waiting, Instant::now());
        }
        self.wait(turns)
    }

    /// Gives the place away while the work waits for something outside of the pool.
    fn leave(&self) {
        turns().set(self.id, State::Idle, Instant::now());
    }
}

/// A job in the pool, until its work ends.
struct Place(Arc<Worker>);

impl Place {
    async fn take(caller: &Caller, amount: Amount) -> Place {
        let began = Instant::now();
        let (id, granted) = turns().join(caller.limit_key(), amount, began);
        // From here on a dropped future removes the job.
        let place = Place(Arc::new(Worker { id, began, steps: AtomicU64::new(1), look_at: AtomicU64::default() }));
        granted.notified().await;
        place
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        turns().end(self.0.id, Instant::now());
    }
}

/// Stops a job when its request ends.
struct Wanted {
    id: u64,
    interrupt: Interrupt,
}

impl Drop for Wanted {
    fn drop(&mut self) {
        self.interrupt.set();
        let mut turns = turns();
        if let Some(job) = turns.jobs.iter_mut().find(|job| job.id == self.id) {
            job.is_unwanted = true;
            CHANGED.notify_all();
        }
    }
}

/// Runs work of a caller in the pool. It is stopped by its [`Interrupt`] when the returned future is dropped, as it is when
/// the request times out or its client goes away. Work inside of other work is done at once, as a part of it.
///
/// # Errors
///
/// [`Stopped`].
pub async fn run<T: Send + 'static>(
    caller: &Caller,
    amount: Amount,
    work: impl FnOnce(&Interrupt) -> T + Send + 'static,
) -> Result<T, Stopped> {
    run_worker(caller, amount, |interrupt, _| work(interrupt)).await
}

async fn run_worker<T: Send + 'static>(
    caller: &Caller,
    amount: Amount,
    work: impl FnOnce(&Interrupt, Option<&Worker>) -> T + Send + 'static,
) -> Result<T, Stopped> {
    if let Some(of_outer) = Interrupt::current() {
        return Ok(work(&of_outer, None));
    }
    let Ok(runtime) = Handle::try_current() else {
        let interrupt = Interrupt::new();
        return Ok(interrupt.scope(|| work(&interrupt, None)));
    };
    let place = Place::take(caller, amount).await;
    let worker = Arc::clone(&place.0);
    let interrupt = Interrupt::with_step(move || worker.step());
    let _wanted = Wanted { id: place.0.id, interrupt: interrupt.clone() };
    let working = runtime.spawn_blocking(move || {
        let done = interrupt.scope(|| work(&interrupt, Some(&place.0)));
        let is_late = turns().job(place.0.id).is_some_and(|job| job.is_late(Instant::now()));
        // What stopped work returns is incomplete.
        if is_late && interrupt.is_set() { Err(Stopped::Late) } else { Ok(done) }
    });
    working.await.unwrap_or(Err(Stopped::Panic))
}

/// Runs a future of a caller in the pool like [`run`]. It has no place while it waits, and is dropped soon after the
/// returned future has been dropped.
///
/// # Errors
///
/// [`Stopped`].
pub async fn run_future<T: Send + 'static, F: Future<Output = T> + Send + 'static>(
    caller: &Caller,
    amount: Amount,
    future: impl FnOnce() -> F + Send + 'static,
) -> Result<T, Stopped> {
    if Interrupt::current().is_some() {
        return Ok(future().await);
    }
    let Ok(runtime) = Handle::try_current() else { return Ok(future().await) };
    let (_wanted, dropped) = oneshot::channel::<()>();
    let work = move |_: &Interrupt, worker: Option<&Worker>| {
        let (mut future, mut dropped) = (Box::pin(future()), dropped);
        runtime.block_on(poll_fn(|context| {
            if Pin::new(&mut dropped).poll(context).is_ready() || worker.is_some_and(Worker::enter) {
                return Poll::Ready(None);
            }
            let polled = future.as_mut().poll(context).map(Some);
            if polled.is_pending() {
                worker.inspect(|worker| worker.leave());
            }
            polled
        }))
    };
    run_worker(caller, amount, work).await?.ok_or(Stopped::Late)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use promptshelf_core::is_interrupted;
    use tokio::time::timeout;

    use super::*;

    fn caller(number: usize) -> Caller {
        Caller::anonymous().with_address([192, 0, 2, u8::try_from(number).expect("few callers")].into())
    }

    /// Threads without bound would take the processors from other requests.
    // req: S-55
    #[tokio::test]
    async fn work_at_a_time_is_bounded() {
        static RUNNING: AtomicUsize = AtomicUsize::new(0);
        static MOST: AtomicUsize = AtomicUsize::new(0);
        let work = |_: &Interrupt| {
            MOST.fetch_max(RUNNING.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            thread::sleep(Duration::from_millis(20));
            RUNNING.fetch_sub(1, Ordering::SeqCst);
        };
        let start = |number| tokio::spawn(async move { run(&caller(number), Amount::Large, work).await });
        let places = turns().large_places;
        let all: Vec<_> = (0..4 * places).map(start).collect();
        for one in all {
            one.await.expect("no panic").expect("no panic");
        }
        let most = MOST.load(Ordering::SeqCst);
        assert!(most <= places, "{most}");
    }

    fn large(turns: &mut Turns, name: &str, now: Instant) -> u64 {
        turns.join(name.to_owned(), Amount::Large, now).0
    }

    /// One round of metered steps of all jobs that compute.
    fn steps(turns: &mut Turns, now: Instant) {
        for id in turns.jobs.iter().map(|job| job.id).collect::<Vec<_>>() {
            if turns.has_to_make_way(id, now) {
                turns.set(id, State::Waiting, now);
            }
            let computing = turns.jobs.iter().filter(|job| job.is_computing()).count();
            assert!(computing <= turns.large_places, "the next one begins when another one rests");
        }
    }

    // req: S-276
    #[test]
    fn callers_with_long_work_compute_in_turns() {
        let (mut turns, mut now) = (Turns::with_places(2), Instant::now());
        let all: Vec<u64> = (0..7).map(|number| large(&mut turns, &format!("caller {number}"), now)).collect();
        for _ in 0..7_000 {
            now += LOOK;
            steps(&mut turns, now);
        }
        // Two places, so two of seven parts.
        let shares = all.iter().map(|id| turns.job(*id).expect("it goes on").computed(now));
        let shares: Vec<Duration> = shares.collect();
        let wanted = Duration::from_secs(2);
        assert!(shares.iter().all(|share| share.abs_diff(wanted) < Duration::from_millis(200)), "{shares:?}");
    }

    // req: S-276
    #[test]
    fn caller_who_has_used_less_waits_for_one_step() {
        let (mut turns, mut now) = (Turns::with_places(2), Instant::now());
        for number in 0..7 {
            large(&mut turns, &format!("caller {number}"), now);
        }
        for _ in 0..1_000 {
            now += LOOK;
            steps(&mut turns, now);
        }
        let brief = large(&mut turns, "brief", now);
        assert_eq!(turns.job(brief).map(|job| job.state), Some(State::Waiting), "all places are taken");
        steps(&mut turns, now);
        assert!(turns.job(brief).is_some_and(Job::is_computing));
        turns.end(brief, now + SLICE / 2);
        // A second piece of work of the same caller, and one who comes back after a long time.
        let again = large(&mut turns, "brief", now + SLICE / 2);
        steps(&mut turns, now + SLICE);
        assert!(turns.job(again).is_some_and(Job::is_computing));
    }

    #[test]
    fn what_a_caller_has_used_is_forgotten() {
        let (mut turns, mut now) = (Turns::with_places(2), Instant::now());
        let job = large(&mut turns, "a", now);
        now += Duration::from_secs(8);
        turns.set(job, State::Idle, now);
        let used = |turns: &Turns, now| turns.used(turns.job(job).expect("a job"), now);
        assert_eq!(used(&turns, now), Duration::from_secs(8));
        assert_eq!(used(&turns, now + HALF_LIFE), Duration::from_secs(4));
        turns.end(job, now + 20 * HALF_LIFE);
        assert!(turns.callers.is_empty() && turns.jobs.is_empty());
    }

    // req: S-276
    #[test]
    fn caller_has_one_place_for_each_amount() {
        let (mut turns, now) = (Turns::with_places(2), Instant::now());
        let (first, second) = (large(&mut turns, "a", now), large(&mut turns, "a", now));
        let (small, _) = turns.join("a".to_owned(), Amount::Small, now);
        let other = large(&mut turns, "b", now);
        let computing = |turns: &Turns, id| turns.job(id).is_some_and(Job::is_computing);
        let all = [first, second, small, other];
        assert_eq!(all.map(|id| computing(&turns, id)), [true, false, true, true]);
        turns.set(first, State::Idle, now);
        assert!(!computing(&turns, second), "the first one has not ended");
        turns.end(first, now);
        assert!(computing(&turns, second));
    }

    // req: S-276
    #[test]
    fn large_work_leaves_a_place_to_small_work() {
        let (mut turns, now) = (Turns::with_places(2), Instant::now());
        for number in 0..5 {
            large(&mut turns, &format!("caller {number}"), now);
        }
        let computing = |turns: &Turns| turns.jobs.iter().filter(|job| job.is_computing()).count();
        assert_eq!(computing(&turns), 2);
        let (small, _) = turns.join("small".to_owned(), Amount::Small, now);
        assert!(turns.job(small).is_some_and(Job::is_computing));
        assert_eq!(computing(&turns), 3);
    }

    #[test]
    fn number_of_begun_jobs_is_bounded() {
        let (mut turns, mut now) = (Turns::with_places(2), Instant::now());
        for number in 0..2 * BEGUN {
            large(&mut turns, &format!("caller {number}"), now);
        }
        for _ in 0..10_000 {
            now += LOOK;
            steps(&mut turns, now);
        }
        assert_eq!(turns.jobs.iter().filter(|job| job.has_begun).count(), BEGUN);
        let begun = turns.jobs.iter().find(|job| job.has_begun).map(|job| job.id).expect("one has begun");
        let last = turns.jobs.last().map(|job| job.id).expect("one waits");
        turns.end(begun, now);
        assert!(turns.job(last).is_some_and(|job| !job.has_begun), "those who came first");
    }

    // req: S-276
    #[test]
    fn work_that_computes_for_too_long_is_stopped() {
        let (mut turns, now) = (Turns::with_places(2), Instant::now());
        let (job, waiting) = (large(&mut turns, "a", now), large(&mut turns, "a", now));
        let is_late = |turns: &Turns, id, after| turns.job(id).is_some_and(|job| job.is_late(now + after));
        assert!(!is_late(&turns, job, LONGEST) && is_late(&turns, job, LONGEST + LOOK));
        assert!(!is_late(&turns, waiting, 2 * LONGEST), "time without a place does not count");
    }

    /// Callers who compute without end kept all places for a minute.
    // req: S-276
    #[tokio::test]
    async fn endless_work_of_others_delays_no_brief_work() {
        let endless = |number: usize| {
            let work = |_: &Interrupt| {
                while !is_interrupted() {
                    thread::yield_now();
                }
            };
            tokio::spawn(async move { run(&caller(number), Amount::Large, work).await })
        };
        let all: Vec<_> = (110..110 + 3 * turns().large_places).map(endless).collect();
        for _ in 0..5 {
            let asking = caller(109);
            let brief = timeout(LONGEST / 2, run(&asking, Amount::Large, |_| "brief"));
            assert_eq!(brief.await.expect("it has its turn"), Ok("brief"));
        }
        for one in all {
            assert!(!one.is_finished());
            one.abort();
        }
    }

    /// A large message to a server that does not answer occupied its place for the whole time.
    // req: S-276
    #[tokio::test]
    async fn future_that_waits_has_no_place() {
        let (_alive, answer) = tokio::sync::watch::channel(());
        let waiting = |number: usize| {
            let mut answer = answer.clone();
            let future = move || async move { answer.changed().await.is_ok() };
            tokio::spawn(async move { run_future(&caller(number), Amount::Large, future).await })
        };
        let all: Vec<_> = (140..140 + 2 * turns().large_places).map(waiting).collect();
        while turns().jobs.iter().filter(|job| job.state == State::Idle).count() < all.len() {
            tokio::task::yield_now().await;
        }
        assert_eq!(run(&caller(139), Amount::Large, |_| "other").await, Ok("other"));
        drop(_alive);
        for one in all {
            assert_eq!(one.await.expect("no panic"), Ok(false));
        }
    }

    // req: S-276
    #[tokio::test]
    async fn caller_has_one_place_and_delays_no_other() {
        let (release, released) = std::sync::mpsc::channel::<()>();
        let (started, is_started) = tokio::sync::oneshot::channel();
        let slow = tokio::spawn(async move {
            run(&caller(101), Amount::Large, move |_| {
                started.send(()).ok();
                released.recv().ok();
            })
            .await
        });
        is_started.await.expect("it has started");
        let second = tokio::spawn(async { run(&caller(101), Amount::Large, |_| ()).await });
        assert_eq!(run(&caller(102), Amount::Large, |_| "other").await, Ok("other"));
        assert!(!second.is_finished());
        drop(release);
        slow.await.expect("no panic").expect("no panic");
        second.await.expect("no panic").expect("no panic");
    }

    /// A request that timed out went on computing.
    // req: S-276
    #[tokio::test]
    async fn work_ends_with_its_request() {
        let (started, is_started) = tokio::sync::oneshot::channel();
        let (sender, ended) = tokio::sync::oneshot::channel();
        let request = tokio::spawn(async move {
            run(&caller(103), Amount::Large, move |_| {
                started.send(()).ok();
                while !is_interrupted() {
                    thread::yield_now();
                }
                sender.send(()).ok();
            })
            .await
        });
        is_started.await.expect("it has started");
        request.abort();
        ended.await.expect("the work ends");
    }

    #[tokio::test]
    async fn future_that_waits_ends_with_its_request() {
        let (alive, ended) = oneshot::channel::<()>();
        let (started, is_started) = oneshot::channel::<()>();
        let waiting = move || async move {
            started.send(()).ok();
            let _alive = alive;
            std::future::pending::<()>().await;
        };
        let request = tokio::spawn(async move { run_future(&caller(105), Amount::Small, waiting).await });
        is_started.await.expect("it has started");
        request.abort();
        assert!(ended.await.is_err(), "the future is dropped");
    }

    #[tokio::test]
    async fn work_inside_of_work_needs_no_second_place() {
        let nested = || async { run(&caller(104), Amount::Large, |_| 7).await };
        assert_eq!(run_future(&caller(104), Amount::Large, nested).await, Ok(Ok(7)));
    }
}

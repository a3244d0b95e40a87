//! Load of valid callers alone, and under attack, in turns of one run.
//!
//! Valid callers send at a fixed rate, each with a token and from its own address. Latency counts from the time at
//! which a request was due, so queueing behind a late response is included. Hostile callers run in a thread of lower
//! priority.

mod hostile;

use std::{
    collections::BTreeMap,
    fs,
    net::Ipv4Addr,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tokio::{task::JoinSet, time::sleep_until};

use self::hostile::Attackers;
use crate::{
    Plan, library,
    load::{Connection, Seen},
    message::{Era, ROWS},
    server::{self, Kind, Server},
};

pub(crate) use self::hostile::Done;

/// Number of valid callers, and the period of their requests: less than the 600 a minute that a server admits by default.
const CALLERS: u8 = 40;
const PERIOD: Duration = Duration::from_millis(125);

/// The longest turn without an attack.
const MAX_ALONE: Duration = Duration::from_secs(60);

/// The open files of the server, the usual limit of a service.
const FILES: u64 = 1_024;

/// The memory that clients can occupy, as `serve --help` states it: 128 KiB for each connection that these files permit,
/// twice the default of `request-bytes`, and the default of `response-bytes`.
pub(crate) const BOUND: u64 = (FILES - FILES / 8) * (128 << 10) + 2 * (64 << 20) + (128 << 20);

/// Results of the measurement.
#[derive(Debug)]
pub(crate) struct Attack {
    pub(crate) alone: Served,
    pub(crate) attacked: Served,
    /// Totals of hostile callers by kind.
    pub(crate) done: Vec<Done>,
    /// Duration of the attack.
    pub(crate) time: Duration,
    /// Peak memory of the server in bytes.
    pub(crate) memory: u64,
}

/// Responses to valid callers.
#[derive(Debug, Default)]
pub(crate) struct Served {
    pub(crate) seen: Seen,
    pub(crate) asked: usize,
    /// Requests without a response of status 200, by status or error.
    failed: BTreeMap<String, usize>,
}

impl Served {
    fn add(&mut self, turn: Served) {
        self.asked += turn.asked;
        for (reason, number) in turn.failed {
            *self.failed.entry(reason).or_default() += number;
        }
        self.seen.latencies.extend(turn.seen.latencies);
        self.seen.latencies.sort_unstable();
    }
}

/// Token and source address of a caller.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(crate) token: String,
    pub(crate) address: Ipv4Addr,
}

/// Runs the measurement if selected.
pub(crate) async fn measure(plan: &Plan) -> Result<Option<Attack>> {
    if !plan.wants("attack") {
        return Ok(None);
    }
    let folder = plan.scratch.join("attacked");
    fs::create_dir_all(&folder)?;
    library::write_asked(&folder)?;
    fs::write(folder.join("large.md"), "\"quoted\" text\n".repeat(300_000))?;
    let mut store = String::new();
    let mut caller = |name: &str, address: Ipv4Addr| -> Result<Caller> {
        let (token, line) = new_token(&plan.promptshelf, name)?;
        store += &format!("{line}\n");
        Ok(Caller { token, address })
    };
    let valid: Vec<Caller> =
        (1..=CALLERS).map(|at| caller(&format!("valid-{at}"), Ipv4Addr::new(127, 0, 1, at))).collect::<Result<_>>()?;
    let hostile: Vec<Caller> = (1..=hostile::KINDS)
        .map(|at| caller(&format!("hostile-{at}"), Ipv4Addr::new(127, 0, 2, at)))
        .collect::<Result<_>>()?;
    let tokens = plan.scratch.join("tokens");
    fs::write(&tokens, store)?;

    let port = server::free_port()?;
    let mut command = plan.programs.command(Kind::Promptshelf, port, (0, 0), &folder);
    command.arg("--tokens").arg(&tokens).arg("--audit").arg(plan.scratch.join("audit.jsonl"));
    let log = plan.scratch.join("attacked.log");
    // The server has all cores: those who attack a server do not run on it, and give way here.
    let server = Server::start(with_few_files(&command), port, None, &log)?;
    check(port, &valid[0]).await?;

    let seconds = plan.attack_seconds.map(Duration::from_secs);
    let time = seconds.unwrap_or(Duration::from_millis(if plan.quick { 1_500 } else { 4_000 }));
    let (mut alone, mut attacked, mut done) = (Served::default(), Served::default(), Vec::new());
    let mut attacked_for = Duration::ZERO;
    for _ in 0..plan.turns() {
        alone.add(ask_all(port, &valid, time.min(MAX_ALONE)).await?);
        let attackers = Attackers::start(port, &hostile, plan.cores.map(|cores| cores.1))?;
        attackers.at_work().await?;
        let begun = Instant::now();
        attacked.add(ask_all(port, &valid, time).await?);
        hostile::add(&mut done, attackers.stop()?);
        attacked_for += begun.elapsed();
    }
    let (_, memory) = server::memory(server.child.id())?;
    let found = Attack { alone, attacked, done, time: attacked_for, memory };
    for (name, served) in [("alone", &found.alone), ("under attack", &found.attacked)] {
        let [median, p99, worst] = [50, 99, 100].map(|percent| served.seen.percentile(percent));
        println!(
            "attack: valid callers {name:<12} {} of {} answered, median {median:.1?} p99 {p99:.1?} worst {worst:.1?}",
            served.seen.latencies.len(),
            served.asked,
        );
        for (reason, number) in &served.failed {
            println!("attack: {number} requests of valid callers {name} failed: {reason}");
        }
    }
    for done in &found.done {
        println!("attack: {done}");
    }
    println!("attack: peak memory of the server {} MB, bound {} MB", found.memory / 1_000_000, BOUND / 1_000_000);
    Ok(Some(found))
}

/// Runs a command with [`FILES`] open files.
fn with_few_files(command: &Command) -> Command {
    let mut limited = Command::new("sh");
    limited.args(["-c", &format!("ulimit -n {FILES}; exec \"$@\""), "sh"]).arg(command.get_program());
    limited.args(command.get_args());
    limited
}

fn new_token(promptshelf: &Path, name: &str) -> Result<(String, String)> {
    let output = Command::new(promptshelf).args(["token", "new", name, "--json"]).output()?;
    ensure!(output.status.success(), "`token new` failed: {}", String::from_utf8_lossy(&output.stderr));
    let made: Value = serde_json::from_slice(&output.stdout)?;
    let text = |key: &str| made[key].as_str().map(str::to_owned).context("`token new` printed no token");
    Ok((text("token")?, text("store")?))
}

/// The request of valid callers.
fn question(port: u16, token: &str) -> Result<Vec<u8>> {
    let message = ROWS[0].message(Era::Modern);
    Ok(with_token(&message.http(port), token))
}

/// Adds a token to a request.
pub(crate) fn with_token(request: &[u8], token: &str) -> Vec<u8> {
    let end = request.windows(2).position(|window| window == b"\r\n").map_or(0, |at| at + 2);
    [&request[..end], format!("authorization: Bearer {token}\r\n").as_bytes(), &request[end..]].concat()
}

/// Sends one request and validates its result.
async fn check(port: u16, caller: &Caller) -> Result<()> {
    let mut connection = Connection::from(caller.address, port).await?;
    ROWS[0].check(&connection.ask(&question(port, &caller.token)?).await?)
}

async fn ask_all(port: u16, callers: &[Caller], time: Duration) -> Result<Served> {
    let mut asking = JoinSet::new();
    let begin = Instant::now() + PERIOD;
    for (at, caller) in (0_u32..).zip(callers) {
        // Spreads the callers over one period.
        let first = begin + PERIOD * at / u32::from(CALLERS);
        asking.spawn(ask(port, caller.clone(), first, begin + time));
    }
    let mut served = Served::default();
    while let Some(one) = asking.join_next().await {
        served.add(one??);
    }
    Ok(served)
}

async fn ask(port: u16, caller: Caller, first: Instant, until: Instant) -> Result<Served> {
    let request = question(port, &caller.token)?;
    // A connection is opened when its first request is due: one that stays idle gives way to newer ones.
    let mut connection = None;
    let mut served = Served::default();
    let mut due = first;
    while due < until {
        let is_late = Instant::now() > due;
        sleep_until(due.into()).await;
        // A timer that fires late is not counted as latency.
        let sent = if is_late { due } else { Instant::now() };
        served.asked += 1;
        let open = match connection.take() {
            Some(open) => open,
            None => Connection::from(caller.address, port).await?,
        };
        let open = connection.insert(open);
        match open.exchange(&request).await {
            Ok((200, ..)) => served.seen.latencies.push(sent.elapsed()),
            // A refused request is counted, and the next one is sent normally.
            Ok((status, ..)) => *served.failed.entry(format!("status {status}")).or_default() += 1,
            Err(error) => {
                *served.failed.entry(error.to_string()).or_default() += 1;
                connection = None;
            }
        }
        due += PERIOD;
    }
    Ok(served)
}

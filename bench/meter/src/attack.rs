//! Load of valid callers of every door alone, and under attack, in turns of one run: MCP, the API of a store, its editor,
//! programs.
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
use serde_json::{Value, json};
use tokio::{task::JoinSet, time::sleep_until};

use self::hostile::Attackers;
use crate::{
    Plan, channels, library,
    load::{Connection, Seen},
    message::{Era, ROWS},
    server::{self, Kind, Server},
};

pub(crate) use self::hostile::Done;

/// A way into the server, with the number of its valid callers and the period of their requests: less than the 600 a
/// minute that a server admits by default.
pub(crate) struct Door {
    pub(crate) name: &'static str,
    callers: u8,
    period: Duration,
    request: fn(u16, &str) -> Result<Vec<u8>>,
}

const DOORS: [Door; 4] = [
    Door { name: "MCP", callers: 40, period: Duration::from_millis(125), request: question },
    Door {
        name: "programs",
        callers: 8,
        period: Duration::from_millis(250),
        request: |port, token| Ok(http(port, "GET", "/api/v1/prompts/one", token, "")),
    },
    Door {
        name: "API",
        callers: 4,
        period: Duration::from_millis(500),
        request: |port, token| Ok(http(port, "POST", "/api/v1/check", token, &check_of("valid.md", "Hello."))),
    },
    Door {
        name: "editor",
        callers: 4,
        period: Duration::from_millis(500),
        request: |port, token| {
            let body = json!({ "path": "one.md", "changes": [], "arguments": { "change": "x" } });
            Ok(http(port, "POST", "/api/v1/channels/production/analysis", token, &body.to_string()))
        },
    },
];

/// The longest turn without an attack.
const MAX_ALONE: Duration = Duration::from_secs(60);

/// The open files of the server, the usual limit of a service.
const FILES: u64 = 1_024;

/// The memory that clients can occupy, as `serve --help` states it: 128 KiB for each connection that these files permit,
/// twice the default of `request-bytes`, the default of `response-bytes`, and 256 MiB for contents that requests of the API
/// name by digest.
pub(crate) const BOUND: u64 = (FILES - FILES / 8) * (128 << 10) + 2 * (64 << 20) + (128 << 20) + (256 << 20);

/// Results of the measurement.
#[derive(Debug)]
pub(crate) struct Attack {
    /// By door.
    pub(crate) alone: Vec<(&'static str, Served)>,
    pub(crate) attacked: Vec<(&'static str, Served)>,
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

impl Attack {
    /// What each door has answered, alone and under attack.
    pub(crate) fn turns(&self) -> impl Iterator<Item = (&'static str, &(&'static str, Served))> {
        let pairs = self.alone.iter().zip(&self.attacked);
        pairs.flat_map(|(alone, attacked)| [("alone", alone), ("under attack", attacked)])
    }
}

/// Token and source address of a caller.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(crate) token: String,
    pub(crate) address: Ipv4Addr,
}

/// A valid caller of a door.
#[derive(Clone)]
struct Valid {
    door: usize,
    /// Its number among those of the door.
    number: u8,
    caller: Caller,
}

/// Runs the measurement if selected.
pub(crate) async fn measure(plan: &Plan) -> Result<Option<Attack>> {
    if !plan.wants("attack") {
        return Ok(None);
    }
    let folder = plan.scratch.join("attacked");
    fs::create_dir_all(&folder)?;
    library::write_asked(&folder)?;
    fs::write(folder.join("large.md"), "\"quoted\" text\n".repeat(220_000))?;
    let mut store = String::new();
    let mut caller = |name: &str, address: Ipv4Addr| -> Result<Caller> {
        let (token, line) = new_token(&plan.promptshelf, name)?;
        store += &format!("{line}\n");
        Ok(Caller { token, address })
    };
    let mut valid = Vec::new();
    for (door, Door { callers, .. }) in DOORS.iter().enumerate() {
        for number in 0..*callers {
            let third = u8::try_from(10 + door)?;
            let caller = caller(&format!("valid-{door}-{number}"), Ipv4Addr::new(127, 0, third, number + 1))?;
            valid.push(Valid { door, number, caller });
        }
    }
    let hostile: Vec<Caller> = (1..=hostile::KINDS)
        .map(|at| caller(&format!("hostile-{at}"), Ipv4Addr::new(127, 0, 2, at)))
        .collect::<Result<_>>()?;
    let tokens = plan.scratch.join("tokens");
    fs::write(&tokens, store)?;

    channels::init(plan, &server::store(&folder), &folder)?;
    let port = server::free_port()?;
    let mut command = plan.programs.command(Kind::Channel, port, (0, 0), &folder);
    command.arg("--tokens").arg(&tokens).arg("--audit").arg(plan.scratch.join("audit.jsonl"));
    let log = plan.scratch.join("attacked.log");
    // The server has all cores: those who attack a server do not run on it, and give way here.
    let server = Server::start(with_few_files(&command), port, None, &log)?;
    check(port, &valid).await?;

    let seconds = plan.attack_seconds.map(Duration::from_secs);
    let time = seconds.unwrap_or(Duration::from_millis(if plan.quick { 1_500 } else { 4_000 }));
    let empty = || DOORS.iter().map(|door| (door.name, Served::default())).collect::<Vec<_>>();
    let (mut alone, mut attacked, mut done) = (empty(), empty(), Vec::new());
    let mut attacked_for = Duration::ZERO;
    for _ in 0..plan.turns() {
        ask_all(port, &valid, time.min(MAX_ALONE), &mut alone).await?;
        let attackers = Attackers::start(port, &hostile, plan.cores.map(|cores| cores.1))?;
        attackers.at_work().await?;
        let begun = Instant::now();
        ask_all(port, &valid, time, &mut attacked).await?;
        hostile::add(&mut done, attackers.stop()?);
        attacked_for += begun.elapsed();
    }
    let (_, memory) = server::memory(server.child.id())?;
    let found = Attack { alone, attacked, done, time: attacked_for, memory };
    for (name, (door, served)) in found.turns() {
        let [median, p99, worst] = [50, 99, 100].map(|percent| served.seen.percentile(percent));
        println!(
            "attack: {door:<8} {name:<12} {} of {} answered, median {median:.1?} p99 {p99:.1?} worst {worst:.1?}",
            served.seen.latencies.len(),
            served.asked,
        );
        for (reason, number) in &served.failed {
            println!("attack: {number} requests of valid callers of {door} {name} failed: {reason}");
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
    let scopes = ["--scope", "library:read", "--scope", "library:propose"];
    let output = Command::new(promptshelf).args(["token", "new", name, "--json"]).args(scopes).output()?;
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

/// A request with a token and a body.
pub(crate) fn http(port: u16, method: &str, path: &str, token: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "{method} {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nauthorization: Bearer {token}\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

/// The body of a check of one new file.
pub(crate) fn check_of(path: &str, text: &str) -> String {
    let change = json!({ "path": path, "before": null, "content": { "text": text } });
    json!({ "channel": "production", "changes": [change] }).to_string()
}

/// Sends one request to each door, and validates its result.
async fn check(port: u16, valid: &[Valid]) -> Result<()> {
    for Valid { door, caller, .. } in valid.iter().filter(|valid| valid.number == 0) {
        let Door { name, request, .. } = &DOORS[*door];
        let mut connection = Connection::from(caller.address, port).await?;
        let answer = connection.ask(&request(port, &caller.token)?).await?;
        match name {
            &"MCP" => ROWS[0].check(&answer)?,
            _ => ensure!(answer["status"].is_null(), "{name}: {answer}"),
        }
    }
    Ok(())
}

async fn ask_all(port: u16, valid: &[Valid], time: Duration, all: &mut [(&'static str, Served)]) -> Result<()> {
    let mut asking = JoinSet::new();
    let begin = Instant::now() + Duration::from_millis(100);
    for valid in valid.iter().cloned() {
        let Door { callers, period, .. } = DOORS[valid.door];
        // Spreads the callers over one period.
        let first = begin + period * u32::from(valid.number) / u32::from(callers);
        asking.spawn(async move { anyhow::Ok((valid.door, ask(port, valid, first, begin + time).await?)) });
    }
    while let Some(one) = asking.join_next().await {
        let (door, served) = one??;
        all[door].1.add(served);
    }
    Ok(())
}

async fn ask(port: u16, valid: Valid, first: Instant, until: Instant) -> Result<Served> {
    let Valid { door, caller, .. } = valid;
    let Door { period, request, .. } = &DOORS[door];
    let request = request(port, &caller.token)?;
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
        due += *period;
    }
    Ok(served)
}

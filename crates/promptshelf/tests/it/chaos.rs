//! Faults at random while clients publish and read: three servers on one PostgreSQL, sixteen clients, and a plan of faults that a
//! seed decides. A checker judges the recorded history.
//!
//! `cargo xtask chaos --seed N --minutes M` runs it longer; `--plan` prints the faults of a seed.

use std::{
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Arc, Mutex, PoisonError, RwLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use promptshelf_store::{HistoryQuery, Store};
use promptshelf_testkit::{
    Random, amount,
    cuttable::CuttableProxy,
    database::Postgres,
    figure,
    history::{Answer, Call, What, problems},
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::{
    program::{PATIENCE, Server, promptshelf},
    replicas::Author,
};

const SERVERS: usize = 3;
const CLIENTS: usize = 16;
const SCOPES: &[&str] =
    &["library:read", "library:propose", "library:review", "library:publish", "library:admin", "prompts:read"];

/// The longest time between the end of the faults and the newest revision on every replica.
const CAUGHT_UP: Duration = Duration::from_secs(20);

#[derive(Clone, Copy, Debug)]
enum Fault {
    KillServer(usize),
    PauseServer(usize, Duration),
    CutConnections(usize, Duration),
    /// The server starts again with another clock.
    JumpClock(usize, i64),
    FillDisk(usize, Duration),
    KillDatabase(Duration),
    PauseDatabase(Duration),
}

/// The faults of a seed, each with its time since the beginning.
fn plan(seed: u64, length: Duration) -> Vec<(Duration, Fault)> {
    let mut random = Random::new(seed);
    let mut at = Duration::from_secs(3);
    let mut plan = Vec::new();
    while at + Duration::from_secs(8) < length {
        let server = random.below(SERVERS as u64) as usize;
        let short = Duration::from_millis(200 + random.below(2_500));
        let fault = match random.below(10) {
            0..3 => Fault::KillServer(server),
            3 => Fault::PauseServer(server, short),
            4 | 5 => Fault::CutConnections(server, short),
            6 => Fault::JumpClock(server, [-86_400, -60, 3_600, 40_000_000][random.below(4) as usize]),
            7 => Fault::FillDisk(server, short),
            8 => Fault::KillDatabase(short),
            _ => Fault::PauseDatabase(short),
        };
        plan.push((at, fault));
        at += short + Duration::from_millis(500 + random.below(2_500));
    }
    plan
}

/// A server that is started again and again at one address.
struct Place {
    port: u16,
    proxy: CuttableProxy,
    store: String,
    folder: tempfile::TempDir,
    server: Mutex<Option<Server>>,
    /// Counts the processes of all places.
    process: AtomicU64,
}

/// The library that gives a process another clock, if it is installed.
fn faketime() -> Option<PathBuf> {
    let folders = fs::read_dir("/usr/lib").ok()?.flatten();
    folders.map(|folder| folder.path().join("faketime/libfaketimeMT.so.1")).find(|path| path.exists())
}

/// A free port that no outgoing connection takes while the server is down.
fn free_port() -> u16 {
    let first = 20_000 + (std::process::id() % 10_000) as u16;
    (first..first + 2_000).find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()).expect("a free port")
}

impl Place {
    fn new(database: &Postgres, store: &str, port: u16) -> Place {
        let proxy = CuttableProxy::to(([127, 0, 0, 1], database.port()).into());
        let direct = format!("127.0.0.1:{}", database.port());
        let store = format!("{}?sslmode=disable", store.replace(&direct, &proxy.address().to_string()));
        let folder = tempfile::tempdir().expect("a folder");
        // A disk that can be filled, if this user may mount one.
        let disk = folder.path().join("disk");
        fs::create_dir(&disk).expect("a folder");
        Command::new("mount").args(["-t", "tmpfs", "-o", "size=2m", "tmpfs"]).arg(&disk).output().ok();
        let (server, process) = (Mutex::new(None), AtomicU64::new(0));
        Place { port, proxy, store, folder, server, process }
    }

    fn disk(&self) -> PathBuf {
        self.folder.path().join("disk")
    }

    /// Starts the server; `clock` is by how many seconds its clock is ahead.
    fn start(&self, tokens: &Path, clock: i64) {
        let mut command = promptshelf();
        // The program of faketime would stay between the server and the signals.
        if clock != 0
            && let Some(library) = faketime()
        {
            command.env("LD_PRELOAD", library).env("FAKETIME", format!("{clock:+}s"));
            command.env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        }
        command.args(["serve", &self.store, "--http", &format!("127.0.0.1:{}", self.port), "--tokens"]).arg(tokens);
        command.arg("--cache").arg(self.disk().join("cache")).arg("--audit").arg(self.disk().join("audit"));
        command.current_dir(self.folder.path());
        static PROCESSES: AtomicU64 = AtomicU64::new(1);
        let server = Server::start(command);
        self.process.store(PROCESSES.fetch_add(1, Ordering::SeqCst), Ordering::SeqCst);
        *self.server.lock().unwrap_or_else(PoisonError::into_inner) = Some(server);
    }

    fn kill(&self) {
        self.process.store(0, Ordering::SeqCst);
        // A dropped server is killed.
        self.server.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    fn signal(&self, signal: Signal) {
        let server = self.server.lock().unwrap_or_else(PoisonError::into_inner);
        let id = server.as_ref().and_then(|server| i32::try_from(server.child.id()).ok()).and_then(Pid::from_raw);
        if let Some(id) = id {
            kill_process(id, signal).ok();
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.kill();
        Command::new("umount").arg(self.disk()).output().ok();
    }
}

/// What the clients and the faults share.
struct World {
    places: Vec<Place>,
    database: Postgres,
    store: String,
    tokens: Vec<String>,
    began: Instant,
    is_over: AtomicBool,
    calls: Mutex<Vec<Call>>,
    /// Why a client could not go on: an answer that nobody should get.
    surprises: RwLock<Vec<String>>,
}

impl World {
    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn record(&self, began: u64, what: What) {
        let call = Call { began, ended: self.now(), what };
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).push(call);
    }

    fn agent() -> ureq::Agent {
        let config = ureq::Agent::config_builder().http_status_as_error(false);
        config.timeout_global(Some(Duration::from_secs(20))).build().into()
    }

    /// The channel's newest revision and its digests of the two files, from the API.
    fn tree(&self, agent: &ureq::Agent, url: &str, token: &str) -> Option<Value> {
        let began = self.now();
        let mut answer = agent
            .get(format!("{url}/api/v1/channels/production/tree"))
            .header("Authorization", format!("Bearer {token}"))
            .call()
            .ok()?;
        let tree: Value = serde_json::from_str(&answer.body_mut().read_to_string().ok()?).ok()?;
        let (revision, digest) = (tree["head"]["revision"].as_u64()?, tree["head"]["digest"].as_str()?.to_owned());
        self.record(began, What::Head { revision, digest });
        Some(tree)
    }

    /// Publishes two files with the id in both.
    fn publish(&self, agent: &ureq::Agent, url: &str, token: &str, id: &str) {
        let Some(tree) = self.tree(agent, url, token) else { return };
        let file = |path: &str| {
            let files = tree["items"].as_array();
            let found = files.and_then(|files| files.iter().find(|file| file["path"] == path));
            found.map_or(Value::Null, |file| file["digest"].clone())
        };
        let change = |path: &str| json!({ "path": path, "before": file(path), "content": { "text": text(id) } });
        let body = json!({
            "base": tree["head"]["revision"],
            "message": id,
            "changes": [change("a.md"), change("b.md")],
        });
        let began = self.now();
        let answer = agent
            .post(format!("{url}/api/v1/channels/production/proposals"))
            .header("Authorization", format!("Bearer {token}"))
            .header("Content-Type", "application/json")
            .send(body.to_string());
        let mut unknown = Answer::Unknown;
        if let Ok(mut answer) = answer {
            let status = answer.status().as_u16();
            let text = answer.body_mut().read_to_string().unwrap_or_default();
            let body: Value = serde_json::from_str(&text).unwrap_or_default();
            unknown = match (status, body["proposal"]["revision"].as_u64()) {
                (201, Some(revision)) => Answer::Revision(revision),
                (409 | 429, _) => Answer::Refused,
                (500.., _) => Answer::Unknown,
                _ => {
                    self.surprises.write().unwrap_or_else(PoisonError::into_inner).push(format!("{status}: {text}"));
                    Answer::Unknown
                }
            };
        }
        self.record(began, What::Publish { id: id.to_owned(), answer: unknown });
    }

    /// Reads both prompts from a replica.
    fn read(&self, place: &Place, url: &str, token: &str) {
        let _ = token;
        for name in ["a", "b"] {
            let (process, began) = (place.process.load(Ordering::SeqCst), self.now());
            let Some(answer) = modern_as(&format!("{url}/mcp"), name, token) else { return };
            let Some(text) = answer["result"]["messages"][0]["content"]["text"].as_str() else { continue };
            // The process may have been replaced while it answered.
            if process != 0 && process == place.process.load(Ordering::SeqCst) {
                let process = usize::try_from(process).unwrap_or_default();
                self.record(began, What::Served { process, id: text.trim().to_owned() });
            }
        }
    }

    fn client(&self, number: usize, seed: u64) {
        let mut random = Random::new(seed * 1_000 + number as u64 + 1);
        let (agent, token) = (World::agent(), &self.tokens[number]);
        let mut count = 0;
        while !self.is_over.load(Ordering::SeqCst) {
            let place = &self.places[random.below(SERVERS as u64) as usize];
            let url = format!("http://127.0.0.1:{}", place.port);
            count += 1;
            match random.below(4) {
                0 => self.publish(&agent, &url, token, &format!("id-{number}-{count}")),
                1 => _ = self.tree(&agent, &url, token),
                _ => self.read(place, &url, token),
            }
            thread::sleep(Duration::from_millis(50 + random.below(200)));
        }
    }

    fn cause(&self, fault: Fault, tokens: &Path) {
        match fault {
            Fault::KillServer(server) => {
                self.places[server].kill();
                self.places[server].start(tokens, 0);
            }
            Fault::JumpClock(server, seconds) => {
                self.places[server].kill();
                self.places[server].start(tokens, seconds);
            }
            Fault::PauseServer(server, time) => {
                self.places[server].signal(Signal::STOP);
                thread::sleep(time);
                self.places[server].signal(Signal::CONT);
            }
            Fault::CutConnections(server, time) => {
                self.places[server].proxy.cut();
                thread::sleep(time);
                self.places[server].proxy.heal();
            }
            Fault::FillDisk(server, time) => {
                let file = self.places[server].disk().join("filler");
                // It ends with an error once the disk is full; a disk that is not its own is not filled.
                fs::write(&file, vec![0; 4 << 20]).ok();
                thread::sleep(time);
                fs::remove_file(&file).ok();
            }
            Fault::KillDatabase(time) => {
                self.database.kill();
                thread::sleep(time);
                self.database.restart();
            }
            Fault::PauseDatabase(time) => {
                self.database.stop();
                thread::sleep(time);
                self.database.proceed();
            }
        }
    }
}

fn text(id: &str) -> String {
    format!("---\ndescription: One of two\n---\n{id}\n")
}

/// Gets a prompt; `None` without an answer.
fn modern_as(url: &str, name: &str, token: &str) -> Option<Value> {
    let params = json!({
        "name": name,
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        },
    });
    let mut answer = World::agent()
        .post(url)
        .header("Authorization", format!("Bearer {token}"))
        .header("Content-Type", "application/json")
        .header("Accept", "application/json, text/event-stream")
        .header("Mcp-Protocol-Version", "2026-07-28")
        .header("Mcp-Method", "prompts/get")
        .header("Mcp-Name", name)
        .send(json!({ "jsonrpc": "2.0", "id": 1, "method": "prompts/get", "params": params }).to_string())
        .ok()?;
    serde_json::from_str(&answer.body_mut().read_to_string().ok()?).ok()
}

/// Makes tokens for all clients, and the file that servers read.
fn tokens(folder: &Path) -> Vec<String> {
    let mut lines = String::new();
    let tokens = (0..CLIENTS).map(|number| {
        let mut command = promptshelf();
        command.args(["token", "new", &format!("client{number}"), "--json"]);
        for scope in SCOPES {
            command.args(["--scope", scope]);
        }
        let output = command.output().expect("a process");
        let made: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        lines += made["store"].as_str().expect("a line");
        lines.push('\n');
        made["token"].as_str().expect("a token").to_owned()
    });
    let tokens = tokens.collect();
    fs::write(folder.join("tokens"), lines).expect("written");
    tokens
}

// req: S-452
#[test]
fn faults_lose_double_and_reorder_nothing() {
    let seed = amount("CHAOS_SEED").unwrap_or(1);
    let length = Duration::from_secs(amount("CHAOS_SECONDS").unwrap_or(40));
    let plan = plan(seed, length);
    if std::env::var_os("CHAOS_PLAN").is_some() {
        for (at, fault) in plan {
            figure(&format!("{:>7.1} s  {fault:?}", at.as_secs_f64()));
        }
        return;
    }
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let database = Postgres::start();
    let store = database.database();
    runtime.block_on(async {
        let author = Author::at(&store).await.checked();
        author.publish([("a.md", Some(text("first"))), ("b.md", Some(text("first")))]).await;
        author.store.close().await;
    });
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("tokens");
    let tokens = tokens(folder.path());
    let mut places: Vec<Place> = Vec::new();
    for _ in 0..SERVERS {
        let place = Place::new(&database, &store, free_port());
        place.start(&file, 0);
        places.push(place);
    }
    let world = Arc::new(World {
        places,
        database,
        store,
        tokens,
        began: Instant::now(),
        is_over: AtomicBool::new(false),
        calls: Mutex::default(),
        surprises: RwLock::default(),
    });
    let clients: Vec<_> = (0..CLIENTS)
        .map(|number| {
            let world = Arc::clone(&world);
            thread::spawn(move || world.client(number, seed))
        })
        .collect();
    let faults = plan.len();
    for (at, fault) in plan {
        thread::sleep(at.saturating_sub(world.began.elapsed()));
        world.cause(fault, &file);
    }
    thread::sleep(length.saturating_sub(world.began.elapsed()));
    world.is_over.store(true, Ordering::SeqCst);
    for client in clients {
        client.join().expect("a client does not panic");
    }
    let (kept, verified) = runtime.block_on(async {
        let store = Store::open(&world.store.parse().expect("a URL")).await.expect("the store opens");
        let channel = promptshelf_store::ChannelName::production();
        let (mut kept, mut before) = (Vec::new(), None);
        loop {
            let query = HistoryQuery { before, limit: 1_000, ..HistoryQuery::default() };
            let page = store.history(&channel, &query).await.expect("the history");
            let Some(last) = page.last() else { break };
            before = Some(last.number);
            kept.extend(page.into_iter().map(|it| {
                let digest = it.digest.map(|digest| digest.to_string()).unwrap_or_default();
                (it.number, if it.number == 1 { "first".to_owned() } else { it.message }, digest)
            }));
        }
        kept.reverse();
        (kept, store.verify().await.expect("the store is read"))
    });
    let mut problems = problems(&world.calls.lock().unwrap_or_else(PoisonError::into_inner), &kept);
    problems.extend(verified.into_iter().filter_map(|it| Some(format!("{} does not fit: {:?}", it.name, it.misfit?))));
    problems.append(&mut world.surprises.write().unwrap_or_else(PoisonError::into_inner));
    // Without faults, every replica reaches the newest revision.
    let newest = kept.last().map(|(_, id, _)| id.clone()).unwrap_or_default();
    let healed = Instant::now();
    for place in &world.places {
        let url = format!("http://127.0.0.1:{}/mcp", place.port);
        loop {
            let served = modern_as(&url, "a", &world.tokens[0]);
            let served =
                served.and_then(|it| Some(it["result"]["messages"][0]["content"]["text"].as_str()?.trim().to_owned()));
            if served.as_ref() == Some(&newest) {
                break;
            }
            if healed.elapsed() > CAUGHT_UP.min(PATIENCE) {
                problems.push(format!("a replica serves {served:?}, and the newest revision is {newest}"));
                break;
            }
            thread::sleep(Duration::from_millis(50));
        }
    }
    let calls = world.calls.lock().unwrap_or_else(PoisonError::into_inner);
    let count = |is: fn(&Call) -> bool| calls.iter().filter(|call| is(call)).count();
    let published = count(|call| matches!(call.what, What::Publish { answer: Answer::Revision(_), .. }));
    let unknown = count(|call| matches!(call.what, What::Publish { answer: Answer::Unknown, .. }));
    figure(&format!(
        "chaos: seed {seed}, {} s, {faults} faults, {} calls, {published} publishes acknowledged, {unknown} without an answer, {} revisions",
        world.began.elapsed().as_secs(),
        calls.len(),
        kept.len()
    ));
    assert!(problems.is_empty(), "seed {seed}: {problems:#?}");
}

//! nginx in front of replicas: a rolling restart under load, and a cache for public lists.
//!
//! The configurations are those of the guide's page on replicas.

use std::{
    process::Child,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
};

use promptshelf_testkit::{
    database::Postgres,
    folder::{Folder, repository},
    nginx::Nginx,
};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::{Author, get, prompt, promptshelf, signal, sqlite, until};
use crate::program::{Server, ended};

/// The configuration in the guide's page on replicas that begins with this line.
fn of_guide(first_line: &str) -> String {
    let page = std::fs::read_to_string(repository("docs/guide/src/serving/replicas.md")).expect("the page");
    let blocks = page.split("```nginx\n").skip(1).filter_map(|block| block.split_once("```"));
    let mut found = blocks.map(|(block, _)| block).filter(|block| block.starts_with(first_line));
    found.next().unwrap_or_else(|| panic!("no configuration begins with {first_line}")).to_owned()
}

/// An address of the loopback network that no other test uses: a replica has to return to its address, and a free port
/// could be taken in the meantime.
fn address(index: usize) -> String {
    let [_, _, high, low] = std::process::id().to_be_bytes();
    // 0 and 255 at the end are not special in this network.
    format!("127.{}.{high}.{low}:8080", 77 + index)
}

fn start(store: &str, index: usize) -> Server {
    let mut command = promptshelf();
    command.args(["serve", store, "--http", &address(index)]);
    Server::start(command)
}

/// Requests that are sent until they are stopped.
struct Load {
    stop: Arc<AtomicBool>,
    answered: Arc<AtomicUsize>,
    threads: Vec<thread::JoinHandle<Vec<String>>>,
}

impl Load {
    fn on(url: &str, clients: usize) -> Load {
        let (stop, answered) = (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default());
        let client = |_| {
            let (url, stop, answered) = (url.to_owned(), Arc::clone(&stop), Arc::clone(&answered));
            thread::spawn(move || {
                let mut failures = Vec::new();
                let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
                while !stop.load(Ordering::SeqCst) {
                    match request(&agent, &url, "prompts/get", json!({ "name": "hello" }), None) {
                        Ok((200, _, body)) if body.contains("\"text\":\"Hello.") => {
                            answered.fetch_add(1, Ordering::SeqCst);
                        }
                        other => failures.push(format!("{other:?}")),
                    }
                }
                failures
            })
        };
        let threads = (0..clients).map(client).collect();
        Load { stop, answered, threads }
    }

    /// Waits until this many more requests were answered.
    fn wait_for(&self, more: usize) {
        let goal = self.answered.load(Ordering::SeqCst) + more;
        until("answers under load", || (self.answered.load(Ordering::SeqCst) >= goal).then_some(()));
    }

    /// Returns the number of answers, and the failures.
    fn end(self) -> (usize, Vec<String>) {
        self.stop.store(true, Ordering::SeqCst);
        let failures = self.threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect();
        (self.answered.load(Ordering::SeqCst), failures)
    }
}

/// Sends a modern request, and returns the status, the state of the cache and the body.
fn request(
    agent: &ureq::Agent,
    url: &str,
    method: &str,
    mut params: Value,
    token: Option<&str>,
) -> Result<(u16, Option<String>, String), ureq::Error> {
    let name = params["name"].as_str().unwrap_or_default().to_owned();
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let mut request = agent
        .post(url)
        .header("Content-Type", "application/json")
        .header("Accept", "application/json, text/event-stream")
        .header("Mcp-Protocol-Version", "2026-07-28")
        .header("Mcp-Method", method);
    if !name.is_empty() {
        request = request.header("Mcp-Name", name);
    }
    if let Some(token) = token {
        request = request.header("Authorization", format!("Bearer {token}"));
    }
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let mut answer = request.send(body.to_string())?;
    let cache = answer.headers().get("x-cache").and_then(|value| value.to_str().ok()).map(str::to_owned);
    Ok((answer.status().as_u16(), cache, answer.body_mut().read_to_string()?))
}

fn terminate(child: &mut Child) {
    signal(child, Signal::TERM);
    assert_eq!(ended(child).code(), Some(0));
}

// req: S-98
#[tokio::test(flavor = "multi_thread")]
async fn rolling_restart_behind_nginx_fails_no_request() {
    let folder = Folder::empty();
    let store = sqlite(folder.path());
    Author::at(&store).await.publish([("hello.md", Some("Hello.\n".to_owned()))]).await;
    let mut replicas: Vec<Server> = (0..4).map(|index| start(&store, index)).collect();
    let mut configuration = of_guide("upstream promptshelf {").replace("prompts.example.com", "localhost");
    for index in 0..4 {
        configuration = configuration.replace(&format!("10.0.0.{}:8080", index + 1), &address(index));
    }
    let nginx = Nginx::start(&configuration.replace("listen 80;", "listen LISTEN;"));
    let load = Load::on(&format!("http://{}/mcp", nginx.address()), 4);
    load.wait_for(50);
    for (index, replica) in replicas.iter_mut().enumerate() {
        terminate(&mut replica.child);
        load.wait_for(20);
        *replica = start(&store, index);
        until("the replica", || (get(replica, "/readyz").0 == 200).then_some(()));
        load.wait_for(20);
    }
    let (answered, failures) = load.end();
    assert!(answered >= 210, "{answered}");
    assert_eq!(failures, Vec::<String>::new(), "of {answered} requests; {}", nginx.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn nginx_answers_public_lists_from_its_cache() {
    let folder = Folder::empty();
    let store = sqlite(folder.path());
    let author = Author::at(&store).await;
    author.publish([("hello.md", Some(prompt("one")))]).await;
    let server = start(&store, 4);
    let configuration = of_guide("proxy_cache_path").replace("prompts.example.com", "localhost");
    let configuration = configuration
        .replace("10.0.0.1:8080", &address(4))
        .replace("listen 80;", "listen LISTEN;")
        .replace("/var/cache/nginx/", &format!("{}/", folder.path().display()))
        // The test does not depend on the time that it takes.
        .replace("proxy_cache_valid 200 5s;", "proxy_cache_valid 200 1h;");
    let nginx = Nginx::start(&configuration);
    let url = format!("http://{}/mcp", nginx.address());
    let agent = ureq::Agent::new_with_defaults();
    let send = |method: &str, params: Value, token: Option<&str>| {
        let (status, cache, body) = request(&agent, &url, method, params, token).expect("an answer");
        assert_eq!(status, 200, "{body}");
        (cache.expect("the state of the cache"), body)
    };
    let list = || send("prompts/list", json!({}), None);
    let (state, first) = list();
    assert_eq!(state, "MISS");
    let body: Value = serde_json::from_str(&first).expect("JSON");
    assert_eq!(body["result"]["cacheScope"], "public", "{body}");
    assert!(body["result"]["ttlMs"].as_u64().is_some_and(|ttl| ttl >= 5_000), "{body}");
    let states: Vec<(String, String)> = (0..99).map(|_| list()).collect();
    assert!(states.iter().all(|(state, body)| state == "HIT" && *body == first), "{states:?}");
    // 99 of 100 requests did not reach a replica. Others always do: another page, a caller with a token, a prompt.
    assert_eq!(send("prompts/list", json!({ "cursor": null }), None).0, "MISS");
    assert_eq!(send("prompts/list", json!({}), Some("a-token")).0, "BYPASS");
    for _ in 0..2 {
        assert_eq!(send("prompts/get", json!({ "name": "hello" }), None).0, "BYPASS");
    }
    // A body that does not fit into the buffer cannot be a key.
    let large = json!({ "padding": "x".repeat(100_000) });
    for _ in 0..2 {
        assert_eq!(send("prompts/list", large.clone(), None).0, "BYPASS");
    }
    drop(server);
    assert_eq!(list(), ("HIT".to_owned(), first), "also while no replica runs");
}

/// The processes of `deploy/compose.yaml`: a database, the command that prepares it, two replicas and nginx, with its files.
#[tokio::test(flavor = "multi_thread")]
async fn topology_of_the_compose_file_serves_with_one_replica_away() {
    let deploy = |file: &str| repository("deploy").join(file);
    let folder = Folder::empty();
    folder.write("store", &Postgres::shared().database());
    folder.write("state-key", "0123456789abcdef0123456789abcdef");
    folder.write("prompts/hello.md", "Hello.\n");
    let command = |words: &[&str]| {
        let mut command = promptshelf();
        command.args(words).current_dir(folder.path());
        for (variable, file) in [("PROMPTSHELF_STORE_FILE", "store"), ("PROMPTSHELF_STATE_KEY_FILE", "state-key")] {
            command.env(variable, folder.path().join(file));
        }
        command
    };
    let ran = |words: &[&str]| {
        let output = command(words).output().expect("it runs");
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    };
    // A restart of everything prepares the store again.
    ran(&["init"]);
    ran(&["init"]);
    ran(&["publish", "prompts", "-m", "First"]);
    let token: Value = serde_json::from_str(&ran(&["token", "create", "ada", "--json"])).expect("JSON");
    let token = token["token"].as_str().expect("a token");
    let settings = deploy("server.toml").display().to_string();
    let mut nginx =
        std::fs::read_to_string(deploy("nginx.conf")).expect("a file").replace("listen 8080;", "listen LISTEN;");
    let mut replicas = Vec::new();
    for (index, name) in ["one:8080", "two:8080"].into_iter().enumerate() {
        let mut serve = command(&["serve", "--config", &settings]);
        serve.env("PROMPTSHELF_HTTP", address(index + 4));
        replicas.push(Server::start(serve));
        nginx = nginx.replace(name, &address(index + 4));
    }
    let nginx = Nginx::start(&nginx);
    let url = format!("http://{}/mcp", nginx.address());
    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let list = |token: Option<&str>| {
        let (status, _, body) = request(&agent, &url, "prompts/list", json!({}), token).expect("an answer");
        (status, body)
    };
    assert_eq!(list(None).0, 401);
    for _ in 0..8 {
        let (status, body) = list(Some(token));
        assert!(status == 200 && body.contains("\"hello\""), "{status}: {body}");
    }
    // A replica that has just started knows its callers: otherwise the proxy leaves it out.
    assert!(!nginx.log().contains("temporarily disabled"), "{}", nginx.log());
    terminate(&mut replicas[0].child);
    for _ in 0..8 {
        let (status, body) = list(Some(token));
        assert!(status == 200 && body.contains("\"hello\""), "{status}: {body}; {}", nginx.log());
    }
}

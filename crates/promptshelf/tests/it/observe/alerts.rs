//! The alerts and the dashboard in `deploy`, against a real Prometheus (`cargo xtask nightly --only alerts`).

use std::{
    collections::BTreeSet,
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Instant,
};

use promptshelf_testkit::folder::Folder;
use serde_json::{Value, json};

use super::{hello, scrape, with_figures};
use crate::program::PATIENCE;

const INSTALL: &str = "Prometheus is installed (on Debian: apt-get install --yes prometheus)";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn text_of(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn alerts() -> Vec<String> {
    let rules = text_of("deploy/prometheus-rules.yaml");
    rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).map(str::to_owned).collect()
}

/// The names of metrics in a text, without the endings of a histogram.
fn metrics_in(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let own = words.filter(|word| word.starts_with("promptshelf_") || word.starts_with("process_"));
    let base =
        |word: &str| ["_bucket", "_count", "_sum"].iter().find_map(|end| word.strip_suffix(end).map(str::to_owned));
    own.map(|word| base(word).unwrap_or_else(|| word.to_owned())).collect()
}

/// The rows of the guide's table of metrics.
fn documented() -> BTreeSet<String> {
    let page = text_of("docs/guide/src/serving/observability.md");
    page.lines().filter_map(|line| line.strip_prefix("| `")?.split(['`', '{']).next()).map(str::to_owned).collect()
}

#[test]
fn every_metric_is_documented_and_every_alert_is_in_the_runbook() {
    let (_server, url) = with_figures(&hello(), &["--audit", "audit.jsonl"]);
    let documented = documented();
    let scraped = scrape(&url);
    let types = scraped.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    for (name, kind) in types {
        let name = if kind == "counter" { format!("{name}_total") } else { name.to_owned() };
        assert!(documented.contains(&name), "{name} is not in the guide's table");
    }
    let dashboard = text_of("deploy/grafana-dashboard.json");
    for name in metrics_in(&text_of("deploy/prometheus-rules.yaml")).union(&metrics_in(&dashboard)) {
        assert!(documented.contains(name), "{name} is not a metric");
    }
    let (runbook, situations) =
        (text_of("docs/guide/src/serving/runbook.md"), text_of("deploy/prometheus-rules.test.yaml"));
    for alert in alerts() {
        assert!(runbook.contains(&format!("`{alert}`")), "{alert} is not in the runbook");
        let count = situations.matches(&format!("alertname: {alert}\n")).count();
        let healthy = situations.matches(&format!("alertname: {alert} }}")).count();
        assert_eq!(
            (count, healthy),
            (1, 1),
            "{alert} needs a situation in which it fires, and one in which it does not"
        );
    }
}

#[test]
#[ignore = "needs Prometheus: cargo xtask nightly --only alerts"]
fn alerts_fire_in_their_situations_only() {
    let test = root().join("deploy/prometheus-rules.test.yaml");
    let output = Command::new("promtool").args(["test", "rules"]).arg(test).output().expect(INSTALL);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

struct Prometheus {
    child: Child,
    url: String,
    _folder: Folder,
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl Prometheus {
    /// Scrapes a server each second, with our rules.
    fn start(target: &str) -> Prometheus {
        let folder = Folder::empty();
        let rules = root().join("deploy/prometheus-rules.yaml");
        let configuration = json!({
            "global": { "scrape_interval": "1s", "evaluation_interval": "1s" },
            "rule_files": [rules],
            "scrape_configs": [{ "job_name": "promptshelf", "static_configs": [{ "targets": [target] }] }],
        });
        // Every JSON document is YAML.
        folder.write("prometheus.yml", &configuration.to_string());
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port");
        let child = Command::new("prometheus")
            .arg(format!("--config.file={}", folder.path().join("prometheus.yml").display()))
            .arg(format!("--storage.tsdb.path={}", folder.path().join("data").display()))
            .arg(format!("--web.listen-address={free}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect(INSTALL);
        Prometheus { child, url: format!("http://{free}"), _folder: folder }
    }

    fn get(&self, path: &str, query: &[(&str, &str)]) -> Option<Value> {
        let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
        let mut answer = agent.get(format!("{}{path}", self.url)).query_pairs(query.iter().copied()).call().ok()?;
        serde_json::from_str(&answer.body_mut().read_to_string().ok()?).ok()
    }

    fn values(&self, query: &str) -> Vec<Value> {
        let answer = self.get("/api/v1/query", &[("query", query)]).unwrap_or_default();
        assert!(answer["status"] == "success" || answer.is_null(), "{query}: {answer}");
        answer["data"]["result"].as_array().cloned().unwrap_or_default()
    }
}

#[test]
#[ignore = "needs Prometheus: cargo xtask nightly --only alerts"]
fn queries_of_the_dashboard_have_values() {
    let (server, url) = with_figures(&hello(), &["--audit", "audit.jsonl"]);
    server.request("prompts/get", &json!({ "name": "hello" }));
    let target = url.trim_start_matches("http://").trim_end_matches("/metrics");
    let prometheus = Prometheus::start(target);
    let begun = Instant::now();
    while prometheus.values("count_over_time(up{job=\"promptshelf\"}[1m]) > 4").is_empty() {
        assert!(begun.elapsed() < PATIENCE, "nothing is scraped");
        server.request("prompts/get", &json!({ "name": "hello" }));
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
    let dashboard: Value = serde_json::from_str(&text_of("deploy/grafana-dashboard.json")).expect("JSON");
    let targets = dashboard["panels"].as_array().expect("panels").iter().flat_map(|panel| panel["targets"].as_array());
    let queries: Vec<&str> = targets.flatten().filter_map(|target| target["expr"].as_str()).collect();
    assert!(queries.len() > 20);
    // Metrics of what this server does not have.
    let absent = ["channel_", "rollout_", "source_", "webhook", "sign_ins", "issuer", "certificate", "!=\"ok\""];
    for query in queries {
        let filled = query.replace("$__rate_interval", "1m").replace("$job", ".*").replace("$instance", ".*");
        let found = prometheus.values(&filled);
        let is_absent = absent.iter().any(|part| query.contains(part));
        assert!(is_absent || !found.is_empty(), "{query} has no value");
    }
    let rules = prometheus.get("/api/v1/rules", &[]).expect("an answer");
    let all = rules["data"]["groups"][0]["rules"].as_array().expect("rules");
    assert_eq!(all.len(), alerts().len());
    for rule in all {
        assert!(["ok", "unknown"].contains(&rule["health"].as_str().unwrap_or_default()), "{rule}");
        assert_eq!(rule["state"], "inactive", "{rule}");
    }
}

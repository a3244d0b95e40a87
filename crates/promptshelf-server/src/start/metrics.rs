//! The metrics, in the OpenMetrics format, and a separate listener for them and for health checks, from before the library
//! is read until the server ends.
//!
//! Requests are counted here as they are processed. Values that the library and the audit already have are collected
//! when the metrics are read. Labels have values of closed sets only.

use std::{
    fmt, io,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use axum::{
    Router,
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric, text},
    metrics::{
        MetricType,
        counter::{ConstCounter, Counter},
        family::Family,
        gauge::ConstGauge,
        histogram::Histogram,
    },
    registry::{Registry, Unit},
};
use promptshelf_service::{AuditFile, UNKNOWN_PROMPT};
use promptshelf_source::{SourceSet, SourceState, SourceStatus};
use tokio::{net::TcpListener, task::JoinHandle};

use super::{
    reload::Reloads,
    rollouts::{RolloutMonitor, RolloutStatus},
};
use crate::{
    deliveries::Deliveries,
    failure::{Exit, Failure},
    http::{self, App, auth::SignIn, tls::Tls},
    library::Library,
    replica::{ReplicaMonitor, ReplicaStatus},
    settings::Address,
    usage::UsageLog,
};

/// Seconds, from a list in memory to a slow resource.
const BUCKETS: [f64; 14] =
    [0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0];

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    method: &'static str,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct MethodLabel {
    method: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabel {
    outcome: &'static str,
}

type Histograms = Family<MethodLabel, Histogram, fn() -> Histogram>;

pub(super) struct Metrics {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    durations: Histograms,
    renders: Family<OutcomeLabel, Counter>,
    render_durations: Histogram,
    collector: Arc<LibraryCollector>,
}

#[derive(Debug, Default)]
struct LibraryCollector {
    library: OnceLock<Library>,
    app: OnceLock<App>,
    audit: OnceLock<Arc<AuditFile>>,
    replicas: OnceLock<Vec<ReplicaMonitor>>,
    sources: OnceLock<SourceSet>,
    usage: OnceLock<UsageLog>,
    deliveries: OnceLock<Deliveries>,
    tls: OnceLock<Tls>,
    reloads: OnceLock<Arc<Reloads>>,
    rollouts: OnceLock<RolloutMonitor>,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}

impl Metrics {
    pub(super) fn new() -> Metrics {
        let histogram = || Histogram::new(BUCKETS);
        let collector = Arc::<LibraryCollector>::default();
        let metrics = Metrics {
            registry: Registry::default(),
            requests: Family::default(),
            durations: Histograms::new_with_constructor(histogram),
            renders: Family::default(),
            render_durations: histogram(),
            collector,
        };
        metrics.register()
    }

    fn register(mut self) -> Metrics {
        let mut root = Registry::default();
        root.register_collector(Box::new(ProcessCollector));
        let registry = root.sub_registry_with_prefix("promptshelf");
        registry.register(
            "requests",
            "Requests by method and outcome; the method is `none` if the request could not be parsed, and `api/…` for an operation of the API",
            self.requests.clone(),
        );
        registry.register_with_unit(
            "request_duration",
            "How long answers took, without reading the request",
            Unit::Seconds,
            self.durations.clone(),
        );
        registry.register("renders", "Prompts that were filled in, by what became of them", self.renders.clone());
        registry.register_with_unit(
            "render_duration",
            "How long filling in a prompt took",
            Unit::Seconds,
            self.render_durations.clone(),
        );
        registry.register_collector(Box::new(Arc::clone(&self.collector)));
        self.registry = root;
        self
    }

    pub(super) fn observe(
        &self,
        library: &Library,
        app: &App,
        audit: Option<&Arc<AuditFile>>,
        replicas: Vec<ReplicaMonitor>,
    ) {
        // The first ones stay.
        let _ = self.collector.library.set(library.clone());
        let _ = self.collector.app.set(app.clone());
        let _ = self.collector.replicas.set(replicas);
        if let Some(audit) = audit {
            let _ = self.collector.audit.set(Arc::clone(audit));
        }
    }

    pub(super) fn observe_sources(&self, sources: &SourceSet) {
        let _ = self.collector.sources.set(sources.clone());
    }

    pub(super) fn observe_usage(&self, log: &UsageLog) {
        let _ = self.collector.usage.set(log.clone());
    }

    pub(super) fn observe_deliveries(&self, deliveries: &Deliveries) {
        let _ = self.collector.deliveries.set(deliveries.clone());
    }

    pub(super) fn observe_rollouts(&self, rollouts: &RolloutMonitor) {
        let _ = self.collector.rollouts.set(Arc::clone(rollouts));
    }

    pub(super) fn observe_tls(&self, tls: &Tls) {
        let _ = self.collector.tls.set(tls.clone());
    }

    pub(super) fn observe_reloads(&self, reloads: &Arc<Reloads>) {
        let _ = self.collector.reloads.set(Arc::clone(reloads));
    }

    pub(super) fn answered(&self, method: &'static str, outcome: &'static str, took: Duration) {
        self.requests.get_or_create(&RequestLabels { method, outcome }).inc();
        self.durations.get_or_create(&MethodLabel { method }).observe(took.as_secs_f64());
    }

    pub(super) fn rendered(&self, outcome: &'static str, took: Duration) {
        self.renders.get_or_create(&OutcomeLabel { outcome }).inc();
        self.render_durations.observe(took.as_secs_f64());
    }

    pub(super) fn text(&self) -> Result<String, fmt::Error> {
        let mut text = String::new();
        text::encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

type Labelled<'a> = &'a [(&'static str, u64)];

impl Collector for LibraryCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        labelled(
            &mut encoder,
            MetricType::Gauge,
            "build_info",
            "What runs",
            "version",
            &[(env!("CARGO_PKG_VERSION"), 1)],
        )?;
        if let Some(audit) = self.audit.get() {
            counter(&mut encoder, "audit_records_lost", "Records of the audit that were lost", audit.lost_total())?;
        }
        if let Some(end) = self.tls.get().and_then(Tls::expires) {
            let help = "When the TLS certificate ends, in seconds since 1970";
            gauge(&mut encoder, "certificate_expiry_timestamp_seconds", help, end.as_second().unsigned_abs())?;
        }
        if let Some(reloads) = self.reloads.get() {
            let number = |count: &AtomicU64| count.load(Ordering::Relaxed);
            let outcomes = [("ok", number(&reloads.succeeded)), ("failed", number(&reloads.failed))];
            labelled(
                &mut encoder,
                MetricType::Counter,
                "settings_reloads",
                "Reloads of settings",
                "outcome",
                &outcomes,
            )?;
            let is_valid = u64::from(reloads.are_in_effect());
            gauge(&mut encoder, "settings_valid", "Whether the settings in the file are those in effect", is_valid)?;
            let help = "When settings were last reloaded, in seconds since 1970; 0 since the start";
            let last = reloads.last_success.load(Ordering::Relaxed).unsigned_abs();
            gauge(&mut encoder, "settings_reload_timestamp_seconds", help, last)?;
        }
        if let Some(log) = self.usage.get() {
            encode_calls(log, &mut encoder)?;
            let loss = log.loss();
            counter(&mut encoder, "usage_calls_lost", "Calls whose figures of usage were lost", loss.lost)?;
            let help = "Calls whose figures of usage wait for the store";
            gauge(&mut encoder, "usage_calls_waiting", help, loss.waiting)?;
        }
        if let Some(deliveries) = self.deliveries.get() {
            let counts = deliveries.counts();
            let outcomes = [("delivered", counts.delivered), ("failed", counts.failed), ("given-up", counts.given_up)];
            let help = "Attempts to send an event to a webhook, by outcome, and events that were given up";
            labelled(&mut encoder, MetricType::Counter, "webhook_deliveries", help, "outcome", &outcomes)?;
            gauge(
                &mut encoder,
                "webhook_events_pending",
                "Events in the store that wait for webhooks",
                counts.pending,
            )?;
            let help = "Events in the store that were given up";
            gauge(&mut encoder, "webhook_dead_letters", help, counts.dead)?;
        }
        if let Some(app) = self.app.get() {
            let usage = app.usage();
            gauge(&mut encoder, "open_connections", "Connections that are open", usage.connections as u64)?;
            let bytes = [("request", usage.request_bytes as u64), ("response", usage.response_bytes as u64)];
            let help = "Bytes of large request bodies and of large responses that clients have not taken yet";
            labelled(&mut encoder, MetricType::Gauge, "bytes_in_flight", help, "direction", &bytes)?;
            let help = "Connections and requests that were refused, by limit";
            labelled(&mut encoder, MetricType::Counter, "connections_refused", help, "limit", &usage.refused)?;
            let help = "Connections that were closed before their time, by reason";
            labelled(&mut encoder, MetricType::Counter, "connections_closed", help, "reason", &usage.closed)?;
        }
        if let Some(sign_in) = self.app.get().and_then(App::sign_in) {
            encode_sign_in(&sign_in, &mut encoder)?;
        }
        if let Some(replicas) = self.replicas.get().filter(|replicas| !replicas.is_empty()) {
            self.encode_replicas(replicas, &mut encoder)?;
        }
        if let Some(sources) = self.sources.get() {
            encode_sources(sources, &mut encoder)?;
        }
        if let Some(rollouts) = self.rollouts.get() {
            encode_rollouts(&rollouts.lock(), &mut encoder)?;
        }
        let Some(library) = self.library.get() else { return Ok(()) };
        let report = library.loader().reports().borrow().clone();
        counter(&mut encoder, "loads", "How often the library was read", report.loads)?;
        counter(&mut encoder, "failed_loads", "How often nothing could be read", report.failures)?;
        let is_whole = u64::from(report.failure.is_none());
        gauge(&mut encoder, "library_readable", "Whether the newest load could read the library", is_whole)?;
        gauge(&mut encoder, "catalog_generation", "The number of the catalog that is served", report.generation)?;
        let errors = report.diagnostics.iter().filter(|diagnostic| diagnostic.is_error()).count();
        let found = [("error", errors as u64), ("warning", (report.diagnostics.len() - errors) as u64)];
        labelled(&mut encoder, MetricType::Gauge, "diagnostics", "Findings in the library", "severity", &found)?;
        let catalog = library.catalog();
        gauge(&mut encoder, "prompts", "Prompts that are served", catalog.prompts().len() as u64)?;
        let resources = catalog.resources().len() + catalog.templates().len();
        gauge(&mut encoder, "resources", "Resources and resource templates that are served", resources as u64)?;
        // The local user takes no place of the limit.
        let open = library.service().open_subscriptions().max(library.server().subscriptions() as u64);
        gauge(&mut encoder, "open_subscriptions", "Subscriptions and streams that are open", open)?;
        let refused = library.service().refused_by_limits();
        labelled(&mut encoder, MetricType::Counter, "rate_limited", "Refusals, by limit", "limit", &refused)
    }
}

impl LibraryCollector {
    fn encode_replicas(&self, replicas: &[ReplicaMonitor], encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let replicas: Vec<ReplicaStatus> = replicas.iter().map(ReplicaMonitor::status).collect();
        let mut family = |name: &str, help: &str, value: fn(&ReplicaStatus) -> f64| {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            replicas.iter().try_for_each(|replica| {
                let labels = [("channel", replica.channel.as_str())];
                ConstGauge::new(value(replica)).encode(family.encode_family(&labels)?)
            })
        };
        family("channel_revision", "The revision of the channel that is served", |replica| {
            // Exact up to 2^53.
            replica.revision.unwrap_or_default() as f64
        })?;
        let help = "Seconds since the served revision was last known to be the newest one";
        family("channel_lag_seconds", help, |replica| replica.lag.as_secs_f64())?;
        let help = "Whether the store cannot be read, so that an older revision may be served";
        family("channel_degraded", help, |replica| f64::from(u8::from(replica.degraded_since.is_some())))?;
        let help = "The epoch of the store and the digest of the served revision, which is the same on all replicas";
        let mut family = encoder.encode_descriptor("channel_info", help, None, MetricType::Gauge)?;
        replicas.iter().try_for_each(|replica| {
            let digest = replica.digest.as_deref().and_then(|digest| digest.get(..12));
            let labels = [
                ("channel", replica.channel.as_str()),
                ("epoch", replica.epoch.as_deref().unwrap_or_default()),
                ("digest", digest.unwrap_or_default()),
            ];
            ConstGauge::new(1_u64).encode(family.encode_family(&labels)?)
        })
    }
}

/// Encodes the calls by prompt: names of the library, and few others.
fn encode_calls(log: &UsageLog, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let mut calls = log.calls();
    // From the start: Prometheus sees no increase of a series that begins with the first calls.
    calls.entry((String::new(), UNKNOWN_PROMPT.to_owned())).or_default();
    let help = "Calls of prompts by name and outcome; the name is empty for calls of names that are no prompts";
    let mut family = encoder.encode_descriptor("prompt_calls", help, None, MetricType::Counter)?;
    for ((prompt, outcome), (count, _)) in &calls {
        let labels = [("prompt", prompt.as_str()), ("outcome", outcome.as_str())];
        ConstCounter::new(*count).encode(family.encode_family(&labels)?)?;
    }
    let unknown = calls.values().map(|(_, unknown)| unknown).sum();
    counter(encoder, "unknown_arguments", "Calls with an argument that the prompt does not have", unknown)
}

/// The process, under the names that Prometheus' own clients give these metrics.
#[derive(Debug)]
struct ProcessCollector;

impl Collector for ProcessCollector {
    #[cfg(target_os = "linux")]
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        use procfs::WithCurrentSystemInfo as _;
        let Ok(process) = procfs::process::Process::myself() else { return Ok(()) };
        let Ok(stat) = process.stat() else { return Ok(()) };
        let ticks = procfs::ticks_per_second() as f64;
        let mut number = |name: &str, help: &str, kind: MetricType, value: f64| {
            let metric = encoder.encode_descriptor(name, help, None, kind)?;
            match kind {
                MetricType::Counter => ConstCounter::new(value).encode(metric),
                _ => ConstGauge::new(value).encode(metric),
            }
        };
        let processor = (stat.utime + stat.stime) as f64 / ticks;
        number("process_cpu_seconds", "Processor time", MetricType::Counter, processor)?;
        let resident = stat.rss_bytes().get() as f64;
        number("process_resident_memory_bytes", "Memory in use", MetricType::Gauge, resident)?;
        number("process_threads", "Threads", MetricType::Gauge, stat.num_threads as f64)?;
        if let Ok(begin) = procfs::boot_time_secs() {
            let start = begin as f64 + stat.starttime as f64 / ticks;
            number("process_start_time_seconds", "Start, in seconds since 1970", MetricType::Gauge, start)?;
        }
        if let Ok(open) = process.fd_count() {
            number("process_open_fds", "Open file descriptors", MetricType::Gauge, open as f64)?;
        }
        match process.limits().map(|limits| limits.max_open_files.soft_limit) {
            Ok(procfs::process::LimitValue::Value(most)) => {
                number("process_max_fds", "The most open file descriptors", MetricType::Gauge, most as f64)
            }
            _ => Ok(()),
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn encode(&self, _: DescriptorEncoder<'_>) -> fmt::Result {
        Ok(())
    }
}

fn encode_sign_in(sign_in: &SignIn, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let help = "Requests whose caller could not be identified, by reason";
    labelled(encoder, MetricType::Counter, "sign_ins_refused", help, "reason", &sign_in.refused())?;
    if let Some(fetches) = sign_in.key_fetches() {
        let outcomes = [("ok", fetches.succeeded), ("failed", fetches.failed)];
        let help = "Attempts to fetch the issuer's keys, by outcome";
        labelled(encoder, MetricType::Counter, "issuer_key_fetches", help, "outcome", &outcomes)?;
    }
    match sign_in.key_age() {
        Some(age) => {
            let help = "Seconds since the issuer's keys were fetched";
            gauge(encoder, "issuer_keys_age_seconds", help, age.as_secs())
        }
        None => Ok(()),
    }
}

/// Encodes the rollouts. Names are those of channels.
fn encode_rollouts(rollouts: &[RolloutStatus], encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let mut gauges = |name: &str, help: &str, value: fn(&RolloutStatus) -> u64| {
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        rollouts.iter().try_for_each(|one| {
            let labels = [("channel", one.channel.as_str()), ("to", one.target.as_str())];
            ConstGauge::new(value(one)).encode(family.encode_family(&labels)?)
        })
    };
    gauges("rollout_percent", "The share of signed-in callers that is served the new version", |one| {
        u64::from(one.percent)
    })?;
    let help = "Whether a server has stopped the rollout by itself, and nobody has changed it since";
    gauges("rollout_stopped", help, |one| u64::from(one.is_failed))?;
    for (at, name, help) in [
        (0, "rollout_calls", "Calls that are compared, by group: one of each caller in five minutes"),
        (1, "rollout_errors", "Compared calls that were refused or failed, by group"),
    ] {
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        for one in rollouts {
            let Some(rollout) = &one.rollout else { continue };
            for (group, counts) in ["stable", "candidate"].into_iter().zip(rollout.totals()) {
                let labels = [("channel", one.channel.as_str()), ("to", one.target.as_str()), ("group", group)];
                ConstCounter::new(counts[at]).encode(family.encode_family(&labels)?)?;
            }
        }
    }
    Ok(())
}

/// Encodes one value of each metric per source. The label is the configured name.
fn encode_sources(sources: &SourceSet, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let statuses = sources.statuses();
    let mut family = |name: &str, help: &str, value: fn(&SourceStatus) -> u64| {
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        statuses.iter().try_for_each(|status| {
            let labels = [("source", status.name.as_str())];
            ConstGauge::new(value(status)).encode(family.encode_family(&labels)?)
        })
    };
    let help = "Whether the newest state of the source is served";
    family("source_current", help, |status| u64::from(status.state == SourceState::Current))?;
    family("source_prompts", "Prompts of the source that are served", |status| status.prompts as u64)
}

fn counter(encoder: &mut DescriptorEncoder<'_>, name: &str, help: &str, value: u64) -> fmt::Result {
    ConstCounter::new(value).encode(encoder.encode_descriptor(name, help, None, MetricType::Counter)?)
}

fn gauge(encoder: &mut DescriptorEncoder<'_>, name: &str, help: &str, value: u64) -> fmt::Result {
    ConstGauge::new(value).encode(encoder.encode_descriptor(name, help, None, MetricType::Gauge)?)
}

fn labelled(
    encoder: &mut DescriptorEncoder<'_>,
    kind: MetricType,
    name: &str,
    help: &str,
    label: &'static str,
    values: Labelled<'_>,
) -> fmt::Result {
    let mut family = encoder.encode_descriptor(name, help, None, kind)?;
    for (word, value) in values {
        let labels = [(label, *word)];
        let one = family.encode_family(&labels)?;
        match kind {
            MetricType::Counter => ConstCounter::new(*value).encode(one)?,
            _ => ConstGauge::new(*value).encode(one)?,
        }
    }
    Ok(())
}

const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

const IDLE: Duration = Duration::from_secs(75);

/// Serves metrics until it is dropped.
#[derive(Debug)]
pub(super) struct MetricsServer {
    pub(super) metrics: Arc<Metrics>,
    app: Arc<OnceLock<App>>,
    task: JoinHandle<()>,
}

impl Drop for MetricsServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[derive(Clone)]
struct ServerState {
    metrics: Arc<Metrics>,
    app: Arc<OnceLock<App>>,
}

impl MetricsServer {
    pub(super) async fn start(address: &Address) -> Result<MetricsServer, Failure> {
        let cannot =
            |error: io::Error| Failure::new(Exit::Address, format!("cannot serve metrics on {address}: {error}"));
        let listener = TcpListener::bind((address.host.as_str(), address.port)).await.map_err(cannot)?;
        let bound = listener.local_addr().map_err(cannot)?;
        tracing::info!("metrics are served on http://{bound}/metrics");
        let state = ServerState { metrics: Arc::new(Metrics::new()), app: Arc::default() };
        let routes = Router::new()
            .route("/metrics", get(metrics))
            .route("/healthz", get(http::healthy))
            .route("/readyz", get(ready))
            .with_state(state.clone());
        let task = tokio::spawn(http::serve_routes(listener, routes, IDLE));
        Ok(MetricsServer { metrics: state.metrics, app: state.app, task })
    }

    pub(super) fn set_ready(&self, app: &App) {
        // The first call counts.
        let _ = self.app.set(app.clone());
    }
}

async fn metrics(State(state): State<ServerState>) -> Response {
    match state.metrics.text() {
        Ok(text) => ([(header::CONTENT_TYPE, CONTENT_TYPE)], text).into_response(),
        Err(error) => {
            tracing::error!(%error, "the metrics cannot be written");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

async fn ready(State(state): State<ServerState>) -> (StatusCode, String) {
    match state.app.get() {
        Some(app) => app.readiness(),
        None => (StatusCode::SERVICE_UNAVAILABLE, "the library is being read\n".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use crate::http::Options;

    use super::*;

    #[tokio::test]
    async fn readiness_follows_catalog_and_shutdown() {
        let state = ServerState { metrics: Arc::new(Metrics::new()), app: Arc::default() };
        let status = async || ready(State(state.clone())).await.0.as_u16();
        assert_eq!(status().await, 503, "the library is being read");
        assert!(state.metrics.text().expect("metrics").contains("promptshelf_build_info"), "and metrics are available");
        let library = Library::builder().build().expect("a library");
        let app = App::new(&library, &Options::default());
        state.metrics.observe(&library, &app, None, Vec::new());
        state.app.set(app).expect("set once");
        assert_eq!(status().await, 200);
        library.server().shutdown();
        assert_eq!(status().await, 503);
    }
}

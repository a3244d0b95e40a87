//! Exports spans to an OpenTelemetry collector, over OTLP (HTTP with Protocol Buffers).
//!
//! Only spans of this project are exported, and no log events. The attributes of a span are set where it is opened,
//! and never contain anything that a caller sent.

use std::time::{Duration, Instant};

use bytes::Bytes;
use opentelemetry::{
    KeyValue,
    propagation::{Extractor, TextMapPropagator as _},
    trace::{TraceContextExt as _, TracerProvider as _},
};
use opentelemetry_http::{HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::{
    Resource,
    propagation::TraceContextPropagator,
    trace::{Sampler, SdkTracerProvider},
};
use parking_lot::Mutex;
use promptshelf_core::BoxFuture;
use promptshelf_service::TraceContext;
use tracing::{Span, Subscriber, level_filters::LevelFilter};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use tracing_subscriber::{Layer, filter::filter_fn, registry::LookupSpan};

use crate::{
    exit::{Exit, Failure},
    settings::Traces,
};

const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
const FAILURES_LOGGED: Duration = Duration::from_secs(60);
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(3);
/// The maximum size of a response of the collector, in bytes.
const MAX_RESPONSE_BYTES: usize = 1 << 20;
/// The maximum lengths of a caller's trace context, in bytes. Version 00 of `traceparent` has 55 bytes; W3C Trace
/// Context requires that at least 512 bytes of `tracestate` are propagated.
const MAX_TRACEPARENT_BYTES: usize = 256;
const MAX_TRACESTATE_BYTES: usize = 512;

/// Exports spans until it is dropped, and then sends those that are pending.
#[derive(Debug)]
pub(crate) struct SpanExporterGuard(SdkTracerProvider);

impl Drop for SpanExporterGuard {
    fn drop(&mut self) {
        if let Err(error) = self.0.shutdown_with_timeout(SHUTDOWN_TIMEOUT) {
            tracing::warn!(%error, "cannot send the pending spans");
        }
    }
}

pub(crate) fn layer<S>(traces: &Traces) -> Result<(impl Layer<S> + use<S>, SpanExporterGuard), Failure>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
{
    let exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(Client::new(&traces.endpoint)?)
        .with_endpoint(&*traces.endpoint)
        .with_timeout(REQUEST_TIMEOUT)
        .build()
        .map_err(|error| Failure::new(Exit::Usage, format!("cannot send traces: {error}")))?;
    let resource = Resource::builder().with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")));
    let resource = match std::env::var_os("OTEL_SERVICE_NAME") {
        Some(_) => resource,
        None => resource.with_service_name("promptshelf"),
    };
    let root_sampler = Sampler::TraceIdRatioBased(f64::from(traces.percent) / 100.0);
    let provider = SdkTracerProvider::builder()
        .with_batch_exporter(exporter)
        .with_resource(resource.build())
        .with_sampler(Sampler::ParentBased(Box::new(root_sampler)))
        .build();
    let own_spans = filter_fn(|metadata| metadata.is_span() && metadata.target().starts_with("promptshelf"))
        .with_max_level_hint(LevelFilter::DEBUG);
    let layer = tracing_opentelemetry::layer()
        .with_tracer(provider.tracer("promptshelf"))
        .with_location(false)
        .with_threads(false)
        .with_target(false)
        .with_tracked_inactivity(false)
        .with_filter(own_spans);
    Ok((layer, SpanExporterGuard(provider)))
}

/// Makes a span part of the caller's trace. An invalid trace context is ignored, as W3C Trace Context requires, and a
/// new trace begins.
pub(super) fn set_parent(span: &Span, trace: &TraceContext<'_>) {
    if trace.parent.len() > MAX_TRACEPARENT_BYTES {
        return;
    }
    let context = TraceContextPropagator::new().extract(&TraceContextExtractor(trace));
    if context.span().span_context().is_valid() {
        // Fails only without the layer, when spans are not exported.
        let _ = span.set_parent(context);
    }
}

struct TraceContextExtractor<'a>(&'a TraceContext<'a>);

impl Extractor for TraceContextExtractor<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        match key {
            "traceparent" => Some(&self.0.parent),
            "tracestate" => self.0.state.as_deref().filter(|state| state.len() <= MAX_TRACESTATE_BYTES),
            _ => None,
        }
    }

    fn keys(&self) -> Vec<&str> {
        vec!["traceparent", "tracestate"]
    }
}

/// Sends requests from the exporter's own thread, which it blocks: there is no runtime on it.
#[derive(Debug)]
struct Client {
    client: reqwest::Client,
    runtime: tokio::runtime::Runtime,
    endpoint: String,
    failures: Failures,
}

/// Failures that are logged once a minute.
#[derive(Debug, Default)]
struct Failures(Mutex<(u64, Option<Instant>)>);

impl Failures {
    fn note(&self, endpoint: &str, reason: &str) {
        let mut state = self.0.lock();
        state.0 += 1;
        if state.1.is_none_or(|logged| logged.elapsed() >= FAILURES_LOGGED) {
            let failed = std::mem::take(&mut state.0);
            state.1 = Some(Instant::now());
            tracing::warn!(failed, "spans cannot be sent to {endpoint}: {reason}");
        }
    }

    fn end(&self) {
        self.0.lock().0 = 0;
    }
}

/// Returns the text of an error with its causes, without URLs.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = match error.downcast_ref::<reqwest::Error>() {
        Some(error) if error.is_connect() => "no connection".to_owned(),
        Some(error) if error.is_timeout() => "no answer in time".to_owned(),
        _ => error.to_string(),
    };
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}

impl HttpClient for Client {
    fn send_bytes<'s, 'f>(&'s self, request: Request<Bytes>) -> BoxFuture<'f, Result<Response<Bytes>, HttpError>>
    where
        's: 'f,
        Self: 'f,
    {
        Box::pin(async move {
            let request = request.map(reqwest::Body::from).try_into()?;
            let sending = async {
                let mut response = self.client.execute(request).await?;
                let mut head = Response::new(());
                *head.status_mut() = response.status();
                *head.headers_mut() = std::mem::take(response.headers_mut());
                let mut body = Vec::new();
                while let Some(chunk) = response.chunk().await? {
                    if body.len() + chunk.len() > MAX_RESPONSE_BYTES {
                        return Err(format!("the response has more than {MAX_RESPONSE_BYTES} bytes").into());
                    }
                    body.extend_from_slice(&chunk);
                }
                Ok(head.map(|()| body.into()))
            };
            let sent: Result<Response<Bytes>, HttpError> = self.runtime.block_on(sending);
            match &sent {
                Ok(answer) if answer.status().is_success() => self.failures.end(),
                Ok(answer) => self.failures.note(&self.endpoint, &format!("it answers {}", answer.status())),
                Err(error) => self.failures.note(&self.endpoint, &chain(&**error)),
            }
            sent
        })
    }
}

impl Client {
    fn new(endpoint: &str) -> Result<Client, Failure> {
        let failed = |error: &dyn std::fmt::Display| Failure::new(Exit::Usage, format!("cannot send traces: {error}"));
        let client = reqwest::Client::builder()
            .timeout(REQUEST_TIMEOUT)
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .http1_only();
        // A proxy cannot reach this machine's loopback interface.
        let client = if promptshelf_client::is_loopback_url(endpoint) { client.no_proxy() } else { client };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        Ok(Client {
            client: client.build().map_err(|error| failed(&error))?,
            runtime: runtime.map_err(|error| failed(&error))?,
            endpoint: endpoint.to_owned(),
            failures: Failures::default(),
        })
    }
}

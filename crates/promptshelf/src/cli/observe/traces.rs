//! Spans for a collector of OpenTelemetry, over OTLP: HTTP with protobuf.
//!
//! Only spans of our own go there, and no log lines: what a span holds is
//! decided where it is opened, and nobody there puts in what a caller sent.

use std::{sync::Arc, time::Duration};

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
use promptshelf_core::BoxFuture;
use promptshelf_service::TraceContext;
use tracing::{Span, Subscriber, level_filters::LevelFilter};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use tracing_subscriber::{Layer, filter::filter_fn, registry::LookupSpan};
use ureq::{
    Agent,
    tls::{RootCerts, TlsConfig},
};

use crate::{
    exit::{Exit, Failure},
    settings::Traces,
};

/// How long a collector may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long the last spans may take when the program ends.
const LAST_SPANS: Duration = Duration::from_secs(3);
/// The most bytes of a collector's answer that are read.
const MAX_ANSWER: u64 = 1 << 20;
/// The longest texts of a caller's that are looked at; the one of all versions
/// has 55 bytes, and of the other 512 have to be passed on.
const MAX_PARENT: usize = 256;
const MAX_STATE: usize = 512;

/// Sends spans until this is dropped; then those that wait are sent.
#[derive(Debug)]
pub(crate) struct SpanExporterGuard(SdkTracerProvider);

impl Drop for SpanExporterGuard {
    fn drop(&mut self) {
        if let Err(error) = self.0.shutdown_with_timeout(LAST_SPANS) {
            tracing::warn!(%error, "the last spans were not sent");
        }
    }
}

/// The layer that makes spans of what is traced.
///
/// # Errors
///
/// When the settings or the environment's cannot be understood.
pub(crate) fn layer<S>(traces: &Traces) -> Result<(impl Layer<S> + use<S>, SpanExporterGuard), Failure>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
{
    let exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(Client(agent(&traces.endpoint)))
        .with_endpoint(&*traces.endpoint)
        .with_timeout(PATIENCE)
        .build()
        .map_err(|error| Failure::new(Exit::Usage, format!("traces cannot be sent: {error}")))?;
    let resource = Resource::builder().with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")));
    let resource = match std::env::var_os("OTEL_SERVICE_NAME") {
        Some(_) => resource,
        None => resource.with_service_name("promptshelf"),
    };
    let begun_here = Sampler::TraceIdRatioBased(f64::from(traces.percent) / 100.0);
    let provider = SdkTracerProvider::builder()
        .with_batch_exporter(exporter)
        .with_resource(resource.build())
        .with_sampler(Sampler::ParentBased(Box::new(begun_here)))
        .build();
    let ours = filter_fn(|about| about.is_span() && about.target().starts_with("promptshelf"))
        .with_max_level_hint(LevelFilter::DEBUG);
    let layer = tracing_opentelemetry::layer()
        .with_tracer(provider.tracer("promptshelf"))
        .with_location(false)
        .with_threads(false)
        .with_target(false)
        .with_tracked_inactivity(false)
        .with_filter(ours);
    Ok((layer, SpanExporterGuard(provider)))
}

/// Makes a span part of a caller's trace. What is no trace context is passed
/// over, as W3C asks for: then the trace begins here.
pub(super) fn join(span: &Span, trace: &TraceContext<'_>) {
    if trace.parent.len() > MAX_PARENT {
        return;
    }
    let context = TraceContextPropagator::new().extract(&Words(trace));
    if context.span().span_context().is_valid() {
        // Without the layer there is no trace to continue.
        let _ = span.set_parent(context);
    }
}

struct Words<'a>(&'a TraceContext<'a>);

impl Extractor for Words<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        match key {
            "traceparent" => Some(&self.0.parent),
            "tracestate" => self.0.state.as_deref().filter(|state| state.len() <= MAX_STATE),
            _ => None,
        }
    }

    fn keys(&self) -> Vec<&str> {
        vec!["traceparent", "tracestate"]
    }
}

/// Sends with the HTTP client that is there already. It blocks the exporter's
/// own thread and nobody else.
#[derive(Debug)]
struct Client(Agent);

impl HttpClient for Client {
    fn send_bytes<'s, 'f>(&'s self, request: Request<Bytes>) -> BoxFuture<'f, Result<Response<Bytes>, HttpError>>
    where
        's: 'f,
        Self: 'f,
    {
        Box::pin(async move {
            let (head, mut body) = self.0.run(request.map(Vec::from))?.into_parts();
            let body = body.with_config().limit(MAX_ANSWER).read_to_vec()?;
            Ok(Response::from_parts(head, body.into()))
        })
    }
}

fn agent(endpoint: &str) -> Agent {
    let tls = TlsConfig::builder()
        .root_certs(RootCerts::WebPki)
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
        .build();
    let config = Agent::config_builder().tls_config(tls).timeout_global(Some(PATIENCE)).http_status_as_error(false);
    // No proxy leads back to this machine.
    let is_local =
        ["http://127.0.0.1", "http://localhost", "http://[::1]"].iter().any(|here| endpoint.starts_with(here));
    let config = if is_local { config.proxy(None) } else { config };
    config.max_redirects(0).build().into()
}

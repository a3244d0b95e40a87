//! An OpenTelemetry collector that records what it receives.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    thread,
};

use axum::{Router, body::Bytes, extract::State, http::HeaderMap, routing::post};
use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest,
    common::v1::{KeyValue, any_value::Value},
};
use prost::Message as _;

/// A received span. Ids are hexadecimal.
#[derive(Clone, Debug)]
pub(super) struct Span {
    pub(super) service: String,
    pub(super) name: String,
    pub(super) trace: String,
    pub(super) id: String,
    pub(super) parent: String,
    pub(super) state: String,
    pub(super) attributes: BTreeMap<String, String>,
}

type Bodies = Arc<Mutex<Vec<(HeaderMap, Bytes)>>>;

/// The collector; it runs until the test process ends.
pub(super) struct Collector {
    pub(super) url: String,
    bodies: Bodies,
}

impl Collector {
    pub(super) fn start() -> Collector {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let bodies = Bodies::default();
        let routes = Router::new().route("/v1/traces", post(take)).with_state(Arc::clone(&bodies));
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                listener.set_nonblocking(true).expect("a listener");
                let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
                axum::serve(listener, routes).await.expect("a running server");
            });
        });
        Collector { url, bodies }
    }

    /// Returns every received body with its headers.
    pub(super) fn bodies(&self) -> Vec<(HeaderMap, Bytes)> {
        self.bodies.lock().expect("no panic").clone()
    }

    /// Returns every received span. The sender must have exited.
    pub(super) fn spans(&self) -> Vec<Span> {
        let mut spans = Vec::new();
        for (_, body) in self.bodies() {
            let request = ExportTraceServiceRequest::decode(body).expect("a request of OTLP");
            for resource in request.resource_spans {
                let about = resource.resource.map(|resource| attributes(resource.attributes)).unwrap_or_default();
                let service = about.get("service.name").cloned().unwrap_or_default();
                for span in resource.scope_spans.into_iter().flat_map(|scope| scope.spans) {
                    spans.push(Span {
                        service: service.clone(),
                        name: span.name,
                        trace: hex(&span.trace_id),
                        id: hex(&span.span_id),
                        parent: hex(&span.parent_span_id),
                        state: span.trace_state,
                        attributes: attributes(span.attributes),
                    });
                }
            }
        }
        spans
    }
}

async fn take(State(bodies): State<Bodies>, headers: HeaderMap, body: Bytes) {
    bodies.lock().expect("no panic").push((headers, body));
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn attributes(pairs: Vec<KeyValue>) -> BTreeMap<String, String> {
    let text = |pair: KeyValue| {
        let value = match pair.value?.value? {
            Value::StringValue(text) => text,
            other => format!("{other:?}"),
        };
        Some((pair.key, value))
    };
    pairs.into_iter().filter_map(text).collect()
}

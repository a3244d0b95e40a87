//! A separate listener for metrics and health checks, from before the library is read until the program ends.

use std::{
    io,
    sync::{Arc, OnceLock},
    time::Duration,
};

use axum::{
    Router,
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use promptshelf_server::http::{self, App};
use tokio::{net::TcpListener, task::JoinHandle};

use super::Metrics;
use crate::{
    exit::{Exit, Failure},
    settings::Address,
};

const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

const IDLE: Duration = Duration::from_secs(75);

/// Serves metrics until it is dropped.
#[derive(Debug)]
pub(crate) struct MetricsServer {
    pub(crate) metrics: Arc<Metrics>,
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
    /// Starts to listen.
    ///
    /// # Errors
    ///
    /// An address that is in use or cannot be bound.
    pub(crate) async fn start(address: &Address) -> Result<MetricsServer, Failure> {
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

    pub(crate) fn set_ready(&self, app: &App) {
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
    use promptshelf_server::{Library, http::Options};

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

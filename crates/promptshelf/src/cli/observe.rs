//! Metrics and traces, for whoever runs the server.

mod listen;
mod metrics;
#[cfg(feature = "traces")]
mod traces;

use std::{sync::Arc, time::Duration};

use promptshelf_service::{Observer, TraceContext};
use tracing::Span;

#[cfg(feature = "traces")]
pub(crate) use self::traces::{Sending, layer};
pub(crate) use self::{listen::MetricsServer, metrics::Metrics};

/// Hears of every request: counts it, and continues its trace.
#[derive(Debug)]
pub(crate) struct RequestObserver {
    metrics: Option<Arc<Metrics>>,
}

impl RequestObserver {
    /// Nobody watches where nobody wants to know.
    pub(crate) fn new(metrics: Option<Arc<Metrics>>, has_traces: bool) -> Option<Arc<dyn Observer>> {
        (metrics.is_some() || has_traces).then(|| Arc::new(RequestObserver { metrics }) as Arc<dyn Observer>)
    }
}

impl Observer for RequestObserver {
    fn answered(&self, method: &'static str, outcome: &'static str, took: Duration) {
        if let Some(metrics) = &self.metrics {
            metrics.answered(method, outcome, took);
        }
    }

    fn rendered(&self, outcome: &'static str, took: Duration) {
        if let Some(metrics) = &self.metrics {
            metrics.rendered(outcome, took);
        }
    }

    fn set_parent(&self, span: &Span, trace: &TraceContext<'_>) {
        #[cfg(feature = "traces")]
        traces::join(span, trace);
        #[cfg(not(feature = "traces"))]
        let _ = (span, trace);
    }
}

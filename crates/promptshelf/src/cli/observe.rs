//! Metrics and traces for operators.

mod listen;
mod metrics;
mod traces;

use std::{sync::Arc, time::Duration};

use promptshelf_service::{Observer, TraceContext};
use tracing::Span;

pub(crate) use self::traces::{SpanExporterGuard, layer};
pub(crate) use self::{listen::MetricsServer, metrics::Metrics};

/// Counts every request and continues its trace.
#[derive(Debug)]
pub(crate) struct RequestObserver {
    metrics: Option<Arc<Metrics>>,
}

impl RequestObserver {
    /// Returns an observer if metrics or traces are configured.
    pub(crate) fn if_configured(metrics: Option<Arc<Metrics>>, has_traces: bool) -> Option<Arc<dyn Observer>> {
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
        traces::set_parent(span, trace);
    }
}

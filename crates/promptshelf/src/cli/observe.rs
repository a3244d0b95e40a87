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
pub(crate) use self::{listen::Listening, metrics::Metrics};

/// Hears of every request: counts it, and continues its trace.
#[derive(Debug)]
pub(crate) struct Watch {
    figures: Option<Arc<Metrics>>,
}

impl Watch {
    /// Nobody watches where nobody wants to know.
    pub(crate) fn wanted(figures: Option<Arc<Metrics>>, has_traces: bool) -> Option<Arc<dyn Observer>> {
        (figures.is_some() || has_traces).then(|| Arc::new(Watch { figures }) as Arc<dyn Observer>)
    }
}

impl Observer for Watch {
    fn answered(&self, method: &'static str, outcome: &'static str, took: Duration) {
        if let Some(figures) = &self.figures {
            figures.answered(method, outcome, took);
        }
    }

    fn rendered(&self, outcome: &'static str, took: Duration) {
        if let Some(figures) = &self.figures {
            figures.rendered(outcome, took);
        }
    }

    fn set_parent(&self, span: &Span, trace: &TraceContext<'_>) {
        #[cfg(feature = "traces")]
        traces::join(span, trace);
        #[cfg(not(feature = "traces"))]
        let _ = (span, trace);
    }
}

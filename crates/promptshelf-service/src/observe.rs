//! The interface to metrics and traces.
//!
//! An observer receives words of a closed set and durations, never names that a caller sent: those would create an
//! unbounded number of time series.

use std::{borrow::Cow, fmt, time::Duration};

use tracing::Span;

/// A receiver of request metrics and traces.
///
/// Called while a request is answered: an implementation must neither block nor wait.
pub trait Observer: fmt::Debug + Send + Sync {
    /// Reports that a request has been answered or cancelled. Methods and outcomes are closed sets.
    fn answered(&self, method: &'static str, outcome: &'static str, took: Duration);

    /// Reports that a prompt has been rendered, or that rendering failed.
    fn rendered(&self, outcome: &'static str, took: Duration);

    /// Connects the span of a request, which has not started yet, to the trace that its caller has begun.
    fn set_parent(&self, span: &Span, trace: &TraceContext<'_>);
}

/// The caller's position in a trace (W3C Trace Context), as received and not validated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceContext<'a> {
    /// The `traceparent` field.
    pub parent: Cow<'a, str>,
    /// The `tracestate` field.
    pub state: Option<Cow<'a, str>>,
}

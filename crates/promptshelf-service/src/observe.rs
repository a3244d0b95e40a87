//! Whoever runs the server wants figures and traces: what is told of a request
//! while it is answered.
//!
//! It is told in words of a closed set and in durations, and never in what a
//! caller sent: names that callers make up would become figures without end.

use std::{borrow::Cow, fmt, time::Duration};

use tracing::Span;

/// Hears of every request. It has to be quick, and must not wait.
pub trait Observer: fmt::Debug + Send + Sync {
    /// A request has been answered, or nobody waits for its answer any more.
    /// There are few methods and outcomes, whatever callers send.
    fn answered(&self, method: &'static str, outcome: &'static str, took: Duration);

    /// A prompt has been filled in, or could not be.
    fn rendered(&self, outcome: &'static str, took: Duration);

    /// A request belongs to a trace that its caller has begun, and this is its
    /// span, which has not begun yet.
    fn continues(&self, span: &Span, trace: &TraceContext<'_>);
}

/// Where in which trace a caller is, in the words of W3C Trace Context and as
/// the caller wrote it: nothing of it has been checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceContext<'a> {
    /// `traceparent`.
    pub parent: Cow<'a, str>,
    /// `tracestate`.
    pub state: Option<Cow<'a, str>>,
}

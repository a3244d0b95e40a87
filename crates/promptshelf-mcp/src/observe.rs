//! Metrics and traces of requests: a span, and an outcome as a word of a closed set.
//!
//! Without an observer and without logging, nothing is collected.

use std::{pin::Pin, time::Instant};

use promptshelf_service::{Caller, Observer, TraceContext};
use tracing::{Instrument as _, Span, field::Empty};

use crate::{Server, dispatch::methods};

/// The method in metrics of a message that could not be parsed.
pub(crate) const UNREAD: &str = "none";

/// Maps a method to a closed set: unknown methods become `other`.
fn method_label(method: &str) -> &'static str {
    methods().find(|known| *known == method).unwrap_or("other")
}

/// A request in progress. Reported on drop, so that a cancelled request is reported too.
struct RequestInProgress<'a> {
    observer: &'a dyn Observer,
    method: &'static str,
    outcome: &'static str,
    started: Instant,
}

impl Drop for RequestInProgress<'_> {
    fn drop(&mut self) {
        self.observer.answered(self.method, self.outcome, self.started.elapsed());
    }
}

impl Server {
    /// Runs and reports a request. `trace` is called only with an observer. The future is pinned by the caller,
    /// because a future passed by value would be stored twice.
    pub(crate) async fn observed<'t, T>(
        &self,
        caller: &Caller,
        method: &str,
        trace: impl FnOnce() -> Option<TraceContext<'t>>,
        answering: Pin<&mut impl Future<Output = T>>,
        outcome: impl FnOnce(&T) -> &'static str,
    ) -> T {
        let observer = self.service().observer();
        let method = method_label(method);
        let span = span(method, caller);
        if let Some(observer) = observer
            && !span.is_disabled()
            && let Some(trace) = trace()
        {
            observer.set_parent(&span, &trace);
        }
        let mut watch = observer.map(|observer| RequestInProgress {
            observer,
            method,
            outcome: "cancelled",
            started: Instant::now(),
        });
        let answer = answering.instrument(span.clone()).await;
        let outcome = outcome(&answer);
        span.record("error.type", (outcome != "ok").then_some(outcome));
        span.record("otel.status_code", (outcome == "internal-error").then_some("ERROR"));
        if let Some(watch) = &mut watch {
            watch.outcome = outcome;
        }
        answer
    }

    /// Returns the start time of a message that may turn out to be invalid, if there is an observer.
    pub(crate) fn begins(&self) -> Option<Instant> {
        self.service().observer().map(|_| Instant::now())
    }

    pub(crate) fn unread(&self, started: Option<Instant>, outcome: &'static str) {
        if let (Some(observer), Some(started)) = (self.service().observer(), started) {
            observer.answered(UNREAD, outcome, started.elapsed());
        }
    }
}

/// Creates a span without any text of the caller. Its names are those of OpenTelemetry's conventions for MCP, where
/// those define one.
fn span(method: &'static str, caller: &Caller) -> Span {
    tracing::debug_span!(
        "request",
        otel.name = method,
        otel.kind = "server",
        mcp.method.name = method,
        request = caller.request_id(),
        error.type = Empty,
        otel.status_code = Empty,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_methods_share_one_label() {
        assert_eq!(method_label("prompts/get"), "prompts/get");
        assert_eq!(method_label("prompts/get/of/somebody"), "other");
        assert_eq!(method_label("tools/list"), "tools/list");
        assert_eq!(methods().count(), 18);
    }
}

//! What is told of a request while it is answered: a span for traces and logs,
//! and a word for what became of it.
//!
//! Where nobody observes and nobody logs, nothing is looked for and nothing told.

use std::{pin::Pin, time::Instant};

use promptshelf_service::{Caller, Observer, TraceContext};
use tracing::{Instrument as _, Span, field::Empty};

use crate::{Server, dispatch::methods};

/// What is not asked for by a message that could be read.
pub(crate) const UNREAD: &str = "none";

/// A method as one of a closed set: callers make up others, and those are one.
fn known(method: &str) -> &'static str {
    methods().find(|known| *known == method).unwrap_or("other")
}

/// A request that is being answered. What became of it is told when this is
/// dropped, so that one that nobody waits for is told of as well.
struct Answering<'a> {
    observer: &'a dyn Observer,
    method: &'static str,
    outcome: &'static str,
    began: Instant,
}

impl Drop for Answering<'_> {
    fn drop(&mut self) {
        self.observer.answered(self.method, self.outcome, self.began.elapsed());
    }
}

impl Server {
    /// Answers a request, and tells of it. `trace` is looked for only where
    /// somebody wants to know; `outcome` says what became of it. The answering
    /// is pinned already, because a future that is handed over is held twice.
    pub(crate) async fn observed<'t, T>(
        &self,
        caller: &Caller,
        method: &str,
        trace: impl FnOnce() -> Option<TraceContext<'t>>,
        answering: Pin<&mut impl Future<Output = T>>,
        outcome: impl FnOnce(&T) -> &'static str,
    ) -> T {
        let observer = self.service().observer();
        let method = known(method);
        let span = span(method, caller);
        if let Some(observer) = observer
            && !span.is_disabled()
            && let Some(trace) = trace()
        {
            observer.set_parent(&span, &trace);
        }
        let mut watch =
            observer.map(|observer| Answering { observer, method, outcome: "cancelled", began: Instant::now() });
        let answer = answering.instrument(span.clone()).await;
        let outcome = outcome(&answer);
        span.record("error.type", (outcome != "ok").then_some(outcome));
        span.record("otel.status_code", (outcome == "internal-error").then_some("ERROR"));
        if let Some(watch) = &mut watch {
            watch.outcome = outcome;
        }
        answer
    }

    /// When something begins that may never become a request, if anybody wants
    /// to know.
    pub(crate) fn begins(&self) -> Option<Instant> {
        self.service().observer().map(|_| Instant::now())
    }

    /// Tells of what was refused before it could be read.
    pub(crate) fn unread(&self, began: Option<Instant>, outcome: &'static str) {
        if let (Some(observer), Some(began)) = (self.service().observer(), began) {
            observer.answered(UNREAD, outcome, began.elapsed());
        }
    }
}

/// A span without anything that the caller sent. Its names are those of
/// OpenTelemetry's conventions for MCP, where they have one.
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
    use crate::dispatch::is_modern_method;

    #[test]
    fn what_callers_make_up_is_one_method() {
        assert_eq!(known("prompts/get"), "prompts/get");
        assert_eq!(known("prompts/get/of/somebody"), "other");
        assert!(methods().filter(|method| is_modern_method(method)).count() == 8);
    }
}

//! Binding of arguments, rendering of templates and completion: at once if that takes little time, otherwise in the pool.
//!
//! Most renderings take a fraction of a millisecond, less than a change of threads and its wake-ups. Those whose template
//! and values show it are done at once; the others are done in the pool, where they keep no other request waiting.

use std::{future::poll_fn, pin::pin, sync::Arc, task::Poll, time::Duration};

use promptshelf_core::{
    Argument, Bindings, CompletionSource, ContentName, Interrupt, Part, Problem, Prompt, RawArguments, ReadError,
    RemoteInput, RemoteQuestion, RenderError, Resource, ResourceContents, Variables,
    completion::{Completions, Restriction, complete_from},
};
use tokio::runtime::Handle;

use crate::{
    caller::Caller,
    functions::{self, Lost},
    permission::CallerPermission,
    pool::{self, Amount},
    view::View,
};

/// The longest time of a rendering, a completion or the reading of a resource, code of the application and other servers
/// included. Clients wait for 60 seconds.
const DEADLINE: Duration = Duration::from_secs(50);

pub(crate) async fn bind(
    caller: &Caller,
    prompt: &Arc<Prompt>,
    arguments: &RawArguments<'_>,
    value_bytes: usize,
) -> Result<Bindings, Vec<Problem>> {
    let brief = Interrupt::brief();
    let bound = brief.scope(|| prompt.bind(arguments, value_bytes));
    if !brief.has_refused_work() {
        return bound;
    }
    let (prompt, arguments) = (Arc::clone(prompt), arguments.clone().into_owned());
    let binding = move |_: &Interrupt| prompt.bind(&arguments, value_bytes);
    // Boxed: every request would have room for it.
    Box::pin(pool::run(caller, Amount::Small, binding)).await.unwrap_or(bound)
}

/// Renders a prompt. A rendering in the pool ends soon after the returned future has been dropped, as it is when the
/// request times out or its client goes away.
pub(crate) async fn render(
    permission: &Arc<CallerPermission>,
    prompt: &Arc<Prompt>,
    bindings: Bindings,
) -> Result<Vec<Part>, RenderError> {
    if !prompt.is_function() && prompt.is_quick(&bindings) {
        return prompt.render(permission.context(), &bindings);
    }
    // Boxed: every request would have room for it.
    Box::pin(render_elsewhere(permission, prompt, bindings)).await
}

async fn render_elsewhere(
    permission: &Arc<CallerPermission>,
    prompt: &Arc<Prompt>,
    bindings: Bindings,
) -> Result<Vec<Part>, RenderError> {
    let caller = permission.caller();
    let (permission, prompt) = (Arc::clone(permission), Arc::clone(prompt));
    if prompt.is_async() {
        let function = functions::wait(prompt.render_async(permission.context(), &bindings));
        return within(DEADLINE, async { function.await.unwrap_or_else(|lost| Err(unrendered(lost))) }).await;
    }
    if prompt.is_function() {
        let function = functions::run(&caller, move || prompt.render(permission.context(), &bindings));
        return within(DEADLINE, async { function.await.unwrap_or_else(|lost| Err(unrendered(lost))) }).await;
    }
    let rendering =
        move |interrupt: &Interrupt| prompt.render(permission.context().interruptible(interrupt), &bindings);
    let rendered = pool::run(&caller, Amount::Small, rendering);
    within(DEADLINE, async { rendered.await.unwrap_or_else(|error| Err(RenderError::Failed(error.to_string()))) }).await
}

fn unrendered(lost: Lost) -> RenderError {
    match lost {
        Lost::Busy => RenderError::Unavailable(lost.to_string()),
        Lost::Panic => RenderError::Failed(lost.to_string()),
    }
}

/// Waits for what has no deadline of its own, such as another server; `None` if it takes too long.
pub(crate) async fn in_time<T>(work: impl Future<Output = T>) -> Option<T> {
    until(DEADLINE, work).await
}

async fn until<T>(deadline: Duration, work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    // Most work does not wait, and needs no timer.
    if let Poll::Ready(done) = poll_fn(|context| Poll::Ready(work.as_mut().poll(context))).await {
        return Some(done);
    }
    if Handle::try_current().is_err() {
        return Some(work.await);
    }
    tokio::time::timeout(deadline, work).await.ok()
}

/// Waits for a rendering until its deadline.
async fn within<T>(
    deadline: Duration,
    rendering: impl Future<Output = Result<T, RenderError>>,
) -> Result<T, RenderError> {
    let late =
        || format!("it was not rendered within {} seconds; if that happens again, tell its author", deadline.as_secs());
    until(deadline, rendering).await.unwrap_or_else(|| Err(RenderError::Unavailable(late())))
}

/// Renders a prompt of another server, which can ask for input instead.
pub(crate) async fn render_remote(
    permission: &Arc<CallerPermission>,
    prompt: &Arc<Prompt>,
    bindings: Bindings,
    input: RemoteInput,
) -> Result<Result<Vec<Part>, RemoteQuestion>, RenderError> {
    within(DEADLINE, prompt.render_remote(permission.context(), &bindings, input)).await
}

pub(crate) async fn read(
    caller: &Caller,
    resource: &Arc<Resource>,
    uri: &str,
    variables: Variables,
) -> Result<ResourceContents, ReadError> {
    if resource.is_quick(&variables) {
        let late = || ReadError::Failed(format!("it was not read within {} seconds", DEADLINE.as_secs()));
        return in_time(resource.read(uri, &variables)).await.unwrap_or_else(|| Err(late()));
    }
    let (resource, uri) = (Arc::clone(resource), uri.to_owned());
    let rendering = move |interrupt: &Interrupt| {
        resource.render_interruptible(&uri, &variables, interrupt).unwrap_or(Err(ReadError::NotFound))
    };
    pool::run(caller, Amount::Small, rendering).await.unwrap_or_else(|error| Err(ReadError::Failed(error.to_string())))
}

pub(crate) async fn complete(
    view: View,
    argument: Argument,
    template: Option<Arc<Resource>>,
    typed: &str,
    known: &Variables,
) -> Result<Completions, Lost> {
    let caller = view.caller().clone();
    let is_function = matches!(argument.completion(), Some(CompletionSource::Function(_)));
    let completed = move |typed: &str, known: &Variables| {
        let may_read = |name: ContentName<'_>| view.permit_content(name).is_ok();
        let restriction = Restriction { may_read: &may_read, template: template.as_deref() };
        let restriction = view.hides_contents().then_some(&restriction);
        complete_from(&argument, view.catalog(), typed, known, restriction)
    };
    if is_function {
        let (typed, known, interrupt) = (typed.to_owned(), known.clone(), Interrupt::new());
        // The suggestions are no longer ranked when the request has ended.
        let _wanted = Wanted(interrupt.clone());
        let function = functions::run(&caller, move || interrupt.scope(|| completed(&typed, &known)));
        return in_time(function).await.unwrap_or(Err(Lost::Busy));
    }
    let brief = Interrupt::brief();
    let first = brief.scope(|| completed(typed, known));
    if !brief.has_refused_work() {
        return Ok(first);
    }
    let (typed, known) = (typed.to_owned(), known.clone());
    Ok(pool::run(&caller, Amount::Small, move |_: &Interrupt| completed(&typed, &known)).await.unwrap_or(first))
}

/// Stops work when its request ends.
struct Wanted(Interrupt);

impl Drop for Wanted {
    fn drop(&mut self) {
        self.0.set();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn late(result: Result<(), RenderError>) -> bool {
        matches!(result, Err(RenderError::Unavailable(reason)) if reason.contains("not rendered within"))
    }

    // req: S-55
    #[tokio::test]
    async fn rendering_that_never_ends_is_answered() {
        let soon = Duration::from_millis(20);
        assert!(late(within(soon, std::future::pending()).await));
        let (release, released) = std::sync::mpsc::channel::<()>();
        let caller = Caller::anonymous();
        let blocked = functions::run(&caller, move || released.recv().is_ok());
        let blocked = async { blocked.await.map(drop).map_err(unrendered) };
        assert!(late(within(soon, blocked).await), "a function that blocks its thread");
        drop(release);
        assert_eq!(within(soon, async { Ok(7) }).await, Ok(7));
    }
}

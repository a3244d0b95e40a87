//! Binding of arguments, rendering of templates and completion: at once if that takes little time, otherwise in the pool.
//!
//! Most renderings take a fraction of a millisecond, less than a change of threads and its wake-ups. Those whose template
//! and values show it are done at once; the others are done in the pool, where they keep no other request waiting.

use std::sync::Arc;

use promptshelf_core::{
    Argument, Bindings, ContentName, Interrupt, Part, Problem, Prompt, RawArguments, ReadError, RemoteInput,
    RemoteQuestion, RenderError, Resource, ResourceContents, Variables,
    completion::{Completions, Restriction, complete_from},
};

use crate::{
    caller::Caller,
    permission::CallerPermission,
    pool::{self, Amount},
    view::View,
};

/// Validates the arguments of a call.
///
/// # Errors
///
/// The problems of the arguments.
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
    pool::run(caller, Amount::Small, binding).await.unwrap_or(bound)
}

/// Renders a prompt. A rendering in the pool ends soon after the returned future has been dropped, as it is when the
/// request times out or its client goes away.
pub(crate) async fn render(
    permission: &Arc<CallerPermission>,
    prompt: &Arc<Prompt>,
    bindings: Bindings,
) -> Result<Vec<Part>, RenderError> {
    if prompt.is_function() {
        return prompt.render_async(permission.context(), &bindings).await;
    }
    if prompt.is_quick(&bindings) {
        return prompt.render(permission.context(), &bindings);
    }
    let caller = permission.caller();
    let (permission, prompt) = (Arc::clone(permission), Arc::clone(prompt));
    let rendering =
        move |interrupt: &Interrupt| prompt.render(permission.context().interruptible(interrupt), &bindings);
    let rendered = pool::run(&caller, Amount::Small, rendering).await;
    rendered.unwrap_or_else(|error| Err(RenderError::Failed(error.to_string())))
}

/// Renders a prompt of another server, which can ask for input instead.
pub(crate) async fn render_remote(
    permission: &Arc<CallerPermission>,
    prompt: &Arc<Prompt>,
    bindings: Bindings,
    input: RemoteInput,
) -> Result<Result<Vec<Part>, RemoteQuestion>, RenderError> {
    prompt.render_remote(permission.context(), &bindings, input).await
}

pub(crate) async fn read(
    caller: &Caller,
    resource: &Arc<Resource>,
    uri: &str,
    variables: Variables,
) -> Result<ResourceContents, ReadError> {
    if resource.is_quick(&variables) {
        return resource.read(uri, &variables).await;
    }
    let (resource, uri) = (Arc::clone(resource), uri.to_owned());
    let rendering = move |interrupt: &Interrupt| {
        resource.render_interruptible(&uri, &variables, interrupt).unwrap_or(Err(ReadError::NotFound))
    };
    pool::run(caller, Amount::Small, rendering).await.unwrap_or_else(|error| Err(ReadError::Failed(error.to_string())))
}

/// Returns the values of an argument that the caller may see.
pub(crate) async fn complete(
    view: View,
    argument: Argument,
    template: Option<Arc<Resource>>,
    typed: &str,
    known: &Variables,
) -> Completions {
    let caller = view.caller().clone();
    let completed = move |typed: &str, known: &Variables| {
        let may_read = |name: ContentName<'_>| view.permit_content(name).is_ok();
        let restriction = Restriction { may_read: &may_read, template: template.as_deref() };
        let restriction = view.hides_contents().then_some(&restriction);
        complete_from(&argument, view.catalog(), typed, known, restriction)
    };
    let brief = Interrupt::brief();
    let first = brief.scope(|| completed(typed, known));
    if !brief.has_refused_work() {
        return first;
    }
    let (typed, known) = (typed.to_owned(), known.clone());
    pool::run(&caller, Amount::Small, move |_: &Interrupt| completed(&typed, &known)).await.unwrap_or(first)
}

//! The service: one method for each operation. Each one admits the caller, does its work on one [`View`], and records
//! the outcome.
//!
//! Elsewhere: making results (`operations`), and operations of the web page (`overview`).

use std::{
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use arc_swap::ArcSwapOption;
use promptshelf_core::{
    Answers, BoxFuture, Catalog, CatalogHandle, Change, ContentBlock, Message, Prompt, RawArguments, RemoteInput,
    RemoteQuestion, ResourceContents, Variables, completion::Completions, cursor::ListKind,
};
use serde_json::Value;
use tokio::sync::broadcast;
use tracing::Instrument as _;

use crate::{
    access,
    answer::{Answer, ListPage, Reference, RenderedPrompt},
    audit::{AuditLog, BEGUN, Call, Method, Recorder, Secrets},
    caller::{Caller, Identity},
    foreign,
    limit::{Limits, Meter, RequestClass},
    observe::Observer,
    operations,
    rejection::Rejection,
    rollout::{Rollout, RolloutGroup},
    slot::Slot,
    usage::{CountedCall, FormReaction, ServiceUsage, Usage},
    view::{Present, View},
};

const CHANGES_BUFFERED: usize = 16;

/// The name of the server in its own records.
const OWN_NAME: &str = "promptshelf";

/// A prompt library for callers. Cheap to clone; clones share catalog, limits and records.
#[derive(Clone, Debug)]
pub struct Service {
    handle: CatalogHandle,
    changes: broadcast::Sender<Change>,
    ticks: Arc<AtomicU64>,
    pub(crate) meter: Arc<Meter>,
    audit: Option<Arc<AuditLog>>,
    observer: Option<Arc<dyn Observer>>,
    usage: Option<ServiceUsage>,
    rollout: Arc<ArcSwapOption<ServedRollout>>,
    present: Option<Arc<Present>>,
}

#[derive(Debug)]
pub(crate) struct ServedRollout {
    rollout: Rollout,
    candidate: Service,
}

/// A prompt between the request and its rendering: a guided prompt may ask the user first.
#[derive(Debug)]
pub struct OpenPrompt {
    view: View,
    prompt: Arc<Prompt>,
    alias: Option<String>,
    /// Counts as a request in progress, and records the outcome.
    call: Call,
}

impl OpenPrompt {
    /// Returns the catalog and the caller.
    #[must_use]
    pub fn view(&self) -> &View {
        &self.view
    }

    /// Returns the prompt.
    #[must_use]
    pub fn prompt(&self) -> &Arc<Prompt> {
        &self.prompt
    }

    /// Counts the user's reaction to a form.
    pub fn note_form(&self, reaction: FormReaction) {
        self.call.note_form(reaction);
    }

    /// Refuses arguments that the prompt does not have, which are ignored otherwise.
    ///
    /// # Errors
    ///
    /// [`Rejection::InvalidArguments`] with each of them.
    pub fn refuse_unknown(mut self, arguments: &RawArguments<'_>) -> Result<OpenPrompt, Rejection> {
        let problems = self.prompt.unknown_arguments(arguments);
        if problems.is_empty() {
            return Ok(self);
        }
        self.call.note_arguments(&self.prompt, arguments);
        self.call.end(Err(Rejection::InvalidArguments { prompt: self.prompt.name().to_string(), problems }))
    }

    /// Validates the arguments of a guided prompt before its first form. If the client `has_forms`, missing answers are
    /// no problem.
    ///
    /// # Errors
    ///
    /// [`Rejection::InvalidArguments`] with every problem that no answer can solve.
    pub fn check(mut self, arguments: &RawArguments<'_>, has_forms: bool) -> Result<OpenPrompt, Rejection> {
        let value_bytes = self.view.catalog().policy().value_bytes;
        let Err(mut problems) = self.prompt.check_before_forms(arguments, value_bytes) else { return Ok(self) };
        if !has_forms {
            problems.extend(self.prompt.missing_answers(arguments, &Answers::default()));
        }
        self.call.note_arguments(&self.prompt, arguments);
        let rejection = Rejection::InvalidArguments { prompt: self.prompt.name().to_string(), problems };
        self.call.end(Err(Secrets::of(&self.prompt, arguments).hide_in(rejection)))
    }
}

impl Service {
    /// Creates a service on the catalogs that `handle` holds, one after the other.
    #[must_use]
    pub fn new(handle: CatalogHandle) -> Service {
        let (changes, _) = broadcast::channel(CHANGES_BUFFERED);
        let ticks = Arc::new(AtomicU64::new(0));
        let (sender, counter) = (changes.clone(), Arc::clone(&ticks));
        handle.observe(move |change| announce(&sender, &counter, change));
        let (meter, rollout) = (Arc::new(Meter::new(None)), Arc::default());
        Service { handle, changes, ticks, meter, audit: None, observer: None, usage: None, rollout, present: None }
    }

    /// Applies the access rules of the catalog that is served at present to an earlier revision too.
    #[must_use]
    pub fn with_present(self, present: Arc<Present>) -> Service {
        Service { present: Some(present), ..self }
    }

    /// Sets limits for all callers except the local user.
    #[must_use]
    pub fn with_limits(self, limits: &Limits) -> Service {
        Service { meter: Arc::new(Meter::new(Some(limits))), ..self }
    }

    /// Shares the limits of another service: requests to both count together.
    #[must_use]
    pub fn with_limits_of(self, other: &Service) -> Service {
        Service { meter: Arc::clone(&other.meter), ..self }
    }

    /// Shares the limits, the audit, the observer and the usage metrics of another service.
    #[must_use]
    pub fn with_records_of(self, other: &Service) -> Service {
        let (meter, audit, observer) = (Arc::clone(&other.meter), other.audit.clone(), other.observer.clone());
        Service { meter, audit, observer, usage: other.usage.clone(), ..self }
    }

    /// Sends a record of every operation to `recorder`.
    #[must_use]
    pub fn with_audit(self, recorder: Arc<dyn Recorder>) -> Service {
        Service { audit: Some(Arc::new(AuditLog::new(recorder))), ..self }
    }

    /// Reports every request to `observer`.
    #[must_use]
    pub fn with_observer(self, observer: Arc<dyn Observer>) -> Service {
        Service { observer: Some(observer), ..self }
    }

    /// Counts the use of prompts. `channel` is the name of the channel, empty for a folder.
    #[must_use]
    pub fn with_usage(self, usage: &Usage, channel: &str) -> Service {
        Service { usage: Some(ServiceUsage::new(usage, channel)), ..self }
    }

    /// Returns the counters of usage.
    #[must_use]
    pub fn usage(&self) -> Option<&Usage> {
        self.usage.as_ref().map(ServiceUsage::usage)
    }

    /// Begins to count a call of a prompt that the caller may use; previews do not count.
    pub(crate) fn counted(&self, view: &View, method: &'static str, prompt: &Arc<Prompt>) -> Option<CountedCall> {
        if view.caller().client().is_preview() {
            return None;
        }
        // The call counts for the channel that it is served from.
        let service = match view.rollout() {
            Some((served, RolloutGroup::Candidate)) => &served.candidate,
            _ => self,
        };
        service.usage.as_ref().map(|usage| usage.begin(view.caller(), method, prompt, view.catalog()))
    }

    /// Returns the observer of requests.
    #[must_use]
    pub fn observer(&self) -> Option<&dyn Observer> {
        self.observer.as_deref()
    }

    /// Returns whether operations are recorded.
    #[must_use]
    pub fn has_audit(&self) -> bool {
        self.audit.is_some()
    }

    /// Returns whether operations can be recorded, if they have to be; otherwise each one is refused.
    #[must_use]
    pub fn is_audit_ready(&self) -> bool {
        self.audit.as_ref().is_none_or(|log| log.recorder().is_ready())
    }

    /// Returns a future for the time between an operation and its answer, if the answer has to wait for its record.
    /// Taken before the operation; `false` means that the record may be missing, and that the request has to be
    /// refused with [`Rejection::NotRecorded`].
    #[must_use]
    pub fn confirmation(&self) -> Option<BoxFuture<'static, bool>> {
        self.audit.as_ref()?.recorder().confirmation()
    }

    /// Records that a change begins, if answers wait for their records. `false` means that this cannot be recorded, and that
    /// the change must not be made: afterwards it would be too late to refuse it.
    pub async fn record_begin(&self, caller: &Caller, method: Method, channel: Option<&str>) -> bool {
        let Some(confirmation) = self.confirmation() else { return true };
        let mut call = Call::begin(self.audit.as_ref(), caller, method);
        if let Some(channel) = channel {
            call.note_text("channel", channel);
        }
        call.set_outcome(BEGUN);
        drop(call);
        confirmation.await
    }

    /// Records refusals that were only counted because they repeat others: those of minutes that have passed, or at
    /// the end `all`. Called about once a minute; without it they are recorded at a later refusal.
    pub fn record_refusals(&self, all: bool) {
        if let Some(log) = &self.audit {
            log.record_refusals(all);
        }
    }

    /// Records a request that was refused before its caller was known: `origin` has its address and number. `claimed` is the
    /// name in an unverified token. Repetitions from one address are counted, as other refusals are.
    pub fn record_refused_sign_in(
        &self,
        origin: &Caller,
        claimed: Option<&str>,
        code: &'static str,
        reason: &'static str,
    ) {
        let mut call = Call::begin(self.audit.as_ref(), origin, Method::SignIn);
        if let Some(claimed) = claimed {
            call.note_text("claimed", claimed);
        }
        call.note("reason", || reason.into());
        call.set_outcome(code);
    }

    /// Records a request that was refused for its host or origin, whoever sent it.
    pub fn record_foreign_request(&self, origin: &Caller, host: &str) {
        let mut call = Call::begin(self.audit.as_ref(), origin, Method::Host);
        call.note_text("host", host);
        call.set_outcome("foreign-request");
    }

    /// Records that a caller asked for a channel that is hidden from it: its answer is that of one that does not exist.
    pub fn record_hidden_channel(&self, caller: &Caller, channel: &str) {
        let mut call = Call::begin(self.audit.as_ref(), caller, Method::Channel);
        call.note_text("channel", channel);
        call.set_outcome("hidden");
    }

    /// Counts a subscription of a caller as open until the slot is dropped.
    ///
    /// # Errors
    ///
    /// [`Rejection::TooManyAtOnce`].
    pub fn subscribe(&self, caller: &Caller) -> Result<Option<Slot>, Rejection> {
        self.check_audit()?;
        let call = Call::begin(self.audit.as_ref(), caller, Method::Subscribe);
        call.end(self.meter.subscribe(caller))
    }

    /// Returns the number of open subscriptions and streams that count for the limit: those of all but the local user.
    #[must_use]
    pub fn open_subscriptions(&self) -> u64 {
        self.meter.open_subscriptions()
    }

    /// Refuses an operation that could not be recorded.
    fn check_audit(&self) -> Result<(), Rejection> {
        if self.is_audit_ready() { Ok(()) } else { Err(Rejection::NotRecorded) }
    }

    /// Begins an operation: admits the caller, and records the outcome at the end.
    pub(crate) fn begin(&self, caller: &Caller, class: RequestClass, method: Method) -> Result<Call, Rejection> {
        self.check_audit()?;
        let mut call = Call::begin(self.audit.as_ref(), caller, method);
        match self.meter.admit(caller, class) {
            Ok(slot) => {
                call.hold(match (slot, caller.slot_holder()) {
                    (Some(slot), Some(holder)) => holder.hold(slot),
                    (slot, _) => slot,
                });
                Ok(call)
            }
            Err(rejection) => call.end(Err(rejection)),
        }
    }

    /// Returns the current catalog. Each call may return another one: use [`view`](Service::view) for whatever has
    /// to be consistent.
    #[must_use]
    pub fn catalog(&self) -> Arc<Catalog> {
        self.handle.current()
    }

    /// Returns the current catalog as `caller` sees it; that of another channel for the share of a
    /// [rollout](Service::set_rollout).
    #[must_use]
    pub fn view(&self, caller: &Caller) -> View {
        let Some(served) = self.rollout.load_full() else {
            return View::new(self.catalog(), caller).with_present(self.present.clone());
        };
        let Some(group) = served.rollout.group(caller) else { return View::new(self.catalog(), caller) };
        let catalog = if group == RolloutGroup::Candidate { served.candidate.catalog() } else { self.catalog() };
        View::new(catalog, caller).with_rollout(served, group)
    }

    /// Sets the rollout of the channel for all clones of the service, or ends it. The service of its target comes with it,
    /// whose changes are changes of this service meanwhile.
    pub fn set_rollout(&self, rollout: Option<(&Rollout, &Service)>) {
        let served = rollout.map(|(rollout, candidate)| {
            Arc::new(ServedRollout { rollout: rollout.clone(), candidate: candidate.clone() })
        });
        if let Some(served) = &served {
            let (sender, counter) = (self.changes.clone(), Arc::clone(&self.ticks));
            // Until the rollout ends.
            served.candidate.handle.observe_for(served, move |change| announce(&sender, &counter, change));
        }
        let before = self.rollout.swap(served);
        if before.is_some_and(|before| before.rollout.percent() > 0) {
            self.announce_all();
        }
    }

    /// Sets the share of the rollout, in per cent, and notifies subscribers if it is another one: their lists may be those
    /// of the other channel now.
    pub fn set_rollout_percent(&self, percent: u8) {
        if self.rollout.load().as_ref().is_some_and(|served| served.rollout.set_percent(percent)) {
            self.announce_all();
        }
    }

    fn announce_all(&self) {
        let generation = self.catalog().generation();
        let change = Change { generation, prompts: true, resources: true, contents: true, tools: true };
        announce(&self.changes, &self.ticks, &change);
    }

    /// Records a change that the server itself has made, with its details.
    pub fn record_own(&self, method: Method, details: impl IntoIterator<Item = (&'static str, Value)>) {
        let identity = Identity { key: OWN_NAME.to_owned(), name: OWN_NAME.to_owned(), ..Identity::default() };
        let mut call = Call::begin(self.audit.as_ref(), &Caller::authenticated(Arc::new(identity)), method);
        for (key, value) in details {
            call.note(key, || value);
        }
        call.set_outcome("ok");
    }

    /// Subscribes to all changes from now on. A receiver that lags behind has to assume that everything has changed.
    #[must_use]
    pub fn changes(&self) -> broadcast::Receiver<Change> {
        self.changes.subscribe()
    }

    /// Returns the number of changes so far. A change is counted before it is sent to receivers.
    #[must_use]
    pub fn tick(&self) -> u64 {
        self.ticks.load(Ordering::Acquire)
    }

    /// Returns one page of a list; without a cursor the first one.
    ///
    /// # Errors
    ///
    /// [`Rejection::InvalidCursor`], and those of limits.
    pub fn list(&self, caller: &Caller, list: ListKind, cursor: Option<&str>) -> Result<Answer<ListPage>, Rejection> {
        let mut call = self.begin(caller, RequestClass::Other, Method::List)?;
        let view = self.view(caller);
        call.note("list", || operations::list_name(list).into());
        call.note_generation(view.catalog());
        let page = view.page(list, cursor);
        call.end(page.map(|page| Answer::new(view, ListPage { list, page })))
    }

    /// Finds a prompt and fixes its catalog, so that questions to the user and the rendering are about the same
    /// version.
    ///
    /// # Errors
    ///
    /// [`Rejection::UnknownPrompt`], [`Rejection::InsufficientScope`], and those of limits.
    pub fn open(&self, caller: &Caller, name: &str) -> Result<OpenPrompt, Rejection> {
        self.open_checked(caller, name, |_| Ok(None))
    }

    /// Finds a prompt like [`open`](Service::open). `check` can refuse it, and returns the way of the request for the
    /// record if it is not that of a prompt.
    pub(crate) fn open_checked(
        &self,
        caller: &Caller,
        name: &str,
        check: impl FnOnce(&Prompt) -> Result<Option<&'static str>, Rejection>,
    ) -> Result<OpenPrompt, Rejection> {
        let mut call = self.begin(caller, RequestClass::Other, Method::Get)?;
        let view = self.view(caller);
        call.note_text("prompt", name);
        call.note_generation(view.catalog());
        if let Some((served, group)) = view.rollout() {
            call.compare(served.rollout.begin(caller, group));
            call.note("rollout", || group.as_str().into());
        }
        let found = access::find(view.catalog(), caller, name);
        match found.and_then(|prompt| check(&prompt).map(|via| (prompt, via))) {
            Ok((prompt, via)) => {
                if let Some(via) = via {
                    call.note("via", || via.into());
                }
                let method = if via.is_some() { "tools/call" } else { "prompts/get" };
                let alias = (name != prompt.name().as_str()).then(|| name.to_owned());
                call.count(self.counted(&view, method, &prompt).map(|call| call.under(alias.as_deref())));
                call.note_prompt(&prompt, view.catalog());
                // The outcome, unless the prompt is rendered: the user was asked first.
                call.set_outcome("asked");
                Ok(OpenPrompt { view, prompt, alias, call })
            }
            Err(rejection) => {
                if let (Rejection::UnknownPrompt { .. }, Some(usage)) = (&rejection, &self.usage)
                    && !caller.client().is_preview()
                {
                    usage.count_unknown(caller, "prompts/get", name);
                }
                call.end(Err(rejection))
            }
        }
    }

    /// Renders a prompt with a caller's arguments.
    ///
    /// # Errors
    ///
    /// A [`Rejection`] that the caller can act on.
    pub async fn get(
        &self,
        caller: &Caller,
        name: &str,
        arguments: &RawArguments<'_>,
    ) -> Result<Answer<RenderedPrompt>, Rejection> {
        self.render(self.open(caller, name)?, arguments).await
    }

    /// Renders an opened prompt with the caller's arguments and the user's answers.
    ///
    /// # Errors
    ///
    /// A [`Rejection`] that the caller can act on.
    pub async fn render(
        &self,
        open: OpenPrompt,
        arguments: &RawArguments<'_>,
    ) -> Result<Answer<RenderedPrompt>, Rejection> {
        let OpenPrompt { view, prompt, alias, mut call } = open;
        call.set_outcome("cancelled");
        call.note_arguments(&prompt, arguments);
        let secrets = Secrets::of(&prompt, arguments);
        let started = self.observer().map(|_| Instant::now());
        let of_source = view.of_source(&prompt);
        let (own_view, own) = of_source.as_ref().map_or((&view, &prompt), |(view, own)| (view, own));
        let span = operations::span(&view, &prompt, own_view, own);
        let messages = operations::render(own_view, own, prompt.name(), arguments, &secrets).instrument(span).await;
        if let (Some(observer), Some(started)) = (self.observer(), started) {
            observer.rendered(messages.as_ref().err().map_or("ok", Rejection::code), started.elapsed());
        }
        let messages = call.end_with(messages.map_err(|rejection| secrets.hide_in(rejection)), |messages| {
            messages.iter().map(|message| message.content.size()).sum()
        })?;
        Ok(Answer::new(view, RenderedPrompt { prompt, alias, messages }))
    }

    /// Completes an argument: `typed` is its value so far, and `known` holds the arguments that are already filled in.
    ///
    /// # Errors
    ///
    /// Those for an unknown prompt, resource template or argument, and those of limits.
    pub async fn complete(
        &self,
        caller: &Caller,
        reference: Reference<'_>,
        argument: &str,
        typed: &str,
        known: &Variables,
    ) -> Result<Answer<Completions>, Rejection> {
        let mut call = self.begin(caller, RequestClass::Complete, Method::Complete)?;
        let view = self.view(caller);
        match reference {
            Reference::Prompt(name) => call.note_text("prompt", name),
            Reference::Resource(uri) => call.note_text("resource", uri),
        }
        call.note_text("argument", argument);
        call.note_generation(view.catalog());
        if let Reference::Prompt(name) = reference
            && self.usage.is_some()
            && let Ok(prompt) = view.find(name)
        {
            call.count(self.counted(&view, "completion/complete", &prompt));
        }
        let completions = operations::complete(&view, reference, argument, typed, known).await;
        let completions = call.end_with(completions, |found| found.values.iter().map(String::len).sum())?;
        Ok(Answer::new(view, completions))
    }

    /// Reads a resource.
    ///
    /// # Errors
    ///
    /// [`Rejection::UnknownResource`] for a resource that does not exist or is hidden from the caller,
    /// [`Rejection::InsufficientScope`], [`Rejection::ResourceTooLarge`], and those of limits.
    pub async fn read(&self, caller: &Caller, uri: &str) -> Result<Answer<ResourceContents>, Rejection> {
        let mut call = self.begin(caller, RequestClass::Other, Method::Read)?;
        let view = self.view(caller);
        call.note_text("resource", uri);
        call.note_generation(view.catalog());
        let (mut contents, mut source) = (operations::read(&view, uri).await, None);
        if let Err(Rejection::UnknownResource { .. }) = &contents
            && let Some(found) = foreign::find(&view, uri)
        {
            call.note_text("source", &found.source);
            contents = Box::pin(found.read(&view, uri)).await;
            source = Some(found.source);
        }
        let contents = call.end_with(contents, |contents| contents.body.len())?;
        Ok(Answer::new(view, contents).of_source(source))
    }

    /// Permits a caller to follow the changes of a resource, and returns the view that permits it.
    ///
    /// # Errors
    ///
    /// [`Rejection::UnknownResource`] for a resource that this server does not serve or that is hidden from the
    /// caller, and [`Rejection::InsufficientScope`].
    pub fn follow(&self, caller: &Caller, uri: &str) -> Result<View, Rejection> {
        let mut call = self.begin(caller, RequestClass::Other, Method::Follow)?;
        call.note_text("resource", uri);
        let view = self.view(caller);
        call.end(view.follow(uri))?;
        Ok(view)
    }
}

/// Counts a change, and sends it to receivers.
fn announce(sender: &broadcast::Sender<Change>, ticks: &AtomicU64, change: &Change) {
    ticks.fetch_add(1, Ordering::Release);
    // Sending fails only when nothing listens.
    drop(sender.send(change.clone()));
}

impl Service {
    /// Replaces the limits of every clone; `None` removes them.
    pub fn set_limits(&self, limits: Option<&Limits>) {
        self.meter.set(limits);
    }

    /// Returns, for each limit, how many requests it has refused so far.
    #[must_use]
    pub fn refused_by_limits(&self) -> Vec<(&'static str, u64)> {
        self.meter.refused()
    }

    /// Admits a request by its address alone, before its caller and content are known.
    ///
    /// # Errors
    ///
    /// [`Rejection::TooManyRequests`].
    pub fn admit_address(&self, address: IpAddr) -> Result<(), Rejection> {
        self.meter.admit_address(address)
    }

    /// Counts a request that is refused before an operation begins, such as one with malformed parameters, which can
    /// take as much time as others. Nothing is counted if the request has been admitted already, or has no
    /// [`SlotHolder`](crate::SlotHolder).
    ///
    /// # Errors
    ///
    /// [`Rejection::TooManyRequests`].
    pub fn count_refused(&self, caller: &Caller) -> Result<(), Rejection> {
        self.meter.count_refused(caller)
    }

    /// Returns whether limits are set.
    #[must_use]
    pub fn has_limits(&self) -> bool {
        self.meter.is_on()
    }
}

/// The outcome of rendering a prompt of another server.
#[derive(Debug)]
#[non_exhaustive]
pub enum RemoteOutcome {
    /// The messages.
    Rendered(Answer<RenderedPrompt>),
    /// A question to the user, and the prompt to render it with the results.
    InputRequired(Box<OpenPrompt>, RemoteQuestion),
}

/// Refuses messages with a URI of this server: a client would take them for content of its libraries.
fn claims_own_uri(view: &View, prompt: &Prompt, messages: &[Message]) -> Option<Rejection> {
    let is_own = |message: &Message| match &message.content {
        ContentBlock::Resource(resource) => view.catalog().content(&resource.contents.uri).is_some(),
        ContentBlock::Link(link) => view.catalog().content(&link.uri).is_some(),
        _ => false,
    };
    messages.iter().any(is_own).then(|| Rejection::Unavailable {
        prompt: prompt.name().to_string(),
        reason: "its server sent a URI that belongs to this server, which is not passed on".to_owned(),
    })
}

impl Service {
    /// Renders an opened prompt of another server ([`Prompt::remote`](promptshelf_core::Prompt::remote)). `input` has
    /// the ways in which the caller can be asked, and the user's results.
    ///
    /// # Errors
    ///
    /// A [`Rejection`] that the caller can act on.
    pub async fn render_remote(
        &self,
        open: OpenPrompt,
        arguments: &RawArguments<'_>,
        input: RemoteInput,
    ) -> Result<RemoteOutcome, Rejection> {
        let OpenPrompt { view, prompt, alias, mut call } = open;
        call.set_outcome("cancelled");
        call.note_arguments(&prompt, arguments);
        let secrets = Secrets::of(&prompt, arguments);
        let started = self.observer().map(|_| Instant::now());
        let of_source = view.of_source(&prompt);
        let (own_view, own) = of_source.as_ref().map_or((&view, &prompt), |(view, own)| (view, own));
        let rendering = operations::render_remote(own_view, own, prompt.name(), arguments, input, &secrets);
        let rendered = rendering.instrument(operations::span(&view, &prompt, own_view, own)).await;
        if let (Some(observer), Some(started)) = (self.observer(), started) {
            observer.rendered(rendered.as_ref().err().map_or("ok", Rejection::code), started.elapsed());
        }
        let rendered = rendered.and_then(|rendered| match &rendered {
            Ok(messages) => claims_own_uri(&view, &prompt, messages).map_or(Ok(rendered), Err),
            Err(_) => Ok(rendered),
        });
        let messages = match rendered.map_err(|rejection| secrets.hide_in(rejection)) {
            Ok(Err(question)) => {
                call.set_outcome("asked");
                return Ok(RemoteOutcome::InputRequired(Box::new(OpenPrompt { view, prompt, alias, call }), question));
            }
            Ok(Ok(messages)) => Ok(messages),
            Err(rejection) => Err(rejection),
        };
        let messages =
            call.end_with(messages, |messages| messages.iter().map(|message| message.content.size()).sum())?;
        Ok(RemoteOutcome::Rendered(Answer::new(view, RenderedPrompt { prompt, alias, messages })))
    }
}

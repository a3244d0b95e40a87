//! The one API behind every face: what a caller may list, get, complete and read.
//!
//! MCP, the command line and every other face ask a [`Service`], so that a
//! preview cannot differ from what a model gets. One question sees one catalog
//! from its beginning to its end.
//!
//! What is deliberately not here: headers, sockets and JSON-RPC, and where
//! prompts come from.

mod access;
mod answer;
mod audit;
mod beside;
mod caller;
mod limit;
mod observe;
mod rejection;

use std::{
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use promptshelf_core::{
    Catalog, CatalogHandle, Change, ContentBlock, Message, Page, Prompt, RawArguments, ResourceContents, Variables,
    completion::Completions, cursor::ListKind,
};
use tokio::sync::broadcast;
use tracing::Instrument as _;

use audit::{Call, Journal, Secrets};
use limit::{Class, Meter};

pub use access::View;
pub use audit::{AuditFile, AuditFileOptions, Recorder};
pub use beside::Shelf;
pub use caller::{Caller, Identity, Revocation};
pub use limit::{Limits, Slot, Slots, address_key};
pub use observe::{Observer, TraceContext};
pub use rejection::Rejection;

/// How many changes a slow listener may lag behind before it is told of them as one.
const CHANGES_KEPT: usize = 16;

/// What may be asked. Cheap to clone; clones are the same service.
#[derive(Clone, Debug)]
pub struct Service {
    handle: CatalogHandle,
    changes: broadcast::Sender<Change>,
    ticks: Arc<AtomicU64>,
    meter: Arc<Meter>,
    journal: Option<Arc<Journal>>,
    observer: Option<Arc<dyn Observer>>,
}

/// One page of a list, and the catalog that it is of.
#[derive(Clone, Debug)]
pub struct ListPage {
    /// The catalog.
    pub catalog: Arc<Catalog>,
    /// The page's places in the catalog's list, and the cursor of the next one.
    pub page: Page,
    /// What of it the caller sees.
    pub view: View,
}

impl ListPage {
    /// Places in the catalog's list of what is shown.
    pub fn shown(&self, list: ListKind) -> impl Iterator<Item = usize> + '_ {
        self.page.range.clone().filter(move |index| self.view.shows(&self.catalog, list, *index))
    }
}

/// A prompt that is about to be filled in.
#[derive(Debug)]
pub struct OpenPrompt {
    /// The catalog that it is of.
    pub catalog: Arc<Catalog>,
    /// The prompt.
    pub prompt: Arc<Prompt>,
    /// Counts the question as being answered, and records what becomes of it.
    call: Call,
}

/// A prompt, filled in.
#[derive(Clone, Debug)]
pub struct PromptAnswer {
    /// The catalog that it is of.
    pub catalog: Arc<Catalog>,
    /// The prompt.
    pub prompt: Arc<Prompt>,
    /// What it says.
    pub messages: Vec<Message>,
}

/// What is to be completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reference<'a> {
    /// An argument of the prompt with this name.
    Prompt(&'a str),
    /// A variable of the resource template that is written like this.
    Resource(&'a str),
}

impl Service {
    /// A service over the catalogs that stand in a place, one after the other.
    #[must_use]
    pub fn new(handle: CatalogHandle) -> Service {
        let (changes, _) = broadcast::channel(CHANGES_KEPT);
        let ticks = Arc::new(AtomicU64::new(0));
        let (sender, counter) = (changes.clone(), Arc::clone(&ticks));
        handle.observe(move |change| {
            counter.fetch_add(1, Ordering::Release);
            // Nobody listening is no failure.
            drop(sender.send(change.clone()));
        });
        Service { handle, changes, ticks, meter: Arc::new(Meter::new(None)), journal: None, observer: None }
    }

    /// The same service with limits for everybody but the person at this machine.
    #[must_use]
    pub fn with_limits(self, limits: &Limits) -> Service {
        Service { meter: Arc::new(Meter::new(Some(limits))), ..self }
    }

    /// Takes other limits from now on, or none, for every clone.
    pub fn set_limits(&self, limits: Option<&Limits>) {
        self.meter.set(limits);
    }

    /// The same service with a record of every question.
    #[must_use]
    pub fn with_audit(self, recorder: Arc<dyn Recorder>) -> Service {
        Service { journal: Some(Arc::new(Journal::new(recorder))), ..self }
    }

    /// The same service, with somebody who hears of every request.
    #[must_use]
    pub fn with_observer(self, observer: Arc<dyn Observer>) -> Service {
        Service { observer: Some(observer), ..self }
    }

    /// Who hears of every request.
    #[must_use]
    pub fn observer(&self) -> Option<&dyn Observer> {
        self.observer.as_deref()
    }

    /// How often somebody was refused so far, by the limit that was reached.
    #[must_use]
    pub fn refused_by_limits(&self) -> Vec<(&'static str, u64)> {
        self.meter.refused()
    }

    /// Whether questions are recorded.
    #[must_use]
    pub fn has_audit(&self) -> bool {
        self.journal.is_some()
    }

    /// Lets a request from an address in, whatever it asks and whoever sends it.
    ///
    /// # Errors
    ///
    /// [`Rejection::TooManyRequests`].
    pub fn admit_address(&self, address: IpAddr) -> Result<(), Rejection> {
        self.meter.admit_address(address)
    }

    /// Whether anybody is limited.
    #[must_use]
    pub fn has_limits(&self) -> bool {
        self.meter.is_on()
    }

    /// Counts a subscription of a caller as open, for as long as the slot is held.
    ///
    /// # Errors
    ///
    /// [`Rejection::TooManyAtOnce`].
    pub fn subscribe(&self, caller: &Caller) -> Result<Option<Slot>, Rejection> {
        let call = Call::begin(self.journal.as_ref(), caller, "subscribe");
        call.end(self.meter.subscribe(caller))
    }

    /// Begins to answer a question: lets it in, and records it when it ends.
    fn begin(&self, caller: &Caller, class: Class, method: &'static str) -> Result<Call, Rejection> {
        let mut call = Call::begin(self.journal.as_ref(), caller, method);
        match self.meter.admit(caller, class) {
            Ok(slot) => {
                call.hold(slot);
                Ok(call)
            }
            Err(rejection) => call.end(Err(rejection)),
        }
    }

    /// The catalog as it stands now.
    #[must_use]
    pub fn catalog(&self) -> Arc<Catalog> {
        self.handle.current()
    }

    /// Tells of every change from now on. Who lags behind is told that it has,
    /// and then has to take everything as changed.
    #[must_use]
    pub fn changes(&self) -> broadcast::Receiver<Change> {
        self.changes.subscribe()
    }

    /// How many changes there have been. Whoever has heard of a change finds it
    /// counted already.
    #[must_use]
    pub fn tick(&self) -> u64 {
        self.ticks.load(Ordering::Acquire)
    }

    /// One page of a list; the first one without a cursor.
    ///
    /// # Errors
    ///
    /// [`Rejection::InvalidCursor`].
    pub fn list(&self, caller: &Caller, list: ListKind, cursor: Option<&str>) -> Result<ListPage, Rejection> {
        let mut call = self.begin(caller, Class::Other, "list")?;
        let catalog = self.catalog();
        call.note("list", || list_name(list).into());
        call.note("generation", || catalog.generation().into());
        let view = View::of(caller, &catalog);
        let page = view.page(&catalog, list, cursor).ok_or(Rejection::InvalidCursor);
        call.end(page.map(|page| ListPage { catalog, page, view }))
    }

    /// A prompt to be filled in, together with the catalog that it is of, so
    /// that questions and answers are about the same version.
    ///
    /// # Errors
    ///
    /// [`Rejection::UnknownPrompt`].
    pub fn open(&self, caller: &Caller, name: &str) -> Result<OpenPrompt, Rejection> {
        let mut call = self.begin(caller, Class::Other, "get")?;
        let catalog = self.catalog();
        call.name("prompt", name);
        call.note("generation", || catalog.generation().into());
        match access::find(&catalog, caller, name) {
            Ok(prompt) => {
                call.prompt(&prompt);
                // Unless it is filled in, something was asked back.
                call.otherwise("asked");
                Ok(OpenPrompt { catalog, prompt, call })
            }
            Err(rejection) => call.end(Err(rejection)),
        }
    }

    /// A prompt, filled in with what a caller sent.
    ///
    /// # Errors
    ///
    /// [`Rejection`] says what to do about it.
    pub async fn get(&self, caller: &Caller, name: &str, given: &RawArguments<'_>) -> Result<PromptAnswer, Rejection> {
        let open = self.open(caller, name)?;
        self.fill_in(caller, open, given).await
    }

    /// An opened prompt, filled in with what a caller sent and answered.
    ///
    /// # Errors
    ///
    /// [`Rejection`] says what to do about it.
    pub async fn fill_in(
        &self,
        caller: &Caller,
        open: OpenPrompt,
        given: &RawArguments<'_>,
    ) -> Result<PromptAnswer, Rejection> {
        let OpenPrompt { catalog, prompt, mut call } = open;
        call.otherwise("cancelled");
        call.given(&prompt, given);
        let secrets = Secrets::of(&prompt, given);
        let began = self.observer().map(|_| Instant::now());
        let span = tracing::debug_span!("render", gen_ai.prompt.name = %prompt.name());
        let messages = answer::fill_in(caller, &catalog, &prompt, given, &secrets).instrument(span).await;
        if let (Some(observer), Some(began)) = (self.observer(), began) {
            observer.rendered(messages.as_ref().err().map_or("ok", Rejection::code), began.elapsed());
        }
        let messages = call.end_with(messages.map_err(|rejection| secrets.hide_in(rejection)), |messages| {
            messages.iter().map(|message| message.content.size()).sum()
        })?;
        Ok(PromptAnswer { catalog, prompt, messages })
    }

    /// Reads what the links of an answer lead to, for a caller that cannot
    /// follow links: resources of this server that hold at most so many bytes.
    /// What cannot be read stays a link, and that is no failure.
    pub async fn follow_links(&self, caller: &Caller, prompt: &mut PromptAnswer, most_bytes: usize) {
        for message in &mut prompt.messages {
            let ContentBlock::Link(link) = &mut message.content else { continue };
            if link.target.is_some() || link.size.is_some_and(|size| size > most_bytes as u64) {
                continue;
            }
            if let Ok(contents) = answer::read(&prompt.catalog, caller, &link.uri).await
                && contents.body.len() <= most_bytes
            {
                link.target = Some(Arc::new(contents));
            }
        }
    }

    /// Values for an argument of which `typed` has been typed, with those in
    /// `known` already filled in.
    ///
    /// # Errors
    ///
    /// An unknown prompt, resource template or argument.
    pub fn complete(
        &self,
        caller: &Caller,
        reference: Reference<'_>,
        argument: &str,
        typed: &str,
        known: &Variables,
    ) -> Result<Completions, Rejection> {
        let mut call = self.begin(caller, Class::Complete, "complete")?;
        let catalog = self.catalog();
        match reference {
            Reference::Prompt(name) => call.name("prompt", name),
            Reference::Resource(uri) => call.name("resource", uri),
        }
        call.name("argument", argument);
        call.note("generation", || catalog.generation().into());
        let completions = answer::complete(caller, &catalog, reference, argument, typed, known);
        call.end_with(completions, |found| found.values.iter().map(String::len).sum())
    }

    /// What a resource holds.
    ///
    /// # Errors
    ///
    /// [`Rejection::UnknownResource`] for anything that is not there or not to be seen.
    pub async fn read(&self, caller: &Caller, uri: &str) -> Result<ResourceContents, Rejection> {
        let mut call = self.begin(caller, Class::Other, "read")?;
        let catalog = self.catalog();
        call.name("resource", uri);
        call.note("generation", || catalog.generation().into());
        let contents = answer::read(&catalog, caller, uri).await;
        call.end_with(contents, |contents| contents.body.len())
    }

    /// Lets a caller begin to follow a resource.
    ///
    /// # Errors
    ///
    /// [`Rejection::UnknownResource`] for anything that is not this server's or not to be seen.
    pub fn follow(&self, caller: &Caller, uri: &str) -> Result<(), Rejection> {
        let mut call = self.begin(caller, Class::Other, "follow")?;
        call.name("resource", uri);
        call.end(self.permit(caller, uri).and_then(|()| match self.serves(caller, uri) {
            true => Ok(()),
            false => Err(Rejection::UnknownResource { uri: rejection::echo(uri) }),
        }))
    }

    /// Whether a caller may follow a URI, whether there is anything or not.
    ///
    /// # Errors
    ///
    /// [`Rejection::UnknownResource`] and [`Rejection::InsufficientScope`].
    pub fn permit(&self, caller: &Caller, uri: &str) -> Result<(), Rejection> {
        access::permit(&self.catalog(), caller, uri)
    }

    /// What a caller sees of the lists, now.
    #[must_use]
    pub fn view(&self, caller: &Caller) -> View {
        View::of(caller, &self.catalog())
    }

    /// How many prompts and resources a caller sees.
    #[must_use]
    pub fn count(&self, caller: &Caller) -> (usize, usize) {
        let catalog = self.catalog();
        let view = View::of(caller, &catalog);
        let count = |list, length| (0..length).filter(|index| view.shows(&catalog, list, *index)).count();
        (count(ListKind::Prompts, catalog.prompts().len()), count(ListKind::Resources, catalog.resources().len()))
    }

    /// Whether a URI is one of this server's that a caller may use, whatever it
    /// holds at present.
    #[must_use]
    pub fn serves(&self, caller: &Caller, uri: &str) -> bool {
        let catalog = self.catalog();
        access::permit(&catalog, caller, uri).is_ok()
            && (catalog.find_resource(uri).is_some() || catalog.find_library_file(uri).is_some())
    }

    /// A number that differs when what a URI holds does; `None` where nothing
    /// is to be read, or not by this caller.
    pub async fn version(&self, caller: &Caller, uri: &str) -> Option<u64> {
        let catalog = self.catalog();
        access::permit(&catalog, caller, uri).ok()?;
        match catalog.find_resource(uri) {
            Some((resource, variables)) => resource.version(&variables).await,
            None => catalog.find_library_file(uri).map(|contents| contents.body.digest()),
        }
    }
}

fn list_name(list: ListKind) -> &'static str {
    match list {
        ListKind::Prompts => "prompts",
        ListKind::Resources => "resources",
        ListKind::ResourceTemplates => "resource-templates",
    }
}

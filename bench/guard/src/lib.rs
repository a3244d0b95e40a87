//! Hot paths in isolation, without sockets or clocks, so that instruction counts do not depend on the machine's load.
//!
//! `main.rs` runs one path repeatedly for callgrind; `benches/paths.rs` runs all of them with divan.

use std::{
    cell::{Cell, OnceCell},
    hint::black_box,
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use promptshelf::{
    ArgumentDefinition, Caller, CompletionSource, Library, PromptDefinition,
    mcp::{HttpBody, HttpOptions, HttpService, Server},
    service::Usage,
    source::{Files, Source as _},
};
use promptshelf_core::{Catalog, Definitions, RawArguments, Variables, check, completion, cursor::ListKind};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};
use tower_service::Service as _;

/// A path's name, and one run of it.
pub type Path = (&'static str, fn(&Shelf));

/// All guarded paths.
pub const PATHS: &[Path] = &[
    ("bind three arguments", Shelf::bind),
    ("render a kilobyte", Shelf::render),
    ("complete over 10 values", Shelf::complete_few),
    ("complete over 10,000 values", Shelf::complete_many),
    ("find a page of 1,000 in 10,000", Shelf::page),
    ("read and check a message", Shelf::message),
    ("prompts/get, modern", Shelf::get_modern),
    ("prompts/get, legacy", Shelf::get_legacy),
    ("prompts/get, counted", Shelf::get_counted),
    ("prompts/get of 100 kB", Shelf::get_long),
    ("prompts/list of 1,000, again", Shelf::list),
    ("check 100 prompts", Shelf::check),
    ("check one of 1,000 prompts anew", Shelf::check_one),
];

/// Paths that read a folder, for tuning only: their cost depends on the order in which the file system lists files,
/// so they are not guarded.
pub const FOLDERS: &[Path] = &[("load 1,000 files", Shelf::load), ("load one of 1,000 files anew", Shelf::edit)];

/// After this time an unchanged file state is trusted.
const SETTLED: Duration = Duration::from_millis(2_100);

/// Number of files in the folder's library.
const FILES: usize = 1_000;

/// A library in memory, with prepared messages.
#[derive(Debug)]
pub struct Shelf {
    http: HttpService,
    /// The same library with a count of usage.
    counted: HttpService,
    catalog: std::sync::Arc<Catalog>,
    get: Bytes,
    get_long: Bytes,
    list: Bytes,
    notification: Bytes,
    cursor: String,
    known: Vec<Arc<PromptDefinition>>,
    /// The catalog before an edit.
    checked: Catalog,
    /// Written on first use: the guarded paths read no folder.
    folder: OnceCell<Folder>,
}

/// A library in a folder.
#[derive(Debug)]
struct Folder {
    place: TempDir,
    followed: Files,
    before: Catalog,
    edits: Cell<usize>,
}

impl Folder {
    fn new() -> Result<Folder> {
        let place = tempfile::tempdir()?;
        for at in 0..FILES {
            std::fs::write(place.path().join(format!("{at:03}.md")), file(at, ""))?;
        }
        // A file written just now is read again regardless of its state.
        std::thread::sleep(SETTLED);
        let followed = Files::folder(place.path());
        let before = loaded(&followed, None)?;
        Ok(Folder { place, followed, before, edits: Cell::default() })
    }
}

/// Returns the runtime that the paths run in, because requests have time limits.
///
/// # Errors
///
/// Returns an error of the system.
pub fn runtime() -> Result<Runtime> {
    Ok(Builder::new_current_thread().enable_time().build()?)
}

impl Shelf {
    /// Creates the library.
    ///
    /// # Errors
    ///
    /// Returns an error if the library has a mistake.
    pub fn new() -> Result<Shelf> {
        let many = (0..10_000).map(|at| format!("value {at} of many")).collect();
        let few = (0..10).map(|at| format!("value {at} of few")).collect();
        let text =
            "Write about {{ topic }} for {{ readers }}, and sound {{ tone }}. ".to_owned() + &"Words. ".repeat(130);
        let mut builder = Library::builder().prompt(
            PromptDefinition::template("hot", text)
                .description("The prompt that is asked for")
                .argument(ArgumentDefinition::new("topic").required())
                .argument(ArgumentDefinition::new("readers").required().complete(CompletionSource::Values(few)))
                .argument(ArgumentDefinition::new("tone").complete(CompletionSource::Values(many))),
        );
        for at in 0..10_000 {
            let definition = PromptDefinition::template(format!("listed-{at:05}"), "Nothing but words.");
            builder = builder.prompt(definition.description("A prompt that is listed"));
        }
        let library = builder.build().context("the library cannot be built")?;
        let catalog = library.catalog();
        let page = library.service().list(&Caller::anonymous(), ListKind::Prompts, None)?;
        let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"guard","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}"#;
        let arguments = r#"{"topic":"counting","readers":"people who count","tone":"calm"}"#;
        let known: Vec<Arc<PromptDefinition>> = (0..1_000).map(|at| Arc::new(checked(at))).collect();
        let shelf = Shelf {
            checked: check(Definitions::from_iter(known.clone()), None).catalog,
            known,
            folder: OnceCell::new(),
            get: format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{{"name":"hot","arguments":{arguments},{meta}}}}}"#
            )
            .into(),
            get_long: format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{{"name":"hot","arguments":{{"topic":"{}","readers":"all"}},{meta}}}}}"#,
                "A line of code, or of a text.\\n".repeat(100_000 / 31)
            )
            .into(),
            list: r#"{"jsonrpc":"2.0","id":1,"method":"prompts/list"}"#.into(),
            notification: r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.into(),
            cursor: page.value().page.next_cursor.clone().context("there is a second page")?,
            catalog,
            http: library.server().http(HttpOptions::default()),
            counted: counted(&library),
        };
        for (http, body, modern, expected) in [
            (&shelf.http, &shelf.get, true, "for people who count, and sound calm."),
            (&shelf.counted, &shelf.get, true, "for people who count, and sound calm."),
            (&shelf.http, &shelf.get_of_legacy(), false, "for people who count, and sound calm."),
            (&shelf.http, &shelf.get_long, true, "text.\\n for all, and sound "),
            (&shelf.http, &shelf.list, false, "listed-00998"),
        ] {
            let answer = send(http, body, modern);
            let body = ready(answer.into_body().collect())?.to_bytes();
            if !String::from_utf8_lossy(&body).contains(expected) {
                bail!("wrong answer: {}", String::from_utf8_lossy(&body));
            }
        }
        Ok(shelf)
    }

    fn given(&self) -> RawArguments<'static> {
        RawArguments::from_iter([("topic", "counting"), ("readers", "people who count"), ("tone", "calm")])
    }

    fn bind(&self) {
        let prompt = self.catalog.find("hot").expect("it is there");
        drop(black_box(prompt.bind(&self.given(), 1 << 20)));
    }

    fn render(&self) {
        let prompt = self.catalog.find("hot").expect("it is there");
        let bindings = prompt.bind(&self.given(), 1 << 20).expect("it is complete");
        drop(black_box(prompt.render(self.catalog.render_context(), &bindings)));
    }

    fn complete(&self, argument: &str, typed: &str) {
        let prompt = self.catalog.find("hot").expect("it is there");
        let argument = prompt.argument(argument).expect("it is there");
        drop(black_box(completion::complete(argument, &self.catalog, typed, &Variables::new())));
    }

    fn complete_few(&self) {
        self.complete("readers", "val 7");
    }

    fn complete_many(&self) {
        self.complete("tone", "val 77");
    }

    fn page(&self) {
        drop(black_box(self.catalog.page(ListKind::Prompts, Some(&self.cursor))));
    }

    fn message(&self) {
        drop(black_box(self.ask(&self.notification, false)));
    }

    fn get_modern(&self) {
        drop(black_box(self.ask(&self.get, true)));
    }

    /// The same request as [`get_modern`](Shelf::get_modern).
    fn get_counted(&self) {
        drop(black_box(send(&self.counted, &self.get, true)));
    }

    fn get_legacy(&self) {
        drop(black_box(self.ask(&self.get_of_legacy(), false)));
    }

    fn get_long(&self) {
        drop(black_box(self.ask(&self.get_long, true)));
    }

    fn get_of_legacy(&self) -> Bytes {
        Bytes::from_static(br#"{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"hot","arguments":{"topic":"counting","readers":"people who count","tone":"calm"}}}"#)
    }

    fn list(&self) {
        drop(black_box(self.ask(&self.list, false)));
    }

    fn load(&self) {
        let folder = self.folder();
        let catalog = loaded(&Files::folder(folder.place.path()), None).expect("the folder can be read");
        assert_eq!(black_box(catalog).prompts().len(), FILES);
    }

    fn edit(&self) {
        let folder = self.folder();
        folder.edits.set(folder.edits.get() + 1);
        let text = file(7, &format!(" Edit {}.", folder.edits.get()));
        std::fs::write(folder.place.path().join("007.md"), text).expect("the file can be written");
        drop(black_box(loaded(&folder.followed, Some(&folder.before))));
    }

    fn folder(&self) -> &Folder {
        self.folder.get_or_init(|| Folder::new().expect("the folder can be written and read"))
    }

    fn check(&self) {
        drop(black_box(check(Definitions::from_iter((0..100).map(checked)), None)));
    }

    fn check_one(&self) {
        let mut prompts = self.known.clone();
        prompts[7] = checked(7).into();
        drop(black_box(check(Definitions::from_iter(prompts), Some(&self.checked))));
    }

    fn ask(&self, body: &Bytes, modern: bool) -> Response<HttpBody> {
        send(&self.http, body, modern)
    }
}

/// Returns a server of the library that counts usage.
fn counted(library: &Library) -> HttpService {
    let usage = Usage::new();
    usage.set_key([7; 16]);
    Server::new(library.service().clone().with_usage(&usage, "")).http(HttpOptions::default())
}

/// Sends a message through the tower service.
fn send(http: &HttpService, body: &Bytes, modern: bool) -> Response<HttpBody> {
    let mut request = Request::post("http://localhost/mcp")
        .header("host", "localhost")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream");
    request = match modern {
        true => request
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", "prompts/get")
            .header("mcp-name", "hot"),
        false => request.header("mcp-protocol-version", "2025-11-25"),
    };
    let request = request.body(Full::new(body.clone())).expect("a request");
    match ready(http.clone().call(request)) {
        Ok(response) => response,
        Err(never) => match never {},
    }
}

/// A definition for the check.
fn checked(at: usize) -> PromptDefinition {
    let text = "Write about {{ topic }}{% if tone %}, {{ tone }}{% endif %}.";
    PromptDefinition::template(format!("checked-{at:03}"), text)
        .argument(ArgumentDefinition::new("topic").required())
        .argument(ArgumentDefinition::new("tone"))
}

/// A file for the loader.
fn file(at: usize, edit: &str) -> String {
    format!(
        "---\nname: in-a-file-{at:03}\ndescription: A prompt that stands in a file.{edit}\narguments:\n  - name: topic\n    \
         description: What it is about\n    required: true\n  - name: tone\n    description: How it is to sound\n---\n\
         Write about {{{{ topic }}}}{{% if tone %}} and sound {{{{ tone }}}}{{% endif %}}, in three paragraphs.\n"
    )
}

/// Reads and checks the folder.
fn loaded(folder: &Files, before: Option<&Catalog>) -> Result<Catalog> {
    Ok(check(folder.read()?.into_definitions(), before).catalog)
}

/// Returns the output of a future that never waits.
fn ready<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("nothing here has anything to wait for"),
    }
}

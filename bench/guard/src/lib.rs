//! The hot paths, each alone and without files, sockets or clocks: what is
//! counted here does not depend on the machine.
//!
//! `main.rs` runs one of them so many times for callgrind; `benches/paths.rs`
//! runs all of them for divan.

use std::{
    hint::black_box,
    pin::pin,
    task::{Context, Poll, Waker},
};

use anyhow::{Context as _, Result, bail};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use promptshelf::{
    ArgumentDefinition, Caller, CompletionSource, Library, PromptDefinition,
    mcp::{HttpBody, HttpOptions, HttpService},
};
use promptshelf_core::{Catalog, Definitions, Given, Variables, check, completion, cursor::ListKind};
use tower_service::Service as _;

/// A path's name, and one walk along it.
pub type Path = (&'static str, fn(&Shelf));

/// Every path that is watched.
pub const PATHS: &[Path] = &[
    ("bind three arguments", Shelf::bind),
    ("render a kilobyte", Shelf::render),
    ("complete over 10 values", Shelf::complete_few),
    ("complete over 10,000 values", Shelf::complete_many),
    ("find a page of 1,000 in 10,000", Shelf::page),
    ("read and check a message", Shelf::message),
    ("prompts/get, modern", Shelf::get_modern),
    ("prompts/get, legacy", Shelf::get_legacy),
    ("prompts/list of 1,000, again", Shelf::list),
    ("check 100 prompts", Shelf::check),
];

/// A library in memory, and the messages that are sent to it.
#[derive(Debug)]
pub struct Shelf {
    http: HttpService,
    catalog: std::sync::Arc<Catalog>,
    get: Bytes,
    list: Bytes,
    notification: Bytes,
    cursor: String,
}

impl Shelf {
    /// Makes the library.
    ///
    /// # Errors
    ///
    /// When it has a mistake.
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
        let shelf = Shelf {
            get: format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{{"name":"hot","arguments":{arguments},{meta}}}}}"#
            )
            .into(),
            list: r#"{"jsonrpc":"2.0","id":1,"method":"prompts/list"}"#.into(),
            notification: r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.into(),
            cursor: page.page.next_cursor.context("there is a second page")?,
            catalog,
            http: library.server().http(HttpOptions::default()),
        };
        for (body, modern, expected) in [
            (&shelf.get, true, "for people who count, and sound calm."),
            (&shelf.get_of_legacy(), false, "for people who count, and sound calm."),
            (&shelf.list, false, "listed-00998"),
        ] {
            let answer = shelf.ask(body, modern);
            let body = ready(answer.into_body().collect())?.to_bytes();
            if !String::from_utf8_lossy(&body).contains(expected) {
                bail!("wrong answer: {}", String::from_utf8_lossy(&body));
            }
        }
        Ok(shelf)
    }

    fn given(&self) -> Given<'static> {
        Given::from_iter([("topic", "counting"), ("readers", "people who count"), ("tone", "calm")])
    }

    fn bind(&self) {
        let prompt = self.catalog.find("hot").expect("it is there");
        drop(black_box(prompt.bind(&self.given(), 1 << 20)));
    }

    fn render(&self) {
        let prompt = self.catalog.find("hot").expect("it is there");
        let bindings = prompt.bind(&self.given(), 1 << 20).expect("it is complete");
        drop(black_box(ready(prompt.render(&self.catalog, bindings))));
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

    fn get_legacy(&self) {
        drop(black_box(self.ask(&self.get_of_legacy(), false)));
    }

    fn get_of_legacy(&self) -> Bytes {
        Bytes::from_static(br#"{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"hot","arguments":{"topic":"counting","readers":"people who count","tone":"calm"}}}"#)
    }

    fn list(&self) {
        drop(black_box(self.ask(&self.list, false)));
    }

    fn check(&self) {
        let prompts = (0..100)
            .map(|at| {
                PromptDefinition::template(
                    format!("checked-{at}"),
                    "Write about {{ topic }}{% if tone %}, {{ tone }}{% endif %}.",
                )
                .argument(ArgumentDefinition::new("topic").required())
                .argument(ArgumentDefinition::new("tone"))
            })
            .collect();
        drop(black_box(check(Definitions { prompts, ..Definitions::default() }, None)));
    }

    /// A message through the tower service, as HTTP would bring it.
    fn ask(&self, body: &Bytes, modern: bool) -> Response<HttpBody> {
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
        match ready(self.http.clone().call(request)) {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }
}

/// What a future gives that waits for nothing.
fn ready<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("nothing here has anything to wait for"),
    }
}

//! Analysis of a library with unsaved texts, for the page's editor: diagnostics, completion, hover, a rendering with the
//! values of a form, and tests. The engine is that of the language server.

use std::{collections::BTreeMap, sync::Arc};

use axum::{extract::State, http::StatusCode, response::Response};
use promptshelf_author::{
    Analysis, Analyzer, add_samples,
    testing::{TestOutcome, TestSuite},
};
use promptshelf_core::{Argument, CatalogHandle, Prompt, RawArguments, Variables, is_interrupted};
use promptshelf_mcp::messages_json;
use promptshelf_service::{
    Caller, Rejection, Service,
    pool::{self, Amount, Panicked},
};
use promptshelf_source::{MemoryFile, MemoryTree, check_tree_path};
use promptshelf_store::ChannelName;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json, value::RawValue};
use tokio::runtime::Handle;
use utoipa::ToSchema;

use super::{
    content::FileContent,
    etag,
    operation::{ApiCaller, ApiState, Scope},
    problem::Problem,
    request::{ApiPath, Unread},
};
use crate::{test_target::ServiceTarget, web::described_arguments};

const MAX_CHANGES: usize = 1_000;

const MAX_DIAGNOSTICS: usize = 200;

const MAX_FILES: usize = 100;

/// A position in a text, as the Language Server Protocol counts.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct TextPosition {
    /// The line, from 0.
    line: u32,
    /// UTF-16 code units before the position in its line.
    character: u32,
}

/// A file that is not saved.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct UnsavedFile {
    /// Relative to the library.
    pub(super) path: String,
    /// The content; null for a file that is to be deleted.
    #[serde(deserialize_with = "super::request::required")]
    #[schema(required = true)]
    pub(super) content: Option<FileContent>,
}

/// Unsaved files, and the questions about one of them.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct AnalysisBody {
    /// The file in question.
    path: String,
    /// The unsaved files, which replace those of the library.
    changes: Vec<UnsavedFile>,
    /// Asks for completions at a position of the file.
    #[serde(default)]
    complete: Option<TextPosition>,
    /// Asks for an explanation of the word at a position of the file.
    #[serde(default)]
    hover: Option<TextPosition>,
    /// Asks for the messages of the file's prompt with these values. Required arguments without a value get a sample.
    #[serde(default)]
    arguments: Option<BTreeMap<String, String>>,
    /// Asks to run the tests of the file's prompt.
    #[serde(default)]
    tests: bool,
}

/// The result of a prompt test.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct TestResult {
    /// The name of the test, or its number from 1.
    name: String,
    /// Everything that differs from the expectation; empty if the test passed.
    mismatches: Vec<String>,
}

/// The answers to the questions of a request; each is missing if it was not asked.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AnalysisResult {
    /// The diagnostics of each file that has some: `Diagnostic[]` of the Language Server Protocol 3.17, by path.
    #[schema(value_type = HashMap<String, Vec<Object>>)]
    diagnostics: BTreeMap<String, Value>,
    /// The problem because of which nothing could be analysed.
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<String>,
    /// `CompletionItem[]` of the Language Server Protocol.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Object>>)]
    completions: Option<Value>,
    /// `Hover` of the Language Server Protocol.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    hover: Option<Value>,
    /// The file's prompt: its name, title, description and arguments. Missing while the file has errors.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    prompt: Option<Value>,
    /// The messages, as `prompts/get` returns them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Object>>)]
    messages: Option<Box<RawValue>>,
    /// The reason for missing messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    refusal: Option<String>,
    /// The required arguments that were rendered with a sample.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    samples: Vec<String>,
    /// The results of the file's tests.
    #[serde(skip_serializing_if = "Option::is_none")]
    tests: Option<Vec<TestResult>>,
}

/// Analyses unsaved files of a channel without storing them
#[utoipa::path(post, path = "/channels/{channel}/analysis", tag = "check",
    security(("token" = ["library:read", "library:propose"])), params(("channel" = ChannelName, Path)),
    request_body = AnalysisBody, responses((status = 200, body = AnalysisResult)))]
pub(super) async fn analyze_channel(
    State(state): State<ApiState>,
    caller: ApiCaller,
    ApiPath(channel): ApiPath<ChannelName>,
    request: Unread,
) -> Result<Response, Problem> {
    let mut operation = state.begin_on(&channel, caller.0, "api/analysis", &[Scope::Read, Scope::Propose])?;
    let answer = async {
        let body: AnalysisBody = request.json(&state.endpoint).await?;
        operation.note("path", &body.path);
        let question = Question::of(body)?;
        let mut edited = state.api.edited.newest(&state.store().await?, &channel).await?;
        let channels = Arc::clone(&state.api.edited);
        let result = in_pool(operation.caller(), move || {
            let is_plain = question.others.is_empty();
            let tree = edited.tree.clone();
            let tree = if is_plain { tree } else { tree.with(question.deleted_and_binary()) };
            let result = question.answer(edited.analyzer.of(&tree), |_| tree.clone());
            channels.put(edited);
            result
        })
        .await?;
        etag::changed(StatusCode::OK, &result, &result)
    }
    .await;
    Ok(operation.end(answer))
}

/// Runs an analysis or a comparison of a caller in the pool, with access to the runtime.
pub(super) async fn in_pool<T: Send + 'static>(
    caller: &Caller,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Problem> {
    let done = pool::run(caller, Amount::Large, |_| work()).await;
    done.map_err(|Panicked| {
        let detail = "The analysis failed with an internal error; see the server's log";
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal-error", "Internal error", detail)
    })
}

#[derive(Debug)]
pub(super) struct Question {
    path: String,
    texts: BTreeMap<String, String>,
    others: BTreeMap<String, Option<Vec<u8>>>,
    complete: Option<TextPosition>,
    hover: Option<TextPosition>,
    arguments: Option<BTreeMap<String, String>>,
    tests: bool,
}

impl Question {
    pub(super) fn of(body: AnalysisBody) -> Result<Question, Problem> {
        let AnalysisBody { path, changes, complete, hover, arguments, tests } = body;
        if changes.len() > MAX_CHANGES {
            return Err(Problem::invalid(format!("The request has more than {MAX_CHANGES} files")));
        }
        let (mut texts, mut others) = (BTreeMap::new(), BTreeMap::new());
        for UnsavedFile { path, content } in changes {
            check_tree_path(&path).map_err(|error| Problem::invalid(format!("A path is invalid: {error}")))?;
            let bytes = content.map(|content| content.into_bytes(&format!("The content of {path}"))).transpose()?;
            match bytes.map(String::from_utf8) {
                Some(Ok(text)) => drop(texts.insert(path, text)),
                Some(Err(error)) => drop(others.insert(path, Some(error.into_bytes()))),
                None => drop(others.insert(path, None)),
            }
        }
        Ok(Question { path, texts, others, complete, hover, arguments, tests })
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }

    pub(super) fn paths(&self) -> impl Iterator<Item = &str> {
        let unsaved = self.texts.keys().chain(self.others.keys());
        std::iter::once(&self.path).chain(unsaved).map(String::as_str)
    }

    fn deleted_and_binary(&self) -> impl Iterator<Item = (String, Option<MemoryFile>)> {
        self.others.iter().map(|(path, bytes)| (path.clone(), bytes.clone().map(MemoryFile::new)))
    }

    /// Answers on the calling thread, which may block and belongs to a runtime. `golden` returns the golden files of a
    /// prompt's tests.
    pub(super) fn answer(&self, analyzer: &mut Analyzer, golden: impl Fn(&Prompt) -> MemoryTree) -> AnalysisResult {
        let analysis = match analyzer.analyze(&self.texts) {
            Ok(analysis) => analysis,
            Err(error) => return AnalysisResult { failure: Some(error.to_string()), ..AnalysisResult::default() },
        };
        let mut result = AnalysisResult {
            diagnostics: analysis.diagnostics_around(&self.path, MAX_FILES, MAX_DIAGNOSTICS),
            ..AnalysisResult::default()
        };
        let text = self.texts.get(&self.path).map(String::as_str).unwrap_or_default();
        result.completions =
            self.complete.map(|place| analysis.completions(&self.path, text, place.line, place.character));
        result.hover = self.hover.map(|place| analysis.hover(&self.path, text, place.line, place.character));
        if let Some(prompt) = analysis.prompt(&self.path) {
            result.prompt = Some(described(prompt));
            self.render(&analysis, prompt, &mut result);
            if self.tests {
                result.tests = Some(tested(&analysis, prompt, golden(prompt)));
            }
        }
        result
    }

    fn render(&self, analysis: &Analysis<'_>, prompt: &Prompt, result: &mut AnalysisResult) {
        let Some(arguments) = &self.arguments else { return };
        let mut values: Variables = arguments.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        result.samples = add_samples(prompt, &mut values);
        let service = service_of(analysis);
        // Access rules do not matter: authors see the whole library.
        let rendering =
            async { service.get(&Caller::local(), prompt.name().as_str(), &RawArguments::from(&values)).await };
        match Handle::current().block_on(rendering) {
            Ok(answer) => result.messages = Some(messages_json(&answer.value().messages)),
            Err(rejection) => result.refusal = Some(Rejection::lines(&rejection)),
        }
    }
}

fn service_of(analysis: &Analysis<'_>) -> Service {
    Service::new(CatalogHandle::new(analysis.catalog().clone()))
}

fn tested(analysis: &Analysis<'_>, prompt: &Prompt, golden: MemoryTree) -> Vec<TestResult> {
    let service = service_of(analysis);
    let catalog = service.catalog();
    let suite = TestSuite::of_tree(&catalog, golden);
    let target = ServiceTarget::new(&service);
    let path = &prompt.source().path;
    let cases = suite.cases().filter(|case| case.location().source.path == *path);
    let run = async {
        let mut results = Vec::new();
        for case in cases.take_while(|_| !is_interrupted()) {
            // Golden files of a tree are never written, and nothing else fails.
            let Ok(TestOutcome { test, mismatches, .. }) = suite.run(&case, &target).await else { continue };
            let mismatches =
                mismatches.into_iter().map(|found| format!("{}\n{}", found.message, found.details)).collect();
            results.push(TestResult { name: test, mismatches });
        }
        results
    };
    Handle::current().block_on(run)
}

fn described(prompt: &Prompt) -> Value {
    let argument = |argument: &Argument| {
        let definition = argument.definition();
        let (title, description) = (&definition.title, &definition.description);
        json!({ "name": argument.name(), "title": title, "description": description, "required": argument.required() })
    };
    let arguments: Vec<Value> = prompt.arguments().iter().map(argument).collect();
    json!({
        "name": prompt.name().as_str(),
        "title": prompt.title(),
        "description": prompt.description(),
        "arguments": arguments,
        "types": described_arguments(prompt),
        "tests": prompt.definition().tests.len(),
    })
}

//! Analysis of a library with unsaved texts, for the page's editor: diagnostics, completion, hover, a rendering with the
//! values of a form, and tests. The engine is that of the language server.

use std::{collections::BTreeMap, sync::Arc};

use axum::http::StatusCode;
use promptshelf_author::{
    Analysis, Analyzer, add_samples,
    testing::{TestOutcome, TestSuite},
};
use promptshelf_core::{Argument, CatalogHandle, Prompt, RawArguments, Variables, is_interrupted};
use promptshelf_mcp::messages_json;
use promptshelf_service::{
    Caller, Rejection, Service,
    pool::{self, Amount},
};
use promptshelf_source::{MemoryFile, MemoryTree, check_tree_path};
use promptshelf_wire::{AnalysisBody, AnalysisResult, TestResult, TextPosition, UnsavedFile, op};
use serde_json::{Value, json};
use tokio::runtime::Handle;

use super::{
    ApiState,
    call::{Answer, Call, Operations},
    content::decoded,
    problem::Problem,
};
use crate::{test_target::ServiceTarget, web::described_arguments};

const MAX_CHANGES: usize = 1_000;

const MAX_DIAGNOSTICS: usize = 200;

const MAX_FILES: usize = 100;

/// Adds the operations of this module.
pub(super) fn operations(all: Operations<ApiState>) -> Operations<ApiState> {
    all.on(analyze_channel)
}

async fn analyze_channel(call: Call<op::AnalyzeChannel>) -> Answer {
    let channel = &call.path.channel;
    let body: AnalysisBody = call.body().await?;
    call.note("path", &body.path);
    let question = Question::of(body)?;
    let mut edited = call.state.api.edited.newest(&call.store().await?, channel).await?;
    let channels = Arc::clone(&call.state.api.edited);
    let result = in_pool(call.caller(), move || {
        let is_plain = question.others.is_empty();
        let tree = edited.tree.clone();
        let tree = if is_plain { tree } else { tree.with(question.deleted_and_binary()) };
        let result = question.answer(edited.analyzer.of(&tree), |_| tree.clone());
        channels.put(edited);
        result
    })
    .await?;
    call.answer(&result)
}

/// Runs an analysis or a comparison of a caller in the pool, with access to the runtime.
pub(super) async fn in_pool<T: Send + 'static>(
    caller: &Caller,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Problem> {
    let done = pool::run(caller, Amount::Large, |_| work()).await;
    done.map_err(|_| {
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
            check_tree_path(&path).map_err(|error| Problem::invalid_path("A path is invalid", &error))?;
            let bytes = content.map(|content| decoded(content, &format!("The content of {path}"))).transpose()?;
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
            let TestOutcome { test, mismatches, .. } = suite.run(&case, &target).await;
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

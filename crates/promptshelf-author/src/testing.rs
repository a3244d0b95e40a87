//! Runs the tests of prompt files, and compares messages with golden files.
//!
//! A [`TestSuite`] selects test cases of a catalog and runs them against a [`TestTarget`], which renders and
//! completes as the tested server does. [`junit`] turns outcomes into a JUnit report. Nothing here prints.

mod expect;
mod golden;

use std::{
    collections::{HashMap, HashSet},
    fmt::Write,
    path::PathBuf,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use golden::{GoldenFile, GoldenFiles};
use promptshelf_core::{
    Catalog, CompletionTest, Location, Message, Prompt, RawArguments, TestDefinition, Variables, is_interrupted,
};
use promptshelf_source::MemoryTree;

pub use self::golden::transcript;

/// An error of the system under test, as its caller sees it.
pub type TargetError = Box<dyn std::error::Error + Send + Sync>;

/// The system under test: renders prompts and completes arguments, as a server does for its callers.
pub trait TestTarget {
    /// Renders a prompt with the arguments of a test.
    fn render(
        &self,
        prompt: &Prompt,
        arguments: &RawArguments<'_>,
    ) -> impl Future<Output = Result<Vec<Message>, TargetError>>;

    /// Returns the completions of an argument, best first.
    fn complete(
        &self,
        prompt: &Prompt,
        test: &CompletionTest,
    ) -> impl Future<Output = Result<Vec<String>, TargetError>>;
}

/// The result of one test.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TestOutcome {
    /// The prompt's name.
    pub prompt: String,
    /// The test's name, or its number counted from one.
    pub test: String,
    /// The test in its prompt file.
    pub location: Location,
    /// Everything that differs from the expectation; empty if the test passed.
    pub mismatches: Vec<Mismatch>,
    /// The golden file that was created or changed.
    pub updated: Option<PathBuf>,
    /// The time that the test took.
    pub duration: Duration,
}

impl TestOutcome {
    /// Returns whether the test passed.
    #[must_use]
    pub fn is_passed(&self) -> bool {
        self.mismatches.is_empty()
    }
}

/// One difference between a test's expectation and the result.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mismatch {
    /// The difference as one sentence.
    pub message: String,
    /// The actual result, line by line; a diff where both sides are known.
    pub details: String,
}

impl Mismatch {
    fn new(message: impl Into<String>, details: impl Into<String>) -> Mismatch {
        Mismatch { message: message.into(), details: details.into() }
    }
}

/// Returns a JUnit XML report with a suite for each prompt. `show_path` maps a file's path inside the library
/// to the path in the report.
///
/// ```
/// use promptshelf_author::testing::junit;
///
/// assert!(junit(&[], |path| path.to_owned()).contains("tests=\"0\" failures=\"0\""));
/// ```
#[must_use]
pub fn junit(outcomes: &[TestOutcome], show_path: impl Fn(&str) -> String) -> String {
    let failed = |outcomes: &[TestOutcome]| outcomes.iter().filter(|outcome| !outcome.mismatches.is_empty()).count();
    let seconds =
        |outcomes: &[TestOutcome]| outcomes.iter().map(|outcome| outcome.duration).sum::<Duration>().as_secs_f64();
    let mut report = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    // Writing to a string cannot fail.
    let _ = writeln!(
        report,
        "<testsuites name=\"promptshelf\" tests=\"{}\" failures=\"{}\" time=\"{:.3}\">",
        outcomes.len(),
        failed(outcomes),
        seconds(outcomes)
    );
    for suite in outcomes.chunk_by(|a, b| a.prompt == b.prompt) {
        let Some(first) = suite.first() else { continue };
        let prompt = escaped(&first.prompt);
        let _ = writeln!(
            report,
            "  <testsuite name=\"{prompt}\" tests=\"{}\" failures=\"{}\" time=\"{:.3}\">",
            suite.len(),
            failed(suite),
            seconds(suite)
        );
        for outcome in suite {
            let name = escaped(&outcome.test);
            let (line, _) = outcome.location.line_column();
            let file = escaped(&show_path(&outcome.location.source.path));
            let _ = write!(
                report,
                "    <testcase classname=\"{prompt}\" name=\"{name}\" file=\"{file}\" line=\"{line}\" time=\"{:.3}\"",
                outcome.duration.as_secs_f64()
            );
            if outcome.mismatches.is_empty() {
                report.push_str("/>\n");
                continue;
            }
            report.push_str(">\n");
            for mismatch in &outcome.mismatches {
                let (message, details) = (escaped(&mismatch.message), escaped(&mismatch.details));
                let _ = writeln!(report, "      <failure message=\"{message}\">{details}</failure>");
            }
            report.push_str("    </testcase>\n");
        }
        report.push_str("  </testsuite>\n");
    }
    report.push_str("</testsuites>\n");
    report
}

/// Escapes text for XML 1.0, which cannot represent control characters.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' | '\t' => escaped.push(c),
            '\u{fffe}' | '\u{ffff}' => escaped.extend(c.escape_default()),
            c if c.is_control() => escaped.extend(c.escape_default()),
            c => escaped.push(c),
        }
    }
    escaped
}

/// The tests of a catalog's prompts.
///
/// ```
/// use promptshelf_author::testing::{TargetError, TestSuite, TestTarget};
/// use promptshelf_core::{CompletionTest, Definitions, Message, Prompt, PromptDefinition, RawArguments, TestDefinition, check};
///
/// struct Fixed;
///
/// impl TestTarget for Fixed {
///     async fn render(&self, _: &Prompt, _: &RawArguments<'_>) -> Result<Vec<Message>, TargetError> {
///         Ok(vec![Message::user("Hello!")])
///     }
///
///     async fn complete(&self, _: &Prompt, _: &CompletionTest) -> Result<Vec<String>, TargetError> {
///         Ok(Vec::new())
///     }
/// }
///
/// let test = TestDefinition { contains: vec!["Hello".to_owned()], ..TestDefinition::default() };
/// let mut hello = PromptDefinition::template("hello", "Hello!");
/// hello.tests.push(test);
/// let catalog = check(Definitions { prompts: vec![hello.into()], ..Definitions::default() }, None).catalog;
/// let suite = TestSuite::new(&catalog, "prompts");
/// let outcomes = futures_executor::block_on(suite.run_all(&Fixed));
/// assert!(outcomes[0].is_passed());
/// ```
#[derive(Debug)]
pub struct TestSuite<'c> {
    catalog: &'c Catalog,
    golden: GoldenFiles,
    filter: Option<String>,
    update: bool,
    /// What was written for each golden file: several tests can name one.
    written: Mutex<HashMap<PathBuf, String>>,
}

/// One test of a prompt.
#[derive(Clone, Copy, Debug)]
pub struct TestCase<'c> {
    prompt: &'c Prompt,
    test: &'c TestDefinition,
    index: usize,
}

impl TestCase<'_> {
    /// Returns the test's name, or its number counted from one.
    #[must_use]
    pub fn name(&self) -> String {
        self.test.name.clone().unwrap_or_else(|| (self.index + 1).to_string())
    }

    /// Returns the prompt.
    #[must_use]
    pub fn prompt(&self) -> &Prompt {
        self.prompt
    }

    /// Returns the arguments of the test if it renders the prompt and expects messages, not an error.
    #[must_use]
    pub fn rendered_arguments(&self) -> Option<&Variables> {
        let expects_messages = self.test.error.is_none() && expect::needs_messages(self.test);
        expects_messages.then_some(&self.test.arguments)
    }

    /// Returns the names of the prompt and the test, such as `code_review / short`.
    #[must_use]
    pub fn full_name(&self) -> String {
        format!("{} / {}", self.prompt.name(), self.name())
    }

    /// Returns the test's location in the prompt file.
    #[must_use]
    pub fn location(&self) -> Location {
        self.prompt.definition().origin.locate(&format!("tests.{}", self.index))
    }
}

impl<'c> TestSuite<'c> {
    /// Creates the suite of all tests of a catalog. `folder` is the library's folder, which golden files are
    /// looked up in.
    #[must_use]
    pub fn new(catalog: &'c Catalog, folder: impl Into<PathBuf>) -> TestSuite<'c> {
        TestSuite {
            catalog,
            golden: GoldenFiles::Folder(folder.into()),
            filter: None,
            update: false,
            written: Mutex::default(),
        }
    }

    /// Creates the suite of all tests of a catalog whose golden files are in a tree. They are compared and never
    /// written.
    #[must_use]
    pub fn of_tree(catalog: &'c Catalog, tree: MemoryTree) -> TestSuite<'c> {
        TestSuite { catalog, golden: GoldenFiles::Tree(tree), filter: None, update: false, written: Mutex::default() }
    }

    /// Selects the tests whose full name contains a text.
    #[must_use]
    pub fn filter(mut self, text: impl Into<String>) -> TestSuite<'c> {
        self.filter = Some(text.into());
        self
    }

    /// Decides whether golden files are written instead of compared.
    #[must_use]
    pub fn update_golden_files(mut self, update: bool) -> TestSuite<'c> {
        self.update = update;
        self
    }

    /// Returns the selected tests, ordered by prompt.
    pub fn cases(&self) -> impl Iterator<Item = TestCase<'c>> {
        let cases = self.catalog.prompts().iter().flat_map(|prompt| {
            let tests = prompt.definition().tests.iter().enumerate();
            tests.map(move |(index, test)| TestCase { prompt, test, index })
        });
        cases.filter(|case| self.filter.as_ref().is_none_or(|text| case.full_name().contains(text.as_str())))
    }

    /// Counts the prompts without a test.
    #[must_use]
    pub fn prompts_without_tests(&self) -> usize {
        self.catalog.prompts().iter().filter(|prompt| prompt.definition().tests.is_empty()).count()
    }

    /// Returns the golden files of the library that no test names, sorted.
    #[must_use]
    pub fn unused_golden_files(&self) -> Vec<PathBuf> {
        let used: HashSet<PathBuf> = self
            .catalog
            .prompts()
            .iter()
            .flat_map(|prompt| {
                let names = prompt.definition().tests.iter().filter_map(|test| test.golden.as_deref());
                names.map(|name| GoldenFile::beside(&self.golden, &prompt.source().path, name).path)
            })
            .collect();
        match &self.golden {
            GoldenFiles::Folder(folder) => golden::unused(folder, &used),
            GoldenFiles::Tree(tree) => golden::unused_in_tree(tree, &used),
        }
    }

    /// Runs every selected test.
    pub async fn run_all(&self, target: &impl TestTarget) -> Vec<TestOutcome> {
        let mut outcomes = Vec::new();
        for case in self.cases().take_while(|_| !is_interrupted()) {
            outcomes.push(self.run(&case, target).await);
        }
        outcomes
    }

    /// Runs one test.
    pub async fn run(&self, case: &TestCase<'_>, target: &impl TestTarget) -> TestOutcome {
        let started = Instant::now();
        let mut updated = None;
        let mismatches = self.mismatches(case, target, &mut updated).await;
        TestOutcome {
            prompt: case.prompt.name().to_string(),
            test: case.name(),
            location: case.location(),
            mismatches,
            updated,
            duration: started.elapsed(),
        }
    }

    async fn mismatches(
        &self,
        case: &TestCase<'_>,
        target: &impl TestTarget,
        updated: &mut Option<PathBuf>,
    ) -> Vec<Mismatch> {
        let TestCase { prompt, test, .. } = *case;
        let mut mismatches = Vec::new();
        if let Some(complete) = &test.complete {
            mismatches.extend(expect::completions(complete, target.complete(prompt, complete).await));
        }
        if !expect::needs_messages(test) {
            return mismatches;
        }
        let answer = target.render(prompt, &RawArguments::from(&test.arguments)).await;
        let messages = match expect::success_or_error(test, answer) {
            Ok(messages) => messages,
            Err(mismatch) => {
                mismatches.extend(mismatch);
                return mismatches;
            }
        };
        mismatches.extend(expect::messages(test, &messages));
        if let Some(name) = &test.golden {
            let golden = GoldenFile::beside(&self.golden, &prompt.source().path, name);
            let transcript = golden::transcript(&messages);
            if self.update && matches!(self.golden, GoldenFiles::Folder(_)) {
                let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
                if written.get(&golden.path).is_some_and(|other| *other != transcript) {
                    let path = golden.path.display();
                    let message =
                        format!("another test has the golden file {path} for other messages: name another one");
                    mismatches.push(Mismatch::new(message, ""));
                    return mismatches;
                }
                written.insert(golden.path.clone(), transcript.clone());
                match golden.write(&self.golden, &transcript) {
                    Ok(is_written) => *updated = is_written.then_some(golden.path),
                    Err(error) => {
                        mismatches.push(Mismatch::new(format!("cannot write {}: {error}", golden.path.display()), ""));
                    }
                }
            } else {
                mismatches.extend(golden.compare(&self.golden, &transcript));
            }
        }
        mismatches
    }
}

#[cfg(test)]
mod tests {
    use super::{Mismatch, *};
    use promptshelf_core::{Location, SourceText};

    #[test]
    fn report_has_only_valid_xml_characters() {
        let outcome = |prompt: &str, mismatches| TestOutcome {
            prompt: prompt.to_owned(),
            test: "a \"b\"".to_owned(),
            location: Location::new(&SourceText::new("a.md", "\n\n\n\n\n\n    x"), 10..11),
            mismatches,
            updated: None,
            duration: Duration::ZERO,
        };
        let mismatch = Mismatch::new("1 < 2", "a & b\u{1b}\n");
        let report = junit(&[outcome("one", Vec::new()), outcome("two", vec![mismatch])], |path| format!("x/{path}"));
        let case = r#"<testcase classname="one" name="a &quot;b&quot;" file="x/a.md" line="7" time="0.000"/>"#;
        assert!(report.contains(case), "{report}");
        assert!(report.contains(r#"<failure message="1 &lt; 2">a &amp; b\u{1b}"#), "{report}");
        assert!(report.contains(r#"<testsuites name="promptshelf" tests="2" failures="1""#), "{report}");
    }
}

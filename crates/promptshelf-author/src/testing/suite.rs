//! Selects and runs the tests of a library.

use std::{collections::HashSet, path::PathBuf, time::Instant};

use promptshelf_core::{Catalog, Location, Prompt, RawArguments, TestDefinition, Variables, is_interrupted};
use promptshelf_source::MemoryTree;

use super::{
    expect,
    golden::{self, GoldenFile, GoldenFiles},
    outcome::{Mismatch, TestError, TestOutcome},
    target::TestTarget,
};

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
/// let outcomes = futures_executor::block_on(suite.run_all(&Fixed)).unwrap();
/// assert!(outcomes[0].is_passed());
/// ```
#[derive(Debug)]
pub struct TestSuite<'c> {
    catalog: &'c Catalog,
    golden: GoldenFiles,
    filter: Option<String>,
    update: bool,
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
        TestSuite { catalog, golden: GoldenFiles::Folder(folder.into()), filter: None, update: false }
    }

    /// Creates the suite of all tests of a catalog whose golden files are in a tree. They are compared and never
    /// written.
    #[must_use]
    pub fn of_tree(catalog: &'c Catalog, tree: MemoryTree) -> TestSuite<'c> {
        TestSuite { catalog, golden: GoldenFiles::Tree(tree), filter: None, update: false }
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
    ///
    /// # Errors
    ///
    /// [`TestError`] if a golden file cannot be written.
    pub async fn run_all(&self, target: &impl TestTarget) -> Result<Vec<TestOutcome>, TestError> {
        let mut outcomes = Vec::new();
        for case in self.cases().take_while(|_| !is_interrupted()) {
            outcomes.push(self.run(&case, target).await?);
        }
        Ok(outcomes)
    }

    /// Runs one test.
    ///
    /// # Errors
    ///
    /// [`TestError`] if a golden file cannot be written.
    pub async fn run(&self, case: &TestCase<'_>, target: &impl TestTarget) -> Result<TestOutcome, TestError> {
        let started = Instant::now();
        let mut updated = None;
        let mismatches = self.mismatches(case, target, &mut updated).await?;
        Ok(TestOutcome {
            prompt: case.prompt.name().to_string(),
            test: case.name(),
            location: case.location(),
            mismatches,
            updated,
            duration: started.elapsed(),
        })
    }

    async fn mismatches(
        &self,
        case: &TestCase<'_>,
        target: &impl TestTarget,
        updated: &mut Option<PathBuf>,
    ) -> Result<Vec<Mismatch>, TestError> {
        let TestCase { prompt, test, .. } = *case;
        let mut mismatches = Vec::new();
        if let Some(complete) = &test.complete {
            mismatches.extend(expect::completions(complete, target.complete(prompt, complete).await));
        }
        if !expect::needs_messages(test) {
            return Ok(mismatches);
        }
        let answer = target.render(prompt, &RawArguments::from(&test.arguments)).await;
        let messages = match expect::success_or_error(test, answer) {
            Ok(messages) => messages,
            Err(mismatch) => {
                mismatches.extend(mismatch);
                return Ok(mismatches);
            }
        };
        mismatches.extend(expect::messages(test, &messages));
        if let Some(name) = &test.golden {
            let golden = GoldenFile::beside(&self.golden, &prompt.source().path, name);
            let transcript = golden::transcript(&messages);
            if self.update && matches!(self.golden, GoldenFiles::Folder(_)) {
                let is_written = golden
                    .write(&transcript)
                    .map_err(|source| TestError::GoldenFile { path: golden.path.clone(), source })?;
                *updated = is_written.then_some(golden.path);
            } else {
                mismatches.extend(golden.compare(&self.golden, &transcript));
            }
        }
        Ok(mismatches)
    }
}

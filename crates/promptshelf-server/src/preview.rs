//! The prompts of a tree, rendered with sample arguments.

use std::{fmt, sync::Arc};

use promptshelf_author::{add_samples, testing::transcript};
use promptshelf_core::{Catalog, Interrupt, RawArguments, Variables};
use promptshelf_service::{Caller, Rejection, Service};
use promptshelf_source::{Files, MemoryTree};

use crate::library::{Library, OpenError};

/// A tree whose prompts can be rendered, so that people see the effect of a change.
///
/// ```
/// use promptshelf_server::TreePreview;
/// use promptshelf_source::MemoryTree;
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let tree: MemoryTree = [("hello.md", "Say hello.\n")].into_iter().collect();
/// let preview = TreePreview::open(tree)?;
/// assert_eq!(preview.render("hello").await?, "[user] text\nSay hello.\n");
/// # Ok(())
/// # }
/// ```
pub struct TreePreview(Library);

impl TreePreview {
    /// Reads and checks a tree. Blocks while it is read.
    ///
    /// # Errors
    ///
    /// [`OpenError::Source`] if the tree cannot be read at all.
    pub fn open(tree: MemoryTree) -> Result<TreePreview, OpenError> {
        let open = || Library::builder().source(Files::tree(tree).lenient()).build();
        Ok(TreePreview(Interrupt::of_part().scope(open)?))
    }

    /// Renders a prompt with sample values for its required arguments: the messages as golden files store them.
    ///
    /// # Errors
    ///
    /// The rejection that a caller would get.
    pub async fn render(&self, name: &str) -> Result<String, Rejection> {
        self.render_with(name, &mut Variables::new()).await
    }

    /// Renders a prompt with values, and adds sample values for the other required arguments to them.
    ///
    /// # Errors
    ///
    /// The rejection that a caller would get.
    pub async fn render_with(&self, name: &str, values: &mut Variables) -> Result<String, Rejection> {
        if let Some(prompt) = self.0.catalog().find(name) {
            add_samples(prompt, values);
        }
        // Access rules do not matter: authors see the whole tree.
        let answer = self.0.service().get(&Caller::local(), name, &RawArguments::from(&*values)).await?;
        Ok(transcript(&answer.value().messages))
    }

    /// Returns the prompts and resources of the tree.
    #[must_use]
    pub fn catalog(&self) -> Arc<Catalog> {
        self.0.catalog()
    }

    pub(crate) fn service(&self) -> &Service {
        self.0.service()
    }
}

impl fmt::Debug for TreePreview {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TreePreview")
    }
}

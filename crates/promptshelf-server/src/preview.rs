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
        let open = || Library::builder().source(Files::tree(tree).lenient()).quiet().build();
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

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    use tracing::{
        Event, Metadata, Subscriber,
        span::{Attributes, Id, Record},
    };

    use super::*;

    /// Counts what is logged.
    #[derive(Default)]
    struct Counted(Arc<AtomicUsize>);

    impl Subscriber for Counted {
        fn enabled(&self, _: &Metadata<'_>) -> bool {
            true
        }

        fn new_span(&self, _: &Attributes<'_>) -> Id {
            Id::from_u64(1)
        }

        fn record(&self, _: &Id, _: &Record<'_>) {}

        fn record_follows_from(&self, _: &Id, _: &Id) {}

        fn event(&self, event: &Event<'_>) {
            if event.metadata().target().starts_with("promptshelf_source") {
                self.0.fetch_add(1, Ordering::Relaxed);
            }
        }

        fn enter(&self, _: &Id) {}

        fn exit(&self, _: &Id) {}
    }

    /// Whoever may propose filled the server's log with a line for each mistake of each proposal.
    // req: S-392
    #[test]
    fn previews_log_nothing_and_loads_a_bounded_number_of_lines() {
        let counted = Counted::default();
        let count = Arc::clone(&counted.0);
        let files: Vec<(String, &str)> = (0..300).map(|n| (format!("p{n}.md"), "{{ unknown }}\n")).collect();
        let tree = || files.iter().map(|(path, text)| (path.as_str(), *text)).collect::<MemoryTree>();
        // A place that logs for the first time in another thread, while this subscriber is set, may keep its answer that nobody
        // listens: all places are known before.
        Library::builder().source(Files::tree(tree()).lenient()).build().expect("it can be read");
        tracing::subscriber::with_default(counted, || {
            tracing::callsite::rebuild_interest_cache();
            TreePreview::open(tree()).expect("it can be read");
            assert_eq!(count.load(Ordering::Relaxed), 0);
            Library::builder().source(Files::tree(tree()).lenient()).build().expect("it can be read");
            assert_eq!(count.load(Ordering::Relaxed), 101);
        });
    }
}

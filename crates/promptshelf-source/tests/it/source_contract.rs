//! The contract of every source.

use std::{sync::Arc, time::Duration};

use promptshelf_core::{Definitions, PromptDefinition};
use promptshelf_source::{Files, Fixed, Loader, MemoryFile, ReloadSignal, Source};

use crate::library::{Library, names};

/// A place that contains prompts, and the source that reads them.
trait Place {
    type Source: Source + Clone + 'static;

    fn new() -> Self;
    fn source(&self) -> Self::Source;
    /// Adds or replaces a prompt.
    fn put(&mut self, name: &str, text: &str);
    fn remove(&mut self, name: &str);
}

impl Place for Library {
    type Source = Files;

    fn new() -> Library {
        Library::new()
    }

    fn source(&self) -> Files {
        Library::source(self)
    }

    fn put(&mut self, name: &str, text: &str) {
        self.write(&format!("{name}.md"), text);
    }

    fn remove(&mut self, name: &str) {
        Library::remove(self, &format!("{name}.md"));
    }
}

struct Memory(Files);

impl Place for Memory {
    type Source = Files;

    fn new() -> Memory {
        Memory(Files::tree(std::iter::empty::<(&str, MemoryFile)>().collect()))
    }

    fn source(&self) -> Files {
        self.0.clone()
    }

    fn put(&mut self, name: &str, text: &str) {
        self.0.replace(
            self.0.in_memory().expect("a tree").with([(format!("{name}.md"), Some(MemoryFile::new(text.as_bytes())))]),
        );
    }

    fn remove(&mut self, name: &str) {
        self.0.replace(self.0.in_memory().expect("a tree").with([(format!("{name}.md"), None)]));
    }
}

#[derive(Default)]
struct Code {
    prompts: Vec<PromptDefinition>,
    source: Fixed,
}

impl Code {
    fn replace(&self) {
        self.source.replace(Definitions::from_iter(self.prompts.clone()));
    }
}

impl Place for Code {
    type Source = Fixed;

    fn new() -> Code {
        Code::default()
    }

    fn source(&self) -> Fixed {
        self.source.clone()
    }

    fn put(&mut self, name: &str, text: &str) {
        self.prompts.retain(|prompt| prompt.name != name);
        self.prompts.push(PromptDefinition::template(name, text));
        self.replace();
    }

    fn remove(&mut self, name: &str) {
        self.prompts.retain(|prompt| prompt.name != name);
        self.replace();
    }
}

async fn signalled(signal: &ReloadSignal) {
    tokio::time::timeout(Duration::from_secs(30), signal.requested()).await.expect("a signal comes");
}

fn all_prompts_are_read<P: Place>() {
    let mut place = P::new();
    place.put("a", "one");
    place.put("b", "two");
    let reading = place.source().read().expect("read");
    let definitions = reading.into_definitions();
    let mut names = names(&definitions);
    names.sort_unstable();
    assert_eq!(names, ["a", "b"]);
}

fn fingerprint_changes_with_the_prompts<P: Place>() {
    let mut place = P::new();
    place.put("a", "one");
    let source = place.source();
    let first = source.read().expect("read").fingerprint();
    assert_eq!(source.read().expect("read").fingerprint(), first);

    place.put("a", "another");
    let second = source.read().expect("read").fingerprint();
    assert_ne!(second, first);
    assert_eq!(source.read().expect("read").fingerprint(), second);
    place.remove("a");
    let third = source.read().expect("read");
    assert_ne!(third.fingerprint(), second);
    assert!(third.into_definitions().prompts.is_empty());
}

async fn every_watcher_is_signalled<P: Place>() {
    let mut place = P::new();
    place.put("a", "one");
    let source = place.source();
    source.read().expect("read");
    let (first, second) = (ReloadSignal::new(), ReloadSignal::new());
    let _one = source.watch(first.clone());
    let two = source.clone().watch(second.clone());
    place.put("a", "another");
    signalled(&first).await;
    signalled(&second).await;
    drop(two);
    place.put("b", "new");
    signalled(&first).await;
    place.remove("a");
    signalled(&first).await;
}

async fn loader_merges_it_with_other_sources<P: Place>() {
    let mut place = P::new();
    place.put("a", "one");
    let other = Fixed::new(Definitions::from_iter([PromptDefinition::template("other", "two")]));
    let loader = Loader::open(vec![Box::new(place.source()), Box::new(other.clone())]).expect("loads");
    let names = |loader: &Loader| {
        loader.handle().current().prompts().iter().map(|prompt| prompt.name().to_string()).collect::<Vec<_>>()
    };
    assert_eq!(names(&loader), ["a", "other"]);
    place.put("b", "three");
    let change = loader.reload().await.expect("loads");
    assert!(change.prompts);
    assert_eq!(names(&loader), ["a", "b", "other"]);
    other.replace(Definitions::default());
    loader.reload().await.expect("loads");
    assert_eq!(names(&loader), ["a", "b"]);
    let change = loader.reload().await.expect("loads");
    assert!(!change.prompts && !change.resources && change.contents, "nothing has changed but what readers may find");
}

macro_rules! contract {
    ($place:ty, $module:ident) => {
        mod $module {
            use super::*;

            #[test]
            fn all_prompts_are_read() {
                super::all_prompts_are_read::<$place>();
            }

            #[test]
            fn fingerprint_changes_with_the_prompts() {
                super::fingerprint_changes_with_the_prompts::<$place>();
            }

            #[tokio::test(flavor = "multi_thread")]
            async fn every_watcher_is_signalled() {
                super::every_watcher_is_signalled::<$place>().await;
            }

            #[tokio::test(flavor = "multi_thread")]
            async fn loader_merges_it_with_other_sources() {
                super::loader_merges_it_with_other_sources::<$place>().await;
            }
        }
    };
}

contract!(Library, a_folder);
contract!(Memory, memory);
contract!(Code, code);

#[test]
fn arc_of_a_source_is_a_source() {
    let source: Arc<dyn Source> = Arc::new(Fixed::default());
    assert!(source.read().is_ok());
    assert!(Loader::open(vec![Box::new(source)]).is_ok());
}

#[test]
fn loader_without_sources_is_empty() {
    let loader = Loader::open(Vec::new()).expect("loads");
    assert!(loader.handle().current().prompts().is_empty());
}

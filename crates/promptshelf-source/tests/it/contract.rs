//! What every source promises.

use std::{sync::Arc, time::Duration};

use promptshelf_core::{Definitions, PromptDefinition};
use promptshelf_source::{Directory, Fixed, Loader, ReloadSignal, Source};

use crate::library::{Library, names};

/// Something that holds prompts, and the source that reads them from it.
trait Place {
    type Source: Source + Clone + 'static;

    fn new() -> Self;
    fn source(&self) -> Self::Source;
    /// Puts a prompt there, or another one in its place.
    fn put(&mut self, name: &str, text: &str);
    fn remove(&mut self, name: &str);
}

impl Place for Library {
    type Source = Directory;

    fn new() -> Library {
        Library::new()
    }

    fn source(&self) -> Directory {
        Library::source(self)
    }

    fn put(&mut self, name: &str, text: &str) {
        self.write(&format!("{name}.md"), text);
    }

    fn remove(&mut self, name: &str) {
        Library::remove(self, &format!("{name}.md"));
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

async fn nudged(nudge: &ReloadSignal) {
    tokio::time::timeout(Duration::from_secs(30), nudge.requested()).await.expect("a nudge comes");
}

fn everything_that_is_there_is_read<P: Place>() {
    let mut place = P::new();
    place.put("a", "one");
    place.put("b", "two");
    let reading = place.source().read(None).expect("read").expect("something");
    let definitions = reading.into_definitions().expect("definitions");
    let mut names = names(&definitions);
    names.sort_unstable();
    assert_eq!(names, ["a", "b"]);
}

fn what_is_known_is_not_read_again<P: Place>() {
    let mut place = P::new();
    place.put("a", "one");
    let source = place.source();
    let first = source.read(None).expect("read").expect("something").fingerprint();
    assert!(source.read(Some(first)).expect("read").is_none());
    assert!(source.read(None).expect("read").is_some(), "everything, when nothing is known");

    place.put("a", "another");
    let second = source.read(Some(first)).expect("read").expect("it has changed");
    assert_ne!(second.fingerprint(), first);
    assert!(source.read(Some(second.fingerprint())).expect("read").is_none());
    place.remove("a");
    let third = source.read(Some(second.fingerprint())).expect("read").expect("it has changed");
    assert!(third.into_definitions().expect("definitions").prompts.is_empty());
}

async fn everybody_who_follows_is_nudged_by_a_change<P: Place>() {
    let mut place = P::new();
    place.put("a", "one");
    let source = place.source();
    source.read(None).expect("read");
    let (first, second) = (ReloadSignal::new(), ReloadSignal::new());
    let _one = source.watch(first.clone());
    let two = source.clone().watch(second.clone());
    place.put("a", "another");
    nudged(&first).await;
    nudged(&second).await;
    drop(two);
    place.put("b", "new");
    nudged(&first).await;
    place.remove("a");
    nudged(&first).await;
}

async fn a_loader_serves_it_beside_others<P: Place>() {
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
            fn everything_that_is_there_is_read() {
                super::everything_that_is_there_is_read::<$place>();
            }

            #[test]
            fn what_is_known_is_not_read_again() {
                super::what_is_known_is_not_read_again::<$place>();
            }

            #[tokio::test(flavor = "multi_thread")]
            async fn everybody_who_follows_is_nudged_by_a_change() {
                super::everybody_who_follows_is_nudged_by_a_change::<$place>().await;
            }

            #[tokio::test(flavor = "multi_thread")]
            async fn a_loader_serves_it_beside_others() {
                super::a_loader_serves_it_beside_others::<$place>().await;
            }
        }
    };
}

contract!(Library, a_folder);
contract!(Code, code);

#[test]
fn a_shared_source_is_a_source() {
    let source: Arc<dyn Source> = Arc::new(Fixed::default());
    assert!(source.read(None).expect("read").is_some());
    assert!(Loader::open(vec![Box::new(source)]).is_ok());
}

#[test]
fn a_loader_without_sources_serves_nothing() {
    let loader = Loader::open(Vec::new()).expect("loads");
    assert!(loader.handle().current().prompts().is_empty());
}

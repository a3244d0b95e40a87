//! An author who publishes to a store.

use std::sync::Arc;

use promptshelf_store::{
    Actor, Change, ChannelName, CheckReport, Checker, Effect, Publish, RevisionKind, Store, StoreError, StoreUrl, Trees,
};

use promptshelf::{server::channels::LibraryChecker, source::MemoryTree};

/// Accepts every tree.
struct Unchecked;

impl Checker for Unchecked {
    fn check(&self, _: &MemoryTree, _: bool) -> CheckReport {
        CheckReport::default()
    }

    fn check_replacement(&self, _: &Trees, _: bool) -> (CheckReport, Vec<Effect>) {
        Default::default()
    }
}

/// Publishes to one channel.
#[derive(Clone)]
pub(crate) struct Author {
    pub(crate) store: Store,
    channel: ChannelName,
    checker: Arc<dyn Checker>,
}

impl Author {
    /// Creates the store if it does not exist, and publishes to `production`.
    pub(crate) async fn at(store: &str) -> Author {
        let url: StoreUrl = store.parse().expect("a URL");
        let store = Store::create(&url).await.expect("a store");
        Author { store, channel: ChannelName::production(), checker: Arc::new(Unchecked) }
    }

    /// Publishes what passes the check only, with the versions of prompts.
    pub(crate) fn checked(self) -> Author {
        Author { checker: Arc::new(LibraryChecker::new()), ..self }
    }

    /// Publishes to another channel.
    pub(crate) fn on(&self, channel: &str) -> Author {
        Author { channel: channel.parse().expect("a name"), ..self.clone() }
    }

    pub(crate) fn channel(&self) -> &ChannelName {
        &self.channel
    }

    /// Writes files, or removes those without a text, and returns the revision.
    pub(crate) async fn publish<'f>(&self, files: impl IntoIterator<Item = (&'f str, Option<String>)>) -> u64 {
        let files = files.into_iter().map(|(path, text)| (path.to_owned(), text)).collect();
        self.try_publish(files).await.expect("a published revision")
    }

    /// Does the same.
    pub(crate) async fn try_publish(&self, files: Vec<(String, Option<String>)>) -> Result<u64, StoreError> {
        let (base, present) = match self.store.files(&self.channel, None).await {
            Ok((head, present)) => (head.revision, present),
            Err(StoreError::NotFound { .. }) => (0, Vec::new()),
            Err(error) => return Err(error),
        };
        let change = |(path, text): (String, Option<String>)| Change {
            before: present.iter().find(|file| file.path == path).map(|file| file.digest),
            after: text.map(|text| text.into_bytes().into()),
            path,
        };
        let publish = Publish {
            channel: self.channel.clone(),
            base,
            kind: RevisionKind::Publish,
            message: "A change".to_owned(),
            proposal: None,
            expected: None,
            emergency: None,
            changes: files.into_iter().map(change).collect(),
            dry_run: false,
        };
        let actor = Actor { name: "ada".to_owned(), may_publish: true, may_administer: true, review_roles: None };
        let published = self.store.publish(publish, &actor, Arc::clone(&self.checker)).await?;
        Ok(published.proposal.revision.expect("the policy asks for nothing"))
    }
}

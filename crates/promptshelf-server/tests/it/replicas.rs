//! Replicas of a store that goes back to a backup, or is replaced by another one, while they cannot see it.

use std::{path::Path, sync::Arc};

use promptshelf_server::{
    Library, ReplicaMonitor,
    channels::{FollowOptions, Follower, LibraryChecker, StoreHandle},
};
use promptshelf_store::{Actor, Change, ChannelName, Digest, Publish, RevisionKind, Store, StoreUrl};
use promptshelf_testkit::{database::Postgres, in_time};
use tempfile::TempDir;
use tokio::task::JoinHandle;

/// Publishes texts of prompts, whose files exist already or not.
async fn publish(url: &StoreUrl, files: &[(&str, &str)]) {
    let store = Store::create(url).await.expect("a store");
    let channel = ChannelName::production();
    let present = store.files(&channel, None).await.map(|(_, files)| files).unwrap_or_default();
    let before = |path: &str| present.iter().find(|file| file.path == path).map(|file| file.digest);
    let change = |(path, text): &(&str, &str)| Change {
        path: (*path).to_owned(),
        before: before(path),
        after: Some(text.as_bytes().into()),
    };
    let publish = Publish {
        channel: channel.clone(),
        base: store.head(&channel).await.map_or(0, |head| head.revision),
        kind: RevisionKind::Publish,
        message: "A change".to_owned(),
        proposal: None,
        expected: None,
        emergency: None,
        changes: files.iter().map(change).collect(),
        dry_run: false,
    };
    let actor = Actor { name: "ada".to_owned(), may_publish: true, may_administer: true, review_roles: None };
    store.publish(publish, &actor, Arc::new(LibraryChecker::new())).await.expect("it is valid");
    store.close().await;
}

async fn digest_of(url: &StoreUrl) -> Option<Digest> {
    let store = Store::open(url).await.expect("a store");
    let head = store.head(&ChannelName::production()).await.expect("the channel");
    store.close().await;
    head.digest
}

/// A replica that has read the channel, and stands still until it is resumed.
struct Replica {
    library: Library,
    monitor: ReplicaMonitor,
    follower: Option<Follower>,
    following: Option<JoinHandle<()>>,
}

impl Replica {
    async fn start(url: &StoreUrl, cache: Option<&Path>) -> Replica {
        let mut options = FollowOptions::new(StoreHandle::new(url.clone()), ChannelName::production());
        options.cache = cache.map(Path::to_owned);
        let follower = Follower::start(options).await.expect("the channel exists");
        let library = Library::builder().source(follower.source().clone()).build().expect("a library");
        let monitor = follower.monitor().clone();
        Replica { library, monitor, follower: Some(follower), following: None }
    }

    /// Lets it follow until it has the revision, with an open connection to the store.
    async fn warm(url: &StoreUrl) -> Replica {
        let mut replica = Replica::start(url, None).await;
        replica.resume();
        let expected = digest_of(url).await;
        replica.until(expected).await;
        replica
    }

    fn resume(&mut self) {
        let follower = self.follower.take().expect("it stands still");
        self.following = Some(tokio::spawn(follower.run(self.library.loader().clone())));
    }

    /// Waits until the replica serves a revision and says that it is current.
    async fn until(&self, digest: Option<Digest>) {
        let expected = digest.map(|digest| digest.to_string());
        in_time("the replica follows", async {
            loop {
                let status = self.monitor.status();
                if status.digest == expected && status.degraded_since.is_none() {
                    return;
                }
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        })
        .await;
    }

    fn texts(&self) -> Vec<(String, String)> {
        let catalog = self.library.catalog();
        let prompts = catalog.prompts().iter();
        prompts.map(|prompt| (prompt.name().to_string(), prompt.source().text.to_string())).collect()
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        self.following.iter().for_each(JoinHandle::abort);
    }
}

fn file_of(url: &StoreUrl) -> std::path::PathBuf {
    url.to_string().trim_start_matches("sqlite:").into()
}

/// The operator's order on a store: publish, back up, publish what will be lost, restore, publish again.
struct Lost {
    url: StoreUrl,
    restore: Box<dyn Fn(&StoreUrl)>,
}

impl Lost {
    async fn new(url: StoreUrl, back_up: impl Fn(&StoreUrl), restore: impl Fn(&StoreUrl) + 'static) -> Lost {
        publish(&url, &[("one.md", "1\n"), ("two.md", "1\n")]).await;
        publish(&url, &[("one.md", "2\n")]).await;
        back_up(&url);
        publish(&url, &[("one.md", "LOST\n"), ("two.md", "LOST\n")]).await;
        Lost { url, restore: Box::new(restore) }
    }

    /// Restores, and publishes a third revision again, which leaves `two.md` alone, and `more` after it.
    async fn redo(&self, more: usize) {
        (self.restore)(&self.url);
        publish(&self.url, &[("one.md", "3\n")]).await;
        for number in 0..more {
            publish(&self.url, &[("three.md", &format!("{number}\n"))]).await;
        }
    }

    async fn check(&self, replica: &Replica) {
        let expected = digest_of(&self.url).await;
        assert!(expected.is_some());
        replica.until(expected).await;
        let texts = replica.texts();
        assert_eq!(texts[0].1, "3\n", "{texts:?}");
        assert_eq!(texts.last().expect("a prompt").1, "1\n", "{texts:?}");
    }
}

async fn sqlite(folder: &TempDir) -> Lost {
    let url: StoreUrl = format!("sqlite:{}", folder.path().join("team.db").display()).parse().expect("a URL");
    let backup = folder.path().join("backup.db");
    let saved = backup.clone();
    let back_up = move |url: &StoreUrl| _ = std::fs::copy(file_of(url), &saved).expect("a backup");
    Lost::new(url, back_up, move |url| _ = std::fs::copy(&backup, file_of(url)).expect("restored")).await
}

async fn postgres() -> Lost {
    let server = Postgres::shared();
    let url = server.database();
    let name = url.rsplit('/').next().expect("a name").to_owned();
    let backup = format!("{name}_backup");
    let end = |name: &str| {
        let end = format!("SELECT COUNT(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = '{name}'");
        server.sql("postgres", &format!("ALTER DATABASE {name} ALLOW_CONNECTIONS false"));
        while server.sql("postgres", &end) != "0" {}
    };
    let copied = (name.clone(), backup.clone());
    let back_up = move |_: &StoreUrl| {
        end(&copied.0);
        server.sql("postgres", &format!("CREATE DATABASE {} TEMPLATE {}", copied.1, copied.0));
        server.sql("postgres", &format!("ALTER DATABASE {} ALLOW_CONNECTIONS true", copied.0));
    };
    let restore = move |_: &StoreUrl| {
        end(&name);
        server.sql("postgres", &format!("DROP DATABASE {name}"));
        server.sql("postgres", &format!("ALTER DATABASE {backup} RENAME TO {name}"));
    };
    Lost::new(url.parse().expect("a URL"), back_up, restore).await
}

/// The replica cannot see the store meanwhile: it is frozen, or its network is cut. Afterwards the number of the newest
/// revision is that of its own, or a higher one.
async fn paused(lost: Lost, more: usize) {
    let mut replica = Replica::start(&lost.url, None).await;
    lost.redo(more).await;
    replica.resume();
    lost.check(&replica).await;
    // What comes later is built on the right files.
    publish(&lost.url, &[("four.md", "4\n")]).await;
    replica.until(digest_of(&lost.url).await).await;
    assert!(!format!("{:?}", replica.texts()).contains("LOST"));
}

/// The replica is down meanwhile, and has a copy on disk.
async fn cached(lost: Lost) {
    let cache = TempDir::new().expect("a folder");
    let mut replica = Replica::start(&lost.url, Some(cache.path())).await;
    replica.resume();
    let manifest = cache.path().join("channel-production");
    in_time("the copy on disk", async {
        while !manifest.exists() {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    })
    .await;
    drop(replica);
    lost.redo(1).await;
    let replica = Replica::start(&lost.url, Some(cache.path())).await;
    lost.check(&replica).await;
}

// req: S-307
#[tokio::test(flavor = "multi_thread")]
async fn paused_replica_agrees_after_a_restore_on_sqlite() {
    for more in [0, 1] {
        let folder = TempDir::new().expect("a folder");
        paused(sqlite(&folder).await, more).await;
    }
}

// req: S-307
#[tokio::test(flavor = "multi_thread")]
async fn paused_replica_agrees_after_a_restore_on_postgres() {
    for more in [0, 1] {
        paused(postgres().await, more).await;
    }
}

// req: S-307
#[tokio::test(flavor = "multi_thread")]
async fn replica_with_a_copy_on_disk_agrees_after_a_restore() {
    let folder = TempDir::new().expect("a folder");
    cached(sqlite(&folder).await).await;
    cached(postgres().await).await;
}

/// A backup is copied over the open file, whose connections do not notice it, and nobody writes afterwards.
// req: S-307
#[tokio::test(flavor = "multi_thread")]
async fn copy_over_an_open_file_is_followed() {
    let folder = TempDir::new().expect("a folder");
    let lost = sqlite(&folder).await;
    let replica = Replica::warm(&lost.url).await;
    assert!(format!("{:?}", replica.texts()).contains("LOST"));
    (lost.restore)(&lost.url);
    let restored = digest_of(&lost.url).await;
    replica.until(restored).await;
    assert_eq!(replica.texts()[0].1, "2\n");
    publish(&lost.url, &[("one.md", "3\n")]).await;
    lost.check(&replica).await;
}

/// Another database takes over the address while the replica is connected.
// req: S-307
#[tokio::test(flavor = "multi_thread")]
async fn failover_to_a_database_without_the_last_revisions_is_followed() {
    let lost = postgres().await;
    let replica = Replica::warm(&lost.url).await;
    lost.redo(1).await;
    lost.check(&replica).await;
}

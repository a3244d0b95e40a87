//! Sixteen publishers against eight replicas: revisions in order, none half applied, all at the last one in the end.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::future::join_all;
use promptshelf::{
    Library,
    server::channels::{FollowOptions, Follower, StoreHandle},
};
use promptshelf_store::StoreError;
use promptshelf_testkit::{folder::Folder, in_time};
use tokio::task::JoinSet;

use super::{Author, sqlite};

const PUBLISHERS: usize = 16;
const REPLICAS: usize = 8;
/// The number of revisions of each publisher.
const REVISIONS: usize = 6;

/// Publishes two files with the same text in each revision.
async fn write(author: &Author, number: usize) {
    let paths = [format!("one-{number}.md"), format!("two-{number}.md")];
    for count in 1..=REVISIONS {
        loop {
            let files = paths.iter().map(|path| (path.clone(), Some(format!("Text {count}.\n")))).collect();
            match author.try_publish(files).await {
                Ok(_) => break,
                // A lock that was held for too long, on a busy machine.
                Err(StoreError::Unreachable { .. }) => {}
                Err(error) => panic!("a publish failed: {error}"),
            }
        }
    }
}

/// Watches the catalogs of a replica until `is_over`, and returns their number.
async fn watch(library: Library, is_over: Arc<AtomicBool>) -> usize {
    let (mut seen, mut newest) = (0, [0; PUBLISHERS]);
    let mut reports = library.loader().reports();
    loop {
        let ended = is_over.load(Ordering::SeqCst);
        let catalog = library.catalog();
        for (number, newest) in newest.iter_mut().enumerate() {
            let text = |name: String| catalog.find(&name).map(|prompt| prompt.source().text.to_string());
            let (one, two) = (text(format!("one-{number}")), text(format!("two-{number}")));
            assert_eq!(one, two, "a revision is applied as a whole");
            let count = one.map_or(0, |text| text["Text ".len()..].trim_end_matches(".\n").parse().expect("a number"));
            assert!(count >= *newest, "publisher {number} was at {newest}, and is at {count}");
            *newest = count;
        }
        seen += 1;
        if ended {
            assert_eq!(newest, [REVISIONS; PUBLISHERS]);
            return seen;
        }
        // A report can come before `is_over` is set, and none after it.
        tokio::time::timeout(Duration::from_millis(100), reports.changed()).await.ok();
    }
}

/// Runs publishers against replicas in this process.
pub(super) async fn crowd(store: &str) {
    let author = Author::at(store).await;
    author.publish([("first.md", Some("First.\n".to_owned()))]).await;
    let is_over = Arc::<AtomicBool>::default();
    let (mut following, mut watching, mut monitors) = (JoinSet::new(), JoinSet::new(), Vec::new());
    for _ in 0..REPLICAS {
        let handle = StoreHandle::new(store.parse().expect("a URL"));
        let options = FollowOptions::new(handle, author.channel().clone());
        let follower = Follower::start(options).await.expect("a follower");
        let library = Library::builder().source(follower.source().clone()).build().expect("a library");
        monitors.push(follower.monitor().clone());
        let loader = library.loader().clone();
        following.spawn(follower.run(loader));
        watching.spawn(watch(library, Arc::clone(&is_over)));
    }
    in_time("all publishes", join_all((0..PUBLISHERS).map(|number| write(&author, number)))).await;
    let last = author.store.head(author.channel()).await.expect("a head").revision;
    assert_eq!(last, 1 + (PUBLISHERS * REVISIONS) as u64, "revisions are dense");
    let arrived = Arc::<AtomicUsize>::default();
    in_time("all replicas at the last revision", async {
        while monitors.iter().any(|monitor| monitor.status().revision != Some(last)) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        arrived.store(monitors.len(), Ordering::SeqCst);
    })
    .await;
    is_over.store(true, Ordering::SeqCst);
    let seen = in_time("the watchers", watching.join_all()).await;
    assert!(seen.iter().all(|seen| *seen > 1), "{seen:?}");
    following.shutdown().await;
}

// req: S-98
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixteen_publishers_and_eight_replicas_agree_on_sqlite() {
    let folder = Folder::empty();
    crowd(&sqlite(folder.path())).await;
}

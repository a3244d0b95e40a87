//! Requests to read sources again.

use std::time::Duration;

use promptshelf_store::Store;

pub(crate) async fn requests_for_sources_are_counted_once_each(store: Store) {
    assert!(store.source_signals().await.unwrap().is_empty());
    // Servers receive webhooks at the same time, for the same sources in another order.
    let servers = (0..8).map(|number| {
        let store = store.clone();
        let mut sources = ["platform".to_owned(), "team".to_owned()];
        sources.rotate_left(number % 2);
        tokio::spawn(async move { store.signal_sources(&sources).await })
    });
    for server in servers.collect::<Vec<_>>() {
        server.await.unwrap().unwrap();
    }
    let counted = store.source_signals().await.unwrap();
    assert_eq!(counted.into_iter().collect::<Vec<_>>(), [("platform".to_owned(), 8), ("team".to_owned(), 8)]);
    if store.url().to_string().starts_with("postgres") {
        let mut hints = store.source_hints().await;
        let mut wait = async || tokio::time::timeout(Duration::from_secs(60), hints.next()).await.unwrap();
        wait().await;
        store.signal_sources(&["team".to_owned()]).await.unwrap();
        wait().await;
    }
}

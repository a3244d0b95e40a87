//! The contract on SQLite.

use promptshelf_store::{Store, StoreUrl};

use crate::contract;

pub(crate) struct SqliteStore {
    pub(crate) store: Store,
    _folder: tempfile::TempDir,
}

impl SqliteStore {
    /// The URL as other processes use it.
    pub(crate) fn url(&self) -> String {
        self.store.url().to_string()
    }

    /// Opens another store in the same folder.
    pub(crate) fn with(self, store: Store) -> SqliteStore {
        SqliteStore { store, ..self }
    }
}

pub(crate) async fn store() -> SqliteStore {
    let folder = tempfile::tempdir().unwrap();
    let url: StoreUrl = format!("sqlite:{}", folder.path().join("team.db").display()).parse().unwrap();
    SqliteStore { store: Store::create(&url).await.unwrap(), _folder: folder }
}

macro_rules! on_sqlite {
    ($($module:ident :: $name:ident),* $(,)?) => {
        $(
            #[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                let place = store().await;
                contract::$module::$name(place.store.clone()).await;
            }
        )*
    };
}

contract::all!(on_sqlite);

/// Without its lock, another process takes itself for the only one, and removes the log that is in use.
// req: S-596
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn nothing_ends_the_locks_of_open_connections() {
    use std::{fs, os::unix::fs::MetadataExt as _};

    let place = store().await;
    let file = place.url().strip_prefix("sqlite:").unwrap().to_owned();
    let folder = tempfile::tempdir().unwrap();
    let (store, backup) = (&place.store, folder.path().join("team.backup"));
    let locks = || {
        let (own, inode) = (std::process::id().to_string(), format!(":{}", fs::metadata(&file).unwrap().ino()));
        let all = fs::read_to_string("/proc/locks").unwrap();
        let is_own = |line: &&str| line.split(' ').any(|word| word == own) && line.contains(&inode);
        all.lines().filter(is_own).count()
    };
    store.channels().await.unwrap();
    assert!(locks() > 0, "the store is in use: {}", fs::read_to_string("/proc/locks").unwrap());
    let other = Store::open(store.url()).await.unwrap();
    assert!(locks() > 0, "a second handle is opened");
    other.channels().await.unwrap();
    other.close().await;
    assert!(locks() > 0, "it is closed");
    Store::create(store.url()).await.unwrap().close().await;
    assert!(locks() > 0, "a store that exists is created");
    store.back_up(&backup).await.unwrap();
    assert!(locks() > 0, "it is backed up");
    store.back_up(file.as_ref()).await.unwrap_err();
    assert!(locks() > 0, "it cannot be backed up to itself");
    store.restore(file.as_ref(), true, true).await.unwrap_err();
    assert!(locks() > 0, "it cannot be restored from itself");
    store.restore(&backup, true, true).await.unwrap();
    assert!(locks() > 0, "it is restored");
}

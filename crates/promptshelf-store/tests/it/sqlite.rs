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

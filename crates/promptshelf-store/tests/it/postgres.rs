//! The contract on PostgreSQL.

use promptshelf_store::{Store, StoreUrl};
use promptshelf_testkit::database::Postgres;

use crate::contract;

/// Returns the URL of an empty database on the shared server.
pub(crate) fn url() -> StoreUrl {
    Postgres::shared().database().parse().unwrap()
}

macro_rules! on_postgres {
    ($($module:ident :: $name:ident),* $(,)?) => {
        $(
            #[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                contract::$module::$name(Store::create(&url()).await.unwrap()).await;
            }
        )*
    };
}

contract::all!(on_postgres);

//! Copies of whole stores, backups and restores, between SQLite and PostgreSQL.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use promptshelf_store::{Digest, NewToken, RolloutPlan, Store, StoreCopy, StoreError, StoreUrl};
use promptshelf_testkit::{database::Postgres, in_time, tcp_proxy::TcpProxy};
use sqlx::{AssertSqlSafe, Connection as _, Row as _, SqliteConnection};

use crate::{
    postgres,
    sample::{actor, channel, publish, tamper, texts},
    sqlite::{self, SqliteStore},
};

/// What the tables of a store say about the store itself.
const OWN: [&str; 2] = ["ps_library", "ps_migration"];

async fn file_of(store: &Store) -> SqliteConnection {
    let url = store.url().to_string();
    SqliteConnection::connect(url.strip_prefix("sqlite:").unwrap()).await.unwrap()
}

/// The columns of each table, from the catalog of the database.
async fn catalog(file: &mut SqliteConnection) -> BTreeMap<String, Vec<String>> {
    let sql = "SELECT t.name, c.name FROM sqlite_schema t, pragma_table_info(t.name) c \
               WHERE t.type = 'table' AND t.name LIKE 'ps\\_%' ESCAPE '\\' ORDER BY t.name, c.cid";
    let mut tables = BTreeMap::<String, Vec<String>>::new();
    for row in sqlx::query(sql).fetch_all(file).await.unwrap() {
        tables.entry(row.get(0)).or_default().push(row.get(1));
    }
    tables.retain(|name, _| !OWN.contains(&name.as_str()));
    tables
}

/// All rows of all tables, as SQL writes them.
async fn dump(store: &Store) -> BTreeMap<String, Vec<String>> {
    let mut file = file_of(store).await;
    let mut dumped = BTreeMap::new();
    for (table, columns) in catalog(&mut file).await {
        let quoted: Vec<String> = columns.iter().map(|column| format!("quote({column})")).collect();
        let sql = format!("SELECT {} FROM {table}", quoted.join(" || ',' || "));
        let rows = sqlx::query(AssertSqlSafe(sql)).fetch_all(&mut file).await.unwrap();
        let mut rows: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
        rows.sort();
        dumped.insert(table, rows);
    }
    dumped
}

/// A store with a history, and with at least one row in every table.
async fn full_store() -> SqliteStore {
    let place = sqlite::store().await;
    let url = place.url();
    place.store.close().await;
    fs::remove_file(url.strip_prefix("sqlite:").unwrap()).unwrap();
    tamper(&url, include_str!("../fixtures/schema-10.sqlite.sql")).await;
    let store = Store::open(&url.parse().unwrap()).await.unwrap();
    token(&store, "ci").await;
    let place = place.with(store);
    let mut file = file_of(&place.store).await;
    for (table, columns) in catalog(&mut file).await {
        let count = format!("SELECT COUNT(*) FROM {table}");
        if sqlx::query(AssertSqlSafe(count)).fetch_one(&mut file).await.unwrap().get::<i64, _>(0) > 0 {
            continue;
        }
        let kinds = format!("SELECT type FROM pragma_table_info('{table}') ORDER BY cid");
        let kinds = sqlx::query(AssertSqlSafe(kinds)).fetch_all(&mut file).await.unwrap();
        let values = kinds.iter().map(|kind| match kind.get::<&str, _>(0) {
            "TEXT" => "'{\"ä\":[]}'",
            "BLOB" => "zeroblob(32)",
            _ => "1",
        });
        let (columns, values) = (columns.join(", "), values.collect::<Vec<_>>().join(", "));
        tamper(&url, &format!("INSERT INTO {table} ({columns}) VALUES ({values})")).await;
    }
    place
}

async fn token(store: &Store, name: &str) -> u64 {
    let new = NewToken { name: name.to_owned(), scopes: vec!["library:read".to_owned()], ..NewToken::default() };
    let digest = Digest::of(format!("{name} of {}", store.url()).as_bytes());
    store.create_token(&new, digest, &actor("ada"), true).await.unwrap().id
}

fn revision(copy: &StoreCopy, of: &str) -> u64 {
    let found = copy.channels.iter().find(|found| found.name.as_str() == of).unwrap();
    assert_eq!(found.misfit, None);
    found.revision
}

// req: S-413
#[tokio::test(flavor = "multi_thread")]
async fn every_row_of_every_table_survives_a_move_there_and_back() {
    let from = full_store().await;
    let before = dump(&from.store).await;
    let there = Store::create(&postgres::url()).await.unwrap();
    let copy = from.store.copy_to(&there).await.unwrap();
    assert_eq!(revision(&copy, "production"), 5);
    // What is copied follows from the migrations; the catalogs know what there is.
    assert_eq!(copy.rows.keys().collect::<Vec<_>>(), before.keys().collect::<Vec<_>>());
    let database = there.url().to_string().rsplit('/').next().unwrap().to_owned();
    let sql =
        "SELECT string_agg(DISTINCT tablename, ',' ORDER BY tablename) FROM pg_tables WHERE tablename LIKE 'ps\\_%'";
    let named = Postgres::shared().sql(&database, sql);
    let named: BTreeSet<&str> = named.trim().split(',').filter(|table| !OWN.contains(table)).collect();
    assert_eq!(named, before.keys().map(String::as_str).collect());
    let back = sqlite::store().await;
    let copy = there.copy_to(&back.store).await.unwrap();
    assert_eq!(dump(&back.store).await, before);
    let epoch = from.store.head(&channel("production")).await.unwrap();
    assert_eq!(back.store.head(&channel("production")).await.unwrap(), epoch, "replicas and folders can go on");
    assert_eq!(copy.epoch, epoch.epoch);
    // New ids do not meet those that were copied.
    for store in [&there, &back.store] {
        publish(store, "staging", 2, &[("new.md", "", "New")]).await.unwrap();
        token(store, "deploy").await;
        assert!(store.verify().await.unwrap().iter().all(|channel| channel.misfit.is_none()));
    }
}

// req: S-413
#[tokio::test(flavor = "multi_thread")]
async fn store_with_other_data_is_no_target() {
    let (from, other) = (full_store().await, sqlite::store().await);
    publish(&other.store, "mine", 0, &[("a.md", "", "A")]).await.unwrap();
    let before = dump(&other.store).await;
    let refused = from.store.copy_to(&other.store).await.unwrap_err();
    assert!(matches!(&refused, StoreError::State { reason } if reason.contains("the channels mine")), "{refused}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("team.backup");
    from.store.back_up(&file).await.unwrap();
    let refused = other.store.restore(&file, false, true).await.unwrap_err();
    assert!(matches!(refused, StoreError::State { .. }), "{refused}");
    assert_eq!(dump(&other.store).await, before);
    // Neither is the store itself, and a backup never replaces a store.
    let own = PathBuf::from(other.url().strip_prefix("sqlite:").unwrap());
    let refused = from.store.back_up(&own).await.unwrap_err();
    assert!(refused.to_string().contains("is not a backup"), "{refused}");
    assert!(other.store.copy_to(&other.store).await.is_err());
    assert_eq!(dump(&other.store).await, before);
    let backup = Store::open_unmigrated(&StoreUrl::file(&file)).await.unwrap();
    let refused = backup.restore(&file, true, true).await.unwrap_err();
    assert!(refused.to_string().contains("is the store itself"), "{refused}");
}

// req: S-560
#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn backup_replaces_only_files() {
    use std::os::unix::{fs::symlink, net::UnixListener};

    let SqliteStore { store, .. } = &full_store().await;
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let kind = |path: &Path| format!("{:?}", path.symlink_metadata().unwrap().file_type());
    let _socket = UnixListener::bind(at("socket")).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
    std::fs::create_dir(at("folder")).unwrap();
    symlink("/dev/null", at("device")).unwrap();
    symlink(at("nowhere"), at("dangling")).unwrap();
    for name in ["socket", "pipe", "folder", "device", "dangling"] {
        let before = kind(&at(name));
        let refused = store.back_up(&at(name)).await.unwrap_err();
        assert!(matches!(&refused, StoreError::State { reason } if reason.contains(name)), "{name}: {refused}");
        assert_eq!(kind(&at(name)), before, "{name}");
    }
    // The file that is written first is none of someone else's either.
    assert!(std::process::Command::new("mkfifo").arg(at("new.part")).status().unwrap().success());
    let refused = store.back_up(&at("new")).await.unwrap_err();
    assert!(matches!(&refused, StoreError::State { reason } if reason.contains("new.part")), "{refused}");
    let refused = store.back_up(&at("missing/new")).await.unwrap_err();
    assert!(refused.to_string().contains("the folder") && !refused.to_string().contains("database"), "{refused}");
    // An empty file is one to fill, and a link leads to the backup as before.
    std::fs::write(at("empty"), "").unwrap();
    symlink(at("empty"), at("link")).unwrap();
    for _ in 0..2 {
        store.back_up(&at("link")).await.unwrap();
    }
    assert_eq!(std::fs::read_link(at("link")).unwrap(), at("empty"));
    assert!(at("empty").metadata().unwrap().len() > 0);
}

// req: S-572
#[tokio::test(flavor = "multi_thread")]
async fn backup_stays_as_it_was_written_whoever_opens_it() {
    let from = full_store().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("team.backup");
    from.store.back_up(&file).await.unwrap();
    let (url, written) = (StoreUrl::file(&file), fs::read(&file).unwrap());
    // A server and every command that changes a store open it so.
    for opened in [Store::open(&url).await, Store::create(&url).await] {
        let refused = opened.unwrap_err();
        let way_out = format!("store copy {url} --to");
        assert!(matches!(&refused, StoreError::State { reason } if reason.contains(&way_out)), "{refused}");
    }
    let shown = Store::open_unmigrated(&url).await.unwrap();
    assert_eq!(shown.head(&channel("production")).await.unwrap().revision, 5);
    let refused = shown.must_be_changeable().await.unwrap_err();
    assert!(matches!(&refused, StoreError::State { reason } if reason.contains("is a backup")), "{refused}");
    from.store.must_be_changeable().await.unwrap();
    publish(&shown, "production", 5, &[("new.md", "", "New")]).await.unwrap_err();
    shown.new_epoch().await.unwrap_err();
    let copy = sqlite::store().await;
    shown.copy_to(&copy.store).await.unwrap();
    shown.close().await;
    assert!(fs::read(&file).unwrap() == written);
    let beside: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(beside, ["team.backup"]);
    // The copy is a store like others.
    publish(&copy.store, "production", 5, &[("new.md", "", "New")]).await.unwrap();
    sqlite::store().await.store.restore(&file, false, true).await.unwrap();
}

// req: S-587
#[tokio::test(flavor = "multi_thread")]
async fn of_two_backups_to_one_file_the_first_completes() {
    let from = full_store().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("team.backup");
    for _ in 0..2 {
        let backups: Vec<_> = (0..4)
            .map(|_| {
                let (store, file) = (from.store.clone(), file.clone());
                tokio::spawn(async move { store.back_up(&file).await })
            })
            .collect();
        let mut written = 0;
        for backup in backups {
            match backup.await.unwrap() {
                Ok(_) => written += 1,
                Err(refused) => assert!(
                    matches!(&refused, StoreError::State { reason } if reason.contains("another backup to")),
                    "{refused}"
                ),
            }
        }
        assert!(written > 0);
        sqlite::store().await.store.restore(&file, false, false).await.unwrap();
    }
    let beside: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(beside, ["team.backup"]);
    // While the lock is held, nothing of the other one is touched.
    let lock = fs::File::create(folder.path().join("team.backup.lock")).unwrap();
    lock.lock().unwrap();
    fs::write(folder.path().join("team.backup.part"), "half").unwrap();
    from.store.back_up(&file).await.unwrap_err();
    assert_eq!(fs::read(folder.path().join("team.backup.part")).unwrap(), b"half");
    // A killed program leaves both files, and no lock.
    drop(lock);
    from.store.back_up(&file).await.unwrap();
}

// req: S-591
#[tokio::test(flavor = "multi_thread")]
async fn backup_of_another_store_is_neither_replaced_nor_restored_by_mistake() {
    let (one, other) = (full_store().await, sqlite::store().await);
    publish(&other.store, "mine", 0, &[("a.md", "", "A")]).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("team.backup");
    one.store.back_up(&file).await.unwrap();
    let written = fs::read(&file).unwrap();
    let refused = other.store.back_up(&file).await.unwrap_err();
    assert!(matches!(&refused, StoreError::State { reason } if reason.contains("of another store")), "{refused}");
    assert!(fs::read(&file).unwrap() == written);
    let before = dump(&other.store).await;
    let refused = other.store.restore(&file, true, false).await.unwrap_err();
    assert!(matches!(&refused, StoreError::State { reason } if reason.contains("of another store")), "{refused}");
    assert_eq!(dump(&other.store).await, before);
    // A store stays the same one after a restore, a copy and a new epoch.
    publish(&one.store, "production", 5, &[("new.md", "", "New")]).await.unwrap();
    one.store.restore(&file, true, false).await.unwrap();
    publish(&one.store, "production", 5, &[("other.md", "", "Other")]).await.unwrap();
    one.store.new_epoch().await.unwrap();
    one.store.restore(&file, true, false).await.unwrap();
    one.store.back_up(&file).await.unwrap();
    let copy = sqlite::store().await;
    one.store.copy_to(&copy.store).await.unwrap();
    copy.store.back_up(&file).await.unwrap();
    other.store.restore(&file, true, true).await.unwrap();
}

/// Publishes both files with the number of the next revision.
async fn advance(store: &Store, revision: u64) {
    let before = if revision == 1 { String::new() } else { (revision - 1).to_string() };
    let now = revision.to_string();
    publish(store, "c", revision - 1, &[("a.md", &before, &now), ("b.md", &before, &now)]).await.unwrap();
}

async fn restore_while_it_is_used(store: Store) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("team.backup");
    let (c, next) = (channel("c"), channel("next"));
    for revision in 1..=3 {
        advance(&store, revision).await;
    }
    publish(&store, "next", 0, &[("a.md", "", "N")]).await.unwrap();
    store.start_rollout(&c, &next, &RolloutPlan::new(10), "", &actor("ada")).await.unwrap();
    let (kept, revoked) = (token(&store, "kept").await, token(&store, "revoked").await);
    // A backup has one moment of a store that others publish to.
    let publisher = tokio::spawn({
        let store = store.clone();
        async move {
            for revision in 4..=12 {
                advance(&store, revision).await;
            }
        }
    });
    let copied = store.back_up(&file).await.unwrap();
    publisher.await.unwrap();
    let saved = revision(&copied, "c");
    assert!((3..=12).contains(&saved), "{saved}");
    let backup = Store::open_unmigrated(&StoreUrl::file(&file)).await.unwrap();
    let text = saved.to_string();
    let expected = [("a.md".to_owned(), text.clone()), ("b.md".to_owned(), text)];
    assert_eq!(texts(&backup, "c", None).await, expected);
    backup.close().await;
    store.revoke_token(revoked, &actor("ada")).await.unwrap();
    let later = token(&store, "later").await;
    let head = store.head(&c).await.unwrap();
    // Readers have the old or the new state.
    let reader = tokio::spawn({
        let (store, c) = (store.clone(), c.clone());
        async move {
            loop {
                let (head, tree) = store.tree(&c, None).await.unwrap();
                let texts: Vec<_> = tree.iter().map(|(_, file)| file.bytes().to_vec()).collect();
                let expected = head.revision.to_string().into_bytes();
                assert_eq!(texts, [expected.clone(), expected]);
                if head.revision == saved {
                    return;
                }
            }
        }
    });
    let restored = store.restore(&file, true, true).await.unwrap();
    in_time("the reader sees the restored state", reader).await.unwrap();
    assert_eq!((revision(&restored, "c"), restored.backup_of), (saved, copied.backup_of));
    let now = store.head(&c).await.unwrap();
    assert!(now.revision == saved && now.epoch != head.epoch && now.epoch == restored.epoch, "{now:?}");
    let delta = store.delta(&c, Some(&head)).await.unwrap();
    assert!(delta.is_complete, "every replica reads everything again");
    let tokens = store.tokens().await.unwrap();
    let state = |id| tokens.iter().find(|token| token.id == id).map(|token| token.revoked.is_some());
    assert_eq!((state(kept), state(revoked), state(later)), (Some(false), Some(true), None));
    let rollout = store.rollouts().await.unwrap().pop().unwrap();
    assert_eq!((rollout.percent, rollout.reason.as_str()), (0, "the store was restored"));
    // Ids and revisions go on; an id of the removed token is not given again.
    advance(&store, saved + 1).await;
    assert!(token(&store, "new").await > later);
    assert!(store.verify().await.unwrap().iter().all(|channel| channel.misfit.is_none()));
}

// req: S-414
#[tokio::test(flavor = "multi_thread")]
async fn sqlite_is_restored_while_it_is_used() {
    restore_while_it_is_used(sqlite::store().await.store.clone()).await;
}

// req: S-414
#[tokio::test(flavor = "multi_thread")]
async fn postgres_is_restored_while_it_is_used() {
    restore_while_it_is_used(Store::create(&postgres::url()).await.unwrap()).await;
}

// req: S-414
#[tokio::test(flavor = "multi_thread")]
async fn one_backup_fits_both_databases() {
    let from = full_store().await;
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (folder.path().join("first"), folder.path().join("second"));
    from.store.back_up(&first).await.unwrap();
    let there = Store::create(&postgres::url()).await.unwrap();
    there.restore(&first, false, true).await.unwrap();
    there.back_up(&second).await.unwrap();
    // An earlier backup is replaced at once.
    there.back_up(&first).await.unwrap();
    let back = sqlite::store().await;
    back.store.restore(&second, false, true).await.unwrap();
    assert_eq!(dump(&back.store).await, dump(&from.store).await);
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "{left:?}");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(fs::metadata(&first).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

/// Restores a damaged file. It is refused, or it is refused nowhere because it has all of the backup.
async fn try_damaged(store: &Store, file: &Path, before: &BTreeMap<String, Vec<String>>, what: &str) -> bool {
    match store.restore(file, true, true).await {
        Ok(_) => false,
        Err(error) => {
            let is_clear = error.to_string().contains("backup") || matches!(error, StoreError::Corrupt { .. });
            assert!(is_clear, "{what}: {error}");
            let mut after = dump(store).await;
            // Contents that nothing refers to.
            after.remove("ps_blob");
            assert_eq!(after, *before, "{what}");
            true
        }
    }
}

// req: S-415
#[tokio::test(flavor = "multi_thread")]
async fn half_and_wrong_backups_change_nothing() {
    let from = full_store().await;
    let folder = tempfile::tempdir().unwrap();
    let whole = folder.path().join("whole");
    from.store.back_up(&whole).await.unwrap();
    let bytes = fs::read(&whole).unwrap();
    let target = sqlite::store().await;
    publish(&target.store, "mine", 0, &[("a.md", "", "A")]).await.unwrap();
    let mut before = dump(&target.store).await;
    before.remove("ps_blob");
    let file = folder.path().join("damaged");
    for at in (0..bytes.len()).step_by(bytes.len() / 40 + 1) {
        fs::write(&file, &bytes[..at]).unwrap();
        assert!(try_damaged(&target.store, &file, &before, &format!("cut at {at}")).await, "cut at {at}");
    }
    for (what, content) in [("text", b"promptshelf".to_vec()), ("other pages", [&bytes[..4096], &[0; 8192]].concat())] {
        fs::write(&file, content).unwrap();
        assert!(try_damaged(&target.store, &file, &before, what).await, "{what}");
    }
    assert!(try_damaged(&target.store, &folder.path().join("missing backup"), &before, "missing").await);
    assert!(
        try_damaged(&target.store, &PathBuf::from(from.url().strip_prefix("sqlite:").unwrap()), &before, "store").await
    );
    // Changed texts are found, whatever SQLite itself thinks of the file; or they are in a place that nothing reads.
    let mut found = 0;
    let words = ["withdr", "Mülle", "a leak", "platform"].map(str::as_bytes);
    let is_word = |window: &[u8]| words.iter().any(|word| window.starts_with(word));
    for (at, _) in bytes.windows(8).enumerate().filter(|(_, window)| is_word(window)) {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        fs::write(&file, changed).unwrap();
        if try_damaged(&target.store, &file, &before, &format!("changed at {at}")).await {
            found += 1;
            continue;
        }
        assert_eq!(dump(&target.store).await["ps_revision"], dump(&from.store).await["ps_revision"]);
        before = dump(&target.store).await;
        before.remove("ps_blob");
    }
    assert!(found >= 3, "{found}");
    fs::write(&file, &bytes).unwrap();
    target.store.restore(&file, true, true).await.unwrap();
}

// req: S-415
#[tokio::test(flavor = "multi_thread")]
async fn full_disk_leaves_the_old_state() {
    let from = full_store().await;
    let many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) \
                INSERT INTO ps_usage_batch SELECT 'batch ' || i, 1 FROM n";
    tamper(&from.url(), many).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("backup");
    from.store.back_up(&file).await.unwrap();
    let target = sqlite::store().await;
    publish(&target.store, "mine", 0, &[("a.md", "", "A")]).await.unwrap();
    let before = dump(&target.store).await;
    let mut connection = file_of(&target.store).await;
    let pages: i64 = sqlx::query("PRAGMA page_count").fetch_one(&mut connection).await.unwrap().get(0);
    target.store.limit_pages(u32::try_from(pages).unwrap() + 10).await.unwrap();
    let full = target.store.restore(&file, true, true).await.unwrap_err();
    assert!(matches!(full, StoreError::Full { .. }), "{full}");
    // The store that is copied is not the one that needs space.
    let copy = sqlite::store().await;
    copy.store.limit_pages(1).await.unwrap();
    let full = from.store.copy_to(&copy.store).await.unwrap_err().to_string();
    let name = copy.url().strip_prefix("sqlite:").unwrap().to_owned();
    assert!(full.contains(&name) && full.contains("no storage space") && !full.contains("prune"), "{full}");
    let (mut after, mut before) = (dump(&target.store).await, before);
    after.remove("ps_blob");
    before.remove("ps_blob");
    assert_eq!(after, before);
}

// req: S-415
#[tokio::test(flavor = "multi_thread")]
async fn copy_that_is_cut_at_any_message_goes_on() {
    let from = full_store().await;
    let proxy = TcpProxy::start(Postgres::shared().port()).await;
    let direct = postgres::url();
    let through =
        direct.to_string().replace(&format!(":{}/", Postgres::shared().port()), &format!(":{}/", proxy.address.port()));
    let seen = Store::create(&direct).await.unwrap();
    let mut cuts = 0;
    for messages in (0..).step_by(11) {
        let target = Store::open(&through.parse().unwrap()).await.unwrap();
        proxy.cut_after(messages);
        let copied = in_time("a copy", from.store.copy_to(&target)).await;
        proxy.mend();
        match copied {
            Ok(copy) => {
                assert_eq!(revision(&copy, "production"), 5);
                break;
            }
            Err(StoreError::Unreachable { .. }) => {
                // The commit may have arrived although its answer did not.
                let channels = seen.channels().await.unwrap().len();
                if channels > 0 {
                    assert_eq!(channels, 2);
                    break;
                }
            }
            Err(error) => panic!("after {messages} messages: {error}"),
        }
        cuts += 1;
    }
    assert!(cuts > 10, "{cuts} cuts");
    let back = sqlite::store().await;
    seen.copy_to(&back.store).await.unwrap();
    assert_eq!(dump(&back.store).await, dump(&from.store).await);
}

/// Restores two backups in turn until it is killed, if another test starts it.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "started by other tests"]
async fn restorer() {
    let (store, files) = (std::env::var("STORE_OF_THE_TEST").unwrap(), std::env::var("FILES_OF_THE_TEST").unwrap());
    let store = Store::open(&store.parse().unwrap()).await.unwrap();
    for file in files.split(':').cycle() {
        println!("\nbegins");
        store.restore(Path::new(file), true, true).await.unwrap();
    }
}

async fn kill_restorers(store: Store) {
    let folder = tempfile::tempdir().unwrap();
    let files = [folder.path().join("one"), folder.path().join("two")];
    advance(&store, 1).await;
    store.back_up(&files[0]).await.unwrap();
    advance(&store, 2).await;
    store.back_up(&files[1]).await.unwrap();
    for round in 0..6 {
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "moving::restorer", "--ignored", "--nocapture"]);
        command.env("STORE_OF_THE_TEST", store.url().to_string());
        command.env("FILES_OF_THE_TEST", files.each_ref().map(|file| file.to_str().unwrap()).join(":"));
        let mut child =
            command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::null()).spawn().unwrap();
        let lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
        let mut begun = lines.map_while(Result::ok).filter(|line| line == "begins");
        assert!(begun.nth(round).is_some());
        child.kill().unwrap();
        child.wait().unwrap();
        // Behind the killed transaction, if it still runs.
        let head = in_time("the store", async {
            loop {
                match store.new_epoch().await {
                    Ok(_) => return store.head(&channel("c")).await.unwrap(),
                    Err(StoreError::Unreachable { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
            }
        })
        .await;
        let text = head.revision.to_string();
        assert_eq!(texts(&store, "c", None).await, [("a.md".to_owned(), text.clone()), ("b.md".to_owned(), text)]);
        assert!(store.verify().await.unwrap().iter().all(|channel| channel.misfit.is_none()));
    }
}

// req: S-415
#[tokio::test(flavor = "multi_thread")]
async fn killed_restore_leaves_the_old_or_the_new_state_on_sqlite() {
    kill_restorers(sqlite::store().await.store.clone()).await;
}

// req: S-415
#[tokio::test(flavor = "multi_thread")]
async fn killed_restore_leaves_the_old_or_the_new_state_on_postgres() {
    kill_restorers(Store::create(&postgres::url()).await.unwrap()).await;
}

// req: S-510
#[tokio::test(flavor = "multi_thread")]
async fn hostile_backups_are_refused_at_once() {
    let from = full_store().await;
    let folder = tempfile::tempdir().unwrap();
    let whole = folder.path().join("whole");
    from.store.back_up(&whole).await.unwrap();
    let target = sqlite::store().await;
    let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)";
    for (what, sql) in [
        ("contents", "DROP TABLE ps_blob; CREATE VIEW ps_blob AS SELECT zeroblob(900000000) AS bytes, 1 AS size, x'00' AS digest".to_owned()),
        ("endless", format!("DROP TABLE ps_usage_batch; CREATE VIEW ps_usage_batch AS {endless} SELECT i AS id, i AS at FROM n")),
        ("list", format!("DROP TABLE backup_manifest; CREATE VIEW backup_manifest AS {endless} SELECT CAST(i AS TEXT) AS json FROM n")),
        ("computed", "DROP TABLE ps_usage_batch; CREATE TABLE ps_usage_batch (id TEXT, at BIGINT AS (length(zeroblob(900000000))))".to_owned()),
        ("virtual", "DROP TABLE ps_usage_batch; CREATE VIRTUAL TABLE ps_usage_batch USING fts5(id, at)".to_owned()),
        ("long", format!("INSERT INTO ps_usage_batch VALUES (CAST(zeroblob({}) AS TEXT), 1)", 65 << 20)),
    ] {
        let file = folder.path().join(what);
        fs::copy(&whole, &file).unwrap();
        tamper(&format!("sqlite:{}", file.display()), &sql).await;
        let error = target.store.restore(&file, true, true).await.unwrap_err();
        assert!(matches!(error, StoreError::InvalidInput { .. }), "{what}: {error}");
    }
    let error = target.store.restore(folder.path(), true, true).await.unwrap_err();
    assert!(error.to_string().contains("is not a file"), "{error}");
    #[cfg(unix)]
    {
        let pipe = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        assert!(matches!(target.store.restore(&pipe, true, true).await, Err(StoreError::InvalidInput { .. })));
    }
}

//! Stores that cannot be used: wrong password, missing privileges, newer schema, corrupt contents, full disks.

use std::{error::Error, fmt::Write as _, fs, os::unix::fs::PermissionsExt as _, path::Path, process::Command};

use promptshelf_store::{Digest, HistoryQuery, PolicyGuard, Store, StoreError, StoreUrl, Verdict};
use promptshelf_testkit::{database::Postgres, in_time};

use crate::{
    sample::{actor, channel, policy, publish, review, tamper, texts},
    sqlite,
};

const STORE: &str = "STORE_OF_THE_TEST";

/// All that an error can print.
fn all_texts(error: &StoreError) -> String {
    let mut text = format!("{error} {error:?} {error:#?}");
    let mut cause = error.source();
    while let Some(error) = cause {
        let _ = write!(text, " {error} {error:?}");
        cause = error.source();
    }
    text
}

// req: S-86
#[tokio::test(flavor = "multi_thread")]
async fn wrong_password_is_never_shown() {
    let server = Postgres::shared();
    let database = server.database();
    server.sql("postgres", "CREATE ROLE locked LOGIN PASSWORD 'the real one'");
    let with = |user: &str| database.replace("postgres@", user);
    let refused = [with("locked:hunter2@"), format!("{}?password=hunter2", with("locked@"))];
    for url in &refused {
        let error = Store::open(&url.parse().unwrap()).await.unwrap_err();
        assert!(matches!(error, StoreError::Database { .. }), "{error}");
        assert!(error.to_string().contains("authentication failed"), "{error}");
        assert!(!all_texts(&error).contains("hunter2"), "{error:?}");
    }
    let gone = [
        with("postgres:hunter2@").replace(&server.port().to_string(), "1"),
        format!("{}-missing", with("postgres:hunter2@")),
        "postgres://postgres:hunter2@127.0.0.1/x?sslmode=wrong".to_owned(),
        "postgres://postgres:hunter2@127.0.0.1/x?unknown=hunter2".to_owned(),
        "postgres://postgres:hunter2@127.0.0.1:hunter2/x".to_owned(),
        "mysql://root:hunter2@host/x".to_owned(),
    ];
    for url in &gone {
        let error = match url.parse::<StoreUrl>() {
            Ok(url) => {
                assert!(!format!("{url} {url:?} {url:#?}").contains("hunter2"), "{url}");
                Store::open(&url).await.unwrap_err()
            }
            Err(error) => error,
        };
        assert!(!all_texts(&error).contains("hunter2"), "{error:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_reason_has_its_error() {
    let server = Postgres::shared();
    let open = async |url: &str| Store::open(&url.parse().unwrap()).await.unwrap_err();
    let error = open(&server.url("no_such_database")).await;
    assert!(matches!(error, StoreError::NotFound { .. }), "{error}");
    assert!(error.to_string().ends_with("\"no_such_database\" does not exist"), "{error}");
    let error = open(&server.database()).await;
    assert!(matches!(error, StoreError::NotFound { .. }), "{error}");
    let error = in_time("a refused connection", open("postgres://postgres@127.0.0.1:1/x")).await;
    assert!(matches!(error, StoreError::Unreachable { .. }), "{error}");
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let error = open(&format!("sqlite:{}", path("missing.db"))).await;
    assert!(matches!(error, StoreError::NotFound { .. }), "{error}");
    assert!(!folder.path().join("missing.db").exists());
    fs::write(folder.path().join("text.db"), "not a database".repeat(1_000)).unwrap();
    let error = open(&format!("sqlite:{}", path("text.db"))).await;
    assert!(matches!(error, StoreError::Database { .. }), "{error}");
    let error = Store::create(&format!("sqlite:{}", path("no/folder/a.db")).parse().unwrap()).await.unwrap_err();
    assert!(matches!(error, StoreError::InvalidInput { .. }), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_privileges_are_reported() {
    let server = Postgres::shared();
    let database = server.database();
    let name = database.rsplit('/').next().unwrap();
    server.sql(name, "CREATE ROLE reader LOGIN; REVOKE CREATE ON SCHEMA public FROM PUBLIC");
    let url: StoreUrl = database.replace("postgres@", "reader@").parse().unwrap();
    let error = Store::create(&url).await.unwrap_err();
    assert!(matches!(error, StoreError::Database { .. }), "{error}");
    assert!(error.to_string().contains("permission denied"), "{error}");
    let owner = Store::create(&database.parse().unwrap()).await.unwrap();
    publish(&owner, "c", 0, &[("a.md", "", "A")]).await.unwrap();
    server.sql(name, "GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader");
    let reader = Store::open(&url).await.unwrap();
    assert_eq!(texts(&reader, "c", None).await.len(), 1);
    let error = publish(&reader, "c", 1, &[("b.md", "", "B")]).await.unwrap_err();
    assert!(matches!(error, StoreError::Database { .. }), "{error}");
    assert_eq!(owner.head(&channel("c")).await.unwrap().revision, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn database_of_another_program_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let kinds = [
        ("empty", "", false),
        ("no tables", "PRAGMA user_version = 7", false),
        ("removed tables", "CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT); DROP TABLE t", false),
        ("table", "CREATE TABLE contact (name TEXT)", true),
        ("view", "CREATE VIEW contact AS SELECT 1", true),
    ];
    for (name, statement, is_foreign) in kinds {
        let file = folder.path().join(name);
        let url = format!("sqlite:{}", file.display());
        tamper(&url, statement).await;
        let (place, before): (StoreUrl, _) = (url.parse().unwrap(), fs::read(&file).unwrap());
        if is_foreign {
            let refused =
                [Store::create(&place).await, Store::open(&place).await, Store::open_unmigrated(&place).await];
            for error in refused.map(Result::unwrap_err) {
                assert!(matches!(error, StoreError::State { .. }), "{name}: {error}");
                assert!(error.to_string().contains("is the database of another program"), "{name}: {error}");
            }
            assert!(fs::read(&file).unwrap() == before, "{name}: tables and journal mode are the same");
        } else {
            assert!(matches!(Store::open(&place).await.unwrap_err(), StoreError::NotFound { .. }), "{name}");
            Store::create(&place).await.unwrap().close().await;
            Store::create(&place).await.unwrap().close().await;
        }
    }
    let shared = Postgres::shared().database();
    tamper(&shared, "CREATE TABLE contact (name TEXT)").await;
    Store::create(&shared.parse().unwrap()).await.unwrap();
}

async fn schemas(url: String) {
    let place: StoreUrl = url.parse().unwrap();
    let store = Store::create(&place).await.unwrap();
    publish(&store, "c", 0, &[("a.md", "", "A")]).await.unwrap();
    let (present, known) = Store::schema(&place).await.unwrap();
    assert_eq!(present, known);
    // A newer release has only added something.
    let added = "ALTER TABLE ps_revision ADD COLUMN added TEXT; ALTER TABLE ps_proposal ADD COLUMN added TEXT DEFAULT 'x'; \
                 CREATE TABLE ps_added (id BIGINT PRIMARY KEY); INSERT INTO ps_migration (number, at) VALUES (98, 0)";
    tamper(&url, added).await;
    let beside = Store::open(&place).await.unwrap();
    publish(&beside, "c", 1, &[("b.md", "", "B")]).await.unwrap();
    // The store that was open before goes on, too, with every kind of operation.
    let policy = self::policy(1, true);
    store.set_policy(&channel("c"), &policy, &PolicyGuard::Any, "", &actor("ada")).await.unwrap();
    let open = publish(&store, "c", 2, &[("c.md", "", "C")]).await.unwrap().proposal;
    let approved = review(&store, open.id, Verdict::Approve, "", None, "bob").await.unwrap();
    assert_eq!(approved.proposal.revision, Some(3));
    store.set_policy(&channel("c"), &self::policy(0, false), &PolicyGuard::Any, "", &actor("ada")).await.unwrap();
    assert_eq!(store.history(&channel("c"), &HistoryQuery::default()).await.unwrap().len(), 3);
    store.gc().await.unwrap();
    assert_eq!(Store::schema(&place).await.unwrap(), (98, known));
    // A newer release has changed what this one relies on.
    tamper(&url, "INSERT INTO ps_migration (number, at) VALUES (99, 0); UPDATE ps_library SET major = 99").await;
    let error = Store::open(&place).await.unwrap_err();
    assert!(matches!(error, StoreError::NewerSchema { found: 99, .. }), "{error}");
    let error = Store::create(&place).await.unwrap_err();
    assert!(matches!(error, StoreError::NewerSchema { .. }), "{error}");
    // Also for a store that is open already.
    let error = publish(&store, "c", 3, &[("d.md", "", "D")]).await.unwrap_err();
    assert!(matches!(error, StoreError::NewerSchema { .. }), "{error}");
    let error = store.head(&channel("c")).await.unwrap_err();
    assert!(matches!(error, StoreError::NewerSchema { .. }), "{error}");
}

// req: S-87
#[tokio::test(flavor = "multi_thread")]
async fn newer_schema_is_refused_on_sqlite() {
    let place = sqlite::store().await;
    schemas(place.url()).await;
}

// req: S-87
#[tokio::test(flavor = "multi_thread")]
async fn newer_schema_is_refused_on_postgres() {
    schemas(Postgres::shared().database()).await;
}

async fn corrupt_contents(url: String, statement: &'static str) {
    let place: StoreUrl = url.parse().unwrap();
    let store = Store::create(&place).await.unwrap();
    publish(&store, "c", 0, &[("a.md", "", "A")]).await.unwrap();
    tamper(&url, statement).await;
    let reader = Store::open(&place).await.unwrap();
    let errors = [
        reader.tree(&channel("c"), None).await.unwrap_err(),
        reader.blobs(&[Digest::of(b"A")]).await.unwrap_err(),
        publish(&reader, "c", 1, &[("b.md", "", "B")]).await.unwrap_err(),
    ];
    for error in errors {
        assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
    }
    assert_eq!(reader.head(&channel("c")).await.unwrap().revision, 1);
}

// req: S-88
#[tokio::test(flavor = "multi_thread")]
async fn corrupt_content_is_refused_on_sqlite() {
    let place = sqlite::store().await;
    corrupt_contents(place.url(), "UPDATE ps_blob SET bytes = x'00'").await;
}

// req: S-88
#[tokio::test(flavor = "multi_thread")]
async fn corrupt_content_is_refused_on_postgres() {
    corrupt_contents(Postgres::shared().database(), "UPDATE ps_blob SET bytes = 'x'").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_are_not_those_of_the_revision_are_noticed() {
    let place = sqlite::store().await;
    let url = place.url();
    publish(&place.store, "c", 0, &[("a.md", "", "A"), ("b.md", "", "B")]).await.unwrap();
    // The same revision had another file before the restore.
    let other = Store::open(&url.parse().unwrap()).await.unwrap();
    publish(&other, "other", 0, &[("b.md", "", "B2")]).await.unwrap();
    let statement = "UPDATE ps_entry SET digest = (SELECT e.digest FROM ps_entry e WHERE e.channel = 2) \
                     WHERE channel = 1 AND path = 'b.md'";
    tamper(&url, statement).await;
    let error = publish(&place.store, "c", 1, &[("b.md", "B", "B3")]).await.unwrap_err();
    assert!(error.to_string().contains("store verify"), "{error}");
    // The next attempt reads the files again.
    let error = publish(&place.store, "c", 1, &[("b.md", "B", "B3")]).await.unwrap_err();
    assert!(matches!(error, StoreError::Conflict { .. }), "{error}");
    publish(&place.store, "c", 1, &[("b.md", "B2", "B3")]).await.unwrap();
    assert_eq!(texts(&place.store, "c", None).await[1].1, "B3");
}

/// Changes what `statements` say, one after the other, each in a new store, and asserts what is found.
async fn misfits(url: impl AsyncFn() -> String) {
    let statements: [(&'static str, u64, &str); 9] = [
        ("UPDATE ps_revision SET message = 'another' WHERE number = 2", 2, "message"),
        ("UPDATE ps_revision SET author = 'eve' WHERE number = 1", 1, "author"),
        ("UPDATE ps_revision SET approved_by = '[\"ben\"]' WHERE number = 2", 2, "approvals"),
        ("UPDATE ps_revision SET policy = NULL WHERE number = 3", 3, "policy"),
        ("UPDATE ps_revision SET at = at + 1 WHERE number = 2", 2, "time"),
        ("UPDATE ps_entry SET path = 'c.md' WHERE path = 'b.md'", 2, "its files"),
        ("DELETE FROM ps_entry WHERE since = 3", 3, "its files"),
        ("DELETE FROM ps_revision WHERE number = 2", 2, "missing"),
        ("UPDATE ps_channel SET revision = 2, chained = 2", 2, "serves"),
    ];
    for (statement, revision, reason) in statements {
        let url = url().await;
        let store = Store::create(&url.parse().unwrap()).await.unwrap();
        publish(&store, "c", 0, &[("a.md", "", "A")]).await.unwrap();
        publish(&store, "c", 1, &[("b.md", "", "B")]).await.unwrap();
        publish(&store, "c", 2, &[("a.md", "A", "A3")]).await.unwrap();
        let verified = store.verify().await.unwrap();
        assert_eq!((&verified[0].misfit, verified[0].digest), (&None, store.head(&channel("c")).await.unwrap().digest));
        tamper(&url, statement).await;
        let misfit = store.verify().await.unwrap().remove(0).misfit.unwrap_or_else(|| panic!("{statement}"));
        assert_eq!(misfit.revision, revision, "{statement}: {misfit:?}");
        assert!(misfit.reason.contains(reason), "{statement}: {misfit:?}");
    }
}

// req: S-309
#[tokio::test(flavor = "multi_thread")]
async fn files_of_a_store_are_private() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("team.db");
    let store = Store::create(&format!("sqlite:{}", path.display()).parse().unwrap()).await.unwrap();
    publish(&store, "c", 0, &[("a.md", "", "A")]).await.unwrap();
    let _lock = store.lock_deliveries().await.unwrap();
    let found = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap());
    let modes: Vec<(String, u32)> = found
        .map(|entry| (entry.file_name().into_string().unwrap(), entry.metadata().unwrap().permissions().mode() & 0o777))
        .collect();
    assert!(modes.len() >= 4 && modes.iter().all(|(_, mode)| *mode == 0o600), "{modes:?}");
}

// req: S-308
#[tokio::test(flavor = "multi_thread")]
async fn changed_history_is_found_on_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let number = std::sync::atomic::AtomicUsize::new(0);
    misfits(async || {
        let number = number.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        format!("sqlite:{}", folder.path().join(format!("{number}.db")).display())
    })
    .await;
}

// req: S-308
#[tokio::test(flavor = "multi_thread")]
async fn changed_history_is_found_on_postgres() {
    misfits(async || Postgres::shared().database()).await;
}

// req: S-308
#[tokio::test(flavor = "multi_thread")]
async fn changed_content_is_found() {
    let place = sqlite::store().await;
    publish(&place.store, "c", 0, &[("a.md", "", "A")]).await.unwrap();
    publish(&place.store, "c", 1, &[("b.md", "", "B")]).await.unwrap();
    tamper(&place.url(), "UPDATE ps_blob SET bytes = x'00' WHERE bytes = x'42'").await;
    let misfit = place.store.verify().await.unwrap().remove(0).misfit.unwrap();
    assert_eq!((misfit.revision, misfit.reason.contains("b.md")), (2, true), "{misfit:?}");
}

/// An earlier release knows nothing of digests, and may publish at the same time as this one.
async fn mixed_releases(url: String) {
    let store = Store::create(&url.parse().unwrap()).await.unwrap();
    let name = channel("c");
    publish(&store, "c", 0, &[("a.md", "", "A")]).await.unwrap();
    publish(&store, "c", 1, &[("a.md", "A", "A2")]).await.unwrap();
    let before = store.head(&name).await.unwrap();
    tamper(&url, "UPDATE ps_revision SET digest = NULL, parent = NULL, tree = NULL; UPDATE ps_channel SET chained = 1")
        .await;
    assert_eq!(store.head(&name).await.unwrap().digest, None);
    assert!(store.delta(&name, Some(&before)).await.unwrap().is_complete, "it may be another revision");
    publish(&store, "c", 2, &[("a.md", "A2", "A3")]).await.unwrap();
    // The history has the same digests as if it had had them from the beginning.
    assert_eq!(store.head_at(&name, 2).await.unwrap(), before);
    assert_eq!(store.verify().await.unwrap()[0].misfit, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn revisions_of_earlier_releases_get_their_digests_on_sqlite() {
    let place = sqlite::store().await;
    mixed_releases(place.url()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn revisions_of_earlier_releases_get_their_digests_on_postgres() {
    mixed_releases(Postgres::shared().database()).await;
}

/// Publishes larger and larger trees until it fails, and prints the error, if another test starts it.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "started by other tests"]
async fn growing() {
    let url = std::env::var(STORE).unwrap();
    let store = Store::open(&url.parse().unwrap()).await.unwrap();
    for number in 0..100 {
        let (path, text) = (format!("{number}.txt"), format!("{number}").repeat(100_000));
        match publish(&store, "big", 0, &[(&path, "", &text)]).await {
            Ok(_) => {}
            Err(StoreError::Full { reason, .. }) => return println!("\nfull: {reason}"),
            Err(StoreError::Database { reason, .. }) => return println!("\nrefused: {reason}"),
            Err(error) => panic!("{error}"),
        }
    }
}

/// Starts `growing` with a shell command in front of it, and returns what it prints.
fn grow(url: &str, before: &str) -> String {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("{before} \"$@\""), "sh"]).arg(std::env::current_exe().unwrap());
    let output =
        shell.args(["--exact", "refusals::growing", "--ignored", "--nocapture"]).env(STORE, url).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

async fn assert_usable(store: &Store) {
    let revision = store.head(&channel("c")).await.unwrap().revision;
    publish(store, "c", revision, &[("later.md", "", "L")]).await.unwrap();
    for info in store.channels().await.unwrap() {
        let head = info.head.revision;
        assert_eq!(store.tree(&info.name, None).await.unwrap().0.revision, head);
        let history = store.history(&info.name, &promptshelf_store::HistoryQuery::default()).await.unwrap();
        assert_eq!(history.len() as u64, head);
    }
}

// req: S-84
// req: S-272
#[tokio::test(flavor = "multi_thread")]
async fn full_disk_leaves_the_store_as_it_was() {
    let place = sqlite::store().await;
    publish(&place.store, "c", 0, &[("a.md", "", "A")]).await.unwrap();
    // Files end at 4 MiB, as they would on a full disk; the signal for it is ignored.
    let printed = grow(&place.url(), "trap '' XFSZ; ulimit -f 8192; exec");
    assert!(printed.contains("full: disk I/O error"), "{printed}");
    assert_usable(&place.store).await;
}

/// A file system that is read-only from now on; `None` if this user cannot make one.
struct ReadOnly(tempfile::TempDir);

impl ReadOnly {
    fn with(file: &Path) -> Option<ReadOnly> {
        let place = ReadOnly(tempfile::tempdir().unwrap());
        let mount = |options: &[&str]| {
            let mut command = Command::new("mount");
            command.args(options).arg(place.0.path()).output().is_ok_and(|output| output.status.success())
        };
        if !mount(&["-t", "tmpfs", "tmpfs"]) {
            return None;
        }
        fs::copy(file, place.0.path().join("team.db")).unwrap();
        mount(&["-o", "remount,ro"]).then_some(place)
    }
}

impl Drop for ReadOnly {
    fn drop(&mut self) {
        Command::new("umount").arg(self.0.path()).output().ok();
    }
}

// req: S-272
#[tokio::test(flavor = "multi_thread")]
async fn store_on_a_read_only_medium_can_be_read() {
    let place = sqlite::store().await;
    publish(&place.store, "c", 0, &[("a.md", "", "A")]).await.unwrap();
    let url = place.url();
    place.store.close().await;
    let Some(medium) = ReadOnly::with(Path::new(url.trim_start_matches("sqlite:"))) else {
        return println!("not tested: this user cannot mount file systems");
    };
    let url = format!("sqlite:{}", medium.0.path().join("team.db").display());
    let store = Store::open(&url.parse().unwrap()).await.unwrap();
    assert_eq!(texts(&store, "c", None).await, [("a.md".to_owned(), "A".to_owned())]);
    let error = publish(&store, "c", 1, &[("b.md", "", "B")]).await.unwrap_err();
    assert!(matches!(error, StoreError::Database { .. }), "{error}");
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn read_only_file_is_reported() {
    let place = sqlite::store().await;
    publish(&place.store, "c", 0, &[("a.md", "", "A")]).await.unwrap();
    let url = place.url();
    let file = Path::new(url.trim_start_matches("sqlite:"));
    let mode = |mode| fs::set_permissions(file, fs::Permissions::from_mode(mode)).unwrap();
    mode(0o444);
    // Without this capability, root follows the permissions too.
    let is_root = fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0);
    let before = if is_root { "exec setpriv --bounding-set=-dac_override --inh-caps=-dac_override" } else { "exec" };
    let printed = grow(&url, before);
    assert!(printed.contains("refused: ") && printed.contains("readonly"), "{printed}");
    mode(0o644);
    assert_usable(&place.store).await;
}

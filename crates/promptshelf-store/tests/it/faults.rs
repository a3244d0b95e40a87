//! Crashes, lost connections and killed publishers: a channel shows the old or the new revision, whole.

use std::{
    io::{BufRead as _, BufReader},
    process::{Child, Command, Stdio},
    time::Duration,
};

use promptshelf_store::{HistoryQuery, Store, StoreError, StoreUrl};
use promptshelf_testkit::{cuttable::CuttableProxy, database::Postgres, in_time, pooler::Pooler, tcp_proxy::TcpProxy};

use crate::{
    postgres,
    sample::{channel, publish, texts},
    sqlite,
};

/// The URL and the name of the channel's writer, for a process that publishes.
const STORE: &str = "STORE_OF_THE_TEST";
const WRITER: &str = "WRITER_OF_THE_TEST";

/// Replaces both files with the number of the next revision, and returns it.
async fn advance(store: &Store) -> Result<u64, StoreError> {
    let present = match store.head(&channel("c")).await {
        Err(StoreError::NotFound { .. }) => 0,
        head => head?.revision,
    };
    let text = |revision: u64| if revision == 0 { String::new() } else { revision.to_string() };
    let (old, new) = (text(present), text(present + 1));
    publish(store, "c", present, &[("a.md", &old, &new), ("b.md", &old, &new)]).await?;
    Ok(present + 1)
}

/// Asserts that every revision has two equal files with its number, and returns the last one.
async fn assert_whole(store: &Store) -> u64 {
    let query = HistoryQuery { limit: 1_000, ..HistoryQuery::default() };
    let history = store.history(&channel("c"), &query).await.unwrap();
    let head = store.head(&channel("c")).await.unwrap().revision;
    let numbers: Vec<u64> = history.iter().rev().map(|revision| revision.number).collect();
    assert_eq!(numbers, (1..=head).collect::<Vec<_>>());
    // Those before the last few were checked after the rounds before.
    for number in numbers.into_iter().rev().take(3) {
        let text = |path: &str| (path.to_owned(), number.to_string());
        assert_eq!(texts(store, "c", Some(number)).await, [text("a.md"), text("b.md")]);
        let served = store.served(&channel("c"), number).await.unwrap();
        assert!(served.iter().all(|prompt| prompt.since == number) && served.len() == 2, "{served:?}");
    }
    head
}

/// Repeats an operation until the database is back.
async fn until_it_works<T>(mut operation: impl AsyncFnMut() -> Result<T, StoreError>) -> T {
    in_time("the database is back", async {
        loop {
            match operation().await {
                Ok(value) => return value,
                Err(StoreError::Unreachable { .. }) => tokio::time::sleep(Duration::from_millis(50)).await,
                Err(error) => panic!("{error}"),
            }
        }
    })
    .await
}

fn port_of(address: std::net::SocketAddr) -> String {
    let url = Postgres::shared().database();
    url.replace(&format!(":{}/", Postgres::shared().port()), &format!(":{}/", address.port()))
}

// req: S-84
#[tokio::test(flavor = "multi_thread")]
async fn killed_database_shows_the_old_or_the_new_revision() {
    let server = Postgres::start();
    let url: StoreUrl = server.database().parse().unwrap();
    let store = Store::create(&url).await.unwrap();
    for round in 1..=4 {
        let (sender, mut published) = tokio::sync::mpsc::unbounded_channel();
        let publisher = tokio::spawn({
            let store = store.clone();
            async move {
                loop {
                    match advance(&store).await {
                        Ok(revision) => sender.send(revision).unwrap(),
                        Err(error) => return error,
                    }
                }
            }
        });
        let mut acknowledged = 0;
        for _ in 0..round {
            acknowledged = in_time("a publish", published.recv()).await.unwrap();
        }
        server.kill();
        let error = in_time("the publisher notices", publisher).await.unwrap();
        assert!(matches!(error, StoreError::Unreachable { .. }), "{error}");
        while let Ok(revision) = published.try_recv() {
            acknowledged = revision;
        }
        server.restart();
        let head = until_it_works(async || store.head(&channel("c")).await).await.revision;
        assert!(head == acknowledged || head == acknowledged + 1, "{acknowledged} was reported, and {head} stands");
        assert_eq!(assert_whole(&store).await, head);
    }
}

// req: S-85
#[tokio::test(flavor = "multi_thread")]
async fn stopped_database_is_reported_in_time() {
    let server = Postgres::start();
    let store = Store::create(&server.database().parse().unwrap()).await.unwrap();
    advance(&store).await.unwrap();
    server.stop();
    let error = in_time("a publish", advance(&store)).await.unwrap_err();
    assert!(matches!(error, StoreError::Unreachable { .. }), "{error}");
    let error = in_time("opening", Store::open(store.url())).await.unwrap_err();
    assert!(matches!(error, StoreError::Unreachable { .. }), "{error}");
    server.proceed();
    let head = until_it_works(async || advance(&store).await).await;
    assert_eq!(assert_whole(&store).await, head);
}

// req: S-85
#[tokio::test(flavor = "multi_thread")]
async fn silently_lost_connection_is_noticed() {
    let proxy = CuttableProxy::to(([127, 0, 0, 1], Postgres::shared().port()).into());
    let store = Store::create(&port_of(proxy.address()).parse().unwrap()).await.unwrap();
    advance(&store).await.unwrap();
    proxy.cut();
    let error = in_time("a publish", advance(&store)).await.unwrap_err();
    assert!(matches!(error, StoreError::Unreachable { .. }), "{error}");
    proxy.heal();
    let head = until_it_works(async || advance(&store).await).await;
    assert_eq!(assert_whole(&store).await, head);
}

// req: S-84
#[tokio::test(flavor = "multi_thread")]
async fn connection_cut_at_each_message_leaves_a_whole_revision() {
    let proxy = TcpProxy::start(Postgres::shared().port()).await;
    let through = port_of(proxy.address);
    let direct = through.replace(&proxy.address.port().to_string(), &Postgres::shared().port().to_string());
    let direct = Store::create(&direct.parse().unwrap()).await.unwrap();
    advance(&direct).await.unwrap();
    let store = Store::open(&through.parse().unwrap()).await.unwrap();
    let mut cuts = 0;
    for messages in 0.. {
        let before = direct.head(&channel("c")).await.unwrap().revision;
        proxy.cut_after(messages);
        let result = in_time("a publish", advance(&store)).await;
        proxy.mend();
        let after = assert_whole(&direct).await;
        match result {
            Ok(revision) => {
                assert_eq!((revision, after), (before + 1, before + 1));
                break;
            }
            Err(StoreError::Unreachable { .. }) => assert!(after == before || after == before + 1),
            Err(error) => panic!("{error}"),
        }
        cuts += 1;
    }
    assert!(cuts > 10, "{cuts} cuts");
}

#[tokio::test(flavor = "multi_thread")]
async fn held_row_delays_publishes_and_no_reads() {
    let url = Postgres::shared().database();
    let store = Store::create(&url.parse().unwrap()).await.unwrap();
    advance(&store).await.unwrap();
    let mut holder = <sqlx::PgConnection as sqlx::Connection>::connect(&url).await.unwrap();
    sqlx::raw_sql("BEGIN; SELECT id FROM ps_channel FOR UPDATE").execute(&mut holder).await.unwrap();
    let error = in_time("a publish", advance(&store)).await.unwrap_err();
    assert!(matches!(error, StoreError::Unreachable { .. }), "{error}");
    assert!(error.to_string().contains("holds a lock"), "{error}");
    assert_eq!(assert_whole(&store).await, 1);
    sqlx::raw_sql("ROLLBACK").execute(&mut holder).await.unwrap();
    assert_eq!(advance(&store).await.unwrap(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn store_works_behind_a_pooler_in_transaction_mode() {
    let pooler = Pooler::start(Postgres::shared());
    let url: StoreUrl = port_of(pooler.address()).parse().unwrap();
    let store = Store::create(&url).await.unwrap();
    // More publishers than the pooler has connections, each with a channel and connections of its own.
    let mut tasks = Vec::new();
    for number in 0..6 {
        let url = url.clone();
        tasks.push(tokio::spawn(async move {
            let store = Store::open(&url).await.unwrap();
            for (revision, text) in ["1", "2", "3"].into_iter().enumerate() {
                let before = if revision == 0 { String::new() } else { revision.to_string() };
                publish(&store, &format!("c{number}"), 0, &[("a.md", &before, text)]).await.unwrap();
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    for number in 0..6 {
        assert_eq!(texts(&store, &format!("c{number}"), None).await, [("a.md".to_owned(), "3".to_owned())]);
    }
    assert_eq!(store.gc().await.unwrap().0, 0);
}

/// Publishes until it is killed, if another test starts it; with a writer's name, 10 files.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "started by other tests"]
async fn publisher() {
    let url = std::env::var(STORE).unwrap();
    let store = Store::open(&url.parse().unwrap()).await.unwrap();
    if let Ok(writer) = std::env::var(WRITER) {
        for number in 0..10 {
            let path = format!("{writer}-{number}.md");
            publish(&store, "c", 0, &[(&path, "", "text")]).await.unwrap();
        }
        return;
    }
    while let Ok(revision) = advance(&store).await {
        println!("\npublished {revision}");
    }
}

fn start_publisher(url: &str, writer: Option<&str>) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "faults::publisher", "--ignored", "--nocapture"]).env(STORE, url);
    if let Some(writer) = writer {
        command.env(WRITER, writer);
    }
    command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
}

/// Kills publishers at different moments, and checks the channel after each.
async fn kill_publishers(url: String) {
    let store = Store::create(&url.parse().unwrap()).await.unwrap();
    for round in 1..=3 {
        let mut child = start_publisher(&url, None);
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let mut published = lines.filter_map(|line| line.strip_prefix("published ")?.parse::<u64>().ok());
        let mut acknowledged = 0;
        for _ in 0..round {
            acknowledged = published.next().expect("the publisher publishes");
        }
        child.kill().unwrap();
        child.wait().unwrap();
        acknowledged = published.last().unwrap_or(acknowledged);
        // Behind the killed transaction, if it still runs: the channel's row is locked until its end.
        let policy = promptshelf_store::Policy::default();
        let any = promptshelf_store::PolicyGuard::Any;
        store.set_policy(&channel("c"), &policy, &any, "", &crate::sample::actor("root")).await.unwrap();
        let head = assert_whole(&store).await;
        assert!(head == acknowledged || head == acknowledged + 1, "{acknowledged} was reported, and {head} stands");
    }
    in_time("a publish", advance(&store)).await.unwrap();
}

// req: S-84
#[tokio::test(flavor = "multi_thread")]
async fn killed_publisher_leaves_a_whole_revision_on_sqlite() {
    let place = sqlite::store().await;
    kill_publishers(place.url()).await;
}

// req: S-84
#[tokio::test(flavor = "multi_thread")]
async fn killed_publisher_leaves_a_whole_revision_on_postgres() {
    kill_publishers(Postgres::shared().database()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_processes_share_one_sqlite_file() {
    let place = sqlite::store().await;
    let children = ["one", "two"].map(|writer| start_publisher(&place.url(), Some(writer)));
    for child in children {
        let output = tokio::task::spawn_blocking(move || child.wait_with_output()).await.unwrap().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
    let history = place.store.history(&channel("c"), &HistoryQuery::default()).await.unwrap();
    let numbers: Vec<u64> = history.iter().rev().map(|revision| revision.number).collect();
    assert_eq!(numbers, (1..=20).collect::<Vec<_>>());
    assert_eq!(texts(&place.store, "c", None).await.len(), 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn hints_come_after_publishes_and_reconnects() {
    let url = postgres::url();
    let store = Store::create(&url).await.unwrap();
    let mut hints = store.hints(&channel("c")).await;
    in_time("the first connection", hints.next()).await;
    let other = Store::open(&url).await.unwrap();
    publish(&other, "elsewhere", 0, &[("a.md", "", "A")]).await.unwrap();
    let quiet = tokio::time::timeout(Duration::from_millis(100), hints.next()).await;
    assert!(quiet.is_err(), "a hint about another channel");
    advance(&other).await.unwrap();
    in_time("a hint", hints.next()).await;
    let database = url.to_string().rsplit('/').next().unwrap().to_owned();
    let listeners = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                     WHERE datname = current_database() AND query ILIKE 'LISTEN%'";
    assert_eq!(Postgres::shared().sql(&database, listeners), "t");
    in_time("the next connection", hints.next()).await;
    advance(&other).await.unwrap();
    in_time("a hint", hints.next()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_sends_no_hints() {
    let place = sqlite::store().await;
    let mut none = place.store.hints(&channel("c")).await;
    advance(&place.store).await.unwrap();
    assert!(tokio::time::timeout(Duration::from_millis(100), none.next()).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn copy_of_the_sqlite_file_alone_is_complete() {
    let place = sqlite::store().await;
    publish(&place.store, "c", 0, &[("a.md", "", "A")]).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.db");
    // The store is still open, as in a program that ends without closing it.
    std::fs::copy(place.url().trim_start_matches("sqlite:"), &copy).unwrap();
    let copied = Store::open(&format!("sqlite:{}", copy.display()).parse().unwrap()).await.unwrap();
    assert_eq!(texts(&copied, "c", None).await, [("a.md".to_owned(), "A".to_owned())]);
}

//! Many changes at once, and folders that are created, replaced and deleted.

use std::fs;

use crate::library::Library;

fn prompt(body: &str) -> String {
    format!("---\ndescription: d\n---\n{body}")
}

#[tokio::test(flavor = "multi_thread")]
async fn thousand_changes_cause_few_loads() {
    let library = Library::of(&[("a.md", &prompt("first"))]);
    let mut watched = library.watch().await;
    let before = watched.loads();
    for index in 0..1_000 {
        library.write(&format!("f{}/p{index}.md", index % 20), prompt("one of many"));
    }
    library.write("z.md", prompt("the last"));
    watched.until("all are served", |catalog, _| catalog.prompts().len() == 1_002).await;
    let loads = watched.loads() - before;
    // On a busy machine the writer is interrupted again and again, which causes more loads than the usual few.
    assert!(loads < 250, "{loads} loads for a thousand files");
    assert_eq!(watched.mistakes(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn file_in_a_new_folder_is_served() {
    let library = Library::of(&[("a.md", &prompt("first"))]);
    let mut watched = library.watch().await;
    for round in 0..10 {
        library.write(&format!("n{round}/x/y/z.md"), prompt("deep"));
        watched.until_text(&format!("n{round}-x-y-z"), "deep").await;
        library.write(&format!("n{round}/x/y/z.md"), prompt("deeper"));
        watched.until_text(&format!("n{round}-x-y-z"), "deeper").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn renamed_folder_renames_its_prompts() {
    let library = Library::of(&[("old/a.md", &prompt("first"))]);
    let mut watched = library.watch().await;
    fs::rename(library.path("old"), library.path("new")).expect("renamed");
    watched
        .until("the new name", |catalog, _| catalog.find("new-a").is_some() && catalog.find("old-a").is_none())
        .await;
    library.write("new/a.md", prompt("second"));
    watched.until_text("new-a", "second").await;
    fs::remove_dir_all(library.path("new")).expect("removed");
    watched.until("nothing is left", |catalog, _| catalog.prompts().is_empty()).await;
    library.write("new/a.md", prompt("third"));
    watched.until_text("new-a", "third").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn root_that_was_deleted_and_created_again_is_watched() {
    let library = Library::of(&[("a.md", &prompt("first"))]);
    let mut watched = library.watch().await;
    for round in 0..3 {
        fs::remove_dir_all(library.root()).expect("removed");
        watched.until("the failure is reported", |_, report| report.failure.is_some()).await;
        let text = format!("round {round}");
        library.write("b.md", prompt(&text));
        watched.until_text("b", &text).await;
        library.write("b.md", prompt("again"));
        watched.until_text("b", "again").await;
        assert_eq!(watched.names(), ["b"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_root_keeps_the_last_good_catalog() {
    let library = Library::of(&[("a.md", &prompt("first"))]);
    let mut watched = library.watch().await;
    let away = library.outside().join("away");
    fs::rename(library.root(), &away).expect("renamed");
    watched.until("the failure is reported", |_, report| report.failure.is_some()).await;
    assert_eq!(watched.names(), ["a"]);
    assert!(watched.loader.reload().await.expect_err("still gone").is_not_found());
    fs::rename(&away, library.root()).expect("renamed");
    watched.until("it is well again", |_, report| report.failure.is_none()).await;
    library.write("a.md", prompt("second"));
    watched.until_text("a", "second").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn replaced_root_is_watched() {
    let library = Library::of(&[("a.md", &prompt("first"))]);
    let mut watched = library.watch().await;
    let (next, old) = (library.outside().join("next"), library.outside().join("old"));
    fs::create_dir(&next).expect("folder");
    fs::write(next.join("a.md"), prompt("next")).expect("file");
    fs::rename(library.root(), &old).expect("renamed");
    fs::rename(&next, library.root()).expect("renamed");
    watched.until_text("a", "next").await;
    library.write("a.md", prompt("after"));
    watched.until_text("a", "after").await;
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn root_behind_a_link_is_watched_when_the_link_changes() {
    use std::os::unix::fs::symlink;
    let library = Library::new();
    for version in ["v1", "v2"] {
        let folder = library.outside().join(version);
        fs::create_dir(&folder).expect("folder");
        fs::write(folder.join("a.md"), prompt(version)).expect("file");
    }
    let current = library.outside().join("current");
    symlink("v1", &current).expect("link");
    let source = promptshelf_source::Files::folder(&current).poll_interval(None);
    let mut watched = crate::library::WatchedLibrary::of(source).await;
    watched.until_text("a", "v1").await;
    symlink("v2", library.outside().join("swap")).expect("link");
    fs::rename(library.outside().join("swap"), &current).expect("renamed");
    watched.until_text("a", "v2").await;
    fs::write(library.outside().join("v2/a.md"), prompt("edited")).expect("file");
    watched.until_text("a", "edited").await;
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn files_replaced_through_a_hidden_link_are_served() {
    use std::os::unix::fs::symlink;
    let library = Library::of(&[("..v1/a.md", &prompt("v1")), ("..v2/a.md", &prompt("v2"))]);
    symlink("..v1", library.path("..data")).expect("link");
    symlink("..data/a.md", library.path("a.md")).expect("link");
    let mut watched = library.watch().await;
    watched.until_text("a", "v1").await;
    symlink("..v2", library.path("..data_tmp")).expect("link");
    fs::rename(library.path("..data_tmp"), library.path("..data")).expect("renamed");
    watched.until_text("a", "v2").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_reloads_share_one_load() {
    let library = Library::of(&[("a.md", &prompt("first"))]);
    let loader = promptshelf_source::Loader::open(vec![Box::new(library.source())]).expect("loads");
    let calls: Vec<_> = (0..50)
        .map(|_| {
            let loader = loader.clone();
            tokio::spawn(async move { loader.reload().await })
        })
        .collect();
    for call in calls {
        call.await.expect("no panic").expect("loads");
    }
    let loads = loader.reports().borrow().loads;
    assert!(loads < 51, "{loads} loads for fifty calls");
}

#[tokio::test(flavor = "multi_thread")]
async fn change_is_reported_once() {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };
    let library = Library::of(&[("a.md", &prompt("first"))]);
    let mut watched = library.watch().await;
    let told = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&told);
    watched.loader.handle().observe(move |change| {
        counter.fetch_add(usize::from(change.prompts), Ordering::SeqCst);
    });
    library.write("b.md", prompt("second"));
    watched.until_text("b", "second").await;
    library.write("a.md", prompt("what the list shows is the same"));
    watched.until_text("a", "the same").await;
    assert_eq!(told.load(Ordering::SeqCst), 1);
}

//! Many changes at once, and folders that come and go.

use std::fs;

use crate::library::Library;

fn prompt(body: &str) -> String {
    format!("---\ndescription: d\n---\n{body}")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_checkout_of_a_thousand_files_is_few_loads() {
    let library = Library::of(&[("a.md", &prompt("first"))]);
    let mut followed = library.follow().await;
    let before = followed.loads();
    for index in 0..1_000 {
        library.write(&format!("f{}/p{index}.md", index % 20), prompt("one of many"));
    }
    library.write("z.md", prompt("the last"));
    followed.until("all are served", |catalog, _| catalog.prompts().len() == 1_002).await;
    let loads = followed.loads() - before;
    // A writer that a busy machine stops again and again makes more of them than the usual handful.
    assert!(loads < 250, "{loads} loads for a thousand files");
    assert_eq!(followed.faults(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_in_folders_made_a_moment_before_is_served() {
    let library = Library::of(&[("a.md", &prompt("first"))]);
    let mut followed = library.follow().await;
    for round in 0..10 {
        library.write(&format!("n{round}/x/y/z.md"), prompt("deep"));
        followed.until_says(&format!("n{round}-x-y-z"), "deep").await;
        library.write(&format!("n{round}/x/y/z.md"), prompt("deeper"));
        followed.until_says(&format!("n{round}-x-y-z"), "deeper").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renamed_folder_takes_its_prompts_along() {
    let library = Library::of(&[("old/a.md", &prompt("first"))]);
    let mut followed = library.follow().await;
    fs::rename(library.path("old"), library.path("new")).expect("renamed");
    followed
        .until("the new name", |catalog, _| catalog.find("new-a").is_some() && catalog.find("old-a").is_none())
        .await;
    library.write("new/a.md", prompt("second"));
    followed.until_says("new-a", "second").await;
    fs::remove_dir_all(library.path("new")).expect("removed");
    followed.until("nothing is left", |catalog, _| catalog.prompts().is_empty()).await;
    library.write("new/a.md", prompt("third"));
    followed.until_says("new-a", "third").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_root_deleted_and_made_again_is_followed() {
    let library = Library::of(&[("a.md", &prompt("first"))]);
    let mut followed = library.follow().await;
    for round in 0..3 {
        fs::remove_dir_all(library.root()).expect("removed");
        followed.until("the failure is reported", |_, report| report.failure.is_some()).await;
        let text = format!("round {round}");
        library.write("b.md", prompt(&text));
        followed.until_says("b", &text).await;
        library.write("b.md", prompt("again"));
        followed.until_says("b", "again").await;
        assert_eq!(followed.names(), ["b"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_root_that_is_gone_leaves_the_last_good_catalog() {
    let library = Library::of(&[("a.md", &prompt("first"))]);
    let mut followed = library.follow().await;
    let away = library.outside().join("away");
    fs::rename(library.root(), &away).expect("renamed");
    followed.until("the failure is reported", |_, report| report.failure.is_some()).await;
    assert_eq!(followed.names(), ["a"]);
    assert!(followed.loader.reload().await.expect_err("still gone").is_not_found());
    fs::rename(&away, library.root()).expect("renamed");
    followed.until("it is well again", |_, report| report.failure.is_none()).await;
    library.write("a.md", prompt("second"));
    followed.until_says("a", "second").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_root_exchanged_for_another_is_followed() {
    let library = Library::of(&[("a.md", &prompt("first"))]);
    let mut followed = library.follow().await;
    let (next, old) = (library.outside().join("next"), library.outside().join("old"));
    fs::create_dir(&next).expect("folder");
    fs::write(next.join("a.md"), prompt("next")).expect("file");
    fs::rename(library.root(), &old).expect("renamed");
    fs::rename(&next, library.root()).expect("renamed");
    followed.until_says("a", "next").await;
    library.write("a.md", prompt("after"));
    followed.until_says("a", "after").await;
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn a_root_behind_a_link_is_followed_when_the_link_moves() {
    use std::os::unix::fs::symlink;
    let library = Library::new();
    for version in ["v1", "v2"] {
        let folder = library.outside().join(version);
        fs::create_dir(&folder).expect("folder");
        fs::write(folder.join("a.md"), prompt(version)).expect("file");
    }
    let current = library.outside().join("current");
    symlink("v1", &current).expect("link");
    let source = promptshelf_source::Directory::new(&current).poll_interval(None);
    let mut followed = crate::library::Followed::of(source).await;
    followed.until_says("a", "v1").await;
    symlink("v2", library.outside().join("swap")).expect("link");
    fs::rename(library.outside().join("swap"), &current).expect("renamed");
    followed.until_says("a", "v2").await;
    fs::write(library.outside().join("v2/a.md"), prompt("edited")).expect("file");
    followed.until_says("a", "edited").await;
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn a_set_of_files_exchanged_by_a_hidden_link_is_served() {
    use std::os::unix::fs::symlink;
    let library = Library::of(&[("..v1/a.md", &prompt("v1")), ("..v2/a.md", &prompt("v2"))]);
    symlink("..v1", library.path("..data")).expect("link");
    symlink("..data/a.md", library.path("a.md")).expect("link");
    let mut followed = library.follow().await;
    followed.until_says("a", "v1").await;
    symlink("..v2", library.path("..data_tmp")).expect("link");
    fs::rename(library.path("..data_tmp"), library.path("..data")).expect("renamed");
    followed.until_says("a", "v2").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_to_reload_while_a_load_runs_share_the_next_one() {
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
async fn a_change_is_told_once() {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };
    let library = Library::of(&[("a.md", &prompt("first"))]);
    let mut followed = library.follow().await;
    let told = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&told);
    followed.loader.handle().observe(move |change| {
        counter.fetch_add(usize::from(change.prompts), Ordering::SeqCst);
    });
    library.write("b.md", prompt("second"));
    followed.until_says("b", "second").await;
    library.write("a.md", prompt("what the list shows is the same"));
    followed.until_says("a", "the same").await;
    assert_eq!(told.load(Ordering::SeqCst), 1);
}

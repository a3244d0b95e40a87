//! The ways in which editors save files, and their effect on a prompt.

use std::{fs, io::Write as _};

use promptshelf_core::Diagnostic;
use promptshelf_source::SourceError;

use crate::library::{Library, WatchedLibrary};

fn library() -> Library {
    Library::of(&[("a.md", "---\ndescription: d\n---\nfirst"), ("b.md", "---\ndescription: d\n---\nother")])
}

fn text(body: &str) -> String {
    format!("---\ndescription: d\n---\n{body}")
}

#[tokio::test(flavor = "multi_thread")]
async fn plain_write_is_served() {
    let library = library();
    let mut watched = library.watch().await;
    for body in ["second", "third", "fourth"] {
        library.write("a.md", text(body));
        watched.until_text("a", body).await;
    }
    assert_eq!(watched.mistakes(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn rename_over_a_file_is_served() {
    let library = library();
    let mut watched = library.watch().await;
    for body in ["second", "third"] {
        library.write(".a.md.swp", "x");
        library.write("a.md.tmp", text(body));
        fs::rename(library.path("a.md.tmp"), library.path("a.md")).expect("renamed");
        watched.until_text("a", body).await;
    }
    assert_eq!(watched.names(), ["a", "b"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn backup_and_new_file_is_served() {
    let library = library();
    let mut watched = library.watch().await;
    fs::rename(library.path("a.md"), library.path("a.md~")).expect("renamed");
    library.write("a.md", text("second"));
    watched.until_text("a", "second").await;
    assert_eq!(watched.names(), ["a", "b"]);
}

// req: R-14
#[tokio::test(flavor = "multi_thread")]
async fn truncated_file_keeps_the_last_good_prompt() {
    let library = library();
    let mut watched = library.watch().await;
    let mut file = fs::File::create(library.path("a.md")).expect("truncated");
    watched.until("the empty file is reported", |_, report| report.diagnostics.iter().any(Diagnostic::is_error)).await;
    assert_eq!(watched.names(), ["a", "b"]);
    watched.until_text("a", "first").await;

    file.write_all(b"---\ndescription: d").expect("written");
    file.flush().expect("flushed");
    watched
        .until("the half file is reported", |_, report| {
            report.diagnostics.iter().any(|found| found.message.contains("not closed"))
        })
        .await;
    watched.until_text("a", "first").await;

    file.write_all(b"\n---\nsecond").expect("written");
    drop(file);
    watched.until_text("a", "second").await;
    assert_eq!(watched.mistakes(), [""; 0]);
}

// req: R-14
#[tokio::test(flavor = "multi_thread")]
async fn broken_edit_keeps_the_last_good_prompt() {
    let library = library();
    let mut watched = library.watch().await;
    for broken in [
        "---\ntitle: [\n---\nx",
        "---\narguments: 5\n---\nx",
        "---\ndescription: d\n---\n{{ nobody }}",
        "---\ndescription: d\n---\n{% if %}",
    ] {
        let loads = watched.loads();
        library.write("a.md", broken);
        watched
            .until("it is reported", |_, report| {
                report.loads > loads && report.diagnostics.iter().any(Diagnostic::is_error)
            })
            .await;
        assert_eq!(watched.names(), ["a", "b"]);
        watched.until_text("a", "first").await;
    }
    library.write("a.md", b"\xff");
    watched
        .until("it is reported", |_, report| report.diagnostics.iter().any(|found| found.message.contains("UTF-8")))
        .await;
    watched.until_text("a", "first").await;
    library.remove("a.md");
    watched.until("it is gone", |catalog, _| catalog.find("a").is_none()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn changed_partial_and_attachment_reach_the_prompt() {
    let library = library();
    library.write("_shared/style.md", "be brief");
    library.write("notes.txt", "old notes");
    library.write("c.md", text("{% include \"_shared/style.md\" %}{{ attach(\"notes.txt\") }}"));
    let mut watched = library.watch().await;
    watched.until_text("c", "be brief").await;
    watched.until_text("c", "old notes").await;
    library.write("_shared/style.md", "be kind");
    watched.until_text("c", "be kind").await;
    library.write("notes.txt", "new notes");
    watched.until_text("c", "new notes").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn temporary_files_cause_no_reload() {
    let library = library();
    let mut watched = library.watch().await;
    let loads = watched.loads();
    for path in [".a.md.swp", "a.md~", "4913", "#a.md#", "x.tmp"] {
        library.write(path, "x");
        library.remove(path);
    }
    // Events arrive in order, so the earlier ones were ignored when this one is handled.
    library.write("a.md", text("second"));
    watched.until_text("a", "second").await;
    assert!(watched.loads() <= loads + 2, "{} loads", watched.loads() - loads);
}

#[tokio::test(flavor = "multi_thread")]
async fn polling_alone_notices_changes() {
    let library = library();
    let source = library.source().native_events(false).poll_interval(Some(std::time::Duration::from_millis(10)));
    let mut watched = WatchedLibrary::of(source).await;
    library.write("a.md", text("second, and longer"));
    watched.until_text("a", "second").await;
    fs::rename(library.root(), library.outside().join("away")).expect("renamed");
    watched
        .until("the failure is reported", |_, report| report.failure.as_ref().is_some_and(SourceError::is_not_found))
        .await;
    assert_eq!(watched.names(), ["a", "b"], "the last good catalog stays");
    library.write("c.md", text("third"));
    watched.until_text("c", "third").await;
    assert_eq!(watched.names(), ["c"]);
}

//! How editors save, and how a prompt lives through it.

use std::{fs, io::Write as _};

use promptshelf_core::Diagnostic;
use promptshelf_source::SourceError;

use crate::library::{Followed, Library};

fn library() -> Library {
    Library::of(&[("a.md", "---\ndescription: d\n---\nfirst"), ("b.md", "---\ndescription: d\n---\nother")])
}

fn text(body: &str) -> String {
    format!("---\ndescription: d\n---\n{body}")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plain_write_is_served() {
    let library = library();
    let mut followed = library.follow().await;
    for body in ["second", "third", "fourth"] {
        library.write("a.md", text(body));
        followed.until_says("a", body).await;
    }
    assert_eq!(followed.faults(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_renamed_over_another_is_served() {
    let library = library();
    let mut followed = library.follow().await;
    for body in ["second", "third"] {
        library.write(".a.md.swp", "x");
        library.write("a.md.tmp", text(body));
        fs::rename(library.path("a.md.tmp"), library.path("a.md")).expect("renamed");
        followed.until_says("a", body).await;
    }
    assert_eq!(followed.names(), ["a", "b"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_file_moved_aside_and_written_anew_is_served() {
    let library = library();
    let mut followed = library.follow().await;
    fs::rename(library.path("a.md"), library.path("a.md~")).expect("renamed");
    library.write("a.md", text("second"));
    followed.until_says("a", "second").await;
    assert_eq!(followed.names(), ["a", "b"]);
}

// req: R-14
#[tokio::test(flavor = "multi_thread")]
async fn a_truncated_file_keeps_the_last_good_prompt_until_it_is_written() {
    let library = library();
    let mut followed = library.follow().await;
    let mut file = fs::File::create(library.path("a.md")).expect("truncated");
    followed.until("the empty file is reported", |_, report| report.diagnostics.iter().any(Diagnostic::is_error)).await;
    assert_eq!(followed.names(), ["a", "b"]);
    followed.until_says("a", "first").await;

    file.write_all(b"---\ndescription: d").expect("written");
    file.flush().expect("flushed");
    followed
        .until("the half file is reported", |_, report| {
            report.diagnostics.iter().any(|found| found.message.contains("not closed"))
        })
        .await;
    followed.until_says("a", "first").await;

    file.write_all(b"\n---\nsecond").expect("written");
    drop(file);
    followed.until_says("a", "second").await;
    assert_eq!(followed.faults(), [""; 0]);
}

// req: R-14
#[tokio::test(flavor = "multi_thread")]
async fn a_broken_edit_keeps_the_last_good_prompt() {
    let library = library();
    let mut followed = library.follow().await;
    for broken in [
        "---\ntitle: [\n---\nx",
        "---\narguments: 5\n---\nx",
        "---\ndescription: d\n---\n{{ nobody }}",
        "---\ndescription: d\n---\n{% if %}",
    ] {
        let loads = followed.loads();
        library.write("a.md", broken);
        followed
            .until("it is reported", |_, report| {
                report.loads > loads && report.diagnostics.iter().any(Diagnostic::is_error)
            })
            .await;
        assert_eq!(followed.names(), ["a", "b"]);
        followed.until_says("a", "first").await;
    }
    library.write("a.md", b"\xff");
    followed
        .until("it is reported", |_, report| report.diagnostics.iter().any(|found| found.message.contains("UTF-8")))
        .await;
    followed.until_says("a", "first").await;
    library.remove("a.md");
    followed.until("it is gone", |catalog, _| catalog.find("a").is_none()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_a_partial_or_an_attachment_reaches_the_prompt() {
    let library = library();
    library.write("_shared/style.md", "be brief");
    library.write("notes.txt", "old notes");
    library.write("c.md", text("{% include \"_shared/style.md\" %}{{ attach(\"notes.txt\") }}"));
    let mut followed = library.follow().await;
    followed.until_says("c", "be brief").await;
    followed.until_says("c", "old notes").await;
    library.write("_shared/style.md", "be kind");
    followed.until_says("c", "be kind").await;
    library.write("notes.txt", "new notes");
    followed.until_says("c", "new notes").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_editors_leave_beside_a_file_is_no_change() {
    let library = library();
    let mut followed = library.follow().await;
    let loads = followed.loads();
    for path in [".a.md.swp", "a.md~", "4913", "#a.md#", "x.tmp"] {
        library.write(path, "x");
        library.remove(path);
    }
    // Events come in order, so these have been passed over when this one is seen.
    library.write("a.md", text("second"));
    followed.until_says("a", "second").await;
    assert!(followed.loads() <= loads + 2, "{} loads", followed.loads() - loads);
}

#[tokio::test(flavor = "multi_thread")]
async fn looking_from_time_to_time_is_enough() {
    let library = library();
    let source = library.source().native_events(false).poll_interval(Some(std::time::Duration::from_millis(10)));
    let mut followed = Followed::of(source).await;
    library.write("a.md", text("second, and longer"));
    followed.until_says("a", "second").await;
    fs::rename(library.root(), library.outside().join("away")).expect("renamed");
    followed
        .until("the failure is reported", |_, report| report.failure.as_ref().is_some_and(SourceError::is_not_found))
        .await;
    assert_eq!(followed.names(), ["a", "b"], "the last good catalog stays");
    library.write("c.md", text("third"));
    followed.until_says("c", "third").await;
    assert_eq!(followed.names(), ["c"]);
}

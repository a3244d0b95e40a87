//! Branches, tags, commits and folders, with and without support for filters.

use std::{sync::Arc, time::Duration};

use promptshelf_git::GitSource;
use promptshelf_source::Loader;
use promptshelf_testkit::git::{Repository, git};

use crate::sample::{Sample, files, loaded, served};

fn texts(all: &[(&str, &str)]) -> Vec<(String, String)> {
    all.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
}

#[tokio::test]
async fn each_kind_of_reference_serves_its_commit() {
    let sample = Sample::new(&[("a.md", "One"), ("team/b.md", "B"), (".github/x.yml", "x")]);
    let first = sample.git(&["rev-parse", "HEAD"]);
    sample.git(&["tag", "--annotate", "--message=v1", "v1"]);
    sample.push("refs/tags/v1");
    let second = sample.commit(&[("a.md", "Two")]);
    for (fragment, commit) in [
        ("", &second),
        ("#main", &second),
        ("#refs/heads/main", &second),
        ("#HEAD", &second),
        ("#v1", &first),
        (&format!("#{first}"), &first),
    ] {
        let source = sample.source(fragment);
        source.refresh().await.unwrap();
        assert_eq!(served(&source), *commit, "{fragment}");
        let text = if *commit == first { "One" } else { "Two" };
        assert_eq!(files(&source), texts(&[("a.md", text), ("team/b.md", "B")]), "{fragment}");
    }
    let source = sample.source("#main:team");
    source.refresh().await.unwrap();
    assert_eq!(files(&source), texts(&[("b.md", "B")]));
    let state = source.state();
    assert_eq!((state.problem, state.behind_since, state.commits), (None, None, 1));
    let commit = state.served.unwrap();
    assert_eq!((commit.author.as_str(), commit.signer), ("Ada <ada@example.com>", None));
    assert!(commit.time.is_some() && state.compared.is_some());
}

#[tokio::test]
async fn new_commits_reuse_unchanged_files() {
    let sample = Sample::new(&[("a.md", "One"), ("b.md", "B")]);
    for has_filter in ["true", "false"] {
        git(&sample.bare(), &["config", "uploadpack.allowFilter", has_filter], b"");
        let mut options = sample.options("#main");
        options.cache = sample.path().join(has_filter);
        options.name = Some("team".to_owned());
        let source = GitSource::new(options.clone()).unwrap();
        source.refresh().await.unwrap();
        let before = source.source().in_memory().expect("a tree");
        let commit = sample.commit(&[("a.md", &format!("Two {has_filter}")), ("c.md", "C")]);
        source.refresh().await.unwrap();
        let after = source.source().in_memory().expect("a tree");
        let is_same = |path: &str| Arc::ptr_eq(&before.get(path).unwrap().shared(), &after.get(path).unwrap().shared());
        assert!(is_same("b.md") && !is_same("a.md"));
        let text = format!("Two {has_filter}");
        assert_eq!(files(&source), texts(&[("a.md", &text), ("b.md", "B"), ("c.md", "C")]));
        let loader = Loader::open(vec![Box::new(source.source().clone())]).unwrap();
        let catalog = loader.handle().current();
        let provenance = &catalog.provenance().unwrap().provenance;
        assert_eq!((provenance.source(), provenance.channel()), (Some("team"), None));
        let found = provenance.commit().unwrap();
        assert_eq!((found.id(), found.author_name()), (commit.as_str(), "Ada <ada@example.com>"));
        // The same commit again is not served again.
        source.refresh().await.unwrap();
        assert_eq!(source.state().commits, 2);
        sample.git(&["rm", "--quiet", "c.md"]);
    }
}

#[tokio::test]
async fn force_push_is_followed_and_polls_can_be_requested() {
    let sample = Sample::new(&[("a.md", "One")]);
    let mut options = sample.options("#main");
    options.interval = Duration::from_secs(3600);
    let source = GitSource::new(options).unwrap();
    source.refresh().await.unwrap();
    let running = tokio::spawn(source.clone().run());
    sample.git(&["checkout", "--quiet", "--orphan", "other"]);
    let other = sample.commit(&[("a.md", "Other history")]);
    let mut states = source.states();
    source.nudge();
    let reached = states.wait_for(|state| state.served.as_ref().is_some_and(|served| served.id == other));
    tokio::time::timeout(Duration::from_secs(60), reached).await.unwrap().unwrap();
    assert_eq!(loaded(&source).0, ["a"]);
    running.abort();
}

#[tokio::test]
async fn repositories_with_sha_256_are_read() {
    let sample = Sample(Repository::empty("sha256"));
    let commit = sample.commit(&[("a.md", "One")]);
    let source = sample.source("#main");
    source.refresh().await.unwrap();
    assert_eq!((served(&source), commit.len()), (commit, 64));
}

//! Pins and rollbacks, which outlive a process and hold for others.

use promptshelf_git::GitError;

use crate::sample::{Sample, files, served};

#[tokio::test]
async fn pins_and_rollbacks_hold_for_every_process() {
    let sample = Sample::new(&[("a.md", "One")]);
    let server = sample.source("#main");
    let mut commits = vec![sample.git(&["rev-parse", "HEAD"])];
    server.refresh().await.unwrap();
    for text in ["Two", "Three"] {
        commits.push(sample.commit(&[("a.md", text)]));
        server.refresh().await.unwrap();
    }
    // Another process.
    let command = sample.source("#main");
    assert_eq!(command.rollback().await.unwrap(), commits[1]);
    server.refresh().await.unwrap();
    assert_eq!((served(&server), server.state().pin), (commits[1].clone(), Some(commits[1].clone())));
    assert_eq!(files(&server)[0].1, "Two");
    assert_eq!(command.rollback().await.unwrap(), commits[0]);
    assert!(matches!(command.rollback().await, Err(GitError::NotFound { .. })));
    // A pin holds against new commits and a restart, also without the repository.
    commits.push(sample.commit(&[("a.md", "Four")]));
    let away = sample.path().join("away.git");
    std::fs::rename(sample.bare(), &away).unwrap();
    let restarted = sample.source("#main");
    restarted.refresh().await.unwrap();
    assert_eq!(served(&restarted), commits[0]);
    std::fs::rename(&away, sample.bare()).unwrap();
    for bad in ["main", "--upload-pack=x", &commits[0][..39]] {
        assert!(matches!(restarted.pin(Some(bad)).await, Err(GitError::InvalidOptions { .. })), "{bad}");
    }
    // A commit that does not exist changes nothing.
    assert!(restarted.pin(Some(&"1".repeat(40))).await.is_err());
    restarted.refresh().await.unwrap();
    assert_eq!(served(&restarted), commits[0]);
    restarted.pin(None).await.unwrap();
    assert_eq!((served(&restarted), restarted.state().pin), (commits[3].clone(), None));
}

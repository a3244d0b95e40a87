//! Commits signed with ssh keys.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use promptshelf_git::{GitError, GitSource};
use promptshelf_testkit::git::git;

use crate::sample::{Sample, files, served};

fn key(sample: &Sample, name: &str) -> PathBuf {
    let path = sample.path().join(name);
    let arguments = ["-q", "-t", "ed25519", "-N", "", "-C", name, "-f"];
    let made = Command::new("ssh-keygen").args(arguments).arg(&path).status().unwrap();
    assert!(made.success());
    path
}

fn commit(sample: &Sample, text: &str, key: Option<&PathBuf>) -> String {
    fs::write(sample.work().join("a.md"), text).unwrap();
    let key = key.map(|key| format!("user.signingKey={}", key.display()));
    let mut arguments = vec!["-c", "gpg.format=ssh"];
    arguments.extend(key.iter().flat_map(|key| ["-c", key]));
    arguments.extend(["commit", "--quiet", "--all", "--message=change"]);
    arguments.extend(key.is_some().then_some("--gpg-sign"));
    sample.git(&arguments);
    sample.push("HEAD:refs/heads/main");
    sample.git(&["rev-parse", "HEAD"])
}

// req: S-145
#[tokio::test]
async fn only_commits_of_signers_are_served() {
    let sample = Sample::new(&[("a.md", "Unsigned")]);
    let (known, foreign) = (key(&sample, "known"), key(&sample, "foreign"));
    let public = |key: &PathBuf| fs::read_to_string(key.with_extension("pub")).unwrap();
    let signers = sample.path().join("allowed_signers");
    fs::write(&signers, format!("ada@example.com namespaces=\"git\" {}", public(&known))).unwrap();
    let mut options = sample.options("#main");
    options.signers = Some(signers.clone());
    let source = GitSource::new(options.clone()).unwrap();
    let refused = async |source: &GitSource, part: &str| {
        let error = source.refresh().await.unwrap_err();
        assert!(matches!(error, GitError::Signature { .. }), "{error}");
        assert!(error.to_string().contains(part), "{error}");
    };
    refused(&source, "it is not signed").await;
    assert_eq!(source.state().served, None);
    let good = commit(&sample, "Signed", Some(&known));
    source.refresh().await.unwrap();
    assert_eq!(
        (served(&source), source.state().served.unwrap().signer.as_deref()),
        (good.clone(), Some("ada@example.com"))
    );
    commit(&sample, "Foreign", Some(&foreign));
    refused(&source, "a key that is not in the file of `signers`").await;
    commit(&sample, "Unsigned again", None);
    refused(&source, "it is not signed").await;
    // The signature of another commit.
    let raw = sample.git(&["cat-file", "commit", &good]).replace("change", "forged");
    let forged = git(&sample.work(), &["hash-object", "-w", "-t", "commit", "--stdin"], raw.as_bytes());
    sample.push(&format!("{forged}:refs/heads/main"));
    refused(&source, "its signature is invalid").await;
    assert_eq!(served(&source), good);
    // A signature made with OpenPGP. It is not verified, so that its content does not matter.
    let armoured = "gpgsig -----BEGIN PGP SIGNATURE-----\n \n iQEzBAABCAAdFiEE\n -----END PGP SIGNATURE-----\n\n";
    let raw = sample.git(&["cat-file", "commit", "HEAD"]).replacen("\n\n", &format!("\n{armoured}"), 1);
    let other = git(&sample.work(), &["hash-object", "-w", "-t", "commit", "--stdin"], raw.as_bytes());
    sample.push(&format!("{other}:refs/heads/main"));
    refused(&source, "signatures made with OpenPGP or X.509 are not supported").await;
    assert_eq!(served(&source), good);
    // A withdrawn key ends what it signed, and a restart changes nothing.
    sample.push(&format!("{good}:refs/heads/main"));
    source.refresh().await.unwrap();
    fs::write(&signers, format!("eve@example.com {}", public(&foreign))).unwrap();
    refused(&source, "a key that is not in").await;
    assert_eq!((source.state().served, source.source().in_memory().expect("a tree").len()), (None, 0));
    assert!(source.state().problem.unwrap().contains("nothing is served"));
    let restarted = GitSource::new(options.clone()).unwrap();
    refused(&restarted, "a key that is not in").await;
    assert_eq!(restarted.state().served, None);
    fs::remove_file(&signers).unwrap();
    let error = restarted.refresh().await.unwrap_err().to_string();
    assert!(error.starts_with("cannot read the file of `signers`"), "{error}");
}

/// A line of a file of signers.
fn line(key: &Path, options: &str) -> String {
    let name = key.file_name().unwrap().to_str().unwrap();
    format!("{name}@example.com {options} {}", fs::read_to_string(key.with_extension("pub")).unwrap())
}

// req: S-262
#[tokio::test]
async fn retired_key_signs_nothing_new_whatever_the_time_of_the_commit() {
    let sample = Sample::new(&[("a.md", "Unsigned")]);
    let (old, new) = (key(&sample, "old"), key(&sample, "new"));
    let signers = sample.path().join("allowed_signers");
    fs::write(&signers, line(&old, "") + &line(&new, "")).unwrap();
    let mut options = sample.options("#main");
    options.signers = Some(signers.clone());
    let source = GitSource::new(options.clone()).unwrap();
    commit(&sample, "By the new key", Some(&new));
    source.refresh().await.unwrap();
    let good = served(&source);
    fs::write(&signers, line(&old, "valid-before=\"20260101\"") + &line(&new, "")).unwrap();
    let key = format!("user.signingKey={}", old.display());
    fs::write(sample.work().join("a.md"), "Evil").unwrap();
    let mut command = Command::new("git");
    command.current_dir(sample.work()).env("GIT_COMMITTER_DATE", "2025-06-01T00:00:00Z");
    for name in ["GIT_AUTHOR", "GIT_COMMITTER"] {
        command.env(format!("{name}_NAME"), "Eve").env(format!("{name}_EMAIL"), "eve@example.com");
    }
    let made = command.args(["-c", "gpg.format=ssh", "-c", &key, "commit", "-q", "-a", "-m", "old", "-S"]).status();
    assert!(made.unwrap().success());
    sample.push("HEAD:refs/heads/main");
    for source in [source, GitSource::new(options).unwrap()] {
        let error = source.refresh().await.unwrap_err().to_string();
        assert!(error.contains("has expired there"), "{error}");
        assert_eq!(served(&source), good);
    }
}

// req: S-263
#[tokio::test]
async fn withdrawn_key_leads_back_to_the_newest_commit_that_still_verifies() {
    let sample = Sample::new(&[("a.md", "Unsigned")]);
    let (ada, eve) = (key(&sample, "ada"), key(&sample, "eve"));
    let signers = sample.path().join("allowed_signers");
    fs::write(&signers, line(&ada, "") + &line(&eve, "")).unwrap();
    let mut options = sample.options("#main");
    options.signers = Some(signers.clone());
    let source = GitSource::new(options.clone()).unwrap();
    commit(&sample, "First of Ada", Some(&ada));
    let good = commit(&sample, "Second of Ada", Some(&ada));
    commit(&sample, "Unsigned", None);
    commit(&sample, "Eve", Some(&eve));
    source.refresh().await.unwrap();
    assert_eq!(files(&source)[0].1, "Eve");
    // The commits before were never fetched. Another key alone changes nothing.
    let other = key(&sample, "other");
    fs::write(&signers, line(&ada, "") + &line(&eve, "") + &line(&other, "")).unwrap();
    source.refresh().await.unwrap();
    assert_eq!(files(&source)[0].1, "Eve");
    fs::write(&signers, line(&ada, "")).unwrap();
    assert!(matches!(source.refresh().await, Err(GitError::Signature { .. })));
    let mut fresh = options.clone();
    fresh.cache = sample.path().join("fresh");
    let (again, fresh) = (GitSource::new(options.clone()).unwrap(), GitSource::new(fresh).unwrap());
    again.refresh().await.unwrap_err();
    fresh.refresh().await.unwrap_err();
    for source in [&source, &again, &fresh] {
        assert_eq!((served(source), files(source)[0].1.as_str()), (good.clone(), "Second of Ada"));
        assert!(source.state().problem.is_some() && source.state().behind_since.is_some());
    }
    // A later commit of a known key is followed.
    let next = commit(&sample, "Third of Ada", Some(&ada));
    source.refresh().await.unwrap();
    assert_eq!((served(&source), source.state().problem), (next, None));
    // Without the repository too.
    fs::rename(sample.bare(), sample.path().join("away.git")).unwrap();
    fs::write(&signers, line(&other, "")).unwrap();
    source.refresh().await.unwrap_err();
    assert_eq!((source.state().served, source.source().in_memory().expect("a tree").len()), (None, 0));
    // A key that expires later takes nothing away that was fetched before.
    fs::rename(sample.path().join("away.git"), sample.bare()).unwrap();
    fs::write(&signers, line(&ada, "")).unwrap();
    source.refresh().await.unwrap();
    let folder = fs::read_dir(sample.path().join("cache")).unwrap().next().unwrap().unwrap().path();
    let record = folder.join("record.json");
    let mut json: serde_json::Value = serde_json::from_slice(&fs::read(&record).unwrap()).unwrap();
    json["fetched"].as_object_mut().unwrap().values_mut().for_each(|time| *time = 1_750_000_000.into());
    fs::write(&record, json.to_string()).unwrap();
    fs::write(&signers, line(&ada, "valid-before=\"20260101\"")).unwrap();
    let restarted = GitSource::new(options).unwrap();
    restarted.refresh().await.unwrap();
    assert_eq!(files(&restarted)[0].1, "Third of Ada");
}

// req: S-264
#[tokio::test]
async fn signed_history_is_not_rewritten_without_an_operator() {
    let sample = Sample::new(&[("a.md", "Unsigned")]);
    let ada = key(&sample, "ada");
    let signers = sample.path().join("allowed_signers");
    fs::write(&signers, line(&ada, "")).unwrap();
    let mut options = sample.options("#main");
    options.signers = Some(signers.clone());
    options.name = Some("team".to_owned());
    let source = GitSource::new(options.clone()).unwrap();
    let first = commit(&sample, "First", Some(&ada));
    for text in ["Second", "Third"] {
        commit(&sample, text, Some(&ada));
    }
    source.refresh().await.unwrap();
    commit(&sample, "Fourth", Some(&ada));
    let good = commit(&sample, "Fifth", Some(&ada));
    source.refresh().await.unwrap();
    assert_eq!(served(&source), good);
    sample.push(&format!("{first}:refs/heads/main"));
    for source in [&source, &GitSource::new(options).unwrap()] {
        let error = source.refresh().await.unwrap_err().to_string();
        assert!(error.contains(&format!("`promptshelf source pin team {first}`")), "{error}");
        assert_eq!(served(source), good);
    }
    source.pin(Some(&first)).await.unwrap();
    assert_eq!(served(&source), first);
    source.pin(None).await.unwrap();
    assert_eq!((served(&source), source.state().problem), (first, None));
}

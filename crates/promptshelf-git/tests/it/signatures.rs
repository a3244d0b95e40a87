//! Commits signed with ssh keys.

use std::{fs, path::PathBuf, process::Command};

use promptshelf_git::{GitError, GitSource};
use promptshelf_testkit::git::git;

use crate::sample::{Sample, served};

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
    // A withdrawn key: a restart refuses the commit.
    sample.push(&format!("{good}:refs/heads/main"));
    source.refresh().await.unwrap();
    fs::write(&signers, format!("eve@example.com {}", public(&foreign))).unwrap();
    refused(&source, "a key that is not in").await;
    let restarted = GitSource::new(options.clone()).unwrap();
    refused(&restarted, "a key that is not in").await;
    assert_eq!(restarted.state().served, None);
    fs::remove_file(&signers).unwrap();
    let error = restarted.refresh().await.unwrap_err().to_string();
    assert!(error.starts_with("cannot read the file of `signers`"), "{error}");
}

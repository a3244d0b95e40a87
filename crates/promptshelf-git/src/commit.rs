//! The author, the time and the signature of a commit.

use promptshelf_core::Timestamp;

use crate::{
    error::GitError,
    repository::{Locked, Repository},
    state::ServedCommit,
};

const MAX_TEXT: usize = 200;

pub(crate) struct Judge<'s> {
    /// The content of the file of `signers`.
    pub(crate) signers: &'s [u8],
    /// The time at which the commit was fetched; `None` for a commit that is fetched now. The committer chooses the time
    /// of the commit itself, so that it proves nothing.
    pub(crate) fetched: Option<Timestamp>,
}

/// Reads a commit. With a judge, one without the signature of a known key is refused.
pub(crate) async fn read(
    repository: &Repository,
    lock: &Locked,
    commit: &str,
    judge: Option<Judge<'_>>,
) -> Result<ServedCommit, GitError> {
    let call = repository.reading("log");
    let call = call.arguments(["-1", "--no-show-signature", "--no-patch", "--encoding=UTF-8", "--no-color"]);
    let output = call.arguments(["--format=%an%x00%ae%x00%ct", "--end-of-options", commit, "--"]).run().await?;
    let text = String::from_utf8_lossy(&output);
    let mut fields = text.trim_end_matches('\n').split('\0');
    let mut next = || fields.next().unwrap_or_default();
    let (name, mail, time) = (next(), next(), next());
    let signer = match judge {
        Some(judge) => Some(signer(repository, lock, commit, &judge).await?),
        None => None,
    };
    let author = if mail.is_empty() { name.to_owned() } else { format!("{name} <{mail}>") };
    let time = time.parse().ok().and_then(|seconds| Timestamp::from_unix(seconds, 0).ok());
    Ok(ServedCommit { id: commit.to_owned(), author: shown(&author), time, signer })
}

/// Returns the signer of a commit.
///
/// git itself would judge a signature by the time of the commit. The keys have to be valid now, or when the commit was
/// fetched.
async fn signer(repository: &Repository, lock: &Locked, commit: &str, judge: &Judge<'_>) -> Result<String, GitError> {
    let refused = |reason: &str| GitError::Signature { commit: commit.to_owned(), reason: reason.to_owned() };
    let content = repository.reading("cat-file").arguments(["commit", commit]).run().await?;
    let Signed { payload, signature } = signed(&content, commit.len() == 64);
    if signature.is_empty() {
        return Err(refused("it is not signed, and `signers` requires a signature: sign it with `git commit -S`"));
    }
    if !signature.starts_with(b"-----BEGIN SSH SIGNATURE-----") {
        return Err(refused(
            "its signature cannot be checked: expected one made with an ssh key (`gpg.format = ssh`); signatures made with \
             OpenPGP or X.509 are not supported",
        ));
    }
    let verification = repository.verification(lock, judge.signers, &signature)?;
    let at = judge.fetched.map(|time| format!("-Overify-time={}", time.to_string().replace(['-', ':', 'T'], "")));
    for time in [None, at].iter().filter(|time| time.is_none() || judge.fetched.is_some()) {
        let Some(principals) = verification.run("find-principals", time.as_deref(), &[], Vec::new()).await? else {
            continue;
        };
        for principal in String::from_utf8_lossy(&principals).lines().filter(|line| !line.is_empty()) {
            let arguments = ["-n", "git", "-I", principal];
            if verification.run("verify", time.as_deref(), &arguments, payload.clone()).await?.is_some() {
                return Ok(shown(principal));
            }
        }
    }
    match verification.run("check-novalidate", None, &["-n", "git"], payload).await? {
        Some(_) => Err(refused(
            "it is signed with a key that is not in the file of `signers`, or that has expired there (`valid-before`) or is \
             not for git (`namespaces`)",
        )),
        None => Err(refused("its signature is invalid: the commit was changed after it was signed")),
    }
}

/// A commit without its signature, and the signature.
pub(crate) struct Signed {
    payload: Vec<u8>,
    signature: Vec<u8>,
}

/// Splits a commit as git does to verify it; see `gitformat-signature(5)`.
pub(crate) fn signed(content: &[u8], is_sha256: bool) -> Signed {
    let own: &[u8] = if is_sha256 { b"gpgsig-sha256 " } else { b"gpgsig " };
    let (mut payload, mut signature) = (Vec::with_capacity(content.len()), Vec::new());
    let mut lines = content.split_inclusive(|byte| *byte == b'\n');
    // Whether the last header was a signature, and whether it was that for the format of the repository.
    let (mut is_signature, mut is_own) = (false, false);
    for line in lines.by_ref() {
        match line {
            [b' ', rest @ ..] if is_signature => {
                if is_own {
                    signature.extend_from_slice(rest);
                }
                continue;
            }
            _ => is_signature = line.starts_with(b"gpgsig"),
        }
        match line.strip_prefix(own) {
            Some(rest) => {
                is_own = true;
                signature.extend_from_slice(rest);
            }
            None if is_signature => is_own = false,
            None => payload.extend_from_slice(line),
        }
        if line == b"\n" {
            break;
        }
    }
    lines.for_each(|line| payload.extend_from_slice(line));
    Signed { payload, signature }
}

fn shown(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(MAX_TEXT).collect()
}

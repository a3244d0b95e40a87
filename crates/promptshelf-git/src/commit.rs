//! The author, the time and the signature of a commit.

use promptshelf_core::Timestamp;

use crate::{error::GitError, repository::Repository, state::ServedCommit};

/// The longest text of a commit that is shown, in characters.
const MAX_TEXT: usize = 200;

/// Reads a commit. With `is_signature_required`, one without the signature of a known key is refused.
pub(crate) async fn read(
    repository: &Repository,
    commit: &str,
    is_signature_required: bool,
) -> Result<ServedCommit, GitError> {
    // %G? verifies the signature, so that git runs ssh-keygen for it.
    let format = if is_signature_required { "%an%x00%ae%x00%ct%x00%G?%x00%GS" } else { "%an%x00%ae%x00%ct%x00%x00" };
    let call = repository.reading("log");
    let call = call.arguments(["-1", "--no-show-signature", "--no-patch", "--encoding=UTF-8", "--no-color"]);
    let output = call.arguments([&format!("--format={format}"), "--end-of-options", commit, "--"]).run().await?;
    let text = String::from_utf8_lossy(&output);
    let mut fields = text.trim_end_matches('\n').split('\0');
    let mut next = || fields.next().unwrap_or_default();
    let (name, mail, time, verdict, signer) = (next(), next(), next(), next(), next());
    let signer = match is_signature_required {
        true if verdict == "N" && has_signature(repository, commit).await? => Some(signed(commit, "E", signer)?),
        true => Some(signed(commit, verdict, signer)?),
        false => None,
    };
    let author = if mail.is_empty() { name.to_owned() } else { format!("{name} <{mail}>") };
    let time = time.parse().ok().and_then(|seconds| Timestamp::from_unix(seconds, 0).ok());
    Ok(ServedCommit { id: commit.to_owned(), author: shown(&author), time, signer })
}

/// Whether a commit has a signature of any kind. Those that no program verifies count as absent in `%G?`.
async fn has_signature(repository: &Repository, commit: &str) -> Result<bool, GitError> {
    let content = repository.reading("cat-file").arguments(["commit", commit]).run().await?;
    let content = String::from_utf8_lossy(&content);
    Ok(content.lines().take_while(|line| !line.is_empty()).any(|line| line.starts_with("gpgsig")))
}

/// Returns the signer; only `G` is a valid signature of a known key (see `%G?` in `git-log(1)`).
fn signed(commit: &str, verdict: &str, signer: &str) -> Result<String, GitError> {
    let reason = match verdict {
        "G" => return Ok(shown(signer)),
        "N" => "it is not signed, and `signers` requires a signature: sign it with `git commit -S`",
        "U" => "it is signed with a key that is not in the file of `signers`",
        "E" => {
            "its signature cannot be checked: expected one made with an ssh key (`gpg.format = ssh`); signatures made with \
             OpenPGP or X.509 are not supported"
        }
        "X" | "Y" | "R" => "its signature or the key has expired or is revoked",
        _ => "its signature is invalid, or its key is not valid at the time of the commit",
    };
    Err(GitError::Signature { commit: commit.to_owned(), reason: reason.to_owned() })
}

fn shown(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(MAX_TEXT).collect()
}

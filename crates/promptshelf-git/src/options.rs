//! Options of a git source.

use std::{fmt, path::PathBuf, time::Duration};

use crate::address::GitAddress;

/// The library to read, and how.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct GitOptions {
    /// The repository, the reference and the folder.
    pub address: GitAddress,
    /// The folder for copies of repositories and pins. Several sources and processes can share it.
    pub cache: PathBuf,
    /// The name of the source, which clients see with its prompts. None by default.
    pub name: Option<String>,
    /// How to sign in to the server. [`Credentials::None`] by default.
    pub credentials: Credentials,
    /// A file of public keys in the format of `allowed_signers` (see `ssh-keygen(1)`). Commits without a valid signature
    /// of one of these keys are refused. None by default.
    pub signers: Option<PathBuf>,
    /// The time between two polls, at least a second; each is shortened by up to 20 %. 60 s by default.
    pub interval: Duration,
    /// The time that one call of git may take. 120 s by default.
    pub timeout: Duration,
    /// What happens to a commit with errors. [`OnErrors::Refuse`] by default.
    pub on_errors: OnErrors,
    /// Bounds of a commit.
    pub limits: GitLimits,
}

impl GitOptions {
    /// Creates options with the defaults.
    #[must_use]
    pub fn new(address: GitAddress, cache: impl Into<PathBuf>) -> GitOptions {
        GitOptions {
            address,
            cache: cache.into(),
            name: None,
            credentials: Credentials::None,
            signers: None,
            interval: Duration::from_secs(60),
            timeout: Duration::from_secs(120),
            on_errors: OnErrors::Refuse,
            limits: GitLimits::default(),
        }
    }
}

/// How to sign in to a git server. `Debug` shows no secret.
#[derive(Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Credentials {
    /// Without credentials; over ssh with those of the ssh agent and of the user's ssh configuration.
    #[default]
    None,
    /// From a file, which is read at each call. Over HTTP its first line is `USER:PASSWORD`, or a token alone; over ssh it
    /// is a private key without a passphrase.
    File(PathBuf),
    /// From a credential helper, as `credential.helper` of git names it; see `gitcredentials(7)`.
    Helper(String),
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Credentials::None => f.write_str("None"),
            Credentials::File(path) => f.debug_tuple("File").field(path).finish(),
            Credentials::Helper(_) => f.write_str("Helper"),
        }
    }
}

/// What happens to a commit whose library has errors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnErrors {
    /// The last good commit is served. Without an earlier one, invalid prompts are left out.
    #[default]
    Refuse,
    /// The commit is served, and invalid prompts are left out.
    LeaveOut,
}

/// Bounds of a commit and its transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GitLimits {
    /// The number of files in the folder. 100,000 by default.
    pub files: usize,
    /// The size of one file, in bytes: larger ones are not read. 16 MiB by default.
    pub file_bytes: u64,
    /// The size of all files that are read, in bytes. 256 MiB by default.
    pub total_bytes: u64,
    /// The growth of the copy on disk by one call of git, in bytes. 512 MiB by default.
    pub transfer_bytes: u64,
}

impl Default for GitLimits {
    fn default() -> GitLimits {
        GitLimits { files: 100_000, file_bytes: 16 << 20, total_bytes: 256 << 20, transfer_bytes: 512 << 20 }
    }
}

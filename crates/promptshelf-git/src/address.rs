//! Addresses of libraries in git repositories: `git+https://HOST/REPOSITORY#REF:PATH`.

use std::{fmt, str::FromStr};

use url::Url;

use crate::error::GitError;

/// The schemes, each with the protocol that git has to allow.
const SCHEMES: [(&str, &str); 4] =
    [("git+https", "https"), ("git+ssh", "ssh"), ("git+file", "file"), ("git+http", "http")];

/// The longest reference or path, in bytes.
const MAX_TEXT: usize = 1_000;

/// The place of a library: a repository, a branch, tag or commit in it, and a folder in that.
///
/// Contains no password. `git+https`, `git+ssh`, `git+file` and `git+http` are accepted.
///
/// ```
/// use promptshelf_git::GitAddress;
///
/// let address: GitAddress = "git+https://git.example/prompts.git#v1.2:team/prompts".parse()?;
/// assert_eq!(address.repository(), "https://git.example/prompts.git");
/// assert_eq!((address.reference(), address.folder()), (Some("v1.2"), "team/prompts"));
/// assert!("git+https://ada:secret@git.example/prompts.git".parse::<GitAddress>().is_err());
/// # Ok::<(), promptshelf_git::GitError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GitAddress {
    repository: String,
    protocol: &'static str,
    host: Option<String>,
    is_loopback: bool,
    reference: Option<String>,
    folder: String,
}

impl GitAddress {
    /// Whether a word is meant as an address: it starts with `git+`.
    #[must_use]
    pub fn is_meant(word: &str) -> bool {
        word.starts_with("git+")
    }

    /// Sets the branch, the tag or the full commit.
    ///
    /// # Errors
    ///
    /// [`GitError::InvalidAddress`] if git does not permit the name, or reads it as an option.
    pub fn with_reference(self, reference: &str) -> Result<GitAddress, GitError> {
        check_reference(reference)?;
        Ok(GitAddress { reference: Some(reference.to_owned()), ..self })
    }

    /// Sets the folder of the library in the repository; empty for the repository itself.
    ///
    /// # Errors
    ///
    /// [`GitError::InvalidAddress`] if it is absolute or has an empty part, `.` or `..`.
    pub fn with_folder(self, folder: &str) -> Result<GitAddress, GitError> {
        let folder = folder.strip_suffix('/').unwrap_or(folder);
        check_folder(folder)?;
        Ok(GitAddress { folder: folder.to_owned(), ..self })
    }

    /// The URL of the repository, without password.
    #[must_use]
    pub fn repository(&self) -> &str {
        &self.repository
    }

    /// The branch, tag or commit; `None` for the default branch of the repository.
    #[must_use]
    pub fn reference(&self) -> Option<&str> {
        self.reference.as_deref()
    }

    /// The folder in the repository; empty for the repository itself.
    #[must_use]
    pub fn folder(&self) -> &str {
        &self.folder
    }

    /// The only protocol that git may use.
    pub(crate) fn protocol(&self) -> &'static str {
        self.protocol
    }

    /// Returns `SCHEME://HOST:PORT` of an HTTP address, to which credentials are bound.
    pub(crate) fn http_host(&self) -> Option<&str> {
        self.host.as_deref()
    }

    /// Whether credentials would be sent without encryption over a network.
    pub(crate) fn is_open(&self) -> bool {
        self.protocol == "http" && !self.is_loopback
    }
}

impl FromStr for GitAddress {
    type Err = GitError;

    fn from_str(text: &str) -> Result<GitAddress, GitError> {
        // The text may contain a password, so no message repeats it.
        const FORM: &str = "expected `git+https://HOST/REPOSITORY#REF:PATH`, or `git+ssh`, `git+file`, `git+http`";
        let url = Url::parse(text).map_err(|error| invalid(format!("the URL is invalid ({error}): {FORM}")))?;
        let Some((_, protocol)) = SCHEMES.iter().find(|(scheme, _)| *scheme == url.scheme()) else {
            return Err(invalid(format!("the scheme of the URL is unknown: {FORM}")));
        };
        if url.password().is_some() || (*protocol != "ssh" && !url.username().is_empty()) {
            return Err(invalid(
                "the URL contains credentials, which would be visible in logs: put them into a file, and name it with \
                 `credentials = { file = \"…\" }`",
            ));
        }
        if url.query().is_some() {
            return Err(invalid(format!("the URL has a query after `?`: {FORM}")));
        }
        if url.cannot_be_a_base() || matches!(url.path(), "" | "/") {
            return Err(invalid(format!("the URL names no repository: {FORM}")));
        }
        let is_remote = *protocol != "file";
        let host = url.host_str().unwrap_or_default();
        if is_remote == host.is_empty() {
            return Err(invalid(match is_remote {
                true => format!("the URL names no host: {FORM}"),
                false => "expected `git+file:///PATH` with three slashes, for a repository on this machine".to_owned(),
            }));
        }
        // ssh would read such names as options. git refuses them too.
        if host.starts_with('-') || url.username().starts_with('-') || url.username().contains("%") {
            return Err(invalid("the host or the user of the URL starts with `-` or contains `%`"));
        }
        let (reference, folder) = match url.fragment().map(decoded).transpose()? {
            None => (None, String::new()),
            Some(fragment) => match fragment.split_once(':') {
                None => (Some(fragment), String::new()),
                Some((reference, folder)) => (Some(reference.to_owned()), folder.to_owned()),
            },
        };
        let mut bare = url.clone();
        bare.set_fragment(None);
        let repository = bare.as_str().trim_start_matches("git+").to_owned();
        let port = url.port().map_or_else(String::new, |port| format!(":{port}"));
        let address = GitAddress {
            repository,
            protocol,
            host: protocol.starts_with("http").then(|| format!("{protocol}://{host}{port}")),
            is_loopback: matches!(host, "localhost" | "127.0.0.1" | "[::1]"),
            reference: None,
            folder: String::new(),
        };
        let address = match reference.filter(|reference| !reference.is_empty()) {
            Some(reference) => address.with_reference(&reference)?,
            None => address,
        };
        address.with_folder(&folder)
    }
}

impl fmt::Display for GitAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "git+{}", self.repository)?;
        match (&self.reference, self.folder.as_str()) {
            (None, "") => Ok(()),
            (Some(reference), "") => write!(f, "#{reference}"),
            (reference, folder) => write!(f, "#{}:{folder}", reference.as_deref().unwrap_or_default()),
        }
    }
}

/// Whether a text is the id of a commit: 40 hexadecimal digits, or 64 in a repository with SHA-256.
pub(crate) fn is_commit(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Applies the rules of `git check-ref-format`, and refuses what git could read as an option or as a pattern.
fn check_reference(reference: &str) -> Result<(), GitError> {
    let refuse = |reason: &str| Err(invalid(format!("the reference {:?} {reason}", cut(reference))));
    if reference.is_empty() || reference.len() > MAX_TEXT {
        return refuse("is empty or longer than 1,000 bytes");
    }
    if reference.starts_with('-') {
        return refuse("starts with `-`, so that git would read it as an option");
    }
    let is_odd = |c: char| c.is_control() || c.is_whitespace() || "~^:?*[\\".contains(c);
    let is_bad_part = |part: &str| part.is_empty() || part.starts_with('.') || part.ends_with(".lock");
    if reference.contains(is_odd)
        || reference.contains("..")
        || reference.contains("@{")
        || reference.ends_with('.')
        || reference == "@"
        || reference.split('/').any(is_bad_part)
    {
        return refuse("is not the name of a branch or a tag");
    }
    Ok(())
}

fn check_folder(folder: &str) -> Result<(), GitError> {
    let refuse = |reason: &str| Err(invalid(format!("the path {:?} {reason}", cut(folder))));
    if folder.len() > MAX_TEXT {
        return refuse("is longer than 1,000 bytes");
    }
    if folder.contains(char::is_control) {
        return refuse("contains control characters");
    }
    let is_bad_part = |part: &str| matches!(part, "" | "." | "..") || part.eq_ignore_ascii_case(".git");
    if !folder.is_empty() && folder.split('/').any(is_bad_part) {
        return refuse("is absolute, or has an empty part, `.`, `..` or `.git`");
    }
    Ok(())
}

fn decoded(fragment: &str) -> Result<String, GitError> {
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let escaped = (*first == b'%').then(|| after.get(..2)).flatten();
        let value = escaped.and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        match value {
            Some(value) => {
                bytes.push(value);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).map_err(|_| invalid("the part after `#` is not UTF-8"))
}

fn cut(text: &str) -> String {
    text.chars().take(60).collect()
}

fn invalid(reason: impl Into<String>) -> GitError {
    GitError::InvalidAddress { reason: reason.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<GitAddress, GitError> {
        text.parse()
    }

    #[test]
    fn addresses_have_a_repository_a_reference_and_a_folder() {
        let parts = |text: &str| {
            let address = parse(text).expect(text);
            assert_eq!(parse(&address.to_string()).expect(text), address);
            (address.repository, address.reference, address.folder)
        };
        let of = |repository: &str, reference: Option<&str>, folder: &str| {
            (repository.to_owned(), reference.map(str::to_owned), folder.to_owned())
        };
        assert_eq!(parts("git+https://h/a.git"), of("https://h/a.git", None, ""));
        assert_eq!(parts("git+https://h:8443/a/b#main"), of("https://h:8443/a/b", Some("main"), ""));
        assert_eq!(parts("git+ssh://git@h/a.git#v1:x/y/"), of("ssh://git@h/a.git", Some("v1"), "x/y"));
        assert_eq!(parts("git+file:///srv/a.git#:x"), of("file:///srv/a.git", None, "x"));
        assert_eq!(
            parts("git+http://localhost/a#feature/%C3%BC:a%20b"),
            of("http://localhost/a", Some("feature/ü"), "a b")
        );
    }

    // req: S-140
    #[test]
    fn credentials_in_an_address_are_refused_and_not_repeated() {
        for text in ["git+https://ada:s3cret@h/a.git", "git+https://s3cret@h/a.git", "git+ssh://git:s3cret@h/a.git"] {
            let message = parse(text).expect_err(text).to_string();
            assert!(message.contains("contains credentials") && !message.contains("s3cret"), "{message}");
        }
    }

    // req: S-141
    #[test]
    fn references_and_paths_are_never_options() {
        for fragment in [
            "--upload-pack=touch x",
            "-x",
            "a..b",
            "a b",
            "a~1",
            "a^",
            "@{0}",
            "a.lock",
            "*",
            "a//b",
            "refs/../x",
            "main:../x",
            "main:/etc",
            "main:a//b",
            "main:.git",
            "main:a/.GIT/b",
            "main:a%0Ab",
            "%00",
        ] {
            let text = format!("git+file:///srv/a.git#{fragment}");
            let error = parse(&text).expect_err(&text);
            assert!(matches!(error, GitError::InvalidAddress { .. }), "{text}: {error}");
        }
        for text in [
            "git+ssh://-oProxyCommand=x/a.git",
            "git+ssh://-x@h/a.git",
            "git+ext://sh -c x",
            "git+https://h/a.git?x=1",
            "git+https:///a",
            "git+file://h/a.git",
            "git+https://h",
            "git@h:a.git",
            "ext::sh -c x",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}

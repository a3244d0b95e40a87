//! Errors of git, made from its stderr: without secrets, and with the remedy.

use crate::error::GitError;

const MAX_SHOWN: usize = 1_000;

/// The beginnings of lines without a cause.
const NOISE: [&str; 8] = [
    "hint:",
    "warning:",
    "From ",
    "fatal: Could not read from remote repository",
    "Please make sure you have the correct access rights",
    "and the repository exists",
    // How to trust a host whose key has changed. Its keys have to be compared first.
    "remove with:",
    "ssh-keygen -f",
];

/// Replaces secrets and control characters. The texts of servers (`remote: …`) are kept.
pub(crate) fn cleaned(stderr: &[u8], secrets: &[String]) -> String {
    let mut text = String::from_utf8_lossy(stderr).into_owned();
    for secret in secrets.iter().filter(|secret| !secret.is_empty()) {
        text = text.replace(secret.as_str(), "***");
    }
    let lines = text.split(['\n', '\r']).map(str::trim).filter(|line| !line.is_empty()).map(without_userinfo);
    lines.collect::<Vec<_>>().join("\n").replace(|c: char| c.is_control() && c != '\n', " ")
}

fn without_userinfo(line: &str) -> String {
    let mut parts = line.split("://");
    let mut clean = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        clean.push_str("://");
        let end = part.find(|c: char| matches!(c, '/' | '\'' | '"') || c.is_whitespace()).unwrap_or(part.len());
        match part[..end].rfind('@') {
            Some(at) => {
                clean.push_str("***");
                clean.push_str(&part[at..]);
            }
            None => clean.push_str(part),
        }
    }
    clean
}

/// Returns the error for a failed call. `text` is cleaned.
pub(crate) fn error(command: &str, code: Option<i32>, text: &str) -> GitError {
    let has = |parts: &[&str]| parts.iter().any(|part| text.contains(part));
    let help = if has(&["Host key verification failed", "HOST IDENTIFICATION HAS CHANGED"]) {
        "the host key is unknown or has changed: compare it with that of the server, and correct `known_hosts`"
    } else if has(&[
        "Permission denied (",
        "Authentication failed",
        "could not read Username",
        "could not read Password",
    ]) || has(&["The requested URL returned error: 401", "The requested URL returned error: 403"])
    {
        "the server requires valid credentials: see `credentials`"
    } else if has(&["dubious ownership"]) {
        "the repository belongs to another user: serve it over ssh or https, or run this server as that user"
    } else if has(&["does not appear to be a git repository", "not found", "does not exist", "returned error: 404"]) {
        "the repository does not exist, or the credentials do not allow reading it"
    } else if has(&["Could not resolve host", "Connection refused", "Could not connect", "Failed to connect"]) {
        "the server cannot be reached"
    } else if has(&["not our ref", "unadvertised object"]) {
        "the server has no such commit, or does not allow fetching a commit by its id"
    } else if has(&["No space left on device", "Disk quota exceeded"]) {
        "the disk with the copies of repositories is full"
    } else {
        ""
    };
    // The message is on the last lines, after warnings and hints.
    let is_message = |line: &&str| !NOISE.iter().any(|prefix| line.starts_with(prefix));
    let lines: Vec<&str> = text.lines().filter(is_message).collect();
    let last = lines[lines.len().saturating_sub(4)..].join("; ");
    let shown: String = last.chars().take(MAX_SHOWN).collect();
    let code = code.map_or_else(|| "a signal".to_owned(), |code| format!("code {code}"));
    let reason = match (help, shown.as_str()) {
        ("", "") => format!("`git {command}` ended with {code}"),
        ("", shown) => shown.to_owned(),
        (help, "") => help.to_owned(),
        (help, shown) => format!("{help} ({shown})"),
    };
    GitError::Remote { reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    // req: S-140
    #[test]
    fn secrets_are_removed_from_messages() {
        let stderr = b"fatal: unable to access 'https://ada:t0ken@h/a.git/': t0ken, https://b@c@h x\r\n\x1b[31mred";
        let text = cleaned(stderr, &["t0ken".to_owned()]);
        assert_eq!(text, "fatal: unable to access 'https://***@h/a.git/': ***, https://***@h x\n [31mred");
    }

    #[test]
    fn errors_say_what_to_do() {
        let message = |text: &str| error("fetch", Some(128), text).to_string();
        let changed = "@@@@\nWARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!\nHost key verification failed.\nfatal: Could not read from remote repository.";
        assert!(message(changed).contains("the host key is unknown or has changed"), "{}", message(changed));
        assert_eq!(message(""), "the repository cannot be read: `git fetch` ended with code 128");
        assert_eq!(message("warning: x\nfatal: odd"), "the repository cannot be read: fatal: odd");
    }
}

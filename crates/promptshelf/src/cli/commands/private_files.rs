//! Files that do not belong into a bundle or a channel: keys, tokens, databases, and settings of operators.
//!
//! They are found by their content, and by names that such files usually have. Everyone who may read the library gets its
//! files, and a channel keeps them in its history.

use promptshelf_author::likely_secrets;
use promptshelf_core::SourceText;
use promptshelf_source::is_prompt_path;

use crate::{
    exit::{Exit, Failure},
    working_copy::named,
};

const BEGINNINGS: &[(&[u8], &str)] = &[
    (b"SQLite format 3\0", "a database"),
    (b"PuTTY-User-Key-File-", "a private key"),
    (b"\xfe\xed\xfe\xed", "a store of keys"),
    (b"\x03\xd9\xa2\x9a", "a store of passwords"),
    (b"$ANSIBLE_VAULT", "a store of passwords"),
    (b"PGDMP", "a copy of a database"),
];

/// Names of files without their folder, in lower case.
const NAMES: &[(&str, &str)] = &[
    ("id_rsa", "a private key"),
    ("id_dsa", "a private key"),
    ("id_ecdsa", "a private key"),
    ("id_ed25519", "a private key"),
    ("tokens", "a list of tokens"),
    ("tokens.toml", "a list of tokens"),
    ("tokens.json", "a list of tokens"),
    ("credentials", "credentials"),
    ("credentials.json", "credentials"),
    ("credentials.toml", "credentials"),
    ("secrets", "secrets"),
    ("secrets.json", "secrets"),
    ("secrets.yaml", "secrets"),
    ("secrets.yml", "secrets"),
    ("secrets.toml", "secrets"),
    ("htpasswd", "a list of passwords"),
    ("kubeconfig", "credentials"),
    ("terraform.tfstate", "a state with secrets"),
    ("audit.jsonl", "the record of an audit"),
    ("server.toml", "settings of an operator"),
];

const ENDINGS: &[(&str, &str)] = &[
    (".key", "a private key"),
    (".ppk", "a private key"),
    (".p12", "a store of keys"),
    (".pfx", "a store of keys"),
    (".jks", "a store of keys"),
    (".keystore", "a store of keys"),
    (".kdbx", "a store of passwords"),
    (".secret", "a secret"),
    (".env", "a file of environment variables"),
    (".tfvars", "variables with secrets"),
    (".db", "a database"),
    (".sqlite", "a database"),
    (".sqlite3", "a database"),
    (".db-wal", "a database"),
    (".db-shm", "a database"),
];

/// Tables of a `server.toml`.
const OPERATOR_TABLES: &[&str] =
    &["http", "auth", "tls", "proxy", "audit", "metrics", "traces", "store", "api", "source", "webhook", "evaluation"];

/// Rejects private files, except those that `included` names.
pub(crate) fn refuse<'f>(files: impl Iterator<Item = (&'f str, &'f [u8])>, included: &[String]) -> Result<(), Failure> {
    let found: Vec<String> = files
        .filter(|(path, _)| !included.iter().any(|included| included.trim_start_matches("./") == *path))
        .filter_map(|(path, bytes)| Some(format!("{path}: this looks like {}", private(path, bytes)?)))
        .collect();
    if found.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = found.iter().map(String::as_str).collect();
    let message = "nothing was written: everyone with the library would get private files:".to_owned();
    Err(Failure::new(Exit::Failed, message + &named(&names))
        .help("move them out of the library; `--include FILE` accepts a file that only looks like one, such as a key for tests"))
}

/// Returns what a private file looks like; `None` for other files.
pub(super) fn private(path: &str, bytes: &[u8]) -> Option<&'static str> {
    if let Some((_, what)) = BEGINNINGS.iter().find(|(beginning, _)| bytes.starts_with(beginning)) {
        return Some(what);
    }
    let name = path.rsplit('/').next().unwrap_or(path).to_lowercase();
    let by_name = || NAMES.iter().find(|(known, _)| name == *known).map(|(_, what)| *what);
    let by_ending = || ENDINGS.iter().find(|(ending, _)| name.ends_with(ending)).map(|(_, what)| *what);
    if let Some(what) = by_name().or_else(by_ending) {
        return Some(what);
    }
    let text = std::str::from_utf8(bytes).ok()?;
    if has_private_key(text) {
        return Some("a private key");
    }
    // Prompts are reviewed: a likely secret in one is a finding of `check`, and a matter of the channel's policy.
    if is_prompt_path(std::path::Path::new(""), path) || name.ends_with(".md") {
        return None;
    }
    if name.ends_with(".toml") && is_operator(text) && path != promptshelf_source::syntax::LIBRARY_FILE {
        return Some("settings of an operator");
    }
    if is_list_of_tokens(text) {
        return Some("a list of tokens");
    }
    let has_secret = ["\"private_key\"", "\"client_secret\"", "\"refresh_token\"", "AGE-SECRET-KEY-1"];
    if has_secret.iter().any(|word| text.contains(word)) {
        return Some("credentials");
    }
    (!likely_secrets(&SourceText::new(path, text)).is_empty()).then_some("a key or a token")
}

/// Whether a text has a private key in PEM, and not only its first line as an example.
fn has_private_key(text: &str) -> bool {
    text.match_indices("PRIVATE KEY").any(|(at, _)| {
        let begins = text[..at].rsplit('\n').next().is_some_and(|line| line.trim_start().starts_with("-----BEGIN "));
        // The base64 of the smallest key has more than 40 characters; JSON writes line breaks as `\n`.
        let body = text[at..].replace("\\n", "\n");
        let is_base64 = |line: &str| {
            line.len() >= 40 && line.bytes().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'+' | b'/' | b'='))
        };
        let has_body = body.lines().skip(1).take(8).any(|line| is_base64(line.trim()));
        // In JSON a key is in the middle of a line.
        let is_quoted =
            || text[..at].rfind("-----BEGIN ").is_some_and(|begin| at - begin <= "-----BEGIN OPENSSH ".len() + 8);
        (begins || is_quoted()) && has_body
    })
}

fn is_operator(text: &str) -> bool {
    let Ok(table) = text.parse::<toml::Table>() else { return false };
    OPERATOR_TABLES.iter().any(|name| table.get(*name).is_some_and(|value| value.is_table() || value.is_array()))
}

/// Whether each line is a token as `promptshelf token new` prints it.
fn is_list_of_tokens(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')).peekable();
    lines.peek().is_some() && lines.all(|line| line.starts_with('{') && line.contains("sha256 = \""))
}

#[cfg(test)]
mod tests {
    use super::*;

    // req: S-246
    #[test]
    fn private_files_are_found_by_content_and_name() {
        let key = format!("-----BEGIN RSA PRIVATE KEY-----\n{}\n-----END RSA PRIVATE KEY-----\n", "Ab1+".repeat(16));
        let account = format!("{{\"type\": \"x\", \"key\": \"{}\"}}", key.replace('\n', "\\n"));
        let tokens = format!("{{ name = \"ada\", sha256 = \"{}\" }}\n", "0".repeat(64));
        let token = format!("token {}{}\n", "gh", "p_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
        for (path, text) in [
            ("notes.txt", key.as_str()),
            ("a.md", key.as_str()),
            ("x.json", account.as_str()),
            ("list.txt", tokens.as_str()),
            ("notes.txt", token.as_str()),
            ("data.bin", "SQLite format 3\0rest"),
            ("ID_RSA", "x"),
            ("keys/tls.KEY", "x"),
            ("team.db", "x"),
            ("sub/server.toml", ""),
            ("other.toml", "[auth]\ntokens = []\n"),
        ] {
            assert!(private(path, text.as_bytes()).is_some(), "{path}: {text}");
        }
        for (path, text) in [
            ("tokens.md", "Explain tokens"),
            ("keys.md", "A key begins with `-----BEGIN PRIVATE KEY-----`.\n"),
            ("promptshelf.toml", "[server]\nname = \"x\"\n"),
            ("words.txt", "key\ntoken\n"),
            ("cert.pem", "-----BEGIN CERTIFICATE-----\nabc\n"),
            ("data.csv", "sha256,name\n"),
            (".gemini/commands/auth.toml", "prompt = \"x\"\n"),
        ] {
            assert_eq!(private(path, text.as_bytes()), None, "{path}");
        }
        let files = || [("a/key.pem", key.as_bytes()), ("b.md", b"Hi".as_slice())].into_iter();
        let failure = refuse(files(), &[]).expect_err("a private key");
        assert!(failure.message.contains("a/key.pem: this looks like a private key"), "{}", failure.message);
        assert!(refuse(files(), &["a/key.pem".to_owned()]).is_ok());
    }
}

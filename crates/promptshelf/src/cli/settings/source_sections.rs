//! `[[source]]` of `server.toml` as serde types, from which its JSON Schema is derived as well.

use std::{path::PathBuf, str::FromStr, time::Duration};

use promptshelf_source::settings::Bounded;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    requirements::Requirements,
    value::{InvalidValue, from_string},
};

/// The longest name of a source, in bytes.
const MAX_NAME: usize = 32;

/// The longest prefix, in bytes.
const MAX_PREFIX: usize = 64;

pub(super) type Prompts = Bounded<1, 1_000_000>;

/// One source of prompts.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Source {
    /// The name of the source in records, metrics and `_meta`: lower-case letters, digits, `-` and `_`.
    pub(super) name: SourceName,
    /// The kind of source: `folder`, `git`, `store` or `mcp`.
    pub(super) kind: Kind,
    /// The text before the name of each prompt. Default: the name of the source and `-`. Empty for none.
    #[serde(default)]
    pub(super) prefix: Option<Prefix>,
    /// Requirements for everything in the source. Rules of the source itself can only add to them.
    #[serde(default)]
    pub(super) access: Option<Requirements>,
    /// The largest number of prompts. A state with more is not served. Default: 10000 for `mcp`, otherwise as many as the
    /// library allows.
    #[serde(default)]
    pub(super) max_prompts: Option<Prompts>,
    /// The place of the source: a store and its channel such as `sqlite:team.db#production`, a repository such as
    /// `git+https://git.example.com/prompts.git`, or an MCP endpoint.
    #[serde(default)]
    pub(super) url: Option<String>,
    /// For `folder` the folder of prompt files; for `git` a folder inside of the repository.
    #[serde(default)]
    pub(super) path: Option<PathBuf>,
    /// For `git`: the branch, tag or commit.
    #[serde(default)]
    pub(super) r#ref: Option<String>,
    /// For `mcp`: the program and its arguments, instead of a URL.
    #[serde(default)]
    pub(super) command: Option<Vec<String>>,
    /// The time between two looks at a place that does not report changes, such as `60s` or `5m`. Default: 60s.
    #[serde(default)]
    pub(super) interval: Option<Interval>,
    /// For `mcp` and `git`: the time for one answer of the other server. Default: 10s for `mcp`, 120s for `git`.
    #[serde(default)]
    pub(super) timeout: Option<Interval>,
    /// For `git`: the file with the secret of webhooks.
    #[serde(default)]
    pub(super) webhook_secret: Option<SecretFile>,
    /// For `git` and `mcp`: the file with a token, or for `git` with `USER:PASSWORD`.
    #[serde(default)]
    pub(super) credentials: Option<SecretFile>,
    /// For `mcp`: the OAuth client with which the server requests its tokens, instead of `credentials`.
    #[serde(default)]
    pub(super) oauth: Option<OAuthSection>,
    /// For `git`: the file with the public keys of trusted authors, in the format of `allowed_signers`.
    #[serde(default)]
    pub(super) signers: Option<SecretFile>,
    /// For `mcp`: whether a new or changed definition waits for `promptshelf source approve NAME`.
    #[serde(default)]
    pub(super) approve_changes: Option<bool>,
}

/// A file that only the operator and the server read.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SecretFile {
    /// The path of the file.
    pub(super) file: PathBuf,
}

/// A client that is registered at an authorization server.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct OAuthSection {
    /// The issuer identifier of the authorization server. The secret is sent to no other one.
    pub(super) issuer: String,
    /// The client identifier.
    pub(super) client_id: String,
    /// The file with the client secret.
    pub(super) client_secret: SecretFile,
    /// The scopes to request. Default: those that the other server names.
    #[serde(default)]
    pub(super) scopes: Vec<String>,
}

/// The kind of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Kind {
    Folder,
    Git,
    Store,
    Mcp,
}

impl Kind {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Kind::Folder => "folder",
            Kind::Git => "git",
            Kind::Store => "store",
            Kind::Mcp => "mcp",
        }
    }
}

from_string!(Interval, Prefix, SourceName);

/// The name of a source. It is part of the URIs of files.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(with = "String")]
pub(super) struct SourceName(pub(super) String);

impl FromStr for SourceName {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<SourceName, InvalidValue> {
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_');
        let begins = text.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
        match begins && text.len() <= MAX_NAME && text.chars().all(is_plain) {
            true => Ok(SourceName(text.to_owned())),
            false => Err(InvalidValue::new(
                "1 to 32 lower-case letters, digits, `-` and `_`, starting with a letter or digit",
                text,
            )),
        }
    }
}

/// The text before the names of prompts.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(with = "String")]
pub(super) struct Prefix(pub(super) String);

impl FromStr for Prefix {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Prefix, InvalidValue> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        match text.len() <= MAX_PREFIX && text.chars().all(is_plain) {
            true => Ok(Prefix(text.to_owned())),
            false => Err(InvalidValue::new("at most 64 letters, digits, `-`, `_` and `.`", text)),
        }
    }
}

/// A time with its unit, from one second to one day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(with = "String")]
pub(super) struct Interval(pub(super) Duration);

impl FromStr for Interval {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Interval, InvalidValue> {
        const DAY: u64 = 24 * 60 * 60;
        let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let seconds = match &text[digits.len()..] {
            "s" => Some(1),
            "m" => Some(60),
            "h" => Some(60 * 60),
            _ => None,
        };
        let number = digits.parse::<u64>().ok();
        let seconds = seconds.zip(number).and_then(|(unit, number)| number.checked_mul(unit));
        match seconds.filter(|seconds| (1..=DAY).contains(seconds)) {
            Some(seconds) => Ok(Interval(Duration::from_secs(seconds))),
            None => Err(InvalidValue::new("a time from 1s to 24h, such as `60s`, `5m` or `1h`", text)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_unit_and_bounds() {
        let seconds = |text: &str| text.parse().ok().map(|time: Interval| time.0.as_secs());
        assert_eq!([seconds("1s"), seconds("5m"), seconds("24h")], [Some(1), Some(300), Some(86_400)]);
        for invalid in ["", "0s", "60", "s", "-1s", "25h", "1d", "1.5s", "99999999999999999999h"] {
            assert_eq!(seconds(invalid), None, "{invalid}");
        }
    }

    #[test]
    fn names_and_prefixes_are_plain() {
        for invalid in ["", "A", "a b", "-a", "a/b", "ä", &"a".repeat(33)] {
            assert!(invalid.parse::<SourceName>().is_err(), "{invalid}");
        }
        assert!("team_1-x".parse::<SourceName>().is_ok());
        assert!("".parse::<Prefix>().is_ok() && "Team.".parse::<Prefix>().is_ok() && "a b".parse::<Prefix>().is_err());
    }
}

//! Likely secrets: keys, tokens and passwords, found by a table of patterns.
//!
//! A prompt goes to every client and from there to models. The patterns match the fixed prefixes of known secrets, so
//! ordinary text causes no warnings. Entropy is not measured, because prompts are full of examples.

use promptshelf_core::{Code, Diagnostic, Location, SourceText};
use std::{
    ops::Range,
    sync::{Arc, LazyLock},
};

use regex::{Regex, RegexSet};

mod rules;

use rules::RULES;

static ANY: LazyLock<Option<RegexSet>> = LazyLock::new(|| RegexSet::new(RULES.iter().map(|rule| rule.pattern)).ok());

static EACH: LazyLock<Vec<Option<Regex>>> =
    LazyLock::new(|| RULES.iter().map(|rule| Regex::new(rule.pattern).ok()).collect());

/// Words that occur only in example secrets.
const PLACEHOLDERS: &[&str] = &[
    "example",
    "placeholder",
    "changeme",
    "change_me",
    "your",
    "xxxx",
    "redacted",
    "dummy",
    "1234567890",
    "{{",
    "<",
    "*",
    "$(",
    "${",
];

/// Passwords of databases for development, which are none for those who can reach the machine.
const LOCAL_PASSWORDS: &[&str] = &[
    "password", "passwd", "secret", "postgres", "mysql", "mongo", "redis", "root", "admin", "guest", "test", "develop",
];

/// Returns a warning for each likely secret in a text.
#[must_use]
pub fn likely_secrets(source: &Arc<SourceText>) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    check(source, &mut found);
    found
}

pub(super) fn check(source: &Arc<SourceText>, found: &mut Vec<Diagnostic>) {
    let text = &source.text;
    let Some(any) = ANY.as_ref().filter(|any| any.is_match(text)) else { return };
    let mut secrets: Vec<(Range<usize>, &str)> = Vec::new();
    for index in any.matches(text) {
        let (Some(rule), Some(Some(pattern))) = (RULES.get(index), EACH.get(index)) else { continue };
        for captures in pattern.captures_iter(text) {
            let Some(secret) = captures.name("secret").or_else(|| captures.get(0)) else { continue };
            let overlaps = |known: &Range<usize>| known.start < secret.end() && secret.start() < known.end;
            let is_known = is_placeholder(secret.as_str()) || is_default(text, &secret.range());
            if !is_known && !secrets.iter().any(|(known, _)| overlaps(known)) {
                secrets.push((secret.range(), rule.what));
            }
        }
    }
    if secrets.is_empty() {
        return;
    }
    // Excerpts of diagnostics end up in terminals and in the logs of CI, so the diagnostic points into a copy with
    // redacted secrets.
    let mut shown = text.to_string();
    for (span, _) in &secrets {
        let kept = text.floor_char_boundary((span.start + 4).min(span.end));
        shown.replace_range(kept..span.end, &"*".repeat(span.end - kept));
    }
    let shown = SourceText::new(source.path.clone(), shown);
    for (span, what) in secrets {
        let help = "remove it, and revoke it at its issuer: everyone with access to this file may have copied it";
        let message = format!("this looks like {what}");
        found.push(Diagnostic::warning(Code::LikelySecret, Location::new(&shown, span), message).help(help));
    }
}

/// Whether the password of an address is the user's name, a variable, or one that developers use on their own machine.
fn is_default(text: &str, secret: &Range<usize>) -> bool {
    let (before, password, after) = (&text[..secret.start], &text[secret.clone()], &text[secret.end..]);
    let Some((_, user)) = before.strip_suffix(':').and_then(|before| before.rsplit_once("://")) else { return false };
    let is_variable = password.strip_prefix('$').is_some_and(|name| name.starts_with(|c: char| c.is_ascii_uppercase()));
    let is_local = ["@localhost", "@127.0.0.1", "@db:", "@postgres:", "@host.docker.internal"];
    let is_common = LOCAL_PASSWORDS.iter().any(|known| password.to_ascii_lowercase().starts_with(known));
    user.eq_ignore_ascii_case(password)
        || is_variable
        || is_common && is_local.iter().any(|host| after.starts_with(host))
}

fn is_placeholder(secret: &str) -> bool {
    let lower = secret.to_ascii_lowercase();
    let mut characters = secret.chars().collect::<Vec<_>>();
    characters.sort_unstable();
    characters.dedup();
    characters.len() < 5 || PLACEHOLDERS.iter().any(|word| lower.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<Diagnostic> {
        let mut found = Vec::new();
        check(&SourceText::new("a.md", text), &mut found);
        found
    }

    #[test]
    fn rules_match_their_samples() {
        for rule in RULES {
            // Joined at run time, so that secret scanners do not report this file.
            let sample: String = rule.sample.concat();
            let shown = found(&format!("Use {sample} please."));
            assert_eq!(shown.len(), 1, "{}: {sample}", rule.what);
            assert_eq!(shown[0].message, format!("this looks like {}", rule.what));
        }
    }

    #[test]
    fn reported_secret_is_masked() {
        let secret = ["gh", "p_", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"].concat();
        let found = found(&format!("one\ntoken {secret}\n"));
        assert_eq!(found[0].location.to_string(), "a.md:2:7");
        assert!(!found[0].location.source.text.contains(&secret[5..]) && !found[0].message.contains(&secret));
        assert_eq!(found[0].location.source.text.len(), 4 + 6 + secret.len() + 1);
    }

    #[test]
    fn secret_names_and_placeholders_are_accepted() {
        for text in [
            "Never print a password or an API key.",
            "Set API_KEY=\"<your-key>\" first.",
            "AKIAIOSFODNN7EXAMPLE",
            "password: \"{{ password }}\"",
            "postgres://localhost/db and https://example.com/path",
            "sk-ip the tests, task-force-of-the-company-and-others",
            "postgres://postgres:postgres@localhost:5432/app",
            "postgresql://app:password123@localhost/app",
            "https://oauth:$(TOKEN_OF_CI)@git.example.org and redis://u:$REDIS_PASSWORD@cache",
            "the commit 3f786850e387550fdab836ed7e6dc881de23001b",
            "api_key = \"xxxxxxxxxxxxxxxxxxxxxxxxxxxx\"",
        ] {
            assert!(found(text).is_empty(), "{text}");
        }
    }
}

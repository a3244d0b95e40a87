//! What `[auth]` may say, held.

use super::{super::manifest::ManifestFile, *};

fn wrong(text: &str) -> String {
    let found = check_manifest(&ManifestFile::written(text).parse()).expect_err("it is wrong");
    format!("{}: {}", found.location, found.message)
}

#[test]
fn every_mistake_is_named_with_its_place() {
    assert_eq!(
        wrong("[auth]\nisuer = \"x\""),
        "promptshelf.toml:2:1: `isuer` means nothing in [auth] (did you mean `issuer`?)"
    );
    assert!(wrong("[auth]\nalgorithms = [\"HS256\"]").contains("needs a secret that both sides know"));
    assert!(wrong("[auth]\nalgorithms = [\"none\"]").contains("there is no algorithm `none`"));
    assert!(wrong("[auth]\ntokens = [{ name = \"a\" }]").contains("a token needs `name` and `sha256`"));
    assert!(wrong("auth = 1").contains("has to be a section"));
}

// req: P6
#[test]
fn urls_that_tokens_could_be_forged_or_lost_with_are_refused() {
    for right in ["https://a.example", "https://a.example:8443/x", "http://127.0.0.1:9/mcp", "http://localhost/mcp"] {
        assert_eq!(check_url(right), Ok(()), "{right}");
    }
    for wrong in [
        "http://a.example",
        "https://",
        "https://a@b",
        "https://a/x#y",
        "https://a/x?y",
        "a.example",
        "http://localhost.evil.example",
    ] {
        assert!(check_url(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn a_day_begins_at_midnight_in_utc() {
    let day = parse_day("2027-01-31").expect("a day");
    assert_eq!(day.duration_since(SystemTime::UNIX_EPOCH).expect("later").as_secs() % 86_400, 0);
    assert!(parse_day("tomorrow").is_err());
}

//! Which place counts more than another, held.

use std::collections::HashMap;

use super::*;

fn from(http: Option<&str>, arguments: &HttpArguments, environment: &[(&str, &str)], manifest: &str) -> HttpConfig {
    let environment: HashMap<&str, &str> = environment.iter().copied().collect();
    let folder = tempfile::tempdir().expect("a folder for the test");
    std::fs::write(folder.path().join("promptshelf.toml"), manifest).expect("it can be written");
    let file = ManifestFile::read(folder.path());
    let environment = |name: &str| environment.get(name).map(|text| (*text).to_owned());
    HttpConfig::read(&file.parse(), http, arguments, environment).expect("it is right")
}

fn wrong_manifest(text: &str) -> String {
    let found = manifest::read(&ManifestFile::written(text).parse()).expect_err("it is wrong");
    format!("{}: {}", found.location, found.message)
}

#[test]
fn the_command_line_counts_more_than_the_environment_and_that_more_than_the_file() {
    let manifest = "[http]\naddress = \"localhost:1\"\nrequest-timeout = 7\nallow-hosts = [\"file.example\"]\n";
    let environment = [("PROMPTSHELF_HTTP", "localhost:2"), ("PROMPTSHELF_ALLOW_HOSTS", "a.example, b.example")];

    let config = from(None, &HttpArguments::default(), &[], manifest);
    assert_eq!((config.address.to_string().as_str(), config.wanted), ("localhost:1", false));
    assert!(config.options.mcp.allowed_hosts.contains(&"file.example".to_owned()));

    let config = from(None, &HttpArguments::default(), &environment, manifest);
    assert_eq!((config.address.to_string().as_str(), config.wanted), ("localhost:2", true));
    assert!(config.options.mcp.allowed_hosts.ends_with(&["a.example".to_owned(), "b.example".to_owned()]));
    assert_eq!(config.options.request_timeout, Duration::from_secs(7));

    let arguments = HttpArguments { request_timeout: Some("9".to_owned()), ..HttpArguments::default() };
    let config = from(Some("localhost:3"), &arguments, &environment, manifest);
    assert_eq!(config.address.to_string(), "localhost:3");
    assert_eq!(config.options.request_timeout, Duration::from_secs(9));
}

// req: L51, R-15
#[test]
fn without_anything_said_only_this_machine_can_connect() {
    let config = from(None, &HttpArguments::default(), &[], "");
    assert_eq!(config.address.to_string(), DEFAULT_ADDRESS);
    assert!(!config.allow_remote && !config.wanted);
}

#[test]
fn addresses_are_read_as_people_write_them() {
    let read = |text| Address::parse(text).map(|address| address.to_string());
    assert_eq!(read("0.0.0.0:80").as_deref(), Ok("0.0.0.0:80"));
    assert_eq!(read("8080").as_deref(), Ok("127.0.0.1:8080"));
    assert_eq!(read(":0").as_deref(), Ok("127.0.0.1:0"));
    assert_eq!(read("[::1]:9").as_deref(), Ok("[::1]:9"));
    for wrong in ["prompts", "http://localhost:80", "localhost:99999", "localhost:", "::1"] {
        assert!(read(wrong).is_err() || wrong == "::1", "{wrong}");
    }
}

#[test]
fn a_wrong_setting_is_named_with_its_place() {
    assert_eq!(
        wrong_manifest("[http]\nrequest-timeout = 0\n"),
        "promptshelf.toml:2:19: `request-timeout`: this has to be a whole number from 1 to 86400"
    );
    assert_eq!(
        wrong_manifest("[server]\n[http]\nallow-remot = true\n"),
        "promptshelf.toml:3:1: `allow-remot` means nothing in [http] (did you mean `allow-remote`?)"
    );
    assert_eq!(wrong_manifest("http = 8080"), "promptshelf.toml:1:8: `http` has to be a section: write it as [http]");
    assert_eq!(
        wrong_manifest("[http]\naddress = 8080"),
        "promptshelf.toml:2:11: `address`: this has to be a string in quotes"
    );
}

#[test]
fn a_wrong_variable_is_named() {
    let file = ManifestFile::read(Path::new("no/such/folder"));
    let environment = |name: &str| (name == "PROMPTSHELF_ALLOW_REMOTE").then(|| "perhaps".to_owned());
    let failure =
        HttpConfig::read(&file.parse(), None, &HttpArguments::default(), environment).expect_err("it is wrong");
    assert_eq!(failure.exit, Exit::Usage);
    assert_eq!(failure.sentence, "PROMPTSHELF_ALLOW_REMOTE in the environment: this has to be true or false");
}

#[test]
fn a_shared_secret_has_to_be_one() {
    let read = |secret: &'static str| state_key(move |_| Some(secret.to_owned()));
    assert!(read("").is_ok_and(|key| key.is_none()));
    assert!(read("0123456789abcdef").is_ok_and(|key| key.is_some()));
    let refused = read("short").expect_err("it is no secret");
    assert_eq!(refused.sentence, "PROMPTSHELF_STATE_KEY in the environment: a secret needs at least 16 bytes");
}

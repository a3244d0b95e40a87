//! Precedence of flags, environment and file, and the location of mistakes.

use std::collections::HashMap;

use super::*;

type Flags<'a> = &'a [(&'static str, &'a str)];

/// Settings of a `server.toml`, variables and flags.
fn read(text: &str, environment: &[(&str, &str)], flags: Flags<'_>) -> Result<Settings, Failure> {
    read_with(text, environment, flags, &[])
}

fn read_with(
    text: &str,
    environment: &[(&str, &str)],
    flags: Flags<'_>,
    channels: &[&str],
) -> Result<Settings, Failure> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("server.toml");
    std::fs::write(&path, text).expect("the file can be written");
    let environment: HashMap<&str, &str> = environment.iter().copied().collect();
    let environment = |name: &str| environment.get(name).map(|text| (*text).to_owned());
    let location = ServerFileLocation::find(Some(&path), &environment);
    let flags = flags.iter().map(|(name, value)| (*name, vec![(*value).to_owned()])).collect();
    let channels = channels.iter().map(|name| (*name).to_owned()).collect();
    let arguments = Arguments { flags, channels, ..Arguments::default() };
    Settings::read(&location, &arguments, &environment).map_err(|failure| {
        let message = failure.message.replace(&path.display().to_string(), "server.toml");
        Failure { message, ..failure }
    })
}

fn valid(text: &str) -> Settings {
    read(text, &[], &[]).expect("the settings are valid")
}

fn errors(text: &str) -> Vec<String> {
    let failure = read(text, &[], &[]).expect_err("the settings are invalid");
    assert_eq!(failure.exit, Exit::Settings);
    let lines: Vec<String> = failure.message.lines().map(|line| line.trim_start().to_owned()).collect();
    if lines.len() > 1 { lines[1..].to_vec() } else { lines }
}

// req: S-492
#[test]
fn flags_override_the_environment_which_overrides_the_file() {
    let text = "[http]\naddress = \"localhost:1\"\nrequest-timeout = 7\nallow-hosts = [\"file.example\"]\n";
    let environment = [("PROMPTSHELF_HTTP", "localhost:2"), ("PROMPTSHELF_ALLOW_HOSTS", "a.example, b.example")];
    let address = |settings: &Settings| (settings.fixed.address.to_string(), settings.asks_for_http);

    let settings = valid(text);
    assert_eq!(address(&settings), ("localhost:1".to_owned(), true));
    assert_eq!(settings.live.http.mcp.allowed_hosts, ["file.example"]);

    let settings = read(text, &environment, &[]).expect("valid");
    assert_eq!(address(&settings), ("localhost:2".to_owned(), true));
    assert_eq!(settings.live.http.mcp.allowed_hosts, ["a.example", "b.example"]);
    assert_eq!(settings.live.http.request_timeout, Duration::from_secs(7));

    let settings = read(text, &environment, &[("http", "localhost:3"), ("request-timeout", "9")]).expect("valid");
    assert_eq!(address(&settings), ("localhost:3".to_owned(), true));
    assert_eq!(settings.live.http.request_timeout, Duration::from_secs(9));
}

/// Each flag reads its key, so that a new one cannot be forgotten: an invalid value is reported with the name of the flag, or
/// with that of the variable.
#[test]
fn every_flag_and_variable_replaces_its_key() {
    let anything = |flag: &Flag| matches!(flag.value, "FILE" | "FOLDER" | "HOST" | "ORIGIN");
    for flag in FLAGS.iter().filter(|flag| !anything(flag)) {
        let variable = flag.variable();
        for invalid in ["", "http://", "-1"] {
            let of_flag = read("", &[], &[(flag.name, invalid)]);
            let Err(failure) = of_flag else { continue };
            let reason = failure.message.strip_prefix(&format!("--{}: expected ", flag.name)).expect(&failure.message);
            assert_eq!(failure.exit, Exit::Usage);
            let of_variable = read("", &[(&variable, invalid)], &[]).map(drop);
            match of_variable {
                Err(failure) => {
                    assert_eq!(failure.message, format!("{variable} in the environment: expected {reason}"));
                }
                Ok(()) => assert!(invalid.is_empty(), "{variable}"),
            }
        }
        assert!(read("", &[(&variable, "\u{0}")], &[]).is_err(), "{variable}");
    }
    for flag in FLAGS {
        let [section, key] = flag.key;
        assert!(schema()["properties"][section]["properties"][key].is_object(), "{section}.{key}");
        assert!(descriptions()[flag.name].len() > 20, "{}", flag.name);
    }
}

#[test]
fn mistakes_of_the_file_come_before_those_of_flags_and_variables() {
    let text = "[http]\nrequest-timeout = 0\n[[source]]\nname = \"a\"\nkind = \"folder\"\n";
    let failure = read(text, &[("PROMPTSHELF_API", "perhaps")], &[("request-timeout", "1")]).expect_err("invalid");
    assert_eq!(failure.exit, Exit::Settings);
    assert!(failure.message.contains("server.toml:2:") && failure.message.contains("needs `path`"), "{failure}");
    let environment = [("PROMPTSHELF_REQUEST_TIMEOUT", "x")];
    let failure = read("", &environment, &[("max-body-bytes", "y")]).expect_err("invalid");
    assert_eq!(failure.message, "--max-body-bytes: expected a whole number from 1 to 1073741824, got `y`");
}

#[test]
fn changed_settings_that_need_a_restart_are_named() {
    let before = valid("");
    let text =
        "[http]\naddress = \"localhost:1\"\nrequest-timeout = 1\n[usage]\nmin-callers = 2\n[tools]\nmode = \"each\"\n";
    assert_eq!(before.fixed.changed(&valid(text).fixed), ["`address` in [http]", "[usage]"]);
    assert_eq!(before.fixed.changed(&valid("[limits]\nsubscriptions = 3\n").fixed), [""; 0]);
    let (live, kept) = valid("[audit]\nfile = \"a\"\n").live.keep_presence(&before.live);
    assert_eq!((live.audit.is_some(), kept), (false, vec!["[audit]"]));
}

// req: L51, R-15
#[test]
fn default_address_is_loopback() {
    let settings = valid("");
    assert_eq!(settings.fixed.address.to_string(), "127.0.0.1:8080");
    assert!(!settings.fixed.allow_remote && !settings.asks_for_http);
}

/// Without sign-in every caller could change the store.
// req: S-99
#[test]
fn api_is_on_with_sign_in_and_off_without() {
    let digest = "0".repeat(64);
    let tokens = format!("[auth]\ntokens = [{{ name = 'ada', sha256 = '{digest}' }}]\n");
    let has_api = |text: &str| valid(text).fixed.has_api;
    assert!(!has_api("") && has_api(&tokens));
    assert!(!has_api(&format!("{tokens}[api]\nenabled = false\n")) && has_api("[api]\nenabled = true\n"));
    assert!(read("", &[], &[("api", "true")]).expect("valid").fixed.has_api);
    let switched_off = read("[api]\nenabled = true", &[("PROMPTSHELF_API", "false")], &[]).expect("valid");
    assert!(!switched_off.fixed.has_api);
}

// req: S-585
#[test]
fn token_under_two_names_is_refused() {
    let token = |name: &str, digit: &str| format!("{{ name = '{name}', sha256 = '{}' }}", digit.repeat(64));
    let tokens = |lines: [String; 2]| format!("[auth]\ntokens = [{}]\n", lines.join(", "));
    valid(&tokens([token("zoe", "0"), token("bob", "1")]));
    let Err(refused) = read(&tokens([token("zoe", "0"), token("bob", "0")]), &[], &[]) else { panic!("one token") };
    assert!(refused.to_string().contains("`zoe` and `bob`"), "{refused}");
}

#[test]
fn every_mistake_of_every_section_is_reported_at_its_line() {
    let text = "\
[http]
request-timeout = 0
allow-remot = true
address = 8080
[auth]
isuer = \"x\"
algorithms = [\"HS256\", \"none\", \"ES256\"]
tokens = [{ name = \"a\" }, { name = \"b\", sha256 = \"zz\" }]
issuer = \"http://example.com\"
[limits]
requests-per-minute = 0
fuel = 3
[proxy]
trusted = [\"0.0.0.0/0\"]
header = \"x-forwarded-for\"
[traces]
endpoint = \"http://me:word@example.com\"
[metrics]
listen = true
[roots]
a = \"b\"
[[access]]
prompts = [\"*\"]
role = [\"a\"]
";
    assert_eq!(
        errors(text),
        [
            "server.toml:2:19: error[invalid-value]: `request-timeout`: expected a whole number from 1 to 86400, got 0",
            "server.toml:3:1: error[unknown-key]: unknown key `allow-remot` in [http] (did you mean `allow-remote`?)",
            "server.toml:4:11: error[wrong-type]: `address`: expected a string in quotes, found a number",
            "server.toml:6:1: error[unknown-key]: unknown key `isuer` in [auth] (did you mean `issuer`?)",
            "server.toml:7:15: error[invalid-value]: `algorithms`: expected an asymmetric algorithm such as ES256, got `HS256`",
            "server.toml:7:24: error[invalid-value]: `algorithms`: expected an asymmetric algorithm such as ES256, got `none`",
            "server.toml:8:13: error[missing-key]: missing key `sha256` in [auth.tokens]",
            "server.toml:8:50: error[invalid-value]: `sha256`: expected 64 hexadecimal digits",
            "server.toml:9:10: error[invalid-value]: `issuer`: expected an https URL without a query, or http on this machine, got `http://example.com`",
            "server.toml:11:23: error[invalid-value]: `requests-per-minute`: expected a whole number from 1 to 1000000, got 0",
            "server.toml:12:1: error[unknown-key]: `fuel` in [limits] belongs in promptshelf.toml (move it to the `promptshelf.toml` of the library)",
            "server.toml:14:12: error[invalid-value]: `trusted`: expected a network smaller than all addresses, got `0.0.0.0/0`",
            "server.toml:15:10: error[invalid-value]: `header`: expected one of `x-forwarded` and `forwarded`, got `x-forwarded-for`",
            "server.toml:17:12: error[invalid-value]: `endpoint`: expected the URL of a collector, such as http://127.0.0.1:4318",
            "server.toml:19:10: error[wrong-type]: `listen`: expected a string in quotes, found true or false",
            "server.toml:20:2: error[unknown-key]: [roots] belongs in promptshelf.toml (move it to the `promptshelf.toml` of the library)",
            "server.toml:23:1: error[missing-key]: this rule requires nothing of callers (add `scopes`, `roles` or `users`)",
            "server.toml:24:1: error[unknown-key]: unknown key `role` in [[access]] (did you mean `roles`?)",
        ]
    );
}

#[test]
fn settings_that_need_each_other_are_reported_at_their_lines() {
    assert_eq!(
        errors("[auth]\nissuer = \"https://a.example\"\n[tls]\ncertificate = \"chain.pem\"\n[http]\naddres = \"x\"\n"),
        [
            "server.toml:2:10: error[missing-key]: `issuer` in [auth] needs `resource` (set the URL that clients use, such as https://prompts.example.com/mcp; tokens have to be issued for it)",
            "server.toml:4:15: error[missing-key]: `certificate` in [tls] needs `key` (name the file of the private key, as PEM)",
            "server.toml:6:1: error[unknown-key]: unknown key `addres` in [http] (did you mean `address`?)",
        ]
    );
    assert_eq!(
        errors(
            "[tls]\nkey = \"key.pem\"\n[auth]\npage-client-id = \"page\"\ntokens = [{ name = \"\", sha256 = \"DIGEST\" }]\n"
                .replace("DIGEST", &"0".repeat(64))
                .as_str()
        ),
        [
            "server.toml:2:7: error[missing-key]: `key` in [tls] needs `certificate` (name the file of the certificate chain, as PEM)",
            "server.toml:4:18: error[missing-key]: `page-client-id` in [auth] needs `issuer` (name the authorization server at which the page is registered)",
            "server.toml:5:20: error[invalid-value]: a token has an empty name (use the name of its owner)",
        ]
    );
}

#[test]
fn invalid_key_is_not_missing_as_well() {
    let found = errors("[auth]\nissuer = \"https://a.example\"\nresource = \"http://b.example\"\n");
    assert!(found.len() == 1 && found[0].starts_with("server.toml:3:12: error[invalid-value]"), "{found:?}");
    let found = errors("[tls]\ncertificate = \"/nowhere/chain.pem\"\nkey = 1\n");
    assert!(found.len() == 1 && found[0].starts_with("server.toml:3:7: error[wrong-type]"), "{found:?}");
}

#[test]
fn invalid_tokens_file_is_a_mistake_of_the_place_that_names_it() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("tokens");
    let written = format!("[auth]\ntokens-file = '{}'\n", path.display());
    for (tokens, expected) in [("ada\n", "tokens:1: "), ("", "contains no tokens")] {
        std::fs::write(&path, tokens).expect("the file can be written");
        let of_file = read(&written, &[], &[]).expect_err("the tokens are invalid");
        let flag = path.display().to_string();
        let of_flag = read("", &[], &[("tokens", &flag)]).expect_err("the tokens are invalid");
        assert_eq!((of_file.exit, of_flag.exit), (Exit::Settings, Exit::Usage));
        assert!(of_file.message.contains(expected) && of_file.message == of_flag.message, "{of_file}");
    }
}

/// A flag or variable can complete the file; alone it is a mistake of the command line.
#[test]
fn flags_that_need_each_other_are_mistakes_of_the_command_line() {
    let issuer = "[auth]\nissuer = \"https://a.example\"\n";
    let resource = "https://b.example/mcp";
    assert!(read(issuer, &[], &[("resource", resource)]).is_ok_and(|settings| settings.live.sign_in.is_some()));
    assert!(read(issuer, &[("PROMPTSHELF_RESOURCE", resource)], &[]).is_ok());
    let key = [("PROMPTSHELF_TLS_KEY", "/nowhere/key.pem")];
    let tls = read("[tls]\ncertificate = \"chain.pem\"\n", &key, &[]);
    assert!(tls.is_ok_and(|settings| settings.live.tls.is_some()));
    let page = "[auth]\npage-client-id = \"page\"\nresource = \"https://b.example/mcp\"\n";
    let of_flag = [("issuer", "https://a.example")];
    assert!(read(page, &[], &of_flag).is_ok());
    for alone in [of_flag, [("tls-certificate", "chain.pem")]] {
        let failure = read("", &[], &alone).expect_err("something is missing");
        assert_eq!(failure.exit, Exit::Usage, "{failure}");
    }
    let failure = read("", &key, &[]).expect_err("the certificate is missing");
    assert_eq!(failure.exit, Exit::Usage, "{failure}");
}

#[test]
fn defaults_of_the_schema_are_those_of_the_code() {
    let schema = schema();
    let default = |section: &str, key: &str| schema["properties"][section]["properties"][key]["default"].clone();
    let settings = valid("");
    let http = &settings.live.http;
    let limits = Limits::default();
    let audit = valid("[audit]\nfile = \"audit.jsonl\"").live.audit.expect("an audit");
    for (section, key, expected) in [
        ("http", "max-body-bytes", http.mcp.max_body_bytes as u64),
        ("http", "request-timeout", http.request_timeout.as_secs()),
        ("http", "progress-timeout", http.limits.progress_timeout.as_secs()),
        ("http", "shutdown-timeout", http.shutdown_timeout.as_secs()),
        ("limits", "requests-per-minute", limits.requests_per_minute.get().into()),
        ("limits", "completions-per-minute", limits.completions_per_minute.get().into()),
        ("limits", "requests-per-minute-per-address", limits.requests_per_minute_per_address.get().into()),
        ("limits", "concurrent-requests", limits.concurrent_requests.get().into()),
        ("limits", "subscriptions", limits.subscriptions.get().into()),
        ("limits", "connections", http.limits.connections as u64),
        ("limits", "request-bytes", http.limits.request_bytes as u64),
        ("limits", "response-bytes", http.limits.response_bytes as u64),
        ("audit", "max-bytes", audit.max_bytes),
        ("audit", "keep", audit.keep.into()),
    ] {
        assert_eq!(default(section, key), expected, "{key} in [{section}]");
    }
    assert_eq!(default("proxy", "header"), "x-forwarded");
    assert_eq!(default("usage", "enabled"), true);
    // Absent keys and empty lists need no default.
    assert!(default("http", "allow-remote").is_null() && default("http", "allow-hosts").is_null());
}

#[test]
fn sections_have_to_be_tables() {
    assert_eq!(
        errors("http = 8080"),
        [
            "server.toml:1:8: error[wrong-type]: `http`: expected a table, found a number (write it as a section, `[http]`)"
        ]
    );
    assert_eq!(errors("[http\nauth = 1").len(), 1, "syntax errors are reported as well");
}

#[test]
fn invalid_variable_is_named() {
    let environment = [("PROMPTSHELF_ALLOW_REMOTE", "perhaps")];
    let failure = read("", &environment, &[]).expect_err("invalid");
    assert_eq!(failure.exit, Exit::Usage);
    assert_eq!(failure.message, "PROMPTSHELF_ALLOW_REMOTE in the environment: expected true or false, got `perhaps`");
}

#[test]
fn unconfigured_limits_keep_their_defaults() {
    use std::num::NonZeroU32;
    assert_eq!(valid("[limits]").live.limits, None);
    let limits = valid("[limits]\nsubscriptions = 3").live.limits.expect("limits");
    assert_eq!(limits, Limits { subscriptions: NonZeroU32::new(3).expect("three"), ..Limits::default() });
}

#[test]
fn tools_have_modes_and_can_be_disabled() {
    use promptshelf_mcp::ToolMode;
    for (text, expected) in [
        ("", ToolMode::Off),
        ("[tools]", ToolMode::Off),
        ("[tools]\nmode = \"off\"", ToolMode::Off),
        ("[tools]\nmode = \"search\"", ToolMode::Search),
        ("[tools]\nmode = \"each\"", ToolMode::Each),
        ("[tools]\nenabled = false", ToolMode::Disabled),
        ("[tools]\nenabled = false\nmode = \"each\"", ToolMode::Disabled),
    ] {
        assert_eq!(valid(text).live.requests.tools, expected, "{text}");
    }
    assert!(valid("[prompts]\nunknown-arguments = \"refuse\"").live.requests.refuses_unknown_arguments);
    assert!(!valid("[prompts]").live.requests.refuses_unknown_arguments);
    assert!(errors("[tools]\nmode = \"all\"")[0].starts_with("server.toml:2:"));
    assert!(!valid("").live.hides_provenance && !valid("[provenance]").live.hides_provenance);
    assert!(valid("[provenance]\nenabled = false").live.hides_provenance);
    assert!(errors("[provenance]\nenable = true")[0].contains("did you mean `enabled`?"));
    assert!(errors("[tools]\nenabled = \"no\"")[0].starts_with("server.toml:2:"));
}

#[test]
fn profiles_and_discovery_are_read() {
    let settings = valid("[profiles.zed]\none-argument = true\n[discovery]\nserver-card = true");
    let profile = promptshelf_mcp::Profile { one_argument: true, ..promptshelf_mcp::Profile::default() };
    assert_eq!(settings.live.http.profiles, [("zed".to_owned(), profile)].into());
    assert!(settings.live.http.discovery.server_card && !settings.live.http.discovery.catalog);
    assert_eq!(valid("").live.http.discovery, http::Discovery::default());
    assert!(errors("[profiles.\"a/b\"]\nfill-blanks = true")[0].contains("not the name of a profile"));
    assert!(errors("[profiles.a]\nfill = true")[0].contains("unknown key"));
}

#[test]
fn paths_are_relative_to_the_file() {
    let settings = valid("[audit]\nfile = \"audit.jsonl\"\n[grants]\nroots = [\"docs\", \"/srv\"]");
    assert!(settings.live.audit.is_some_and(|audit| audit.path.is_absolute()));
    assert!(settings.live.granted_roots[0].is_absolute() && settings.live.granted_roots[0].ends_with("docs"));
    assert_eq!(settings.live.granted_roots[1], Path::new("/srv"));
}

#[test]
fn unreadable_files_are_refused_with_their_path() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let none = |_: &str| None;
    let load = |name: &str| {
        let path = folder.path().join(name);
        let failure = ServerFileLocation::find(Some(&path), &none).load().expect_err("it cannot be read");
        assert_eq!(failure.exit, Exit::Settings);
        assert!(failure.message.contains(&path.display().to_string()), "{}", failure.message);
        failure.message
    };
    assert!(load("missing.toml").contains("No such file"));
    std::fs::write(folder.path().join("latin1.toml"), b"# a\n# \xe4\n").expect("written");
    assert!(load("latin1.toml").ends_with("line 2 is not UTF-8"));
    std::fs::write(folder.path().join("large.toml"), "#".repeat(10 << 20)).expect("written");
    assert!(load("large.toml").ends_with("expected at most 1048576 bytes"));
    std::fs::create_dir(folder.path().join("folder.toml")).expect("a folder");
    assert!(load("folder.toml").ends_with("expected a regular file"));
}

#[test]
fn file_is_found_by_flag_then_variable_then_default_paths() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let candidates = |flag: Option<&str>, environment: &[(&str, &str)]| {
        let environment: HashMap<&str, &str> = environment.iter().copied().collect();
        let environment = |name: &str| environment.get(name).map(|text| (*text).to_owned());
        let location = ServerFileLocation::find(flag.map(Path::new), &environment);
        location.candidates().iter().map(|path| path.display().to_string()).collect::<Vec<_>>()
    };
    let variables = [("PROMPTSHELF_CONFIG", "b.toml"), ("XDG_CONFIG_HOME", "/x"), ("HOME", "/srv/a")];
    assert_eq!(candidates(Some("a.toml"), &variables), ["a.toml"]);
    assert_eq!(candidates(None, &variables), ["b.toml"]);
    assert_eq!(candidates(None, &variables[1..]), ["/x/promptshelf/server.toml", "/etc/promptshelf/server.toml"]);
    assert_eq!(
        candidates(None, &variables[2..]),
        ["/srv/a/.config/promptshelf/server.toml", "/etc/promptshelf/server.toml"]
    );
    assert_eq!(candidates(None, &[("XDG_CONFIG_HOME", "relative")]), ["/etc/promptshelf/server.toml"]);

    // A file that was found once has to stay.
    let path = folder.path().join("server.toml");
    let location = ServerFileLocation::find(None, &|_| None).keep(Some(&path));
    assert!(location.load().is_err());
}

#[test]
fn secrets_need_a_minimum_length() {
    let read = |secret: &'static str| state_key(move |_| Some(secret.to_owned()));
    assert!(read("").is_ok_and(|key| key.is_none()));
    assert!(read("0123456789abcdef").is_ok_and(|key| key.is_some()));
    let refused = read("short").expect_err("too short");
    assert_eq!(refused.message, "PROMPTSHELF_STATE_KEY in the environment: expected at least 16 bytes, got 5");
}

#[test]
fn schema_has_every_section_and_no_null() {
    let schema = schema();
    assert_eq!(schema["additionalProperties"], false);
    for section in [
        "http",
        "auth",
        "tls",
        "proxy",
        "limits",
        "audit",
        "metrics",
        "traces",
        "access",
        "grants",
        "tools",
        "provenance",
        "profiles",
        "discovery",
    ] {
        let shown = &schema["properties"][section];
        assert!(shown["description"].is_string(), "{section}: {shown}");
    }
    assert_eq!(schema["properties"]["http"]["properties"]["allow-remote"]["type"], "boolean");
    assert_eq!(schema["properties"]["http"]["properties"]["request-timeout"]["maximum"], 86_400);
    assert_eq!(schema["properties"]["proxy"]["properties"]["header"]["enum"][1], "forwarded");
    assert_eq!(schema["properties"]["auth"]["properties"]["tokens"]["items"]["required"][1], "sha256");
    assert!(!schema.to_string().contains("null") && !schema.to_string().contains("$ref"), "{schema}");
}

#[test]
fn schema_says_what_needs_a_restart() {
    let schema = schema();
    let setting = |place: &str| place.split('.').fold(&schema, |outer, key| &outer["properties"][key]);
    for place in Fixed::PLACES {
        let setting = setting(place);
        assert!(setting["type"].is_string() || setting["anyOf"].is_array(), "{place} is no setting: {setting}");
        let about = setting["description"].as_str().expect("a description");
        assert!(
            about.ends_with(" A change takes effect after a restart.") || about.contains("restart. Flag:"),
            "{about}"
        );
    }
    let live = setting("http.request-timeout")["description"].as_str().expect("a description");
    assert!(!live.contains("restart"), "{live}");
}

fn of_store(text: &str, environment: &[(&str, &str)], channels: &[&str]) -> Result<Settings, Failure> {
    read_with(text, environment, &[], channels)
}

#[test]
fn channels_come_from_flags_environment_and_file() {
    let text = "[channels.staging]\nroles = [\"editor\"]\n[channels.production]\nusers = [\"ada\"]\n[channels.qa]\n";
    let names = |environment: &[(&str, &str)], flags: &[&str]| {
        let environment: Vec<_> =
            [("PROMPTSHELF_STORE", "sqlite:team.db")].iter().chain(environment).copied().collect();
        let settings = of_store(text, &environment, flags).expect("valid");
        let channels = settings.fixed.library.channels().expect("channels");
        assert_eq!(channels.default.channel.as_str(), "production");
        channels.others.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    // The default channel is not served twice.
    assert_eq!(names(&[], &[]), ["qa", "staging"]);
    assert_eq!(names(&[("PROMPTSHELF_CHANNELS", "qa, test")], &[]), ["qa", "test"]);
    assert_eq!(names(&[("PROMPTSHELF_CHANNELS", "qa")], &["staging", "production"]), ["staging"]);
    let settings = of_store(text, &[("PROMPTSHELF_STORE", "sqlite:team.db")], &["staging"]).expect("valid");
    let access = settings.live.http.channel_access;
    assert_eq!(access["staging"].roles, ["editor"], "a flag does not remove the rule of a channel");
    assert_eq!(access["production"].users, ["ada"]);
    assert!(!access.contains_key("qa"));
    let failure = of_store("", &[("PROMPTSHELF_STORE", "sqlite:team.db")], &["Staging"]).expect_err("no name");
    assert_eq!(failure.exit, Exit::Usage);
}

#[test]
fn mistakes_in_channels_are_errors() {
    assert_eq!(
        errors("[channels.Staging]\n[channels.qa]\nrole = [\"a\"]\n[store]\ncaches = \"x\"\n"),
        [
            "server.toml:1:1: error[invalid-value]: `Staging` is not the name of a channel (use lower-case letters, digits, `-`, `_` and `.`, starting with a letter or digit)",
            "server.toml:3:1: error[unknown-key]: unknown key `role` in [channels.qa] (did you mean `roles`?)",
            "server.toml:5:1: error[unknown-key]: unknown key `caches` in [store] (did you mean `cache`?)",
        ]
    );
}

fn rollout(text: &str) -> (promptshelf_store::RolloutPlan, Vec<String>) {
    let mut file = ServerFile::new(None, text);
    let written = file.read();
    (written.rollout.plan(), file.file.diagnostics().iter().map(ToString::to_string).collect())
}

#[test]
fn defaults_of_rollouts_are_read() {
    let (plan, found) =
        rollout("[rollout]\npercent = 20\nsteps = \"1h\"\nstop = { errors = \"3x\", declined = \"1.5x\" }\n");
    assert_eq!(found, Vec::<String>::new());
    let mut expected = promptshelf_store::RolloutPlan::new(20);
    (expected.steps, expected.errors, expected.declined) = (Some(Duration::from_secs(3_600)), Some(3.0), Some(1.5));
    assert_eq!(plan, expected);
    // Without settings, a rollout is not without a bound.
    assert_eq!(rollout("").0, promptshelf_store::RolloutPlan::default());
    assert_eq!(rollout("").0.errors, Some(2.0));
}

// req: S-201
#[test]
fn mistakes_in_rollouts_are_named() {
    for (keys, expected) in [
        ("percent = 101", "from 1 to 100"),
        ("percent = 0", "from 1 to 100"),
        ("stop = { errors = \"0.5x\" }", "from 1x to 100x"),
        ("stop = { errors = \"2\" }", "from 1x to 100x"),
        ("steps = \"0s\"", "from 1s to 24h"),
        ("to = \"next\"", "unknown key `to`"),
    ] {
        let (_, found) = rollout(&format!("[rollout]\n{keys}\n"));
        assert!(found.len() == 1 && found[0].contains(expected), "{keys}: {found:?}");
    }
}

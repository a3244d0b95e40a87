//! The start of commands: what `serve` refuses to serve, variables of the environment, secrets, and the schema of stores.

use std::{fs, path::Path, process::Command};

use promptshelf_testkit::database::Postgres;

use crate::program::{Folder, Server, library, promptshelf, shown};

const HELLO: &str = "---\ndescription: Greets\n---\nSay hello.\n";

fn here(folder: &Folder, line: &[&str]) -> Command {
    let mut command = promptshelf();
    command.args(line).current_dir(folder.path());
    command
}

fn with(folder: &Folder, line: &[&str], variables: &[(&str, &str)]) -> String {
    let mut command = here(folder, line);
    command.envs(variables.iter().copied());
    shown(command, "")
}

// req: S-324
#[test]
fn server_over_http_serves_only_what_is_named() {
    let folder = Folder::empty();
    folder.write("notes.md", HELLO);
    let line = ["serve", "--http", "127.0.0.1:0"];
    let refused = with(&folder, &line, &[]);
    assert!(refused.starts_with("exit code: 2") && refused.contains("nothing says what to serve"), "{refused}");
    for (variable, meant) in [("PROMTSHELF_STORE", "PROMPTSHELF_STORE"), ("PROMPTSHELF_STOER", "PROMPTSHELF_STORE")] {
        let refused = with(&folder, &line, &[(variable, "sqlite:team.db")]);
        assert!(refused.starts_with("exit code: 2"), "{refused}");
        assert!(refused.contains(&format!("did you mean {meant}?")), "{refused}");
    }
    let unknown = {
        let mut command = here(&folder, &["serve", ".", "--http", "127.0.0.1:0"]);
        command.env("PROMPTSHELF_HTPP", "x");
        Server::start(command)
    };
    assert!(unknown.startup_log.contains("PROMPTSHELF_HTPP in the environment is unknown"), "{}", unknown.startup_log);
    folder.write("promptshelf.toml", "");
    drop(Server::start(here(&folder, &line)));
}

// req: S-324
#[test]
fn root_and_home_folder_are_not_served_on_stdio() {
    let home = Folder::empty();
    home.write("notes.md", HELLO);
    let variables = [("HOME", home.path().to_str().expect("UTF-8"))];
    for line in [&["serve", "--stdio"][..], &["serve", "--stdio", "."], &["serve", "--stdio", "/"]] {
        let refused = with(&home, line, &variables);
        assert!(refused.starts_with("exit code: 2") && refused.contains("is not served"), "{line:?}: {refused}");
    }
    home.write("promptshelf.toml", "");
    let served = with(&home, &["serve", "--stdio"], &variables);
    assert!(served.starts_with("exit code: 0"), "{served}");
}

// req: S-324
#[test]
fn check_of_settings_with_sources_reads_the_sources_and_not_the_working_directory() {
    let folder = library(&[("good.md", HELLO), ("bad.md", "---\ndescription: [\n---\n")]);
    folder.write("elsewhere.md", "---\ndescription: [\n---\n");
    folder.write("server.toml", "[[source]]\nname = \"team\"\nkind = \"folder\"\npath = \"prompts\"\n");
    let checked = with(&folder, &["check", "--config", "server.toml"], &[]);
    assert!(checked.starts_with("exit code: 1") && checked.contains("prompts/bad.md"), "{checked}");
    assert!(!checked.contains("elsewhere") && checked.contains("1 prompt,"), "{checked}");
    // Together they are what is served: one list of names, and the operator's rules.
    folder.write("other/good.md", HELLO);
    let source =
        |name: &str, path: &str| format!("[[source]]\nname = \"{name}\"\nkind = \"folder\"\npath = \"{path}\"\n");
    let rules = "[[access]]\nprompts = [\"team-good\", \"nothing\"]\nscopes = [\"read\"]\n";
    folder.write("server.toml", &[&source("team", "prompts"), &source("more", "other"), rules].concat());
    let checked = with(&folder, &["check", "--config", "server.toml"], &[]);
    assert!(checked.contains("matches `nothing`") && !checked.contains("matches `team-good`"), "{checked}");
    assert!(checked.contains("`promptshelf check prompts other --fix`") || !checked.contains("--fix"), "{checked}");
    let served = with(&folder, &["serve", "--stdio", "--config", "server.toml"], &[]);
    let count = |text: &str| text.matches("error[").count() + text.matches("warning[").count();
    assert_eq!(count(&checked), count(&served), "{checked}\n{served}");
    // A rule may be about the prompts of a source that is not read.
    let elsewhere = "[[source]]\nname = \"docs\"\nkind = \"mcp\"\nurl = \"https://mcp.example.com/mcp\"\n";
    folder.write("server.toml", &[&source("team", "prompts"), elsewhere, rules].concat());
    let checked = with(&folder, &["check", "--config", "server.toml"], &[]);
    assert!(checked.contains("not read: docs;") && !checked.contains("unmatched-rule"), "{checked}");
    // Nor with sources that are mistakes.
    folder.write("server.toml", "[[source]]\nkind = \"folder\"\n");
    let checked = with(&folder, &["check", "--config", "server.toml"], &[]);
    assert!(checked.starts_with("exit code: 4") && !checked.contains("elsewhere"), "{checked}");
}

// req: S-329
#[test]
fn secrets_come_from_files_too() {
    let folder = Folder::empty();
    folder.write("store", "sqlite:team.db\n");
    folder.write("empty", "\n");
    folder.write("two", "a\nb\n");
    let file = [("PROMPTSHELF_STORE_FILE", "store")];
    for line in [&["init"][..], &["history"], &["policy"], &["store", "migrate", "--check"], &["token", "list"]] {
        let output = with(&folder, line, &file);
        assert!(output.starts_with("exit code: 0"), "{line:?}: {output}");
    }
    let server = {
        let mut command = here(&folder, &["serve", "--http", "127.0.0.1:0"]);
        Server::start({
            command.envs(file);
            command
        })
    };
    assert!(server.startup_log.contains("sqlite:team.db#production"), "{}", server.startup_log);
    for (variables, words) in [
        (vec![file[0], ("PROMPTSHELF_STORE", "sqlite:other.db")], "are both set"),
        (vec![("PROMPTSHELF_STORE_FILE", "missing")], "cannot be read"),
        (vec![("PROMPTSHELF_STORE_FILE", "empty")], "one line"),
        (vec![("PROMPTSHELF_TOKEN_FILE", "two")], "one line"),
        (vec![("PROMPTSHELF_STATE_KEY_FILE", "missing")], "PROMPTSHELF_STATE_KEY_FILE"),
    ] {
        let refused = with(&folder, &["history"], &variables);
        assert!(refused.starts_with("exit code: 2") && refused.contains(words), "{variables:?}: {refused}");
    }
    let refused = with(&folder, &["serve", "--stdio"], &[("PROMPTSHELF_STATE_KEY_PREVIOUS", "0123456789abcdef")]);
    assert!(refused.starts_with("exit code: 2") && refused.contains("without PROMPTSHELF_STATE_KEY"), "{refused}");
}

// req: S-327
#[test]
fn password_with_separators_is_never_printed() {
    let folder = library(&[("hello.md", HELLO)]);
    for secret in
        ["Hunter#Tail99secret", "Hunter?Tail99secret", "Hunter/Tail99secret", "12#tail99secret", "Hunter@Tail99secret"]
    {
        let store = format!("postgres://promptshelf:{secret}@127.0.0.1:1/prompts");
        for line in [
            &["history"][..],
            &["init"],
            &["pull", "team"],
            &["publish", "prompts", "-m", "x"],
            &["policy"],
            &["usage"],
            &["token", "list"],
            &["store", "migrate"],
            &["serve", "--http", "127.0.0.1:0"],
            &["serve", "--stdio"],
        ] {
            let output = with(&folder, line, &[("PROMPTSHELF_STORE", &store)]);
            assert!(!output.to_lowercase().contains("tail99") && !output.contains("Hunter"), "{line:?}: {output}");
            assert!(!output.starts_with("exit code: 0"), "{line:?}: {output}");
        }
        // Also for commands that expect a folder or a server, and for a scheme with a mistake.
        let (upper, mistyped) = (store.replace("postgres", "POSTGRES"), store.replace("postgres:", "postgress:"));
        for line in [
            &["history", "--store", &store][..],
            &["history", &store],
            &["serve", &store],
            &["serve", &upper],
            &["serve", &mistyped],
            &["pull", &store],
            &["check", &store],
            &["list", &store],
            &["get", "hello", "--library", &store],
            &["sync", "--client", "cursor", &mistyped],
            &["install", "--client", "cursor", &upper],
            &["publish", &store, "-m", "x"],
            &["history", "--url", &store],
        ] {
            let output = with(&folder, line, &[]);
            assert!(!output.to_lowercase().contains("tail99") && !output.contains("Hunter"), "{line:?}: {output}");
        }
    }
}

// req: S-331
#[test]
fn stores_that_cannot_be_reached_have_one_exit_code() {
    let folder = library(&[("hello.md", HELLO)]);
    let server = Postgres::shared();
    server.sql("postgres", "CREATE ROLE locked LOGIN PASSWORD 'the real one'");
    let store = server.database();
    let with_user = store.replace("postgres@", "locked:hunter2@");
    let away = with_user.replace(&server.port().to_string(), "1");
    let missing = format!("{store}-missing");
    for place in [&with_user, &away, &missing, &"sqlite:no-such-folder/team.db".to_owned()] {
        for line in [
            &["history"][..],
            &["publish", "prompts", "-m", "x"],
            &["init"],
            &["store", "migrate"],
            &["store", "migrate", "--check"],
            &["pull", "team"],
            &["serve", "--http", "127.0.0.1:0"],
        ] {
            let output = with(&folder, line, &[("PROMPTSHELF_STORE", place)]);
            assert!(output.starts_with("exit code: 15"), "{place} {line:?}: {output}");
            assert!(!output.contains("hunter2"), "{output}");
            // A suggested command can be run.
            assert!(!output.lines().any(|line| line.contains("`promptshelf") && line.contains("***")), "{output}");
        }
    }
    // Suggested commands can be run: the variable has the password.
    let database = server.database();
    let store = database.replace("postgres@", "postgres:anything@");
    let made = with(&folder, &["init", "--from", "prompts"], &[("PROMPTSHELF_STORE", &store)]);
    assert!(made.starts_with("exit code: 0") && made.contains("serve: `promptshelf serve`"), "{made}");
    let made = with(&folder, &["init", &format!("{store}#staging"), "--from", "prompts"], &[]);
    assert!(made.contains("serve: `promptshelf serve \"$PROMPTSHELF_STORE#staging\"`"), "{made}");
}

/// Makes a database as a release with the first migrations did.
fn older(migrations: usize) -> String {
    let (server, folder) =
        (Postgres::shared(), Path::new(env!("CARGO_MANIFEST_DIR")).join("../promptshelf-store/migrations"));
    let url = server.database();
    let name = url.rsplit('/').next().expect("a name").to_owned();
    let mut files: Vec<_> = fs::read_dir(folder).expect("a folder").map(|file| file.expect("a file").path()).collect();
    files.sort();
    for (index, file) in files.iter().enumerate().take(migrations) {
        let sql = fs::read_to_string(file).expect("a migration").replace("{BYTES}", "BYTEA");
        server.sql(&name, &sql.replace("{ID}", "BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY"));
        if index == 0 {
            server.sql(&name, "INSERT INTO ps_library (id, epoch, major) VALUES (1, 'e', 1)");
        }
        server.sql(&name, &format!("INSERT INTO ps_migration (number, at) VALUES ({}, 0)", index + 1));
    }
    url
}

// req: S-328
#[test]
fn commands_that_read_do_not_migrate_and_others_say_so() {
    let folder = library(&[("hello.md", HELLO)]);
    let url = older(7);
    let store = [("PROMPTSHELF_STORE", url.as_str())];
    for line in [&["policy"][..], &["proposals"], &["usage"], &["token", "list"], &["rollout", "list"]] {
        let output = with(&folder, line, &store);
        assert!(output.starts_with("exit code: 0") && !output.contains("schema"), "{line:?}: {output}");
    }
    let checked = with(&folder, &["store", "migrate", "--check"], &store);
    assert!(checked.starts_with("exit code: 1") && checked.contains("version 7 of"), "{checked}");
    let published = with(&folder, &["publish", "prompts", "-m", "first"], &store);
    assert!(published.starts_with("exit code: 0"), "{published}");
    assert!(
        published.contains("note: the schema of") && published.contains("was version 7, and is version"),
        "{published}"
    );
    let again = with(&folder, &["publish", "prompts", "-m", "second"], &store);
    assert!(!again.contains("note: the schema"), "{again}");

    let name = url.rsplit('/').next().expect("a name");
    Postgres::shared().sql(name, "INSERT INTO ps_migration (number, at) VALUES (98, 0)");
    let newer = with(&folder, &["store", "migrate", "--check"], &store);
    assert!(newer.starts_with("exit code: 0") && newer.contains("is newer than this program: version 98"), "{newer}");

    let url = older(7);
    let mut command = here(&folder, &["serve", "--http", "127.0.0.1:0"]);
    command.env("PROMPTSHELF_STORE", &url);
    let output = shown(command, "");
    assert!(output.contains("was version 7, and is version"), "{output}");
}

#[test]
fn address_of_the_file_listens_without_a_terminal() {
    let folder = library(&[("hello.md", HELLO)]);
    fs::write(folder.path().join("server.toml"), "[http]\naddress = \"127.0.0.1:0\"\n").expect("written");
    // Standard input is no terminal here.
    let server = Server::start(here(&folder, &["serve", "prompts", "--config", "server.toml"]));
    assert_eq!(server.request("prompts/list", &serde_json::json!({})).0, 200);
    let on_stdio = with(&folder, &["serve", "prompts", "--config", "server.toml", "--stdio"], &[]);
    assert!(on_stdio.contains("serving on stdio"), "{on_stdio}");
}

// req: S-433
#[test]
fn check_opens_everything_that_the_settings_name_and_changes_nothing() {
    let folder = library(&[("hello.md", HELLO)]);
    let settings = "[[source]]\nname = \"team\"\nkind = \"store\"\nurl = \"sqlite:team.db#production\"\n\
                    [[source]]\nname = \"here\"\nkind = \"folder\"\npath = \"prompts\"\n\
                    [[webhook]]\nurl = \"http://localhost:9/events\"\nallow-private = true\nevents = [\"published\"]\n\
                    secret = { file = \"secret\" }\n[audit]\nfile = \"audit.jsonl\"\n[http]\naddress = \"127.0.0.1:0\"\n";
    fs::write(folder.path().join("server.toml"), settings).expect("written");
    fs::write(folder.path().join("secret"), "6d9d5b2c1f7e4a38\n").expect("written");
    let check = || with(&folder, &["serve", "--check", "--config", "server.toml"], &[]);
    let failed = check();
    assert!(failed.starts_with("exit code: 4") && failed.contains("FAILED  channel"), "{failed}");
    assert!(failed.contains("2 of 7 things that the settings name cannot be used"), "{failed}");
    assert!(failed.contains("ok      source    here (folder): 1 prompt"), "{failed}");
    assert!(!folder.path().join("team.db").exists() && !folder.path().join("audit.jsonl").exists());

    assert!(with(&folder, &["init", "sqlite:team.db"], &[]).starts_with("exit code: 0"));
    let well = check();
    assert!(well.starts_with("exit code: 0") && well.contains("ok      channel   sqlite:"), "{well}");
    assert!(well.contains("ok      webhook   http://localhost:9: it is ") && well.contains("audit"), "{well}");
    fs::write(folder.path().join("secret"), "short\n").expect("written");
    let secret = check();
    assert!(secret.contains("FAILED  webhook") && secret.contains("expected at least 16"), "{secret}");
    let tls = ["serve", "prompts", "--check", "--tls-certificate", "none.pem", "--tls-key", "none.pem"];
    let tls = with(&folder, &tls, &[]);
    assert!(tls.starts_with("exit code: 4") && tls.contains("FAILED  certificate"), "{tls}");
}

//! Libraries in git repositories, with the real program `git`.

use std::{fs, process::Command, time::Instant};

use promptshelf_testkit::{folder::executable, git::Repository};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::program::{PATIENCE, Server, promptshelf, shown};

const HELLO: &str = "---\ndescription: Greets\n---\nSay hello.\n";

fn command(repository: &Repository, words: &[&str]) -> Command {
    let mut command = promptshelf();
    command.args(words).current_dir(repository.path()).env("XDG_STATE_HOME", repository.path().join("state"));
    command
}

fn get(server: &Server) -> Value {
    server.request("prompts/get", &json!({ "name": "hello" })).1["result"].clone()
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

#[test]
fn served_repository_is_followed_and_survives_its_absence() {
    let repository = Repository::new(&[("prompts/hello.md", HELLO), ("other.md", "Other")]);
    let first = repository.git(&["rev-parse", "HEAD"]);
    let library = repository.address("#main:prompts");
    let start = || Server::start(command(&repository, &["serve", &library, "--http", "127.0.0.1:0"]));
    let server = start();
    let found = get(&server);
    assert_eq!(found["messages"][0]["content"]["text"], "Say hello.");
    assert_eq!(found["_meta"], json!({ "dev.promptshelf/commit": first }));
    assert_eq!(server.request("prompts/list", &json!({})).1["result"]["prompts"].as_array().map(Vec::len), Some(1));
    let second = repository.commit(&[("prompts/hello.md", &HELLO.replace("hello", "good day"))]);
    kill_process(Pid::from_child(&server.child), Signal::HUP).expect("a running process");
    until("the signal polls", || get(&server)["_meta"]["dev.promptshelf/commit"] == second.as_str());
    assert_eq!(get(&server)["messages"][0]["content"]["text"], "Say good day.");
    drop(server);
    fs::rename(repository.bare(), repository.path().join("away.git")).expect("renamed");
    let server = start();
    assert!(server.startup_log.contains("the newest commit is not served: the repository cannot be read"));
    assert_eq!(get(&server)["_meta"]["dev.promptshelf/commit"], second.as_str());
}

#[test]
fn commands_read_repositories_and_name_problems() {
    let repository = Repository::new(&[("hello.md", HELLO)]);
    let run = |words: &[&str], fragment: &str| {
        let address = repository.address(fragment);
        shown(command(&repository, &[words, &[&address]].concat()), "")
    };
    assert!(run(&["list"], "").contains("hello"), "{}", run(&["list"], ""));
    assert!(run(&["check"], "#main").contains("1 prompt, no findings"), "{}", run(&["check"], "#main"));
    let unknown = run(&["list"], "#mian");
    assert!(
        unknown.contains("exit code: 7") && unknown.contains("no branch or tag \"mian\"; it has main"),
        "{unknown}"
    );
    let option = run(&["serve"], "#--upload-pack=x");
    assert!(option.contains("exit code: 2") && option.contains("git would read it as an option"), "{option}");
    let address = repository.address("");
    let mut without = command(&repository, &["serve", &address]);
    without.env("PATH", "/nowhere");
    let without = shown(without, "");
    assert!(without.contains("the program `git` was not found: install git"), "{without}");
    let secret = shown(command(&repository, &["list", "git+https://ada:s3cret@git.example/a.git"]), "");
    assert!(secret.contains("the URL contains credentials") && !secret.contains("s3cret"), "{secret}");
}

#[test]
fn ssh_never_asks_and_accepts_no_unknown_host() {
    let repository = Repository::new(&[("hello.md", HELLO)]);
    // Runs the command of the other side on this machine, as the server would.
    let script = "#!/bin/sh\nprintf '%s\\n' \"$@\" > arguments\ncase \"$*\" in *changed*)\n\
                  echo 'WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!' >&2\necho 'Host key verification failed.' >&2\n\
                  exit 255;; esac\nfor last; do :; done\nexec sh -c \"$last\"\n";
    let programs = repository.path().join("programs");
    let script = script.replace("> arguments", &format!("> {}/arguments", programs.display()));
    executable(programs.join("ssh"), script);
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default());
    let list = |address: &str| {
        let mut command = command(&repository, &["list", address]);
        command.env("PATH", &path).env("GIT_SSH_COMMAND", "/nowhere");
        shown(command, "")
    };
    let good = list(&format!("git+ssh://git@git.example{}#main", repository.bare().display()));
    assert!(good.contains("hello"), "{good}");
    let arguments = fs::read_to_string(programs.join("arguments")).expect("ssh was started");
    for option in ["-oBatchMode=yes", "-oStrictHostKeyChecking=yes", "git@git.example"] {
        assert!(arguments.lines().any(|argument| argument == option), "{arguments}");
    }
    let changed = list("git+ssh://git@changed.example/prompts.git");
    assert!(
        changed.contains("the host key is unknown or has changed: compare it with that of the server"),
        "{changed}"
    );
}

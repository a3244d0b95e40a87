//! Each system call of the commands that write files of people fails in turn: the disk is full or broken, there are no
//! more file descriptors, a permission is missing, or the program is killed.
//!
//! Afterwards each file is as before or as after, the person is told, and a repetition succeeds. `strace` injects the
//! failures. `SYSTEM_CALLS=all` tries every one; otherwise the tests try some of them.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::process::ExitStatusExt as _,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use promptshelf_testkit::{amount, figure};

use crate::program::promptshelf;

/// The system calls that change files. Those that only read cannot leave half a file.
const WRITING: &str = "write,pwrite64,writev,openat,rename,renameat,renameat2,fsync,fdatasync,ftruncate,fallocate,mkdir,\
                       mkdirat,unlink,unlinkat,link,linkat,symlink,symlinkat,fchmod,fchmodat,chmod";

const FAILURES: [&str; 5] = ["error=ENOSPC", "error=EIO", "error=EMFILE", "error=EACCES", "signal=SIGKILL"];

/// Seconds, and the exit status of `timeout` after them.
const LONGEST: &str = "20";
const TIMED_OUT: i32 = 124;

/// The number of calls of a command that fail without `SYSTEM_CALLS=all`.
const MOST: usize = 10;

/// A command that writes, and how to see its result.
struct Writer {
    name: &'static str,
    /// Files before the command.
    files: &'static [(&'static str, &'static str)],
    /// Commands that prepare the folder.
    before: &'static [&'static [&'static str]],
    /// Files that are changed after them.
    edited: &'static [(&'static str, &'static str)],
    command: &'static [&'static str],
    /// A command whose output is the state, for databases. Without one, the state is the files.
    read: Option<&'static [&'static str]>,
    /// Whether several files change one after the other, each as a whole.
    many: bool,
}

type Files = BTreeMap<PathBuf, String>;

/// All files below a folder, apart from locks and copies that are only there for the next run.
fn files(folder: &Path, below: &Path, found: &mut Files) {
    for entry in fs::read_dir(below).expect("a folder").flatten() {
        let path = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            files(folder, &path, found);
        } else {
            let name = path.strip_prefix(folder).expect("it is below").to_owned();
            let bytes = fs::read(&path).unwrap_or_default();
            found.insert(name, String::from_utf8_lossy(&bytes).into_owned());
        }
    }
}

fn run(folder: &Path, words: &[&str], inject: Option<&str>, log: &Path) -> Output {
    let program = promptshelf();
    let mut command = match inject {
        None => Command::new(program.get_program()),
        Some(inject) => {
            // A thread that could not wake another one may leave the program waiting for ever.
            let mut strace = Command::new("timeout");
            strace.args(["--kill-after=2", LONGEST, "strace"]);
            strace.args(["-f", "-y", "-qq", "-o"]).arg(log).arg(format!("--trace={WRITING}"));
            if !inject.is_empty() {
                strace.arg(format!("--inject={inject}"));
            }
            strace.arg("--").arg(program.get_program());
            strace
        }
    };
    command.args(words).current_dir(folder).stdin(Stdio::null());
    command
        .env("HOME", folder)
        .env("XDG_STATE_HOME", folder.join("state"))
        .env("XDG_CONFIG_HOME", folder.join("config"));
    // With one thread for the runtime, calls have the same numbers in each run.
    command.env("TOKIO_WORKER_THREADS", "1").env_remove("PROMPTSHELF_TOKEN");
    command.output().expect("strace is installed: apt-get install --yes strace")
}

impl Writer {
    fn folder(&self) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |files: &[(&str, &str)]| {
            for (path, text) in files {
                let path = folder.path().join(path);
                fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
                fs::write(path, text).expect("written");
            }
        };
        write(self.files);
        for words in self.before {
            let output = run(folder.path(), words, None, Path::new(""));
            assert!(output.status.success(), "{}: {output:?}", self.name);
        }
        write(self.edited);
        folder
    }

    /// The state that the person cares for.
    fn state(&self, folder: &Path) -> Files {
        let mut found = Files::new();
        if let Some(words) = self.read {
            let output = run(folder, words, None, Path::new(""));
            assert!(output.status.success(), "{}: {output:?}", self.name);
            let read = folder.join("read");
            files(&read, &read, &mut found);
            fs::remove_dir_all(&read).expect("an own folder");
        } else {
            files(folder, folder, &mut found);
        }
        // A lock, and what an interrupted run leaves for the next one to clean up, is nobody's file.
        found.retain(|path, _| {
            let text = path.to_string_lossy();
            !(text.starts_with("state")
                || text.starts_with("team.db")
                || text.ends_with(".lock")
                || text.contains("/.promptshelf")
                || text.starts_with(".promptshelf"))
        });
        found
    }

    /// The calls of a run without failures that write a file in the folder: the name, and the number among the calls of this
    /// name in its thread. One with that number in another thread must not be something else.
    fn calls(&self, folder: &Path, log: &Path) -> Vec<(String, usize)> {
        let output = run(folder, self.command, Some(""), log);
        assert!(output.status.success(), "{}: {output:?}", self.name);
        let text = fs::read_to_string(log).expect("the log of strace");
        let place = folder.to_string_lossy();
        let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
        let mut calls: Vec<(String, usize)> = Vec::new();
        let mut others: Vec<(String, usize)> = Vec::new();
        for line in text.lines() {
            let Some((thread, call)) = line.split_once(' ') else { continue };
            let Some((name, arguments)) = call.trim_start().split_once('(') else { continue };
            if name.contains([' ', '+', '<']) {
                continue;
            }
            let count = counts.entry((thread, name)).or_default();
            *count += 1;
            let only_reads =
                name == "openat" && !["O_CREAT", "O_WRONLY", "O_RDWR"].iter().any(|flag| arguments.contains(flag));
            let call = (name.to_owned(), *count);
            match arguments.contains(&*place) && !only_reads {
                true if !calls.contains(&call) => calls.push(call),
                true => {}
                false => others.push(call),
            }
        }
        calls.retain(|call| !others.contains(call) || call.0 == "openat");
        calls
    }

    fn try_all(&self) {
        let logs = tempfile::tempdir().expect("a folder");
        let log = logs.path().join("calls");
        let folder = self.folder();
        let before = self.state(folder.path());
        let calls = self.calls(folder.path(), &log);
        let after = self.state(folder.path());
        assert!(before != after, "{}: it changes nothing", self.name);
        let is_all = std::env::var("SYSTEM_CALLS").is_ok_and(|all| all == "all");
        let skip = amount("SYSTEM_CALLS_FROM").unwrap_or_default() as usize;
        let every = calls.len().div_ceil(MOST);
        let mut tried = 0;
        for (at, (call, number)) in calls.iter().enumerate() {
            for (kind, failure) in FAILURES.iter().enumerate() {
                // Some of the calls, each in one way.
                if !is_all && (at % every != 0 || (at / every + skip) % FAILURES.len() != kind) {
                    continue;
                }
                let what = format!("{}: {call} number {number}, {failure}", self.name);
                let folder = self.folder();
                let output = run(folder.path(), self.command, Some(&format!("{call}:{failure}:when={number}")), &log);
                // Threads wake each other by a write, which is none to a file.
                let is_waiting = output.status.code() == Some(TIMED_OUT);
                if is_waiting || String::from_utf8_lossy(&output.stderr).contains("failed to wake I/O driver") {
                    continue;
                }
                tried += 1;
                let found = self.state(folder.path());
                let is_killed = failure.starts_with("signal");
                if self.many {
                    for (path, bytes) in &found {
                        let old_or_new = [before.get(path), after.get(path)].contains(&Some(bytes));
                        assert!(old_or_new, "{what}: {} is neither old nor new\n{output:?}", path.display());
                    }
                    for path in before.keys().filter(|path| after.contains_key(*path)) {
                        assert!(found.contains_key(path), "{what}: {} is lost", path.display());
                    }
                } else {
                    assert!(found == before || found == after, "{what}: neither old nor new: {found:#?}\n{output:?}");
                }
                if is_killed {
                    assert!(
                        output.status.signal().is_some()
                            || output.status.code() == Some(137)
                            || output.status.success(),
                        "{what}: {output:?}"
                    );
                } else if found != after {
                    // The person is told: the command failed, and says so.
                    assert!(!output.status.success(), "{what}: it claims to have done it\n{output:?}");
                    assert!(!output.stderr.is_empty(), "{what}: nothing is said");
                    let text = String::from_utf8_lossy(&output.stderr);
                    assert!(!text.contains("panicked"), "{what}: {text}");
                }
                let again = run(folder.path(), self.command, None, &log);
                let is_done = self.state(folder.path()) == after;
                assert!(
                    is_done,
                    "{what}: a repetition does not do it: {:#?}\n{output:?}\n{again:?}",
                    self.state(folder.path())
                );
            }
        }
        figure(&format!("failing system calls: {}: {} calls, {tried} failures", self.name, calls.len()));
    }
}

const PROMPT: &str = "---\ndescription: Reviews\n---\nReview.\n";

const WRITERS: [Writer; 8] = [
    Writer {
        name: "sync",
        files: &[("lib/a.md", PROMPT), ("lib/b.md", PROMPT), ("project/keep.txt", "mine")],
        before: &[],
        edited: &[],
        command: &["sync", "--client", "claude-code", "--to", "project", "lib"],
        read: None,
        many: true,
    },
    Writer {
        name: "sync again",
        files: &[("lib/a.md", PROMPT), ("lib/b.md", PROMPT), ("lib/c.md", PROMPT)],
        before: &[&["sync", "--client", "claude-code", "--to", "project", "lib"]],
        edited: &[("lib/a.md", "---\ndescription: Reviews\n---\nMore.\n"), ("lib/d.md", PROMPT)],
        command: &["sync", "--client", "claude-code", "--to", "project", "lib"],
        read: None,
        many: true,
    },
    Writer {
        name: "install",
        files: &[("lib/a.md", PROMPT), (".mcp.json", "{\n  \"mcpServers\": {\"other\": {\"command\": \"x\"}}\n}\n")],
        before: &[],
        edited: &[],
        command: &["install", "--client", "claude-code", "--scope", "project", "lib"],
        read: None,
        many: false,
    },
    Writer {
        name: "pull",
        files: &[("one/a.md", PROMPT), ("one/b.md", PROMPT), ("two/a.md", "Other.\n"), ("two/c.md", "Third.\n")],
        before: &[
            &["init", "sqlite:team.db"],
            &["publish", "one", "--store", "sqlite:team.db", "-m", "one"],
            &["pull", "--store", "sqlite:team.db", "mine"],
            &["publish", "two", "--replace", "--store", "sqlite:team.db", "-m", "two"],
        ],
        edited: &[],
        command: &["pull", "--store", "sqlite:team.db", "mine"],
        read: None,
        many: true,
    },
    Writer {
        name: "publish",
        files: &[("one/a.md", PROMPT)],
        before: &[&["init", "sqlite:team.db"], &["publish", "one", "--store", "sqlite:team.db", "-m", "one"]],
        edited: &[("one/a.md", "Other.\n"), ("one/c.md", "Third.\n")],
        command: &["publish", "one", "--store", "sqlite:team.db", "-m", "two"],
        read: Some(&["pull", "--store", "sqlite:team.db", "read"]),
        many: false,
    },
    Writer {
        name: "fmt",
        files: &[("lib/a.md", "---\ndescription:    Reviews\n---\n\n\nReview.\n")],
        before: &[],
        edited: &[],
        command: &["fmt", "lib"],
        read: None,
        many: false,
    },
    Writer {
        name: "new",
        files: &[("lib/a.md", PROMPT)],
        before: &[],
        edited: &[],
        command: &["new", "lib/c.md"],
        read: None,
        many: false,
    },
    Writer {
        name: "init",
        files: &[("keep.txt", "mine")],
        before: &[],
        edited: &[],
        command: &["init", "prompts"],
        read: None,
        many: true,
    },
];

// req: S-453
#[test]
fn failing_system_call_leaves_old_or_new_files_and_is_told() {
    let only = std::env::var("SYSTEM_CALLS_OF").ok();
    for writer in WRITERS.iter().filter(|writer| only.as_ref().is_none_or(|only| only == writer.name)) {
        writer.try_all();
    }
}

//! The page of the guide that takes a store from a trial to operation, run as it stands: its files, its commands and the
//! lines that it shows below them, with real servers.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    net::TcpListener,
    os::unix::process::CommandExt as _,
    path::Path,
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use promptshelf_testkit::database::Postgres;
use rustix::process::{Pid, Signal, kill_process_group};

use crate::program::{Folder, PATIENCE, promptshelf};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/guide/serving/operators-walk.md");

/// The time within which the page promises that servers follow a change, for a busy machine.
const FOLLOWED: Duration = Duration::from_secs(15);

/// Commands that only look, and are repeated until they show what the page shows.
const LOOKS: [&str; 5] = ["ask ", "curl ", "grep ", "openssl s_client", "promptshelf rollout show"];

/// Ports below those that the system assigns, because servers return to theirs; other processes try others first.
fn free_ports<const COUNT: u16>() -> u16 {
    let own = (std::process::id() % 2_000) as u16;
    let mut first = (0..2_000).map(|other| 20_000 + (own + other) % 2_000 * COUNT);
    let is_free = |port: u16| TcpListener::bind(("127.0.0.1", port)).is_ok();
    first.find(|first| (*first..*first + COUNT).all(is_free)).expect("free ports")
}

/// Replaces the ports of the page by those of this test.
fn page() -> String {
    let first = free_ports::<5>();
    let mut ports = vec![(5432, Postgres::shared().port())];
    ports.extend([8443, 8081, 8082, 9461, 9462].into_iter().zip(first..));
    let mut page = fs::read_to_string(PAGE).expect("the page");
    for (port, own) in ports {
        for before in ["localhost:", "127.0.0.1:", "--port "] {
            page = page.replace(&format!("{before}{port}"), &format!("{before}{own}"));
        }
    }
    page
}

/// A step of the page.
enum Step {
    File { name: String, text: String },
    Command { command: String, shown: Vec<String> },
}

/// Returns the blocks of code as steps.
fn steps(page: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    for block in page.split("\n```").skip(1).step_by(2) {
        let (info, text) = block.split_once('\n').expect("a block has lines");
        let text = format!("{text}\n");
        if info == "console" {
            steps.extend(commands(&text));
            continue;
        }
        let first = text.lines().find(|line| *line != "---").expect("a block has lines");
        let name = first.strip_prefix("# ").unwrap_or_else(|| panic!("no name of a file: {first}")).to_owned();
        steps.push(Step::File { name, text });
    }
    steps
}

/// Splits a block: `$` begins a command, `>` continues it, and the lines below are its output.
fn commands(block: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    for line in block.lines() {
        if let Some(command) = line.strip_prefix("$ ") {
            steps.push(Step::Command { command: command.to_owned(), shown: Vec::new() });
            continue;
        }
        let Some(Step::Command { command, shown }) = steps.last_mut() else { panic!("no command before {line:?}") };
        match line.strip_prefix("> ") {
            Some(more) => command.extend(["\n", more]),
            None => shown.push(line.to_owned()),
        }
    }
    steps
}

/// bash, which all commands of the page share. Its servers end with it.
struct Shell {
    bash: Child,
    input: Option<ChildStdin>,
    lines: mpsc::Receiver<String>,
}

impl Shell {
    fn start(folder: &Path) -> Shell {
        let program = promptshelf();
        let mut bash = Command::new("bash");
        for (name, value) in program.get_envs() {
            match value {
                Some(value) => bash.env(name, value),
                None => bash.env_remove(name),
            };
        }
        let mut path = Path::new(program.get_program()).parent().expect("a folder").as_os_str().to_owned();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        // As in a terminal, stderr comes between the lines of stdout.
        bash.args(["-c", "exec 2>&1; exec bash"]).env("PATH", path).current_dir(folder);
        let mut bash =
            bash.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("bash can be started");
        let output = BufReader::new(bash.stdout.take().expect("a pipe"));
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        let mut input = bash.stdin.take().expect("a pipe");
        writeln!(input, "trap 'kill $(jobs -p)' EXIT").expect("bash reads");
        Shell { bash, input: Some(input), lines }
    }

    /// Runs a command, and returns its exit code and its lines.
    fn run(&mut self, command: &str) -> (i32, Vec<String>) {
        const END: &str = "end of the command:";

        let input = self.input.as_mut().expect("open until the end");
        writeln!(input, "{{ {command}\n}} < /dev/null\nprintf '\\n{END} %s\\n' $?").expect("bash reads");
        let begun = Instant::now();
        let mut lines = Vec::new();
        loop {
            let Ok(line) = self.lines.recv_timeout(PATIENCE.saturating_sub(begun.elapsed())) else {
                panic!("no end of `{command}`: {lines:?}");
            };
            if let Some(code) = line.strip_prefix(END) {
                if lines.last().is_some_and(String::is_empty) {
                    lines.pop();
                }
                return (code.trim().parse().expect("an exit code"), lines);
            }
            lines.push(line);
        }
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        drop(self.input.take());
        kill_process_group(Pid::from_child(&self.bash), Signal::TERM).ok();
        self.bash.wait().ok();
    }
}

/// Returns the first line of the page that the output lacks, in this order. `…` stands for any words, and several spaces
/// are one.
fn lacking<'s>(shown: &'s [String], output: &[String]) -> Option<&'s str> {
    let spaced = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut lines = output.iter().map(|line| spaced(line));
    shown.iter().map(String::as_str).find(|wanted| {
        let parts: Vec<String> = wanted.split('…').map(spaced).collect();
        !lines.any(|line| {
            let mut rest = line.as_str();
            parts.iter().all(|part| {
                let after = rest.split_once(part.as_str());
                rest = after.map_or(rest, |(_, after)| after);
                after.is_some()
            })
        })
    })
}

#[test]
fn operators_walk_of_the_guide_works_as_written() {
    let folder = Folder::empty();
    let mut shell = Shell::start(folder.path());
    let (mut files, mut ran) = (0, 0);
    for step in steps(&page()) {
        let (command, shown) = match step {
            Step::File { name, text } => {
                folder.write(&name, &text);
                files += 1;
                continue;
            }
            // The looks after it are repeated until they show what the page says.
            Step::Command { command, .. } if command.starts_with("sleep ") => continue,
            Step::Command { command, shown } => (command, shown),
        };
        let fails = shown.iter().any(|line| line.starts_with("error: "));
        let begun = Instant::now();
        loop {
            let (code, output) = shell.run(&command);
            let lacks = lacking(&shown, &output);
            if lacks.is_none() && (code != 0) == fails {
                break;
            }
            let may_follow = LOOKS.iter().any(|look| command.starts_with(look)) && begun.elapsed() < FOLLOWED;
            let log = |name| fs::read_to_string(folder.path().join(name)).unwrap_or_default();
            assert!(
                may_follow,
                "$ {command}\nends with {code}, lacks {lacks:?}:\n{}\none:\n{}\ntwo:\n{}\nnginx:\n{}",
                output.join("\n"),
                log("one.log"),
                log("two.log"),
                log("nginx.log")
            );
        }
        ran += 1;
    }
    assert!(files >= 8 && ran >= 100, "{files} files, {ran} commands");
}

//! Runner of the program and of other programs, with bounded waits.

use std::{
    io::{BufRead, BufReader, Read, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio},
    sync::{OnceLock, mpsc},
    thread,
    time::Duration,
};

use serde_json::{Value, json};

pub use crate::{PATIENCE, folder::Folder};

/// Returns the program that cargo has built for the tests of its package.
pub fn promptshelf() -> Command {
    clean(Command::new(binary()))
}

/// Returns an example of the package. `cargo test` builds the examples with the tests, unless it is called for one
/// test program only.
pub fn example(name: &str) -> Command {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let folder = BUILT.get_or_init(|| {
        let folder = Path::new(&binary()).with_file_name("examples");
        if !folder.join(file(name)).exists() {
            let mut cargo = Command::new(variable("CARGO"));
            cargo.args(["build", "--quiet", "--examples"]).current_dir(variable("CARGO_MANIFEST_DIR"));
            if folder.parent().is_some_and(|profile| profile.ends_with("release")) {
                cargo.arg("--release");
            }
            assert!(cargo.status().expect("cargo can be started").success(), "the examples do not build");
        }
        folder
    });
    clean(Command::new(folder.join(file(name))))
}

/// The path of the program. Cargo sets it for integration tests of the package that contains the program.
fn binary() -> String {
    variable("CARGO_BIN_EXE_promptshelf")
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("cargo sets {name} for the tests of the program's package"))
}

fn file(name: &str) -> String {
    format!("{name}{}", std::env::consts::EXE_SUFFIX)
}

fn clean(mut command: Command) -> Command {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("PROMPTSHELF_") {
            command.env_remove(name);
        }
    }
    command.env_remove("RUST_LOG").env_remove("RUST_BACKTRACE");
    // No state or settings of the machine are used, and no browser, unless a test sets one.
    command.env("XDG_CONFIG_HOME", "/dev/null/nowhere");
    command.env("XDG_STATE_HOME", "/dev/null/nowhere").env("BROWSER", "true");
    command
}

/// Creates a folder with a library in `prompts`.
pub fn library(files: &[(&str, &str)]) -> Folder {
    Folder::library(files)
}

/// Runs the program in a folder, and returns its exit code and its output as one text.
pub fn run(folder: impl AsRef<Path>, line: &[&str]) -> String {
    run_with(folder, line, "")
}

/// Does the same with a text on stdin.
pub fn run_with(folder: impl AsRef<Path>, line: &[&str], stdin: &str) -> String {
    let mut command = promptshelf();
    command.args(line).current_dir(folder.as_ref());
    shown(command, stdin)
}

/// Runs a command to its end, and returns its exit code, its stdout and its stderr as one text.
pub fn shown(mut command: Command, stdin: &str) -> String {
    let mut child = piped(&mut command);
    let mut input = child.stdin.take().expect("a pipe");
    // A program may end without reading its input.
    input.write_all(stdin.as_bytes()).ok();
    drop(input);
    let (stdout, stderr) = (collect(child.stdout.take()), collect(child.stderr.take()));
    let code = ended(&mut child).code();
    let [stdout, stderr] = [stdout, stderr].map(|text| text.recv_timeout(PATIENCE).expect("an ended process"));
    let code = code.map_or_else(|| "none".to_owned(), |code| code.to_string());
    format!("exit code: {code}\n----- stdout -----\n{stdout}----- stderr -----\n{stderr}")
}

fn piped(command: &mut Command) -> Child {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("the program can be started")
}

fn collect(pipe: Option<impl Read + Send + 'static>) -> mpsc::Receiver<String> {
    let (whole, receiver) = mpsc::channel();
    let mut pipe = pipe.expect("a pipe");
    thread::spawn(move || {
        let mut bytes = Vec::new();
        pipe.read_to_end(&mut bytes).ok();
        whole.send(String::from_utf8_lossy(&bytes).into_owned()).ok();
    });
    receiver
}

/// Waits for the end, at most for [`PATIENCE`].
pub fn ended(child: &mut Child) -> ExitStatus {
    ended_within(child, PATIENCE)
}

/// Waits for the end, at most for this time.
pub fn ended_within(child: &mut Child, patience: Duration) -> ExitStatus {
    let (stop, stopped) = mpsc::channel::<()>();
    let id = child.id();
    // A program that does not end is killed, so that the test fails instead of waiting.
    let guard = thread::spawn(move || {
        let late = stopped.recv_timeout(patience).is_err();
        #[cfg(unix)]
        if late && let Some(id) = i32::try_from(id).ok().and_then(rustix::process::Pid::from_raw) {
            rustix::process::kill_process(id, rustix::process::Signal::KILL).ok();
        }
        (late, id)
    });
    let status = child.wait().expect("an exit status");
    stop.send(()).ok();
    let (late, id) = guard.join().expect("the guard does not panic");
    assert!(!late, "the program {id} had not ended after {patience:?}");
    status
}

/// The program serving HTTP, until it is dropped.
pub struct Server {
    /// The process.
    pub child: Child,
    /// The address of its endpoint.
    pub url: String,
    /// The lines of its log after the one with the address.
    pub log: mpsc::Receiver<String>,
    /// The log up to the address.
    pub startup_log: String,
    _folder: Option<Folder>,
}

impl Server {
    /// Starts a server, and waits until it logs its address.
    pub fn start(mut command: Command) -> Server {
        let (sender, log) = mpsc::channel();
        let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let child = command.spawn().expect("the server can be started");
        let mut server = Server { child, url: String::new(), log, startup_log: String::new(), _folder: None };
        let stderr = BufReader::new(server.child.stderr.take().expect("a pipe"));
        thread::spawn(move || stderr.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        while server.url.is_empty() {
            let Ok(line) = server.log.recv_timeout(PATIENCE) else {
                panic!("the server does not log its address, only: {}", server.startup_log);
            };
            if let Some((_, url)) = line.split_once("listening on ") {
                server.url = url.split(['"', ' ']).next().unwrap_or_default().to_owned();
            }
            server.startup_log.push_str(&line);
            server.startup_log.push('\n');
        }
        server
    }

    /// Serves the library in `prompts` of a folder on a free port, with the folder's `server.toml` if there is one.
    pub fn of(folder: &Folder, more: &[&str]) -> Server {
        let mut command = promptshelf();
        if folder.path().join("server.toml").exists() {
            command.env("PROMPTSHELF_CONFIG", "server.toml");
        }
        command.args(["serve", "prompts", "--http", "127.0.0.1:0"]).args(more).current_dir(folder.path());
        let mut server = Server::start(command);
        server._folder = Some(folder.clone());
        server
    }

    /// Sends a request over HTTP, and returns the status and the response.
    pub fn request(&self, method: &str, params: &Value) -> (u16, Value) {
        let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
        let mut answer = agent
            .post(&self.url)
            .header("Content-Type", "application/json")
            .header("Accept", "application/json, text/event-stream")
            .send(json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string())
            .expect("the server answers");
        let text = answer.body_mut().read_to_string().expect("the answer is text");
        (answer.status().as_u16(), serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    /// Returns the host and port of the server.
    pub fn authority(&self) -> &str {
        self.url.trim_start_matches("http://").trim_end_matches("/mcp")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A process writes the counters of coverage at its end.
        #[cfg(unix)]
        if std::env::var_os("LLVM_PROFILE_FILE").is_some() {
            let id = i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw);
            id.and_then(|id| rustix::process::kill_process(id, rustix::process::Signal::TERM).ok());
            for _ in 0..50 {
                if !matches!(self.child.try_wait(), Ok(None)) {
                    return;
                }
                std::thread::sleep(std::time::Duration::from_millis(100));
            }
        }
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// A program that serves stdio, for tests without an async runtime; [`Pipe`](crate::pipe::Pipe) is for the others.
pub struct Pipes {
    /// The process.
    pub child: Child,
    /// Its stdin.
    pub input: ChildStdin,
    output: mpsc::Receiver<String>,
}

impl Pipes {
    /// Starts a server without a log.
    pub fn start(mut command: Command) -> Pipes {
        Pipes::start_with(&mut command, Stdio::null())
    }

    /// Starts a server with a destination for its log.
    pub fn start_with(command: &mut Command, log: Stdio) -> Pipes {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log);
        let mut child = command.spawn().expect("the server can be started");
        let input = child.stdin.take().expect("a pipe");
        let output = lines(child.stdout.take().expect("a pipe"));
        Pipes { child, input, output }
    }

    /// Sends a line.
    pub fn send(&mut self, line: &str) {
        writeln!(self.input, "{line}").expect("the server reads");
    }

    /// Closes stdin, and returns every line up to the end of stdout.
    pub fn rest(self) -> Vec<String> {
        drop(self.input);
        let mut child = self.child;
        ended(&mut child);
        self.output.iter().collect()
    }

    /// Receives the next line as it is.
    pub fn line(&self) -> String {
        self.output.recv_timeout(PATIENCE).expect("the server writes a line")
    }

    /// Sends a request, and receives the next line as the response.
    pub fn request(&mut self, id: u32, method: &str, params: &Value) -> Value {
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string());
        serde_json::from_str(&self.line()).expect("the answer is JSON")
    }

    /// Performs the handshake of a legacy revision.
    pub fn initialize(&mut self) -> Value {
        self.send(&initialize_request().to_string());
        let answer = serde_json::from_str(&self.line()).expect("the answer is JSON");
        self.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        answer
    }
}

/// Returns the first request of a client of revision 2025-06-18.
pub fn initialize_request() -> Value {
    let client = json!({ "name": "test", "version": "1" });
    let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
    json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params })
}

fn lines(pipe: ChildStdout) -> mpsc::Receiver<String> {
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || BufReader::new(pipe).lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
    lines
}

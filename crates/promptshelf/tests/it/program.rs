//! Runs the program as a person or a client does, and never waits for ever.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio},
    sync::{Arc, OnceLock, mpsc},
    thread,
    time::Duration,
};

use serde_json::{Value, json};
use tempfile::TempDir;

/// How long anything may take before a test gives up.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The program that cargo has built for these tests.
pub(crate) fn promptshelf() -> Command {
    clean(Command::new(env!("CARGO_BIN_EXE_promptshelf")))
}

/// One of this crate's examples. `cargo test` builds them with the tests, unless
/// only this one test program is asked for.
pub(crate) fn example(name: &str) -> Command {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let folder = BUILT.get_or_init(|| {
        let folder = Path::new(env!("CARGO_BIN_EXE_promptshelf")).with_file_name("examples");
        if !folder.join(file(name)).exists() {
            let mut cargo = Command::new(env!("CARGO"));
            cargo.args(["build", "--quiet", "--examples"]).current_dir(env!("CARGO_MANIFEST_DIR"));
            if folder.parent().is_some_and(|profile| profile.ends_with("release")) {
                cargo.arg("--release");
            }
            assert!(cargo.status().expect("cargo can be started").success(), "the examples do not build");
        }
        folder
    });
    clean(Command::new(folder.join(file(name))))
}

fn file(name: &str) -> String {
    format!("{name}{}", std::env::consts::EXE_SUFFIX)
}

/// Without what the machine's own settings would add.
fn clean(mut command: Command) -> Command {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("PROMPTSHELF_") {
            command.env_remove(name);
        }
    }
    command.env_remove("RUST_LOG").env_remove("RUST_BACKTRACE");
    // Nothing is remembered, and nobody's keyring or browser is touched, unless a test says where.
    command.env("XDG_STATE_HOME", "/dev/null/nowhere").env("PROMPTSHELF_KEYRING", "file").env("BROWSER", "true");
    command
}

/// A folder that is there for as long as anybody needs it.
pub(crate) type Folder = Arc<TempDir>;

/// A folder with a library in `prompts`, so that commands run in it name no
/// path of this machine. A server that serves it keeps it: one that is gone is
/// a library without prompts as soon as somebody looks.
pub(crate) fn library(files: &[(&str, &str)]) -> Folder {
    let folder = tempfile::tempdir().expect("a folder for the test");
    fs::create_dir(folder.path().join("prompts")).expect("a folder for the prompts");
    for (path, text) in files {
        let path = folder.path().join("prompts").join(path);
        fs::create_dir_all(path.parent().expect("it lies in a folder")).expect("a folder for the file");
        fs::write(path, text).expect("a file can be written");
    }
    Arc::new(folder)
}

/// Runs a command line in a folder and shows all that can be seen of it.
pub(crate) fn run(folder: &TempDir, line: &[&str]) -> String {
    run_with(folder, line, "")
}

/// The same, with something on stdin.
pub(crate) fn run_with(folder: &TempDir, line: &[&str], stdin: &str) -> String {
    let mut command = promptshelf();
    command.args(line).current_dir(folder.path());
    shown(command, stdin)
}

/// Runs a command to its end and shows its exit code, its stdout and its stderr.
pub(crate) fn shown(mut command: Command, stdin: &str) -> String {
    let mut child = piped(&mut command);
    let mut input = child.stdin.take().expect("it is piped");
    // A program may end without reading what it is given.
    input.write_all(stdin.as_bytes()).ok();
    drop(input);
    let (stdout, stderr) = (collect(child.stdout.take()), collect(child.stderr.take()));
    let code = ended(&mut child).code();
    let [stdout, stderr] = [stdout, stderr].map(|text| text.recv_timeout(PATIENCE).expect("it has ended"));
    let code = code.map_or_else(|| "none".to_owned(), |code| code.to_string());
    format!("exit code: {code}\n----- stdout -----\n{stdout}----- stderr -----\n{stderr}")
}

fn piped(command: &mut Command) -> Child {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("the program can be started")
}

fn collect(pipe: Option<impl Read + Send + 'static>) -> mpsc::Receiver<String> {
    let (whole, receiver) = mpsc::channel();
    let mut pipe = pipe.expect("it is piped");
    thread::spawn(move || {
        let mut bytes = Vec::new();
        pipe.read_to_end(&mut bytes).ok();
        whole.send(String::from_utf8_lossy(&bytes).into_owned()).ok();
    });
    receiver
}

/// Waits for the end, but not for ever.
pub(crate) fn ended(child: &mut Child) -> ExitStatus {
    ended_within(child, PATIENCE)
}

/// Waits for the end, at most this long.
pub(crate) fn ended_within(child: &mut Child, patience: Duration) -> ExitStatus {
    let (stop, stopped) = mpsc::channel::<()>();
    let id = child.id();
    // Whoever never ends is ended, so that the test fails instead of waiting.
    let guard = thread::spawn(move || {
        let late = stopped.recv_timeout(patience).is_err();
        #[cfg(unix)]
        if late && let Some(id) = i32::try_from(id).ok().and_then(rustix::process::Pid::from_raw) {
            rustix::process::kill_process(id, rustix::process::Signal::KILL).ok();
        }
        (late, id)
    });
    let status = child.wait().expect("it can be waited for");
    stop.send(()).ok();
    let (late, id) = guard.join().expect("the guard does not panic");
    assert!(!late, "the program {id} had not ended after {patience:?}");
    status
}

/// A server that runs until it is dropped.
pub(crate) struct Server {
    pub(crate) child: Child,
    pub(crate) url: String,
    /// What it says on stderr after its address.
    pub(crate) said: mpsc::Receiver<String>,
    /// What it has said before.
    pub(crate) greeting: String,
    _folder: Option<Folder>,
}

impl Server {
    /// Starts a server and waits until it says where it listens.
    pub(crate) fn start(mut command: Command) -> Server {
        let (say, said) = mpsc::channel();
        let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let child = command.spawn().expect("the server can be started");
        let mut server = Server { child, url: String::new(), said, greeting: String::new(), _folder: None };
        let stderr = BufReader::new(server.child.stderr.take().expect("it is piped"));
        thread::spawn(move || stderr.lines().map_while(Result::ok).try_for_each(|line| say.send(line)));
        while server.url.is_empty() {
            let Ok(line) = server.said.recv_timeout(PATIENCE) else {
                panic!("the server does not say where it listens, only: {}", server.greeting);
            };
            if let Some((_, url)) = line.split_once("listening on ") {
                server.url = url.split(['"', ' ']).next().unwrap_or_default().to_owned();
            }
            server.greeting.push_str(&line);
            server.greeting.push('\n');
        }
        server
    }

    /// Serves the library of a folder on a free port.
    pub(crate) fn of(folder: &Folder, more: &[&str]) -> Server {
        let mut command = promptshelf();
        command.args(["serve", "prompts", "--http", "127.0.0.1:0"]).args(more).current_dir(folder.path());
        let mut server = Server::start(command);
        server._folder = Some(Arc::clone(folder));
        server
    }

    /// Asks over HTTP; the status and the answer.
    pub(crate) fn ask(&self, method: &str, params: &Value) -> (u16, Value) {
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

    /// The host and port to connect to.
    pub(crate) fn authority(&self) -> &str {
        self.url.trim_start_matches("http://").trim_end_matches("/mcp")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// A server at the other end of a pair of pipes.
pub(crate) struct Pipes {
    pub(crate) child: Child,
    pub(crate) input: ChildStdin,
    output: mpsc::Receiver<String>,
}

impl Pipes {
    pub(crate) fn start(mut command: Command) -> Pipes {
        Pipes::start_with(&mut command, Stdio::null())
    }

    /// Starts a server whose log goes somewhere.
    pub(crate) fn start_with(command: &mut Command, log: Stdio) -> Pipes {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log);
        let mut child = command.spawn().expect("the server can be started");
        let input = child.stdin.take().expect("it is piped");
        let output = lines(child.stdout.take().expect("it is piped"));
        Pipes { child, input, output }
    }

    pub(crate) fn send(&mut self, line: &str) {
        writeln!(self.input, "{line}").expect("the server reads");
    }

    /// Every line up to the end of stdout.
    pub(crate) fn rest(self) -> Vec<String> {
        drop(self.input);
        let mut child = self.child;
        ended(&mut child);
        self.output.iter().collect()
    }

    /// The next line, as it is.
    pub(crate) fn line(&self) -> String {
        self.output.recv_timeout(PATIENCE).expect("the server writes a line")
    }

    /// Asks, and takes the next line for the answer.
    pub(crate) fn ask(&mut self, id: u32, method: &str, params: &Value) -> Value {
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string());
        serde_json::from_str(&self.line()).expect("the answer is JSON")
    }

    /// Begins a conversation.
    pub(crate) fn initialize(&mut self) -> Value {
        self.send(&hello().to_string());
        let answer = serde_json::from_str(&self.line()).expect("the answer is JSON");
        self.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        answer
    }
}

/// What a client of revision 2025-06-18 says first.
pub(crate) fn hello() -> Value {
    let client = json!({ "name": "test", "version": "1" });
    let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
    json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params })
}

fn lines(pipe: ChildStdout) -> mpsc::Receiver<String> {
    let (say, said) = mpsc::channel();
    thread::spawn(move || BufReader::new(pipe).lines().map_while(Result::ok).try_for_each(|line| say.send(line)));
    said
}

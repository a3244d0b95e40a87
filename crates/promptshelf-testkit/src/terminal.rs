//! Pseudo-terminal with a program at one end, and the keys and the screen of a person at the other.

use std::{
    fs::File,
    io::{Read, Write},
    os::fd::OwnedFd,
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::{PATIENCE, program::ended};

/// The tab key.
pub const TAB: &str = "\t";
/// Shift and the tab key.
pub const SHIFT_TAB: &str = "\x1b[Z";
/// Ctrl-C, as a key.
pub const CTRL_C: &str = "\x03";
/// Ctrl-D.
pub const CTRL_D: &str = "\x04";
/// The arrow key.
pub const UP: &str = "\x1b[A";

/// A session at a terminal.
pub struct Terminal {
    child: Child,
    keyboard: File,
    screen: mpsc::Receiver<Vec<u8>>,
    /// Everything that was written to the terminal.
    pub written: Vec<u8>,
    seen: usize,
}

impl Terminal {
    /// Starts a program at a terminal of its own.
    pub fn start(mut command: Command) -> Terminal {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a pseudo-terminal");
        grantpt(&master).and_then(|()| unlockpt(&master)).expect("it can be used");
        let name = ptsname(&master, Vec::new()).expect("a name");
        let open = || {
            let name = std::path::Path::new(name.to_str().expect("text"));
            OwnedFd::from(File::options().read(true).write(true).open(name).expect("an opened file"))
        };
        let size = rustix::termios::Winsize { ws_row: 50, ws_col: 160, ws_xpixel: 0, ws_ypixel: 0 };
        let slave = open();
        rustix::termios::tcsetwinsize(&slave, size).expect("a size");
        for name in ["TERM_PROGRAM", "TMUX", "STY", "VISUAL", "EDITOR", "KITTY_WINDOW_ID"] {
            if !command.get_envs().any(|(set, value)| set == name && value.is_some()) {
                command.env_remove(name);
            }
        }
        command.env("TERM", "xterm").env("NO_COLOR", "1");
        command.stdin(Stdio::from(slave)).stdout(Stdio::from(open())).stderr(Stdio::from(open()));
        let child = command.spawn().expect("the program can be started");
        // Copies of the other end in this process would keep the terminal open.
        drop(command);
        let mut output = File::from(master);
        let keyboard = output.try_clone().expect("non-blocking mode");
        let (sender, screen) = mpsc::channel();
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            // Reading from a terminal whose other end is closed is an error.
            while let Ok(read @ 1..) = output.read(&mut buffer) {
                if sender.send(buffer[..read].to_vec()).is_err() {
                    break;
                }
            }
        });
        Terminal { child, keyboard, screen, written: Vec::new(), seen: 0 }
    }

    /// Presses keys.
    pub fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).expect("the terminal takes keys");
    }

    /// Types a line as soon as the program waits for one.
    pub fn line(&mut self, line: &str) {
        // The prompt is drawn again with every key; this sequence is written once for each line.
        self.wait_for("\x1b[?2004h");
        self.wait_for("promptshelf> ");
        self.press(line);
        self.press("\r");
    }

    /// Sends SIGINT, as a terminal does at Ctrl-C while the program does not read keys.
    pub fn interrupt(&self) {
        let id = i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw);
        let id = id.expect("an id");
        rustix::process::kill_process(id, rustix::process::Signal::INT).expect("a running process");
    }

    /// Waits until the program writes a text after the one waited for before, and returns everything up to its end.
    pub fn wait_for(&mut self, text: &str) -> String {
        loop {
            let rest = &self.written[self.seen..];
            if let Some(at) = rest.windows(text.len()).position(|window| window == text.as_bytes()) {
                let end = at + text.len();
                let before = String::from_utf8_lossy(&rest[..end]).into_owned();
                self.seen += end;
                return before;
            }
            let Ok(more) = self.screen.recv_timeout(PATIENCE) else {
                let shown = String::from_utf8_lossy(&self.written[self.seen..]).into_owned();
                panic!("expected `{text}` on the screen, got:\n{shown}");
            };
            self.written.extend(more);
        }
    }

    /// Waits for the end, and returns the exit code and everything that was written.
    pub fn end(mut self) -> (Option<i32>, Vec<u8>) {
        while let Ok(more) = self.screen.recv_timeout(PATIENCE) {
            self.written.extend(more);
        }
        let code = ended(&mut self.child).code();
        (code, std::mem::take(&mut self.written))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

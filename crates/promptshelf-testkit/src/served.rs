//! The server at the other end of a pipe or a connection: a task of the test, or a program.

use tokio::{process::Child, task::JoinHandle};

use crate::in_time;

/// A running server.
pub enum Served {
    /// A task of this process.
    Task {
        /// Asks the server to end.
        shutdown: Box<dyn FnMut() + Send>,
        /// Ends with the server.
        task: JoinHandle<()>,
    },
    /// A program.
    Program(Child),
}

impl Served {
    /// Asks the server to end, as an operator does: a program gets SIGTERM.
    pub fn shut_down(&mut self) {
        match self {
            Served::Task { shutdown, .. } => shutdown(),
            Served::Program(child) => terminate(child),
        }
    }

    /// Waits for the end of the server, which must be without a panic or an error.
    pub async fn ended(&mut self) {
        match self {
            Served::Task { task, .. } => in_time("the end", task).await.expect("no panic"),
            Served::Program(child) => {
                let status = in_time("the end", child.wait()).await.expect("an end");
                assert!(status.success(), "the program ended with {status}");
            }
        }
    }

    /// Returns the program.
    ///
    /// # Panics
    ///
    /// If a task serves.
    pub fn program(&mut self) -> &mut Child {
        match self {
            Served::Program(child) => child,
            Served::Task { .. } => panic!("a task serves, not a program"),
        }
    }
}

/// Asks a program to end: SIGTERM on Unix.
pub fn terminate(child: &mut Child) {
    #[cfg(unix)]
    {
        let id = child.id().and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw);
        rustix::process::kill_process(id.expect("a running program"), rustix::process::Signal::TERM).expect("a signal");
    }
    #[cfg(not(unix))]
    child.start_kill().expect("a running program");
}

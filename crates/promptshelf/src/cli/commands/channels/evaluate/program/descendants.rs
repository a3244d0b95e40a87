//! The processes that descend from this one, on Linux: also those that began a session, which are in no process group of
//! the program that started them.

use std::{
    collections::{HashMap, HashSet},
    fs,
};

use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, set_child_subreaper, waitpid};

/// The most rounds, as a process can start others while it is looked for.
const ROUNDS: usize = 100;

pub(super) struct Before(HashSet<i32>);

impl Before {
    /// Notes the descendants. From now on, a process whose parent ends becomes a child of this one.
    pub(super) fn now() -> Before {
        if let Err(error) = set_child_subreaper(Some(getpid())) {
            tracing::debug!("processes that a program leaves behind cannot be found: {error}");
        }
        Before(descendants())
    }

    /// Kills all descendants that have been started since.
    pub(super) fn kill_new(&self) {
        for _ in 0..ROUNDS {
            let new: Vec<Pid> = descendants().difference(&self.0).copied().filter_map(Pid::from_raw).collect();
            if new.is_empty() {
                return;
            }
            for pid in &new {
                kill_process(*pid, Signal::KILL).ok();
            }
            for pid in new {
                // Only a child can be waited for, and the others become children as their parents end.
                waitpid(Some(pid), WaitOptions::empty()).ok();
            }
        }
    }
}

fn descendants() -> HashSet<i32> {
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        if let Some(parent) = parent(pid) {
            children.entry(parent).or_default().push(pid);
        }
    }
    let (mut found, mut next) = (HashSet::new(), vec![getpid().as_raw_nonzero().get()]);
    while let Some(pid) = next.pop() {
        next.extend(children.remove(&pid).into_iter().flatten().filter(|child| found.insert(*child)));
    }
    found
}

/// Returns the parent of a process. The name of its program, in parentheses, can contain anything.
fn parent(pid: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

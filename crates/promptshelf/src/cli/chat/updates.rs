//! Notices in a chat about changed lists of prompts.

use std::sync::Arc;

use parking_lot::Mutex;
use rustyline::ExternalPrinter;
use tokio::{runtime::Handle, task::JoinHandle};

use super::{ListChange, PromptList, Server, assist::Suggestions};
use crate::output::visible_line;

const MAX_NAMES: usize = 5;

/// Follows the lists of all servers until it is dropped.
pub(super) struct Updates(Vec<JoinHandle<()>>);

impl Drop for Updates {
    fn drop(&mut self) {
        self.0.iter().for_each(JoinHandle::abort);
    }
}

/// Updates the list of prompts with every change of a server, and prints a notice above the line that is being typed.
pub(super) fn follow(
    runtime: &Handle,
    prompts: &PromptList,
    suggestions: &Suggestions,
    printer: Option<Box<dyn ExternalPrinter + Send>>,
) -> Updates {
    let printer = Arc::new(Mutex::new(printer));
    let follow = |server: &Server| {
        let (server, prompts, suggestions) = (server.clone(), prompts.clone(), suggestions.clone());
        let printer = Arc::clone(&printer);
        runtime.spawn(async move {
            let server = Server { client: server.client.without_sign_in(), ..server };
            let mut changes = server.client.changes();
            while changes.next().await {
                suggestions.clear(&server.name);
                let Ok(change) = prompts.refresh(&server).await else { continue };
                if change.is_empty() {
                    continue;
                }
                let notice = format!("{}\n", notice(&server.name, &change));
                if let Some(printer) = printer.lock().as_mut() {
                    printer.print(notice).ok();
                }
            }
        })
    };
    Updates(prompts.servers().iter().map(follow).collect())
}

fn notice(server: &str, change: &ListChange) -> String {
    let part = |label: &str, names: &[String]| {
        let shown: Vec<String> = names.iter().take(MAX_NAMES).map(|name| visible_line(name).into_owned()).collect();
        let more =
            if names.len() > MAX_NAMES { format!(" and {} more", names.len() - MAX_NAMES) } else { String::new() };
        (!names.is_empty()).then(|| format!("{label} {}{more}", shown.join(", ")))
    };
    let ListChange { added, removed, changed } = change;
    let parts = [part("new:", added), part("removed:", removed), part("changed:", changed)];
    format!("{}: {}", visible_line(server), parts.into_iter().flatten().collect::<Vec<_>>().join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    // req: Q21
    #[test]
    fn notice_is_short_and_escaped() {
        let many = (0..7).map(|number| format!("p{number}\u{1b}[2J")).collect();
        let change = ListChange { added: many, ..ListChange::default() };
        let notice = notice("here", &change);
        assert!(notice.starts_with("here: new: p0\\u{1b}[2J, p1") && notice.ends_with("and 2 more"), "{notice}");
    }
}

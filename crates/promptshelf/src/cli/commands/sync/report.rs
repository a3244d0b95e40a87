//! The result of a sync.

use std::{collections::BTreeMap, io::Write, path::PathBuf};

use promptshelf_author::Loss;
use serde_json::{Value, json};

use crate::{
    exit::Failure,
    output::{Output, count, pretty_json},
    state::{self, digest},
};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Report {
    pub(super) written: Vec<String>,
    pub(super) removed: Vec<String>,
    kept: Vec<(String, String)>,
    /// Prompts and skills that were not written, each with the reason.
    left_out: Vec<(String, String)>,
    refused: Vec<(String, String)>,
    lost: Vec<(String, Loss)>,
    taken_over: usize,
}

impl Report {
    pub(super) fn keep(&mut self, path: &str, reason: String) {
        self.kept.push((path.to_owned(), reason));
    }

    pub(super) fn leave_out(&mut self, prompt: &str, reason: String) {
        // Reasons of servers have several lines.
        let reason = reason.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
        self.left_out.push((prompt.to_owned(), reason));
    }

    pub(super) fn refuse(&mut self, prompt: &str, what: String) {
        self.refused.push((prompt.to_owned(), what));
    }

    pub(super) fn lose(&mut self, prompt: &str, loss: Loss) {
        self.lost.push((prompt.to_owned(), loss));
    }

    pub(super) fn take_over(&mut self) {
        self.taken_over += 1;
    }

    pub(super) fn is_refused(&self) -> bool {
        !self.refused.is_empty()
    }

    /// Sorts the entries, so that the same changes give the same report.
    pub(super) fn finish(&mut self) {
        self.written.sort();
        self.removed.sort();
        self.kept.sort();
        self.left_out.sort();
        self.refused.sort();
        self.lost.sort();
    }

    /// Prints the report. With `earlier`, that of the pass before, only if there is something new. `key` names the
    /// project, client and origin: what the last run said about them is not repeated.
    pub(super) fn print(&self, json: bool, earlier: Option<&Report>, key: &str) -> Result<(), Failure> {
        let is_same = |earlier: &Report| {
            (&self.kept, &self.lost, &self.left_out, &self.refused)
                == (&earlier.kept, &earlier.lost, &earlier.left_out, &earlier.refused)
        };
        if self.written.is_empty() && self.removed.is_empty() && earlier.is_some_and(is_same) {
            return Ok(());
        }
        let mut output = Output::stdout();
        if json {
            let value = self.json();
            // A reader of a stream expects one value a line.
            let text = if earlier.is_some() { value.to_string() } else { pretty_json(&value) };
            writeln!(output.out, "{text}")?;
            return Ok(output.out.flush()?);
        }
        let mut line = |text: String| -> Result<(), Failure> {
            let text = output.line(&text).into_owned();
            Ok(writeln!(output.out, "{text}")?)
        };
        for (word, paths) in [("wrote", &self.written), ("removed", &self.removed)] {
            for path in paths {
                line(format!("{word} {path}"))?;
            }
        }
        for (path, reason) in &self.kept {
            line(format!("kept {path}: {reason}"))?;
        }
        if self.taken_over > 0 {
            let files = count(self.taken_over, "file");
            line(format!(
                "took over {files} that an earlier release wrote, or that came from a folder that has moved"
            ))?;
        }
        for (prompt, reason) in &self.left_out {
            line(format!("left out {prompt}: {reason}"))?;
        }
        for (prompt, what) in &self.refused {
            line(format!(
                "refused {prompt}: it is more than text to the client ({what}); `--allow-commands {prompt}` writes it"
            ))?;
        }
        let losses = grouped(&self.lost);
        match losses.is_empty() || !is_new(key, &losses) {
            true if losses.is_empty() => {}
            true => line(format!(
                "{} between prompts and files, as before; --json lists them",
                count(losses.len(), "difference")
            ))?,
            false => {
                line("differences between the prompts and their files:".to_owned())?;
                for text in losses {
                    line(format!("  {text}"))?;
                }
            }
        }
        let summary = [(self.written.len(), "written"), (self.removed.len(), "removed"), (self.kept.len(), "kept")];
        let parts: Vec<String> =
            summary.iter().map(|(number, what)| format!("{} {what}", count(*number, "file"))).collect();
        line(parts.join(", "))?;
        Ok(output.out.flush()?)
    }

    fn json(&self) -> Value {
        let kept: Vec<Value> =
            self.kept.iter().map(|(path, reason)| json!({ "path": path, "reason": reason })).collect();
        let with = |rows: &[(String, String)], key: &str| -> Vec<Value> {
            rows.iter().map(|(prompt, text)| json!({ "prompt": prompt, key: text })).collect()
        };
        let lost: Vec<Value> =
            self.lost.iter().map(|(prompt, loss)| json!({ "prompt": prompt, "what": loss.to_string() })).collect();
        json!({
            "written": self.written,
            "removed": self.removed,
            "kept": kept,
            "leftOut": with(&self.left_out, "reason"),
            "refused": with(&self.refused, "what"),
            "lost": lost,
        })
    }
}

pub(in crate::commands) fn grouped(losses: &[(String, Loss)]) -> Vec<String> {
    let mut kinds: BTreeMap<&str, BTreeMap<&str, Vec<&str>>> = BTreeMap::new();
    for (prompt, loss) in losses {
        let subjects = kinds.entry(&loss.what).or_default().entry(prompt).or_default();
        subjects.extend(loss.subject.as_deref().filter(|subject| !subjects.contains(subject)));
    }
    let line = |(kind, prompts): (&str, BTreeMap<&str, Vec<&str>>)| {
        let prompts = prompts.into_iter().map(|(prompt, subjects)| match subjects.is_empty() {
            true => prompt.to_owned(),
            false => format!("{prompt} ({})", subjects.join(", ")),
        });
        format!("{kind}: {}", prompts.collect::<Vec<_>>().join("; "))
    };
    kinds.into_iter().map(line).collect()
}

/// Whether the last run with this key had other losses; remembers these.
fn is_new(key: &str, losses: &[String]) -> bool {
    let Some(file) = record(key) else { return true };
    let now = digest(&losses.join("\n"));
    let is_known = std::fs::read_to_string(&file).is_ok_and(|before| before == now);
    if !is_known {
        state::write(&file, &now).ok();
    }
    !is_known
}

fn record(key: &str) -> Option<PathBuf> {
    state::folder().map(|folder| folder.join("sync").join(format!("{}.losses", &digest(key)[..32])))
}

//! The result of a sync.

use std::io::Write;

use serde_json::{Value, json};

use crate::{
    exit::Failure,
    output::{Output, count, pretty_json},
};

/// The changes of a sync, and its limits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Report {
    pub(super) written: Vec<String>,
    pub(super) removed: Vec<String>,
    kept: Vec<(String, String)>,
    lost: Vec<(String, String)>,
}

impl Report {
    pub(super) fn keep(&mut self, path: &str, reason: String) {
        self.kept.push((path.to_owned(), reason));
    }

    pub(super) fn lose(&mut self, prompt: &str, what: String) {
        self.lost.push((prompt.to_owned(), what));
    }

    /// Sorts the entries, so that the same changes give the same report.
    pub(super) fn finish(&mut self) {
        self.written.sort();
        self.removed.sort();
        self.kept.sort();
        self.lost.sort();
    }

    /// Prints the report. With `earlier`, that of the pass before, only if there is something new.
    pub(super) fn print(&self, json: bool, earlier: Option<&Report>) -> Result<(), Failure> {
        let is_same = |earlier: &Report| self.kept == earlier.kept && self.lost == earlier.lost;
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
        for (word, paths) in [("wrote", &self.written), ("removed", &self.removed)] {
            for path in paths {
                let path = output.line(path).into_owned();
                writeln!(output.out, "{word} {path}")?;
            }
        }
        for (path, reason) in &self.kept {
            let line = output.line(&format!("kept {path}: {reason}")).into_owned();
            writeln!(output.out, "{line}")?;
        }
        for (prompt, what) in &self.lost {
            let line = output.line(&format!("lost of {prompt}: {what}")).into_owned();
            writeln!(output.out, "{line}")?;
        }
        let summary = [(self.written.len(), "written"), (self.removed.len(), "removed"), (self.kept.len(), "kept")];
        let parts: Vec<String> =
            summary.iter().map(|(number, what)| format!("{} {what}", count(*number, "file"))).collect();
        writeln!(output.out, "{}", parts.join(", "))?;
        Ok(output.out.flush()?)
    }

    fn json(&self) -> Value {
        let kept: Vec<Value> =
            self.kept.iter().map(|(path, reason)| json!({ "path": path, "reason": reason })).collect();
        let lost: Vec<Value> =
            self.lost.iter().map(|(prompt, what)| json!({ "prompt": prompt, "what": what })).collect();
        json!({ "written": self.written, "removed": self.removed, "kept": kept, "lost": lost })
    }
}

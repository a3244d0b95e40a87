//! The output of `install` and `uninstall`.

use std::{
    io::Write,
    path::{Path, PathBuf},
};

use promptshelf_author::clients::{Client, Configuration};
use serde_json::{Value, json};

use crate::{
    args::reach::EntryArguments,
    exit::Failure,
    output::{Output, pretty_json, report_failure},
};

#[derive(Clone, Debug)]
pub(super) struct Outcome {
    pub(super) status: Status,
    pub(super) file: Option<PathBuf>,
    pub(super) entry: Option<Value>,
    pub(super) backup: Option<PathBuf>,
    pub(super) preview: String,
    pub(super) reason: Option<String>,
}

impl Outcome {
    pub(super) fn skipped(reason: String) -> Outcome {
        Outcome {
            status: Status::Skipped,
            file: None,
            entry: None,
            backup: None,
            preview: String::new(),
            reason: Some(reason),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    Written,
    Unchanged,
    WouldWrite,
    Removed,
    Absent,
    WouldRemove,
    Skipped,
    Failed,
}

impl Status {
    pub(super) fn is_new(self) -> bool {
        matches!(self, Status::Written | Status::WouldWrite)
    }

    fn as_str(self) -> &'static str {
        match self {
            Status::Written => "written",
            Status::Unchanged => "unchanged",
            Status::WouldWrite => "would-write",
            Status::Removed => "removed",
            Status::Absent => "absent",
            Status::WouldRemove => "would-remove",
            Status::Skipped => "skipped",
            Status::Failed => "failed",
        }
    }

    fn about(self) -> &'static str {
        match self {
            Status::Written => "installed in",
            Status::Unchanged => "already installed in",
            Status::WouldWrite => "would be written to",
            Status::Removed => "removed from",
            Status::Absent => "not installed in",
            Status::WouldRemove => "would be removed from",
            Status::Skipped => "skipped",
            Status::Failed => "failed:",
        }
    }
}

pub(super) struct Report<'a> {
    arguments: &'a EntryArguments,
    outcomes: Vec<(&'a Client, &'static Configuration, Outcome)>,
    failures: Vec<Failure>,
}

impl<'a> Report<'a> {
    pub(super) fn new(arguments: &'a EntryArguments) -> Report<'a> {
        Report { arguments, outcomes: Vec::new(), failures: Vec::new() }
    }

    pub(super) fn add(&mut self, client: &'a Client, configuration: &'static Configuration, outcome: Outcome) {
        self.outcomes.push((client, configuration, outcome));
    }

    pub(super) fn fail(
        &mut self,
        client: &'a Client,
        configuration: &'static Configuration,
        file: &Path,
        failure: Failure,
    ) {
        let outcome = Outcome {
            status: Status::Failed,
            file: Some(file.to_owned()),
            reason: Some(failure.message.clone()),
            ..Outcome::skipped(String::new())
        };
        self.add(client, configuration, outcome);
        self.failures.push(failure);
    }

    pub(super) fn print(self) -> Result<(), Failure> {
        let mut output = Output::stdout();
        if self.arguments.json {
            let clients: Vec<Value> = self.outcomes.iter().map(|outcome| self.json(outcome)).collect();
            writeln!(output.out, "{}", pretty_json(&json!({ "clients": clients })))?;
        } else {
            for (client, configuration, outcome) in &self.outcomes {
                self.write(&mut output, client, configuration, outcome)?;
            }
        }
        output.out.flush()?;
        for failure in &self.failures {
            report_failure(failure);
        }
        match self.failures.first() {
            Some(first) => Err(Failure::reported(first.exit)),
            None => Ok(()),
        }
    }

    fn write<W: Write>(
        &self,
        output: &mut Output<W>,
        client: &Client,
        configuration: &Configuration,
        outcome: &Outcome,
    ) -> Result<(), Failure> {
        let about = outcome.status.about();
        let file = outcome.file.as_ref().map(|file| output.line(&file.display().to_string()).into_owned());
        let reason = outcome.reason.as_deref().map(|reason| output.line(reason).into_owned());
        match (&file, &reason) {
            (_, Some(reason)) => writeln!(output.out, "{}: {about} {reason}", client.name)?,
            (Some(file), None) => writeln!(output.out, "{}: `{}` {about} {file}", client.name, self.arguments.name)?,
            (None, None) => writeln!(output.out, "{}: {about}", client.name)?,
        }
        if !outcome.preview.is_empty() {
            writeln!(output.out, "{}", outcome.preview.trim_end())?;
        }
        if let Some(backup) = &outcome.backup {
            let backup = output.line(&backup.display().to_string()).into_owned();
            writeln!(output.out, "  backup: {backup}")?;
        }
        if outcome.status == Status::Written {
            writeln!(output.out, "  {}", configuration.notice)?;
        }
        Ok(())
    }

    fn json(&self, (client, configuration, outcome): &(&Client, &'static Configuration, Outcome)) -> Value {
        json!({
            "client": client.id,
            "status": outcome.status.as_str(),
            "scope": self.arguments.scope.as_str(),
            "file": outcome.file,
            "name": self.arguments.name,
            "entry": outcome.entry,
            "backup": outcome.backup,
            "notice": configuration.notice,
            "reason": outcome.reason,
        })
    }
}

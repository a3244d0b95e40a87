//! The change of one entry in one file.

use std::path::Path;

use promptshelf_author::clients::Configuration;
use serde_json::Value;

use super::{
    is_own,
    report::{Outcome, Status},
};
use crate::{
    client_config::{ConfigFile, EditError, Records, Replaced, find_entry, parse, with_entry},
    exit::{Exit, Failure},
};

const MAX_ATTEMPTS: usize = 5;

pub(super) struct Change<'c> {
    pub(super) configuration: &'static Configuration,
    pub(super) file: &'c Path,
    /// The folder that symbolic links may not leave.
    pub(super) within: Option<&'c Path>,
    pub(super) name: &'c str,
    pub(super) records: &'c Records,
}

impl Change<'_> {
    pub(super) fn install(&self, entry: &Value) -> Result<Outcome, Failure> {
        self.repeated(|file| {
            let text = file.text()?;
            let whole = parse(self.configuration.format, text).map_err(|error| self.broken(&error))?;
            let found = find_entry(self.configuration, &whole, self.name).map(|found| found.value);
            if found.as_ref() == Some(entry) {
                return Ok(Some(self.outcome(Status::Unchanged, Some(entry))));
            }
            if found.as_ref().is_some_and(|found| !self.is_installed(found)) {
                return Err(self.taken("was not written by promptshelf", "`--name ENTRY` selects another name"));
            }
            let new =
                with_entry(self.configuration, text, self.name, Some(entry)).map_err(|error| self.broken(&error))?;
            if !self.records.for_changes() {
                let preview = with_entry(self.configuration, "", self.name, Some(entry)).unwrap_or_default();
                return Ok(Some(Outcome { preview, ..self.outcome(Status::WouldWrite, Some(entry)) }));
            }
            self.records
                .keep(self.file, self.name, (file.bytes.as_deref(), new.as_bytes()), (entry, found.is_some()))
                .map_err(|error| Failure::new(Exit::Failed, format!("the backup cannot be written: {error}")))?;
            let backup = file.bytes.is_some().then(|| self.records.backup(self.file, self.name));
            let replaced = file.replace(Some(new.as_bytes()), self.within.is_none());
            if replaced.is_err() && found.is_none() {
                self.records.forget(self.file, self.name);
            }
            match replaced? {
                Replaced::Done => Ok(Some(Outcome { backup, ..self.outcome(Status::Written, Some(entry)) })),
                Replaced::Changed => Ok(None),
            }
        })
    }

    pub(super) fn uninstall(&self) -> Result<Outcome, Failure> {
        self.repeated(|file| {
            let text = file.text()?;
            let whole = parse(self.configuration.format, text).map_err(|error| self.broken(&error))?;
            let Some(found) = find_entry(self.configuration, &whole, self.name).map(|found| found.value) else {
                return Ok(Some(self.outcome(Status::Absent, None)));
            };
            if !self.is_installed(&found) {
                return Err(self.taken("was not written by promptshelf", "remove it by hand, or name another one"));
            }
            if !self.records.for_changes() {
                return Ok(Some(self.outcome(Status::WouldRemove, Some(&found))));
            }
            let record = self.records.find(self.file, self.name);
            let now = file.bytes.as_deref().unwrap_or_default();
            let original = record.as_ref().and_then(|record| self.records.original(record, now));
            let new = match original {
                Some(original) => original,
                None => {
                    let new = with_entry(self.configuration, text, self.name, None);
                    Some(new.map_err(|error| self.broken(&error))?.into_bytes())
                }
            };
            match file.replace(new.as_deref(), self.within.is_none())? {
                Replaced::Done => {
                    if let (None, Some(record)) = (&new, &record) {
                        record.remove_folders();
                    }
                    self.records.forget(self.file, self.name);
                    Ok(Some(self.outcome(Status::Removed, Some(&found))))
                }
                Replaced::Changed => Ok(None),
            }
        })
    }

    /// Reads the file and changes it, again if another program changed it meanwhile (`None`).
    fn repeated(&self, change: impl Fn(&ConfigFile) -> Result<Option<Outcome>, Failure>) -> Result<Outcome, Failure> {
        for _ in 0..MAX_ATTEMPTS {
            if let Some(outcome) = change(&ConfigFile::read(self.file, self.within)?)? {
                return Ok(outcome);
            }
        }
        let message = format!("another program keeps changing {}; it was left as it is", self.file.display());
        Err(Failure::new(Exit::Conflict, message).help("quit the client, and try again"))
    }

    /// Returns whether an entry comes from `install`.
    fn is_installed(&self, entry: &Value) -> bool {
        is_own(entry) || self.records.find(self.file, self.name).is_some_and(|record| record.is_of(entry))
    }

    fn taken(&self, reason: &str, help: &str) -> Failure {
        let message = format!("the entry `{}` in {} {reason}", self.name, self.file.display());
        Failure::new(Exit::Conflict, message).help(help)
    }

    fn broken(&self, error: &EditError) -> Failure {
        Failure::new(Exit::Failed, format!("{}: {error}", self.file.display()))
            .help("nothing was changed; correct the file in its client or an editor, and try again")
    }

    fn outcome(&self, status: Status, entry: Option<&Value>) -> Outcome {
        Outcome {
            status,
            file: Some(self.file.to_owned()),
            entry: entry.cloned(),
            backup: None,
            preview: String::new(),
            reason: None,
        }
    }
}

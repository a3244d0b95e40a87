//! Files of earlier exports: which they are, whether they were edited since, and the removal of those that no prompt has
//! any more.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use promptshelf_author::ExportFormat;
use promptshelf_server::Library;
use promptshelf_source::{EditError, EditableFolder, Mark};
use serde_json::json;

use super::{
    import,
    marker::{self, Origin, Owner},
    names, skill_of,
};
use crate::state::{self, digest_bytes};

/// The digests of the files that exports wrote to a folder, by path. Known on this machine only.
pub(super) type Record = BTreeMap<String, String>;

/// Where an export writes all prompts and skills of a library.
pub(super) struct Target {
    pub(super) format: ExportFormat,
    /// The folder of prompts.
    pub(super) prompts: String,
    /// The folder of skills with their files.
    pub(super) skills: Option<String>,
}

/// What a file is to the exports of a library.
pub(super) enum FileState {
    Gone,
    /// Written by an export, and not edited since; with the content.
    Own(Vec<u8>),
    Edited,
    /// Not written by an export, for this reason.
    Foreign(String),
}

pub(super) fn state_of(folder: &EditableFolder, path: &str, origin: &Origin, record: &Record) -> FileState {
    let present = match folder.read(path) {
        Ok(present) => present,
        Err(EditError::NotFound) => return FileState::Gone,
        Err(_) => return FileState::Foreign(import::reason(&EditError::Exists)),
    };
    let text = std::str::from_utf8(&present).ok();
    let Some((mark, text)) = text.and_then(|text| Some((Mark::find(text)?, text))) else {
        // Files that cannot have a mark are known on this machine.
        return match record.get(path) {
            Some(written) if *written == digest_bytes(&present) => FileState::Own(present),
            Some(_) => FileState::Edited,
            None => FileState::Foreign(import::reason(&EditError::Exists)),
        };
    };
    if mark.is_synced {
        FileState::Foreign("was written by `sync`, and was not changed".to_owned())
    } else if mark.path.as_deref().is_some_and(|written| written != path) {
        FileState::Foreign("is a copy of another exported file, and was not changed".to_owned())
    } else if origin.owner(&mark.origin, mark.path.is_none()) == Owner::Other {
        FileState::Foreign(format!("comes from {}, and was not changed", mark.origin))
    } else if marker::is_edited(text, &mark) {
        FileState::Edited
    } else {
        FileState::Own(present)
    }
}

/// What became of the files that no prompt has any more.
#[derive(Default)]
pub(super) struct Withdrawn {
    pub(super) removed: Vec<String>,
    /// With the reasons.
    pub(super) kept: Vec<(String, String)>,
}

impl Target {
    /// Removes the files of earlier exports that are not among the wanted ones and were not edited.
    pub(super) fn remove_withdrawn(
        &self,
        to: &Path,
        wanted: &BTreeSet<String>,
        library: &Library,
        (origin, record): (&Origin, &mut Record),
    ) -> Withdrawn {
        let mut withdrawn = Withdrawn::default();
        let Some(folder) = to.is_dir().then(|| EditableFolder::local(to).ok()).flatten() else { return withdrawn };
        let is_empty = library.catalog().prompts().is_empty() && library.catalog().skills().is_empty();
        let broken = library.broken();
        for path in self.candidates(to, record).difference(wanted) {
            let reason = match state_of(&folder, path, origin, record) {
                FileState::Gone => {
                    record.remove(path);
                    continue;
                }
                FileState::Foreign(_) => continue,
                _ if self.is_of_broken(path, &broken) => "its prompt has an error; see `promptshelf check`".to_owned(),
                FileState::Edited => "it was edited; its prompt is no longer in the library".to_owned(),
                // More often a disk that is not there than the end of all prompts.
                FileState::Own(_) if is_empty => "the library has no prompts".to_owned(),
                FileState::Own(bytes) => match folder.delete(path, |now| now == bytes) {
                    Ok(()) => {
                        remove_empty_folders(to, path);
                        record.remove(path);
                        withdrawn.removed.push(path.clone());
                        continue;
                    }
                    Err(error) => error.to_string(),
                },
            };
            withdrawn.kept.push((path.clone(), reason));
        }
        withdrawn
    }

    /// Returns the paths that exports of prompts and skills to this target may have written.
    fn candidates(&self, to: &Path, record: &Record) -> BTreeSet<String> {
        let is_of_skill =
            |path: &str| self.skills.as_deref().is_some_and(|skills| path.starts_with(&format!("{skills}/")));
        let recorded = record.keys().filter(|path| self.is_of_prompt(path) || is_of_skill(path)).cloned();
        // A fresh checkout has no record.
        let entries = fs::read_dir(to.join(&self.prompts)).into_iter().flatten().flatten();
        let files = entries.filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            Some(self.in_folder(&if self.format == ExportFormat::Skill { format!("{name}/SKILL.md") } else { name }))
        });
        recorded.chain(files.filter(|path| self.is_of_prompt(path))).collect()
    }

    fn in_folder(&self, file: &str) -> String {
        if self.prompts.is_empty() { file.to_owned() } else { format!("{}/{file}", self.prompts) }
    }

    fn is_of_prompt(&self, path: &str) -> bool {
        let Some(file) = path.strip_prefix(&self.in_folder("")) else { return false };
        let name = match self.format {
            ExportFormat::Skill => file.strip_suffix("/SKILL.md"),
            format => file.strip_suffix(names::ending(format)),
        };
        name.is_some_and(|name| !name.contains('/'))
    }

    fn is_of_broken(&self, path: &str, broken: &BTreeSet<String>) -> bool {
        let is_file_of =
            |name: &String| names::file(name, self.format, None).is_ok_and(|file| self.in_folder(&file) == path);
        skill_of(path).is_some_and(|(name, _)| broken.contains(name)) || broken.iter().any(is_file_of)
    }
}

fn remove_empty_folders(to: &Path, path: &str) {
    let mut parent = path;
    while let Some((folder, _)) = parent.rsplit_once('/') {
        if fs::remove_dir(to.join(folder)).is_err() {
            break;
        }
        parent = folder;
    }
}

fn record_file(to: &Path) -> Option<PathBuf> {
    let to = fs::canonicalize(to).ok()?;
    let name = state::digest(&to.display().to_string());
    state::folder().map(|folder| folder.join("export").join(format!("{}.json", &name[..32])))
}

pub(super) fn read_record(to: &Path) -> Record {
    let text = record_file(to).and_then(|file| fs::read_to_string(file).ok());
    text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
}

/// Without a record, a later export refuses files that have no mark.
pub(super) fn write_record(to: &Path, record: &Record) {
    if let (Some(file), false) = (record_file(to), record.is_empty()) {
        state::write(&file, &json!(record).to_string()).ok();
    }
}

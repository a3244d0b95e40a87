//! Skills of a library or server as folders that a client reads.
//!
//! The files of a skill are written as the server sends them, after a check of their digests. A skill is updated as a
//! whole or not at all: with one file that was edited manually, all stay as they are.
//!
//! Elsewhere: the files and records on disk (`skill_folder`).

use std::collections::{BTreeMap, BTreeSet};

use futures_util::{StreamExt, TryStreamExt, stream};
use promptshelf_author::active_parts_of_skill;
use promptshelf_client::{ClientError, ResourceBody, SkillFile, SkillInfo};

use super::{
    Job, REQUESTS, Report, SKILL,
    marker::{Origin, Owner},
    names,
    skill_folder::{Digests, FileState, Record, SkillFolder, digest_of},
};
use crate::{
    connect::Connection,
    exit::{Exit, Failure},
};

struct Plan<'s> {
    write: Vec<&'s SkillFile>,
    remove: Vec<String>,
}

impl Job<'_> {
    /// Returns the paths of the skills that were written from an origin.
    pub(super) fn skills_of(&self, origin: &Origin) -> Result<Vec<String>, Failure> {
        let mut paths = Vec::new();
        for folder in SkillFolder::recorded(&self.folder)? {
            if folder.record()?.is_some_and(|record| is_ours(&record, origin)) {
                paths.push(folder.shown(SKILL));
            }
        }
        Ok(paths)
    }

    /// Removes the skills of this origin that are no longer listed.
    pub(super) fn remove_skills(
        &self,
        skills: &[SkillInfo],
        origin: &Origin,
        report: &mut Report,
    ) -> Result<(), Failure> {
        let listed: BTreeSet<&str> = skills.iter().map(|skill| skill.name.as_str()).collect();
        for folder in SkillFolder::recorded(&self.folder)? {
            let Some(mut record) = folder.record()?.filter(|record| is_ours(record, origin)) else { continue };
            if listed.contains(folder.name()) {
                continue;
            }
            let mut left = BTreeMap::new();
            let mut files: Vec<_> = std::mem::take(&mut record.files).into_iter().collect();
            // The `SKILL.md` first: without it, clients see no skill.
            files.sort_by_key(|(path, _)| path != SKILL);
            for (path, digests) in files {
                match folder.look(&path)? {
                    FileState::Missing => {}
                    FileState::File(found) if digests.contains(&found) => {
                        if !self.arguments.dry_run {
                            folder.remove(&path)?;
                        }
                        report.removed.push(folder.shown(&path));
                    }
                    _ => {
                        report.keep(&folder.shown(&path), "it was edited; the skill is no longer listed".to_owned());
                        left.insert(path, digests);
                    }
                }
            }
            if !self.arguments.dry_run {
                record.files = left;
                folder.finish(&record)?;
            }
        }
        Ok(())
    }

    /// Writes the skills that are listed now, each as a whole or not at all.
    pub(super) async fn write_skills(
        &self,
        connection: &Connection,
        skills: &[SkillInfo],
        origin: &Origin,
        report: &mut Report,
    ) -> Result<(), Failure> {
        let mut known = BTreeSet::new();
        for skill in skills {
            let checked = match &skill.problem {
                Some(problem) => Err(problem.clone()),
                None => names::check_skill(skill, self.native),
            };
            match checked {
                Err(reason) => report.leave_out(&skill.name, reason),
                Ok(()) if !known.insert(&skill.name) => {
                    report.leave_out(&skill.name, "another skill has the same name".to_owned());
                }
                Ok(()) => self.write_skill(connection, skill, origin, report).await?,
            }
        }
        Ok(())
    }

    async fn write_skill(
        &self,
        connection: &Connection,
        skill: &SkillInfo,
        origin: &Origin,
        report: &mut Report,
    ) -> Result<(), Failure> {
        let folder = SkillFolder::new(&self.folder, &skill.name);
        let mut record = match folder.record()? {
            Some(record) if !is_ours(&record, origin) => {
                report.keep(&folder.shown(SKILL), format!("it comes from {}", record.origin));
                return Ok(());
            }
            Some(record) => record,
            None if folder.is_taken()? => {
                report.keep(&folder.shown(SKILL), "its folder was not written by `sync`".to_owned());
                return Ok(());
            }
            None => {
                Record { origin: origin.as_str().to_owned(), name: Some(skill.name.clone()), files: BTreeMap::new() }
            }
        };
        let Some(plan) = plan(&folder, &record, skill, report)? else {
            return if record.origin != origin.as_str() && !self.arguments.dry_run {
                report.take_over();
                folder.write_record(&Record {
                    origin: origin.as_str().to_owned(),
                    name: Some(skill.name.clone()),
                    ..record
                })
            } else {
                Ok(())
            };
        };
        let shown = |path: &str| folder.shown(path);
        // All of it: what the user agrees to is the skill with the scripts that its permissions are for.
        let mut contents = match contents(connection, &skill.files.iter().collect::<Vec<_>>()).await? {
            Ok(contents) => contents,
            Err(reason) => {
                report.leave_out(&skill.name, reason);
                return Ok(());
            }
        };
        let mut agreed = String::new();
        let mut parts = Vec::new();
        for (file, bytes) in &contents {
            let text = String::from_utf8_lossy(bytes);
            agreed.push_str(&format!("{}\0{}\0", file.path, file.digest));
            parts.extend(self.active(active_parts_of_skill(&file.path, &text)));
        }
        if !self.agreed(&skill.name, &parts, &agreed, report) {
            return Ok(());
        }
        if self.arguments.dry_run {
            report.written.extend(plan.write.iter().map(|file| shown(&file.path)));
            report.removed.extend(plan.remove.iter().map(|path| shown(path)));
            return Ok(());
        }
        if record.origin != origin.as_str() {
            report.take_over();
            record.origin = origin.as_str().to_owned();
        }
        record.name = Some(skill.name.clone());
        // Both digests during the change: after an interruption, no file looks edited.
        for file in &plan.write {
            record.files.entry(file.path.clone()).or_default().insert(file.digest.clone());
        }
        if !contents.is_empty() {
            folder.write_record(&record)?;
        }
        contents.retain(|(file, _)| plan.write.iter().any(|planned| planned.path == file.path));
        // The `SKILL.md` last: until then, clients see no new skill, or the earlier one.
        contents.sort_by_key(|(file, _)| file.path == SKILL);
        for (file, bytes) in &contents {
            let earlier = record.files.get(&file.path);
            if !folder.write(&file.path, bytes, |found| earlier.is_some_and(|earlier| earlier.contains(found)))? {
                report.keep(&shown(&file.path), "it was changed at the same moment".to_owned());
                return Ok(());
            }
            report.written.push(shown(&file.path));
        }
        for path in &plan.remove {
            folder.remove(path)?;
            report.removed.push(shown(path));
        }
        let files = skill.files.iter().map(|file| (file.path.clone(), Digests::from([file.digest.clone()])));
        folder.finish(&Record { files: files.collect(), ..record })
    }
}

/// Whether the files of a record come from this library or server. Records of earlier releases have no name.
fn is_ours(record: &Record, origin: &Origin) -> bool {
    origin.owner(&record.origin, record.name.is_none()) != Owner::Other
}

/// Compares a skill with its files on disk. `None` if it stays as it is; edited files are reported.
fn plan<'s>(
    folder: &SkillFolder<'_>,
    record: &Record,
    skill: &'s SkillInfo,
    report: &mut Report,
) -> Result<Option<Plan<'s>>, Failure> {
    let mut plan = Plan { write: Vec::new(), remove: Vec::new() };
    let mut is_edited = false;
    let none = Digests::new();
    for file in &skill.files {
        let recorded = record.files.get(&file.path).unwrap_or(&none);
        match folder.look(&file.path)? {
            FileState::File(found) if found == file.digest => {}
            FileState::Missing => plan.write.push(file),
            FileState::File(found) if recorded.contains(&found) => plan.write.push(file),
            _ => {
                is_edited = true;
                let reason = if recorded.is_empty() { "it was not written by `sync`" } else { "it was edited" };
                report.keep(&folder.shown(&file.path), format!("{reason}; the whole skill stays as it is"));
            }
        }
    }
    let listed: BTreeSet<&str> = skill.files.iter().map(|file| file.path.as_str()).collect();
    for (path, digests) in record.files.iter().filter(|(path, _)| !listed.contains(path.as_str())) {
        match folder.look(path)? {
            FileState::Missing => {}
            FileState::File(found) if digests.contains(&found) => plan.remove.push(path.clone()),
            _ => {
                is_edited = true;
                let reason = "it was edited, and the skill no longer has it; the whole skill stays as it is";
                report.keep(&folder.shown(path), reason.to_owned());
            }
        }
    }
    let is_current = plan.write.is_empty() && plan.remove.is_empty() && record.files.len() == skill.files.len();
    Ok((!is_edited && !is_current).then_some(plan))
}

/// Reads files of a skill. The reason, if one of them is not the file of the list.
async fn contents<'s>(
    connection: &Connection,
    files: &[&'s SkillFile],
) -> Result<Result<Vec<(&'s SkillFile, Vec<u8>)>, String>, Failure> {
    let read = stream::iter(files.iter().copied())
        .map(|file| async move { content(connection, file).await.map(|bytes| (file, bytes)) })
        .buffered(REQUESTS)
        .try_collect()
        .await;
    match read {
        Ok(contents) => Ok(Ok(contents)),
        Err(Unread::Lost(reason)) => Ok(Err(reason)),
        Err(Unread::Failed(failure)) => Err(failure),
    }
}

/// The reason why a file was not read.
enum Unread {
    /// This skill cannot be written.
    Lost(String),
    Failed(Failure),
}

async fn content(connection: &Connection, file: &SkillFile) -> Result<Vec<u8>, Unread> {
    let result = match connection.client.read_skill_file(file).await {
        Ok(result) => result,
        Err(error @ ClientError::ErrorResponse { .. }) => {
            let reason = connection.rejection(Exit::Failed, &error).message;
            return Err(Unread::Lost(format!("its file {} cannot be read: {reason}", file.path)));
        }
        Err(error) => return Err(Unread::Failed(connection.failure(error))),
    };
    let found = result.contents.into_iter().find(|contents| contents.uri == file.uri);
    let bytes = match found.map(|contents| contents.body) {
        Some(ResourceBody::Text(text)) => text.into_bytes(),
        Some(ResourceBody::Blob(bytes)) => bytes,
        None => return Err(Unread::Lost(format!("the server sent no content for its file {}", file.path))),
    };
    if bytes.len() as u64 == file.size && digest_of(&bytes) == file.digest {
        Ok(bytes)
    } else {
        Err(Unread::Lost(format!(
            "the content of its file {} does not have the digest and size of the list",
            file.path
        )))
    }
}

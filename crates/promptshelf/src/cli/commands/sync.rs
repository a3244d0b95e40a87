//! `promptshelf sync`: writes the prompts of a library or server as files that a client reads, and keeps them current.
//!
//! `convert` makes the text of a file, `marker` marks it, `folder` reads and writes the files. `skills` writes folders of
//! skills as they are. All files are inside of one folder, whose handle refuses every path that leads out of it.

mod convert;
mod folder;
pub(super) mod marker;
pub(super) mod names;
pub(super) mod report;
mod skill_folder;
mod skills;
mod watch;

use std::collections::{BTreeMap, HashMap};

use futures_util::{StreamExt, stream};
use promptshelf_author::{
    ActiveKind, ActivePart, Loss,
    clients::{Client, NATIVE_FILES, NativeFiles},
};
use promptshelf_client::{PromptInfo, SkillInfo};
use promptshelf_source::Mark;

use self::{
    folder::{Found, SyncFolder},
    marker::{Origin, Owner},
    report::Report,
};
use super::{
    clients,
    consent::{self, Consent, Decision},
    own_library,
};
use crate::{
    args::reach::SyncArguments,
    connect::Connection,
    exit::{Exit, Failure},
};

/// The requests that are under way at once.
const REQUESTS: usize = 8;

pub(crate) async fn run(arguments: &SyncArguments) -> Result<(), Failure> {
    let client = clients::find(&arguments.client)?;
    let native = client.native_files().ok_or_else(|| unsupported(client))?;
    let source = arguments.source.source(arguments.target.as_deref())?;
    own_library::refuse(&source, &arguments.to, &format!("{}/", native.folder), &names::sample(native.format))?;
    own_library::refuse(&source, &arguments.to, &format!("{}/", native.skills), "x/SKILL.md")?;
    let folder = SyncFolder::open(&arguments.to, native, !arguments.dry_run)?;
    let name = match &source {
        crate::source::Source::Folder(folder) => crate::library::name(folder),
        _ => None,
    };
    let origin = Origin::of(&source, &arguments.to, name.as_deref());
    if !arguments.dry_run {
        origin.claim(&source)?;
    }
    let consent = Consent::new(&source, origin.as_str(), &arguments.allow_commands, !arguments.dry_run);
    let job = Job { arguments, native, source, folder, origin, consent };
    watch::run(&job).await
}

fn unsupported(client: &Client) -> Failure {
    let names: Vec<&str> = NATIVE_FILES.iter().map(|files| files.client).collect();
    let message = format!("{} reads no files of prompts", client.name);
    let way = match client.configuration() {
        Some(_) => format!("`promptshelf install --client {}` connects it", client.id),
        None => "add a server in its own settings".to_owned(),
    };
    Failure::new(Exit::Usage, message).help(format!("{way}; clients with files are {}", names.join(", ")))
}

struct Job<'a> {
    arguments: &'a SyncArguments,
    native: &'static NativeFiles,
    source: crate::source::Source,
    folder: SyncFolder,
    origin: Origin,
    consent: Consent<'a>,
}

#[derive(Clone, PartialEq)]
struct Listed {
    prompts: Vec<PromptInfo>,
    skills: Vec<SkillInfo>,
}

struct Target {
    path: String,
    prompt: PromptInfo,
}

impl Job<'_> {
    /// Makes the files equal to the prompts that are listed now. Files of other prompts are removed first.
    async fn pass(&self, connection: &Connection, listed: &Listed) -> Result<Report, Failure> {
        let origin = &self.origin;
        let mut report = Report::default();
        let _lock = self.folder.lock()?;
        if !self.arguments.dry_run {
            self.folder.remove_leftovers();
        }
        self.remove_skills(&listed.skills, origin, &mut report)?;
        let found = self.folder.scan()?;
        let targets = self.targets(listed, &mut report);
        for (path, found) in &found {
            if !targets.contains_key(path) {
                self.remove(path, found, &mut report)?;
            }
        }
        self.write_skills(connection, &listed.skills, origin, &mut report).await?;
        let lower: HashMap<String, &String> = found.keys().map(|path| (path.to_lowercase(), path)).collect();
        let converted = stream::iter(targets.values())
            .map(|target| async move { (target, convert::convert(connection, &target.prompt, self.native).await) })
            .buffered(REQUESTS);
        let mut converted = std::pin::pin!(converted);
        while let Some((target, result)) = converted.next().await {
            let name = &target.prompt.name;
            let file = match result {
                Ok(file) => file,
                Err(failure) if matches!(failure.exit, Exit::Unreachable | Exit::TimedOut | Exit::SignIn) => {
                    return Err(failure);
                }
                Err(failure) => {
                    report.leave_out(name, failure.message);
                    continue;
                }
            };
            if !file.incomplete.is_empty() && !self.arguments.allow_incomplete {
                let reason = file.incomplete.join(", and ");
                report.leave_out(
                    name,
                    format!("{reason}, which the file cannot have; `--allow-incomplete` writes the rest"),
                );
                continue;
            }
            file.incomplete.into_iter().for_each(|what| report.lose(name, Loss::new("parts are missing", what)));
            let active = self.active(file.active);
            if !self.agreed(name, &active, &file.text, &mut report) {
                continue;
            }
            file.losses.into_iter().for_each(|loss| report.lose(name, loss));
            match lower.get(&target.path.to_lowercase()) {
                Some(other) if **other != target.path && self.folder.exists(other) => {
                    report.keep(other, format!("its name differs from {} only in letter case", target.path));
                }
                _ => {
                    let text = marker::signed(&file.text, self.native.format, true, origin, &target.path);
                    self.write(&target.path, found.get(&target.path), &text, &mut report)?;
                }
            }
        }
        report.finish();
        Ok(report)
    }

    /// Returns the path of each prompt that can have a file; reports the others.
    fn targets(&self, listed: &Listed, report: &mut Report) -> BTreeMap<String, Target> {
        let mut prompts = listed.prompts.clone();
        prompts.sort_by(|one, other| one.name.cmp(&other.name));
        let mut targets = BTreeMap::new();
        let mut lower: HashMap<String, String> = HashMap::new();
        for prompt in prompts {
            let path = match names::path(&prompt.name, self.native) {
                Ok(path) => path,
                Err(reason) => {
                    report.leave_out(&prompt.name, reason);
                    continue;
                }
            };
            // Clients show one of both, and the skill has all its files.
            let is_same = |skill: &SkillInfo| names::is_same(&prompt.name, &skill.name, self.native);
            if listed.skills.iter().any(|skill| skill.problem.is_none() && is_same(skill)) {
                continue;
            }
            // Also where the file system distinguishes case: the folder may be copied to one that does not.
            if let Some(other) = lower.insert(path.to_lowercase(), prompt.name.clone()) {
                report.leave_out(
                    &prompt.name,
                    format!("the file name of the prompt `{other}` is the same or differs only in case"),
                );
                lower.insert(path.to_lowercase(), other);
                continue;
            }
            targets.insert(path.clone(), Target { path, prompt });
        }
        targets
    }

    fn key(&self) -> String {
        let to = self.arguments.to.canonicalize().unwrap_or_else(|_| self.arguments.to.clone());
        format!("{}\0{}\0{}", to.display(), self.native.client, self.origin.as_str())
    }

    /// Returns the parts that have an effect in this project: a word such as `@name` has one if there is such a file.
    fn active(&self, mut parts: Vec<ActivePart>) -> Vec<ActivePart> {
        parts.retain(|part| part.kind != ActiveKind::Mention || self.folder.exists(part.text.trim_start_matches('@')));
        parts
    }

    /// Returns whether text with these parts may be written; reports it otherwise, or with a warning.
    fn agreed(&self, name: &str, parts: &[ActivePart], content: &str, report: &mut Report) -> bool {
        match self.consent.decide(name, parts, content) {
            Decision::Write => true,
            Decision::WriteWithWarning => {
                let what = "text that is more than text to the client: it runs, reads or permits something";
                parts.iter().for_each(|part| report.lose(name, Loss::new(what, part.to_string())));
                true
            }
            Decision::Refuse => {
                report.refuse(name, consent::shown(parts));
                false
            }
        }
    }

    fn owner(&self, mark: &Mark) -> Owner {
        self.origin.owner(&mark.origin, mark.path.is_none())
    }

    /// Removes the file of a prompt that is no longer listed.
    fn remove(&self, path: &str, found: &Found, report: &mut Report) -> Result<(), Failure> {
        match found {
            Found::Foreign | Found::Copy => {}
            Found::Signed { mark, .. } if self.owner(mark) == Owner::Other => {}
            Found::Signed { is_edited: true, .. } => {
                report.keep(path, "it was edited; the prompt is no longer listed".to_owned());
            }
            Found::Signed { .. } => {
                if !self.arguments.dry_run {
                    self.folder.remove(path, found)?;
                }
                report.removed.push(path.to_owned());
            }
        }
        Ok(())
    }

    fn write(&self, path: &str, found: Option<&Found>, text: &str, report: &mut Report) -> Result<(), Failure> {
        match found {
            Some(Found::Foreign) => report.keep(path, "it was not written by `sync`".to_owned()),
            Some(Found::Copy) => report.keep(path, "it is a copy of another file of `sync`".to_owned()),
            Some(Found::Signed { is_edited: true, .. }) => report.keep(path, "it was edited".to_owned()),
            Some(Found::Signed { mark, .. }) if self.owner(mark) == Owner::Other => {
                report.keep(path, format!("it comes from {}", mark.origin));
            }
            Some(Found::Signed { text: written, .. }) if written == text => {}
            _ => {
                if matches!(found, Some(Found::Signed { mark, .. }) if self.owner(mark) == Owner::Moved) {
                    report.take_over();
                }
                if !self.arguments.dry_run && !self.folder.write(path, found, text)? {
                    report.keep(path, "it was changed at the same moment".to_owned());
                    return Ok(());
                }
                report.written.push(path.to_owned());
            }
        }
        Ok(())
    }
}

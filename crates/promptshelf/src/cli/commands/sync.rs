//! `promptshelf sync`: writes the prompts of a library or server as files that a client reads, and keeps them current.
//!
//! `convert` makes the text of a file, `marker` marks it, `folder` reads and writes the files. `skills` writes folders of
//! skills as they are. All files are inside of one folder, whose handle refuses every path that leads out of it.

const SYNC_EXAMPLES: &str = "\
Each file has a comment with its origin, path and digest, and is never a prompt
of a library itself. Files without it, and files that were edited since, are
neither replaced nor removed. Files of prompts that are no longer listed are
removed.

Text of a server, a store or a repository that the client would run, read or
take for a permission is not written, and the exit code is 1, unless you agree
to it at the terminal or with --allow-commands.

Examples:
  promptshelf sync prompts --client claude-code
  promptshelf sync https://example.com/mcp --client codex --to ~ --watch
  promptshelf sync prompts --client cursor --client zed --to project --dry-run";

#[derive(Debug, Args)]
#[command(after_help = SYNC_EXAMPLES)]
pub(crate) struct SyncArguments {
    #[command(flatten)]
    pub(crate) words: Words<SourceArguments, Nothing>,

    /// The client that reads the files, as `promptshelf known-clients` names it, or `all` for those that are found on this
    /// machine; repeatable
    #[arg(long = "client", value_name = "NAME", required = true)]
    pub(crate) clients: Vec<String>,

    /// The project, or the home folder, that gets the files
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    pub(crate) to: PathBuf,

    /// Stay, and update the files when the prompts change
    #[arg(long, conflicts_with = "dry_run")]
    pub(crate) watch: bool,

    /// Remove the files of all prompts if the library is a folder without any
    #[arg(long)]
    pub(crate) replace: bool,

    /// Print the changes without writing anything
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Write this prompt or skill although the client would run, read or permit something in its text; repeatable
    #[arg(long, value_name = "NAME")]
    pub(crate) allow_commands: Vec<String>,

    /// Write prompts without the parts that the format cannot have, such as images and questions
    #[arg(long)]
    pub(crate) allow_incomplete: bool,

    /// Print JSON: `written`, `removed`, `kept`, `leftOut`, `refused` and `lost`; with --watch one line for each change
    #[arg(long)]
    pub(crate) json: bool,
}

pub(super) mod marker;
pub(super) mod names;
mod skill_folder;
mod skills;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fs,
    future::pending,
    io::{self, Write},
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use cap_std::{
    ambient_authority,
    fs::{Dir, OpenOptions},
};
use clap::Args;
use futures_util::{StreamExt, future::try_join_all, stream};
use promptshelf_author::{
    ActiveKind, ActivePart, ExportFormat, Loss,
    clients::{Client, NATIVE_FILES, NativeFiles},
    export,
};
use promptshelf_client::{Arguments, ContentBlock, Message, PromptInfo, ResourceBody, Role, SkillInfo};
use promptshelf_core::{ArgumentDefinition, BodyPiece, Catalog, Definitions, Prompt, PromptDefinition, check};
use promptshelf_source::Mark;
use serde_json::{Value, json};
use tokio::time::sleep;

use self::marker::{Origin, Owner};
use super::{
    consent::{self, Consent, Decision},
    known_clients, own_library,
};
use crate::{
    args::{Words, client::SourceArguments, words::Nothing},
    client_config::{Places, is_present},
    connect::{Connection, Options, connect},
    exit::{Exit, Failure},
    output::{Output, count, list_json, note, pretty_json, report_failure, visible_line},
    source::Source,
    state::{self, digest},
    terminal::Progress,
    working_copy::named,
};

/// The requests that are under way at once.
const REQUESTS: usize = 8;

pub(crate) async fn run(arguments: &SyncArguments) -> Result<(), Failure> {
    let mut jobs = Vec::new();
    let source = arguments.words.library.source()?;
    for native in selected(&arguments.clients)? {
        jobs.push(job(arguments, &source, native)?);
    }
    if arguments.watch {
        return try_join_all(jobs.iter().map(watch)).await.map(drop);
    }
    let mut reports = Vec::new();
    for job in &jobs {
        let connection = connected(job).await?;
        let report = job.pass(&connection, &listed(&connection).await?).await?;
        if let (Some(library), true) = (&connection.library, reports.is_empty()) {
            library.note_errors();
        }
        if !arguments.json {
            report.print(job, None)?;
        }
        reports.push((job, report));
    }
    if arguments.json {
        let mut output = Output::stdout();
        let list = list_json(reports.iter().map(|(job, report)| report.json(job)));
        writeln!(output.out, "{}", pretty_json(&list))?;
        output.out.flush()?;
    }
    let has_failed = reports.iter().any(|(_, report)| report.is_refused() || report.has_broken());
    if has_failed { Err(Failure::reported(Exit::Failed)) } else { Ok(()) }
}

/// Returns the files of the clients of `--client`.
fn selected(names: &[String]) -> Result<Vec<&'static NativeFiles>, Failure> {
    if names.iter().any(|name| name == "all") {
        let places = Places::of_environment();
        let is_here = |client: &Client| {
            let configuration = client.configuration().zip(places.as_ref());
            configuration.is_some_and(|(configuration, places)| is_present(configuration, places))
        };
        let files = NATIVE_FILES.iter().filter(|files| known_clients::find(files.client).is_ok_and(is_here));
        let files: Vec<&NativeFiles> = files.collect();
        return match files.is_empty() {
            true => Err(Failure::new(Exit::NotFound, "no client that reads files of prompts is found on this machine")
                .help("name one with --client; `promptshelf known-clients` lists the names")),
            false => Ok(files),
        };
    }
    let files = names.iter().map(|name| {
        let client = known_clients::find(name)?;
        client.native_files().ok_or_else(|| unsupported(client))
    });
    files.collect()
}

fn job<'a>(arguments: &'a SyncArguments, source: &Source, native: &'static NativeFiles) -> Result<Job<'a>, Failure> {
    own_library::refuse(source, &arguments.to, &format!("{}/", native.folder), &names::sample(native.format))?;
    own_library::refuse(source, &arguments.to, &format!("{}/", native.skills), "x/SKILL.md")?;
    let folder = SyncFolder::open(&arguments.to, native, !arguments.dry_run)?;
    let name = match source {
        Source::Folder(folder) => crate::library::name(folder),
        _ => None,
    };
    let origin = Origin::of(source, &arguments.to, name.as_deref());
    if !arguments.dry_run {
        origin.claim(source)?;
    }
    let consent = Consent::new(source, origin.as_str(), &arguments.allow_commands, !arguments.dry_run);
    Ok(Job { arguments, native, source: source.clone(), folder, origin, consent })
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
    source: Source,
    folder: SyncFolder,
    origin: Origin,
    consent: Consent<'a>,
}

#[derive(Clone, PartialEq)]
struct Listed {
    prompts: Vec<PromptInfo>,
    skills: Vec<SkillInfo>,
}

/// Why a file stays as it is, although its prompt is not listed.
const BROKEN: &str = "its prompt has an error; see `promptshelf check`";

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
        let broken = connection.library.as_ref().map(|open| open.library.broken()).unwrap_or_default();
        if listed.prompts.is_empty() && listed.skills.is_empty() && broken.is_empty() {
            self.refuse_to_remove_all()?;
        }
        self.remove_skills(&listed.skills, origin, &mut report)?;
        let found = self.folder.scan()?;
        let targets = self.targets(listed, &mut report);
        let broken: BTreeSet<String> = broken.iter().filter_map(|name| names::path(name, self.native).ok()).collect();
        for (path, found) in &found {
            if broken.contains(path) && self.is_own(found) {
                report.keep(path, BROKEN.to_owned());
            } else if !targets.contains_key(path) {
                self.remove(path, found, &mut report)?;
            }
        }
        self.write_skills(connection, &listed.skills, origin, &mut report).await?;
        let lower: HashMap<String, &String> = found.keys().map(|path| (path.to_lowercase(), path)).collect();
        let converted = stream::iter(targets.values())
            .map(|target| async move { (target, convert(connection, &target.prompt, self.native).await) })
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

    /// Refuses a folder without prompts: it is more often a disk that is not there than the end of all prompts.
    fn refuse_to_remove_all(&self) -> Result<(), Failure> {
        let Source::Folder(folder) = &self.source else { return Ok(()) };
        let mut own: Vec<String> = self.skills_of(&self.origin)?;
        own.extend(self.folder.scan()?.into_iter().filter(|(_, found)| self.is_own(found)).map(|(path, _)| path));
        if own.is_empty() || self.arguments.replace {
            return Ok(());
        }
        let own: Vec<&str> = own.iter().map(String::as_str).collect();
        let message = format!(
            "nothing was removed: the folder {} has no prompts, and {} would be removed:{}",
            folder.display(),
            count(own.len(), "file"),
            named(&own)
        );
        Err(Failure::new(Exit::Conflict, message)
            .help("if the folder is on another disk, connect that; with `--replace` the files are removed"))
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

    fn is_own(&self, found: &Found) -> bool {
        matches!(found, Found::Signed { mark, .. } if self.owner(mark) != Owner::Other)
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

/// The time between two requests for the list, for servers that do not notify and for subscriptions that were lost.
const POLL: Duration = Duration::from_secs(30);

const LOOK: Duration = Duration::from_millis(200);

/// The pause before the first attempt to connect again, which doubles with every attempt.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

const MAX_PAUSE: Duration = Duration::from_secs(60);

/// Runs one pass; with `--watch` further ones until a signal ends the process.
async fn watch(job: &Job<'_>) -> Result<(), Failure> {
    let connection = connected(job).await?;
    tokio::select! {
        result = follow(job, connection) => result,
        () = ended() => Ok(()),
    }
}

/// Runs a pass after each change, and connects again after the connection was lost.
async fn follow(job: &Job<'_>, first: Connection) -> Result<(), Failure> {
    let mut earlier = Report::default();
    let mut connection = Some(first);
    let mut pause = FIRST_PAUSE;
    let mut is_first = true;
    let mut reported: Option<Failure> = None;
    loop {
        let failure = match connection.take() {
            Some(connection) => match follow_connection(job, &connection, &mut earlier, &mut is_first).await {
                Ok(()) => None,
                Err(failure) if is_first => return Err(failure),
                Err(failure) => Some(failure),
            },
            None => match connected(job).await {
                Ok(again) => {
                    pause = FIRST_PAUSE;
                    connection = Some(again);
                    continue;
                }
                Err(failure) => Some(failure),
            },
        };
        if let Some(failure) = &failure
            && reported.as_ref() != Some(failure)
        {
            report_failure(failure);
        }
        reported = failure;
        sleep(pause).await;
        pause = (pause * 2).min(MAX_PAUSE);
    }
}

/// Runs passes until the connection is lost.
async fn follow_connection(
    job: &Job<'_>,
    connection: &Connection,
    earlier: &mut Report,
    is_first: &mut bool,
) -> Result<(), Failure> {
    let mut known: Option<Listed> = None;
    while !connection.client.is_closed() {
        // Before the list is requested, so that no change is missed. A new subscription with every request by time,
        // because a server that was restarted has forgotten the earlier one.
        let mut changes = connection.client.changes();
        loop {
            let served = connection.library.as_ref().map(|open| open.library.catalog());
            let all = listed(connection).await?;
            if known.as_ref() != Some(&all) || !all.prompts.iter().all(has_digest) {
                let report = job.pass(connection, &all).await?;
                report.print(job, Some(earlier))?;
                if std::mem::take(is_first) && !job.arguments.json {
                    note(&[format!("following {}", connection.source)]);
                }
                *earlier = report;
                known = Some(all);
            }
            tokio::select! {
                is_open = changes.next() => if is_open { known = None } else { return Ok(()) },
                () = replaced(connection, served) => known = None,
                () = sleep(POLL) => break,
            }
        }
    }
    Ok(())
}

/// Returns whether an entry changes with the text of its prompt: servers of channels send a digest of it.
fn has_digest(prompt: &PromptInfo) -> bool {
    prompt.raw["_meta"]["dev.promptshelf/digest"].is_string()
}

/// Waits until a library of this process has another catalog. The text of a prompt can change without its entry in the
/// list, so that the server sends no notification.
async fn replaced(connection: &Connection, served: Option<Arc<Catalog>>) {
    let (Some(open), Some(served)) = (&connection.library, served) else { return pending().await };
    while Arc::ptr_eq(&served, &open.library.catalog()) {
        sleep(LOOK).await;
    }
}

async fn connected(job: &Job<'_>) -> Result<Connection, Failure> {
    let progress = Progress::new(visible_line(&job.source.to_string()).into_owned());
    let options =
        Options { watch: job.arguments.watch, ..Options::new(job.arguments.words.library.timeout(), &progress) };
    connect(&job.source, options, &progress).await
}

async fn listed(connection: &Connection) -> Result<Listed, Failure> {
    let listing = connection.client.prompt_listing().await.map_err(|error| connection.failure(error))?;
    // As one that is no longer listed, it would lose its file.
    if let Some(first) = listing.left_out.first() {
        let message =
            format!("the list has an entry that cannot be used, so that no file is written or removed: {first}");
        return Err(Failure::new(Exit::Failed, visible_line(&message)));
    }
    let skills = connection.client.all_skills().await.map_err(|error| connection.failure(error))?;
    Ok(Listed { prompts: listing.prompts, skills })
}

async fn ended() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};

        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = terminate.recv() => return,
                _ = tokio::signal::ctrl_c() => return,
            }
        }
    }
    tokio::signal::ctrl_c().await.ok();
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Report {
    written: Vec<String>,
    removed: Vec<String>,
    kept: Vec<(String, String)>,
    /// Prompts and skills that were not written, each with the reason.
    left_out: Vec<(String, String)>,
    refused: Vec<(String, String)>,
    lost: Vec<(String, Loss)>,
    taken_over: usize,
}

impl Report {
    fn has_broken(&self) -> bool {
        self.kept.iter().any(|(_, reason)| reason == BROKEN)
    }

    fn keep(&mut self, path: &str, reason: String) {
        self.kept.push((path.to_owned(), reason));
    }

    fn leave_out(&mut self, prompt: &str, reason: String) {
        // Reasons of servers have several lines.
        let reason = reason.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
        self.left_out.push((prompt.to_owned(), reason));
    }

    fn refuse(&mut self, prompt: &str, what: String) {
        self.refused.push((prompt.to_owned(), what));
    }

    fn lose(&mut self, prompt: &str, loss: Loss) {
        self.lost.push((prompt.to_owned(), loss));
    }

    fn take_over(&mut self) {
        self.taken_over += 1;
    }

    fn is_refused(&self) -> bool {
        !self.refused.is_empty()
    }

    /// Sorts the entries, so that the same changes give the same report.
    fn finish(&mut self) {
        self.written.sort();
        self.removed.sort();
        self.kept.sort();
        self.left_out.sort();
        self.refused.sort();
        self.lost.sort();
    }

    /// Prints the report. With `earlier`, that of the pass before, only if there is something new. What the last run said
    /// about the same project, client and origin is not repeated.
    fn print(&self, job: &Job<'_>, earlier: Option<&Report>) -> Result<(), Failure> {
        let is_same = |earlier: &Report| {
            (&self.kept, &self.lost, &self.left_out, &self.refused)
                == (&earlier.kept, &earlier.lost, &earlier.left_out, &earlier.refused)
        };
        if self.written.is_empty() && self.removed.is_empty() && earlier.is_some_and(is_same) {
            return Ok(());
        }
        let mut output = Output::stdout();
        if job.arguments.json {
            // A reader of a stream expects one value a line.
            writeln!(output.out, "{}", self.json(job))?;
            return Ok(output.out.flush()?);
        }
        let mut line = |text: String| -> Result<(), Failure> {
            let text = output.line(&text).into_owned();
            Ok(writeln!(output.out, "{text}")?)
        };
        let (wrote, removed, written) = if job.arguments.dry_run {
            ("would write", "would remove", "would be written")
        } else {
            ("wrote", "removed", "written")
        };
        for (word, paths) in [(wrote, &self.written), (removed, &self.removed)] {
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
        match losses.is_empty() || !is_new(&job.key(), &losses) {
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
        let summary = [(self.written.len(), written), (self.removed.len(), "removed"), (self.kept.len(), "kept")];
        let parts: Vec<String> =
            summary.iter().map(|(number, what)| format!("{} {what}", count(*number, "file"))).collect();
        line(parts.join(", "))?;
        Ok(output.out.flush()?)
    }

    fn json(&self, job: &Job<'_>) -> Value {
        let kept: Vec<Value> =
            self.kept.iter().map(|(path, reason)| json!({ "path": path, "reason": reason })).collect();
        let with = |rows: &[(String, String)], key: &str| -> Vec<Value> {
            rows.iter().map(|(prompt, text)| json!({ "prompt": prompt, key: text })).collect()
        };
        let lost: Vec<Value> =
            self.lost.iter().map(|(prompt, loss)| json!({ "prompt": prompt, "what": loss.to_string() })).collect();
        json!({
            "client": job.native.client,
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
        let prompts = prompts.into_iter().map(|(prompt, subjects)| {
            if subjects.is_empty() { prompt.to_owned() } else { format!("{prompt} ({})", subjects.join(", ")) }
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

// A prompt of a library or server as the text of a file.
// A server sends rendered messages only. Each argument is therefore requested with a word that cannot occur by chance,
// and this word becomes the placeholder of the target format.

/// The requests for one prompt: with all words, then without those that were rejected.
const MAX_ATTEMPTS: usize = 3;

/// The longest description of a skill, in characters (Agent Skills specification).
const MAX_SKILL_DESCRIPTION: usize = 1024;

struct File {
    text: String,
    losses: Vec<Loss>,
    /// The reasons why the file does not do what the prompt does.
    incomplete: Vec<String>,
    active: Vec<ActivePart>,
}

async fn convert(connection: &Connection, prompt: &PromptInfo, native: &NativeFiles) -> Result<File, Failure> {
    let (mut losses, mut incomplete) = (Vec::new(), Vec::new());
    let mut values: Arguments =
        prompt.arguments.iter().enumerate().map(|(index, argument)| (argument.name.clone(), word(index))).collect();
    let mut attempts = 0;
    let result = loop {
        attempts += 1;
        let error = match connection.client.get(&prompt.name, &values).await {
            Ok(result) => break result,
            Err(error) => error,
        };
        let rejected: Vec<String> = connection.problems(&error).into_iter().map(str::to_owned).collect();
        let is_new = rejected.iter().any(|name| values.contains_key(name));
        if !is_new || attempts == MAX_ATTEMPTS {
            let reason = with_names(prompt, connection.rejection(Exit::Failed, &error).message);
            let failure = connection.failure(error);
            return Err(match failure.exit {
                Exit::Unreachable | Exit::TimedOut | Exit::SignIn => failure,
                exit => Failure::new(exit, format!("it cannot be rendered: {reason}")),
            });
        }
        for argument in prompt.arguments.iter().filter(|argument| rejected.contains(&argument.name)) {
            let name = &argument.name;
            if argument.required && attempts == 1 {
                let sample = connection.sample(&prompt.name, name).await;
                let subject = format!("`{name}`: `{sample}`");
                if connection.suggested(&prompt.name, name).await.is_some() {
                    losses.push(Loss::new("arguments that accept certain values only have one of them", subject));
                } else {
                    // It is made up, and a person who starts the command would not notice.
                    incomplete.push(format!("its argument {subject} accepts certain values only"));
                }
                values.insert(name.clone(), sample);
            } else {
                let subject = format!("`{name}`");
                losses.push(Loss::new("arguments that accept certain values only are left out", subject));
                values.remove(name);
            }
        }
    };
    let pieces = pieces(prompt, &result.messages, &mut incomplete);
    if pieces.iter().any(|piece| matches!(piece, BodyPiece::Text(text) if has_rest(text))) {
        return Err(Failure::new(
            Exit::Failed,
            "an argument is changed by the prompt, so that it cannot be a placeholder",
        ));
    }
    let checked = definition(prompt)?;
    let exported = export(&checked, native.format, Some(pieces));
    losses.extend(exported.losses);
    incomplete.extend(exported.incomplete);
    let chars = exported.text.chars().count();
    if let Some(limit) = native.max_chars.filter(|limit| chars > *limit) {
        losses.push(Loss::new(format!("the client reads {limit} characters"), format!("{chars} characters")));
    }
    let description = prompt.description.as_ref().map_or(0, |description| description.chars().count());
    if native.format == ExportFormat::Skill && description > MAX_SKILL_DESCRIPTION {
        let what = format!("clients read {MAX_SKILL_DESCRIPTION} characters of a description");
        losses.push(Loss::new(what, format!("{description} characters")));
    }
    losses.dedup();
    Ok(File { text: exported.text, losses, incomplete, active: exported.active })
}

/// Replaces the placeholders in a message of the server, which would mean nothing to the reader, by their arguments.
fn with_names(prompt: &PromptInfo, message: String) -> String {
    let arguments = prompt.arguments.iter().enumerate();
    arguments.fold(message, |text, (index, argument)| text.replace(&word(index), &format!("<{}>", argument.name)))
}

/// Makes a checked prompt of an entry in a list. Its text is never used, and must not be empty.
fn definition(prompt: &PromptInfo) -> Result<std::sync::Arc<Prompt>, Failure> {
    let mut definition = PromptDefinition::template(&*prompt.name, "-");
    if let Some(description) = prompt.description.as_deref().or(prompt.title.as_deref()) {
        definition = definition.description(description);
    }
    for argument in &prompt.arguments {
        let mut one = ArgumentDefinition::new(&*argument.name);
        one.required = argument.required;
        one.description = argument.description.as_deref().or(argument.title.as_deref()).map(Into::into);
        definition = definition.argument(one);
    }
    let checked = check(Definitions { prompts: vec![definition.into()], ..Definitions::default() }, None);
    checked.catalog.find(&prompt.name).cloned().ok_or_else(|| {
        let reason = checked.diagnostics.iter().find(|diagnostic| diagnostic.is_error());
        let reason = reason.map_or("its entry is invalid", |reason| &reason.message);
        Failure::new(Exit::Failed, format!("it cannot be converted: {reason}"))
    })
}

/// Converts messages to the parts of a body, with placeholders in place of the words. Blocks without text are lost.
fn pieces(prompt: &PromptInfo, messages: &[Message], incomplete: &mut Vec<String>) -> Vec<BodyPiece> {
    let mut pieces = Vec::new();
    for message in messages {
        pieces.push(BodyPiece::Role(match message.role {
            Role::User => promptshelf_core::Role::User,
            Role::Assistant => promptshelf_core::Role::Assistant,
        }));
        let text = match &message.content {
            ContentBlock::Text(text) => &text.text,
            ContentBlock::Resource(resource) => match &resource.contents.body {
                ResourceBody::Text(text) => text,
                ResourceBody::Blob(_) => {
                    incomplete.push("it has a file that is not text".to_owned());
                    continue;
                }
            },
            ContentBlock::Link(link) => &link.uri,
            other => {
                incomplete.push(format!("it has content of the kind `{}`", other.kind()));
                continue;
            }
        };
        split(prompt, text, &mut pieces);
    }
    pieces
}

/// Splits a text at the words of arguments, in any letter case: a filter may have changed it.
fn split(prompt: &PromptInfo, text: &str, pieces: &mut Vec<BodyPiece>) {
    let lower = text.to_ascii_lowercase();
    let mut start = 0;
    while let Some(at) = lower[start..].find(secret()).map(|at| start + at) {
        let digits = at + secret().len();
        let end = digits + lower[digits..].bytes().take_while(u8::is_ascii_digit).count();
        let argument = text[digits..end].parse().ok().and_then(|index: usize| prompt.arguments.get(index));
        let Some((argument, end)) = argument.filter(|_| lower[end..].starts_with('z')).map(|it| (it, end + 1)) else {
            // Left in the text, where `has_rest` finds it.
            pieces.push(BodyPiece::Text(text[start..end].to_owned()));
            start = end;
            continue;
        };
        pieces.push(BodyPiece::Text(text[start..at].to_owned()));
        pieces.push(BodyPiece::Argument(argument.name.clone()));
        start = end;
    }
    pieces.push(BodyPiece::Text(text[start..].to_owned()));
}

fn has_rest(text: &str) -> bool {
    text.to_ascii_lowercase().contains(&secret()[..secret().len() / 2])
}

/// Returns the word for an argument. Letters and digits pass all filters and encodings unchanged.
fn word(index: usize) -> String {
    format!("{}{index}z", secret())
}

/// The beginning of all words of this process, which a text does not contain by chance. It ends with a letter.
fn secret() -> &'static str {
    static SECRET: OnceLock<String> = OnceLock::new();
    SECRET.get_or_init(|| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        format!("ps{}x", &digest(&format!("{now} {}", std::process::id()))[..24])
    })
}

const TEMPORARY: &str = ".promptshelf-sync-";

/// The largest file that can be one of `sync`, in bytes.
const MAX_BYTES: u64 = 16 << 20;

const SKILL: &str = "SKILL.md";

struct SyncFolder {
    path: PathBuf,
    dir: Option<Dir>,
    native: &'static NativeFiles,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Found {
    /// Written by `sync`.
    Signed {
        mark: Mark,
        is_edited: bool,
        text: String,
    },
    /// Written by `sync` to another path, and copied.
    Copy,
    Foreign,
}

impl SyncFolder {
    /// Opens the folder; creates it with `create`.
    fn open(path: &Path, native: &'static NativeFiles, create: bool) -> Result<SyncFolder, Failure> {
        let failure = |error: io::Error| Failure::new(Exit::Failed, format!("{}: {error}", path.display()));
        if create {
            fs::create_dir_all(path).map_err(failure)?;
        }
        let dir = match Dir::open_ambient_dir(path, ambient_authority()) {
            Ok(dir) => Some(dir),
            Err(error) if error.kind() == io::ErrorKind::NotFound && !create => None,
            Err(error) => return Err(failure(error)),
        };
        Ok(SyncFolder { path: path.to_owned(), dir, native })
    }

    /// Returns the handle of the folder; `None` in a dry run before the folder exists.
    fn dir(&self) -> Option<&Dir> {
        self.dir.as_ref()
    }

    fn skills(&self) -> &'static str {
        self.native.skills
    }

    /// Waits for other processes that sync into the folder. `None` without a folder for the lock.
    fn lock(&self) -> Result<Option<fs::File>, Failure> {
        let Some(folder) = state::folder().map(|folder| folder.join("sync")) else { return Ok(None) };
        let path = self.path.canonicalize().unwrap_or_else(|_| self.path.clone());
        let file = folder.join(format!("{}.lock", &state::digest(&path.display().to_string())[..32]));
        let locked = fs::create_dir_all(&folder).and_then(|()| {
            let lock = fs::OpenOptions::new().write(true).create(true).truncate(false).open(&file)?;
            lock.lock()?;
            Ok(lock)
        });
        locked.map(Some).map_err(|error| Failure::new(Exit::Failed, format!("{}: {error}", file.display())))
    }

    fn scan(&self) -> Result<BTreeMap<String, Found>, Failure> {
        let folder = self.native.folder;
        let mut found = BTreeMap::new();
        let Some(dir) = &self.dir else { return Ok(found) };
        let entries = match dir.read_dir(folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(found),
            Err(error) => return Err(self.failure(folder, &error)),
        };
        for entry in entries.flatten() {
            let Some(name) = entry.file_name().to_str().map(str::to_owned) else { continue };
            let path = match self.native.format {
                ExportFormat::Skill => format!("{folder}/{name}/{SKILL}"),
                format if name.ends_with(names::ending(format)) && !name.starts_with('.') => format!("{folder}/{name}"),
                _ => continue,
            };
            if let Some(file) = self.look(&path)? {
                found.insert(path, file);
            }
        }
        Ok(found)
    }

    /// Reads the file at a path; `None` if it does not exist.
    fn look(&self, path: &str) -> Result<Option<Found>, Failure> {
        let Some(dir) = &self.dir else { return Ok(None) };
        let is_missing =
            |error: &io::Error| matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory);
        let metadata = match dir.symlink_metadata(path) {
            Ok(metadata) => metadata,
            Err(error) if is_missing(&error) => return Ok(None),
            // Such as a link that leads out of the folder.
            Err(_) => return Ok(Some(Found::Foreign)),
        };
        if !metadata.is_file() || metadata.len() > MAX_BYTES {
            return Ok(Some(Found::Foreign));
        }
        let text = match dir.read(path) {
            Ok(bytes) => String::from_utf8(bytes).ok(),
            Err(error) if is_missing(&error) => return Ok(None),
            Err(error) => return Err(self.failure(path, &error)),
        };
        let signed = text.and_then(|text| Mark::find(&text).filter(|mark| mark.is_synced).map(|mark| (mark, text)));
        Ok(Some(match signed {
            Some((mark, _)) if mark.path.as_ref().is_some_and(|written| written != path) => Found::Copy,
            Some((mark, text)) => Found::Signed { is_edited: marker::is_edited(&text, &mark), mark, text },
            None => Found::Foreign,
        }))
    }

    fn exists(&self, path: &str) -> bool {
        self.dir.as_ref().is_some_and(|dir| dir.symlink_metadata(path).is_ok())
    }

    /// Replaces a file, which readers see whole. Returns `false` if it is no longer as it was found.
    fn write(&self, path: &str, found: Option<&Found>, text: &str) -> Result<bool, Failure> {
        let Some(dir) = &self.dir else { return Ok(false) };
        let (folder, _) = path.rsplit_once('/').unwrap_or(("", path));
        dir.create_dir_all(folder).map_err(|error| self.failure(folder, &error))?;
        let temporary = format!("{folder}/{TEMPORARY}{}", std::process::id());
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        let written = dir
            .open_with(&temporary, &options)
            .and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()));
        written.map_err(|error| self.failure(path, &error))?;
        if self.look(path)?.as_ref() != found {
            dir.remove_file(&temporary).ok();
            return Ok(false);
        }
        dir.rename(&temporary, dir, path).map_err(|error| self.failure(path, &error))?;
        Ok(true)
    }

    /// Removes a file if it is as it was found, and the folder of a skill if it is empty then.
    fn remove(&self, path: &str, found: &Found) -> Result<(), Failure> {
        let Some(dir) = &self.dir else { return Ok(()) };
        if self.look(path)?.as_ref() == Some(found) {
            dir.remove_file(path).map_err(|error| self.failure(path, &error))?;
            if let (ExportFormat::Skill, Some((folder, _))) = (self.native.format, path.rsplit_once('/')) {
                dir.remove_dir(folder).ok();
            }
        }
        Ok(())
    }

    fn remove_leftovers(&self) {
        let Some(dir) = &self.dir else { return };
        let folder = self.native.folder;
        let names = |folder: &str| -> Vec<String> {
            let entries = dir.read_dir(folder).into_iter().flatten().flatten();
            entries.filter_map(|entry| entry.file_name().to_str().map(|name| format!("{folder}/{name}"))).collect()
        };
        let skills = names(self.native.skills);
        let mut all: Vec<String> = skills.iter().flat_map(|skill| names(skill)).collect();
        all.extend(names(folder));
        for path in all.iter().filter(|path| path.rsplit('/').next().is_some_and(|name| name.starts_with(TEMPORARY))) {
            dir.remove_file(path).ok();
        }
    }

    fn failure(&self, path: &str, error: &io::Error) -> Failure {
        let failure = Failure::new(Exit::Failed, format!("{}: {error}", self.path.join(path).display()));
        let is_link = |part: &Path| fs::symlink_metadata(self.path.join(part)).is_ok_and(|found| found.is_symlink());
        if Path::new(path).ancestors().any(|part| part != Path::new("") && is_link(part)) {
            return failure.help("a symbolic link must not lead out of the synced folder");
        }
        failure
    }
}

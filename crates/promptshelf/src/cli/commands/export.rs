//! `promptshelf export`: converts prompts of a library to files of other programs, and makes plugins, bundles and entries
//! of registries.

mod bundle;
mod plugin;
mod server_json;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use promptshelf_author::{
    ActiveKind, ActivePart, ExportFormat, Exported, Loss, active_parts_of_skill,
    clients::{NATIVE_FILES, NativeFiles},
    export,
};
use promptshelf_core::{BodyPiece, ContentBlock, Message, Prompt, RawArguments, ResourceBody, nearest};
use promptshelf_server::Library;
use promptshelf_service::Caller;
use promptshelf_source::Mark;
use serde_json::json;

use super::{
    consent::{self, Consent, Decision},
    import, own_library, private_files,
    sync::{
        marker::{self, Origin, Owner},
        names,
        report::grouped,
    },
};
use crate::{
    args::exchange::{ExportArguments, ExportTarget},
    connect::{Options, connect_library},
    exit::{Exit, Failure},
    output::{Output, count, file_json, note},
    source::Source,
    state::{self, digest_bytes},
};

pub(crate) async fn run(arguments: &ExportArguments) -> Result<(), Failure> {
    let folder = arguments.library.folder();
    let library = crate::library::open(folder)?;
    if let Some(target) = arguments.plugin {
        let [to] = arguments.names.as_slice() else {
            let message =
                "expected the folder to write to, such as `promptshelf export --plugin claude-code marketplace`";
            return Err(Failure::new(Exit::Usage, message));
        };
        let catalog = library.catalog();
        let made = plugin::plugin(target, &catalog, folder)?;
        let source = Source::Folder(folder.to_owned());
        let skills = made.skills.iter().map(|(path, body)| {
            (
                path.as_str(),
                match body {
                    ResourceBody::Text(text) => text.as_bytes(),
                    ResourceBody::Blob(blob) => blob.bytes(),
                },
            )
        });
        private_files::refuse(skills, &[])?;
        own_library::refuse(&source, Path::new(to), &made.prompts, &names::sample(made.format))?;
        if !made.skills.is_empty() {
            own_library::refuse_any(&source, Path::new(to), &made.prompts, "x/SKILL.md")?;
        }
        return Writer::new(arguments, Some(Path::new(to)), folder).write(made.files, &made.skills, &library);
    }
    if let Some(to) = &arguments.bundle.mcpb {
        bundle::write(to, &arguments.bundle, &library.catalog(), folder)?;
        return written(to, folder, &library);
    }
    if let Some(to) = &arguments.registry.server_json {
        let text = server_json::text(&arguments.registry, library.catalog().about(), folder)?;
        import::write(to, text.as_bytes())
            .map_err(|error| Failure::new(Exit::Failed, format!("{} {}", to.display(), reason(&error))))?;
        return written(to, folder, &library);
    }
    // clap requires one of both.
    let format = arguments.format.unwrap_or(ExportTarget::Messages);
    let values = arguments.values.read(io::stdin().lock())?;
    let catalog = library.catalog();
    let mut prompts: Vec<Arc<Prompt>> = Vec::new();
    for name in &arguments.names {
        let Some(prompt) = catalog.find(name) else {
            let near = nearest(name, catalog.prompts().iter().map(|prompt| prompt.name().as_str()));
            let failure = Failure::new(Exit::NotFound, format!("unknown prompt `{name}`"));
            return Err(match near {
                Some(near) => failure.help(format!("did you mean `{near}`?")),
                None => failure,
            });
        };
        prompts.push(Arc::clone(prompt));
    }
    if arguments.names.is_empty() {
        prompts = catalog.prompts().to_vec();
    }
    if arguments.to.is_none() && prompts.len() != 1 {
        let message = format!("{} cannot be written to stdout together", count(prompts.len(), "prompt"));
        return Err(Failure::new(Exit::Usage, message).help("name one prompt, or a folder with --to"));
    }
    let mut files = Vec::with_capacity(prompts.len());
    if let (Some(to), true) = (&arguments.to, format != ExportTarget::Messages) {
        let target = target_folder(export_format(format));
        own_library::refuse(&Source::Folder(folder.to_owned()), to, target, &names::sample(export_format(format)))?;
    }
    let mut has_failed = false;
    for prompt in &prompts {
        let name = prompt.name().as_str();
        if arguments.to.is_some()
            && let Err(reason) = check_name(name, format)
        {
            note(&[format!("left out {name}: {reason}")]);
            has_failed |= arguments.names.contains(&prompt.name().to_string());
            continue;
        }
        let raw_arguments = RawArguments::from(&values);
        let rendered = match format {
            ExportTarget::Messages => {
                let result = connect_library(&library, &Options::plain()).await?.get(name, &values).await;
                let result = match result {
                    Ok(result) => result.raw,
                    Err(error) => {
                        // The rejection of the service is more precise than its error in the protocol.
                        library.service().get(&Caller::local(), name, &raw_arguments).await?;
                        return Err(error.into());
                    }
                };
                let text = format!("{}\n", file_json(&json!({ "name": name, "messages": result["messages"] })));
                files.push(OutputFile::Whole { path: format!("{name}.json"), text });
                continue;
            }
            _ if values.is_empty() => None,
            _ => Some(library.service().get(&Caller::local(), name, &raw_arguments).await?.into_value().messages),
        };
        let mut incomplete = Vec::new();
        let rendered = rendered.map(|messages| body(&messages, &mut incomplete));
        let mut file = export(prompt, export_format(format), rendered);
        file.incomplete.append(&mut incomplete);
        files.push(OutputFile::Prompt { name: name.to_owned(), format: export_format(format), file });
    }
    let mut writer = Writer::new(arguments, arguments.to.as_deref(), folder);
    writer.failed = has_failed || files.is_empty();
    writer.write(files, &[], &library)
}

/// Returns why a prompt cannot have a file of a format.
fn check_name(name: &str, target: ExportTarget) -> Result<(), String> {
    match target {
        ExportTarget::Messages => names::plain_file(name, ".json"),
        target => names::file(name, export_format(target), native(export_format(target))),
    }
    .map(drop)
}

fn written(to: &Path, folder: &Path, library: &Library) -> Result<(), Failure> {
    crate::library::note_errors(library, folder);
    let mut stdout = Output::stdout();
    let shown = stdout.line(&to.display().to_string()).into_owned();
    writeln!(stdout.out, "{shown}")?;
    Ok(stdout.out.flush()?)
}

fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AlreadyExists => "already exists and was not changed".to_owned(),
        _ => format!("cannot be written: {error}"),
    }
}

fn export_format(target: ExportTarget) -> ExportFormat {
    match target {
        ExportTarget::Claude => ExportFormat::Claude,
        ExportTarget::Gemini => ExportFormat::Gemini,
        ExportTarget::Skill | ExportTarget::Messages => ExportFormat::Skill,
        ExportTarget::Vscode => ExportFormat::Vscode,
        ExportTarget::Cursor => ExportFormat::Cursor,
        ExportTarget::Opencode => ExportFormat::Opencode,
        ExportTarget::Windsurf => ExportFormat::Windsurf,
    }
}

/// Returns the folder below which files of a format are written; that of skills is the target itself.
fn target_folder(format: ExportFormat) -> &'static str {
    match format {
        ExportFormat::Skill => "",
        format => native(format).map_or("", |files| files.folder),
    }
}

/// Returns the client whose files have a format: of skills, which many clients read, the first one.
fn native(format: ExportFormat) -> Option<&'static NativeFiles> {
    NATIVE_FILES.iter().find(|files| files.format == format)
}

/// Converts rendered messages to the parts of a body. Blocks without text are reported.
fn body(messages: &[Message], incomplete: &mut Vec<String>) -> Vec<BodyPiece> {
    let mut body = Vec::new();
    for message in messages {
        body.push(BodyPiece::Role(message.role));
        match &message.content {
            ContentBlock::Text(text) => body.push(BodyPiece::Text(text.text.clone())),
            ContentBlock::Resource(resource) => match &resource.contents.body {
                ResourceBody::Text(text) => body.push(BodyPiece::Text(text.to_string())),
                ResourceBody::Blob(_) => incomplete.push("it has a file that is not text".to_owned()),
            },
            ContentBlock::Link(link) => body.push(BodyPiece::Text(link.uri.to_string())),
            other => incomplete.push(format!("it has content of the kind `{}`", other.kind())),
        }
    }
    body
}

enum OutputFile {
    Prompt { name: String, format: ExportFormat, file: Exported },
    Whole { path: String, text: String },
}

struct Writer<'a> {
    arguments: &'a ExportArguments,
    to: Option<&'a Path>,
    folder: &'a Path,
    origin: Origin,
    consent: Consent<'a>,
    losses: Vec<(String, Loss)>,
    failed: bool,
}

impl<'a> Writer<'a> {
    fn new(arguments: &'a ExportArguments, to: Option<&'a Path>, folder: &'a Path) -> Writer<'a> {
        let source = Source::Folder(folder.to_owned());
        let name = crate::library::name(folder);
        let origin = Origin::of(&source, to.unwrap_or(Path::new(".")), name.as_deref());
        let consent = Consent::new(&source, origin.as_str(), &arguments.allow_commands, true);
        Writer { arguments, to, folder, origin, consent, losses: Vec::new(), failed: false }
    }

    fn write(
        mut self,
        files: Vec<OutputFile>,
        others: &[(String, ResourceBody)],
        library: &Library,
    ) -> Result<(), Failure> {
        let files: Vec<(String, String)> = files.into_iter().filter_map(|file| self.text(file)).collect();
        let refused = self.refused_skills(others);
        let is_accepted =
            |(path, _): &&(String, ResourceBody)| skill_of(path).is_none_or(|(name, _)| !refused.contains(name));
        let others: Vec<&(String, ResourceBody)> = others.iter().filter(is_accepted).collect();
        let mut stderr = Output::stderr();
        for line in grouped(&self.losses) {
            let line = stderr.line(&line).into_owned();
            writeln!(stderr.out, "note: {line}")?;
        }
        crate::library::note_errors(library, self.folder);
        let mut stdout = Output::stdout();
        let Some(to) = self.to else {
            for (_, text) in &files {
                let text = stdout.text(text).into_owned();
                stdout.out.write_all(text.as_bytes())?;
            }
            stdout.out.flush()?;
            return if self.failed { Err(Failure::reported(Exit::Failed)) } else { Ok(()) };
        };
        let texts = files.iter().map(|(path, text)| (path, text.as_bytes()));
        let bodies = others.iter().map(|(path, body)| match body {
            ResourceBody::Text(text) => (path, text.as_bytes()),
            ResourceBody::Blob(blob) => (path, blob.bytes()),
        });
        if !files.is_empty() || !others.is_empty() {
            self.origin.claim(&Source::Folder(self.folder.to_owned()))?;
        }
        let (mut record, mut unchanged) = (read_record(to), 0);
        let mut lower: BTreeSet<String> = BTreeSet::new();
        for (relative, bytes) in texts.chain(bodies) {
            // Also where the file system distinguishes case: the folder may be copied to one that does not.
            if !lower.insert(relative.to_lowercase()) {
                self.failed = true;
                note(&[format!(
                    "left out {relative}: another prompt has this file name, or one that differs in case only"
                )]);
                continue;
            }
            let path = to.join(relative);
            let shown = stdout.line(&path.display().to_string()).into_owned();
            let written = match import::write(&path, bytes) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    refreshed(&path, relative, bytes, &self.origin, &record)
                }
                Err(error) => Err(reason(&error)),
                Ok(()) => Ok(true),
            };
            match written {
                Ok(is_new) => {
                    record.insert(relative.clone(), digest_bytes(bytes));
                    if is_new {
                        writeln!(stdout.out, "{shown}")?;
                    } else {
                        unchanged += 1;
                    }
                }
                Err(reason) => {
                    self.failed = true;
                    writeln!(stderr.out, "warning: {shown} {reason}")?;
                }
            }
        }
        if unchanged > 0 {
            writeln!(stderr.out, "{} unchanged", count(unchanged, "file"))?;
        }
        write_record(to, &record);
        stdout.out.flush()?;
        if self.failed { Err(Failure::reported(Exit::Failed)) } else { Ok(()) }
    }

    /// Returns the path and the text of a file; `None` if it is not written.
    fn text(&mut self, file: OutputFile) -> Option<(String, String)> {
        let (name, format, file) = match file {
            OutputFile::Whole { path, text } => return Some((path, text)),
            OutputFile::Prompt { name, format, file } => (name, format, file),
        };
        let mut incomplete = file.incomplete;
        let is_there = |path: &str| self.to.unwrap_or(Path::new(".")).join(path).exists();
        let images = file.attached.iter().filter(|path| !is_text(path) && !is_there(path));
        incomplete.extend(images.map(|path| format!("it has the file {path}, which is not in the project")));
        if !incomplete.is_empty() && !self.arguments.allow_incomplete {
            let reason = incomplete.join(", and ");
            let line = format!("left out {name}: {reason}; `--allow-incomplete` writes the rest");
            note(&[line]);
            self.failed |= self.arguments.names.contains(&name);
            return None;
        }
        self.losses.extend(incomplete.into_iter().map(|what| (name.clone(), Loss::new("parts are missing", what))));
        let mut active = file.active;
        active.retain(|part| part.kind != ActiveKind::Mention || is_there(part.text.trim_start_matches('@')));
        if !self.agreed(&name, &active, &file.text) {
            return None;
        }
        self.losses.extend(file.losses.into_iter().map(|loss| (name.clone(), loss)));
        let text = match self.to {
            Some(_) => marker::signed(&file.text, format, false, &self.origin, &file.path),
            None => file.text,
        };
        Some((file.path, text))
    }

    /// Returns whether text with these parts may be written; reports it otherwise, or with a warning.
    fn agreed(&mut self, name: &str, parts: &[ActivePart], content: &str) -> bool {
        match self.consent.decide(name, parts, content) {
            Decision::Write => true,
            Decision::WriteWithWarning => {
                let what = "text that is more than text to the program: it runs, reads or permits something";
                self.losses.extend(parts.iter().map(|part| (name.to_owned(), Loss::new(what, part.to_string()))));
                true
            }
            Decision::Refuse => {
                let parts = consent::shown(parts);
                note(&[format!(
                    "refused {name}: it is more than text to the program ({parts}); `--allow-commands {name}` writes it"
                )]);
                self.failed = true;
                false
            }
        }
    }

    /// Returns the names of the skills that are not written. The files of a skill belong together: a permission is for its
    /// scripts.
    fn refused_skills(&mut self, files: &[(String, ResourceBody)]) -> BTreeSet<String> {
        let mut skills: BTreeMap<&str, (Vec<ActivePart>, String)> = BTreeMap::new();
        for (path, body) in files {
            let Some((name, file)) = skill_of(path) else { continue };
            let (parts, agreed) = skills.entry(name).or_default();
            let bytes = match body {
                ResourceBody::Text(text) => text.as_bytes(),
                ResourceBody::Blob(blob) => blob.bytes(),
            };
            agreed.push_str(&format!("{file}\0{}\0", digest_bytes(bytes)));
            parts.extend(active_parts_of_skill(file, &String::from_utf8_lossy(bytes)));
        }
        let mut refused = BTreeSet::new();
        for (name, (mut parts, agreed)) in skills {
            parts.retain(|part| part.kind != ActiveKind::Mention);
            if !self.agreed(name, &parts, &agreed) {
                refused.insert(name.to_owned());
            }
        }
        refused
    }
}

/// Returns the name of the skill whose file is at a path of a plugin, and the path in the skill.
fn skill_of(path: &str) -> Option<(&str, &str)> {
    path.split_once("/skills/")?.1.split_once('/')
}

/// Replaces an existing file that an earlier export wrote and nobody edited; returns whether it has changed.
fn refreshed(
    path: &Path,
    relative: &str,
    bytes: &[u8],
    origin: &Origin,
    record: &BTreeMap<String, String>,
) -> Result<bool, String> {
    let is_file = fs::symlink_metadata(path).is_ok_and(|found| found.is_file());
    let present = fs::read(path).ok().filter(|_| is_file).ok_or("already exists and was not changed")?;
    if present == bytes {
        return Ok(false);
    }
    let text = std::str::from_utf8(&present).ok();
    let marked = text.and_then(|text| Some((Mark::find(text)?, text)));
    match marked {
        Some((mark, _)) if mark.is_synced => return Err("was written by `sync`, and was not changed".to_owned()),
        Some((mark, _)) if mark.path.as_deref().is_some_and(|written| written != relative) => {
            return Err("is a copy of another exported file, and was not changed".to_owned());
        }
        Some((mark, _)) if origin.owner(&mark.origin, mark.path.is_none()) == Owner::Other => {
            return Err(format!("comes from {}, and was not changed", mark.origin));
        }
        Some((mark, text)) if marker::is_edited(text, &mark) => {
            return Err("was edited, and was not changed; remove it to write it again".to_owned());
        }
        Some(_) => {}
        // Files that cannot have a mark are known on this machine.
        None if record.get(relative) == Some(&digest_bytes(&present)) => {}
        None => return Err("already exists and was not changed".to_owned()),
    }
    let replace = || {
        let mut new = tempfile::NamedTempFile::new_in(path.parent().unwrap_or(Path::new(".")))?;
        new.write_all(bytes)?;
        new.as_file().set_permissions(fs::metadata(path)?.permissions())?;
        new.persist(path)?;
        Ok(())
    };
    replace().map_err(|error: io::Error| reason(&error))?;
    Ok(true)
}

/// Returns the file with the digests of what was exported to a folder.
fn record_file(to: &Path) -> Option<PathBuf> {
    let to = fs::canonicalize(to).ok()?;
    let name = state::digest(&to.display().to_string());
    state::folder().map(|folder| folder.join("export").join(format!("{}.json", &name[..32])))
}

fn read_record(to: &Path) -> BTreeMap<String, String> {
    let text = record_file(to).and_then(|file| fs::read_to_string(file).ok());
    text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
}

/// Without a record, a later export refuses files that have no mark.
fn write_record(to: &Path, record: &BTreeMap<String, String>) {
    if let (Some(file), false) = (record_file(to), record.is_empty()) {
        state::write(&file, &json!(record).to_string()).ok();
    }
}

fn is_text(path: &str) -> bool {
    const MEDIA: &[&str] =
        &["png", "jpg", "jpeg", "gif", "webp", "svg", "bmp", "avif", "mp3", "wav", "ogg", "flac", "m4a", "pdf"];
    let ending = path.rsplit_once('.').map_or("", |(_, ending)| ending);
    !MEDIA.iter().any(|media| media.eq_ignore_ascii_case(ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    // req: S-244
    #[test]
    fn names_that_a_program_has_itself_are_refused_in_every_format() {
        let own = [
            (ExportTarget::Claude, "clear"),
            (ExportTarget::Claude, "Help"),
            (ExportTarget::Opencode, "undo"),
            (ExportTarget::Gemini, "memory"),
            (ExportTarget::Vscode, "explain"),
            (ExportTarget::Vscode, "newnotebook"),
            (ExportTarget::Cursor, "rules"),
            (ExportTarget::Skill, "skill_creator"),
            (ExportTarget::Claude, "CLAUDE"),
            (ExportTarget::Windsurf, "agents"),
            (ExportTarget::Cursor, "\u{ff21}gents"),
            (ExportTarget::Messages, "mcp"),
            (ExportTarget::Messages, "Hooks"),
        ];
        for (target, name) in own {
            assert!(check_name(name, target).is_err(), "{target:?} {name}");
        }
        let all = [
            ExportTarget::Messages,
            ExportTarget::Claude,
            ExportTarget::Gemini,
            ExportTarget::Skill,
            ExportTarget::Vscode,
            ExportTarget::Cursor,
            ExportTarget::Opencode,
            ExportTarget::Windsurf,
        ];
        for target in all {
            assert_eq!(check_name("team-notes", target), Ok(()), "{target:?}");
            for name in ["-rf", "con", "a/b", "..", ""] {
                assert!(check_name(name, target).is_err(), "{target:?} {name:?}");
            }
        }
    }

    /// What one command refuses, the other one refuses, too.
    // req: S-244
    #[test]
    fn export_and_sync_have_one_rule() {
        for native in NATIVE_FILES {
            for name in ["help", "init", "plan", "agents", "claude", "hooks", "aux", "-x", "a b", "Code_Review", "x.y"]
            {
                let synced = names::path(name, native);
                let exported = names::file(name, native.format, self::native(native.format));
                // Clients of the same format differ in their own commands alone.
                if self::native(native.format).is_some_and(|first| first.client == native.client) {
                    let exported = exported.map(|file| format!("{}/{file}", native.folder));
                    assert_eq!(synced, exported, "{} {name}", native.client);
                }
            }
        }
    }
}

//! `promptshelf export`: converts prompts of a library to files of other programs, and makes plugins, bundles and entries
//! of registries.

mod bundle;
mod earlier;
mod plugin;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::{Args, ValueEnum};
use plugin::{SkillFile, description, name};
use promptshelf_author::{
    ActiveKind, ActivePart, ExportFormat, Exported, Loss, active_parts_of_skill,
    clients::{NATIVE_FILES, NativeFiles},
    export,
};
use promptshelf_core::{
    About, BodyPiece, Catalog, ContentBlock, Message, Prompt, RawArguments, ResourceBody, Skill, nearest,
};
use promptshelf_server::Library;
use promptshelf_service::Caller;
use promptshelf_source::{EditError, EditableFolder};
use serde_json::{Value, json};

use self::{
    bundle::BundleArguments,
    earlier::{FileState, Record, Target, Withdrawn, read_record, state_of, write_record},
    plugin::PluginTarget,
};
use super::{
    consent::{self, Consent, Decision},
    import, own_library, private_files,
    sync::{
        grouped,
        marker::{self, Origin},
        names,
    },
};
use crate::{
    args::{LibraryOption, Words, words::PromptsAndValues},
    connect::{Options, connect_library},
    exit::{Exit, Failure},
    output::{Output, count, file_json, list_json, note, pretty_json},
    source::{Source, is_url},
    state::digest_bytes,
    whole_file,
};

const EXPORT_EXAMPLES: &str = "\
Other programs have no templates: losses are reported on stderr, with their
lines. With values for its arguments, a prompt is rendered first and its
messages are exported. Existing files of others and edited ones stay; an export
of all prompts removes its files of those that are no longer in the library.

Examples:
  promptshelf export code_review --format claude
  promptshelf export prompts --format skill --to skills
  promptshelf export code_review --format messages code=@src/main.rs
  promptshelf export prompts --plugin claude-code --to marketplace
  promptshelf export prompts --mcpb team-prompts.mcpb
  promptshelf export prompts --server-json server.json \\
    --server-name io.github.ada/team-prompts --remote https://example.com/mcp";

#[derive(Debug, Args)]
#[command(after_help = EXPORT_EXAMPLES)]
pub(crate) struct ExportArguments {
    #[command(flatten)]
    pub(crate) words: Words<LibraryOption, PromptsAndValues>,

    /// The format to write
    #[arg(long, value_name = "FORMAT", required_unless_present_any = ["plugin", "mcpb", "server_json"])]
    pub(crate) format: Option<ExportTarget>,

    /// Write a repository from which this program installs all prompts as a plugin
    #[arg(long, value_name = "PROGRAM", requires = "to", conflicts_with_all = ["format", "names", "values", "literal"])]
    pub(crate) plugin: Option<PluginTarget>,

    #[command(flatten)]
    pub(crate) bundle: BundleArguments,

    #[command(flatten)]
    pub(crate) registry: RegistryArguments,

    /// The folder to write to [default: stdout, for a single prompt]
    #[arg(long, value_name = "DIR")]
    pub(crate) to: Option<PathBuf>,

    /// Write this prompt or skill although the client would run, read or permit something in its text; repeatable
    #[arg(long, value_name = "NAME")]
    pub(crate) allow_commands: Vec<String>,

    /// Write prompts without the parts that the format cannot have, such as images and questions
    #[arg(long)]
    pub(crate) allow_incomplete: bool,

    /// Print JSON
    #[arg(long, requires = "to")]
    pub(crate) json: bool,
}

/// An entry of an MCP registry.
#[derive(Debug, Args)]
pub(crate) struct RegistryArguments {
    /// Write the library's entry for an MCP registry to this file (server.json)
    #[arg(
        long,
        value_name = "FILE",
        requires = "server_name",
        conflicts_with_all = ["names", "format", "plugin", "to", "values", "literal"]
    )]
    pub(crate) server_json: Option<PathBuf>,

    /// The name in the registry, such as io.github.ada/team-prompts
    #[arg(long, value_name = "NAME", requires = "server_json")]
    pub(crate) server_name: Option<String>,

    /// The URL of a server with the library, in place of the packages of promptshelf (npm, PyPI, image); repeatable
    #[arg(long, value_name = "URL", requires = "server_json")]
    pub(crate) remote: Vec<String>,

    /// A bundle of --mcpb, and the URL from which it is downloaded; repeatable
    #[arg(long, num_args = 2, value_names = ["FILE", "URL"], requires = "server_json")]
    pub(crate) bundle: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportTarget {
    /// Commands of Claude Code (.claude/commands/NAME.md)
    Claude,
    /// Commands of Gemini CLI (.gemini/commands/NAME.toml)
    Gemini,
    /// Agent Skills (NAME/SKILL.md)
    Skill,
    /// Prompt files of VS Code (.github/prompts/NAME.prompt.md)
    Vscode,
    /// Commands of Cursor (.cursor/commands/NAME.md)
    Cursor,
    /// Commands of OpenCode (.opencode/commands/NAME.md)
    Opencode,
    /// Workflows of Windsurf (.windsurf/workflows/NAME.md)
    Windsurf,
    /// The rendered messages as JSON (NAME.json)
    Messages,
}

pub(crate) async fn run(arguments: &ExportArguments) -> Result<(), Failure> {
    let folder = arguments.words.library.folder();
    let library = crate::library::open(folder)?;
    if let Some(target) = arguments.plugin {
        // clap requires it.
        let to = arguments.to.as_deref().unwrap_or(folder);
        let catalog = library.catalog();
        let made = plugin::plugin(target, &catalog, folder)?;
        let source = Source::Folder(folder.to_owned());
        private_files::refuse(made.skills.iter().map(|file| (file.path.as_str(), file.bytes())), &[])?;
        if target == PluginTarget::GeminiCli {
            own_library::refuse_top(&source, to)?;
        }
        own_library::refuse(&source, to, &made.target.prompts, &names::sample(made.target.format))?;
        if !made.skills.is_empty() {
            own_library::refuse_any(&source, to, &made.target.prompts, "x/SKILL.md")?;
        }
        let mut writer = Writer::new(arguments, Some(to), folder);
        writer.target = Some(made.target);
        return writer.write(made.files, &made.skills, &library);
    }
    if let Some(to) = &arguments.bundle.mcpb {
        bundle::write(to, &arguments.bundle, &library.catalog(), folder)?;
        return written(to, folder, &library);
    }
    if let Some(to) = &arguments.registry.server_json {
        let text = text_server_json(&arguments.registry, library.catalog().about(), folder)?;
        to.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| whole_file::create(to, text.as_bytes())).map_err(
            |error| Failure::new(Exit::Failed, format!("{} {}", to.display(), import::reason(&error.into()))),
        )?;
        return written(to, folder, &library);
    }
    // clap requires one of both.
    let format = arguments.format.unwrap_or(ExportTarget::Messages);
    let values = arguments.words.values.read(io::stdin().lock())?;
    let catalog = library.catalog();
    let mut prompts: Vec<Arc<Prompt>> = Vec::new();
    for name in &arguments.words.names {
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
    if arguments.words.names.is_empty() {
        prompts = catalog.prompts().to_vec();
    }
    if arguments.to.is_none() && prompts.len() != 1 {
        let message = format!("{} cannot be written to stdout together", count(prompts.len(), "prompt"));
        return Err(Failure::new(Exit::Usage, message).help("name one prompt, or a folder with --to"));
    }
    arguments.words.values.check_names_of(&prompts)?;
    let mut files = Vec::with_capacity(prompts.len());
    if let (Some(to), true) = (&arguments.to, format != ExportTarget::Messages) {
        let target = target_folder(export_format(format));
        own_library::refuse(&Source::Folder(folder.to_owned()), to, target, &names::sample(export_format(format)))?;
    }
    let mut has_failed = false;
    for prompt in &prompts {
        let name = prompt.name().as_str();
        if format != ExportTarget::Messages {
            note_other_files(&catalog, prompt);
        }
        if arguments.to.is_some()
            && let Err(reason) = check_name(name, format)
        {
            note(&[format!("left out {name}: {reason}")]);
            has_failed |= arguments.words.names.contains(&prompt.name().to_string());
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
    if arguments.words.names.is_empty() && format != ExportTarget::Messages {
        let format = export_format(format);
        writer.target = Some(Target { format, prompts: target_folder(format).to_owned(), skills: None });
    }
    writer.write(files, &[], &library)
}

/// Names the files of a skill that are not written with its text.
fn note_other_files(catalog: &Catalog, prompt: &Prompt) {
    let path = &*prompt.source().path;
    let Some(folder) = path.strip_suffix("SKILL.md") else { return };
    let is_of_prompt = |skill: &&Arc<Skill>| skill.files().any(|file| file.file().path == path);
    let Some(skill) = catalog.skills().after(None).find(is_of_prompt) else { return };
    let others = skill.files().map(|file| &file.file().path).filter(|other| **other != path);
    let others: Vec<&str> = others.map(|other| other.strip_prefix(folder).unwrap_or(other)).collect();
    if !others.is_empty() {
        note(&[format!(
            "left out the other {} of the skill {} ({}): `export` writes its text; `sync` and `export --plugin` write all",
            if others.len() == 1 { "file" } else { "files" },
            prompt.name(),
            others.join(", ")
        )]);
    }
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

impl OutputFile {
    fn path(&self) -> &str {
        match self {
            OutputFile::Prompt { file, .. } => &file.path,
            OutputFile::Whole { path, .. } => path,
        }
    }
}

struct Writer<'a> {
    arguments: &'a ExportArguments,
    to: Option<&'a Path>,
    folder: &'a Path,
    origin: Origin,
    consent: Consent<'a>,
    losses: Vec<(String, Loss)>,
    failed: bool,
    /// If all prompts and skills of the library are written.
    target: Option<Target>,
}

impl<'a> Writer<'a> {
    fn new(arguments: &'a ExportArguments, to: Option<&'a Path>, folder: &'a Path) -> Writer<'a> {
        let source = Source::Folder(folder.to_owned());
        let name = crate::library::name(folder);
        let origin = Origin::of(&source, to.unwrap_or(Path::new(".")), name.as_deref());
        let consent = Consent::new(&source, origin.as_str(), &arguments.allow_commands, true);
        Writer { arguments, to, folder, origin, consent, losses: Vec::new(), failed: false, target: None }
    }

    fn write(mut self, files: Vec<OutputFile>, others: &[SkillFile], library: &Library) -> Result<(), Failure> {
        let wanted: BTreeSet<String> = files
            .iter()
            .map(OutputFile::path)
            .chain(others.iter().map(|file| &*file.path))
            .map(str::to_owned)
            .collect();
        let files: Vec<(String, String)> = files.into_iter().filter_map(|file| self.text(file)).collect();
        let refused = self.refused_skills(others);
        let is_accepted = |file: &&SkillFile| skill_of(&file.path).is_none_or(|(name, _)| !refused.contains(name));
        let others: Vec<&SkillFile> = others.iter().filter(is_accepted).collect();
        note(&grouped(&self.losses));
        let mut stderr = Output::stderr();
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
        let texts = files.iter().map(|(path, text)| (path, text.as_bytes(), false));
        let bodies = others.iter().map(|file| (&file.path, file.bytes(), file.is_executable));
        if !files.is_empty() || !others.is_empty() {
            self.origin.claim(&Source::Folder(self.folder.to_owned()))?;
        }
        let (mut record, mut unchanged, mut items) = (read_record(to), 0, Vec::new());
        let mut lower: BTreeSet<String> = BTreeSet::new();
        for (relative, bytes, is_executable) in texts.chain(bodies) {
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
            let written = match import::write(to, relative, bytes, is_executable) {
                Err(EditError::Exists) => refreshed(to, relative, (bytes, is_executable), &self.origin, &record),
                Err(error) => Err(import::reason(&error)),
                Ok(()) => Ok(true),
            };
            match written {
                Ok(is_new) => {
                    record.insert(relative.clone(), digest_bytes(bytes));
                    if is_new && self.arguments.json {
                        items.push(json!({ "path": path }));
                    } else if is_new {
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
        let target = self.target.take();
        let withdrawn = target.map(|it| it.remove_withdrawn(to, &wanted, library, (&self.origin, &mut record)));
        let Withdrawn { removed, kept } = withdrawn.unwrap_or_default();
        self.failed |= !kept.is_empty();
        let shown = |path: &str| to.join(path).display().to_string();
        for (path, reason) in &kept {
            note(&[format!("kept {}: {reason}", shown(path))]);
        }
        for path in &removed {
            note(&[format!("removed {}: its prompt is no longer in the library", shown(path))]);
        }
        write_record(to, &record);
        if self.arguments.json {
            let mut list = list_json(items.into_iter());
            list["removed"] = removed.iter().map(|path| json!({ "path": to.join(path) })).collect();
            writeln!(stdout.out, "{}", pretty_json(&list))?;
        }
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
            self.failed |= self.arguments.words.names.contains(&name);
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
    fn refused_skills(&mut self, files: &[SkillFile]) -> BTreeSet<String> {
        let mut skills: BTreeMap<&str, (Vec<ActivePart>, String)> = BTreeMap::new();
        for written in files {
            let Some((name, file)) = skill_of(&written.path) else { continue };
            let (parts, agreed) = skills.entry(name).or_default();
            let bytes = written.bytes();
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
    to: &Path,
    relative: &str,
    (bytes, is_executable): (&[u8], bool),
    origin: &Origin,
    record: &Record,
) -> Result<bool, String> {
    let folder = EditableFolder::local(to).map_err(|error| import::reason(&error.into()))?;
    let is_same = folder.read(relative).is_ok_and(|present| present == bytes);
    if !is_same {
        let present = match state_of(&folder, relative, origin, record) {
            FileState::Own(present) => present,
            FileState::Edited => return Err("was edited, and was not changed; remove it to write it again".to_owned()),
            FileState::Foreign(reason) => return Err(reason),
            FileState::Gone => return Err(import::reason(&EditError::NotFound)),
        };
        folder.replace(relative, bytes, |now| now == present).map_err(|error| import::reason(&error))?;
    }
    if is_executable {
        folder.set_executable(relative).map_err(|error| import::reason(&error))?;
    }
    Ok(!is_same)
}

fn is_text(path: &str) -> bool {
    const MEDIA: &[&str] =
        &["png", "jpg", "jpeg", "gif", "webp", "svg", "bmp", "avif", "mp3", "wav", "ogg", "flac", "m4a", "pdf"];
    let ending = path.rsplit_once('.').map_or("", |(_, ending)| ending);
    !MEDIA.iter().any(|media| media.eq_ignore_ascii_case(ending))
}

// `promptshelf export --server-json`: the entry of a library in an MCP registry.
// Format: `server.json`, schema 2025-12-11 (modelcontextprotocol/registry, docs/reference/server-json, read 2026-11), with
// the further rules of the official registry for packages.

const SCHEMA: &str = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json";

const MAX_TEXT: usize = 100;

const MAX_NAME: usize = 200;

const MAX_ICON: usize = 255;

/// The largest bundle, in bytes.
const MAX_BUNDLE_BYTES: u64 = 1 << 30;

fn text_server_json(arguments: &RegistryArguments, about: &About, folder: &Path) -> Result<String, Failure> {
    let usage = |message: String| Failure::new(Exit::Usage, message);
    let registered = arguments.server_name.as_deref().unwrap_or_default();
    if !is_registered_name(registered) {
        let message = format!("`{registered}` is not a name in a registry");
        return Err(usage(message).help("expected a reversed domain and a name, such as io.github.ada/team-prompts"));
    }
    let Some(version) = about.version.as_deref().filter(|version| is_version(version)) else {
        let message = "the library has no version such as 1.0.0, and each entry of a registry needs a new one";
        return Err(Failure::new(Exit::Library, message).help("set `version` in [server] of promptshelf.toml"));
    };
    let described = description(about, &name(about, folder));
    let mut entry = json!({
        "$schema": SCHEMA,
        "name": registered,
        "description": shortened(&described, "description"),
        "version": version,
    });
    if let Some(title) = &about.title {
        entry["title"] = json!(shortened(title, "title"));
    }
    if let Some(url) = &about.website_url {
        entry["websiteUrl"] = json!(url);
    }
    let icons: Vec<Value> = about.icons.iter().filter_map(icon).collect();
    if !icons.is_empty() {
        entry["icons"] = json!(icons);
    }
    let mut packages = if arguments.remote.is_empty() { programs() } else { Vec::new() };
    let bundles: Vec<Value> = arguments
        .bundle
        .chunks_exact(2)
        .map(|pair| package(Path::new(&pair[0]), &pair[1], version))
        .collect::<Result<_, Failure>>()?;
    packages.extend(bundles);
    if !packages.is_empty() {
        entry["packages"] = json!(packages);
    }
    let remotes: Vec<Value> = arguments
        .remote
        .iter()
        .map(|url| Ok(json!({ "type": "streamable-http", "url": public_url(url)? })))
        .collect::<Result<_, Failure>>()?;
    if !remotes.is_empty() {
        entry["remotes"] = json!(remotes);
    }
    Ok(format!("{}\n", file_json(&entry)))
}

/// Returns the packages of this program, which serve the folder of the library on the user's machine.
fn programs() -> Vec<Value> {
    const VERSION: &str = env!("CARGO_PKG_VERSION");
    let folder = json!({ "description": "The folder of the library", "format": "filepath", "isRequired": true });
    let mut library = folder.clone();
    library["type"] = json!("positional");
    library["valueHint"] = json!("library");
    let words = [json!({ "type": "positional", "value": "serve" }), json!({ "type": "named", "name": "--stdio" })];
    let program = |registry: &str, identifier: &str, runner: &str, library: &Value| {
        json!({
            "registryType": registry,
            "identifier": identifier,
            "version": VERSION,
            "runtimeHint": runner,
            "packageArguments": [&words[0], &words[1], library],
            "transport": { "type": "stdio" },
        })
    };
    let image = format!("ghcr.io/promptshelf/promptshelf:{VERSION}");
    let mut container = program("oci", &image, "docker", &json!({ "type": "positional", "value": "/prompts" }));
    // The tag is the version.
    container.as_object_mut().map(|container| container.shift_remove("version"));
    container["runtimeArguments"] = json!([{
        "type": "named", "name": "--volume", "value": "{library}:/prompts:ro", "isRequired": true,
        "variables": { "library": folder },
    }]);
    vec![program("npm", "promptshelf", "npx", &library), program("pypi", "promptshelf", "uvx", &library), container]
}

fn package(file: &Path, url: &str, version: &str) -> Result<Value, Failure> {
    let failure = |reason: String| Failure::new(Exit::Failed, format!("the bundle {}: {reason}", file.display()));
    let size = std::fs::metadata(file).map_err(|error| failure(error.to_string()))?.len();
    if size > MAX_BUNDLE_BYTES {
        return Err(failure(format!("it has {size} bytes; at most {MAX_BUNDLE_BYTES} are expected")));
    }
    let bytes = std::fs::read(file).map_err(|error| failure(error.to_string()))?;
    if !bytes.starts_with(b"PK") {
        return Err(failure("it is not a zip archive, as `export --mcpb` writes".to_owned()));
    }
    let url = public_url(url)?;
    // The official registry requires it, and accepts releases of these two hosts only.
    if !url.contains("mcp") {
        let message = format!("the URL {url} does not contain `mcp`, which the official registry requires");
        return Err(Failure::new(Exit::Usage, message).help("name the file `….mcpb`"));
    }
    Ok(json!({
        "registryType": "mcpb",
        "identifier": url,
        "version": version,
        "fileSha256": digest_bytes(&bytes),
        "transport": { "type": "stdio" },
    }))
}

fn public_url(url: &str) -> Result<&str, Failure> {
    let usage = |message: String| Err(Failure::new(Exit::Usage, message));
    let Some(rest) = url.strip_prefix("https://").filter(|_| is_url(url)) else {
        return usage("expected a public URL such as https://example.com/mcp".to_owned());
    };
    if url.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return usage("the URL contains a space or a control character".to_owned());
    }
    let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    if authority.contains('@') {
        return usage("the URL contains a name or password, which the entry would publish".to_owned());
    }
    match authority.is_empty() {
        true => usage("expected a URL with a host, such as https://example.com/mcp".to_owned()),
        false => Ok(url),
    }
}

/// Returns whether a name has the form of the schema: a namespace, a slash, and a name.
fn is_registered_name(name: &str) -> bool {
    let is_word = |text: &str, more: &[char]| {
        !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || more.contains(&c))
    };
    let Some((namespace, name_part)) = name.split_once('/') else { return false };
    name.len() <= MAX_NAME
        && namespace.contains('.')
        && namespace.split('.').all(|label| is_word(label, &['-']))
        && is_word(name_part, &['.', '_', '-'])
}

/// Returns whether a version is one exact version. Registries refuse ranges, and names such as `latest`.
fn is_version(version: &str) -> bool {
    let mut parts = version.split(['-', '+']).next().unwrap_or_default().split('.');
    version.len() <= MAX_ICON
        && parts.clone().count() >= 2
        && parts.all(|part| !part.is_empty() && part.bytes().all(|c| c.is_ascii_digit()))
        && version.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+'))
}

/// Returns an icon of the entry; `None` for one that is not a URL, which registries refuse.
fn icon(icon: &promptshelf_core::Icon) -> Option<Value> {
    if !icon.src.starts_with("https://") || icon.src.chars().count() > MAX_ICON {
        return None;
    }
    let mut entry = json!({ "src": &*icon.src });
    if let Some(mime_type) = &icon.mime_type {
        entry["mimeType"] = json!(mime_type.as_str());
    }
    if !icon.sizes.is_empty() {
        entry["sizes"] = json!(icon.sizes);
    }
    Some(entry)
}

fn shortened(text: &str, what: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= MAX_TEXT {
        return line;
    }
    note(&[format!("the {what} was shortened to {MAX_TEXT} characters, which registries accept")]);
    let start: String = line.chars().take(MAX_TEXT - 1).collect();
    let words = start.rsplit_once(' ').map_or(start.as_str(), |(words, _)| words);
    format!("{words}…")
}

#[cfg(test)]
mod server_json_tests {
    use super::*;

    #[test]
    fn names_and_versions_have_the_form_of_the_schema() {
        for name in ["io.github.ada/prompts", "com.example/a_b.c-d"] {
            assert!(is_registered_name(name), "{name}");
        }
        let long = format!("io.github.ada/{}", "x".repeat(200));
        for name in ["", "prompts", "ada/prompts", "io.github.ada/", "/x", "a.b/c/d", "a..b/c", "a.b/c d", &long] {
            assert!(!is_registered_name(name), "{name}");
        }
        for version in ["1.0.0", "1.0", "2.1.0-alpha", "1.0.0+build"] {
            assert!(is_version(version), "{version}");
        }
        for version in ["", "latest", "1", "^1.0.0", "1.x", "1.*", ">=1.0.0", "v1.0.0", "1.0.0 ", "1..0"] {
            assert!(!is_version(version), "{version}");
        }
    }

    // req: S-216
    #[test]
    fn published_urls_have_no_credentials() {
        assert!(public_url("https://example.com/mcp").is_ok());
        for url in [
            "http://example.com/mcp",
            "https://ada:secret@example.com/mcp",
            "https:///mcp",
            "https://example.com/a b",
            "file:///etc/passwd",
            "",
        ] {
            let failure = public_url(url).expect_err(url);
            assert!(!failure.message.contains("secret"), "{}", failure.message);
        }
    }

    #[test]
    fn long_texts_end_with_a_word() {
        let text = shortened(&"words and ".repeat(20), "title");
        assert!(text.ends_with("words…") || text.ends_with("and…"), "{text}");
        assert!(text.chars().count() <= MAX_TEXT);
    }
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

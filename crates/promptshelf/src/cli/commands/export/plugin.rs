//! `promptshelf export --plugin`: a repository from which a program installs the prompts and skills of a library.

use std::path::Path;

use clap::ValueEnum;
use promptshelf_author::{ExportFormat, Exported, export};
use promptshelf_core::{About, Catalog, ResourceBody, Skill};
use serde_json::{Value, json};

use super::{OutputFile, earlier::Target};
use crate::{
    commands::{import::is_executable, sync::names},
    exit::{Exit, Failure},
    output::file_json,
};

/// A program whose plugin `export --plugin` makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PluginTarget {
    /// A marketplace with one plugin for Claude Code
    ClaudeCode,
    /// An extension of Gemini CLI
    GeminiCli,
    /// A marketplace with one plugin for Codex
    Codex,
    /// A marketplace with one plugin for Cursor
    Cursor,
}

/// The name of the plugin if the library has none.
const DEFAULT_NAME: &str = "prompts";

/// The version if the library has none.
pub(super) const DEFAULT_VERSION: &str = "1.0.0";

const SKILL: &str = "SKILL.md";

pub(super) struct Plugin {
    pub(super) files: Vec<OutputFile>,
    pub(super) skills: Vec<SkillFile>,
    pub(super) target: Target,
}

pub(super) struct SkillFile {
    pub(super) path: String,
    body: ResourceBody,
    pub(super) is_executable: bool,
}

impl SkillFile {
    pub(super) fn bytes(&self) -> &[u8] {
        match &self.body {
            ResourceBody::Text(text) => text.as_bytes(),
            ResourceBody::Blob(blob) => blob.bytes(),
        }
    }
}

struct Layout {
    target: Target,
    manifests: Vec<(String, Value)>,
}

pub(super) fn plugin(target: PluginTarget, catalog: &Catalog, folder: &Path) -> Result<Plugin, Failure> {
    let layout = layout(target, catalog.about(), folder);
    let manifests = layout.manifests.iter();
    let mut files: Vec<OutputFile> = manifests.map(|(path, value)| manifest(path.clone(), value)).collect();
    let mut skills = Vec::new();
    let mut names = Vec::new();
    if let Some(to) = &layout.target.skills {
        for skill in catalog.skills().after(None) {
            let Some(files) = skill_files(skill, folder, &format!("{to}/{}", skill.name())) else { continue };
            names.push(skill.name());
            skills.extend(files);
        }
    }
    for prompt in catalog.prompts().iter() {
        let name = prompt.name().as_str();
        // The commands of plugins have the name of the plugin in front of theirs, apart from the client's own.
        names::file(name, layout.target.format, None).map_err(|reason| {
            Failure::new(Exit::Failed, format!("the prompt `{name}` cannot be a command: {reason}"))
        })?;
        // The skill has all its files.
        if names.contains(&name) {
            continue;
        }
        let exported = export(prompt, layout.target.format, None);
        // A skill's path has its folder too.
        let parts = if layout.target.format == ExportFormat::Skill { 1 } else { 0 };
        let start = exported.path.rmatch_indices('/').nth(parts).map_or(0, |(at, _)| at + 1);
        let path = format!("{}/{}", layout.target.prompts, &exported.path[start..]);
        if !skills.iter().any(|taken| taken.path == path) {
            files.push(OutputFile::Prompt {
                name: name.to_owned(),
                format: layout.target.format,
                file: Exported { path, ..exported },
            });
        }
    }
    Ok(Plugin { files, skills, target: layout.target })
}

fn layout(target: PluginTarget, about: &About, folder: &Path) -> Layout {
    let name = name(about, folder);
    let described = description(about, &name);
    let owner = about.title.as_deref().unwrap_or(&name);
    let version = about.version.as_deref().unwrap_or(DEFAULT_VERSION);
    let root = format!("plugins/{name}");
    match target {
        // code.claude.com/docs/en/plugin-marketplaces, read 2026-11. Without a version, each commit is a new one.
        PluginTarget::ClaudeCode => Layout {
            target: Target {
                format: ExportFormat::Claude,
                prompts: format!("{root}/commands"),
                skills: Some(format!("{root}/skills")),
            },
            manifests: vec![
                (
                    ".claude-plugin/marketplace.json".to_owned(),
                    json!({
                        "name": name,
                        "owner": { "name": owner },
                        "plugins": [{ "name": name, "source": format!("./{root}"), "description": described }],
                    }),
                ),
                (format!("{root}/.claude-plugin/plugin.json"), json!({ "name": name, "description": described })),
            ],
        },
        // developers.openai.com/codex/plugins/build, read 2026-11, and Codex 0.169.0. Plugins have no prompts.
        PluginTarget::Codex => Layout {
            target: Target {
                format: ExportFormat::Skill,
                prompts: format!("{root}/skills"),
                skills: Some(format!("{root}/skills")),
            },
            manifests: vec![
                (
                    ".agents/plugins/marketplace.json".to_owned(),
                    json!({
                        "name": name,
                        "interface": { "displayName": owner },
                        "plugins": [{
                            "name": name,
                            "source": { "source": "local", "path": format!("./{root}") },
                            "policy": { "installation": "AVAILABLE", "authentication": "ON_INSTALL" },
                            "category": "Productivity",
                        }],
                    }),
                ),
                (
                    format!("{root}/.codex-plugin/plugin.json"),
                    json!({ "name": name, "version": version, "description": described, "skills": "./skills/" }),
                ),
            ],
        },
        // cursor.com/docs/reference/plugins, read 2026-11.
        PluginTarget::Cursor => Layout {
            target: Target {
                format: ExportFormat::Cursor,
                prompts: format!("{root}/commands"),
                skills: Some(format!("{root}/skills")),
            },
            manifests: vec![
                (
                    ".cursor-plugin/marketplace.json".to_owned(),
                    json!({
                        "name": name,
                        "owner": { "name": owner },
                        "plugins": [{ "name": name, "source": root, "description": described }],
                    }),
                ),
                (
                    format!("{root}/.cursor-plugin/plugin.json"),
                    json!({ "name": name, "version": version, "description": described }),
                ),
            ],
        },
        // github.com/google-gemini/gemini-cli, docs/extensions, read 2026-11. The version is required.
        PluginTarget::GeminiCli => Layout {
            target: Target { format: ExportFormat::Gemini, prompts: "commands".to_owned(), skills: None },
            manifests: vec![(
                "gemini-extension.json".to_owned(),
                json!({ "name": name, "version": version, "description": described }),
            )],
        },
    }
}

/// Returns the files of a skill that is a folder.
fn skill_files(skill: &Skill, library: &Path, to: &str) -> Option<Vec<SkillFile>> {
    let manifest = skill.files().find(|file| file.uri() == skill.uri())?;
    let folder = manifest.file().path.strip_suffix(SKILL)?;
    let files = skill.files().filter_map(|file| {
        let file = file.file();
        Some(SkillFile {
            path: format!("{to}/{}", file.path.strip_prefix(folder)?),
            body: file.body.clone(),
            is_executable: is_executable(&library.join(&file.path)),
        })
    });
    Some(files.collect())
}

fn manifest(path: String, value: &Value) -> OutputFile {
    OutputFile::Whole { path, text: format!("{}\n", file_json(value)) }
}

pub(super) fn description(about: &About, name: &str) -> String {
    about.description.clone().or(about.title.clone()).unwrap_or_else(|| format!("Prompts of {name}"))
}

/// Returns the name of the plugin: that of the library, or of its folder, in lower-case letters, digits and `-`.
pub(super) fn name(about: &About, folder: &Path) -> String {
    let folder = folder.canonicalize().ok().and_then(|folder| Some(folder.file_name()?.to_string_lossy().into_owned()));
    let words = about.name.clone().or(folder).unwrap_or_default().to_lowercase();
    let mut name = String::new();
    for c in words.chars() {
        if c.is_ascii_alphanumeric() {
            name.push(c);
        } else if !name.is_empty() && !name.ends_with('-') {
            name.push('-');
        }
    }
    let name = name.trim_end_matches('-');
    if name.is_empty() { DEFAULT_NAME.to_owned() } else { name.to_owned() }
}

//! `promptshelf export --plugin`: a repository from which a program installs the prompts of a library.

use std::{path::Path, sync::Arc};

use promptshelf_author::{ExportFormat, Exported, export};
use promptshelf_core::{About, Diagnostic, Prompt};
use serde_json::{Value, json};

use crate::{
    args::reach::PluginTarget,
    commands::file_name::check_file_name,
    exit::{Exit, Failure},
    output::file_json,
};

/// The name of the plugin if the library has none.
const DEFAULT_NAME: &str = "prompts";

/// Returns the files of a plugin with these prompts, by their paths in the repository.
pub(super) fn plugin<'p>(
    target: PluginTarget,
    about: &About,
    folder: &Path,
    prompts: impl Iterator<Item = &'p Arc<Prompt>>,
) -> Result<Vec<Exported>, Failure> {
    let name = name(about, folder);
    let description = about.description.clone().or(about.title.clone()).unwrap_or_else(|| format!("Prompts of {name}"));
    let (format, commands, manifests) = match target {
        // code.claude.com/docs/en/plugin-marketplaces, read 2026-11. Without a version, each commit is a new one.
        PluginTarget::ClaudeCode => (
            ExportFormat::Claude,
            format!("plugins/{name}/commands"),
            vec![
                (
                    ".claude-plugin/marketplace.json".to_owned(),
                    json!({
                        "name": name,
                        "owner": { "name": about.title.as_deref().unwrap_or(&name) },
                        "plugins": [{
                            "name": name,
                            "source": format!("./plugins/{name}"),
                            "description": description,
                        }],
                    }),
                ),
                (
                    format!("plugins/{name}/.claude-plugin/plugin.json"),
                    json!({ "name": name, "description": description }),
                ),
            ],
        ),
        // github.com/google-gemini/gemini-cli, docs/extensions, read 2026-11. The version is required.
        PluginTarget::GeminiCli => (
            ExportFormat::Gemini,
            "commands".to_owned(),
            vec![(
                "gemini-extension.json".to_owned(),
                json!({
                    "name": name,
                    "version": about.version.as_deref().unwrap_or("1.0.0"),
                    "description": description,
                }),
            )],
        ),
    };
    let mut files: Vec<Exported> = manifests.into_iter().map(|(path, value)| manifest(path, &value)).collect();
    for prompt in prompts {
        let prompt_name = prompt.name().as_str();
        check_file_name(prompt_name).map_err(|reason| {
            Failure::new(Exit::Failed, format!("the prompt `{prompt_name}` cannot be a command: {reason}"))
        })?;
        let exported = export(prompt, format, None);
        let file = exported.path.rsplit('/').next().unwrap_or(&exported.path);
        files.push(Exported { path: format!("{commands}/{file}"), ..exported });
    }
    Ok(files)
}

fn manifest(path: String, value: &Value) -> Exported {
    Exported { path, text: format!("{}\n", file_json(value)), losses: Vec::<Diagnostic>::new() }
}

/// Returns the name of the plugin: that of the library, or of its folder, in lower-case letters, digits and `-`.
fn name(about: &About, folder: &Path) -> String {
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

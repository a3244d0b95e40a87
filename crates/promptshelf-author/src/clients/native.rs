//! Folders of a project from which clients read commands, prompts or Agent Skills as files.

use super::Client;
use crate::ExportFormat;

/// The native files of a client in a project, which `sync` writes.
#[derive(Debug)]
#[non_exhaustive]
pub struct NativeFiles {
    /// The [`Client::id`].
    pub client: &'static str,
    /// The format of a file.
    pub format: ExportFormat,
    /// The folder of the files, below that of the project.
    pub folder: &'static str,
    /// The folder of skills, below that of the project. Source: vercel-labs/skills, src/agents.ts.
    pub skills: &'static str,
    /// The largest number of characters that the client reads of a file, if it has a limit.
    pub max_chars: Option<usize>,
    /// The page or file that shows the place and the format.
    pub source: &'static str,
    /// The month in which the source was read, as `2026-11`.
    pub read: &'static str,
}

const fn files(client: &'static str, format: ExportFormat, folder: &'static str, source: &'static str) -> NativeFiles {
    let skills = match format {
        ExportFormat::Skill => folder,
        ExportFormat::Claude => ".claude/skills",
        ExportFormat::Windsurf => ".windsurf/skills",
        _ => SKILLS,
    };
    NativeFiles { client, format, folder, skills, max_chars: None, source, read: "2026-11" }
}

const SKILLS: &str = ".agents/skills";
const SKILLS_SOURCE: &str = "vercel-labs/skills, src/agents.ts";

/// All clients that read files of a known format.
pub const NATIVE_FILES: &[NativeFiles] = &[
    files("claude-code", ExportFormat::Claude, ".claude/commands", "code.claude.com/docs/en/skills, commands"),
    files("vscode", ExportFormat::Vscode, ".github/prompts", "code.visualstudio.com/docs, prompt files"),
    files("gemini-cli", ExportFormat::Gemini, ".gemini/commands", "google-gemini/gemini-cli, custom commands"),
    files("cursor", ExportFormat::Cursor, ".cursor/commands", "cursor.com/docs, commands"),
    files("opencode", ExportFormat::Opencode, ".opencode/commands", "opencode.ai/docs, commands"),
    NativeFiles {
        max_chars: Some(12_000),
        ..files("windsurf", ExportFormat::Windsurf, ".windsurf/workflows", "docs.windsurf.com, Cascade workflows")
    },
    files("codex", ExportFormat::Skill, SKILLS, "developers.openai.com/codex/skills"),
    files("copilot-cli", ExportFormat::Skill, SKILLS, SKILLS_SOURCE),
    files("antigravity", ExportFormat::Skill, SKILLS, SKILLS_SOURCE),
    files("amp", ExportFormat::Skill, SKILLS, SKILLS_SOURCE),
    files("zed", ExportFormat::Skill, SKILLS, SKILLS_SOURCE),
    files("cline", ExportFormat::Skill, SKILLS, SKILLS_SOURCE),
    files("goose", ExportFormat::Skill, ".goose/skills", SKILLS_SOURCE),
    files("kiro", ExportFormat::Skill, ".kiro/skills", SKILLS_SOURCE),
    files("jetbrains", ExportFormat::Skill, ".junie/skills", SKILLS_SOURCE),
    files("crush", ExportFormat::Skill, ".crush/skills", SKILLS_SOURCE),
    files("continue", ExportFormat::Skill, ".continue/skills", SKILLS_SOURCE),
    files("roo", ExportFormat::Skill, ".roo/skills", SKILLS_SOURCE),
];

impl Client {
    /// Returns the files that the client reads in a project; `None` if none are known.
    #[must_use]
    pub fn native_files(&self) -> Option<&'static NativeFiles> {
        NATIVE_FILES.iter().find(|files| files.client == self.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clients::find;

    #[test]
    fn native_files_belong_to_known_clients() {
        for (index, files) in NATIVE_FILES.iter().enumerate() {
            assert!(find(files.client).is_some(), "{}", files.client);
            assert!(!NATIVE_FILES[..index].iter().any(|other| other.client == files.client), "{}", files.client);
            assert!(!files.folder.starts_with('/') && files.source.len() > 8, "{}", files.client);
        }
    }
}

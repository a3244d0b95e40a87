//! The table of clients. When a client changes, its line changes, together with the source and the month.

use super::{Client, Fact, Quirk};

const fn fact(quirk: Quirk, source: &'static str) -> Fact {
    Fact { quirk, source, read: "2026-11" }
}

macro_rules! clients {
    ($($id:literal, $name:literal, $shown:literal $(, note $note:literal)? => { $($quirk:expr => $source:literal;)* })+) => {
        /// All clients with known behaviour.
        pub const CLIENTS: &[Client] = &[$(Client {
            id: $id,
            name: $name,
            shown_as: $shown,
            note: concat!($($note)?),
            facts: &[$(fact($quirk, $source)),*],
        }),+];
    };
}

clients! {
    "claude-code", "Claude Code", "/mcp__server__prompt" => {
        Quirk::SplitsValues => "anthropics/claude-code issues 14210 and 70284";
        Quirk::OneUserTurn => "Claude Code, observed in its requests to the model";
        Quirk::LinksAsText => "Claude Code, observed in its requests to the model";
        Quirk::AudioAsName => "Claude Code, observed in its requests to the model";
    }

    "claude-desktop", "Claude Desktop", "an entry of the + menu, under the connector" => {}

    "vscode", "VS Code", "/mcp.server.prompt" => {
        Quirk::ReplacesInNames => "microsoft/vscode, mcpPromptArgumentPick.ts";
        Quirk::OneLineValues => "microsoft/vscode, mcpPromptArgumentPick.ts";
        Quirk::LabelsRoles => "microsoft/vscode, StartParameterizedPromptAction";
        Quirk::NoAudio => "microsoft/vscode, StartParameterizedPromptAction";
        Quirk::NoLinks => "microsoft/vscode, StartParameterizedPromptAction";
    }

    "gemini-cli", "Gemini CLI", "/prompt, or /server.prompt where names clash",
    note "for personal accounts replaced by Antigravity CLI since 2026-06-18 (developers.googleblog.com)" => {
        Quirk::FirstPage => "google-gemini/gemini-cli, McpPromptLoader.ts";
        Quirk::FillsRequiredOnly => "google-gemini/gemini-cli, McpPromptLoader.ts";
        Quirk::FirstMessage => "google-gemini/gemini-cli issues 15850 and 5230";
        Quirk::TextOnly => "google-gemini/gemini-cli, McpPromptLoader.ts";
        Quirk::TextAsJson => "google-gemini/gemini-cli, McpPromptLoader.ts";
    }

    "zed", "Zed", "/prompt, or /server.prompt where names clash" => {
        Quirk::MostArguments(1) => "zed-industries/zed pull request 43523, issue 21944";
    }

    "opencode", "OpenCode", "/server:prompt" => {
        Quirk::Placeholders => "opencode issue 33564";
        Quirk::JoinsMessages => "opencode, packages/opencode/src/command/index.ts";
        Quirk::TextOnly => "opencode, packages/opencode/src/command/index.ts";
    }

    "goose", "goose", "/prompt name key=value" => {
        Quirk::LastUserMessage => "block/goose issue 6506 (command line; the desktop uses all)";
    }

    "amazon-q", "Amazon Q CLI", "@prompt, or @server/prompt" => {
        Quirk::SplitsNames => "aws/amazon-q-developer-cli, tool_manager.rs";
        Quirk::EndsWithUser => "aws/amazon-q-developer-cli, conversation.rs";
        Quirk::ImagesAsText => "aws/amazon-q-developer-cli, conversation.rs";
    }

    "continue", "Continue", "a slash command" => {
        Quirk::FirstPage => "continuedev/continue, doLoadConfig.ts";
        Quirk::EmptyValues => "continuedev/continue, mcpSlashCommand.ts";
        Quirk::LabelsRoles => "continuedev/continue, renderMcpPrompt.ts";
        Quirk::TextOnly => "continuedev/continue, renderMcpPrompt.ts";
    }

    "cline", "Cline", "/mcp:server:prompt" => {
        Quirk::NeverGets => "cline/cline, McpHub.ts and slash-command-expansion.ts";
        Quirk::FirstPage => "cline/cline, McpHub.ts";
    }

    "inspector", "MCP Inspector", "the Prompts tab" => {}

    "cursor", "Cursor", "a / command" => {}

    "amp", "Amp", "a command of the palette" => {}

    "antigravity", "Antigravity", "/prompt" => {}

    "crush", "Crush", "a command of the palette" => {}

    "kiro", "Kiro", "@prompt" => {}

    "windsurf", "Windsurf", "" => {
        Quirk::NoPrompts => "modelcontextprotocol.io/clients: tools and discovery only";
    }

    "github-app", "GitHub Copilot app", "" => {
        Quirk::NoPrompts => "github/app issue 339, open";
    }

    "codex", "Codex", "" => {
        Quirk::NoPrompts => "openai/codex issue 8342, open";
    }

    "copilot-cli", "Copilot CLI", "" => {
        Quirk::NoPrompts => "github/copilot-cli issue 505, open";
    }

    "roo", "Roo Code", "" => {
        Quirk::NoPrompts => "its source: no prompts/list";
    }

    "librechat", "LibreChat", "" => {
        Quirk::NoPrompts => "danny-avila/LibreChat pull request 9991, closed";
    }

    "open-webui", "Open WebUI", "" => {
        Quirk::NoPrompts => "open-webui/open-webui issue 23984, closed";
    }

    "lm-studio", "LM Studio", "" => {
        Quirk::NoPrompts => "lmstudio-ai/lmstudio-bug-tracker issue 1412, open";
    }

    "jetbrains", "JetBrains (Junie)", "" => {
        Quirk::NoPrompts => "apify's list of client capabilities";
    }

    "chatgpt", "ChatGPT", "" => {
        Quirk::NoPrompts => "apify's list of client capabilities";
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_unique_and_facts_have_sources() {
        for (index, client) in CLIENTS.iter().enumerate() {
            assert!(!CLIENTS[..index].iter().any(|other| other.id == client.id), "{}", client.id);
            assert!(client.id.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'), "{}", client.id);
            assert!(client.facts.iter().all(|fact| fact.source.len() > 8 && fact.read.len() == 7), "{}", client.id);
        }
    }
}

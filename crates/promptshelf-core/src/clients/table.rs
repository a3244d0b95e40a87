//! The table of clients. A line is changed when a client changes, with its new source.

use super::{Client, Fact, Habit};

const fn fact(habit: Habit, source: &'static str) -> Fact {
    Fact { habit, source, read: "2026-11" }
}

macro_rules! clients {
    ($($id:literal, $name:literal, $shown:literal => { $($habit:expr => $source:literal;)* })+) => {
        /// Every client of which something is known.
        pub const CLIENTS: &[Client] = &[$(Client {
            id: $id,
            name: $name,
            shown_as: $shown,
            facts: &[$(fact($habit, $source)),*],
        }),+];
    };
}

clients! {
    "claude-code", "Claude Code", "/mcp__server__prompt" => {
        Habit::SplitsValues => "anthropics/claude-code issues 14210 and 70284";
    }

    "claude-desktop", "Claude Desktop", "the + menu, under the connector" => {}

    "vscode", "VS Code", "/mcp.server.prompt" => {
        Habit::ReplacesInNames => "microsoft/vscode, mcpPromptArgumentPick.ts";
        Habit::OneLineValues => "microsoft/vscode, mcpPromptArgumentPick.ts";
        Habit::LabelsRoles => "microsoft/vscode, StartParameterizedPromptAction";
        Habit::NoAudio => "microsoft/vscode, StartParameterizedPromptAction";
        Habit::NoLinks => "microsoft/vscode, StartParameterizedPromptAction";
    }

    "gemini-cli", "Gemini CLI", "/prompt, or /server.prompt where names clash" => {
        Habit::FirstPage => "google-gemini/gemini-cli, McpPromptLoader.ts";
        Habit::FillsRequiredOnly => "google-gemini/gemini-cli, McpPromptLoader.ts";
        Habit::FirstMessage => "google-gemini/gemini-cli issues 15850 and 5230";
        Habit::TextOnly => "google-gemini/gemini-cli, McpPromptLoader.ts";
    }

    "zed", "Zed", "/prompt, or /server.prompt where names clash" => {
        Habit::MostArguments(1) => "zed-industries/zed pull request 43523, issue 21944";
    }

    "opencode", "opencode", "/server:prompt" => {
        Habit::Placeholders => "opencode issue 33564";
        Habit::JoinsMessages => "opencode, packages/opencode/src/command/index.ts";
        Habit::TextOnly => "opencode, packages/opencode/src/command/index.ts";
    }

    "goose", "goose", "/prompt name key=value" => {
        Habit::LastUserMessage => "block/goose issue 6506 (command line; the desktop uses all)";
    }

    "amazon-q", "Amazon Q CLI", "@prompt, or @server/prompt" => {
        Habit::SplitsNames => "aws/amazon-q-developer-cli, tool_manager.rs";
        Habit::EndsWithUser => "aws/amazon-q-developer-cli, conversation.rs";
        Habit::ImagesAsText => "aws/amazon-q-developer-cli, conversation.rs";
    }

    "continue", "Continue", "a slash command" => {
        Habit::FirstPage => "continuedev/continue, doLoadConfig.ts";
        Habit::EmptyValues => "continuedev/continue, mcpSlashCommand.ts";
        Habit::LabelsRoles => "continuedev/continue, renderMcpPrompt.ts";
        Habit::TextOnly => "continuedev/continue, renderMcpPrompt.ts";
    }

    "cline", "Cline", "/mcp:server:prompt" => {
        Habit::NeverGets => "cline/cline, McpHub.ts and slash-command-expansion.ts";
        Habit::FirstPage => "cline/cline, McpHub.ts";
    }

    "inspector", "MCP Inspector", "the Prompts tab" => {}

    "cursor", "Cursor", "a / command" => {}

    "codex", "Codex", "" => {
        Habit::NoPrompts => "openai/codex issue 8342, open";
    }

    "copilot-cli", "Copilot CLI", "" => {
        Habit::NoPrompts => "github/copilot-cli issue 505, open";
    }

    "roo", "Roo Code", "" => {
        Habit::NoPrompts => "its source: no prompts/list";
    }

    "librechat", "LibreChat", "" => {
        Habit::NoPrompts => "danny-avila/LibreChat pull request 9991, closed";
    }

    "open-webui", "Open WebUI", "" => {
        Habit::NoPrompts => "open-webui/open-webui issue 23984, closed";
    }

    "lm-studio", "LM Studio", "" => {
        Habit::NoPrompts => "lmstudio-ai/lmstudio-bug-tracker issue 1412, open";
    }

    "jetbrains", "JetBrains AI Assistant", "" => {
        Habit::NoPrompts => "apify's list of client capabilities";
    }

    "chatgpt", "ChatGPT", "" => {
        Habit::NoPrompts => "apify's list of client capabilities";
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_client_is_there_once_and_every_fact_can_be_looked_up() {
        for (index, client) in CLIENTS.iter().enumerate() {
            assert!(!CLIENTS[..index].iter().any(|other| other.id == client.id), "{}", client.id);
            assert!(client.id.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'), "{}", client.id);
            assert!(client.facts.iter().all(|fact| fact.source.len() > 8 && fact.read.len() == 7), "{}", client.id);
        }
    }
}

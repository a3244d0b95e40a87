//! The table of configuration files. When a client changes its format, its entry changes, together with the source and
//! the month.

use super::{
    Configuration,
    ConfigurationFormat::{Json, Toml, Yaml},
    Part::{
        Arguments, CommandLine, EmptyList, EmptyMapping, Everything, Name, Number, Program, Text, True, Url as Address,
    },
    TokenReference, UserFiles,
};

const fn everywhere(files: &'static [&'static str]) -> UserFiles {
    UserFiles { unix: files, macos: files, windows: files }
}

const BASE: Configuration = Configuration {
    client: "",
    format: Json,
    containers: &[&["mcpServers"]],
    user: everywhere(&[]),
    project: None,
    project_prefix: "",
    stdio: &[("command", Program), ("args", Arguments)],
    url: &[("url", Address)],
    token: None,
    notice: "",
    source: "",
    read: "2026-11",
};

/// All clients with a known configuration file.
pub const CONFIGURATIONS: &[Configuration] = &[
    Configuration {
        client: "claude-code",
        user: everywhere(&["~/.claude.json"]),
        project: Some(".mcp.json"),
        stdio: &[("type", Text("stdio")), ("command", Program), ("args", Arguments), ("env", EmptyMapping)],
        url: &[("type", Text("http")), ("url", Address)],
        token: Some(TokenReference::Header("Bearer ${NAME}")),
        notice: "start a new session; `/mcp` shows the server, and signs in to one that needs it",
        source: "code.claude.com/docs/en/mcp, MCP installation scopes",
        ..BASE
    },
    Configuration {
        client: "claude-desktop",
        user: UserFiles {
            unix: &["$CONFIG/Claude/claude_desktop_config.json"],
            macos: &["~/Library/Application Support/Claude/claude_desktop_config.json"],
            windows: &["$APPDATA/Claude/claude_desktop_config.json"],
        },
        url: &[],
        notice: "restart Claude Desktop; a server with a URL is added in the app, at Settings, Connectors",
        source: "modelcontextprotocol.io, Connect to local MCP servers",
        ..BASE
    },
    Configuration {
        client: "vscode",
        containers: &[&["servers"]],
        user: UserFiles {
            unix: &["$CONFIG/Code/User/mcp.json"],
            macos: &["~/Library/Application Support/Code/User/mcp.json"],
            windows: &["$APPDATA/Code/User/mcp.json"],
        },
        project: Some(".vscode/mcp.json"),
        project_prefix: "${workspaceFolder}/",
        stdio: &[("type", Text("stdio")), ("command", Program), ("args", Arguments)],
        url: &[("type", Text("http")), ("url", Address)],
        token: Some(TokenReference::Header("Bearer ${env:NAME}")),
        notice: "confirm the server when VS Code asks to start it",
        source: "code.visualstudio.com/docs, MCP servers: configure the mcp.json file",
        ..BASE
    },
    Configuration {
        client: "cursor",
        user: everywhere(&["~/.cursor/mcp.json"]),
        project: Some(".cursor/mcp.json"),
        project_prefix: "${workspaceFolder}/",
        stdio: &[("type", Text("stdio")), ("command", Program), ("args", Arguments)],
        token: Some(TokenReference::Header("Bearer ${env:NAME}")),
        notice: "enable the server in Cursor's settings, at MCP",
        source: "docs.cursor.com, Model Context Protocol: configuration locations",
        ..BASE
    },
    Configuration {
        client: "windsurf",
        user: everywhere(&["~/.codeium/windsurf/mcp_config.json"]),
        url: &[("serverUrl", Address)],
        token: Some(TokenReference::Header("Bearer ${env:NAME}")),
        notice: "press the refresh button of Cascade's MCP panel",
        source: "docs.windsurf.com, Cascade MCP: mcp_config.json",
        ..BASE
    },
    Configuration {
        client: "zed",
        containers: &[&["context_servers"]],
        user: UserFiles {
            unix: &["$CONFIG/zed/settings.json"],
            macos: &["$CONFIG/zed/settings.json"],
            windows: &["$APPDATA/Zed/settings.json"],
        },
        project: Some(".zed/settings.json"),
        stdio: &[("command", Program), ("args", Arguments), ("env", EmptyMapping)],
        notice: "Zed reads the file at once",
        source: "zed-industries/zed, docs/src/ai/mcp.md",
        ..BASE
    },
    Configuration {
        client: "goose",
        format: Yaml,
        containers: &[&["extensions"]],
        user: UserFiles {
            unix: &["$CONFIG/goose/config.yaml"],
            macos: &["$CONFIG/goose/config.yaml"],
            windows: &["$APPDATA/Block/goose/config/config.yaml"],
        },
        stdio: &[
            ("type", Text("stdio")),
            ("name", Name),
            ("description", Text("Prompts served by promptshelf")),
            ("enabled", True),
            ("cmd", Program),
            ("args", Arguments),
            ("env_keys", EmptyList),
            ("envs", EmptyMapping),
            ("timeout", Number(300)),
        ],
        url: &[
            ("type", Text("streamable_http")),
            ("name", Name),
            ("description", Text("Prompts served by promptshelf")),
            ("enabled", True),
            ("uri", Address),
            ("headers", EmptyMapping),
            ("env_keys", EmptyList),
            ("envs", EmptyMapping),
            ("timeout", Number(300)),
        ],
        notice: "start a new session",
        source: "aaif-goose/goose, documentation/docs/guides/config-files.md",
        ..BASE
    },
    Configuration {
        client: "opencode",
        containers: &[&["mcp", "servers"], &["mcp"]],
        user: everywhere(&["$CONFIG/opencode/opencode.json", "$CONFIG/opencode/opencode.jsonc"]),
        project: Some("opencode.json"),
        stdio: &[("type", Text("local")), ("command", CommandLine)],
        url: &[("type", Text("remote")), ("url", Address)],
        token: Some(TokenReference::Header("Bearer {env:NAME}")),
        notice: "restart OpenCode",
        source: "opencode.ai/docs, MCP servers and Migrate from V1 (version 2 reads both places)",
        ..BASE
    },
    Configuration {
        client: "codex",
        format: Toml,
        containers: &[&["mcp_servers"]],
        user: everywhere(&["~/.codex/config.toml"]),
        project: Some(".codex/config.toml"),
        token: Some(TokenReference::Member("bearer_token_env_var")),
        notice: "restart Codex; it reads a project's file only if the project is trusted",
        source: "developers.openai.com/codex/mcp",
        ..BASE
    },
    Configuration {
        client: "antigravity",
        user: everywhere(&["~/.gemini/config/mcp_config.json", "~/.gemini/antigravity/mcp_config.json"]),
        project: Some(".agents/mcp_config.json"),
        url: &[("serverUrl", Address)],
        notice: "refresh the list in Manage MCP Servers",
        source: "cua.ai/docs and sam-mesh.dev/docs, Antigravity; jgravelle/jcodemunch-mcp release 1.108.89",
        ..BASE
    },
    Configuration {
        client: "copilot-cli",
        user: everywhere(&["~/.copilot/mcp-config.json"]),
        project: Some(".github/mcp.json"),
        stdio: &[("type", Text("local")), ("command", Program), ("args", Arguments), ("tools", Everything)],
        url: &[("type", Text("http")), ("url", Address), ("tools", Everything)],
        token: Some(TokenReference::Header("Bearer ${NAME}")),
        notice: "start a new session; `/mcp show` lists the server",
        source: "docs.github.com, Copilot CLI: add MCP servers; microsoft/apm issue 2047",
        ..BASE
    },
    Configuration {
        client: "amp",
        containers: &[&["amp.mcpServers"]],
        user: everywhere(&["$CONFIG/amp/settings.json"]),
        project: Some(".amp/settings.json"),
        token: Some(TokenReference::Header("Bearer ${NAME}")),
        notice: "start a new thread; a project's server needs `amp mcp approve`",
        source: "ampcode.com/manual#mcp and its news of .amp/settings.json",
        ..BASE
    },
    Configuration {
        client: "kiro",
        user: everywhere(&["~/.kiro/settings/mcp.json"]),
        project: Some(".kiro/settings/mcp.json"),
        token: Some(TokenReference::Header("Bearer ${NAME}")),
        notice: "Kiro connects when the file is saved",
        source: "kiro.dev/docs/mcp/configuration",
        ..BASE
    },
    Configuration {
        client: "jetbrains",
        user: everywhere(&["~/.junie/mcp/mcp.json"]),
        project: Some(".junie/mcp/mcp.json"),
        notice: "Junie reads this file; for AI Assistant, paste the entry at Settings, Tools, AI Assistant, MCP",
        source: "junie.jetbrains.com/docs, MCP configuration; jetbrains.com/help/ai-assistant/mcp.html",
        ..BASE
    },
    Configuration {
        client: "gemini-cli",
        user: everywhere(&["~/.gemini/settings.json"]),
        project: Some(".gemini/settings.json"),
        url: &[("httpUrl", Address)],
        notice: "restart Gemini CLI",
        source: "google-gemini/gemini-cli, docs/tools/mcp-server.md",
        ..BASE
    },
    Configuration {
        client: "crush",
        containers: &[&["mcp"]],
        user: UserFiles {
            unix: &["$CONFIG/crush/crush.json"],
            macos: &["$CONFIG/crush/crush.json"],
            windows: &["~/AppData/Local/crush/crush.json"],
        },
        project: Some(".crush.json"),
        stdio: &[("type", Text("stdio")), ("command", Program), ("args", Arguments)],
        url: &[("type", Text("http")), ("url", Address)],
        token: Some(TokenReference::Header("$(echo Bearer $NAME)")),
        notice: "restart Crush",
        source: "charmbracelet/crush, README.md",
        ..BASE
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clients::{ConfiguredEndpoint, find};

    #[test]
    fn configurations_are_complete_and_have_sources() {
        let command = ConfiguredEndpoint::Command { program: "p".to_owned(), arguments: vec!["a".to_owned()] };
        for (index, configuration) in CONFIGURATIONS.iter().enumerate() {
            let client = configuration.client;
            assert!(find(client).is_some(), "{client}");
            assert!(!CONFIGURATIONS[..index].iter().any(|other| other.client == client), "{client}");
            assert!(configuration.source.len() > 8 && configuration.read.len() == 7, "{client}");
            let files = [configuration.user.unix, configuration.user.macos, configuration.user.windows];
            for path in files.into_iter().flatten() {
                assert!(["~/", "$CONFIG/", "$APPDATA/"].iter().any(|base| path.starts_with(base)), "{client}: {path}");
            }
            assert!(files.iter().all(|files| !files.is_empty()), "{client}");
            assert!(configuration.project.is_none_or(|path| !path.starts_with('/')), "{client}");
            let entry = configuration.entry("prompts", &command).expect("an entry for a command");
            assert!(entry.to_string().contains("\"p\""), "{client}: {entry}");
        }
    }
}

//! Names of the commands that clients have themselves. A file with such a name would stand next to the command, or take
//! its place: Claude Code 2.1.332 runs the file.

#[derive(Debug)]
struct BuiltIn {
    client: &'static str,
    source: &'static str,
    names: &'static str,
}

const BUILT_IN: &[BuiltIn] = &[
    // The bundled skills, such as `code-review`, can be replaced by design, and are not here.
    BuiltIn {
        client: "claude-code",
        source: "Claude Code 2.1.332",
        names: "access add-dir advisor agents alias allowed-tools android app artifacts auto-mode-setup autocompact \
                autofix-pr background bashes bg branch brief btw bug cd chat checkpoint checkup chrome clear \
                cloud-plugins color compact config context continue copy cost daemon desktop diff doctor effort exit \
                export extra-usage fast feedback focus fork goal heapdump help hooks ide import init insights install \
                install-github-app install-slack-app ios keybindings list-agents login logout mcp memory mobile model \
                new output-style passes pause-memory permissions plan plugin plugins powerup privacy-settings project \
                quit radio rate-limit-options recap release-notes reload-plugins reload-skills remote-control \
                remote-env rename reset restart resume rewind scroll-speed security-review session settings \
                setup-bedrock setup-vertex skill-doctor skills stats status statusline stickers stop subtask tasks \
                team-onboarding teleport terminal-setup theme tui ultraplan ultrareview undo upgrade usage \
                usage-credits use-case version vim voice web-setup wellbeing workflows",
    },
    BuiltIn {
        client: "opencode",
        source: "OpenCode 1.18.33",
        names: "agent agents clear compact connect continue copy debug diff editor exit export fork help init mcp mcps \
                mo model models move new open org orgs q quit redo rename resume review sessions share skills status \
                summarize switch-org terminal themes thinking timeline timestamps toggle-thinking toggle-timestamps \
                undo unshare variants warp workspace workspaces",
    },
    BuiltIn {
        client: "gemini-cli",
        source: "Gemini CLI 0.61.0",
        names: "? about agents auth background bg bug bug-memory chat checkpoint clear commands compact compress config \
                copy corgi dir directory docs editor exit explore extensions footer gemma help hooks ide init mcp \
                memory model new oncall permissions plan policies privacy profile quit restore resume rewind settings \
                setup-github shells shortcuts skills stats statusline summarize tasks terminal-setup theme tools \
                upgrade usage vim voice",
    },
    BuiltIn {
        client: "vscode",
        source: "microsoft/vscode at 0870c2a, and code.visualstudio.com/docs, 2026-11",
        names: "agents autoApprove clear compact create-agent create-instruction create-prompt create-skill debug \
                disableAutoApprove disableYolo doc edit explain fix fixTestFailure fork generate help hooks init \
                instructions models new newNotebook plan prompts rename search setupTests skills startDebugging tests \
                tools yolo",
    },
    BuiltIn {
        client: "cursor",
        source: "cursor.com/docs/cli/reference/slash-commands, 2026-11",
        names: "about ask auto-run clear commands compress config copy-conversation-id copy-request-id debug feedback \
                goal help logout logs max-mode mcp model new-chat plan quit resume rewind rules run-everything sandbox \
                setup-terminal summarize usage vim",
    },
    BuiltIn {
        client: "codex",
        source: "Codex 0.169.0",
        names: "imagegen openai-docs review-agent skill-creator skill-installer",
    },
];

/// Returns the version or page of a client that has a command of this name itself, in any letter case.
///
/// ```
/// use promptshelf_author::clients::built_in;
///
/// assert!(built_in("claude-code", "Clear").is_some() && built_in("opencode", "review").is_some());
/// assert!(built_in("claude-code", "code-review").is_none());
/// ```
#[must_use]
pub fn built_in(client: &str, name: &str) -> Option<&'static str> {
    let commands = BUILT_IN.iter().find(|commands| commands.client == client)?;
    let is_known = commands.names.split_whitespace().any(|known| known.eq_ignore_ascii_case(name));
    is_known.then_some(commands.source)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clients::NATIVE_FILES;

    #[test]
    fn commands_belong_to_clients_with_files() {
        for commands in BUILT_IN {
            assert!(NATIVE_FILES.iter().any(|files| files.client == commands.client), "{}", commands.client);
            assert!(commands.source.contains(char::is_numeric) && !commands.names.is_empty(), "{}", commands.client);
        }
    }
}

//! `clients` and `check --client`: how MCP clients change prompts, and the table of these quirks.

use insta::assert_snapshot;

use crate::program::{library, run};

const TALK: &str = "\
---
description: A conversation
arguments:
  - name: topic
    description: What about
    required: true
  - name: tone
    description: How
    enum: [kind, short]
    default: kind
---
Let us talk about {{ topic }}, {{ tone }}.

{{ attach(\"tone.wav\") }}

{{ role(\"assistant\") }}
Go on.
";

#[test]
fn quirks_of_each_client_are_shown() {
    let folder = library(&[("Talk.1.md", TALK), ("tone.wav", "")]);
    let of = |client: &str| run(&folder, &["check", "prompts", "--client", client, "--format", "github"]);
    assert_snapshot!(["zed", "gemini-cli", "vscode", "amazon-q", "codex"].map(of).join("\n"));
}

#[test]
fn all_clients_are_checked_and_unknown_ones_rejected() {
    let folder = library(&[("hello.md", "---\ndescription: Greets\n---\nHello\n")]);
    assert!(run(&folder, &["check", "prompts", "--client", "all", "--deny", "warnings"]).starts_with("exit code: 0\n"));
    let misspelt = run(&folder, &["check", "prompts", "--client", "zedd"]);
    assert!(misspelt.starts_with("exit code: 2\n") && misspelt.contains("did you mean `zed`?"), "{misspelt}");
}

#[test]
fn client_table_lists_its_sources() {
    let folder = library(&[]);
    assert_snapshot!(run(&folder, &["known-clients", "zed"]));
    let json = run(&folder, &["known-clients", "--json"]);
    assert!(json.contains("\"id\": \"gemini-cli\"") && json.contains("\"read\": \"2026-11\""), "{json}");
}

//! What clients make of prompts.

use promptshelf_author::clients;

use crate::library::{lines, opened};

const TALK: &str = "\
---
description: A conversation
---
Listen.
{{ attach(\"tone.wav\") }}
{{ link(\"docs://style\", title=\"Style\") }}
{{ role(\"assistant\") }}
Go on.
";

/// The warnings for a client, without places and sources.
fn warnings(client: &str) -> Vec<String> {
    let library = opened(&[("talk.md", TALK), ("tone.wav", "")]);
    let client = clients::find(client).expect("a known client");
    let found = clients::lint(&library.handle().current(), client);
    let found =
        lines(&found).into_iter().map(|line| line.split_once(": ").map_or(line.clone(), |(_, it)| it.to_owned()));
    found.map(|line| line.split(" (").next().unwrap_or_default().to_owned()).collect()
}

#[test]
fn claude_code_changes_links_sound_and_roles() {
    assert_eq!(
        warnings("claude-code"),
        [
            "warning[client-mangles]: Claude Code inserts the name of a file in place of audio: audio is not shown",
            "warning[client-mangles]: Claude Code inserts `[Resource link: …]` in place of a link: a link is not shown",
            "warning[client-flattens]: Claude Code sends all messages as one turn of the user: this message becomes text of the user",
        ]
    );
}

#[test]
fn gemini_cli_shows_text_with_escapes() {
    let found = warnings("gemini-cli");
    let expected = "Gemini CLI sends text as a JSON string, with quotation marks and escapes such as `\\n`";
    assert!(found.iter().any(|line| line.contains(expected)), "{found:?}");
}

//! Texts that new prompts begin with. Each passes the check and its tests.

/// Returns the text of a new prompt: `text` (one message and one argument), `code` (choices, a default, and a value
/// between fences) or `conversation` (user and assistant in turn). `title` is put into its front matter.
///
/// ```
/// assert!(promptshelf_author::starter("text", "Weekly report").unwrap().contains("title: Weekly report\n"));
/// assert!(promptshelf_author::starter("novel", "Weekly report").is_none());
/// ```
#[must_use]
pub fn starter(kind: &str, title: &str) -> Option<String> {
    let text = match kind {
        "text" => include_str!("starter/text.md"),
        "code" => include_str!("starter/code.md"),
        "conversation" => include_str!("starter/conversation.md"),
        _ => return None,
    };
    Some(text.replace("TITLE", title))
}

/// The files of a new library, with their paths: prompts, a partial that they share, settings.
///
/// ```
/// assert!(promptshelf_author::STARTER_LIBRARY.iter().any(|(path, _)| *path == "promptshelf.toml"));
/// ```
pub const STARTER_LIBRARY: &[(&str, &str)] = &[
    ("promptshelf.toml", include_str!("starter/library/promptshelf.toml")),
    ("explain.md", include_str!("starter/library/explain.md")),
    ("reply.md", include_str!("starter/library/reply.md")),
    ("review.md", include_str!("starter/library/review.md")),
    ("_shared/tone.md", include_str!("starter/library/_shared/tone.md")),
    (".gitignore", include_str!("starter/library/gitignore")),
];

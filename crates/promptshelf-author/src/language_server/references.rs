//! References of files to other files and prompts, found by the syntax around them.

use super::{
    cursor::{Cursor, Place},
    locate::cursor_at,
};

/// Returns the text of the file at `path` with every reference to the file `from` replaced by `to`: in `include`,
/// `import`, `extends`, `attach`, `link` and in keys such as `icons`. `None` if the text has no such reference.
///
/// ```
/// use promptshelf_author::rename_file_references;
///
/// let text = "{% include \"_a.md\" %} _a.md {{ attach('_a.md') }}";
/// let renamed = rename_file_references("hello.md", text, "_a.md", "_shared/b.md").unwrap();
/// assert_eq!(renamed, "{% include \"_shared/b.md\" %} _a.md {{ attach('_shared/b.md') }}");
/// ```
#[must_use]
pub fn rename_file_references(path: &str, text: &str, from: &str, to: &str) -> Option<String> {
    replaced(path, text, from, to, |place| match place {
        Place::String { callee } => ["include", "import", "from", "extends", "attach", "link"].contains(callee),
        Place::Value { path } => path.last().is_some_and(|key| ["file", "icons", "src"].contains(key)),
        _ => false,
    })
}

/// Returns the text of the file at `path` with the prompt `from` replaced by `to` in every call of `prompt`. `None` if
/// the text has no such call.
///
/// ```
/// use promptshelf_author::rename_prompt_references;
///
/// let text = "greet {{ prompt('greet') }}";
/// assert_eq!(rename_prompt_references("a.md", text, "greet", "hello").unwrap(), "greet {{ prompt('hello') }}");
/// ```
#[must_use]
pub fn rename_prompt_references(path: &str, text: &str, from: &str, to: &str) -> Option<String> {
    replaced(path, text, from, to, |place| matches!(place, Place::String { callee: "prompt" }))
}

fn replaced(path: &str, text: &str, from: &str, to: &str, is_reference: impl Fn(&Place<'_>) -> bool) -> Option<String> {
    if from.is_empty() {
        return None;
    }
    let (mut renamed, mut rest) = (String::new(), 0);
    for (start, _) in text.match_indices(from) {
        let Cursor { place, word, .. } = cursor_at(path, text, start);
        if word == from && is_reference(&place) {
            renamed.push_str(&text[rest..start]);
            renamed.push_str(to);
            rest = start + from.len();
        }
    }
    (rest > 0).then(|| renamed + &text[rest..])
}

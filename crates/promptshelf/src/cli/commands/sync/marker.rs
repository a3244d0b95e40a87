//! The comment in each synced file with its digest and origin. It distinguishes files of `sync` from others,
//! and edited files from unchanged ones, without any other state.

use std::path::Path;

use promptshelf_author::ExportFormat;

use crate::{source::Source, state::digest};

/// The beginning of the comment.
const WORDS: &str = "promptshelf sync sha256:";
/// The number of hexadecimal digits of a digest.
const DIGITS: usize = 64;

/// A comment that was found in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Marker {
    pub(super) origin: String,
    /// Whether the text around it has another digest.
    pub(super) is_edited: bool,
}

/// Returns the origin of prompts for a comment: a URL without credentials and query, a path, or a command's program.
pub(super) fn origin(source: &Source, to: &Path) -> String {
    let text = match source {
        Source::Folder(folder) => {
            let absolute = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
            let (folder, to) = (absolute(folder), absolute(to));
            // A relative path stays true when the project moves.
            folder
                .strip_prefix(&to)
                .map_or_else(|_| folder.display().to_string(), |path| format!("./{}", path.display()))
        }
        Source::Server(endpoint) | Source::Configured { endpoint, .. } => {
            let text = endpoint.to_string();
            match endpoint.sign_in_url() {
                Some(_) => without_secrets(&text),
                None => text.split_whitespace().next().unwrap_or_default().to_owned(),
            }
        }
    };
    text.chars().map(|c| if c.is_control() || c.is_whitespace() || matches!(c, '<' | '>') { '_' } else { c }).collect()
}

fn without_secrets(url: &str) -> String {
    let plain = url.split(['?', '#']).next().unwrap_or(url);
    match plain.split_once("://") {
        Some((scheme, rest)) => {
            let (authority, path) = rest.split_once('/').map_or((rest, ""), |(authority, path)| (authority, path));
            let host = authority.rsplit('@').next().unwrap_or(authority);
            format!("{scheme}://{host}/{path}")
        }
        None => plain.to_owned(),
    }
}

/// Returns the text of a file with its comment.
pub(super) fn signed(text: &str, format: ExportFormat, origin: &str) -> String {
    let words = format!("{WORDS}{} {origin}", digest(text));
    match format {
        ExportFormat::Gemini => format!("# {words}\n{text}"),
        ExportFormat::Cursor => format!("{text}<!-- {words} -->\n"),
        _ => match text.strip_prefix("---\n") {
            Some(rest) => format!("---\n# {words}\n{rest}"),
            None => format!("{text}<!-- {words} -->\n"),
        },
    }
}

/// Returns the comment of a file; `None` for files that were not written by `sync`.
pub(super) fn read(text: &str) -> Option<Marker> {
    let mut start = 0;
    let lines = text.split_inclusive('\n');
    for line in lines {
        let words = line
            .trim_end()
            .strip_prefix("# ")
            .or_else(|| line.trim_end().strip_prefix("<!-- ").and_then(|comment| comment.strip_suffix(" -->")));
        if let Some((found, origin)) = words.and_then(|words| words.strip_prefix(WORDS)).and_then(|words| {
            let (found, origin) = words.split_once(' ')?;
            let is_digest = found.len() == DIGITS && found.bytes().all(|c| c.is_ascii_hexdigit());
            is_digest.then_some((found, origin))
        }) {
            let rest = format!("{}{}", &text[..start], &text[start + line.len()..]);
            return Some(Marker { origin: origin.to_owned(), is_edited: digest(&rest) != found });
        }
        start += line.len();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comment_is_found_and_edits_are_noticed() {
        for (text, format) in [
            ("---\ndescription: x\n---\n\nbody\n", ExportFormat::Claude),
            ("description = \"x\"\nprompt = \"\"\"\nx\"\"\"\n", ExportFormat::Gemini),
            ("body\n", ExportFormat::Cursor),
        ] {
            let signed = signed(text, format, "https://example.com/mcp");
            let marker = read(&signed).expect("a comment");
            assert_eq!((marker.origin.as_str(), marker.is_edited), ("https://example.com/mcp", false), "{signed}");
            assert!(read(&signed.replace("x", "y").replace("body", "text")).is_some_and(|marker| marker.is_edited));
            assert!(read(&format!("{signed}more\n")).is_some_and(|marker| marker.is_edited));
            assert_eq!(read(text), None);
        }
    }

    #[test]
    fn origin_has_no_secrets() {
        use promptshelf_client::Endpoint;

        let of = |url: &str| origin(&Source::Server(Endpoint::url(url)), Path::new("."));
        assert_eq!(of("https://ada:secret@example.com/mcp?token=t#x"), "https://example.com/mcp");
        assert_eq!(of("https://example.com/a -->b"), "https://example.com/a_--_b");
    }
}

//! `promptshelf diff`: revisions and folders, by their files or by what their prompts render.

use std::{
    io::Write,
    path::{Path, PathBuf},
    time::Duration,
};

use anstyle::{AnsiColor, Style};
use clap::Args;
use promptshelf_core::Diagnostic;
use promptshelf_source::{MemoryTree, read_served_tree};
use promptshelf_store::{ChannelName, Digest};
use promptshelf_wire::op;
use serde_json::{Value, json};
use similar::TextDiff;

use super::{access::Place, connection::Connection, rendered, report};
use crate::{
    args::{Words, place::PlaceArguments, words::States},
    exit::{Exit, Failure},
    output::{Output, note},
};

const DIFF_EXAMPLES: &str = "\
A word that contains `/` or begins with `.` is the path of a folder.

Examples:
  promptshelf diff sqlite:team.db 11 12
  promptshelf diff sqlite:team.db production staging --rendered
  promptshelf diff sqlite:team.db production ./prompts";

#[derive(Debug, Args)]
#[command(after_help = DIFF_EXAMPLES)]
pub(crate) struct DiffArguments {
    #[command(flatten)]
    pub(crate) words: Words<PlaceArguments, States>,

    /// The channel of plain revisions [default: that of #CHANNEL, else production]
    #[arg(long, value_name = "CHANNEL")]
    pub(crate) channel: Option<ChannelName>,

    /// Compare the messages of the changed prompts, rendered with sample arguments
    #[arg(long)]
    pub(crate) rendered: bool,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// The time after which a diff of two large texts is no longer minimal.
const PATIENCE: Duration = Duration::from_secs(2);

/// Two contents at one path; `None` stands for a file that does not exist.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileDifference<'t> {
    pub(super) path: &'t str,
    pub(super) before: Option<&'t [u8]>,
    pub(super) after: Option<&'t [u8]>,
}

impl<'t> FileDifference<'t> {
    pub(super) fn between(before: &'t MemoryTree, after: &'t MemoryTree) -> Vec<FileDifference<'t>> {
        let bytes = |tree: &'t MemoryTree, path: &str| tree.get(path).map(promptshelf_source::MemoryFile::bytes);
        let mut paths: Vec<&str> = before.iter().chain(after.iter()).map(|(path, _)| path).collect();
        paths.sort_unstable();
        paths.dedup();
        let both = paths.into_iter().map(|path| FileDifference {
            path,
            before: bytes(before, path),
            after: bytes(after, path),
        });
        both.filter(|difference| difference.before != difference.after).collect()
    }

    /// Returns a unified diff; `None` if one of the contents is not text.
    pub(super) fn unified(&self) -> Option<String> {
        let text = |bytes: Option<&'t [u8]>| match bytes {
            None => Some(""),
            Some(bytes) if bytes.contains(&0) => None,
            Some(bytes) => std::str::from_utf8(bytes).ok(),
        };
        let (before, after) = (text(self.before)?, text(self.after)?);
        let name = |side: &str, bytes: Option<_>| match bytes {
            Some(_) => format!("{side}/{}", self.path),
            None => "/dev/null".to_owned(),
        };
        Some(unified(before, after, &name("a", self.before), &name("b", self.after)))
    }

    pub(super) fn word(&self) -> &'static str {
        match (self.before, self.after) {
            (None, _) => "added",
            (_, None) => "removed",
            _ => "changed",
        }
    }

    pub(super) fn to_json(self) -> Value {
        let side =
            |bytes: Option<&[u8]>| bytes.map(|bytes| json!({ "digest": Digest::of(bytes), "size": bytes.len() }));
        json!({
            "path": self.path,
            "change": self.word(),
            "before": side(self.before),
            "after": side(self.after),
            "diff": self.unified(),
        })
    }

    pub(super) fn print<W: Write>(&self, output: &mut Output<W>) -> Result<(), Failure> {
        if let Some(text) = self.unified() {
            return print_unified(output, &text);
        }
        let side = |bytes: Option<&[u8]>| match bytes {
            Some(bytes) => format!("sha256 {} ({} bytes)", Digest::of(bytes), bytes.len()),
            None => "none".to_owned(),
        };
        let path = output.line(self.path).into_owned();
        writeln!(output.out, "binary {path} {}", self.word())?;
        writeln!(output.out, "- {}\n+ {}", side(self.before), side(self.after))?;
        Ok(())
    }
}

pub(crate) fn unified(before: &str, after: &str, name_before: &str, name_after: &str) -> String {
    let difference = TextDiff::configure().timeout(PATIENCE).diff_lines(before, after);
    let text = difference.unified_diff().header(name_before, name_after).to_string();
    // A new empty file has no lines to show.
    if text.is_empty() { format!("--- {name_before}\n+++ {name_after}\n") } else { text }
}

pub(crate) fn print_unified<W: Write>(output: &mut Output<W>, text: &str) -> Result<(), Failure> {
    const REMOVED: Style = AnsiColor::Red.on_default();
    const ADDED: Style = AnsiColor::Green.on_default();
    const PLACE: Style = AnsiColor::Cyan.on_default();
    for line in text.split_inclusive('\n') {
        let style = match line.as_bytes() {
            [b'-', b'-', b'-', ..] | [b'+', b'+', b'+', ..] => Style::new().bold(),
            [b'-', ..] => REMOVED,
            [b'+', ..] => ADDED,
            [b'@', ..] => PLACE,
            _ => Style::new(),
        };
        let line = output.text(line).into_owned();
        let line = line.strip_suffix('\n').unwrap_or(&line);
        let line = output.styled(style, line);
        writeln!(output.out, "{line}")?;
    }
    Ok(())
}

/// Reads the files of a channel, or of a revision of it, by the address of its store.
pub(crate) async fn tree(word: &str) -> Result<MemoryTree, Failure> {
    let place = Place::with_revision(&PlaceArguments { store: Some(word.to_owned().into()), url: None })?;
    let read = async |store: &Connection| Ok(place.waiting(store.tree(place.channel(), place.revision())).await?.1);
    place.using(read).await
}

pub(crate) async fn run(arguments: &DiffArguments) -> Result<(), Failure> {
    let names = &arguments.words.names;
    // Without a store, two names of folders can only be those.
    let are_folders = arguments.words.library.is_missing() && names.iter().all(|name| Path::new(name).is_dir());
    let side = |name: &String| if are_folders { Ok(Side::Folder(PathBuf::from(name))) } else { Side::parse(name) };
    let sides = [side(&names[0])?, side(&names[1])?];
    let compared = match sides {
        [Side::Folder(before), Side::Folder(after)] => {
            let (before, after) = (folder(before)?, folder(after)?);
            let view =
                if arguments.rendered { Some(rendered::changed(&before.1, &after.1, None).await?) } else { None };
            (before, after, view)
        }
        [before, after] => {
            let place = place(arguments)?;
            let read = async |store: &Connection| {
                let (before, after) = (before.read(&place, store).await?, after.read(&place, store).await?);
                if !arguments.rendered {
                    return Ok((before, after, None));
                }
                // Calls of the state before, or of the channel that a folder is compared with.
                let name = |side: &(String, MemoryTree)| side.0.split_once('@')?.0.parse::<ChannelName>().ok();
                let channel = name(&before).or_else(|| name(&after)).unwrap_or_else(|| place.channel().clone());
                let view = rendered::changed(&before.1, &after.1, Some((store, &channel))).await?;
                Ok((before, after, Some(view)))
            };
            place.using(read).await?
        }
    };
    let ((name_before, before), (name_after, after), view) = compared;
    let files = FileDifference::between(&before, &after);
    if arguments.json {
        let mut json = json!({ "from": name_before, "to": name_after });
        json["files"] = files.iter().map(|file| file.to_json()).collect();
        if let Some(view) = view {
            view.add_to(&mut json);
        }
        return report::print_json(&json);
    }
    let mut output = Output::stdout();
    let is_same = match view {
        Some(view) => {
            view.print(&mut output)?;
            view.is_empty()
        }
        None => {
            files.iter().try_for_each(|file| file.print(&mut output))?;
            files.is_empty()
        }
    };
    if is_same {
        let what = if arguments.rendered { "prompts" } else { "files" };
        let names = output.line(&format!("the {what} of {name_before} and {name_after} are the same")).into_owned();
        writeln!(output.out, "{names}")?;
    }
    Ok(output.out.flush()?)
}

fn place(arguments: &DiffArguments) -> Result<Place, Failure> {
    Place::new(&arguments.words.library, arguments.channel.as_ref()).map_err(|failure| match &failure.help {
        Some(help) if arguments.words.library.is_missing() => {
            let help = format!("{help}; a folder is a path such as `./prompts`");
            failure.help(help)
        }
        _ => failure,
    })
}

/// Reads a folder; returns its name too.
fn folder(path: PathBuf) -> Result<(String, MemoryTree), Failure> {
    let read = read_served_tree(&path).map_err(|error| Failure::new(Exit::Library, error.to_string()))?;
    let (tree, left_out) = read;
    let line = |found: &Diagnostic| format!("left out {}: {}", found.location.source.path, found.message);
    note(&left_out.iter().map(line).collect::<Vec<_>>());
    Ok((path.display().to_string(), tree))
}

/// Reads a folder as `publish` does: without the store itself, if it stands there.
fn folder_apart(path: PathBuf, place: &Place) -> Result<(String, MemoryTree), Failure> {
    let own = place.own_files(&path);
    let (name, tree) = folder(path)?;
    Ok((name, tree.with(own.iter().map(|path| (path.as_str(), None)))))
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Side {
    Folder(PathBuf),
    Revision(u64),
    Pinned(ChannelName, u64),
    Name(String),
}

impl Side {
    fn parse(word: &str) -> Result<Side, Failure> {
        if word.starts_with('.') || word.contains(['/', '\\']) {
            return Ok(Side::Folder(PathBuf::from(word)));
        }
        let revision = |text: &str| {
            text.parse().map_err(|_| {
                Failure::new(
                    Exit::Usage,
                    format!("`{word}` is not a revision: expected a number, as in `12` or `staging@12`"),
                )
            })
        };
        match word.split_once('@') {
            Some((channel, number)) => Ok(Side::Pinned(channel.parse()?, revision(number)?)),
            None if !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit()) => {
                Ok(Side::Revision(revision(word)?))
            }
            None => Ok(Side::Name(word.to_owned())),
        }
    }

    async fn read(self, place: &Place, store: &Connection) -> Result<(String, MemoryTree), Failure> {
        let (channel, revision) = match self {
            Side::Folder(path) => return folder_apart(path, place),
            Side::Revision(revision) => (place.channel().clone(), Some(revision)),
            Side::Pinned(channel, revision) => (channel, Some(revision)),
            Side::Name(name) => match name.parse::<ChannelName>() {
                Ok(channel) if store.all(&op::ListChannels {}).await?.iter().any(|known| known.name == channel) => {
                    (channel, None)
                }
                Ok(_) | Err(_) if PathBuf::from(&name).is_dir() => return folder_apart(PathBuf::from(name), place),
                Ok(channel) => {
                    let message = format!("neither a channel nor a folder has the name `{channel}`");
                    return Err(Failure::new(Exit::NotFound, message)
                        .help(format!("{} lists the channels", place.command("policy"))));
                }
                Err(error) => return Err(error.into()),
            },
        };
        let (head, tree) = place.waiting(store.tree(&channel, revision)).await?;
        Ok((format!("{channel}@{}", head.revision), tree))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_have_unified_diffs() {
        let difference = FileDifference { path: "a.md", before: Some(b"one\ntwo\n"), after: Some(b"one\n2\n") };
        assert_eq!(difference.unified().as_deref(), Some("--- a/a.md\n+++ b/a.md\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"));
        let added = FileDifference { path: "b.md", before: None, after: Some(b"") };
        assert_eq!(added.unified().as_deref(), Some("--- /dev/null\n+++ b/b.md\n"));
    }

    #[test]
    fn contents_that_are_not_text_have_digests() {
        for bytes in [&b"\xff\xfe"[..], b"a\0b"] {
            let difference = FileDifference { path: "a.png", before: Some(b"text"), after: Some(bytes) };
            assert_eq!(difference.unified(), None);
            let json = difference.to_json();
            assert_eq!((&json["diff"], &json["after"]["size"]), (&Value::Null, &json!(bytes.len())));
            assert_eq!(json["after"]["digest"], json!(Digest::of(bytes)));
        }
    }
}

#[cfg(test)]
mod diff_tests {
    use super::*;

    #[test]
    fn sides_are_revisions_channels_or_folders() {
        let channel = |name: &str| name.parse().expect("a channel");
        for (word, expected) in [
            ("12", Side::Revision(12)),
            ("staging@12", Side::Pinned(channel("staging"), 12)),
            ("staging", Side::Name("staging".to_owned())),
            ("./12", Side::Folder("./12".into())),
            (".", Side::Folder(".".into())),
            ("a/b@1", Side::Folder("a/b@1".into())),
        ] {
            assert_eq!(Side::parse(word), Ok(expected), "{word}");
        }
        for word in ["staging@", "staging@new", "@12", "Staging@1", "99999999999999999999999"] {
            assert!(Side::parse(word).is_err_and(|failure| failure.exit == Exit::Usage), "{word}");
        }
    }
}

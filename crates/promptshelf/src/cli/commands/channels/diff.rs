//! `promptshelf diff`: compares revisions and folders.

use std::{io::Write, path::PathBuf};

use promptshelf_core::Diagnostic;
use promptshelf_source::{MemoryTree, read_served_tree};
use promptshelf_store::ChannelName;
use promptshelf_wire::op;
use serde_json::json;

use super::{access::Place, connection::Connection, rendered, report, unified::FileDifference};
use crate::{
    args::channels::DiffArguments,
    exit::{Exit, Failure},
    output::{Output, note},
};

pub(crate) async fn run(arguments: &DiffArguments) -> Result<(), Failure> {
    let sides = [Side::parse(&arguments.before)?, Side::parse(&arguments.after)?];
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
    Place::new(&arguments.place, arguments.channel.as_ref()).map_err(|failure| match &failure.help {
        Some(help) if arguments.place.is_missing() => {
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
            Side::Folder(path) => return folder(path),
            Side::Revision(revision) => (place.channel().clone(), Some(revision)),
            Side::Pinned(channel, revision) => (channel, Some(revision)),
            Side::Name(name) => match name.parse::<ChannelName>() {
                Ok(channel)
                    if store.get(&op::ListChannels {}).await?.channels.iter().any(|known| known.name == channel) =>
                {
                    (channel, None)
                }
                Ok(_) | Err(_) if PathBuf::from(&name).is_dir() => return folder(PathBuf::from(name)),
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

//! The mark of each written file with its digest, origin and path. It distinguishes files of `sync` and `export` from
//! others, and edited files from unchanged ones, without any other state.

use std::{
    fs,
    path::{Component, Path, PathBuf},
};

use promptshelf_author::ExportFormat;
use promptshelf_source::Mark;

use crate::{
    command_line,
    exit::{Exit, Failure},
    source::Source,
    state::{self, digest},
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    text: String,
    earlier: String,
    name: Option<String>,
    to: PathBuf,
    /// Whether other libraries may have the same text: it is the name of a folder.
    is_ambiguous: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    Same,
    /// This library, under a mark of an earlier release, or from a place that it has left.
    Moved,
    Other,
}

impl Origin {
    /// Returns the origin of prompts that are written to a project. `name` is that of the library.
    pub(crate) fn of(source: &Source, to: &Path, name: Option<&str>) -> Origin {
        let mut is_ambiguous = false;
        let (text, earlier, last) = match source {
            Source::Folder(folder) => {
                let (folder, to) = (canonical(folder), canonical(to));
                let last = folder.file_name().map(|name| name.to_string_lossy().into_owned());
                let id = name.map(str::to_owned).unwrap_or_else(|| {
                    let (last, repository) = (last.as_deref().unwrap_or("library"), repository(&folder));
                    is_ambiguous = repository.is_none() && !folder.starts_with(&to);
                    repository.map_or_else(|| last.to_owned(), |repository| format!("{last}-{repository}"))
                });
                let (text, earlier) = match folder.strip_prefix(&to) {
                    // A path inside the project is the same for everyone who has the project.
                    Ok(path) if path.as_os_str().is_empty() => (".".to_owned(), "./".to_owned()),
                    Ok(path) => (format!("./{}", portable(path)), format!("./{}", path.display())),
                    Err(_) => (format!("library:{id}"), folder.display().to_string()),
                };
                (text, earlier, last)
            }
            Source::Server(endpoint) | Source::Configured { endpoint, .. } => {
                let text = endpoint.to_string();
                match endpoint.sign_in_url() {
                    Some(_) => (without_secrets(&text), without_secrets(&text), None),
                    None => {
                        let program = text.split_whitespace().next().unwrap_or_default();
                        let name = program.rsplit(['/', '\\']).next().unwrap_or(program);
                        (format!("command:{name}"), program.to_owned(), None)
                    }
                }
            }
        };
        Origin {
            text: word(&text),
            earlier: word(&earlier),
            name: last.as_deref().map(word),
            to: canonical(to),
            is_ambiguous,
        }
    }

    /// Remembers which library writes to the project under this origin. A folder without a name and a repository has no
    /// identity but its place, which the mark does not have: only this machine knows of two with the same name.
    ///
    /// # Errors
    ///
    /// If another folder, which still exists, writes there under the same origin.
    pub(crate) fn claim(&self, source: &Source) -> Result<(), Failure> {
        let Source::Folder(folder) = source else { return Ok(()) };
        let folder = canonical(folder);
        let Some(state) = state::folder().filter(|_| self.is_ambiguous) else { return Ok(()) };
        let key = state::digest(&format!("{}\0{}", self.to.display(), self.text));
        let record = state.join("sync").join(format!("{}.library", &key[..32]));
        let own = folder.display().to_string();
        match fs::read_to_string(&record) {
            Ok(other) if other != own && Path::new(&other).is_dir() => {
                let message = format!(
                    "{} has files of another library with the name of this one: {}",
                    command_line::path(&self.to),
                    command_line::path(Path::new(&other))
                );
                let help = format!(
                    "give one of them a name: `name = \"…\"` under [server] in {}",
                    command_line::path(&folder.join(promptshelf_source::syntax::LIBRARY_FILE))
                );
                Err(Failure::new(Exit::Conflict, message).help(help))
            }
            Ok(known) if known == own => Ok(()),
            _ => {
                state::write(&record, &own).ok();
                Ok(())
            }
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the owner of files with these words in their mark. `is_earlier`: an earlier release wrote it.
    pub(crate) fn owner(&self, written: &str, is_earlier: bool) -> Owner {
        if !is_earlier && written == self.text {
            return Owner::Same;
        }
        let is_path = |text: &str| Path::new(text).is_absolute() || text.starts_with(['/', '\\']);
        let has_name = || written.rsplit(['/', '\\']).next().map(str::to_owned) == self.name;
        let is_earlier_place = written == self.text || written == self.earlier || (is_path(written) && has_name());
        let is_gone = || written.starts_with("./") && self.name.is_some() && !self.to.join(written).exists();
        if (is_earlier && is_earlier_place) || is_gone() { Owner::Moved } else { Owner::Other }
    }
}

fn canonical(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| std::path::absolute(path).unwrap_or_else(|_| path.to_owned()))
}

/// Returns a short digest that names the repository and the folder in it, the same in each clone; `None` without a remote
/// repository.
fn repository(folder: &Path) -> Option<String> {
    let root = folder.ancestors().find(|above| above.join(".git").exists())?;
    let git = root.join(".git");
    let configs = match fs::read_to_string(&git) {
        // A worktree has its own folder inside of that of the repository.
        Ok(link) => {
            let folder = root.join(link.strip_prefix("gitdir:")?.trim());
            vec![folder.join("config"), folder.join("../../config")]
        }
        Err(_) => vec![git.join("config")],
    };
    let config = configs.iter().find_map(|path| fs::read_to_string(path).ok())?;
    let section = config.split_once("[remote \"origin\"]")?.1;
    let lines = section.lines().map(str::trim).take_while(|line| !line.starts_with('['));
    let url =
        lines.filter_map(|line| line.split_once('=')).find(|(key, _)| key.trim() == "url")?.1.trim().to_lowercase();
    // The same repository has addresses of several protocols: `git@host:path` and `https://host/path.git`.
    let url = url.split_once("://").map_or(&*url, |(_, rest)| rest);
    let url = url.split_once('@').map_or(url, |(_, rest)| rest).replacen(':', "/", 1);
    let url = url.trim_end_matches('/').trim_end_matches(".git");
    let path = portable(folder.strip_prefix(root).ok()?);
    Some(digest(&format!("{url}\0{path}"))[..8].to_owned())
}

fn portable(path: &Path) -> String {
    let parts = path.components().filter_map(|part| match part {
        Component::Normal(part) => Some(part.to_string_lossy()),
        _ => None,
    });
    parts.collect::<Vec<_>>().join("/")
}

/// Returns a text without blanks, and without characters that end a comment.
fn word(text: &str) -> String {
    let plain = |c: char| if c.is_control() || c.is_whitespace() || matches!(c, '<' | '>') { '_' } else { c };
    text.chars().map(plain).collect()
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

pub(crate) fn signed(text: &str, format: ExportFormat, is_synced: bool, origin: &Origin, path: &str) -> String {
    let words = Mark::words(is_synced, &digest(text), origin.as_str(), path);
    match format {
        ExportFormat::Gemini => format!("# {words}\n{text}"),
        ExportFormat::Cursor => format!("{text}<!-- {words} -->\n"),
        _ => match text.strip_prefix("---\n") {
            Some(rest) => format!("---\n# {words}\n{rest}"),
            None => format!("{text}<!-- {words} -->\n"),
        },
    }
}

/// Returns whether a person changed the text below a mark. Line breaks and a byte order mark are the work of programs.
pub(crate) fn is_edited(text: &str, mark: &Mark) -> bool {
    let rest = format!("{}{}", &text[..mark.line.start], &text[mark.line.end..]);
    digest(&rest.trim_start_matches('\u{feff}').replace("\r\n", "\n")) != mark.digest
}

#[cfg(test)]
mod tests {
    use promptshelf_client::Endpoint;

    use super::*;

    fn of(url: &str) -> Origin {
        Origin::of(&Source::Server(Endpoint::url(url)), Path::new("."), None)
    }

    #[test]
    fn mark_is_found_and_edits_are_noticed() {
        for (text, format) in [
            ("---\ndescription: x\n---\n\nbody\n", ExportFormat::Claude),
            ("description = \"x\"\nprompt = \"\"\"\nx\"\"\"\n", ExportFormat::Gemini),
            ("body\n", ExportFormat::Cursor),
        ] {
            let signed = signed(text, format, true, &of("https://example.com/mcp"), "a/b.md");
            let mark = Mark::find(&signed).expect("a mark");
            assert_eq!((&*mark.origin, mark.path.as_deref()), ("https://example.com/mcp", Some("a/b.md")), "{signed}");
            assert!(!is_edited(&signed, &mark));
            let carriage = signed.replace('\n', "\r\n");
            assert!(Mark::find(&carriage).is_some_and(|mark| !is_edited(&carriage, &mark)), "{carriage}");
            for edited in [signed.replace("x", "y").replace("body", "text"), format!("{signed}more\n")] {
                assert!(Mark::find(&edited).is_some_and(|mark| is_edited(&edited, &mark)), "{edited}");
            }
        }
    }

    #[test]
    fn origin_has_no_secrets() {
        assert_eq!(of("https://ada:secret@example.com/mcp?token=t#x").as_str(), "https://example.com/mcp");
        assert_eq!(of("https://example.com/a -->b").as_str(), "https://example.com/a_--_b");
        let command = Source::Server(Endpoint::command(["/usr/local/bin/server", "--token", "t"]));
        assert_eq!(Origin::of(&command, Path::new("."), None).as_str(), "command:server");
    }

    // req: S-243
    #[test]
    fn origin_has_no_absolute_path() {
        let around = tempfile::tempdir().expect("a folder");
        let folder = |path: &str| {
            let path = around.path().join(path);
            fs::create_dir_all(&path).expect("folders");
            path
        };
        let (ada, bob) = (folder("ada/project/prompts"), folder("bob/src/project/prompts"));
        let origin = |library: &Path, to: &Path| Origin::of(&Source::Folder(library.to_owned()), to, None);
        let project = |library: &Path| library.parent().expect("a folder").to_owned();
        assert_eq!(origin(&ada, &project(&ada)).as_str(), "./prompts");
        assert_eq!(origin(&ada, &project(&ada)).as_str(), origin(&bob, &project(&bob)).as_str());
        assert_eq!(origin(&ada, &ada).as_str(), ".");
        let elsewhere = folder("elsewhere");
        assert_eq!(origin(&ada, &elsewhere).as_str(), "library:prompts");
        assert_eq!(origin(&ada, &elsewhere).as_str(), origin(&bob, &elsewhere).as_str());
        let named = Origin::of(&Source::Folder(ada.clone()), &elsewhere, Some("team"));
        assert_eq!(named.as_str(), "library:team");

        // Clones of one repository are one library; another repository has another one.
        for (clone, url) in [
            ("carol/tools", "git@example.com:team/tools.git"),
            ("dave/src/tools", "https://dave:secret@example.com/Team/tools"),
            ("other/tools", "https://example.com/other/tools.git"),
        ] {
            folder(&format!("{clone}/.git"));
            let config = format!("[core]\n\tbare = false\n[remote \"origin\"]\n\turl = {url}\n");
            fs::write(around.path().join(clone).join(".git/config"), config).expect("a file");
        }
        let of = |clone: &str| origin(&folder(&format!("{clone}/prompts")), &elsewhere).as_str().to_owned();
        assert_eq!(of("carol/tools"), of("dave/src/tools"));
        assert_ne!(of("carol/tools"), of("other/tools"));
        assert!(of("carol/tools").starts_with("library:prompts-"));

        let ours = origin(&ada, &elsewhere);
        assert_eq!(ours.owner("library:prompts", false), Owner::Same);
        for earlier in [ada.display().to_string(), "/srv/eve/prompts".to_owned()] {
            assert_eq!(ours.owner(&earlier, true), Owner::Moved, "{earlier}");
        }
        for other in ["/srv/eve/other", "https://example.com/mcp"] {
            assert_eq!(ours.owner(other, true), Owner::Other, "{other}");
        }
        let ours = origin(&ada, &project(&ada));
        assert_eq!((ours.owner("./gone", false), ours.owner("./prompts", true)), (Owner::Moved, Owner::Moved));
        assert_eq!(ours.owner("library:other", false), Owner::Other);
    }
}

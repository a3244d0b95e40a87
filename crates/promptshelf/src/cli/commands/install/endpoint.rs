//! The library or server that an entry names.

use std::path::{Path, PathBuf};

use promptshelf_author::clients::{Configuration, ConfiguredEndpoint};
use promptshelf_git::GitAddress;
use promptshelf_store::StoreUrl;

use super::InstallArguments;
use crate::{
    args::place::StoreText,
    client_config::{Places, Scope},
    commands::{
        channels::check_channel,
        serve::{NO_TOOLS, has_tools},
    },
    connect::usual_url,
    exit::{Exit, Failure},
    launcher, library,
    output::note,
    settings::{Arguments, ServerFileLocation, Settings},
    source::{HERE, is_url},
};

pub(super) enum Target {
    Command { program: String, words: Vec<Word> },
    Server { url: String, token_variable: Option<String> },
}

pub(super) enum Word {
    Plain(String),
    InProject { scheme: &'static str, path: String, suffix: String },
}

impl Word {
    fn plain(text: &str) -> Word {
        Word::Plain(text.to_owned())
    }

    fn for_client(&self, configuration: &Configuration) -> String {
        match self {
            Word::Plain(text) => text.clone(),
            Word::InProject { scheme, path, suffix } => {
                format!("{scheme}{}{path}{suffix}", configuration.project_prefix)
            }
        }
    }
}

impl Target {
    pub(super) fn for_client(&self, configuration: &Configuration) -> ConfiguredEndpoint {
        match self {
            Target::Command { program, words } => {
                let arguments = words.iter().map(|word| word.for_client(configuration)).collect();
                ConfiguredEndpoint::command(program.clone(), arguments)
            }
            Target::Server { url, token_variable } => ConfiguredEndpoint::url(url.clone(), token_variable.clone()),
        }
    }
}

pub(super) async fn endpoint(arguments: &InstallArguments, places: &Places) -> Result<Target, Failure> {
    let is_only_for = |what: &str, of: &str| {
        Err(Failure::new(Exit::Usage, format!("{what} is for {of}")).help("leave it out, or name another LIBRARY"))
    };
    match arguments.url() {
        Some(_) if arguments.config.is_some() => is_only_for("--config", "a library that the client serves to itself"),
        Some(_) if arguments.tools => is_only_for("--tools", "a library that the client serves to itself"),
        None if arguments.token_env.is_some() => is_only_for("--token-env", "the URL of a server"),
        Some(url) => Ok(Target::Server { url: checked_url(url)?, token_variable: arguments.token_env.clone() }),
        None => command(arguments, places).await,
    }
}

fn checked_url(url: &str) -> Result<String, Failure> {
    let usage = |message: &str| Failure::new(Exit::Usage, message);
    if !is_url(url) || url.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Err(usage("expected a URL such as https://example.com/mcp"));
    }
    let authority = url.split_once("://").map_or("", |(_, rest)| rest.split(['/', '?', '#']).next().unwrap_or(rest));
    if authority.is_empty() {
        return Err(usage("expected a URL with a host, such as https://example.com/mcp"));
    }
    if authority.contains('@') {
        return Err(usage("the URL contains a name or password, which clients would store in their files")
            .help("leave it out; clients sign in, or read a token with --token-env"));
    }
    Ok(match usual_url(url) {
        Some(usual) => {
            note(&[format!("using {usual}, the usual MCP endpoint of a server")]);
            usual
        }
        None => url.to_owned(),
    })
}

/// Returns the command line of a server on stdio, after a check of the library and settings that it names.
async fn command(arguments: &InstallArguments, places: &Places) -> Result<Target, Failure> {
    let mut words = vec![Word::plain("serve"), Word::plain("--stdio")];
    if arguments.tools {
        words.push(Word::plain("--tools"));
    }
    let scope = arguments.entry.scope;
    let mut has_sources = false;
    if let Some(config) = &arguments.config {
        has_sources = has_sources_only(arguments, config)?;
        words.push(Word::plain("--config"));
        words.push(path_word("", config, "", scope, places)?);
    }
    if !has_sources {
        words.push(library(arguments.library().unwrap_or(Path::new(HERE)), arguments.tools, scope, places).await?);
    }
    // A project's file is shared: the program is found in PATH. Clients with windows do not have the PATH of a shell.
    let program = match launcher::words() {
        // The program of a cache can go away; its package manager brings it again.
        [manager, rest @ ..] if !rest.is_empty() => {
            words.splice(..0, rest.iter().map(|word| Word::plain(word)));
            // Windows starts the script `npx.cmd` by its shell only.
            if cfg!(windows) && *manager == "npx" {
                words.splice(..0, [Word::plain("/c"), Word::plain(manager)]);
                "cmd".to_owned()
            } else {
                (*manager).to_owned()
            }
        }
        _ if scope == Scope::Project => "promptshelf".to_owned(),
        _ => text(&program()?)?,
    };
    Ok(Target::Command { program, words })
}

/// Checks `server.toml`. Returns whether its sources are served, because no library is named.
fn has_sources_only(arguments: &InstallArguments, config: &Path) -> Result<bool, Failure> {
    let line =
        Arguments { library: arguments.library().map(Path::to_owned), tools: arguments.tools, ..Arguments::default() };
    // The client starts the server without the environment of this shell.
    let environment = |_: &str| None;
    let location = ServerFileLocation::find(Some(config), &environment);
    let settings = Settings::read(&location, &line, &environment)?;
    Ok(!settings.fixed.library.sources().is_empty())
}

async fn library(named: &Path, tools: bool, scope: Scope, places: &Places) -> Result<Word, Failure> {
    match named.to_str() {
        Some(word) if StoreUrl::is_meant(word) => store(word, scope, places).await,
        word => {
            let opened = library::open(named)?;
            library::note_errors(&opened, named);
            if opened.catalog().prompts().is_empty() {
                note(&[format!("the library {} has no prompts yet", named.display())]);
            } else if tools && !has_tools(&opened) {
                note(&[NO_TOOLS.to_owned()]);
            }
            match word.filter(|word| GitAddress::is_meant(word)) {
                Some(address) => Ok(Word::plain(address)),
                None => path_word("", named, "", scope, places),
            }
        }
    }
}

async fn store(word: &str, scope: Scope, places: &Places) -> Result<Word, Failure> {
    let (url, channel) = word.split_once('#').map_or((word, ""), |(url, _)| (url, &word[url.len()..]));
    let parsed: Result<StoreUrl, _> = url.parse();
    if parsed.is_ok_and(|url| url.has_password()) {
        let message = "the URL contains a password, which clients would store in their files";
        return Err(Failure::new(Exit::Usage, message).help("leave it out, and write it to ~/.pgpass"));
    }
    check_channel(&StoreText(word.to_owned())).await?;
    let Some(path) = url.strip_prefix("sqlite:") else { return Ok(Word::plain(word)) };
    // `sqlite:///a` is another spelling of `sqlite:/a`.
    let path = path.strip_prefix("//").unwrap_or(path);
    let found = path_word("sqlite:", Path::new(path), channel, scope, places)?;
    match &found {
        Word::Plain(word) if word.matches('#').count() > usize::from(!channel.is_empty()) => {
            let message = format!("the path {path} cannot be named in an address: a folder above it contains `#`");
            Err(Failure::new(Exit::Usage, message).help("move the store"))
        }
        _ => Ok(found),
    }
}

/// Returns the word for a file or folder: for a user, absolute; for a project, relative to its folder. Its file is shared,
/// and a path outside of the project does not exist on the machines of others.
fn path_word(scheme: &'static str, path: &Path, suffix: &str, scope: Scope, places: &Places) -> Result<Word, Failure> {
    let absolute = path
        .canonicalize()
        .map(plain)
        .map_err(|error| Failure::new(Exit::Library, format!("{} cannot be found: {error}", path.display())))?;
    let project = places.project.canonicalize().map(plain).unwrap_or_else(|_| places.project.clone());
    match absolute.strip_prefix(&project).ok().filter(|_| scope == Scope::Project) {
        Some(inside) => {
            let is_here = inside.as_os_str().is_empty();
            let path = if is_here { HERE.to_owned() } else { text(inside)?.replace('\\', "/") };
            Ok(Word::InProject { scheme, path, suffix: suffix.to_owned() })
        }
        None if scope == Scope::Project => {
            let (path, project) = (absolute.display(), project.display());
            let message = format!("{path} is outside of the project {project}, whose file other people use too");
            Err(Failure::new(Exit::Usage, message).help(
                "move it into the project, or name a git repository or a URL; `--scope user` changes your own file",
            ))
        }
        None => Ok(Word::Plain(format!("{scheme}{}{suffix}", text(&absolute)?))),
    }
}

fn text(path: &Path) -> Result<String, Failure> {
    path.to_str()
        .map(str::to_owned)
        .ok_or_else(|| Failure::new(Exit::Usage, format!("the path {} is not UTF-8 text", path.display())))
}

/// Returns the path of this program. The one in `PATH` stays the same when a package manager replaces the target of its
/// link.
fn program() -> Result<PathBuf, Failure> {
    let this = std::env::current_exe()?;
    let folders = std::env::var_os("PATH").unwrap_or_default();
    Ok(in_path(&this, std::env::split_paths(&folders)).unwrap_or(this))
}

/// Returns the first program of this name in the folders, if it is this one, directly or by links.
fn in_path(this: &Path, folders: impl Iterator<Item = PathBuf>) -> Option<PathBuf> {
    let name = format!("promptshelf{}", std::env::consts::EXE_SUFFIX);
    let target = this.canonicalize().ok()?;
    let mut found = folders.filter(|folder| folder.is_absolute()).map(|folder| folder.join(&name));
    found.find(|path| path.is_file()).filter(|path| path.canonicalize().is_ok_and(|it| it == target))
}

/// Removes the prefix of extended paths on Windows, which other programs may not accept.
fn plain(path: PathBuf) -> PathBuf {
    match path.to_str().and_then(|path| path.strip_prefix(r"\\?\")) {
        Some(rest) if !rest.starts_with("UNC") => PathBuf::from(rest),
        _ => path,
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn program_is_named_as_path_finds_it() {
        let around = tempfile::tempdir().expect("a folder");
        let (cellar, bin) = (around.path().join("1.0"), around.path().join("bin"));
        for folder in [&cellar, &bin] {
            std::fs::create_dir(folder).expect("a folder");
        }
        let target = cellar.join("promptshelf");
        std::fs::write(&target, "").expect("a file");
        let link = bin.join("promptshelf");
        std::os::unix::fs::symlink(&target, &link).expect("a link");
        assert_eq!(in_path(&target, [bin.clone()].into_iter()), Some(link));
        assert_eq!(in_path(&target, [around.path().to_owned()].into_iter()), None);
        // Another program of that name is not this one.
        std::fs::write(around.path().join("promptshelf"), "").expect("a file");
        assert_eq!(in_path(&target, [around.path().to_owned(), bin].into_iter()), None);
    }
}

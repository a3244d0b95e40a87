//! The library or server that an entry names.

use std::path::{Path, PathBuf};

use promptshelf_author::clients::{Configuration, ConfiguredEndpoint};

use crate::{
    args::reach::InstallArguments,
    client_config::{Places, Scope},
    connect::usual_url,
    exit::{Exit, Failure},
    library,
    output::note,
    source::{HERE, is_url},
};

/// The library or server, before it is written in the dialect of a client.
pub(super) enum Target {
    Library {
        program: String,
        /// The path to write, without a prefix.
        path: String,
        /// Whether the path is relative to the project.
        is_relative: bool,
    },
    Server {
        url: String,
        token_variable: Option<String>,
    },
}

impl Target {
    pub(super) fn for_client(&self, configuration: &Configuration) -> ConfiguredEndpoint {
        match self {
            Target::Library { program, path, is_relative } => {
                let prefix = if *is_relative { configuration.project_prefix } else { "" };
                let arguments = vec!["serve".to_owned(), "--stdio".to_owned(), format!("{prefix}{path}")];
                ConfiguredEndpoint::command(program.clone(), arguments)
            }
            Target::Server { url, token_variable } => ConfiguredEndpoint::url(url.clone(), token_variable.clone()),
        }
    }
}

/// Checks the library or URL of the arguments.
pub(super) fn endpoint(arguments: &InstallArguments, places: &Places) -> Result<Target, Failure> {
    match &arguments.url {
        Some(url) => Ok(Target::Server { url: checked_url(url)?, token_variable: arguments.token_env.clone() }),
        None => library_endpoint(arguments, places),
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

fn library_endpoint(arguments: &InstallArguments, places: &Places) -> Result<Target, Failure> {
    let folder = arguments.library.as_deref().unwrap_or(Path::new(HERE));
    let opened = library::open(folder)?;
    library::note_errors(&opened, folder);
    if opened.catalog().prompts().is_empty() {
        note(&[format!("the library {} has no prompts yet", folder.display())]);
    }
    let absolute = folder.canonicalize().map(plain).map_err(|error| {
        Failure::new(Exit::Library, format!("the folder {} cannot be found: {error}", folder.display()))
    })?;
    let project = places.project.canonicalize().map(plain).unwrap_or_else(|_| places.project.clone());
    let inside = match arguments.entry.scope {
        Scope::Project => absolute.strip_prefix(&project).ok().map(Path::to_owned),
        Scope::User => None,
    };
    let text = |path: &Path| {
        path.to_str()
            .map(str::to_owned)
            .ok_or_else(|| Failure::new(Exit::Usage, format!("the path {} is not UTF-8 text", path.display())))
    };
    Ok(match inside {
        // A project's file is shared: the program is found in PATH, and the library from the project's folder.
        Some(path) => Target::Library {
            program: "promptshelf".to_owned(),
            path: if path.as_os_str().is_empty() { HERE.to_owned() } else { text(&path)?.replace('\\', "/") },
            is_relative: true,
        },
        // Clients with windows do not have the PATH of a shell.
        None => Target::Library { program: text(&program()?)?, path: text(&absolute)?, is_relative: false },
    })
}

fn program() -> Result<PathBuf, Failure> {
    Ok(std::env::current_exe()?)
}

/// Removes the prefix of extended paths on Windows, which other programs may not accept.
fn plain(path: PathBuf) -> PathBuf {
    match path.to_str().and_then(|path| path.strip_prefix(r"\\?\")) {
        Some(rest) if !rest.starts_with("UNC") => PathBuf::from(rest),
        _ => path,
    }
}

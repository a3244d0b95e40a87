//! `serve --edit`: when the files of a folder may be changed on the page.

use std::net::SocketAddr;

use promptshelf_server::api::FolderApi;
use promptshelf_source::EditableFolder;

use crate::{
    args::ServeArguments,
    exit::{Exit, Failure},
    settings::Settings,
};

pub(super) fn check(arguments: &ServeArguments, settings: &Settings) -> Result<(), Failure> {
    if !arguments.edit {
        return Ok(());
    }
    if settings.library.folder().is_none() {
        let message = format!("--edit is for folders, and this library is {}", settings.library);
        return Err(Failure::new(Exit::Usage, message).help("leave --edit out: the page edits channels of a store through proposals, where the API is on (--api, or [auth])"));
    }
    if settings.http.sign_in.is_none() && !settings.http.options.proxies.trusted.is_empty() {
        let message = "--edit without sign-in is for this machine only, and a proxy is configured";
        return Err(Failure::new(Exit::Address, message)
            .help("configure [auth] (see --help), or leave --edit or --trust-proxy out"));
    }
    Ok(())
}

/// The API of the folder, if it is edited.
pub(super) fn api(
    arguments: &ServeArguments,
    settings: &Settings,
    bound: SocketAddr,
) -> Result<Option<FolderApi>, Failure> {
    let Some(folder) = settings.library.folder().filter(|_| arguments.edit) else { return Ok(None) };
    if settings.http.sign_in.is_none() && !bound.ip().is_loopback() {
        let message = format!("other machines can reach {}, and --edit is on without sign-in", settings.http.address);
        return Err(Failure::new(Exit::Address, message)
            .help("configure [auth] (see --help), or listen on 127.0.0.1: everyone who reaches the port could change the files"));
    }
    let files = EditableFolder::open(folder).map_err(|error| {
        Failure::new(Exit::Library, format!("the folder {} cannot be opened: {error}", folder.display()))
    })?;
    Ok(Some(FolderApi::new(files, settings.granted_roots.iter().cloned())))
}

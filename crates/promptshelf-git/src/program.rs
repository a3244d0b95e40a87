//! Calls of git for one repository: a clean environment, no questions, and credentials for one host.

use std::{env, ffi::OsString, path::Path, time::Duration};

use crate::{
    address::GitAddress,
    call::Call,
    error::GitError,
    options::{Credentials, GitOptions},
};

/// ssh without questions. An unknown host is refused.
const SSH: &str = "ssh -oBatchMode=yes -oStrictHostKeyChecking=yes -oConnectTimeout=20";

/// The credential helper of a file. git runs it with the shell that comes with git. Only get is answered, and the secret
/// is in the environment of git, which other users cannot read.
const HELPER: &str = "!f() { test \"$1\" = get && printf 'username=%s\\npassword=%s\\n' \"$PROMPTSHELF_GIT_USER\" \
                      \"$PROMPTSHELF_GIT_PASSWORD\"; }; f";

/// The user of a token without one. GitHub, GitLab and Gitea ignore it.
const TOKEN_USER: &str = "x-access-token";

#[derive(Clone, Debug)]
pub(crate) struct Program {
    address: GitAddress,
    credentials: Credentials,
    timeout: Duration,
}

impl Program {
    pub(crate) fn new(options: &GitOptions) -> Program {
        Program { address: options.address.clone(), credentials: options.credentials.clone(), timeout: options.timeout }
    }

    /// Prepares a call in a folder that is not inside of a repository.
    pub(crate) fn outside(&self, folder: &Path, name: &'static str) -> Call {
        let mut call = self.call(name);
        call.command.current_dir(folder);
        if let Some(parent) = folder.parent() {
            call.command.env("GIT_CEILING_DIRECTORIES", parent);
        }
        call
    }

    pub(crate) fn inside(&self, repository: &Path, name: &'static str) -> Call {
        let mut call = self.call(name);
        call.command.current_dir(repository).env("GIT_DIR", repository);
        call
    }

    pub(crate) fn ssh_keygen(&self, folder: &Path) -> Call {
        let mut call = cleaned(Call::of_program("ssh-keygen", "ssh-keygen", self.timeout));
        call.command.current_dir(folder);
        call
    }

    fn call(&self, name: &'static str) -> Call {
        let mut call = cleaned(Call::new(name, self.timeout));
        call.command
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_ATTR_NOSYSTEM", "1")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_ALLOW_PROTOCOL", self.address.protocol())
            .env("GIT_NO_LAZY_FETCH", "1")
            .env("GIT_NO_REPLACE_OBJECTS", "1")
            .env("GIT_OPTIONAL_LOCKS", "0")
            .env("GIT_SSH_COMMAND", SSH);
        let configuration = vec![
            ("core.hooksPath".to_owned(), "/dev/null".to_owned()),
            ("core.fsmonitor".to_owned(), "false".to_owned()),
            ("credential.helper".to_owned(), String::new()),
            ("fetch.unpackLimit".to_owned(), "1".to_owned()),
            ("gc.autoDetach".to_owned(), "false".to_owned()),
            ("maintenance.autoDetach".to_owned(), "false".to_owned()),
        ];
        call.configure(configuration);
        call
    }

    pub(crate) fn sign_in(&self, mut call: Call) -> Result<Call, GitError> {
        let host = self.address.http_host();
        if host.is_some() && self.credentials != Credentials::None && self.address.is_open() {
            let reason = "credentials would be sent without encryption: use `git+https`".to_owned();
            return Err(GitError::InvalidOptions { reason });
        }
        match (&self.credentials, host) {
            (Credentials::None, _) => {}
            // The helper is bound to the host: another one, after a redirection, does not receive the secret.
            (Credentials::Helper(helper), host) => {
                let key =
                    host.map_or_else(|| "credential.helper".to_owned(), |host| format!("credential.{host}.helper"));
                call.configure(vec![(key, helper.clone())]);
            }
            (Credentials::File(path), Some(host)) => {
                let (user, password) = read_credentials(path)?;
                call.configure(vec![(format!("credential.{host}.helper"), HELPER.to_owned())]);
                call.command.env("PROMPTSHELF_GIT_USER", &user).env("PROMPTSHELF_GIT_PASSWORD", &password);
                call.secrets.push(password);
            }
            (Credentials::File(path), None) if self.address.protocol() == "ssh" => {
                let key = path.to_string_lossy().replace('\'', r"'\''");
                call.command.env("GIT_SSH_COMMAND", format!("{SSH} -oIdentitiesOnly=yes -i '{key}'"));
            }
            (Credentials::File(_), None) => {
                let reason = "a repository on this machine has no credentials: remove `credentials`".to_owned();
                return Err(GitError::InvalidOptions { reason });
            }
        }
        Ok(call)
    }
}

/// Removes variables: secrets of this server are not for helpers and ssh, and the configuration comes from here alone.
fn cleaned(mut call: Call) -> Call {
    for (variable, _) in env::vars_os() {
        if is_removed(&variable) {
            call.command.env_remove(variable);
        }
    }
    call.command.env("LC_ALL", "C");
    call
}

/// Whether a variable of this process is kept from git: its own variables, programs that ask for passwords, and the
/// settings of this server.
fn is_removed(variable: &OsString) -> bool {
    let name = variable.to_string_lossy();
    name.starts_with("GIT_") || name.starts_with("PROMPTSHELF_") || name.starts_with("PG") || name == "SSH_ASKPASS"
}

/// Reads `USER:PASSWORD`, or a token.
fn read_credentials(path: &Path) -> Result<(String, String), GitError> {
    let invalid = |reason: String| GitError::InvalidOptions { reason };
    let text = std::fs::read_to_string(path)
        .map_err(|error| invalid(format!("cannot read the credentials in {}: {error}", path.display())))?;
    let line = text.lines().next().unwrap_or_default().trim();
    if line.is_empty() || line.contains(char::is_control) {
        let path = path.display();
        return Err(invalid(format!("the first line of {path} is empty: expected `USER:PASSWORD`, or a token")));
    }
    Ok(match line.split_once(':') {
        Some((user, password)) => (user.to_owned(), password.to_owned()),
        None => (TOKEN_USER.to_owned(), line.to_owned()),
    })
}

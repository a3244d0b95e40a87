//! `promptshelf completions` and `man`, generated from the command line, and `--version --json`.

use std::{fs, io};

use crate::{
    args::{
        CommandLine,
        reach::{CompletionsArguments, ManArguments},
    },
    exit::{Exit, Failure},
};

const PROGRAM: &str = "promptshelf";

pub(crate) fn completions(arguments: &CompletionsArguments) -> Result<(), Failure> {
    // Generated in memory, because the generator panics if the pipe is closed.
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut CommandLine::complete(), PROGRAM, &mut script);
    let mut stdout = io::stdout().lock();
    Ok(io::Write::write_all(&mut stdout, &script).and_then(|()| io::Write::flush(&mut stdout))?)
}

pub(crate) fn man(arguments: &ManArguments) -> Result<(), Failure> {
    let folder = &arguments.folder;
    let written = fs::create_dir_all(folder).and_then(|()| clap_mangen::generate_to(CommandLine::complete(), folder));
    written.map_err(|error| Failure::new(Exit::Failed, format!("{} cannot be written: {error}", folder.display())))
}

/// `promptshelf --version --json`: prints the version, the protocol revisions, the platform and the commit of
/// the program; the last one is null for a build from a checkout.
pub(crate) fn version() -> Result<(), Failure> {
    let version = serde_json::json!({
        "name": env!("CARGO_PKG_NAME"),
        "version": env!("CARGO_PKG_VERSION"),
        "protocol": promptshelf_mcp::Revision::ALL.map(promptshelf_mcp::Revision::as_str),
        "os": std::env::consts::OS,
        "arch": std::env::consts::ARCH,
        "target": env!("PROMPTSHELF_TARGET"),
        "commit": option_env!("PROMPTSHELF_COMMIT"),
    });
    let mut stdout = io::stdout().lock();
    Ok(io::Write::write_all(&mut stdout, format!("{version}\n").as_bytes())?)
}

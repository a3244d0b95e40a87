//! `promptshelf completions` and `man`: what shells and manuals know of the commands.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use clap::Args;

use crate::{
    args::{CommandLine, complete},
    exit::{Exit, Failure},
};

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  promptshelf completions bash \\
    > ~/.local/share/bash-completion/completions/promptshelf
  promptshelf completions zsh > ~/.zfunc/_promptshelf
  promptshelf completions fish > ~/.config/fish/completions/promptshelf.fish";

#[derive(Debug, Args)]
#[command(after_help = COMPLETIONS_EXAMPLES)]
pub(crate) struct CompletionsArguments {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub(crate) struct ManArguments {
    /// The folder to write to
    #[arg(value_name = "FOLDER")]
    pub(crate) folder: PathBuf,
}

pub(crate) fn completions(arguments: &CompletionsArguments) -> Result<(), Failure> {
    let script = complete::script(arguments.shell)?;
    let mut stdout = io::stdout().lock();
    Ok(io::Write::write_all(&mut stdout, &script).and_then(|()| io::Write::flush(&mut stdout))?)
}

pub(crate) fn man(arguments: &ManArguments) -> Result<(), Failure> {
    let folder = &arguments.folder;
    let write = || {
        fs::create_dir_all(folder)?;
        clap_mangen::generate_to(CommandLine::complete(), folder)?;
        for page in fs::read_dir(folder)?.flatten().map(|entry| entry.path()).filter(|path| is_man_page(path)) {
            // What follows the options are examples, each on a line of its own.
            let text = fs::read_to_string(&page)?.replace("\n.SH EXTRA\n", "\n.SH EXAMPLES\n.nf\n");
            fs::write(&page, text)?;
        }
        Ok(())
    };
    write().map_err(|error: io::Error| {
        Failure::new(Exit::Failed, format!("{} cannot be written: {error}", folder.display()))
    })?;
    crate::output::note(&[format!("the pages are in {}", folder.display())]);
    Ok(())
}

fn is_man_page(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.starts_with("promptshelf") && name.ends_with(".1")
}

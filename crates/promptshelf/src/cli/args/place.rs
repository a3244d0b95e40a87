//! The arguments that name a store or a server with it, and who acts.

use std::{fmt, str::FromStr};

use clap::Args;

use super::words::{Names, OneProposal, Words};
use crate::exit::{Exit, Failure};

pub(crate) fn number<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| "expected a number such as 12".to_owned())
}

/// The text of a store's URL. `Debug` does not show it, because it may contain a password.
#[derive(Clone)]
pub(crate) struct StoreText(pub(crate) String);

impl From<String> for StoreText {
    fn from(text: String) -> StoreText {
        StoreText(text)
    }
}

impl fmt::Debug for StoreText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StoreText")
    }
}

#[derive(Debug, Args)]
pub(crate) struct StoreArguments {
    /// The same as LIBRARY
    #[arg(long, value_name = "STORE", env = "PROMPTSHELF_STORE", hide_env_values = true, hide = true)]
    pub(crate) store: Option<StoreText>,
}

/// The store of a command that a server can run too.
#[derive(Debug, Args)]
pub(crate) struct PlaceArguments {
    /// The same as LIBRARY
    #[arg(long, value_name = "LIBRARY", env = "PROMPTSHELF_STORE", hide_env_values = true, hide = true)]
    pub(crate) store: Option<StoreText>,

    /// The same as LIBRARY
    #[arg(long, value_name = "URL", hide = true)]
    pub(crate) url: Option<StoreText>,
}

impl<N: Names> Words<PlaceArguments, N> {
    /// Returns the number of a proposal.
    pub(crate) fn number(&self) -> Result<Option<u64>, Failure> {
        let word = self.optional_name();
        let expected = |word: &str| Failure::new(Exit::Usage, format!("`{word}` is not the number of a proposal"));
        let number = word.map(|word| word.parse().map_err(|_| expected(word))).transpose();
        number.map_err(|failure| failure.help("`promptshelf proposals` lists the open proposals"))
    }
}

impl Words<PlaceArguments, OneProposal> {
    pub(crate) fn proposal(&self) -> Result<u64, Failure> {
        // The word is required.
        self.number().map(Option::unwrap_or_default)
    }
}

impl PlaceArguments {
    /// Returns whether no store is named.
    pub(crate) fn is_missing(&self) -> bool {
        self.store.is_none() && self.url.is_none()
    }
}

#[derive(Debug, Args)]
pub(crate) struct ActorArguments {
    /// The name of the author or reviewer in history [default: the user's name; on a server that of the sign-in]
    #[arg(long = "as", value_name = "NAME")]
    pub(crate) name: Option<String>,
}

/// The arguments of commands that change a channel.
#[derive(Debug, Args)]
pub(crate) struct ChangeArguments {
    /// A description of the change
    #[arg(short = 'm', long, value_name = "TEXT", required_unless_present = "dry_run")]
    pub(crate) message: Option<String>,

    #[command(flatten)]
    pub(crate) actor: ActorArguments,

    /// Check and print the changes without storing them
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    // req: S-94
    #[test]
    fn debug_output_of_arguments_has_no_password() {
        let text = StoreText::from("postgres://ada:secret@localhost/prompts".to_owned());
        let arguments = PlaceArguments { store: Some(text.clone()), url: Some(text.clone()) };
        assert!(!format!("{arguments:?}{:?}", StoreArguments { store: Some(text) }).contains("secret"));
    }
}

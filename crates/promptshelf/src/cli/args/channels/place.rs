//! Arguments that name a store, a channel or a person.

use std::fmt;

use clap::Args;
use promptshelf_store::ChannelName;

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
    /// The store: `sqlite:PATH` or `postgres://…`
    #[arg(long, value_name = "STORE", env = "PROMPTSHELF_STORE", hide_env_values = true)]
    pub(crate) store: StoreText,
}

/// The store of a command that a server can run too.
#[derive(Debug, Args)]
pub(crate) struct PlaceArguments {
    /// The store: `sqlite:PATH` or `postgres://…`
    #[arg(long, value_name = "STORE", env = "PROMPTSHELF_STORE", hide_env_values = true)]
    pub(crate) store: Option<StoreText>,

    /// The server with the store, in place of --store: its URL, with `#CHANNEL` for another channel than production; a
    /// token in PROMPTSHELF_TOKEN is sent to it
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<StoreText>,
}

impl PlaceArguments {
    /// Returns whether no store is named.
    pub(crate) fn is_missing(&self) -> bool {
        self.store.is_none() && self.url.is_none()
    }
}

#[derive(Debug, Args)]
pub(crate) struct ChannelArguments {
    #[command(flatten)]
    pub(crate) place: PlaceArguments,

    /// The channel [default: that of STORE#CHANNEL, else production]
    #[arg(long, value_name = "CHANNEL")]
    pub(crate) channel: Option<ChannelName>,
}

#[derive(Debug, Args)]
pub(crate) struct ActorArguments {
    /// The name of the author or reviewer in history [default: the user's name; with --url that of the sign-in]
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
        assert!(!format!("{arguments:?}{:?}", StoreArguments { store: text }).contains("secret"));
    }
}

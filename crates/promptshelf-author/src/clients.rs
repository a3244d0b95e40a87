//! What real clients do with prompts, and which prompts of a library stumble
//! over it.
//!
//! One table says it all, each fact with where it was read and when: clients
//! change, and a fact that nobody can look up again is a rumour. How a server
//! could meet a client half-way is not decided here.

use std::fmt;

mod lint;
mod shape;
mod table;

pub use lint::{Incompatibility, incompatibilities, lint};
pub use table::CLIENTS;

/// One client, and what is known of it.
#[derive(Debug)]
pub struct Client {
    /// The word by which people name it on a command line.
    pub id: &'static str,
    /// Its name.
    pub name: &'static str,
    /// How it shows a prompt to people; empty where that is not known.
    pub shown_as: &'static str,
    /// What it does that an author should know.
    pub facts: &'static [Fact],
}

/// Something that a client does.
#[derive(Debug)]
pub struct Fact {
    /// What it does.
    pub quirk: Quirk,
    /// Where that was read.
    pub source: &'static str,
    /// The month in which it was read.
    pub read: &'static str,
}

/// What clients do that some prompts stumble over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Quirk {
    /// Shows no prompts at all.
    NoPrompts,
    /// Hides prompts of more arguments than this.
    MostArguments(usize),
    /// Lists prompts and never gets one.
    NeverGets,
    /// Reads the first page of a list only.
    FirstPage,
    /// Replaces what is neither a small letter, a digit, nor one of `_`, `.` and `-`.
    ReplacesInNames,
    /// Takes what stands before a `/` in a name for a server's name.
    SplitsNames,
    /// Splits what is typed at every space, inside of quotation marks too.
    SplitsValues,
    /// Gives what is typed to the required arguments, and all of it to a single one.
    FillsRequiredOnly,
    /// Lets people type one line for a value.
    OneLineValues,
    /// Sends an empty string for every argument.
    EmptyValues,
    /// Gets the prompt with `$1`, `$2` … as values and fills them in afterwards.
    Placeholders,
    /// Uses the first message only.
    FirstMessage,
    /// Uses the last message of the user only.
    LastUserMessage,
    /// Refuses a prompt that ends with the assistant.
    EndsWithUser,
    /// Joins all messages to one text, without saying who speaks.
    JoinsMessages,
    /// Marks who speaks by words inside of one text.
    LabelsRoles,
    /// Uses text only.
    TextOnly,
    /// Leaves sounds out.
    NoAudio,
    /// Leaves links out.
    NoLinks,
    /// Puts pictures in as the text of their bytes.
    ImagesAsText,
}

impl Quirk {
    /// Whether a client that does this uses prompts at all.
    fn uses_prompts(self) -> bool {
        !matches!(self, Quirk::NoPrompts | Quirk::NeverGets)
    }

    /// A word for it that never changes.
    #[must_use]
    pub fn id(self) -> &'static str {
        match self {
            Quirk::NoPrompts => "no-prompts",
            Quirk::MostArguments(_) => "most-arguments",
            Quirk::NeverGets => "never-gets",
            Quirk::FirstPage => "first-page",
            Quirk::ReplacesInNames => "replaces-in-names",
            Quirk::SplitsNames => "splits-names",
            Quirk::SplitsValues => "splits-values",
            Quirk::FillsRequiredOnly => "fills-required-only",
            Quirk::OneLineValues => "one-line-values",
            Quirk::EmptyValues => "empty-values",
            Quirk::Placeholders => "placeholders",
            Quirk::FirstMessage => "first-message",
            Quirk::LastUserMessage => "last-user-message",
            Quirk::EndsWithUser => "ends-with-user",
            Quirk::JoinsMessages => "joins-messages",
            Quirk::LabelsRoles => "labels-roles",
            Quirk::TextOnly => "text-only",
            Quirk::NoAudio => "no-audio",
            Quirk::NoLinks => "no-links",
            Quirk::ImagesAsText => "images-as-text",
        }
    }
}

impl fmt::Display for Quirk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Quirk::NoPrompts => "shows no prompts",
            Quirk::MostArguments(most) => {
                let thing = if *most == 1 { "argument" } else { "arguments" };
                return write!(f, "hides prompts of more than {most} {thing}");
            }
            Quirk::NeverGets => "lists prompts, and never gets one",
            Quirk::FirstPage => "reads the first page of the list only",
            Quirk::ReplacesInNames => "replaces every character of a name but a-z, 0-9, `_`, `.` and `-`",
            Quirk::SplitsNames => "takes what stands before a `/` in a name for the server's name",
            Quirk::SplitsValues => "splits what is typed at every space, inside quotation marks too",
            Quirk::FillsRequiredOnly => "gives what is typed to required arguments only, and all of it to a single one",
            Quirk::OneLineValues => "lets people type one line for a value",
            Quirk::EmptyValues => "sends an empty string for every argument",
            Quirk::Placeholders => "gets a prompt with `$1`, `$2` … as values, and fills them in afterwards",
            Quirk::FirstMessage => "uses the first message only",
            Quirk::LastUserMessage => "uses the user's last message only",
            Quirk::EndsWithUser => "refuses a prompt that ends with the assistant",
            Quirk::JoinsMessages => "joins all messages to one text, without saying who speaks",
            Quirk::LabelsRoles => "makes one text of all messages, with words in it that say who speaks",
            Quirk::TextOnly => "uses text only",
            Quirk::NoAudio => "leaves sounds out",
            Quirk::NoLinks => "leaves links to resources out",
            Quirk::ImagesAsText => "puts pictures in as the text of their bytes",
        };
        f.write_str(text)
    }
}

/// The client of this name, spelled as [`Client::id`] or as people spell it.
///
/// ```
/// use promptshelf_author::clients::find;
///
/// assert_eq!(find("zed").map(|client| client.name), Some("Zed"));
/// assert_eq!(find("Gemini CLI").map(|client| client.id), Some("gemini-cli"));
/// assert!(find("pencil").is_none());
/// ```
#[must_use]
pub fn find(name: &str) -> Option<&'static Client> {
    CLIENTS.iter().find(|client| client.id.eq_ignore_ascii_case(name) || client.name.eq_ignore_ascii_case(name))
}

impl Client {
    /// Whether it shows prompts at all.
    #[must_use]
    pub fn shows_prompts(&self) -> bool {
        self.facts.iter().all(|fact| fact.quirk.uses_prompts())
    }
}

//! Known behaviour of MCP clients, and the prompts that are affected by it.
//!
//! All facts are in one table. Each names its source and the month of reading, because clients change and every fact
//! must be checkable. Working around a client is not decided here; that is up to the server.

use std::fmt;

mod built_in;
mod configuration;
mod lint;
mod native;
mod shape;
mod table;

pub use built_in::built_in;
pub use configuration::{
    CONFIGURATIONS, Configuration, ConfigurationFormat, ConfiguredEndpoint, Part, TokenReference, UserFiles,
};
pub use lint::{Incompatibility, incompatibilities, lint};
pub use native::{NATIVE_FILES, NativeFiles};
pub use table::CLIENTS;

/// An MCP client and its known behaviour.
#[derive(Debug)]
pub struct Client {
    /// The name to use on a command line, such as `zed`.
    pub id: &'static str,
    /// The product's name.
    pub name: &'static str,
    /// How it shows a prompt to people; empty if unknown.
    pub shown_as: &'static str,
    /// The state of the product, such as its replacement; empty if there is nothing to note.
    pub note: &'static str,
    /// Behaviour that authors should know.
    pub facts: &'static [Fact],
}

/// One observed behaviour of a client.
#[derive(Debug)]
pub struct Fact {
    /// The behaviour.
    pub quirk: Quirk,
    /// The file, issue or page that shows it.
    pub source: &'static str,
    /// The month in which the source was read, as `2026-11`.
    pub read: &'static str,
}

/// Behaviour of clients that some prompts are incompatible with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Quirk {
    /// Shows no prompts.
    NoPrompts,
    /// Hides prompts with more arguments than this.
    MostArguments(usize),
    /// Lists prompts and never sends `prompts/get`.
    NeverGets,
    /// Reads only the first page of a list.
    FirstPage,
    /// Replaces all characters of a name except `a-z`, `0-9`, `_`, `.` and `-`.
    ReplacesInNames,
    /// Reads the part of a name before `/` as the name of a server.
    SplitsNames,
    /// Splits input at every space, even inside quotation marks.
    SplitsValues,
    /// Assigns input to required arguments only; a single required argument gets all of it.
    FillsRequiredOnly,
    /// Accepts one line of input for each value.
    OneLineValues,
    /// Sends an empty string for every argument.
    EmptyValues,
    /// Requests the prompt with `$1`, `$2` … as values and substitutes them afterwards.
    Placeholders,
    /// Uses only the first message.
    FirstMessage,
    /// Uses only the last message with role `user`.
    LastUserMessage,
    /// Rejects a prompt that ends with a message of the assistant.
    EndsWithUser,
    /// Joins all messages into one text without roles.
    JoinsMessages,
    /// Joins all messages into one text with the roles as words in it.
    LabelsRoles,
    /// Uses text only.
    TextOnly,
    /// Omits audio.
    NoAudio,
    /// Omits resource links.
    NoLinks,
    /// Inserts images as Base64 text.
    ImagesAsText,
    /// Sends all messages as one turn of the user.
    OneUserTurn,
    /// Inserts `[Resource link: …]` in place of a link.
    LinksAsText,
    /// Inserts the name of a file in place of audio.
    AudioAsName,
    /// Sends text as a JSON string, with quotation marks and escapes.
    TextAsJson,
}

impl Quirk {
    fn uses_prompts(self) -> bool {
        !matches!(self, Quirk::NoPrompts | Quirk::NeverGets)
    }

    /// Returns a stable identifier, such as `no-prompts`.
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
            Quirk::OneUserTurn => "one-user-turn",
            Quirk::LinksAsText => "links-as-text",
            Quirk::AudioAsName => "audio-as-name",
            Quirk::TextAsJson => "text-as-json",
        }
    }
}

impl fmt::Display for Quirk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Quirk::NoPrompts => "shows no prompts",
            Quirk::MostArguments(most) => {
                let thing = if *most == 1 { "argument" } else { "arguments" };
                return write!(f, "hides prompts with more than {most} {thing}");
            }
            Quirk::NeverGets => "lists prompts and never requests one",
            Quirk::FirstPage => "reads only the first page of the list",
            Quirk::ReplacesInNames => "replaces all characters of a name except a-z, 0-9, `_`, `.` and `-`",
            Quirk::SplitsNames => "reads the part of a name before `/` as the server's name",
            Quirk::SplitsValues => "splits input at every space, even inside quotation marks",
            Quirk::FillsRequiredOnly => "assigns input to required arguments only; a single one gets all of it",
            Quirk::OneLineValues => "accepts only one line of input for a value",
            Quirk::EmptyValues => "sends an empty string for every argument",
            Quirk::Placeholders => "requests the prompt with `$1`, `$2` … as values and substitutes them afterwards",
            Quirk::FirstMessage => "uses only the first message",
            Quirk::LastUserMessage => "uses only the user's last message",
            Quirk::EndsWithUser => "rejects a prompt that ends with a message of the assistant",
            Quirk::JoinsMessages => "joins all messages into one text without roles",
            Quirk::LabelsRoles => "joins all messages into one text, with the roles as words in it",
            Quirk::TextOnly => "uses only text",
            Quirk::NoAudio => "omits audio",
            Quirk::NoLinks => "omits resource links",
            Quirk::ImagesAsText => "inserts images as Base64 text",
            Quirk::OneUserTurn => "sends all messages as one turn of the user",
            Quirk::LinksAsText => "inserts `[Resource link: …]` in place of a link",
            Quirk::AudioAsName => "inserts the name of a file in place of audio",
            Quirk::TextAsJson => "sends text as a JSON string, with quotation marks and escapes such as `\\n`",
        };
        f.write_str(text)
    }
}

/// Returns the client with this [`id`](Client::id) or product name; letter case is ignored.
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
    /// Returns whether it uses prompts at all.
    #[must_use]
    pub fn shows_prompts(&self) -> bool {
        self.facts.iter().all(|fact| fact.quirk.uses_prompts())
    }
}

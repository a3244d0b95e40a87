//! What an operator decides about requests.

/// What an operator decides about requests, and can change while the server runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestOptions {
    /// The tools. Off by default.
    pub tools: ToolMode,
    /// Whether `prompts/get` with an argument that the prompt does not have is an error. By default such arguments are
    /// ignored: some clients send more than the prompt declares.
    pub refuses_unknown_arguments: bool,
}

impl RequestOptions {
    /// Returns the default with other tools.
    #[must_use]
    pub fn with_tools(tools: ToolMode) -> RequestOptions {
        RequestOptions { tools, ..RequestOptions::default() }
    }
}

/// The tools of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolMode {
    /// The capability is not declared, and its methods are not found.
    Disabled,
    /// The list is empty.
    #[default]
    Off,
    /// `find_prompt` and `use_prompt`.
    Search,
    /// One tool for each prompt, for small libraries.
    Each,
}

impl ToolMode {
    /// Returns whether there are tools, so that their list can change.
    pub(crate) fn has_tools(self) -> bool {
        matches!(self, ToolMode::Search | ToolMode::Each)
    }
}

//! The choice of tools that a server offers.

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
    pub(crate) const ALL: [ToolMode; 4] = [ToolMode::Disabled, ToolMode::Off, ToolMode::Search, ToolMode::Each];

    /// Returns whether there are tools, so that their list can change.
    pub(crate) fn has_tools(self) -> bool {
        matches!(self, ToolMode::Search | ToolMode::Each)
    }
}

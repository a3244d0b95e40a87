//! Owners and collections of a prompt.

/// The people in charge of a prompt, and the collections that it belongs to. They help people to find prompts, and change
/// neither access nor messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grouping {
    /// Names of people or teams.
    pub owners: Vec<String>,
    /// Names of collections, across folders.
    pub collections: Vec<String>,
}

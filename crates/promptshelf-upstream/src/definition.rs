//! The definition of a prompt as another server lists it, cleaned and bounded.

use promptshelf_client::PromptInfo;
use promptshelf_core::{ArgumentDefinition, invisible::stripped};
use serde::{Deserialize, Serialize};

const VIA: &str = "dev.promptshelf/via";

const SENSITIVE: &str = "promptshelf/sensitive";

pub(crate) const MAX_HOPS: usize = 4;

const MAX_ID_BYTES: usize = 64;

/// The parts of a prompt that another server lists and that are passed on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Definition {
    /// The display name.
    pub title: Option<String>,
    /// The purpose of the prompt.
    pub description: Option<String>,
    /// The arguments.
    pub arguments: Vec<Argument>,
}

/// An argument as another server lists it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Argument {
    /// The name.
    pub name: String,
    /// The display name.
    pub title: Option<String>,
    /// The purpose of the argument.
    pub description: Option<String>,
    /// Whether a call needs it.
    pub required: bool,
    /// Whether its values are secret, as a server of this program lists it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sensitive: bool,
}

impl Definition {
    /// Takes over the entry of a list, without control characters and invisible ones.
    pub(crate) fn of(prompt: &PromptInfo) -> Definition {
        Definition {
            title: clean(prompt.title.as_deref()),
            description: clean(prompt.description.as_deref()),
            arguments: prompt
                .arguments
                .iter()
                .map(|argument| Argument {
                    name: argument.name.clone(),
                    title: clean(argument.title.as_deref()),
                    description: clean(argument.description.as_deref()),
                    required: argument.required,
                    sensitive: is_sensitive(prompt, &argument.name),
                })
                .collect(),
        }
    }

    pub(crate) fn argument_definitions(&self) -> impl Iterator<Item = ArgumentDefinition> {
        self.arguments.iter().map(|argument| ArgumentDefinition {
            title: argument.title.clone(),
            description: argument.description.clone(),
            required: argument.required,
            sensitive: argument.sensitive,
            ..ArgumentDefinition::new(&*argument.name)
        })
    }
}

fn is_sensitive(prompt: &PromptInfo, argument: &str) -> bool {
    let listed = prompt.raw.get("_meta").and_then(|meta| meta.get(SENSITIVE));
    listed.and_then(|listed| listed.as_array()).is_some_and(|names| names.iter().any(|name| name == argument))
}

/// The reason why a prompt must not be passed on again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoRoute {
    /// It comes from this server.
    Loop,
    /// Too many servers have passed it on.
    TooFar,
}

/// Returns the ids of the servers that have passed on a prompt.
pub(crate) fn route(prompt: &PromptInfo, own: &str) -> Result<Vec<String>, NoRoute> {
    let via = prompt.raw.get("_meta").and_then(|meta| meta.get(VIA));
    let ids = via.and_then(|via| via.as_array()).map_or(&[][..], Vec::as_slice);
    let ids: Vec<String> = ids.iter().filter_map(|id| id.as_str()).map(str::to_owned).collect();
    if ids.iter().any(|id| id == own) {
        return Err(NoRoute::Loop);
    }
    let is_near = ids.len() < MAX_HOPS && ids.iter().all(|id| id.len() <= MAX_ID_BYTES);
    if is_near { Ok(ids) } else { Err(NoRoute::TooFar) }
}

pub(crate) fn visible(text: &str) -> String {
    stripped(text).chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect()
}

fn clean(text: Option<&str>) -> Option<String> {
    text.map(visible).filter(|text| !text.trim().is_empty())
}

//! Prompts as tools: search, and the prompts that opted in, under the same limits and in the same audit as prompts.
//!
//! Elsewhere: how tools look in the protocol (`promptshelf-mcp`).

use std::sync::Arc;

use promptshelf_core::{
    Prompt,
    cursor::{self, DerivedList, ListKind},
};

use crate::{
    answer::Answer,
    audit::Method,
    caller::Caller,
    limit::RequestClass,
    rejection::{Rejection, echo},
    service::{OpenPrompt, Service},
    skills::decoded,
    view::View,
};

/// The largest number of prompts that a search returns.
pub const MAX_FOUND: usize = 20;

/// Words of a query that count; later ones are ignored, so that a long query costs no more than a short one.
const MAX_WORDS: usize = 16;

/// The shortest word that counts next to longer ones, and that matches the beginning of one, in bytes.
const MIN_WORD: usize = 3;

/// A page of the prompts that are tools.
#[derive(Clone, Debug)]
pub struct ToolPage {
    /// The prompts, by name.
    pub prompts: Vec<Arc<Prompt>>,
    /// The cursor of the next page, unless this is the last one.
    pub next_cursor: Option<String>,
}

/// The result of a search.
#[derive(Clone, Debug)]
pub struct FoundPrompts {
    /// The best matches, best first; at most [`MAX_FOUND`].
    pub prompts: Vec<Arc<Prompt>>,
    /// The number of all matches.
    pub total: usize,
}

impl View {
    /// Iterates over the prompts that the caller sees and that opted in as tools, by name.
    pub fn tools(&self) -> impl Iterator<Item = &Arc<Prompt>> {
        self.prompts().filter(|prompt| prompt.definition().tool)
    }

    /// Iterates over the prompts that the caller sees, by name.
    pub fn prompts(&self) -> impl Iterator<Item = &Arc<Prompt>> {
        let prompts = self.catalog().prompts().iter().enumerate();
        prompts.filter(|(index, _)| self.shows(ListKind::Prompts, *index)).map(|(_, prompt)| prompt)
    }
}

impl Service {
    /// Admits a request for the list of tools.
    ///
    /// # Errors
    ///
    /// Those of limits.
    pub fn tools(&self, caller: &Caller) -> Result<View, Rejection> {
        let mut call = self.begin(caller, RequestClass::Other, Method::List)?;
        let view = self.view(caller);
        call.note("list", || "tools".into());
        call.note_generation(view.catalog());
        call.end(Ok(view))
    }

    /// Returns one page of the prompts that are tools; without a cursor the first one.
    ///
    /// # Errors
    ///
    /// [`Rejection::InvalidCursor`], and those of limits.
    pub fn list_tools(&self, caller: &Caller, cursor: Option<&str>) -> Result<Answer<ToolPage>, Rejection> {
        let view = self.tools(caller)?;
        let after = decoded(DerivedList::Tools, cursor)?;
        let is_later = |prompt: &&Arc<Prompt>| after.as_deref().is_none_or(|after| prompt.name().as_str() > after);
        let mut later = view.tools().filter(is_later).cloned();
        let prompts: Vec<_> = later.by_ref().take(view.catalog().policy().page_size.max(1)).collect();
        let last = prompts.last().filter(|_| later.next().is_some());
        let next_cursor = last.map(|last| cursor::encode(DerivedList::Tools, last.name().as_str()));
        drop(later);
        Ok(Answer::new(view, ToolPage { prompts, next_cursor }))
    }

    /// Finds the prompts that opted in as tools and match a query; without words the first ones by name. `limit` is cut to
    /// [`MAX_FOUND`].
    ///
    /// # Errors
    ///
    /// Those of limits.
    pub fn find_tools(&self, caller: &Caller, query: &str, limit: usize) -> Result<Answer<FoundPrompts>, Rejection> {
        let mut call = self.begin(caller, RequestClass::Other, Method::Find)?;
        let view = self.view(caller);
        call.note_generation(view.catalog());
        let query = query.to_lowercase();
        let mut words: Vec<&str> = words(&query).take(MAX_WORDS).collect();
        if words.iter().any(|word| word.len() >= MIN_WORD) {
            words.retain(|word| word.len() >= MIN_WORD);
        }
        let mut ranked: Vec<(u32, &Arc<Prompt>)> =
            view.tools().map(|prompt| (score(prompt, &words), prompt)).filter(|(score, _)| *score > 0).collect();
        // Stable: equal scores stay in the order of names.
        ranked.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
        let total = ranked.len();
        call.note("found", || total.into());
        let best = ranked.into_iter().take(limit.min(MAX_FOUND)).map(|(_, prompt)| Arc::clone(prompt));
        let found = FoundPrompts { prompts: best.collect(), total };
        call.end(Ok(())).map(|()| Answer::new(view, found))
    }

    /// Finds a prompt like [`open`](Service::open), if it opted in as a tool.
    ///
    /// # Errors
    ///
    /// Those of `open`. A prompt that did not opt in is unknown.
    pub fn open_tool(&self, caller: &Caller, name: &str) -> Result<OpenPrompt, Rejection> {
        self.open_checked(caller, name, |prompt| {
            if prompt.definition().tool { Ok(Some("tool")) } else { Err(Rejection::UnknownPrompt { name: echo(name) }) }
        })
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty())
}

/// Returns how well a prompt matches, 0 for not at all. A match in the name counts most, one in an argument least; a
/// whole word counts twice as much as the beginning of one.
fn score(prompt: &Prompt, query: &[&str]) -> u32 {
    if query.is_empty() {
        return 1;
    }
    let tags = prompt.tags().join(" ");
    let arguments = prompt.arguments().iter().flat_map(|argument| [Some(argument.name()), argument.description()]);
    let arguments: Vec<&str> = arguments.flatten().collect();
    let fields = [
        (8, prompt.name().as_str().to_lowercase()),
        (6, prompt.title().unwrap_or_default().to_lowercase()),
        (5, tags.to_lowercase()),
        (3, prompt.description().unwrap_or_default().to_lowercase()),
        (1, arguments.join(" ").to_lowercase()),
    ];
    let best = |wanted: &&str| {
        let of_field = |(weight, text): &(u32, String)| {
            let quality = words(text).map(|word| match word {
                _ if word == *wanted => 2,
                _ if wanted.len() >= MIN_WORD && word.starts_with(wanted) => 1,
                _ => 0,
            });
            weight * quality.max().unwrap_or(0)
        };
        fields.iter().map(of_field).max().unwrap_or(0)
    };
    query.iter().map(best).sum()
}

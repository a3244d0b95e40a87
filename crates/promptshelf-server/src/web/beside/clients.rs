//! Which clients in the field stumble over which prompts, out of the table of
//! core: quirks as words that the page translates.

use axum::{extract::State, response::Response};
use promptshelf_author::clients::{Incompatibility, Quirk, incompatibilities};
use promptshelf_core::Prompt;
use serde_json::{Value, json};

use super::{Asking, answer, caller, rejected};
use crate::Library;

/// More names than this nobody reads; the rest is counted.
const MOST_NAMES: usize = 50;

/// What clients do that prompts which the caller may use stumble over.
pub(in crate::web) async fn clients(State(library): State<Library>, asking: Asking) -> Response {
    let shelf = match library.service().shelf(&caller(asking)) {
        Ok(shelf) => shelf,
        Err(rejection) => return rejected(&rejection),
    };
    // Templates are looked through, which takes a while with very many.
    let told = tokio::task::spawn_blocking(move || {
        let prompts: Vec<&Prompt> = shelf.usable().map(|prompt| &**prompt).collect();
        let found: Vec<Value> =
            incompatibilities(&prompts, shelf.catalog.policy().page_size).iter().map(told).collect();
        json!({ "generation": shelf.catalog.generation(), "incompatibilities": found })
    });
    match told.await {
        Ok(told) => answer(&told),
        Err(_) => rejected(&promptshelf_service::Rejection::Internal),
    }
}

fn told(stumble: &Incompatibility<'_>) -> Value {
    let most = match stumble.fact.quirk {
        Quirk::MostArguments(most) => Some(most),
        _ => None,
    };
    let names: Vec<&str> = stumble.prompts.iter().take(MOST_NAMES).map(|prompt| prompt.name().as_str()).collect();
    json!({
        "client": stumble.client.name,
        "quirk": stumble.fact.quirk.id(),
        "most": most,
        "source": stumble.fact.source,
        "read": stumble.fact.read,
        "total": stumble.prompts.len(),
        "prompts": names,
    })
}

#[cfg(test)]
mod tests {
    use promptshelf_author::clients::CLIENTS;

    #[test]
    fn the_page_has_words_for_every_habit() {
        let english = include_str!("../assets/js/lang/more/en.js");
        for quirk in CLIENTS.iter().flat_map(|client| client.facts).map(|fact| fact.quirk) {
            let key = format!("'quirk.{}':", quirk.id());
            let line = english.split_once(&key).map(|(_, rest)| rest.trim_start().trim_start_matches('\''));
            let line = line.unwrap_or_else(|| panic!("no words for {key}"));
            // The same as the command line's, but for a number that the page fills in.
            let words = quirk.to_string();
            let start = words.split(|c: char| c.is_ascii_digit()).next().unwrap_or_default();
            assert!(line.starts_with(&start.replace('\'', "’")), "{key} says otherwise than: {words}");
        }
    }
}

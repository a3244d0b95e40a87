//! Prompts that known clients do not support fully, from the table of client quirks. The page
//! translates the identifiers.

use axum::{extract::State, response::Response};
use promptshelf_author::clients::{Incompatibility, Quirk, incompatibilities};
use promptshelf_core::Prompt;
use promptshelf_service::pool::{self, Amount};
use serde_json::{Value, json};

use super::response::{AuthenticatedCaller, caller, json_response, rejected};
use crate::library::Library;

/// The most prompt names of one incompatibility; the rest is counted.
const MAX_NAMES: usize = 50;

pub(in crate::web) async fn clients(State(library): State<Library>, authenticated: AuthenticatedCaller) -> Response {
    let overview = match library.service().overview(&caller(authenticated)) {
        Ok(overview) => overview,
        Err(rejection) => return rejected(&rejection),
    };
    // Templates are searched, which blocks noticeably with thousands of prompts.
    let asking = overview.view().caller().clone();
    let report = pool::run(&asking, Amount::Large, move |_| {
        let prompts: Vec<&Prompt> = overview.usable().map(|prompt| &**prompt).collect();
        let found: Vec<Value> = incompatibilities(&prompts, overview.view().catalog().policy().page_size)
            .iter()
            .map(incompatibility)
            .collect();
        json!({ "generation": overview.view().catalog().generation(), "incompatibilities": found })
    });
    match report.await {
        Ok(report) => json_response(&report),
        Err(_) => rejected(&promptshelf_service::Rejection::Internal),
    }
}

fn incompatibility(found: &Incompatibility<'_>) -> Value {
    let most = match found.fact.quirk {
        Quirk::MostArguments(most) => Some(most),
        _ => None,
    };
    let names: Vec<&str> = found.prompts.iter().take(MAX_NAMES).map(|prompt| prompt.name().as_str()).collect();
    json!({
        "client": found.client.name,
        "quirk": found.fact.quirk.id(),
        "most": most,
        "source": found.fact.source,
        "read": found.fact.read,
        "total": found.prompts.len(),
        "prompts": names,
    })
}

#[cfg(test)]
mod tests {
    use promptshelf_author::clients::CLIENTS;

    #[test]
    fn every_quirk_is_translated() {
        let words = include_str!("../assets/js/lang/more.js");
        for quirk in CLIENTS.iter().flat_map(|client| client.facts).map(|fact| fact.quirk) {
            let key = format!("'quirk.{}':", quirk.id());
            let english = |rest: &'static str| {
                rest.split_once("en:").map(|(_, text)| text.trim_start().trim_start_matches(['\'', '"']))
            };
            let line = words.split_once(&key).and_then(|(_, rest)| english(rest));
            // JavaScript writes a backslash as two.
            let line = line.unwrap_or_else(|| panic!("missing translation: {key}")).replace(r"\\", r"\");
            // Equal to the command line's words, except for a number that the page fills in.
            let words = quirk.to_string();
            let start = words.split(|c: char| c.is_ascii_digit()).next().unwrap_or_default();
            assert!(
                line.starts_with(&start.replace('\'', "’")),
                "{key}: expected the words of the command line: {words}"
            );
        }
    }
}

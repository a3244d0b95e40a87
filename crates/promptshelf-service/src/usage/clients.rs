//! Names of client programs, bounded in number and length.

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock},
};

use serde_json::Value;

const MAX_CLIENTS: usize = 500;

/// The longest declaration that is read, in bytes.
const MAX_DECLARATION: usize = 1_024;

const MAX_NAME: usize = 64;

pub(super) const OTHER: &str = "other";

const PREVIEW: &str = "promptshelf-preview";

/// A client program and the revision of the protocol that it speaks. Cheap to clone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ClientTag {
    name: Option<Arc<ClientName>>,
    protocol: &'static str,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ClientName {
    name: String,
    version: String,
}

impl ClientTag {
    pub(super) fn parts(&self) -> (&str, &str, &str) {
        let (name, version) = self.name.as_ref().map_or(("", ""), |name| (&name.name, &name.version));
        (name, version, self.protocol)
    }

    /// Whether the requests are previews, which are not calls: the page renders a prompt while its form is filled in.
    #[must_use]
    pub fn is_preview(&self) -> bool {
        self.name.as_ref().is_some_and(|name| name.name == PREVIEW)
    }

    /// Sets the revision of the protocol, and keeps the program.
    #[must_use]
    pub fn with_protocol(self, protocol: &'static str) -> ClientTag {
        ClientTag { protocol, ..self }
    }
}

#[derive(Debug)]
pub(super) struct ClientNames {
    known: RwLock<HashMap<Box<str>, Arc<ClientName>>>,
    other: Arc<ClientName>,
}

impl Default for ClientNames {
    fn default() -> ClientNames {
        let other = Arc::new(ClientName { name: OTHER.to_owned(), version: String::new() });
        ClientNames { known: RwLock::default(), other }
    }
}

impl ClientNames {
    pub(super) fn tag(&self, declared: &str, protocol: &'static str) -> ClientTag {
        ClientTag { name: Some(self.name(declared)), protocol }
    }

    fn name(&self, declared: &str) -> Arc<ClientName> {
        if declared.len() > MAX_DECLARATION {
            return Arc::clone(&self.other);
        }
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(name) = known.get(declared) {
            return Arc::clone(name);
        }
        if known.len() >= MAX_CLIENTS {
            return Arc::clone(&self.other);
        }
        drop(known);
        let name = Arc::new(ClientName::read(declared));
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(known.entry(declared.into()).or_insert(name))
    }

    /// Makes room for other programs once the table is full.
    pub(super) fn forget_unused(&self) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MAX_CLIENTS {
            known.retain(|_, name| Arc::strong_count(name) > 1);
        }
    }
}

impl ClientName {
    /// Reads the members `name` and `version` of an object, or the first product of a `User-Agent`.
    fn read(declared: &str) -> ClientName {
        let (name, version) = match serde_json::from_str(declared) {
            Ok(Value::Object(members)) => {
                let text = |key: &str| members.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
                (text("name"), text("version"))
            }
            _ => {
                let product = declared.split_whitespace().next().unwrap_or_default();
                let (name, version) = product.split_once('/').unwrap_or((product, ""));
                (name.to_owned(), version.to_owned())
            }
        };
        ClientName { name: clean(&name), version: clean(&version) }
    }
}

fn clean(text: &str) -> String {
    promptshelf_core::invisible::stripped(text).chars().filter(|c| !c.is_control()).take(MAX_NAME).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    // req: S-185
    #[test]
    fn clients_are_bounded_and_their_names_clean() {
        let names = ClientNames::default();
        let of = |declared: &str| {
            let tag = names.tag(declared, "2026-07-28");
            (tag.parts().0.to_owned(), tag.parts().1.to_owned())
        };
        assert_eq!(
            of(r#"{"name":"ed\u001b[1m\u202eitor","version":"1.2"}"#),
            ("ed[1mitor".to_owned(), "1.2".to_owned())
        );
        assert_eq!(of("node/22.1 (linux) undici/7"), ("node".to_owned(), "22.1".to_owned()));
        assert_eq!(of(r#"{"name":7}"#), (String::new(), String::new()));
        assert_eq!(of(&"x".repeat(1_025)).0, OTHER);
        assert_eq!(of(&format!("{{\"name\":\"{}\"}}", "y".repeat(900))).0.len(), MAX_NAME);
        let first = names.tag("kept/1", "http");
        for number in 0..10_000 {
            of(&format!("client-{number}/1"));
        }
        assert_eq!(of("one-more/1").0, OTHER);
        names.forget_unused();
        assert_eq!(of("one-more/1").0, "one-more");
        assert_eq!(names.tag("kept/1", "http"), first, "it is in use");
    }
}

//! The prompts of all connected servers, each under a word to type.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, PoisonError, RwLock},
};

use promptshelf_client::{Client, ClientError, OfferedPrompt};

use crate::output::visible_line;

/// A connected server.
#[derive(Clone)]
pub(super) struct Server {
    /// Our name for it; the server has no say in it.
    pub(super) name: String,
    pub(super) client: Client,
}

/// A prompt and whose it is.
#[derive(Clone)]
pub(super) struct Entry {
    /// What is typed after the slash. Safe to show.
    pub(super) command: String,
    pub(super) server: Server,
    pub(super) prompt: Arc<OfferedPrompt>,
}

/// What the servers offer right now. Clones share it.
#[derive(Clone)]
pub(super) struct Shelf {
    servers: Arc<Vec<Server>>,
    entries: Arc<RwLock<Arc<Vec<Entry>>>>,
}

/// How a server's list differs from the one before.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Difference {
    pub(super) added: Vec<String>,
    pub(super) removed: Vec<String>,
    pub(super) changed: Vec<String>,
}

impl Difference {
    pub(super) fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.changed.is_empty()
    }
}

impl Shelf {
    pub(super) fn new(servers: Vec<Server>) -> Shelf {
        Shelf { servers: Arc::new(servers), entries: Arc::default() }
    }

    pub(super) fn servers(&self) -> &[Server] {
        &self.servers
    }

    /// What is offered, in the order of the servers and their lists.
    pub(super) fn entries(&self) -> Arc<Vec<Entry>> {
        Arc::clone(&self.entries.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn find(&self, command: &str) -> Option<Entry> {
        self.entries().iter().find(|entry| entry.command == command).cloned()
    }

    /// Reads one server's list again.
    pub(super) async fn refresh(&self, server: &Server) -> Result<Difference, ClientError> {
        let offered = server.client.all_prompts().await?;
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        let before: BTreeMap<&str, &OfferedPrompt> = entries
            .iter()
            .filter(|entry| entry.server.name == server.name)
            .map(|entry| (entry.prompt.name.as_str(), &*entry.prompt))
            .collect();
        let difference = difference(&before, &offered);
        let mut prompts: Vec<(Server, Arc<OfferedPrompt>)> = Vec::new();
        for known in self.servers.iter() {
            if known.name == server.name {
                prompts.extend(offered.iter().map(|prompt| (known.clone(), Arc::new(prompt.clone()))));
            } else {
                let of_known = entries.iter().filter(|entry| entry.server.name == known.name);
                prompts.extend(of_known.map(|entry| (known.clone(), Arc::clone(&entry.prompt))));
            }
        }
        *entries = Arc::new(named(prompts));
        Ok(difference)
    }
}

fn difference(before: &BTreeMap<&str, &OfferedPrompt>, after: &[OfferedPrompt]) -> Difference {
    let mut difference = Difference::default();
    for prompt in after {
        match before.get(prompt.name.as_str()) {
            None => difference.added.push(prompt.name.clone()),
            Some(old) if **old != *prompt => difference.changed.push(prompt.name.clone()),
            Some(_) => {}
        }
    }
    let gone = |name: &&&str| !after.iter().any(|prompt| prompt.name == ***name);
    difference.removed = before.keys().filter(gone).map(|name| (*name).to_owned()).collect();
    difference
}

/// Gives every prompt a word: its name, with the server's name before it only
/// where several have the same.
fn named(prompts: Vec<(Server, Arc<OfferedPrompt>)>) -> Vec<Entry> {
    let words = words(prompts.iter().map(|(server, prompt)| (server.name.as_str(), prompt.name.as_str())));
    let entry = |((server, prompt), command)| Entry { command, server, prompt };
    prompts.into_iter().zip(words).map(entry).collect()
}

fn words<'a>(prompts: impl Iterator<Item = (&'a str, &'a str)> + Clone) -> Vec<String> {
    let mut count: HashMap<String, usize> = HashMap::new();
    for (_, name) in prompts.clone() {
        *count.entry(word(name)).or_default() += 1;
    }
    let mut taken: HashMap<String, usize> = HashMap::new();
    let mut words = Vec::new();
    for (server, name) in prompts {
        let alone = word(name);
        let mut command = if count[&alone] > 1 { format!("{server}:{alone}") } else { alone };
        let times = taken.entry(command.clone()).or_default();
        *times += 1;
        if *times > 1 {
            command = format!("{command}~{times}");
        }
        words.push(command);
    }
    words
}

/// A name that can be typed and shown.
fn word(name: &str) -> String {
    let visible = visible_line(name);
    let word: String = visible.chars().map(|c| if c.is_whitespace() { '_' } else { c }).collect();
    if word.is_empty() { "_".to_owned() } else { word }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_its_server_before_it_only_on_a_clash() {
        let prompts =
            [("a", "review"), ("b", "review"), ("b", "two words"), ("b", "evil\u{1b}[2J"), ("b", "two_words")];
        assert_eq!(
            words(prompts.into_iter()),
            ["a:review", "b:review", "b:two_words", "evil\\u{1b}[2J", "b:two_words~2"]
        );
    }
}

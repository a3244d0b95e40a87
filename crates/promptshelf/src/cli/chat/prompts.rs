//! The prompts of all connected servers, each with a command.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, PoisonError, RwLock},
};

use promptshelf_client::{ClientError, PromptInfo};

use super::servers::Server;
use crate::output::visible_line;

#[derive(Clone)]
pub(super) struct ChatPrompt {
    /// The command after the slash. Safe to print.
    pub(super) command: String,
    pub(super) server: Server,
    pub(super) info: Arc<PromptInfo>,
}

impl ChatPrompt {
    /// Returns whether the server marks an argument as sensitive, as promptshelf does: its values are not stored.
    pub(super) fn is_sensitive(&self, argument: &str) -> bool {
        self.sensitive().any(|name| name == argument)
    }

    pub(super) fn has_sensitive(&self) -> bool {
        self.sensitive().next().is_some()
    }

    fn sensitive(&self) -> impl Iterator<Item = &str> {
        let names = self.info.raw["_meta"]["promptshelf/sensitive"].as_array();
        names.into_iter().flatten().filter_map(serde_json::Value::as_str)
    }
}

/// The current prompts of all servers. Clones share them.
#[derive(Clone)]
pub(super) struct PromptList {
    servers: Arc<Vec<Server>>,
    prompts: Arc<RwLock<Arc<Vec<ChatPrompt>>>>,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ListChange {
    pub(super) added: Vec<String>,
    pub(super) removed: Vec<String>,
    pub(super) changed: Vec<String>,
}

impl ListChange {
    pub(super) fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.changed.is_empty()
    }
}

impl PromptList {
    pub(super) fn new(servers: Vec<Server>) -> PromptList {
        PromptList { servers: Arc::new(servers), prompts: Arc::default() }
    }

    pub(super) fn servers(&self) -> &[Server] {
        &self.servers
    }

    pub(super) fn all(&self) -> Arc<Vec<ChatPrompt>> {
        Arc::clone(&self.prompts.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn find(&self, command: &str) -> Option<ChatPrompt> {
        self.all().iter().find(|prompt| prompt.command == command).cloned()
    }

    pub(super) async fn refresh(&self, server: &Server) -> Result<ListChange, ClientError> {
        let listed = server.client.all_prompts().await?;
        let mut current = self.prompts.write().unwrap_or_else(PoisonError::into_inner);
        let before: BTreeMap<&str, &PromptInfo> = current
            .iter()
            .filter(|prompt| prompt.server.name == server.name)
            .map(|prompt| (prompt.info.name.as_str(), &*prompt.info))
            .collect();
        let change = change(&before, &listed);
        let mut prompts: Vec<(Server, Arc<PromptInfo>)> = Vec::new();
        for known in self.servers.iter() {
            if known.name == server.name {
                prompts.extend(listed.iter().map(|prompt| (known.clone(), Arc::new(prompt.clone()))));
            } else {
                let of_known = current.iter().filter(|prompt| prompt.server.name == known.name);
                prompts.extend(of_known.map(|prompt| (known.clone(), Arc::clone(&prompt.info))));
            }
        }
        *current = Arc::new(with_commands(prompts));
        Ok(change)
    }
}

fn change(before: &BTreeMap<&str, &PromptInfo>, after: &[PromptInfo]) -> ListChange {
    let mut change = ListChange::default();
    for prompt in after {
        match before.get(prompt.name.as_str()) {
            None => change.added.push(prompt.name.clone()),
            Some(old) if **old != *prompt => change.changed.push(prompt.name.clone()),
            Some(_) => {}
        }
    }
    let is_removed = |name: &&&str| !after.iter().any(|prompt| prompt.name == ***name);
    change.removed = before.keys().filter(is_removed).map(|name| (*name).to_owned()).collect();
    change
}

/// Assigns a command to every prompt: its name, prefixed with the server's name if several prompts have the same one.
fn with_commands(prompts: Vec<(Server, Arc<PromptInfo>)>) -> Vec<ChatPrompt> {
    let commands = commands(prompts.iter().map(|(server, prompt)| (server.name.as_str(), prompt.name.as_str())));
    let prompt = |((server, info), command)| ChatPrompt { command, server, info };
    prompts.into_iter().zip(commands).map(prompt).collect()
}

fn commands<'a>(prompts: impl Iterator<Item = (&'a str, &'a str)> + Clone) -> Vec<String> {
    let mut count: HashMap<String, usize> = HashMap::new();
    for (_, name) in prompts.clone() {
        *count.entry(word(name)).or_default() += 1;
    }
    let mut taken: HashMap<String, usize> = HashMap::new();
    let mut commands = Vec::new();
    for (server, name) in prompts {
        let plain = word(name);
        let mut command = if count[&plain] > 1 { format!("{server}:{plain}") } else { plain };
        let times = taken.entry(command.clone()).or_default();
        *times += 1;
        if *times > 1 {
            command = format!("{command}~{times}");
        }
        commands.push(command);
    }
    commands
}

fn word(name: &str) -> String {
    let visible = visible_line(name);
    let word: String = visible.chars().map(|c| if c.is_whitespace() { '_' } else { c }).collect();
    if word.is_empty() { "_".to_owned() } else { word }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_clashing_names_have_a_prefix() {
        let prompts =
            [("a", "review"), ("b", "review"), ("b", "two words"), ("b", "evil\u{1b}[2J"), ("b", "two_words")];
        assert_eq!(
            commands(prompts.into_iter()),
            ["a:review", "b:review", "b:two_words", "evil\\u{1b}[2J", "b:two_words~2"]
        );
    }
}

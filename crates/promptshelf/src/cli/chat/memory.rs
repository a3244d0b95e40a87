//! State of chats between runs: the values typed for a prompt, its definition and its results.
//!
//! One file per prompt in the user's state folder, readable only by the user. Input to forms of servers and values of
//! sensitive arguments are never stored.

use std::{collections::BTreeMap, fs, path::PathBuf};

use promptshelf_client::{Arguments, PromptInfo, PromptResult};
use serde_json::{Value, json};
use similar::TextDiff;

use crate::{
    commands::{markdown, saved::Saved},
    state::{self, digest},
};

const MAX_VALUES: usize = 50;
/// The longest stored value or text, in bytes.
const MAX_TEXT_BYTES: usize = 256 << 10;
const MAX_RESULTS: usize = 20;

/// The folder of the state; `None` stores nothing.
#[derive(Clone, Debug)]
pub(super) struct Memory(Option<PathBuf>);

#[derive(Debug, Default)]
pub(super) struct PromptHistory {
    definition: String,
    values: BTreeMap<String, Vec<String>>,
    /// The result for each set of arguments, by the digest of the arguments; the last used one is last.
    results: Vec<(String, String)>,
}

impl Memory {
    pub(super) fn open(forget: bool) -> Memory {
        if forget {
            return Memory(None);
        }
        Memory(state::folder())
    }

    pub(super) fn lines(&self) -> Option<PathBuf> {
        self.0.as_ref().map(|folder| folder.join("chat-history"))
    }

    fn file(&self, target: &str, prompt: &str) -> Option<PathBuf> {
        let name = digest(&format!("{target}\0{prompt}"));
        self.0.as_ref().map(|folder| folder.join("prompts").join(format!("{name}.json")))
    }

    pub(super) fn load(&self, target: &str, prompt: &str) -> PromptHistory {
        let text = self.file(target, prompt).and_then(|file| fs::read_to_string(file).ok()).unwrap_or_default();
        PromptHistory::parse(&text).unwrap_or_default()
    }

    /// Stores the state of a prompt. A failure to write is ignored.
    pub(super) fn save(&self, target: &str, prompt: &str, history: &PromptHistory) {
        let Some(file) = self.file(target, prompt) else { return };
        state::write(&file, &history.to_json(target, prompt).to_string()).ok();
    }
}

impl PromptHistory {
    fn parse(text: &str) -> Option<PromptHistory> {
        let value: Value = serde_json::from_str(text).ok()?;
        let strings = |value: &Value| -> Vec<String> {
            value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let values = value["values"].as_object()?.iter().map(|(name, values)| (name.clone(), strings(values)));
        let result = |pair: &Value| Some((pair[0].as_str()?.to_owned(), pair[1].as_str()?.to_owned()));
        Some(PromptHistory {
            definition: value["definition"].as_str()?.to_owned(),
            values: values.collect(),
            results: value["results"].as_array()?.iter().filter_map(result).collect(),
        })
    }

    fn to_json(&self, target: &str, prompt: &str) -> Value {
        json!({
            "target": target, "prompt": prompt, "definition": self.definition,
            "values": self.values, "results": self.results,
        })
    }

    pub(super) fn values(&self, argument: &str) -> &[String] {
        self.values.get(argument).map_or(&[], Vec::as_slice)
    }

    /// Forgets an argument: it is sensitive, perhaps only since the last use.
    pub(super) fn forget(&mut self, argument: &str) {
        self.values.remove(argument);
    }

    /// Records a use of which nothing but the definition is stored, because the result contains sensitive values.
    pub(super) fn record_definition(&mut self, prompt: &PromptInfo) -> Option<String> {
        let definition = serde_json::to_string_pretty(&prompt.raw).unwrap_or_default();
        self.results.clear();
        self.replace_definition(definition)
    }

    fn replace_definition(&mut self, definition: String) -> Option<String> {
        let is_changed = !self.definition.is_empty() && digest(&self.definition) != digest(&definition);
        let difference = is_changed.then(|| diff(&self.definition, &definition));
        self.definition = Some(definition).filter(|text| text.len() <= MAX_TEXT_BYTES).unwrap_or_default();
        difference
    }

    /// Records a use. Returns the differences from the last one: in the prompt's definition, and in its result for the
    /// same arguments.
    pub(super) fn record(&mut self, prompt: &PromptInfo, values: &Arguments, result: &PromptResult) -> Option<String> {
        let definition = serde_json::to_string_pretty(&prompt.raw).unwrap_or_default();
        let text = markdown::document(&result.messages, &Saved::default());
        let key = digest(&serde_json::to_string(values).unwrap_or_default());
        let mut differences = self.replace_definition(definition).unwrap_or_default();
        if let Some(index) = self.results.iter().position(|(known, _)| *known == key) {
            let (_, before) = self.results.remove(index);
            if digest(&before) != digest(&text) {
                differences.push_str(&diff(&before, &text));
            }
        }
        if text.len() <= MAX_TEXT_BYTES {
            self.results.push((key, text));
        }
        let surplus = self.results.len().saturating_sub(MAX_RESULTS);
        self.results.drain(..surplus);
        for (name, value) in values.iter().filter(|(_, value)| value.len() <= MAX_TEXT_BYTES) {
            let values = self.values.entry(name.clone()).or_default();
            values.retain(|known| known != value);
            values.push(value.clone());
            let surplus = values.len().saturating_sub(MAX_VALUES);
            values.drain(..surplus);
        }
        Some(differences).filter(|differences| !differences.is_empty())
    }
}

fn diff(before: &str, after: &str) -> String {
    TextDiff::from_lines(before, after).unified_diff().context_radius(2).header("before", "now").to_string()
}

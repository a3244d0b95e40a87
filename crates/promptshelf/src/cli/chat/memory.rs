//! What the terminal host remembers between two days: which values were typed
//! for a prompt, and what the prompt was then.
//!
//! One small file a prompt under the user's state folder, readable only by the
//! user. What servers ask in forms is never written down.

use std::{collections::BTreeMap, fs, path::PathBuf};

use promptshelf_client::{OfferedPrompt, PromptResult};
use promptshelf_core::Variables;
use serde_json::{Value, json};
use similar::TextDiff;

use crate::commands::{
    markdown,
    saved::Saved,
    state::{self, digest},
};

/// How many values of an argument are remembered.
const VALUES: usize = 50;
/// The longest value and the longest text that is remembered, in bytes.
const LONGEST: usize = 256 << 10;
/// How many sets of arguments are remembered with what they gave.
const RESULTS: usize = 20;

/// Where things are remembered; nowhere when somebody does not want it.
#[derive(Clone, Debug)]
pub(super) struct Memory(Option<PathBuf>);

/// What is remembered of one prompt.
#[derive(Debug, Default)]
pub(super) struct Remembered {
    definition: String,
    values: BTreeMap<String, Vec<String>>,
    /// The text that each set of arguments gave, by the arguments' digest; last used last.
    results: Vec<(String, String)>,
}

impl Memory {
    pub(super) fn open(forget: bool) -> Memory {
        if forget {
            return Memory(None);
        }
        Memory(state::folder())
    }

    /// The file of the lines that were typed.
    pub(super) fn lines(&self) -> Option<PathBuf> {
        self.0.as_ref().map(|folder| folder.join("chat-history"))
    }

    fn file(&self, target: &str, prompt: &str) -> Option<PathBuf> {
        let name = digest(&format!("{target}\0{prompt}"));
        self.0.as_ref().map(|folder| folder.join("prompts").join(format!("{name}.json")))
    }

    pub(super) fn of(&self, target: &str, prompt: &str) -> Remembered {
        let text = self.file(target, prompt).and_then(|file| fs::read_to_string(file).ok()).unwrap_or_default();
        Remembered::parse(&text).unwrap_or_default()
    }

    /// Remembers a use. Whoever cannot write forgets.
    pub(super) fn keep(&self, target: &str, prompt: &str, remembered: &Remembered) {
        let Some(file) = self.file(target, prompt) else { return };
        state::write(&file, &remembered.to_json(target, prompt).to_string()).ok();
    }
}

impl Remembered {
    fn parse(text: &str) -> Option<Remembered> {
        let value: Value = serde_json::from_str(text).ok()?;
        let strings = |value: &Value| -> Vec<String> {
            value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let values = value["values"].as_object()?.iter().map(|(name, values)| (name.clone(), strings(values)));
        let result = |pair: &Value| Some((pair[0].as_str()?.to_owned(), pair[1].as_str()?.to_owned()));
        Some(Remembered {
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

    /// Values that were typed before, oldest first.
    pub(super) fn values(&self, argument: &str) -> &[String] {
        self.values.get(argument).map_or(&[], Vec::as_slice)
    }

    /// Takes note of a use, and says what is different from the last one: in
    /// what the prompt says of itself, and in what it gave for the same arguments.
    pub(super) fn note(&mut self, prompt: &OfferedPrompt, given: &Variables, got: &PromptResult) -> Option<String> {
        let definition = serde_json::to_string_pretty(&prompt.raw).unwrap_or_default();
        let text = markdown::document(&got.messages, &Saved::default());
        let key = digest(&serde_json::to_string(given).unwrap_or_default());
        let mut differences = String::new();
        if !self.definition.is_empty() && digest(&self.definition) != digest(&definition) {
            differences.push_str(&diff(&self.definition, &definition));
        }
        if let Some(place) = self.results.iter().position(|(known, _)| *known == key) {
            let (_, before) = self.results.remove(place);
            if digest(&before) != digest(&text) {
                differences.push_str(&diff(&before, &text));
            }
        }
        self.definition = Some(definition).filter(|text| text.len() <= LONGEST).unwrap_or_default();
        if text.len() <= LONGEST {
            self.results.push((key, text));
        }
        let surplus = self.results.len().saturating_sub(RESULTS);
        self.results.drain(..surplus);
        for (name, value) in given.iter().filter(|(_, value)| value.len() <= LONGEST) {
            let values = self.values.entry(name.clone()).or_default();
            values.retain(|known| known != value);
            values.push(value.clone());
            let surplus = values.len().saturating_sub(VALUES);
            values.drain(..surplus);
        }
        Some(differences).filter(|differences| !differences.is_empty())
    }
}

fn diff(before: &str, after: &str) -> String {
    TextDiff::from_lines(before, after).unified_diff().context_radius(2).header("before", "now").to_string()
}

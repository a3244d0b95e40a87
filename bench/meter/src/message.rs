//! The measured requests, and validation of their results.

use anyhow::{Context, Result, ensure};
use bench_servers::{listed_description, listed_name, words};
use serde_json::{Value, json};

/// Protocol era of a request: with or without a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Era {
    Legacy,
    Modern,
}

impl Era {
    pub(crate) const BOTH: [Era; 2] = [Era::Legacy, Era::Modern];

    pub(crate) fn revision(self) -> &'static str {
        match self {
            Era::Legacy => "2025-11-25",
            Era::Modern => "2026-07-28",
        }
    }
}

/// A row of the report.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    /// Name for `--only`.
    pub(crate) name: &'static str,
    /// Number of prompts in the library's list, and per page.
    pub(crate) listed: (usize, usize),
    /// Whether the row is also measured over stdio.
    pub(crate) over_stdio: bool,
    question: Question,
}

#[derive(Clone, Copy, Debug)]
enum Question {
    Get { bytes: usize },
    Page,
    Complete,
}

pub(crate) const ROWS: &[Row] = &[
    Row { name: "get", listed: (50, 50), over_stdio: true, question: Question::Get { bytes: 40 } },
    Row { name: "get-100kb", listed: (50, 50), over_stdio: false, question: Question::Get { bytes: 100_000 } },
    Row { name: "complete", listed: (50, 50), over_stdio: false, question: Question::Complete },
    Row { name: "list-50", listed: (50, 50), over_stdio: true, question: Question::Page },
    Row { name: "list-1k", listed: (1_000, 1_000), over_stdio: false, question: Question::Page },
];

impl Row {
    /// Title of the row.
    pub(crate) fn about(&self) -> String {
        match self.question {
            Question::Get { bytes: 40 } => "prompts/get, one argument".to_owned(),
            Question::Get { bytes } => format!("prompts/get, a value of {} kB", bytes / 1_000),
            Question::Page => format!("prompts/list, a page of {}", self.listed.1),
            Question::Complete => "completion/complete over 10,000 values".to_owned(),
        }
    }

    fn value(bytes: usize) -> String {
        "if (a < b) { return \"no\"; }\n".chars().cycle().take(bytes).collect()
    }

    /// Returns the request of this row.
    pub(crate) fn message(&self, era: Era) -> Message {
        let (method, name, mut params) = match self.question {
            Question::Get { bytes } => {
                ("prompts/get", Some("one"), json!({ "name": "one", "arguments": { "change": Row::value(bytes) } }))
            }
            Question::Page => ("prompts/list", None, json!({})),
            Question::Complete => {
                let reference = json!({ "type": "ref/prompt", "name": "completed" });
                let argument = json!({ "name": "many", "value": "br7" });
                ("completion/complete", None, json!({ "ref": reference, "argument": argument }))
            }
        };
        if era == Era::Modern {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": era.revision(),
                "io.modelcontextprotocol/clientInfo": { "name": "meter", "version": "1" },
                "io.modelcontextprotocol/clientCapabilities": {},
            });
        }
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
        Message { method, name, body, era }
    }

    /// Validates a result, so that only correct answers are measured.
    pub(crate) fn check(&self, answer: &Value) -> Result<()> {
        let result = answer.get("result").with_context(|| format!("no result in {}", short(answer)))?;
        match self.question {
            Question::Get { bytes } => {
                let found = result["messages"][0]["content"]["text"].as_str().unwrap_or_default().trim_end();
                let expected = [words::ONE_BEFORE, &Row::value(bytes), words::ONE_AFTER].concat();
                ensure!(found == expected.trim_end(), "another text: {}", short(answer));
            }
            Question::Page => {
                let prompts = result["prompts"].as_array().context("no list")?;
                let own: Vec<&Value> =
                    prompts.iter().filter(|prompt| prompt["description"].as_str().is_some()).collect();
                ensure!(own.len() >= self.listed.1 - 5, "{} prompts in a page", own.len());
                let known = own.iter().find(|prompt| prompt["name"] == listed_name(7).as_str());
                let found = known.and_then(|prompt| prompt["description"].as_str());
                ensure!(found == Some(listed_description(7).as_str()), "another description: {found:?}");
                ensure!(own.last().is_some_and(|prompt| prompt["arguments"][0]["required"] == true), "no arguments");
            }
            Question::Complete => {
                let values = result["completion"]["values"].as_array().context("no values")?;
                ensure!(values.len() == 100, "{} values: {}", values.len(), short(answer));
            }
        }
        Ok(())
    }
}

fn short(answer: &Value) -> String {
    answer.to_string().chars().take(300).collect()
}

/// A message with the values for its headers.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) method: &'static str,
    pub(crate) name: Option<&'static str>,
    pub(crate) body: String,
    pub(crate) era: Era,
}

impl Message {
    /// The complete HTTP request.
    pub(crate) fn http(&self, port: u16) -> Vec<u8> {
        let mut head = format!(
            "POST /mcp HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\nmcp-protocol-version: {}\r\n",
            self.era.revision()
        );
        if self.era == Era::Modern {
            head += &format!("mcp-method: {}\r\n", self.method);
            if let Some(name) = self.name {
                head += &format!("mcp-name: {name}\r\n");
            }
        }
        head += &format!("content-length: {}\r\n\r\n", self.body.len());
        [head.as_bytes(), self.body.as_bytes()].concat()
    }
}

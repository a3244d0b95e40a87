//! What is asked, and how an answer is told to be the right one.

use anyhow::{Context, Result, ensure};
use bench_servers::{listed_description, listed_name, words};
use serde_json::{Value, json};

/// How a question is put: with or without a handshake before it.
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

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    /// What `--only` calls it.
    pub(crate) name: &'static str,
    /// How many prompts the list of its library holds, and how many a page.
    pub(crate) listed: (usize, usize),
    /// Whether it is asked over pipes, too.
    pub(crate) over_stdio: bool,
    question: Question,
}

#[derive(Clone, Copy, Debug)]
enum Question {
    One { bytes: usize },
    Three,
    Image,
    Page { begin: usize },
    Complete { argument: &'static str },
}

pub(crate) const ROWS: &[Row] = &[
    Row { name: "get-1", listed: (50, 50), over_stdio: true, question: Question::One { bytes: 40 } },
    Row { name: "get-3", listed: (50, 50), over_stdio: false, question: Question::Three },
    Row { name: "get-1kb", listed: (50, 50), over_stdio: true, question: Question::One { bytes: 1_000 } },
    Row { name: "get-100kb", listed: (50, 50), over_stdio: false, question: Question::One { bytes: 100_000 } },
    Row { name: "get-image", listed: (50, 50), over_stdio: false, question: Question::Image },
    Row { name: "complete-10", listed: (50, 50), over_stdio: false, question: Question::Complete { argument: "few" } },
    Row {
        name: "complete-10k",
        listed: (50, 50),
        over_stdio: false,
        question: Question::Complete { argument: "many" },
    },
    Row { name: "list-50", listed: (50, 50), over_stdio: true, question: Question::Page { begin: 0 } },
    Row { name: "list-1k", listed: (1_000, 1_000), over_stdio: false, question: Question::Page { begin: 0 } },
    Row {
        name: "list-100k-page-100",
        listed: (100_000, 1_000),
        over_stdio: false,
        question: Question::Page { begin: 99_000 },
    },
];

impl Row {
    /// What the row is about.
    pub(crate) fn about(&self) -> String {
        match self.question {
            Question::One { bytes: 40 } => "prompts/get, one argument".to_owned(),
            Question::One { bytes } => format!("prompts/get, a value of {} kB", bytes / 1_000),
            Question::Three => "prompts/get, three arguments".to_owned(),
            Question::Image => "prompts/get, an image of 24 kB".to_owned(),
            Question::Page { begin: 0 } => format!("prompts/list, a page of {}", self.listed.1),
            Question::Page { begin } => {
                format!("prompts/list of {}, page {}", self.listed.0, begin / self.listed.1 + 1)
            }
            Question::Complete { argument: "few" } => "completion/complete over 10 values".to_owned(),
            Question::Complete { .. } => "completion/complete over 10,000 values".to_owned(),
        }
    }

    fn value(bytes: usize) -> String {
        "if (a < b) { return \"no\"; }\n".chars().cycle().take(bytes).collect()
    }

    /// The first cursor that has to be followed: pages are asked for one after
    /// the other until the one that is measured.
    pub(crate) fn pages_before(&self) -> usize {
        match self.question {
            Question::Page { begin } => begin / self.listed.1,
            _ => 0,
        }
    }

    /// The message.
    pub(crate) fn message(&self, era: Era, cursor: Option<&str>) -> Message {
        let (method, name, mut params) = match self.question {
            Question::One { bytes } => {
                ("prompts/get", Some("one"), json!({ "name": "one", "arguments": { "change": Row::value(bytes) } }))
            }
            Question::Three => {
                let given = json!({ "version": "1.4.0", "readers": "people who run servers", "tone": "calm" });
                ("prompts/get", Some("three"), json!({ "name": "three", "arguments": given }))
            }
            Question::Image => ("prompts/get", Some("image"), json!({ "name": "image" })),
            Question::Page { .. } => ("prompts/list", None, json!({})),
            Question::Complete { argument } => {
                let reference = json!({ "type": "ref/prompt", "name": "completed" });
                let argument = json!({ "name": argument, "value": "br7" });
                ("completion/complete", None, json!({ "ref": reference, "argument": argument }))
            }
        };
        if let Some(cursor) = cursor {
            params["cursor"] = cursor.into();
        }
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

    /// Refuses an answer that is not right.
    pub(crate) fn check(&self, answer: &Value) -> Result<()> {
        let result = answer.get("result").with_context(|| format!("no result in {}", short(answer)))?;
        let text = |expected: &str| -> Result<()> {
            let found = result["messages"][0]["content"]["text"].as_str().unwrap_or_default().trim_end();
            ensure!(found == expected.trim_end(), "another text: {}", short(answer));
            Ok(())
        };
        match self.question {
            Question::One { bytes } => text(&[words::ONE_BEFORE, &Row::value(bytes), words::ONE_AFTER].concat()),
            Question::Three => {
                let [a, b, c, d] = words::THREE;
                text(&[a, "1.4.0", b, "people who run servers", c, "calm", d].concat())
            }
            Question::Image => {
                text(words::IMAGE)?;
                let data = result["messages"][1]["content"]["data"].as_str().unwrap_or_default();
                ensure!(data.len() == 32 << 10, "another picture: {}", short(answer));
                Ok(())
            }
            Question::Page { begin } => {
                let prompts = result["prompts"].as_array().context("no list")?;
                let own: Vec<&Value> =
                    prompts.iter().filter(|prompt| prompt["description"].as_str().is_some()).collect();
                ensure!(own.len() >= self.listed.1.min(self.listed.0) - 5, "{} prompts in a page", own.len());
                if begin == 0 {
                    let known = own.iter().find(|prompt| prompt["name"] == listed_name(7).as_str());
                    let said = known.and_then(|prompt| prompt["description"].as_str());
                    ensure!(said == Some(listed_description(7).as_str()), "another description: {said:?}");
                }
                ensure!(own.last().is_some_and(|prompt| prompt["arguments"][0]["required"] == true), "no arguments");
                Ok(())
            }
            Question::Complete { argument } => {
                let values = result["completion"]["values"].as_array().context("no values")?;
                let expected = if argument == "few" { 1 } else { 100 };
                ensure!(values.len() == expected, "{} values: {}", values.len(), short(answer));
                Ok(())
            }
        }
    }
}

fn short(answer: &Value) -> String {
    answer.to_string().chars().take(300).collect()
}

/// A message and what its headers have to say.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) method: &'static str,
    pub(crate) name: Option<&'static str>,
    pub(crate) body: String,
    pub(crate) era: Era,
}

impl Message {
    /// The whole HTTP request.
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

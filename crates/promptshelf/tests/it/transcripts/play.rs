//! Plays a transcript on one transport, and compares or records the responses.

use std::collections::{HashMap, VecDeque};

use http::{HeaderMap, Method, StatusCode};
use promptshelf::mcp::Revision;
use serde_json::{Value, json};

use super::{
    expected::{self, Recorded},
    script::{Act, Conversation, Head, Over, Script, Step},
    sent,
};
use crate::{
    program::PATIENCE,
    wire::{Folder, HttpWire, Pipe, Received, Response, http_in_memory, pipe_in_memory, pipe_to_program},
};

/// Plays a script and compares its responses.
pub(crate) async fn check(script: &Script, over: Over) -> Result<(), String> {
    for conversation in &script.conversations {
        for revision in &conversation.revisions {
            let mut stage = Stage::open(script, over, *revision).await;
            let played = stage.play(conversation, None).await;
            let played = if played.is_ok() { stage.close().await } else { played };
            let revision = revision.map(|revision| format!(" in {revision}")).unwrap_or_default();
            played.map_err(|error| format!("over {over:?}{revision}, {error}"))?;
        }
    }
    Ok(())
}

/// Plays each conversation in its first revision and records the responses.
pub(crate) async fn record(script: &Script, over: Over) -> Result<Vec<Recorded>, String> {
    let mut recorded = Vec::new();
    for conversation in &script.conversations {
        let mut stage = Stage::open(script, over, conversation.revisions[0]).await;
        stage.play(conversation, Some(&mut recorded)).await?;
    }
    Ok(recorded)
}

enum Wire {
    Pipe(Box<Pipe>),
    Http(Box<HttpWire>),
}

/// One conversation on one transport.
struct Stage {
    wire: Wire,
    folder: Folder,
    revision: Option<Revision>,
    names: HashMap<String, String>,
    /// Received messages. Those of a pipe have no status.
    waiting: VecDeque<(Option<StatusCode>, HeaderMap, Option<Value>)>,
}

impl Stage {
    async fn open(script: &Script, over: Over, revision: Option<Revision>) -> Stage {
        let folder = script.library.as_deref().map_or_else(Folder::empty, Folder::copy_of);
        for (path, text) in &script.files {
            folder.write(path, text);
        }
        let wire = match over {
            Over::Memory => Wire::Pipe(Box::new(pipe_in_memory(folder.path()))),
            Over::Stdio => Wire::Pipe(Box::new(pipe_to_program(folder.path()))),
            Over::Http => Wire::Http(Box::new(http_in_memory(folder.path()).await)),
        };
        let mut stage = Stage { wire, folder, revision, names: HashMap::new(), waiting: VecDeque::new() };
        if let Some(revision) = revision.filter(|revision| !revision.is_modern()) {
            stage.shake_hands(revision).await;
        }
        stage
    }

    async fn shake_hands(&mut self, revision: Revision) {
        let client = json!({ "name": "transcript", "version": "1" });
        let params = json!({ "protocolVersion": revision.as_str(), "capabilities": {}, "clientInfo": client });
        let initialize = json!({ "jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": params });
        self.send(initialize.to_string().into_bytes(), &Head::default()).await;
        let (_, _, answer) = self.receive().await;
        assert_eq!(answer.expect("an answer")["result"]["protocolVersion"], revision.as_str());
        let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        self.send(initialized.to_string().into_bytes(), &Head::default()).await;
        match self.wire {
            // A response shows that the server has accepted the subscription: later changes are notified.
            Wire::Pipe(_) => {
                let ping = json!({ "jsonrpc": "2.0", "id": "ready", "method": "ping" });
                self.send(ping.to_string().into_bytes(), &Head::default()).await;
                self.receive().await;
            }
            Wire::Http(_) => {
                self.waiting.clear();
                self.send(Vec::new(), &Head { verb: Some(Method::GET), ..Head::default() }).await;
            }
        }
    }

    async fn play(
        &mut self,
        conversation: &Conversation,
        mut record: Option<&mut Vec<Recorded>>,
    ) -> Result<(), String> {
        let mut steps = conversation.steps.iter().peekable();
        while let Some(step) = steps.next() {
            let is_answered = matches!(steps.peek(), Some(Step { act: Act::Server { .. }, .. }));
            let again = match steps.peek() {
                Some(Step { act: Act::Server { text, .. }, .. }) if record.is_none() || !text.is_empty() => Some(text),
                _ => None,
            };
            let outcome = match &step.act {
                Act::Client { head, text, raw, again: until } => {
                    let until = again.filter(|_| *until);
                    self.client(head, text, *raw, is_answered, until.map(String::as_str)).await
                }
                Act::Server { head, status, text, place } => match &mut record {
                    None => self.server(head, *status, text).await,
                    Some(recorded) => self.record(text, place.clone()).await.map(|answer| recorded.push(answer)),
                },
                meanwhile => {
                    self.meanwhile(meanwhile);
                    Ok(())
                }
            };
            outcome.map_err(|error| format!("line {}: {error}", step.line))?;
        }
        Ok(())
    }

    fn meanwhile(&mut self, act: &Act) {
        match (act, &mut self.wire) {
            (Act::Write { path, text }, _) => self.folder.write(path, text),
            (Act::Remove { path }, _) => self.folder.remove(path),
            (Act::ShutDown, Wire::Pipe(pipe)) => pipe.shut_down(),
            (Act::ShutDown, Wire::Http(http)) => http.shut_down(),
            (Act::Client { .. } | Act::Server { .. }, _) => {}
        }
    }

    async fn client(
        &mut self,
        head: &Head,
        text: &str,
        raw: bool,
        is_answered: bool,
        until: Option<&str>,
    ) -> Result<(), String> {
        let mut bytes = sent::expand(text, &|name| self.names.get(name).cloned())?;
        if !raw && !text.is_empty() {
            bytes = sent::complete(&bytes, self.revision)?.into_bytes();
        }
        if let Some(wanted) = until {
            let wanted = serde_json::from_str(wanted).map_err(|error| error.to_string())?;
            return self.again(bytes, head, &wanted).await;
        }
        let opened_a_stream = self.send(bytes, head).await;
        if is_answered || opened_a_stream || matches!(self.wire, Wire::Pipe(_)) {
            return Ok(());
        }
        match self.waiting.pop_front() {
            Some((Some(StatusCode::ACCEPTED), _, None)) => Ok(()),
            other => Err(format!("this is answered, and no block follows: {other:?}")),
        }
    }

    /// Sends a message until the response is the expected one, which is then the first in the queue.
    async fn again(&mut self, bytes: Vec<u8>, head: &Head, wanted: &Value) -> Result<(), String> {
        let begun = std::time::Instant::now();
        let mut meanwhile = VecDeque::new();
        loop {
            self.send(bytes.clone(), head).await;
            let answer = loop {
                let received = self.receive().await;
                match received.2.as_ref().is_some_and(|message| message.get("id") == wanted.get("id")) {
                    true => break received,
                    false => meanwhile.push_back(received),
                }
            };
            let came = answer.2.clone().unwrap_or_default();
            let compared = expected::compare(wanted, &came, &mut HashMap::new());
            if compared.is_ok() || begun.elapsed() > PATIENCE {
                self.waiting.push_front(answer);
                self.waiting.append(&mut meanwhile);
                return Ok(());
            }
        }
    }

    /// Sends a message, and returns whether the response is a stream.
    async fn send(&mut self, bytes: Vec<u8>, head: &Head) -> bool {
        match &mut self.wire {
            Wire::Pipe(pipe) => pipe.send(&bytes).await,
            Wire::Http(http) => match http.send(sent::request(bytes, head, self.revision)).await {
                Response::One(received) => self.waiting.push_back(of(received)),
                Response::Stream => return true,
            },
        }
        false
    }

    async fn receive(&mut self) -> (Option<StatusCode>, HeaderMap, Option<Value>) {
        if let Some(received) = self.waiting.pop_front() {
            return received;
        }
        match &mut self.wire {
            Wire::Pipe(pipe) => (None, HeaderMap::new(), Some(pipe.receive().await)),
            Wire::Http(http) => of(http.receive().await),
        }
    }

    async fn server(&mut self, head: &Head, status: Option<u16>, text: &str) -> Result<(), String> {
        let (came_with, headers, message) = self.receive().await;
        let wanted = status.unwrap_or(200);
        if came_with.is_some_and(|status| status != wanted) {
            let status = came_with.unwrap_or_default();
            return Err(format!("the status is {status}, expected {wanted}; message: {message:?}"));
        }
        for (name, value) in &head.headers {
            if headers.get(name) != Some(value) {
                return Err(format!("the header {name} is {:?}, expected {value:?}", headers.get(name)));
            }
        }
        if let Some(name) = head.without.iter().find(|name| headers.contains_key(*name)) {
            return Err(format!("the header {name} is there"));
        }
        if came_with.is_some() && message.is_some() && headers.get("cache-control").is_none_or(|it| it != "no-store") {
            return Err("an answer over HTTP may not be stored".to_owned());
        }
        match (message, text.is_empty()) {
            (None, true) => Ok(()),
            (None, false) => Err("there is no body".to_owned()),
            (Some(message), true) => Err(format!("there is a body: {message}")),
            (Some(message), false) => {
                let wanted = serde_json::from_str(text).map_err(|error| format!("this is no JSON: {error}"))?;
                let differs = |error| format!("the answer{error}\nThe whole of it: {message}");
                expected::compare(&wanted, &message, &mut self.names).map_err(differs)
            }
        }
    }

    async fn record(&mut self, text: &str, place: std::ops::Range<usize>) -> Result<Recorded, String> {
        let (came_with, _, message) = self.receive().await;
        let before = serde_json::from_str(text).ok();
        let text = message.as_ref().map(|message| expected::write_down(before.as_ref(), message)).unwrap_or_default();
        if let (Ok(wanted), Some(message)) = (serde_json::from_str(&text), &message) {
            expected::compare(&wanted, message, &mut self.names)?;
        }
        let status = came_with.filter(|status| *status != StatusCode::OK).map(|status| status.as_u16());
        Ok(Recorded { place, status, text })
    }

    /// Closes the connection and fails if any message was not expected.
    async fn close(self) -> Result<(), String> {
        let mut rest: Vec<_> = self.waiting.into_iter().map(|(.., message)| message).collect();
        match self.wire {
            Wire::Pipe(pipe) => rest.extend(pipe.end().await.into_iter().map(Some)),
            Wire::Http(http) => rest.extend(http.end().await.into_iter().map(|received| received.message)),
        }
        if rest.is_empty() { Ok(()) } else { Err(format!("at the end there is more: {rest:?}")) }
    }
}

fn of(received: Received) -> (Option<StatusCode>, HeaderMap, Option<Value>) {
    (Some(received.status), received.headers, received.message)
}

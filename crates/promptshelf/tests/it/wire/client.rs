//! A client that speaks one revision with the program, over either transport.

use std::{collections::VecDeque, path::Path};

use http::Method;
use promptshelf::mcp::Revision;
use serde_json::{Value, json};

use super::{Answer, HttpWire, Pipe, Request, usual_headers};

/// The client, and what it has heard and nobody has asked for yet.
pub(crate) struct Client {
    wire: Wire,
    revision: Revision,
    asked: u64,
    heard: VecDeque<Value>,
}

enum Wire {
    Pipe(Box<Pipe>),
    Http(Box<HttpWire>),
}

impl Client {
    /// Starts the program and speaks with it over its stdin and stdout.
    pub(crate) async fn stdio(folder: &Path, revision: Revision) -> Client {
        Client::new(Wire::Pipe(Box::new(Pipe::stdio(folder))), revision).await
    }

    /// Starts the program and speaks with it over HTTP.
    pub(crate) async fn http(folder: &Path, revision: Revision) -> Client {
        Client::new(Wire::Http(Box::new(HttpWire::program(folder).await)), revision).await
    }

    /// From here on a legacy client hears of changes, and a modern one of what
    /// it [listens](Client::listen) to.
    async fn new(wire: Wire, revision: Revision) -> Client {
        let mut client = Client { wire, revision, asked: 0, heard: VecDeque::new() };
        if revision.is_modern() {
            return client;
        }
        let info = json!({ "name": "client", "version": "1" });
        let params = json!({ "protocolVersion": revision.as_str(), "capabilities": {}, "clientInfo": info });
        let answer = client.ask("initialize", params).await;
        assert_eq!(answer["result"]["protocolVersion"], revision.as_str());
        client.send(Method::POST, &json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        if matches!(client.wire, Wire::Http(_)) {
            client.send(Method::GET, &Value::Null).await;
        } else {
            client.ask("ping", json!({})).await;
        }
        client
    }

    /// Opens a subscription and takes its acknowledgment; gives its id.
    pub(crate) async fn listen(&mut self, filter: Value) -> Value {
        let id = self.say("subscriptions/listen", json!({ "notifications": filter })).await;
        let acknowledgment = self.hear().await;
        assert_eq!(acknowledgment["method"], "notifications/subscriptions/acknowledged");
        assert_eq!(acknowledgment["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], id);
        assert_eq!(acknowledgment["params"]["notifications"], filter);
        id
    }

    /// Asks, and gives the whole answer.
    pub(crate) async fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.say(method, params).await;
        let mut others = VecDeque::new();
        loop {
            let message = self.hear().await;
            if message.get("id") == Some(&id) {
                others.append(&mut self.heard);
                self.heard = others;
                return message;
            }
            others.push_back(message);
        }
    }

    /// The text of a prompt's first message.
    pub(crate) async fn text(&mut self, name: &str, arguments: &Value) -> String {
        let answer = self.ask("prompts/get", json!({ "name": name, "arguments": arguments })).await;
        let text = answer["result"]["messages"][0]["content"]["text"].as_str();
        text.unwrap_or_else(|| panic!("a prompt that begins with text, and not {answer}")).to_owned()
    }

    /// The next message that answers no question.
    pub(crate) async fn hear(&mut self) -> Value {
        if let Some(message) = self.heard.pop_front() {
            return message;
        }
        match &mut self.wire {
            Wire::Pipe(pipe) => pipe.hear().await,
            Wire::Http(http) => http.hear().await.message.expect("a stream's events are messages"),
        }
    }

    /// Asks the program to end, as an operator does.
    pub(crate) fn shut_down(&mut self) {
        match &mut self.wire {
            Wire::Pipe(pipe) => pipe.shut_down(),
            Wire::Http(http) => http.shut_down(),
        }
    }

    /// Goes, and gives what came and nobody has asked for.
    pub(crate) async fn end(mut self) -> Vec<Value> {
        let mut rest: Vec<Value> = self.heard.drain(..).collect();
        match self.wire {
            Wire::Pipe(pipe) => rest.extend(pipe.end().await),
            Wire::Http(http) => rest.extend(http.end().await.into_iter().filter_map(|heard| heard.message)),
        }
        rest
    }

    async fn say(&mut self, method: &str, mut params: Value) -> Value {
        self.asked += 1;
        let id = json!(self.asked);
        if self.revision.is_modern() {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": self.revision.as_str(),
                "io.modelcontextprotocol/clientCapabilities": {},
            });
        }
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.send(Method::POST, &message).await;
        id
    }

    async fn send(&mut self, method: Method, message: &Value) {
        let body = if message.is_null() { Vec::new() } else { message.to_string().into_bytes() };
        match &mut self.wire {
            Wire::Pipe(pipe) => pipe.send(&body).await,
            Wire::Http(http) => {
                let headers = usual_headers(&body, &method, Some(self.revision));
                match http.send(Request { method, headers, body: body.into() }).await {
                    Answer::One(heard) => self.heard.extend(heard.message),
                    Answer::Stream => {}
                }
            }
        }
    }
}

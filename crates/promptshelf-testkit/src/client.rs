//! Well-behaved MCP client of one revision, over a pipe or HTTP.

use std::collections::VecDeque;

use http::Method;
use serde_json::{Value, json};

use crate::{
    headers::{is_modern, usual_headers},
    http::{HttpWire, Request, Response},
    pipe::Pipe,
};

/// The client, and the messages that arrived before a test received them.
pub struct Client {
    wire: Wire,
    revision: &'static str,
    requests: u64,
    received: VecDeque<Value>,
}

enum Wire {
    Pipe(Box<Pipe>),
    Http(Box<HttpWire>),
}

impl Client {
    /// Connects over a pipe.
    pub async fn over_pipe(pipe: Pipe, revision: &'static str) -> Client {
        Client::new(Wire::Pipe(Box::new(pipe)), revision).await
    }

    /// Connects over HTTP.
    pub async fn over_http(wire: HttpWire, revision: &'static str) -> Client {
        Client::new(Wire::Http(Box::new(wire)), revision).await
    }

    /// A legacy client receives notifications about changes from here on, a modern one after it
    /// [listens](Client::listen).
    async fn new(wire: Wire, revision: &'static str) -> Client {
        let mut client = Client { wire, revision, requests: 0, received: VecDeque::new() };
        if is_modern(revision) {
            return client;
        }
        let info = json!({ "name": "client", "version": "1" });
        let params = json!({ "protocolVersion": revision, "capabilities": {}, "clientInfo": info });
        let answer = client.request("initialize", params).await;
        assert_eq!(answer["result"]["protocolVersion"], revision);
        client.send(Method::POST, &json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        if matches!(client.wire, Wire::Http(_)) {
            client.send(Method::GET, &Value::Null).await;
        } else {
            client.request("ping", json!({})).await;
        }
        client
    }

    /// Opens a subscription, checks its acknowledgment, and returns its id.
    pub async fn listen(&mut self, filter: Value) -> Value {
        let id = self.start("subscriptions/listen", json!({ "notifications": filter })).await;
        let acknowledgment = self.receive().await;
        assert_eq!(acknowledgment["method"], "notifications/subscriptions/acknowledged");
        assert_eq!(acknowledgment["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], id);
        assert_eq!(acknowledgment["params"]["notifications"], filter);
        id
    }

    /// Sends a request and returns the whole response.
    pub async fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.start(method, params).await;
        let mut others = VecDeque::new();
        loop {
            let message = self.receive().await;
            if message.get("id") == Some(&id) {
                others.append(&mut self.received);
                self.received = others;
                return message;
            }
            others.push_back(message);
        }
    }

    /// Gets a prompt and returns the text of its first message.
    pub async fn text(&mut self, name: &str, arguments: &Value) -> String {
        let answer = self.request("prompts/get", json!({ "name": name, "arguments": arguments })).await;
        let text = answer["result"]["messages"][0]["content"]["text"].as_str();
        text.unwrap_or_else(|| panic!("expected a prompt that begins with text, got {answer}")).to_owned()
    }

    /// Receives the next message that is not a response.
    pub async fn receive(&mut self) -> Value {
        if let Some(message) = self.received.pop_front() {
            return message;
        }
        match &mut self.wire {
            Wire::Pipe(pipe) => pipe.receive().await,
            Wire::Http(http) => http.receive().await.message.expect("a stream's events are messages"),
        }
    }

    /// Asks the program to end, as an operator does.
    pub fn shut_down(&mut self) {
        match &mut self.wire {
            Wire::Pipe(pipe) => pipe.shut_down(),
            Wire::Http(http) => http.shut_down(),
        }
    }

    /// Ends, and returns the messages that were not received.
    pub async fn end(mut self) -> Vec<Value> {
        let mut rest: Vec<Value> = self.received.drain(..).collect();
        match self.wire {
            Wire::Pipe(pipe) => rest.extend(pipe.end().await),
            Wire::Http(http) => rest.extend(http.end().await.into_iter().filter_map(|received| received.message)),
        }
        rest
    }

    async fn start(&mut self, method: &str, mut params: Value) -> Value {
        self.requests += 1;
        let id = json!(self.requests);
        if is_modern(self.revision) {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": self.revision,
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
                    Response::One(received) => self.received.extend(received.message),
                    Response::Stream => {}
                }
            }
        }
    }
}

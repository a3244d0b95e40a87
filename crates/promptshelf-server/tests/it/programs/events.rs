//! Streams of revisions.

use axum::body::{Body, BodyDataStream};
use futures_util::StreamExt as _;
use serde_json::{Value, json};

use super::{Site, publish};
use crate::TIMEOUT;

const FILES: [(&str, &str); 1] = [("hello.md", "One\n")];
const EVENTS: &str = "/api/v1/channels/production/events";

/// The events of a stream.
struct Events(BodyDataStream, String);

impl Events {
    fn of(body: Body) -> Events {
        Events(body.into_data_stream(), String::new())
    }

    /// The next event with the number of its id, which also has the digest; `None` at the end of the stream.
    async fn next(&mut self) -> Option<(u64, Value)> {
        loop {
            while let Some((block, rest)) = self.1.split_once("\n\n") {
                let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
                let event = field("id: ").zip(field("data: "));
                self.1 = rest.to_owned();
                if let Some((id, data)) = event {
                    let (number, digest) = id.split_once('-').expect("a number and a digest");
                    assert_eq!(digest.len(), 12, "{id}");
                    return Some((number.parse().expect("a number"), serde_json::from_str(&data).expect("JSON")));
                }
            }
            let chunk = tokio::time::timeout(TIMEOUT, self.0.next()).await.expect("the stream goes on")?;
            self.1.push_str(std::str::from_utf8(&chunk.expect("whole")).expect("UTF-8"));
        }
    }
}

#[tokio::test]
async fn revisions_are_sent_in_order_and_streams_resume() {
    let site = Site::of(&[("production", &FILES)], false, &[]).await;
    let mut events = Events::of(site.stream(EVENTS, &[]).await);
    let (id, first) = events.next().await.expect("the served revision");
    assert_eq!((id, &first["channel"], &first["revision"]), (1, &json!("production"), &json!(1)));
    assert_eq!(first["prompts"], json!([{ "name": "hello", "version": 1, "change": "added" }]));
    publish(&site.store, "production", &[("hello.md", "Two\n")]).await;
    let (id, second) = events.next().await.expect("the next revision");
    assert_eq!((id, &second["kind"], &second["prompts"][0]["version"]), (2, &json!("publish"), &json!(2)));
    assert!(site.get("/api/v1/prompts/hello").await.body.contains("Two"), "it is served by now");
    drop(events);

    publish(&site.store, "production", &[("bye.md", "Bye\n")]).await;
    publish(&site.store, "production", &[("hello.md", "")]).await;
    site.serves(4).await;
    let mut events = Events::of(site.stream(EVENTS, &[("last-event-id", "2")]).await);
    assert_eq!(events.next().await.expect("the missed one").1["prompts"][0]["name"], "bye");
    assert_eq!(events.next().await.expect("the one after it").1["prompts"][0]["change"], "removed");
    // A revision of a history that the store does not have any more, even if its number is that of the served one.
    for id in ["2-000000000000", "4-000000000000"] {
        let mut later = Events::of(site.stream(EVENTS, &[("last-event-id", id)]).await);
        let (number, event) = later.next().await.expect("the served revision");
        assert!(number == 4 && event.get("prompts").is_none(), "anything may have changed: {event}");
    }
    // A number from before a restore.
    let mut later = Events::of(site.stream(EVENTS, &[("last-event-id", "90")]).await);
    let (id, event) = later.next().await.expect("the served revision");
    assert!(id == 4 && event.get("prompts").is_none(), "anything may have changed: {event}");
    let headers = [("last-event-id", "x")];
    assert!(super::answer(&site.router, EVENTS, &headers).await.detail(400).contains("id of an event"));

    site.default.server().shutdown();
    assert!(events.next().await.is_none() && later.next().await.is_none(), "streams end with the server");
}

// req: S-183
#[tokio::test]
async fn events_do_not_name_hidden_prompts() {
    let rules = "[[access]]\nprompts = [\"hello\"]\nroles = [\"editor\"]\n";
    let files = [FILES[0], ("open.md", "Open\n"), ("promptshelf.toml", rules)];
    let site = Site::of(&[("production", &files)], true, &[]).await;
    for (caller, names) in
        [("bob", json!(["open"])), ("ada", json!(["hello", "open"])), ("rita", json!(["hello", "open"]))]
    {
        let token = format!("Bearer psk_{caller}");
        let mut events = Events::of(site.stream(EVENTS, &[("authorization", &token)]).await);
        let (_, event) = events.next().await.expect("the served revision");
        let seen: Vec<&Value> = event["prompts"].as_array().expect("a list").iter().map(|one| &one["name"]).collect();
        assert_eq!(json!(seen), names, "{caller}");
        for secret in ["A change", "author"] {
            assert!(!event.to_string().contains(secret), "{event}");
        }
    }
    assert_eq!(site.get(EVENTS).await.status, 401);
}

/// The other operations of the channel are refused, too.
// req: S-599
#[tokio::test]
async fn channel_of_a_hidden_source_has_no_events() {
    let site = Site::of(&[("production", &FILES)], true, &[("", "editor")]).await;
    site.get_as("bob", EVENTS).await.expect(404);
    let token = [("authorization", "Bearer psk_ada")];
    assert!(Events::of(site.stream(EVENTS, &token).await).next().await.is_some());
}

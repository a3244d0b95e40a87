//! An event as a sentence for people, in the format of Slack's incoming webhooks.

use std::fmt::Write as _;

use serde_json::{Value, json};

const MAX_TEXT: usize = 500;

const MAX_ITEMS: usize = 10;

pub(super) fn body(event: &str) -> String {
    let event: Value = serde_json::from_str(event).unwrap_or_default();
    json!({ "text": sentence(&event) }).to_string()
}

fn sentence(event: &Value) -> String {
    let text = |value: &Value| escaped(value.as_str().unwrap_or_default());
    let (channel, author) = (text(&event["channel"]), text(&event["author"]));
    let (revision, proposal) = (&event["revision"], &event["proposal"]);
    let mut sentence = format!("*{channel}*: ");
    let _ = match event["event"].as_str().unwrap_or_default() {
        "published" if event["kind"] == "promote" => write!(sentence, "{author} promoted revision {revision}"),
        "published" => write!(sentence, "{author} published revision {revision}"),
        "rolled-back" => write!(sentence, "{author} rolled back, as revision {revision}"),
        "proposed" if event["kind"] == "policy" => write!(sentence, "{author} proposes another policy ({proposal})"),
        "proposed" => write!(sentence, "{author} made proposal {proposal}"),
        "reviewed" => {
            let verdict = if event["review"]["verdict"] == "reject" { "rejected" } else { "approved" };
            let reviewer = text(&event["review"]["reviewer"]);
            write!(sentence, "{reviewer} {verdict} proposal {proposal} of {author}")
        }
        "broken" => write!(sentence, "revision {revision} is broken"),
        "policy-changed" if event["policy"]["byOperator"] == true => {
            write!(sentence, "{author} changed the policy, with direct access to the database")
        }
        "policy-changed" => write!(sentence, "{author} changed the policy"),
        other => write!(sentence, "{}", escaped(other)),
    };
    let is_broken = event["event"] == "broken";
    let message = if event["review"].is_object() { &event["review"]["note"] } else { &event["message"] };
    match text(message) {
        message if message.is_empty() || is_broken => {}
        message => {
            let _ = write!(sentence, ": {message}");
        }
    }
    if let Some(reason) = event["emergency"].as_str() {
        let _ = write!(sentence, "\nWithout the policy: {}", escaped(reason));
    }
    for line in changed_conditions(&event["policy"]) {
        let _ = write!(sentence, "\n• {}", escaped(&line));
    }
    let items = |key: &str| event[key].as_array().map_or(&[][..], Vec::as_slice);
    let prompts = items("prompts");
    for prompt in prompts.iter().take(MAX_ITEMS) {
        let (name, version, change) = (text(&prompt["name"]), &prompt["version"], text(&prompt["change"]));
        let _ = match version.as_u64() {
            // It gets its number when it is published.
            Some(0) => write!(sentence, "\n• {name} {change}, new version"),
            _ => write!(sentence, "\n• {name} {change}, version {version}"),
        };
    }
    let more = prompts.len().saturating_sub(MAX_ITEMS) as u64 + event["morePrompts"].as_u64().unwrap_or_default();
    if more > 0 {
        let _ = write!(sentence, "\n• {more} more");
    }
    for line in items("findings").iter().chain(items("lacks")).take(MAX_ITEMS) {
        let _ = write!(sentence, "\n• {}", text(line));
    }
    sentence
}

/// Returns the conditions of a policy that differ, such as `approvals: 2, before 1`.
fn changed_conditions(policy: &Value) -> Vec<String> {
    let (before, Some(after)) = (&policy["before"], policy["after"].as_object()) else { return Vec::new() };
    let changed = after.iter().filter(|(name, value)| before[name.as_str()] != **value);
    changed.map(|(name, value)| format!("{name}: {value}, before {}", before[name.as_str()])).collect()
}

/// Cuts a text, and replaces the three characters of control sequences such as `<!channel>` (Slack: formatting text).
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len().min(MAX_TEXT));
    for c in text.chars().take(MAX_TEXT) {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            c => escaped.push(c),
        }
    }
    if text.chars().nth(MAX_TEXT).is_some() {
        escaped.push('…');
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(event: &Value) -> String {
        let body: Value = serde_json::from_str(&body(&event.to_string())).expect("JSON");
        body["text"].as_str().expect("a text").to_owned()
    }

    #[test]
    fn each_event_is_a_sentence() {
        let prompt = json!({ "name": "hello", "version": 3, "change": "changed" });
        let mut event = json!({
            "event": "published", "channel": "production", "revision": 12, "proposal": 7, "kind": "publish",
            "author": "ada", "message": "First", "prompts": [prompt],
        });
        assert_eq!(text(&event), "*production*: ada published revision 12: First\n• hello changed, version 3");
        event["event"] = "rolled-back".into();
        assert!(text(&event).starts_with("*production*: ada rolled back, as revision 12: First"));
        event["event"] = "proposed".into();
        event["lacks"] = json!(["1 more approval is needed"]);
        let proposed = text(&event);
        assert!(proposed.contains("ada made proposal 7: First") && proposed.ends_with("• 1 more approval is needed"));
        let review = json!({ "reviewer": "ben", "verdict": "reject", "note": "No" });
        let event = json!({ "event": "reviewed", "channel": "c", "proposal": 7, "author": "ada", "review": review });
        assert_eq!(text(&event), "*c*: ben rejected proposal 7 of ada: No");
        let event = json!({ "event": "broken", "channel": "c", "revision": 2, "findings": ["a.md:1: error"] });
        assert_eq!(text(&event), "*c*: revision 2 is broken\n• a.md:1: error");
    }

    // req: S-193
    #[test]
    fn texts_of_authors_cannot_notify_or_link() {
        let message = format!("<!channel> <https://evil.example|click> & {}", "x".repeat(10_000));
        let event =
            json!({ "event": "published", "channel": "c", "revision": 1, "author": "<@U1>", "message": message });
        let text = text(&event);
        assert!(text.contains("&lt;!channel&gt;") && text.contains("&lt;@U1&gt;") && !text.contains('<'), "{text}");
        assert!(text.chars().count() < 700, "{text}");
    }
}

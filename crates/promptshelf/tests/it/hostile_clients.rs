//! X24: hostile and vanishing clients of the program on stdio.

use std::fs;

use promptshelf::mcp::Revision;
use serde_json::{Value, json};

use crate::{
    program::PATIENCE,
    wire::{Folder, Pipe, client_over_stdio, in_time, pipe_to_program},
};

/// The upper bound of the program's peak memory, in KiB: several times the bound of a line, 16 MiB. Pages of the
/// program's file do not count: a debug build alone has 50 MB of them.
const MAX_MEMORY: u64 = 80 * 1024;

const CHUNK: usize = 1 << 20;

fn library() -> Folder {
    let folder = Folder::empty();
    folder.write("hello.md", "Hello.\n");
    folder
}

async fn assert_answers(pipe: &mut Pipe) {
    let answer = pipe.request(&json!({ "jsonrpc": "2.0", "id": "there?", "method": "ping" })).await;
    assert_eq!(answer, json!({ "jsonrpc": "2.0", "id": "there?", "result": {} }));
}

/// Returns the peak memory of the program, in KiB.
fn peak_memory(pipe: &mut Pipe) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{}/status", pipe.process().id()?)).ok()?;
    let value = |name: &str| -> Option<u64> {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().strip_suffix(" kB")?.parse().ok()
    };
    Some(value("VmHWM:")?.saturating_sub(value("RssFile:")?))
}

fn assert_memory_bounded(pipe: &mut Pipe) {
    if let Some(most) = peak_memory(pipe) {
        assert!(most < MAX_MEMORY, "{most} KiB");
    }
}

async fn assert_clean_end(pipe: &mut Pipe) {
    let status = in_time("the program's end", pipe.process().wait()).await.expect("an end");
    assert!(status.success(), "the program ended with {status}");
}

// req: X24
#[tokio::test]
async fn hundred_megabyte_line_is_refused_in_bounded_memory() {
    let folder = library();
    let mut pipe = pipe_to_program(folder.path());
    let chunk = vec![b'a'; CHUNK];
    for _ in 0..100 {
        pipe.send_part(&chunk).await;
    }
    pipe.send(b"").await;
    let refusal = pipe.receive().await;
    assert_eq!(refusal["error"]["code"], -32700, "{refusal}");
    assert!(refusal.get("id").is_none(), "{refusal}");
    assert_answers(&mut pipe).await;
    assert_memory_bounded(&mut pipe);
    assert_eq!(pipe.end().await, Vec::<Value>::new());
}

#[tokio::test]
async fn unfinished_hundred_megabyte_line_ends_cleanly() {
    let folder = library();
    let mut pipe = pipe_to_program(folder.path());
    pipe.send_part(br#"{"jsonrpc":"2.0","id":1,"method":""#).await;
    let chunk = vec![b'a'; CHUNK];
    for _ in 0..100 {
        pipe.send_part(&chunk).await;
    }
    assert_memory_bounded(&mut pipe);
    let rest = pipe.end().await;
    assert!(rest.iter().all(|message| message["error"]["code"] == -32700), "{rest:?}");
}

// req: X24
#[tokio::test]
async fn hundred_thousand_invalid_lines_are_refused() {
    let folder = library();
    let mut pipe = pipe_to_program(folder.path());
    let noise: [&[u8]; 4] = [b"\xff\xfe\xfd", b"\0", b"{\"a\":\xc3\x28}", b"\x1b[2J"];
    for line in noise {
        pipe.send(line).await;
        let refusal = pipe.receive().await;
        assert_eq!((&refusal["error"]["code"], refusal.get("id")), (&json!(-32700), None), "{line:?}");
    }
    let many: Vec<u8> = noise.iter().cycle().take(100).flat_map(|line| [line, &b"\n"[..]].concat()).collect();
    for _ in 0..1_000 {
        pipe.send_part(&many).await;
        for _ in 0..100 {
            assert_eq!(pipe.receive().await["error"]["code"], -32700);
        }
    }
    assert_answers(&mut pipe).await;
    assert_memory_bounded(&mut pipe);
    assert_eq!(pipe.end().await, Vec::<Value>::new());
}

// req: K7, X24
#[tokio::test]
async fn end_of_input_within_a_request_ends_cleanly() {
    let folder = library();
    for half in [r#"{"jsonrpc":"2.0","id":1,"meth"#, "{", "\"", "[{"] {
        let mut pipe = pipe_to_program(folder.path());
        assert_answers(&mut pipe).await;
        pipe.send_part(half.as_bytes()).await;
        let rest = pipe.end().await;
        assert!(rest.iter().all(|message| message["error"]["code"] == -32700), "{rest:?}");
    }
}

#[tokio::test]
async fn last_request_without_newline_is_answered() {
    let folder = library();
    let mut pipe = pipe_to_program(folder.path());
    pipe.send_part(br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#).await;
    assert_eq!(pipe.end().await, [json!({ "jsonrpc": "2.0", "id": 1, "result": {} })]);
}

/// The input stays open, so only the failing output shows that the client has vanished.
// req: X24
#[tokio::test]
async fn closed_output_ends_the_program() {
    let folder = library();
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": Revision::V2026_07_28.as_str(),
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({ "notifications": { "promptsListChanged": true }, "_meta": meta });
    let listen = json!({ "jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params });
    let mut pipe = pipe_to_program(folder.path());
    assert_eq!(pipe.request(&listen).await["method"], "notifications/subscriptions/acknowledged");
    pipe.stop_reading();
    folder.write("more.md", "More.\n");
    assert_clean_end(&mut pipe).await;
}

#[tokio::test]
async fn signal_within_a_line_ends_the_program() {
    let folder = library();
    let mut pipe = pipe_to_program(folder.path());
    assert_answers(&mut pipe).await;
    pipe.send_part(&vec![b'a'; 5 * CHUNK]).await;
    let begun = std::time::Instant::now();
    pipe.shut_down();
    assert_clean_end(&mut pipe).await;
    assert!(begun.elapsed() < PATIENCE / 2, "{:?}", begun.elapsed());
}

// req: H7
#[tokio::test]
async fn signal_ends_subscription_with_its_result() {
    let folder = library();
    let mut client = client_over_stdio(folder.path(), Revision::V2026_07_28).await;
    let id = client.listen(json!({ "promptsListChanged": true })).await;
    client.shut_down();
    let result = json!({ "resultType": "complete", "_meta": { "io.modelcontextprotocol/subscriptionId": id } });
    assert_eq!(client.receive().await, json!({ "jsonrpc": "2.0", "id": id, "result": result }));
    assert_eq!(client.end().await, Vec::<Value>::new());
}

/// X23: ten thousand subscriptions on one pipe. The first are accepted, the others are refused, and each change sends
/// one line to each accepted subscription.
// req: S-38, X23
#[tokio::test]
async fn subscriptions_over_the_limit_are_refused() {
    let folder = library();
    let mut pipe = pipe_to_program(folder.path());
    let (mut taken, mut refused) = (0, 0);
    for _ in 0..100 {
        let mut lines = Vec::new();
        for _ in 0..100 {
            let id = taken + refused + lines.len();
            let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
            let params = format!(r#"{{"notifications":{{"promptsListChanged":true}},{meta}}}"#);
            lines.push(format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"subscriptions/listen\",\"params\":{params}}}\n"
            ));
        }
        pipe.send_part(lines.concat().as_bytes()).await;
        for _ in 0..100 {
            let answer = pipe.receive().await;
            match answer["method"].as_str() {
                Some("notifications/subscriptions/acknowledged") => taken += 1,
                _ => {
                    assert_eq!(answer["error"]["code"], -32600, "{answer}");
                    refused += 1;
                }
            }
        }
    }
    assert!(taken > 1_000 && refused > 1_000, "{taken} taken, {refused} refused");
    folder.write("more.md", "More.\n");
    for _ in 0..taken {
        assert_eq!(pipe.receive().await["method"], "notifications/prompts/list_changed");
    }
    assert_memory_bounded(&mut pipe);
    assert_eq!(pipe.end().await, Vec::<Value>::new());
}

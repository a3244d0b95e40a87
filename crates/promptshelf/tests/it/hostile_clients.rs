//! X24: hostile and dying clients of the program on stdio.

use std::fs;

use promptshelf::mcp::Revision;
use serde_json::{Value, json};

use crate::{
    program::PATIENCE,
    wire::{Folder, Pipe, client_over_stdio, in_time, pipe_to_program},
};

/// The upper bound of the program's peak memory, in KiB: several times the bound of a line, 16 MiB, and a tenth of
/// the bytes sent.
const MOST_MEMORY: u64 = 120 * 1024;

const CHUNK: usize = 1 << 20;

fn library() -> Folder {
    let folder = Folder::empty();
    folder.write("hello.md", "Hello.\n");
    folder
}

async fn is_answered(pipe: &mut Pipe) {
    let answer = pipe.request(&json!({ "jsonrpc": "2.0", "id": "there?", "method": "ping" })).await;
    assert_eq!(answer, json!({ "jsonrpc": "2.0", "id": "there?", "result": {} }));
}

/// The most memory that a program has had, in KiB.
fn memory(pipe: &mut Pipe) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{}/status", pipe.process().id()?)).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}

fn is_bounded(pipe: &mut Pipe) {
    if let Some(most) = memory(pipe) {
        assert!(most < MOST_MEMORY, "{most} KiB");
    }
}

async fn ends_well(pipe: &mut Pipe) {
    let status = in_time("the program's end", pipe.process().wait()).await.expect("an end");
    assert!(status.success(), "the program ended with {status}");
}

// req: X24
#[tokio::test]
async fn a_line_of_a_hundred_megabytes_is_refused_and_not_kept() {
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
    is_answered(&mut pipe).await;
    is_bounded(&mut pipe);
    assert_eq!(pipe.end().await, Vec::<Value>::new());
}

#[tokio::test]
async fn a_hundred_megabytes_of_one_message_and_then_nothing_end_the_program_well() {
    let folder = library();
    let mut pipe = pipe_to_program(folder.path());
    pipe.send_part(br#"{"jsonrpc":"2.0","id":1,"method":""#).await;
    let chunk = vec![b'a'; CHUNK];
    for _ in 0..100 {
        pipe.send_part(&chunk).await;
    }
    is_bounded(&mut pipe);
    let rest = pipe.end().await;
    assert!(rest.iter().all(|message| message["error"]["code"] == -32700), "{rest:?}");
}

// req: X24
#[tokio::test]
async fn a_hundred_thousand_lines_of_noise_are_each_refused() {
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
    is_answered(&mut pipe).await;
    is_bounded(&mut pipe);
    assert_eq!(pipe.end().await, Vec::<Value>::new());
}

// req: K7, X24
#[tokio::test]
async fn the_end_of_the_input_in_the_middle_of_a_request_ends_the_program_well() {
    let folder = library();
    for half in [r#"{"jsonrpc":"2.0","id":1,"meth"#, "{", "\"", "[{"] {
        let mut pipe = pipe_to_program(folder.path());
        is_answered(&mut pipe).await;
        pipe.send_part(half.as_bytes()).await;
        let rest = pipe.end().await;
        assert!(rest.iter().all(|message| message["error"]["code"] == -32700), "{rest:?}");
    }
}

#[tokio::test]
async fn a_last_request_without_the_end_of_its_line_is_answered() {
    let folder = library();
    let mut pipe = pipe_to_program(folder.path());
    pipe.send_part(br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#).await;
    assert_eq!(pipe.end().await, [json!({ "jsonrpc": "2.0", "id": 1, "result": {} })]);
}

/// Its input stays open, so only the failing output shows that the client has gone.
// req: X24
#[tokio::test]
async fn a_client_that_no_longer_reads_ends_the_program_at_the_next_word() {
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
    ends_well(&mut pipe).await;
}

#[tokio::test]
async fn a_signal_ends_the_program_in_the_middle_of_a_line() {
    let folder = library();
    let mut pipe = pipe_to_program(folder.path());
    is_answered(&mut pipe).await;
    pipe.send_part(&vec![b'a'; 5 * CHUNK]).await;
    let begun = std::time::Instant::now();
    pipe.shut_down();
    ends_well(&mut pipe).await;
    assert!(begun.elapsed() < PATIENCE / 2, "{:?}", begun.elapsed());
}

// req: H7
#[tokio::test]
async fn a_signal_lets_a_subscription_end_as_the_protocol_asks_for() {
    let folder = library();
    let mut client = client_over_stdio(folder.path(), Revision::V2026_07_28).await;
    let id = client.listen(json!({ "promptsListChanged": true })).await;
    client.shut_down();
    let result = json!({ "resultType": "complete", "_meta": { "io.modelcontextprotocol/subscriptionId": id } });
    assert_eq!(client.receive().await, json!({ "jsonrpc": "2.0", "id": id, "result": result }));
    assert_eq!(client.end().await, Vec::<Value>::new());
}

/// X23: of ten thousand subscriptions on one pipe the first are taken, the
/// others are refused, and every change costs each of them one line.
// req: S-38, X23
#[tokio::test]
async fn ten_thousand_subscriptions_are_too_many() {
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
    is_bounded(&mut pipe);
    assert_eq!(pipe.end().await, Vec::<Value>::new());
}

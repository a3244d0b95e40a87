//! Written conversations with the server, played on every transport.
//!
//! A transcript is a Markdown file in `transcripts/`. It is played over a pair of pipes in memory, over the program's
//! stdin and stdout, and over HTTP, and must give the same result on all three. `TRANSCRIPT=x05` plays only those
//! whose name contains `x05`; `UPDATE_TRANSCRIPTS=1` records the actual responses, for review by a person.
//!
//! ```text
//! # A sentence that names the subject
//!
//! <!-- req: C6 -->
//!
//! Prose.
//!
//! Library: examples/library
//! Over: memory, stdio
//!
//! ~~~file greet.md
//! Hello {{ name }}
//! ~~~
//!
//! ## 2025-06-18, 2025-11-25: the events of this conversation
//!
//! ~~~client
//! {"id":1,"method":"prompts/get","params":{"name":"greet"}}
//! ~~~
//!
//! ~~~server
//! {"jsonrpc":"2.0","id":1,"result":{…}}
//! ~~~
//! ```
//!
//! Everything outside of blocks, headings and the two lines `Library:` and `Over:` is prose. The comment `req:` names
//! the requirements that the transcript proves.
//!
//! **Library.** `Library:` names a folder of this repository to serve. A block `~~~file PATH` before the first
//! conversation adds a file to it, or creates a library without one.
//!
//! **Over.** The transports of the transcript: `memory`, `stdio`, `http`. Without the line, all of them.
//!
//! **Conversations.** A heading that begins with revisions opens one conversation for each of them, with a server of
//! its own. In a legacy revision the handshake has taken place, and over HTTP the stream for notifications is open. A
//! heading that begins with `No revision` leaves the handshake to the transcript.
//!
//! **Messages of the client.** A block `~~~client` contains one message, on any number of lines; `"jsonrpc":"2.0"` is
//! added, and in 2026-07-28 also `_meta` with revision and capabilities, unless the message has one. A block `~~~raw`
//! is sent exactly as written, without its last line break. `~~~client again` repeats the message until the response
//! is the expected one, like a client that waits for an edit; other messages that arrive meanwhile are kept for the
//! blocks after it.
//!
//! In both, `‹a×1000›` is a thousand times `a` (with `#` in it, counted from 0), `‹0xff›` is a byte, and `‹name›` is
//! the string that an earlier response bound to that name.
//!
//! Over HTTP every message is a request of its own, with the headers that its revision requires. A transcript over
//! HTTP alone may begin a block with header lines: a method (`GET`), a header that replaces the usual one (`Mcp-Name:
//! other`, repeatable), or one to omit (`-Mcp-Name`); a line `-` omits all headers of the revision.
//!
//! **Messages of the server.** Each block `~~~server` is the next message, complete: every key is required, and no
//! other is allowed. `"…"` matches any value, `"‹name›"` any string and binds it for later lines, and `"begin…[99]"`
//! a string of 99 characters with that beginning. Without a block, no message is expected. An empty block is a
//! response without a body, and one that `UPDATE_TRANSCRIPTS` fills in. Over HTTP the status is 200 (202 without a
//! message), or the number after `server`; a transcript over HTTP alone may begin the block with headers that are
//! required or, with `-`, forbidden.
//!
//! **Meanwhile.** `~~~file PATH` writes a file, `~~~remove PATH` removes one, and `~~~shutdown` asks the server to
//! end, all while the conversation goes on. At the end of a conversation no message may be left that no block has
//! expected.

mod expected;
mod play;
mod script;
mod sent;

use std::{fs, path::Path, sync::Arc};

use script::{Over, Script};
use tokio::{sync::Semaphore, task::JoinSet};

/// The maximum number of transcripts played concurrently.
const AT_ONCE: usize = 4;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transcripts_pass_on_every_transport() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/transcripts");
    let wanted = std::env::var("TRANSCRIPT").unwrap_or_default();
    let update = std::env::var_os("UPDATE_TRANSCRIPTS").is_some();
    let mut files: Vec<_> = fs::read_dir(&folder)
        .expect("the transcripts")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().contains(&wanted)))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "there is no transcript whose name holds {wanted:?}");
    let turns = Arc::new(Semaphore::new(AT_ONCE));
    let mut playing = JoinSet::new();
    for file in files {
        let turns = Arc::clone(&turns);
        playing.spawn(async move {
            let _turn = turns.acquire().await.expect("never closed");
            let name = file.file_stem().expect("a name").to_string_lossy().into_owned();
            // A separate task, so that a panic fails this transcript only.
            let played = tokio::spawn(play_file(file, update)).await;
            let failure = match played {
                Ok(played) => played.err(),
                Err(panic) => Some(reason(panic)),
            };
            failure.map(|failure| format!("{name}: {failure}"))
        });
    }
    let mut failures: Vec<String> = playing.join_all().await.into_iter().flatten().collect();
    failures.sort();
    assert!(failures.is_empty(), "{} transcripts differ\n\n{}", failures.len(), failures.join("\n\n"));
}

async fn play_file(file: std::path::PathBuf, update: bool) -> Result<(), String> {
    let text = fs::read_to_string(&file).map_err(|error| error.to_string())?;
    let mut script = Script::parse(&text)?;
    if update {
        let over = if script.over.contains(&Over::Http) { Over::Http } else { script.over[0] };
        let answers = play::record(&script, over).await?;
        fs::write(&file, script.with(answers)).map_err(|error| error.to_string())?;
        script = Script::parse(&fs::read_to_string(&file).map_err(|error| error.to_string())?)?;
    }
    for over in &script.over {
        play::check(&script, *over).await?;
    }
    Ok(())
}

fn reason(panic: tokio::task::JoinError) -> String {
    let Ok(panic) = panic.try_into_panic() else { return "it was cancelled".to_owned() };
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
}

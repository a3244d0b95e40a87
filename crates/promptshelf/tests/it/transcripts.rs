//! Conversations with the server, written down, and played on every wire.
//!
//! A transcript is a Markdown file in `transcripts/`. It is played over a pair
//! of pipes in memory, over the program's stdin and stdout, and over HTTP, and
//! has to read the same on all three. `TRANSCRIPT=x05` plays only those whose
//! name holds `x05`; `UPDATE_TRANSCRIPTS=1` writes down what is answered, to be
//! read by a person before it is believed.
//!
//! ```text
//! # A sentence that says what is shown
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
//! ## 2025-06-18, 2025-11-25: what happens here
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
//! Everything outside of blocks, headings and the two lines `Library:` and
//! `Over:` is prose.
//!
//! **Library.** `Library:` names a folder of this repository that is served. A
//! block `~~~file PATH` before the first conversation adds a file to it, or
//! makes a library without one.
//!
//! **Over.** The wires it is about: `memory`, `stdio`, `http`. All of them when
//! the line is missing.
//!
//! **Conversations.** A heading that begins with revisions opens one for each
//! of them, with a server of its own. In a legacy revision the handshake has
//! taken place, and over HTTP the stream for notifications is open. A heading
//! that begins with `No revision` leaves the handshake to the transcript.
//!
//! **What the client sends.** In a block `~~~client` stands one message, on as
//! many lines as are pleasant; `"jsonrpc":"2.0"` is added, and in 2026-07-28 also
//! `_meta` with revision and capabilities, unless the message has one. A block
//! `~~~raw` is sent exactly as it stands, without its last line break.
//! `~~~client again` sends the message until the answer is the one that is
//! written down, as somebody does who waits for an edit to be served; other
//! messages that come meanwhile are kept for the blocks after it.
//!
//! In both, `‹a×1000›` is a thousand times `a` (with `#` in it, counted from
//! 0), `‹0xff›` is a byte, and `‹name›` is what an answer has given that name.
//!
//! Over HTTP every message is a request of its own, with the headers that its
//! revision demands. A transcript that is over HTTP alone may begin a block with
//! lines of its own: a verb (`GET`), a header that takes the place of the usual
//! one (`Mcp-Name: other`, more than once if wanted), or one that is left out
//! (`-Mcp-Name`); a line `-` leaves all out that have to do with the revision.
//!
//! **What the server says.** Each block `~~~server` is the next message, whole:
//! every key has to be there, and no other. `"…"` is any value, `"‹name›"` any
//! string, which later lines can then send, and `"begin…[99]"` a string of 99
//! characters with that beginning. Where no block follows, nothing is said.
//! An empty block is an answer without a body, and one that `UPDATE_TRANSCRIPTS`
//! fills in. Over HTTP the status is 200 (202 where nothing is said), or what
//! stands behind `server`; a transcript that is over HTTP alone may begin the
//! block with headers that have to be there or, with `-`, must not be.
//!
//! **Meanwhile.** `~~~file PATH` writes a file, `~~~remove PATH` removes one, and
//! `~~~shutdown` asks the server to end, all while the conversation goes on. At
//! the end of a conversation nothing may be left that no block has expected.

mod expected;
mod play;
mod script;
mod sent;

use std::{fs, path::Path, sync::Arc};

use script::{Over, Script};
use tokio::{sync::Semaphore, task::JoinSet};

/// Transcripts that are played at the same time.
const AT_ONCE: usize = 4;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_transcript_reads_the_same_on_every_wire() {
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
            // A task of its own, so that a panic is this transcript's failure alone.
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

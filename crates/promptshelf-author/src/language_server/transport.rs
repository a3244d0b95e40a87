//! Messages on stdin and stdout. What an editor sends is bounded, and a text that is not quite Unicode ends nothing.

use std::{
    io::{self, BufRead, Read, stdin, stdout},
    thread::{self, JoinHandle},
};

use lsp_server::{Connection, Message};

/// The largest message: the largest text of a library with every character escaped, and room for more.
const MAX_MESSAGE: u64 = 128 << 20;

/// The largest head of a message, in bytes.
const MAX_HEAD: u64 = 8 << 10;

/// The threads that read and write.
pub(super) struct Threads {
    reader: JoinHandle<io::Result<()>>,
    writer: JoinHandle<io::Result<()>>,
}

impl Threads {
    /// Waits until all is written.
    pub(super) fn join(self) -> io::Result<()> {
        let ended = |thread: JoinHandle<io::Result<()>>| {
            thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread of the connection has failed")))
        };
        ended(self.reader)?;
        ended(self.writer)
    }
}

pub(super) fn stdio() -> (Connection, Threads) {
    let (server, Connection { sender, receiver }) = Connection::memory();
    let reader = thread::spawn(move || {
        let mut input = stdin().lock();
        while let Some(message) = read(&mut input)? {
            let is_exit = matches!(&message, Message::Notification(note) if note.method == "exit");
            if sender.send(message).is_err() || is_exit {
                break;
            }
        }
        Ok(())
    });
    let writer = thread::spawn(move || {
        let mut output = stdout().lock();
        receiver.iter().try_for_each(|message| message.write(&mut output))
    });
    (server, Threads { reader, writer })
}

/// Reads a message; `None` at the end of the input.
fn read(input: &mut impl BufRead) -> io::Result<Option<Message>> {
    let invalid = |reason: String| io::Error::new(io::ErrorKind::InvalidData, reason);
    let mut length = None;
    let mut head = input.by_ref().take(MAX_HEAD);
    loop {
        let mut line = String::new();
        if head.read_line(&mut line)? == 0 {
            return match head.limit() {
                0 => Err(invalid(format!("the head of a message is longer than {MAX_HEAD} bytes"))),
                _ => Ok(None),
            };
        }
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        let Some((name, value)) = line.split_once(':') else {
            return Err(invalid(format!("expected a header such as `Content-Length: 2`, got {line:?}")));
        };
        if name.eq_ignore_ascii_case("content-length") {
            let parsed = value.trim().parse::<u64>().ok().filter(|length| *length <= MAX_MESSAGE);
            let wrong =
                || invalid(format!("the length of a message is {:?}; at most {MAX_MESSAGE} bytes", value.trim()));
            length = Some(parsed.ok_or_else(wrong)?);
        }
    }
    let length = length.ok_or_else(|| invalid("a message has no Content-Length".to_owned()))?;
    let mut body = Vec::new();
    if input.by_ref().take(length).read_to_end(&mut body)? as u64 != length {
        return Ok(None);
    }
    let body = String::from_utf8_lossy(&body);
    let parsed = serde_json::from_str(&body).or_else(|_| serde_json::from_str(&without_surrogates(&body)));
    parsed.map(Some).map_err(|error| invalid(format!("a message is no JSON-RPC: {error}")))
}

/// Replaces halves of surrogate pairs, which JavaScript writes for a text that was cut inside a character.
fn without_surrogates(json: &str) -> String {
    let unit = |at: usize| {
        let digits = json.get(at..at + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(digits, 16).ok()
    };
    let (mut out, mut at) = (String::with_capacity(json.len()), 0);
    while let Some(offset) = json[at..].find('\\') {
        let start = at + offset;
        out.push_str(&json[at..start]);
        let length = match (unit(start), unit(start + 6)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 12,
            (Some(0xd800..=0xdfff), _) => {
                out.push_str("\\ufffd");
                at = start + 6;
                continue;
            }
            _ => 2,
        };
        let end = json.ceil_char_boundary((start + length).min(json.len()));
        out.push_str(&json[start..end]);
        at = end;
    }
    out + &json[at..]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framed(body: &str) -> Vec<u8> {
        format!("Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
    }

    // req: S-550
    #[test]
    fn halves_of_surrogate_pairs_end_nothing() {
        for (written, expected) in [
            (r"a\ud800b", "a\u{fffd}b"),
            (r"\udc00", "\u{fffd}"),
            (r"\ud83d\ude00 \ud83d", "😀 \u{fffd}"),
            (r"\\ud800 \n", "\\ud800 \n"),
        ] {
            let body = format!(r#"{{"method":"x","params":{{"text":"{written}"}}}}"#);
            let read = read(&mut framed(&body).as_slice()).expect(written);
            let Some(Message::Notification(note)) = read else { panic!("{written}") };
            assert_eq!(note.params["text"], expected, "{written}");
        }
    }

    // req: S-550
    #[test]
    fn messages_are_bounded() {
        let endless = vec![b'x'; 1 << 20];
        for head in [
            &b"Content-Length: 99999999999999\r\n\r\n"[..],
            b"Content-Length: -1\r\n\r\n",
            b"Content-Type: x\r\n\r\n",
            b"x\r\n\r\n",
            &endless,
        ] {
            assert!(read(&mut &*head).is_err(), "{}", String::from_utf8_lossy(&head[..head.len().min(40)]));
        }
        assert!(read(&mut &b"Content-Length: 100000000\r\n\r\n{}"[..]).expect("it ends").is_none());
        assert!(read(&mut &b""[..]).expect("it ends").is_none());
        assert!(read(&mut &framed("{")[..]).is_err());
    }
}

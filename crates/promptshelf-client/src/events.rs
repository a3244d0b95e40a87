//! Server-sent events, read as the standard requires: fields with unknown names or invalid values are ignored
//! (WHATWG HTML, *9.2.6 Interpreting an event stream*).

use std::{collections::VecDeque, error::Error, fmt};

use futures_util::{StreamExt as _, stream};
use rmcp::transport::streamable_http_client::SseError;
use sse_stream::Sse;

use crate::{http::Events, tolerance};

/// Reads the messages of an answer. Events of other types carry none, but their identifiers count.
pub(crate) fn events(response: reqwest::Response, max_size: usize) -> Events {
    let parser = Parser { max_size, is_first_line: true, ..Parser::default() };
    let events = stream::unfold(Some((response, parser)), |state| async {
        let (mut response, mut parser) = state?;
        loop {
            if let Some(event) = parser.ready.pop_front() {
                return Some((Ok(event), Some((response, parser))));
            }
            let error: Box<dyn Error + Send + Sync> = match response.chunk().await {
                Ok(Some(bytes)) => match parser.push(&bytes) {
                    Ok(()) => continue,
                    Err(error) => Box::new(error),
                },
                Ok(None) => return None,
                Err(error) => Box::new(error),
            };
            return Some((Err(SseError::Body(error)), None));
        }
    });
    events.boxed()
}

#[derive(Debug)]
struct EventTooLarge(usize);

impl fmt::Display for EventTooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an event of the server exceeds {} bytes", self.0)
    }
}

impl Error for EventTooLarge {}

#[derive(Default)]
struct Parser {
    max_size: usize,
    line: Vec<u8>,
    is_first_line: bool,
    is_after_return: bool,
    event: Sse,
    ready: VecDeque<Sse>,
}

impl Parser {
    fn push(&mut self, mut bytes: &[u8]) -> Result<(), EventTooLarge> {
        if std::mem::take(&mut self.is_after_return) {
            bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
        }
        while let Some(end) = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            self.line.extend_from_slice(&bytes[..end]);
            self.check_size()?;
            self.end_line();
            let rest = &bytes[end + 1..];
            self.is_after_return = bytes[end] == b'\r' && rest.is_empty();
            bytes = if bytes[end] == b'\r' { rest.strip_prefix(b"\n").unwrap_or(rest) } else { rest };
        }
        self.line.extend_from_slice(bytes);
        self.check_size()
    }

    fn check_size(&self) -> Result<(), EventTooLarge> {
        let size = self.line.len() + self.event.data.as_ref().map_or(0, String::len);
        if size > self.max_size { Err(EventTooLarge(self.max_size)) } else { Ok(()) }
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        let mut line = line.as_slice();
        if std::mem::take(&mut self.is_first_line) {
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        if line.is_empty() {
            return self.end_event();
        }
        let (name, value) = match line.iter().position(|byte| *byte == b':') {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &line[line.len()..]),
        };
        let value = String::from_utf8_lossy(value.strip_prefix(b" ").unwrap_or(value));
        match name {
            b"data" => match &mut self.event.data {
                Some(data) => data.extend(["\n", &value]),
                None => self.event.data = Some(value.into_owned()),
            },
            b"event" => self.event.event = Some(value.into_owned()),
            b"id" if !value.contains('\0') => self.event.id = Some(value.into_owned()),
            b"retry" if value.bytes().all(|byte| byte.is_ascii_digit()) => self.event.retry = value.parse().ok(),
            _ => {}
        }
    }

    fn end_event(&mut self) {
        let mut event = std::mem::take(&mut self.event);
        let is_message = matches!(event.event.take().as_deref(), None | Some("" | "message"));
        let data = event.data.take().filter(|_| is_message);
        if event != Sse::default() {
            self.ready.push_back(event);
        }
        let Some(data) = data else { return };
        let message = |data: String| Sse::default().data(data);
        if tolerance::recognized(data.as_bytes()).is_some() {
            self.ready.push_back(message(data));
        } else if let Ok(messages) = tolerance::repaired(data.as_bytes()) {
            self.ready.extend(messages.iter().map(|value| message(value.to_string())));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESSAGE: &str = r#"{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}"#;

    fn parsed(chunks: &[&str], max_size: usize) -> Result<Vec<Sse>, EventTooLarge> {
        let mut parser = Parser { max_size, is_first_line: true, ..Parser::default() };
        chunks.iter().try_for_each(|chunk| parser.push(chunk.as_bytes()))?;
        Ok(parser.ready.into())
    }

    fn messages(text: &str) -> Vec<String> {
        parsed(&[text], 1000).expect("small events").into_iter().filter_map(|event| event.data).collect()
    }

    #[test]
    fn what_is_no_message_is_ignored() {
        for before in [
            "",
            ": a comment\n\n",
            "event: ping\ndata: {}\n\n",
            "event: ping\ndata: 2026-01-01\n\n",
            "foo: bar\n",
            "foo\n",
            "retry: soon\n",
            "retry: 5\nretry: 6\n",
            "id: a\0b\n",
            "data\n\n",
            "data: {oops\n\n",
            "\u{feff}event: message\n",
        ] {
            assert_eq!(messages(&format!("{before}data: {MESSAGE}\n\n")), [MESSAGE], "{before:?}");
        }
        let batch = format!("data: [{MESSAGE},{MESSAGE}]\n\n");
        assert_eq!(messages(&batch), [MESSAGE, MESSAGE]);
    }

    #[test]
    fn lines_end_in_three_ways() {
        for end in ["\n", "\r", "\r\n"] {
            let (first, second) = MESSAGE.split_at(17);
            let text = format!("id: 7{end}data:{first}{end}data: {second}{end}{end}data:{end}{end}");
            for cut in 0..text.len() {
                let (one, two) = text.split_at(cut);
                let events = parsed(&[one, two], 1000).expect("small events");
                assert_eq!((events.len(), events[0].id.as_deref()), (2, Some("7")), "{one:?} {two:?}");
            }
        }
    }

    #[test]
    fn size_of_an_event_is_bounded() {
        let text = format!("data: {MESSAGE}\n\n").repeat(100);
        assert_eq!(parsed(&[&text], 100).expect("each is small").len(), 100);
        assert!(parsed(&[&format!("data: {}", "x".repeat(200))], 100).is_err());
        assert!(parsed(&[&"data: x\n".repeat(200)], 100).is_err());
    }
}

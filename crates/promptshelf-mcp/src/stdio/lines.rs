//! Splits the input into lines of bounded length.
//!
//! tokio-util's `LinesCodec` is not used because it searches byte by byte, and a line can have
//! megabytes; `memchr` searches blocks.

use std::{io, mem};

use bytes::{Buf as _, Bytes, BytesMut};
use memchr::memchr;
use tokio_util::codec::Decoder;

/// A line without its line feed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    Whole(Bytes),
    /// A line of too many bytes, which is skipped.
    TooLong,
}

/// Splits bytes at line feeds.
#[derive(Debug)]
pub(super) struct Lines {
    /// The most bytes of a line.
    max_bytes: usize,
    /// The number of buffered bytes that are known to hold no line feed.
    searched: usize,
    /// The next bytes are the rest of a line that is too long.
    skipping: bool,
    /// No line has ended yet.
    is_first: bool,
}

/// Some shells and editors write it at the start of what they pass on.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

impl Lines {
    pub(super) fn new(max_bytes: usize) -> Lines {
        Lines { max_bytes, searched: 0, skipping: false, is_first: true }
    }

    fn whole(&mut self, mut line: Bytes) -> Line {
        if mem::take(&mut self.is_first) && line.starts_with(BYTE_ORDER_MARK) {
            line.advance(BYTE_ORDER_MARK.len());
        }
        Line::Whole(line)
    }
}

impl Decoder for Lines {
    type Item = Line;
    type Error = io::Error;

    fn decode(&mut self, bytes: &mut BytesMut) -> io::Result<Option<Line>> {
        loop {
            let end = memchr(b'\n', &bytes[self.searched..]).map(|at| self.searched + at);
            self.searched = if end.is_some() { 0 } else { bytes.len() };
            let length = end.unwrap_or(bytes.len());
            if mem::take(&mut self.skipping) {
                self.skipping = end.is_none();
                self.searched = 0;
                bytes.advance(end.map_or(length, |end| end + 1));
                match end {
                    Some(_) => continue,
                    None => return Ok(None),
                }
            }
            if length > self.max_bytes {
                self.skipping = true;
                self.is_first = false;
                self.searched = 0;
                return Ok(Some(Line::TooLong));
            }
            return Ok(end.map(|end| {
                let line = bytes.split_to(end).freeze();
                bytes.advance(1);
                self.whole(line)
            }));
        }
    }

    fn decode_eof(&mut self, bytes: &mut BytesMut) -> io::Result<Option<Line>> {
        let line = self.decode(bytes)?;
        if line.is_some() || bytes.is_empty() {
            return Ok(line);
        }
        // The last line may have no line feed.
        self.searched = 0;
        Ok(Some(self.whole(bytes.split().freeze())))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lines(pieces: &[&[u8]], max_bytes: usize) -> Vec<Line> {
        let (mut lines, mut bytes, mut found) = (Lines::new(max_bytes), BytesMut::new(), Vec::new());
        for piece in pieces {
            bytes.extend_from_slice(piece);
            while let Some(line) = lines.decode(&mut bytes).expect("decoding never fails") {
                found.push(line);
            }
            assert!(bytes.len() <= max_bytes, "no more than one line is buffered");
        }
        while let Some(line) = lines.decode_eof(&mut bytes).expect("decoding never fails") {
            found.push(line);
        }
        found
    }

    fn whole(text: &'static str) -> Line {
        Line::Whole(Bytes::from_static(text.as_bytes()))
    }

    #[test]
    fn long_line_is_reported_once_and_skipped() {
        let expected = [whole("one"), Line::TooLong, whole("two"), Line::TooLong, whole(""), whole("last")];
        assert_eq!(lines(&[b"one\ntoo l", b"ong", b" it is\ntwo\n12345\n", b"\nlast"], 4), expected);
        assert_eq!(lines(&[b"1234\n12345"], 4), [whole("1234"), Line::TooLong]);
        assert_eq!(lines(&[b""], 4), []);
    }

    #[test]
    fn byte_order_mark_is_ignored_at_the_start_only() {
        const MARK: &[u8] = b"\xef\xbb\xbf";
        let marked = || Line::Whole(Bytes::from_static(b"\xef\xbb\xbftwo"));
        assert_eq!(lines(&[MARK, b"one\n", MARK, b"two\n", MARK, b"two"], 9), [whole("one"), marked(), marked()]);
        assert_eq!(lines(&[&MARK[..1], &MARK[1..], b"one"], 9), [whole("one")]);
        assert_eq!(lines(&[MARK, b"\none"], 9), [whole(""), whole("one")]);
        assert_eq!(lines(&[b"too long\n", MARK, b"two"], 6), [Line::TooLong, marked()]);
    }

    proptest! {
        #[test]
        fn lines_do_not_depend_on_how_the_input_is_split(
            bytes in prop::collection::vec(prop_oneof![3 => Just(b'x'), 1 => Just(b'\n')], 0..60),
            cuts in prop::collection::vec(0_usize..60, 0..6),
            max_bytes in 0_usize..8,
        ) {
            let mut expected: Vec<Line> = bytes
                .split(|byte| *byte == b'\n')
                .map(|line| if line.len() > max_bytes { Line::TooLong } else { Line::Whole(Bytes::copy_from_slice(line)) })
                .collect();
            // The last line feed does not begin another line.
            expected.pop_if(|last| *last == Line::Whole(Bytes::new()));
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]).collect();
            prop_assert_eq!(lines(&pieces, max_bytes), expected);
        }
    }
}

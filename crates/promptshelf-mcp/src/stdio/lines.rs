//! Bytes become lines, each with a bound.
//!
//! Not a codec of the library, because those look at every byte by itself, and a
//! line can have megabytes.

use std::{io, mem};

use bytes::{Buf as _, Bytes, BytesMut};
use memchr::memchr;
use tokio_util::codec::Decoder;

/// A line, without its end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    Whole(Bytes),
    /// It has more bytes than a line may have, and is passed over.
    TooLong,
}

/// Splits bytes at line feeds.
#[derive(Debug)]
pub(super) struct Lines {
    /// The most bytes of a line.
    most: usize,
    /// How many bytes have been looked at already, and hold no end.
    looked_at: usize,
    /// What comes is the rest of a line that is too long.
    skipping: bool,
}

impl Lines {
    pub(super) fn new(most: usize) -> Lines {
        Lines { most, looked_at: 0, skipping: false }
    }
}

impl Decoder for Lines {
    type Item = Line;
    type Error = io::Error;

    fn decode(&mut self, bytes: &mut BytesMut) -> io::Result<Option<Line>> {
        loop {
            let end = memchr(b'\n', &bytes[self.looked_at..]).map(|at| self.looked_at + at);
            self.looked_at = if end.is_some() { 0 } else { bytes.len() };
            let length = end.unwrap_or(bytes.len());
            if mem::take(&mut self.skipping) {
                self.skipping = end.is_none();
                self.looked_at = 0;
                bytes.advance(end.map_or(length, |end| end + 1));
                match end {
                    Some(_) => continue,
                    None => return Ok(None),
                }
            }
            if length > self.most {
                self.skipping = true;
                self.looked_at = 0;
                return Ok(Some(Line::TooLong));
            }
            return Ok(end.map(|end| {
                let line = bytes.split_to(end).freeze();
                bytes.advance(1);
                Line::Whole(line)
            }));
        }
    }

    fn decode_eof(&mut self, bytes: &mut BytesMut) -> io::Result<Option<Line>> {
        let line = self.decode(bytes)?;
        if line.is_some() || bytes.is_empty() {
            return Ok(line);
        }
        // The last line may have no end.
        self.looked_at = 0;
        Ok(Some(Line::Whole(bytes.split().freeze())))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The lines of what comes in these pieces.
    fn lines(pieces: &[&[u8]], most: usize) -> Vec<Line> {
        let (mut lines, mut bytes, mut found) = (Lines::new(most), BytesMut::new(), Vec::new());
        for piece in pieces {
            bytes.extend_from_slice(piece);
            while let Some(line) = lines.decode(&mut bytes).expect("nothing fails") {
                found.push(line);
            }
            assert!(bytes.len() <= most, "no more is kept than a line may have");
        }
        while let Some(line) = lines.decode_eof(&mut bytes).expect("nothing fails") {
            found.push(line);
        }
        found
    }

    fn whole(text: &'static str) -> Line {
        Line::Whole(Bytes::from_static(text.as_bytes()))
    }

    #[test]
    fn a_line_that_is_too_long_is_said_once_and_passed_over() {
        let expected = [whole("one"), Line::TooLong, whole("two"), Line::TooLong, whole(""), whole("last")];
        assert_eq!(lines(&[b"one\ntoo l", b"ong", b" it is\ntwo\n12345\n", b"\nlast"], 4), expected);
        assert_eq!(lines(&[b"1234\n12345"], 4), [whole("1234"), Line::TooLong]);
        assert_eq!(lines(&[b""], 4), []);
    }

    proptest! {
        #[test]
        fn it_does_not_matter_in_which_pieces_lines_come(
            bytes in prop::collection::vec(prop_oneof![3 => Just(b'x'), 1 => Just(b'\n')], 0..60),
            cuts in prop::collection::vec(0_usize..60, 0..6),
            most in 0_usize..8,
        ) {
            let mut expected: Vec<Line> = bytes
                .split(|byte| *byte == b'\n')
                .map(|line| if line.len() > most { Line::TooLong } else { Line::Whole(Bytes::copy_from_slice(line)) })
                .collect();
            // Nothing stands behind the last end of a line.
            expected.pop_if(|last| *last == Line::Whole(Bytes::new()));
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]).collect();
            prop_assert_eq!(lines(&pieces, most), expected);
        }
    }
}

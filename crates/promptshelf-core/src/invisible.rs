//! Characters that are invisible, or that change the display of others.
//!
//! There is one table for lints, for terminals and for values of callers: the characters that lints report are made
//! visible on terminals, and stripped from values or rejected.

use std::borrow::Cow;

/// The treatment of invisible characters in a caller's value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum InvisiblePolicy {
    /// Keeps them.
    Keep,
    /// Removes them, and converts unusual line breaks to `\n`.
    #[default]
    Strip,
    /// Rejects the value; the error names the character.
    Reject,
}

impl InvisiblePolicy {
    /// All policies.
    pub const ALL: &'static [InvisiblePolicy] =
        &[InvisiblePolicy::Keep, InvisiblePolicy::Strip, InvisiblePolicy::Reject];

    /// Returns the policy's name in files.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            InvisiblePolicy::Keep => "keep",
            InvisiblePolicy::Strip => "strip",
            InvisiblePolicy::Reject => "reject",
        }
    }

    /// Parses a policy's name in files.
    #[must_use]
    pub fn parse(text: &str) -> Option<InvisiblePolicy> {
        InvisiblePolicy::ALL.iter().copied().find(|policy| policy.as_str() == text)
    }

    pub(crate) fn apply(self, text: &str) -> Result<Cow<'_, str>, String> {
        // A byte order mark marks the encoding of the file that a value was read from, and does not belong to the value.
        let text = text.trim_start_matches('\u{feff}');
        match self {
            _ if is_plain(text) => Ok(Cow::Borrowed(text)),
            InvisiblePolicy::Keep => Ok(Cow::Borrowed(text)),
            InvisiblePolicy::Strip => Ok(stripped(text)),
            InvisiblePolicy::Reject => match hidden(text).next() {
                None => Ok(Cow::Borrowed(text)),
                Some((at, c)) => {
                    let place = text[..at].chars().count() + 1;
                    Err(format!("must not contain U+{:04X}, {}, as its character {place}", u32::from(c), describe(c)))
                }
            },
        }
    }
}

/// Returns whether a character is invisible or changes the display of others. White space such as line breaks is
/// included; callers decide which white space is ordinary in their context.
///
/// ```
/// use promptshelf_core::invisible::is_invisible;
///
/// assert!(is_invisible('\u{202e}') && is_invisible('\u{200b}') && is_invisible('\u{1b}'));
/// assert!(!is_invisible('a') && !is_invisible(' ') && !is_invisible('語'));
/// ```
#[must_use]
pub fn is_invisible(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Returns whether an invisible character belongs to the preceding one in some scripts and emoji: joiners (UAX #31,
/// section 2.3; UTS #51) and a single variation selector (Unicode Standard, section 23.4). A second selector has no
/// effect and could only hide data.
#[must_use]
pub fn joins(before: char, c: char) -> bool {
    match c {
        // The start of `#️⃣`.
        '\u{fe0e}' | '\u{fe0f}' if matches!(before, '0'..='9' | '#' | '*') => true,
        '\u{200d}' if before == '\u{fe0f}' => true,
        '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}' => !before.is_ascii() && !is_invisible(before),
        // Free variation selectors of Mongolian.
        '\u{180b}'..='\u{180d}' | '\u{180f}' => matches!(before, '\u{1807}'..='\u{18aa}'),
        // Ideographic variation selectors, used in names.
        '\u{e0100}'..='\u{e01ef}' => {
            matches!(before, '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
        }
        _ => false,
    }
}

/// The flags of England, Scotland and Wales: a black flag followed by tag characters. They are the only ones
/// recommended for interchange (UTS #51, emoji tag sequences); any others could hide text.
const FLAGS: [&str; 3] = [
    "\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}",
    "\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f}",
    "\u{e0067}\u{e0062}\u{e0077}\u{e006c}\u{e0073}\u{e007f}",
];

/// Returns the invisible characters of a text, with their offsets, that are not part of ordinary writing.
///
/// Ordinary are tabs and line breaks, a byte order mark at the start, directional marks next to right-to-left letters
/// (UAX #9), joiners and selectors according to [`joins`], and the tags of three flags.
///
/// ```
/// use promptshelf_core::invisible::hidden;
///
/// assert_eq!(hidden("a\u{202e}b").collect::<Vec<_>>(), [(1, '\u{202e}')]);
/// assert_eq!(hidden("one\n\ttwo 👩\u{200d}💻").next(), None);
/// ```
pub fn hidden(text: &str) -> impl Iterator<Item = (usize, char)> + '_ {
    // A hidden character does not justify the one after it.
    let (mut before, mut flag_end) = ('\0', 0);
    if is_plain(text) { "" } else { text }.char_indices().filter(move |&(at, c)| {
        let is_hidden = is_invisible(c) && is_hidden(&text[at..], at, before, c, &mut flag_end);
        before = if is_hidden { '\0' } else { c };
        is_hidden
    })
}

/// Most values are plain. Whole blocks are compared, which is faster than stopping at the first other byte.
fn is_plain(text: &str) -> bool {
    let plain = |byte: &u8| matches!(byte, b' '..=b'~' | b'\n' | b'\t');
    text.as_bytes().chunks(64).all(|block| block.iter().fold(true, |all, byte| all & plain(byte)))
}

fn is_hidden(rest: &str, at: usize, before: char, c: char, flag_end: &mut usize) -> bool {
    if before == '\u{1f3f4}'
        && let Some(flag) = FLAGS.iter().find(|flag| rest.starts_with(**flag))
    {
        *flag_end = at + flag.len();
    }
    at >= *flag_end && !is_ordinary(at, before, c, rest[c.len_utf8()..].chars().next())
}

fn is_ordinary(at: usize, before: char, c: char, next: Option<char>) -> bool {
    match c {
        '\n' | '\t' => true,
        '\r' => next == Some('\n'),
        // A byte order mark.
        '\u{feff}' => at == 0,
        // Directional marks are part of Hebrew and Arabic writing.
        '\u{200e}' | '\u{200f}' | '\u{61c}' => {
            let right_to_left = |c: char| matches!(c, '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}');
            right_to_left(before) || next.is_some_and(right_to_left)
        }
        _ => joins(before, c),
    }
}

/// Returns a text without the characters found by [`hidden`]. Unusual line breaks (Unicode Standard, section 5.8)
/// become `\n`, so that words stay separate.
///
/// ```
/// use promptshelf_core::invisible::stripped;
///
/// assert_eq!(stripped("a\u{200b}b\u{2028}c"), "ab\nc");
/// ```
#[must_use]
pub fn stripped(text: &str) -> Cow<'_, str> {
    // A byte order mark at the start is ordinary in a file, and part of no text.
    rewritten(text.trim_start_matches('\u{feff}'), |c, out| {
        if matches!(c, '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}') {
            out.push('\n');
        }
    })
}

/// Returns a text in which the characters found by [`hidden`] are replaced by their code points, as `<U+202E>`.
#[must_use]
pub fn named(text: &str) -> Cow<'_, str> {
    rewritten(text, |c, out| out.push_str(&format!("<U+{:04X}>", u32::from(c))))
}

fn rewritten(text: &str, mut instead: impl FnMut(char, &mut String)) -> Cow<'_, str> {
    let mut places = hidden(text).peekable();
    if places.peek().is_none() {
        return Cow::Borrowed(text);
    }
    let (mut out, mut copied) = (String::with_capacity(text.len()), 0);
    for (at, c) in places {
        out.push_str(&text[copied..at]);
        instead(c, &mut out);
        copied = at + c.len_utf8();
    }
    out.push_str(&text[copied..]);
    Cow::Owned(out)
}

/// Returns the effect of an invisible character in words.
#[must_use]
pub fn describe(c: char) -> &'static str {
    match c {
        '\u{202a}' | '\u{202b}' | '\u{202d}' | '\u{202e}' => "which reorders the text that follows",
        '\u{2066}'..='\u{2069}' | '\u{202c}' => "which changes the direction of text",
        '\u{200e}' | '\u{200f}' | '\u{61c}' => "a direction mark",
        '\u{200b}' | '\u{2060}' | '\u{feff}' => "a zero-width space",
        '\u{200c}' | '\u{200d}' => "a joiner",
        '\u{ad}' => "a soft hyphen",
        '\u{2028}' | '\u{2029}' => "a line break that most programs do not show",
        '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}' => "a variation selector",
        '\u{e0000}'..='\u{e007f}' => "a tag character, which can hide text from people but not from models",
        c if c.is_control() => "a control character",
        _ => "which is invisible",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_writing_is_unchanged() {
        for text in [
            "one\r\n\ttwo\n",
            "क्\u{200d}ष",
            "می\u{200c}خواهم",
            "❤\u{fe0f}\u{200d}🔥 1\u{fe0f}\u{20e3}",
            "שלום\u{200f}!",
            "葛\u{e0100}飾区",
            "\u{1820}\u{180b}",
            "🏴\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f}!",
            "größer 日本語",
        ] {
            assert_eq!(hidden(text).collect::<Vec<_>>(), [], "{text}");
            assert_eq!(stripped(text), text);
        }
    }

    #[test]
    fn disguised_invisible_characters_are_found() {
        for (text, without) in [
            ("a\u{200d}b", "ab"),
            ("😀\u{fe0f}\u{fe0e}\u{fe0f}", "😀\u{fe0f}"),
            ("葛\u{e0100}\u{e0101}", "葛\u{e0100}"),
            ("🏴\u{e0068}\u{e0069}\u{e007f}", "🏴"),
            ("x\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}", "x"),
            ("a\u{fe0f}\u{200d}b", "ab"),
            ("a\u{200f}b", "ab"),
            ("\u{1b}[2Jx\0", "[2Jx"),
            ("one\u{85}two\u{2029}three\u{b}four\rfive", "one\ntwo\nthree\nfour\nfive"),
        ] {
            assert_eq!(stripped(text), without);
            assert_eq!(stripped(without), without, "once is enough");
        }
        assert_eq!(named("a\u{202e}b\0"), "a<U+202E>b<U+0000>");
    }

    #[test]
    fn byte_order_mark_is_no_part_of_a_value() {
        for policy in InvisiblePolicy::ALL {
            for text in ["\u{feff}añ", "\u{feff}\u{feff}añ", "añ"] {
                assert_eq!(policy.apply(text).as_deref(), Ok("añ"), "{policy:?}");
            }
        }
    }

    #[test]
    fn rejection_names_the_character_and_its_position() {
        let refusal = InvisiblePolicy::Reject.apply("añ\u{202e}b").expect_err("it is refused");
        assert_eq!(refusal, "must not contain U+202E, which reorders the text that follows, as its character 3");
    }
}

//! Characters that people cannot see, or that change how others are shown.
//!
//! One table for whoever warns of them and for whoever shows a text on a
//! terminal: what the one reports, the other makes visible.

/// Whether a character shows nothing, or changes how others are shown. White
/// space of ordinary texts, such as a line break, is among them: it is for the
/// caller to say what is ordinary in his place.
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

/// Whether an invisible character is part of how some scripts and emoji are
/// written: joiners and presentation selectors, as long as there is something
/// before them to join.
#[must_use]
pub fn joins(before: char, c: char) -> bool {
    matches!(c, '\u{200c}' | '\u{200d}' | '\u{fe0e}' | '\u{fe0f}')
        && !before.is_ascii()
        && (!is_invisible(before) || before == '\u{fe0f}' && c == '\u{200d}')
}

/// What an invisible character does, in words.
#[must_use]
pub fn describe(c: char) -> &'static str {
    match c {
        '\u{202a}' | '\u{202b}' | '\u{202d}' | '\u{202e}' => "which reorders the text that follows",
        '\u{2066}'..='\u{2069}' | '\u{202c}' => "which changes the direction of text",
        '\u{200e}' | '\u{200f}' | '\u{61c}' => "a mark of direction",
        '\u{200b}' | '\u{2060}' | '\u{feff}' => "a space without width",
        '\u{200c}' | '\u{200d}' => "a joiner",
        '\u{ad}' => "a soft hyphen",
        '\u{2028}' | '\u{2029}' => "a line break that most programs do not show",
        '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}' => "a variation selector",
        '\u{e0000}'..='\u{e007f}' => "a tag, with which text can be hidden from people and not from models",
        c if c.is_control() => "a control character",
        _ => "which nobody can see",
    }
}

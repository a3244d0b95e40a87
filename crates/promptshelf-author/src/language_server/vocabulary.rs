//! Descriptions of the words of the template language.

pub(super) const FUNCTIONS: &[(&str, &str)] = &[
    ("role", "`role(\"user\" | \"assistant\")`: starts a message of this role."),
    ("attach", "`attach(\"path or URI\")`: an image, audio or a file as a separate message."),
    ("link", "`link(\"path or URI\")`: a link that the client may read."),
    ("prompt", "`prompt(\"name\", argument=value)`: inserts the messages of another prompt."),
    ("range", "`range(end)` or `range(start, end)`: numbers for a loop."),
    ("dict", "`dict(key=value)`: a mapping."),
    ("namespace", "`namespace(key=value)`: variables that a loop can set."),
];

pub(super) const FILTERS: &[(&str, &str)] = &[
    ("fence", "`fence(\"language\")`: a Markdown code block that the value cannot close."),
    ("xml", "`xml(\"tag\")`: the value between XML tags that the value cannot close."),
    ("quote", "A Markdown block quotation: every line after `> `."),
    ("json", "The value as JSON; `json(indent=2)` over several lines."),
];

pub(super) const STATEMENTS: &[&str] = &[
    "if",
    "elif",
    "else",
    "endif",
    "for",
    "endfor",
    "set",
    "endset",
    "with",
    "endwith",
    "include",
    "import",
    "from",
    "macro",
    "endmacro",
    "filter",
    "endfilter",
    "raw",
    "endraw",
];

pub(super) fn about(words: &[(&str, &'static str)], word: &str) -> Option<&'static str> {
    words.iter().find(|(known, _)| *known == word).map(|(_, about)| *about)
}

#[cfg(test)]
mod tests {
    use promptshelf_core::TemplateWords;

    use super::*;

    #[test]
    fn exactly_the_known_words_are_explained() {
        let same = |ours: &[(&str, &str)], read: &[&str]| {
            for word in read {
                assert!(about_any(ours, word), "{word} is not explained");
            }
            for (word, _) in ours {
                assert!(read.contains(word), "{word} means nothing");
            }
        };
        same(FUNCTIONS, TemplateWords::ALL.functions);
        assert!(FILTERS.iter().all(|(filter, _)| TemplateWords::ALL.filters.contains(filter)));
    }

    fn about_any(words: &[(&str, &str)], word: &str) -> bool {
        words.iter().any(|(known, _)| *known == word)
    }
}

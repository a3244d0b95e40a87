//! An explanation of every diagnostic code: its meaning, why it matters, and an example.
//!
//! The pages are Markdown, with one file for each group of codes. A page begins with the code as a heading; its first
//! paragraph is a summary.

use promptshelf_core::Code;

const GROUPS: &[&str] = &[
    include_str!("explain/files.md"),
    include_str!("explain/keys.md"),
    include_str!("explain/arguments.md"),
    include_str!("explain/templates.md"),
    include_str!("explain/reviews.md"),
    include_str!("explain/clients.md"),
];

/// Returns the page of a code in Markdown: its meaning, why it matters, a wrong and a right example.
///
/// ```
/// use promptshelf_author::explain;
/// use promptshelf_core::Code;
///
/// assert!(explain::page(Code::UnknownKey).contains("Wrong, in `hello.md`:"));
/// ```
#[must_use]
pub fn page(code: Code) -> &'static str {
    let page = |group: &'static str| {
        group
            .split("\n# ")
            .find_map(|page| page.trim_start_matches("# ").strip_prefix(code.as_str())?.strip_prefix('\n'))
    };
    GROUPS.iter().find_map(|group| page(group)).unwrap_or_default().trim()
}

/// Returns the meaning of a code in one sentence: the first line of its page.
///
/// ```
/// use promptshelf_author::explain;
/// use promptshelf_core::Code;
///
/// assert!(explain::summary(Code::UnknownKey).ends_with('.'));
/// ```
#[must_use]
pub fn summary(code: Code) -> &'static str {
    let paragraph = page(code).split("\n\n").next().unwrap_or_default();
    paragraph.split_once('\n').map_or(paragraph, |(first, _)| first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_pages_match() {
        for code in Code::ALL {
            assert!(page(*code).len() > 100, "{code} has no page");
            assert!(summary(*code).ends_with('.'), "the first line of {code} is not a sentence: {}", summary(*code));
        }
        let headings = GROUPS.iter().flat_map(|group| group.lines().filter_map(|line| line.strip_prefix("# ")));
        let headings: Vec<&str> = headings.collect();
        assert_eq!(headings.len(), Code::ALL.len());
        for heading in headings {
            assert!(Code::find(heading).is_some(), "{heading}");
        }
    }

    #[test]
    fn every_page_has_a_reason() {
        for code in Code::ALL {
            assert!(page(*code).contains("\n\nWhy: "), "{code} does not say why");
        }
    }
}

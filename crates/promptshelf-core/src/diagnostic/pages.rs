//! A page for each code: what it means, why it matters, and an example.
//!
//! The pages are text, a file a group. A page begins with the code's name as a
//! heading; its first paragraph says in one breath what the code means.

use super::Code;

const GROUPS: &[&str] = &[
    include_str!("pages/files.md"),
    include_str!("pages/keys.md"),
    include_str!("pages/arguments.md"),
    include_str!("pages/templates.md"),
    include_str!("pages/reviews.md"),
    include_str!("pages/clients.md"),
];

impl Code {
    /// Its page: what it means, why it matters, what is wrong and what is right.
    ///
    /// ```
    /// use promptshelf_core::Code;
    ///
    /// assert!(Code::UnknownKey.page().contains("Wrong, in `hello.md`:"));
    /// assert_eq!(Code::find("unknown-key"), Some(Code::UnknownKey));
    /// ```
    #[must_use]
    pub fn page(self) -> &'static str {
        let page = |group: &'static str| {
            group
                .split("\n# ")
                .find_map(|page| page.trim_start_matches("# ").strip_prefix(self.as_str())?.strip_prefix('\n'))
        };
        GROUPS.iter().find_map(|group| page(group)).unwrap_or_default().trim()
    }

    /// What it means, in one sentence.
    #[must_use]
    pub fn summary(self) -> &'static str {
        let paragraph = self.page().split("\n\n").next().unwrap_or_default();
        paragraph.split_once('\n').map_or(paragraph, |(first, _)| first)
    }

    /// The code of a name such as `unknown-key`.
    #[must_use]
    pub fn find(name: &str) -> Option<Code> {
        Code::ALL.iter().copied().find(|code| code.as_str() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_a_page_and_every_page_has_a_code() {
        for code in Code::ALL {
            assert!(code.page().len() > 100, "{code} has no page");
            assert!(code.summary().ends_with('.'), "the first line of {code} is no sentence: {}", code.summary());
        }
        let headings = GROUPS.iter().flat_map(|group| group.lines().filter_map(|line| line.strip_prefix("# ")));
        let headings: Vec<&str> = headings.collect();
        assert_eq!(headings.len(), Code::ALL.len());
        for heading in headings {
            assert!(Code::find(heading).is_some(), "{heading}");
        }
    }

    #[test]
    fn every_page_says_why() {
        for code in Code::ALL {
            assert!(code.page().contains("\n\nWhy: "), "{code} does not say why");
        }
    }
}

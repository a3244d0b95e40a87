//! Symbolic links of a library, and the places of its files.

use std::{borrow::Cow, collections::BTreeMap};

/// The symbolic links of a library and its roots, each with the place that it leads to.
///
/// A *place* identifies a file, whatever it is called: its path inside the library without symbolic links, or its
/// absolute path if it is outside of the library. Access rules apply to places.
///
/// ```
/// use promptshelf_core::Links;
///
/// let links = Links::from_iter([("public".to_owned(), "closed/pages".to_owned())]);
/// assert_eq!(links.place("public/a.md"), "closed/pages/a.md");
/// assert_eq!(links.names("closed/pages/a.md"), ["closed/pages/a.md", "public/a.md"]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Links(BTreeMap<String, String>);

impl FromIterator<(String, String)> for Links {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(links: I) -> Links {
        Links(links.into_iter().collect())
    }
}

impl Extend<(String, String)> for Links {
    fn extend<I: IntoIterator<Item = (String, String)>>(&mut self, links: I) {
        self.0.extend(links);
    }
}

impl IntoIterator for Links {
    type Item = (String, String);
    type IntoIter = std::collections::btree_map::IntoIter<String, String>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl Links {
    /// Returns the place of the file or folder with this path.
    #[must_use]
    pub fn place<'p>(&self, path: &'p str) -> Cow<'p, str> {
        if self.0.is_empty() {
            return Cow::Borrowed(path);
        }
        let ends = [path.len()].into_iter().chain(path.rmatch_indices('/').map(|(end, _)| end));
        // The longest prefix first: it is the link that the system follows last.
        let link = ends.into_iter().find_map(|end| Some((self.0.get(&path[..end])?, end)));
        link.map_or(Cow::Borrowed(path), |(place, end)| Cow::Owned(below(place, &path[end..])))
    }

    /// Returns all paths of the file at a place, the place itself first.
    #[must_use]
    pub fn names(&self, place: &str) -> Vec<String> {
        let mut names = vec![place.to_owned()];
        for (link, target) in &self.0 {
            let rest = match target.as_str() {
                "" => Some(place),
                target => place.strip_prefix(target).filter(|rest| rest.is_empty() || rest.starts_with('/')),
            };
            names.extend(rest.map(|rest| below(link, rest)));
        }
        names
    }
}

fn below(folder: &str, rest: &str) -> String {
    match (folder, rest.trim_start_matches('/')) {
        (folder, "") => folder.to_owned(),
        ("", rest) => rest.to_owned(),
        (folder, rest) => format!("{folder}/{rest}"),
    }
}

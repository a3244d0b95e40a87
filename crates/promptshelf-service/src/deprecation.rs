//! Deprecations of prompts as one caller sees them.

use std::fmt;

use promptshelf_core::{Prompt, cursor::ListKind};

use crate::view::View;

/// A deprecation that a caller sees. Its text form is a short sentence without the message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeprecationNotice<'a> {
    /// The author's message.
    pub message: Option<&'a str>,
    /// The name of the prompt to use instead, as the catalog lists it. `None` if the caller does not see that prompt.
    pub replacement: Option<String>,
}

impl View {
    /// Returns the deprecation of a prompt of this catalog, if it has one. The name of a replacement that is hidden
    /// from the caller, or does not exist, is left out.
    ///
    /// ```
    /// use promptshelf_core::{CatalogHandle, Definitions, Deprecation, PromptDefinition, check};
    /// use promptshelf_service::{Caller, Service};
    ///
    /// let old = PromptDefinition::template("old", "Hi").deprecated(Deprecation::default().replaced_by("new"));
    /// let new = PromptDefinition::template("new", "Hello");
    /// let service = Service::new(CatalogHandle::new(check(Definitions::from_iter([old, new]), None).catalog));
    /// let view = service.view(&Caller::anonymous());
    /// let old = view.find("old").expect("it exists");
    /// let notice = view.deprecation(&old).expect("it is deprecated");
    /// assert_eq!(notice.to_string(), "Deprecated, use `new` instead.");
    /// ```
    #[must_use]
    pub fn deprecation<'a>(&self, prompt: &'a Prompt) -> Option<DeprecationNotice<'a>> {
        let deprecation = prompt.deprecation()?;
        let replacement = deprecation.replacement.as_ref().and_then(|replacement| {
            let own = self.catalog().part_of(prompt).map(|(_, own)| own);
            // A source of several has a prefix, which the prompt's own file does not name.
            let prefix = match &own {
                Some(own) => prompt.name().as_str().strip_suffix(own.name().as_str())?,
                None => "",
            };
            let name = format!("{prefix}{replacement}");
            let index = self.catalog().position(&name)?;
            self.shows(ListKind::Prompts, index).then_some(name)
        });
        Some(DeprecationNotice { message: deprecation.message.as_deref(), replacement })
    }
}

impl fmt::Display for DeprecationNotice<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.replacement {
            Some(name) => write!(f, "Deprecated, use `{name}` instead."),
            None => f.write_str("Deprecated."),
        }
    }
}

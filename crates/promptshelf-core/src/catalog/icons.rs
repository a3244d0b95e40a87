//! Icons of library files in lists, and the access rules for these files.
//!
//! A list is the same for all callers with the same view, so an icon is either part of an entry or not: it is left out
//! if reading its file takes more than seeing the entry.

use std::sync::Arc;

use super::{Catalog, ContentAccess};
use crate::{
    content::Icon,
    definition::{Access, AccessRule, AccessSet},
    diagnostic::{Code, Diagnostic, Location},
    prompt::Prompt,
    resource::Resource,
};

impl Catalog {
    /// Returns the icons of a prompt of this catalog, without those of files whose access rules require more than the
    /// prompt does.
    pub fn prompt_icons<'c>(&'c self, prompt: &'c Prompt) -> impl Iterator<Item = &'c Icon> {
        let served = prompt.served().and_then(|(part, own)| Some((&*self.parts.get(part)?.catalog, &**own)));
        let (catalog, prompt) = served.unwrap_or((self, prompt));
        catalog.shown(prompt.icons(), || {
            let index = catalog.position(prompt.name().as_str());
            index.map(|index| catalog.prompt_access(index).to_vec()).unwrap_or_default()
        })
    }

    /// Returns the icons of a resource of this catalog, without those of files whose access rules require more than the
    /// resource does.
    pub fn resource_icons<'c>(&'c self, resource: &'c Resource) -> impl Iterator<Item = &'c Icon> {
        let part = resource.icons().first().and_then(|_| self.part_declaring(resource.uri()));
        let catalog = part.map_or(self, |part| &part.catalog);
        catalog.shown(resource.icons(), || catalog.declared_access(resource))
    }

    fn shown<'c>(
        &'c self,
        icons: &'c [Icon],
        requirements: impl FnOnce() -> AccessSet,
    ) -> impl Iterator<Item = &'c Icon> {
        let is_checked = self.restricts_contents() && icons.iter().any(|icon| icon.file.is_some());
        let own = is_checked.then(requirements);
        icons.iter().filter(move |icon| own.as_ref().is_none_or(|own| !self.is_closed(icon, own)))
    }

    /// Whether reading the file of an icon requires more than these requirements.
    fn is_closed(&self, icon: &Icon, own: &[Arc<Access>]) -> bool {
        let Some(path) = icon.file.as_deref() else { return false };
        let ContentAccess { rules, prompts } = self.path_access(path);
        // Entries are shown to callers that lack the scopes of a visible rule.
        let is_met = |set: &[Arc<Access>]| set.iter().all(|access| !access.visible && own.contains(access));
        !is_met(&rules)
            || prompts.is_some_and(|prompts| !prompts.iter().any(|index| is_met(self.prompt_access(*index))))
    }
}

/// Removes the icons of the server that are restricted files, because every caller receives them.
pub(crate) fn close_server_icons(catalog: &mut Catalog, rules: &[AccessRule], found: &mut Vec<Diagnostic>) {
    let mut icons = std::mem::take(&mut catalog.about.icons);
    icons.retain(|icon| {
        let is_closed = catalog.is_closed(icon, &[]);
        if let (true, Some(path), Some(rule)) = (is_closed, &icon.file, rules.first()) {
            found.push(closed("the server", path, rule.origin.locate("access")));
        }
        !is_closed
    });
    catalog.about.icons = icons;
}

/// Reports the icons of the prompts at these indexes that lists do not show.
pub(crate) fn review_prompt_icons(
    catalog: &Catalog,
    indexes: impl Iterator<Item = usize>,
    found: &mut Vec<Diagnostic>,
) {
    if !catalog.restricts_contents() {
        return;
    }
    for (index, prompt) in indexes.filter_map(|index| Some((index, catalog.prompts.get(index)?))) {
        let own = catalog.prompt_access(index);
        let paths =
            prompt.icons().iter().filter(|icon| catalog.is_closed(icon, own)).filter_map(|icon| icon.file.as_ref());
        let location = || prompt.definition.origin.locate("icons");
        found.extend(paths.map(|path| closed(&format!("the prompt `{}`", prompt.name()), path, location())));
    }
}

/// Reports the icons of resources that lists do not show.
pub(crate) fn review_resource_icons(catalog: &Catalog, found: &mut Vec<Diagnostic>) {
    for resource in catalog.resources().iter().chain(catalog.templates()).filter(|it| !it.icons().is_empty()) {
        let shown: Vec<_> = catalog.resource_icons(resource).collect();
        let closed_icons = resource.icons().iter().filter(|icon| !shown.contains(icon));
        let location = || resource.definition.origin.locate("icons");
        let owner = format!("the resource `{}`", resource.uri());
        found.extend(closed_icons.filter_map(|icon| icon.file.as_ref()).map(|path| closed(&owner, path, location())));
    }
}

fn closed(owner: &str, path: &str, location: Location) -> Diagnostic {
    let message = format!("the icon `{path}` of {owner} has an access rule that requires more: lists leave it out");
    Diagnostic::warning(Code::RestrictedContent, location, message)
        .help("give both the same access rule, or use a file without one as the icon")
}

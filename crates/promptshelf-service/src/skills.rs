//! Skills for a caller: list, get and folders, under the same limits and in the same audit as prompts.
//!
//! A skill is served as a whole or not at all, so that its list of files is complete.
//!
//! Elsewhere: reading a file of a skill (`service`, as any resource).

use std::sync::Arc;

use promptshelf_core::{
    Skill,
    cursor::{self, DerivedList},
};

use crate::{
    access,
    answer::Answer,
    audit::Method,
    caller::Caller,
    limit::RequestClass,
    rejection::{Rejection, echo},
    service::Service,
    view::View,
};

/// A page of skills.
#[derive(Clone, Debug)]
pub struct SkillPage {
    /// The skills, by path.
    pub skills: Vec<Arc<Skill>>,
    /// The cursor of the next page, unless this is the last one.
    pub next_cursor: Option<String>,
}

/// A page of a skill's folder.
#[derive(Clone, Debug)]
pub struct FolderPage {
    /// The skill.
    pub skill: Arc<Skill>,
    /// The folder's URI.
    pub uri: String,
    /// The URIs of the children on this page, sorted.
    pub children: Vec<String>,
    /// The cursor of the next page, unless this is the last one.
    pub next_cursor: Option<String>,
}

impl View {
    fn skills<'v>(&'v self, after: Option<&'v str>) -> impl Iterator<Item = &'v Arc<Skill>> {
        self.catalog().skills().after(after).filter(|skill| access::is_listed(self.caller(), skill.access()))
    }
}

impl Service {
    /// Returns one page of the skills; without a cursor the first one.
    ///
    /// # Errors
    ///
    /// [`Rejection::InvalidCursor`], and those of limits.
    pub fn list_skills(&self, caller: &Caller, cursor: Option<&str>) -> Result<Answer<SkillPage>, Rejection> {
        let mut call = self.begin(caller, RequestClass::Other, Method::List)?;
        let view = self.view(caller);
        call.note("list", || "skills".into());
        call.note_generation(view.catalog());
        let page = decoded(DerivedList::Skills, cursor).map(|after| {
            let mut shown = view.skills(after.as_deref()).cloned();
            let size = view.catalog().policy().page_size.max(1);
            let skills: Vec<_> = shown.by_ref().take(size).collect();
            let last = skills.last().filter(|_| shown.next().is_some());
            let next_cursor = last.map(|last| cursor::encode(DerivedList::Skills, last.path()));
            SkillPage { skills, next_cursor }
        });
        call.end(page).map(|page| Answer::new(view, page))
    }

    /// Finds the skill with this URI of its `SKILL.md`.
    ///
    /// # Errors
    ///
    /// [`Rejection::UnknownResource`] for a skill that does not exist or is hidden from the caller,
    /// [`Rejection::InsufficientScope`], and those of limits.
    pub fn skill(&self, caller: &Caller, uri: &str) -> Result<Answer<Arc<Skill>>, Rejection> {
        let mut call = self.begin(caller, RequestClass::Other, Method::Skill)?;
        let view = self.view(caller);
        call.note_text("resource", uri);
        call.note_generation(view.catalog());
        let unknown = || Rejection::UnknownResource { uri: echo(uri) };
        let found = match view.catalog().skills().find(uri) {
            Some(skill) => access::permit_skill(caller, skill, uri).map(|()| Arc::clone(skill)),
            None => Err(unknown()),
        };
        call.end(found).map(|skill| Answer::new(view, skill))
    }

    /// Returns one page of the children of a skill's folder.
    ///
    /// # Errors
    ///
    /// [`Rejection::UnknownResource`] for a folder that does not exist or is hidden from the caller, and for a file;
    /// [`Rejection::InvalidCursor`], [`Rejection::InsufficientScope`], and those of limits.
    pub fn skill_folder(
        &self,
        caller: &Caller,
        uri: &str,
        cursor: Option<&str>,
    ) -> Result<Answer<FolderPage>, Rejection> {
        let mut call = self.begin(caller, RequestClass::Other, Method::Folder)?;
        let view = self.view(caller);
        call.note_text("resource", uri);
        call.note_generation(view.catalog());
        let page = folder_page(&view, uri, cursor);
        call.end(page).map(|page| Answer::new(view, page))
    }
}

fn folder_page(view: &View, uri: &str, cursor: Option<&str>) -> Result<FolderPage, Rejection> {
    let found = view.catalog().skills().folder(uri);
    let (skill, children) = found.ok_or_else(|| Rejection::UnknownResource { uri: echo(uri) })?;
    access::permit_skill(view.caller(), skill, uri)?;
    let after = decoded(DerivedList::Directory, cursor)?;
    // A cursor belongs to one folder: the names in it are its children.
    let mut rest = children.iter().map(promptshelf_core::SkillChild::uri);
    if let Some(after) = &after {
        if !after.strip_prefix(uri).is_some_and(|rest| rest.starts_with('/')) {
            return Err(Rejection::InvalidCursor);
        }
        rest = children[children.partition_point(|child| child.uri() <= after.as_str())..]
            .iter()
            .map(promptshelf_core::SkillChild::uri);
    }
    let size = view.catalog().policy().page_size.max(1);
    let page: Vec<String> = rest.by_ref().take(size).map(str::to_owned).collect();
    let last = page.last().filter(|_| rest.next().is_some());
    let next_cursor = last.map(|last| cursor::encode(DerivedList::Directory, last));
    Ok(FolderPage { skill: Arc::clone(skill), uri: uri.to_owned(), children: page, next_cursor })
}

pub(crate) fn decoded(list: DerivedList, cursor: Option<&str>) -> Result<Option<String>, Rejection> {
    cursor.map(|cursor| cursor::decode(list, cursor).ok_or(Rejection::InvalidCursor)).transpose()
}

//! The content behind a URI or a path, and all of its names.

use std::{collections::HashMap, sync::Arc};

use super::pattern::ANY_VALUE;
use crate::{
    definition::{AccessSet, LibraryFile},
    library_files::LibraryFiles,
    resource::{Resource, Resources},
    uri_template::expand_uri_template,
    value::Variables,
};

/// The largest number of query variables that a URI can lack, each of which doubles the number of its spellings. With
/// more of them, the URI counts as one that could be any URI of its template.
const MAX_OPTIONAL: usize = 4;

/// The content behind a URI or a path of the library.
#[derive(Debug)]
pub enum Content<'c> {
    /// A declared resource, with the values of its template's variables as the URI spells them.
    Resource {
        /// The resource.
        resource: &'c Arc<Resource>,
        /// The values.
        variables: Variables,
    },
    /// A file of the library, without a declared resource of this URI.
    File(&'c Arc<LibraryFile>),
}

/// The requirements for reading a content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContentAccess {
    /// Requirements that apply together.
    pub rules: AccessSet,
    /// The prompts that refer to a file, by their index in the list: a caller must be able to use one of them. `None`
    /// if a resource declares the file, so that prompts do not matter.
    pub prompts: Option<Vec<usize>>,
}

/// The names of contents: paths and URIs.
#[derive(Clone, Copy)]
pub(super) struct Names<'c> {
    pub(super) resources: &'c Resources,
    pub(super) files: &'c LibraryFiles,
    pub(super) fixed: &'c HashMap<String, Vec<usize>>,
}

#[derive(Debug, Default)]
pub(super) struct NameSet {
    pub(super) paths: Vec<String>,
    /// The names by which the library declares it: the URIs of each declaration, and the text of a template.
    pub(super) declared: Vec<DeclaredNames>,
    pub(super) uris: Vec<String>,
}

#[derive(Debug)]
pub(super) struct DeclaredNames {
    pub(super) declaration: String,
    /// URIs, with [`ANY`](super::pattern::ANY) for a part that can be any text.
    pub(super) uris: Vec<String>,
}

impl NameSet {
    pub(super) fn all_uris(&self) -> impl Iterator<Item = &str> {
        let declared = self.declared.iter();
        let declared = declared.flat_map(|names| [&names.declaration].into_iter().chain(&names.uris));
        declared.chain(&self.uris).map(String::as_str)
    }
}

impl<'c> Names<'c> {
    /// Returns the content of a URI, whether or not the library serves it.
    pub(super) fn find(&self, uri: &str) -> Option<Content<'c>> {
        match self.resources.find(uri) {
            Some((resource, variables)) => Some(Content::Resource { resource, variables }),
            None => self.files.find(uri).map(Content::File),
        }
    }

    pub(super) fn place(&self, resource: &Resource, variables: &Variables) -> Option<String> {
        let path = resource.path(&resource.bind(variables).ok()?)?;
        Some(self.files.links.place(&path).into_owned())
    }

    pub(super) fn of(&self, content: &Content<'c>) -> NameSet {
        match content {
            Content::File(file) => self.of_file(&self.files.links.place(&file.path)),
            Content::Resource { resource, variables } => match self.place(resource, variables) {
                Some(place) => self.of_file(&place),
                None => {
                    // Values that violate the constraints belong to no content.
                    let uris = resource.bind(variables).map(|bound| spellings(resource, &bound, &[]));
                    let (declaration, uris) = (resource.uri().to_owned(), uris.unwrap_or_default());
                    NameSet { declared: vec![DeclaredNames { declaration, uris }], ..NameSet::default() }
                }
            },
        }
    }

    pub(super) fn of_file(&self, place: &str) -> NameSet {
        let paths = self.files.links.names(place);
        let declared = self.declared(place, &paths);
        let uris = paths.iter().flat_map(|path| self.files.library_uris(path)).collect();
        NameSet { paths, declared, uris }
    }

    /// Returns the names that the library declares for the file at a place, which has these paths.
    fn declared(&self, place: &str, paths: &[String]) -> Vec<DeclaredNames> {
        let fixed = self.fixed.get(place).into_iter().flatten();
        let fixed = fixed.map(|index| self.resources.fixed[*index].uri().to_owned());
        let mut names: Vec<DeclaredNames> =
            fixed.map(|declaration| DeclaredNames { declaration, uris: Vec::new() }).collect();
        for template in &*self.resources.templates {
            let readings = paths.iter().flat_map(|path| template.variables_of(path));
            let uris: Vec<String> = readings.flat_map(|variables| uris_of(template, &variables)).collect();
            if !uris.is_empty() {
                names.push(DeclaredNames { declaration: template.uri().to_owned(), uris });
            }
        }
        names
    }
}

/// Returns the URIs of a template for these values. A variable without a value can have any.
fn uris_of(template: &Resource, variables: &Variables) -> Vec<String> {
    let all = template.variables().iter().map(crate::Argument::name);
    let free: Vec<&str> = all.filter(|name| !variables.contains_key(*name)).collect();
    // Values that violate the constraints belong to no URI.
    let bound = if free.is_empty() { template.bind(variables) } else { Ok(variables.clone()) };
    bound.map(|bound| spellings(template, &bound, &free)).unwrap_or_default()
}

/// Returns the URIs that a resource has for bound values of its variables. A free variable can have any value.
fn spellings(resource: &Resource, bound: &Variables, free: &[&str]) -> Vec<String> {
    let Some(query) = resource.query_variables() else { return vec![resource.uri().to_owned()] };
    let is_free = |name: &str| free.contains(&name);
    let has_default = |name: &str| {
        let default = resource.variables().iter().find(|variable| variable.name() == name)?.default_value()?;
        Some(bound.get(name)? == default)
    };
    let mut optional: Vec<&str> = query.iter().map(String::as_str).collect();
    optional.retain(|name| is_free(name) || has_default(name) == Some(true));
    let mut values = bound.clone();
    values.extend(free.iter().map(|name| ((*name).to_owned(), ANY_VALUE.to_owned())));
    if optional.len() > MAX_OPTIONAL {
        values.extend(optional.drain(..).map(|name| (name.to_owned(), ANY_VALUE.to_owned())));
    }
    let spelled = (0..1_usize << optional.len()).filter_map(|subset| {
        let mut values = values.clone();
        for (bit, name) in optional.iter().enumerate() {
            if subset >> bit & 1 == 1 {
                values.remove(*name);
            }
        }
        expand_uri_template(resource.uri(), &values)
    });
    spelled.collect()
}

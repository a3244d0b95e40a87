//! The scope of a check: the library that prompts and resources may refer to.

use std::{
    cell::RefCell,
    collections::{BTreeMap, HashMap},
    rc::Rc,
    sync::Arc,
};

use crate::{
    catalog::Catalog,
    definition::Budget,
    diagnostic::{Code, Diagnostic, Location},
    library_files::LibraryFiles,
    prompt::Prompt,
    resource::Resource,
    template::Lint,
};

pub(super) struct Scope<'a> {
    pub(super) budget: Arc<Budget>,
    pub(super) files: &'a LibraryFiles,
    pub(super) uris: &'a Uris<'a>,
    pub(super) catalog: &'a Catalog,
    /// Absent for resources, which cannot include prompts.
    pub(super) prompts: Option<&'a dyn FindPrompt>,
    /// Files that exist but were not read, with the reason.
    pub(super) unread: &'a BTreeMap<String, Diagnostic>,
    pub(super) mismatched: &'a BTreeMap<String, Diagnostic>,
    /// What the texts of partials contain, by path. Many prompts include the same one.
    pub(super) lints: RefCell<HashMap<String, Rc<Lint>>>,
}

/// The URIs of resources without a template.
pub(super) enum Uris<'a> {
    Declared(Vec<String>),
    Checked(&'a [Arc<Resource>]),
}

impl Uris<'_> {
    pub(super) fn any(&self, fits: impl Fn(&str) -> bool) -> bool {
        match self {
            Uris::Declared(uris) => uris.iter().any(|uri| fits(uri)),
            Uris::Checked(resources) => resources.iter().any(|resource| fits(resource.uri())),
        }
    }
}

pub(super) trait FindPrompt {
    fn find(&self, name: &str, scope: &Scope<'_>) -> Result<Arc<Prompt>, Missing>;

    fn name_in(&self, path: &str) -> Option<&str>;
}

/// The reason why a prompt cannot be included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Missing {
    Cycle(Vec<String>),
    TooDeep,
    /// It exists, but cannot be served.
    Broken,
    /// It does not exist; names a similar one.
    Unknown(Option<String>),
}

impl Scope<'_> {
    /// Adds a diagnostic about the content of a file at the place that attaches the file. A file that is named as an image
    /// or a sound and is neither cannot be attached.
    pub(super) fn note_mismatch(&self, path: &str, place: Location, found: &mut Vec<Diagnostic>) {
        let Some(known) = self.mismatched.get(path) else { return };
        let message = format!("`{path}` is attached here: {}", known.message);
        let diagnostic = match known.code {
            Code::InvalidMedia => Diagnostic::error(known.code, place, message),
            _ => Diagnostic::warning(known.code, place, message),
        };
        let diagnostic = diagnostic.also(known.location.clone(), "the file");
        found.push(Diagnostic { help: known.help.clone(), ..diagnostic });
    }

    /// Returns the message and the help for a file that cannot be used as text because it defines a prompt.
    pub(super) fn prompt_file(&self, path: &str) -> Option<(String, String)> {
        let name = self.prompts?.name_in(path)?;
        let hidden = match path.rsplit_once('/') {
            Some((folder, file)) => format!("{folder}/_{file}"),
            None => format!("_{path}"),
        };
        let message = format!("`{path}` is the file of the prompt `{name}`, and only other files can be used here");
        let help = format!(
            "rename it to `{hidden}` if it is a text for other prompts: files whose names start with `_` are no \
             prompts; or insert the prompt with `{{{{ prompt(\"{name}\") }}}}`"
        );
        Some((message, help))
    }

    pub(super) fn prompt(&self, name: &str) -> Result<Arc<Prompt>, Missing> {
        self.prompts.ok_or(Missing::Unknown(None))?.find(name, self)
    }
}

//! The check: converts definitions into a catalog and diagnostics.
//!
//! A broken prompt never affects another one, and a prompt that was valid before keeps its previous version. Prompts
//! that have not changed since the previous catalog are taken from it instead of being compiled again.

mod arguments;
mod calls;
mod drafts;
mod each;
mod join;
mod library;
mod partials;
mod pieces;
mod prompt;
mod resource;
mod skill_text;
mod skills;

use std::{
    cell::RefCell,
    collections::{BTreeMap, HashMap},
    rc::Rc,
    sync::Arc,
};

use crate::{
    catalog::Catalog,
    definition::Budget,
    diagnostic::{Code, Diagnostic, Location, MOST_RELATED},
    library_files::LibraryFiles,
    prompt::Prompt,
    resource::Resource,
    template::Lint,
};

pub use arguments::is_variable_name;
pub use join::join;
pub use library::check;

/// The result of a check.
#[derive(Debug)]
pub struct Checked {
    /// The prompts and resources that can be served.
    pub catalog: Catalog,
    /// All diagnostics, by file and position.
    pub diagnostics: Vec<Diagnostic>,
}

fn arrange(diagnostics: &mut Vec<Diagnostic>) {
    diagnostics.sort_by(|a, b| a.sort_key().cmp(&b.sort_key()));
    // A mistake in a partial is found once for each prompt that includes it.
    diagnostics.dedup_by(|again, first| {
        let is_same = again.sort_key() == first.sort_key() && again.severity == first.severity;
        if is_same {
            let new = again.related.drain(..).filter(|it| !first.related.contains(it)).collect::<Vec<_>>();
            first.related.extend(new.into_iter().take(MOST_RELATED.saturating_sub(first.related.len())));
        }
        is_same
    });
}

struct Scope<'a> {
    budget: Arc<Budget>,
    files: &'a LibraryFiles,
    uris: &'a Uris<'a>,
    catalog: &'a Catalog,
    /// Absent for resources, which cannot include prompts.
    prompts: Option<&'a dyn FindPrompt>,
    /// Files that exist but were not read, with the reason.
    unread: &'a BTreeMap<String, Diagnostic>,
    mismatched: &'a BTreeMap<String, Diagnostic>,
    /// What the texts of partials contain, by path. Many prompts include the same one.
    lints: RefCell<HashMap<String, Rc<Lint>>>,
}

/// The URIs of resources without a template.
enum Uris<'a> {
    Declared(Vec<String>),
    Checked(&'a [Arc<Resource>]),
}

impl Uris<'_> {
    fn any(&self, fits: impl Fn(&str) -> bool) -> bool {
        match self {
            Uris::Declared(uris) => uris.iter().any(|uri| fits(uri)),
            Uris::Checked(resources) => resources.iter().any(|resource| fits(resource.uri())),
        }
    }
}

trait FindPrompt {
    fn find(&self, name: &str, scope: &Scope<'_>) -> Result<Arc<Prompt>, Missing>;

    fn name_in(&self, path: &str) -> Option<&str>;
}

/// The reason why a prompt cannot be included.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Missing {
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
    fn note_mismatch(&self, path: &str, place: Location, found: &mut Vec<Diagnostic>) {
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
    fn prompt_file(&self, path: &str) -> Option<(String, String)> {
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

    fn prompt(&self, name: &str) -> Result<Arc<Prompt>, Missing> {
        self.prompts.ok_or(Missing::Unknown(None))?.find(name, self)
    }
}

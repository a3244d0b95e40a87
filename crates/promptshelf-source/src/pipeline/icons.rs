//! Icons from files of the library, embedded as `data:` URIs.

use std::{
    cell::RefCell,
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use promptshelf_core::{Code, Diagnostic, Icon, LibraryFile, Location, MimeType, nearest};

/// The largest icon, in bytes: every list contains all icons.
const MAX_ICON: usize = 64 << 10;

pub(super) struct IconResolver<'a> {
    files: &'a BTreeMap<String, Arc<LibraryFile>>,
    /// Results so far: many prompts often share an icon.
    cache: RefCell<HashMap<Arc<str>, Result<EmbeddedIcon, IconError>>>,
}

#[derive(Clone)]
struct EmbeddedIcon {
    uri: Arc<str>,
    mime_type: MimeType,
}

/// The reason why a file cannot be an icon.
#[derive(Clone)]
struct IconError {
    code: Code,
    message: String,
    help: Option<String>,
}

impl<'a> IconResolver<'a> {
    pub(super) fn new(files: &'a BTreeMap<String, Arc<LibraryFile>>) -> IconResolver<'a> {
        IconResolver { files, cache: RefCell::default() }
    }

    /// Replaces paths by `data:` URIs. An icon that cannot be used is removed with a warning: the prompt works
    /// without it.
    pub(super) fn resolve(
        &self,
        icons: &mut Vec<Icon>,
        locate: impl Fn(&str) -> Location,
        diagnostics: &mut Vec<Diagnostic>,
    ) {
        let mut index = 0;
        icons.retain_mut(|icon| {
            let place = format!("icons.{index}");
            index += 1;
            if is_uri(&icon.src) {
                return true;
            }
            let result = self.cache.borrow().get(&icon.src).cloned();
            let result = result.unwrap_or_else(|| {
                let result = self.embed(&icon.src);
                self.cache.borrow_mut().insert(Arc::clone(&icon.src), result.clone());
                result
            });
            match result {
                Ok(EmbeddedIcon { uri, mime_type }) => {
                    icon.file = Some(std::mem::replace(&mut icon.src, uri));
                    icon.mime_type.get_or_insert(mime_type);
                    true
                }
                Err(IconError { code, message, help }) => {
                    let mut diagnostic = Diagnostic::warning(code, locate(&place), message);
                    diagnostic.help = help;
                    diagnostics.push(diagnostic);
                    false
                }
            }
        });
    }

    fn embed(&self, path: &str) -> Result<EmbeddedIcon, IconError> {
        let error = |code, message, help| Err(IconError { code, message, help });
        let Some(file) = self.files.get(path) else {
            let near = nearest(path, self.files.keys().map(String::as_str));
            let message = format!("the library has no file `{path}` for this icon");
            return error(Code::MissingFile, message, near.map(|near| format!("did you mean `{near}`?")));
        };
        let mime_type = &file.mime_type;
        if !mime_type.as_str().starts_with("image/") {
            let message = format!("expected an image for an icon, but `{path}` is {}", mime_type.as_str());
            return error(Code::InvalidValue, message, None);
        }
        if file.body.len() > MAX_ICON {
            let message = format!("the icon `{path}` has {} bytes; the limit is {MAX_ICON}", file.body.len());
            return error(
                Code::TooLarge,
                message,
                Some("use a smaller image: every list contains the icon".to_owned()),
            );
        }
        let uri = format!("data:{};base64,{}", mime_type.as_str(), file.blob().base64());
        Ok(EmbeddedIcon { uri: uri.into(), mime_type: mime_type.clone() })
    }
}

/// Whether an icon's source is a URI instead of a path in the library.
pub(super) fn is_uri(src: &str) -> bool {
    let scheme = |scheme: &str| src.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
    scheme("https:") || scheme("data:")
}

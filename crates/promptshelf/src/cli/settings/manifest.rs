//! The sections of `promptshelf.toml` that only this program reads, out of one reading; and `[http]`.

use std::{fs, io, path::Path, sync::Arc};

use promptshelf_core::{Code, Diagnostic, Location, SourceText, nearest};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{Layer, SETTINGS, given::Given, in_manifest};
use crate::exit::Failure;

/// The library's own file.
pub(super) const MANIFEST: &str = "promptshelf.toml";

/// The text of a library's manifest, as it was when it was read.
#[derive(Debug)]
pub(crate) struct ManifestFile<'f> {
    folder: &'f Path,
    source: Arc<SourceText>,
    is_there: bool,
}

impl<'f> ManifestFile<'f> {
    /// Reads it; one that cannot be read says nothing, which is the source's to report.
    pub(crate) fn read(folder: &'f Path) -> ManifestFile<'f> {
        let path = folder.join(MANIFEST);
        let (text, is_there) = match fs::read_to_string(&path) {
            Ok(text) => (text, true),
            Err(_) => (String::new(), path.exists()),
        };
        ManifestFile { folder, source: SourceText::new(MANIFEST, text), is_there }
    }

    #[cfg(test)]
    pub(super) fn written(text: &str) -> ManifestFile<'static> {
        ManifestFile { folder: Path::new(""), source: SourceText::new(MANIFEST, text), is_there: true }
    }

    /// Parses it; one that is no TOML says nothing, which is the source's to report.
    pub(crate) fn parse(&self) -> Manifest<'_> {
        Manifest { file: self, table: DeTable::parse(&self.source.text).ok().map(Spanned::into_inner) }
    }
}

/// The manifest, parsed once for all of its sections.
#[derive(Debug)]
pub(crate) struct Manifest<'m> {
    file: &'m ManifestFile<'m>,
    table: Option<DeTable<'m>>,
}

impl Manifest<'_> {
    pub(super) fn folder(&self) -> &Path {
        self.file.folder
    }

    pub(super) fn is_there(&self) -> bool {
        self.file.is_there
    }

    /// What is wrong with a section ends the program.
    pub(super) fn failure(&self, found: &Diagnostic) -> Failure {
        in_manifest(self.folder(), found)
    }

    /// Reads the settings of a section.
    ///
    /// # Errors
    ///
    /// The first value that cannot be.
    pub(super) fn section(
        &self,
        name: &str,
        known: &[&str],
        others: Others,
        mut set: impl FnMut(&str, &Spanned<DeValue<'_>>) -> Result<(), String>,
    ) -> Result<(), Box<Diagnostic>> {
        let wrong = |code, span, message: String| {
            Box::new(Diagnostic::error(code, Location::new(&self.file.source, span), message))
        };
        let Some(section) = self.table.as_ref().and_then(|table| table.get(name)) else { return Ok(()) };
        let DeValue::Table(settings) = section.get_ref() else {
            let message = format!("`{name}` has to be a section: write it as [{name}]");
            return Err(wrong(Code::WrongType, section.span(), message));
        };
        for (key, value) in settings {
            let setting: &str = key.get_ref();
            if !known.contains(&setting) {
                if others == Others::PassedOver {
                    continue;
                }
                let help = nearest(setting, known.iter().copied()).map_or_else(
                    || format!("there is {}", known.join(", ")),
                    |known| format!("did you mean `{known}`?"),
                );
                let message = format!("`{setting}` means nothing in [{name}] ({help})");
                return Err(wrong(Code::UnknownKey, key.span(), message));
            }
            set(setting, value)
                .map_err(|reason| wrong(Code::InvalidValue, value.span(), format!("`{setting}`: {reason}")))?;
        }
        Ok(())
    }
}

/// Reads `[http]`.
///
/// # Errors
///
/// The first value that cannot be.
pub(super) fn read(manifest: &Manifest<'_>) -> Result<Layer, Box<Diagnostic>> {
    let mut layer = Layer::default();
    manifest.section("http", SETTINGS, Others::Refused, |name, value| layer.set(name, &Given::Toml(value)))?;
    Ok(layer)
}

/// What becomes of settings that are not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Others {
    Refused,
    /// They are for the source.
    PassedOver,
}

/// Whether there is a manifest that is TOML, or none where there was none.
pub(super) fn check_toml(folder: &Path, was_there: bool) -> Result<(), Box<Diagnostic>> {
    let (text, failed) = match fs::read_to_string(folder.join(MANIFEST)) {
        Ok(text) => (text, None),
        Err(error) if error.kind() == io::ErrorKind::NotFound && !was_there => return Ok(()),
        Err(error) => (String::new(), Some(format!("it cannot be read: {error}"))),
    };
    let source = SourceText::new(MANIFEST, text);
    let (span, message) = match (failed, DeTable::parse(&source.text)) {
        (Some(failed), _) => (0..0, failed),
        (None, Ok(_)) => return Ok(()),
        (None, Err(error)) => (error.span().unwrap_or_default(), error.message().to_owned()),
    };
    Err(Box::new(Diagnostic::error(Code::Syntax, Location::new(&source, span), message)))
}

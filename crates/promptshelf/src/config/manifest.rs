//! The `[http]` section of `promptshelf.toml`.

use std::{fs, io, path::Path};

use promptshelf::{Code, Diagnostic, Location, SourceText, nearest};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{Layer, SETTINGS, given::Given};

/// The library's own file.
pub(super) const MANIFEST: &str = "promptshelf.toml";

/// Reads the section; a library without the file or the section says nothing.
///
/// # Errors
///
/// The first value that cannot be. A file that cannot be read or is no TOML is
/// the source's to report, which reads all of it.
pub(super) fn read(folder: &Path) -> Result<Layer, Box<Diagnostic>> {
    parse(text(folder))
}

pub(super) fn parse(text: String) -> Result<Layer, Box<Diagnostic>> {
    let mut layer = Layer::default();
    section(text, "http", SETTINGS, Others::Refused, |name, value| layer.set(name, &Given::Toml(value)))?;
    Ok(layer)
}

/// What becomes of settings that are not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Others {
    Refused,
    /// They are for the source.
    PassedOver,
}

/// Reads the settings of a section of the manifest.
pub(super) fn section(
    text: String,
    name: &str,
    known: &[&str],
    others: Others,
    mut set: impl FnMut(&str, &Spanned<DeValue<'_>>) -> Result<(), String>,
) -> Result<(), Box<Diagnostic>> {
    let source = SourceText::new(MANIFEST, text);
    let wrong = |code, span, message: String| Box::new(Diagnostic::error(code, Location::new(&source, span), message));
    let Ok(manifest) = DeTable::parse(&source.text) else { return Ok(()) };
    let Some(section) = manifest.get_ref().get(name) else { return Ok(()) };
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
            let help = nearest(setting, known.iter().copied())
                .map_or_else(|| format!("there is {}", known.join(", ")), |known| format!("did you mean `{known}`?"));
            let message = format!("`{setting}` means nothing in [{name}] ({help})");
            return Err(wrong(Code::UnknownKey, key.span(), message));
        }
        set(setting, value)
            .map_err(|reason| wrong(Code::InvalidValue, value.span(), format!("`{setting}`: {reason}")))?;
    }
    Ok(())
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

/// The manifest's text; nothing where it cannot be read, which is the source's to report.
pub(super) fn text(folder: &Path) -> String {
    fs::read_to_string(folder.join(MANIFEST)).unwrap_or_default()
}

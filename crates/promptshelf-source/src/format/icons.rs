//! Pictures: a string, or a mapping of `src`, `mimeType`, `sizes` and `theme`.
//!
//! A path stays a path here; it becomes a `data:` URI when the files of the
//! library are known.

use promptshelf_core::{Code, Icon, MimeType, Severity, Theme, nearest};

use super::{
    keys::{Holds, Keys, key},
    table::{Table, items},
    tree::{Node, Notes, Value},
};

/// One picture.
pub(crate) const KEYS: Keys = Keys {
    keys: &[
        key("src", Holds::Text, "A file of the library, an https: URL or a data: URI."),
        key("mimeType", Holds::Text, "Its MIME type."),
        key("mime-type", Holds::Text, "The same as `mimeType`, as TOML spells it."),
        key("sizes", Holds::Texts, "Its sizes, as `48x48` or `any`."),
        key("theme", Holds::Word(&["light", "dark"]), "The background it is drawn for."),
    ],
    required: &["src"],
};

/// The pictures under the key `icons`.
pub(crate) fn icons(table: &Table<'_, '_>, notes: &mut Notes<'_>) -> Vec<Icon> {
    let Some(node) = table.node("icons", notes) else { return Vec::new() };
    let path = table.path("icons");
    // Entries that are wrong are left out, but the others keep their places in
    // the spans: what is filed under `icons.1` is the second one that is left.
    let mut found = Vec::new();
    for item in items(node) {
        let place = format!("{path}.{}", found.len());
        if let Some(icon) = icon(item, &place, notes) {
            notes.spans.insert(place, item.span.clone());
            found.push(icon);
        }
    }
    found
}

fn icon(node: &Node, place: &str, notes: &mut Notes<'_>) -> Option<Icon> {
    if let Some(src) = node.text() {
        let src = source(src, node, notes)?;
        return Some(Icon { src: src.into(), mime_type: None, sizes: Vec::new(), theme: None });
    }
    if !matches!(node.value, Value::Mapping(_)) {
        let message = format!("an icon has to be a path, a URL or a mapping, and {} stands here", node.kind());
        notes.error(Code::WrongType, &node.span, message);
        return None;
    }
    let prefix = format!("{place}.");
    let table = Table::of(node, &prefix, "an icon", notes)?;
    table.expect(&KEYS, Severity::Warning, "in an icon", notes);
    let mime_key = if table.has("mime-type") { "mime-type" } else { "mimeType" };
    let mime_type = mime_type(&table, mime_key, notes);
    let sizes = table.texts("sizes", notes);
    for size in sizes.iter().filter(|size| !is_size(size)) {
        let span = notes.spans.get(&table.path("sizes")).cloned().unwrap_or_else(|| node.span.clone());
        notes.error(Code::InvalidValue, &span, format!("`{size}` is no size of an icon")).help =
            Some("write `48x48`, or `any`".to_owned());
    }
    let theme = theme(&table, notes);
    let src = table.required_text("src", "an icon", notes)?;
    let src = source(&src, table.node("src", notes)?, notes)?;
    Some(Icon { src: src.into(), mime_type, sizes, theme })
}

/// Refuses what no client may load. `https:` and `data:` stay as they are, and
/// what has no scheme is a path.
fn source(src: &str, node: &Node, notes: &mut Notes<'_>) -> Option<String> {
    let scheme = src.split_once(':').map(|(scheme, _)| scheme).filter(|scheme| {
        scheme.len() > 1 && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
    });
    let (message, help) = match scheme.map(str::to_ascii_lowercase).as_deref() {
        _ if src.is_empty() => ("an icon cannot be empty".to_owned(), "name a file of the library, or remove it"),
        None => return Some(src.to_owned()),
        Some("https" | "data") => {
            let icon = Icon { src: src.into(), mime_type: None, sizes: Vec::new(), theme: None };
            match icon.fault() {
                None => return Some(src.to_owned()),
                Some(fault) => (fault, "encode it anew, or use a file of the library"),
            }
        }
        Some("http") => ("an icon cannot come over `http:`".to_owned(), "use `https:`, or a file of the library"),
        Some(other) => {
            (format!("an icon cannot come over `{other}:`"), "use `https:`, `data:` or a file of the library")
        }
    };
    notes.error(Code::InvalidValue, &node.span, message).help = Some(help.to_owned());
    None
}

/// A MIME type under a key.
pub(crate) fn mime_type(table: &Table<'_, '_>, key: &str, notes: &mut Notes<'_>) -> Option<MimeType> {
    let text = table.text(key, notes)?;
    let parsed = MimeType::parse(&text);
    if parsed.is_none() {
        let span = notes.spans.get(&table.path(key)).cloned().unwrap_or_default();
        notes.error(Code::InvalidValue, &span, format!("`{text}` is no MIME type")).help =
            Some("a MIME type has two parts, as in `text/markdown`".to_owned());
    }
    parsed
}

fn theme(table: &Table<'_, '_>, notes: &mut Notes<'_>) -> Option<Theme> {
    let text = table.text("theme", notes)?;
    match text.as_str() {
        "light" => Some(Theme::Light),
        "dark" => Some(Theme::Dark),
        _ => {
            let span = notes.spans.get(&table.path("theme")).cloned().unwrap_or_default();
            let near = nearest(&text, ["light", "dark"]);
            notes.error(Code::InvalidValue, &span, format!("an icon's theme cannot be `{text}`")).help =
                Some(near.map_or("write `light` or `dark`".to_owned(), |near| format!("did you mean `{near}`?")));
            None
        }
    }
}

fn is_size(size: &str) -> bool {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    size == "any" || size.split_once('x').is_some_and(|(width, height)| number(width) && number(height))
}

//! Icons: a string, or a mapping of `src`, `mimeType`, `sizes` and `theme`.
//!
//! Paths stay paths here. `directory::icons` replaces them by `data:` URIs when the files of the library are known.

use promptshelf_core::{Code, Icon, MimeType, Severity, Theme, nearest};

use super::{
    keys::{Holds, Keys, key},
    table::Table,
    tree::{Node, Notes, Value},
};

pub(crate) const KEYS: Keys = Keys {
    keys: &[
        key("src", Holds::Text, "A file of the library, an https: URL or a data: URI."),
        key("mimeType", Holds::Text, "Its MIME type."),
        key("mime-type", Holds::Text, "The same as `mimeType`, in the spelling of TOML."),
        key("sizes", Holds::Texts, "Its sizes, such as `48x48` or `any`."),
        key("theme", Holds::Word(&["light", "dark"]), "The background that it is designed for."),
    ],
    required: &["src"],
};

/// Reads the icons under the key `icons`.
pub(crate) fn icons(table: &Table<'_, '_>, notes: &mut Notes<'_>) -> Vec<Icon> {
    let Some(node) = table.node("icons", notes) else { return Vec::new() };
    let path = table.path("icons");
    // Invalid entries are left out. The others are numbered without gaps, in the spans too: `icons.1` is the second
    // valid one.
    let mut found = Vec::new();
    for item in node.items() {
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
        return Some(Icon::new(src));
    }
    if !matches!(node.value, Value::Mapping(_)) {
        let message = format!("an icon: expected a path, a URL or a mapping, found {}", node.kind());
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
        notes.error(Code::InvalidValue, &span, format!("invalid icon size `{size}`")).help =
            Some("expected a size such as `48x48`, or `any`".to_owned());
    }
    let theme = theme(&table, notes);
    let src = table.required_text("src", "an icon", notes)?;
    let src = source(&src, table.node("src", notes)?, notes)?;
    Some(Icon { mime_type, sizes, theme, ..Icon::new(src) })
}

/// Rejects sources that no client may load. `https:` and `data:` URIs are kept, and a source without a scheme is a
/// path.
fn source(src: &str, node: &Node, notes: &mut Notes<'_>) -> Option<String> {
    let scheme = src.split_once(':').map(|(scheme, _)| scheme).filter(|scheme| {
        scheme.len() > 1 && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
    });
    let (message, help) = match scheme.map(str::to_ascii_lowercase).as_deref() {
        _ if src.is_empty() => {
            ("the source of this icon is empty".to_owned(), "use a file of the library, or remove the icon")
        }
        None => return Some(src.to_owned()),
        Some("https" | "data") => match Icon::new(src).fault() {
            None => return Some(src.to_owned()),
            Some(fault) => (fault, "encode it again, or use a file of the library"),
        },
        Some("http") => ("icons over `http:` are not allowed".to_owned(), "use `https:`, or a file of the library"),
        Some(other) => {
            (format!("icons over `{other}:` are not allowed"), "use `https:`, `data:` or a file of the library")
        }
    };
    notes.error(Code::InvalidValue, &node.span, message).help = Some(help.to_owned());
    None
}

fn mime_type(table: &Table<'_, '_>, key: &str, notes: &mut Notes<'_>) -> Option<MimeType> {
    let text = table.text(key, notes)?;
    let parsed = MimeType::parse(&text);
    if parsed.is_none() {
        let span = notes.spans.get(&table.path(key)).cloned().unwrap_or_default();
        notes.error(Code::InvalidValue, &span, format!("invalid MIME type `{text}`")).help =
            Some("expected two parts, as in `text/markdown`".to_owned());
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
            notes.error(Code::InvalidValue, &span, format!("unknown icon theme `{text}`")).help =
                Some(near.map_or("expected `light` or `dark`".to_owned(), |near| format!("did you mean `{near}`?")));
            None
        }
    }
}

fn is_size(size: &str) -> bool {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    size == "any" || size.split_once('x').is_some_and(|(width, height)| number(width) && number(height))
}

//! Media types of files: from the name, unless the first bytes contradict it.

use promptshelf_core::{Blob, MimeType, ResourceBody};

/// Extensions that the general table lacks, or maps to a type that models do not accept as text.
const TEXTS: &[(&str, &str)] = &[
    ("md", "text/markdown"),
    ("markdown", "text/markdown"),
    ("mdx", "text/markdown"),
    ("rs", "text/x-rust"),
    ("py", "text/x-python"),
    ("pyi", "text/x-python"),
    ("ts", "text/x-typescript"),
    ("tsx", "text/x-typescript"),
    ("jsx", "text/jsx"),
    ("go", "text/x-go"),
    ("rb", "text/x-ruby"),
    ("java", "text/x-java"),
    ("kt", "text/x-kotlin"),
    ("swift", "text/x-swift"),
    ("c", "text/x-c"),
    ("h", "text/x-c"),
    ("cpp", "text/x-c++"),
    ("hpp", "text/x-c++"),
    ("cs", "text/x-csharp"),
    ("php", "text/x-php"),
    ("sh", "text/x-shellscript"),
    ("bash", "text/x-shellscript"),
    ("zsh", "text/x-shellscript"),
    ("ps1", "text/x-powershell"),
    ("sql", "text/x-sql"),
    ("toml", "text/x-toml"),
    ("yaml", "text/x-yaml"),
    ("yml", "text/x-yaml"),
    ("ini", "text/plain"),
    ("cfg", "text/plain"),
    ("conf", "text/plain"),
    ("env", "text/plain"),
    ("lock", "text/plain"),
    ("log", "text/plain"),
    ("txt", "text/plain"),
    ("j2", "text/plain"),
    ("jinja", "text/plain"),
    ("tex", "text/x-tex"),
    ("diff", "text/x-diff"),
    ("patch", "text/x-diff"),
    ("proto", "text/plain"),
    ("graphql", "text/plain"),
    ("svg", "image/svg+xml"),
    ("webp", "image/webp"),
    ("avif", "image/avif"),
    ("wav", "audio/wav"),
    ("flac", "audio/flac"),
    ("m4a", "audio/mp4"),
    ("opus", "audio/ogg"),
];

pub(crate) fn from_name(path: &str) -> Option<MimeType> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let (_, ending) = name.rsplit_once('.')?;
    let ending = ending.to_ascii_lowercase();
    match TEXTS.iter().find(|(known, _)| *known == ending) {
        Some((_, mime_type)) => MimeType::parse(mime_type),
        None => MimeType::parse(mime_guess::from_ext(&ending).first_raw()?),
    }
}

/// Returns the MIME type of a file: from its name, otherwise from its bytes.
pub(crate) fn of(path: &str, bytes: &[u8]) -> MimeType {
    from_name(path).or_else(|| sniffed(bytes)).unwrap_or_else(|| match std::str::from_utf8(bytes) {
        Ok(_) => MimeType::plain_text(),
        Err(_) => MimeType::octet_stream(),
    })
}

/// Whether content of this type is delivered as text if it is UTF-8.
pub(crate) fn is_text(mime_type: &MimeType) -> bool {
    let essence = mime_type.as_str().split(';').next().unwrap_or_default().trim_end();
    let Some((kind, subtype)) = essence.split_once('/') else { return false };
    kind == "text"
        || subtype.ends_with("+xml")
        || subtype.ends_with("+json")
        || subtype.ends_with("+yaml")
        || (kind == "application"
            && [
                "json",
                "xml",
                "yaml",
                "x-yaml",
                "toml",
                "javascript",
                "x-sh",
                "sql",
                "graphql",
                "ld+json",
                "x-ndjson",
                "x-tex",
            ]
            .contains(&subtype))
}

/// The bytes of a byte order mark in UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

pub(crate) fn has_mark(bytes: &[u8]) -> bool {
    bytes.starts_with(BYTE_ORDER_MARK)
}

/// Whether bytes are those of a text, apart from a byte order mark.
pub(crate) fn is_text_of(text: &str, bytes: &[u8]) -> bool {
    bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes) == text.as_bytes()
}

/// Returns text if the type is textual and the bytes are UTF-8; otherwise the bytes. A byte order mark belongs to the
/// file and not to its text, which is inserted into others.
pub(crate) fn body(mime_type: &MimeType, bytes: Vec<u8>) -> ResourceBody {
    if !is_text(mime_type) {
        return ResourceBody::Blob(Blob::new(bytes));
    }
    match String::from_utf8(bytes) {
        Ok(text) => ResourceBody::Text(text.strip_prefix('\u{feff}').unwrap_or(&text).into()),
        Err(error) => ResourceBody::Blob(Blob::new(error.into_bytes())),
    }
}

/// Returns the type of the bytes if they cannot be of the declared type, such as a JPEG in a file named `.png`, or a PNG
/// in a file named `.txt`.
pub(crate) fn contradiction(declared: &MimeType, bytes: &[u8]) -> Option<MimeType> {
    let media = |mime_type: &MimeType| {
        let text = mime_type.as_str();
        ["image/", "audio/", "video/", "font/"].iter().any(|kind| text.starts_with(kind)) || text == "application/pdf"
    };
    // Only formats with a signature of their own can be recognised reliably: an office document is a ZIP archive, and
    // an SVG is text.
    if is_text(declared) {
        return sniffed(bytes).filter(|found| is_binary(bytes) && media(found) && !is_text(found));
    }
    if !media(declared) {
        return None;
    }
    let found = sniffed(bytes);
    match found {
        Some(found) if family(found.as_str()) == family(declared.as_str()) => None,
        Some(found) => Some(found),
        // An image that is plain text is most often an error page or a Git LFS pointer.
        None => (!bytes.is_empty() && std::str::from_utf8(bytes).is_ok()).then(MimeType::plain_text),
    }
}

/// Whether a file of the first type that contains the second one cannot be shown: an image or a sound that is neither.
pub(crate) fn is_unusable(declared: &MimeType, found: &MimeType) -> bool {
    // Sound is often in a container for films.
    let is_sound = |found: &MimeType| found.is_audio() || found.as_str().starts_with("video/");
    !is_text(declared) && (declared.is_image() && !found.is_image() || declared.is_audio() && !is_sound(found))
}

/// Whether bytes cannot be text of any encoding with ASCII characters: some signatures consist of letters.
fn is_binary(bytes: &[u8]) -> bool {
    const SAMPLE: usize = 1024;
    let is_control = |byte: &u8| matches!(byte, 0..=8 | 14..=26 | 28..=31);
    std::str::from_utf8(bytes).is_err() && (bytes.starts_with(b"%PDF-") || bytes.iter().take(SAMPLE).any(is_control))
}

fn sniffed(bytes: &[u8]) -> Option<MimeType> {
    let found = infer::get(bytes)?.mime_type();
    MimeType::parse(match found {
        "audio/x-wav" => "audio/wav",
        "audio/x-flac" => "audio/flac",
        "audio/m4a" => "audio/mp4",
        other => other,
    })
}

fn family(mime_type: &str) -> &str {
    match mime_type {
        "audio/x-wav" | "audio/wav" | "audio/wave" | "audio/vnd.wave" => "wav",
        "audio/x-flac" | "audio/flac" => "flac",
        "audio/mp4" | "video/mp4" | "audio/m4a" | "audio/x-m4a" | "video/x-m4v" | "audio/aac" | "video/quicktime" => {
            "mp4"
        }
        "audio/ogg" | "video/ogg" | "audio/opus" | "application/ogg" => "ogg",
        "audio/webm" | "video/webm" | "video/x-matroska" => "matroska",
        "audio/midi" | "audio/mid" => "midi",
        "audio/aiff" | "audio/x-aiff" => "aiff",
        "image/vnd.microsoft.icon" | "image/x-icon" => "ico",
        "image/heic" | "image/heif" | "image/avif" => "heif",
        "image/jpeg" | "image/jpg" | "image/pjpeg" => "jpeg",
        "font/ttf" | "font/otf" | "font/sfnt" | "application/font-sfnt" => "sfnt",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_and_sounds_of_another_kind_are_unusable() {
        let unusable = |declared: &str, found: &str| {
            let [declared, found] = [declared, found].map(|text| MimeType::parse(text).expect("a type"));
            is_unusable(&declared, &found)
        };
        for (declared, found) in [("image/png", "text/plain"), ("audio/wav", "text/html"), ("image/png", "audio/wav")] {
            assert!(unusable(declared, found), "{declared} {found}");
        }
        for (declared, found) in [
            ("image/png", "image/jpeg"),
            ("audio/mp4", "video/mp4"),
            ("text/plain", "image/png"),
            ("image/svg+xml", "application/pdf"),
            ("application/pdf", "text/html"),
        ] {
            assert!(!unusable(declared, found), "{declared} {found}");
        }
    }

    const JPEG: &[u8] = &[0xFF, 0xD8, 0xFF, 0xE0, 0, 0, b'J', b'F', b'I', b'F'];
    const PNG: &[u8] = &[0x89, b'P', b'N', b'G', 0x0D, 0x0A, 0x1A, 0x0A];

    #[test]
    fn type_depends_on_the_name() {
        for (path, expected) in [
            ("a.md", "text/markdown"),
            ("x/a.RS", "text/x-rust"),
            ("a.log", "text/plain"),
            ("a.json", "application/json"),
            ("a.png", "image/png"),
            ("a.svg", "image/svg+xml"),
            ("a.wav", "audio/wav"),
            ("a.mp3", "audio/mpeg"),
            ("a.pdf", "application/pdf"),
            ("a.html", "text/html"),
        ] {
            assert_eq!(from_name(path).expect("known").as_str(), expected, "{path}");
        }
        assert_eq!(from_name("Makefile"), None);
        assert_eq!(of("Makefile", b"all:").as_str(), "text/plain");
        assert_eq!(of("picture", PNG).as_str(), "image/png");
        assert_eq!(of("bytes", &[0xFF, 0x00]).as_str(), "application/octet-stream");
    }

    #[test]
    fn only_recognisable_bytes_contradict() {
        let is_contradicted =
            |path: &str, bytes: &[u8]| contradiction(&of(path, bytes), bytes).map(|found| found.as_str().to_owned());
        assert_eq!(is_contradicted("a.png", JPEG).as_deref(), Some("image/jpeg"));
        assert_eq!(is_contradicted("a.jpg", JPEG), None);
        assert_eq!(is_contradicted("a.png", PNG), None);
        assert_eq!(is_contradicted("a.png", b"<html>not found</html>").as_deref(), Some("text/html"));
        assert_eq!(
            is_contradicted("a.png", b"version https://git-lfs.github.com/spec/v1").as_deref(),
            Some("text/plain")
        );
        assert_eq!(is_contradicted("a.svg", b"<svg/>"), None);
        for path in ["a.txt", "a.json", "a.svg", "a.md"] {
            assert_eq!(is_contradicted(path, PNG).as_deref(), Some("image/png"), "{path}");
        }
        assert_eq!(is_contradicted("a.txt", b"%PDF-1.7\n%\xE2\xE3").as_deref(), Some("application/pdf"));
        // Latin-1 and UTF-8 texts that begin like a bitmap, and UTF-16.
        for text in [&b"BMW-H\xE4ndler"[..], b"BMW", b"ID3", b"\xFF\xFEa\0b\0", b""] {
            assert_eq!(is_contradicted("a.txt", text), None, "{text:?}");
        }
        assert_eq!(is_contradicted("a.wav", b"RIFF\0\0\0\0WAVEfmt "), None);
    }
}

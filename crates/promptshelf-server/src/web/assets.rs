//! The page's files, embedded into the binary.
//!
//! A debug build reads them from the source tree instead, so that an edit needs only a reload of the page.

use axum::{
    body::Body,
    extract::Path,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
};
use rust_embed::{Embed, EmbeddedFile};

#[derive(Embed)]
#[folder = "src/web/assets"]
struct Assets;

pub(super) async fn index(headers: HeaderMap) -> Response {
    respond("index.html", &headers)
}

pub(super) async fn asset(Path(path): Path<String>, headers: HeaderMap) -> Response {
    respond(&path, &headers)
}

fn respond(path: &str, headers: &HeaderMap) -> Response {
    let (Some(file), Some(media_type)) = (Assets::get(path), media_type(path)) else {
        return (StatusCode::NOT_FOUND, "Not found. The page's files are listed in index.html.\n").into_response();
    };
    let etag = etag(&file);
    // Revalidated at each use, so that after an update files of two versions are never mixed.
    let caching = [(header::CACHE_CONTROL, "no-cache"), (header::ETAG, &*etag)];
    if is_unchanged(headers, &etag) {
        return (StatusCode::NOT_MODIFIED, caching).into_response();
    }
    (caching, [(header::CONTENT_TYPE, media_type)], Body::from(file.data)).into_response()
}

/// Returns the media type of a file; files of other types are not served.
fn media_type(path: &str) -> Option<&'static str> {
    Some(match path.rsplit_once('.')?.1 {
        "html" => "text/html; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "svg" => "image/svg+xml",
        _ => return None,
    })
}

fn etag(file: &EmbeddedFile) -> String {
    let start = file.metadata.sha256_hash()[..16].try_into().map_or(0, u128::from_be_bytes);
    format!("\"{start:032x}\"")
}

fn is_unchanged(headers: &HeaderMap, etag: &str) -> bool {
    let known = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    known.flat_map(|value| value.split(',')).any(|known| known.trim().trim_start_matches("W/") == etag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_has_a_media_type() {
        let without: Vec<_> = Assets::iter().filter(|path| media_type(path).is_none()).collect();
        assert!(without.is_empty(), "{without:?}");
        assert!(Assets::get("index.html").is_some());
    }

    #[test]
    fn unchanged_file_is_not_sent_again() {
        let first = respond("index.html", &HeaderMap::new());
        assert_eq!(first.status(), StatusCode::OK);
        let tag = first.headers()[header::ETAG].clone();
        let with = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::IF_NONE_MATCH, value.parse().expect("a header value"));
            respond("index.html", &headers).status()
        };
        assert_eq!(with(tag.to_str().expect("ASCII")), StatusCode::NOT_MODIFIED);
        assert_eq!(with(&format!("\"x\", W/{}", tag.to_str().expect("ASCII"))), StatusCode::NOT_MODIFIED);
        assert_eq!(with("\"x\""), StatusCode::OK);
    }

    #[test]
    fn paths_cannot_leave_the_folder() {
        for path in ["../mod.rs", "js/../../mod.rs", "/etc/passwd", "", "js", "nothing.js"] {
            assert_eq!(respond(path, &HeaderMap::new()).status(), StatusCode::NOT_FOUND, "{path}");
        }
    }
}

//! The page's files, inside the binary.
//!
//! A debug build reads them from the source tree instead, so that whoever works
//! on the page only reloads it.

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

/// The page itself.
pub(super) async fn index(headers: HeaderMap) -> Response {
    answer("index.html", &headers)
}

/// One of its files.
pub(super) async fn asset(Path(path): Path<String>, headers: HeaderMap) -> Response {
    answer(&path, &headers)
}

fn answer(path: &str, headers: &HeaderMap) -> Response {
    let (Some(file), Some(media_type)) = (Assets::get(path), media_type(path)) else {
        return (StatusCode::NOT_FOUND, "There is no such file.\n").into_response();
    };
    let tag = tag(&file);
    // Asked for each time, sent once: after an update no old file meets a new one.
    let caching = [(header::CACHE_CONTROL, "no-cache"), (header::ETAG, &*tag)];
    if is_known(headers, &tag) {
        return (StatusCode::NOT_MODIFIED, caching).into_response();
    }
    (caching, [(header::CONTENT_TYPE, media_type)], Body::from(file.data)).into_response()
}

/// Of files whose type is not here none is served.
fn media_type(path: &str) -> Option<&'static str> {
    Some(match path.rsplit_once('.')?.1 {
        "html" => "text/html; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "svg" => "image/svg+xml",
        _ => return None,
    })
}

fn tag(file: &EmbeddedFile) -> String {
    let start = file.metadata.sha256_hash()[..16].try_into().map_or(0, u128::from_be_bytes);
    format!("\"{start:032x}\"")
}

fn is_known(headers: &HeaderMap, tag: &str) -> bool {
    let known = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    known.flat_map(|value| value.split(',')).any(|known| known.trim().trim_start_matches("W/") == tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_has_a_type() {
        let without: Vec<_> = Assets::iter().filter(|path| media_type(path).is_none()).collect();
        assert!(without.is_empty(), "{without:?}");
        assert!(Assets::get("index.html").is_some());
    }

    #[test]
    fn a_file_that_is_known_is_not_sent_again() {
        let first = answer("index.html", &HeaderMap::new());
        assert_eq!(first.status(), StatusCode::OK);
        let tag = first.headers()[header::ETAG].clone();
        let with = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::IF_NONE_MATCH, value.parse().expect("it is a value"));
            answer("index.html", &headers).status()
        };
        assert_eq!(with(tag.to_str().expect("it is text")), StatusCode::NOT_MODIFIED);
        assert_eq!(with(&format!("\"x\", W/{}", tag.to_str().expect("it is text"))), StatusCode::NOT_MODIFIED);
        assert_eq!(with("\"x\""), StatusCode::OK);
    }

    #[test]
    fn no_path_leads_out_of_the_folder() {
        for path in ["../mod.rs", "js/../../mod.rs", "/etc/passwd", "", "js", "nothing.js"] {
            assert_eq!(answer(path, &HeaderMap::new()).status(), StatusCode::NOT_FOUND, "{path}");
        }
    }
}

//! Entity tags and conditional requests (RFC 9110, section 13).

use axum::{
    body::Body,
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use promptshelf_store::Digest;
use serde::Serialize;

use super::problem::Problem;

/// A client may keep an answer, and has to ask before it uses it again.
const CACHE_CONTROL: &str = "private, no-cache";

/// A strong entity tag: the digest of a representation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tag(String);

impl Tag {
    pub(super) fn of_file(digest: &Digest) -> Tag {
        Tag(digest.to_string())
    }

    pub(super) fn of(body: &[u8]) -> Tag {
        Tag(Digest::of(body).to_string())
    }

    fn header(&self) -> HeaderValue {
        HeaderValue::try_from(format!("\"{}\"", self.0)).unwrap_or(HeaderValue::from_static("\"\""))
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Condition {
    /// `*`: any version, as long as there is one.
    Exists,
    Is(Vec<String>),
}

/// Reads a list of tags. Weak tags count only where the comparison is weak.
fn condition(headers: &HeaderMap, name: &HeaderName, is_weak: bool) -> Result<Option<Condition>, Problem> {
    let malformed =
        || Problem::invalid(format!("The header {name} is malformed: expected * or ETags in double quotes"));
    if !headers.contains_key(name) {
        return Ok(None);
    }
    let mut tags = Vec::new();
    for value in headers.get_all(name) {
        let value = value.to_str().map_err(|_| malformed())?.trim();
        if value == "*" {
            return Ok(Some(Condition::Exists));
        }
        for tag in value.split(',').map(str::trim).filter(|tag| !tag.is_empty()) {
            let (tag, counts) = tag.strip_prefix("W/").map_or((tag, true), |tag| (tag, is_weak));
            let tag = tag.strip_prefix('"').and_then(|tag| tag.strip_suffix('"')).ok_or_else(malformed)?;
            if counts {
                tags.push(tag.to_owned());
            }
        }
    }
    Ok(Some(Condition::Is(tags)))
}

/// Checks `If-Match` against the present version, `None` for one that does not exist.
pub(super) fn check_match(headers: &HeaderMap, tag: Option<&Tag>, is_required: bool) -> Result<(), Problem> {
    let is_met = match condition(headers, &header::IF_MATCH, false)? {
        None if is_required => return Err(Problem::precondition_required("If-Match")),
        None => true,
        Some(Condition::Exists) => tag.is_some(),
        Some(Condition::Is(tags)) => tag.is_some_and(|tag| tags.contains(&tag.0)),
    };
    if is_met {
        return Ok(());
    }
    Err(Problem::precondition_failed("It has changed since it was read: read it again, and use its present ETag"))
}

pub(super) fn expected(headers: &HeaderMap) -> Result<Vec<String>, Problem> {
    match condition(headers, &header::IF_MATCH, false)? {
        None => Err(Problem::precondition_required("If-Match")),
        Some(Condition::Exists) => {
            Err(Problem::invalid("The header If-Match has to name the version that is replaced"))
        }
        Some(Condition::Is(tags)) => Ok(tags),
    }
}

/// Returns whether a request is for something that does not exist yet (`If-None-Match: *`).
pub(super) fn is_creation(headers: &HeaderMap) -> Result<bool, Problem> {
    Ok(condition(headers, &header::IF_NONE_MATCH, true)? == Some(Condition::Exists))
}

/// Adds the tag to a response, or replaces the response: 304 if the client has this version, 412 if it expects another
/// one.
pub(super) fn conditional(request: &HeaderMap, tag: &Tag, mut response: Response) -> Result<Response, Problem> {
    check_match(request, Some(tag), false)?;
    let is_known = match condition(request, &header::IF_NONE_MATCH, true)? {
        None => false,
        Some(Condition::Exists) => true,
        Some(Condition::Is(tags)) => tags.contains(&tag.0),
    };
    if is_known {
        response = (StatusCode::NOT_MODIFIED, Body::empty()).into_response();
        response.headers_mut().remove(header::CONTENT_TYPE);
    }
    response.headers_mut().insert(header::ETAG, tag.header());
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static(CACHE_CONTROL));
    Ok(response)
}

pub(super) fn represent(value: &impl Serialize) -> Result<(Vec<u8>, Tag), Problem> {
    let body = serde_json::to_vec(value).map_err(|error| {
        tracing::error!("a response of the API cannot be serialized: {error}");
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal-error", "Internal error", "See the server's log")
    })?;
    let tag = Tag::of(&body);
    Ok((body, tag))
}

/// The answer to a `GET`: JSON with its tag, or 304.
pub(super) fn json(request: &HeaderMap, value: &impl Serialize) -> Result<Response, Problem> {
    let (body, tag) = represent(value)?;
    let response = ([(header::CONTENT_TYPE, "application/json")], body).into_response();
    conditional(request, &tag, response)
}

/// The answer to a `GET` of a program: JSON with its tag, or 304, with caching of its own.
pub(super) fn cached_json(request: &HeaderMap, value: &impl Serialize, caching: &str) -> Result<Response, Problem> {
    let mut response = json(request, value)?;
    if let Ok(caching) = HeaderValue::try_from(caching) {
        response.headers_mut().insert(header::CACHE_CONTROL, caching);
    }
    Ok(response)
}

/// The answer to a change: the new representation, with its tag.
pub(super) fn tagged(status: StatusCode, value: &impl Serialize, tag: &Tag) -> Result<Response, Problem> {
    let (body, _) = represent(value)?;
    let mut response = (status, [(header::CONTENT_TYPE, "application/json")], body).into_response();
    response.headers_mut().insert(header::ETAG, tag.header());
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: HeaderName, value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(name, HeaderValue::from_static(value))])
    }

    #[test]
    fn if_match_compares_strongly() {
        let tag = Tag("a".to_owned());
        let status = |value, tag: Option<&Tag>| {
            check_match(&headers(header::IF_MATCH, value), tag, true).err().map(|problem| problem.name())
        };
        assert_eq!(status("\"a\"", Some(&tag)), None);
        assert_eq!(status("\"b\", \"a\"", Some(&tag)), None);
        assert_eq!(status("*", Some(&tag)), None);
        assert_eq!(status("*", None), Some("precondition-failed"));
        assert_eq!(status("W/\"a\"", Some(&tag)), Some("precondition-failed"));
        assert_eq!(status("\"b\"", Some(&tag)), Some("precondition-failed"));
        assert_eq!(status("", Some(&tag)), Some("precondition-failed"));
        assert_eq!(status("a", Some(&tag)), Some("invalid-request"));
        assert_eq!(check_match(&HeaderMap::new(), None, true).err().map(|p| p.name()), Some("precondition-required"));
    }

    #[test]
    fn known_version_is_not_sent_again() {
        let tag = Tag("a".to_owned());
        let status = |value| {
            let request = headers(header::IF_NONE_MATCH, value);
            conditional(&request, &tag, "body".into_response()).map(|response| response.status().as_u16())
        };
        assert_eq!(status("\"a\"").ok(), Some(304));
        assert_eq!(status("W/\"a\"").ok(), Some(304));
        assert_eq!(status("\"b\", \"a\"").ok(), Some(304));
        assert_eq!(status("*").ok(), Some(304));
        assert_eq!(status("\"b\"").ok(), Some(200));
    }
}

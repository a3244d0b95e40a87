//! Session ids of the legacy revisions.
//!
//! Ids are optional, and this server has no use for them. Some clients, such as the official SDKs for Python and Rust,
//! open their stream of notifications only if they received one. An id is therefore random, has no state and grants
//! nothing, and an unknown id is served, because it may come from another replica. Only ids that a client has ended
//! are remembered, because they must be answered with 404 (2025-11-25, *Transports / Session Management*).

use std::collections::VecDeque;

use http::{HeaderMap, HeaderValue, StatusCode, header::HeaderName};
use parking_lot::Mutex;
use promptshelf_service::Caller;

use crate::{error_code::WireError, random_id};

static SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");

/// Number of ended sessions that are remembered.
const MAX_ENDED: usize = 1_024;

/// Adds a new session id to the response to `initialize`.
pub(super) fn begin(headers: &mut HeaderMap) {
    let id = HeaderValue::try_from(random_id()).expect("hexadecimal digits");
    headers.insert(SESSION_ID.clone(), id);
}

pub(super) fn is_named(headers: &HeaderMap) -> bool {
    headers.contains_key(&SESSION_ID)
}

#[derive(Debug, Default)]
pub(super) struct EndedSessions {
    /// Each with the [`limit_key`](Caller::limit_key) of its caller: nobody ends the session of another one.
    ids: Mutex<VecDeque<(u128, String)>>,
}

impl EndedSessions {
    pub(super) fn check(&self, headers: &HeaderMap, caller: &Caller) -> Result<(), WireError> {
        let Some(id) = id(headers) else { return Ok(()) };
        if self.ids.lock().iter().any(|(ended, by)| *ended == id && *by == caller.limit_key()) {
            Err(WireError {
                status: StatusCode::NOT_FOUND.as_u16(),
                ..WireError::invalid_request("This session has ended; start another one with initialize")
            })
        } else {
            Ok(())
        }
    }

    /// Ends the session of a request. An id that this server cannot have issued is ignored.
    pub(super) fn end(&self, headers: &HeaderMap, caller: &Caller) {
        let Some(id) = id(headers) else { return };
        let ended = (id, caller.limit_key());
        let mut ids = self.ids.lock();
        if ids.contains(&ended) {
            return;
        }
        if ids.len() == MAX_ENDED {
            ids.pop_front();
        }
        ids.push_back(ended);
    }
}

/// Returns the session id of a request, if it has the form of this server's ids.
fn id(headers: &HeaderMap) -> Option<u128> {
    let text = headers.get(&SESSION_ID)?.to_str().ok()?;
    let has_form = text.len() == 32 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    has_form.then(|| u128::from_str_radix(text, 16).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(id: &str) -> HeaderMap {
        HeaderMap::from_iter([(SESSION_ID.clone(), HeaderValue::try_from(id).expect("a header"))])
    }

    fn caller(last: u8) -> Caller {
        Caller::anonymous().with_address([192, 0, 2, last].into())
    }

    // req: S-597
    #[test]
    fn callers_end_their_own_sessions_only() {
        let (ended, session) = (EndedSessions::default(), headers(&"a".repeat(32)));
        ended.end(&session, &caller(1));
        assert!(ended.check(&session, &caller(1)).is_err());
        assert!(ended.check(&session, &caller(2)).is_ok());
    }

    #[test]
    fn ended_sessions_are_bounded() {
        let (ended, caller) = (EndedSessions::default(), caller(1));
        let numbered = |number: usize| headers(&format!("{number:032x}"));
        for number in 0..2 * MAX_ENDED {
            ended.end(&numbered(number), &caller);
            ended.end(&numbered(number), &caller);
        }
        assert_eq!(ended.ids.lock().len(), MAX_ENDED);
        assert!(ended.check(&numbered(MAX_ENDED - 1), &caller).is_ok());
        assert!(ended.check(&numbered(MAX_ENDED), &caller).is_err());
        for foreign in ["", "1", "+0000000000000000000000000000001", &"A".repeat(32), &"0".repeat(33)] {
            ended.end(&headers(foreign), &caller);
            assert!(ended.check(&headers(foreign), &caller).is_ok(), "{foreign}");
        }
    }
}

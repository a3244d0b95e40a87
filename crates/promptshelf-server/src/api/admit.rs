//! The checks before every handler: host, origin and sign-in; and the headers of every response.

use axum::{
    extract::{Request, State},
    http::{HeaderName, HeaderValue, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use promptshelf_mcp::{
    HttpService,
    http::{Denial, ForeignRequest},
};
use promptshelf_wire::{VERSION, VERSION_HEADER};

use super::{call::Measured, problem::Problem};
use crate::library::Library;

/// Headers of every response. A file of the library must not run as a page, wherever it is opened.
const HEADERS: [(HeaderName, &str); 5] = [
    (header::CONTENT_SECURITY_POLICY, "default-src 'none'; sandbox; frame-ancestors 'none'"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::VARY, "Authorization, Origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static(VERSION_HEADER), VERSION),
];

const REFUSED: &str = "api";

#[derive(Clone)]
pub(super) struct Checks {
    pub(super) endpoint: HttpService,
    pub(super) library: Library,
}

pub(super) async fn admit(State(checks): State<Checks>, request: Request, next: Next) -> Response {
    let (mut head, body) = request.into_parts();
    let caller = checks.library.server().caller_of(&head.extensions);
    let caller = checks.library.server().with_user_agent(caller, &head.headers);
    let id = caller.request_id().and_then(|id| HeaderValue::try_from(id).ok());
    let refused = |problem: Problem| {
        let measured = Measured::start(checks.library.service(), REFUSED);
        measured.into_iter().for_each(|measured| measured.end(problem.name()));
        problem.into_response()
    };
    let mut response = match (checks.endpoint.admit(&head), head.extensions.get::<Denial>()) {
        (Err(reason), _) => {
            let mut response = refused(Problem::foreign(reason));
            response.extensions_mut().insert(ForeignRequest::of(&head.headers));
            response
        }
        (Ok(()), Some(denial)) => refused(Problem::denied(denial)),
        (Ok(()), None) if head.headers.get(VERSION_HEADER).is_some_and(|version| version != VERSION) => refused(
            Problem::invalid(format!("The version of the API is {VERSION}, and {VERSION_HEADER} names another one")),
        ),
        (Ok(()), None) => {
            head.extensions.insert(caller.clone());
            next.run(Request::from_parts(head, body)).await
        }
    };
    // What is refused before an operation begins takes time, too.
    if response.status().is_client_error()
        && let Err(rejection) = checks.library.service().count_refused(&caller)
    {
        response = refused(rejection.into());
    }
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if let Some(id) = id {
        headers.insert("x-request-id", id);
    }
    response
}

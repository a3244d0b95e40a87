//! Refusals and errors of a server, as the errors that a store has.

use http::header;
use promptshelf_client::{ApiResponse, ClientError, Endpoint, ServerUrl};
use promptshelf_store::StoreError;

use super::model::Problem;
use crate::{
    commands::channels::answer::BackendError,
    connect, environment,
    exit::{Exit, Failure},
};

/// The prefix of the `type` of a problem.
const TYPE: &str = "urn:promptshelf:problem:";

/// Converts an answer that is not a success.
pub(super) fn of_response(response: &ApiResponse, server: &ServerUrl) -> BackendError {
    let kind = response.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let problem: Option<Problem> =
        kind.starts_with("application/problem+json").then(|| serde_json::from_slice(&response.body).ok()).flatten();
    match (problem, response.status) {
        (Some(problem), status) => of_problem(problem, status, server),
        (None, 404 | 405) => no_api(server),
        (None, 413) => too_large(server),
        (None, status @ (408 | 502..=504)) => unreachable(format!("{server} answered with status {status}")),
        (None, status) => failed(format!("{server} answered with status {status}")),
    }
}

fn of_problem(problem: Problem, status: u16, server: &ServerUrl) -> BackendError {
    let Problem { kind, detail, paths, revision, lacks, reasons } = problem;
    let store = match kind.strip_prefix(TYPE).unwrap_or_default() {
        "not-found" => match detail.strip_suffix(" does not exist") {
            Some("This path of the API") => return no_api(server),
            what => StoreError::NotFound { what: what.unwrap_or(&detail).to_owned() },
        },
        "conflict" => StoreError::Conflict { paths, revision },
        "policy" => StoreError::Policy { lacks, reasons },
        "unchanged" => StoreError::Unchanged { reason: detail },
        "state" | "not-author" => StoreError::State { reason: detail },
        // The caller of the operation names the changed object.
        "precondition-failed" | "stale-review" | "stale-evaluation" => StoreError::Changed { what: String::new() },
        "invalid-request" => StoreError::InvalidInput { reason: detail },
        "insufficient-role" => return BackendError::Other(Failure::new(Exit::Policy, detail)),
        "insufficient-scope" | "not-grantable" | "sign-in-required" | "foreign-request" => {
            return BackendError::Other(Failure::new(Exit::SignIn, detail));
        }
        "too-large" => return too_large(server),
        "store-unreachable" => {
            return unreachable(format!("{server} cannot reach its database; nothing was changed, try again later"));
        }
        _ if status == 503 => return unreachable(format!("{server}: {detail}")),
        _ => return failed(format!("{server} answered with status {status}: {detail}")),
    };
    store.into()
}

pub(super) fn about(error: BackendError, what: &str) -> BackendError {
    match error {
        BackendError::Store(StoreError::Changed { .. }) => StoreError::Changed { what: what.to_owned() }.into(),
        error => error,
    }
}

pub(super) fn of_client(error: ClientError, server: &ServerUrl) -> BackendError {
    match error {
        ClientError::Unreachable { reason, .. } => unreachable(format!("{server} does not answer: {reason}")),
        ClientError::TimedOut { .. } => unreachable(format!("{server} does not answer: {error}")),
        error => {
            let (endpoint, has_token) = endpoint(server);
            let is_forbidden = matches!(error, ClientError::Forbidden { .. });
            let failure = connect::failure(error, Some(&endpoint));
            BackendError::Other(match is_forbidden && has_token {
                true => failure.help("the token in PROMPTSHELF_TOKEN needs all of them"),
                false => failure,
            })
        }
    }
}

/// Returns the endpoint of the sign-in, and whether there is a token in its place.
fn endpoint(server: &ServerUrl) -> (Endpoint, bool) {
    let endpoint = server.endpoint();
    match environment::variable("PROMPTSHELF_TOKEN") {
        Some(token) => (endpoint.clone().bearer(&token).unwrap_or(endpoint), true),
        None => (endpoint, false),
    }
}

pub(super) fn invalid_answer(server: &ServerUrl, reason: &str) -> BackendError {
    failed(format!("the answer of {server} is not that of the API: {reason}"))
}

fn no_api(server: &ServerUrl) -> BackendError {
    let failure = Failure::new(Exit::Store, format!("{server} has no API of a store"));
    BackendError::Other(failure.help(
        "the API belongs to a server of a channel, with sign-in or `serve --api`; a server of an older release lacks parts",
    ))
}

fn unreachable(reason: String) -> BackendError {
    StoreError::Unreachable { reason, source: None }.into()
}

fn failed(message: String) -> BackendError {
    BackendError::Other(Failure::new(Exit::Failed, message))
}

const SMALLER: &str = "split the change, or remove a large file; the operator can raise `max-body-bytes` of the \
                       server, or publish with --store";

fn too_large(server: &ServerUrl) -> BackendError {
    let failure = Failure::new(Exit::Failed, format!("a request is larger than {server} accepts"));
    BackendError::Other(failure.help(SMALLER))
}

/// The error of a connection that ended while a large request was sent.
pub(super) fn perhaps_too_large(server: &ServerUrl, reason: &str) -> BackendError {
    let message = format!("{server} ended the connection, perhaps because a request was too large: {reason}");
    BackendError::Other(Failure::new(Exit::Store, message).help(SMALLER))
}

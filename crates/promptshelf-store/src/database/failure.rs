//! Errors of the drivers as errors of a store.

use std::sync::Arc;

use sqlx::error::DatabaseError;

use crate::StoreError;

/// Converts an error of a driver. The texts of the drivers never contain a password; those about the configuration may
/// contain parts of the URL, and are not passed on.
pub(crate) fn failure(error: sqlx::Error) -> StoreError {
    match error {
        sqlx::Error::Database(ref database) => {
            let reason = database.message().to_owned();
            match class(&**database) {
                Class::Unreachable => unreachable(reason, error),
                Class::Busy => unreachable(format!("another process holds a lock for too long ({reason})"), error),
                Class::Missing => StoreError::NotFound { what: missing(&reason) },
                Class::Full => StoreError::Full { reason, source: Some(Arc::new(error)) },
                Class::Refused => refused(reason, error),
            }
        }
        sqlx::Error::Io(ref cause) => unreachable(cause.to_string(), error),
        sqlx::Error::Tls(ref cause) => unreachable(format!("TLS: {cause}"), error),
        sqlx::Error::Protocol(_) => unreachable("the answer is not that of PostgreSQL".to_owned(), error),
        sqlx::Error::PoolTimedOut => unreachable("no connection within the time limit".to_owned(), error),
        sqlx::Error::PoolClosed | sqlx::Error::WorkerCrashed => {
            unreachable("the connection is closed".to_owned(), error)
        }
        sqlx::Error::Configuration(_) | sqlx::Error::InvalidArgument(_) => StoreError::InvalidUrl {
            reason: "the settings of the connection are invalid: check the URL and the PG… environment variables"
                .to_owned(),
        },
        _ => refused(error.to_string(), error),
    }
}

/// Returns the error for a statement without an answer in time.
pub(crate) fn timed_out() -> StoreError {
    StoreError::Unreachable { reason: "the database did not answer within the time limit".to_owned(), source: None }
}

enum Class {
    Unreachable,
    Busy,
    Missing,
    Full,
    Refused,
}

fn class(error: &dyn DatabaseError) -> Class {
    let code = error.code();
    let code = code.as_deref().unwrap_or_default();
    // Class and condition codes: PostgreSQL, appendix A. Result codes: sqlite.org/rescode.html.
    if let Ok(code) = code.parse::<u32>()
        && error.try_downcast_ref::<sqlx::sqlite::SqliteError>().is_some()
    {
        return match code & 0xff {
            5 | 6 => Class::Busy,
            13 => Class::Full,
            // Writing beyond a limit of the file's size, or on a failing disk.
            10 if code == 778 => Class::Full,
            _ => Class::Refused,
        };
    }
    match code {
        "55P03" => Class::Busy,
        "57014" | "57P01" | "57P02" | "57P03" | "57P05" | "53300" => Class::Unreachable,
        "3D000" => Class::Missing,
        "53100" => Class::Full,
        _ if code.starts_with("08") => Class::Unreachable,
        _ => Class::Refused,
    }
}

/// PostgreSQL's words are `database "x" does not exist`; `NotFound` appends the verb itself.
fn missing(message: &str) -> String {
    let name = message.strip_suffix(" does not exist").unwrap_or(message);
    format!("the {name}")
}

fn unreachable(reason: String, source: sqlx::Error) -> StoreError {
    StoreError::Unreachable { reason, source: Some(Arc::new(source)) }
}

fn refused(reason: String, source: sqlx::Error) -> StoreError {
    StoreError::Database { reason, source: Some(Arc::new(source)) }
}

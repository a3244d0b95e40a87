//! The answers of a store or a server to a command, and their errors.

use std::sync::Arc;

use promptshelf_store::StoreError;

use crate::exit::Failure;

pub(super) type Answer<T> = Result<T, BackendError>;

pub(super) type ChangedContent = (String, Option<Arc<[u8]>>, Option<Arc<[u8]>>);

#[derive(Clone, Debug)]
pub(super) enum BackendError {
    /// An error of the store; a server's answers become the same errors.
    Store(StoreError),
    /// An error that a store does not have, such as a missing scope.
    Other(Failure),
}

impl From<StoreError> for BackendError {
    fn from(error: StoreError) -> BackendError {
        BackendError::Store(error)
    }
}

impl From<BackendError> for Failure {
    fn from(error: BackendError) -> Failure {
        match error {
            BackendError::Store(error) => error.into(),
            BackendError::Other(failure) => failure,
        }
    }
}

impl BackendError {
    pub(super) fn is_conflict(&self) -> bool {
        matches!(self, BackendError::Store(StoreError::Conflict { .. }))
    }
}

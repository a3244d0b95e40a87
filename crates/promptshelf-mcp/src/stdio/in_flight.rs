//! Requests in progress, by ID, so that `notifications/cancelled` can cancel them.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio_util::sync::CancellationToken;

use crate::{error_code::WireError, jsonrpc::RequestId};

const MAX_IN_FLIGHT: usize = 4_096;

#[derive(Debug, Default)]
pub(super) struct InFlight(Mutex<HashMap<RequestId, CancellationToken>>);

impl InFlight {
    fn lock(&self) -> MutexGuard<'_, HashMap<RequestId, CancellationToken>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks whether a request can begin: there is capacity, and its ID is not in use.
    pub(super) fn check(&self, id: &RequestId) -> Result<(), WireError> {
        let requests = self.lock();
        if requests.len() >= MAX_IN_FLIGHT {
            return Err(WireError::invalid_request("Too many requests are waiting for an answer"));
        }
        if requests.contains_key(id) {
            return Err(WireError::invalid_request("A request with this id is waiting for its answer"));
        }
        Ok(())
    }

    pub(super) fn begin(&self, id: &RequestId) -> CancellationToken {
        self.lock().entry(id.clone()).or_default().clone()
    }

    pub(super) fn end(&self, id: &RequestId) {
        self.lock().remove(id);
    }

    pub(super) fn cancel(&self, id: &RequestId) {
        if let Some(token) = self.lock().get(id) {
            token.cancel();
        }
    }

    pub(super) fn cancel_all(&self) {
        self.lock().values().for_each(CancellationToken::cancel);
    }
}

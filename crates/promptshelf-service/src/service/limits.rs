//! Limits of requests outside of operations: settings, figures, and requests that no operation admits.

use std::net::IpAddr;

use crate::{caller::Caller, limit::Limits, rejection::Rejection, service::Service};

impl Service {
    /// Replaces the limits of every clone; `None` removes them.
    pub fn set_limits(&self, limits: Option<&Limits>) {
        self.meter.set(limits);
    }

    /// Returns, for each limit, how many requests it has refused so far.
    #[must_use]
    pub fn refused_by_limits(&self) -> Vec<(&'static str, u64)> {
        self.meter.refused()
    }

    /// Admits a request by its address alone, before its caller and content are known.
    ///
    /// # Errors
    ///
    /// [`Rejection::TooManyRequests`].
    pub fn admit_address(&self, address: IpAddr) -> Result<(), Rejection> {
        self.meter.admit_address(address)
    }

    /// Counts a request that is refused before an operation begins, such as one with malformed parameters, which can
    /// take as much time as others. Nothing is counted if the request has been admitted already, or has no
    /// [`SlotHolder`](crate::SlotHolder).
    ///
    /// # Errors
    ///
    /// [`Rejection::TooManyRequests`].
    pub fn count_refused(&self, caller: &Caller) -> Result<(), Rejection> {
        self.meter.count_refused(caller)
    }

    /// Returns whether limits are set.
    #[must_use]
    pub fn has_limits(&self) -> bool {
        self.meter.is_on()
    }
}

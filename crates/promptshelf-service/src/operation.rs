//! Operations outside of the catalog, such as those of a management API, under the same limits and in the same audit.

use crate::{
    audit::{Call, Method},
    caller::Caller,
    limit::RequestClass,
    rejection::Rejection,
    service::Service,
};

/// An admitted operation. It counts as a request in progress until it ends, and its record is written then, even if it
/// is dropped.
///
/// ```
/// use promptshelf_core::{CatalogHandle, Definitions, check};
/// use promptshelf_service::{Caller, Method, Rejection, Service};
///
/// # fn main() -> Result<(), Rejection> {
/// let service = Service::new(CatalogHandle::new(check(Definitions::default(), None).catalog));
/// let mut operation = service.operation(&Caller::anonymous(), Method::Api("api/publish"))?;
/// operation.note("channel", "production");
/// operation.note_number("revision", 7);
/// operation.end("ok");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "an operation that is dropped at once is recorded as cancelled"]
pub struct Operation {
    call: Call,
}

impl Service {
    /// Admits an operation of a caller.
    ///
    /// # Errors
    ///
    /// Those of limits, and [`Rejection::NotRecorded`].
    pub fn operation(&self, caller: &Caller, method: Method) -> Result<Operation, Rejection> {
        Ok(Operation { call: self.begin(caller, RequestClass::Other, method)? })
    }
}

impl Operation {
    /// Adds a text to the record, cut to 1,024 bytes.
    pub fn note(&mut self, key: &'static str, text: &str) {
        self.call.note_text(key, text);
    }

    /// Adds a number to the record.
    pub fn note_number(&mut self, key: &'static str, number: u64) {
        self.call.note(key, || number.into());
    }

    /// Ends the operation. `outcome` is `ok` or a stable code of the refusal.
    pub fn end(mut self, outcome: &'static str) {
        self.call.set_outcome(outcome);
    }
}

//! The tool capability of a server without tools.
//!
//! Agent frameworks call `tools/list` of every server and fail as a whole on "method not found". The capability is
//! therefore declared, and the list is empty. Operators can disable both.

use std::sync::atomic::Ordering;

use promptshelf_service::Rejection;

use crate::{
    Server,
    dispatch::Context,
    error_code::{WireError, echo},
    request::Params,
    to_wire,
};

impl Server {
    /// Declares the capability `tools` and answers `tools/list` with an empty list (the default), or neither.
    pub fn set_tools_enabled(&self, enabled: bool) {
        self.inner.has_tools.store(enabled, Ordering::Relaxed);
    }

    /// Returns whether the capability `tools` is declared.
    #[must_use]
    pub fn has_tools_enabled(&self) -> bool {
        self.inner.has_tools.load(Ordering::Relaxed)
    }

    pub(crate) fn list_tools(
        &self,
        context: Context<'_>,
        params: &Params<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), WireError> {
        // An empty list has one page, so no cursor is valid.
        if params.cursor()?.is_some() {
            return Err(WireError::rejected(&Rejection::InvalidCursor, context.revision));
        }
        to_wire::no_tools(&self.service().view(context.caller), context.revision, out);
        Ok(())
    }

    pub(crate) fn call_tool(params: &Params<'_>) -> WireError {
        match params.name() {
            Ok(name) => WireError::invalid_params(format!("Unknown tool: {}", echo(&name))),
            Err(error) => error,
        }
    }
}

//! The MCP endpoint of a library as a tower service, for applications with an HTTP server of their own.

use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::Arc,
    task::{Context, Poll},
};

use axum::extract::ConnectInfo;
use http::Request;
use promptshelf_mcp::{HttpOptions, HttpService};
use promptshelf_service::Caller;
use promptshelf_source::ReloadTask;
use tower::Service;

use crate::library::Library;

/// The MCP endpoint of a [`Library`] as a tower service. Cheap to clone; clones are the same endpoint.
///
/// Changes of folders are followed until the last clone is dropped. A [`Caller`] among the extensions
/// of a request authenticates it; without one the caller is anonymous. Anonymous callers are told apart, for limits, by
/// `ConnectInfo<SocketAddr>` among the extensions, as `Router::into_make_service_with_connect_info` puts it there; without
/// it all of them count as one.
#[derive(Clone, Debug)]
pub struct McpService {
    http: HttpService,
    #[expect(dead_code, reason = "follows changes until it is dropped")]
    reload_task: Arc<ReloadTask>,
}

impl Library {
    /// Returns the MCP endpoint as a tower service with default options, which serves requests to
    /// `localhost` only. Errors never occur: the service is always ready and infallible.
    ///
    /// ```
    /// use promptshelf_server::Library;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), promptshelf_server::OpenError> {
    /// let library = Library::builder().build()?;
    /// let app: axum::Router = axum::Router::new().route_service("/mcp", library.into_service());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// Outside of a Tokio runtime, which follows changes of folders.
    #[must_use]
    pub fn into_service(self) -> McpService {
        self.into_service_with(HttpOptions::default())
    }

    /// Returns the MCP endpoint like [`into_service`](Library::into_service), with options: for
    /// instance the host names under which the application is reached.
    ///
    /// # Panics
    ///
    /// Outside of a Tokio runtime.
    #[must_use]
    pub fn into_service_with(self, options: HttpOptions) -> McpService {
        McpService { http: self.server().http(options), reload_task: Arc::new(self.loader().spawn()) }
    }
}

impl<B> Service<Request<B>> for McpService
where
    HttpService: Service<Request<B>, Error = Infallible>,
{
    type Response = <HttpService as Service<Request<B>>>::Response;
    type Error = Infallible;
    type Future = <HttpService as Service<Request<B>>>::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.http.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let extensions = request.extensions_mut();
        if let Some(ConnectInfo(peer)) = extensions.get::<ConnectInfo<SocketAddr>>().copied()
            && extensions.get::<Caller>().is_none()
        {
            extensions.insert(Caller::anonymous().with_address(peer.ip()));
        }
        self.http.call(request)
    }
}

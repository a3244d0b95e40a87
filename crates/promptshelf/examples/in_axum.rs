//! A folder of prompts as one route of an axum application.
//!
//! `cargo run --example in_axum -- examples/library 127.0.0.1:8080`

#![expect(clippy::print_stderr, reason = "the example has no log for its address")]

use axum::{Router, routing::get};
use promptshelf::Library;
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let folder = words.next().unwrap_or_else(|| "examples/library".to_owned());
    let address = words.next().unwrap_or_else(|| "127.0.0.1:8080".to_owned());

    let library = Library::builder().folder(folder).build()?;
    // The service is also available to other routes, without a protocol.
    let prompts = library.service().clone();
    let app = Router::new()
        .route("/", get(async move || format!("{} prompts, at /mcp\n", prompts.catalog().prompts().len())))
        .route_service("/mcp", library.into_service());

    let listener = TcpListener::bind(address).await?;
    eprintln!("listening on http://{}/mcp", listener.local_addr()?);
    axum::serve(listener, app).await?;
    Ok(())
}

//! The sources of a running server.

use http::Method;
use promptshelf_client::ServerUrl;
use serde_json::Value;

use super::connection::{Remote, Request};
use crate::{
    exit::{Exit, Failure},
    output::visible_line,
};

/// Returns the states of the sources of a server, as `promptshelf source list --json` prints them.
pub(crate) async fn remote_sources(url: &str) -> Result<Value, Failure> {
    let remote = Remote::new(url.parse::<ServerUrl>()?).await?;
    Ok(remote.get("sources", vec![]).await?)
}

/// Lets a server read a source again.
pub(crate) async fn refresh_remote_source(url: &str, name: &str) -> Result<(), Failure> {
    let remote = Remote::new(url.parse::<ServerUrl>()?).await?;
    // Other characters would need escapes in a path.
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_')) {
        let message = format!("a source cannot have the name {}", visible_line(name));
        return Err(Failure::new(Exit::NotFound, message).help("`promptshelf source list` shows the names"));
    }
    Ok(remote.send(Request::new(Method::POST, &format!("sources/{name}/refresh"))).await.map(drop)?)
}

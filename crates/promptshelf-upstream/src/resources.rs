//! Reading resources of another server.

use std::{fmt, sync::Arc, time::Instant};

use promptshelf_client::{Client, ClientError, ReadResult, ResourceBody};
use promptshelf_core::{
    Blob, BoxFuture, MimeType, ReadBody, ReadError, RemoteOrigin, RemoteResources, ResourceBody as Body,
    invisible::stripped,
};
use tokio::time::timeout;

use crate::connection::{Connection, reason};

/// The largest resource, in bytes.
const MAX_RESOURCE_BYTES: usize = 16 << 20;

pub(crate) struct ForeignResources(pub(crate) Arc<Connection>);

impl fmt::Debug for ForeignResources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ForeignResources({})", self.0.name())
    }
}

impl RemoteResources for ForeignResources {
    fn origin(&self, uri: &str) -> Option<RemoteOrigin> {
        self.0.resources.origin(uri)
    }

    fn read(&self, uri: &str) -> BoxFuture<'_, Result<ReadBody, ReadError>> {
        let uri = uri.to_owned();
        Box::pin(async move { self.0.read(&uri).await })
    }
}

impl Connection {
    async fn read(&self, uri: &str) -> Result<ReadBody, ReadError> {
        let Some(client) = self.client().filter(|_| self.admits(Instant::now())) else {
            return Err(ReadError::Failed(format!("the server of the source {} does not answer", self.name())));
        };
        let answer = timeout(self.timeout(), read(&client, uri)).await;
        match answer.unwrap_or(Err(ClientError::TimedOut { after: self.timeout() })) {
            Ok(result) => {
                self.note_success();
                body(result, uri)
            }
            Err(ClientError::ErrorResponse { .. }) => {
                self.note_success();
                Err(ReadError::NotFound)
            }
            Err(error) => {
                self.note_failure();
                let problem = reason(&error);
                Err(ReadError::Failed(format!("the server of the source {} did not answer: {problem}", self.name())))
            }
        }
    }
}

fn body(result: ReadResult, uri: &str) -> Result<ReadBody, ReadError> {
    let mut contents = result.contents;
    let at = contents.iter().position(|contents| contents.uri == uri).unwrap_or_default();
    if contents.is_empty() {
        return Err(ReadError::NotFound);
    }
    let contents = contents.swap_remove(at);
    let mime_type = MimeType::parse(&contents.mime_type);
    let body = match contents.body {
        ResourceBody::Text(text) => Body::Text(stripped(&text).into()),
        ResourceBody::Blob(bytes) => Body::Blob(Blob::new(bytes)),
    };
    if body.len() <= MAX_RESOURCE_BYTES {
        Ok(ReadBody { body, mime_type, modified: None })
    } else {
        Err(ReadError::TooLarge { limit: MAX_RESOURCE_BYTES as u64 })
    }
}

/// Reads a resource, as a future whose type names no lifetime inside.
fn read<'a>(client: &'a Client, uri: &'a str) -> BoxFuture<'a, Result<ReadResult, ClientError>> {
    Box::pin(client.read(uri))
}

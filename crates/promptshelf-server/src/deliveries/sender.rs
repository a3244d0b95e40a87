//! Sends one event to one webhook.

use std::{error::Error as _, fmt, fmt::Write as _, net::IpAddr, sync::Arc, time::Duration};

use hmac::{Hmac, KeyInit as _, Mac as _};
use promptshelf_store::Delivery;
use reqwest::{Client, StatusCode, header, redirect::Policy};
use sha2::Sha256;

use super::{
    addresses::{CheckedResolver, Lookup, PrivateAddress},
    slack,
    target::{WebhookFormat, WebhookTarget},
};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

pub(super) const TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Clone)]
pub(super) struct Sender {
    pub(super) target: WebhookTarget,
    client: Client,
    timeout: Duration,
}

/// Why an event did not arrive. It has no part of the URL, and nothing that the receiver sent but its status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Problem {
    Private(IpAddr),
    Unresolved,
    Unreachable,
    TimedOut(Duration),
    Redirect(StatusCode),
    Status(StatusCode),
    Interrupted,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::Private(address) => PrivateAddress(*address).fmt(f),
            Problem::Unresolved => f.write_str("the name of the host cannot be resolved"),
            Problem::Unreachable => f.write_str("no connection: refused, unreachable, or not the expected TLS"),
            Problem::TimedOut(limit) => write!(f, "no answer within {} s", limit.as_secs_f32()),
            Problem::Redirect(status) => {
                write!(f, "a redirect ({}), which is not followed: set `url` to its target", status.as_u16())
            }
            Problem::Status(status) => write!(f, "the status {}", status.as_u16()),
            Problem::Interrupted => f.write_str("the connection ended before an answer"),
        }
    }
}

impl Sender {
    /// Creates the client of a webhook. `limit` bounds each attempt.
    pub(super) fn new(target: WebhookTarget, lookup: Lookup, timeout: Duration) -> Result<Sender, reqwest::Error> {
        let resolver = CheckedResolver { lookup, allows_private: target.allows_private };
        let client = Client::builder()
            // A proxy would resolve the name itself, and connect without a check.
            .no_proxy()
            .redirect(Policy::none())
            .retry(reqwest::retry::never())
            .dns_resolver(Arc::new(resolver))
            // Each request resolves and checks again.
            .pool_max_idle_per_host(0)
            .http1_only()
            .referer(false)
            .connect_timeout(CONNECT_TIMEOUT.min(timeout))
            .timeout(timeout)
            .user_agent(concat!("promptshelf/", env!("CARGO_PKG_VERSION")))
            .build()?;
        Ok(Sender { target, client, timeout })
    }

    /// Sends an event once. The body of the answer is not read.
    pub(super) async fn send(&self, delivery: &Delivery) -> Result<(), Problem> {
        let body = match self.target.format {
            WebhookFormat::Json => delivery.body.clone(),
            WebhookFormat::Slack => slack::body(&delivery.body),
        };
        let mut request = self
            .client
            .post(self.target.url.clone())
            .header(header::CONTENT_TYPE, "application/json")
            .header("Idempotency-Key", delivery.key.as_str())
            .header("X-Promptshelf-Event", delivery.event.as_str());
        if let Some(secret) = &self.target.secret {
            request = request.header("X-Promptshelf-Signature", signature(secret, body.as_bytes()));
        }
        let status = request.body(body).send().await.map_err(|error| self.problem(&error))?.status();
        match status {
            status if status.is_success() => Ok(()),
            status if status.is_redirection() => Err(Problem::Redirect(status)),
            status => Err(Problem::Status(status)),
        }
    }

    fn problem(&self, error: &reqwest::Error) -> Problem {
        let mut cause = error.source();
        while let Some(error) = cause {
            if let Some(private) = error.downcast_ref::<PrivateAddress>() {
                return Problem::Private(private.0);
            }
            cause = error.source();
        }
        match error {
            error if error.is_timeout() => Problem::TimedOut(self.timeout),
            error if error.is_dns() => Problem::Unresolved,
            error if error.is_connect() => Problem::Unreachable,
            _ => Problem::Interrupted,
        }
    }
}

/// Returns the value of `X-Promptshelf-Signature`: the HMAC-SHA256 (RFC 2104) of the exact body.
fn signature(secret: &[u8], body: &[u8]) -> String {
    let mut text = String::from("sha256=");
    // A key of any length is valid.
    if let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret) {
        mac.update(body);
        for byte in mac.finalize().into_bytes() {
            let _ = write!(text, "{byte:02x}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values were computed with `openssl dgst -sha256 -hmac`.
    #[test]
    fn signature_is_the_hmac_of_the_body() {
        assert_eq!(
            signature(b"key", b"The quick brown fox jumps over the lazy dog"),
            "sha256=f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8"
        );
    }
}

//! A webhook of the operator's settings.

use std::{collections::BTreeSet, fmt, fmt::Write as _, time::Duration};

use promptshelf_store::{Webhook, WebhookEvent};
use sha2::{Digest as _, Sha256};
use url::{Host, Url};

use super::addresses::is_public;

const RETRY_FOR: Duration = Duration::from_secs(24 * 60 * 60);

/// The format of the requests to a webhook.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WebhookFormat {
    /// The event as JSON.
    #[default]
    Json,
    /// A sentence for people, as `{"text": …}`: the format of Slack's incoming webhooks, which others understand too.
    Slack,
}

/// A webhook: where events are sent, and how. `Debug` shows neither the URL's path, which may be secret, nor the secret.
///
/// ```
/// use promptshelf_server::deliveries::WebhookTarget;
/// use promptshelf_store::WebhookEvent;
///
/// let target = WebhookTarget::new("https://ci.example.com/hooks/7f3a", [WebhookEvent::Published], false)?;
/// assert_eq!(target.label(), "https://ci.example.com");
/// assert!(WebhookTarget::new("https://10.0.0.7/", [WebhookEvent::Published], false).is_err());
/// # Ok::<(), promptshelf_server::deliveries::InvalidWebhook>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookTarget {
    pub(super) url: Url,
    pub(super) secret: Option<Box<[u8]>>,
    pub(super) allows_private: bool,
    pub(super) format: WebhookFormat,
    pub(super) retry_for: Duration,
    pub(super) webhook: Webhook,
}

/// Why a URL cannot be that of a webhook. Messages do not repeat the URL, which may be secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvalidWebhook {
    /// It is not an `http` or `https` URL with a host, or it has a user, a password or a fragment.
    Url,
    /// It is an `http` URL, and only public addresses are allowed.
    NotHttps,
    /// Its host is an address that is not public.
    PrivateAddress,
}

impl fmt::Display for InvalidWebhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            InvalidWebhook::Url => "expected an https URL without user, password and fragment",
            InvalidWebhook::NotHttps => "expected an https URL; http needs `allow-private = true`",
            InvalidWebhook::PrivateAddress => {
                "expected a public address; private, loopback and link-local ones need `allow-private = true`"
            }
        })
    }
}

impl std::error::Error for InvalidWebhook {}

impl WebhookTarget {
    /// Creates a webhook without a secret, in the default format, whose deliveries are repeated for a day. Only
    /// `allows_private` permits plain http and addresses that are not public.
    ///
    /// # Errors
    ///
    /// [`InvalidWebhook`] for a URL that events cannot be sent to.
    pub fn new(
        url: &str,
        events: impl IntoIterator<Item = WebhookEvent>,
        allows_private: bool,
    ) -> Result<WebhookTarget, InvalidWebhook> {
        let url = Url::parse(url).map_err(|_| InvalidWebhook::Url)?;
        let is_plain = url.username().is_empty() && url.password().is_none() && url.fragment().is_none();
        let address = match url.host() {
            None => return Err(InvalidWebhook::Url),
            // The resolver is not used for addresses, so they are checked here.
            Some(Host::Ipv4(address)) => Some(address.into()),
            Some(Host::Ipv6(address)) => Some(address.into()),
            Some(Host::Domain(_)) => None,
        };
        match url.scheme() {
            "https" | "http" if !is_plain => return Err(InvalidWebhook::Url),
            "https" => {}
            "http" if allows_private => {}
            "http" => return Err(InvalidWebhook::NotHttps),
            _ => return Err(InvalidWebhook::Url),
        }
        if address.is_some_and(|address| !allows_private && !is_public(address)) {
            return Err(InvalidWebhook::PrivateAddress);
        }
        let mut id = String::new();
        for byte in &Sha256::digest(url.as_str())[..8] {
            let _ = write!(id, "{byte:02x}");
        }
        let events: BTreeSet<WebhookEvent> = events.into_iter().collect();
        let webhook = Webhook { id, label: url.origin().ascii_serialization(), events };
        let format = WebhookFormat::default();
        Ok(WebhookTarget { url, secret: None, allows_private, format, retry_for: RETRY_FOR, webhook })
    }

    /// Sets the key of the signature.
    #[must_use]
    pub fn secret(mut self, secret: impl AsRef<[u8]>) -> WebhookTarget {
        self.secret = Some(secret.as_ref().into());
        self
    }

    /// Sets the format.
    #[must_use]
    pub fn format(mut self, format: WebhookFormat) -> WebhookTarget {
        self.format = format;
        self
    }

    /// Sets the time after an event during which its delivery is repeated, one day by default.
    #[must_use]
    pub fn retry_for(mut self, time: Duration) -> WebhookTarget {
        self.retry_for = time;
        self
    }

    /// Identifies the URL in the store.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.webhook.id
    }

    /// Scheme, host and port of the URL, for people.
    #[must_use]
    pub fn label(&self) -> &str {
        &self.webhook.label
    }
}

impl fmt::Debug for WebhookTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WebhookTarget({})", self.webhook.label)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(url: &str, allows_private: bool) -> Result<WebhookTarget, InvalidWebhook> {
        WebhookTarget::new(url, WebhookEvent::ALL, allows_private)
    }

    // req: S-190
    #[test]
    fn private_addresses_in_any_notation_are_refused() {
        for url in [
            "https://127.0.0.1/",
            "https://127.1/",
            "https://0x7f000001/",
            "https://2130706433/",
            "https://0177.0.0.1/",
            "https://[::1]/",
            "https://[::ffff:192.168.0.1]/",
            "https://169.254.169.254/latest",
            "https://10.0.0.1:8443/",
        ] {
            assert_eq!(target(url, false).err(), Some(InvalidWebhook::PrivateAddress), "{url}");
            assert!(target(url, true).is_ok(), "{url}");
        }
        assert_eq!(target("http://hooks.example/", false).err(), Some(InvalidWebhook::NotHttps));
        for url in
            ["", "hooks.example", "ftp://a.example/", "https://me:pass@a.example/", "https://a.example/#x", "https://"]
        {
            assert_eq!(target(url, true).err(), Some(InvalidWebhook::Url), "{url}");
        }
    }

    // req: S-192
    #[test]
    fn debug_and_label_show_no_secret() {
        let target = target("https://hooks.example/services/T0/s3cret?key=s3cret", false).expect("valid");
        let shown = format!("{:?} {} {}", target.clone().secret("s3cret"), target.label(), target.id());
        assert!(shown.contains("https://hooks.example") && !shown.contains("s3cret"), "{shown}");
    }
}

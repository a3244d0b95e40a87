//! The webhooks of `[[webhook]]`, checked.

use std::path::PathBuf;

use promptshelf_server::deliveries::{WebhookFormat, WebhookTarget};
use promptshelf_store::WebhookEvent;

use super::{
    file::ServerFile,
    sections::ServerSettings,
    webhook_sections::{Event, Format},
};

const MAX_WEBHOOKS: usize = 50;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConfiguredWebhook {
    pub(crate) target: WebhookTarget,
    pub(crate) secret: Option<PathBuf>,
}

pub(super) fn resolve(file: &mut ServerFile, written: &ServerSettings) -> Vec<ConfiguredWebhook> {
    let sections = &written.webhook.0;
    if sections.len() > MAX_WEBHOOKS {
        file.webhook_error(MAX_WEBHOOKS, "url", format!("expected at most {MAX_WEBHOOKS} webhooks"));
    }
    let mut resolved: Vec<ConfiguredWebhook> = Vec::new();
    for (index, section) in sections.iter().enumerate().take(MAX_WEBHOOKS) {
        let events = section.events.iter().map(|event| match event {
            Event::Published => WebhookEvent::Published,
            Event::RolledBack => WebhookEvent::RolledBack,
            Event::Proposed => WebhookEvent::Proposed,
            Event::Reviewed => WebhookEvent::Reviewed,
            Event::Broken => WebhookEvent::Broken,
            Event::PolicyChanged => WebhookEvent::PolicyChanged,
        });
        let mut target = match WebhookTarget::new(&section.url.0, events, section.allow_private) {
            Ok(target) => target,
            Err(error) => {
                // The URL is not repeated: it may be secret.
                file.webhook_error(index, "url", error.to_string());
                continue;
            }
        };
        if section.events.is_empty() {
            file.webhook_error(index, "events", "expected at least one event").help =
                Some("the events are published, rolled-back, proposed, reviewed, broken and policy-changed".to_owned());
        }
        if resolved.iter().any(|other| other.target.id() == target.id()) {
            file.webhook_error(index, "url", "another webhook has this URL already").help =
                Some("name all events in one [[webhook]]".to_owned());
        }
        if section.format == Format::Slack {
            target = target.format(WebhookFormat::Slack);
        } else if section.secret.is_none() {
            file.webhook_error(index, "secret", "a webhook needs `secret`, with which its receiver verifies events")
                .help =
                Some("write `openssl rand -hex 32` to a file, and name it: secret = { file = \"…\" }".to_owned());
        }
        if let Some(time) = section.retry_for {
            target = target.retry_for(time.0);
        }
        let secret = section.secret.as_ref().map(|secret| file.resolve(&secret.file));
        resolved.push(ConfiguredWebhook { target, secret });
    }
    resolved
}

//! Webhooks of `server.toml`: the server sends events of its store to them.

use std::{path::Path, time::Duration};

use promptshelf_server::{ReplicaMonitor, channels::StoreHandle, deliveries::Deliveries};
use tokio::{task::JoinHandle, time::timeout};

use crate::{
    exit::{Exit, Failure},
    settings::{ServedLibrary, Settings},
};

const MIN_SECRET_BYTES: usize = 16;

/// The time for requests that have begun, at the end of the server. An event without a record is sent again.
const LAST_REQUESTS: Duration = Duration::from_secs(5);

pub(super) struct Delivering {
    pub(super) deliveries: Deliveries,
    task: JoinHandle<()>,
}

/// Opens the deliveries of a server over HTTP, if there are webhooks.
pub(super) fn open(settings: &Settings) -> Result<Option<Deliveries>, Failure> {
    if settings.webhooks.is_empty() {
        return Ok(None);
    }
    let ServedLibrary::Channels(channels) = &settings.library else {
        let message = format!("[[webhook]] needs a store, and {} is not a channel of one", settings.library);
        let help = "serve a channel, such as sqlite:team.db or postgres://…, or remove [[webhook]] from server.toml";
        return Err(Failure::new(Exit::Settings, message).help(help));
    };
    let mut targets = Vec::new();
    for webhook in &settings.webhooks {
        let target = webhook.target.clone();
        targets.push(match &webhook.secret {
            Some(file) => target.secret(secret(webhook.target.label(), file)?),
            None => target,
        });
    }
    let store = StoreHandle::new(channels.default.store.clone());
    let deliveries = Deliveries::new(store, targets).map_err(|error| Failure::new(Exit::Failed, error.to_string()))?;
    Ok(Some(deliveries))
}

fn secret(label: &str, file: &Path) -> Result<String, Failure> {
    let failed = |reason: String| {
        let message = format!("`secret` of the webhook {label}: the file {} {reason}", file.display());
        Failure::new(Exit::Settings, message)
    };
    let text = std::fs::read_to_string(file).map_err(|error| failed(format!("cannot be read: {error}")))?;
    let secret = text.lines().next().unwrap_or_default().trim();
    match secret.len() {
        MIN_SECRET_BYTES.. => Ok(secret.to_owned()),
        length => Err(failed(format!("has {length} bytes in its first line: expected at least {MIN_SECRET_BYTES}"))
            .help("`openssl rand -hex 32` prints a secret")),
    }
}

impl Delivering {
    pub(super) fn start(deliveries: Deliveries, replicas: Vec<ReplicaMonitor>) -> Delivering {
        let runner = deliveries.clone();
        let task = tokio::spawn(async move { runner.run(&replicas).await });
        Delivering { deliveries, task }
    }

    pub(super) async fn finish(self) {
        self.deliveries.stop();
        timeout(LAST_REQUESTS, self.task).await.ok();
    }
}

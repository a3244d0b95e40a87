//! The verbs that ask a server which is none of our libraries: they connect,
//! ask, print and end.

pub(crate) mod complete;
pub(crate) mod get;
pub(crate) mod list;
pub(crate) mod resources;
pub(crate) mod waiting;

use std::{io::Write, sync::Arc, time::Duration};

use promptshelf::client::{Answerer, Client, Target};

use self::waiting::Waiting;
use super::{paper::Paper, visible::visible_line};
use crate::exit::Failure;

/// Connects, and says on a terminal what is being waited for.
pub(crate) async fn connect(
    target: &Target,
    timeout: Duration,
    answerer: Option<Arc<dyn Answerer>>,
    waiting: &Waiting,
) -> Result<Client, Failure> {
    if let Target::Command { .. } = target {
        let mut paper = Paper::stderr();
        if paper.terminal {
            // Whoever named the server should see what is started for it.
            writeln!(paper.out, "starting {}", visible_line(&target.to_string())).ok();
        }
    }
    let mut connector = Client::to(target).timeout(timeout);
    if let Some(answerer) = answerer {
        connector = connector.answerer(answerer);
    }
    Ok(waiting.during(connector.connect()).await?)
}

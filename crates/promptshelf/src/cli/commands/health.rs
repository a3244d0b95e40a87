//! `promptshelf health`: asks a server whether it runs, for health checks of containers.

use std::{io::Write as _, time::Duration};

use clap::Args;
use serde_json::json;

use crate::{
    environment::without_passwords,
    exit::{Exit, Failure},
    output::Output,
    source::is_url,
};

const HEALTH_EXAMPLES: &str = "\
It asks for /healthz, which every caller may read, and waits for five seconds.
The exit code is 0 if the server answers, and 9 or 10 if it does not.

Examples:
  promptshelf health http://127.0.0.1:8080";

#[derive(Debug, Args)]
#[command(after_help = HEALTH_EXAMPLES)]
pub(crate) struct HealthArguments {
    /// The base address of the server, such as http://127.0.0.1:8080
    #[arg(value_name = "LIBRARY")]
    pub(crate) url: String,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

const PATIENCE: Duration = Duration::from_secs(5);

/// The longest answer to `/healthz` of a server that is this program, in bytes.
const MAX_ANSWER: usize = 64;

pub(crate) async fn run(arguments: &HealthArguments) -> Result<(), Failure> {
    let given = &arguments.url;
    if !is_url(given) {
        let message = format!("`{given}` is not the address of a server");
        return Err(Failure::new(Exit::Usage, message).help("expected one such as http://127.0.0.1:8080"));
    }
    let base = given.trim_end_matches('/');
    let base = base.strip_suffix("/mcp").unwrap_or(base);
    let client = reqwest::Client::builder()
        .timeout(PATIENCE)
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .http1_only();
    // A proxy cannot reach this machine's loopback interface.
    let client = if promptshelf_client::is_loopback_url(base) { client.no_proxy() } else { client };
    let failed = |error: &reqwest::Error| {
        if error.is_timeout() {
            Failure::new(Exit::TimedOut, format!("{base} did not answer within {} seconds", PATIENCE.as_secs()))
        } else {
            let mut cause: &dyn std::error::Error = error;
            while let Some(deeper) = cause.source() {
                cause = deeper;
            }
            Failure::new(Exit::Unreachable, format!("{base} does not answer: {cause}"))
        }
    };
    let client = client.build().map_err(|error| failed(&error))?;
    let mut answer = client.get(format!("{base}/healthz")).send().await.map_err(|error| failed(&error))?;
    let status = answer.status();
    let mut body = Vec::new();
    while body.len() < MAX_ANSWER
        && let Some(chunk) = answer.chunk().await.map_err(|error| failed(&error))?
    {
        body.extend_from_slice(&chunk);
    }
    if status != reqwest::StatusCode::OK || body != b"ok\n" {
        let message = format!("{base} answers, but not as promptshelf does: status {} for /healthz", status.as_u16());
        return Err(Failure::new(Exit::Failed, message).help("expected the base address of a promptshelf server"));
    }
    let mut output = Output::stdout();
    let base = output.line(&without_passwords(base)).into_owned();
    match arguments.json {
        true => writeln!(output.out, "{}", json!({ "url": base, "runs": true }))?,
        false => writeln!(output.out, "{base} runs")?,
    }
    Ok(output.out.flush()?)
}

//! The log: always on stderr, as text for people or as JSON for programs.
//!
//! stdout is the protocol's or the answer's, and no log line ever goes there.
//! Contents of prompts and values of arguments are not logged.

use std::{
    backtrace::Backtrace,
    io::{self, Write},
    panic,
};

use tracing_subscriber::{
    Layer, filter::Targets, fmt::MakeWriter, layer::SubscriberExt as _, util::SubscriberInitExt as _,
};

#[cfg(feature = "traces")]
use crate::{
    args::LogFormat,
    exit::{Exit, Failure},
    observe::{self, Sending},
    output::visible,
    settings::Traces,
};

/// Where there are no traces, nothing is sent.
#[cfg(not(feature = "traces"))]
pub(crate) struct Sending;

/// Starts the log, and the traces where some are wanted; these are sent for as
/// long as what is given back is there. `level` is a level such as `debug`, or
/// several such as `info,promptshelf_source=debug`.
///
/// # Errors
///
/// A level that means nothing, or traces that cannot be sent.
pub(crate) fn start(format: LogFormat, level: &str, traces: Option<&Traces>) -> Result<Option<Sending>, Failure> {
    let filter: Targets = level.parse().map_err(|_| {
        Failure::new(Exit::Usage, format!("the log level `{level}` means nothing"))
            .help("take one of off, error, warn, info, debug and trace")
    })?;
    #[cfg(feature = "traces")]
    let (layer, sending) = traces.map(observe::layer::<tracing_subscriber::Registry>).transpose()?.unzip();
    #[cfg(not(feature = "traces"))]
    let (layer, sending) = (None::<tracing_subscriber::layer::Identity>, traces.map(|_| Sending));
    let log = tracing_subscriber::fmt::layer();
    let log: Box<dyn Layer<_> + Send + Sync> = match format {
        // Without colours nothing in a line can steer a terminal on purpose,
        // and so everything that would can be made visible.
        LogFormat::Text => {
            log.with_ansi(false).with_target(false).with_writer(Stderr { visible: true }).with_filter(filter).boxed()
        }
        LogFormat::Json => {
            log.json().flatten_event(true).with_writer(Stderr { visible: false }).with_filter(filter).boxed()
        }
    };
    tracing_subscriber::registry().with(layer).with(log).init();
    panic::set_hook(Box::new(|panicked| {
        let backtrace = Backtrace::capture();
        tracing::error!(%backtrace, "this is a mistake in promptshelf itself: {panicked}");
    }));
    Ok(sending)
}

/// stderr, whether somebody reads it or not: a client that has closed its end
/// must not bring the server down.
struct Stderr {
    /// Whether invisible characters are made visible.
    visible: bool,
}

impl<'w> MakeWriter<'w> for Stderr {
    type Writer = Stderr;

    fn make_writer(&'w self) -> Stderr {
        Stderr { ..*self }
    }
}

impl Write for Stderr {
    /// Gets a whole line at a time.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.visible {
            true => io::stderr().write_all(visible(&String::from_utf8_lossy(bytes)).as_bytes()).ok(),
            false => io::stderr().write_all(bytes).ok(),
        };
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush().ok();
        Ok(())
    }
}

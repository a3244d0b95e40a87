//! The log, on stderr, as text or as JSON.
//!
//! Log lines never go to stdout, which carries the protocol or a command's result. Contents of prompts and values of
//! arguments are not logged.

use std::{
    backtrace::Backtrace,
    io::{self, Write},
    panic,
};

use tracing_subscriber::{
    Layer,
    filter::{LevelFilter, Targets},
    fmt::MakeWriter,
    layer::SubscriberExt as _,
    util::SubscriberInitExt as _,
};

use crate::{
    args::LogFormat,
    exit::{Exit, Failure},
    observe::{self, SpanExporterGuard},
    output::visible,
    settings::Traces,
};

/// Starts the log, and traces if they are configured; spans are sent until the returned exporter is dropped. `level` is
/// a level such as `debug`, or several such as `info,promptshelf_source=debug`.
pub(crate) fn start(
    format: LogFormat,
    level: &str,
    traces: Option<&Traces>,
) -> Result<Option<SpanExporterGuard>, Failure> {
    let filter = filter(level).ok_or_else(|| {
        Failure::new(Exit::Usage, format!("unknown log level `{level}`")).help(
            "use one of off, error, warn, info, debug and trace, or several such as info,promptshelf_source=debug",
        )
    })?;
    // The watcher's library traces every file event. In a log inside a watched folder each line would cause the next.
    let filter = match filter.default_level() {
        Some(LevelFilter::TRACE) => filter.with_target("notify", LevelFilter::DEBUG),
        // The driver tells of each idle connection that a database has closed; what needs the database is logged once.
        Some(LevelFilter::INFO) if !level.contains("sqlx") => filter.with_target("sqlx", LevelFilter::WARN),
        _ => filter,
    };
    // Its failures are logged with the endpoint and the cause, and once a minute.
    let filter = filter.with_target("opentelemetry", LevelFilter::OFF);
    let (layer, exporter) = traces.map(observe::layer::<tracing_subscriber::Registry>).transpose()?.unzip();
    let log = tracing_subscriber::fmt::layer();
    let log: Box<dyn Layer<_> + Send + Sync> = match format {
        // Log lines have no colours, so every escape sequence in them comes from outside and is made visible.
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
        tracing::error!(%backtrace, "internal error in promptshelf: {panicked}");
    }));
    Ok(exporter)
}

/// Parses levels. A single word that is none would otherwise be the name of a part, and switch off the log of all others.
fn filter(level: &str) -> Option<Targets> {
    let is_known = |part: &str| part.contains('=') || part.trim().parse::<LevelFilter>().is_ok();
    level.split(',').all(is_known).then(|| level.parse().ok())?
}

/// stderr without errors: a client that closes its end must not stop the server.
struct Stderr {
    visible: bool,
}

impl<'w> MakeWriter<'w> for Stderr {
    type Writer = Stderr;

    fn make_writer(&'w self) -> Stderr {
        Stderr { ..*self }
    }
}

impl Write for Stderr {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.visible {
            io::stderr().write_all(indented(bytes).as_bytes()).ok()
        } else {
            io::stderr().write_all(bytes).ok()
        };
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush().ok();
        Ok(())
    }
}

/// Indents further lines of an entry of the log, which is written as a whole: text of others cannot look like another entry.
fn indented(entry: &[u8]) -> String {
    let entry = String::from_utf8_lossy(entry);
    let entry = entry.strip_suffix('\n').unwrap_or(&entry);
    visible(entry).replace('\n', "\n    ") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_others_cannot_forge_an_entry() {
        for end in ["\n", "\r", "\r\n", "\u{85}", "\u{2028}", "\u{b}", "\u{c}", "\u{1b}[1G", "\u{9b}1G"] {
            let entry =
                format!("2026-01-01T00:00:00Z  WARN the prompt `x{end}2026-01-01T00:00:00Z ERROR all is lost`\n");
            let shown = indented(entry.as_bytes());
            assert!(!shown.contains(|c: char| c != '\n' && c.is_control() || c == '\u{2028}'), "{shown:?}");
            assert!(shown.ends_with('\n') && shown.lines().skip(1).all(|line| line.starts_with("    ")), "{shown:?}");
        }
        assert_eq!(indented("größer\n".as_bytes()), "größer\n");
    }

    // req: S-584
    #[test]
    fn mistyped_level_does_not_switch_the_log_off() {
        for level in ["off", "error", "INFO", "trace", "info,promptshelf_source=debug", "warn,sqlx=off", "a=debug"] {
            assert!(filter(level).is_some(), "{level}");
        }
        for level in ["inof", "debugg", "info,warm", "promptshelf", "foo=bar=baz", "a=inof"] {
            assert!(filter(level).is_none(), "{level}");
        }
    }
}

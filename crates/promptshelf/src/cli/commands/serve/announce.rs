//! What the server says on stderr when it is ready: once, for a person, with
//! what to paste into a client; or as a log line for a program.

use std::{fmt::Write as _, io::Write as _, net::SocketAddr, path::Path};

use anstyle::Style;
use promptshelf_server::Library;

use crate::{
    args::LogFormat,
    output::{Output, count, count_findings},
    settings::HttpSettings,
};

/// What clients call the server when the library does not say.
const DEFAULT_NAME: &str = "promptshelf";

pub(super) struct Announcement<'a> {
    pub(super) library: &'a Library,
    pub(super) folder: &'a Path,
    pub(super) log_format: LogFormat,
}

impl Announcement<'_> {
    pub(super) fn on_stdio(&self, terminal: bool) {
        let mut block = format!("  serving on stdio: {}\n", self.holds());
        if terminal {
            block += "  This is for clients; a person may want `promptshelf serve --http 127.0.0.1:8080`.\n";
        }
        self.say("serving on stdio", &block);
    }

    pub(super) fn over_http(&self, bound: SocketAddr, http: &HttpSettings) {
        let url = url(bound, http);
        let name = self.name();
        let listening = format!("listening on {url}");
        let mut block = format!("  {}\n  {listening}\n\n", self.holds());
        let page = url.trim_end_matches("mcp");
        // Writing into a string cannot fail.
        let _ = write!(
            block,
            "  in a browser:   {page}\n  \
               Claude Code:    claude mcp add --transport http {name} {url}\n  \
               VS Code:        code --add-mcp '{{\"name\":\"{name}\",\"type\":\"http\",\"url\":\"{url}\"}}'\n  \
               other clients:  {{\"mcpServers\":{{\"{name}\":{{\"type\":\"http\",\"url\":\"{url}\"}}}}}}\n"
        );
        self.say(&listening, &block);
        if bound.ip().is_unspecified() && http.hosts().is_empty() {
            tracing::warn!(
                "only requests to localhost are answered: name the host under which clients reach this server with --allow-host"
            );
        }
    }

    fn say(&self, line: &str, block: &str) {
        match self.log_format {
            LogFormat::Json => tracing::info!(holds = self.holds(), "{line}"),
            LogFormat::Text => {
                let mut paper = Output::stderr();
                let title = paper.styled(Style::new().bold(), concat!("promptshelf ", env!("CARGO_PKG_VERSION")));
                let folder = paper.line(&self.folder.display().to_string()).into_owned();
                // Nobody may be reading; that is no reason not to serve.
                write!(paper.out, "{title} serves {folder}\n{block}").ok();
                paper.out.flush().ok();
            }
        }
    }

    /// What the library holds and what is wrong with it, in one line.
    fn holds(&self) -> String {
        let catalog = self.library.catalog();
        let resources = catalog.resources().len() + catalog.templates().len();
        let diagnostics = self.library.diagnostics();
        let errors = diagnostics.iter().filter(|diagnostic| diagnostic.is_error()).count();
        format!(
            "{}, {}, {}",
            count(catalog.prompts().len(), "prompt"),
            count(resources, "resource"),
            count_findings(errors, diagnostics.len() - errors)
        )
    }

    /// The library's own name, as far as it can stand in a command line.
    fn name(&self) -> String {
        let catalog = self.library.catalog();
        let named = catalog.about().name.as_deref().unwrap_or_default();
        let kept: String = named.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_')).collect();
        let kept = kept.trim_start_matches('-');
        if kept.is_empty() { DEFAULT_NAME.to_owned() } else { kept.to_owned() }
    }
}

/// Where clients reach the server. "Everywhere" is no address to connect to.
fn url(bound: SocketAddr, http: &HttpSettings) -> String {
    let scheme = if http.tls.is_some() { "https" } else { "http" };
    if !bound.ip().is_unspecified() {
        return format!("{scheme}://{bound}/mcp");
    }
    let host = http.hosts().into_iter().next().unwrap_or_else(|| "localhost".to_owned());
    format!("{scheme}://{host}:{}/mcp", bound.port())
}

//! The announcement on stderr when the server is ready: a block with commands for clients, or a log line as JSON.

use std::{fmt::Write as _, io::Write as _, net::SocketAddr, path::Path};

use anstyle::Style;
use promptshelf_server::Library;

use crate::{
    args::LogFormat,
    command_line, launcher,
    output::{Output, count, count_all},
    settings::Live,
};

/// The name for clients if the library has none.
const DEFAULT_NAME: &str = "promptshelf";

pub(super) struct Announcement<'a> {
    pub(super) library: &'a Library,
    /// The library's place, without a password.
    pub(super) place: String,
    pub(super) channels: Vec<String>,
    pub(super) log_format: LogFormat,
}

#[derive(Clone, Copy)]
enum SignInHint {
    /// Sign-in is not configured.
    None,
    Token,
    Browser,
}

impl SignInHint {
    fn of(http: &Live) -> SignInHint {
        match &http.sign_in {
            None => SignInHint::None,
            Some(sign_in) if sign_in.issuer.is_some() => SignInHint::Browser,
            Some(_) => SignInHint::Token,
        }
    }
}

impl Announcement<'_> {
    pub(super) fn on_stdio(&self, terminal: bool) {
        let mut block = format!("  serving on stdio: {}\n", self.summary());
        if terminal {
            // Writing into a string cannot fail.
            let _ = writeln!(
                block,
                "  MCP clients start this mode. To use it in a browser: {} serve --open {}",
                launcher::command(),
                command_line::path(Path::new(&self.place))
            );
        }
        self.print("serving on stdio", &block);
    }

    /// Returns the URL of the page.
    pub(super) fn over_http(&self, bound: SocketAddr, http: &Live) -> String {
        let url = url(bound, http);
        let name = self.name();
        let listening = format!("listening on {url}");
        let mut block = format!("  {}\n  {listening}\n\n", self.summary());
        // Clients use the public URL of the endpoint. With several channels `resource` is the origin instead.
        let public = http.sign_in.as_ref().and_then(|sign_in| sign_in.resource.clone());
        let url = public.filter(|public| public.ends_with("/mcp")).unwrap_or(url);
        let page = url.trim_end_matches("mcp");
        let header = SignInHint::of(http);
        let (flag, vs_code, json) = match header {
            SignInHint::Token => (
                " --header \"Authorization: Bearer $PROMPTSHELF_TOKEN\"",
                ",\"headers\":{\"Authorization\":\"Bearer ${env:PROMPTSHELF_TOKEN}\"}",
                ",\"headers\":{\"Authorization\":\"Bearer ${PROMPTSHELF_TOKEN}\"}",
            ),
            SignInHint::None | SignInHint::Browser => ("", "", ""),
        };
        // Writing into a string cannot fail.
        let _ = write!(
            block,
            "  in a browser:   {page}\n  \
               Claude Code:    claude mcp add --transport http {name} {url}{flag}\n  \
               VS Code:        code --add-mcp '{{\"name\":\"{name}\",\"type\":\"http\",\"url\":\"{url}\"{vs_code}}}'\n  \
               other clients:  {{\"mcpServers\":{{\"{name}\":{{\"type\":\"http\",\"url\":\"{url}\"{json}}}}}}}\n"
        );
        match header {
            SignInHint::None => {}
            SignInHint::Token => block.push_str(
                "  sign-in:        set PROMPTSHELF_TOKEN to a token of `promptshelf token new`, or write it in its place\n",
            ),
            SignInHint::Browser => {
                let _ = writeln!(
                    block,
                    "  sign-in:        clients open it in a browser (Claude Code: /mcp); in a terminal: {} sign-in {url}",
                    launcher::command()
                );
            }
        }
        for channel in &self.channels {
            let _ = writeln!(block, "  channel:        {page}channels/{channel}/mcp");
        }
        self.print(&listening, &block);
        if bound.ip().is_unspecified() && http.hosts().is_empty() {
            tracing::warn!(
                "only requests to localhost are accepted: set the host name of this server with --allow-host"
            );
        }
        page.to_owned()
    }

    fn print(&self, line: &str, block: &str) {
        match self.log_format {
            LogFormat::Json => tracing::info!(summary = self.summary(), "{line}"),
            LogFormat::Text => {
                let mut output = Output::stderr();
                let title = output.styled(Style::new().bold(), concat!("promptshelf ", env!("CARGO_PKG_VERSION")));
                let place = output.line(&self.place).into_owned();
                // A closed stderr does not keep the server from starting.
                write!(output.out, "{title} serves {place}\n{block}").ok();
                output.out.flush().ok();
            }
        }
    }

    fn summary(&self) -> String {
        let catalog = self.library.catalog();
        let resources = catalog.resources().len() + catalog.templates().len();
        format!(
            "{}, {}, {}",
            count(catalog.prompts().len(), "prompt"),
            count(resources, "resource"),
            count_all(&self.library.findings())
        )
    }

    /// The library's name, reduced to characters that need no quoting in a shell.
    fn name(&self) -> String {
        let catalog = self.library.catalog();
        let named = catalog.about().name.as_deref().unwrap_or_default();
        let name: String = named.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_')).collect();
        let name = name.trim_start_matches('-');
        if name.is_empty() { DEFAULT_NAME.to_owned() } else { name.to_owned() }
    }
}

/// The URL for clients. An unspecified address such as 0.0.0.0 is replaced by a host name.
fn url(bound: SocketAddr, http: &Live) -> String {
    let scheme = if http.tls.is_some() { "https" } else { "http" };
    if !bound.ip().is_unspecified() {
        return format!("{scheme}://{bound}/mcp");
    }
    let host = http.hosts().into_iter().next().unwrap_or_else(|| "localhost".to_owned());
    format!("{scheme}://{host}:{}/mcp", bound.port())
}

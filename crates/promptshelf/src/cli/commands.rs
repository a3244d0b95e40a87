//! The commands, one file each. Their arguments are defined in `args`.

pub(crate) mod audit;
pub(crate) mod channels;
pub(crate) mod check;
mod consent;
pub(crate) mod diagnostics;
pub(crate) mod explain;
pub(crate) mod export;
pub(crate) mod fmt;
pub(crate) mod get;
pub(crate) mod health;
pub(crate) mod help;
pub(crate) mod import;
mod init_library;
pub(crate) mod install;
pub(crate) mod known_clients;
pub(crate) mod list;
pub(crate) mod markdown;
mod model_api;
pub(crate) mod new;
mod own_library;
mod private_files;
pub(crate) mod render;
pub(crate) mod resources;
pub(crate) mod schema;
pub(crate) mod serve;
pub(crate) mod show;
pub(crate) mod source;
pub(crate) mod suggest;
pub(crate) mod sync;
pub(crate) mod test;
pub(crate) mod token;
pub(crate) mod values;

use std::{
    ffi::OsStr,
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use diagnostics::path_from_here;
use promptshelf_author::LanguageServer;
use promptshelf_client::{ContentBlock, CredentialStore, Endpoint, Message, ResourceBody};
use promptshelf_core::{Diagnostic, Location, Severity};
use sha2::{Digest, Sha256};

use crate::{
    args::{
        CommandLine, CompletionsArguments, LspArguments, ManArguments,
        client::{SignInArguments, SignOutArguments},
    },
    connect::{CredentialFiles, Options, connect, explicit_sign_in, usual_url},
    exit::{Exit, Failure},
    library::granted_roots,
    output::{Output, visible_line},
    source::Source,
    terminal::Progress,
    whole_file,
};

pub(crate) fn run(arguments: &LspArguments) -> Result<(), Failure> {
    let mut server = LanguageServer::new().granted_roots(granted_roots(None));
    if let Some(library) = &arguments.library {
        server = server.library(library);
    }
    server.serve_stdio().map_err(|error| Failure::new(Exit::Failed, error.to_string()))
}

/// The longest name of a file without its ending, in bytes; below the limit of every file system.
const MAX_BYTES: usize = 128;

fn check_file_name(name: &str) -> Result<(), String> {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '+' | '@' | '=' | ',');
    if name.len() > MAX_BYTES {
        return Err(format!("the name is longer than {MAX_BYTES} bytes"));
    }
    if let Some(c) = name.chars().find(|c| !is_plain(*c)) {
        return Err(format!("a file name cannot contain {c:?}"));
    }
    if name.starts_with('-') {
        return Err("a name that begins with `-` is an option on a command line".to_owned());
    }
    if name.starts_with('.') || promptshelf_source::check_tree_path(&format!("{name}.md")).is_err() {
        return Err("the name is not a file name on every system".to_owned());
    }
    Ok(())
}

pub(crate) fn completions(arguments: &CompletionsArguments) -> Result<(), Failure> {
    let script = crate::args::complete::script(arguments.shell)?;
    let mut stdout = io::stdout().lock();
    Ok(io::Write::write_all(&mut stdout, &script).and_then(|()| io::Write::flush(&mut stdout))?)
}

pub(crate) fn man(arguments: &ManArguments) -> Result<(), Failure> {
    let folder = &arguments.folder;
    let write = || {
        fs::create_dir_all(folder)?;
        clap_mangen::generate_to(CommandLine::complete(), folder)?;
        for page in fs::read_dir(folder)?.flatten().map(|entry| entry.path()).filter(|path| is_man_page(path)) {
            // What follows the options are examples, each on a line of its own.
            let text = fs::read_to_string(&page)?.replace("\n.SH EXTRA\n", "\n.SH EXAMPLES\n.nf\n");
            fs::write(&page, text)?;
        }
        Ok(())
    };
    write().map_err(|error: io::Error| {
        Failure::new(Exit::Failed, format!("{} cannot be written: {error}", folder.display()))
    })?;
    crate::output::note(&[format!("the pages are in {}", folder.display())]);
    Ok(())
}

fn is_man_page(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.starts_with("promptshelf") && name.ends_with(".1")
}

/// `promptshelf --version --json`: prints the version, the protocol revisions, the platform and the commit of
/// the program; the last one is null for a build from a checkout.
pub(crate) fn version() -> Result<(), Failure> {
    let version = serde_json::json!({
        "name": env!("CARGO_PKG_NAME"),
        "version": env!("CARGO_PKG_VERSION"),
        "protocol": promptshelf_mcp::Revision::ALL.map(promptshelf_mcp::Revision::as_str),
        "os": std::env::consts::OS,
        "arch": std::env::consts::ARCH,
        "target": env!("PROMPTSHELF_TARGET"),
        "commit": option_env!("PROMPTSHELF_COMMIT"),
    });
    let mut stdout = io::stdout().lock();
    Ok(io::Write::write_all(&mut stdout, format!("{version}\n").as_bytes())?)
}

pub(crate) fn to_github(diagnostics: &[Diagnostic], folder: &Path) -> String {
    diagnostics.iter().map(|diagnostic| line(diagnostic, folder)).collect()
}

fn line(diagnostic: &Diagnostic, folder: &Path) -> String {
    let level = match diagnostic.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Hint => "notice",
    };
    let Location { source, .. } = &diagnostic.location;
    let end = diagnostic.location.span().end;
    let (line, column) = diagnostic.location.line_column();
    let (end_line, end_column) = Location::new(source, end..end).line_column();
    let path = escape_property(&path_from_here(folder, &source.path));
    // GitHub rejects columns in an annotation of several lines.
    let columns = if line == end_line { format!(",col={column},endColumn={end_column}") } else { String::new() };
    let message = match &diagnostic.help {
        Some(help) => format!("{}\nhelp: {help}", diagnostic.message),
        None => diagnostic.message.clone(),
    };
    let code = diagnostic.code;
    format!("::{level} file={path},line={line},endLine={end_line}{columns},title={code}::{}\n", escape(&message))
}

fn escape(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn escape_property(value: &str) -> String {
    escape(value).replace(':', "%3A").replace(',', "%2C")
}

pub(crate) async fn sign_in(arguments: &SignInArguments) -> Result<(), Failure> {
    let (source, _) = endpoint(&arguments.target)?;
    let progress = Progress::new(visible_line(&source.to_string()).into_owned());
    let sign_in = explicit_sign_in(arguments.client_id.clone(), arguments.scopes.clone(), &progress);
    let options = Options { sign_in: Some(sign_in), ..Options::new(arguments.timeout(), &progress) };
    let connection = connect(&source, options, &progress).await?;
    let client = &connection.client;
    // Some servers require authentication only for requests after the first one.
    progress.during(client.all_prompts()).await.map_err(|error| connection.failure(error))?;
    let is_stored = client.has_stored_credentials().await;
    if is_stored && !arguments.scopes.is_empty() {
        let requested = progress.during(client.request_scopes(&arguments.scopes)).await;
        requested.map_err(|error| connection.failure(error))?;
    }
    let result = match (client.has_signed_in(), is_stored) {
        (true, _) => "signed in to",
        (false, true) => "already signed in to",
        (false, false) => "no sign-in is required for",
    };
    let mut stdout = Output::stdout();
    let endpoint = stdout.line(&connection.source.to_string()).into_owned();
    writeln!(stdout.out, "{result} {endpoint}")?;
    Ok(stdout.out.flush()?)
}

pub(crate) fn sign_out(arguments: &SignOutArguments) -> Result<(), Failure> {
    let (source, url) = endpoint(&arguments.target)?;
    let mut removed = false;
    // Signing in to a URL without a path signs in to its MCP endpoint.
    for url in [Some(url.clone()), usual_url(&url)].into_iter().flatten() {
        removed |= CredentialFiles.clear(&url).map_err(|error| Failure::new(Exit::Failed, error.to_string()))?;
    }
    let mut stdout = Output::stdout();
    let endpoint = stdout.line(&source.to_string()).into_owned();
    writeln!(stdout.out, "{} {endpoint}", if removed { "signed out of" } else { "not signed in to" })?;
    Ok(stdout.out.flush()?)
}

fn endpoint(word: &str) -> Result<(Source, String), Failure> {
    let source = Source::parse(OsStr::new(word))?;
    let reason = match source.endpoint() {
        Some(endpoint) => match endpoint.sign_in_url().map(str::to_owned) {
            Some(url) => return Ok((source, url)),
            None if matches!(endpoint, Endpoint::Url { .. }) => "it has a configured token, or is not https",
            None => "it is started by a command",
        },
        None => "it is a folder",
    };
    Err(Failure::new(Exit::Usage, format!("cannot sign in to {word}: {reason}")).help("expected the URL of a server"))
}

// Writes images, audio and other binary content to files.
// File names are derived from the content, never from the server's names: no file is outside of the folder, none is
// overwritten, and the same content has the same name.

#[derive(Debug, Default)]
pub(crate) struct Saved(Vec<(usize, PathBuf)>);

impl Saved {
    /// Writes the binary content of all messages to files in a folder, if there is one.
    pub(crate) fn write_all(folder: Option<&Path>, messages: &[Message]) -> Result<Saved, Failure> {
        let Some(folder) = folder else { return Ok(Saved::default()) };
        let failed = |error: io::Error| {
            Failure::new(Exit::Failed, format!("cannot write to the folder {}: {error}", folder.display()))
        };
        fs::create_dir_all(folder).map_err(failed)?;
        let mut saved = Vec::new();
        for (index, message) in messages.iter().enumerate() {
            if let Some((bytes, mime_type)) = binary(&message.content) {
                saved.push((index, write(folder, bytes, mime_type).map_err(failed)?));
            }
        }
        Ok(Saved(saved))
    }

    pub(crate) fn file(&self, index: usize) -> Option<&Path> {
        self.0.iter().find(|(known, _)| *known == index).map(|(_, path)| path.as_path())
    }

    pub(crate) fn notes(&self) -> Vec<String> {
        self.0.iter().map(|(_, path)| format!("written to {}", path.display())).collect()
    }
}

pub(crate) fn binary(content: &ContentBlock) -> Option<(&[u8], &str)> {
    match content {
        ContentBlock::Image(media) | ContentBlock::Audio(media) => Some((&media.data, &media.mime_type)),
        ContentBlock::Resource(resource) => match &resource.contents.body {
            ResourceBody::Blob(bytes) => Some((bytes, &resource.contents.mime_type)),
            ResourceBody::Text(_) => None,
        },
        _ => None,
    }
}

/// Writes bytes to a file that is named after their digest.
fn write(folder: &Path, bytes: &[u8], mime_type: &str) -> io::Result<PathBuf> {
    let digest: String = Sha256::digest(bytes).iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    let path = folder.join(format!("{digest}.{}", extension(mime_type)));
    match whole_file::create(&path, bytes) {
        Ok(()) => Ok(path),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && contains(&path, bytes) => Ok(path),
        Err(error) => Err(error),
    }
}

fn contains(path: &Path, bytes: &[u8]) -> bool {
    fs::read(path).is_ok_and(|existing| existing == bytes)
}

fn extension(mime_type: &str) -> &'static str {
    match mime_type.split(';').next().unwrap_or_default().trim() {
        "image/png" => "png",
        "image/jpeg" => "jpg",
        "image/gif" => "gif",
        "image/webp" => "webp",
        "image/svg+xml" => "svg",
        "audio/wav" | "audio/x-wav" | "audio/wave" | "audio/vnd.wave" => "wav",
        "audio/mpeg" | "audio/mp3" => "mp3",
        "audio/ogg" => "ogg",
        "audio/flac" => "flac",
        "application/pdf" => "pdf",
        "application/json" => "json",
        "application/gzip" => "gz",
        "application/zip" => "zip",
        _ => "bin",
    }
}

#[cfg(test)]
mod tests {
    use promptshelf_core::{Code, SourceText};

    use super::*;

    #[test]
    fn message_cannot_start_another_command() {
        let source = SourceText::new("a,b.md", "one\ntwo\n");
        let found =
            Diagnostic::error(Code::Syntax, Location::new(&source, 4..7), "50%\n::error::x").help("do something else");
        assert_eq!(
            to_github(&[found], Path::new(".")),
            "::error file=a%2Cb.md,line=2,endLine=2,col=1,endColumn=4,title=syntax::50%25%0A::error::x%0Ahelp: do something else\n"
        );
    }
}

#[cfg(test)]
mod saved_tests {
    use super::*;

    #[test]
    fn equal_content_shares_a_name_and_other_content_is_not_overwritten() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let bytes = [1, 2, 3];
        let path = write(folder.path(), &bytes, "image/png; x=../../evil").expect("the folder is writable");
        assert_eq!(path.extension().and_then(|extension| extension.to_str()), Some("png"));
        assert_eq!(write(folder.path(), &bytes, "image/png").expect("the file exists"), path);
        fs::write(&path, "something else").expect("the folder is writable");
        assert!(write(folder.path(), &bytes, "image/png").is_err());
    }
}

//! `promptshelf export`: converts prompts of a library to files of other programs, and makes plugins, bundles and entries
//! of registries.

mod bundle;
mod plugin;
mod server_json;

use std::{
    io::{self, Write},
    path::Path,
    sync::Arc,
};

use promptshelf_author::{ExportFormat, Exported, export};
use promptshelf_core::{
    BodyPiece, Code, ContentBlock, Diagnostic, Location, Message, Prompt, RawArguments, ResourceBody, nearest,
};
use promptshelf_server::Library;
use promptshelf_service::Caller;
use serde_json::json;

use super::{diagnostics::DiagnosticFormat, file_name::check_file_name, import};
use crate::{
    args::exchange::{ExportArguments, ExportTarget},
    connect::{Options, connect_library},
    exit::{Exit, Failure},
    output::{Output, count, file_json},
};

pub(crate) async fn run(arguments: &ExportArguments) -> Result<(), Failure> {
    let folder = arguments.library.folder();
    let library = crate::library::open(folder)?;
    if let Some(target) = arguments.plugin {
        let [to] = arguments.names.as_slice() else {
            let message =
                "expected the folder to write to, such as `promptshelf export --plugin claude-code marketplace`";
            return Err(Failure::new(Exit::Usage, message));
        };
        let catalog = library.catalog();
        let made = plugin::plugin(target, &catalog, folder)?;
        return write(Some(Path::new(to)), &made.files, &made.skills, folder, &library);
    }
    if let Some(to) = &arguments.bundle.mcpb {
        bundle::write(to, arguments.bundle.program.as_deref(), library.catalog().about(), folder)?;
        return written(to, folder, &library);
    }
    if let Some(to) = &arguments.registry.server_json {
        let text = server_json::text(&arguments.registry, library.catalog().about(), folder)?;
        import::write(to, text.as_bytes())
            .map_err(|error| Failure::new(Exit::Failed, format!("{} {}", to.display(), reason(&error))))?;
        return written(to, folder, &library);
    }
    // clap requires one of both.
    let format = arguments.format.unwrap_or(ExportTarget::Messages);
    let values = arguments.values.read(io::stdin().lock())?;
    let catalog = library.catalog();
    let mut prompts: Vec<Arc<Prompt>> = Vec::new();
    for name in &arguments.names {
        let Some(prompt) = catalog.find(name) else {
            let near = nearest(name, catalog.prompts().iter().map(|prompt| prompt.name().as_str()));
            let failure = Failure::new(Exit::NotFound, format!("unknown prompt `{name}`"));
            return Err(match near {
                Some(near) => failure.help(format!("did you mean `{near}`?")),
                None => failure,
            });
        };
        prompts.push(Arc::clone(prompt));
    }
    if arguments.names.is_empty() {
        prompts = catalog.prompts().iter().cloned().collect();
    }
    if arguments.to.is_none() && prompts.len() != 1 {
        let message = format!("{} cannot be written to stdout together", count(prompts.len(), "prompt"));
        return Err(Failure::new(Exit::Usage, message).help("name one prompt, or a folder with --to"));
    }
    let mut files = Vec::with_capacity(prompts.len());
    for prompt in &prompts {
        let name = prompt.name().as_str();
        if arguments.to.is_some() {
            check_file_name(name).map_err(|reason| {
                Failure::new(Exit::Failed, format!("the prompt `{name}` cannot be a file: {reason}"))
            })?;
        }
        let raw_arguments = RawArguments::from(&values);
        let rendered = match format {
            ExportTarget::Messages => {
                let result = connect_library(&library, &Options::plain()).await?.get(name, &values).await;
                let result = match result {
                    Ok(result) => result.raw,
                    Err(error) => {
                        // The rejection of the service is more precise than its error in the protocol.
                        library.service().get(&Caller::local(), name, &raw_arguments).await?;
                        return Err(error.into());
                    }
                };
                let text = format!("{}\n", file_json(&json!({ "name": name, "messages": result["messages"] })));
                files.push(Exported { path: format!("{name}.json"), text, losses: Vec::new() });
                continue;
            }
            _ if values.is_empty() => None,
            _ => Some(library.service().get(&Caller::local(), name, &raw_arguments).await?.into_value().messages),
        };
        let mut losses = Vec::new();
        let rendered = rendered.map(|messages| body(prompt, &messages, &mut losses));
        let mut exported = export(prompt, export_format(format), rendered);
        exported.losses.append(&mut losses);
        files.push(exported);
    }
    write(arguments.to.as_deref(), &files, &[], folder, &library)
}

/// Prints the path of a single file that was written.
fn written(to: &Path, folder: &Path, library: &Library) -> Result<(), Failure> {
    crate::library::note_errors(library, folder);
    let mut stdout = Output::stdout();
    let shown = stdout.line(&to.display().to_string()).into_owned();
    writeln!(stdout.out, "{shown}")?;
    Ok(stdout.out.flush()?)
}

fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AlreadyExists => "already exists and was not changed".to_owned(),
        _ => format!("cannot be written: {error}"),
    }
}

fn export_format(target: ExportTarget) -> ExportFormat {
    match target {
        ExportTarget::Claude => ExportFormat::Claude,
        ExportTarget::Gemini => ExportFormat::Gemini,
        ExportTarget::Skill | ExportTarget::Messages => ExportFormat::Skill,
        ExportTarget::Vscode => ExportFormat::Vscode,
        ExportTarget::Cursor => ExportFormat::Cursor,
        ExportTarget::Opencode => ExportFormat::Opencode,
        ExportTarget::Windsurf => ExportFormat::Windsurf,
    }
}

/// Converts rendered messages to the parts of a body. Blocks without text are reported as losses.
fn body(prompt: &Prompt, messages: &[Message], losses: &mut Vec<Diagnostic>) -> Vec<BodyPiece> {
    let mut body = Vec::new();
    for message in messages {
        body.push(BodyPiece::Role(message.role));
        match &message.content {
            ContentBlock::Text(text) => body.push(BodyPiece::Text(text.text.clone())),
            ContentBlock::Resource(resource) => match &resource.contents.body {
                ResourceBody::Text(text) => body.push(BodyPiece::Text(text.to_string())),
                ResourceBody::Blob(_) => report_loss(prompt, &message.content, losses),
            },
            ContentBlock::Link(link) => body.push(BodyPiece::Text(link.uri.to_string())),
            other => report_loss(prompt, other, losses),
        }
    }
    body
}

fn report_loss(prompt: &Prompt, content: &ContentBlock, losses: &mut Vec<Diagnostic>) {
    let message = format!("content of the kind `{}` is left out", content.kind());
    losses.push(Diagnostic::warning(Code::NotSupported, Location::file(prompt.source()), message));
}

fn write(
    to: Option<&Path>,
    files: &[Exported],
    others: &[(String, ResourceBody)],
    folder: &Path,
    library: &Library,
) -> Result<(), Failure> {
    let mut stderr = Output::stderr();
    let format = DiagnosticFormat { folder, colours: stderr.colours, width: stderr.width };
    for loss in files.iter().flat_map(|file| &file.losses) {
        writeln!(stderr.out, "{}\n", format.format(loss))?;
    }
    crate::library::note_errors(library, folder);
    let mut stdout = Output::stdout();
    let Some(to) = to else {
        for file in files {
            let text = stdout.text(&file.text).into_owned();
            stdout.out.write_all(text.as_bytes())?;
        }
        return Ok(stdout.out.flush()?);
    };
    let mut failed = false;
    let texts = files.iter().map(|file| (&file.path, file.text.as_bytes()));
    let bodies = others.iter().map(|(path, body)| match body {
        ResourceBody::Text(text) => (path, text.as_bytes()),
        ResourceBody::Blob(blob) => (path, blob.bytes()),
    });
    for (path, bytes) in texts.chain(bodies) {
        let path = to.join(path);
        let shown = stdout.line(&path.display().to_string()).into_owned();
        match import::write(&path, bytes) {
            Ok(()) => writeln!(stdout.out, "{shown}")?,
            Err(error) => {
                failed = true;
                writeln!(stderr.out, "warning: {shown} {}", reason(&error))?;
            }
        }
    }
    stdout.out.flush()?;
    if failed { Err(Failure::reported(Exit::Failed)) } else { Ok(()) }
}

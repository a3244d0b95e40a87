//! `promptshelf render`: a prompt as a person reads it, with what each part costs.

mod picture;
mod tokens;

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use anstyle::{AnsiColor, Style};
use promptshelf_author::add_samples;
use promptshelf_core::{ContentBlock, Message, Prompt, RawArguments, ResourceBody, Role, Variables};
use promptshelf_server::Library;
use promptshelf_service::Caller;

use self::tokens::{TOKENIZER, tokens};
use super::diagnostics::Drawing;
use crate::{
    args::author::RenderArguments,
    exit::{Exit, Failure},
    output::{Output, count},
};

pub(crate) async fn run(arguments: &RenderArguments) -> Result<(), Failure> {
    let place = Place::of(&arguments.file, arguments.library.given())?;
    let library = crate::library::open(&place.folder)?;
    let values = arguments.values.read(io::stdin().lock())?;
    if !arguments.watch {
        return once(&library, &place, &values).await;
    }
    let mut reports = library.loader().reports();
    let _following = library.loader().spawn();
    loop {
        let mut paper = Output::stdout();
        if paper.terminal {
            // Clears the screen, what has scrolled away included.
            write!(paper.out, "\u{1b}[3J\u{1b}[2J\u{1b}[H")?;
        }
        drop(paper);
        if let Err(failure) = once(&library, &place, &values).await {
            crate::output::report_failure(&failure);
        }
        if Output::stdout().terminal {
            let mut paper = Output::stderr();
            let hint = paper.quiet("Waiting for changes; Ctrl-C ends this.");
            writeln!(paper.out, "\n{hint}").ok();
        }
        // A load that found nothing new is no reason to draw everything again.
        let before = (library.catalog().generation(), library.diagnostics());
        while (library.catalog().generation(), library.diagnostics()) == before {
            if reports.changed().await.is_err() {
                return Ok(());
            }
        }
    }
}

/// Where a prompt is looked for.
struct Place {
    folder: PathBuf,
    prompt: Wanted,
}

enum Wanted {
    /// The file's path in the library.
    File(String),
    Name(String),
}

impl Place {
    /// The library around a file is the nearest folder with a manifest; without
    /// any, the file's own folder. What is no file is a prompt's name.
    fn of(file: &str, library: Option<&Path>) -> Result<Place, Failure> {
        let wrong = |error: io::Error| Failure::new(Exit::Library, format!("{file} cannot be found: {error}"));
        if !Path::new(file).is_file() {
            let folder = library.unwrap_or(Path::new(".")).to_owned();
            return Ok(Place { folder, prompt: Wanted::Name(file.to_owned()) });
        }
        let whole = fs::canonicalize(file).map_err(wrong)?;
        let own = whole.parent().unwrap_or(&whole);
        let folder = match library {
            Some(library) => fs::canonicalize(library).map_err(wrong)?,
            None => {
                let has_manifest = |folder: &&Path| folder.join("promptshelf.toml").is_file();
                own.ancestors().find(has_manifest).unwrap_or(own).to_owned()
            }
        };
        let inside = whole
            .strip_prefix(&folder)
            .map_err(|_| Failure::new(Exit::Usage, format!("{file} is not in the library {}", folder.display())))?;
        let parts: Vec<_> = inside.iter().map(|part| part.to_string_lossy()).collect();
        Ok(Place { prompt: Wanted::File(parts.join("/")), folder })
    }

    fn find(&self, library: &Library) -> Result<Arc<Prompt>, Failure> {
        let catalog = library.catalog();
        match &self.prompt {
            Wanted::Name(name) => catalog.find(name).cloned().ok_or_else(|| {
                let unknown = promptshelf_service::Rejection::UnknownPrompt { name: name.clone() };
                crate::library::rejected(unknown, library, &self.folder, name)
            }),
            Wanted::File(path) => {
                let prompt = catalog.prompts().iter().find(|prompt| prompt.source().path == *path).cloned();
                prompt.ok_or_else(|| Failure::new(Exit::NotFound, format!("{path} defines no prompt that can be used")))
            }
        }
    }

    fn is_of(&self, path: &str) -> bool {
        matches!(&self.prompt, Wanted::File(own) if own == path)
    }
}

async fn once(library: &Library, place: &Place, values: &Variables) -> Result<(), Failure> {
    let mut paper = Output::stdout();
    let drawing = Drawing { folder: &place.folder, colours: paper.colours, width: paper.width };
    for diagnostic in library.diagnostics().iter().filter(|found| place.is_of(&found.location.source.path)) {
        writeln!(paper.out, "{}\n", drawing.draw(diagnostic))?;
    }
    let prompt = place.find(library)?;
    if library.diagnostics().iter().any(|found| found.is_error() && place.is_of(&found.location.source.path)) {
        let note = paper.quiet("This is how it was before:");
        writeln!(paper.out, "{note}\n")?;
    }
    let mut values = values.clone();
    let filled = add_samples(&prompt, &mut values);
    let name = prompt.name().as_str();
    let answer = library.service().get(&Caller::local(), name, &RawArguments::from(&values)).await;
    let answer = answer.map_err(|rejection| crate::library::rejected(rejection, library, &place.folder, name))?;
    messages(&mut paper, &answer.value().messages)?;
    if !filled.is_empty() {
        let shown: Vec<String> = filled.iter().map(|name| format!("`{name}`")).collect();
        let note = format!("{} filled in with a sample; --arg NAME=VALUE says otherwise", shown.join(", "));
        let note = paper.quiet(&note);
        writeln!(paper.out, "{note}")?;
    }
    Ok(paper.out.flush()?)
}

/// Each message under a line that says who speaks, what it is and how much.
fn messages<W: Write>(paper: &mut Output<W>, messages: &[Message]) -> io::Result<()> {
    let (mut bytes, mut all) = (0, 0);
    for message in messages {
        let content = &message.content;
        let text = match content {
            ContentBlock::Text(text) => Some(&*text.text),
            ContentBlock::Resource(resource) => match &resource.contents.body {
                ResourceBody::Text(text) => Some(&**text),
                ResourceBody::Blob(_) => None,
            },
            _ => None,
        };
        bytes += content.size();
        let tokens = text.map(tokens);
        all += tokens.unwrap_or_default();
        heading(paper, message, tokens)?;
        match (text, content) {
            (Some(text), _) => {
                let text = paper.text(text).into_owned();
                writeln!(paper.out, "{}\n", text.trim_end_matches('\n'))?;
            }
            (None, ContentBlock::Image(image)) => {
                let picture = paper.terminal.then(|| picture::drawn(image)).flatten();
                writeln!(paper.out, "{}", picture.unwrap_or_default())?;
            }
            _ => writeln!(paper.out)?,
        }
    }
    let total = format!(
        "{}, {}, about {} (estimate: {TOKENIZER})",
        count(messages.len(), "message"),
        size(bytes),
        count(all, "token")
    );
    let total = paper.styled(Style::new().bold(), &total);
    writeln!(paper.out, "{total}")
}

fn heading<W: Write>(paper: &mut Output<W>, message: &Message, tokens: Option<usize>) -> io::Result<()> {
    const USER: Style = AnsiColor::Cyan.on_default().bold();
    const ASSISTANT: Style = AnsiColor::Magenta.on_default().bold();
    let style = if message.role == Role::User { USER } else { ASSISTANT };
    let content = &message.content;
    let what = match content {
        ContentBlock::Text(_) => String::new(),
        ContentBlock::Image(media) | ContentBlock::Audio(media) => format!(" {}", media.mime_type.as_str()),
        ContentBlock::Resource(resource) => {
            format!(" {} {}", resource.contents.uri, resource.contents.mime_type.as_str())
        }
        ContentBlock::Link(link) => format!(" {} {}", link.name, link.uri),
    };
    let tokens = tokens.map_or_else(String::new, |tokens| format!(", about {}", count(tokens, "token")));
    let details = format!("{}{what}, {}{tokens}", content.kind(), size(content.size()));
    let details = paper.line(&details).into_owned();
    let (role, details) = (paper.styled(style, message.role.as_str()), paper.quiet(&details));
    writeln!(paper.out, "── {role} · {details}")
}

/// Bytes as people count them.
#[expect(clippy::cast_precision_loss, reason = "one decimal is shown")]
fn size(bytes: usize) -> String {
    match bytes {
        0..1_000 => count(bytes, "byte"),
        1_000..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_message_says_what_it_costs() {
        let mut paper = Output { out: Vec::new(), terminal: false, colours: false, width: 80 };
        messages(&mut paper, &[Message::user("Hello, Ada!\n"), Message::assistant("Hi.")]).expect("memory takes it");
        let shown = String::from_utf8(paper.out).expect("it is text");
        assert!(shown.starts_with("── user · text, 12 bytes, about "), "{shown}");
        assert!(shown.contains("\nHello, Ada!\n\n── assistant · text, 3 bytes"), "{shown}");
        assert!(shown.contains("2 messages, 15 bytes, about "), "{shown}");
    }

    #[test]
    fn sizes_are_counted_as_people_do() {
        assert_eq!([1, 999, 1_500, 2_340_000].map(size), ["1 byte", "999 bytes", "1.5 kB", "2.3 MB"]);
    }
}

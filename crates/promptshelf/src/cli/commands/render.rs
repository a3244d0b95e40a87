//! `promptshelf render`: shows a prompt in readable form, with the size and tokens of each message.

use std::{
    env,
    io::{self, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use anstyle::{AnsiColor, Style};
use clap::Args;
use promptshelf_author::add_samples;
use promptshelf_core::{
    Catalog, ContentBlock, Diagnostic, Location, Media, Message, Prompt, RawArguments, ResourceBody, Role, Variables,
};
use promptshelf_server::Library;
use promptshelf_service::{Caller, Rejection};
use serde_json::{Value, json};

use super::diagnostics::DiagnosticFormat;
use crate::{
    args::{LibraryOption, Words, words::FileAndValues},
    command_line,
    exit::{Exit, Failure},
    library::library_of,
    output::{Output, count, list_json, pretty_json},
    source::HERE,
};

const RENDER_EXAMPLES: &str = "\
Examples:
  promptshelf render prompts/code_review.md code=@src/main.rs
  promptshelf render prompts code_review code=x --watch";

#[derive(Debug, Args)]
#[command(after_help = RENDER_EXAMPLES)]
pub(crate) struct RenderArguments {
    #[command(flatten)]
    pub(crate) words: Words<LibraryOption, FileAndValues>,

    /// Render again whenever the library changes, until interrupted
    #[arg(long)]
    pub(crate) watch: bool,

    /// Print JSON
    #[arg(long, conflicts_with = "watch")]
    pub(crate) json: bool,
}

pub(crate) async fn run(arguments: &RenderArguments) -> Result<(), Failure> {
    let target = Target::of(arguments.words.name(), arguments.words.library.explicit_folder())?;
    let library = crate::library::open(&target.folder)?;
    let values = arguments.words.values.read(io::stdin().lock())?;
    if let Some(prompt) = target.found(&library.catalog()) {
        arguments.words.values.check_names_of(&[prompt])?;
    }
    if !arguments.watch {
        return render_once(&library, &target, &values, arguments.json).await;
    }
    let mut reports = library.loader().reports();
    let _following = library.loader().spawn();
    loop {
        let mut output = Output::stdout();
        if output.terminal {
            // Clears the screen and the scrollback.
            write!(output.out, "\u{1b}[3J\u{1b}[2J\u{1b}[H")?;
        }
        drop(output);
        if let Err(failure) = render_once(&library, &target, &values, false).await {
            crate::output::report_failure(&failure);
        }
        if Output::stdout().terminal {
            let mut output = Output::stderr();
            let hint = output.dimmed("Watching for changes; press Ctrl-C to stop.");
            writeln!(output.out, "\n{hint}").ok();
        }
        // A reload without changes does not render again.
        let before = (library.catalog().serial(), library.diagnostics());
        while (library.catalog().serial(), library.diagnostics()) == before {
            if reports.changed().await.is_err() {
                return Ok(());
            }
        }
    }
}

struct Target {
    folder: PathBuf,
    prompt: Selector,
}

enum Selector {
    File(String),
    Name(String),
}

impl Target {
    /// Resolves the argument of the command. An argument that names no existing file is the name of a prompt.
    fn of(file: &str, library: Option<&Path>) -> Result<Target, Failure> {
        let is_file = Path::new(file)
            .try_exists()
            .map_err(|error| Failure::new(Exit::Library, format!("{file} cannot be read: {error}")))?;
        if !is_file || !Path::new(file).is_file() {
            let folder = library.unwrap_or(Path::new(HERE)).to_owned();
            return Ok(Target { folder, prompt: Selector::Name(file.to_owned()) });
        }
        let (folder, path) = library_of(Path::new(file), library)?;
        Ok(Target { folder, prompt: Selector::File(path) })
    }

    fn found(&self, catalog: &Catalog) -> Option<Arc<Prompt>> {
        match &self.prompt {
            Selector::Name(name) => catalog.find(name).cloned(),
            Selector::File(path) => catalog.prompts().iter().find(|prompt| prompt.source().path == *path).cloned(),
        }
    }

    fn find(&self, library: &Library) -> Result<Arc<Prompt>, Failure> {
        let found = self.found(&library.catalog());
        match &self.prompt {
            Selector::Name(name) => found.ok_or_else(|| {
                let rejection = Rejection::UnknownPrompt { name: name.clone() };
                crate::library::rejected(rejection, library, &self.folder, name)
            }),
            Selector::File(path) => found.ok_or_else(|| {
                let is_here = |place: &Location| place.source.path == *path;
                let is_included = |found: &&Diagnostic| {
                    !is_here(&found.location) && found.related.iter().any(|(place, _)| is_here(place))
                };
                if let Some(error) = library.diagnostics().iter().filter(|it| it.is_error()).find(is_included) {
                    let (place, mistake) = (&error.location, &error.message);
                    return Failure::new(
                        Exit::NotFound,
                        format!("{path} includes a file with an error: {place}: {mistake}"),
                    );
                }
                let folder = command_line::path(&self.folder);
                Failure::new(Exit::NotFound, format!("{path} does not define a valid prompt"))
                    .help(format!("the library is taken to be {folder}; name another one before the file"))
            }),
        }
    }

    fn is_defined_in(&self, path: &str) -> bool {
        matches!(&self.prompt, Selector::File(own) if own == path)
    }
}

async fn render_once(library: &Library, target: &Target, values: &Variables, json: bool) -> Result<(), Failure> {
    let mut output = Output::stdout();
    let (colours, width, is_broken) = (output.colours, output.width, output.terminal);
    let format = DiagnosticFormat { folder: &target.folder, colours, width, is_broken };
    for diagnostic in library.diagnostics().iter().filter(|found| target.is_defined_in(&found.location.source.path)) {
        writeln!(output.out, "{}\n", format.format(diagnostic))?;
    }
    let prompt = target.find(library)?;
    if library.diagnostics().iter().any(|found| found.is_error() && target.is_defined_in(&found.location.source.path)) {
        let note = output.dimmed("The last valid version:");
        writeln!(output.out, "{note}\n")?;
    }
    let mut values = values.clone();
    let filled = add_samples(&prompt, &mut values);
    let name = prompt.name().as_str();
    let answer = library.service().get(&Caller::local(), name, &RawArguments::from(&values)).await;
    let answer = answer.map_err(|rejection| crate::library::rejected(rejection, library, &target.folder, name))?;
    let messages = &answer.value().messages;
    if json {
        writeln!(output.out, "{}", pretty_json(&to_json(name, messages, &filled)))?;
        return Ok(output.out.flush()?);
    }
    print_messages(&mut output, messages)?;
    if !filled.is_empty() {
        let shown: Vec<String> = filled.iter().map(|name| format!("`{name}`")).collect();
        let note = format!("{} filled in with a sample; NAME=VALUE sets another value", shown.join(", "));
        let note = output.dimmed(&note);
        writeln!(output.out, "{note}")?;
    }
    Ok(output.out.flush()?)
}

/// Returns the text of a message, if it has one.
fn text_of(content: &ContentBlock) -> Option<&str> {
    match content {
        ContentBlock::Text(text) => Some(&*text.text),
        ContentBlock::Resource(resource) => match &resource.contents.body {
            ResourceBody::Text(text) => Some(&**text),
            ResourceBody::Blob(_) => None,
        },
        _ => None,
    }
}

fn to_json(prompt: &str, messages: &[Message], samples: &[String]) -> Value {
    let items = messages.iter().map(|message| {
        let (content, text) = (&message.content, text_of(&message.content));
        json!({
            "role": message.role.as_str(),
            "type": content.kind(),
            "bytes": content.size(),
            "tokens": text.map(estimate_tokens),
            "text": text,
        })
    });
    let mut list = list_json(items);
    list["prompt"] = json!(prompt);
    list["samples"] = json!(samples);
    list
}

fn print_messages<W: Write>(output: &mut Output<W>, messages: &[Message]) -> io::Result<()> {
    let (mut total_bytes, mut total_tokens) = (0, 0);
    for message in messages {
        let content = &message.content;
        let text = text_of(content);
        total_bytes += content.size();
        let tokens = text.map(estimate_tokens);
        total_tokens += tokens.unwrap_or_default();
        print_heading(output, message, tokens)?;
        match (text, content) {
            (Some(text), _) => {
                let text = output.text(text).into_owned();
                writeln!(output.out, "{}\n", text.trim_end_matches('\n'))?;
            }
            (None, ContentBlock::Image(image)) => {
                let sequence = output.terminal.then(|| inline_image(image)).flatten();
                writeln!(output.out, "{}", sequence.unwrap_or_default())?;
            }
            _ => writeln!(output.out)?,
        }
    }
    let total = format!(
        "{}, {}, about {} (estimate: {ACCURACY})",
        count(messages.len(), "message"),
        size(total_bytes),
        count(total_tokens, "token")
    );
    let total = output.styled(Style::new().bold(), &total);
    writeln!(output.out, "{total}")
}

fn print_heading<W: Write>(output: &mut Output<W>, message: &Message, tokens: Option<usize>) -> io::Result<()> {
    const USER: Style = AnsiColor::Cyan.on_default().bold();
    const ASSISTANT: Style = AnsiColor::Magenta.on_default().bold();
    let style = if message.role == Role::User { USER } else { ASSISTANT };
    let content = &message.content;
    let name = match content {
        ContentBlock::Text(_) => String::new(),
        ContentBlock::Image(media) | ContentBlock::Audio(media) => format!(" {}", media.mime_type.as_str()),
        ContentBlock::Resource(resource) => {
            format!(" {} {}", resource.contents.uri, resource.contents.mime_type.as_str())
        }
        ContentBlock::Link(link) => format!(" {} {}", link.name, link.uri),
    };
    let tokens = tokens.map_or_else(String::new, |tokens| format!(", about {}", count(tokens, "token")));
    let details = format!("{}{name}, {}{tokens}", content.kind(), size(content.size()));
    let details = output.line(&details).into_owned();
    let (role, details) = (output.styled(style, message.role.as_str()), output.dimmed(&details));
    writeln!(output.out, "── {role} · {details}")
}

/// Formats a number of bytes.
#[expect(clippy::cast_precision_loss, reason = "one decimal is shown")]
fn size(bytes: usize) -> String {
    match bytes {
        0..1_000 => count(bytes, "byte"),
        1_000..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

// An estimate of the number of tokens in a text.
// No tokenizer is built in: each model has its own, and their tables are larger than this program. A preview only
// has to show whether a prompt has hundreds or tens of thousands of tokens. Text is split at the same places as by
// common tokenizers, and long words are counted by their length. For English and code the result is within 15 % of
// `o200k_base`, the vocabulary of several models.

const ACCURACY: &str = "within 15 % of o200k_base for English and code";

const LETTERS_PER_TOKEN: usize = 9;

const DIGITS_PER_TOKEN: usize = 3;

fn estimate_tokens(text: &str) -> usize {
    let mut tokens = 0;
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        let run = |characters: &mut std::iter::Peekable<std::str::Chars<'_>>, same: fn(char) -> bool| -> usize {
            let mut length = 1_usize;
            while characters.next_if(|next| same(*next)).is_some() {
                length += 1;
            }
            length
        };
        tokens += match c {
            // A single space belongs to the following word.
            ' ' => usize::from(characters.peek() == Some(&' ') && run(&mut characters, |c| c == ' ') > 0),
            c if c.is_whitespace() => usize::from(run(&mut characters, char::is_whitespace) > 0),
            c if c.is_ascii_digit() => run(&mut characters, |c| c.is_ascii_digit()).div_ceil(DIGITS_PER_TOKEN),
            c if is_single_token_script(c) => 1,
            c if c.is_alphabetic() => {
                run(&mut characters, |c| c.is_alphabetic() && !is_single_token_script(c)).div_ceil(LETTERS_PER_TOKEN)
            }
            // Adjacent punctuation, such as `==` or `](`, is usually one token.
            c if c.is_ascii_punctuation() => run(&mut characters, |c| c.is_ascii_punctuation()).div_ceil(3),
            _ => 2,
        };
    }
    tokens
}

fn is_single_token_script(c: char) -> bool {
    matches!(c, '\u{2e80}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

#[cfg(test)]
mod tokens_tests {
    use super::*;

    #[test]
    fn estimate_is_near_exact_counts() {
        // The exact numbers are those of `o200k_base`.
        for (text, exact) in [
            ("The quick brown fox jumps over the lazy dog.", 10),
            ("Please review this python code, which uses flask:", 10),
            ("fn main() {\n    println!(\"Hello, world!\");\n}\n", 12),
            ("Die Größe der Bücherregale überrascht.", 8),
            ("日本語", 2),
            ("", 0),
        ] {
            let estimate = estimate_tokens(text);
            assert!(estimate * 10 >= exact * 7 && estimate * 10 <= exact * 15, "{text}: {estimate}, not {exact}");
        }
    }
}

// Inline images in terminals: the protocol of kitty, also supported by Ghostty, and the one of iTerm2, also
// supported by WezTerm. On other terminals only the heading of the block is shown.

/// The maximum size of an image that is sent to a terminal, in bytes.
const MAX_BYTES: usize = 8 << 20;

/// The number of Base64 characters in a chunk; 4096 is the maximum of kitty's protocol.
const CHUNK_CHARACTERS: usize = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    Kitty,
    Iterm,
}

/// Returns the escape sequences that display an image. `None` if the terminal does not support it.
fn inline_image(image: &Media) -> Option<String> {
    let variable = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
    encode(protocol(variable)?, image)
}

fn protocol(variable: impl Fn(&str) -> Option<String>) -> Option<Protocol> {
    // Multiplexers pass neither protocol through.
    if variable("TMUX").is_some() || variable("STY").is_some() {
        return None;
    }
    let (term, program) = (variable("TERM").unwrap_or_default(), variable("TERM_PROGRAM").unwrap_or_default());
    if variable("KITTY_WINDOW_ID").is_some() || term == "xterm-kitty" || term == "xterm-ghostty" || program == "ghostty"
    {
        return Some(Protocol::Kitty);
    }
    ["iTerm.app", "WezTerm"].contains(&program.as_str()).then_some(Protocol::Iterm)
}

fn encode(protocol: Protocol, image: &Media) -> Option<String> {
    if image.data.len() > MAX_BYTES {
        return None;
    }
    let data = image.data.base64();
    match protocol {
        Protocol::Iterm => {
            let size = image.data.len();
            Some(format!("\u{1b}]1337;File=inline=1;size={size};preserveAspectRatio=1:{data}\u{7}\n"))
        }
        // PNG is the only compressed format of kitty's protocol.
        Protocol::Kitty if image.mime_type.as_str() == "image/png" => {
            let chunks: Vec<&str> =
                data.as_bytes().chunks(CHUNK_CHARACTERS).filter_map(|chunk| std::str::from_utf8(chunk).ok()).collect();
            let mut sequence = String::with_capacity(data.len() + chunks.len() * 16);
            for (index, chunk) in chunks.iter().enumerate() {
                let keys = if index == 0 { "a=T,f=100," } else { "" };
                let more = u8::from(index + 1 < chunks.len());
                sequence.push_str(&format!("\u{1b}_G{keys}m={more};{chunk}\u{1b}\\"));
            }
            sequence.push('\n');
            Some(sequence)
        }
        Protocol::Kitty => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_size_and_tokens() {
        let mut output = Output { out: Vec::new(), terminal: false, escapes: false, colours: false, width: 80 };
        print_messages(&mut output, &[Message::user("Hello, Ada!\n"), Message::assistant("Hi.")])
            .expect("writing to memory succeeds");
        let shown = String::from_utf8(output.out).expect("valid UTF-8");
        assert!(shown.starts_with("── user · text, 12 bytes, about "), "{shown}");
        assert!(shown.contains("\nHello, Ada!\n\n── assistant · text, 3 bytes"), "{shown}");
        assert!(shown.contains("2 messages, 15 bytes, about "), "{shown}");
    }

    #[test]
    fn sizes_use_decimal_units() {
        assert_eq!([1, 999, 1_500, 2_340_000].map(size), ["1 byte", "999 bytes", "1.5 kB", "2.3 MB"]);
    }
}

#[cfg(test)]
mod inline_image_tests {
    use promptshelf_core::{Annotations, Blob, MimeType};

    use super::*;

    fn image(bytes: usize) -> Media {
        Media {
            data: Blob::new(vec![7; bytes]),
            mime_type: MimeType::parse("image/png").expect("a valid MIME type"),
            annotations: Annotations::default(),
        }
    }

    #[test]
    fn terminal_is_detected_from_environment() {
        let detect = |pairs: &'static [(&str, &str)]| {
            protocol(|name| pairs.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
        };
        assert_eq!(detect(&[("TERM", "xterm-kitty")]), Some(Protocol::Kitty));
        assert_eq!(detect(&[("TERM", "xterm-256color"), ("TERM_PROGRAM", "WezTerm")]), Some(Protocol::Iterm));
        assert_eq!(detect(&[("TERM", "xterm-kitty"), ("TMUX", "1")]), None);
        assert_eq!(detect(&[("TERM", "xterm-256color")]), None);
    }

    #[test]
    fn large_image_is_chunked_and_huge_image_is_omitted() {
        let sequence = encode(Protocol::Kitty, &image(5_000)).expect("a PNG image");
        assert!(sequence.starts_with("\u{1b}_Ga=T,f=100,m=1;") && sequence.contains("\u{1b}_Gm=0;"), "{sequence}");
        assert!(encode(Protocol::Iterm, &image(10)).is_some_and(|sequence| sequence.contains("size=10;")));
        assert_eq!(encode(Protocol::Iterm, &image(MAX_BYTES + 1)), None);
    }
}

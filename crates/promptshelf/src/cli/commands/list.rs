//! `promptshelf list`: the prompts of a library or a server.

use std::io::{self, Write};

use anstyle::Style;
use clap::Args;
use promptshelf_client::PromptInfo;

use crate::{
    args::{Words, client::SourceArguments, words::Nothing},
    connect::{Options, connect},
    exit::Failure,
    output::{Output, list_json, note, pretty_json, shortened, visible_line},
    terminal::Progress,
};

const LIST_EXAMPLES: &str = "\
In a pipe each prompt is one line: name, title, arguments and description,
separated by tabs.

Examples:
  promptshelf list prompts
  promptshelf list prompts --search review
  promptshelf list prompts | cut -f 1
  promptshelf list prompts --json | jq -r '.items[].name'
  promptshelf list https://example.com/mcp
  promptshelf list github
  promptshelf list -- npx -y @modelcontextprotocol/server-everything";

#[derive(Debug, Args)]
#[command(after_help = LIST_EXAMPLES)]
pub(crate) struct ListArguments {
    #[command(flatten)]
    pub(crate) words: Words<SourceArguments, Nothing>,

    /// Only prompts with this text in their name, title or description
    #[arg(long, value_name = "TEXT")]
    pub(crate) search: Option<String>,

    /// Print JSON: `items` as in the result of `prompts/list`
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) async fn run(arguments: &ListArguments) -> Result<(), Failure> {
    let source = arguments.words.library.source()?;
    let progress = Progress::new(visible_line(&source.to_string()).into_owned());
    let connection = connect(&source, Options::new(arguments.words.library.timeout(), &progress), &progress).await?;
    let listing =
        progress.during(connection.client.prompt_listing()).await.map_err(|error| connection.failure(error))?;
    let wanted = arguments.search.as_ref().map(|text| text.to_lowercase());
    let is_wanted = |prompt: &PromptInfo| wanted.as_ref().is_none_or(|wanted| has(prompt, wanted));
    let prompts: Vec<PromptInfo> = listing.prompts.into_iter().filter(is_wanted).collect();
    let mut stdout = Output::stdout();
    if arguments.json {
        writeln!(stdout.out, "{}", pretty_json(&list_json(prompts.iter().map(|prompt| prompt.raw.clone()))))?;
    } else {
        let rows: Vec<Row<'_>> = prompts.iter().map(Row::from).collect();
        if stdout.terminal { table(&mut stdout, &rows) } else { lines(&mut stdout, &rows) }?;
    }
    stdout.out.flush()?;
    note(&left_out(&listing.left_out));
    if prompts.is_empty() && !connection.client.has_prompts() {
        note(&["there are no prompts: the server does not declare that it has any".to_owned()]);
    } else if prompts.is_empty() && !arguments.json && !stdout.terminal {
        note(&["there are no prompts".to_owned()]);
    }
    if let Some(library) = &connection.library {
        library.note_errors();
    }
    Ok(())
}

/// The most entries that are named, and the most columns of each.
const MAX_LEFT_OUT: (usize, usize) = (10, 300);

/// Returns a note for each entry that cannot be used.
fn left_out(entries: &[String]) -> Vec<String> {
    let (named, columns) = MAX_LEFT_OUT;
    let notes = entries.iter().take(named);
    let notes = notes.map(|entry| format!("left out of the list: {}", shortened(&visible_line(entry), columns)));
    let rest = entries.len().saturating_sub(named);
    let rest = (rest > 0).then(|| format!("{rest} more entries of the list are left out"));
    notes.chain(rest).collect()
}

/// Returns whether a prompt has a text in lower case in what lists show of it.
fn has(prompt: &PromptInfo, wanted: &str) -> bool {
    let shown = [Some(prompt.name.as_str()), prompt.title.as_deref(), prompt.description.as_deref()];
    shown.into_iter().flatten().any(|text| text.to_lowercase().contains(wanted))
}

pub(crate) struct Row<'a> {
    pub(crate) name: &'a str,
    pub(crate) title: Option<&'a str>,
    pub(crate) description: Option<&'a str>,
    /// The arguments as in a usage line: `<required>` and `[optional]`.
    pub(crate) usage: String,
}

impl<'a> From<&'a PromptInfo> for Row<'a> {
    fn from(prompt: &'a PromptInfo) -> Row<'a> {
        let usage = prompt.arguments.iter().map(|argument| placeholder(&argument.name, argument.required));
        Row {
            name: &prompt.name,
            title: prompt.title.as_deref(),
            description: prompt.description.as_deref(),
            usage: usage.collect::<Vec<_>>().join(" "),
        }
    }
}

pub(crate) fn placeholder(name: &str, required: bool) -> String {
    if required { format!("<{name}>") } else { format!("[{name}]") }
}

pub(crate) fn table<W: Write>(output: &mut Output<W>, rows: &[Row<'_>]) -> io::Result<()> {
    const NAME: Style = Style::new().bold();
    for row in rows {
        let name = output.line(row.name).into_owned();
        let arguments = output.line(&row.usage).into_owned();
        let heading = [output.styled(NAME, &name), output.dimmed(&arguments)].join(" ");
        writeln!(output.out, "{}", heading.trim_end())?;
        let about = [row.title, row.description].into_iter().flatten().filter(|text| !text.is_empty());
        let about = about.collect::<Vec<_>>().join(" – ");
        let about = shortened(&output.line(&about), output.width.saturating_sub(4));
        if !about.is_empty() {
            writeln!(output.out, "    {about}")?;
        }
    }
    if rows.is_empty() {
        writeln!(output.out, "No prompts found.")?;
    }
    Ok(())
}

fn lines<W: Write>(output: &mut Output<W>, rows: &[Row<'_>]) -> io::Result<()> {
    for row in rows {
        let parts = [row.name, row.title.unwrap_or_default(), &row.usage, row.description.unwrap_or_default()];
        let line = parts.map(|part| output.line(part).into_owned()).join("\t");
        writeln!(output.out, "{line}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_fits_the_terminal_and_escapes_text() {
        let hello = Row {
            name: "hello",
            title: None,
            description: Some("Greets\u{1b}[2J a friend at great length"),
            usage: [placeholder("name", true), placeholder("tone", false)].join(" "),
        };
        let titled = Row { name: "b", title: Some("Bee"), description: Some("Hums"), usage: String::new() };
        let mut output = Output { out: Vec::new(), terminal: true, escapes: true, colours: false, width: 30 };
        table(&mut output, &[hello, titled]).expect("writing to memory succeeds");
        let shown = String::from_utf8(output.out).expect("valid UTF-8");
        assert_eq!(shown, "hello <name> [tone]\n    Greets\\u{1b}[2J a friend…\nb\n    Bee – Hums\n");
    }
}

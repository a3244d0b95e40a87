//! `promptshelf list`: the prompts of a library.

use std::io::Write;

use anstyle::Style;
use promptshelf_core::Prompt;
use promptshelf_mcp::Server;
use serde_json::{Value, json};

use super::{remote, wire::ask};
use crate::{
    args::ListArguments,
    exit::{Exit, Failure},
    output::{Output, pretty_json},
};

pub(crate) async fn run(arguments: &ListArguments) -> Result<(), Failure> {
    if let Some(target) = arguments.server.target()? {
        return remote::list::run(&target, arguments).await;
    }
    let library = crate::library::open(arguments.library.folder())?;
    let catalog = library.catalog();
    let rows: Vec<Row<'_>> = catalog.prompts().iter().map(|prompt| Row::from(&**prompt)).collect();
    let mut paper = Output::stdout();
    if arguments.json {
        let prompts = all(library.server()).await?;
        writeln!(paper.out, "{}", pretty_json(&json!({ "prompts": prompts })))?;
    } else {
        print(&mut paper, &rows)?;
    }
    paper.out.flush()?;
    crate::library::note_errors(&library, arguments.library.folder());
    Ok(())
}

/// Every prompt as a client sees it, page by page.
async fn all(server: &Server) -> Result<Vec<Value>, Failure> {
    let mut prompts = Vec::new();
    let mut cursor = None;
    loop {
        let parameters = cursor.map_or_else(|| json!({}), |cursor: Value| json!({ "cursor": cursor }));
        let Some(mut page) = ask(server, "prompts/list", parameters).await? else {
            return Err(Failure::new(Exit::Failed, "the server cannot list its prompts"));
        };
        if let Value::Array(page) = page["prompts"].take() {
            prompts.extend(page);
        }
        match page.get("nextCursor") {
            Some(next) => cursor = Some(next.clone()),
            None => return Ok(prompts),
        }
    }
}

/// A prompt as a list shows it.
pub(crate) struct Row<'a> {
    pub(crate) name: &'a str,
    pub(crate) title: Option<&'a str>,
    pub(crate) description: Option<&'a str>,
    /// Its arguments as usage lines show them: `<required>` and `[optional]`.
    pub(crate) usage: String,
}

impl<'a> From<&'a Prompt> for Row<'a> {
    fn from(prompt: &'a Prompt) -> Row<'a> {
        let arguments = prompt.arguments().iter();
        let usage = arguments.map(|argument| placeholder(argument.name(), argument.required()));
        Row {
            name: prompt.name().as_str(),
            title: prompt.title(),
            description: prompt.description(),
            usage: usage.collect::<Vec<_>>().join(" "),
        }
    }
}

/// An argument as usage lines show it.
pub(crate) fn placeholder(name: &str, required: bool) -> String {
    if required { format!("<{name}>") } else { format!("[{name}]") }
}

/// Prints a list for whoever reads it.
pub(super) fn print<W: Write>(paper: &mut Output<W>, rows: &[Row<'_>]) -> std::io::Result<()> {
    if paper.terminal { table(paper, rows) } else { lines(paper, rows) }
}

/// For people: what a prompt is called, what it asks for, and what it does.
pub(crate) fn table<W: Write>(paper: &mut Output<W>, rows: &[Row<'_>]) -> std::io::Result<()> {
    const NAME: Style = Style::new().bold();
    for row in rows {
        let name = paper.line(row.name).into_owned();
        let arguments = paper.line(&row.usage).into_owned();
        let heading = [paper.styled(NAME, &name), paper.quiet(&arguments)].join(" ");
        writeln!(paper.out, "{}", heading.trim_end())?;
        let about = row.description.or(row.title).unwrap_or_default();
        let about = shortened(&paper.line(about), paper.width.saturating_sub(4));
        if !about.is_empty() {
            writeln!(paper.out, "    {about}")?;
        }
    }
    if rows.is_empty() {
        writeln!(paper.out, "There are no prompts here.")?;
    }
    Ok(())
}

/// For programs: one line a prompt, with tabs between its parts.
fn lines<W: Write>(paper: &mut Output<W>, rows: &[Row<'_>]) -> std::io::Result<()> {
    for row in rows {
        let parts = [row.name, row.title.unwrap_or_default(), &row.usage, row.description.unwrap_or_default()];
        let line = parts.map(|part| paper.line(part).into_owned()).join("\t");
        writeln!(paper.out, "{line}")?;
    }
    Ok(())
}

/// As much of a line as fits, counted in characters.
pub(crate) fn shortened(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

#[cfg(test)]
mod tests {
    use promptshelf_core::{ArgumentDefinition, Message, PromptDefinition};
    use promptshelf_server::Library;

    use super::*;

    #[test]
    fn a_table_is_for_people_and_fits_the_terminal() {
        let hello = PromptDefinition::new("hello", |_| Ok(vec![Message::user("Hi")]))
            .description("Greets\u{1b}[2J somebody at great length")
            .argument(ArgumentDefinition::new("name").description("Whom").required())
            .argument(ArgumentDefinition::new("tone").description("How"));
        let library = Library::builder().prompt(hello).build().expect("it is right");
        let mut paper = Output { out: Vec::new(), terminal: true, colours: false, width: 30 };
        let catalog = library.catalog();
        let rows: Vec<Row<'_>> = catalog.prompts().iter().map(|prompt| Row::from(&**prompt)).collect();
        table(&mut paper, &rows).expect("memory takes everything");
        let shown = String::from_utf8(paper.out).expect("it is text");
        assert_eq!(shown, "hello <name> [tone]\n    Greets\\u{1b}[2J somebody…\n");
    }
}

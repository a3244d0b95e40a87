//! Help texts below the options: examples, settings and exit codes. Lines have at most 80 columns, the width of most
//! terminals: clap wraps longer ones, and with them the tables.

use super::words;
use crate::{commands::GROUPS, exit::Exit, launcher};

/// Returns six lines for people who start the program alone.
pub(super) fn first_steps() -> String {
    let command = launcher::command();
    let line = |words: &str, about: &str| {
        format!("  {:<width$}  {about}\n", format!("{command} {words}"), width = command.len() + 31)
    };
    [
        concat!(
            "promptshelf ",
            env!("CARGO_PKG_VERSION"),
            " turns a folder of prompt files into an MCP prompt server.\n"
        )
        .to_owned(),
        line("init my-prompts", "make a library with examples"),
        line("serve my-prompts --edit --open", "serve it, and edit it on its page"),
        line("check my-prompts", "report every mistake at its line"),
        line("list my-prompts", "list its prompts"),
        line("install my-prompts", "see which clients are here"),
        line("help", "list all commands and pages of the guide"),
        "\nThe page is at http://127.0.0.1:8080 while `serve` runs.\n".to_owned(),
        format!("The guide begins with `{command} help first-steps`.\n"),
    ]
    .concat()
}

pub(super) const EXAMPLES: &str = "\
Examples:
  promptshelf serve prompts --open
  promptshelf check prompts
  promptshelf get code_review code=@src/main.rs";

const COMMON: &str = "\
Everywhere: -q, --color WHEN, --yes, --log LEVEL, --log-format FORMAT
(`promptshelf help command-line` explains them and the order of words)";

/// The examples that stand before the options.
const FIRST_EXAMPLES: usize = 2;

/// Arranges the help texts: commands in groups; for each command what it does, two examples, and then its options.
pub(super) fn arranged(command: clap::Command) -> clap::Command {
    let overview = overview(&command);
    let root = "{about-with-newline}\n{before-help}{usage-heading} {usage}\n\n{options}{after-help}\n";
    let command = command.before_help(overview).after_long_help(format!("{EXAMPLES}\n\n{COMMON}\n\n{}", Exit::table()));
    let command = command.after_help(format!("{EXAMPLES}\n\n{COMMON}")).help_template(root);
    command.mut_subcommands(|command| arranged_command(command, "promptshelf"))
}

fn overview(root: &clap::Command) -> String {
    let mut text = String::new();
    for (group, names) in GROUPS {
        text.push_str(&format!("{group}\n"));
        for name in names {
            let about = root.find_subcommand(name).and_then(clap::Command::get_about);
            text.push_str(&format!("  {name:<14} {}\n", about.map(ToString::to_string).unwrap_or_default()));
        }
    }
    text.trim_end().to_owned()
}

fn arranged_command(mut command: clap::Command, above: &str) -> clap::Command {
    let path = format!("{above} {}", command.get_name());
    if command.has_subcommands() {
        let below = path.clone();
        command = command.mut_subcommands(|command| arranged_command(command, &below));
    }
    let text = |text: Option<&clap::builder::StyledStr>| text.map(ToString::to_string);
    let (short, long) = (text(command.get_after_help()), text(command.get_after_long_help()));
    let (first, rest) = split_examples(short.as_deref().unwrap_or_default());
    if !first.is_empty() {
        command = command.before_help(first.clone()).before_long_help(first);
    }
    let joined =
        |text: &str| [text, COMMON].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n");
    command = command.after_help(joined(&rest));
    if let Some(long) = long {
        command = command.after_long_help(joined(&split_examples(&long).1));
    }
    if command.get_positionals().any(|argument| argument.get_id() == words::LIBRARY) {
        let last = if command.get_positionals().any(clap::Arg::is_last_set) { " [-- COMMAND...]" } else { "" };
        // Rendering builds the command, which has no global options yet.
        let usage = command.clone().render_usage().to_string();
        let form = usage.split_once(words::USAGE).map_or("", |(_, form)| form);
        command =
            command.override_usage(format!("{path} [OPTIONS] [LIBRARY] {}{last}", form.trim()).trim_end().to_owned());
    }
    command.help_template("{about-with-newline}\n{before-help}{usage-heading} {usage}\n\n{all-args}{after-help}\n")
}

/// Splits the first examples off a text.
fn split_examples(text: &str) -> (String, String) {
    const HEADING: &str = "Examples:\n";
    let Some((before, after)) = text.split_once(HEADING) else { return (String::new(), text.to_owned()) };
    let mut lines: Vec<&str> = after.lines().collect();
    let mut end = 0;
    for _ in 0..FIRST_EXAMPLES {
        while lines.get(end).is_some_and(|line| line.ends_with('\\')) {
            end += 1;
        }
        end += 1;
    }
    // Prose may follow a paragraph of examples.
    let examples = lines.iter().take_while(|line| line.starts_with("  ")).count();
    let rest = lines.split_off(end.min(examples));
    let first = format!("{HEADING}{}", lines.join("\n"));
    let rest = rest.join("\n");
    let rest = rest.trim_matches('\n');
    let more = if rest.starts_with("  ") { format!("More examples:\n{rest}") } else { rest.to_owned() };
    (first, [before.trim_end(), &more].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n"))
}

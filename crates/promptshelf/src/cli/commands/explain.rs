//! `promptshelf explain`: explains the codes of `check`.

use std::io::Write;

use anstyle::Style;
use clap::Args;
use promptshelf_author::explain::{page, summary};
use promptshelf_core::{Code, nearest};
use serde_json::json;

use crate::{
    exit::{Exit, Failure},
    output::{Output, list_json, pretty_json},
};

const EXPLAIN_EXAMPLES: &str = "\
Examples:
  promptshelf explain
  promptshelf explain undeclared-argument";

#[derive(Debug, Args)]
#[command(after_help = EXPLAIN_EXAMPLES)]
pub(crate) struct ExplainArguments {
    /// A code such as `unknown-key` [default: list all codes]
    #[arg(value_name = "CODE")]
    pub(crate) code: Option<String>,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn run(arguments: &ExplainArguments) -> Result<(), Failure> {
    const NAME: Style = Style::new().bold();
    let mut output = Output::stdout();
    let Some(name) = &arguments.code else {
        if arguments.json {
            let codes = Code::ALL.iter().map(|code| json!({ "code": code.as_str(), "summary": summary(*code) }));
            writeln!(output.out, "{}", pretty_json(&list_json(codes)))?;
            return Ok(output.out.flush()?);
        }
        let width = Code::ALL.iter().map(|code| code.as_str().len()).max().unwrap_or_default();
        for code in Code::ALL {
            let name = output.styled(NAME, &format!("{:width$}", code.as_str()));
            let indent = " ".repeat(width + 2);
            let about = output.filled(&indent, &indent, summary(*code));
            writeln!(output.out, "{name}  {}", about.trim_start())?;
        }
        return Ok(output.out.flush()?);
    };
    // Codes are often copied from a message, together with the brackets.
    let name = name.trim_matches(['[', ']']);
    let Some(code) = Code::find(name) else {
        let help = match nearest(name, Code::ALL.iter().map(|code| code.as_str())) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "`promptshelf explain` lists all codes".to_owned(),
        };
        return Err(Failure::new(Exit::NotFound, format!("unknown code `{name}`")).help(help));
    };
    if arguments.json {
        let explained = json!({ "code": code.as_str(), "summary": summary(code), "page": page(code) });
        writeln!(output.out, "{}", pretty_json(&explained))?;
        return Ok(output.out.flush()?);
    }
    let heading = output.styled(NAME, code.as_str());
    writeln!(output.out, "{heading}")?;
    for block in page(code).split("\n\n") {
        // Examples keep their lines.
        let is_text = output.terminal && !block.starts_with("    ");
        let block = if is_text { output.filled("", "", &block.replace('\n', " ")) } else { block.to_owned() };
        writeln!(output.out, "\n{block}")?;
    }
    Ok(output.out.flush()?)
}

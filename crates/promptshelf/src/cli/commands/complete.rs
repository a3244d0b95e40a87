//! `promptshelf complete`: values for an argument.

use std::io::{self, Write};

use promptshelf_service::{Caller, Reference};
use serde_json::json;

use super::{get::failure, remote};
use crate::{
    args::CompleteArguments,
    exit::Failure,
    output::{Output, pretty_json},
};

pub(crate) async fn run(arguments: &CompleteArguments) -> Result<(), Failure> {
    if let Some(target) = arguments.server.target()? {
        return remote::complete::run(&target, arguments).await;
    }
    let CompleteArguments { name, argument, value, .. } = arguments;
    let library = crate::library::open(arguments.library.folder())?;
    let catalog = library.catalog();
    if let Some(prompt) = catalog.find(name) {
        arguments.values.must_be_of(prompt.arguments())?;
    }
    let known = arguments.values.read(io::stdin().lock())?;
    // No prompt is called like an address in practice, and if one were, it would come first.
    let is_resource = catalog.find(name).is_none() && name.contains("://");
    let reference = if is_resource { Reference::Resource(name) } else { Reference::Prompt(name) };
    let completions = library
        .service()
        .complete(&Caller::local(), reference, argument, value, &known)
        .map_err(|rejection| failure(rejection, &library, arguments.library.folder(), name))?;

    let completions = completions.into_value();
    let (total, has_more) = (Some(completions.total), completions.has_more());
    print(arguments.json, &completions.values, total, has_more)
}

/// Prints suggested values, wherever they come from.
pub(super) fn print(json: bool, values: &[String], total: Option<usize>, has_more: bool) -> Result<(), Failure> {
    let mut paper = Output::stdout();
    if json {
        let mut completion = json!({ "values": values, "total": total, "hasMore": has_more });
        if let (None, Some(completion)) = (total, completion.as_object_mut()) {
            completion.remove("total");
        }
        writeln!(paper.out, "{}", pretty_json(&json!({ "completion": completion })))?;
    } else {
        for value in values {
            let line = paper.line(value).into_owned();
            writeln!(paper.out, "{line}")?;
        }
        if has_more && paper.terminal {
            match total.and_then(|total| total.checked_sub(values.len())) {
                Some(more) => writeln!(paper.out, "… and {more} more")?,
                None => writeln!(paper.out, "… and more")?,
            }
        }
    }
    Ok(paper.out.flush()?)
}

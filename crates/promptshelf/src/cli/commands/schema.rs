//! `promptshelf schema`: JSON Schemas of the files that authors write.

use std::io::Write;

use promptshelf_author::schema;

use crate::{
    args::author::{SchemaArguments, SchemaFile},
    exit::Failure,
    output::{Output, pretty_json},
    settings,
};

pub(crate) fn run(arguments: &SchemaArguments) -> Result<(), Failure> {
    let mut paper = Output::stdout();
    writeln!(paper.out, "{}", pretty_json(&of(arguments.file)))?;
    Ok(paper.out.flush()?)
}

/// The schema of a file.
pub(crate) fn of(file: SchemaFile) -> serde_json::Value {
    match file {
        SchemaFile::Prompt => schema::prompt(),
        SchemaFile::Library => schema::library(),
        SchemaFile::Server => settings::schema(),
    }
}

//! `promptshelf schema`: prints the JSON Schemas of prompt files and settings.

use std::io::Write;

use promptshelf_author::schema;

use crate::{
    args::{SchemaArguments, SchemaFile},
    exit::Failure,
    output::{Output, list_schema, pretty_json},
    settings,
};

pub(crate) fn run(arguments: &SchemaArguments) -> Result<(), Failure> {
    let mut output = Output::stdout();
    writeln!(output.out, "{}", pretty_json(&schema_of(arguments.file)))?;
    Ok(output.out.flush()?)
}

pub(crate) fn schema_of(file: SchemaFile) -> serde_json::Value {
    match file {
        SchemaFile::Prompt => schema::prompt(),
        SchemaFile::Library => schema::library(),
        SchemaFile::Server => settings::schema(),
        SchemaFile::List => list_schema(),
    }
}

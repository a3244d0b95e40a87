//! `promptshelf schema`: JSON Schemas of the files that authors write.

use std::io::Write;

use promptshelf_source::schema;

use super::{SchemaArguments, SchemaFile, output::Output, wire::pretty};
use crate::{exit::Failure, settings};

pub(crate) fn run(arguments: &SchemaArguments) -> Result<(), Failure> {
    let mut paper = Output::stdout();
    writeln!(paper.out, "{}", pretty(&of(arguments.file)))?;
    Ok(paper.out.flush()?)
}

/// The schema of a file.
pub(crate) fn of(file: SchemaFile) -> serde_json::Value {
    match file {
        SchemaFile::Prompt => schema::prompt(),
        SchemaFile::Library => {
            let mut schema = schema::library();
            for (section, its) in settings::schemas() {
                schema["properties"][section] = its;
            }
            schema
        }
    }
}

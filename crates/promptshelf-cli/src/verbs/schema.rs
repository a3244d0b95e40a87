//! `promptshelf schema`: JSON Schemas of the files that authors write.

use std::io::Write;

use promptshelf_source::schema;

use super::{SchemaArguments, SchemaFile, paper::Paper, wire::pretty};
use crate::{config, exit::Failure};

pub(crate) fn run(arguments: &SchemaArguments) -> Result<(), Failure> {
    let mut paper = Paper::stdout();
    writeln!(paper.out, "{}", pretty(&of(arguments.file)))?;
    Ok(paper.out.flush()?)
}

/// The schema of a file.
pub(crate) fn of(file: SchemaFile) -> serde_json::Value {
    match file {
        SchemaFile::Prompt => schema::prompt(),
        SchemaFile::Library => {
            let mut schema = schema::library();
            for (section, its) in config::schemas() {
                schema["properties"][section] = its;
            }
            schema
        }
    }
}

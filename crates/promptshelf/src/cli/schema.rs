//! `promptshelf schema`: JSON Schemas of the files that authors write.

use std::io::Write;

use promptshelf::source::schema;

use super::{SchemaArguments, SchemaFile, paper::Paper, wire::pretty};
use crate::{config, exit::Failure};

pub(crate) fn run(arguments: &SchemaArguments) -> Result<(), Failure> {
    let schema = match arguments.file {
        SchemaFile::Prompt => schema::prompt(),
        SchemaFile::Library => {
            let mut schema = schema::library();
            for (section, its) in config::schemas() {
                schema["properties"][section] = its;
            }
            schema
        }
    };
    let mut paper = Paper::stdout();
    writeln!(paper.out, "{}", pretty(&schema))?;
    Ok(paper.out.flush()?)
}

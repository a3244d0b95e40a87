//! `promptshelf schema`: prints the JSON Schemas of prompt files and settings, and the description of the API.

use std::io::Write as _;

use clap::{Args, ValueEnum};
use promptshelf_author::schema;
use promptshelf_server::api::openapi;

use crate::{
    exit::Failure,
    output::{Output, list_schema, pretty_json},
    settings,
};

const SCHEMA_EXAMPLES: &str = "\
Editors complete and validate keys with a JSON Schema. A prompt file refers to
it in the first line of its front matter:

  ---
  # yaml-language-server: $schema=prompt.schema.json

Examples:
  promptshelf schema prompt > prompt.schema.json
  promptshelf schema library > promptshelf.schema.json
  promptshelf schema server > server.schema.json
  promptshelf schema api > openapi.json";

#[derive(Debug, Args)]
#[command(after_help = SCHEMA_EXAMPLES)]
pub(crate) struct SchemaArguments {
    /// What is described
    #[arg(value_name = "FILE", default_value = "prompt")]
    pub(crate) file: SchemaFile,
}

/// What a schema describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SchemaFile {
    /// The front matter of a prompt file
    Prompt,
    /// promptshelf.toml, the settings of a library
    Library,
    /// server.toml, the settings of an operator
    Server,
    /// Lists of commands with --json
    List,
    /// The HTTP API, as an OpenAPI document
    Api,
}

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
        SchemaFile::Api => openapi(),
    }
}

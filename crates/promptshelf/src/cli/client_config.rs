//! Configuration files of other MCP clients: where they are, and changing one entry in them.
//!
//! Only the bytes of the entry change: comments, unknown keys and the order of everything else stay. A file is replaced
//! as a whole, after a backup, and only if it still has the content that the change was made from.

mod edit;
mod error;
mod place;
mod record;
mod replace;
mod toml_file;
mod yaml_file;

pub(crate) use self::{
    edit::{find_entry, parse, with_entry},
    error::EditError,
    place::{Places, Scope, configuration_file, is_present},
    record::Records,
    replace::{ConfigFile, Replaced},
};

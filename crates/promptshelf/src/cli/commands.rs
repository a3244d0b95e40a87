//! The commands, one file each. Their arguments are defined in `args`.

pub(crate) mod audit;
#[cfg(feature = "channels")]
pub(crate) mod channels;
pub(crate) mod check;
pub(crate) mod clients;
pub(crate) mod complete;
pub(crate) mod diagnostics;
pub(crate) mod explain;
pub(crate) mod export;
mod file_name;
pub(crate) mod fmt;
pub(crate) mod get;
mod github;
pub(crate) mod import;
pub(crate) mod install;
pub(crate) mod list;
pub(crate) mod lsp;
pub(crate) mod markdown;
mod model_api;
pub(crate) mod new;
pub(crate) mod render;
pub(crate) mod resources;
pub(crate) mod saved;
pub(crate) mod schema;
pub(crate) mod serve;
pub(crate) mod shell;
pub(crate) mod show;
pub(crate) mod sign_in;
pub(crate) mod source;
pub(crate) mod sync;
pub(crate) mod test;
pub(crate) mod token;
pub(crate) mod values;

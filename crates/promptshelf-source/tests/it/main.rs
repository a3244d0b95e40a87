//! Libraries on disk: the definitions that are read from them, and how changes are noticed.

mod access;
mod bulk_changes;
mod confinement;
mod editor_saves;
mod folder_tree;
mod foreign;
mod formats;
mod front_matter;
mod generated_files;
mod incremental_reads;
mod library;
mod limits;
mod manifest;
mod references;
mod resources;
mod skills;
mod source_contract;
mod source_set;
mod tree_contract;
mod tree_source;

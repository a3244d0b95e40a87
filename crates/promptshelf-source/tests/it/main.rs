//! What a library on a disk becomes, and how changes to it are noticed.

mod access;
mod checkouts;
mod confinement;
mod contract;
mod formats;
mod front_matter;
mod library;
mod limits;
mod manifest;
mod references;
mod resources;
mod reuse;
mod saving;

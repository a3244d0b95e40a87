//! The tools for authors, through their public interface.

mod clients;
mod exchange;
mod fixes;
mod library;

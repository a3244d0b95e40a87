//! The tools for authors, through their public interface.

mod attachments;
mod clients;
mod exchange;
mod fixes;
mod library;

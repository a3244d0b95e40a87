//! The tools for authors, through their public interface.

mod exchange;
mod library;

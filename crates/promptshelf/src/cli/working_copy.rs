//! Folders that were pulled from a channel: the marker with the base, local changes, and replacing their files.
//!
//! A pull has two steps. First all new files are written to a hidden folder; if it is interrupted, the folder is
//! unchanged. Then a journal is written, and the files are moved to their places; if that is interrupted, the next
//! command that uses the folder completes it. So neither step shows a mixture to `publish`.

mod changes;
mod marker;
mod replace;

pub(crate) use self::{
    changes::{Listing, changes, listing},
    marker::{Base, MARKER},
    replace::{Replacement, WorkingCopy, named},
};

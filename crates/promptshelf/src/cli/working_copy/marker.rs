//! The marker that `pull` leaves in a folder.

use promptshelf_store::{ChannelName, Digest, Epoch, Head};
use serde::{Deserialize, Serialize};

use super::changes::Listing;

/// The name of the marker. Hidden files are never served or published.
pub(crate) const MARKER: &str = ".promptshelf-base";

const FORMAT: u32 = 1;

/// The revision that a folder was pulled from, without the place of its store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Base {
    format: u32,
    pub(crate) epoch: Epoch,
    pub(crate) channel: ChannelName,
    pub(crate) revision: u64,
    /// The digest of the revision; `None` in markers of earlier releases.
    #[serde(default)]
    pub(crate) digest: Option<Digest>,
    /// The content that each file had. After a publish this is the content of the folder, which can differ from that of
    /// the revision where other authors have changed other files.
    pub(crate) files: Listing,
}

impl Base {
    pub(crate) fn new(head: Head, channel: ChannelName, files: Listing) -> Base {
        let Head { epoch, revision, digest } = head;
        Base { format: FORMAT, epoch, channel, revision, digest, files }
    }

    /// Parses the text of a marker. The error describes the mistake.
    pub(super) fn parse(text: &str) -> Result<Base, String> {
        #[derive(Deserialize)]
        struct Version {
            format: u32,
        }

        let Version { format } = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if format > FORMAT {
            return Err("it was written by a newer release".to_owned());
        }
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    pub(super) fn text(&self) -> String {
        // Serializing numbers, texts and a map with text keys cannot fail.
        serde_json::to_string(self).unwrap_or_default() + "\n"
    }
}

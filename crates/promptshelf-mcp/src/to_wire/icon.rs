//! Encoding of icons.

use promptshelf_core::{Icon, MimeType, Theme};
use serde::Serialize;

use crate::revision::Revision;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WireIcon<'a> {
    src: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    mime_type: Option<&'a str>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    sizes: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    theme: Option<&'static str>,
}

/// Returns the icons for a revision that has them; `None` without any.
pub(super) fn icons<'a>(icons: impl Iterator<Item = &'a Icon>, revision: Revision) -> Option<Vec<WireIcon<'a>>> {
    let icons: Vec<_> = icons.filter(|_| revision.has_icons()).map(WireIcon::new).collect();
    (!icons.is_empty()).then_some(icons)
}

impl<'a> WireIcon<'a> {
    fn new(icon: &'a Icon) -> WireIcon<'a> {
        WireIcon {
            src: &icon.src,
            mime_type: icon.mime_type.as_ref().map(MimeType::as_str),
            sizes: &icon.sizes,
            theme: icon.theme.map(Theme::as_str),
        }
    }
}

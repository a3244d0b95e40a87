//! Messages of another server as content of this one: sizes, characters and URIs are checked.
//!
//! URIs have the schemes `https` and `http`, and those in the server's own list of resources. Nothing may pass for content
//! of this server, or start a program of the client.

use std::collections::BTreeSet;

use promptshelf_client as client;
use promptshelf_core::{
    Annotations, Blob, ContentBlock, EmbeddedResource, Media, Message, MimeType, ResourceBody, ResourceContents,
    ResourceLink, Role, Text, invisible::stripped,
};

use crate::definition::visible;

/// Schemes that a client could run, open from its own disk, or take for content of this server, whatever the other server
/// lists.
const REFUSED_SCHEMES: [&str; 20] = [
    "about",
    "blob",
    "chrome",
    "command",
    "cursor",
    "data",
    "file",
    "intent",
    "javascript",
    "jar",
    "library",
    "search-ms",
    "shell",
    "skill",
    "ui",
    "vbscript",
    "view-source",
    "vscode",
    "vscode-insiders",
    "windsurf",
];

const REFUSED_PREFIX: &str = "ms-";

pub(crate) type Schemes = BTreeSet<String>;

pub(crate) fn messages(messages: Vec<client::Message>, listed: &Schemes) -> Result<Vec<Message>, Refused> {
    let convert =
        |message: client::Message| Ok(Message { role: role(message.role), content: block(message.content, listed)? });
    messages.into_iter().map(convert).collect()
}

/// A content that is not passed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refused(pub(crate) String);

fn role(role: client::Role) -> Role {
    match role {
        client::Role::User => Role::User,
        client::Role::Assistant => Role::Assistant,
    }
}

fn block(block: client::ContentBlock, listed: &Schemes) -> Result<ContentBlock, Refused> {
    Ok(match block {
        client::ContentBlock::Text(text) => ContentBlock::Text(Text {
            text: stripped(&text.text).into_owned(),
            annotations: annotations(text.annotations),
        }),
        client::ContentBlock::Image(image) => ContentBlock::Image(media(image)?),
        client::ContentBlock::Audio(audio) => ContentBlock::Audio(media(audio)?),
        client::ContentBlock::Resource(resource) => {
            let contents = resource.contents;
            check_uri(&contents.uri, listed)?;
            ContentBlock::Resource(EmbeddedResource {
                contents: ResourceContents {
                    uri: contents.uri.into(),
                    mime_type: mime_type(&contents.mime_type)?,
                    body: match contents.body {
                        client::ResourceBody::Text(text) => ResourceBody::Text(stripped(&text).into()),
                        client::ResourceBody::Blob(bytes) => ResourceBody::Blob(Blob::new(bytes)),
                    },
                },
                annotations: annotations(resource.annotations),
            })
        }
        client::ContentBlock::Link(link) => {
            check_uri(&link.uri, listed)?;
            ContentBlock::Link(Box::new(ResourceLink {
                uri: link.uri.into(),
                name: visible(&link.name),
                title: link.title.as_deref().map(visible),
                description: link.description.as_deref().map(visible),
                mime_type: link.mime_type.as_deref().and_then(MimeType::parse),
                size: link.size,
                icons: Vec::new(),
                annotations: annotations(link.annotations),
                target: None,
            }))
        }
        other => return Err(Refused(format!("a block of the kind `{}`", other.kind()))),
    })
}

fn media(media: client::Media) -> Result<Media, Refused> {
    Ok(Media {
        data: Blob::new(media.data),
        mime_type: mime_type(&media.mime_type)?,
        annotations: annotations(media.annotations),
    })
}

fn mime_type(text: &str) -> Result<MimeType, Refused> {
    MimeType::parse(text).ok_or_else(|| Refused("a block with an invalid MIME type".to_owned()))
}

fn annotations(annotations: client::Annotations) -> Annotations {
    Annotations {
        audience: annotations.audience.into_iter().map(role).collect(),
        priority: annotations.priority.filter(|priority| (0.0..=1.0).contains(priority)),
        last_modified: None,
    }
}

/// Checks that a URI is absolute, visible and harmless for the client that follows it.
pub(crate) fn check_uri(uri: &str, listed: &Schemes) -> Result<(), Refused> {
    let scheme = usable_scheme(uri)?;
    if matches!(scheme.as_str(), "https" | "http") || listed.contains(&scheme) {
        Ok(())
    } else {
        Err(Refused(format!("a URI with the scheme `{scheme}:`, which no resource in its list has")))
    }
}

pub(crate) fn usable_scheme(uri: &str) -> Result<String, Refused> {
    let is_hidden = uri.contains(|c: char| c.is_control() || c.is_whitespace()) || visible(uri) != uri;
    let scheme = uri.split_once(':').map(|(scheme, _)| scheme.to_ascii_lowercase());
    let is_scheme = |scheme: &str| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
    };
    match scheme.filter(|scheme| is_scheme(scheme)) {
        Some(scheme) if REFUSED_SCHEMES.contains(&scheme.as_str()) || scheme.starts_with(REFUSED_PREFIX) => {
            Err(Refused(format!("a URI with the scheme `{scheme}:`")))
        }
        Some(scheme) if !is_hidden => Ok(scheme),
        _ => Err(Refused("an invalid URI".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // req: S-152
    // req: S-267
    #[test]
    fn hostile_uris_are_refused_whatever_is_listed() {
        let listed: Schemes = ["docs", "urn", "vscode", "skill", "ms-settings"].map(str::to_owned).into();
        for uri in [
            "vscode:extension/evil",
            "VSCode://file/etc",
            "ms-settings:x",
            "ms-msdt:/id",
            "skill://team/pdf/SKILL.md",
            "memo://unlisted",
            "javascript:alert(1)",
            "JavaScript:alert(1)",
            "data:text/html,x",
            "file:///etc/passwd",
            "library://team/secret.md",
            "https://a.example/\u{202e}gpj.exe",
            "https://a.example/\r\nX: y",
            "no scheme",
            "",
            "1x:y",
            ":x",
        ] {
            assert!(check_uri(uri, &listed).is_err(), "{uri:?}");
        }
        for uri in ["https://a.example/x", "docs://guide/a%20b", "urn:x:y"] {
            assert_eq!(check_uri(uri, &listed), Ok(()), "{uri}");
            let is_web = uri.starts_with("https:");
            assert_eq!(check_uri(uri, &Schemes::new()).is_ok(), is_web, "{uri}");
        }
    }

    // req: S-152
    #[test]
    fn invisible_characters_are_removed() {
        let text = client::Message::user("Good\u{e0041}\u{202e} day\u{200b}");
        let messages = messages(vec![text], &Schemes::new()).expect("a text");
        assert_eq!(messages, [Message::user("Good day")]);
    }
}

//! The sections of `promptshelf.toml` as serde types, from which its JSON Schema is derived as well.
//!
//! Icons, access rules and the variables of resources are parts of prompt files too. Each has one reader for both kinds
//! of files, in `format`, which reports mistakes by their places in the located tree. The types here only name them
//! ([`IgnoredAny`]), with the schema of the reader's table of keys; the manifest calls the readers afterwards.

use std::collections::BTreeMap;

use promptshelf_core::{MimeType, Role, invisible::InvisiblePolicy};
use serde::{
    Deserialize, Deserializer,
    de::{Error as _, IgnoredAny},
};

#[cfg(feature = "schema")]
use self::schemas::*;
use crate::{
    format::arguments::INVISIBLE_POLICIES,
    settings::{AsWritten, Bounded, OneOrList, Tables},
};

/// A number of bytes, files, messages or steps.
type Count = Bounded<1>;

const ROLES: &[&str] = &["user", "assistant"];

/// The settings of a library.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Sections {
    pub(super) server: Server,
    pub(super) list: List,
    pub(super) limits: LimitsSection,
    pub(super) arguments: Arguments,
    /// Folders that resources and completion may read, by name.
    pub(super) roots: BTreeMap<String, AsWritten>,
    /// Access rules.
    #[cfg_attr(feature = "schema", schemars(schema_with = "access_rules_schema"))]
    access: IgnoredAny,
    /// Resources that clients can read and prompts can attach.
    pub(super) resources: Tables<Resource>,
}

/// The name and description of the server.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Server {
    /// The identifier.
    pub(super) name: Option<AsWritten>,
    /// The display name.
    pub(super) title: Option<AsWritten>,
    /// The library's version.
    pub(super) version: Option<AsWritten>,
    /// A description of the library.
    pub(super) description: Option<AsWritten>,
    /// A web page about the library.
    pub(super) website_url: Option<WebUrl>,
    /// Instructions for the model about the use of this server.
    pub(super) instructions: Option<AsWritten>,
    /// Icons.
    #[cfg_attr(feature = "schema", schemars(schema_with = "icons_schema"))]
    icons: IgnoredAny,
}

/// The pages and lifetime of lists.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct List {
    /// The number of prompts or resources on a page; many clients read only the first page.
    #[cfg_attr(feature = "schema", schemars(extend("default" = Policy::default().page_size)))]
    pub(super) page_size: Option<Count>,
    /// The seconds for which clients may reuse a list.
    #[cfg_attr(feature = "schema", schemars(extend("default" = Policy::default().ttl.as_secs())))]
    pub(super) ttl: Option<Bounded<0>>,
}

/// Limits on reading and rendering.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct LimitsSection {
    /// The largest library file, in bytes.
    #[cfg_attr(feature = "schema", schemars(extend("default" = Limits::default().file_bytes)))]
    pub(super) file_bytes: Option<Count>,
    /// The largest total size of all files, in bytes.
    #[cfg_attr(feature = "schema", schemars(extend("default" = Limits::default().library_bytes)))]
    pub(super) library_bytes: Option<Count>,
    /// The largest number of files.
    #[cfg_attr(feature = "schema", schemars(extend("default" = Limits::default().files)))]
    pub(super) files: Option<Count>,
    /// The largest resource that is read on request, in bytes.
    #[cfg_attr(feature = "schema", schemars(extend("default" = Limits::default().resource_bytes)))]
    pub(super) resource_bytes: Option<Count>,
    /// The largest value of an argument, in bytes.
    #[cfg_attr(feature = "schema", schemars(extend("default" = Policy::default().value_bytes)))]
    pub(super) value_bytes: Option<Count>,
    /// The largest rendered text of a prompt, in bytes.
    #[cfg_attr(feature = "schema", schemars(extend("default" = Budget::default().output_bytes)))]
    pub(super) output_bytes: Option<Count>,
    /// The largest total size of a prompt's attachments, in bytes.
    #[cfg_attr(feature = "schema", schemars(extend("default" = Budget::default().attachment_bytes)))]
    pub(super) attachment_bytes: Option<Count>,
    /// The largest number of messages of a prompt.
    #[cfg_attr(feature = "schema", schemars(extend("default" = Budget::default().messages)))]
    pub(super) messages: Option<Count>,
    /// The largest number of steps of the template engine.
    #[cfg_attr(feature = "schema", schemars(extend("default" = Budget::default().fuel)))]
    pub(super) fuel: Option<Count>,
    /// The largest depth of nested partials.
    #[cfg_attr(feature = "schema", schemars(extend("default" = Budget::default().include_depth)))]
    pub(super) include_depth: Option<Count>,
}

/// Defaults for the arguments of all prompts.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Arguments {
    /// The policy for control, bidirectional and other invisible characters in values.
    #[serde(deserialize_with = "invisible")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "invisible_schema", extend("default" = InvisiblePolicy::default().as_str())))]
    pub(super) invisible: Option<InvisiblePolicy>,
}

/// A resource.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Resource {
    /// A URI; with `files`, a template for the URI of each file, with `{+path}`.
    pub(super) uri: Option<AsWritten>,
    /// A URI template (RFC 6570) with variables.
    pub(super) uri_template: Option<AsWritten>,
    /// A file; with a URI template, the path may contain its variables as `{name}` or `{+path}`.
    pub(super) file: Option<AsWritten>,
    /// A pattern for files; each of them becomes a resource.
    pub(super) files: Option<AsWritten>,
    /// A template over the variables of the URI.
    pub(super) text: Option<AsWritten>,
    /// The declared root that contains `file` or `files`.
    pub(super) root: Option<AsWritten>,
    /// The identifier.
    pub(super) name: Option<AsWritten>,
    /// The display name.
    pub(super) title: Option<AsWritten>,
    /// A description of the resource.
    pub(super) description: Option<AsWritten>,
    /// The MIME type; derived from the file by default.
    #[serde(deserialize_with = "mime_type")]
    #[cfg_attr(feature = "schema", schemars(with = "AsWritten"))]
    pub(super) mime_type: Option<MimeType>,
    /// Icons.
    #[cfg_attr(feature = "schema", schemars(schema_with = "icons_schema"))]
    icons: IgnoredAny,
    /// The callers that may use it; all by default.
    #[cfg_attr(feature = "schema", schemars(schema_with = "requirements_schema"))]
    access: IgnoredAny,
    /// The intended audience.
    pub(super) audience: OneOrList<Audience>,
    /// The importance, from 0 (least) to 1 (required).
    #[serde(deserialize_with = "priority")]
    #[cfg_attr(feature = "schema", schemars(with = "f64", range(min = 0.0, max = 1.0)))]
    pub(super) priority: Option<f64>,
    /// The variables of the URI template with constraints or completion.
    #[cfg_attr(feature = "schema", schemars(schema_with = "variables_schema"))]
    variables: IgnoredAny,
}

/// An `http:` or `https:` URL.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(try_from = "AsWritten")]
#[cfg_attr(feature = "schema", schemars(with = "AsWritten"))]
pub(super) struct WebUrl(pub(super) String);

impl TryFrom<AsWritten> for WebUrl {
    type Error = String;

    fn try_from(AsWritten(url): AsWritten) -> Result<WebUrl, String> {
        match url.starts_with("https://") || url.starts_with("http://") {
            true => Ok(WebUrl(url)),
            false => Err(format!("expected a web address that starts with `https://`, got `{url}`")),
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Audience(pub(super) Role);

impl<'de> Deserialize<'de> for Audience {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Audience, D::Error> {
        word(deserializer, Role::parse, ROLES).map(Audience)
    }
}

fn invisible<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<InvisiblePolicy>, D::Error> {
    word(deserializer, InvisiblePolicy::parse, INVISIBLE_POLICIES).map(Some)
}

fn word<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    parse: impl Fn(&str) -> Option<T>,
    known: &'static [&'static str],
) -> Result<T, D::Error> {
    let AsWritten(text) = AsWritten::deserialize(deserializer)?;
    parse(&text).ok_or_else(|| D::Error::unknown_variant(&text, known))
}

fn mime_type<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<MimeType>, D::Error> {
    let AsWritten(text) = AsWritten::deserialize(deserializer)?;
    let invalid = || D::Error::custom(format_args!("expected a MIME type such as `text/markdown`, got `{text}`"));
    MimeType::parse(&text).ok_or_else(invalid).map(Some)
}

fn priority<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    let number = f64::deserialize(deserializer)?;
    if (0.0..=1.0).contains(&number) {
        Ok(Some(number))
    } else {
        Err(D::Error::custom(format_args!("expected a number from 0 to 1, got {number}")))
    }
}

#[cfg(feature = "schema")]
mod schemas {
    pub(super) use promptshelf_core::{Budget, Policy};
    pub(super) use schemars::JsonSchema;
    use schemars::{Schema, SchemaGenerator};

    use super::{Audience, INVISIBLE_POLICIES, ROLES};
    use crate::format::{access, arguments::KEYS as ARGUMENT, icons::KEYS as ICON, keys::Holds};
    pub(super) use crate::{manifest::Limits, settings::access_rules_schema};

    impl JsonSchema for Audience {
        fn schema_name() -> std::borrow::Cow<'static, str> {
            "Audience".into()
        }

        fn json_schema(_: &mut SchemaGenerator) -> Schema {
            Holds::Word(ROLES).to_schema()
        }
    }

    pub(super) fn invisible_schema(_: &mut SchemaGenerator) -> Schema {
        Holds::Word(INVISIBLE_POLICIES).to_schema()
    }

    pub(super) fn icons_schema(_: &mut SchemaGenerator) -> Schema {
        Holds::TextsOrTables(&ICON).to_schema()
    }

    pub(super) fn requirements_schema(_: &mut SchemaGenerator) -> Schema {
        Holds::Table(&access::REQUIREMENTS).to_schema()
    }

    pub(super) fn variables_schema(_: &mut SchemaGenerator) -> Schema {
        Holds::ListOfTextsOrTables(&ARGUMENT).to_schema()
    }
}

//! The declaration of an operation: everything about it that a handler, a client and the OpenAPI document share.

use std::{any::Any, borrow::Cow};

use http::Method;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use promptshelf_store::ChannelName;
use serde::{Deserialize, Serialize};
use utoipa::{
    IntoParams, PartialSchema, ToSchema,
    openapi::{
        KnownFormat, ObjectBuilder, Ref, RefOr, Schema, SchemaFormat, Type,
        path::{Parameter, ParameterIn},
    },
};

use crate::Problem;

/// The path below which a server has its operations.
pub const PREFIX: &str = "/api/v1";

/// The version of the API: the day of its last change that a program could notice. Every answer has it in [`VERSION_HEADER`].
pub const VERSION: &str = "2026-11-27";

/// The header with the version of an answer, and with the one that a caller was written for.
pub const VERSION_HEADER: &str = "promptshelf-api-version";

/// The header with a text that stands for one change of a caller.
pub const KEY_HEADER: &str = "Idempotency-Key";

/// What a token permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Reading channels and proposals.
    Read,
    /// Proposing changes.
    Propose,
    /// Reviewing proposals.
    Review,
    /// Publishing proposals that meet the policy.
    Publish,
    /// Storing results of evaluations.
    Evaluate,
    /// Policies, new channels, and publishing without the policy.
    Admin,
}

impl Scope {
    /// All scopes.
    pub const ALL: [Scope; 6] =
        [Scope::Read, Scope::Propose, Scope::Review, Scope::Publish, Scope::Evaluate, Scope::Admin];

    /// Returns the word in tokens.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Scope::Read => "library:read",
            Scope::Propose => "library:propose",
            Scope::Review => "library:review",
            Scope::Publish => "library:publish",
            Scope::Evaluate => "library:evaluate",
            Scope::Admin => "library:admin",
        }
    }
}

/// An operation of the API. Its fields are the parameters of the path.
pub trait Operation: Clone + Send + Sync + 'static {
    /// The declaration.
    const SPEC: Spec;
    /// The parameters of the query.
    type Query: IntoParams + Send + Sync + 'static;
    /// The body of the request.
    type Body: ToSchema + Send + Sync + 'static;
    /// The body of a successful response.
    type Answer: ToSchema + Send + Sync + 'static;

    /// Returns the parameters of the path, by name.
    fn parameters(&self) -> Vec<(&'static str, String)>;

    /// Returns the channel in the path. For a caller who does not see it, it does not exist.
    fn channel(&self) -> Option<&ChannelName>;

    /// Returns the path of a request.
    fn path(&self) -> String {
        const KEPT: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
        const SLASHES: AsciiSet = KEPT.remove(b'/');
        let path = format!("{PREFIX}{}", Self::SPEC.path);
        self.parameters().into_iter().fold(path, |path, (name, value)| {
            path.replace(&format!("{{{name}}}"), &utf8_percent_encode(&value, &KEPT).to_string())
                .replace(&format!("{{*{name}}}"), &utf8_percent_encode(&value, &SLASHES).to_string())
        })
    }
}

/// The declaration of an operation, without its types.
#[derive(Clone, Debug)]
pub struct Spec {
    /// The name of its type.
    pub name: &'static str,
    /// What it does. Further paragraphs explain more.
    pub summary: &'static str,
    /// The method of its requests.
    pub method: Method,
    /// The path below [`PREFIX`], with `{name}` for a segment and `{*name}` for the rest.
    pub path: &'static str,
    /// The group in the OpenAPI document.
    pub tag: &'static str,
    /// The name in the audit and the metrics.
    pub audit: &'static str,
    /// The sets of scopes that permit it.
    pub scopes: &'static [&'static [Scope]],
    /// The parameters of the path.
    pub parameters: &'static [PathParameter],
    /// Headers, responses other than a 200 with the answer, and problems.
    pub details: &'static [Detail],
}

impl Spec {
    /// Whether its answer is a page of a list.
    #[must_use]
    pub fn is_page(&self) -> bool {
        self.details.iter().any(|detail| matches!(detail, Detail::Page))
    }

    /// Whether the audit has a record of the operation; otherwise it has those of its calls of the library.
    #[must_use]
    pub fn is_recorded(&self) -> bool {
        !self.details.iter().any(|detail| matches!(detail, Detail::OfLibrary))
    }

    /// Whether the operation changes what is served, who may use it, or how it is reviewed.
    #[must_use]
    pub fn is_change(&self) -> bool {
        let takes = |set: &&[Scope]| set.iter().any(|scope| matches!(scope, Scope::Publish | Scope::Admin));
        self.method != Method::GET
            && (self.happens_once() || (!self.scopes.is_empty() && self.scopes.iter().all(takes)))
    }

    /// Whether a caller may send the same change again, with the same key, and gets the first answer.
    #[must_use]
    pub fn happens_once(&self) -> bool {
        let is_key = |detail: &Detail| matches!(detail, Detail::Header { name, .. } if *name == KEY_HEADER);
        self.details.iter().any(is_key)
    }
}

/// A parameter of a path.
#[derive(Clone, Copy, Debug)]
pub struct PathParameter {
    /// The name.
    pub name: &'static str,
    /// The description; empty if the name explains it.
    pub description: &'static str,
    pub(crate) schema: fn() -> TypeSchema,
}

/// A detail of an operation.
#[derive(Clone, Copy, Debug)]
pub enum Detail {
    /// A header of the request.
    Header {
        /// The name.
        name: &'static str,
        /// The meaning.
        description: &'static str,
        /// Whether requests without it are refused.
        is_required: bool,
    },
    /// A response.
    Response(Returns),
    /// The operation has no record of its own in the audit: its calls of the library have.
    OfLibrary,
    /// The answer is a page of a list: the query takes `cursor` and `limit`, and the answer has `items` and `next`.
    Page,
}

/// A response of an operation.
#[derive(Clone, Copy, Debug)]
pub struct Returns {
    /// The status.
    pub status: u16,
    /// The description; empty for the usual one of the status.
    pub description: &'static str,
    pub(crate) content: Option<Content>,
}

/// The media type of a body, and its schema.
type Content = (&'static str, fn() -> TypeSchema);

pub(crate) struct TypeSchema {
    pub(crate) place: RefOr<Schema>,
    pub(crate) components: Vec<(String, RefOr<Schema>)>,
}

/// Returns the schema of a type: a reference to a component, unless it is a plain text or number.
pub(crate) fn type_schema<T: ToSchema>() -> TypeSchema {
    let mut components = Vec::new();
    T::schemas(&mut components);
    let name = T::name();
    if name.starts_with(char::is_lowercase) || name == "String" {
        return TypeSchema { place: T::schema(), components };
    }
    components.push((name.to_string(), T::schema()));
    TypeSchema { place: Ref::from_schema_name(name).into(), components }
}

pub(crate) const JSON: &str = "application/json";

/// The body of a request that is bytes and no JSON.
#[derive(Clone, Copy, Debug)]
pub struct RawBody;

impl RawBody {
    /// The media type of these bodies.
    pub const MEDIA_TYPE: &str = "application/octet-stream";
}

impl PartialSchema for RawBody {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::Binary)))
            .into()
    }
}

impl ToSchema for RawBody {
    fn name() -> Cow<'static, str> {
        "binary".into()
    }
}

pub(crate) const fn header(name: &'static str, description: &'static str) -> Detail {
    Detail::Header { name, description, is_required: false }
}

/// A change that a caller may send again.
pub(crate) const fn once() -> Detail {
    header(
        KEY_HEADER,
        "A text of the caller's choice, such as a UUID: for 24 hours the same change with it gets the first answer",
    )
}

/// The audit has its calls of the library.
pub(crate) const fn of_library() -> Detail {
    Detail::OfLibrary
}

/// The answer is a page of a list.
pub(crate) const fn page() -> Detail {
    Detail::Page
}

pub(crate) const fn required_header(name: &'static str, description: &'static str) -> Detail {
    Detail::Header { name, description, is_required: true }
}

pub(crate) const fn returns<T: ToSchema>(status: u16, description: &'static str) -> Detail {
    content::<T>(status, JSON, description)
}

pub(crate) const fn content<T: ToSchema>(status: u16, media: &'static str, description: &'static str) -> Detail {
    Detail::Response(Returns { status, description, content: Some((media, type_schema::<T>)) })
}

pub(crate) const fn empty(status: u16, description: &'static str) -> Detail {
    Detail::Response(Returns { status, description, content: None })
}

pub(crate) const fn problem(status: u16, description: &'static str) -> Detail {
    content::<Problem>(status, "application/problem+json", description)
}

/// The query or the body of an operation that has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Nothing {}

impl IntoParams for Nothing {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        Vec::new()
    }
}

/// Returns a parameter of a path as a channel, if it is one.
pub(crate) fn as_channel(parameter: &dyn Any) -> Option<&ChannelName> {
    parameter.downcast_ref()
}

macro_rules! or_nothing {
    () => {
        $crate::Nothing
    };
    ($type:ty) => {
        $type
    };
}

macro_rules! or_empty {
    () => {
        ""
    };
    ($text:literal) => {
        $text
    };
}

/// Declares an operation: `Name { parameter: Type } = METHOD "path", "tag", audit, [[Scope]], query Q, body B => Answer,
/// [details]`.
macro_rules! operation {
    ($(#[doc = $doc:literal])+
     $name:ident { $($field:ident: $type:ty $(= $about:literal)?),* } = $method:ident $path:literal, $tag:literal,
     $audit:literal, [$([$($scope:ident),*]),*] $(, query $query:ty)? $(, body $body:ty)? => $answer:ty
     $(, [$($detail:expr),* $(,)?])?) => {
        $(#[doc = $doc])+
        #[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        pub struct $name {
            $(#[doc = concat!("The parameter `", stringify!($field), "` of the path.")] pub $field: $type,)*
        }

        impl $crate::Operation for $name {
            const SPEC: $crate::Spec = $crate::Spec {
                name: stringify!($name),
                summary: concat!($($doc, "\n"),+),
                method: http::Method::$method,
                path: $path,
                tag: $tag,
                audit: $audit,
                scopes: &[$(&[$($crate::Scope::$scope),*]),*],
                parameters: &[$($crate::operation::PathParameter {
                    name: stringify!($field),
                    description: $crate::operation::or_empty!($($about)?),
                    schema: $crate::operation::type_schema::<$type>,
                }),*],
                details: &[$($($detail),*)?],
            };
            type Query = $crate::operation::or_nothing!($($query)?);
            type Body = $crate::operation::or_nothing!($($body)?);
            type Answer = $answer;

            fn parameters(&self) -> Vec<(&'static str, String)> {
                vec![$((stringify!($field), self.$field.to_string())),*]
            }

            fn channel(&self) -> Option<&$crate::ChannelName> {
                None$(.or_else(|| $crate::operation::as_channel(&self.$field)))*
            }
        }
    };
}
pub(crate) use {operation, or_empty, or_nothing};

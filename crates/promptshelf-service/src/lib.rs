//! Everything that a caller can do with a prompt library: list, render, complete, read and follow.
//!
//! The MCP server, the command line and the web page are front ends of one [`Service`], so that a preview cannot
//! differ from the prompt that a model gets. Each operation checks access and limits, writes an audit record, and
//! returns an [`Answer`]: the result, together with the [`View`] that it was made from. A view holds the catalog and
//! the caller, so that everything else that a front end sends (cache scope, time to live, server information) comes
//! from the same catalog, even when the library is reloaded meanwhile.
//!
//! ```
//! use promptshelf_core::{CatalogHandle, Definitions, PromptDefinition, RawArguments, check};
//! use promptshelf_service::{Caller, Service};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), promptshelf_service::Rejection> {
//! let greet = PromptDefinition::template("greet", "Say hello.").description("Greets");
//! let definitions = Definitions { prompts: vec![greet.into()], ..Definitions::default() };
//! let service = Service::new(CatalogHandle::new(check(definitions, None).catalog));
//!
//! let answer = service.get(&Caller::local(), "greet", &RawArguments::new()).await?;
//! assert_eq!(answer.value().messages.len(), 1);
//! assert_eq!(answer.view().catalog().generation(), 0);
//! # Ok(())
//! # }
//! ```
//!
//! Elsewhere: HTTP headers, sockets and JSON-RPC (`promptshelf-mcp`, `promptshelf-server`), and where prompts are
//! stored (`promptshelf-source`).

mod access;
mod answer;
mod audit;
mod caller;
mod deprecation;
mod foreign;
mod functions;
mod limit;
mod observe;
mod operation;
mod operations;
mod overview;
mod permission;
pub mod pool;
mod refusals;
mod rejection;
mod renderers;
mod rollout;
mod seldom;
mod service;
mod skills;
mod slot;
mod tools;
mod usage;
mod view;

pub use answer::{Answer, ListPage, Reference, RenderedPrompt};
pub use audit::{AuditFile, AuditFileOptions, Method, OnLoss, Recorder, outcome_at_drop, timed_out};
pub use caller::{BlockedNames, Caller, Identity, Revocation, request_id};
pub use deprecation::DeprecationNotice;
pub use limit::{Limits, address_key};
pub use observe::{Observer, TraceContext};
pub use operation::Operation;
pub use overview::LibraryOverview;
pub use rejection::{Rejection, format_seconds, whole_seconds};
pub use rollout::{GroupCalls, Rollout, RolloutGroup};
pub use seldom::{Few, Seldom};
pub use service::{OpenPrompt, RemoteOutcome, Service};
pub use skills::{FolderPage, SkillPage};
pub use slot::{Slot, SlotHolder, Slots};
pub use tools::{FoundPrompts, MAX_FOUND, ToolPage};
pub use usage::{ClientTag, FormReaction, PromptCalls, UNKNOWN_PROMPT, Usage};
pub use view::{CacheScope, Present, View, Visibility};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

//! The HTTP API `/api/v1`: prompts for programs; with a store also channels, files, history, proposals, reviews, publishing, promotion, rollback, and a check of
//! changes that are not stored.
//!
//! - `programs` is the API for programs, which every server has.
//! - `routes` has all routes on one screen, and the OpenAPI document that is generated from them.
//! - `admit` checks the host, the origin and the sign-in; `operation` checks scopes and roles, applies limits and writes
//!   the audit record.
//! - `request` reads paths, queries and bodies; `etag` compares preconditions; `problem` is the answer to all errors.
//! - `folder` edits the files of a served folder instead; `analysis` is the engine of the page's editor for both, and
//!   `rename` finds references for both.
//! - `channels`, `files`, `bulk`, `history`, `proposals`, `comments`, `transfer`, `check`, `compare`, `browse`, `overview`,
//!   `permissions` and `webhooks` have the handlers; `model` and `compare_model` have bodies.
//! - `tokens` has those with which callers sign in.
//! - `impact` joins differences with figures of usage.
//! - `analyzers` keeps the analyzers of channels that are being edited.
//! - `sides` turns the two sides of a comparison into trees, and `opened` keeps the last ones.
//!
//! Authentication itself is that of every other route (`http/authenticate`). Rules of publishing are those of the store.

mod admit;
mod analysis;
mod analyzers;
mod browse;
mod bulk;
mod channels;
mod check;
mod comments;
mod compare;
mod compare_model;
mod content;
mod etag;
mod evaluations;
mod files;
mod folder;
mod history;
mod impact;
mod model;
mod opened;
mod operation;
mod overview;
mod permissions;
mod problem;
mod programs;
mod proposals;
mod rename;
mod request;
mod rollouts;
mod routes;
mod sides;
mod tokens;
mod transfer;
mod webhooks;

use std::{fmt, sync::Arc};

use promptshelf_store::Checker;

pub use folder::FolderApi;
pub(crate) use folder::routes as folder_routes;
pub(crate) use programs::ProgramState;
pub use programs::Versions;
pub(crate) use routes::{document_route, langfuse_routes, routes};

use crate::channels::StoreHandle;

/// The management API of a store, mounted at `/api/v1` by [`Options::api`](crate::http::Options::api).
///
/// With sign-in, each operation needs a scope: `library:read`, `library:propose`, `library:review`, `library:publish`,
/// `library:evaluate` or `library:admin`. Without sign-in every caller who reaches the server may do everything. The
/// author of a change is the authenticated caller.
#[derive(Clone)]
pub struct Api {
    pub(crate) store: StoreHandle,
    pub(crate) checker: Arc<dyn Checker>,
    /// The evaluations that policies can require; any if they are unknown.
    evaluations: Option<Vec<String>>,
    referred: Arc<content::Referred>,
    opened: Arc<opened::OpenedTrees>,
    edited: Arc<analyzers::EditedChannels>,
}

impl Api {
    /// Creates the API of a store, which may be away for a while. `checker` checks trees before a publish.
    #[must_use]
    pub fn new(store: StoreHandle, checker: Arc<dyn Checker>) -> Api {
        Api {
            store,
            checker,
            evaluations: None,
            referred: Arc::default(),
            opened: Arc::default(),
            edited: Arc::default(),
        }
    }

    /// Sets the evaluations of the operator's settings: a policy cannot begin to require another one.
    #[must_use]
    pub fn evaluations(mut self, names: impl IntoIterator<Item = String>) -> Api {
        self.evaluations = Some(names.into_iter().collect());
        self
    }
}

impl fmt::Debug for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Api")
    }
}

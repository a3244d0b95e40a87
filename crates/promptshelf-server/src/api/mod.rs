//! The HTTP API `/api/v1`: prompts for programs; with a store also channels, files, history, proposals, reviews,
//! publishing, promotion, rollback, and a check of changes that are not stored.
//!
//! `promptshelf-wire` declares each operation; here are the handlers, those of a store in a module for each subject.
//!
//! - `call` is the frame of all: scopes, roles, limits, channels and the audit. `admit` checks the host, the origin and the
//!   sign-in before.
//! - `local` calls the operations in this process, for the operator of the store.
//! - `routes` makes the routes and the OpenAPI document. `programs` is the API for programs, which every server has;
//!   `folder` edits the files of a served folder.
//! - `once` gives the first answer to a change that is sent again. `request` reads pages; `etag` compares preconditions;
//!   `problem` is the answer to all errors.
//! - `analysis` is the engine of the page's editor, and `analyzers` keeps the analyzers of channels that are being edited.
//! - `sides` turns the two sides of a comparison into trees, and `opened` keeps the last ones; `impact` joins differences
//!   with the metrics of usage.
//!
//! Authentication itself is that of every other route (`http/authenticate`). Rules of publishing are those of the store.

mod admit;
mod analysis;
mod analyzers;
mod browse;
mod bulk;
mod call;
mod channels;
mod check;
mod comments;
mod compare;
mod content;
mod etag;
mod evaluations;
mod files;
mod folder;
mod folder_rename;
mod history;
mod impact;
mod local;
mod once;
mod opened;
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

use promptshelf_store::{Checker, Proposal, RolloutPlan, Store, StoreError};

pub(crate) use call::{Site, Trust};
pub use folder::FolderApi;
pub(crate) use folder::routes as folder_routes;
pub use local::{LocalAnswer, LocalApi, Operator};
pub(crate) use problem::{not_recorded, timed_out};
pub(crate) use programs::ProgramState;
pub use programs::Versions;
pub use routes::{audit_methods, openapi};
pub(crate) use routes::{document_route, langfuse_routes, routes};

use self::{
    call::{Context, Operations, Part},
    problem::Problem,
};
use crate::{
    channels::{CallerChecker, StoreHandle},
    usage::UsageLog,
};

/// Adds the operations of one subject.
type Subject = fn(Operations<ApiState>) -> Operations<ApiState>;

/// The operations of a store by subject.
const SUBJECTS: &[Subject] = &[
    channels::operations,
    permissions::operations,
    overview::operations,
    history::operations,
    files::operations,
    bulk::operations,
    browse::operations,
    proposals::operations,
    comments::operations,
    evaluations::operations,
    transfer::operations,
    rollouts::operations,
    webhooks::operations,
    tokens::operations,
    check::operations,
    compare::operations,
    analysis::operations,
    rename::operations,
];

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
    unpublished_bytes: u64,
    rollout: RolloutPlan,
    referred: Arc<content::Referred>,
    opened: Arc<opened::OpenedTrees>,
    edited: Arc<analyzers::EditedChannels>,
}

impl Api {
    /// What a caller may store in a day without publishing it, unless [`unpublished_bytes`](Api::unpublished_bytes) is
    /// called.
    pub const UNPUBLISHED_BYTES: u64 = 256 << 20;

    /// Creates the API of a store, which may be away for a while. `checker` checks trees before a publish.
    #[must_use]
    pub fn new(store: StoreHandle, checker: Arc<dyn Checker>) -> Api {
        Api {
            store,
            checker,
            evaluations: None,
            unpublished_bytes: Api::UNPUBLISHED_BYTES,
            rollout: RolloutPlan::default(),
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

    /// Sets what a new rollout has that nobody decides otherwise.
    #[must_use]
    pub fn rollout(mut self, defaults: RolloutPlan) -> Api {
        self.rollout = defaults;
        self
    }

    /// Sets the bytes that a caller may store in a day, in uploads and open proposals, without publishing them.
    #[must_use]
    pub fn unpublished_bytes(mut self, bytes: u64) -> Api {
        self.unpublished_bytes = bytes;
        self
    }
}

impl fmt::Debug for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Api")
    }
}

#[derive(Clone)]
struct ApiState {
    api: Api,
    site: Site,
    usage: Option<UsageLog>,
}

impl Part for ApiState {
    fn site(&self) -> &Site {
        &self.site
    }

    fn store(&self) -> Option<&StoreHandle> {
        Some(&self.api.store)
    }
}

impl Context<ApiState> {
    /// Returns the store, and connects if it was away.
    async fn store(&self) -> Result<Store, Problem> {
        Ok(self.state.api.store.get().await?.with_quota(self.state.api.unpublished_bytes))
    }

    fn rollout_defaults(&self) -> RolloutPlan {
        self.state.api.rollout
    }

    fn checker(&self) -> Arc<dyn Checker> {
        Arc::new(CallerChecker { checker: Arc::clone(&self.state.api.checker), caller: self.caller().clone() })
    }

    /// Returns a proposal. One for a channel that is hidden from the caller does not exist.
    async fn proposal(&self, id: u64) -> Result<Proposal, Problem> {
        let proposal = self.store().await?.proposal(id).await?;
        if !self.sees(&proposal.channel) {
            return Err(StoreError::NotFound { what: format!("proposal {id}") }.into());
        }
        self.note("channel", proposal.channel.as_str());
        Ok(self.shown(proposal))
    }

    /// Leaves out the source of a promotion if that channel is hidden from the caller.
    fn shown(&self, mut proposal: Proposal) -> Proposal {
        proposal.source = proposal.source.filter(|source| self.sees(&source.channel));
        proposal
    }
}

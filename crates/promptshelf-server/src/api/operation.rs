//! Scopes, roles, limits and the audit record of an operation.

use std::{collections::HashMap, sync::Arc, time::Instant};

use axum::{
    Extension,
    response::{IntoResponse, Response},
};
use promptshelf_core::Access;
use promptshelf_mcp::HttpService;
use promptshelf_service::{Caller, Service};
use promptshelf_store::{Actor, ChannelName, Checker, PolicyRoles, Proposal, Reason, Store, StoreError};

use super::{Api, problem::Problem};
use crate::{channels::CallerChecker, usage::UsageLog};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    Read,
    Propose,
    Review,
    Publish,
    Evaluate,
    /// Policies, new channels, and publishing without the policy.
    Admin,
}

impl Scope {
    pub(super) fn as_str(self) -> &'static str {
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

#[derive(Clone)]
pub(super) struct ApiState {
    pub(super) api: Api,
    pub(super) service: Service,
    pub(super) endpoint: HttpService,
    /// Whether callers sign in. Otherwise every caller has all scopes and roles.
    pub(super) has_sign_in: bool,
    pub(super) usage: Option<UsageLog>,
    pub(super) channel_access: Arc<HashMap<String, Arc<Access>>>,
}

pub(super) type ApiCaller = Extension<Caller>;

#[derive(Debug)]
pub(super) struct Operation {
    caller: Caller,
    has_sign_in: bool,
    channel_access: Arc<HashMap<String, Arc<Access>>>,
    record: promptshelf_service::Operation,
    measured: Option<Measured>,
}

/// A request whose outcome and duration are reported to the observer at its end, for the metrics.
#[derive(Debug)]
pub(super) struct Measured {
    service: Service,
    method: &'static str,
    outcome: &'static str,
    started: Instant,
}

impl Measured {
    /// Starts the measurement, if there is an observer. `method` is one of a closed set.
    pub(super) fn start(service: &Service, method: &'static str) -> Option<Measured> {
        service.observer()?;
        Some(Measured { service: service.clone(), method, outcome: "cancelled", started: Instant::now() })
    }

    pub(super) fn end(mut self, outcome: &'static str) {
        self.outcome = outcome;
    }
}

impl Drop for Measured {
    fn drop(&mut self) {
        if let Some(observer) = self.service.observer() {
            observer.answered(self.method, self.outcome, self.started.elapsed());
        }
    }
}

impl ApiState {
    /// Returns the store, and connects if it was away.
    pub(super) async fn store(&self) -> Result<Store, Problem> {
        Ok(self.api.store.get().await?)
    }

    pub(super) fn checker(&self, operation: &Operation) -> Arc<dyn Checker> {
        let (checker, caller) = (Arc::clone(&self.api.checker), operation.caller.clone());
        Arc::new(CallerChecker { checker, caller })
    }

    /// Begins an operation, whose name in the audit is `method`.
    ///
    /// # Errors
    ///
    /// Those of limits, and 403 for a caller who lacks one of the scopes.
    pub(super) fn begin(&self, caller: Caller, method: &'static str, scopes: &[Scope]) -> Result<Operation, Problem> {
        let operation = Operation::begin(&self.service, caller, self.has_sign_in, method, scopes)?;
        Ok(Operation { channel_access: Arc::clone(&self.channel_access), ..operation })
    }
}

impl ApiState {
    /// Begins an operation that any of several sets of scopes permits.
    ///
    /// # Errors
    ///
    /// As [`begin`](ApiState::begin) with the first set, for a caller who has none of them.
    pub(super) fn begin_with_one_of(
        &self,
        caller: Caller,
        method: &'static str,
        sets: &[&[Scope]],
    ) -> Result<Operation, Problem> {
        let has = |scope: &Scope| {
            !self.has_sign_in
                || caller.identity().is_some_and(|identity| identity.scopes.iter().any(|own| own == scope.as_str()))
        };
        let first = sets.first().copied().unwrap_or_default();
        let scopes = sets.iter().find(|set| set.iter().all(has)).copied().unwrap_or(first);
        self.begin(caller, method, scopes)
    }

    /// Begins an operation on a channel.
    ///
    /// # Errors
    ///
    /// Those of [`begin`](ApiState::begin), and 404 for a channel that is hidden from the caller.
    pub(super) fn begin_on(
        &self,
        channel: &ChannelName,
        caller: Caller,
        method: &'static str,
        scopes: &[Scope],
    ) -> Result<Operation, Problem> {
        let mut operation = self.begin(caller, method, scopes)?;
        operation.note("channel", channel.as_str());
        match operation.require_channel(channel) {
            Ok(()) => Ok(operation),
            Err(problem) => Err(operation.refused(problem)),
        }
    }

    /// Returns a proposal. One for a channel that is hidden from the caller does not exist.
    pub(super) async fn proposal(&self, operation: &mut Operation, id: u64) -> Result<Proposal, Problem> {
        let proposal = self.store().await?.proposal(id).await?;
        if operation.require_channel(&proposal.channel).is_err() {
            return Err(StoreError::NotFound { what: format!("proposal {id}") }.into());
        }
        operation.note("channel", proposal.channel.as_str());
        Ok(proposal)
    }
}

impl Operation {
    /// Begins an operation that concerns no channel.
    ///
    /// # Errors
    ///
    /// Those of limits, and 403 for a caller who lacks one of the scopes.
    pub(super) fn begin(
        service: &Service,
        caller: Caller,
        has_sign_in: bool,
        method: &'static str,
        scopes: &[Scope],
    ) -> Result<Operation, Problem> {
        let measured = Measured::start(service, method);
        let record = match service.operation(&caller, method) {
            Ok(record) => record,
            Err(rejection) => {
                let problem = Problem::from(rejection);
                measured.into_iter().for_each(|measured| measured.end(problem.name()));
                return Err(problem);
            }
        };
        let operation = Operation { caller, has_sign_in, channel_access: Arc::default(), record, measured };
        match operation.require(scopes) {
            Ok(()) => Ok(operation),
            Err(problem) => Err(operation.refused(problem)),
        }
    }

    pub(super) fn sees(&self, channel: &ChannelName) -> bool {
        self.channel_access.get(channel.as_str()).is_none_or(|access| self.caller.meets(access))
    }

    /// Refuses a hidden channel like one that does not exist.
    pub(super) fn require_channel(&self, channel: &ChannelName) -> Result<(), Problem> {
        if self.sees(channel) {
            return Ok(());
        }
        Err(StoreError::NotFound { what: format!("the channel `{channel}`") }.into())
    }

    pub(super) fn has_sign_in(&self) -> bool {
        self.has_sign_in
    }

    pub(super) fn has(&self, scope: Scope) -> bool {
        self.has_word(scope.as_str())
    }

    /// Returns whether the caller has a scope, which need not be one of the API.
    pub(super) fn has_word(&self, scope: &str) -> bool {
        !self.has_sign_in
            || self.caller.identity().is_some_and(|identity| identity.scopes.iter().any(|own| own == scope))
    }

    pub(super) fn require(&self, scopes: &[Scope]) -> Result<(), Problem> {
        if scopes.iter().all(|scope| self.has(*scope)) {
            return Ok(());
        }
        Err(Problem::insufficient_scope(scopes.iter().map(|scope| scope.as_str().to_owned()).collect()))
    }

    /// Returns whether the caller has one of the roles; any caller has if the list is empty.
    pub(super) fn has_role(&self, roles: &[String]) -> bool {
        !self.has_sign_in
            || roles.is_empty()
            || self.caller.identity().is_some_and(|identity| identity.roles.iter().any(|own| roles.contains(own)))
    }

    /// Checks that the caller has one of the roles that the policy of a channel names for `what`.
    pub(super) fn require_role(&self, roles: &[String], what: &str) -> Result<(), Problem> {
        self.missing_role(roles, what).map_or(Ok(()), |reason| Err(Problem::insufficient_role(reason)))
    }

    /// Returns the reason against a caller without a role.
    pub(super) fn missing_role(&self, roles: &[String], what: &str) -> Option<Reason> {
        if self.has_role(roles) {
            return None;
        }
        let roles = roles.join(", ");
        let text = format!("The policy of the channel lets only these roles {what}: {roles}");
        Some(Reason::new("insufficient-role", text).with("roles", roles))
    }

    pub(super) fn caller(&self) -> &Caller {
        &self.caller
    }

    pub(super) fn name(&self) -> &str {
        self.caller.name()
    }

    /// The authenticated caller as an actor who publishes nothing.
    pub(super) fn actor(&self) -> Actor {
        Actor { name: self.name().to_owned(), may_publish: false, may_administer: false }
    }

    /// The authenticated caller as an actor, with the rights that scopes and the roles of a policy give.
    pub(super) fn actor_under(&self, roles: &PolicyRoles) -> Actor {
        Actor {
            may_publish: self.has(Scope::Publish) && self.has_role(&roles.publish),
            may_administer: self.has(Scope::Admin) && self.has_role(&roles.administer),
            ..self.actor()
        }
    }

    pub(super) fn note(&mut self, key: &'static str, text: &str) {
        self.record.note(key, text);
    }

    pub(super) fn note_number(&mut self, key: &'static str, number: u64) {
        self.record.note_number(key, number);
    }

    /// Ends the operation: writes the audit record and returns the response.
    pub(super) fn end(self, answer: Result<Response, Problem>) -> Response {
        self.finish(answer.as_ref().err().map_or("ok", Problem::name));
        answer.into_response()
    }

    fn refused(self, problem: Problem) -> Problem {
        self.finish(problem.name());
        problem
    }

    fn finish(self, outcome: &'static str) {
        self.record.end(outcome);
        self.measured.into_iter().for_each(|measured| measured.end(outcome));
    }
}

//! The versions of prompts to evaluate, and the cases that their tests make.

use std::path::Path;

use promptshelf_author::{add_samples, testing::TestSuite};
use promptshelf_core::{RawArguments, Variables, nearest};
use promptshelf_mcp::messages_json;
use promptshelf_server::Library;
use promptshelf_service::Caller;
use promptshelf_source::{Files, MemoryFile, MemoryTree};
use promptshelf_store::{ChannelName, Digest, ProposalState, StoreError};
use promptshelf_wire::op;
use serde_json::{Value, json};

use super::super::{access::Place, connection::Connection, tree_checker::checker_with};
use crate::{
    exit::{Exit, Failure},
    library::granted_roots,
};

/// The name of the case of a prompt without tests.
const SAMPLE: &str = "sample";

pub(super) struct Version {
    pub(super) name: String,
    /// The number; `None` if the version is not published and its number may be another one.
    pub(super) number: Option<u64>,
    pub(super) digest: Digest,
}

pub(super) struct Case {
    pub(super) name: String,
    pub(super) arguments: Variables,
    /// As `prompts/get` returns them.
    pub(super) messages: Value,
}

impl Case {
    pub(super) fn to_json(&self) -> Value {
        json!({ "name": self.name, "arguments": self.arguments, "messages": self.messages })
    }
}

pub(super) struct Versions {
    pub(super) channel: ChannelName,
    library: Library,
    versions: Vec<Version>,
    of: String,
}

impl Versions {
    pub(super) async fn of_channel(
        store: &Connection,
        place: &Place,
        config: Option<&Path>,
    ) -> Result<Versions, Failure> {
        let channel = place.channel().clone();
        let (head, tree) = place.waiting(store.tree(&channel, None)).await?;
        let served =
            store.get(&op::GetServed { channel: channel.clone(), number: head.revision }).await?.prompts.into_iter();
        let version = served.map(|it| Version { name: it.name, number: Some(it.version), digest: it.digest });
        let (versions, of) = (version.collect(), format!("the channel `{channel}`"));
        Ok(Versions { library: open(&tree, config)?, channel, versions, of })
    }

    /// Returns the versions that an open proposal adds or changes, on top of the newest revision.
    pub(super) async fn of_proposal(
        store: &Connection,
        place: &Place,
        id: u64,
        config: Option<&Path>,
    ) -> Result<Versions, Failure> {
        let proposal = place.waiting(store.get(&op::GetProposal { id })).await?;
        if proposal.state != ProposalState::Open {
            let state = proposal.state.as_str();
            return Err(StoreError::State { reason: format!("proposal {id} is not open: it is {state}") }.into());
        }
        let channel = proposal.channel;
        let (head, tree) = store.tree(&channel, None).await?;
        let mut changes = Vec::new();
        let mut conflicts = Vec::new();
        for (path, before, after) in store.proposal_contents(id).await? {
            let present = tree.get(&path).map(MemoryFile::bytes);
            if present != before.as_deref() && present != after.as_deref() {
                conflicts.push(path.clone());
            }
            changes.push((path, after.map(MemoryFile::new)));
        }
        if !conflicts.is_empty() {
            let failure = Failure::from(StoreError::Conflict { paths: conflicts, revision: head.revision });
            return Err(failure.help("the author has to change the proposal: `publish FOLDER --proposal NUMBER`"));
        }
        let changed = tree.with(changes.iter().map(|(path, file)| (path.as_str(), file.clone())));
        let report = tokio::task::block_in_place(|| checker_with(config).check(&changed, false));
        let served = store.get(&op::GetServed { channel: channel.clone(), number: head.revision }).await?.prompts;
        let is_served = |name: &str, digest| served.iter().any(|it| it.name == name && it.digest == digest);
        let known = store.get(&op::ProposalEvaluations { id }).await?.prompts;
        let number = |name: &str, digest| known.iter().find(|it| it.name == name && it.after == digest);
        let changed_prompts = report.prompts.iter().filter(|prompt| !is_served(&prompt.name, prompt.digest));
        let version = changed_prompts.map(|prompt| Version {
            name: prompt.name.clone(),
            // A version gets its number when it is published.
            number: number(&prompt.name, prompt.digest).map(|it| it.version).filter(|number| *number > 0),
            digest: prompt.digest,
        });
        let mut versions: Vec<Version> = version.collect();
        versions.sort_by(|a, b| a.name.cmp(&b.name));
        let of = format!("proposal {id}");
        Ok(Versions { library: open(&changed, config)?, channel, versions, of })
    }

    pub(super) fn selected(&self, prompt: Option<&str>) -> Result<Vec<&Version>, Failure> {
        let Some(name) = prompt else { return Ok(self.versions.iter().collect()) };
        if let Some(version) = self.versions.iter().find(|version| version.name == name) {
            return Ok(vec![version]);
        }
        let failure = Failure::new(Exit::NotFound, format!("{} has no new or changed prompt `{name}`", self.of));
        let failure = if self.of.starts_with("the channel") {
            Failure::new(Exit::NotFound, format!("{} has no prompt `{name}`", self.of))
        } else {
            failure
        };
        let names = self.versions.iter().map(|version| version.name.as_str());
        Err(match nearest(name, names) {
            Some(near) => failure.help(format!("did you mean `{near}`?")),
            None => failure,
        })
    }

    /// Returns the cases of a version: its tests that expect messages, or sample arguments.
    pub(super) async fn cases(&self, version: &Version) -> Result<Vec<Case>, String> {
        let catalog = self.library.catalog();
        let Some(prompt) = catalog.find(&version.name) else {
            return Err(format!("the prompt has errors; `promptshelf check` lists them in a copy of {}", self.of));
        };
        let suite = TestSuite::of_tree(&catalog, MemoryTree::default());
        let tests = suite.cases().filter(|test| test.prompt().name() == prompt.name());
        let mut arguments: Vec<(String, Variables)> =
            tests.filter_map(|test| Some((test.name(), test.rendered_arguments()?.clone()))).collect();
        if arguments.is_empty() {
            let mut values = Variables::new();
            add_samples(prompt, &mut values);
            arguments.push((SAMPLE.to_owned(), values));
        }
        let mut cases = Vec::with_capacity(arguments.len());
        for (name, arguments) in arguments {
            let values = RawArguments::from(&arguments);
            let answer = self.library.service().get(&Caller::local(), &version.name, &values).await;
            let answer =
                answer.map_err(|rejection| format!("the case `{name}` cannot be rendered: {}", rejection.lines()))?;
            let messages = messages_json(&answer.into_value().messages);
            let messages = serde_json::from_str(messages.get()).map_err(|error| error.to_string())?;
            cases.push(Case { name, arguments, messages });
        }
        Ok(cases)
    }
}

fn open(tree: &MemoryTree, config: Option<&Path>) -> Result<Library, Failure> {
    let source = Files::tree(tree.clone());
    source.grant_roots(granted_roots(config));
    Ok(tokio::task::block_in_place(|| Library::builder().source(source).build())?)
}

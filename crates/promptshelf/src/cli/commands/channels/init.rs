//! `promptshelf init`: a library with examples, or a store of channels.

use std::path::{Path, PathBuf};

use clap::Args;
use http::header;
use promptshelf_source::{MemoryTree, read_served_tree};
use promptshelf_store::{ChannelName, Policy, Store, StoreError, StoreUrl};
use promptshelf_wire::{PolicyBody, op};
use serde_json::json;

use super::{
    access::{self, Place, StorePlace, local_name, waiting},
    connection::{CallError, Connection, LocalCaller},
    publish,
    report::{self, LeftOut},
    transfer::Publication,
};
use crate::{
    args::place::{ActorArguments, StoreText},
    command_line,
    commands::{init_library, private_files},
    exit::{Exit, Failure},
    source::HERE,
    working_copy::{Listing, WorkingCopy, changes, listing},
};

const INIT_EXAMPLES: &str = "\
A new library has three prompts, a partial that they share, a test and its
settings. Files that are there already stay as they are.

The SQLite file of a store is created; a PostgreSQL database has to exist. A
password can be left out of the URL: PGPASSWORD and the password file are used
too.

Examples:
  promptshelf init
  promptshelf init my-prompts
  promptshelf init sqlite:team.db --from prompts
  promptshelf serve sqlite:team.db
  PROMPTSHELF_STORE=postgres://prompts@db.example.com/prompts promptshelf init";

#[derive(Debug, Args)]
#[command(after_help = INIT_EXAMPLES)]
pub(crate) struct InitArguments {
    /// The folder of a new library, or a store: `sqlite:PATH` or `postgres://…`, with `#CHANNEL` for another channel than
    /// production [default: the current folder]
    #[arg(value_name = "LIBRARY", env = "PROMPTSHELF_STORE", hide_env_values = true)]
    pub(crate) place: Option<StoreText>,

    /// Publish this folder as the first revision of the store
    #[arg(long, value_name = "FOLDER")]
    pub(crate) from: Option<PathBuf>,

    /// Accept this file although it looks like a key, a token, a database or settings of an operator; repeatable
    #[arg(long, value_name = "FILE", requires = "from")]
    pub(crate) include: Vec<String>,

    /// A description of the first revision
    #[arg(short = 'm', long, value_name = "TEXT", default_value = "Initial import", requires = "from")]
    pub(crate) message: String,

    #[command(flatten)]
    pub(crate) actor: ActorArguments,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) async fn run(arguments: &InitArguments) -> Result<(), Failure> {
    let word = arguments.place.as_ref().map(|place| place.0.as_str());
    // A scheme that is no store's is reported as one.
    let store = arguments.place.as_ref().filter(|place| StoreUrl::is_meant(&place.0) || place.0.contains("://"));
    let Some(store) = store else {
        if arguments.from.is_some() {
            return Err(Failure::new(Exit::Usage, "`--from` publishes a folder to a store, and no store is named")
                .help("name it: `promptshelf init sqlite:team.db --from FOLDER`"));
        }
        return init_library::run(Path::new(word.unwrap_or(HERE)), arguments.json);
    };
    let place = StorePlace::unpinned(store)?;
    // A mistake in the folder is found before the store is created.
    let tree = match &arguments.from {
        Some(folder) => {
            let read = read_served_tree(folder).map_err(|error| Failure::new(Exit::Library, error.to_string()))?;
            Some((read.0, LeftOut::of(&read.1)))
        }
        None => None,
    };
    if let Some((tree, _)) = &tree {
        private_files::refuse(tree.iter().map(|(path, file)| (path, file.bytes())), &arguments.include)?;
    }
    let caller = LocalCaller { name: Some(local_name(&arguments.actor)?), ..LocalCaller::default() };
    let url = &place.address.store;
    let create = async || waiting(url, Store::create(url)).await.map_err(|error| place.opening(error));
    let store = Connection::Store(Box::new(caller.open(create).await?));
    let outcome = fill(arguments, &place, &store, tree.as_ref()).await;
    store.close().await;
    outcome
}

async fn fill(
    arguments: &InitArguments,
    place: &StorePlace,
    store: &Connection,
    read: Option<&(MemoryTree, LeftOut)>,
) -> Result<(), Failure> {
    let channel = &place.address.channel;
    match store.get(&op::GetChannel { channel: channel.clone() }).await {
        Ok(_) => {}
        Err(CallError::Store(StoreError::NotFound { .. })) => {
            let body = PolicyBody::new(Policy::default(), String::new());
            let condition = (header::IF_NONE_MATCH, "*".to_owned());
            match store.send_if(&op::PutPolicy { channel: channel.clone() }, &body, Some(condition)).await {
                // Somebody else has made it meanwhile.
                Ok(_) | Err(CallError::Store(StoreError::Changed { .. })) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(error) => return Err(error.into()),
    }
    let (head, current) = access::current(store, channel).await?.unzip();
    let revision = head.map_or(0, |head| head.revision);
    let Some(((tree, left_out), folder)) = read.zip(arguments.from.as_ref()) else {
        if arguments.json {
            return report::print_json(&json!({ "store": store.name(), "channel": channel, "revision": revision }));
        }
        report::print_line(&format!("the store {} is ready; {channel} is at revision {revision}", store.name()))?;
        let production = ChannelName::production();
        let at = if *channel == production { String::new() } else { format!(" --channel {channel}") };
        return report::print_line(&format!("next: {}", place.command(&format!("publish FOLDER{at} -m TEXT"))));
    };
    let current = current.unwrap_or_default();
    if tree.is_empty() && current.is_empty() {
        let message = format!("the folder {} has no files of a library, so nothing was published", folder.display());
        return Err(Failure::new(Exit::Library, message).help("the store is ready, and empty; see `promptshelf new`"));
    }
    if revision > 0 && listing(tree) != current {
        let message =
            format!("{channel} is at revision {revision} already, and its files differ from those of the folder");
        let publish = place.command(&format!("publish {} -m TEXT", command_line::path(folder)));
        return Err(Failure::new(Exit::Conflict, message).help(format!("{publish} publishes them")));
    }
    let changes = changes(tree, &Listing::new(), &current);
    if changes.is_empty() {
        if arguments.json {
            return report::print_json(&json!({ "store": store.name(), "channel": channel, "revision": revision }));
        }
        return report::print_line(&format!("no changes: {channel} of {} is at revision {revision}", store.name()));
    }
    let publication = Publication {
        channel: channel.clone(),
        base: revision,
        message: arguments.message.clone(),
        proposal: None,
        emergency: None,
        changes,
        dry_run: false,
    };
    let published = match waiting(&place.address.store, store.publish(publication)).await {
        // Somebody else has filled it meanwhile: the answer is the one to whoever comes later.
        Err(CallError::Store(StoreError::Conflict { .. } | StoreError::Unchanged { .. })) if revision == 0 => {
            return Box::pin(fill(arguments, place, store, read)).await;
        }
        published => published,
    };
    let published = published.map_err(|error| {
        let folder = command_line::path(folder);
        Failure::from(error).help(format!("the store is ready, and empty; see `promptshelf check {folder}`"))
    })?;
    let copy = WorkingCopy::open(folder)?;
    if copy.base(channel)?.is_none() {
        let revision = published.proposal.revision.unwrap_or(revision);
        let base = publish::base_at(store, channel.clone(), revision, listing(tree)).await?;
        publish::remember(&copy, None, &base);
    }
    if arguments.json {
        let mut outcome = report::outcome(&published);
        outcome["store"] = json!(store.name());
        left_out.add_to(&mut outcome);
        report::print_json(&outcome)?;
        return report::verdict(&published, &Place::from(place.clone()));
    }
    left_out.print()?;
    report::print_outcome(&published, &Place::from(place.clone()), false)?;
    report::verdict(&published, &Place::from(place.clone()))?;
    report::print_line(&format!("serve: {}", place.serve()))
}

//! The commands for channels: versions, review, promotion and rollback of libraries in a store.

mod access;
mod connection;
mod evaluate;
mod history;
mod impact;
mod publish;
mod pull;
mod rendered;
mod report;
mod review;
mod rollout;
mod transfer;
mod usage;

use std::{
    collections::BTreeSet,
    io::{self, IsTerminal, Write},
    path::{Path, PathBuf},
    time::{Duration, Instant, SystemTime},
};

use access::{Opening, Place, StorePlace, local_name, waiting};
use anstyle::{AnsiColor, Style};
use connection::{CallError, Connection, LocalCaller};
use evaluate::configured;
use http::header;
use impact::CountedEffects;
use jiff::Timestamp;
use promptshelf_core::{Diagnostic, nearest};
use promptshelf_server::channels::LibraryChecker;
use promptshelf_service::Method;
use promptshelf_source::{MemoryTree, read_served_tree};
use promptshelf_store::{
    ChannelInfo, ChannelName, CheckLevel, Digest, Misfit, NewToken, Policy, Proposal, Prunable, Published, Store,
    StoreCopy, StoreError, StoreUrl, TokenInfo, VerifiedChannel,
};
use promptshelf_wire::{CreatedToken, PolicyAnswer, PolicyBody, PromoteBody, RollbackBody, op};
use report::LeftOut;
use serde_json::{Value, json};
use similar::TextDiff;
use transfer::Publication;

use crate::{
    args::{
        TokenCreateArguments, TokenListArguments, TokenRevokeArguments,
        channels::{
            BackupArguments, ChannelsCommand, CopyArguments, DiffArguments, InitArguments, MaintenanceArguments,
            MigrateArguments, PolicyArguments, PolicyChange, PromoteArguments, PruneArguments, RestoreArguments,
            RollbackArguments, StoreCommand, Verb,
        },
    },
    command_line,
    commands::{init_library, private_files},
    exit::{Exit, Failure},
    library::granted_roots,
    output::{Output, agrees, count, list_json, note, pretty_json},
    settings::Day,
    source::HERE,
    terminal,
    working_copy::{Listing, WorkingCopy, changes, listing, named},
};

pub(crate) use self::{
    access::check_channel,
    connection::{refresh_remote_source, remote_sources},
};

pub(crate) async fn run(command: &ChannelsCommand) -> Result<(), Failure> {
    match command {
        ChannelsCommand::Init(arguments) => run_init(arguments).await,
        ChannelsCommand::Publish(arguments) => publish::run(arguments).await,
        ChannelsCommand::Pull(arguments) => pull::run(arguments).await,
        ChannelsCommand::History(arguments) => history::run(arguments).await,
        ChannelsCommand::Diff(arguments) => run_diff(arguments).await,
        ChannelsCommand::Proposals(arguments) => review::proposals(arguments).await,
        ChannelsCommand::Approve(arguments) => review::approve(arguments).await,
        ChannelsCommand::Reject(arguments) => review::reject(arguments).await,
        ChannelsCommand::Promote(arguments) => promote(arguments).await,
        ChannelsCommand::Rollback(arguments) => rollback_promote(arguments).await,
        ChannelsCommand::Policy(arguments) => run_policy(arguments).await,
        ChannelsCommand::Evaluate(arguments) => evaluate::run(arguments).await,
        ChannelsCommand::Rollout(command) => rollout::run(command).await,
        ChannelsCommand::Usage(arguments) => usage::run(arguments).await,
        ChannelsCommand::Store(StoreCommand::Migrate(arguments)) => migrate_maintain(arguments).await,
        ChannelsCommand::Store(StoreCommand::Gc(arguments)) => gc_maintain(arguments).await,
        ChannelsCommand::Store(StoreCommand::Verify(arguments)) => verify_maintain(arguments).await,
        ChannelsCommand::Store(StoreCommand::NewEpoch(arguments)) => new_epoch(arguments).await,
        ChannelsCommand::Store(StoreCommand::Prune(arguments)) => prune_maintain(arguments).await,
        ChannelsCommand::Store(StoreCommand::Copy(arguments)) => copy_store(arguments).await,
        ChannelsCommand::Store(StoreCommand::Backup(arguments)) => back_up(arguments).await,
        ChannelsCommand::Store(StoreCommand::Restore(arguments)) => restore(arguments).await,
    }
}

fn checker_with(config: Option<&Path>) -> LibraryChecker {
    LibraryChecker::new().grant_roots(granted_roots(config))
}

/// Shows the number of transferred files on a terminal, once it takes long.
struct FileProgress {
    start: Option<Instant>,
    done: usize,
    all: usize,
    is_shown: bool,
}

impl FileProgress {
    fn new(all: usize) -> FileProgress {
        let start = io::stderr().is_terminal().then(Instant::now);
        FileProgress { start, done: 0, all, is_shown: false }
    }

    fn advance(&mut self, files: usize) {
        const DELAY: Duration = Duration::from_secs(1);
        self.done += files;
        if self.start.is_some_and(|start| start.elapsed() > DELAY) {
            self.is_shown = true;
            write!(io::stderr(), "\r\x1b[K{} of {}", self.done, count(self.all, "file")).ok();
        }
    }
}

impl Drop for FileProgress {
    fn drop(&mut self) {
        if self.is_shown {
            write!(io::stderr(), "\r\x1b[K").ok();
        }
    }
}

pub(crate) async fn migrate_maintain(arguments: &MigrateArguments) -> Result<(), Failure> {
    let place = StorePlace::of(&arguments.words.library)?;
    let url = &place.address.store;
    let (present, newest) = waiting(url, Store::schema(url)).await.map_err(|error| place.opening(error))?;
    let is_current = present >= newest;
    if !arguments.check && !is_current {
        place.changing(Method::StoreMigrate, async |_| Ok(())).await?;
    }
    if arguments.json {
        let schema = if arguments.check { present } else { present.max(newest) };
        report::print_json(&json!({ "schema": schema, "newest": newest }))?;
    } else {
        report::print_line(&match (is_current, arguments.check) {
            (true, _) if present > newest => format!(
                "the schema of {url} is newer than this program: version {present} of {newest}; both can use it, and a newer \
                 release has what was added"
            ),
            (true, _) => format!("the schema of {url} is up to date: version {present}"),
            (false, true) => format!("the schema of {url} is out of date: version {present} of {newest}"),
            (false, false) => format!("the schema of {url} was version {present}, and is version {newest} now"),
        })?;
    }
    if arguments.check && !is_current { Err(Failure::reported(Exit::Failed)) } else { Ok(()) }
}

pub(crate) async fn gc_maintain(arguments: &MaintenanceArguments) -> Result<(), Failure> {
    let place = StorePlace::of(&arguments.words.library)?;
    let (contents, bytes) =
        place.changing(Method::StoreGc, async |store| Ok(waiting(store.url(), store.gc()).await?)).await?;
    if arguments.json {
        return report::print_json(&json!({ "contents": contents, "bytes": bytes }));
    }
    report::print_line(&format!("removed {}, {bytes} bytes", counted(contents, "content")))
}

pub(crate) async fn verify_maintain(arguments: &MaintenanceArguments) -> Result<(), Failure> {
    let place = StorePlace::of(&arguments.words.library)?;
    let channels =
        place.reading(Method::StoreVerify, async |store| Ok(waiting(store.url(), store.verify()).await?)).await?;
    if arguments.json {
        report::print_json(&list_json(channels.iter().map(|channel| json!(channel))))?;
    } else {
        print_verified(&channels)?;
    }
    let fits = channels.iter().all(|channel| channel.misfit.is_none());
    if fits { Ok(()) } else { Err(Failure::reported(Exit::Failed)) }
}

fn print_verified(channels: &[VerifiedChannel]) -> Result<(), Failure> {
    for VerifiedChannel { name, revision, digest, misfit } in channels {
        let digest = digest.map_or_else(|| "no digest".to_owned(), |digest| digest.short());
        report::print_line(&match misfit {
            Some(Misfit { revision, reason }) => format!("{name}: revision {revision} does not fit: {reason}"),
            None if *revision == 0 => format!("{name}: empty"),
            None => format!("{name}: revision {revision} ({digest}) and all before it fit"),
        })?;
    }
    Ok(())
}

async fn copy_store(arguments: &CopyArguments) -> Result<(), Failure> {
    let (from, to) = (StorePlace::of(&arguments.words.library)?, StorePlace::unpinned(&arguments.to)?);
    let source = access::open(&from.address, Opening::Read).await?;
    let copied = to.filling(Method::StoreCopy, async |target| {
        let copied = waiting(target.url(), source.copy_to(target)).await;
        copied.map_err(|error| filled(error, "name an empty database, or a file that does not exist"))
    });
    let copied = copied.await;
    source.close().await;
    print_copy(&copied?, arguments.json, |copied| format!("copied {copied} to {}", to.address.store))
}

async fn back_up(arguments: &BackupArguments) -> Result<(), Failure> {
    let (place, file) = (StorePlace::of(&arguments.words.library)?, Path::new(arguments.words.name()));
    let copied =
        place.reading(Method::StoreBackup, async |store| Ok(waiting(store.url(), store.back_up(file)).await?)).await?;
    print_copy(&copied, arguments.json, |copied| format!("wrote {copied} to {}", file.display()))
}

async fn restore(arguments: &RestoreArguments) -> Result<(), Failure> {
    let (place, file) = (StorePlace::of(&arguments.words.library)?, Path::new(arguments.words.name()));
    let restored = place.filling(Method::StoreRestore, async |store| {
        let RestoreArguments { replace, other_store, .. } = *arguments;
        let restored = waiting(store.url(), store.restore(file, replace, other_store)).await;
        restored.map_err(|error| {
            let is_of_other =
                matches!(&error, StoreError::State { reason } if reason.contains("a backup of another store"));
            let failure = filled(error, "`--replace` replaces everything that it has");
            if is_of_other {
                failure.help("`--replace --other-store` replaces all of it nevertheless")
            } else {
                failure
            }
        })
    });
    let restored = restored.await?;
    let at = restored.backup_of.map(|at| format!(" of {at:.0}")).unwrap_or_default();
    print_copy(&restored, arguments.json, |copied| {
        format!("restored {copied}{at}; every replica reads everything again (epoch {})", restored.epoch)
    })
}

/// The error of a store that is not empty, with a help.
fn filled(error: StoreError, help: &str) -> Failure {
    let has_data = matches!(&error, StoreError::State { reason } if reason.contains("has data already"));
    let failure = Failure::from(error);
    if has_data { failure.help(help) } else { failure }
}

fn print_copy(copy: &StoreCopy, is_json: bool, line: impl FnOnce(&str) -> String) -> Result<(), Failure> {
    if is_json {
        return report::print_json(&json!(copy));
    }
    let contents = copy.rows.get("ps_blob").copied().unwrap_or_default();
    let rows = copy.rows.values().sum::<u64>() - contents;
    let (contents, rows) = (counted(contents, "content"), counted(rows, "row"));
    report::print_line(&line(&format!("{contents} and {rows} of {} tables", copy.rows.len() - 1)))?;
    print_verified(&copy.channels)
}

pub(crate) async fn new_epoch(arguments: &MaintenanceArguments) -> Result<(), Failure> {
    let place = StorePlace::of(&arguments.words.library)?;
    let epoch =
        place.changing(Method::StoreNewEpoch, async |store| Ok(waiting(store.url(), store.new_epoch()).await?)).await?;
    if arguments.json {
        return report::print_json(&json!({ "epoch": epoch }));
    }
    report::print_line(&format!("the store has the new epoch {epoch}: every replica reads everything again"))
}

pub(crate) async fn prune_maintain(arguments: &PruneArguments) -> Result<(), Failure> {
    let place = StorePlace::of(&arguments.words.library)?;
    let (age, is_json) = (arguments.older_than, arguments.json);
    if arguments.dry_run {
        let store = access::open(&place.address, Opening::Read).await?;
        let prunable = waiting(store.url(), store.prunable(age)).await;
        store.close().await;
        let prunable = prunable?;
        if is_json {
            let revisions: u64 = prunable.iter().map(|one| one.revisions).sum();
            return report::print_json(&json!({ "dryRun": true, "revisions": revisions, "channels": prunable }));
        }
        print_prunable(&prunable)?;
        return report::print_line("nothing was removed (dry run)");
    }
    let prune = async |store: &Store| {
        let prunable = waiting(store.url(), store.prunable(age)).await?;
        if !is_json {
            print_prunable(&prunable)?;
        }
        must_be_meant(&prunable)?;
        Ok((prunable, waiting(store.url(), store.prune(age)).await?))
    };
    let (prunable, removed) = place.changing(Method::StorePrune, prune).await?;
    if is_json {
        return report::print_json(&json!({ "revisions": removed, "channels": prunable }));
    }
    report::print_line(&format!("removed {}", counted(removed, "revision")))?;
    report::print_line(&format!("next: {} removes their contents", place.command("store gc")))
}

fn print_prunable(prunable: &[Prunable]) -> Result<(), Failure> {
    for Prunable { channel, revisions, kept, oldest, since, .. } in prunable {
        report::print_line(&format!(
            "{channel}: {} before revision {oldest} (of {since:.0}) to remove; {kept} stay",
            counted(*revisions, "revision")
        ))?;
    }
    Ok(())
}

/// Asks before old revisions are removed for good. Without a terminal, more than what stays is removed only with `--yes`:
/// that is more often a wrong age.
fn must_be_meant(prunable: &[Prunable]) -> Result<(), Failure> {
    let (removed, kept) = prunable.iter().fold((0, 0), |sums, one| (sums.0 + one.revisions, sums.1 + one.kept));
    if removed == 0 || agrees() {
        return Ok(());
    }
    if terminal::is_interactive() {
        let question = format!("Remove {} for good? [y/N] ", counted(removed, "revision"));
        let is_meant = terminal::agree(&question);
        return if is_meant { Ok(()) } else { Err(Failure::new(Exit::Declined, "nothing was removed")) };
    }
    if removed <= kept {
        return Ok(());
    }
    let message = format!(
        "{} would be removed for good, and {kept} would stay: nothing was removed",
        counted(removed, "revision")
    );
    Err(Failure::new(Exit::Declined, message).help("`--dry-run` shows them; `--yes` removes them"))
}

fn counted(number: u64, thing: &str) -> String {
    count(usize::try_from(number).unwrap_or(usize::MAX), thing)
}

pub(crate) async fn run_init(arguments: &InitArguments) -> Result<(), Failure> {
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

pub(crate) async fn create(arguments: &TokenCreateArguments) -> Result<(), Failure> {
    let place = Place::new(&arguments.words.library, None)?.acting(&arguments.actor)?;
    let expires = arguments.token.expiry()?.map(|Day(day)| Timestamp::try_from(day));
    let expires = expires.transpose().map_err(|error| Failure::new(Exit::Usage, format!("--expires: {error}")))?;
    let new = NewToken {
        name: arguments.words.name().to_owned(),
        scopes: arguments.token.scopes.clone(),
        roles: arguments.token.roles.clone(),
        expires,
    };
    arguments.token.note_scopes();
    let create = async |store: &Connection| {
        let created: CreatedToken = place.waiting(store.send(&op::CreateToken {}, &new)).await?;
        let Err(error) = print_token(&created, &place, arguments.token.json) else { return Ok(()) };
        // Nobody has its text, and the store does not.
        let id = created.info.id;
        let end = match place.waiting(store.delete(&op::RevokeToken { id }, None)).await {
            Ok(_) => format!("token {id} is revoked"),
            Err(_) => format!("end token {id}: {}", place.command(&format!("token revoke {id}"))),
        };
        Err(Failure::new(Exit::Failed, format!("the text of the token could not be written: {error}; {end}")))
    };
    place.changing(create).await
}

fn print_token(CreatedToken { token, info }: &CreatedToken, place: &Place, is_json: bool) -> io::Result<()> {
    let mut output = Output::stdout();
    if is_json {
        writeln!(output.out, "{}", pretty_json(&json!({ "token": token, "info": info })))?;
        return output.out.flush();
    }
    writeln!(output.out, "The token, shown only once:\n  {token}\n")?;
    let name = output.line(&info.name).into_owned();
    writeln!(
        output.out,
        "token {} signs in as token/{name} on every server of the store that requires sign-in",
        info.id
    )?;
    if info.scopes.is_empty() {
        writeln!(output.out, "it has no scopes, and may use what needs none")?;
    }
    writeln!(output.out, "next: {} ends it", place.command(&format!("token revoke {}", info.id)))?;
    output.out.flush()
}

pub(crate) async fn list(arguments: &TokenListArguments) -> Result<(), Failure> {
    let place = Place::new(&arguments.words.library, None)?;
    let tokens = place.using(async |store: &Connection| place.waiting(tokens(store)).await).await?;
    if arguments.json {
        return report::print_json(&list_json(tokens.iter().map(|token| json!(token))));
    }
    if tokens.is_empty() {
        return report::print_line(&format!(
            "the store has no tokens; {} creates one",
            place.command("token create NAME")
        ));
    }
    let mut output = Output::stdout();
    let header = ["ID", "NAME", "STATE", "SCOPES", "ROLES", "CREATED", "LAST USED"];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    rows.extend(tokens.iter().map(|token| row(token, &output)));
    report::print_table(&mut output, "", &rows)?;
    Ok(output.out.flush()?)
}

pub(crate) async fn revoke(arguments: &TokenRevokeArguments) -> Result<(), Failure> {
    let place = Place::new(&arguments.words.library, None)?.acting(&arguments.actor)?;
    let revoke = async |store: &Connection| {
        let id = place.waiting(find(store, arguments.words.name())).await?;
        Ok(place.waiting(store.delete(&op::RevokeToken { id }, None)).await?)
    };
    let info: TokenInfo = place.changing(revoke).await?;
    if arguments.json {
        return report::print_json(&json!(info));
    }
    report::print_line(&format!(
        "token {} ({}) is revoked: every server refuses it within a second",
        info.id, info.name
    ))
}

async fn tokens(store: &Connection) -> Result<Vec<TokenInfo>, Failure> {
    Ok(store.all(&op::ListTokens {}).await?)
}

async fn find(store: &Connection, word: &str) -> Result<u64, Failure> {
    let tokens = tokens(store).await?;
    let number = word.parse().ok().filter(|number| tokens.iter().any(|token| token.id == *number));
    let named = tokens.iter().filter(|token| token.name == word && state(token) == "valid");
    let named: Vec<u64> = named.map(|token| token.id).collect();
    match (number, named.as_slice()) {
        (Some(number), _) => Ok(number),
        (None, [id]) => Ok(*id),
        (None, []) => Err(Failure::new(Exit::NotFound, format!("no valid token has the number or name `{word}`"))
            .help("`promptshelf token list` shows all")),
        (None, ids) => {
            let ids = ids.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
            Err(Failure::new(Exit::Usage, format!("several valid tokens have the name `{word}`: {ids}"))
                .help("name one of the numbers"))
        }
    }
}

fn state(token: &TokenInfo) -> &'static str {
    let is_over = |end: Timestamp| end <= Timestamp::try_from(SystemTime::now()).unwrap_or(Timestamp::MAX);
    match (token.revoked, token.expires) {
        (Some(_), _) => "revoked",
        (None, Some(end)) if is_over(end) => "expired",
        _ => "valid",
    }
}

fn row<W: Write>(token: &TokenInfo, output: &Output<W>) -> Vec<String> {
    let line = |text: &str| output.line(text).into_owned();
    let list = |names: &[String]| if names.is_empty() { "-".to_owned() } else { line(&names.join(",")) };
    let state = match (state(token), token.expires, token.revoked) {
        ("valid", Some(end), _) => format!("valid until {end:.0}"),
        (state, _, Some(at)) => format!("{state} {at:.0}"),
        (state, ..) => state.to_owned(),
    };
    vec![
        token.id.to_string(),
        line(&token.name),
        state,
        list(&token.scopes),
        list(&token.roles),
        line(&format!("{} by {}", report::time(token.created), token.creator)),
        token.used.map_or_else(|| "never".to_owned(), report::time),
    ]
}

pub(crate) async fn promote(arguments: &PromoteArguments) -> Result<(), Failure> {
    let place = Place::new(&arguments.words.library, None)?.acting(&arguments.change.actor)?;
    let PromoteArguments { from, to, all, change, .. } = arguments;
    let prompts = arguments.prompts();
    if from == to {
        return Err(Failure::new(Exit::Usage, "`--from` and `--to` name the same channel"));
    }
    let promotion = PromoteBody {
        from: from.clone(),
        prompts: prompts.clone(),
        all: *all,
        message: report::message(arguments.change.message.as_ref(), "dry run")?,
        dry_run: change.dry_run,
    };
    let promote = async |store: &Connection| {
        let published = match place.waiting(store.send(&op::Promote { channel: to.clone() }, &promotion)).await {
            Err(CallError::Store(StoreError::Unchanged { .. })) => {
                report::print_unchanged(store, to, change.json, &LeftOut::default()).await?;
                return if change.json { Ok(()) } else { print_different(store, from, to).await };
            }
            published => published.map_err(|error| conflict(error, from, to))?,
        };
        if change.dry_run {
            let differences = impact::of_copied(store, &published, (from, None)).await?;
            if !change.json {
                print_kept(&published, from, to)?;
            }
            return impact::print_dry_run(&published, &place, &differences, &LeftOut::default(), change.json);
        }
        let effects = CountedEffects::of(store, &published.proposal, &place).await;
        print(&published, &place, &effects, change.json, Some((from, to)))
    };
    place.changing(promote).await
}

/// Names the files in which two channels differ although nothing is to be promoted: the target has changed them itself.
async fn print_different(store: &Connection, from: &ChannelName, to: &ChannelName) -> Result<(), Failure> {
    const NAMED: usize = 10;

    let files =
        async |channel| Ok::<_, Failure>(access::current(store, channel).await?.map_or_else(Listing::new, |it| it.1));
    let (source, target) = (files(from).await?, files(to).await?);
    let paths: BTreeSet<&String> = source.keys().chain(target.keys()).collect();
    let different: Vec<&str> =
        paths.into_iter().filter(|path| source.get(*path) != target.get(*path)).map(String::as_str).collect();
    if different.is_empty() {
        return Ok(());
    }
    let named = different.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
    let more = different.len().checked_sub(NAMED).filter(|more| *more > 0).map(|more| format!(" and {more} more"));
    report::print_line(&format!(
        "stays as it is in {to}, which has changed it itself since, and not as in {from}: {named}{}",
        more.unwrap_or_default()
    ))?;
    report::print_line(&format!("  (--all makes {to} equal to {from}, and removes what only {to} has)"))
}

fn print_kept(published: &Published, from: &ChannelName, to: &ChannelName) -> Result<(), Failure> {
    const NAMED: usize = 10;

    let Published { kept, .. } = published;
    if kept.is_empty() {
        return Ok(());
    }
    let more = match kept.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let named = kept.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    report::print_line(&format!("stays as it is in {to}, and not as in {from}: {named}{more}"))?;
    report::print_line(&format!("  (--all makes {to} equal to {from}, and removes what only {to} has)"))
}

fn conflict(error: CallError, from: &ChannelName, to: &ChannelName) -> Failure {
    let CallError::Store(StoreError::Conflict { paths, .. }) = &error else { return error.into() };
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    let message = format!(
        "nothing was promoted: {} changed in {to} too, since {from} was last promoted to it:{}",
        count(paths.len(), "file"),
        named(&paths)
    );
    Failure::new(Exit::Conflict, message).help(format!(
        "bring the changes of {to} into {from}, and promote with --all, which makes {to} equal to {from}; with \
         `--prompt NAME --all`, for one prompt"
    ))
}

pub(crate) async fn rollback_promote(arguments: &RollbackArguments) -> Result<(), Failure> {
    let place = Place::new(&arguments.words.library, arguments.channel.as_ref())?.acting(&arguments.change.actor)?;
    let RollbackArguments { to, change, .. } = arguments;
    let place = place.about(&arguments.words.names);
    let prompt = arguments.prompt().map(str::to_owned);
    let message = report::message(arguments.change.message.as_ref(), "dry run")?;
    let roll_back = async |store: &Connection| {
        let channel = place.channel();
        let body = RollbackBody { to: *to, prompt: prompt.clone(), message: message.clone(), dry_run: change.dry_run };
        let published = match place.waiting(store.send(&op::Rollback { channel: channel.clone() }, &body)).await {
            Err(CallError::Store(StoreError::Unchanged { .. })) => {
                return report::print_unchanged(store, channel, change.json, &LeftOut::default()).await;
            }
            published => published.map_err(failure)?,
        };
        if change.dry_run {
            let differences = impact::of_copied(store, &published, (channel, Some(*to))).await?;
            return impact::print_dry_run(&published, &place, &differences, &LeftOut::default(), change.json);
        }
        let effects = CountedEffects::of(store, &published.proposal, &place).await;
        print(&published, &place, &effects, change.json, None)
    };
    place.changing(roll_back).await
}

fn print(
    published: &Published,
    place: &Place,
    effects: &CountedEffects,
    is_json: bool,
    promotion: Option<(&ChannelName, &ChannelName)>,
) -> Result<(), Failure> {
    if is_json {
        let mut outcome = report::outcome_with_prompts(published, false);
        if promotion.is_some() {
            outcome["kept"] = json!(published.kept);
        }
        effects.add_to(&mut outcome);
        report::print_json(&outcome)?;
    } else {
        report::print_outcome(published, place, false)?;
        effects.print()?;
        promotion.map_or(Ok(()), |(from, to)| print_kept(published, from, to))?;
    }
    report::verdict(published, place)
}

fn failure(error: CallError) -> Failure {
    let is_conflict = error.is_conflict();
    let failure = Failure::from(error);
    if is_conflict {
        failure.help("nothing was changed; run the command again on the present revision")
    } else {
        failure
    }
}

/// The time after which a diff of two large texts is no longer minimal.
const PATIENCE: Duration = Duration::from_secs(2);

/// Two contents at one path; `None` stands for a file that does not exist.
#[derive(Clone, Copy, Debug)]
struct FileDifference<'t> {
    path: &'t str,
    before: Option<&'t [u8]>,
    after: Option<&'t [u8]>,
}

impl<'t> FileDifference<'t> {
    fn between(before: &'t MemoryTree, after: &'t MemoryTree) -> Vec<FileDifference<'t>> {
        let bytes = |tree: &'t MemoryTree, path: &str| tree.get(path).map(promptshelf_source::MemoryFile::bytes);
        let mut paths: Vec<&str> = before.iter().chain(after.iter()).map(|(path, _)| path).collect();
        paths.sort_unstable();
        paths.dedup();
        let both = paths.into_iter().map(|path| FileDifference {
            path,
            before: bytes(before, path),
            after: bytes(after, path),
        });
        both.filter(|difference| difference.before != difference.after).collect()
    }

    /// Returns a unified diff; `None` if one of the contents is not text.
    fn unified(&self) -> Option<String> {
        let text = |bytes: Option<&'t [u8]>| match bytes {
            None => Some(""),
            Some(bytes) if bytes.contains(&0) => None,
            Some(bytes) => std::str::from_utf8(bytes).ok(),
        };
        let (before, after) = (text(self.before)?, text(self.after)?);
        let name = |side: &str, bytes: Option<_>| match bytes {
            Some(_) => format!("{side}/{}", self.path),
            None => "/dev/null".to_owned(),
        };
        Some(unified(before, after, &name("a", self.before), &name("b", self.after)))
    }

    fn word(&self) -> &'static str {
        match (self.before, self.after) {
            (None, _) => "added",
            (_, None) => "removed",
            _ => "changed",
        }
    }

    fn to_json(self) -> Value {
        let side =
            |bytes: Option<&[u8]>| bytes.map(|bytes| json!({ "digest": Digest::of(bytes), "size": bytes.len() }));
        json!({
            "path": self.path,
            "change": self.word(),
            "before": side(self.before),
            "after": side(self.after),
            "diff": self.unified(),
        })
    }

    fn print<W: Write>(&self, output: &mut Output<W>) -> Result<(), Failure> {
        if let Some(text) = self.unified() {
            return print_unified(output, &text);
        }
        let side = |bytes: Option<&[u8]>| match bytes {
            Some(bytes) => format!("sha256 {} ({} bytes)", Digest::of(bytes), bytes.len()),
            None => "none".to_owned(),
        };
        let path = output.line(self.path).into_owned();
        writeln!(output.out, "binary {path} {}", self.word())?;
        writeln!(output.out, "- {}\n+ {}", side(self.before), side(self.after))?;
        Ok(())
    }
}

pub(super) fn unified(before: &str, after: &str, name_before: &str, name_after: &str) -> String {
    let difference = TextDiff::configure().timeout(PATIENCE).diff_lines(before, after);
    let text = difference.unified_diff().header(name_before, name_after).to_string();
    // A new empty file has no lines to show.
    if text.is_empty() { format!("--- {name_before}\n+++ {name_after}\n") } else { text }
}

pub(super) fn print_unified<W: Write>(output: &mut Output<W>, text: &str) -> Result<(), Failure> {
    const REMOVED: Style = AnsiColor::Red.on_default();
    const ADDED: Style = AnsiColor::Green.on_default();
    const PLACE: Style = AnsiColor::Cyan.on_default();
    for line in text.split_inclusive('\n') {
        let style = match line.as_bytes() {
            [b'-', b'-', b'-', ..] | [b'+', b'+', b'+', ..] => Style::new().bold(),
            [b'-', ..] => REMOVED,
            [b'+', ..] => ADDED,
            [b'@', ..] => PLACE,
            _ => Style::new(),
        };
        let line = output.text(line).into_owned();
        let line = line.strip_suffix('\n').unwrap_or(&line);
        let line = output.styled(style, line);
        writeln!(output.out, "{line}")?;
    }
    Ok(())
}

pub(crate) async fn run_policy(arguments: &PolicyArguments) -> Result<(), Failure> {
    let place = Place::new(&arguments.words.library, arguments.channel.as_ref())?.acting(&arguments.actor)?;
    let work = async |store: &Connection| shown(store, arguments, &place).await;
    let shown = if arguments.change.is_empty() { place.using(work).await? } else { place.changing(work).await? };
    let channels = match shown {
        Shown::Channels(channels) => channels,
        Shown::Proposed(proposal) => return print_proposed(*proposal, &place, arguments.json),
    };
    if arguments.json {
        return report::print_json(&match place.named_channel() {
            Some(_) => channels.first().map(to_json).unwrap_or_default(),
            None => list_json(channels.iter().map(to_json)),
        });
    }
    let mut output = Output::stdout();
    if channels.is_empty() {
        writeln!(output.out, "the store has no channels")?;
    }
    let rows: Vec<Vec<String>> = channels.iter().map(row_policy).collect();
    report::print_table(&mut output, "", &rows)?;
    Ok(output.out.flush()?)
}

enum Shown {
    Channels(Vec<ChannelInfo>),
    Proposed(Box<Proposal>),
}

fn print_proposed(proposal: Proposal, place: &Place, is_json: bool) -> Result<(), Failure> {
    let published = Published { proposal, prompts: Vec::new(), findings: Vec::new(), kept: Vec::new() };
    if is_json {
        return report::print_json(&report::outcome(&published));
    }
    report::print_line("the new policy is looser than the present one, and needs its approvals")?;
    report::print_outcome(&published, place, false)
}

async fn shown(store: &Connection, arguments: &PolicyArguments, place: &Place) -> Result<Shown, Failure> {
    let Some(channel) = place.named_channel() else {
        return Ok(Shown::Channels(store.all(&op::ListChannels {}).await?));
    };
    let get = op::GetChannel { channel: channel.clone() };
    if arguments.change.is_empty() {
        return Ok(Shown::Channels(vec![store.get(&get).await?]));
    }
    let (present, condition) = match store.tagged(&op::GetPolicy { channel: channel.clone() }).await {
        Ok((policy, tag)) => (policy, (header::IF_MATCH, tag)),
        Err(CallError::Store(StoreError::NotFound { .. })) => {
            let channels = store.all(&op::ListChannels {}).await?;
            // Nothing removes a channel that was made by a typing mistake.
            if let Some(near) = nearest(channel.as_str(), channels.iter().map(|known| known.name.as_str())) {
                let message = format!("the channel {channel} does not exist; did you mean {near}?");
                return Err(Failure::new(Exit::NotFound, message)
                    .help("publish to it first, if a new one is meant: that makes it"));
            }
            note(&[format!("the channel {channel} is new")]);
            (Policy::default(), (header::IF_NONE_MATCH, "*".to_owned()))
        }
        Err(error) => return Err(error.into()),
    };
    let known = present.evaluations.clone();
    let policy = arguments.change.applied(present);
    // A server has settings of its own, and compares with them.
    let required: Vec<String> = policy.evaluations.iter().filter(|name| !known.contains(name)).cloned().collect();
    if !place.is_server() && !required.is_empty() {
        configured(arguments.config.as_deref(), &required)?;
    }
    let body = PolicyBody::new(policy, arguments.message.clone());
    let answer = store.send_if(&op::PutPolicy { channel: channel.clone() }, &body, Some(condition)).await;
    Ok(match answer.map_err(|error| error.about(format!("the policy of the channel `{channel}`")))? {
        PolicyAnswer::Changed(_) => Shown::Channels(vec![store.get(&get).await?]),
        PolicyAnswer::Proposed(proposal) => Shown::Proposed(proposal),
    })
}

impl PolicyChange {
    fn is_empty(&self) -> bool {
        let PolicyChange { approvals, four_eyes, checks, tests, breaking, evaluations, no_regression, roles } = self;
        let is_judged = evaluations.is_some() || no_regression.is_some();
        !is_judged
            && approvals.is_none()
            && four_eyes.is_none()
            && checks.is_none()
            && tests.is_none()
            && breaking.is_none()
            && roles.is_empty()
    }

    fn applied(&self, policy: Policy) -> Policy {
        let mut roles = policy.roles;
        for (verb, names) in &self.roles {
            let changed = match verb {
                Verb::Propose => &mut roles.propose,
                Verb::Review => &mut roles.review,
                Verb::Publish => &mut roles.publish,
                Verb::Administer => &mut roles.administer,
            };
            changed.clone_from(names);
        }
        Policy {
            approvals: self.approvals.unwrap_or(policy.approvals),
            four_eyes: self.four_eyes.map_or(policy.four_eyes, bool::from),
            checks: self.checks.map_or(policy.checks, CheckLevel::from),
            tests: self.tests.map_or(policy.tests, bool::from),
            evaluations: self
                .evaluations
                .as_ref()
                .map_or(policy.evaluations, |names| names.iter().filter(|name| !name.is_empty()).cloned().collect()),
            no_regression: self.no_regression.map_or(policy.no_regression, bool::from),
            no_breaking: self.breaking.map_or(policy.no_breaking, |switch| !bool::from(switch)),
            roles,
        }
    }
}

fn to_json(info: &ChannelInfo) -> Value {
    json!({ "channel": info.name, "revision": info.head.revision, "policy": info.policy })
}

fn row_policy(info: &ChannelInfo) -> Vec<String> {
    let ChannelInfo { name, head, policy, .. } = info;
    let mut row = vec![name.to_string(), format!("revision {}", head.revision)];
    for (condition, value) in report::conditions(policy) {
        let is_shown = match condition {
            "breaking" => policy.no_breaking,
            "evaluations" | "no-regression" => !policy.evaluations.is_empty(),
            "propose" | "review" | "publish" | "administer" => value != "every role",
            _ => true,
        };
        if is_shown {
            row.push(format!("{condition} {value}"));
        }
    }
    row
}

/// Reads the files of a channel, or of a revision of it, by the address of its store.
pub(crate) async fn tree(word: &str) -> Result<MemoryTree, Failure> {
    let place = Place::with_revision(&crate::args::channels::PlaceArguments {
        store: Some(word.to_owned().into()),
        url: None,
    })?;
    let read = async |store: &Connection| Ok(place.waiting(store.tree(place.channel(), place.revision())).await?.1);
    place.using(read).await
}

pub(crate) async fn run_diff(arguments: &DiffArguments) -> Result<(), Failure> {
    let names = &arguments.words.names;
    // Without a store, two names of folders can only be those.
    let are_folders = arguments.words.library.is_missing() && names.iter().all(|name| Path::new(name).is_dir());
    let side = |name: &String| if are_folders { Ok(Side::Folder(PathBuf::from(name))) } else { Side::parse(name) };
    let sides = [side(&names[0])?, side(&names[1])?];
    let compared = match sides {
        [Side::Folder(before), Side::Folder(after)] => {
            let (before, after) = (folder(before)?, folder(after)?);
            let view =
                if arguments.rendered { Some(rendered::changed(&before.1, &after.1, None).await?) } else { None };
            (before, after, view)
        }
        [before, after] => {
            let place = place(arguments)?;
            let read = async |store: &Connection| {
                let (before, after) = (before.read(&place, store).await?, after.read(&place, store).await?);
                if !arguments.rendered {
                    return Ok((before, after, None));
                }
                // Calls of the state before, or of the channel that a folder is compared with.
                let name = |side: &(String, MemoryTree)| side.0.split_once('@')?.0.parse::<ChannelName>().ok();
                let channel = name(&before).or_else(|| name(&after)).unwrap_or_else(|| place.channel().clone());
                let view = rendered::changed(&before.1, &after.1, Some((store, &channel))).await?;
                Ok((before, after, Some(view)))
            };
            place.using(read).await?
        }
    };
    let ((name_before, before), (name_after, after), view) = compared;
    let files = FileDifference::between(&before, &after);
    if arguments.json {
        let mut json = json!({ "from": name_before, "to": name_after });
        json["files"] = files.iter().map(|file| file.to_json()).collect();
        if let Some(view) = view {
            view.add_to(&mut json);
        }
        return report::print_json(&json);
    }
    let mut output = Output::stdout();
    let is_same = match view {
        Some(view) => {
            view.print(&mut output)?;
            view.is_empty()
        }
        None => {
            files.iter().try_for_each(|file| file.print(&mut output))?;
            files.is_empty()
        }
    };
    if is_same {
        let what = if arguments.rendered { "prompts" } else { "files" };
        let names = output.line(&format!("the {what} of {name_before} and {name_after} are the same")).into_owned();
        writeln!(output.out, "{names}")?;
    }
    Ok(output.out.flush()?)
}

fn place(arguments: &DiffArguments) -> Result<Place, Failure> {
    Place::new(&arguments.words.library, arguments.channel.as_ref()).map_err(|failure| match &failure.help {
        Some(help) if arguments.words.library.is_missing() => {
            let help = format!("{help}; a folder is a path such as `./prompts`");
            failure.help(help)
        }
        _ => failure,
    })
}

/// Reads a folder; returns its name too.
fn folder(path: PathBuf) -> Result<(String, MemoryTree), Failure> {
    let read = read_served_tree(&path).map_err(|error| Failure::new(Exit::Library, error.to_string()))?;
    let (tree, left_out) = read;
    let line = |found: &Diagnostic| format!("left out {}: {}", found.location.source.path, found.message);
    note(&left_out.iter().map(line).collect::<Vec<_>>());
    Ok((path.display().to_string(), tree))
}

/// Reads a folder as `publish` does: without the store itself, if it stands there.
fn folder_apart(path: PathBuf, place: &Place) -> Result<(String, MemoryTree), Failure> {
    let own = place.own_files(&path);
    let (name, tree) = folder(path)?;
    Ok((name, tree.with(own.iter().map(|path| (path.as_str(), None)))))
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Side {
    Folder(PathBuf),
    Revision(u64),
    Pinned(ChannelName, u64),
    Name(String),
}

impl Side {
    fn parse(word: &str) -> Result<Side, Failure> {
        if word.starts_with('.') || word.contains(['/', '\\']) {
            return Ok(Side::Folder(PathBuf::from(word)));
        }
        let revision = |text: &str| {
            text.parse().map_err(|_| {
                Failure::new(
                    Exit::Usage,
                    format!("`{word}` is not a revision: expected a number, as in `12` or `staging@12`"),
                )
            })
        };
        match word.split_once('@') {
            Some((channel, number)) => Ok(Side::Pinned(channel.parse()?, revision(number)?)),
            None if !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit()) => {
                Ok(Side::Revision(revision(word)?))
            }
            None => Ok(Side::Name(word.to_owned())),
        }
    }

    async fn read(self, place: &Place, store: &Connection) -> Result<(String, MemoryTree), Failure> {
        let (channel, revision) = match self {
            Side::Folder(path) => return folder_apart(path, place),
            Side::Revision(revision) => (place.channel().clone(), Some(revision)),
            Side::Pinned(channel, revision) => (channel, Some(revision)),
            Side::Name(name) => match name.parse::<ChannelName>() {
                Ok(channel) if store.all(&op::ListChannels {}).await?.iter().any(|known| known.name == channel) => {
                    (channel, None)
                }
                Ok(_) | Err(_) if PathBuf::from(&name).is_dir() => return folder_apart(PathBuf::from(name), place),
                Ok(channel) => {
                    let message = format!("neither a channel nor a folder has the name `{channel}`");
                    return Err(Failure::new(Exit::NotFound, message)
                        .help(format!("{} lists the channels", place.command("policy"))));
                }
                Err(error) => return Err(error.into()),
            },
        };
        let (head, tree) = place.waiting(store.tree(&channel, revision)).await?;
        Ok((format!("{channel}@{}", head.revision), tree))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_have_unified_diffs() {
        let difference = FileDifference { path: "a.md", before: Some(b"one\ntwo\n"), after: Some(b"one\n2\n") };
        assert_eq!(difference.unified().as_deref(), Some("--- a/a.md\n+++ b/a.md\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"));
        let added = FileDifference { path: "b.md", before: None, after: Some(b"") };
        assert_eq!(added.unified().as_deref(), Some("--- /dev/null\n+++ b/b.md\n"));
    }

    #[test]
    fn contents_that_are_not_text_have_digests() {
        for bytes in [&b"\xff\xfe"[..], b"a\0b"] {
            let difference = FileDifference { path: "a.png", before: Some(b"text"), after: Some(bytes) };
            assert_eq!(difference.unified(), None);
            let json = difference.to_json();
            assert_eq!((&json["diff"], &json["after"]["size"]), (&Value::Null, &json!(bytes.len())));
            assert_eq!(json["after"]["digest"], json!(Digest::of(bytes)));
        }
    }
}

#[cfg(test)]
mod diff_tests {
    use super::*;

    #[test]
    fn sides_are_revisions_channels_or_folders() {
        let channel = |name: &str| name.parse().expect("a channel");
        for (word, expected) in [
            ("12", Side::Revision(12)),
            ("staging@12", Side::Pinned(channel("staging"), 12)),
            ("staging", Side::Name("staging".to_owned())),
            ("./12", Side::Folder("./12".into())),
            (".", Side::Folder(".".into())),
            ("a/b@1", Side::Folder("a/b@1".into())),
        ] {
            assert_eq!(Side::parse(word), Ok(expected), "{word}");
        }
        for word in ["staging@", "staging@new", "@12", "Staging@1", "99999999999999999999999"] {
            assert!(Side::parse(word).is_err_and(|failure| failure.exit == Exit::Usage), "{word}");
        }
    }
}

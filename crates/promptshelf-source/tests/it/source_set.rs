//! Several sources, each loaded by itself.

use std::{
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use promptshelf_core::{
    Access, AccessRule, BoxFuture, Catalog, Definitions, Origin, Prompt, PromptDefinition, PromptProvenance,
    Provenance, SourceText,
};
use promptshelf_source::{
    Files, Fixed, Loader, MemberOptions, MemoryTree, OpenSource, OpenedSource, ReloadSignal, Snapshot, Source,
    SourceError, SourceSet, SourceState, WatchGuard,
};

/// The time until something has to have happened.
const PATIENCE: Duration = Duration::from_secs(60);

fn hello() -> Definitions {
    Definitions::from_iter([PromptDefinition::template("hello", "Hello!").description("Greets")])
}

/// Opens what the function returns.
struct Opener<F>(F);

impl<F: Fn() -> Result<OpenedSource, SourceError> + Send + Sync + 'static> OpenSource for Opener<F> {
    fn kind(&self) -> &'static str {
        "test"
    }

    fn open(&self) -> BoxFuture<'_, Result<OpenedSource, SourceError>> {
        let opened = (self.0)();
        Box::pin(async { opened })
    }
}

fn member(name: &str, open: impl Fn() -> Result<OpenedSource, SourceError> + Send + Sync + 'static) -> MemberOptions {
    MemberOptions::new(name, Box::new(Opener(open)))
}

/// Keeps threads waiting until it is dropped.
#[derive(Clone, Default)]
struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    fn wait(&self) {
        let open = self.0.0.lock().expect("no panic");
        drop(self.0.1.wait_while(open, |is_open| !*is_open).expect("no panic"));
    }

    fn open(&self) {
        *self.0.0.lock().expect("no panic") = true;
        self.0.1.notify_all();
    }
}

/// A source that hangs until the gate is open.
struct Hanging(Fixed, Gate);

impl Source for Hanging {
    fn read(&self) -> Result<Snapshot, SourceError> {
        self.1.wait();
        self.0.read()
    }

    fn watch(&self, signal: ReloadSignal) -> WatchGuard {
        self.0.watch(signal)
    }
}

/// Waits for a load after which the condition holds.
async fn loaded(loader: &Loader, is_met: impl Fn(&Loader) -> bool) {
    let mut reports = loader.reports();
    tokio::time::timeout(PATIENCE, async {
        while !is_met(loader) {
            reports.changed().await.expect("the loader lives");
        }
    })
    .await
    .expect("in time");
}

// req: S-153
#[tokio::test(flavor = "multi_thread")]
async fn sources_that_hang_do_not_delay_or_hide_others() {
    let gate = Gate::default();
    let hanging = (0..5).map(|number| {
        let gate = gate.clone();
        let open = move || Ok(OpenedSource::new(Hanging(Fixed::new(hello()), gate.clone())));
        member(&format!("hanging{number}"), open)
    });
    let others = (0..15).map(|number| member(&format!("s{number}"), || Ok(OpenedSource::new(Fixed::new(hello())))));
    let set = SourceSet::open(hanging.chain(others), &[]);
    let loader = Loader::open(vec![Box::new(set.clone())]).expect("a catalog");
    let _following = loader.spawn();
    loaded(&loader, |loader| loader.handle().current().prompts().len() == 15).await;
    let states = set.statuses();
    assert_eq!(states.iter().filter(|status| status.state == SourceState::Starting).count(), 5);
    assert_eq!(states.iter().filter(|status| status.state == SourceState::Current).count(), 15);
    gate.open();
    loaded(&loader, |loader| loader.handle().current().prompts().len() == 20).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn source_that_cannot_be_opened_is_tried_again() {
    let is_there = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&is_there);
    let late = member("late", move || match seen.load(Ordering::SeqCst) {
        true => Ok(OpenedSource::new(Fixed::new(hello()))),
        false => Err(SourceError::new("not yet")),
    });
    let set = SourceSet::open([late], &[]);
    set.settled(PATIENCE).await;
    let status = set.statuses().remove(0);
    assert_eq!((status.state, status.problem.as_deref()), (SourceState::Failed, Some("not yet")));
    assert!(status.behind_since.is_some());
    let loader = Loader::open(vec![Box::new(set.clone())]).expect("a catalog");
    let _following = loader.spawn();
    is_there.store(true, Ordering::SeqCst);
    assert!(set.refresh("late") && !set.refresh("unknown"));
    loaded(&loader, |loader| loader.handle().current().find("late-hello").is_some()).await;
    assert_eq!(set.statuses()[0].state, SourceState::Current);
}

// req: S-579
#[tokio::test(flavor = "multi_thread")]
async fn prompts_of_several_sources_are_counted_by_none_and_named_by_each() {
    let prompts = |names: &'static [&'static str]| {
        let prompts = names.iter().map(|name| PromptDefinition::template(*name, "Hello!").description("Greets"));
        Fixed::new(prompts.collect())
    };
    let growing = prompts(&["c", "own"]);
    let members = [
        ("a", "a-", prompts(&["b-c", "own"])),
        ("a-b", "a-b-", growing.clone()),
        ("c", "", prompts(&["a-b-c", "own"])),
        ("d", "", prompts(&["own", "other"])),
    ];
    let members = members
        .map(|(name, prefix, source)| member(name, move || Ok(OpenedSource::new(source.clone()))).prefix(prefix));
    let set = SourceSet::open(members, &[]);
    set.settled(PATIENCE).await;
    let loader = Loader::open(vec![Box::new(set.clone())]).expect("a catalog");
    let _following = loader.spawn();
    let state = || {
        let statuses = set.statuses();
        let served: Vec<usize> = statuses.iter().map(|status| status.prompts).collect();
        assert_eq!(served.iter().sum::<usize>(), loader.handle().current().prompts().len());
        (served, statuses.into_iter().map(|status| status.left_out).collect::<Vec<_>>())
    };
    let of = |name: &str, sources: &str| {
        format!("the prompt `{name}` is in several sources ({sources}), and none of them serves it")
    };
    let (three, two) = (of("a-b-c", "a, a-b, c"), of("own", "c, d"));
    let left_out = vec![vec![three.clone()], vec![three.clone()], vec![three, two.clone()], vec![two.clone()]];
    assert_eq!(state(), (vec![1, 1, 0, 1], left_out));
    growing.replace(Definitions::from_iter([PromptDefinition::template("d", "Hello!").description("Greets")]));
    let both = of("a-b-c", "a, c");
    loaded(&loader, |loader| loader.handle().current().find("a-b-d").is_some()).await;
    let left_out = vec![vec![both.clone()], vec![], vec![both, two.clone()], vec![two]];
    assert_eq!(state(), (vec![1, 1, 0, 1], left_out));
}

/// A source that can fail.
#[derive(Clone)]
struct Failing(Fixed, Arc<AtomicBool>);

impl Source for Failing {
    fn read(&self) -> Result<Snapshot, SourceError> {
        match self.1.load(Ordering::SeqCst) {
            true => Err(SourceError::new("it is away")),
            false => self.0.read(),
        }
    }

    fn watch(&self, signal: ReloadSignal) -> WatchGuard {
        self.0.watch(signal)
    }
}

// req: S-153
#[tokio::test(flavor = "multi_thread")]
async fn last_good_prompts_stay_unless_access_rules_have_changed() {
    let source = Failing(Fixed::new(hello()), Arc::default());
    let opened = source.clone();
    let set = SourceSet::open([member("a", move || Ok(OpenedSource::new(opened.clone())))], &[]);
    set.settled(PATIENCE).await;
    let loader = Loader::open(vec![Box::new(set.clone())]).expect("a catalog");
    let _following = loader.spawn();
    source.1.store(true, Ordering::SeqCst);
    set.reload().await;
    loader.reload().await.expect("a joined catalog");
    assert!(loader.handle().current().find("a-hello").is_some());
    assert_eq!(set.statuses()[0].state, SourceState::Behind);
    // The last good catalog has the old rules.
    let access = Access { roles: vec!["staff".to_owned()], ..Access::default() };
    let rule = AccessRule::new(access, Origin::new(SourceText::new("server.toml", "")));
    set.replace_rules(&[AccessRule { prompts: vec!["a-*".to_owned()], ..rule }]).await;
    loaded(&loader, |loader| loader.handle().current().prompts().is_empty()).await;
    source.1.store(false, Ordering::SeqCst);
    set.refresh("a");
    loaded(&loader, |loader| loader.handle().current().find("a-hello").is_some()).await;
    assert!(loader.handle().current().is_restricted());
}

#[tokio::test(flavor = "multi_thread")]
async fn requirements_of_a_source_bind_all_of_it_without_warnings() {
    let access = Access { roles: vec!["staff".to_owned()], ..Access::default() };
    let closed = member("closed", || Ok(OpenedSource::new(Fixed::new(hello())))).access(access);
    let set = SourceSet::open([closed, member("open", || Ok(OpenedSource::new(Fixed::new(hello()))))], &[]);
    set.settled(PATIENCE).await;
    let loader = Loader::open(vec![Box::new(set)]).expect("a catalog");
    assert_eq!(loader.diagnostics().len(), 0, "{:?}", loader.diagnostics());
    let catalog = loader.handle().current();
    let rules = |name: &str| catalog.prompt_access(catalog.position(name).expect("a prompt")).len();
    assert_eq!((rules("closed-hello"), rules("open-hello")), (1, 0));
    assert_eq!(catalog.diagnostics_access().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn source_with_too_many_prompts_keeps_its_last_good_ones() {
    let prompts = Fixed::new(hello());
    let opened = prompts.clone();
    let set = SourceSet::open([member("a", move || Ok(OpenedSource::new(opened.clone()))).max_prompts(1)], &[]);
    set.settled(PATIENCE).await;
    let loader = Loader::open(vec![Box::new(set.clone())]).expect("a catalog");
    let _following = loader.spawn();
    prompts.replace(hello().prompt(PromptDefinition::template("more", "x").description("X")));
    set.reload().await;
    let status = tokio::time::timeout(PATIENCE, async {
        loop {
            let status = set.statuses().remove(0);
            if status.problem.is_some() {
                return status;
            }
            tokio::task::yield_now().await;
        }
    })
    .await
    .expect("in time");
    assert_eq!((status.state, status.prompts), (SourceState::Behind, 1));
    assert!(status.problem.is_some_and(|problem| problem.contains("2 prompts")));
}

/// A channel at a revision, with a prompt that attaches a file.
fn channel() -> Files {
    let mut provenance = Provenance::new("production", 7);
    provenance.extend([("hello", PromptProvenance::new(3, [0; 32], ["ada"]))]);
    let source = Files::tree(MemoryTree::default());
    let files = [("hello.md", "Read {{ attach(\"note.txt\") }}.\n"), ("note.txt", "A note.\n")];
    source.replace_revision(files.into_iter().collect(), provenance);
    source
}

#[tokio::test]
async fn library_keeps_its_names_uris_and_provenance_when_sources_are_added() {
    let alone = Loader::open(vec![Box::new(channel())]).expect("a channel").handle().current();
    let set = SourceSet::open([member("team", || Ok(OpenedSource::new(Fixed::new(hello()))))], &[]);
    set.settled(PATIENCE).await;
    let loader = Loader::open(vec![Box::new(channel()), Box::new(set.clone())]).expect("both");
    let joined = loader.handle().current();
    let names: Vec<_> = joined.prompts().iter().map(|prompt| prompt.name().to_string()).collect();
    assert_eq!(names, ["hello", "team-hello"]);
    let hello = joined.find("hello").expect("a prompt");
    let (part, own) = joined.part_of(hello).expect("a joined catalog");
    let found = part.catalog.provenance().expect("a channel");
    assert_eq!(found.prompt(&own).map(PromptProvenance::version), Some(3));
    assert_eq!((found.provenance.channel(), found.provenance.revision()), (Some("production"), Some(7)));
    let uris = |catalog: &Catalog, prompt: &Prompt| catalog.parts_of(prompt).0;
    assert_eq!(uris(&part.catalog, &own), uris(&alone, alone.find("hello").expect("a prompt")));
    assert_eq!((alone.generation(), joined.generation()), (7, 0), "the revision does not name the other sources");

    // A library next to it can have the others alone, and does not end them.
    let others = Loader::open(vec![Box::new(set.without("team"))]).expect("none");
    assert!(others.handle().current().find("team-hello").is_none());
    drop(others);
    assert!(set.refresh("team"));
    loaded(&loader, |loader| loader.handle().current().find("team-hello").is_some()).await;
}

//! The contract of every kind of tree: the same files give the same definitions and the same catalog.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    time::UNIX_EPOCH,
};

use promptshelf_core::{Catalog, Definitions, Diagnostic, RawArguments, ResourceContent, Timestamp, cursor::ListKind};
use promptshelf_source::{Files, Loader, MemoryFile, MemoryTree, Snapshot, Source, SourceError};

use proptest::prelude::*;

use crate::library::{Library, lines};

/// A file of a library, by path; `None` removes it.
type Edit<'f> = (&'f str, Option<&'f [u8]>);

type Edits<'f> = &'f [Edit<'f>];

/// A kind of tree.
trait Kind {
    type Source: Source + Clone + 'static;

    /// Creates a source for the files of a folder, which nothing outside is granted to.
    fn source(folder: &Path) -> Self::Source;
    /// Shows the present files of the folder to the source.
    fn update(source: &Self::Source, folder: &Path);
}

struct OnDisk;

impl Kind for OnDisk {
    type Source = Files;

    fn source(folder: &Path) -> Files {
        Files::folder(folder)
    }

    fn update(_: &Files, _: &Path) {}
}

struct InMemory;

impl Kind for InMemory {
    type Source = Files;

    fn source(folder: &Path) -> Files {
        Files::tree(tree_of(folder))
    }

    fn update(source: &Files, folder: &Path) {
        let (before, now) = (source.in_memory().expect("a tree"), tree_of(folder));
        // Unchanged files are clones of those before, as in a channel that is followed.
        let same = |path: &str, file: &MemoryFile| before.get(path).filter(|known| *known == file).cloned();
        source.replace(now.iter().map(|(path, file)| (path, same(path, file).unwrap_or(file.clone()))).collect());
    }
}

/// Reads all files of a folder into memory.
fn tree_of(folder: &Path) -> MemoryTree {
    fn add(folder: &Path, prefix: &str, files: &mut Vec<(String, MemoryFile)>) {
        for entry in fs::read_dir(folder).expect("a folder") {
            let entry = entry.expect("an entry");
            let path = format!("{prefix}{}", entry.file_name().to_str().expect("UTF-8"));
            let metadata = entry.metadata().expect("metadata");
            if metadata.is_dir() {
                add(&entry.path(), &format!("{path}/"), files);
                continue;
            }
            let age = metadata.modified().expect("a time").duration_since(UNIX_EPOCH).expect("after 1970");
            let seconds = i64::try_from(age.as_secs()).expect("before the end of time");
            let modified = Timestamp::from_unix(seconds, age.subsec_nanos().cast_signed()).expect("a time");
            files.push((path, MemoryFile::new(fs::read(entry.path()).expect("a file")).modified_at(modified)));
        }
    }
    let mut files = Vec::new();
    add(folder, "", &mut files);
    files.into_iter().collect()
}

/// Returns everything in the definitions that does not depend on the place of the library.
fn shown(definitions: &Definitions) -> BTreeMap<&'static str, Vec<String>> {
    let Definitions {
        about,
        policy,
        prompts,
        partials,
        files,
        resources,
        access,
        links,
        roots,
        root_files,
        broken,
        diagnostics,
        ..
    } = definitions;
    let each = |shown: &mut dyn Iterator<Item = String>| shown.collect::<Vec<_>>();
    let resource = |it: &promptshelf_core::ResourceDefinition| {
        let content = match &it.content {
            ResourceContent::Reader(reader) => format!("{:?} {:?}", reader.folder(), reader.place(&BTreeMap::new())),
            other => format!("{other:?}"),
        };
        let shape =
            promptshelf_core::ResourceDefinition { content: ResourceContent::Template(String::new()), ..it.clone() };
        format!("{shape:?} {content}")
    };
    BTreeMap::from([
        ("about", vec![format!("{about:?} {policy:?} {access:?} {links:?} {roots:?} {root_files:?}")]),
        ("prompts", each(&mut prompts.iter().map(|it| format!("{it:?}")))),
        ("partials", each(&mut partials.iter().map(|it| format!("{it:?}")))),
        ("files", each(&mut files.iter().map(|it| format!("{it:?}")))),
        ("resources", each(&mut resources.iter().map(resource))),
        ("broken", each(&mut broken.iter().map(|it| format!("{it:?}")))),
        ("diagnostics", lines(diagnostics)),
    ])
}

/// Returns the lists of a catalog, the renderings of its prompts, its resources and what each is read from.
async fn served(catalog: &Catalog) -> Vec<String> {
    let mut all = vec![format!("{:?}", catalog.page(ListKind::Prompts, None))];
    all.push(format!("{:?} {:?}", catalog.access_sets(), catalog.file_paths().collect::<Vec<_>>()));
    for prompt in catalog.prompts().iter() {
        all.push(format!("{} {:?}", prompt.name(), prompt.title()));
        let values: Vec<_> = prompt.arguments().iter().map(|argument| (argument.name(), "1")).collect();
        let rendered = prompt
            .bind(&RawArguments::from_iter(values), 1_000)
            .map(|bound| prompt.render(catalog.render_context(), &bound).map_err(|error| error.to_string()));
        all.push(format!("{rendered:?}"));
    }
    for resource in catalog.resources() {
        let read = resource.read(resource.uri(), &BTreeMap::new()).await;
        all.push(format!("{} {:?} {:?} {read:?}", resource.uri(), resource.name(), resource.size()));
    }
    for uri in READ {
        let Some((resource, variables)) = catalog.find_resource(uri) else { continue };
        let read = resource.read(uri, &variables).await;
        all.push(format!("{uri} {read:?}"));
    }
    all
}

/// URIs of the template `any:///{+path}`: files of the library, and paths that lead elsewhere.
const READ: &[&str] = &[
    "any:///docs/one.txt",
    "any:///docs",
    "any:///docs/",
    "any:///docs//one.txt",
    "any:///docs/./one.txt",
    "any:///docs/../a.md",
    "any:///../outside.txt",
    "any:///..%2Foutside.txt",
    "any:////etc/passwd",
    "any:///%2Fetc%2Fpasswd",
    "any:///.env",
    "any:///docs/.hidden",
    "any:///promptshelf.toml",
    "any:///a.md/x",
    "any:///a.md%00",
    "any:///missing.txt",
    "any:///large.bin",
    "in-docs:///one.txt",
    "in-docs:///../a.md",
    "in-docs:///deep/two.txt",
];

type Outcome = (Result<BTreeMap<&'static str, Vec<String>>, String>, Vec<String>);

/// Reads a library in steps. In each step some files change; the result of every step is the same as that of a new
/// source.
async fn outcomes<K: Kind>(library: &Library, steps: &[Edits<'_>]) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    let mut kept: Option<(K::Source, Loader)> = None;
    let read = |source: &K::Source| {
        let snapshot = source.read().map(Snapshot::into_definitions);
        snapshot.as_ref().map(shown).map_err(ToString::to_string)
    };
    for step in steps {
        for (path, bytes) in *step {
            match bytes {
                Some(bytes) => library.write(path, bytes),
                None => library.remove(path),
            }
        }
        let fresh = K::source(&library.root());
        let expected = read(&fresh);
        let (catalog, is_whole) = match Loader::open(vec![Box::new(fresh)]) {
            Ok(loader) => {
                (served(&loader.handle().current()).await, !loader.diagnostics().iter().any(Diagnostic::is_error))
            }
            Err(error) => (vec![error.to_string()], false),
        };
        if let Some((source, loader)) = &kept {
            K::update(source, &library.root());
            loader.reload().await.expect("it can be read");
            assert_eq!(read(source), expected, "a source that has read the library before finds the same");
            // A file with mistakes keeps its last good prompt.
            if is_whole {
                let kept = served(&loader.handle().current()).await;
                assert_eq!(kept, catalog, "a library that was served before is the same");
            }
        } else {
            let source = K::source(&library.root());
            kept = Loader::open(vec![Box::new(source.clone())]).ok().map(|loader| (source, loader));
        }
        outcomes.push((expected, catalog));
    }
    outcomes
}

/// Asserts that all kinds of trees give the same results, and returns the diagnostics of each step.
async fn assert_same(steps: &[Edits<'_>]) -> Vec<Vec<String>> {
    let on_disk = outcomes::<OnDisk>(&Library::new(), steps).await;
    let library = Library::new();
    let in_memory = outcomes::<InMemory>(&library, steps).await;
    let of_same = outcomes::<OnDisk>(&library, &[&[]]).await;
    // Times are part of the result, so that only the results for one folder are equal.
    if is_complete(&of_same[0]) {
        assert_eq!(in_memory.last(), of_same.last());
    }
    let messages = |all: &[Outcome]| {
        let of = |(found, _): &Outcome| match found {
            Ok(found) => found["diagnostics"].clone(),
            Err(error) => vec![error.clone()],
        };
        all.iter().map(of).collect::<Vec<_>>()
    };
    let found = messages(&on_disk);
    assert_eq!(messages(&in_memory), found);
    found
}

/// Whether no file was left out because of a limit: which ones are depends on the order of a folder's entries.
fn is_complete((found, _): &Outcome) -> bool {
    found.as_ref().is_ok_and(|found| !found["diagnostics"].iter().any(|line| line.contains("left out")))
}

const MANIFEST: &[u8] = br#"
[server]
name = "contract"
icons = "icons/i.svg"
[limits]
resource-bytes = 20
[roots]
docs = "docs/."
gone = "nowhere"
[[resources]]
uri = "docs:///{+path}"
files = "docs/**/*.txt"
[[resources]]
uri = "one://file"
file = "declared.md"
[[resources]]
uri = "hidden://file"
file = ".env"
[[resources]]
uri-template = "any:///{+path}"
file = "{+path}"
[[resources]]
uri-template = "in-docs:///{+path}"
root = "docs"
file = "{+path}"
[[resources]]
uri = "licence://docs"
root = "docs"
file = "LICENCE"
[[access]]
prompts = ["closed-*"]
roles = ["staff"]
[[access]]
folders = ["docs/deep"]
roles = ["staff"]
"#;

const LIBRARY: Edits<'static> = &[
    ("promptshelf.toml", Some(MANIFEST)),
    ("icons/i.svg", Some(b"<svg xmlns='http://www.w3.org/2000/svg'/>")),
    ("a.md", Some(b"---\ndescription: d\nicons: icons/i.svg\narguments:\n- name: x\n  complete: {files: 'docs/*.txt'}\n---\nHello {{ x }} {% include '_part.md' %} {{ attach('docs/one.txt') }}")),
    ("_part.md", Some(b"a part")),
    ("b/c.md", Some(b"---\ndescription: nested\n---\n{{ prompt('a', x=1) }}")),
    ("closed-1.md", Some(b"closed")),
    ("declared.md", Some(b"# not a prompt")),
    ("docs/one.txt", Some(b"one")),
    ("docs/deep/two.txt", Some(b"two")),
    ("docs/LICENCE", Some(b"free")),
    ("docs/.hidden", Some(b"secret")),
    (".env", Some(b"SECRET=1")),
    (".git/config", Some(b"x")),
    (".claude/commands/git/commit.md", Some(b"---\ndescription: commits\n---\nCommit $ARGUMENTS")),
    (".claude/settings.json", Some(b"{}")),
    (".claude/skills/pdf/SKILL.md", Some(b"---\nname: pdf\ndescription: reads\n---\nRead")),
    (".gemini/commands/x.toml", Some(b"prompt = 'Do {{args}}'")),
    (".github/prompts/r.prompt.md", Some(b"---\ndescription: r\n---\nReview ${input:what}")),
    ("skills/own/SKILL.md", Some(b"---\nname: own\ndescription: own\n---\nSee notes.md")),
    ("skills/own/notes.md", Some(b"notes")),
    ("node_modules/x.md", Some(b"x")),
    ("target/y.md", Some(b"y")),
    ("a.golden.md", Some(b"golden")),
    ("a.md.bak", Some(b"old")),
    ("README.md", Some(b"# About")),
    ("bytes.bin", Some(b"\xff\x00\x01")),
    ("large.bin", Some(b"more than twenty bytes of it")),
    ("empty.md", Some(b"")),
];

// req: S-89
#[tokio::test]
async fn every_tree_gives_the_same_catalog() {
    let found = assert_same(&[LIBRARY]).await;
    assert!(found[0].iter().any(|line| line.contains("root `gone`")), "{found:#?}");
}

#[tokio::test]
async fn every_tree_gives_the_same_catalog_after_edits() {
    let found = assert_same(&[
        LIBRARY,
        &[("closed-1.md", Some(b"---\ndescription: now\n---\nclosed, edited"))],
        &[("_part.md", Some(b"another part"))],
        &[("docs/one.txt", Some(b"ONE")), ("docs/three.txt", Some(b"three"))],
        &[("a.golden.md", Some(b"a new golden file"))],
        &[(".env", Some(b"SECRET=22"))],
        &[("b/c.md", None)],
        &[("closed-1.md", Some(b"---\nbroken: [\n---\nx")), ("_part.md", None)],
        &[("promptshelf.toml", Some(b"[limits]\nfile-bytes = 12"))],
        &[("promptshelf.toml", None)],
        &[("a.md", None), ("a.md/inner.md", Some(b"---\ndescription: d\n---\nwas a file"))],
    ])
    .await;
    assert!(found[7].iter().any(|line| line.starts_with("closed-1.md") && line.contains("error")), "{found:#?}");
    assert!(found[8].iter().any(|line| line.contains("the limit is 12")), "{found:#?}");
}

#[tokio::test]
async fn every_tree_has_the_same_limits() {
    let deep = format!("{}/deep.md", vec!["d"; 40].join("/"));
    let found = assert_same(&[
        &[("a.md", Some(b"latin \xe9")), ("b.txt", Some(b"\xff")), (&deep, Some(b"deep")), ("c.md", Some(b"12345"))],
        &[("promptshelf.toml", Some(b"[limits]\nlibrary-bytes = 9"))],
        &[("promptshelf.toml", Some(b"[limits]\nfiles = 1")), ("a.md", None), ("b.txt", Some(b"text"))],
    ])
    .await;
    assert!(found[0].iter().any(|line| line.contains("nested more than 32 levels deep")), "{found:#?}");
    assert!(found[1].iter().any(|line| line.contains("more than 9 bytes")), "{found:#?}");
    assert!(found[2].iter().any(|line| line.contains("more than 1 files")), "{found:#?}");
}

#[tokio::test]
async fn every_tree_refuses_an_invalid_manifest_at_first() {
    let library = Library::of(&[("promptshelf.toml", "[limits]\nfile-bites = 12"), ("a.md", "x")]);
    let error = |result: Result<Snapshot, SourceError>| {
        let error = result.expect_err("the manifest is invalid");
        assert!(error.is_invalid_manifest());
        lines(error.diagnostics())
    };
    let on_disk = error(OnDisk::source(&library.root()).read());
    assert_eq!(error(InMemory::source(&library.root()).read()), on_disk);
    let lenient = |source: &dyn Source| lines(&source.read().expect("read").into_definitions().diagnostics);
    let found = lenient(&Files::folder(library.root()).lenient());
    assert!(found[0].contains("file-bites"), "{found:?}");
    assert_eq!(lenient(&Files::tree(tree_of(&library.root())).lenient()), found);
}

#[tokio::test]
async fn every_tree_gives_the_same_example_library() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/library");
    let definitions = |source: &dyn Source| shown(&source.read().expect("read").into_definitions());
    let on_disk = definitions(&OnDisk::source(&examples));
    assert!(on_disk["prompts"].len() > 5);
    assert_eq!(definitions(&InMemory::source(&examples)), on_disk);
}

/// Files of random edits, each with the contents that it can have.
const EDITED: &[(&str, &[&str])] = &[
    ("a.md", PROMPTS),
    ("b.md", PROMPTS),
    ("docs/deep/c.md", PROMPTS),
    ("closed-d.md", PROMPTS),
    ("_part/p.md", &["Part.\n", "Part of {{ name }}.\n", "{% include '_part/q.md' %}\n", ""]),
    ("_part/q.md", &["Other.\n", "{{ attach('docs/one.txt') }}\n"]),
    ("docs/one.txt", &["one", "two", "a text of more than twenty bytes"]),
    ("docs/deep/two.txt", &["one", "three"]),
    ("skills/s/SKILL.md", &["---\nname: s\ndescription: S\n---\nSkill.\n", "---\nname: t\n---\nSkill.\n"]),
    ("icons/i.svg", &["<svg xmlns='http://www.w3.org/2000/svg'/>", "text"]),
    (
        // Not an empty one: on disk the last content stays in effect, because editors empty a file before they write it.
        "promptshelf.toml",
        &[
            "[server]\nname = 'other'\n",
            "[limits]\nfile-bytes = 60\n",
            "[[resources]]\nuri = 'docs:///{+path}'\nfiles = 'docs/**/*.txt'\n",
            "[[access]]\nprompts = ['closed-*', 'a']\nroles = ['staff']\n",
            "[[access]]\nfolders = ['docs/deep', '_part']\nroles = ['staff']\n[roots]\ndocs = 'docs'\n",
        ],
    ),
];

const PROMPTS: &[&str] = &[
    "---\ndescription: One\n---\nOne.\n",
    "---\ndescription: Two\narguments: [{name: name, required: true, complete: {files: 'docs/**'}}]\n---\n{{ name }}\n",
    "---\ndescription: Includes\n---\n{% include '_part/p.md' %}\n",
    "---\ndescription: Attaches\nicons: icons/i.svg\n---\n{{ attach('docs/one.txt') }} {{ link('docs/deep/two.txt') }}\n",
    "---\ndescription: Calls\naliases: [old]\n---\n{{ prompt('b') }}\n",
    "---\nname: b\ndescription: Named\naccess: {roles: [staff]}\n---\nNamed.\n",
    "---\nname: zed\ndescription: Named\ndeprecated: use a\n---\nNamed.\n",
    "---\ndescription: [\n---\nBroken.\n",
    "{{ broken",
    "",
];

fn edit() -> impl Strategy<Value = (&'static str, Option<&'static [u8]>)> {
    (0..EDITED.len(), 0..PROMPTS.len() + 2).prop_map(|(file, content)| {
        let (path, contents) = EDITED[file];
        (path, contents.get(content % (contents.len() + 1)).map(|text| text.as_bytes()))
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(24),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    // req: S-533
    #[test]
    fn random_edits_are_served_like_a_library_that_was_just_opened(
        steps in prop::collection::vec(prop::collection::vec(edit(), 1..4), 2..10),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let steps = without_vain(&steps);
            let steps: Vec<Edits<'_>> = steps.iter().map(Vec::as_slice).collect();
            outcomes::<OnDisk>(&Library::new(), &steps).await;
            outcomes::<InMemory>(&Library::new(), &steps).await;
        });
    }
}

/// Leaves out the removals of files that do not exist.
fn without_vain<'s>(steps: &[Vec<Edit<'s>>]) -> Vec<Vec<Edit<'s>>> {
    let mut present = BTreeSet::new();
    let mut is_made = |(path, bytes): &(&'s str, Option<&[u8]>)| match bytes {
        Some(_) => {
            present.insert(*path);
            true
        }
        None => present.remove(path),
    };
    steps.iter().map(|step| step.iter().filter(|edit| is_made(edit)).copied().collect()).collect()
}

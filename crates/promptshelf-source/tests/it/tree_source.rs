//! Files in memory: hostile paths, roots, replacement, and what is read again.

use std::{fs, sync::Arc};

use promptshelf_core::{
    Access, AccessRule, Definitions, Origin, PromptDefinition, PromptProvenance, Provenance, ReadError, SourceText,
};
use promptshelf_source::{Files, Fixed, Loader, MemoryFile, MemoryTree, Source as _};

use crate::library::{Library, lines, names, text_of};

fn file(text: &str) -> MemoryFile {
    MemoryFile::new(text.as_bytes())
}

fn read(source: &Files) -> Definitions {
    source.read().expect("read").into_definitions()
}

// req: S-89
#[test]
fn hostile_paths_are_left_out_and_the_rest_is_served() {
    let long = format!("{}.md", "x/".repeat(3_000));
    let tree: MemoryTree = [
        ("good.md", "---\ndescription: d\n---\nhello"),
        ("../up.md", "up"),
        ("/etc/abs.md", "absolute"),
        ("a/../b.md", "inner"),
        ("a//b.md", "double"),
        ("./c.md", "dot"),
        ("", "empty"),
        ("nul\0.md", "nul"),
        ("good.md/below.md", "below a file"),
        (&long, "long"),
        ("line\nbreak/../x.md", "forged"),
    ]
    .into_iter()
    .collect();
    let definitions = read(&Files::tree(tree));
    assert_eq!(names(&definitions), ["good"]);
    let found = lines(&definitions.diagnostics);
    assert_eq!(found.len(), 10, "{found:#?}");
    assert!(found.iter().all(|line| line.contains("warning[outside-library]") && !line.contains('\n')), "{found:#?}");
    assert!(found.iter().all(|line| line.len() < 600), "{found:#?}");
}

// req: S-90
#[tokio::test]
async fn roots_outside_of_the_tree_need_a_grant_of_the_absolute_path() {
    let around = Library::of(&[("data/x.txt", "granted"), ("secret.txt", "secret")]);
    let data = around.path("data").canonicalize().expect("a folder");
    let manifest = |root: &str| {
        let resource = "[[resources]]\nuri-template = \"out:///{+path}\"\nroot = \"out\"\nfile = \"{+path}\"";
        format!("[roots]\nout = {root:?}\n{resource}\n")
    };
    let tree = |root: &str| -> MemoryTree {
        [("promptshelf.toml", &*manifest(root)), ("a.md", "---\ndescription: d\n---\nhi")].into_iter().collect()
    };
    let source = Files::tree(tree("../data"));
    let loader = Loader::open(vec![Box::new(source.clone())]).expect("loads");
    let out = |path: &str| {
        let (catalog, uri) = (loader.handle().current(), format!("out:///{path}"));
        async move {
            let (resource, variables) = catalog.find_resource(&uri).ok_or(ReadError::NotFound)?;
            resource.read(&uri, &variables).await.map(|contents| format!("{:?}", contents.body))
        }
    };
    let found = lines(&loader.diagnostics());
    assert!(found[0].contains("error[ungranted-root]: the root `out` leads out of the library"), "{found:?}");
    assert!(matches!(out("x.txt").await, Err(ReadError::NotFound)));

    for root in [data.display().to_string(), "/etc".to_owned(), "/no/such/folder".to_owned()] {
        source.replace(tree(&root));
        loader.reload().await.expect("it can be read");
        let found = lines(&loader.diagnostics());
        assert!(found[0].contains("is outside of the library, and the operator has not granted it"), "{found:?}");
        assert!(matches!(out("x.txt").await, Err(ReadError::NotFound)));
        assert!(matches!(out("passwd").await, Err(ReadError::NotFound)));
    }

    source.replace(tree(&data.display().to_string()));
    source.grant_roots([data.clone()]);
    loader.reload().await.expect("it can be read");
    assert_eq!(lines(&loader.diagnostics()), [""; 0]);
    assert!(out("x.txt").await.expect("granted").contains("granted"));
    assert!(matches!(out("../secret.txt").await, Err(ReadError::NotFound)));

    // Files of the granted folder are on disk, and may change without a new tree.
    fs::write(data.join("x.txt"), "edited").expect("a file");
    assert!(out("x.txt").await.expect("granted").contains("edited"));
    source.grant_roots([]);
    assert!(matches!(out("x.txt").await, Err(ReadError::NotFound)));
}

#[tokio::test]
async fn request_reads_the_tree_of_its_catalog() {
    let manifest = "[[resources]]\nuri-template = \"any:///{+path}\"\nfile = \"{+path}\"\n";
    let tree: MemoryTree = [("promptshelf.toml", manifest), ("a.md", "hello"), ("x.txt", "one")].into_iter().collect();
    let source = Files::tree(tree.clone());
    let loader = Loader::open(vec![Box::new(source.clone())]).expect("loads");
    let (before, uri) = (loader.handle().current(), "any:///a.md");
    let body = |catalog: Arc<promptshelf_core::Catalog>| async move {
        let (resource, variables) = catalog.find_resource(uri).expect("a resource");
        (format!("{:?}", resource.read(uri, &variables).await.expect("read").body), resource.version(&variables).await)
    };
    source.replace(tree.with([("a.md", Some(file("edited")))]));
    let (text, version) = body(Arc::clone(&before)).await;
    assert!(text.contains("hello"), "{text}");
    loader.reload().await.expect("loads");
    assert!(body(before).await.0.contains("hello"));
    let (text, edited) = body(loader.handle().current()).await;
    assert!(text.contains("edited"), "{text}");
    assert_ne!(edited, version);
    // Equal bytes have equal versions, wherever they come from.
    source.replace(tree.with([("a.md", Some(file("edited")))]));
    loader.reload().await.expect("loads");
    assert_eq!(body(loader.handle().current()).await.1, edited);
}

#[test]
fn only_changed_files_are_parsed_again() {
    let prompt = |text: &str| format!("---\ndescription: d\n---\n{text}");
    let tree: MemoryTree = [("a.md", file(&prompt("one"))), ("b.md", file(&prompt("two"))), ("c.txt", file("three"))]
        .into_iter()
        .collect();
    let source = Files::tree(tree.clone());
    let text = |definitions: &Definitions, name: &str| -> Arc<SourceText> {
        let prompt = definitions.prompts.iter().find(|prompt| prompt.name == name).expect("a prompt");
        Arc::clone(&prompt.origin.source)
    };
    let first = read(&source);

    // A tree with the same content in other files.
    let copy = tree.iter().map(|(path, file)| (path, MemoryFile::new(file.bytes()))).collect();
    source.replace(copy);
    let second = read(&source);
    assert!(Arc::ptr_eq(&text(&first, "a"), &text(&second, "a")));
    assert!(Arc::ptr_eq(&first.files["c.txt"], &second.files["c.txt"]));

    source.replace(tree.with([("b.md", Some(file(&prompt("edited"))))]));
    let third = read(&source);
    assert!(Arc::ptr_eq(&text(&first, "a"), &text(&third, "a")));
    assert_eq!(&*text(&third, "b").text, prompt("edited"));
}

// A replica that followed every revision and one that starts with the last serve the same.
#[tokio::test]
async fn invalid_manifest_is_an_error_and_the_last_tree_stays() {
    let tree: MemoryTree =
        [("promptshelf.toml", "[server]\nname = \"one\"\n"), ("a.md", "hello")].into_iter().collect();
    let source = Files::tree(tree.clone());
    let loader = Loader::open(vec![Box::new(source.clone())]).expect("loads");
    source.replace(tree.with([("promptshelf.toml", Some(file("[limmits]\n"))), ("a.md", Some(file("edited")))]));
    let error = loader.reload().await.expect_err("the manifest is invalid");
    assert!(error.is_invalid_manifest(), "{error}");
    assert!(text_of(&loader.handle().current(), "a").expect("a prompt").contains("hello"));
    source.replace(tree.with([("promptshelf.toml", Some(file(""))), ("a.md", Some(file("edited")))]));
    loader.reload().await.expect("an empty manifest is one without settings");
    let catalog = loader.handle().current();
    assert_eq!(catalog.about().name, None);
    assert!(text_of(&catalog, "a").expect("a prompt").contains("edited"));
}

fn revision(number: u64, versions: &[(&str, u64)]) -> Provenance {
    let mut provenance = Provenance::new("production", number);
    provenance
        .extend(versions.iter().map(|(name, version)| (*name, PromptProvenance::new(*version, [0; 32], ["Ada"]))));
    provenance
}

// A replica that followed every revision and one that starts with the last serve the same.
#[tokio::test]
async fn replicas_of_one_revision_agree_whatever_they_served_before() {
    let prompt = |text: &str| format!("---\ndescription: d\n---\n{text}");
    let tree: MemoryTree = [("a.md", file(&prompt("one"))), ("b.md", file(&prompt("two"))), ("README.md", file("x"))]
        .into_iter()
        .collect();
    let source = Files::tree(MemoryTree::default());
    let loader = Loader::open(vec![Box::new(source.clone())]).expect("loads");
    let steps = [
        tree.clone(),
        tree.with([("README.md", Some(file("only this changed")))]),
        tree.with([("a.md", Some(file(&prompt("edited"))))]),
        tree.with([("a.md", Some(file(&prompt("{{ undeclared }}"))))]),
        tree.with([("a.md", Some(file("---\n[\n---\n"))), ("c.md", Some(file(&prompt("new"))))]),
        tree.clone(),
    ];
    for (number, tree) in (1..).zip(steps) {
        source.replace_revision(tree.clone(), revision(number, &[("a", number)]));
        loader.reload().await.expect("loads");
        let fresh = Files::tree(MemoryTree::default());
        fresh.replace_revision(tree, revision(number, &[("a", number)]));
        let anew = Loader::open(vec![Box::new(fresh)]).expect("loads");
        let served = |loader: &Loader| {
            let catalog = loader.handle().current();
            let texts =
                catalog.prompts().iter().map(|it| (it.name().to_string(), text_of(&catalog, it.name().as_str())));
            let provenance = catalog.provenance().expect("a provenance");
            let version = catalog.find("a").and_then(|a| Some(provenance.prompt(a)?.version()));
            (catalog.generation(), texts.collect::<Vec<_>>(), lines(&loader.diagnostics()), version)
        };
        assert_eq!(served(&loader), served(&anew), "revision {number}");
        assert_eq!(served(&loader).0, number);
    }
}

#[tokio::test]
async fn local_rules_change_the_catalog_and_not_its_generation() {
    let tree: MemoryTree = [("a.md", "---\ndescription: d\n---\none")].into_iter().collect();
    let (source, local) = (Files::tree(MemoryTree::default()), Fixed::default());
    source.replace_revision(tree, revision(9, &[("a", 2), ("local", 3)]));
    let loader = Loader::open(vec![Box::new(source.clone()), Box::new(local.clone())]).expect("loads");
    let before = loader.handle().current();
    let access = Access { roles: vec!["staff".to_owned()], ..Access::default() };
    let origin = Origin::new(SourceText::new("server.toml", ""));
    let rule = AccessRule { prompts: vec!["*".to_owned()], ..AccessRule::new(access, origin) };
    let prompts = vec![PromptDefinition::template("local", "x").description("d")];
    local.replace(Definitions { access: vec![rule], ..Definitions::from_iter(prompts) });
    let change = loader.reload().await.expect("loads");
    let after = loader.handle().current();
    assert!(change.prompts && change.generation == 9);
    assert_eq!((before.generation(), after.generation()), (9, 9));
    assert!(before.serial() < after.serial());
    let report = loader.reports().borrow().clone();
    assert_eq!((report.generation, report.serial), (9, after.serial()));
    let provenance = after.provenance().expect("a provenance");
    assert_eq!(provenance.prompt(after.find("a").expect("a prompt")).map(PromptProvenance::version), Some(2));
    assert_eq!(provenance.prompt(after.find("local").expect("a prompt")), None, "it does not come from the channel");

    source.show_provenance(false);
    let change = loader.reload().await.expect("loads");
    assert!(change.prompts, "lists have other members now");
    assert!(!loader.handle().current().provenance().expect("a provenance").is_shown);
}

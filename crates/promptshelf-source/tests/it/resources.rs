//! Resources that the manifest declares, and their files.

use std::fs;

use promptshelf_core::{Catalog, ReadError, ResourceBody, Variables};
use promptshelf_source::Loader;

use crate::library::{Library, names};

fn load(library: &Library) -> Loader {
    Loader::open(vec![Box::new(library.source())]).expect("loads")
}

async fn read(catalog: &Catalog, uri: &str) -> Result<(String, String), ReadError> {
    let (resource, variables) = catalog.find_resource(uri).ok_or(ReadError::NotFound)?;
    let contents = resource.read(uri, &variables).await?;
    let body = match &contents.body {
        ResourceBody::Text(text) => text.to_string(),
        ResourceBody::Blob(blob) => format!("{} bytes", blob.len()),
    };
    Ok((contents.mime_type.as_str().to_owned(), body))
}

const MANIFEST: &str = r#"
[roots]
project = "../project"
[limits]
resource-bytes = 20
[[resources]]
uri = "docs://style"
file = "style.md"
[[resources]]
uri = "docs:///{+path}"
files = "docs/**/*.md"
priority = 0.5
audience = ["assistant"]
[[resources]]
uri-template = "logs://recent{?timeframe}"
file = "logs/{timeframe}.log"
[[resources.variables]]
name = "timeframe"
enum = ["1h", "1d"]
default = "1h"
[[resources]]
uri-template = "file:///{+path}"
root = "project"
file = "{+path}"
[[resources]]
uri = "project://license"
root = "project"
file = "LICENSE"
mime-type = "text/x-license"
[[resources]]
uri-template = "hello://{name}"
text = "Hello {{ name }}"
"#;

fn library() -> Library {
    let library = Library::of(&[
        ("promptshelf.toml", MANIFEST),
        ("a.md", "---\ndescription: d\n---\nhello"),
        ("style.md", "# Style"),
        ("docs/one.md", "one"),
        ("docs/deep/two.md", "two"),
        ("logs/1h.log", "an hour"),
        ("logs/1d.log", "a day"),
    ]);
    let project = library.outside().join("project");
    fs::create_dir_all(project.join("src")).expect("folders");
    fs::write(project.join("src/main.rs"), "fn main() {}").expect("file");
    fs::write(project.join("LICENSE"), "free").expect("file");
    fs::write(project.join(".env"), "secret").expect("file");
    fs::write(project.join("large.txt"), "more than twenty bytes").expect("file");
    fs::write(project.join("bytes"), b"\xff\x00").expect("file");
    fs::write(library.outside().join("secret.txt"), "secret").expect("file");
    library
}

#[test]
fn declared_resource_is_not_a_prompt() {
    assert_eq!(names(&library().read()), ["a"]);
    assert_eq!(library().mistakes(), [""; 0]);
}

#[tokio::test]
async fn declared_files_are_listed_and_read() {
    let library = library();
    let loader = load(&library);
    assert_eq!(crate::library::lines(&loader.diagnostics()), [""; 0]);
    let catalog = loader.handle().current();
    let listed: Vec<_> = catalog
        .resources()
        .iter()
        .map(|r| (r.uri(), r.name(), r.mime_type().map_or("", |m| m.as_str()), r.size()))
        .collect();
    assert_eq!(
        listed,
        [
            ("docs:///docs/deep/two.md", "docs/deep/two.md", "text/markdown", Some(3)),
            ("docs:///docs/one.md", "docs/one.md", "text/markdown", Some(3)),
            ("docs://style", "style.md", "text/markdown", Some(7)),
            ("project://license", "LICENSE", "text/x-license", Some(4)),
        ]
    );
    assert_eq!(catalog.resources()[0].annotations().priority, Some(0.5));
    assert!(catalog.resources()[3].annotations().last_modified.is_some());
    let is = |mime_type: &str, body: &str| (mime_type.to_owned(), body.to_owned());
    assert_eq!(read(&catalog, "docs://style").await.expect("read"), is("text/markdown", "# Style"));
    assert_eq!(read(&catalog, "logs://recent").await.expect("read"), is("text/plain", "an hour"));
    assert_eq!(read(&catalog, "logs://recent?timeframe=1d").await.expect("read"), is("text/plain", "a day"));
    assert_eq!(read(&catalog, "file:///src/main.rs").await.expect("read"), is("text/x-rust", "fn main() {}"));
    assert_eq!(read(&catalog, "file:///bytes").await.expect("read"), is("application/octet-stream", "2 bytes"));
    assert_eq!(read(&catalog, "project://license").await.expect("read"), is("text/x-license", "free"));
    assert_eq!(read(&catalog, "hello://you").await.expect("read"), is("text/plain", "Hello you"));
}

// req: J8, R-3, X9
#[tokio::test]
async fn unreadable_resource_is_not_found() {
    let library = library();
    let project = library.outside().join("project");
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("../secret.txt", project.join("out.txt")).expect("link");
        std::os::unix::fs::symlink(".env", project.join("in.txt")).expect("link");
        let made = std::process::Command::new("mkfifo").arg(project.join("fifo")).status().expect("mkfifo");
        assert!(made.success());
    }
    let loader = load(&library);
    let catalog = loader.handle().current();
    for path in [
        "missing.txt",
        "../secret.txt",
        "..%2Fsecret.txt",
        "src/../../secret.txt",
        "/etc/passwd",
        "%2Fetc%2Fpasswd",
        ".env",
        "src",
        "src/",
        "",
        "a%00b",
        "out.txt",
        "fifo",
        "src//main.rs",
        "./LICENSE",
        "LICENSE/x",
        "..\\secret.txt",
    ] {
        let uri = format!("file:///{path}");
        assert!(matches!(read(&catalog, &uri).await, Err(ReadError::NotFound)), "{uri}");
    }
    assert!(
        matches!(read(&catalog, "logs://recent?timeframe=2h").await, Err(ReadError::NotFound)),
        "its enum does not allow it"
    );
    assert!(matches!(read(&catalog, "file:///large.txt").await, Err(ReadError::TooLarge { limit: 20 })));
}

#[tokio::test]
async fn version_changes_with_the_file() {
    let library = library();
    let loader = load(&library);
    let catalog = loader.handle().current();
    let version = async |uri: &str| {
        let (resource, variables): (_, Variables) = catalog.find_resource(uri).expect("found");
        resource.version(&variables).await
    };
    let uri = "file:///src/main.rs";
    let first = version(uri).await.expect("it is there");
    assert_eq!(version(uri).await, Some(first));
    fs::write(library.outside().join("project/src/main.rs"), "fn main() { }").expect("file");
    assert_ne!(version(uri).await, Some(first));
    fs::remove_file(library.outside().join("project/src/main.rs")).expect("removed");
    assert_eq!(version(uri).await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_in_a_root_are_noticed() {
    let library = library();
    let mut watched = library.watch().await;
    let loads = watched.loads();
    let generation = watched.loader.handle().current().generation();
    fs::write(library.outside().join("project/src/main.rs"), "changed").expect("file");
    watched.until("another load", |_, report| report.loads > loads).await;
    assert_eq!(watched.loader.handle().current().generation(), generation, "no definition has changed");
}

#[tokio::test(flavor = "multi_thread")]
async fn new_file_is_listed() {
    let library = library();
    let mut watched = library.watch().await;
    library.write("docs/three.md", "three");
    watched.until("it is listed", |catalog, _| catalog.find_resource("docs:///docs/three.md").is_some()).await;
    library.remove("docs/three.md");
    watched.until("it is gone", |catalog, _| catalog.find_resource("docs:///docs/three.md").is_none()).await;
}

#[test]
fn missing_declared_files_are_reported() {
    let library = Library::of(&[(
        "promptshelf.toml",
        "[roots]\nhere = \".\"\n[[resources]]\nuri = \"a://b\"\nfile = \"stlye.txt\"\n[[resources]]\nuri = \"a://c\"\nfile = \"x\"\nroot = \"here\"\n[[resources]]\nuri = \"a:///{path}\"\nfiles = \"*.zip\"\n",
    )]);
    library.write("a.md", "---\ndescription: d\n---\nhello");
    library.write("style.txt", "x");
    assert_eq!(
        crate::library::lines(&load(&library).diagnostics()),
        [
            "promptshelf.toml:5:8: error[missing-file]: file `stlye.txt` not found in the library (did you mean `style.txt`?)",
            "promptshelf.toml:8:8: warning[missing-file]: the root `here` has no file `x` yet",
            "promptshelf.toml:12:9: warning[missing-file]: no file matches `*.zip`",
        ]
    );
}

/// A library with roots outside of it, and a source without grants.
fn ungranted() -> (Library, promptshelf_source::Files) {
    let library = library();
    let source = promptshelf_source::Files::folder(library.root());
    (library, source)
}

#[tokio::test]
async fn a_root_outside_of_the_library_needs_a_grant() {
    let (library, source) = ungranted();
    let loader = Loader::open(vec![Box::new(source.clone())]).expect("loads");
    let found = crate::library::lines(&loader.diagnostics());
    let project = library.outside().canonicalize().expect("a folder").join("project");
    assert_eq!(
        found[0],
        format!(
            "promptshelf.toml:3:11: error[ungranted-root]: the root `project` is outside of the library, and the operator \
             has not granted it (move it into the library, or have the operator write `roots = [\"{}\"]` under [grants] in \
             server.toml)",
            project.display()
        )
    );
    let uri = "file:///src/main.rs";
    assert!(matches!(read(&loader.handle().current(), uri).await, Err(ReadError::NotFound)));
    assert!(read(&loader.handle().current(), "docs://style").await.is_ok(), "the library itself needs no grant");

    source.grant_roots([project.clone()]);
    loader.reload().await.expect("it can be read");
    assert_eq!(crate::library::lines(&loader.diagnostics()), [""; 0]);
    let granted = loader.handle().current();
    assert!(read(&granted, uri).await.is_ok());

    // A revoked grant takes effect at once, even for a request that holds the catalog of before.
    source.grant_roots([project.join("src")]);
    assert!(matches!(read(&granted, uri).await, Err(ReadError::NotFound)));
}

#[cfg(unix)]
#[tokio::test]
async fn a_root_that_is_a_link_out_of_the_library_needs_a_grant() {
    let (library, source) = ungranted();
    std::os::unix::fs::symlink(library.outside().join("project"), library.path("inside")).expect("a link");
    library.write("promptshelf.toml", MANIFEST.replace("../project", "inside"));
    let loader = Loader::open(vec![Box::new(source)]).expect("loads");
    let found = crate::library::lines(&loader.diagnostics());
    assert!(found.iter().any(|line| line.contains("error[ungranted-root]")), "{found:?}");
    assert!(matches!(read(&loader.handle().current(), "file:///src/main.rs").await, Err(ReadError::NotFound)));
}

#[test]
fn an_ungranted_root_does_not_reveal_whether_it_exists() {
    let message = |root: &str| {
        let library = Library::of(&[("promptshelf.toml", &format!("[roots]\nx = \"{root}\"")), ("a.md", "hello")]);
        let source = promptshelf_source::Files::folder(library.root());
        let loader = Loader::open(vec![Box::new(source)]).expect("loads");
        crate::library::lines(&loader.diagnostics())[0].replace(root, "ROOT")
    };
    assert_eq!(message("/no/such/folder"), message("/etc"));
}

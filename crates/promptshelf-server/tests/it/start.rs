//! The whole server, started in this process from settings.

use promptshelf_server::{
    Exit, Server, Start,
    settings::{Address, ServedLibrary, Settings},
};
use promptshelf_testkit::folder::Folder;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    sync::oneshot,
};

use super::LIST;

const HELLO: &str = "---\ndescription: Says hello\n---\nSay hello.\n";

fn settings(folder: &Folder) -> Settings {
    let mut settings = Settings::default();
    settings.fixed.library = ServedLibrary::Folder(folder.path().to_owned());
    settings.fixed.address = Address { port: 0, ..Address::default() };
    settings
}

fn over_http() -> Start {
    Start { over_http: true, ..Start::default() }
}

/// Returns the status of a list of prompts that is requested under a host name.
async fn status(server: std::net::SocketAddr, host: &str) -> u16 {
    let mut stream = TcpStream::connect(server).await.expect("the server listens");
    let length = LIST.len();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2025-06-18\r\n\
         Content-Length: {length}\r\nConnection: close\r\n\r\n{LIST}"
    );
    stream.write_all(request.as_bytes()).await.expect("the server reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    answer.split(' ').nth(1).and_then(|status| status.parse().ok()).expect(&answer)
}

#[tokio::test]
async fn server_starts_from_settings_and_applies_those_that_are_live() {
    let folder = Folder::library(&[("hello.md", HELLO)]);
    let mut server = Server::start(settings(&folder), over_http()).await.expect("it starts");
    let address = server.address().expect("it listens");
    assert_eq!(server.library().catalog().prompts().len(), 1);

    let mut changed = settings(&folder);
    changed.fixed.address.port = 1;
    changed.live.http.mcp.allowed_hosts = vec!["prompts.example".to_owned()];
    server.apply(changed, false).await;
    assert_eq!(server.settings().fixed.address.port, 0, "a change of the address needs a restart");

    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(server.serve(async { drop(stopped.await) }));
    assert_eq!(status(address, "prompts.example").await, 200);
    assert_eq!(status(address, "localhost").await, 200);
    assert_eq!(status(address, "other.example").await, 403);
    stop.send(()).expect("the server runs");
    serving.await.expect("no panic").expect("it ends without an error");
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn settings_that_do_not_fit_each_other_are_refused() {
    let folder = Folder::library(&[("hello.md", HELLO), ("broken.md", "---\narguments: 1\n---\nHello.\n")]);
    let strict = Start { strict: true, ..over_http() };
    let failure = Server::start(settings(&folder), strict).await.expect_err("the library has errors");
    assert_eq!(failure.exit, Exit::Strict);

    let mut open = settings(&folder);
    open.fixed.address.host = "0.0.0.0".to_owned();
    let failure = Server::start(open, over_http()).await.expect_err("everyone could read the prompts");
    assert_eq!(failure.exit, Exit::Address);

    let mut missing = settings(&folder);
    missing.fixed.library = ServedLibrary::Folder(folder.path().join("missing"));
    let failure = Server::start(missing, over_http()).await.expect_err("there is no library");
    assert_eq!(failure.exit, Exit::Library);
}

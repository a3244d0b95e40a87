//! Servers and clients of the testkit, connected to a library in this process or to the program.

use std::path::Path;

use promptshelf::{Library, http::Options, mcp::Revision};
pub(crate) use promptshelf_testkit::{
    client::Client,
    folder::Folder,
    headers::usual_headers,
    http::{HttpWire, Received, Request, Response},
    in_time,
    pipe::Pipe,
};
use promptshelf_testkit::{program::promptshelf, served::Served};
use tokio::{net::TcpListener, process::Command, sync::oneshot};

/// Returns the program with the arguments to serve a folder.
pub(crate) fn serve_command(folder: &Path) -> Command {
    let mut command = Command::from(promptshelf());
    command.arg("serve").arg(folder).kill_on_drop(true);
    command
}

/// Connects a pipe to a server in this process.
pub(crate) fn pipe_in_memory(folder: &Path) -> Pipe {
    let library = Library::builder().folder(folder).build().expect("a library");
    let follower = library.loader().spawn();
    let server = library.server().clone();
    Pipe::memory(|input, output| {
        let serving = server.clone();
        let task = tokio::spawn(async move {
            let _follower = follower;
            serving.serve_stdio(input, output).await.expect("a clean end");
        });
        Served::Task { shutdown: Box::new(move || server.shutdown()), task }
    })
}

/// Connects a pipe to the program.
pub(crate) fn pipe_to_program(folder: &Path) -> Pipe {
    let mut command = serve_command(folder);
    command.arg("--stdio");
    Pipe::program(command)
}

/// Connects to a server in this process, on a real port.
pub(crate) async fn http_in_memory(folder: &Path) -> HttpWire {
    let library = Library::builder().folder(folder).build().expect("a library");
    let follower = library.loader().spawn();
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let (end, ended) = oneshot::channel::<()>();
    let task = tokio::spawn(async move {
        let _follower = follower;
        let until = async move { drop(ended.await) };
        promptshelf::http::serve(listener, &library, &Options::default(), until).await;
    });
    let mut end = Some(end);
    HttpWire::new(address, Served::Task { shutdown: Box::new(move || drop(end.take())), task })
}

/// Connects to the program over HTTP.
pub(crate) async fn http_to_program(folder: &Path) -> HttpWire {
    let mut command = serve_command(folder);
    command.args(["--http", "127.0.0.1:0"]);
    HttpWire::program(command).await
}

/// Starts the program and connects a client over stdio.
pub(crate) async fn client_over_stdio(folder: &Path, revision: Revision) -> Client {
    Client::over_pipe(pipe_to_program(folder), revision.as_str()).await
}

/// Starts the program and connects a client over HTTP.
pub(crate) async fn client_over_http(folder: &Path, revision: Revision) -> Client {
    Client::over_http(http_to_program(folder).await, revision.as_str()).await
}

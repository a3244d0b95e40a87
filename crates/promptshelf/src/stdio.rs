//! This process's own pipes as a conversation: stdin, and a stdout that nothing
//! else can write to.

use std::io;

use promptshelf_mcp::Server;

#[cfg(unix)]
mod pipes;

/// Serves stdin and stdout until stdin ends or the server is shut down. A
/// client that has closed its end of stdout is no error: it has gone.
pub(crate) async fn serve(server: &Server) -> io::Result<()> {
    let output = protocol_output()?;
    #[cfg(unix)]
    let served = match pipes::Input::stdin() {
        Some(input) => server.serve_stdio(input, output).await,
        // A file, or nothing at all: there is nothing to wait for.
        None => server.serve_stdio(tokio::io::stdin(), output).await,
    };
    #[cfg(not(unix))]
    let served = server.serve_stdio(tokio::io::stdin(), output).await;
    match served {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        ended => ended,
    }
}

/// stdout for the protocol alone: whatever else in this process prints (a
/// prompt's own code, a library it uses) is sent to stderr from here on.
#[cfg(unix)]
fn protocol_output() -> io::Result<pipes::Output> {
    use std::os::fd::AsFd;

    let pipe = io::stdout().as_fd().try_clone_to_owned()?;
    rustix::stdio::dup2_stdout(io::stderr())?;
    pipes::Output::new(pipe)
}

#[cfg(not(unix))]
fn protocol_output() -> io::Result<tokio::io::Stdout> {
    Ok(tokio::io::stdout())
}

//! This process's own pipes as a conversation: stdin, and a stdout that nothing
//! else can write to.

use std::io;

use promptshelf_mcp::Server;

/// Serves stdin and stdout until stdin ends or the server is shut down. A
/// client that has closed its end of stdout is no error: it has gone.
pub(crate) async fn serve(server: &Server) -> io::Result<()> {
    match server.serve_stdio(tokio::io::stdin(), protocol_output()?).await {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        ended => ended,
    }
}

/// stdout for the protocol alone: whatever else in this process prints (a
/// prompt's own code, a library it uses) is sent to stderr from here on.
#[cfg(unix)]
fn protocol_output() -> io::Result<tokio::fs::File> {
    use std::os::fd::AsFd;

    let pipe = io::stdout().as_fd().try_clone_to_owned()?;
    rustix::stdio::dup2_stdout(io::stderr())?;
    Ok(tokio::fs::File::from_std(std::fs::File::from(pipe)))
}

#[cfg(not(unix))]
fn protocol_output() -> io::Result<tokio::io::Stdout> {
    Ok(tokio::io::stdout())
}

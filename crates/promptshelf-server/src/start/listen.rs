//! Listening on the configured address, and the host names that requests may use.

use std::{
    io,
    net::{IpAddr, SocketAddr},
};

use tokio::net::{TcpListener, TcpSocket, lookup_host};

use crate::{
    failure::{Exit, Failure},
    settings::{Address, Live, Settings},
};

/// Connections that the system keeps until they are accepted; it has a limit of its own, often 4,096 too. A crowd fills
/// the usual 1,024 while the processor is busy, and a dropped connection is tried again by its client after a second.
const BACKLOG: u32 = 4_096;

/// Listens on the address and returns the bound one: port 0 becomes the port that the system chose.
pub(super) async fn bind(settings: &Settings) -> Result<(TcpListener, SocketAddr), Failure> {
    let address = &settings.fixed.address;
    let found = lookup_host((address.host.as_str(), address.port)).await.map(Iterator::collect::<Vec<SocketAddr>>);
    let addresses = match found {
        Ok(addresses) if !addresses.is_empty() => addresses,
        Ok(_) => return Err(cannot(address, "the host name has no address")),
        Err(error) => return Err(cannot(address, &error.to_string())),
    };
    if !settings.fixed.allow_remote
        && settings.live.sign_in.is_none()
        && addresses.iter().any(|address| !address.ip().is_loopback())
    {
        let message = format!("other machines can reach {address}, and sign-in is not configured");
        return Err(Failure::new(Exit::Address, message).help(format!(
            "configure [auth] (see --help), add --allow-remote if anyone who reaches the port may read every prompt, or listen on 127.0.0.1:{}",
            address.port
        )));
    }
    let bound = async {
        let listener = listen(&addresses)?;
        let bound = listener.local_addr()?;
        Ok((listener, bound))
    };
    bound.await.map_err(|error: io::Error| match error.kind() {
        io::ErrorKind::AddrInUse => cannot(address, "the address is in use by another program")
            .help("end that program, or use a free port with --http 127.0.0.1:0"),
        io::ErrorKind::PermissionDenied => {
            cannot(address, "permission denied").help("ports below 1024 are reserved on many systems: use a larger one")
        }
        io::ErrorKind::AddrNotAvailable => cannot(address, "the address does not belong to this machine"),
        _ => cannot(address, &error.to_string()),
    })
}

fn listen(addresses: &[SocketAddr]) -> io::Result<TcpListener> {
    let mut last = io::Error::from(io::ErrorKind::InvalidInput);
    for address in addresses {
        let socket = match address {
            SocketAddr::V4(_) => TcpSocket::new_v4()?,
            SocketAddr::V6(_) => TcpSocket::new_v6()?,
        };
        // On Windows, the option would allow other programs to take over the port.
        #[cfg(not(windows))]
        socket.set_reuseaddr(true)?;
        match socket.bind(*address).and_then(|()| socket.listen(BACKLOG)) {
            Ok(listener) => return Ok(listener),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// The accepted values of the `Host` header: names of the loopback interface, the bound address, and those that the
/// operator configures.
pub(super) fn hosts(live: &Live, bound: SocketAddr) -> Vec<String> {
    let own = ["localhost", "127.0.0.1", "[::1]"].map(str::to_owned);
    let address = match bound.ip() {
        ip if ip.is_unspecified() || ip.is_loopback() => None,
        IpAddr::V4(ip) => Some(ip.to_string()),
        IpAddr::V6(ip) => Some(format!("[{ip}]")),
    };
    own.into_iter().chain(address).chain(live.hosts()).collect()
}

fn cannot(address: &Address, reason: &str) -> Failure {
    Failure::new(Exit::Address, format!("cannot listen on {address}: {reason}"))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::{net::TcpStream, time::Duration};

    use super::*;

    const ROOM: Duration = Duration::from_secs(30);

    /// More than the usual backlog. Connections that are not accepted have no descriptor in this process.
    const CROWD: usize = 1_100;

    // req: S-58
    #[tokio::test]
    async fn connections_wait_until_the_server_accepts() {
        crate::http::raise_open_files();
        let allowed = std::fs::read_to_string("/proc/sys/net/core/somaxconn").expect("a setting of the system");
        let crowd = CROWD.min(allowed.trim().parse().expect("a number"));
        let listener = listen(&[SocketAddr::from(([127, 0, 0, 1], 0))]).expect("a free port");
        let address = listener.local_addr().expect("it listens");
        // Without room, the system drops the connection, and the client tries in vain again.
        let connect = |_| TcpStream::connect_timeout(&address, ROOM);
        let clients: Vec<TcpStream> = (0..crowd).map(connect).collect::<Result<_, _>>().expect("there is room");
        assert_eq!(clients.len(), crowd);
    }
}

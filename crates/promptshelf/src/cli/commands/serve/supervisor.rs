//! What a service manager is told, where one has started the server and listens
//! (`Type=notify` of systemd). Anywhere else this does nothing.

/// The server answers requests.
pub(super) fn ready() {
    #[cfg(unix)]
    tell(&[sd_notify::NotifyState::Ready]);
}

/// Settings are being read again; [`ready`] follows.
pub(super) fn reloading() {
    #[cfg(unix)]
    {
        use sd_notify::NotifyState;
        let mut state = vec![NotifyState::Reloading];
        state.extend(NotifyState::monotonic_usec_now());
        tell(&state);
    }
}

/// The server is ending.
pub(super) fn stopping() {
    #[cfg(unix)]
    tell(&[sd_notify::NotifyState::Stopping]);
}

#[cfg(unix)]
fn tell(state: &[sd_notify::NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        tracing::warn!(%error, "the service manager cannot be told how things are");
    }
}

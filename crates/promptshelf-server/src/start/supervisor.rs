//! Notifications for a service manager that started the server (`Type=notify` of systemd). Without one, no effect.

pub(super) fn ready() {
    #[cfg(unix)]
    notify(&[sd_notify::NotifyState::Ready]);
}

/// Notifies that settings are being reloaded; [`ready`] follows.
pub(super) fn reloading() {
    #[cfg(unix)]
    {
        use sd_notify::NotifyState;
        let mut state = vec![NotifyState::Reloading];
        state.extend(NotifyState::monotonic_usec_now());
        notify(&state);
    }
}

pub(super) fn stopping() {
    #[cfg(unix)]
    notify(&[sd_notify::NotifyState::Stopping]);
}

#[cfg(unix)]
fn notify(state: &[sd_notify::NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        tracing::warn!(%error, "cannot notify the service manager");
    }
}

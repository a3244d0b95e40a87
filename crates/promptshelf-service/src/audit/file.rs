//! An audit file: one JSON object a line, synchronised to disk, and rotated by size.
//!
//! A record is lost if the queue is full or the disk refuses it; the next line that can be written holds the number of
//! lost records. By default requests never wait for the disk. With [`OnLoss::Refuse`] each answer waits for its record,
//! and requests are refused while nothing can be written.

#[cfg(test)]
mod tests;

use std::{
    io,
    sync::{
        Arc,
        atomic::Ordering,
        mpsc::{self, SyncSender},
    },
    thread,
};

use promptshelf_core::BoxFuture;
use tokio::sync::oneshot;

use super::{
    AuditFileOptions, OnLoss, RealDisk, Recorder,
    writer::{Command, QUEUE, Shared, Writer},
};

/// A recorder that writes to a file, in a thread of its own.
///
/// ```
/// use promptshelf_service::{AuditFile, AuditFileOptions, Recorder as _};
///
/// # fn main() -> std::io::Result<()> {
/// # let folder = tempfile::tempdir()?;
/// let audit = AuditFile::open(AuditFileOptions::new(folder.path().join("audit.jsonl")))?;
/// audit.record(r#"{"method":"get"}"#.to_owned());
/// audit.flush();
/// assert_eq!(audit.lost(), 0);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct AuditFile {
    queue: SyncSender<Command>,
    shared: Arc<Shared>,
}

impl AuditFile {
    /// Opens or creates the file; a new file is readable by its owner only.
    ///
    /// # Errors
    ///
    /// I/O errors of opening the file and of starting the thread.
    pub fn open(options: AuditFileOptions) -> io::Result<AuditFile> {
        let shared = Arc::<Shared>::default();
        shared.refuses.store(options.on_loss == OnLoss::Refuse, Ordering::Release);
        let mut writer = Writer::open(Box::new(RealDisk), options)?;
        let (queue, commands) = mpsc::sync_channel(QUEUE);
        let writing = Arc::clone(&shared);
        thread::Builder::new().name("audit".to_owned()).spawn(move || writer.run(&commands, &writing))?;
        Ok(AuditFile { queue, shared })
    }

    /// Blocks until all records so far are on disk.
    pub fn flush(&self) {
        let (done, waiting) = mpsc::channel();
        let done = move || {
            done.send(()).ok();
        };
        if self.queue.send(Command::Flush(Box::new(done))).is_ok() {
            waiting.recv().ok();
        }
    }

    /// Opens the file again, or another one, for all records from now on; used after the file has been moved away.
    /// Blocks until that is done.
    ///
    /// # Errors
    ///
    /// I/O errors of opening the file. The open file stays in use.
    pub fn reopen(&self, options: AuditFileOptions) -> io::Result<()> {
        let (done, waiting) = mpsc::channel();
        let gone = || io::Error::other("the audit thread has ended");
        self.queue.send(Command::Reopen(options, done)).map_err(|_| gone())?;
        waiting.recv().map_err(|_| gone())?
    }

    /// Returns the number of lost records that the file does not mention yet.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.shared.unreported.load(Ordering::Acquire)
    }

    /// Returns the number of records lost since the file was opened.
    #[must_use]
    pub fn lost_total(&self) -> u64 {
        self.shared.total.load(Ordering::Acquire)
    }

    fn refuses(&self) -> bool {
        self.shared.refuses.load(Ordering::Acquire)
    }
}

impl Recorder for AuditFile {
    fn record(&self, line: String) {
        if self.queue.try_send(Command::Line(line)).is_err() {
            self.shared.add_lost(1);
        }
    }

    fn is_ready(&self) -> bool {
        !self.refuses() || !self.shared.is_failing.load(Ordering::Acquire)
    }

    fn confirmation(&self) -> Option<BoxFuture<'static, bool>> {
        if !self.refuses() {
            return None;
        }
        let (queue, shared) = (self.queue.clone(), Arc::clone(&self.shared));
        let lost_before = shared.total.load(Ordering::Acquire);
        Some(Box::pin(async move {
            let (done, written) = oneshot::channel();
            let done = move || {
                done.send(()).ok();
            };
            let is_queued = queue.try_send(Command::Flush(Box::new(done))).is_ok();
            // A loss of another request refuses this one too: which records were lost is not known.
            is_queued && written.await.is_ok() && shared.total.load(Ordering::Acquire) == lost_before
        }))
    }
}

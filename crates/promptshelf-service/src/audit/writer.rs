//! The writing thread of an audit file: batches, rotation and retention.
//!
//! A failure never removes a record that is on the disk, and each record that may be missing is counted.

#[cfg(test)]
mod tests;

use std::{
    io,
    path::{Path, PathBuf},
    sync::{
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc::{Receiver, RecvTimeoutError},
    },
    thread,
    time::{Duration, SystemTime},
};

use jiff::Timestamp;
use serde_json::json;

use super::{AppendFile, AuditFileOptions, Disk, Fate, OnLoss};
use crate::seldom::Seldom;

pub(super) const QUEUE: usize = 8_192;

/// The time after which a failed write is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// The time for which records are collected when no answer waits for them. Under load, each synchronisation would
/// otherwise begin as soon as the last one ends: hundreds a second, which interrupt the threads of requests.
const GATHER: Duration = Duration::from_millis(20);

/// The number of removals during one write after which it has failed.
const REMOVALS: usize = 3;

pub(super) enum Command {
    Line(String),
    Flush(Box<dyn FnOnce() + Send>),
    /// Continues with another file, if it can be opened.
    Reopen(AuditFileOptions, std::sync::mpsc::Sender<io::Result<()>>),
}

#[derive(Debug, Default)]
pub(super) struct Shared {
    /// Lost records that the file does not mention yet.
    pub(super) unreported: AtomicU64,
    pub(super) total: AtomicU64,
    pub(super) is_failing: AtomicBool,
    /// Whether requests are refused rather than answered without a record.
    pub(super) refuses: AtomicBool,
    reported: Seldom,
}

impl Shared {
    pub(super) fn add_lost(&self, count: u64) {
        self.unreported.fetch_add(count, Ordering::AcqRel);
        self.total.fetch_add(count, Ordering::AcqRel);
    }
}

#[derive(Debug)]
pub(super) struct Writer {
    disk: Box<dyn Disk>,
    options: AuditFileOptions,
    file: Box<dyn AppendFile>,
    length: u64,
    /// Whether part of a line may follow, because a failed write could not be undone.
    is_cut: bool,
    /// Whether the last rotation failed: consecutive failures are logged once.
    cannot_rotate: bool,
    replaced: Seldom,
}

impl Writer {
    pub(super) fn open(mut disk: Box<dyn Disk>, options: AuditFileOptions) -> io::Result<Writer> {
        let mut file = disk.open(&options.path)?;
        let length = file.length()?;
        // The machine may have failed in the middle of a line.
        let is_cut = !file.ends_with_a_line()?;
        Ok(Writer { disk, options, file, length, is_cut, cannot_rotate: false, replaced: Seldom::default() })
    }

    pub(super) fn run(&mut self, commands: &Receiver<Command>, shared: &Shared) {
        shared.refuses.store(self.options.on_loss == OnLoss::Refuse, Ordering::Release);
        loop {
            let first = match shared.is_failing.load(Ordering::Acquire) {
                // With refused requests no record would come that could show that the disk works again.
                true => match commands.recv_timeout(RETRY) {
                    Err(RecvTimeoutError::Timeout) => None,
                    Err(RecvTimeoutError::Disconnected) => return,
                    Ok(command) => Some(command),
                },
                false => match commands.recv() {
                    Err(_) => return,
                    Ok(command) => Some(command),
                },
            };
            if matches!(first, Some(Command::Line(_))) && self.options.on_loss != OnLoss::Refuse {
                thread::sleep(GATHER);
            }
            let (mut batch, mut count, mut waiting) = (String::new(), 0, Vec::new());
            // Everything in the queue is written together and synchronised once.
            for command in first.into_iter().chain(commands.try_iter().take(QUEUE)) {
                match command {
                    Command::Reopen(options, done) => {
                        self.write_batch(std::mem::take(&mut batch), std::mem::take(&mut count), shared);
                        done.send(self.reopen(options)).ok();
                        shared.refuses.store(self.options.on_loss == OnLoss::Refuse, Ordering::Release);
                    }
                    Command::Line(line) => {
                        batch.push_str(&line);
                        batch.push('\n');
                        count += 1;
                    }
                    Command::Flush(done) => waiting.push(done),
                }
            }
            self.write_batch(batch, count, shared);
            for done in waiting {
                done();
            }
        }
    }

    fn reopen(&mut self, options: AuditFileOptions) -> io::Result<()> {
        let mut file = self.disk.open(&options.path)?;
        self.length = file.length()?;
        self.is_cut = !file.ends_with_a_line()?;
        (self.file, self.options, self.cannot_rotate) = (file, options, false);
        Ok(())
    }

    pub(super) fn write_batch(&mut self, mut batch: String, count: u64, shared: &Shared) {
        let missing = shared.unreported.swap(0, Ordering::AcqRel);
        if missing > 0 {
            if !shared.is_failing.load(Ordering::Acquire) {
                self.log_loss("more records came than could be written", shared);
            }
            batch.insert_str(
                0,
                &format!("{}\n", json!({ "time": format!("{:.3}", Timestamp::now()), "lost": missing })),
            );
        }
        if batch.is_empty() {
            return;
        }
        match self.write(&batch) {
            Ok(()) => shared.is_failing.store(false, Ordering::Release),
            Err(error) => {
                shared.unreported.fetch_add(missing, Ordering::AcqRel);
                shared.add_lost(count);
                shared.is_failing.store(true, Ordering::Release);
                self.log_loss(&error.to_string(), shared);
            }
        }
    }

    /// Logs lost records once a minute: the log is often on the same disk.
    fn log_loss(&self, reason: &str, shared: &Shared) {
        if shared.reported.is_due() {
            let (path, lost) = (self.options.path.display(), shared.total.load(Ordering::Acquire));
            tracing::error!(reason, %path, lost, "audit records cannot be written; `lost` is the number so far");
        }
    }

    /// Writes a batch to the file that has the name, whatever other programs do with it meanwhile.
    fn write(&mut self, batch: &str) -> io::Result<()> {
        if self.file.fate(&self.options.path) != Fate::InPlace {
            self.replace_lost_file()?;
        }
        for _ in 0..REMOVALS {
            self.append(batch)?;
            // A file that was only moved has the batch.
            if self.file.fate(&self.options.path) != Fate::Removed {
                return Ok(());
            }
            self.replace_lost_file()?;
        }
        Err(io::Error::other("the file is removed again and again"))
    }

    fn replace_lost_file(&mut self) -> io::Result<()> {
        if self.replaced.is_due() {
            let path = self.options.path.display();
            tracing::warn!(%path, "the audit file was removed or moved by another program: records go to a new one");
        }
        self.reopen(self.options.clone())
    }

    fn append(&mut self, batch: &str) -> io::Result<()> {
        let size = batch.len() as u64;
        if self.length > 0 && self.length.saturating_add(size) > self.options.max_bytes {
            match self.rotate() {
                Ok(()) => self.cannot_rotate = false,
                // A file that is too large is better than a missing record.
                Err(error) if !std::mem::replace(&mut self.cannot_rotate, true) => {
                    let path = self.options.path.display();
                    tracing::error!(%error, %path, "audit file cannot be rotated and grows beyond `max-bytes`");
                }
                Err(_) => {}
            }
        }
        if self.is_cut {
            self.file.append(b"\n")?;
            self.length = self.file.length()?;
            self.is_cut = false;
        }
        if let Err(error) = self.file.append(batch.as_bytes()) {
            // Half a line would make the next one unreadable.
            self.is_cut = self.file.truncate(self.length).is_err();
            return Err(error);
        }
        self.length += size;
        // After a failure the records may be on the disk or not: they count as lost.
        self.file.sync()
    }

    /// Starts a new file, and gives each older file the next number. The new file is opened first, so that nothing is
    /// moved without one; an attempt that fails later is continued by the next one, because numbers move only up to
    /// the first free one.
    fn rotate(&mut self) -> io::Result<()> {
        let path = self.options.path.clone();
        let next = with_suffix(&path, "new");
        let file = self.disk.create(&next)?;
        let rotated = self.disk.rotated(&path)?;
        let free = (1..u32::MAX).find(|number| !rotated.contains_key(number)).unwrap_or(u32::MAX);
        for number in (1..free).rev() {
            self.rename(&with_suffix(&path, number), &with_suffix(&path, number + 1))?;
        }
        self.rename(&path, &with_suffix(&path, 1))?;
        self.disk.rename(&next, &path)?;
        (self.file, self.length, self.is_cut) = (file, 0, false);
        self.remove_old();
        Ok(())
    }

    /// Renames a file, if it exists.
    fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        match self.disk.rename(from, to) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        }
    }

    /// Removes files beyond the number to keep, unless they are younger than the age to keep. The next rotation tries
    /// again what fails.
    fn remove_old(&mut self) {
        let path = &self.options.path;
        let removed = self.disk.rotated(path).and_then(|rotated| {
            let surplus = rotated.into_iter().rev().filter(|(number, _)| *number > self.options.keep);
            for (number, modified) in surplus {
                let age = SystemTime::now().duration_since(modified).unwrap_or_default();
                if self.options.keep_for.is_none_or(|keep_for| age > keep_for) {
                    self.disk.remove(&with_suffix(path, number))?;
                }
            }
            Ok(())
        });
        if let Err(error) = removed {
            tracing::warn!(%error, path = %path.display(), "old audit files cannot be removed");
        }
    }
}

pub(super) fn with_suffix(path: &Path, suffix: impl std::fmt::Display) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{suffix}"));
    name.into()
}

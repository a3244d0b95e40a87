//! An audit file: one JSON object a line, synchronised to disk, and rotated by size.
//!
//! Requests never wait for the disk. A record is lost if the queue is full or the disk refuses it; the next line that
//! can be written holds the number of lost records.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{self, Receiver, SyncSender},
    },
    thread,
};

use jiff::Timestamp;
use serde_json::json;

use super::Recorder;

/// Maximum number of records that wait for the disk.
const QUEUE: usize = 8_192;

/// Path, size and number of audit files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditFileOptions {
    /// The newest file. The names of older files end with `.1`, `.2` and so on.
    pub path: PathBuf,
    /// Maximum size of a file, in bytes.
    pub max_bytes: u64,
    /// Number of older files.
    pub keep: u32,
}

impl AuditFileOptions {
    /// Returns the default options: files of 64 MiB, and eight older files.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> AuditFileOptions {
        AuditFileOptions { path: path.into(), max_bytes: 64 << 20, keep: 8 }
    }
}

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
    lost: Arc<Lost>,
}

/// Numbers of lost records.
#[derive(Debug, Default)]
struct Lost {
    /// Not yet written to the file.
    unreported: AtomicU64,
    total: AtomicU64,
}

impl Lost {
    fn add(&self, count: u64) {
        self.unreported.fetch_add(count, Ordering::Relaxed);
        self.total.fetch_add(count, Ordering::Relaxed);
    }
}

/// A command for the writing thread.
enum Command {
    Line(String),
    /// Confirms as soon as everything before it is on disk.
    Flush(mpsc::Sender<()>),
    /// Continues with another file, if it can be opened.
    Reopen(AuditFileOptions, mpsc::Sender<io::Result<()>>),
}

impl AuditFile {
    /// Opens or creates the file; a new file is readable by its owner only.
    ///
    /// # Errors
    ///
    /// I/O errors of opening the file and of starting the thread.
    pub fn open(options: AuditFileOptions) -> io::Result<AuditFile> {
        let mut writer = Writer::open(options)?;
        let (queue, commands) = mpsc::sync_channel(QUEUE);
        let lost = Arc::<Lost>::default();
        let counter = Arc::clone(&lost);
        thread::Builder::new().name("audit".to_owned()).spawn(move || writer.run(&commands, &counter))?;
        Ok(AuditFile { queue, lost })
    }

    /// Blocks until all records so far are on disk.
    pub fn flush(&self) {
        let (done, waiting) = mpsc::channel();
        if self.queue.send(Command::Flush(done)).is_ok() {
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
        self.lost.unreported.load(Ordering::Relaxed)
    }

    /// Returns the number of records lost since the file was opened.
    #[must_use]
    pub fn lost_total(&self) -> u64 {
        self.lost.total.load(Ordering::Relaxed)
    }
}

impl Recorder for AuditFile {
    fn record(&self, line: String) {
        if self.queue.try_send(Command::Line(line)).is_err() {
            self.lost.add(1);
        }
    }
}

struct Writer {
    options: AuditFileOptions,
    file: File,
    length: u64,
    /// Whether the last write failed: consecutive failures are logged once.
    is_failing: bool,
}

impl Writer {
    fn open(options: AuditFileOptions) -> io::Result<Writer> {
        let (mut file, length) = open(&options.path)?;
        let length = if length > 0 && !ends_with_a_line(&options.path)? {
            // The machine may have failed in the middle of a line.
            file.write_all(b"\n")?;
            length + 1
        } else {
            length
        };
        Ok(Writer { options, file, length, is_failing: false })
    }

    fn run(&mut self, commands: &Receiver<Command>, lost: &Lost) {
        while let Ok(first) = commands.recv() {
            let (mut batch, mut count, mut waiting) = (String::new(), 0, Vec::new());
            // Everything in the queue is written together and synchronised once.
            for command in std::iter::once(first).chain(commands.try_iter().take(QUEUE)) {
                match command {
                    Command::Reopen(options, done) => {
                        self.write_batch(std::mem::take(&mut batch), std::mem::take(&mut count), lost);
                        done.send(Writer::open(options).map(|writer| *self = writer)).ok();
                    }
                    Command::Line(line) => {
                        batch.push_str(&line);
                        batch.push('\n');
                        count += 1;
                    }
                    Command::Flush(done) => waiting.push(done),
                }
            }
            self.write_batch(batch, count, lost);
            for done in waiting {
                done.send(()).ok();
            }
        }
    }

    fn write_batch(&mut self, mut batch: String, count: u64, lost: &Lost) {
        let missing = lost.unreported.swap(0, Ordering::Relaxed);
        if missing > 0 {
            tracing::error!(missing, "audit records were lost");
            batch.insert_str(
                0,
                &format!("{}\n", json!({ "time": format!("{:.3}", Timestamp::now()), "lost": missing })),
            );
        }
        if batch.is_empty() {
            return;
        }
        match self.write(&batch) {
            Ok(()) => self.is_failing = false,
            Err(error) => {
                lost.unreported.fetch_add(missing, Ordering::Relaxed);
                lost.add(count);
                if !std::mem::replace(&mut self.is_failing, true) {
                    tracing::error!(%error, path = %self.options.path.display(), "audit file cannot be written");
                }
            }
        }
    }

    fn write(&mut self, batch: &str) -> io::Result<()> {
        let size = batch.len() as u64;
        if self.length > 0 && self.length.saturating_add(size) > self.options.max_bytes {
            self.rotate()?;
        }
        if let Err(error) = self.file.write_all(batch.as_bytes()) {
            // Half a line would make the next one unreadable.
            self.file.set_len(self.length).ok();
            return Err(error);
        }
        self.length += size;
        self.file.sync_data()
    }

    /// Gives each file the next number, overwrites the oldest, and starts a new file.
    fn rotate(&mut self) -> io::Result<()> {
        let path = &self.options.path;
        for number in (1..self.options.keep).rev() {
            rename(&numbered(path, number), &numbered(path, number + 1))?;
        }
        if self.options.keep > 0 {
            rename(path, &numbered(path, 1))?;
        } else {
            fs::remove_file(path)?;
        }
        (self.file, self.length) = open(path)?;
        Ok(())
    }
}

/// Returns the name of an older file.
fn numbered(path: &Path, number: u32) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{number}"));
    name.into()
}

/// Renames a file, if it exists.
fn rename(from: &Path, to: &Path) -> io::Result<()> {
    match fs::rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

fn open(path: &Path) -> io::Result<(File, u64)> {
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    let length = file.metadata()?.len();
    Ok((file, length))
}

fn ends_with_a_line(path: &Path) -> io::Result<bool> {
    use std::io::{Read as _, Seek as _, SeekFrom};
    let mut file = File::open(path)?;
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A queue without a reader.
    // req: S-26
    #[test]
    fn lost_records_are_counted_and_reported() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("audit.jsonl");
        let (queue, entries) = mpsc::sync_channel(1);
        let audit = AuditFile { queue, lost: Arc::default() };
        for number in 0..5 {
            audit.record(format!("{{\"number\":{number}}}"));
        }
        assert_eq!((audit.lost(), audit.lost_total()), (4, 4), "one fits into the queue");
        let lost = Arc::clone(&audit.lost);
        drop(audit);
        let mut writer = Writer::open(AuditFileOptions::new(&path)).expect("it can be written");
        writer.run(&entries, &lost);
        let now = |count: &AtomicU64| count.load(Ordering::Relaxed);
        assert_eq!((now(&lost.unreported), now(&lost.total)), (0, 4));
        let text = fs::read_to_string(&path).expect("the file");
        let lines: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        assert_eq!((&lines[0]["lost"], &lines[1]["number"]), (&json!(4), &json!(0)), "{text}");
    }

    #[test]
    fn large_file_is_rotated() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("audit.jsonl");
        let audit = AuditFile::open(AuditFileOptions { max_bytes: 20, keep: 2, path: path.clone() }).expect("it opens");
        for number in 0..5 {
            audit.record(format!("{{\"number\":{number}}}"));
            audit.flush();
        }
        let read = |path: &Path| fs::read_to_string(path).unwrap_or_default();
        assert_eq!(read(&path), "{\"number\":4}\n");
        assert_eq!(read(&numbered(&path, 1)), "{\"number\":3}\n");
        assert_eq!(read(&numbered(&path, 2)), "{\"number\":2}\n");
        assert!(!numbered(&path, 3).exists());
    }

    #[test]
    fn cut_line_is_ended() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("audit.jsonl");
        fs::write(&path, "{\"half").expect("written");
        let audit = AuditFile::open(AuditFileOptions::new(&path)).expect("it opens");
        audit.record("{}".to_owned());
        audit.flush();
        assert_eq!(fs::read_to_string(&path).expect("the file"), "{\"half\n{}\n");
    }

    #[test]
    fn reopen_switches_file_or_keeps_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let [path, moved] = ["audit.jsonl", "moved"].map(|name| folder.path().join(name));
        let audit = AuditFile::open(AuditFileOptions::new(&path)).expect("it opens");
        let record = |text: &str| audit.record(text.to_owned());
        record("1");
        audit.reopen(AuditFileOptions::new(folder.path().join("no/such/folder"))).expect_err("it cannot be opened");
        record("2");
        audit.flush();
        fs::rename(&path, &moved).expect("it is there");
        record("3");
        audit.reopen(AuditFileOptions::new(&path)).expect("it opens");
        record("4");
        audit.flush();
        let read = |path: &Path| fs::read_to_string(path).expect("the file");
        assert_eq!((read(&moved).as_str(), read(&path).as_str()), ("1\n2\n3\n", "4\n"));
    }

    #[cfg(unix)]
    #[test]
    fn file_is_readable_by_owner_only() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("audit.jsonl");
        AuditFile::open(AuditFileOptions::new(&path)).expect("it opens");
        assert_eq!(fs::metadata(&path).expect("the file").permissions().mode() & 0o777, 0o600);
    }
}

//! The file operations of an audit, so that tests can make each of them fail.

use std::{
    collections::BTreeMap,
    fmt,
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
    path::{Path, PathBuf},
    time::SystemTime,
};

pub(super) trait Disk: fmt::Debug + Send {
    fn open(&mut self, path: &Path) -> io::Result<Box<dyn AppendFile>>;
    /// Creates an empty file, in place of an existing one.
    fn create(&mut self, path: &Path) -> io::Result<Box<dyn AppendFile>>;
    fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()>;
    fn remove(&mut self, path: &Path) -> io::Result<()>;
    /// Returns the numbers of rotated files, with the time of the last record of each.
    fn rotated(&mut self, path: &Path) -> io::Result<BTreeMap<u32, SystemTime>>;
}

/// A file that is only appended to.
pub(super) trait AppendFile: fmt::Debug + Send {
    fn length(&mut self) -> io::Result<u64>;
    /// Returns whether the file is empty or its last line has an end.
    fn ends_with_a_line(&mut self) -> io::Result<bool>;
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;
    fn truncate(&mut self, length: u64) -> io::Result<()>;
    /// Waits until all bytes are on the disk.
    fn sync(&mut self) -> io::Result<()>;
}

#[derive(Debug)]
pub(super) struct RealDisk;

impl Disk for RealDisk {
    fn open(&mut self, path: &Path) -> io::Result<Box<dyn AppendFile>> {
        Ok(Box::new(RealFile { file: options().append(true).open(path)?, path: path.to_owned() }))
    }

    fn create(&mut self, path: &Path) -> io::Result<Box<dyn AppendFile>> {
        // Appending and truncating exclude each other, but a link in the way must not be followed.
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = options().append(true).create_new(true).open(path)?;
        Ok(Box::new(RealFile { file, path: path.to_owned() }))
    }

    fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&mut self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn rotated(&mut self, path: &Path) -> io::Result<BTreeMap<u32, SystemTime>> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let prefix = path.file_name().and_then(|name| name.to_str()).map(|name| format!("{name}."));
        let mut rotated = BTreeMap::new();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let name = entry.file_name();
            let number = name.to_str().and_then(|name| name.strip_prefix(prefix.as_deref()?)).and_then(number);
            if let Some(number) = number {
                rotated.insert(number, entry.metadata()?.modified()?);
            }
        }
        Ok(rotated)
    }
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Parses the number of a rotated file: decimal, from 1, without leading zeros.
fn number(suffix: &str) -> Option<u32> {
    let number = suffix.parse::<u32>().ok().filter(|number| *number > 0)?;
    (suffix == number.to_string()).then_some(number)
}

#[derive(Debug)]
struct RealFile {
    file: File,
    path: PathBuf,
}

impl AppendFile for RealFile {
    fn length(&mut self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn ends_with_a_line(&mut self) -> io::Result<bool> {
        if self.length()? == 0 {
            return Ok(true);
        }
        // The file itself is open for writing only.
        let mut file = File::open(&self.path)?;
        file.seek(SeekFrom::End(-1))?;
        let mut last = [0];
        file.read_exact(&mut last)?;
        Ok(last == *b"\n")
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.file.set_len(length)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data()
    }
}

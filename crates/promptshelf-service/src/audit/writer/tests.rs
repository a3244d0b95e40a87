//! Every file operation of writing and rotation fails in turn.

use std::{collections::BTreeMap, fs, sync::Arc};

use parking_lot::Mutex;
use serde_json::Value;

use super::{super::RealDisk, *};

#[derive(Debug, Default)]
struct Plan {
    calls: usize,
    failing: std::ops::Range<usize>,
    failed: Vec<&'static str>,
    /// The files that another program removes after the next synchronisations.
    removals: Vec<std::path::PathBuf>,
}

type Shares = Arc<Mutex<Plan>>;

/// Counts a call, and fails if it is planned to.
fn call(plan: &Shares, name: &'static str) -> io::Result<()> {
    let mut plan = plan.lock();
    let number = plan.calls;
    plan.calls += 1;
    if plan.failing.contains(&number) {
        plan.failed.push(name);
        return Err(io::Error::other("planned"));
    }
    Ok(())
}

#[derive(Debug)]
struct FailingDisk(Shares);

#[derive(Debug)]
struct FailingFile(Shares, Box<dyn AppendFile>);

impl FailingDisk {
    fn file(&self, file: Box<dyn AppendFile>) -> Box<dyn AppendFile> {
        Box::new(FailingFile(Arc::clone(&self.0), file))
    }
}

impl Disk for FailingDisk {
    fn open(&mut self, path: &Path) -> io::Result<Box<dyn AppendFile>> {
        call(&self.0, "open")?;
        RealDisk.open(path).map(|file| self.file(file))
    }

    fn create(&mut self, path: &Path) -> io::Result<Box<dyn AppendFile>> {
        call(&self.0, "create")?;
        RealDisk.create(path).map(|file| self.file(file))
    }

    fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        call(&self.0, "rename")?;
        RealDisk.rename(from, to)
    }

    fn remove(&mut self, path: &Path) -> io::Result<()> {
        call(&self.0, "remove")?;
        RealDisk.remove(path)
    }

    fn rotated(&mut self, path: &Path) -> io::Result<BTreeMap<u32, SystemTime>> {
        call(&self.0, "rotated")?;
        RealDisk.rotated(path)
    }
}

impl AppendFile for FailingFile {
    fn length(&mut self) -> io::Result<u64> {
        call(&self.0, "length")?;
        self.1.length()
    }

    fn ends_with_a_line(&mut self) -> io::Result<bool> {
        call(&self.0, "ends_with_a_line")?;
        self.1.ends_with_a_line()
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Err(error) = call(&self.0, "append") {
            // A full disk takes part of it.
            self.1.append(&bytes[..bytes.len() / 2])?;
            return Err(error);
        }
        self.1.append(bytes)
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        call(&self.0, "truncate")?;
        self.1.truncate(length)
    }

    fn sync(&mut self) -> io::Result<()> {
        // Waiting for the disk in each of thousands of runs would take minutes.
        call(&self.0, "sync")?;
        let removals = &mut self.0.lock().removals;
        removals.pop().map_or(Ok(()), fs::remove_file)
    }

    fn fate(&self, path: &Path) -> Fate {
        self.1.fate(path)
    }
}

const RECORDS: u64 = 12;

/// Writes records, of which every second one begins a new file, while the planned calls fail. Returns the plan after
/// it; the checks hold for any plan.
fn run(failing: std::ops::Range<usize>, keep: u32) -> Plan {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("audit.jsonl");
    let plan = Arc::new(Mutex::new(Plan { failing: failing.clone(), ..Plan::default() }));
    let options = AuditFileOptions { max_bytes: 30, keep, ..AuditFileOptions::new(&path) };
    let take = |plan: &Shares| {
        let plan = plan.lock();
        Plan { calls: plan.calls, failed: plan.failed.clone(), ..Plan::default() }
    };
    let Ok(mut writer) = Writer::open(Box::new(FailingDisk(Arc::clone(&plan))), options) else { return take(&plan) };
    let shared = Shared::default();
    for number in 0..RECORDS {
        writer.write_batch(format!("{{\"number\":{number}}}\n"), 1, &shared);
    }
    let after = take(&plan);
    // From here on nothing fails: the losses are written too.
    plan.lock().failing = 0..0;
    writer.write_batch(format!("{{\"number\":{RECORDS}}}\n"), 1, &shared);
    assert_eq!(shared.unreported.load(Ordering::Acquire), 0, "{failing:?}");

    let rotated = RealDisk.rotated(&path).expect("a listing");
    let older = rotated.keys().rev().map(|number| with_suffix(&path, number));
    let texts: Vec<String> =
        older.chain([path.clone()]).map(|file| fs::read_to_string(file).unwrap_or_default()).collect();
    let (mut numbers, mut lost, mut invalid) = (Vec::new(), 0, 0);
    for line in texts.iter().flat_map(|text| text.lines()).filter(|line| !line.is_empty()) {
        match serde_json::from_str::<Value>(line) {
            Ok(record) if record["lost"].is_u64() => lost += record["lost"].as_u64().expect("a number"),
            Ok(record) => numbers.push(record["number"].as_u64().expect("a record")),
            Err(_) => invalid += 1,
        }
    }
    let context = format!("{failing:?} {:?} {numbers:?} lost {lost}", after.failed);
    assert!(numbers.is_sorted_by(|a, b| a < b), "in order, and once: {context}");
    assert!(invalid == 0 || after.failed.contains(&"truncate"), "{context}");
    let present = numbers.len() as u64;
    if keep < 100 {
        // The newest records stay, as many as the files hold.
        assert!(numbers.last() == Some(&RECORDS) && present + shared.total.load(Ordering::Acquire) >= 3, "{context}");
        return after;
    }
    assert_eq!(lost, shared.total.load(Ordering::Acquire), "{context}");
    assert!(present + lost > RECORDS, "a record is missing and not counted: {context}");
    if !after.failed.contains(&"sync") {
        assert_eq!(present + lost, RECORDS + 1, "{context}");
    }
    after
}

// req: S-77
#[test]
fn every_failing_call_is_survived_and_counted() {
    for keep in [100, 2] {
        let calls = run(0..0, keep).calls;
        assert!(calls > 60, "{calls}");
        let mut failed = std::collections::BTreeSet::new();
        for first in 0..calls {
            for length in [1, 2, 3, 7, 40, usize::MAX - first] {
                failed.extend(run(first..first + length, keep).failed);
            }
        }
        let all = [
            "append",
            "create",
            "ends_with_a_line",
            "length",
            "open",
            "remove",
            "rename",
            "rotated",
            "sync",
            "truncate",
        ];
        let expected = all.iter().filter(|name| keep == 2 || **name != "remove");
        assert!(failed.iter().eq(expected), "{failed:?}");
    }
}

// req: S-573
#[cfg(unix)]
#[test]
fn file_that_is_removed_during_a_write_gets_the_records_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("audit.jsonl");
    let plan = Shares::default();
    let mut writer =
        Writer::open(Box::new(FailingDisk(Arc::clone(&plan))), AuditFileOptions::new(&path)).expect("a file");
    let shared = Shared::default();
    let lost = || shared.total.load(Ordering::Acquire);
    for (number, removals, lost_by_now) in [(1, 1, 0), (2, REMOVALS - 1, 0), (3, REMOVALS, 1)] {
        plan.lock().removals = vec![path.clone(); removals];
        writer.write_batch(format!("{number}\n"), 1, &shared);
        let text = fs::read_to_string(&path).unwrap_or_default();
        assert_eq!((text.ends_with(&format!("{number}\n")), lost()), (lost_by_now == 0, lost_by_now), "{number}");
    }
    writer.write_batch("4\n".to_owned(), 1, &shared);
    let text = fs::read_to_string(&path).expect("the file");
    assert!(text.contains("\"lost\":1") && text.ends_with("4\n"), "{text}");
}

//! Records on a real disk.

use std::{fs, path::Path, sync::atomic::AtomicU64, time::Duration};

use serde_json::json;

use super::{super::writer::with_suffix, *};

/// A queue without a reader.
// req: S-26
#[test]
fn lost_records_are_counted_and_reported() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("audit.jsonl");
    let (queue, entries) = mpsc::sync_channel(1);
    let audit = AuditFile { queue, shared: Arc::default() };
    for number in 0..5 {
        audit.record(format!("{{\"number\":{number}}}"));
    }
    assert_eq!((audit.lost(), audit.lost_total()), (4, 4), "one fits into the queue");
    let lost = Arc::clone(&audit.shared);
    drop(audit);
    let mut writer = Writer::open(Box::new(RealDisk), AuditFileOptions::new(&path)).expect("it can be written");
    writer.run(&entries, &lost);
    let now = |count: &AtomicU64| count.load(Ordering::Relaxed);
    assert_eq!((now(&lost.unreported), now(&lost.total)), (0, 4));
    let text = fs::read_to_string(&path).expect("the file");
    let lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!((&lines[0]["lost"], &lines[1]["number"]), (&json!(4), &json!(0)), "{text}");
}

#[test]
fn large_file_is_rotated() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("audit.jsonl");
    let audit =
        AuditFile::open(AuditFileOptions { max_bytes: 20, keep: 2, ..AuditFileOptions::new(&path) }).expect("it opens");
    for number in 0..5 {
        audit.record(format!("{{\"number\":{number}}}"));
        audit.flush();
    }
    let read = |path: &Path| fs::read_to_string(path).unwrap_or_default();
    assert_eq!(read(&path), "{\"number\":4}\n");
    assert_eq!(read(&with_suffix(&path, 1)), "{\"number\":3}\n");
    assert_eq!(read(&with_suffix(&path, 2)), "{\"number\":2}\n");
    assert!(!with_suffix(&path, 3).exists());
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
    let [path, other] = ["audit.jsonl", "other.jsonl"].map(|name| folder.path().join(name));
    let audit = AuditFile::open(AuditFileOptions::new(&path)).expect("it opens");
    let record = |text: &str| audit.record(text.to_owned());
    record("1");
    audit.reopen(AuditFileOptions::new(folder.path().join("no/such/folder"))).expect_err("it cannot be opened");
    record("2");
    audit.flush();
    audit.reopen(AuditFileOptions::new(&other)).expect("it opens");
    record("3");
    audit.flush();
    let read = |path: &Path| fs::read_to_string(path).expect("the file");
    assert_eq!((read(&path).as_str(), read(&other).as_str()), ("1\n2\n", "3\n"));
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

#[test]
fn young_files_stay_beyond_the_number_to_keep() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("audit.jsonl");
    let age = Duration::from_secs(24 * 60 * 60);
    let options = AuditFileOptions { max_bytes: 20, keep: 2, keep_for: Some(age), ..AuditFileOptions::new(&path) };
    let audit = AuditFile::open(options.clone()).expect("it opens");
    for number in 0..9 {
        audit.record(format!("{{\"number\":{number}}}"));
        audit.flush();
    }
    for (suffix, number) in [(1, 7), (8, 0)] {
        let text = fs::read_to_string(with_suffix(&path, suffix)).expect("an older file");
        assert_eq!(text, format!("{{\"number\":{number}}}\n"));
    }
    let old = fs::File::options().append(true).open(with_suffix(&path, 5)).expect("an older file");
    old.set_modified(std::time::SystemTime::now() - 2 * age).expect("another time");
    audit.record("{\"number\":9}".to_owned());
    audit.flush();
    // It has the number 6 by then.
    assert!(!with_suffix(&path, 6).exists() && with_suffix(&path, 5).exists() && with_suffix(&path, 9).exists());
    audit.reopen(AuditFileOptions { keep_for: None, ..options }).expect("it opens");
    audit.record("{\"number\":9}".to_owned());
    audit.flush();
    let left: Vec<u32> = (1..12).filter(|number| with_suffix(&path, number).exists()).collect();
    assert_eq!(left, [1, 2], "without an age the number alone counts");
}

// req: S-77
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn full_disk_is_counted_or_refuses() {
    for on_loss in [OnLoss::Count, OnLoss::Refuse] {
        let options = AuditFileOptions { on_loss, ..AuditFileOptions::new("/dev/full") };
        let audit = AuditFile::open(options).expect("it opens");
        assert!(audit.is_ready());
        let confirmation = audit.confirmation();
        assert_eq!(confirmation.is_some(), on_loss == OnLoss::Refuse);
        audit.record("{}".to_owned());
        if let Some(confirmation) = confirmation {
            assert!(!confirmation.await, "nothing was written");
        }
        let audit = tokio::task::spawn_blocking(move || {
            audit.flush();
            audit
        });
        let audit = audit.await.expect("no panic");
        assert_eq!((audit.lost(), audit.lost_total()), (1, 1));
        assert_eq!(audit.is_ready(), on_loss == OnLoss::Count);
    }
}

// req: S-78
#[tokio::test]
async fn confirmation_follows_the_record_on_disk() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("audit.jsonl");
    let options = AuditFileOptions { on_loss: OnLoss::Refuse, ..AuditFileOptions::new(&path) };
    let audit = AuditFile::open(options).expect("it opens");
    for number in 1..20 {
        let confirmation = audit.confirmation().expect("answers wait");
        audit.record("{}".to_owned());
        assert!(confirmation.await);
        assert_eq!(fs::read_to_string(&path).expect("the file").lines().count(), number);
    }
}

/// Whatever another program does with the file between two records, the next one is in the file with the name, and no
/// earlier one is repeated.
// req: S-573
#[cfg(unix)]
#[tokio::test]
async fn removed_moved_and_replaced_files_lose_no_record() {
    type Act = fn(&Path) -> std::io::Result<()>;
    let acts: [(&str, Act, &str); 4] = [
        ("removed", |path| fs::remove_file(path), ""),
        ("moved", |path| fs::rename(path, with_suffix(path, "moved")), ""),
        (
            "replaced",
            |path| {
                fs::rename(path, with_suffix(path, "old"))?;
                fs::write(path, "{\"other\":1}")
            },
            "{\"other\":1}\n",
        ),
        (
            "folder",
            |path| {
                let folder = path.parent().expect("a folder");
                fs::remove_dir_all(folder)?;
                fs::create_dir(folder)
            },
            "",
        ),
    ];
    for (name, act, before) in acts {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("log/audit.jsonl");
        fs::create_dir(folder.path().join("log")).expect("a folder");
        let options = AuditFileOptions { on_loss: OnLoss::Refuse, ..AuditFileOptions::new(&path) };
        let audit = AuditFile::open(options).expect("it opens");
        for number in 0..3 {
            let confirmation = audit.confirmation().expect("answers wait");
            audit.record(format!("{{\"number\":{number}}}"));
            assert!(confirmation.await, "{name}");
            if number == 0 {
                act(&path).expect(name);
            }
        }
        let expected = format!("{before}{{\"number\":1}}\n{{\"number\":2}}\n");
        assert_eq!((fs::read_to_string(&path).expect(name), audit.lost_total()), (expected, 0), "{name}");
    }
}

// req: S-573
#[cfg(unix)]
#[tokio::test]
async fn records_without_a_folder_are_refused_until_it_is_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("log");
    fs::create_dir(&log).expect("a folder");
    let options = AuditFileOptions { on_loss: OnLoss::Refuse, ..AuditFileOptions::new(log.join("audit.jsonl")) };
    let audit = AuditFile::open(options).expect("it opens");
    fs::remove_dir_all(&log).expect("removed");
    for (is_written, total) in [(false, 1), (true, 1)] {
        let confirmation = audit.confirmation().expect("answers wait");
        audit.record("{}".to_owned());
        assert_eq!((confirmation.await, audit.lost_total(), audit.is_ready()), (is_written, total, is_written));
        fs::create_dir_all(&log).expect("a folder");
    }
}

/// A directory has the name of the new file.
// req: S-77
#[test]
fn blocked_rotation_keeps_old_files_and_all_records() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("audit.jsonl");
    for (suffix, text) in [("1", "newer\n"), ("2", "older\n")] {
        fs::write(with_suffix(&path, suffix), text).expect("written");
    }
    fs::create_dir(with_suffix(&path, "new")).expect("a directory");
    let options = AuditFileOptions { max_bytes: 20, keep: 2, ..AuditFileOptions::new(&path) };
    let audit = AuditFile::open(options).expect("it opens");
    for number in 0..9 {
        audit.record(format!("{{\"number\":{number}}}"));
        audit.flush();
    }
    let read = |path: &Path| fs::read_to_string(path).expect("the file");
    assert_eq!((audit.lost_total(), read(&path).lines().count()), (0, 9));
    assert_eq!(read(&with_suffix(&path, 1)) + &read(&with_suffix(&path, 2)), "newer\nolder\n");
    fs::remove_dir(with_suffix(&path, "new")).expect("removed");
    audit.record("{\"number\":9}".to_owned());
    audit.flush();
    assert_eq!((read(&path).as_str(), read(&with_suffix(&path, 2)).as_str()), ("{\"number\":9}\n", "newer\n"));
}

//! Libraries for the measured servers: the prompts that `bench-servers` has in code, as files.

use std::{fs, path::Path};

use anyhow::Result;
use bench_servers::{LISTED_ARGUMENTS, listed_description, listed_name, words};

/// Number of files of a library beside its listed prompts: its settings, and those of [`write_asked`].
pub(crate) const OTHER_FILES: usize = 5;

/// Writes the prompts that requests name.
pub(crate) fn write_asked(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder.join("values"))?;
    let head = "---\narguments:\n  - name: change\n    required: true\n---\n";
    let one = [head, words::ONE_BEFORE, "{{ change }}", words::ONE_AFTER].concat();
    fs::write(folder.join("one.md"), one)?;
    let mut completed = String::from("---\narguments:\n");
    for (name, count) in [("few", 10), ("many", 10_000)] {
        let values: String = (0..count).map(|at| format!("branch/{at}-of-{name}\n")).collect();
        fs::write(folder.join(format!("values/{name}.txt")), values)?;
        completed += &format!("  - name: {name}\n    complete:\n      file: values/{name}.txt\n");
    }
    fs::write(folder.join("completed.md"), completed + "---\nSwitch to {{ few }}{{ many }}.\n")?;
    Ok(())
}

/// Writes `prompts` listed prompts, in folders of 1,000.
pub(crate) fn write_listed(folder: &Path, prompts: usize, page_size: usize) -> Result<()> {
    fs::create_dir_all(folder)?;
    fs::write(folder.join("promptshelf.toml"), format!("[list]\npage-size = {page_size}\n"))?;
    for at in 0..prompts {
        let part = folder.join(format!("part-{:03}", at / 1_000));
        if at % 1_000 == 0 {
            fs::create_dir_all(&part)?;
        }
        fs::write(part.join(format!("{at}.md")), listed(at, ""))?;
    }
    Ok(())
}

/// The file of one listed prompt.
pub(crate) fn listed(at: usize, edit: &str) -> String {
    let mut text =
        format!("---\nname: {}\ndescription: {}{edit}\narguments:\n", listed_name(at), listed_description(at));
    for (name, description, required) in LISTED_ARGUMENTS {
        text += &format!("  - name: {name}\n    description: {description}\n    required: {required}\n");
    }
    text + "---\nWrite about {{ topic }}{% if tone %} and sound {{ tone }}{% endif %}, in three paragraphs that a busy reader likes to read.\n"
}

/// Total size of a folder's files in bytes.
pub(crate) fn bytes(folder: &Path) -> Result<u64> {
    let mut sum = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        sum += if metadata.is_dir() { bytes(&entry.path())? } else { fs::read(entry.path())?.len() as u64 };
    }
    Ok(sum)
}

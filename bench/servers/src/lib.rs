//! The prompts that every measured server offers, in code. The driver writes the same prompts as files for
//! promptshelf; servers in other languages have their own copies.

use std::{fs, path::PathBuf};

use anyhow::{Context, Result};

/// Arguments of a server: `<port> <prompts> <page size> <folder>`; port 0 means stdio.
#[derive(Debug)]
pub struct Invocation {
    /// Port on 127.0.0.1.
    pub port: u16,
    /// Number of generated prompts in the list.
    pub prompts: usize,
    /// Prompts per page.
    pub page_size: usize,
    /// The library written by the driver.
    pub folder: PathBuf,
}

impl Invocation {
    /// Parses the command line.
    ///
    /// # Errors
    ///
    /// Returns an error for other arguments.
    pub fn read() -> Result<Invocation> {
        let mut words = std::env::args().skip(1);
        let mut next = || words.next().context("usage: <port> <prompts> <page size> <folder>");
        Ok(Invocation {
            port: next()?.parse()?,
            prompts: next()?.parse()?,
            page_size: next()?.parse()?,
            folder: next()?.into(),
        })
    }

    /// Completion values of an argument: the lines of a file.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read.
    pub fn values(&self, argument: &str) -> Result<Vec<String>> {
        let path = self.folder.join("values").join(format!("{argument}.txt"));
        let text = fs::read_to_string(&path).with_context(|| format!("{} cannot be read", path.display()))?;
        Ok(text.lines().map(str::to_owned).collect())
    }

    /// The range of a page, from the previous page's cursor, which is a number.
    #[must_use]
    pub fn page(&self, cursor: Option<&str>) -> std::ops::Range<usize> {
        let begin = cursor.and_then(|cursor| cursor.parse().ok()).unwrap_or(0).min(self.prompts);
        begin..(begin + self.page_size).min(self.prompts)
    }
}

/// Texts around the values, equal to those of the driver's templates.
pub mod words {
    /// Before the value.
    pub const ONE_BEFORE: &str = "Review the following change as a careful colleague would. Name what is wrong, \
        where it is wrong and how it can be repaired; leave out what is a matter of taste. Begin with what would \
        hurt the users of the program, go on with what would hurt those who maintain it, and end with a verdict of \
        one sentence. Say so when there is nothing to say.\n\n";
    /// After the value.
    pub const ONE_AFTER: &str = "\n\nAnswer in the language of the change.";
}

/// Name of a generated prompt.
#[must_use]
pub fn listed_name(at: usize) -> String {
    format!("prompt-{at:06}")
}

/// Description of a generated prompt.
#[must_use]
pub fn listed_description(at: usize) -> String {
    format!("Prompt number {at} of a generated library, described in one sentence of usual length.")
}

/// Arguments of every generated prompt: name, description, required.
pub const LISTED_ARGUMENTS: [(&str, &str, bool); 2] =
    [("topic", "What it is about", true), ("tone", "How it is to sound", false)];

//! The prompts that every measured server offers, known to the servers of this
//! crate by heart. The meter writes the same ones as files for promptshelf, and
//! the servers in other languages say them once more.

use std::{fs, path::PathBuf};

use anyhow::{Context, Result};

/// What a server is started with: `<port> <prompts> <page size> <folder>`; port 0 means stdio.
#[derive(Debug)]
pub struct Invocation {
    /// Where to listen on 127.0.0.1.
    pub port: u16,
    /// How many generated prompts the list holds.
    pub prompts: usize,
    /// How many of them a page holds.
    pub page_size: usize,
    /// The library that the meter wrote.
    pub folder: PathBuf,
}

impl Invocation {
    /// Reads the command line.
    ///
    /// # Errors
    ///
    /// When it is another one.
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

    /// The values of an argument's completion: one a line in a file of the library.
    ///
    /// # Errors
    ///
    /// When the file cannot be read.
    pub fn values(&self, argument: &str) -> Result<Vec<String>> {
        let path = self.folder.join("values").join(format!("{argument}.txt"));
        let text = fs::read_to_string(&path).with_context(|| format!("{} cannot be read", path.display()))?;
        Ok(text.lines().map(str::to_owned).collect())
    }

    /// The picture that a prompt shows.
    ///
    /// # Errors
    ///
    /// When it cannot be read.
    pub fn picture(&self) -> Result<Vec<u8>> {
        fs::read(self.folder.join("picture.png")).context("the picture cannot be read")
    }

    /// The places of a page in the list, by the cursor that the page before gave: a number.
    #[must_use]
    pub fn page(&self, cursor: Option<&str>) -> std::ops::Range<usize> {
        let begin = cursor.and_then(|cursor| cursor.parse().ok()).unwrap_or(0).min(self.prompts);
        begin..(begin + self.page_size).min(self.prompts)
    }
}

/// What stands around the values; the meter's templates have the same words.
pub mod words {
    /// Before the one value.
    pub const ONE_BEFORE: &str = "Review the following change as a careful colleague would. Name what is wrong, \
        where it is wrong and how it can be repaired; leave out what is a matter of taste. Begin with what would \
        hurt the users of the program, go on with what would hurt those who maintain it, and end with a verdict of \
        one sentence. Say so when there is nothing to say.\n\n";
    /// Behind the one value.
    pub const ONE_AFTER: &str = "\n\nAnswer in the language of the change.";
    /// Before, between and behind the three values.
    pub const THREE: [&str; 4] = [
        "Write release notes for version ",
        " of the program. They are read by ",
        ", who want to know what they have to do. Keep to the tone that is called ",
        ". Begin with what breaks, go on with what is new, and end with thanks.",
    ];
    /// The text beside the picture.
    pub const IMAGE: &str = "What is to be seen in this picture?";
}

/// A generated prompt's name.
#[must_use]
pub fn listed_name(at: usize) -> String {
    format!("prompt-{at:06}")
}

/// A generated prompt's description.
#[must_use]
pub fn listed_description(at: usize) -> String {
    format!("Prompt number {at} of a generated library, described in one sentence of usual length.")
}

/// The arguments of every generated prompt: name, description, required.
pub const LISTED_ARGUMENTS: [(&str, &str, bool); 2] =
    [("topic", "What it is about", true), ("tone", "How it is to sound", false)];

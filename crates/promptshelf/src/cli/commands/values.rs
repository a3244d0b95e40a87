//! Values for arguments, as they are typed: as text, from a file, from stdin.

use std::{
    fs,
    io::{self, Read},
    path::Path,
};

use promptshelf_core::{Argument, Variables, nearest};

use crate::{
    args::ValueArguments,
    exit::{Exit, Failure},
};

/// The most bytes that are read of a file or of stdin for one value. More is
/// refused by the library's own limit anyway; this one only bounds the memory.
const MOST_BYTES: u64 = 64 << 20;

impl ValueArguments {
    /// Every value, with files and stdin read.
    ///
    /// # Errors
    ///
    /// Names given twice, and what cannot be read as text.
    pub(crate) fn read(&self, stdin: impl Read) -> Result<Variables, Failure> {
        let mut stdin = Some(stdin);
        let mut values = Variables::new();
        let mut put = |name: &str, value: String| match values.insert(name.to_owned(), value) {
            None => Ok(()),
            Some(_) => Err(unusable(name, "is given twice")),
        };
        for (name, value) in &self.given {
            let value = if value == "-" {
                let stdin = stdin.take().ok_or_else(|| unusable(name, "and another one both ask for stdin"))?;
                text_of(stdin).map_err(|reason| unusable(name, &format!("cannot be read from stdin: {reason}")))?
            } else if let Some(path) = value.strip_prefix('@') {
                read_file(Path::new(path))
                    .map_err(|reason| unusable(name, &format!("cannot be read from {path}: {reason}")))?
            } else {
                value.clone()
            };
            put(name, value)?;
        }
        for (name, value) in &self.literal {
            put(name, value.clone())?;
        }
        Ok(values)
    }
}

impl ValueArguments {
    /// Looks whether every name is an argument's. A client may send more than a
    /// prompt asks for; a person who does has mistyped something.
    ///
    /// # Errors
    ///
    /// The first name that is none.
    pub(crate) fn must_be_of(&self, known: &[Argument]) -> Result<(), Failure> {
        let names = || known.iter().map(Argument::name);
        let mut given = self.given.iter().chain(&self.literal).map(|(name, _)| name.as_str());
        let Some(stranger) = given.find(|name| names().all(|known| known != *name)) else { return Ok(()) };
        let help = match nearest(stranger, names()) {
            Some(known) => format!("did you mean `{known}`?"),
            None if known.is_empty() => "the prompt asks for nothing".to_owned(),
            None => format!("there is {}", names().collect::<Vec<_>>().join(", ")),
        };
        Err(Failure::new(Exit::Arguments, format!("the prompt has no argument `{stranger}`")).help(help))
    }
}

fn unusable(name: &str, reason: &str) -> Failure {
    Failure::new(Exit::Arguments, format!("the argument `{name}` {reason}"))
}

fn read_file(path: &Path) -> Result<String, String> {
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err("there is no such file".to_owned()),
        Ok(found) if found.is_dir() => return Err("it is a folder".to_owned()),
        _ => {}
    }
    text_of(fs::File::open(path).map_err(|error| error.to_string())?)
}

fn text_of(from: impl Read) -> Result<String, String> {
    let mut bytes = Vec::new();
    from.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(format!("it is larger than {MOST_BYTES} bytes"));
    }
    String::from_utf8(bytes).map_err(|error| {
        format!("it is not UTF-8 text: byte {} belongs to no character", error.utf8_error().valid_up_to() + 1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::pair;

    fn read(given: &[&str], literal: &[&str], stdin: &str) -> Result<Variables, String> {
        let pairs = |texts: &[&str]| texts.iter().map(|text| pair(text).expect("a pair")).collect();
        let arguments = ValueArguments { given: pairs(given), literal: pairs(literal) };
        arguments.read(stdin.as_bytes()).map_err(|failure| failure.to_string())
    }

    #[test]
    fn a_dash_reads_stdin_and_a_literal_dash_does_not() {
        let values = read(&["a=-", "b=x=y", "c="], &["d=-", "e=@f"], "from\nstdin\n").expect("they are right");
        let shown: Vec<_> = values.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(shown, [("a", "from\nstdin\n"), ("b", "x=y"), ("c", ""), ("d", "-"), ("e", "@f")]);
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        assert_eq!(read(&["a=1", "a=2"], &[], ""), Err("the argument `a` is given twice".to_owned()));
        assert_eq!(
            read(&["a=-", "b=-"], &[], ""),
            Err("the argument `b` and another one both ask for stdin".to_owned())
        );
        assert!(read(&["a=@no/such/file"], &[], "").is_err_and(|error| error.contains("no/such/file")));
        assert_eq!(pair("novalue"), Err("write it as name=value".to_owned()));
    }
}

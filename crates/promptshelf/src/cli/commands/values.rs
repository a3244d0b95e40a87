//! Reads the values of arguments: text, files and stdin.

use std::{
    fs,
    io::{self, Read},
    path::Path,
    sync::Arc,
};

use promptshelf_core::{Prompt, Variables, nearest};
use promptshelf_server::Library;

use crate::{
    args::{ValueArguments, value_words},
    exit::{Exit, Failure},
};

/// The largest value from a file or stdin, in bytes. It bounds the memory; the limit of the library is lower.
const MAX_BYTES: u64 = 64 << 20;

impl ValueArguments {
    pub(crate) fn read(&self, stdin: impl Read) -> Result<Variables, Failure> {
        let mut stdin = Some(stdin);
        let mut values = Variables::new();
        let mut put = |name: &str, value: String| match values.insert(name.to_owned(), value) {
            None => Ok(()),
            Some(_) => Err(invalid(name, "occurs twice")),
        };
        for (name, value) in &self.values {
            // Other programs write the second form.
            let value = if matches!(&**value, "-" | "@-") {
                let stdin = stdin.take().ok_or_else(|| invalid(name, "and another one both read stdin"))?;
                text_of(stdin).map_err(|reason| invalid(name, &format!("cannot be read from stdin: {reason}")))?
            } else if let Some(path) = value.strip_prefix('@') {
                read_file(Path::new(path))
                    .map_err(|reason| invalid(name, &format!("cannot be read from {path}: {reason}")))?
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
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.values.iter().chain(&self.literal).map(|(name, _)| name.as_str())
    }

    pub(crate) fn words(&self, is_wanted: impl Fn(&str) -> bool) -> Vec<String> {
        let values = self.values.iter().filter(|(name, _)| is_wanted(name));
        let literal = self.literal.iter().filter(|(name, _)| is_wanted(name));
        let literal = literal.flat_map(|(name, value)| ["--literal".to_owned(), format!("{name}={value}")]);
        values.flat_map(|(name, value)| value_words(name, value)).chain(literal).collect()
    }

    /// Checks that every name is an argument of a prompt of the library. An unknown prompt passes: the request for it fails.
    pub(crate) fn check_names(&self, library: &Library, prompt: &str) -> Result<(), Failure> {
        library.catalog().find(prompt).map_or(Ok(()), |prompt| self.check_names_of(std::slice::from_ref(prompt)))
    }

    /// Checks that every name is an argument of one of these prompts. The protocol allows clients to send others; from a
    /// person they are typing errors.
    pub(crate) fn check_names_of(&self, prompts: &[Arc<Prompt>]) -> Result<(), Failure> {
        let known: Vec<&promptshelf_core::Argument> = prompts.iter().flat_map(|prompt| prompt.arguments()).collect();
        let names = || known.iter().map(|argument| argument.name());
        let Some(unknown) = self.names().find(|name| names().all(|known| known != *name)) else { return Ok(()) };
        let help = match nearest(unknown, names()) {
            Some(known) => format!("did you mean `{known}`?"),
            None if known.is_empty() => "the prompt has no arguments".to_owned(),
            None => format!("its arguments are {}", names().collect::<Vec<_>>().join(", ")),
        };
        let subject =
            if prompts.len() > 1 { "none of the prompts has an argument" } else { "the prompt has no argument" };
        Err(Failure::new(Exit::Arguments, format!("{subject} `{unknown}`")).help(help))
    }
}

fn invalid(name: &str, reason: &str) -> Failure {
    Failure::new(Exit::Arguments, format!("the argument `{name}` {reason}"))
}

fn read_file(path: &Path) -> Result<String, String> {
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err("no such file".to_owned()),
        Ok(found) if found.is_dir() => return Err("it is a folder".to_owned()),
        _ => {}
    }
    text_of(fs::File::open(path).map_err(|error| error.to_string())?)
}

fn text_of(from: impl Read) -> Result<String, String> {
    let mut bytes = Vec::new();
    from.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(format!("it exceeds {MAX_BYTES} bytes"));
    }
    // A byte order mark belongs to the file and not to the value.
    let start = if bytes.starts_with("\u{feff}".as_bytes()) { '\u{feff}'.len_utf8() } else { 0 };
    String::from_utf8(bytes.split_off(start))
        .map_err(|error| format!("it is not UTF-8: byte {} is invalid", start + error.utf8_error().valid_up_to() + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::pair;

    fn read(values: &[&str], literal: &[&str], stdin: &str) -> Result<Variables, String> {
        let pairs = |texts: &[&str]| texts.iter().map(|text| pair(text).expect("a pair")).collect();
        let arguments = ValueArguments { values: pairs(values), literal: pairs(literal) };
        arguments.read(stdin.as_bytes()).map_err(|failure| failure.to_string())
    }

    #[test]
    fn dash_reads_stdin_except_in_literals() {
        assert_eq!(read(&["a=@-"], &[], "text").expect("a value").len(), 1);
        let values = read(&["a=-", "b=x=y", "c="], &["d=-", "e=@f"], "\u{feff}from\nstdin\n").expect("valid values");
        let shown: Vec<_> = values.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(shown, [("a", "from\nstdin\n"), ("b", "x=y"), ("c", ""), ("d", "-"), ("e", "@f")]);
    }

    #[test]
    fn ambiguous_values_are_rejected() {
        assert_eq!(read(&["a=1", "a=2"], &[], ""), Err("the argument `a` occurs twice".to_owned()));
        assert_eq!(read(&["a=-", "b=-"], &[], ""), Err("the argument `b` and another one both read stdin".to_owned()));
        assert!(read(&["a=@no/such/file"], &[], "").is_err_and(|error| error.contains("no/such/file")));
        assert_eq!(pair("novalue"), Err("expected name=value".to_owned()));
    }
}

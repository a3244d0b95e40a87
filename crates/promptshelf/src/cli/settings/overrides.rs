//! Flags and environment variables, which take precedence over `server.toml`.

use std::{
    fmt::Display,
    path::{Path, PathBuf},
    str::FromStr,
};

use crate::exit::{Exit, Failure};

/// The environment, read through a function so that tests need no global state.
pub(super) struct Overrides<'e, E> {
    environment: &'e E,
}

impl<'e, E: Fn(&str) -> Option<String>> Overrides<'e, E> {
    pub(super) fn new(environment: &'e E) -> Overrides<'e, E> {
        Overrides { environment }
    }

    /// The value of the flag `--name`, else of the variable `PROMPTSHELF_NAME`.
    pub(super) fn value<T>(&self, name: &str, flag: Option<&str>) -> Result<Option<T>, Failure>
    where
        T: FromStr<Err: Display>,
    {
        if let Some(text) = flag {
            return parse(text, &format!("--{name}")).map(Some);
        }
        let variable = variable(name);
        self.get(&variable).map(|text| parse(&text, &format!("{variable} in the environment"))).transpose()
    }

    pub(super) fn list<T>(&self, flag: &str, variable: &str, values: &[String]) -> Result<Option<Vec<T>>, Failure>
    where
        T: FromStr<Err: Display>,
    {
        if !values.is_empty() {
            let place = format!("--{flag}");
            return values.iter().map(|text| parse(text, &place)).collect::<Result<_, _>>().map(Some);
        }
        let variable = format!("PROMPTSHELF_{variable}");
        let Some(text) = self.get(&variable) else { return Ok(None) };
        let place = format!("{variable} in the environment");
        text.split(',').map(|part| parse(part.trim(), &place)).collect::<Result<_, _>>().map(Some)
    }

    /// The value of the variable `PROMPTSHELF_NAME`, if it is not empty.
    pub(super) fn variable(&self, name: &str) -> Option<String> {
        self.get(&variable(name))
    }

    pub(super) fn replaces(&self, name: &str, has_flag: bool) -> bool {
        has_flag || self.variable(name).is_some()
    }

    /// The path of a flag, else of its variable. Both are relative to the working directory.
    pub(super) fn path(&self, name: &str, flag: Option<&Path>) -> Option<PathBuf> {
        flag.map(Path::to_path_buf).or_else(|| self.get(&variable(name)).map(PathBuf::from))
    }

    fn get(&self, variable: &str) -> Option<String> {
        (self.environment)(variable).filter(|text| !text.is_empty())
    }
}

fn variable(name: &str) -> String {
    format!("PROMPTSHELF_{}", name.replace('-', "_").to_uppercase())
}

fn parse<T: FromStr<Err: Display>>(text: &str, place: &str) -> Result<T, Failure> {
    text.parse().map_err(|error| Failure::new(Exit::Usage, format!("{place}: {error}")))
}

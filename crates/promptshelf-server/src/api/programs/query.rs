//! The parameters of requests for a prompt.

use promptshelf_core::Variables;

use super::super::problem::Problem;

const ARGUMENT: &str = "arguments.";

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct PromptQuery {
    pub(super) channel: Option<String>,
    pub(super) version: Option<u64>,
    pub(super) is_rendered: bool,
    pub(super) arguments: Variables,
}

impl PromptQuery {
    /// Reads the pairs of a query. Unknown and repeated parameters are refused.
    pub(super) fn read(pairs: Vec<(String, String)>) -> Result<PromptQuery, Problem> {
        let mut query = PromptQuery::default();
        let mut seen = Vec::new();
        for (name, value) in pairs {
            let shown = name[..name.floor_char_boundary(100)].to_owned();
            if seen.contains(&name) {
                return Err(Problem::invalid(format!("The parameter `{shown}` occurs twice")));
            }
            match (name.as_str(), name.strip_prefix(ARGUMENT)) {
                (_, Some(argument)) => drop(query.arguments.insert(argument.to_owned(), value)),
                ("channel", _) => query.channel = Some(value),
                ("version", _) => {
                    let number = value.parse().ok().filter(|number| *number > 0);
                    let malformed = || Problem::invalid("The parameter `version` is invalid: expected a number from 1");
                    query.version = Some(number.ok_or_else(malformed)?);
                }
                ("rendered", _) => {
                    let malformed = || Problem::invalid("The parameter `rendered` is invalid: expected true or false");
                    query.is_rendered = value.parse().map_err(|_| malformed())?;
                }
                _ => {
                    return Err(Problem::invalid(format!(
                        "The parameter `{shown}` is unknown: expected `channel`, `version`, `rendered` or \
                         `arguments.NAME`"
                    )));
                }
            }
            seen.push(name);
        }
        if !query.is_rendered && !query.arguments.is_empty() {
            return Err(Problem::invalid("Arguments need `rendered=true`: without it the answer is the template"));
        }
        Ok(query)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(query: &str) -> Result<PromptQuery, &'static str> {
        let pair = |pair: &str| pair.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
        PromptQuery::read(query.split('&').filter_map(pair).collect()).map_err(|problem| problem.name())
    }

    #[test]
    fn unknown_repeated_and_malformed_parameters_are_refused() {
        for query in [
            "chanel=x",
            "channel=a&channel=a",
            "version=0",
            "version=-1",
            "version=1.5",
            "rendered=yes",
            "arguments.a=1",
            "rendered=true&arguments.a=1&arguments.a=2",
        ] {
            assert_eq!(read(query), Err("invalid-request"), "{query}");
        }
        let query = read("channel=c&version=7&rendered=true&arguments.a.b=1").expect("valid");
        assert_eq!((query.channel.as_deref(), query.version, query.is_rendered), (Some("c"), Some(7), true));
        assert_eq!(query.arguments["a.b"], "1");
    }
}

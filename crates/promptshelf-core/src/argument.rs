//! Arguments of prompts: checked declarations, and the values of a call.
//!
//! On the wire every value is a string. [`bind`] converts the strings of a call into typed values and reports all
//! problems of the call together, because people give up when they have to fix one problem per round.

mod bind;
mod checked;

use std::{collections::HashSet, fmt, sync::Arc};

use regex_automata::{
    Input,
    hybrid::{
        LazyStateID,
        dfa::{Cache, Config, DFA},
    },
    nfa::thompson::{self, NFA, WhichCaptures, pikevm::PikeVM},
    util::syntax,
};

use crate::{
    definition::{ArgumentDefinition, ArgumentType, Choice},
    interrupt::{compiled_once, spend_work},
    nearest,
    value::Value,
};

pub use bind::{Problem, RawArgumentValue, RawArguments, bind};
pub use checked::Argument;

pub(crate) use bind::{bind_leniently, check_before_forms, unknown};
pub(crate) use checked::Declared;

struct Parser<'a> {
    definition: &'a ArgumentDefinition,
    pattern: Option<&'a Pattern>,
}

impl Parser<'_> {
    /// Parses a value and checks it against all constraints of the definition. An error completes a sentence that
    /// begins with the argument's name, such as "must be …".
    fn parse(&self, text: &str) -> Result<Value, String> {
        let value = self.check_type(text)?;
        let definition = self.definition;
        let mut matcher = self.pattern.map(Pattern::matcher);
        match &value {
            Value::Integer(_) | Value::Number(_) => {
                #[expect(clippy::cast_precision_loss, reason = "bounds are floating-point numbers too")]
                let number = match value {
                    Value::Integer(integer) => integer as f64,
                    Value::Number(number) => number,
                    _ => 0.0,
                };
                if let Some(least) = definition.constraints().minimum.filter(|least| number < *least) {
                    return Err(format!("must be {least} or more"));
                }
                if let Some(most) = definition.constraints().maximum.filter(|most| number > *most) {
                    return Err(format!("must be {most} or less"));
                }
                self.check_choice(&value, text.trim())?;
            }
            Value::List(items) => {
                let choices: HashSet<&str> = definition.choices.iter().map(|choice| choice.value.as_str()).collect();
                for item in items {
                    self.check_text(item, matcher.as_mut())?;
                    if !choices.is_empty() && !choices.contains(item.as_str()) {
                        return Err(self.not_a_choice(item));
                    }
                }
            }
            Value::Text(text) => {
                self.check_text(text, matcher.as_mut())?;
                self.check_choice(&value, text)?;
            }
            Value::Boolean(_) | Value::Json(_) => self.check_choice(&value, text)?,
        }
        Ok(value)
    }

    fn check_text(&self, text: &str, matcher: Option<&mut Matcher<'_>>) -> Result<(), String> {
        let definition = self.definition;
        if definition.constraints().min_length.is_some() || definition.constraints().max_length.is_some() {
            let length = text.chars().count();
            if let Some(least) = definition.constraints().min_length.filter(|least| length < *least) {
                return Err(format!("must have {} or more, got {length}", characters(least)));
            }
            if let Some(most) = definition.constraints().max_length.filter(|most| length > *most) {
                return Err(format!("must have {} or fewer, got {length}", characters(most)));
            }
        }
        match matcher.map_or(Match::Found, |matcher| matcher.find(text)) {
            Match::Found => Ok(()),
            Match::Missing => Err(format!(
                "must match the pattern {}",
                definition.constraints().pattern.as_deref().unwrap_or_default()
            )),
            Match::Refused => Err("is too long for its pattern: comparing them would take too long".to_owned()),
        }
    }

    /// Checks that a value is one of the choices, by text or by value: `1.0` equals the choice `1` for a number.
    fn check_choice(&self, value: &Value, text: &str) -> Result<(), String> {
        let choices = &self.definition.choices;
        let means = |choice: &Choice| {
            !matches!(value, Value::Text(_)) && self.check_type(&choice.value).is_ok_and(|meant| meant == *value)
        };
        if choices.is_empty() || choices.iter().any(|choice| choice.value == text || means(choice)) {
            return Ok(());
        }
        Err(self.not_a_choice(text))
    }

    fn not_a_choice(&self, text: &str) -> String {
        // A number is near to none.
        let known = nearest(
            if text.parse::<f64>().is_ok() { "" } else { text },
            self.definition.choices.iter().map(|choice| &*choice.value),
        );
        let meant = known.map(|known| format!("; did you mean `{known}`?")).unwrap_or_default();
        format!("must be one of {}{meant}", self.choice_list())
    }

    /// Lists the choices for people, shortened if there are very many.
    fn choice_list(&self) -> String {
        const SHOWN: usize = 20;
        let choices = &self.definition.choices;
        let mut list = choices.iter().take(SHOWN).map(|choice| &*choice.value).collect::<Vec<_>>().join(", ");
        if choices.len() > SHOWN {
            list.push_str(&format!(" and {} others", choices.len() - SHOWN));
        }
        list
    }

    /// Describes the allowed values, as the rest of a sentence that begins with "it must be"; `None` for any text.
    fn expectation(&self) -> Option<String> {
        let definition = self.definition;
        if !definition.choices.is_empty() {
            return Some(format!("one of {}", self.choice_list()));
        }
        let bounds = match (definition.constraints().minimum, definition.constraints().maximum) {
            (Some(least), Some(most)) => format!(" from {least} to {most}"),
            (Some(least), None) => format!(" of at least {least}"),
            (None, Some(most)) => format!(" of at most {most}"),
            (None, None) => String::new(),
        };
        match definition.kind {
            ArgumentType::Integer => Some(format!("a whole number{bounds}")),
            ArgumentType::Number => Some(format!("a number{bounds}")),
            ArgumentType::Boolean => Some("true or false".to_owned()),
            ArgumentType::Date => Some("a day, such as 2026-07-28".to_owned()),
            ArgumentType::String | ArgumentType::Text | ArgumentType::List | ArgumentType::Json => None,
        }
    }

    /// Parses a value as the argument's type, without the other constraints.
    fn check_type(&self, text: &str) -> Result<Value, String> {
        let trimmed = text.trim();
        match self.definition.kind {
            ArgumentType::String | ArgumentType::Text => Ok(Value::Text(Arc::from(text))),
            ArgumentType::Integer => {
                trimmed.parse().map(Value::Integer).map_err(|_| "must be a whole number, such as 42".into())
            }
            ArgumentType::Number => trimmed
                .parse()
                .ok()
                .filter(|number: &f64| number.is_finite())
                .map(Value::Number)
                .ok_or_else(|| "must be a number, such as 4.2".into()),
            ArgumentType::Boolean => match trimmed.to_ascii_lowercase().as_str() {
                "true" | "yes" | "on" | "1" => Ok(Value::Boolean(true)),
                "false" | "no" | "off" | "0" => Ok(Value::Boolean(false)),
                _ => Err("must be true or false".into()),
            },
            ArgumentType::Date => trimmed
                .parse::<jiff::civil::Date>()
                .ok()
                .filter(|_| trimmed.len() == 10)
                .map(|_| Value::Text(Arc::from(trimmed)))
                .ok_or_else(|| "must be a day, such as 2026-07-28".into()),
            ArgumentType::List => parse_list(trimmed),
            ArgumentType::Json => {
                serde_json::from_str(trimmed).map(Value::Json).map_err(|error| format!("must be JSON: {error}"))
            }
        }
    }
}

fn parse_list(text: &str) -> Result<Value, String> {
    if text.starts_with('[') {
        let items: Vec<serde_json::Value> =
            serde_json::from_str(text).map_err(|error| format!("must be a list: {error}"))?;
        let items = items.into_iter().map(|item| match item {
            serde_json::Value::String(text) => text,
            other => other.to_string(),
        });
        return Ok(Value::List(items.collect()));
    }
    let separator = if text.contains('\n') { '\n' } else { ',' };
    let items = text.split(separator).map(str::trim).filter(|item| !item.is_empty());
    Ok(Value::List(items.map(str::to_owned).collect()))
}

fn characters(count: usize) -> String {
    match count {
        1 => "1 character".to_owned(),
        other => format!("{other} characters"),
    }
}

// Patterns of arguments, matched in bounded time.
// An engine for regular expressions takes time in proportion to the value times the size of the pattern, and an author
// chooses one and a caller the other. A lazy automaton takes a step for each byte of the value, and builds each state
// once: both are counted here.

/// The largest size of a compiled pattern in bytes. A Unicode class such as `\w` takes 17 KiB.
const MAX_COMPILED: usize = 1 << 20;

/// The bytes of a value between two looks at the counters.
const CHUNK: usize = 4 << 10;

/// The work for each byte of a new state of the automaton, at least.
const BUILT_BYTE: u64 = 64;

/// The work of one visit of a state when states are visited one after the other.
const VISIT: u64 = 8;

#[derive(Debug)]
struct Pattern {
    dfa: DFA,
}

/// The reason why a pattern is not accepted, and the suggested correction.
type PatternFault = (String, Option<String>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Match {
    Found,
    Missing,
    /// The search would take too long.
    Refused,
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a pattern with {} states", self.nfa().states().len())
    }
}

impl Pattern {
    /// Compiles a pattern. Equal patterns of one check, and of those that belong together, are compiled once.
    fn compile(text: &str) -> Result<Arc<Pattern>, PatternFault> {
        let bytes = |made: &Result<Arc<Pattern>, PatternFault>| match made {
            Ok(pattern) => pattern.nfa().memory_usage(),
            // Also what does not fit takes the time of compiling it.
            Err(fault) if *fault == too_large() => MAX_COMPILED,
            Err(_) => 0,
        };
        match compiled_once(text, || Pattern::new(text).map(Arc::new), bytes) {
            Some(made) => (*made).clone(),
            None => Err(("the patterns of the library are too large together".to_owned(), Some(SMALLER.to_owned()))),
        }
    }

    fn new(text: &str) -> Result<Pattern, PatternFault> {
        let hir = syntax::parse(text).map_err(|error| syntax_fault(&error.to_string()))?;
        let config = thompson::Config::new().nfa_size_limit(Some(MAX_COMPILED)).which_captures(WhichCaptures::None);
        let nfa = thompson::Compiler::new().configure(config).build_from_hir(&hir).map_err(|error| {
            if error.size_limit().is_some() { too_large() } else { syntax_fault(&error.to_string()) }
        })?;
        let config = Config::new().unicode_word_boundary(true).skip_cache_capacity_check(true);
        let dfa = DFA::builder().configure(config).build_from_nfa(nfa);
        Ok(Pattern { dfa: dfa.map_err(|error| syntax_fault(&error.to_string()))? })
    }

    fn nfa(&self) -> &NFA {
        self.dfa.get_nfa()
    }

    fn matcher(&self) -> Matcher<'_> {
        Matcher { pattern: self, cache: self.dfa.create_cache() }
    }
}

struct Matcher<'a> {
    pattern: &'a Pattern,
    cache: Cache,
}

impl Matcher<'_> {
    fn find(&mut self, text: &str) -> Match {
        self.step(text).unwrap_or_else(|| self.visit(text))
    }

    /// Searches with the lazy automaton; `None` if it does not support the text: a boundary of words beside a character
    /// that is not ASCII.
    fn step(&mut self, text: &str) -> Option<Match> {
        let dfa = &self.pattern.dfa;
        let states = self.pattern.nfa().states().len() as u64;
        // A state is built once for each class of bytes.
        let for_each_byte = (dfa.byte_classes().alphabet_len() as u64).max(BUILT_BYTE);
        let mut size = self.cache.memory_usage();
        let mut state: LazyStateID = dfa.start_state_forward(&mut self.cache, &Input::new(text)).ok()?;
        let mut built = states;
        for chunk in text.as_bytes().chunks(CHUNK) {
            if !spend_work(chunk.len() as u64) {
                return Some(Match::Refused);
            }
            for byte in chunk {
                state = dfa.next_state(&mut self.cache, state, *byte).ok()?;
                if state.is_tagged() {
                    if state.is_match() {
                        return Some(Match::Found);
                    }
                    if state.is_dead() {
                        return Some(Match::Missing);
                    }
                    if state.is_quit() {
                        return None;
                    }
                }
                let now = self.cache.memory_usage();
                if now != size {
                    built += now.saturating_sub(size) as u64 * for_each_byte;
                    size = now;
                    if built > 1 << 16 && !spend_work(std::mem::take(&mut built)) {
                        return Some(Match::Refused);
                    }
                }
            }
        }
        if !spend_work(built) {
            return Some(Match::Refused);
        }
        let end = dfa.next_eoi_state(&mut self.cache, state).ok()?;
        Some(if end.is_match() { Match::Found } else { Match::Missing })
    }

    fn visit(&self, text: &str) -> Match {
        let nfa = self.pattern.nfa();
        let visits = (nfa.states().len() as u64).saturating_mul(text.len() as u64);
        if !spend_work(visits.saturating_mul(VISIT)) {
            return Match::Refused;
        }
        let Ok(vm) = PikeVM::new_from_nfa(nfa.clone()) else { return Match::Refused };
        if vm.is_match(&mut vm.create_cache(), text) { Match::Found } else { Match::Missing }
    }
}

const SMALLER: &str =
    "use smaller repetitions, ASCII classes such as `[A-Za-z0-9_]` instead of `\\w`, or `maxLength` for the length";

fn too_large() -> PatternFault {
    let message = format!("the pattern is too large: it takes more than {} KiB", MAX_COMPILED >> 10);
    (message, Some(SMALLER.to_owned()))
}

fn syntax_fault(text: &str) -> PatternFault {
    // The engine's message repeats the pattern over several lines; the last line has the reason.
    let reason = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
    if reason.starts_with("look-around") || reason.starts_with("backreferences") {
        let what = if reason.starts_with('l') { "`(?=…)`, `(?!…)` and `(?<…)`" } else { "`\\1`" };
        let message = format!("patterns do not support look-around or backreferences, such as {what}");
        let help = "rewrite the pattern without them; on some values they would take exponential time";
        return (message, Some(help.to_owned()));
    }
    (format!("invalid regular expression: {reason}"), None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interrupt::Interrupt;

    /// Two requests of 100 kB with the first pattern stopped a server.
    // req: S-275
    #[test]
    fn size_of_patterns_is_bounded() {
        for pattern in ["(?:a{1,1000}){1,100}b", r"\w{100}", r"(?:\pL{1,100}){1,100}", ".{1,100000}"] {
            let (message, help) = Pattern::compile(pattern).expect_err("it is too large");
            assert!(message.contains("too large") && help.is_some(), "{pattern}: {message}");
        }
        for pattern in [r"^\d+\.\d+\.\d+$", r"^[\w-]{3,40}$", r"^\p{L}[\p{L} .'-]*$", "^[a-z]{1,2000}$", "^.{1,500}$"] {
            assert!(Pattern::compile(pattern).is_ok(), "{pattern}");
        }
        let compile_many = || (0..1_000).filter(|n| Pattern::compile(&format!(r"\w{{40}}{n}")).is_ok()).count();
        assert!((10..100).contains(&Interrupt::new().scope(compile_many)), "all patterns of a check together");
    }

    // req: S-275
    #[test]
    fn equal_patterns_are_compiled_and_counted_once() {
        let same = |_| Pattern::compile(r"\w{40}").ok();
        let whole = Interrupt::new();
        whole.scope(|| {
            let all: Vec<Arc<Pattern>> = (0..1_000).filter_map(same).collect();
            assert!(all.len() == 1_000 && all.iter().all(|one| Arc::ptr_eq(one, &all[0])));
            let compile_many = || (0..1_000).filter(|n| Pattern::compile(&format!(r"\w{{40}}{n}")).is_ok()).count();
            let (first, second) = (compile_many(), Interrupt::of_part().scope(compile_many));
            assert_eq!(first + 1, second, "the second part has counters of its own");
            let of_part = Interrupt::of_part().scope(|| same(0).expect("a pattern"));
            assert!(Arc::ptr_eq(&of_part, &all[0]), "what another part has compiled is used");
        });
        let part = whole.scope(Interrupt::of_part);
        whole.set();
        assert!(part.is_set());
    }

    /// The work does not depend on the pattern, and a search can be stopped.
    // req: S-275
    #[test]
    fn work_of_patterns_is_bounded() {
        let varied: String = (0..100_000_u64)
            .map(|n| if (n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) & 1 == 0 { 'a' } else { 'b' })
            .collect();
        for (pattern, text) in [
            ("(?:a{1,100}){1,50}b", "a".repeat(100_000)),
            ("[ab]*a[ab]{3000}c", varied),
            (r"\ba{1,3000}c", "aä".repeat(50_000)),
        ] {
            let brief = Interrupt::brief();
            let found = brief.scope(|| Pattern::compile(pattern).expect("a pattern").matcher().find(&text));
            assert_eq!((found, brief.has_refused_work()), (Match::Refused, true), "{pattern}");
        }
        let stopped = Interrupt::new();
        stopped.set();
        assert_eq!(stopped.scope(|| Pattern::compile("b").expect("a pattern").matcher().find("aaa")), Match::Refused);
    }

    #[test]
    fn ordinary_patterns_match_long_values_briefly() {
        let brief = |pattern: &str, text: &str| {
            Interrupt::brief().scope(|| Pattern::compile(pattern).expect("a pattern").matcher().find(text))
        };
        for text in ["word and word. ".repeat(20_000), "ä-ö, ".repeat(20_000)] {
            assert_eq!(brief(r"^[\w .,-]+$", &text), Match::Found);
            assert_eq!(brief(r"^[\w .,]+$", &format!("{text}-!")), Match::Missing);
            assert_eq!(brief(r"-$", &text), Match::Missing);
        }
        assert_eq!(brief(r"\bö\b", &"ä ".repeat(1_000)), Match::Missing);
        assert_eq!(brief(r"\bö\b", &format!("{} ö ä", "ä ".repeat(1_000))), Match::Found);
        assert_eq!(brief("^$", ""), Match::Found);
        assert_eq!(brief("a$", "ba"), Match::Found);
        assert_eq!(brief("^a", "ba"), Match::Missing);
    }
}

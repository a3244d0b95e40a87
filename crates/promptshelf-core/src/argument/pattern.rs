//! Patterns of arguments, matched in bounded time.
//!
//! An engine for regular expressions takes time in proportion to the value times the size of the pattern, and an author
//! chooses one and a caller the other. A lazy automaton takes a step for each byte of the value, and builds each state
//! once: both are counted here.

use std::{fmt, sync::Arc};

use regex_automata::{
    Input,
    hybrid::{
        LazyStateID,
        dfa::{Cache, Config, DFA},
    },
    nfa::thompson::{self, NFA, WhichCaptures, pikevm::PikeVM},
    util::syntax,
};

use crate::interrupt::{compiled_once, spend_work};

/// The largest size of a compiled pattern in bytes. A Unicode class such as `\w` takes 17 KiB.
const MAX_COMPILED: usize = 1 << 20;

/// The bytes of a value between two looks at the counters.
const CHUNK: usize = 4 << 10;

/// The work for each byte of a new state of the automaton, at least.
const BUILT_BYTE: u64 = 64;

/// The work of one visit of a state when states are visited one after the other.
const VISIT: u64 = 8;

#[derive(Debug)]
pub(super) struct Pattern {
    dfa: DFA,
}

/// The reason why a pattern is not accepted, and the suggested correction.
pub(super) type PatternFault = (String, Option<String>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Match {
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
    pub(super) fn compile(text: &str) -> Result<Arc<Pattern>, PatternFault> {
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

    pub(super) fn matcher(&self) -> Matcher<'_> {
        Matcher { pattern: self, cache: self.dfa.create_cache() }
    }
}

pub(super) struct Matcher<'a> {
    pattern: &'a Pattern,
    cache: Cache,
}

impl Matcher<'_> {
    pub(super) fn find(&mut self, text: &str) -> Match {
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

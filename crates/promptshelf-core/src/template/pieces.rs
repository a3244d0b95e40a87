//! The parts of a rendering: text, and directives between texts.
//!
//! Directives are sentinels in a text that contains untrusted values.

use minijinja::{Error, ErrorKind, State};

use super::meter::{self, work_bytes};
use crate::{
    content::{Annotations, Role},
    definition::Budget,
    interrupt::Interrupt,
    value::Variables,
};

#[derive(Clone, Debug)]
pub(crate) struct Remaining {
    pub(crate) fuel: u64,
    pub(crate) output_bytes: usize,
    /// Bytes that operations may walk and create.
    pub(crate) work_bytes: u64,
    pub(crate) interrupt: Option<Interrupt>,
}

impl Remaining {
    pub(crate) fn of(budget: &Budget) -> Remaining {
        Remaining {
            fuel: budget.fuel,
            output_bytes: budget.output_bytes,
            work_bytes: work_bytes(budget.fuel),
            interrupt: None,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Piece {
    Text(String),
    Directive(Directive),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Directive {
    Role { role: Role, annotations: Annotations },
    Attach(Attach),
    Link(Link),
    Prompt(Call),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Attach {
    pub(crate) target: String,
    pub(crate) uri: Option<String>,
    pub(crate) mime: Option<String>,
    pub(crate) annotations: Annotations,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Call {
    pub(crate) name: String,
    /// The arguments as a caller would send them.
    pub(crate) arguments: Variables,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Link {
    pub(crate) target: String,
    pub(crate) name: Option<String>,
    pub(crate) title: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) mime: Option<String>,
    pub(crate) annotations: Annotations,
}

/// Opens and closes a sentinel: noncharacters, which Unicode reserves for internal use (section 23.7). They only make
/// sentinels easy to find; the random number inside makes them authentic.
const OPEN: char = '\u{FDD0}';
const CLOSE: char = '\u{FDD1}';

/// The digits at both ends of the number by which a damaged sentinel is found. No value has them by chance.
const PART: usize = 12;

pub(super) struct Sentinels {
    nonce: String,
    directives: Vec<Directive>,
}

impl Sentinels {
    fn new(random: [u8; 16]) -> Sentinels {
        // Digits only, so that a filter such as `upper` cannot change them.
        Sentinels { nonce: format!("{:039}", u128::from_ne_bytes(random)), directives: Vec::new() }
    }

    /// Returns the sentinels of a rendering. Its number is drawn with the first
    /// one, after the caller's values were fixed, and is never shown.
    fn of<'s>(state: &'s mut State<'_, '_>) -> Result<&'s mut Sentinels, Error> {
        let mut random = [0; 16];
        if state.get_extension::<Sentinels>().is_none() {
            getrandom::fill(&mut random).map_err(|error| {
                let message = "the operating system returned no random numbers for the message boundaries";
                Error::new(ErrorKind::InvalidOperation, message).with_source(error)
            })?;
        }
        Ok(state.get_or_insert_extension_with(|| Sentinels::new(random)))
    }

    pub(super) fn put(state: &mut State<'_, '_>, directive: Directive) -> Result<String, Error> {
        meter::spend_text(state, size_of::<Directive>() + directive.text_len())?;
        let own = Sentinels::of(state)?;
        own.directives.push(directive);
        Ok(format!("{OPEN}{}:{}{CLOSE}", own.nonce, own.directives.len() - 1))
    }

    pub(super) fn take(&mut self) -> Sentinels {
        Sentinels { nonce: std::mem::take(&mut self.nonce), directives: std::mem::take(&mut self.directives) }
    }

    /// Cuts a text at its sentinels. `None` if a sentinel was altered, as by a filter after `role(…)`.
    pub(super) fn cut(&self, text: &str) -> Option<Vec<Piece>> {
        let frame = format!("{OPEN}{}:", self.nonce);
        let mut pieces = Vec::with_capacity(2 * self.directives.len() + 1);
        let mut rest = text;
        while let Some(start) = rest.find(&frame) {
            self.push_text(&mut pieces, &rest[..start])?;
            let after = &rest[start + frame.len()..];
            let (index, after) = after.split_once(CLOSE)?;
            pieces.push(Piece::Directive(self.directives.get(index.parse::<usize>().ok()?)?.clone()));
            rest = after;
        }
        self.push_text(&mut pieces, rest)?;
        Some(pieces)
    }

    fn push_text(&self, pieces: &mut Vec<Piece>, text: &str) -> Option<()> {
        // A part of the number without its frame means that a sentinel was damaged. It must not be shown.
        let (begin, end) = (&self.nonce[..PART], &self.nonce[self.nonce.len() - PART..]);
        if text.contains(begin) || text.contains(end) {
            return None;
        }
        if !text.is_empty() {
            pieces.push(Piece::Text(text.to_owned()));
        }
        Some(())
    }
}

impl Directive {
    /// Bytes of the texts that it holds.
    fn text_len(&self) -> usize {
        let optional = |texts: &[&Option<String>]| -> usize {
            texts.iter().map(|text| text.as_ref().map_or(0, String::len)).sum()
        };
        match self {
            Directive::Role { .. } => 0,
            Directive::Attach(Attach { target, uri, mime, .. }) => target.len() + optional(&[uri, mime]),
            Directive::Prompt(Call { name, arguments }) => {
                name.len() + arguments.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>()
            }
            Directive::Link(Link { target, name, title, description, mime, .. }) => {
                target.len() + optional(&[name, title, description, mime])
            }
        }
    }
}

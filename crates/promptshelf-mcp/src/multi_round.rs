//! Guided prompts over the wire: forms to ask, answers to check.
//!
//! In the modern era a question is the answer to `prompts/get`, and the client
//! asks again with what the person said (2026-07-28, *Multi round-trip
//! requests*). On a legacy pipe the server asks by a request of its own. Either
//! way the questions and the answers are the same.

use std::collections::BTreeMap;

use promptshelf_core::{Answers, BoxFuture, Decline, Form, RawArgumentValue, RawArguments};
use promptshelf_service::{Caller, OpenPrompt, View};
use serde::{Serialize, de::IgnoredAny};
use serde_json::{Value, json, value::RawValue};

use crate::{
    error_code::WireError,
    json::{self, members, text},
    revision::Revision,
    to_wire::ResultMeta,
};

pub(crate) mod form;
mod state;

pub use state::StateKey;

use form::Reply;
use state::{Bound, Progress};

/// How often one prompt may ask before it gives up.
const MAX_ROUNDS: u32 = 32;

/// What a client can show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Elicitation {
    pub(crate) form: bool,
    pub(crate) url: bool,
}

impl Elicitation {
    /// Reads a client's capabilities. An `elicitation` without modes means forms.
    pub(crate) fn of(capabilities: &RawValue) -> Elicitation {
        let declared = members::<&RawValue>(capabilities);
        let Some(modes) = declared.and_then(|all| members::<IgnoredAny>(all.get("elicitation")?)) else {
            return Elicitation::default();
        };
        let (form, url) = (modes.contains_key("form"), modes.contains_key("url"));
        Elicitation { form: form || !url, url }
    }

    pub(crate) fn can_ask(self, form: &Form<'_>) -> bool {
        if form.url.is_some() { self.url } else { self.form }
    }
}

/// Asks the person at the other end of a legacy pipe.
pub(crate) trait Ask: std::fmt::Debug + Sync {
    /// Sends `elicitation/create` with these parameters and waits for its
    /// result; `None` when there comes none.
    fn ask(&self, params: Value) -> BoxFuture<'_, Option<Box<RawValue>>>;
}

/// What comes of one look at a guided prompt.
pub(crate) enum Outcome {
    /// Everything is known.
    Ready(Answers),
    /// The result to send: a question.
    Asked(Vec<u8>),
}

/// A modern request for a guided prompt.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Round<'a> {
    pub(crate) caller: &'a Caller,
    pub(crate) key: &'a StateKey,
    pub(crate) elicitation: Elicitation,
    pub(crate) revision: Revision,
    /// `params.inputResponses`
    pub(crate) responses: Option<&'a RawValue>,
    /// `params.requestState`
    pub(crate) state: Option<&'a RawValue>,
}

impl<'a> Round<'a> {
    /// Takes what the client answered, and says what comes next.
    pub(crate) fn take(&self, prompt: &OpenPrompt, given: &RawArguments<'_>) -> Result<Outcome, WireError> {
        let arguments = canonical(given);
        let bound = Bound { caller: self.caller.key(), prompt: prompt.prompt().name().as_str(), arguments: &arguments };
        let mut progress = self.progress(&bound)?;
        let responses = self.responses()?;
        let mut answers = Answers { values: progress.answers, passed: progress.passed };
        loop {
            let Some(form) = prompt.prompt().next_form(given, &answers) else { return Ok(Outcome::Ready(answers)) };
            let mut again = None;
            if let Some(raw) = responses.get(&form.key) {
                let reply = form::reply(raw)
                    .ok_or_else(|| WireError::invalid_params(format!("The answer to `{}` is malformed", form.key)))?;
                let value_bytes = prompt.view().catalog().policy().value_bytes;
                match settle(&form, reply, value_bytes, &mut answers)? {
                    None => continue,
                    Some(problem) => again = Some(problem),
                }
            }
            if !self.elicitation.can_ask(&form) {
                if form.indispensable {
                    return Err(WireError::missing_elicitation(form.url.is_some()));
                }
                answers.passed.insert(form.step);
                continue;
            }
            progress.rounds += 1;
            if progress.rounds > MAX_ROUNDS {
                return Err(asked_too_often());
            }
            let progress =
                Progress { answers: answers.values.clone(), passed: answers.passed.clone(), rounds: progress.rounds };
            return Ok(Outcome::Asked(self.question(
                prompt.view(),
                &form,
                again.as_deref(),
                self.key.seal(&bound, &progress),
            )));
        }
    }

    /// How far the prompt has come, according to a state that is ours.
    fn progress(&self, bound: &Bound<'_>) -> Result<Progress, WireError> {
        let Some(raw) = self.state else { return Ok(Progress::default()) };
        // One sentence for everything that can be wrong with it.
        let refused = || WireError::invalid_params("This `requestState` cannot be used; begin again without it");
        text(raw).and_then(|state| self.key.open(bound, &state)).ok_or_else(refused)
    }

    fn responses(&self) -> Result<BTreeMap<String, &'a RawValue>, WireError> {
        let Some(raw) = self.responses else { return Ok(BTreeMap::new()) };
        members(raw).ok_or_else(|| WireError::invalid_params("`inputResponses` has to be an object"))
    }

    fn question(&self, view: &View, form: &Form<'_>, again: Option<&str>, state: String) -> Vec<u8> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Result<'a> {
            result_type: &'static str,
            input_requests: Value,
            request_state: String,
            #[serde(rename = "_meta")]
            meta: ResultMeta<'a>,
        }
        let request = json!({ "method": "elicitation/create", "params": form::question(form, again, self.revision) });
        let mut requests = serde_json::Map::new();
        requests.insert(form.key.clone(), request);
        let mut out = Vec::new();
        let result = Result {
            result_type: "input_required",
            input_requests: Value::Object(requests),
            request_state: state,
            meta: ResultMeta::of(view),
        };
        json::write(&mut out, &result);
        out
    }
}

/// Asks what a guided prompt still has to know, one question after the other.
pub(crate) async fn converse(
    ask: &dyn Ask,
    elicitation: Elicitation,
    revision: Revision,
    open: &OpenPrompt,
    given: &RawArguments<'_>,
) -> Result<Answers, WireError> {
    let (mut answers, mut again) = (Answers::default(), None);
    for _ in 0..MAX_ROUNDS {
        let Some(form) = open.prompt().next_form(given, &answers) else { return Ok(answers) };
        if !elicitation.can_ask(&form) {
            if form.url.is_some() && form.indispensable {
                return Err(WireError::invalid_params("This prompt has to open a page, which the client cannot do"));
            }
            // What is missing is missing like any other argument.
            answers.passed.insert(form.step);
            continue;
        }
        let result = ask.ask(form::question(&form, again.take().as_deref(), revision)).await;
        let reply = match result {
            Some(result) => form::reply(&result)
                .ok_or_else(|| WireError::invalid_params(format!("The answer to `{}` is malformed", form.key)))?,
            None => Reply::Cancel,
        };
        again = settle(&form, reply, open.view().catalog().policy().value_bytes, &mut answers)?;
    }
    Err(asked_too_often())
}

fn asked_too_often() -> WireError {
    WireError::invalid_params("This prompt has asked too often; begin again")
}

/// Takes an answer to a form. `Some` says why it has to be asked again.
pub(crate) fn settle(
    form: &Form<'_>,
    reply: Reply,
    value_bytes: usize,
    answers: &mut Answers,
) -> Result<Option<String>, WireError> {
    match (reply, form.decline) {
        (Reply::Accept(filled_in), _) => match form.check(&filled_in, value_bytes) {
            Ok(values) => {
                answers.values.extend(values);
                answers.passed.insert(form.step);
                Ok(None)
            }
            Err(problems) => {
                let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
                Ok(Some(problems.join("; ")))
            }
        },
        (Reply::Decline | Reply::Cancel, Decline::Continue) => {
            answers.passed.insert(form.step);
            Ok(None)
        }
        (Reply::Decline, Decline::Stop) => {
            Err(WireError::invalid_params("The question was declined, so there is no prompt"))
        }
        (Reply::Cancel, Decline::Stop) => {
            Err(WireError::invalid_params("The question was cancelled, so there is no prompt"))
        }
    }
}

/// What a caller sent, in a form in which equal arguments are equal bytes.
fn canonical(given: &RawArguments<'_>) -> Vec<u8> {
    let members: BTreeMap<&str, Value> = given
        .names()
        .filter_map(|name| {
            let value = match given.get(name)? {
                RawArgumentValue::Text(text) => json!(text),
                RawArgumentValue::Other(kind) => json!({ "kind": kind }),
            };
            Some((name, value))
        })
        .collect();
    serde_json::to_vec(&members).unwrap_or_default()
}

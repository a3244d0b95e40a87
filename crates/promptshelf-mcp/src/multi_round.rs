//! Guided prompts: questions to the user, and checks of the answers.
//!
//! A modern server answers `prompts/get` with a question, and the client repeats the request with the user's answers
//! (2026-07-28, *Multi round-trip requests*). A legacy server sends a request of its own on stdio. Questions and
//! checks are the same in both eras.
//!
//! Elsewhere: the signed state between rounds (`state`), and the schema of forms (`form`).

pub(crate) mod form;
mod state;

use std::collections::BTreeMap;

use form::{ElicitResult, elicitation_params};
use promptshelf_core::{
    Answers, ArgumentDefinition, ArgumentType, BoxFuture, Decline, Form, Prompt, RawArgumentValue, RawArguments,
    RemoteForm, RemoteInput, RemoteQuestion, Value as Typed,
};
use promptshelf_service::{Caller, FormReaction, OpenPrompt, View};
use serde::{Serialize, de::IgnoredAny};
use serde_json::{Map, Value, json, value::RawValue};
use sha2::{Digest as _, Sha256};
use state::{Bound, Progress, Refusal};

use crate::{
    error_code::WireError,
    json::{self, members, text},
    revision::Revision,
    to_wire::ResultMeta,
};

pub use state::StateKey;

const MAX_ROUNDS: u32 = 32;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Elicitation {
    pub(crate) form: bool,
    pub(crate) url: bool,
}

impl Elicitation {
    /// Reads a client's capabilities. An `elicitation` capability without modes means forms.
    pub(crate) fn of(capabilities: &RawValue) -> Elicitation {
        let declared = members::<&RawValue>(capabilities);
        let Some(modes) = declared.and_then(|all| members::<IgnoredAny>(all.get("elicitation")?)) else {
            return Elicitation::default();
        };
        let (form, url) = (modes.contains_key("form"), modes.contains_key("url"));
        Elicitation { form: form || !url, url }
    }

    /// Returns the modes that a revision has: before 2025-11-25 there were only forms.
    pub(crate) fn in_revision(self, revision: Revision) -> Elicitation {
        if revision.has_elicitation_modes() { self } else { Elicitation { form: self.form || self.url, url: false } }
    }

    pub(crate) fn can_ask(self, form: &Form<'_>) -> bool {
        if form.url.is_some() { self.url } else { self.form }
    }
}

pub(crate) trait Ask: std::fmt::Debug + Sync {
    /// Sends `elicitation/create` with these parameters and waits for the result; `None` without one.
    fn ask(&self, params: Value) -> BoxFuture<'_, Option<Box<RawValue>>>;
}

pub(crate) enum Outcome {
    Ready(Answers),
    /// The result to send: a question.
    InputRequired(Vec<u8>),
}

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
    pub(crate) fn take(&self, prompt: &OpenPrompt, arguments: &RawArguments<'_>) -> Result<Outcome, WireError> {
        let (digest, canonical) = (digest(prompt.prompt()), canonical(arguments));
        let bound = Bound {
            caller: self.caller.key(),
            prompt: prompt.prompt().name().as_str(),
            digest: &digest,
            arguments: &canonical,
        };
        let mut progress = self.progress(&bound)?;
        let responses = self.responses()?;
        let mut answers = Answers { values: progress.answers, passed: progress.passed };
        loop {
            let Some(form) = prompt.prompt().next_form(arguments, &answers) else { return Ok(Outcome::Ready(answers)) };
            let mut again = None;
            if let Some(raw) = responses.get(&form.key) {
                let result = form::result(raw)
                    .ok_or_else(|| WireError::invalid_params(format!("Malformed answer to `{}`", form.key)))?;
                prompt.note_form(result.reaction());
                let value_bytes = prompt.view().catalog().policy().value_bytes;
                match apply_answer(&form, result, value_bytes, &mut answers)? {
                    None => continue,
                    Some(problem) => again = Some(problem),
                }
            }
            if !self.elicitation.can_ask(&form) {
                if form.indispensable {
                    let missing = prompt.prompt().missing_answers(arguments, &answers);
                    return Err(WireError::missing_elicitation(form.url.is_some(), &missing));
                }
                answers.passed.insert(form.step);
                continue;
            }
            progress.rounds += 1;
            if progress.rounds > MAX_ROUNDS {
                return Err(too_many_rounds());
            }
            let progress = Progress {
                answers: answers.values.clone(),
                passed: answers.passed.clone(),
                rounds: progress.rounds,
                remote: None,
            };
            let params = form::elicitation_params(&form, again.as_deref(), self.revision);
            let state = self.key.seal(&bound, &progress);
            return Ok(Outcome::InputRequired(question(prompt.view(), [(form.key, params)], state)));
        }
    }

    fn progress(&self, bound: &Bound<'_>) -> Result<Progress, WireError> {
        let Some(raw) = self.state else { return Ok(Progress::default()) };
        let opened = text(raw).map_or(Err(Refusal::Invalid), |state| self.key.open(bound, &state));
        opened.map_err(|refusal| {
            WireError::invalid_params(match refusal {
                // One message for all causes, so that it gives no hint about the signature.
                Refusal::Invalid => "Invalid `requestState`; start again without it",
                Refusal::OtherVersion => {
                    "The prompt has changed since it was begun; begin again without `requestState`"
                }
            })
        })
    }

    fn responses(&self) -> Result<BTreeMap<String, &'a RawValue>, WireError> {
        let Some(raw) = self.responses else { return Ok(BTreeMap::new()) };
        members(raw).ok_or_else(|| WireError::invalid_params("`inputResponses` must be an object"))
    }
}

/// Writes a result that asks for input: the parameters of each `elicitation/create` by its key.
fn question(view: &View, requests: impl IntoIterator<Item = (String, Value)>, state: String) -> Vec<u8> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Result<'a> {
        result_type: &'static str,
        input_requests: Value,
        request_state: String,
        #[serde(rename = "_meta")]
        meta: ResultMeta<'a>,
    }
    let request = |(key, params)| (key, json!({ "method": "elicitation/create", "params": params }));
    let mut out = Vec::new();
    let result = Result {
        result_type: "input_required",
        input_requests: Value::Object(requests.into_iter().map(request).collect()),
        request_state: state,
        meta: ResultMeta::of(view),
    };
    json::write(&mut out, &result);
    out
}

pub(crate) async fn elicit_all(
    ask: &dyn Ask,
    elicitation: Elicitation,
    revision: Revision,
    open: &OpenPrompt,
    arguments: &RawArguments<'_>,
) -> Result<Answers, WireError> {
    let (mut answers, mut again) = (Answers::default(), None);
    for _ in 0..MAX_ROUNDS {
        let Some(form) = open.prompt().next_form(arguments, &answers) else { return Ok(answers) };
        if !elicitation.can_ask(&form) {
            if form.url.is_some() && form.indispensable {
                return Err(WireError::no_pages());
            }
            // A missing answer is reported later, like any missing argument.
            answers.passed.insert(form.step);
            continue;
        }
        let result = ask.ask(form::elicitation_params(&form, again.take().as_deref(), revision)).await;
        let result = match result {
            Some(result) => form::result(&result)
                .ok_or_else(|| WireError::invalid_params(format!("Malformed answer to `{}`", form.key)))?,
            None => ElicitResult::Cancel,
        };
        open.note_form(result.reaction());
        again = apply_answer(&form, result, open.view().catalog().policy().value_bytes, &mut answers)?;
    }
    Err(too_many_rounds())
}

/// Refuses a prompt with a page that cannot be skipped, for a client that can be asked nothing.
pub(crate) fn refuse_pages(open: &OpenPrompt, arguments: &RawArguments<'_>) -> Result<(), WireError> {
    let mut answers = Answers::default();
    while let Some(form) = open.prompt().next_form(arguments, &answers) {
        if form.url.is_some() && form.indispensable {
            return Err(WireError::no_pages());
        }
        answers.passed.insert(form.step);
    }
    Ok(())
}

fn too_many_rounds() -> WireError {
    WireError::for_model("This prompt asked too many questions; start again")
}

/// Adds the answer to a form. Returns the reason if the form has to be shown again.
pub(crate) fn apply_answer(
    form: &Form<'_>,
    result: ElicitResult,
    value_bytes: usize,
    answers: &mut Answers,
) -> Result<Option<String>, WireError> {
    match (result, form.decline) {
        (ElicitResult::Accept(filled_in), _) => match form.check(&filled_in, value_bytes) {
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
        (ElicitResult::Decline | ElicitResult::Cancel, Decline::Continue) => {
            answers.passed.insert(form.step);
            Ok(None)
        }
        (ElicitResult::Decline, Decline::Stop) => Err(WireError::unanswered("declined", &form.alternatives())),
        (ElicitResult::Cancel, Decline::Stop) => Err(WireError::unanswered("cancelled", &form.alternatives())),
    }
}

/// Returns the arguments as bytes that are equal for equal arguments.
fn canonical(arguments: &RawArguments<'_>) -> Vec<u8> {
    // Of values with the same name the last one counts, as in `RawArguments::get`.
    let members: BTreeMap<&str, Value> = arguments
        .iter()
        .map(|(name, value)| {
            let value = match value {
                RawArgumentValue::Text(text) => json!(text),
                other @ RawArgumentValue::Other(_) => json!({ "kind": other.kind() }),
            };
            (name, value)
        })
        .collect();
    serde_json::to_vec(&members).unwrap_or_default()
}

/// Returns a digest of a prompt's file, arguments and steps. After an edit, steps that are done in a state may be
/// other ones.
fn digest(prompt: &Prompt) -> [u8; 32] {
    let mut digest = Sha256::new();
    digest.update(prompt.source().text.as_bytes());
    // Prompts in code have no file, and arguments can be defined in the library's settings. Suggestions are not part of
    // the forms.
    for argument in prompt.arguments() {
        let definition = ArgumentDefinition { completion: None, ..argument.definition().clone() };
        digest.update(format!("{definition:?}"));
    }
    digest.update(format!("{:?}", prompt.steps()));
    digest.finalize().into()
}

const MAX_RESPONSES: usize = 20;

impl Round<'_> {
    /// Returns the input for a prompt of another server, and the number of questions so far. Results without a valid
    /// state belong to no question, and are left out.
    pub(crate) fn remote_input(
        &self,
        prompt: &OpenPrompt,
        arguments: &RawArguments<'_>,
    ) -> Result<(RemoteInput, u32), WireError> {
        let progress = self.with_bound(prompt, arguments, |bound| self.progress(bound))?;
        let mut input = RemoteInput::default();
        (input.forms, input.pages) = (self.elicitation.form, self.elicitation.url);
        input.state = progress.remote;
        if input.state.is_some() {
            let responses = self.responses()?;
            if responses.len() > MAX_RESPONSES {
                return Err(WireError::invalid_params(format!(
                    "`inputResponses` has more than {MAX_RESPONSES} members"
                )));
            }
            for (key, raw) in responses {
                let malformed = || WireError::invalid_params(format!("Malformed answer to `{key}`"));
                let reaction = form::result(raw).ok_or_else(malformed)?.reaction();
                let result: Value = serde_json::from_str(raw.get()).map_err(|_| malformed())?;
                prompt.note_form(reaction);
                input.responses.insert(key, known_members(result));
            }
        }
        Ok((input, progress.rounds))
    }

    pub(crate) fn remote_question(
        &self,
        prompt: &OpenPrompt,
        arguments: &RawArguments<'_>,
        asked: RemoteQuestion,
        rounds: u32,
    ) -> Result<Vec<u8>, WireError> {
        if rounds >= MAX_ROUNDS {
            return Err(too_many_rounds());
        }
        let progress = Progress { rounds: rounds + 1, remote: Some(asked.state), ..Progress::default() };
        let state = self.with_bound(prompt, arguments, |bound| self.key.seal(bound, &progress));
        let requests = asked.forms.iter().map(|form| (form.key.clone(), params(form, self.revision)));
        Ok(question(prompt.view(), requests, state))
    }

    fn with_bound<T>(&self, prompt: &OpenPrompt, arguments: &RawArguments<'_>, act: impl FnOnce(&Bound<'_>) -> T) -> T {
        let (digest, canonical) = (digest(prompt.prompt()), canonical(arguments));
        let name = prompt.prompt().name().as_str();
        act(&Bound { caller: self.caller.key(), prompt: name, digest: &digest, arguments: &canonical })
    }
}

/// Asks the user the questions of another server, one after the other. `rounds` is the number of questions so far.
pub(crate) async fn elicit_remote(
    ask: &dyn Ask,
    elicitation: Elicitation,
    revision: Revision,
    open: &OpenPrompt,
    asked: RemoteQuestion,
    rounds: u32,
) -> Result<RemoteInput, WireError> {
    if rounds >= MAX_ROUNDS {
        return Err(too_many_rounds());
    }
    let mut input = RemoteInput::default();
    (input.forms, input.pages) = (elicitation.form, elicitation.url);
    for form in &asked.forms {
        let Some(raw) = ask.ask(params(form, revision)).await else {
            open.note_form(FormReaction::Cancelled);
            return Err(WireError::unanswered("cancelled", &[]));
        };
        let malformed = || WireError::invalid_params(format!("Malformed answer to `{}`", form.key));
        open.note_form(form::result(&raw).ok_or_else(malformed)?.reaction());
        let mut result = known_members(serde_json::from_str(raw.get()).map_err(|_| malformed())?);
        if !revision.has_elicitation_modes() {
            split_lists(form, &mut result);
        }
        input.responses.insert(form.key.clone(), result);
    }
    input.state = Some(asked.state);
    Ok(input)
}

/// Returns the parameters of `elicitation/create` for a form of another server.
fn params(form: &RemoteForm, revision: Revision) -> Value {
    let fields = form.arguments();
    let mut params = elicitation_params(&form.form(&fields), None, revision);
    if form.url.is_none() {
        // The other server can require a field that has a default.
        let required = form.fields.iter().filter(|field| field.required).map(|field| Value::from(&*field.name));
        let required: Vec<Value> = required.collect();
        if !required.is_empty() {
            params["requestedSchema"]["required"] = json!(required);
        }
    }
    params
}

fn known_members(mut result: Value) -> Value {
    let mut members = Map::new();
    for name in ["action", "content"] {
        if let Some(value) = result.get_mut(name).map(Value::take).filter(|value| !value.is_null()) {
            members.insert(name.to_owned(), value);
        }
    }
    Value::Object(members)
}

/// Splits the texts of fields that older clients show as one text, although the other server expects several values.
fn split_lists(form: &RemoteForm, result: &mut Value) {
    for field in form.arguments().iter().filter(|field| field.kind() == ArgumentType::List) {
        let Some(value) = result.get_mut("content").and_then(|content| content.get_mut(field.name())) else { continue };
        if let Some(Typed::List(items)) = value.as_str().and_then(|text| field.parsed(text)) {
            *value = json!(items);
        }
    }
}

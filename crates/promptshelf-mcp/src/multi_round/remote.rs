//! Questions of other servers: their state inside of the signed one, and the user's results for them.

use promptshelf_core::{ArgumentType, RawArguments, RemoteForm, RemoteInput, RemoteQuestion, Value as Typed};
use promptshelf_service::{FormReaction, OpenPrompt};
use serde_json::{Map, Value, json};

use super::{
    Ask, Elicitation, MAX_ROUNDS, Round, canonical, digest,
    form::{self, elicitation_params},
    question,
    state::{Bound, Progress},
    too_many_rounds,
};
use crate::{error_code::WireError, revision::Revision};

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

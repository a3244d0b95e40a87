//! `prompts/get` of prompts that ask the user of the caller for input.
//!
//! Servers of revision 2026-07-28 answer with a question and a state, which go into the state of this server. Older
//! servers ask in the middle of a request; `replay` repeats it. Both need no open request while a user fills in a form.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use promptshelf_client::{Arguments, Client, ClientError, Elicitation, ElicitationMode, PromptResult, PromptRound};
use promptshelf_core::{BoxFuture, RemoteInput, RemoteQuestion};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::time::timeout;

use crate::{
    connection::Connection,
    convert::Refused,
    form::remote_form,
    questions::Reply,
    replay::{Answered, Interruption},
};

/// The key of a question of an older server, which has none.
const KEY: &str = "question";

/// The longest state of another server, in bytes.
const MAX_STATE_BYTES: usize = 64 << 10;

/// The most answers in a row that ask for no input, only for a further request.
const MAX_EMPTY_ROUNDS: usize = 10;

/// The time in which an older server has to end a request whose question was cancelled.
const CANCEL_TIME: Duration = Duration::from_secs(1);

/// The progress of a prompt that asks, inside of the state of this server.
#[derive(Serialize, Deserialize)]
enum Progress {
    /// The state of the other server.
    Rounds(Option<String>),
    /// The answers so far, and the fingerprint of the question without an answer.
    Replay(Vec<Answered>, String),
}

impl Connection {
    /// Sends `prompts/get` with the results of an earlier question.
    pub(crate) async fn answer(
        &self,
        client: &Client,
        prompt: &str,
        arguments: &Arguments,
        input: &RemoteInput,
    ) -> Result<Reply, ClientError> {
        let progress = match input.state.as_deref().map(serde_json::from_str::<Progress>) {
            None => None,
            Some(Ok(progress)) => Some(progress),
            Some(Err(_)) => return Ok(Reply::Outdated),
        };
        match (client.is_legacy(), progress) {
            (false, None) => self.rounds(client, prompt, arguments, input, None, Map::new()).await,
            (false, Some(Progress::Rounds(state))) => {
                self.rounds(client, prompt, arguments, input, state, input.responses.clone()).await
            }
            (true, None) => {
                let declined = self.declined();
                let result = get(client, prompt, arguments).await;
                match self.declined() == declined {
                    true => result.map(Reply::Complete),
                    // Some prompt has asked meanwhile. Only alone on a connection a question belongs to its prompt.
                    false => self.replayed(prompt, arguments, input, Vec::new()).await,
                }
            }
            (true, Some(Progress::Replay(mut answered, question))) => {
                // Without a result the question is asked again.
                if let Some(response) = input.responses.get(KEY) {
                    answered.push(Answered { question, response: response.clone() });
                }
                self.replayed(prompt, arguments, input, answered).await
            }
            _ => Ok(Reply::Outdated),
        }
    }

    /// Sends the request to a server of revision 2026-07-28 or later.
    async fn rounds(
        &self,
        client: &Client,
        prompt: &str,
        arguments: &Arguments,
        input: &RemoteInput,
        mut state: Option<String>,
        mut responses: Map<String, Value>,
    ) -> Result<Reply, ClientError> {
        for _ in 0..MAX_EMPTY_ROUNDS {
            let round = get_round(client, prompt, arguments, state.as_deref(), &responses);
            match round.await? {
                PromptRound::Complete(result) => return Ok(Reply::Complete(result)),
                PromptRound::InputRequired { requests, state: next } if requests.is_empty() => {
                    (state, responses) = (next, Map::new());
                }
                PromptRound::InputRequired { requests, state } => {
                    return Ok(self.question(&requests, &Progress::Rounds(state), input));
                }
                _ => break,
            }
        }
        Err(ClientError::LimitExceeded("the server asks again and again, and for nothing".to_owned()))
    }

    async fn replayed(
        &self,
        prompt: &str,
        arguments: &Arguments,
        input: &RemoteInput,
        answered: Vec<Answered>,
    ) -> Result<Reply, ClientError> {
        let questions = self.questions();
        let mut place = questions.client.lock().await;
        // The connection goes back to its place only after a request that has ended.
        let client = match place.take().filter(|(client, _)| !client.is_closed()) {
            Some((client, _)) => client,
            None => {
                let unreachable = |reason| ClientError::Unreachable { reason, source: None };
                self.connect(Arc::clone(&questions.replay)).await.map_err(unreachable)?
            }
        };
        let (playing, interrupted) = questions.replay.begin(&answered);
        let mut request = get(&client, prompt, arguments);
        let outcome = tokio::select! {
            biased;
            Ok(interruption) = interrupted => Err(interruption),
            result = &mut request => Ok(result),
        };
        let has_ended = outcome.is_ok() || timeout(CANCEL_TIME, &mut request).await.is_ok();
        drop((request, playing));
        if has_ended {
            *place = Some((client, Instant::now()));
        }
        match outcome {
            Ok(result) => result.map(Reply::Complete),
            Err(Interruption::Differs) => Ok(Reply::Outdated),
            Err(Interruption::Asked(elicitation, question)) => {
                let requests = [(KEY.to_owned(), *elicitation)];
                Ok(self.question(&requests, &Progress::Replay(answered, question), input))
            }
        }
    }

    fn question(&self, requests: &[(String, Elicitation)], progress: &Progress, input: &RemoteInput) -> Reply {
        for (_, elicitation) in requests {
            match &elicitation.mode {
                ElicitationMode::Form(_) if !input.forms => return Reply::Unaskable("forms"),
                ElicitationMode::Url { .. } if !input.pages => return Reply::Unaskable("web pages"),
                _ => {}
            }
        }
        let form = |(key, elicitation): &(String, Elicitation)| remote_form(self.name(), key.clone(), elicitation);
        let forms = requests.iter().map(form).collect::<Result<Vec<_>, _>>();
        let state = serde_json::to_string(progress).unwrap_or_default();
        Reply::Asked(if state.len() <= MAX_STATE_BYTES {
            forms.map(|forms| RemoteQuestion { forms, state })
        } else {
            Err(Refused(format!("a question whose state is larger than {MAX_STATE_BYTES} bytes")))
        })
    }
}

/// Sends one request, as a future whose type names no lifetime inside.
fn get<'a>(
    client: &'a Client,
    prompt: &'a str,
    arguments: &'a Arguments,
) -> BoxFuture<'a, Result<PromptResult, ClientError>> {
    Box::pin(client.get(prompt, arguments))
}

/// Sends one request, as a future whose type names no lifetime inside.
fn get_round<'a>(
    client: &'a Client,
    prompt: &'a str,
    arguments: &'a Arguments,
    state: Option<&'a str>,
    responses: &'a Map<String, Value>,
) -> BoxFuture<'a, Result<PromptRound, ClientError>> {
    Box::pin(client.get_round(prompt, arguments, state, responses))
}

//! `prompts/get` of prompts that other servers have: their questions are passed on to the caller.

use promptshelf_core::{RawArguments, RemoteInput};
use promptshelf_service::{OpenPrompt, RemoteOutcome};

use crate::{
    Server,
    dispatch::{Asking, Context, Rendered},
    error_code::WireError,
    multi_round::elicit_remote,
    request::Params,
    to_wire,
};

impl Server {
    pub(crate) async fn render_remote(
        &self,
        context: Context<'_>,
        mut open: OpenPrompt,
        arguments: &RawArguments<'_>,
        params: &Params<'_>,
    ) -> Result<Rendered, WireError> {
        let rejected = |rejection| WireError::rejected(&rejection, context.revision);
        let round = match context.asking {
            Asking::Rounds(capabilities) => Some(self.round(context, capabilities, params)),
            Asking::Never | Asking::Requests(..) => None,
        };
        let (mut input, mut rounds) = match (&round, context.asking) {
            (Some(round), _) => round.remote_input(&open, arguments)?,
            (None, Asking::Requests(_, elicitation)) => {
                let mut input = RemoteInput::default();
                (input.forms, input.pages) = (elicitation.form, elicitation.url);
                (input, 0)
            }
            (None, _) => (RemoteInput::default(), 0),
        };
        loop {
            let outcome = self.service().render_remote(open, arguments, input).await.map_err(rejected)?;
            let question = match outcome {
                RemoteOutcome::Rendered(mut answer) => {
                    if !context.revision.has_links() {
                        answer.resolve_links(to_wire::MAX_EMBEDDED_BYTES).await;
                    }
                    return Ok(Rendered::Prompt(answer));
                }
                RemoteOutcome::InputRequired(again, question) => {
                    open = *again;
                    question
                }
                other => {
                    tracing::error!(?other, "unknown outcome of a prompt of another server");
                    return Err(rejected(promptshelf_service::Rejection::Internal));
                }
            };
            match (&round, context.asking) {
                (Some(round), _) => {
                    return round.remote_question(&open, arguments, question, rounds).map(Rendered::Question);
                }
                (None, Asking::Requests(ask, elicitation)) => {
                    input = elicit_remote(ask, elicitation, context.revision, &open, question, rounds).await?;
                    rounds += 1;
                }
                (None, _) => return Err(WireError::missing_elicitation(false, &[])),
            }
        }
    }
}

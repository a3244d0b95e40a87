//! Prompts of other servers, which can ask the user of the caller for input.

use std::time::Instant;

use promptshelf_core::{ContentBlock, Message, Prompt, RawArguments, RemoteInput, RemoteQuestion};
use tracing::Instrument as _;

use super::{OpenPrompt, Service};
use crate::{
    answer::{Answer, RenderedPrompt},
    audit::Secrets,
    operations,
    rejection::Rejection,
    view::View,
};

/// The outcome of rendering a prompt of another server.
#[derive(Debug)]
#[non_exhaustive]
pub enum RemoteOutcome {
    /// The messages.
    Rendered(Answer<RenderedPrompt>),
    /// A question to the user, and the prompt to render it with the results.
    InputRequired(Box<OpenPrompt>, RemoteQuestion),
}

/// Refuses messages with a URI of this server: a client would take them for content of its libraries.
fn claims_own_uri(view: &View, prompt: &Prompt, messages: &[Message]) -> Option<Rejection> {
    let is_own = |message: &Message| match &message.content {
        ContentBlock::Resource(resource) => view.catalog().content(&resource.contents.uri).is_some(),
        ContentBlock::Link(link) => view.catalog().content(&link.uri).is_some(),
        _ => false,
    };
    messages.iter().any(is_own).then(|| Rejection::Unavailable {
        prompt: prompt.name().to_string(),
        reason: "its server sent a URI that belongs to this server, which is not passed on".to_owned(),
    })
}

impl Service {
    /// Renders an opened prompt of another server ([`Prompt::remote`](promptshelf_core::Prompt::remote)). `input` has
    /// the ways in which the caller can be asked, and the user's results.
    ///
    /// # Errors
    ///
    /// A [`Rejection`] that the caller can act on.
    pub async fn render_remote(
        &self,
        open: OpenPrompt,
        arguments: &RawArguments<'_>,
        input: RemoteInput,
    ) -> Result<RemoteOutcome, Rejection> {
        let OpenPrompt { view, prompt, alias, mut call } = open;
        call.set_outcome("cancelled");
        call.note_arguments(&prompt, arguments);
        let secrets = Secrets::of(&prompt, arguments);
        let started = self.observer().map(|_| Instant::now());
        let of_source = view.of_source(&prompt);
        let (own_view, own) = of_source.as_ref().map_or((&view, &prompt), |(view, own)| (view, own));
        let rendering = operations::render_remote(own_view, own, prompt.name(), arguments, input, &secrets);
        let rendered = rendering.instrument(operations::span(&view, &prompt, own_view, own)).await;
        if let (Some(observer), Some(started)) = (self.observer(), started) {
            observer.rendered(rendered.as_ref().err().map_or("ok", Rejection::code), started.elapsed());
        }
        let rendered = rendered.and_then(|rendered| match &rendered {
            Ok(messages) => claims_own_uri(&view, &prompt, messages).map_or(Ok(rendered), Err),
            Err(_) => Ok(rendered),
        });
        let messages = match rendered.map_err(|rejection| secrets.hide_in(rejection)) {
            Ok(Err(question)) => {
                call.set_outcome("asked");
                return Ok(RemoteOutcome::InputRequired(Box::new(OpenPrompt { view, prompt, alias, call }), question));
            }
            Ok(Ok(messages)) => Ok(messages),
            Err(rejection) => Err(rejection),
        };
        let messages =
            call.end_with(messages, |messages| messages.iter().map(|message| message.content.size()).sum())?;
        Ok(RemoteOutcome::Rendered(Answer::new(view, RenderedPrompt { prompt, alias, messages })))
    }
}

//! Webhooks of servers: their queues, and the events that were given up.

use promptshelf_store::{DeadLetter, StoreError};
use promptshelf_wire::op;

use super::{
    ApiState,
    call::{Answer, Call, Context, Operations},
    request::{MAX_LIMIT, Newest},
};

/// Adds the operations of this module.
pub(super) fn operations(all: Operations<ApiState>) -> Operations<ApiState> {
    all.on(list_webhooks).on(list_dead_letters).on(redeliver)
}

async fn list_webhooks(call: Call<op::ListWebhooks>) -> Answer {
    let webhooks = call.store().await?.webhooks().await?;
    call.answer(&call.paging.of_short(webhooks)?)
}

async fn list_dead_letters(call: Call<op::ListDeadLetters>) -> Answer {
    let mut dead_letters = call.store().await?.dead_letters().await?;
    dead_letters.retain(|letter| sees(&call, letter));
    call.answer(&call.paging.of_sorted(dead_letters, MAX_LIMIT, |letter| Newest(letter.id))?)
}

async fn redeliver(call: Call<op::Redeliver>) -> Answer {
    let id = call.path.id;
    call.note_number("delivery", id);
    let store = call.store().await?;
    let missing = || StoreError::NotFound { what: format!("the dead letter {id}") };
    let letter = store.dead_letter(id).await?.filter(|letter| sees(&call, letter)).ok_or_else(missing)?;
    store.redeliver(id).await?;
    call.answer(&letter)
}

fn sees(call: &Context, letter: &DeadLetter) -> bool {
    letter.channel.parse().is_ok_and(|channel| call.sees(&channel))
}

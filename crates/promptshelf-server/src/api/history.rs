//! Revisions of channels.

use promptshelf_store::HistoryQuery;
use promptshelf_wire::{Revisions, RevisionsQuery, ServedPrompts, op};

use super::{
    call::{Answer, Call},
    channels::existing,
    request::{page_of, page_size},
};

pub(super) async fn list_revisions(call: Call<op::ListRevisions>) -> Answer {
    let channel = &call.path.channel;
    let limit = page_size(call.query.limit)?;
    existing(&call, channel).await?;
    let RevisionsQuery { prompt, at, before, .. } = call.query.clone();
    let query = HistoryQuery { prompt, at, before, limit: limit + 1 };
    let (revisions, next) = page_of(call.store().await?.history(channel, &query).await?, limit, |last| last.number);
    call.answer(&Revisions { revisions, next })
}

pub(super) async fn get_revision(call: Call<op::GetRevision>) -> Answer {
    let channel = &call.path.channel;
    let number = call.path.number;
    call.note_number("revision", number);
    call.answer(&call.store().await?.revision(channel, number).await?)
}

pub(super) async fn get_served(call: Call<op::GetServed>) -> Answer {
    let channel = &call.path.channel;
    let number = call.path.number;
    call.note_number("revision", number);
    // A revision that does not exist serves nothing, and is an error all the same.
    call.store().await?.revision(channel, number).await?;
    call.answer(&ServedPrompts { prompts: call.store().await?.served(channel, number).await? })
}

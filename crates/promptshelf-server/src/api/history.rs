//! Revisions of channels.

use promptshelf_store::HistoryQuery;
use promptshelf_wire::{RevisionsQuery, op};

use super::{
    call::{Answer, Call},
    channels::existing,
    request::MAX_ALL,
};

pub(super) async fn list_revisions(call: Call<op::ListRevisions>) -> Answer {
    let channel = &call.path.channel;
    let (limit, before) = (call.paging.limit(), call.paging.after()?);
    existing(&call, channel).await?;
    let RevisionsQuery { prompt, at } = call.query.clone();
    let query = HistoryQuery { prompt, at, before, limit: limit + 1 };
    let revisions = call.store().await?.history(channel, &query).await?;
    call.answer(&call.paging.of_rows(revisions, limit, |last| last.number))
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
    let served = call.store().await?.served(channel, number).await?;
    call.answer(&call.paging.of_sorted(served, MAX_ALL, |prompt| prompt.name.clone())?)
}

//! Revisions of channels.

use promptshelf_store::HistoryQuery;
use promptshelf_wire::op;

use super::{
    ApiState,
    call::{Answer, Call, Operations},
    channels::existing,
    request::MAX_ALL,
};

/// Adds the operations of this module.
pub(super) fn operations(all: Operations<ApiState>) -> Operations<ApiState> {
    all.on(list_revisions).on(get_revision).on(get_served)
}

async fn list_revisions(call: Call<op::ListRevisions>) -> Answer {
    let channel = &call.path.channel;
    let (limit, before) = (call.paging.limit(), call.paging.after()?);
    existing(&call, channel).await?;
    let op::RevisionsQuery { prompt, at } = call.query.clone();
    let query = HistoryQuery { prompt, at, before, limit: limit + 1 };
    let revisions = call.store().await?.history(channel, &query).await?;
    call.answer(&call.paging.of_rows(revisions, limit, |last| last.number))
}

async fn get_revision(call: Call<op::GetRevision>) -> Answer {
    let channel = &call.path.channel;
    let number = call.path.number;
    call.note_number("revision", number);
    call.answer(&call.store().await?.revision(channel, number).await?)
}

async fn get_served(call: Call<op::GetServed>) -> Answer {
    let channel = &call.path.channel;
    let number = call.path.number;
    call.note_number("revision", number);
    // A revision that does not exist serves nothing, and is an error all the same.
    call.store().await?.revision(channel, number).await?;
    let served = call.store().await?.served(channel, number).await?;
    call.answer(&call.paging.of_sorted(served, MAX_ALL, |prompt| prompt.name.clone())?)
}

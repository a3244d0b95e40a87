//! Lists, page after page, with an end even where a server knows none.

use std::collections::HashSet;

use futures_core::Stream;
use futures_util::stream;
use rmcp::model::PaginatedRequestParams;

use super::{Client, ClientError, OfferedPrompt, OfferedResource, error::complete};

/// The most pages that one list can have.
const MOST_PAGES: usize = 1000;
/// The most entries that one list can have.
const MOST_ENTRIES: usize = 100_000;
/// The longest cursor that is sent back, in bytes.
const LONGEST_CURSOR: usize = 64 << 10;

/// A page, whatever it lists.
type Page<T> = (Vec<T>, Option<String>);

impl Client {
    /// The server's prompts, page by page as they are asked for.
    ///
    /// Each item is an error when the server does not answer; a list whose
    /// cursors repeat or never end is cut with [`ClientError::Unreasonable`].
    pub fn prompts(&self) -> impl Stream<Item = Result<OfferedPrompt, ClientError>> + Send + '_ {
        pages(
            move |cursor| async move {
                let ask = || async {
                    complete(self.peer().list_prompts(cursor.clone()).await?, |page| page.result_type.as_ref())
                };
                let page = self.within(ask).await?;
                Ok((page.prompts, page.next_cursor))
            },
            OfferedPrompt::from_wire,
        )
    }

    /// The server's resources, page by page as they are asked for.
    pub fn resources(&self) -> impl Stream<Item = Result<OfferedResource, ClientError>> + Send + '_ {
        pages(
            move |cursor| async move {
                let ask = || async {
                    complete(self.peer().list_resources(cursor.clone()).await?, |page| page.result_type.as_ref())
                };
                let page = self.within(ask).await?;
                Ok((page.resources, page.next_cursor))
            },
            OfferedResource::from_resource,
        )
    }

    /// The server's resource templates, page by page as they are asked for.
    pub fn resource_templates(&self) -> impl Stream<Item = Result<OfferedResource, ClientError>> + Send + '_ {
        pages(
            move |cursor| async move {
                let ask = || async {
                    complete(self.peer().list_resource_templates(cursor.clone()).await?, |page| {
                        page.result_type.as_ref()
                    })
                };
                let page = self.within(ask).await?;
                Ok((page.resource_templates, page.next_cursor))
            },
            OfferedResource::from_template,
        )
    }

    /// All prompts at once, in the server's order. None where the server has
    /// no such method, or does not offer prompts and answers with something
    /// else, as some do that only offer tools.
    ///
    /// # Errors
    ///
    /// The first one of [`prompts`](Client::prompts).
    pub async fn all_prompts(&self) -> Result<Vec<OfferedPrompt>, ClientError> {
        use futures_util::TryStreamExt;

        match self.prompts().try_collect().await {
            Err(error) if error.is_unknown_method() => Ok(Vec::new()),
            Err(ClientError::Unexpected(_)) if !self.has_prompts() => Ok(Vec::new()),
            other => other,
        }
    }
}

/// Where a walk through a list stands.
struct Walk<W> {
    /// What the last page held and has not been handed out yet.
    page: std::vec::IntoIter<W>,
    /// The cursor to ask with next; `None` after the last page.
    next: Option<Option<String>>,
    seen: HashSet<String>,
    pages: usize,
    entries: usize,
}

fn pages<'a, W, T, F, A>(
    ask: F,
    read: fn(W) -> Result<T, ClientError>,
) -> impl Stream<Item = Result<T, ClientError>> + Send + 'a
where
    W: Send + 'a,
    T: Send + 'a,
    F: Fn(Option<PaginatedRequestParams>) -> A + Send + 'a,
    A: Future<Output = Result<Page<W>, ClientError>> + Send + 'a,
{
    let start = Walk { page: Vec::new().into_iter(), next: Some(None), seen: HashSet::new(), pages: 0, entries: 0 };
    stream::try_unfold((start, ask), move |(mut walk, ask)| async move {
        loop {
            if let Some(entry) = walk.page.next() {
                return Ok(Some((read(entry)?, (walk, ask))));
            }
            let Some(cursor) = walk.next.take() else { return Ok(None) };
            let asked = cursor.map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)));
            let (entries, next) = ask(asked).await?;
            walk.turn(entries, next)?;
        }
    })
}

impl<W> Walk<W> {
    /// Takes the next page, if it can be one.
    fn turn(&mut self, entries: Vec<W>, next: Option<String>) -> Result<(), ClientError> {
        self.pages += 1;
        self.entries += entries.len();
        if self.entries > MOST_ENTRIES {
            return Err(ClientError::Unreasonable(format!("the server's list has more than {MOST_ENTRIES} entries")));
        }
        self.page = entries.into_iter();
        let Some(cursor) = next else { return Ok(()) };
        if cursor.len() > LONGEST_CURSOR {
            let length = cursor.len();
            return Err(ClientError::Unreasonable(format!("the server's list has a cursor of {length} bytes")));
        }
        if !self.seen.insert(cursor.clone()) {
            let pages = self.pages;
            return Err(ClientError::Unreasonable(format!(
                "the server's list goes in a circle: page {pages} points back to a page before it"
            )));
        }
        if self.pages >= MOST_PAGES {
            return Err(ClientError::Unreasonable(format!("the server's list does not end after {MOST_PAGES} pages")));
        }
        self.next = Some(Some(cursor));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use futures_util::TryStreamExt;

    use super::*;

    #[tokio::test]
    async fn a_list_without_an_end_is_cut() {
        let asked = std::sync::atomic::AtomicUsize::new(0);
        let ask = |_| {
            let page = asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            std::future::ready(Ok((vec![page], Some(format!("page-{page}")))))
        };
        let all: Result<Vec<usize>, ClientError> = pages(ask, Ok).try_collect().await;
        assert!(all.is_err_and(|error| error.to_string().contains("does not end after 1000 pages")));
        assert_eq!(asked.into_inner(), MOST_PAGES);
    }
}

//! Lists of prompts and resources, page by page, with limits for servers that send lists without end.

use std::{
    collections::HashSet,
    sync::atomic::{AtomicUsize, Ordering},
};

use futures_core::Stream;
use futures_util::stream;
use rmcp::{
    ServiceError,
    model::{
        self as wire, ClientRequest, CustomResult, ListPromptsRequest, ListPromptsResult, PaginatedRequestParams,
        ServerResult,
    },
};
use serde_json::Value;

use crate::{
    client::Client,
    error::ClientError,
    model::{PromptInfo, ResourceInfo},
    sdk_error::complete,
};

pub(crate) const DEFAULT_MAX_ENTRIES: usize = 100_000;
/// The most pages of a list, as a share of its most entries: pages with fewer entries on average are too small.
const MIN_ENTRIES_PER_PAGE: usize = 100;
const MAX_SHOWN_NAME: usize = 60;
/// The longest cursor, in bytes.
const MAX_CURSOR_BYTES: usize = 64 << 10;

type Page<T> = (Vec<T>, Option<String>);

impl Client {
    /// Lists the server's prompts. Pages are requested as the stream is read; none of a server of a revision before
    /// 2026-07-28 without the prompts capability.
    ///
    /// The stream ends after its first error: [`ClientError::LimitExceeded`] for a list whose cursors repeat or that
    /// exceeds [`ConnectOptions::max_list_entries`](crate::ConnectOptions::max_list_entries), and those of
    /// [`get`](Client::get).
    pub fn prompts(&self) -> impl Stream<Item = Result<PromptInfo, ClientError>> + Send + '_ {
        pages(
            self.max_list_entries(),
            move |cursor| async move {
                let request = || async {
                    complete(self.peer().list_prompts(cursor.clone()).await?, |page| page.result_type.as_ref())
                };
                if !self.may_list_prompts() {
                    return Ok((Vec::new(), None));
                }
                let page = self.request(request).await?;
                Ok((page.prompts, page.next_cursor))
            },
            PromptInfo::from_wire,
        )
    }

    /// A client uses only what was negotiated (specification 2025-11-25, *Lifecycle, Operation*).
    fn may_list_prompts(&self) -> bool {
        self.has_prompts() || !self.is_legacy()
    }

    /// Lists the server's resources, like [`prompts`](Client::prompts).
    pub fn resources(&self) -> impl Stream<Item = Result<ResourceInfo, ClientError>> + Send + '_ {
        pages(
            self.max_list_entries(),
            move |cursor| async move {
                let request = || async {
                    complete(self.peer().list_resources(cursor.clone()).await?, |page| page.result_type.as_ref())
                };
                let page = self.request(request).await?;
                Ok((page.resources, page.next_cursor))
            },
            ResourceInfo::from_resource,
        )
    }

    /// Lists the server's resource templates, like [`prompts`](Client::prompts).
    pub fn resource_templates(&self) -> impl Stream<Item = Result<ResourceInfo, ClientError>> + Send + '_ {
        pages(
            self.max_list_entries(),
            move |cursor| async move {
                let request = || async {
                    complete(self.peer().list_resource_templates(cursor.clone()).await?, |page| {
                        page.result_type.as_ref()
                    })
                };
                let page = self.request(request).await?;
                Ok((page.resource_templates, page.next_cursor))
            },
            ResourceInfo::from_template,
        )
    }

    /// Returns all prompts that can be used, in the server's order; [`prompt_listing`](Client::prompt_listing) names the
    /// other entries. Empty for a server without the prompts capability that does not implement the method or answers it
    /// with another result, as some tool servers do.
    ///
    /// # Errors
    ///
    /// The first error of [`prompts`](Client::prompts) that is not about one entry.
    pub async fn all_prompts(&self) -> Result<Vec<PromptInfo>, ClientError> {
        Ok(self.prompt_listing().await?.prompts)
    }

    /// Returns all resources with a fixed URI, in the server's order.
    ///
    /// # Errors
    ///
    /// The first error of [`resources`](Client::resources).
    pub async fn all_resources(&self) -> Result<Vec<ResourceInfo>, ClientError> {
        use futures_util::TryStreamExt;

        self.resources().try_collect().await
    }

    /// Returns all resource templates, in the server's order.
    ///
    /// # Errors
    ///
    /// The first error of [`resource_templates`](Client::resource_templates).
    pub async fn all_resource_templates(&self) -> Result<Vec<ResourceInfo>, ClientError> {
        use futures_util::TryStreamExt;

        self.resource_templates().try_collect().await
    }
}

/// A list of prompts, as far as a server has sent it.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct PromptListing {
    /// The prompts, in the server's order.
    pub prompts: Vec<PromptInfo>,
    /// The entries that cannot be used, each with its name and the reason. The texts are the server's.
    pub left_out: Vec<String>,
    /// Whether the list has more entries than permitted. The prompts are those of the pages before.
    pub is_too_long: bool,
}

impl Client {
    /// Returns all prompts, and the entries of the list that cannot be used.
    ///
    /// # Errors
    ///
    /// Those of [`all_prompts`](Client::all_prompts).
    pub async fn prompt_listing(&self) -> Result<PromptListing, ClientError> {
        let mut listing = PromptListing::default();
        self.collect(&mut listing, true).await?;
        Ok(listing)
    }

    /// Adds the prompts of all pages to a list, never from the cache. An entry that cannot be used costs no other one.
    /// After an error, and if the future is dropped, the list has the pages until then.
    ///
    /// # Errors
    ///
    /// The first error of [`prompts`](Client::prompts) that is not about one entry.
    pub async fn collect_prompts(&self, listing: &mut PromptListing) -> Result<(), ClientError> {
        self.collect(listing, false).await
    }

    async fn collect(&self, listing: &mut PromptListing, may_be_cached: bool) -> Result<(), ClientError> {
        use futures_util::TryStreamExt;

        let (received, limit) = (AtomicUsize::new(0), self.max_list_entries());
        let request = |cursor: Option<PaginatedRequestParams>| {
            let received = &received;
            async move {
                let page = self.page_of_prompts(cursor, may_be_cached).await?;
                received.fetch_add(page.0.len(), Ordering::Relaxed);
                Ok(page)
            }
        };
        let mut entries = std::pin::pin!(pages(limit, request, Ok));
        let ended = loop {
            match entries.try_next().await {
                Ok(None) => return Ok(()),
                Ok(Some(Ok(prompt))) => {
                    let name = prompt.name.clone();
                    match PromptInfo::from_wire(prompt) {
                        Ok(prompt) => listing.prompts.push(prompt),
                        Err(error) => listing.left_out.push(left_out(Some(&name), &error.to_string())),
                    }
                }
                Ok(Some(Err(reason))) => listing.left_out.push(reason),
                Err(error) => break error,
            }
        };
        listing.is_too_long = received.load(Ordering::Relaxed) > limit;
        let is_without_prompts =
            ended.is_unknown_method() || matches!(ended, ClientError::InvalidResponse { .. }) && !self.has_prompts();
        if is_without_prompts && listing.prompts.is_empty() { Ok(()) } else { Err(ended) }
    }
}

type PromptEntry = Result<wire::Prompt, String>;

impl Client {
    async fn page_of_prompts(
        &self,
        cursor: Option<PaginatedRequestParams>,
        may_be_cached: bool,
    ) -> Result<Page<PromptEntry>, ClientError> {
        if !self.may_list_prompts() {
            return Ok((Vec::new(), None));
        }
        if may_be_cached {
            let request = || async { whole_page(self.peer().list_prompts(cursor.clone()).await?) };
            match self.request(request).await {
                // The SDK reads a page as a whole, and refuses one with an odd entry. Other faults have a source.
                Err(ClientError::InvalidResponse { source: None, .. }) => {}
                other => return other,
            }
        }
        let request = || async { page_of_prompts(self.peer().send_request(list_request(cursor.clone())).await?) };
        self.request(request).await
    }
}

fn whole_page(page: ListPromptsResult) -> Result<Page<PromptEntry>, ServiceError> {
    let page = complete(page, |page| page.result_type.as_ref())?;
    Ok((page.prompts.into_iter().map(Ok).collect(), page.next_cursor))
}

fn list_request(params: Option<PaginatedRequestParams>) -> ClientRequest {
    ClientRequest::ListPromptsRequest(ListPromptsRequest {
        method: Default::default(),
        params,
        extensions: Default::default(),
    })
}

/// Returns the entries of a page. If the SDK cannot read it as a whole, each entry is read alone.
fn page_of_prompts(result: ServerResult) -> Result<Page<PromptEntry>, ServiceError> {
    match result {
        ServerResult::ListPromptsResult(page) => whole_page(page),
        ServerResult::CustomResult(CustomResult(Value::Object(mut page))) => {
            let is_complete = page.get("resultType").is_none_or(|kind| kind == "complete");
            let Some(Value::Array(entries)) = page.remove("prompts").filter(|_| is_complete) else {
                return Err(ServiceError::UnexpectedResponse);
            };
            let entry = |entry: Value| {
                let name = entry["name"].as_str().map(str::to_owned);
                serde_json::from_value(entry).map_err(|error| left_out(name.as_deref(), &error.to_string()))
            };
            let mut entries: Vec<_> = entries.into_iter().map(entry).collect();
            let next = match page.remove("nextCursor") {
                Some(Value::String(cursor)) => Some(cursor),
                None | Some(Value::Null) => None,
                // The entries that came are used.
                Some(other) => {
                    let shown: String = other.to_string().chars().take(MAX_SHOWN_NAME).collect();
                    entries.push(Err(format!("the rest of the list: its `nextCursor` is {shown}, and no text")));
                    None
                }
            };
            Ok((entries, next))
        }
        _ => Err(ServiceError::UnexpectedResponse),
    }
}

/// Describes an entry that cannot be used.
fn left_out(name: Option<&str>, reason: &str) -> String {
    match name {
        Some(name) if name.chars().nth(MAX_SHOWN_NAME).is_some() => {
            format!("the prompt `{}…`: {reason}", name.chars().take(MAX_SHOWN_NAME).collect::<String>())
        }
        Some(name) => format!("the prompt `{name}`: {reason}"),
        None => format!("a prompt without a name: {reason}"),
    }
}

struct Walk<W> {
    /// The entries of the last page that were not returned yet.
    page: std::vec::IntoIter<W>,
    /// The cursor of the next request, or why there is none; `None` after the last page.
    next: Option<Result<Option<String>, ClientError>>,
    cursors: HashSet<String>,
    pages: usize,
    entries: usize,
    max_entries: usize,
}

pub(crate) fn pages<'a, W, T, F, A>(
    max_entries: usize,
    request: F,
    read: fn(W) -> Result<T, ClientError>,
) -> impl Stream<Item = Result<T, ClientError>> + Send + 'a
where
    W: Send + 'a,
    T: Send + 'a,
    F: Fn(Option<PaginatedRequestParams>) -> A + Send + 'a,
    A: Future<Output = Result<Page<W>, ClientError>> + Send + 'a,
{
    let start = Walk {
        page: Vec::new().into_iter(),
        next: Some(Ok(None)),
        cursors: HashSet::new(),
        pages: 0,
        entries: 0,
        max_entries,
    };
    stream::try_unfold((start, request), move |(mut walk, request)| async move {
        loop {
            if let Some(entry) = walk.page.next() {
                return Ok(Some((read(entry)?, (walk, request))));
            }
            let Some(cursor) = walk.next.take() else { return Ok(None) };
            let params = cursor?.map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)));
            let (entries, next) = request(params).await?;
            walk.next_page(entries, next)?;
        }
    })
}

impl<W> Walk<W> {
    fn next_page(&mut self, entries: Vec<W>, next: Option<String>) -> Result<(), ClientError> {
        self.pages += 1;
        self.entries += entries.len();
        let limit = self.max_entries;
        if self.entries > limit {
            return Err(ClientError::LimitExceeded(format!("the server's list has more than {limit} entries")));
        }
        self.page = entries.into_iter();
        self.next = next.map(|cursor| self.follow(cursor).map(Some));
        Ok(())
    }

    /// Checks a cursor. What is wrong with it is told after the entries that came with it.
    fn follow(&mut self, cursor: String) -> Result<String, ClientError> {
        let (pages, max_pages) = (self.pages, (self.max_entries / MIN_ENTRIES_PER_PAGE).max(1));
        let length = cursor.len();
        let problem = if length > MAX_CURSOR_BYTES {
            format!("has a cursor of {length} bytes")
        } else if !self.cursors.insert(cursor.clone()) {
            format!("is circular: page {pages} refers to an earlier page")
        } else if pages >= max_pages {
            format!("does not end after {max_pages} pages")
        } else {
            return Ok(cursor);
        };
        Err(ClientError::LimitExceeded(format!("the server's list {problem}")))
    }
}

#[cfg(test)]
mod tests {
    use futures_util::TryStreamExt;

    use super::*;

    #[tokio::test]
    async fn endless_list_is_cut() {
        let requested = std::sync::atomic::AtomicUsize::new(0);
        let request = |_| {
            let page = requested.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            std::future::ready(Ok((vec![page], Some(format!("page-{page}")))))
        };
        let all: Result<Vec<usize>, ClientError> = pages(DEFAULT_MAX_ENTRIES, request, Ok).try_collect().await;
        assert!(all.is_err_and(|error| error.to_string().contains("does not end after 1000 pages")));
        assert_eq!(requested.into_inner(), 1000);
    }

    /// The entries of a page count although its cursor is of no use.
    #[tokio::test]
    async fn a_useless_cursor_costs_no_entry() {
        for (next, problem) in [("again".to_owned(), "circular: page 2"), ("x".repeat(100_000), "of 100000 bytes")] {
            let requested = std::sync::atomic::AtomicUsize::new(0);
            let request = |_| {
                let page = requested.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                std::future::ready(Ok((vec![page], Some(next.clone()))))
            };
            let mut entries = std::pin::pin!(pages(DEFAULT_MAX_ENTRIES, request, Ok));
            let mut came = Vec::new();
            let error = loop {
                match entries.try_next().await {
                    Ok(entry) => came.extend(entry),
                    Err(error) => break error.to_string(),
                }
            };
            assert!(error.contains(problem), "{error}");
            assert_eq!(came.len(), requested.load(std::sync::atomic::Ordering::Relaxed));
        }
    }
}

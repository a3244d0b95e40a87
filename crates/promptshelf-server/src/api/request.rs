//! Paths, queries and pages of requests.

use std::{
    cmp::Ordering,
    fmt::{self, Display},
    num::ParseIntError,
    str::FromStr,
};

use axum::{
    extract::{FromRequestParts, Path, Query},
    http::{Uri, request::Parts},
};
use promptshelf_core::cursor::{self, DerivedList};
use promptshelf_wire::{Page, PageQuery};
use serde::de::DeserializeOwned;

use super::problem::Problem;

pub(super) struct ApiPath<T>(pub(super) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for ApiPath<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<ApiPath<T>, Problem> {
        let Path(path) = Path::from_request_parts(parts, state)
            .await
            .map_err(|rejection| Problem::invalid(format!("The path is invalid: {}", rejection.body_text())))?;
        Ok(ApiPath(path))
    }
}

/// The parameters of the query. Unknown ones are refused by their type.
pub(super) struct ApiQuery<T>(pub(super) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for ApiQuery<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<ApiQuery<T>, Problem> {
        let Query(query) = Query::from_request_parts(parts, state)
            .await
            .map_err(|rejection| Problem::invalid(format!("The query is invalid: {}", rejection.body_text())))?;
        Ok(ApiQuery(query))
    }
}

/// The largest number of items of most pages. Stores return twice as many, so that one more shows whether there is another
/// page.
pub(super) const MAX_LIMIT: usize = 500;

/// The largest number that a caller may ask for, and that of pages with small items.
pub(super) const MAX_ALL: usize = 10_000;

/// Which page of a list a request asks for.
#[derive(Clone, Debug, Default)]
pub(super) struct Paging {
    limit: usize,
    after: Option<String>,
    /// The path of the list, which its cursors have.
    list: String,
}

impl Paging {
    /// Reads `cursor` and `limit` out of the query of a list, and returns the other parameters.
    pub(super) fn read(uri: &Uri, list: String) -> Result<(Paging, Uri), Problem> {
        let pairs = uri.query().unwrap_or_default().split('&');
        let (page, others): (Vec<&str>, Vec<&str>) =
            pairs.partition(|pair| matches!(pair.split('=').next(), Some("cursor" | "limit")));
        let uri_of = |pairs: Vec<&str>| format!("/?{}", pairs.join("&")).parse().map_err(|_| Problem::internal());
        let page: Uri = uri_of(page)?;
        let Query(PageQuery { cursor, limit }) = Query::try_from_uri(&page)
            .map_err(|rejection| Problem::invalid(format!("The query is invalid: {}", rejection.body_text())))?;
        let limit = limit.unwrap_or(100);
        if !(1..=MAX_ALL).contains(&limit) {
            return Err(Problem::invalid(format!("The limit is invalid: expected 1 to {MAX_ALL}, got {limit}")));
        }
        let mut paging = Paging { limit, after: None, list };
        if let Some(cursor) = cursor {
            paging.after = Some(paging.decode(&cursor)?);
        }
        Ok((paging, uri_of(others)?))
    }

    fn decode(&self, cursor: &str) -> Result<String, Problem> {
        let place = cursor::decode(DerivedList::Api, cursor).ok_or_else(Problem::invalid_cursor)?;
        let (list, key) = place.split_once('\n').ok_or_else(Problem::invalid_cursor)?;
        if list == self.list { Ok(key.to_owned()) } else { Err(Problem::invalid_cursor()) }
    }

    pub(super) fn next(&self, key: impl Display) -> String {
        cursor::encode(DerivedList::Api, &format!("{}\n{key}", self.list))
    }

    /// The number of items of a page, which has `max` at most.
    pub(super) fn up_to(&self, max: usize) -> usize {
        self.limit.min(max)
    }

    /// The number of items of most pages.
    pub(super) fn limit(&self) -> usize {
        self.up_to(MAX_LIMIT)
    }

    /// Returns the key of the last item of the page before.
    pub(super) fn after<K: FromStr>(&self) -> Result<Option<K>, Problem> {
        self.after.as_ref().map(|key| key.parse().map_err(|_| Problem::invalid_cursor())).transpose()
    }

    /// Makes a page of rows that a store returned after [`after`](Paging::after), one more than the page has if there is
    /// another one.
    pub(super) fn of_rows<T, K: Display>(&self, mut rows: Vec<T>, limit: usize, key: impl Fn(&T) -> K) -> Page<T> {
        let has_more = rows.len() > limit;
        rows.truncate(limit);
        let next = rows.last().filter(|_| has_more).map(|last| self.next(key(last)));
        Page { items: rows, next }
    }

    /// Cuts a page out of a short list without a key, by the number of an item.
    pub(super) fn of_short<T>(&self, items: Vec<T>) -> Result<Page<T>, Problem> {
        let Page { items, next } = self.of_sorted(items.into_iter().enumerate(), MAX_LIMIT, |(number, _)| *number)?;
        Ok(Page { items: items.into_iter().map(|(_, item)| item).collect(), next })
    }

    /// Cuts a page out of all items, which are sorted by a key. The key is a place in the order, so that items may come and go
    /// between two pages.
    pub(super) fn of_sorted<T, K: Display + FromStr + PartialOrd>(
        &self,
        items: impl IntoIterator<Item = T>,
        max: usize,
        key: impl Fn(&T) -> K,
    ) -> Result<Page<T>, Problem> {
        let (limit, after) = (self.up_to(max), self.after::<K>()?);
        let follows = |item: &T| after.as_ref().is_none_or(|after| key(item) > *after);
        let items = items.into_iter().filter(follows).take(limit + 1).collect();
        Ok(self.of_rows(items, limit, &key))
    }
}

/// A number in a list that begins with the greatest one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Newest(pub(super) u64);

impl PartialOrd for Newest {
    fn partial_cmp(&self, other: &Newest) -> Option<Ordering> {
        other.0.partial_cmp(&self.0)
    }
}

impl Display for Newest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Newest {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Newest, ParseIntError> {
        text.parse().map(Newest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paging(query: &str) -> Result<Paging, Problem> {
        Ok(Paging::read(&format!("/?{query}").parse().expect("a query"), "/list".to_owned())?.0)
    }

    #[test]
    fn pages_cover_all_items_once() {
        let items: Vec<String> = ["a", "b", "c", "d", "e"].map(str::to_owned).to_vec();
        let mut seen = Vec::new();
        let mut query = "limit=2".to_owned();
        loop {
            let page = paging(&query).unwrap().of_sorted(items.clone(), MAX_LIMIT, String::clone).unwrap();
            assert!(page.items.len() <= 2);
            seen.extend(page.items);
            let Some(next) = page.next else { break };
            query = format!("cursor={next}&limit=2");
        }
        assert_eq!(seen, items);
        let page = |items: Vec<String>| paging("limit=5").unwrap().of_sorted(items, MAX_LIMIT, String::clone).unwrap();
        assert_eq!(page(items).next, None);
        assert_eq!((page(Vec::new()).items.len(), page(Vec::new()).next), (0, None));
    }

    #[test]
    fn cursor_belongs_to_one_list() {
        let own = paging("").unwrap().next("a\nb");
        assert_eq!(paging(&format!("cursor={own}")).unwrap().after::<String>().unwrap().as_deref(), Some("a\nb"));
        let other = Paging { list: "/other".to_owned(), ..paging("").unwrap() }.next("a");
        for cursor in [other.as_str(), "", "a", &own[1..]] {
            assert_eq!(paging(&format!("cursor={cursor}")).unwrap_err().name(), "invalid-cursor", "{cursor}");
        }
        assert_eq!(paging(&format!("cursor={own}")).unwrap().after::<u64>().unwrap_err().name(), "invalid-cursor");
    }

    #[test]
    fn limit_is_from_one_to_ten_thousand() {
        for (query, limit) in [("", 100), ("limit=1", 1), ("limit=501", 500), ("limit=10000", 500)] {
            assert_eq!(paging(query).unwrap().limit(), limit, "{query}");
        }
        for query in ["limit=0", "limit=10001", "limit=a", "limit=-1", "limit=1&limit=2"] {
            assert_eq!(paging(query).unwrap_err().name(), "invalid-request", "{query}");
        }
    }
}

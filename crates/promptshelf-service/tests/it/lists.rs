//! Pagination of lists.

use promptshelf_core::{
    CatalogHandle, Definitions, Policy, PromptDefinition, ResourceBody, ResourceContent, cursor::ListKind,
};
use promptshelf_service::{Caller, ListPage, Rejection, Service};

use crate::{catalog, prompts, resource};

fn named<'n>(names: impl IntoIterator<Item = &'n str>) -> Definitions {
    let policy = Policy { page_size: 2, ..Policy::default() };
    Definitions { policy, ..prompts(names.into_iter().map(|name| PromptDefinition::template(name, "x"))) }
}

/// The names of one page, and the next cursor.
fn page(service: &Service, cursor: Option<&str>) -> (Vec<String>, Option<String>) {
    let list = service.list(&Caller::local(), ListKind::Prompts, cursor).expect("a cursor of this list");
    let ListPage { page, .. } = list.value().clone();
    let names = list.view().catalog().prompts()[page.range].iter().map(|prompt| prompt.name().to_string());
    (names.collect(), page.next_cursor)
}

// req: B11, F6
#[test]
fn pages_cover_whole_list() {
    let service = Service::new(CatalogHandle::new(catalog(named(["e", "a", "d", "b", "c"]))));
    let (first, cursor) = page(&service, None);
    let (second, cursor) = page(&service, cursor.as_deref());
    let (third, cursor) = page(&service, cursor.as_deref());
    assert_eq!([first, second, third], [vec!["a", "b"], vec!["c", "d"], vec!["e"]]);
    assert_eq!(cursor, None);
}

#[test]
fn changing_list_neither_repeats_nor_skips() {
    let handle = CatalogHandle::new(catalog(named(["a", "b", "c", "d", "e"])));
    let service = Service::new(handle.clone());
    let (first, cursor) = page(&service, None);
    assert_eq!(first, ["a", "b"]);
    // The last listed prompt is gone, and there are new ones before and after it.
    handle.replace(catalog(named(["aa", "a", "bb", "c", "d", "e"])));
    let (second, cursor) = page(&service, cursor.as_deref());
    assert_eq!(second, ["bb", "c"]);
    handle.replace(catalog(named(["a"])));
    assert_eq!(page(&service, cursor.as_deref()), (vec![], None));
}

#[test]
fn page_keeps_its_catalog() {
    let handle = CatalogHandle::new(catalog(named(["a", "b", "c"])));
    let service = Service::new(handle.clone());
    let list = service.list(&Caller::local(), ListKind::Prompts, None).expect("the first page");
    handle.replace(catalog(named([])));
    assert_eq!(list.view().catalog().prompts()[list.value().page.range.clone()].len(), 2);
}

// req: F8
#[test]
fn foreign_cursor_is_refused() {
    let text = |text: &str| ResourceContent::Fixed(ResourceBody::Text(text.into()));
    let mut definitions = named(["a", "b", "c"]);
    definitions.resources = ["x:1", "x:2", "x:3"].map(|uri| resource(uri, text(uri))).to_vec();
    let service = Service::new(CatalogHandle::new(catalog(definitions)));
    let list = |kind, cursor: &str| {
        service.list(&Caller::local(), kind, Some(cursor)).map(|list| list.into_value().page.range)
    };
    let (_, cursor) = page(&service, None);
    let cursor = cursor.expect("a second page");
    assert_eq!(list(ListKind::Prompts, &cursor), Ok(2..3));
    assert_eq!(list(ListKind::Resources, &cursor), Err(Rejection::InvalidCursor));
    for cursor in ["", "a", "AQ", "ä", "2", &cursor.to_lowercase(), &"A".repeat(100_000)] {
        assert_eq!(list(ListKind::Prompts, cursor), Err(Rejection::InvalidCursor), "{cursor:.20}");
    }
    let first = service.list(&Caller::local(), ListKind::Resources, None).expect("the first page");
    assert_eq!(list(ListKind::Resources, &first.into_value().page.next_cursor.expect("a second page")), Ok(2..3));
}

// req: A16
#[test]
fn empty_list_is_one_empty_page() {
    let service = Service::new(CatalogHandle::new(catalog(Definitions::default())));
    for kind in [ListKind::Prompts, ListKind::Resources, ListKind::ResourceTemplates] {
        let list = service.list(&Caller::anonymous(), kind, None).expect("the first page").into_value();
        assert_eq!((list.page.range, list.page.next_cursor), (0..0, None));
    }
}

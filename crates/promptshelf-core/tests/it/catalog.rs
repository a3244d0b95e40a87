//! Catalogs: order, pages and replacement.

use std::sync::{Arc, Mutex};

use promptshelf_core::{
    Access, AccessRule, Catalog, CatalogHandle, Change, Code, Definitions, Interrupt, Origin, Policy, PromptDefinition,
    PromptName, ResourceBody, ResourceContent, ResourceDefinition, SourceText, check,
    cursor::{self, ListKind},
};
use proptest::prelude::*;

fn catalog(names: &[String], page_size: usize) -> Catalog {
    let mut names = names.to_vec();
    names.sort();
    names.dedup();
    let prompts = names.iter().map(|name| PromptDefinition::template(name, "x").description("x").into()).collect();
    let policy = Policy { page_size, ..Policy::default() };
    check(Definitions { prompts, policy, ..Definitions::default() }, None).catalog
}

/// Returns the names on every page; after `pages_before` pages the other catalog is used.
fn walk(before: &Catalog, after: &Catalog, pages_before: usize) -> Vec<String> {
    let mut names = Vec::new();
    let mut cursor = None;
    for number in 0.. {
        let catalog = if number < pages_before { before } else { after };
        let page = catalog.page(ListKind::Prompts, cursor.as_deref()).expect("a cursor of this list");
        names.extend(catalog.prompts()[page.range].iter().map(|prompt| prompt.name().to_string()));
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    names
}

proptest! {
    // req: B3, B11
    #[test]
    fn pages_contain_each_prompt_once_in_order(names in prop::collection::vec("[a-z]{1,3}", 0..40), size in 0_usize..10) {
        let catalog = catalog(&names, size);
        let walked = walk(&catalog, &catalog, 0);
        prop_assert!(walked.is_sorted());
        prop_assert_eq!(walked, catalog.prompts().iter().map(|prompt| prompt.name().to_string()).collect::<Vec<_>>());
    }

    // req: F2
    #[test]
    fn pages_of_a_changing_catalog_keep_remaining_items(
        before in prop::collection::vec("[a-z]{1,2}", 0..40),
        after in prop::collection::vec("[a-z]{1,2}", 0..40),
        size in 1_usize..6,
        pages in 0_usize..6,
    ) {
        let (before, after) = (catalog(&before, size), catalog(&after, size));
        let walked = walk(&before, &after, pages);
        let mut unique = walked.clone();
        unique.dedup();
        prop_assert_eq!(&unique, &walked);
        prop_assert!(walked.is_sorted());
        for prompt in before.prompts().iter() {
            let name = prompt.name().as_str();
            prop_assert!(after.find(name).is_none() || walked.iter().any(|seen| seen == name), "{} is skipped", name);
        }
    }

    // req: F8, X10
    #[test]
    fn modified_cursor_is_rejected(name in "[a-z-]{1,20}", at in any::<prop::sample::Index>(), letter in "[A-Za-z0-9_-]") {
        let cursor = cursor::encode(ListKind::Prompts, &name);
        let mut changed = cursor.clone();
        let at = at.index(changed.len());
        changed.replace_range(at..=at, &letter);
        let decoded = cursor::decode(ListKind::Prompts, &changed);
        prop_assert!(decoded.is_none() || changed == cursor);
        for other in [ListKind::Resources, ListKind::ResourceTemplates] {
            prop_assert_eq!(cursor::decode(other, &cursor), None);
        }
    }

    #[test]
    fn name_lookup_is_exact(names in prop::collection::vec("[a-zA-Zé_-]{1,4}", 1..20), other in "[a-zA-Zé_-]{1,4}") {
        let catalog = catalog(&names, 10);
        for name in names.iter().chain([&other]) {
            prop_assert_eq!(catalog.find(name).is_some(), names.contains(name));
        }
    }

    #[test]
    fn name_parser_never_panics(name in ".{0,140}") {
        let is_good = PromptName::new(&name).is_ok();
        prop_assert_eq!(is_good, !name.is_empty() && name.len() <= 128 && !name.contains(|c: char| c.is_control() || c.is_whitespace()));
    }
}

#[test]
fn observers_receive_each_replacement_once_in_order() {
    let handle = CatalogHandle::new(catalog(&["a".into()], 10));
    let received: Arc<Mutex<Vec<Change>>> = Arc::default();
    let listener = Arc::clone(&received);
    handle.observe(move |change| listener.lock().expect("nobody panicked").push(change.clone()));
    let returned =
        [handle.replace(catalog(&["b".into()], 10)), handle.touch(), handle.replace(catalog(&["b".into()], 10))];
    assert_eq!(*received.lock().expect("nobody panicked"), returned);
    assert_eq!(returned.each_ref().map(|change| change.generation), [1, 1, 2]);
    assert_eq!(returned.each_ref().map(|change| change.prompts), [true, false, false]);
    assert_eq!(handle.current().generation(), 2);
}

#[test]
fn concurrent_replacements_are_serialized() {
    let handle = CatalogHandle::new(Catalog::default());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    handle.replace(Catalog::default());
                }
            });
        }
    });
    assert_eq!(handle.current().generation(), 200);
}

#[test]
fn generation_is_that_of_the_source_and_serial_counts() {
    let handle = CatalogHandle::new(catalog(&["a".into()], 10).with_generation(Some(40)));
    let numbers = |handle: &CatalogHandle| (handle.current().generation(), handle.current().serial());
    assert_eq!(numbers(&handle), (40, 0));
    // The same revision with other access rules, an earlier one after a restore, and a source without numbers.
    for (generation, expected) in [(Some(40), (40, 1)), (Some(3), (3, 2)), (None, (3, 3))] {
        let change = handle.replace(catalog(&["a".into()], 10).with_generation(generation));
        assert_eq!(change.generation, expected.0);
        assert_eq!(numbers(&handle), expected);
    }
}

fn restricted(rules: usize, resources: usize) -> Definitions {
    let origin = Origin::new(SourceText::new("promptshelf.toml", ""));
    let access = Access { roles: vec!["a".to_owned()], ..Access::default() };
    let rule = |n: usize| AccessRule {
        resources: (0..10).map(|glob| format!("x://{n}-{glob}*")).collect(),
        ..AccessRule::new(access.clone(), origin.clone())
    };
    let resource = |n: usize| {
        let content = ResourceContent::Fixed(ResourceBody::Text("x".into()));
        ResourceDefinition::from_source(format!("x://{n}-0/a"), content, origin.clone())
    };
    Definitions {
        access: (0..rules).map(rule).collect(),
        resources: (0..resources).map(resource).collect(),
        ..Definitions::default()
    }
}

// req: S-472
#[test]
fn rules_with_too_many_names_to_compare_apply_to_everything() {
    let too_many = |definitions: Definitions| {
        let checked = check(definitions, None);
        let is_found = checked.diagnostics.iter().any(|found| found.code == Code::TooMany && found.is_error());
        let closed = |uri: &str| !checked.catalog.uri_access(uri).rules.is_empty();
        assert!(closed("x://1-0/a"), "the rule applies");
        (is_found, closed("x://1999-0/a"))
    };
    assert_eq!(too_many(restricted(20, 2_000)), (false, false));
    assert_eq!(too_many(restricted(200, 6_000)), (true, true));
}

// req: S-472
#[test]
fn interrupted_check_of_rules_compares_nothing_more() {
    let interrupt = Interrupt::new();
    interrupt.set();
    let access = interrupt.scope(|| check(restricted(20, 2_000), None).catalog.uri_access("x://1999-0/a"));
    assert_eq!(access.rules[0].roles, ["\0"], "no caller has this role");
}

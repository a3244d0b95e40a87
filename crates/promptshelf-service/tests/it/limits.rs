//! Limits of one caller, without effect on others.

use std::{num::NonZeroU32, time::Duration};

use promptshelf_core::{RawArguments, Variables, cursor::ListKind};
use promptshelf_service::{Caller, Limits, Reference, Rejection, Service, SlotHolder};

use crate::library::{known, service};

fn number(number: u32) -> NonZeroU32 {
    NonZeroU32::new(number).expect("a non-zero number")
}

fn limited(limits: Limits) -> Service {
    service().with_limits(&limits)
}

fn complete(service: &Service, caller: &Caller) -> Result<(), Rejection> {
    crate::now(service.complete(caller, Reference::Prompt("open"), "x", "", &Variables::new())).map(drop)
}

// req: R-12, S-24
#[tokio::test]
async fn rate_limit_names_retry_time_per_caller() {
    let service = limited(Limits { requests_per_minute: number(3), ..Limits::default() });
    let (ada, eve) = (known("ada", &[], &[]), known("eve", &[], &[]));
    for _ in 0..3 {
        service.list(&eve, ListKind::Prompts, None).expect("a page");
    }
    let refused = service.get(&eve, "open", &RawArguments::new()).await.expect_err("too much");
    let Rejection::TooManyRequests { retry_after } = refused else { panic!("{refused}") };
    assert!(retry_after > Duration::ZERO && retry_after <= Duration::from_secs(20), "{retry_after:?}");
    assert!(matches!(service.read(&eve, "docs://open").await, Err(Rejection::TooManyRequests { .. })));
    assert!(service.list(&ada, ListKind::Prompts, None).is_ok());
    // The local user is not limited, and completion has its own bucket.
    for _ in 0..10 {
        service.list(&Caller::local(), ListKind::Prompts, None).expect("a page");
    }
    assert_eq!(complete(&service, &eve), Ok(()));
}

// req: E8, X11
#[test]
fn completion_has_own_limit() {
    let service = limited(Limits { completions_per_minute: number(2), ..Limits::default() });
    let eve = known("eve", &[], &[]);
    assert_eq!((complete(&service, &eve), complete(&service, &eve)), (Ok(()), Ok(())));
    assert!(matches!(complete(&service, &eve), Err(Rejection::TooManyRequests { .. })));
    assert!(service.list(&eve, ListKind::Prompts, None).is_ok());
}

#[test]
fn anonymous_callers_are_limited_by_address() {
    let service = limited(Limits { requests_per_minute: number(1), ..Limits::default() });
    let at = |address: &str| Caller::anonymous().with_address(address.parse().expect("an address"));
    assert!(service.list(&at("10.0.0.1"), ListKind::Prompts, None).is_ok());
    assert!(service.list(&at("10.0.0.1"), ListKind::Prompts, None).is_err());
    assert!(service.list(&at("10.0.0.2"), ListKind::Prompts, None).is_ok());
}

#[test]
fn addresses_are_limited() {
    let service = limited(Limits { requests_per_minute_per_address: number(2), ..Limits::default() });
    let address = |text: &str| text.parse().expect("an address");
    assert!(service.admit_address(address("10.0.0.1")).is_ok() && service.admit_address(address("10.0.0.1")).is_ok());
    assert!(matches!(service.admit_address(address("10.0.0.1")), Err(Rejection::TooManyRequests { .. })));
    assert!(service.admit_address(address("10.0.0.2")).is_ok());
}

// req: R-12
#[test]
fn open_requests_are_counted_and_released() {
    let service = limited(Limits { subscriptions: number(2), concurrent_requests: number(1), ..Limits::default() });
    let (ada, eve) = (known("ada", &[], &[]), known("eve", &[], &[]));
    let permits = [service.subscribe(&eve).expect("one"), service.subscribe(&eve).expect("two")];
    assert_eq!(service.subscribe(&eve).map(drop), Err(Rejection::TooManyAtOnce { what: "subscriptions" }));
    assert!(service.subscribe(&ada).is_ok());
    drop(permits);
    assert!(service.subscribe(&eve).is_ok());

    let open = service.open(&eve, "open").expect("a prompt");
    assert_eq!(service.open(&eve, "open").map(drop), Err(Rejection::TooManyAtOnce { what: "requests" }));
    assert!(service.open(&ada, "open").is_ok());
    drop(open);
    assert!(service.open(&eve, "open").is_ok());
}

// req: R-12
#[test]
fn refused_request_counts_once_and_only_if_it_was_not_admitted() {
    let limits = Limits { requests_per_minute: number(2), concurrent_requests: number(9), ..Limits::default() };
    let service = limited(limits);
    let request = |caller: Caller| caller.with_slot_holder(SlotHolder::default());
    let eve = || request(known("eve", &[], &[]));
    assert_eq!([service.count_refused(&eve()), service.count_refused(&eve())], [Ok(()), Ok(())]);
    assert!(matches!(service.count_refused(&eve()), Err(Rejection::TooManyRequests { .. })));
    assert!(service.list(&eve(), ListKind::Prompts, None).is_err(), "refused requests are requests");

    let ada = request(known("ada", &[], &[]));
    let _admitted = service.open(&ada, "open").expect("a prompt");
    let without = known("ada", &[], &[]);
    for caller in [&ada, &without] {
        assert!((0..9).all(|_| service.count_refused(caller).is_ok()));
    }
    assert!(service.list(&ada, ListKind::Prompts, None).is_ok(), "only the request itself was counted");
    assert!(service.list(&ada, ListKind::Prompts, None).is_err());
    let local = request(Caller::local());
    assert!((0..9).all(|_| service.count_refused(&local).is_ok()));
}

/// Operators see which limit refused how many requests.
#[test]
fn refusals_are_counted_by_limit() {
    let one = number(1);
    let limits = Limits {
        requests_per_minute: number(3),
        completions_per_minute: one,
        requests_per_minute_per_address: one,
        concurrent_requests: one,
        subscriptions: one,
    };
    let service = limited(limits);
    let eve = known("eve", &[], &[]);
    let address = "10.0.0.1".parse().expect("an address");
    service.admit_address(address).expect("the first");
    service.admit_address(address).expect_err("one a minute");
    let _stream = service.subscribe(&eve).expect("the first");
    for _ in 0..2 {
        service.subscribe(&eve).map(drop).expect_err("one at a time");
    }
    complete(&service, &eve).expect("the first");
    for _ in 0..3 {
        complete(&service, &eve).expect_err("one a minute");
    }
    let _open = service.open(&eve, "open").expect("the first");
    for _ in 0..2 {
        assert_eq!(service.open(&eve, "open").map(drop), Err(Rejection::TooManyAtOnce { what: "requests" }));
    }
    for _ in 0..5 {
        service.open(&eve, "open").map(drop).expect_err("three a minute");
    }
    let expected = [
        ("requests-per-minute", 5),
        ("completions-per-minute", 3),
        ("requests-per-minute-per-address", 1),
        ("concurrent-requests", 2),
        ("subscriptions", 2),
    ];
    assert_eq!(service.refused_by_limits(), expected);
}

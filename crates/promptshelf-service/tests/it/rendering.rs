//! Renderings that take long: they keep no other request waiting, and end with their request.

use promptshelf_core::{
    ArgumentDefinition, Budget, Definitions, Policy, PromptDefinition, RawArguments, ResourceContent,
};
use promptshelf_service::{Caller, Service};

use crate::{prompts, resource, service};

/// A library with the prompt `slow`, whose steps grow with the square of `n`, and `quick`.
fn library() -> Service {
    let body = "{% for i in range(n|int) %}{% for j in range(n|int) %}{% set x %}{{ j }}{% endset %}{% endfor %}{% endfor %}done";
    let slow = PromptDefinition::template("slow", body)
        .description("D")
        .argument(ArgumentDefinition::new("n").description("N").required());
    let quick = PromptDefinition::template("quick", "{% if true %}quick{% endif %}").description("D");
    let budget = Budget { fuel: u64::MAX >> 8, ..Budget::default() };
    let policy = Policy { budget, ..Policy::default() };
    let template =
        "{% for i in range(n|int) %}{% for j in range(n|int) %}{% if i is none %}x{% endif %}{% endfor %}{% endfor %}";
    let resources = vec![resource("slow://{n}", ResourceContent::Template(template.into()))];
    service(Definitions { policy, resources, ..prompts([slow, quick]) })
}

async fn get(service: &Service, name: &str, n: &str) -> Result<usize, promptshelf_service::Rejection> {
    let arguments = RawArguments::from_iter([("n", n)]);
    service.get(&Caller::local(), name, &arguments).await.map(|answer| answer.value().messages.len())
}

// req: S-55
#[tokio::test]
async fn slow_rendering_keeps_no_other_request_waiting() {
    let service = library();
    let slow = tokio::spawn({
        let service = service.clone();
        async move { get(&service, "slow", "90000").await }
    });
    for _ in 0..1_000 {
        assert_eq!(get(&service, "quick", "").await, Ok(1));
        tokio::task::yield_now().await;
    }
    assert!(!slow.is_finished());
    slow.abort();
}

// req: S-55
#[tokio::test]
async fn rendering_ends_with_its_request() {
    let service = library();
    // More than there are threads in the pool.
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let slow: Vec<_> = (0..2 * processors)
        .map(|_| {
            let service = service.clone();
            tokio::spawn(async move { get(&service, "slow", "90000").await })
        })
        .collect();
    tokio::task::yield_now().await;
    assert!(slow.iter().all(|task| !task.is_finished()));
    slow.iter().for_each(tokio::task::JoinHandle::abort);
    // This one needs a place in the pool, too. The others would take hours.
    let waiting = std::time::Duration::from_secs(60);
    assert_eq!(tokio::time::timeout(waiting, get(&service, "slow", "100")).await, Ok(Ok(1)));
}

// req: S-55
#[tokio::test]
async fn slow_resource_keeps_no_other_request_waiting() {
    let service = library();
    let slow = tokio::spawn({
        let service = service.clone();
        async move { service.read(&Caller::local(), "slow://400").await.map(drop) }
    });
    for _ in 0..100 {
        assert_eq!(get(&service, "quick", "").await, Ok(1));
        tokio::task::yield_now().await;
    }
    assert!(!slow.is_finished());
    let waiting = std::time::Duration::from_secs(60);
    assert!(matches!(tokio::time::timeout(waiting, slow).await, Ok(Ok(Ok(())))));
}

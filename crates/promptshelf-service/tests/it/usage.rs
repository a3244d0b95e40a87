//! Figures about the use of prompts.

use std::{collections::BTreeMap, sync::Arc};

use promptshelf_core::{
    Access, ArgumentDefinition, CatalogHandle, CompletionSource, PromptDefinition, RawArgumentValue, RawArguments,
    Variables, check,
    usage::{FormCounts, UsageFigures, UsageKey},
};
use promptshelf_service::{Caller, FormReaction, Identity, Reference, Rejection, Service, Usage};

use crate::{library, prompts, service};

fn caller(number: usize) -> Caller {
    let identity = Identity { key: format!("caller {number}"), ..Identity::default() };
    Caller::authenticated(Arc::new(identity))
}

/// The counts by method and outcome.
fn counts(drained: &BTreeMap<UsageKey, UsageFigures>) -> Vec<(&str, &str, u64)> {
    drained.iter().map(|(key, figures)| (key.method.as_str(), key.outcome.as_str(), figures.count)).collect()
}

#[tokio::test]
async fn calls_are_counted_with_outcome_callers_and_left_out_arguments() {
    let mut pin = ArgumentDefinition::new("pin").complete(CompletionSource::Values(vec!["1234".into()]));
    pin.sensitive = true;
    let ask = PromptDefinition::template("ask", "{{ what }} {{ how }}")
        .argument(ArgumentDefinition::new("what").required())
        .argument(ArgumentDefinition::new("how").choices(["fast", "well"]))
        .argument(pin);
    let usage = Usage::new();
    usage.set_key([7; 16]);
    let service = service(prompts([ask])).with_usage(&usage, "production");
    let tag = || usage.client(r#"{"name":"editor","version":"1.2"}"#, "2026-07-28");
    let mut with_what = RawArguments::new();
    with_what.push("what", RawArgumentValue::Text("secret value".into()));
    for number in 0..6 {
        let caller = caller(number % 3).with_client(tag());
        service.get(&caller, "ask", &with_what).await.expect("it renders");
    }
    let fast = RawArguments::from_iter([("what", "secret value"), ("how", "fast"), ("pin", "1234")]);
    let answer = service.get(&caller(3).with_client(tag()), "ask", &fast).await.expect("it renders");
    let bytes = answer.value().messages.iter().map(|message| message.content.size()).sum::<usize>() as u64;
    let open = service.open(&caller(3).with_client(tag()), "ask").expect("it exists");
    open.note_form(FormReaction::Declined);
    open.note_form(FormReaction::Accepted);
    let open = service.render(open, &fast).await.expect("it renders");
    drop(open);
    service.get(&caller(0), "ask", &RawArguments::new()).await.expect_err("`what` is required");
    let found = service.complete(&caller(0), Reference::Prompt("ask"), "how", "f", &Variables::new()).await;
    assert_eq!(found.expect("it completes").value().values, ["fast"]);
    drop(service.open(&caller(0), "ask").expect("it exists"));
    let drained = usage.drain();
    assert_eq!(
        counts(&drained),
        [
            ("completion/complete", "ok", 1),
            ("prompts/get", "asked", 1),
            ("prompts/get", "invalid-arguments", 1),
            ("prompts/get", "ok", 8),
        ]
    );
    let (key, figures) = drained.last_key_value().expect("figures");
    assert_eq!((key.channel.as_str(), key.prompt.as_str(), key.client.as_str()), ("production", "ask", "editor"));
    assert_eq!((key.client_version.as_str(), key.protocol.as_str(), key.version), ("1.2", "2026-07-28", 0));
    let left_out = BTreeMap::from([("how".to_owned(), 6), ("pin".to_owned(), 6), ("what".to_owned(), 0)]);
    assert_eq!((figures.callers.count(), &figures.left_out), (4, &left_out));
    // The value of a sensitive argument is not compared.
    assert_eq!(figures.taken, BTreeMap::from([("how".to_owned(), 2)]));
    assert_eq!(figures.forms, FormCounts { accepted: 1, declined: 1, cancelled: 0 });
    // The first six answers lack the value of `how` and the space before it.
    assert_eq!(figures.bytes_out, 8 * bytes - 6 * " fast".len() as u64);
    assert!(!format!("{drained:?}").contains("secret value"));
    assert!(usage.drain().is_empty(), "each call is drained once");
}

// req: S-185
#[tokio::test]
async fn texts_of_callers_are_not_counted() {
    let usage = Usage::new();
    let handle = CatalogHandle::new(check(library::definitions(), None).catalog);
    let service = Service::new(handle).with_usage(&usage, "");
    let stranger = Caller::anonymous().with_address([192, 0, 2, 1].into());
    for name in ["closed", "secret", "\u{1b}[31m", &"x".repeat(100_000)] {
        service.get(&stranger, name, &RawArguments::new()).await.expect_err("hidden or missing");
        service.describe(&stranger, name).expect_err("hidden or missing");
    }
    let drained = usage.drain();
    let counted = drained.iter().map(|(key, figures)| (key.prompt.as_str(), key.outcome.as_str(), figures.count));
    assert_eq!(
        counted.collect::<Vec<_>>(),
        [("closed", "unknown-prompt", 1), ("other", "unknown-prompt", 2), ("secret", "unknown-prompt", 1)],
        "only names that a prompt can have"
    );
}

// req: S-185
#[tokio::test]
async fn unknown_names_are_bounded_and_each_call_is_counted() {
    let usage = Usage::new();
    let service = service(prompts([PromptDefinition::template("one", "One.")])).with_usage(&usage, "");
    for number in 0..2_000 {
        service.open(&Caller::anonymous(), &format!("guess-{number}")).expect_err("it does not exist");
    }
    service.open(&Caller::anonymous(), "one").expect("it exists");
    let drained = usage.drain();
    assert_eq!(drained.len(), 502, "500 names, the others, and the prompt");
    assert_eq!(drained.values().map(|figures| figures.count).sum::<u64>(), 2_001);
    service.open(&Caller::anonymous(), "guess-1999").expect_err("it does not exist");
    assert_eq!(usage.drain().first_key_value().map(|(key, _)| key.prompt.clone()).as_deref(), Some("guess-1999"));
}

#[tokio::test]
async fn unknown_arguments_are_counted_and_can_be_refused() {
    let ask = PromptDefinition::template("ask", "{{ framework }}").argument(ArgumentDefinition::new("framework"));
    let usage = Usage::new();
    let service = service(prompts([ask])).with_usage(&usage, "");
    let caller = Caller::local();
    let typo = RawArguments::from_iter([("framwork", "axum")]);
    service.get(&caller, "ask", &typo).await.expect("it is ignored");
    let open = service.open(&caller, "ask").expect("it exists");
    let refused = open.refuse_unknown(&typo).expect_err("it is unknown");
    assert_eq!(
        refused.to_string(),
        "The prompt ask cannot be used with these arguments: `framwork` is not an argument of this prompt; did you mean \
         `framework`?"
    );
    let known = RawArguments::from_iter([("framework", "axum")]);
    let open = service.open(&caller, "ask").and_then(|open| open.refuse_unknown(&known)).expect("it is known");
    service.render(open, &known).await.expect("it renders");
    let drained = usage.drain();
    let of = |outcome: &str| drained.iter().find(|(key, _)| key.outcome == outcome).expect(outcome).1;
    assert_eq!((of("ok").count, of("ok").unknown_arguments), (2, 1));
    assert_eq!((of("invalid-arguments").count, of("invalid-arguments").unknown_arguments), (1, 1));
}

#[tokio::test]
async fn former_names_are_served_by_the_rules_of_the_prompt_and_counted() {
    let closed = Access { scopes: vec!["s".to_owned()], ..Access::default() };
    let new = PromptDefinition::template("new", "Hello").alias("old").alias("older");
    let hidden = PromptDefinition::template("hidden", "Secret").alias("was-hidden").access(closed);
    let taken = PromptDefinition::template("old-and-used", "Other");
    let shadow = PromptDefinition::template("shadow", "S").alias("old-and-used");
    let usage = Usage::new();
    let service = service(prompts([new, hidden, taken, shadow])).with_usage(&usage, "");
    let stranger = Caller::anonymous();
    let nothing = RawArguments::new();
    for name in ["old", "older", "new"] {
        let answer = service.get(&stranger, name, &nothing).await.expect("it is served");
        assert_eq!(answer.value().prompt.name().as_str(), "new");
        assert_eq!(answer.value().alias.as_deref(), (name != "new").then_some(name));
    }
    let answer = service.get(&stranger, "old-and-used", &nothing).await.expect("it is served");
    assert_eq!((answer.value().prompt.name().as_str(), &answer.value().alias), ("old-and-used", &None));
    let refused = service.get(&stranger, "was-hidden", &nothing).await.expect_err("it is hidden");
    assert_eq!(refused, Rejection::UnknownPrompt { name: "was-hidden".to_owned() });
    let drained = usage.drain();
    let counted: Vec<_> = drained.keys().map(|key| (key.prompt.as_str(), key.outcome.as_str())).collect();
    assert_eq!(
        counted,
        [("new", "ok"), ("old", "ok"), ("old-and-used", "ok"), ("older", "ok"), ("was-hidden", "unknown-prompt")]
    );
}

// req: S-186
#[tokio::test]
async fn keys_are_bounded_and_each_call_is_counted_or_lost() {
    let names: Vec<String> = (0..17_000).map(|number| format!("prompt-{number}")).collect();
    let definitions = names.iter().map(|name| PromptDefinition::template(name.clone(), "Say hello."));
    let usage = Usage::new();
    let service = service(prompts(definitions)).with_usage(&usage, "");
    for name in &names {
        service.describe(&Caller::local(), name).expect("it exists");
    }
    let drained = usage.drain();
    let counted: u64 = drained.values().map(|figures| figures.count).sum();
    assert_eq!(drained.len(), 16_000);
    assert_eq!(counted + usage.lost(), 17_000);
}

// req: S-185
#[tokio::test]
async fn million_names_of_clients_are_bounded_and_each_call_is_counted() {
    let usage = Usage::new();
    let service = service(prompts([PromptDefinition::template("it", "Say hello.")])).with_usage(&usage, "");
    let (mut clients, mut calls) = (BTreeMap::new(), 0);
    for number in 0..1_000_000 {
        let tag = usage.client(&format!("client-{number}/1"), "http");
        if number % 250 == 0 {
            service.describe(&Caller::local().with_client(tag), "it").expect("it exists");
            calls += 1;
        }
        if number % 500_000 == 499_999 {
            for (key, figures) in usage.drain() {
                *clients.entry(key.client).or_insert(0) += figures.count;
            }
        }
    }
    // Two of the 500 names that are known at a time called, and again after the drain.
    assert_eq!(
        clients.keys().collect::<Vec<_>>(),
        ["client-0", "client-250", "client-500000", "client-500250", "other"]
    );
    assert_eq!((clients.values().sum::<u64>(), usage.lost()), (calls, 0));
}

#[tokio::test]
async fn previews_are_not_calls() {
    let usage = Usage::new();
    let service = service(prompts([PromptDefinition::template("ask", "Hi")])).with_usage(&usage, "");
    for (client, calls) in [("promptshelf-preview", 0), ("promptshelf-web", 1)] {
        let tag = usage.client(&format!("{{\"name\":\"{client}\",\"version\":\"1\"}}"), "2026-07-28");
        service.get(&caller(0).with_client(tag), "ask", &RawArguments::new()).await.expect("it renders");
        assert_eq!(usage.drain().len(), calls, "{client}");
    }
}

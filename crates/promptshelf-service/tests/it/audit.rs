//! Audit records: their members, and data that must not appear.

use std::sync::{Arc, Mutex};

use promptshelf_core::{
    ArgumentDefinition, CatalogHandle, CatalogProvenance, Definitions, PromptDefinition, PromptProvenance, Provenance,
    RawArguments, RenderError, Variables, check, cursor::ListKind,
};
use promptshelf_service::{Caller, Limits, Recorder, Reference, Service};
use serde_json::{Value, json};

use crate::library::{definitions, known};

const SECRET: &str = "hunter2-hunter2";

#[derive(Debug, Default)]
struct Memory(Mutex<Vec<String>>);

impl Recorder for Memory {
    fn record(&self, line: String) {
        self.0.lock().expect("no panic").push(line);
    }
}

impl Memory {
    fn records(&self) -> Vec<Value> {
        let lines = std::mem::take(&mut *self.0.lock().expect("no panic"));
        lines.iter().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }
}

fn audited(definitions: Definitions) -> (Service, Arc<Memory>) {
    let checked = check(definitions, None);
    assert!(checked.diagnostics.is_empty(), "{:?}", checked.diagnostics);
    let memory = Arc::new(Memory::default());
    (Service::new(CatalogHandle::new(checked.catalog)).with_audit(memory.clone()), memory)
}

fn sensitive() -> Definitions {
    let argument = |name: &str| ArgumentDefinition::new(name).description(name.to_uppercase());
    let mut token = argument("token");
    token.sensitive = true;
    token.constraints.get_or_insert_default().max_length = Some(40);
    let mut language = argument("language");
    language.audit = true;
    let echoing = |wrong: bool| {
        move |arguments: &promptshelf_core::Bindings| {
            let text = format!("cannot use {}", arguments.text("token"));
            Err(if wrong { RenderError::Failed(text) } else { RenderError::Rejected(text) })
        }
    };
    let with = |prompt: PromptDefinition| {
        prompt.description("D").argument(token.clone()).argument(language.clone()).argument(argument("text"))
    };
    let template = with(PromptDefinition::template("good", "{{ token }} {{ language }} {{ text }}"));
    let rejecting = with(PromptDefinition::new("rejecting", echoing(false)));
    let failing = with(PromptDefinition::new("failing", echoing(true)));
    Definitions::from_iter([template, rejecting, failing])
}

// req: S-26
#[tokio::test]
async fn every_operation_leaves_one_record() {
    let (service, memory) = audited(definitions());
    let caller = known("ada", &[], &[]).with_address("10.0.0.7".parse().expect("an address")).with_request(0xab);
    let one = |memory: &Memory| {
        let records = memory.records();
        assert_eq!(records.len(), 1, "{records:?}");
        records.into_iter().next().expect("one")
    };
    service.get(&caller, "open", &RawArguments::from_iter([("x", "one")])).await.expect("an answer");
    let record = one(&memory);
    let digest = record["digest"].as_str().expect("a digest");
    assert!(digest.len() == 64 && record["time"].as_str().is_some() && record["milliseconds"].as_f64().is_some());
    for (key, value) in [
        ("request", json!("00000000000000ab")),
        ("caller", json!("ada")),
        ("address", json!("10.0.0.7")),
        ("method", json!("get")),
        ("prompt", json!("open")),
        ("generation", json!(0)),
        ("outcome", json!("ok")),
        ("bytesIn", json!(3)),
        ("bytesOut", json!("open: one".len())),
    ] {
        assert_eq!(record[key], value, "{key} of {record}");
    }

    service.get(&caller, "scoped", &RawArguments::new()).await.expect_err("hidden");
    assert_eq!(one(&memory)["outcome"], "unknown-prompt");
    service.get(&caller, "shown", &RawArguments::new()).await.expect_err("a scope is missing");
    assert_eq!(one(&memory)["outcome"], "insufficient-scope");
    service.list(&caller, ListKind::Prompts, None).map(drop).expect("a page");
    assert_eq!((one(&memory)["list"].clone(), one_or_none(&memory)), (json!("prompts"), None));
    let completed = service.complete(&caller, Reference::Prompt("open"), "x", "o", &Variables::new()).await;
    completed.map(drop).expect("suggestions");
    assert_eq!(one(&memory)["argument"], "x");
    service.read(&caller, "docs://nothing").await.map(drop).expect_err("nothing");
    assert_eq!(one(&memory)["outcome"], "unknown-resource");
    drop(service.open(&caller, "open").expect("a prompt"));
    assert_eq!(one(&memory)["outcome"], "asked");
    drop(service.subscribe(&caller));
    assert_eq!(one(&memory)["method"], "subscribe");

    let few = service.with_limits(&Limits { requests_per_minute: std::num::NonZeroU32::MIN, ..Limits::default() });
    few.list(&caller, ListKind::Prompts, None).map(drop).expect("a page");
    few.list(&caller, ListKind::Prompts, None).map(drop).expect_err("too many");
    assert_eq!(memory.records()[1]["outcome"], "too-many-requests");
}

fn one_or_none(memory: &Memory) -> Option<Value> {
    memory.records().pop()
}

#[tokio::test]
async fn dropped_request_is_recorded_as_cancelled() {
    let mut definitions = Definitions::default();
    let waiting = PromptDefinition::new_async("waiting", |_| std::future::pending()).description("Waits");
    definitions.prompts.push(waiting.into());
    let (service, memory) = audited(definitions);
    let (caller, arguments) = (Caller::local(), RawArguments::new());
    {
        let asking = service.get(&caller, "waiting", &arguments);
        tokio::pin!(asking);
        assert!(futures_executor_poll(asking).is_none());
    }
    assert_eq!(memory.records()[0]["outcome"], "cancelled");
}

/// Polls a future once.
fn futures_executor_poll<F: Future>(future: std::pin::Pin<&mut F>) -> Option<F::Output> {
    match future.poll(&mut std::task::Context::from_waker(std::task::Waker::noop())) {
        std::task::Poll::Ready(output) => Some(output),
        std::task::Poll::Pending => None,
    }
}

// req: S-27, S-33
#[tokio::test]
async fn values_are_recorded_only_with_consent() {
    let (service, memory) = audited(sensitive());
    let long = format!("{SECRET}{}", "x".repeat(40));
    let caller = Caller::local();
    // The prompt receives the value without the invisible character, and repeats it.
    let spread = format!("{}\u{200b}{}", &SECRET[..3], &SECRET[3..]);
    let requests =
        [("good", SECRET), ("rejecting", SECRET), ("failing", SECRET), ("good", &long), ("rejecting", &spread)];
    for (prompt, token) in requests {
        let arguments = RawArguments::from_iter([("token", token), ("language", "rust"), ("text", "private words")]);
        if let Err(rejection) = service.get(&caller, prompt, &arguments).await {
            assert!(!rejection.to_string().contains(SECRET), "{rejection}");
            assert!(!format!("{rejection:?}").contains(SECRET), "{rejection:?}");
        }
        let record = memory.records().pop().expect("a record");
        let text = record.to_string();
        assert!(!text.contains(SECRET) && !text.contains("private"), "{text}");
        assert_eq!(record["arguments"], json!({ "language": "rust" }));
    }
}

#[test]
fn secret_is_neither_recorded_nor_asked_for() {
    for set in
        [(|argument: &mut ArgumentDefinition| argument.audit = true) as fn(&mut ArgumentDefinition), |argument| {
            argument.ask = true;
        }]
    {
        let mut argument = ArgumentDefinition::new("token").description("T");
        argument.sensitive = true;
        set(&mut argument);
        let prompt = PromptDefinition::template("p", "{{ token }}").description("P").argument(argument);
        let checked = check(Definitions::from_iter([prompt]), None);
        assert!(checked.catalog.prompts().is_empty() && checked.diagnostics[0].is_error());
    }
}

/// Processor time that this thread has used, in nanoseconds; independent of other programs.
#[cfg(target_os = "linux")]
fn thread_time() -> u64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    stat.split(' ').next().and_then(|time| time.parse().ok()).expect("a number")
}

// req: S-53
#[cfg(target_os = "linux")]
#[tokio::test]
async fn recording_takes_linear_time_in_the_number_of_names() {
    let (service, memory) = audited(definitions());
    let names: Vec<String> = (0..40_000).map(|number| format!("a{number}")).collect();
    let mut cost = Vec::new();
    for count in [2_000, 40_000] {
        let arguments = RawArguments::from_iter(names[..count].iter().map(|name| (name.as_str(), "")));
        let mut least = u64::MAX;
        for _ in 0..3 {
            let before = thread_time();
            service.get(&Caller::local(), "open", &arguments).await.expect("an answer");
            least = least.min(thread_time() - before);
        }
        cost.push(least);
    }
    assert_eq!(memory.records().len(), 6);
    // 20 times as many names; a look-up that scans, called for each name, would take 400 times as long.
    assert!(cost[1] < cost[0].max(500_000) * 100, "{cost:?} ns");
}

// req: S-26, S-92
#[tokio::test]
async fn records_of_a_channel_have_the_provenance() {
    let mut provenance = Provenance::new("production", 7);
    provenance.insert("open", PromptProvenance::new(3, [0xab; 32], ["Ada\n{\"forged\":1}"]));
    // Records have it, whether or not clients see it.
    let provenance = CatalogProvenance { source: 0, provenance: Arc::new(provenance), is_shown: false };
    let catalog = check(definitions(), None).catalog.with_generation(Some(7)).with_provenance(Some(provenance));
    let memory = Arc::new(Memory::default());
    let service = Service::new(CatalogHandle::new(catalog)).with_audit(memory.clone());
    let caller = known("ada", &[], &[]);
    service.get(&caller, "open", &RawArguments::from_iter([("x", "one")])).await.expect("an answer");
    service.list(&caller, ListKind::Prompts, None).map(drop).expect("a page");
    let records = memory.records();
    for (key, value) in [
        ("channel", json!("production")),
        ("generation", json!(7)),
        ("promptVersion", json!(3)),
        ("promptDigest", json!("ab".repeat(32))),
        ("approvedBy", json!(["Ada{\"forged\":1}"])),
    ] {
        assert_eq!(records[0][key], value, "{key} of {}", records[0]);
    }
    assert_eq!((&records[1]["channel"], &records[1]["generation"]), (&json!("production"), &json!(7)));
    assert_eq!(records.len(), 2);
}

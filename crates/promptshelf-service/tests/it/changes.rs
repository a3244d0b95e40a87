//! Catalogs that are replaced during requests.

use std::sync::Arc;

use promptshelf_core::{
    ArgumentDefinition, CatalogHandle, ContentBlock, Definitions, PromptDefinition, RawArguments, ResourceBody,
    ResourceContent,
};
use promptshelf_service::{Caller, Service};
use tokio::sync::{
    Semaphore,
    broadcast::error::{RecvError, TryRecvError},
};

use crate::{catalog, prompts, resource};

#[tokio::test]
async fn every_receiver_gets_change_once() {
    let handle = CatalogHandle::new(catalog(prompts([])));
    let service = Service::new(handle.clone());
    handle.replace(catalog(prompts([])));
    let (mut one, mut two) = (service.changes(), service.clone().changes());
    let change = handle.replace(catalog(prompts([PromptDefinition::template("a", "x")])));
    for listener in [&mut one, &mut two] {
        assert_eq!(listener.recv().await, Ok(change.clone()));
        assert_eq!(listener.try_recv(), Err(TryRecvError::Empty));
    }
    assert!(change.prompts);
    assert_eq!(change.generation, 2);
}

#[tokio::test]
async fn lagging_receiver_is_notified() {
    let handle = CatalogHandle::new(catalog(prompts([])));
    let service = Service::new(handle.clone());
    let mut listener = service.changes();
    for _ in 0..100 {
        handle.touch();
    }
    assert!(matches!(listener.recv().await, Err(RecvError::Lagged(_))));
    assert!(listener.recv().await.is_ok_and(|change| change.contents && !change.prompts));
}

#[test]
fn changes_need_no_receiver() {
    let handle = CatalogHandle::new(catalog(prompts([])));
    let service = Service::new(handle.clone());
    drop(service.changes());
    handle.replace(catalog(prompts([PromptDefinition::template("a", "x")])));
    assert_eq!(service.catalog().generation(), 1);
}

/// A library with the same number in every prompt.
fn numbered(number: usize) -> Definitions {
    let text = format!("{number} {{{{ attach('docs://number') }}}}");
    let body = ResourceBody::Text(number.to_string().into());
    Definitions {
        resources: vec![resource("docs://number", ResourceContent::Fixed(body))],
        ..prompts([PromptDefinition::template("number", text)])
    }
}

// req: R-14, X26
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn request_uses_one_catalog() {
    let handle = CatalogHandle::new(catalog(numbered(0)));
    let service = Service::new(handle.clone());
    let asking: Vec<_> = (0..4)
        .map(|_| {
            let service = service.clone();
            tokio::spawn(async move {
                for _ in 0..300 {
                    let answer = service.get(&Caller::local(), "number", &RawArguments::new()).await.expect("a prompt");
                    let texts: Vec<String> =
                        answer.value().messages.iter().map(|message| text(&message.content)).collect();
                    assert_eq!(texts[0], texts[1]);
                    tokio::task::yield_now().await;
                }
            })
        })
        .collect();
    for number in 1..100 {
        handle.replace(catalog(numbered(number)));
        tokio::task::yield_now().await;
    }
    for task in asking {
        task.await.expect("every answer is of one catalog");
    }
}

fn text(content: &ContentBlock) -> String {
    match content {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Resource(resource) => match &resource.contents.body {
            ResourceBody::Text(text) => text.to_string(),
            ResourceBody::Blob(_) => panic!("it is text"),
        },
        other => panic!("{other:?}"),
    }
}

// req: X26
#[tokio::test]
async fn waiting_prompt_keeps_its_catalog() {
    let gate = Arc::new(Semaphore::new(0));
    let waiting = Arc::clone(&gate);
    let slow = PromptDefinition::new_async("slow", move |arguments| {
        let gate = Arc::clone(&waiting);
        async move {
            let _permit = gate.acquire().await;
            Ok(vec![promptshelf_core::Message::user(arguments.text("x"))])
        }
    });
    let handle = CatalogHandle::new(catalog(prompts([slow.argument(ArgumentDefinition::new("x"))])));
    let service = Service::new(handle.clone());
    let arguments = RawArguments::from_iter([("x", "before")]);
    let caller = Caller::local();
    let (answer, ()) = tokio::join!(service.get(&caller, "slow", &arguments), async {
        handle.replace(catalog(prompts([])));
        gate.add_permits(1);
    });
    assert_eq!(answer.expect("it began before").into_value().messages, [promptshelf_core::Message::user("before")]);
    assert!(service.get(&Caller::local(), "slow", &RawArguments::new()).await.is_err());
}

//! Rendering of prompts from templates and code, and all its errors.

use std::sync::Arc;

use promptshelf_core::{
    Annotations, ArgumentDefinition, ArgumentType, Blob, Budget, ContentBlock, Definitions, EmbeddedResource, Icon,
    Media, Message, MimeType, Policy, PromptDefinition, RawArguments, RenderError, ResourceBody, ResourceContent,
    ResourceContents, ResourceLink, Role, Text, Value,
};
use promptshelf_service::{Caller, Rejection, Service};

use crate::{prompts, resource, service};

async fn get(service: &Service, name: &str, arguments: &[(&str, &str)]) -> Result<Vec<Message>, Rejection> {
    let answer = service
        .get(&Caller::local(), name, &arguments.iter().copied().collect::<RawArguments<'_>>())
        .await?
        .into_value();
    assert_eq!(answer.prompt.name().as_str(), name);
    Ok(answer.messages)
}

fn sentence(answer: Result<Vec<Message>, Rejection>) -> String {
    answer.expect_err("it is rejected").to_string()
}

fn hello() -> PromptDefinition {
    PromptDefinition::template("hello", "Hello {{ name }}!").argument(ArgumentDefinition::new("name").required())
}

#[tokio::test]
async fn template_is_rendered() {
    let service = service(prompts([hello()]));
    assert_eq!(get(&service, "hello", &[("name", "Ada")]).await, Ok(vec![Message::user("Hello Ada!")]));
}

#[tokio::test]
async fn code_prompt_gets_checked_values() {
    let add = PromptDefinition::new("add", |arguments| {
        let number = |name| match arguments.get(name) {
            Some(Value::Integer(number)) => *number,
            other => panic!("{other:?} is no number"),
        };
        Ok(vec![Message::user(format!("{}", number("a") + number("b"))), Message::assistant("Sure?")])
    });
    let integer = |name| ArgumentDefinition::new(name).kind(ArgumentType::Integer);
    let service = service(prompts([add.argument(integer("a").required()).argument(integer("b").default_value("40"))]));
    let messages = get(&service, "add", &[("a", "2")]).await;
    assert_eq!(messages, Ok(vec![Message::user("42"), Message::assistant("Sure?")]));
    assert_eq!(
        sentence(get(&service, "add", &[("a", "x"), ("b", "y")]).await),
        "The prompt add cannot be used with these arguments: `a` must be a whole number, such as 42; \
         `b` must be a whole number, such as 42"
    );
}

#[tokio::test]
async fn code_prompt_may_wait() {
    let (sender, receiver) = tokio::sync::watch::channel("");
    let slow = PromptDefinition::new_async("slow", move |arguments| {
        let mut receiver = receiver.clone();
        async move {
            let word = receiver.wait_for(|word| !word.is_empty()).await;
            let word = *word.map_err(|error| RenderError::Failed(error.to_string()))?;
            Ok(vec![Message::user(format!("{word} {}", arguments.text("name")))])
        }
    });
    let service = service(prompts([slow.argument(ArgumentDefinition::new("name"))]));
    let (messages, ()) = tokio::join!(get(&service, "slow", &[("name", "Ada")]), async {
        sender.send("Hello").expect("a waiting prompt");
    });
    assert_eq!(messages, Ok(vec![Message::user("Hello Ada")]));
}

// req: C7
#[tokio::test]
async fn failures_map_to_rejections() {
    let failing = |name: &str, error: RenderError| PromptDefinition::new(name, move |_| Err(error.clone()));
    let service = service(prompts([
        failing("rejected", RenderError::Rejected("there is no branch of this name".into())),
        failing("over", RenderError::OverBudget("5 messages".into())),
        failing("failed", RenderError::Failed("the password of the database is wrong".into())),
    ]));
    assert_eq!(
        sentence(get(&service, "rejected", &[]).await),
        "The prompt rejected cannot be used with these arguments: there is no branch of this name"
    );
    assert_eq!(
        sentence(get(&service, "over", &[]).await),
        "The prompt over cannot be used with these arguments: it would take more than the library allows: 5 messages"
    );
    assert_eq!(get(&service, "failed", &[]).await, Err(Rejection::Internal));
    assert_eq!(sentence(get(&service, "failed", &[]).await), "Internal error; see the server's log");
}

// req: C7, N8
#[tokio::test]
async fn failing_template_reveals_nothing() {
    let broken = |name: &str, text: &str| {
        PromptDefinition::template(name, text).argument(ArgumentDefinition::new("n").kind(ArgumentType::Json))
    };
    let cut = |by: &str| format!("x{{% set mark = role('user') %}}{{{{ mark[{by}:] }}}}");
    let service = service(prompts([broken("cuts", &cut("n")), broken("fails", &cut("1"))]));
    assert_eq!(get(&service, "cuts", &[("n", "0")]).await, Ok(vec![Message::user("x")]));
    for value in ["1", "20"] {
        assert_eq!(
            sentence(get(&service, "cuts", &[("n", value)]).await),
            "The prompt cuts cannot be used with these arguments: its template fails with these values; see the server's log"
        );
    }
    // Without arguments the caller cannot be the cause.
    assert_eq!(get(&service, "fails", &[]).await, Err(Rejection::Internal));
}

#[tokio::test]
async fn code_prompt_has_same_bounds() {
    let budget = Budget { messages: 2, output_bytes: 10, attachment_bytes: 10, ..Budget::default() };
    let repeated = |name: &str, count: usize, bytes: usize| {
        PromptDefinition::new(name, move |_| Ok(vec![Message::user("x".repeat(bytes)); count]))
    };
    let service = service(Definitions {
        policy: Policy { budget, ..Policy::default() },
        ..prompts([repeated("few", 2, 10), repeated("many", 3, 1), repeated("long", 1, 21)])
    });
    assert!(get(&service, "few", &[]).await.is_ok());
    for name in ["many", "long"] {
        assert!(matches!(get(&service, name, &[]).await, Err(Rejection::UnusableArguments { .. })), "{name}");
    }
}

// req: R-13
#[tokio::test]
async fn unknown_prompt_echo_is_shortened() {
    let service = service(prompts([hello()]));
    assert_eq!(sentence(get(&service, "helo", &[]).await), "Unknown prompt: helo");
    assert_eq!(sentence(get(&service, "Hello", &[]).await), "Unknown prompt: Hello");
    let long = sentence(get(&service, &"ü".repeat(10_000), &[]).await);
    assert_eq!(long, format!("Unknown prompt: {}…", "ü".repeat(64)));
    let anonymous = service.get(&Caller::anonymous(), "helo", &RawArguments::new()).await;
    assert_eq!(anonymous.expect_err("it is unknown").to_string(), "Unknown prompt: helo");
}

#[tokio::test]
async fn missing_argument_suggests_similar_name() {
    let service = service(prompts([hello()]));
    assert_eq!(
        sentence(get(&service, "hello", &[("nmae", "Ada")]).await),
        "The prompt hello cannot be used with these arguments: `name` is required; did you misspell it as `nmae`?"
    );
}

#[tokio::test]
async fn value_length_follows_policy() {
    let policy = Policy { value_bytes: 3, ..Policy::default() };
    let service = service(Definitions { policy, ..prompts([hello()]) });
    assert!(get(&service, "hello", &[("name", "Ada")]).await.is_ok());
    let rejection = get(&service, "hello", &[("name", "Adam")]).await;
    assert!(sentence(rejection).ends_with("`name` is longer than 3 bytes"));
}

fn attaching(template: &str, attachment_bytes: usize) -> Service {
    let text = |text: &str| ResourceContent::Fixed(ResourceBody::Text(text.into()));
    let prompt = PromptDefinition::template("attach", template).argument(ArgumentDefinition::new("uri"));
    let budget = Budget { attachment_bytes, ..Budget::default() };
    service(Definitions {
        resources: vec![
            resource("docs://style", text("Write plainly.")),
            resource("docs://{page}", ResourceContent::Template("Page {{ page }}.".into())),
        ],
        policy: Policy { budget, ..Policy::default() },
        ..prompts([prompt])
    })
}

// req: D5, J12
#[tokio::test]
async fn attached_resources_are_embedded() {
    let service =
        attaching("Before {{ attach('docs://style', priority=1) }} {{ attach(uri, uri='x:y', mime='text/a') }}", 100);
    let messages = get(&service, "attach", &[("uri", "docs://one")]).await.expect("it is good");
    let [_, ContentBlock::Resource(style), ContentBlock::Resource(page)] =
        &messages.iter().map(|message| message.content.clone()).collect::<Vec<_>>()[..]
    else {
        panic!("{messages:?}");
    };
    assert_eq!((&*style.contents.uri, style.contents.mime_type.as_str()), ("docs://style", "text/plain"));
    assert_eq!(style.annotations.priority, Some(1.0));
    assert_eq!((&*page.contents.uri, page.contents.mime_type.as_str()), ("x:y", "text/a"));
    assert_eq!(page.contents.body, ResourceBody::Text(Arc::from("Page one.")));
}

// req: C14, J12, R-1
#[tokio::test]
async fn only_resources_of_this_server_are_embedded() {
    let service = attaching("{{ attach(uri) }}", 100);
    for uri in ["file:///etc/passwd", "http://169.254.169.254/", "docs://a/b"] {
        assert_eq!(
            sentence(get(&service, "attach", &[("uri", uri)]).await),
            format!("The prompt attach cannot be used with these arguments: Resource not found: {uri}")
        );
    }
    let nothing = sentence(get(&service, "attach", &[]).await);
    assert!(nothing.ends_with("attachment `` not found for these arguments"), "{nothing}");
}

#[tokio::test]
async fn attachments_share_one_limit() {
    let twice = "{{ attach('docs://style') }}{{ attach('docs://style') }}";
    assert!(get(&attaching(twice, 28), "attach", &[]).await.is_ok());
    let rejection = sentence(get(&attaching(twice, 27), "attach", &[]).await);
    assert!(rejection.ends_with("its attachments would be larger than 27 bytes"), "{rejection}");
}

// req: DC3
#[tokio::test]
async fn resolve_links_embeds_small_readable_targets() {
    let template = "{{ link('docs://style') }}{{ link('docs://a/b') }}{{ link('https://example.com/') }}";
    let service = attaching(template, 100);
    let targets = async |most_bytes| {
        let mut answer = service.get(&Caller::local(), "attach", &RawArguments::new()).await.expect("it is good");
        answer.resolve_links(most_bytes).await;
        let links = answer.into_value().messages.into_iter().map(|message| match message.content {
            ContentBlock::Link(link) => link.target.map(|target| target.body.len()),
            other => panic!("{other:?}"),
        });
        links.collect::<Vec<_>>()
    };
    let [Some(length), None, None] = targets(1_000).await[..] else { panic!("only the first one can be read") };
    assert_eq!(targets(length).await, [Some(length), None, None]);
    assert_eq!(targets(length - 1).await, [None, None, None], "a larger one stays a link");
}

/// Blocks of a prompt in code that clients cannot use, or that they might execute.
fn unusable() -> Vec<(&'static str, ContentBlock)> {
    let media = || Media {
        data: Blob::new(vec![1, 2]),
        mime_type: MimeType::plain_text(),
        annotations: Annotations::default(),
    };
    let embedded = |uri: &str| {
        let contents = ResourceContents {
            uri: uri.into(),
            mime_type: MimeType::plain_text(),
            body: ResourceBody::Text("x".into()),
        };
        ContentBlock::Resource(EmbeddedResource { contents, annotations: Annotations::default() })
    };
    let link = |uri: &str, icon: Option<&str>| {
        ContentBlock::Link(Box::new(ResourceLink {
            uri: uri.into(),
            name: "x".into(),
            title: None,
            description: None,
            mime_type: None,
            size: None,
            icons: icon.map(Icon::new).into_iter().collect(),
            annotations: Annotations::default(),
            target: None,
        }))
    };
    let urgent = Annotations { priority: Some(1.5), ..Annotations::default() };
    vec![
        ("Internal error", ContentBlock::Image(media())),
        ("Internal error", ContentBlock::Audio(media())),
        ("Internal error", ContentBlock::Text(Text { text: "x".into(), annotations: urgent })),
        ("Internal error", link("docs://a", Some("data:image/png;base64,%%%"))),
        ("expected a URI", embedded("no uri")),
        ("`javascript` are not allowed", embedded("javascript:alert(1)")),
        ("expected a URI", link("/relative", None)),
        ("`data` are not allowed", link("data:text/html,x", None)),
    ]
}

// req: D2, D3, D5, D12, R-1, S-34
#[tokio::test]
async fn code_prompt_output_is_checked() {
    for (expected, block) in unusable() {
        let kind = block.kind();
        let prompt = PromptDefinition::new("code", move |_| {
            Ok(vec![Message::user("Look:"), Message { role: Role::User, content: block.clone() }])
        });
        let refused = sentence(get(&service(prompts([prompt])), "code", &[]).await);
        assert!(refused.contains(expected), "{kind}: {refused}");
    }
}

#[tokio::test]
async fn rejection_names_invisible_characters() {
    let service = service(prompts([hello()]));
    assert_eq!(sentence(get(&service, "he\u{202e}llo", &[]).await), "Unknown prompt: he<U+202E>llo");
}

//! Lists, templates, renderings, versions and caching.

use promptshelf_server::http::{Options, router};
use promptshelf_source::{Files, MemoryTree};
use serde_json::json;

use super::{Answer, Library, Site, answer, publish, sign_in};

const GREET: &str = "---\ndescription: Greets\narguments:\n  - name: name\n    required: true\n  - name: key\n    sensitive: true\n---\n\
                     Hello, {{ name }}!{{ key }}\n";

/// The answers of a server whose library is not a channel.
async fn folder(files: &[(&str, &str)], signed_in: bool, path: &str, headers: &[(&str, &str)]) -> Answer {
    let tree: MemoryTree = files.iter().copied().collect();
    let library = Library::builder().source(Files::tree(tree)).build().expect("a library");
    let mut options = Options::default();
    options.sign_in = signed_in.then(sign_in);
    answer(&router(&library, &options), path, headers).await
}

#[tokio::test]
async fn folder_answers_without_channels_and_versions() {
    let files = [("greet.md", GREET), ("other.md", "Other.\n")];
    let get = |path: &'static str| folder(&files, false, path, &[]);
    let list = get("/api/v1/prompts").await.expect(200).json();
    assert_eq!((&list["channel"], &list["next"]), (&json!(null), &json!(null)));
    assert_eq!((&list["items"][0]["name"], &list["items"][1]["name"]), (&json!("greet"), &json!("other")));

    let prompt = get("/api/v1/prompts/greet").await.expect(200);
    assert_eq!(prompt.header("cache-control"), "public, max-age=0, stale-while-revalidate=60");
    let tag = prompt.header("etag").to_owned();
    let prompt = prompt.json();
    assert_eq!(prompt["template"], "Hello, {{ name }}!{{ key }}\n");
    assert_eq!((&prompt["version"], &prompt["arguments"][0]["required"]), (&json!(null), &json!(true)));
    assert_eq!(prompt["arguments"][1]["sensitive"], true);
    assert!(prompt.get("messages").is_none(), "{prompt}");
    let known = folder(&files, false, "/api/v1/prompts/greet", &[("if-none-match", &tag)]).await.expect(304);
    assert_eq!(known.header("cache-control"), "public, max-age=0, stale-while-revalidate=60");

    let rendered = get("/api/v1/prompts/greet?rendered=true&arguments.name=Ada%20%26%20Bob").await.expect(200).json();
    let message = json!({ "role": "user", "content": { "type": "text", "text": "Hello, Ada & Bob!" } });
    assert_eq!(rendered["messages"], json!([message]));
    assert!(rendered.get("template").is_none(), "{rendered}");

    for (path, status, part) in [
        ("/api/v1/prompts/greet?channel=production", 400, "leave `channel` out"),
        ("/api/v1/prompts/greet?version=1", 400, "leave `version` out"),
        ("/api/v1/prompts/greet?rendred=true", 400, "`rendred` is unknown"),
        ("/api/v1/prompts/greet?arguments.name=x", 400, "rendered=true"),
        ("/api/v1/prompts/greet?rendered=true", 422, "name"),
        ("/api/v1/prompts/greet?rendered=true&arguments.name=x&arguments.kez=y", 422, "did you mean `key`?"),
        ("/api/v1/prompts/none", 404, "Unknown prompt: none"),
        ("/api/v1/prompts?cursor=x", 400, "cursor"),
        ("/api/v1/prompts?limit=0", 400, "limit"),
        ("/api/v1/prompts?limits=5", 400, "limits"),
        ("/api/v1/channels/production/events", 400, "no channels"),
        ("/api/v1/channels", 404, "path"),
    ] {
        let detail = get(path).await.detail(status);
        assert!(detail.contains(part), "{path}: {detail}");
    }
}

#[tokio::test]
async fn rendering_takes_long_and_sensitive_values_in_its_body() {
    let tree: MemoryTree = [("greet.md", GREET)].into_iter().collect();
    let library = Library::builder().source(Files::tree(tree)).build().expect("a library");
    let router = router(&library, &Options::default());
    let post = async |path: &str, body: serde_json::Value| {
        let request =
            axum::http::Request::post(path).header("host", "localhost").header("content-type", "application/json");
        let request = request.body(axum::body::Body::from(body.to_string())).expect("a request");
        let response = tower::ServiceExt::oneshot(router.clone(), request).await.expect("a router never fails");
        let (head, body) = response.into_parts();
        Answer { status: head.status.as_u16(), headers: head.headers, body: crate::text(body).await }
    };
    let path = "/api/v1/prompts/greet/render";
    let long = "x".repeat(200_000);
    let rendered = post(path, json!({ "arguments": { "name": long, "key": "hush" } })).await.expect(200);
    assert_eq!(rendered.header("cache-control"), "no-store");
    assert_eq!(rendered.json()["messages"][0]["content"]["text"], format!("Hello, {long}!hush"));
    for (path, body, status, part) in [
        (path, json!({}), 422, "name"),
        (path, json!({ "arguments": { "name": "x", "nmae": "y" } }), 422, "did you mean `name`?"),
        (path, json!({ "arguments": { "name": 1 } }), 400, "expected a string"),
        (path, json!({ "argument": {} }), 400, "unknown field `argument`"),
        (path, json!({ "arguments": { "name": "x" }, "channel": "production" }), 400, "leave `channel` out"),
        (path, json!({ "arguments": { "name": "x" }, "version": 1 }), 400, "leave `version` out"),
        ("/api/v1/prompts/none/render", json!({}), 404, "Unknown prompt: none"),
    ] {
        let detail = post(path, body.clone()).await.detail(status);
        assert!(detail.contains(part), "{body}: {detail}");
    }
}

// req: S-181
#[tokio::test]
async fn sensitive_arguments_are_refused_in_urls() {
    let path = "/api/v1/prompts/greet?rendered=true&arguments.name=x&arguments.key=hush";
    let refused = folder(&[("greet.md", GREET)], false, path, &[]).await.expect(400);
    assert!(refused.body.contains("`key` is sensitive") && !refused.body.contains("hush"), "{refused:?}");
}

// req: S-180
#[tokio::test]
async fn hidden_prompt_equals_missing_prompt() {
    let rules = "[[access]]\nprompts = [\"greet\"]\nroles = [\"editor\"]\n";
    let files = [("greet.md", GREET), ("open.md", "Open.\n"), ("promptshelf.toml", rules)];
    for query in ["", "?rendered=true&arguments.name=x", "?rendered=true&arguments.name=x&arguments.key=y"] {
        let bob = [("authorization", "Bearer psk_bob")];
        let path = format!("/api/v1/prompts/greet{query}");
        let hidden = folder(&files, true, &path, &bob).await.detail(404);
        let missing = folder(&files, true, &format!("/api/v1/prompts/absent{query}"), &bob).await.detail(404);
        assert_eq!(hidden.replace("greet", "absent"), missing, "{query}");
    }
    let list = async |caller| folder(&files, true, "/api/v1/prompts", &[("authorization", caller)]).await;
    let seen = list("Bearer psk_bob").await.expect(200);
    assert_eq!(seen.json()["items"].as_array().map(Vec::len), Some(1));
    assert!(seen.header("cache-control").starts_with("private,"), "{seen:?}");
    assert_eq!(list("Bearer psk_ada").await.expect(200).json()["items"].as_array().map(Vec::len), Some(2));
    folder(&files, true, "/api/v1/prompts", &[]).await.expect(401);
}

#[tokio::test]
async fn versions_come_with_the_partials_of_their_time() {
    let files = [("hello.md", "{% include '_part.md' %} one\n"), ("_part.md", "First")];
    let site = Site::of(&[("production", &files), ("staging", &[("hello.md", "Staging\n")])], false, &[]).await;
    let first = site.get("/api/v1/prompts/hello").await.expect(200);
    assert_eq!((&first.json()["version"], &first.json()["channel"]), (&json!(1), &json!("production")));
    publish(&site.store, "production", &[("_part.md", "Second")]).await;
    site.serves(2).await;
    let second = site.get("/api/v1/prompts/hello?rendered=true").await.expect(200).json();
    assert_eq!((&second["version"], &second["messages"][0]["content"]["text"]), (&json!(2), &json!("Second one")));
    for _ in 0..2 {
        let old = site.get("/api/v1/prompts/hello?rendered=true&version=1").await.expect(200).json();
        assert_eq!((&old["version"], &old["messages"][0]["content"]["text"]), (&json!(1), &json!("First one")));
    }
    let staging = site.get("/api/v1/prompts/hello?channel=staging").await.expect(200);
    assert_eq!(staging.json()["version"], 1, "each channel counts its own");
    // The tag of one channel is not that of another one.
    let tag = [("if-none-match", staging.header("etag"))];
    answer(&site.router, "/api/v1/prompts/hello", &tag).await.expect(200);
    answer(&site.router, "/api/v1/prompts/hello?channel=staging", &tag).await.expect(304);
    for path in [
        "hello?version=3",
        "hello?channel=staging&version=2",
        "hello?version=9",
        "none?version=1",
        "hello?channel=other",
        "hello?channel=..",
    ] {
        site.get(&format!("/api/v1/prompts/{path}")).await.expect(404);
    }
    publish(&site.store, "production", &[("hello.md", ""), ("bye.md", "Bye\n")]).await;
    site.serves(3).await;
    site.get("/api/v1/prompts/hello?version=1").await.expect(404);
}

/// Rules of today hold for the texts of yesterday, and those of an operator for a channel.
// req: S-182
#[tokio::test]
async fn earlier_versions_and_channels_open_no_access() {
    let site = Site::of(
        &[("production", &[("plan.md", "Secret one\n")]), ("staging", &[("plan.md", "Staging\n")])],
        true,
        &[("staging", "editor")],
    )
    .await;
    assert!(site.get_as("bob", "/api/v1/prompts/plan").await.expect(200).body.contains("Secret one"));
    let rules = "[[access]]\nprompts = [\"plan\"]\nroles = [\"editor\"]\n";
    publish(&site.store, "production", &[("plan.md", "Secret two\n"), ("promptshelf.toml", rules)]).await;
    site.serves(2).await;
    let version = "/api/v1/prompts/plan?version=1";
    assert!(site.get_as("ada", version).await.expect(200).body.contains("Secret one"));
    let hidden = site.get_as("bob", version).await.detail(404);
    let missing = site.get_as("bob", "/api/v1/prompts/nope?version=1").await.detail(404);
    assert_eq!(hidden.replace("plan", "nope"), missing);
    let staging = site.get_as("bob", "/api/v1/prompts/plan?channel=staging").await.detail(404);
    let absent = site.get_as("bob", "/api/v1/prompts/plan?channel=absence").await.detail(404);
    assert_eq!(staging.replace("staging", "absence"), absent);
    site.get_as("bob", "/api/v1/channels/staging/events").await.expect(404);
}

/// What is closed by today's rules is not given out by an earlier version that was made from it.
// req: S-305
#[tokio::test]
async fn earlier_versions_give_out_no_file_that_is_closed_by_now() {
    let closed = "[[access]]\nfolders = [\"private\"]\nroles = [\"editor\"]\n";
    let own = "---\naccess:\n  roles: [editor]\n---\nThe plan\n";
    type Files = [(&'static str, &'static str)];
    let cases: &[(&str, &str, &Files)] = &[
        // A rule for the folder of an attachment, by a fixed and by a computed path; of a text that is included; of a
        // prompt that is called.
        ("private/plan.txt", "{{ attach(\"private/plan.txt\") }}", &[("promptshelf.toml", closed)]),
        ("private/plan.txt", "{{ attach(\"private/\" ~ name) }}", &[("promptshelf.toml", closed)]),
        ("private/_plan.md", "{% include \"private/_plan.md\" %}", &[("promptshelf.toml", closed)]),
        ("private/plan.md", "{{ prompt(\"private-plan\") }}", &[("promptshelf.toml", closed)]),
        // The called prompt closes itself, at the same place or moved to another one.
        ("plan.md", "{{ prompt(\"plan\") }}", &[("plan.md", own)]),
        (
            "plan.md",
            "{{ prompt(\"plan\") }}",
            &[
                ("plan.md", ""),
                ("new/_.md", "x"),
                ("new/plan.md", "---\nname: plan\naccess:\n  roles: [editor]\n---\nx\n"),
            ],
        ),
        // Only a closed prompt refers to the file by now.
        (
            "_a/plan.txt",
            "{{ attach(\"_a/plan.txt\") }}",
            &[("boss.md", "---\naccess:\n  roles: [editor]\n---\n{{ attach(\"_a/plan.txt\") }}\n")],
        ),
    ];
    for (path, template, change) in cases {
        let front = if template.contains("name)") {
            "---\narguments:\n  - name: name\n    default: plan.txt\n---\n"
        } else {
            ""
        };
        let hello = format!("{front}Hello\n{template}\n");
        let site = Site::of(&[("production", &[("hello.md", &hello), (path, "The merger\n")])], true, &[]).await;
        let version = "/api/v1/prompts/hello?version=1&rendered=true";
        let text = site.get_as("bob", version).await.expect(200).body;
        assert!(text.contains("The merger"), "{template}: {text}");
        let mut change = change.to_vec();
        change.push(("hello.md", "Hello\n"));
        publish(&site.store, "production", &change).await;
        site.serves(2).await;
        for suffix in ["&rendered=true", ""] {
            let answer = site.get_as("bob", &format!("/api/v1/prompts/hello?version=1{suffix}")).await;
            assert!(answer.status >= 400 || !answer.body.contains("{{ attach"), "{template}{suffix}: {}", answer.body);
            assert!(!answer.body.contains("merger"), "{template}{suffix}: {}", answer.body);
        }
        let langfuse = site.get_as("bob", "/api/public/v2/prompts/hello?version=1").await;
        assert!(!langfuse.body.contains("merger"), "{template}: {}", langfuse.body);
        assert!(site.get_as("ada", version).await.expect(200).body.contains("The merger"), "{template}");
    }
}

/// A content that stands at closed paths only is closed in earlier versions, wherever it was.
// req: S-482
#[tokio::test]
async fn earlier_versions_give_out_no_text_that_was_moved_to_a_closed_place() {
    let rules = |rule: &str| format!("[[access]]\n{rule}\nroles = [\"editor\"]\n");
    let (folder, name) = (rules("folders = [\"private\"]"), rules("prompts = [\"boss-*\"]"));
    // The rule, the place before and after, the text of the prompt that has the file.
    for (rule, from, to, template) in [
        (&folder, "plan.txt", "private/plan.txt", "{{ attach(\"plan.txt\") }}"),
        (&folder, "plans/plan.txt", "private/plan.txt", "{{ attach(\"plans/\" ~ \"plan.txt\") }}"),
        (&folder, "_plan.md", "private/_plan.md", "{% include \"_plan.md\" %}"),
        (&folder, "hello.md", "private/hello2.md", "The merger"),
        (&name, "plan.md", "boss-plan.md", "{{ prompt(\"plan\") }}"),
    ] {
        let hello = format!("Hello\n{template}\n");
        let moved = if from == "hello.md" { hello.as_str() } else { "The merger\n" };
        let files = [("hello.md", hello.as_str()), (from, moved)];
        let files = if from == "hello.md" { &files[..1] } else { &files };
        let site = Site::of(&[("production", files)], true, &[]).await;
        let version = "/api/v1/prompts/hello?version=1&rendered=true";
        assert!(site.get_as("bob", version).await.expect(200).body.contains("merger"), "{from}");
        let mut change = vec![(to, moved), ("hello.md", "Hello\n"), ("promptshelf.toml", rule.as_str())];
        change.extend((from != "hello.md").then_some((from, "")));
        publish(&site.store, "production", &change).await;
        site.serves(2).await;
        for path in [version, "/api/v1/prompts/hello?version=1", "/api/public/v2/prompts/hello?version=1"] {
            let answer = site.get_as("bob", path).await;
            assert!(!answer.body.contains("merger"), "{from} {path}: {}", answer.body);
        }
        assert!(site.get_as("ada", version).await.expect(200).body.contains("merger"), "{from}");
        // A copy at an open place opens it again.
        publish(&site.store, "production", &[("copy.txt", moved), ("other.md", "{{ attach(\"copy.txt\") }}\n")]).await;
        site.serves(3).await;
        assert!(site.get_as("bob", version).await.expect(200).body.contains("merger"), "{from}");
    }
}

/// The author of the present version decides that its text contains a closed file.
#[tokio::test]
async fn earlier_versions_keep_the_files_that_the_present_one_includes() {
    let closed = "[[access]]\nfolders = [\"_private\"]\nroles = [\"editor\"]\n";
    let files = [("hello.md", "One {% include \"_private/a.md\" %}\n"), ("_private/a.md", "of us\n")];
    let site = Site::of(&[("production", &files)], true, &[]).await;
    let two = [("hello.md", "Two {% include \"_private/a.md\" %}\n"), ("promptshelf.toml", closed)];
    publish(&site.store, "production", &two).await;
    site.serves(2).await;
    for version in ["1", "2"] {
        let path = format!("/api/v1/prompts/hello?version={version}&rendered=true");
        assert!(site.get_as("bob", &path).await.expect(200).body.contains("of us"));
    }
}

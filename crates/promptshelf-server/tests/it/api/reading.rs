//! Lists, files, history and differences.

use serde_json::json;

use super::{BYE, HELLO, Server, digest, policy_of, proposal, refused};

/// A server with three revisions: `hello.md`, then `a.txt` to `e.txt`, then another `hello.md`.
async fn server() -> Server {
    let server = Server::prepared(&policy_of(0)).await;
    let texts: Vec<String> = ["a", "b", "c", "d", "e"].iter().map(|name| format!("{name}.txt")).collect();
    let files: Vec<(&str, Option<&str>, Option<&str>)> =
        texts.iter().map(|path| (path.as_str(), None, Some("text"))).collect();
    let path = "/channels/production/proposals";
    server.post("paul", path, &proposal(1, &files)).await.expect(201);
    server.post("paul", path, &proposal(2, &[("hello.md", Some(HELLO), Some(BYE))])).await.expect(201);
    server
}

#[tokio::test]
async fn trees_and_files_are_those_of_the_revision() {
    let server = server().await;
    let tree = server.get("reader", "/channels/production/tree?revision=1").await.expect(200).json();
    assert_eq!(tree["items"], json!([{ "path": "hello.md", "digest": digest(HELLO), "size": HELLO.len() }]));
    let path = "/channels/production/files/hello.md";
    let old = server.get("reader", &format!("{path}?revision=2")).await.expect(200);
    assert_eq!((old.text(), old.header("content-type")), (HELLO, "text/plain; charset=utf-8"));
    assert_eq!(server.get("reader", path).await.expect(200).text(), BYE);
    let none = server.get("reader", "/channels/production/files/a.txt?revision=1").await;
    assert_eq!(none.problem(), refused(404, "not-found"));
    for path in ["/channels/production/tree?revision=9", "/channels/none/tree", "/channels/none/revisions"] {
        assert_eq!(server.get("reader", path).await.problem(), refused(404, "not-found"), "{path}");
    }
}

#[tokio::test]
async fn lists_have_pages() {
    let server = server().await;
    let mut paths = Vec::new();
    let mut next = String::new();
    loop {
        let page = server.get("reader", &format!("/channels/production/tree?limit=4{next}")).await.expect(200).json();
        let files = page["items"].as_array().expect("files");
        assert!(files.len() <= 4);
        paths.extend(files.iter().map(|file| file["path"].as_str().expect("a path").to_owned()));
        let Some(after) = page["next"].as_str() else { break };
        next = format!("&cursor={after}");
    }
    assert_eq!(paths, ["a.txt", "b.txt", "c.txt", "d.txt", "e.txt", "hello.md"]);

    let page = server.get("reader", "/channels/production/revisions?limit=2").await.expect(200).json();
    assert_eq!((&page["items"][0]["number"], &page["items"][1]["number"]), (&json!(3), &json!(2)));
    let next = page["next"].as_str().expect("a cursor");
    let path = format!("/channels/production/revisions?limit=2&cursor={next}");
    let page = server.get("reader", &path).await.expect(200).json();
    assert_eq!((&page["items"][0]["number"], &page["next"]), (&json!(1), &json!(null)));

    let page = server.get("reader", "/channels/production/proposals?limit=2").await.expect(200).json();
    assert_eq!(page["items"].as_array().map(Vec::len), Some(2));
    // A cursor of another list is no place in this one.
    let foreign = server.get("reader", &format!("/channels/production/proposals?cursor={next}")).await;
    assert_eq!(foreign.problem(), refused(400, "invalid-cursor"));
    let path = format!("/channels/production/proposals?limit=2&cursor={}", page["next"].as_str().expect("a cursor"));
    let page = server.get("reader", &path).await.expect(200).json();
    assert_eq!((page["items"].as_array().map(Vec::len), &page["next"]), (Some(1), &json!(null)));
    let open = server.get("reader", "/channels/production/proposals?state=open").await.expect(200).json();
    assert_eq!(open["items"], json!([]));
}

/// A page begins after a path or a number, whatever revision it was made for. Its own revision is in each page by its
/// digest, which a restored store does not have twice.
// req: S-307
#[tokio::test]
async fn every_page_has_the_digest_of_its_revision() {
    let server = server().await;
    let get = async |path: &str| server.get("reader", &format!("/channels/production/{path}")).await.expect(200).json();
    let history = get("revisions?limit=500").await;
    let digest_of = |number: usize| history["items"][3 - number]["digest"].clone();
    assert!((1..=3).all(|number| digest_of(number).is_string()), "{history}");
    let cursor = async |path: &str| format!("&cursor={}", get(path).await["next"].as_str().expect("a cursor"));
    for paged in [false, true] {
        let after = async |list: &str| if paged { cursor(list).await } else { String::new() };
        for (query, number) in [("", 3), ("&revision=2", 2)] {
            let tree = get(&format!("tree?limit=2{query}{}", after("tree?limit=2").await)).await;
            assert_eq!(tree["head"]["digest"], digest_of(number));
            let found = get(&format!("browse?limit=2{query}{}", after("browse?limit=2").await)).await;
            assert_eq!(found["digest"], digest_of(number));
        }
        let after = after("diff?from=0&limit=2").await;
        let diff = get(&format!("diff?from=1&limit=2{after}")).await;
        assert_eq!((&diff["fromDigest"], &diff["toDigest"]), (&digest_of(1), &digest_of(3)));
        let diff = get(&format!("diff?from=0&to=2&limit=2{after}")).await;
        assert_eq!((&diff["fromDigest"], &diff["toDigest"]), (&json!(null), &digest_of(2)));
    }
    let page = get(&format!("revisions?limit=1{}", cursor("revisions?limit=1").await)).await;
    assert_eq!(page["items"][0]["digest"], digest_of(2));
    // A revision between two pages shows in them.
    let first = get("tree?limit=2").await;
    let path = "/channels/production/proposals";
    server.post("paul", path, &proposal(3, &[("hello.md", Some(BYE), Some(HELLO))])).await.expect(201);
    let second = get(&format!("tree?limit=2&cursor={}", first["next"].as_str().expect("a cursor"))).await;
    assert_ne!(first["head"]["digest"], second["head"]["digest"]);
}

#[tokio::test]
async fn history_answers_what_was_served() {
    let server = server().await;
    let of_prompt = server.get("reader", "/channels/production/revisions?prompt=hello").await.expect(200).json();
    let numbers: Vec<u64> =
        of_prompt["items"].as_array().expect("revisions").iter().filter_map(|one| one["number"].as_u64()).collect();
    assert_eq!(numbers, [3, 1]);
    let second = server.get("reader", "/channels/production/revisions/2").await.expect(200).json();
    let at = second["at"].as_str().expect("a time");
    let page = server.get("reader", &format!("/channels/production/revisions?at={at}")).await.expect(200).json();
    assert_eq!(page["items"], json!([second]));
    let prompts = server.get("reader", "/channels/production/revisions/3/prompts").await.expect(200).json();
    assert_eq!((&prompts["items"][0]["name"], &prompts["items"][0]["version"]), (&json!("hello"), &json!(2)));
    for path in ["/channels/production/revisions/9", "/channels/production/revisions/9/prompts"] {
        assert_eq!(server.get("reader", path).await.problem(), refused(404, "not-found"));
    }
}

#[tokio::test]
async fn diff_compares_revisions_and_channels() {
    let server = server().await;
    let diff = server.get("reader", "/channels/production/diff?from=2&to=3").await.expect(200).json();
    let hello = json!({ "path": "hello.md", "before": digest(HELLO), "after": digest(BYE) });
    assert_eq!(diff["items"], json!([hello]));
    assert_eq!(diff["prompts"], json!([{ "name": "hello", "from": 1, "to": 2 }]));
    let diff = server.get("reader", "/channels/production/diff?from=0&limit=1").await.expect(200).json();
    assert_eq!((&diff["from"], &diff["to"]), (&json!(0), &json!(3)));
    assert!(diff["next"].is_string(), "{diff}");
    server.create("empty", &policy_of(0)).await;
    let diff = server.get("reader", "/channels/production/diff?from=1&toChannel=empty").await.expect(200).json();
    assert_eq!(diff["items"], json!([{ "path": "hello.md", "before": digest(HELLO), "after": null }]));
    let equal = server.get("reader", "/channels/production/diff?from=3").await.expect(200).json();
    assert_eq!((&equal["items"], &equal["prompts"]), (&json!([]), &json!([])));
}

#[tokio::test]
async fn rename_changes_references_in_saved_and_unsaved_files() {
    let server = Server::prepared(&policy_of(0)).await;
    let files = [
        ("_a.md", None, Some("Be brief.\n")),
        ("use.md", None, Some("---\ndescription: Uses\n---\n{% include \"_a.md\" %} _a.md\n")),
        ("call.md", None, Some("---\ndescription: Calls\n---\n{{ prompt(\"hello\") }}\n")),
    ];
    server.post("paul", "/channels/production/proposals", &proposal(1, &files)).await.expect(201);
    let unsaved = "---\ndescription: New\n---\n{% include '_a.md' %}\n";
    let path = "/channels/production/rename";
    let rename = |from: &str, to: &str| json!({ "from": from, "to": to, "changes": [{ "path": "new.md", "content": { "text": unsaved } }] });
    let partial = server.post("ada", path, &rename("_a.md", "_shared/b.md")).await.expect(200).json();
    assert_eq!(
        partial["references"],
        json!([
            { "path": "new.md", "text": unsaved.replace("_a.md", "_shared/b.md") },
            { "path": "use.md", "text": "---\ndescription: Uses\n---\n{% include \"_shared/b.md\" %} _a.md\n" },
        ])
    );
    let prompt = server.post("ada", path, &rename("hello.md", "people/greet.md")).await.expect(200).json();
    assert_eq!(
        prompt["references"],
        json!([{ "path": "call.md", "text": "---\ndescription: Calls\n---\n{{ prompt(\"people-greet\") }}\n" }])
    );
    for (from, to, expected) in [
        ("none.md", "b.md", refused(404, "not-found")),
        ("_a.md", "new.md", refused(409, "exists")),
        ("_a.md", "aux.md", refused(400, "invalid-request")),
    ] {
        assert_eq!(server.post("ada", path, &rename(from, to)).await.problem(), expected, "{from} to {to}");
    }
    let reader = server.post("reader", path, &rename("_a.md", "b.md")).await;
    assert_eq!(reader.problem(), refused(403, "insufficient-scope"));
    assert!(server.get("reader", "/channels/production/files/_a.md").await.status == 200, "nothing was stored");
}

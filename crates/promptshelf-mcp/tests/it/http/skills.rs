//! Skills over MCP (extension `io.modelcontextprotocol/skills`).

use std::{collections::BTreeMap, sync::Arc};

use promptshelf_core::{
    Access, AccessRule, ArgumentDefinition, Blob, Body, BodyPiece, CatalogHandle, Definitions, LibraryFile, Meta,
    MimeType, Origin, Policy, PromptDefinition, ResourceBody, SkillSource, SourceText, check,
};
use promptshelf_mcp::{HttpOptions, Server};
use promptshelf_service::Service;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::endpoint::{Ask, Endpoint, MODERN, initialize};

const REVISIONS: [&str; 5] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", MODERN];
const REFUNDS: &str =
    "---\nname: refunds\ndescription: Handles a refund\nmetadata:\n  owner: billing\n---\nSee templates/.\n";

fn ask(revision: &str, method: &str, params: &Value) -> Ask {
    match revision {
        MODERN => Ask::modern(method, params.clone()),
        legacy => Ask::legacy(legacy, method, params),
    }
}

fn frontmatter() -> Meta {
    let meta = json!({ "name": "refunds", "description": "Handles a refund", "metadata": { "owner": "billing" } });
    meta.as_object().cloned().expect("an object")
}

fn definitions() -> Definitions {
    let source = SourceText::new("skills/refunds/SKILL.md", REFUNDS);
    let body = Body::Pieces(vec![BodyPiece::Text("See templates/.".into())]);
    let mut refunds = PromptDefinition::from_source("refunds", body, Origin::new(source));
    refunds.description = Some("Handles a refund".into());
    refunds.skill = Some(SkillSource::Folder(Arc::new(frontmatter())));
    let review = PromptDefinition::template("code_review", "Review {{ change }}.")
        .description("Reviews a change")
        .argument(ArgumentDefinition::new("change").description("The diff").required())
        .skill();
    let plain = PromptDefinition::template("plain", "Nothing.").description("Is no skill");
    let file = |path: &str, body: ResourceBody, mime: &str| {
        let mime_type = MimeType::parse(mime).expect("a type");
        (
            path.to_owned(),
            Arc::new(LibraryFile { path: path.to_owned(), mime_type, body, has_mark: false, modified: None }),
        )
    };
    let text = |text: &str| ResourceBody::Text(text.into());
    let files = BTreeMap::from([
        file("skills/refunds/templates/a b.md", text("A"), "text/markdown"),
        file("skills/refunds/templates/eu/x.bin", ResourceBody::Blob(Blob::new([0, 255])), "application/octet-stream"),
        file("skills/refunds/_draft.md", text("draft"), "text/markdown"),
        file("skills/other.md", text("outside"), "text/markdown"),
    ]);
    Definitions { files, ..Definitions::from_iter([refunds, review, plain]) }
}

fn endpoint(definitions: Definitions) -> Endpoint {
    let checked = check(definitions, None);
    assert!(checked.diagnostics.iter().all(|found| !found.is_error()), "{:?}", checked.diagnostics);
    let handle = CatalogHandle::new(checked.catalog);
    Endpoint::of(Server::new(Service::new(handle.clone())), handle, HttpOptions::default())
}

fn digest(bytes: &[u8]) -> String {
    let hex: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

async fn capabilities(endpoint: &Endpoint, revision: &str) -> Value {
    let ask = match revision {
        MODERN => Ask::modern("server/discover", json!({})),
        legacy => Ask::legacy(legacy, "initialize", &initialize(legacy)),
    };
    endpoint.ask(ask).await.result()["capabilities"].clone()
}

// req: Y1, Y2, Y3, Y5, Y6, Y7, Y8, Y9, Y10, Y12, Y13, Y14
#[tokio::test]
async fn skills_are_listed_with_complete_manifests() {
    let endpoint = endpoint(definitions());
    for revision in REVISIONS {
        let declared = capabilities(&endpoint, revision).await;
        assert_eq!(declared["extensions"], json!({ "io.modelcontextprotocol/skills": { "directoryRead": true } }));
        let list = endpoint.ask(ask(revision, "skills/list", &json!({}))).await.result();
        let skills = list["skills"].as_array().expect("skills");
        assert_eq!(skills.len(), 2, "{list}");
        assert_eq!(skills[0]["uri"], "skill://code-review/SKILL.md");
        let refunds = &skills[1];
        assert_eq!(refunds["frontmatter"], json!(frontmatter()), "with all keys");
        let entry = |path: &str, bytes: &[u8]| json!({ "uri": format!("skill://refunds/{path}"), "digest": digest(bytes), "size": bytes.len() });
        assert_eq!(
            refunds["resources"],
            json!([
                entry("SKILL.md", REFUNDS.as_bytes()),
                entry("templates/a%20b.md", b"A"),
                entry("templates/eu/x.bin", &[0, 255]),
            ])
        );
        let is_modern = revision == MODERN;
        for (key, value) in [("resultType", json!("complete")), ("cacheScope", json!("public"))] {
            assert_eq!(list.get(key), is_modern.then_some(&value), "{revision}");
        }
        assert_eq!(list["ttlMs"].is_u64(), is_modern);
        for skill in skills {
            let one = endpoint.ask(ask(revision, "skills/get", &json!({ "uri": skill["uri"] }))).await.result();
            assert_eq!(&one["skill"], skill);
            assert_eq!((one.get("nextCursor"), one["ttlMs"].is_u64()), (None, is_modern));
            for file in skill["resources"].as_array().expect("files") {
                let read = endpoint.ask(ask(revision, "resources/read", &json!({ "uri": file["uri"] }))).await.result();
                let contents = &read["contents"][0];
                assert_eq!(contents["uri"], file["uri"]);
                if let Some(text) = contents["text"].as_str() {
                    assert_eq!(file["digest"], digest(text.as_bytes()), "{file}");
                    assert_eq!(file["size"], text.len());
                }
            }
        }
        let listed = endpoint.ask(ask(revision, "resources/list", &json!({}))).await.result();
        let manifest = &listed["resources"][1];
        assert_eq!((&manifest["uri"], &manifest["name"]), (&json!("skill://refunds/SKILL.md"), &json!("refunds")));
        assert_eq!(
            (&manifest["mimeType"], &manifest["description"]),
            (&json!("text/markdown"), &json!("Handles a refund"))
        );
    }
    let read = endpoint.ask(Ask::modern("resources/read", json!({ "uri": "skill://code-review/SKILL.md" }))).await;
    assert_eq!(
        read.result()["contents"][0]["text"],
        "---\nname: code-review\ndescription: \"Reviews a change\"\n---\n\nReview <change>.\n\n## Placeholders\n\n\
         Replace each placeholder by its value before you follow the text above.\n\n\
         - `<change>` (string, required) – The diff.\n"
    );
}

// req: Y4, Y11, Y15, S-124
#[tokio::test]
async fn unknown_skills_and_files_are_invalid_parameters() {
    let endpoint = endpoint(definitions());
    for revision in REVISIONS {
        for uri in ["skill://absent/SKILL.md", "skill://refunds", "skill://refunds/templates/a%20b.md", "skill:", "x"] {
            let answer = endpoint.ask(ask(revision, "skills/get", &json!({ "uri": uri }))).await;
            assert_eq!(answer.error(), (200, -32602, Some(json!(1))), "{revision} {uri}");
        }
        for uri in [
            "skill://refunds/SKILL.md",
            "skill://refunds/none",
            "skill://refunds/templates/",
            "skill://",
            "skill://absent",
        ] {
            let answer = endpoint.ask(ask(revision, "resources/directory/read", &json!({ "uri": uri }))).await;
            assert_eq!(answer.error(), (200, -32602, Some(json!(1))), "{revision} {uri}");
        }
        let missing = if revision == MODERN { -32602 } else { -32002 };
        for uri in [
            "skill://refunds/_draft.md",
            "skill://refunds/../other.md",
            "skill://refunds/%2e%2e/other.md",
            "skill://refunds/templates/a b.md",
            "skill://refunds/%74emplates/a%20b.md",
            "library:///skills/refunds/templates/a%20b.md",
            "skill://plain/SKILL.md",
        ] {
            let answer = endpoint.ask(ask(revision, "resources/read", &json!({ "uri": uri }))).await;
            assert_eq!(answer.error().1, missing, "{revision} {uri}");
        }
        for method in ["skills/get", "resources/directory/read"] {
            assert_eq!(endpoint.ask(ask(revision, method, &json!({}))).await.error().1, -32602, "{method}");
        }
    }
}

// req: Y16, Y17, Y18, Y19
#[tokio::test]
async fn folders_list_their_direct_children_in_pages() {
    let endpoint = endpoint(Definitions { policy: Policy { page_size: 1, ..Policy::default() }, ..definitions() });
    for revision in REVISIONS {
        let (mut children, mut params) = (Vec::new(), json!({ "uri": "skill://refunds" }));
        loop {
            let page = endpoint.ask(ask(revision, "resources/directory/read", &params)).await.result();
            assert_eq!(page.get("resultType").is_some(), revision == MODERN);
            children.extend(page["resources"].as_array().expect("children").clone());
            match page.get("nextCursor") {
                Some(cursor) => params["cursor"] = cursor.clone(),
                None => break,
            }
        }
        assert_eq!(
            children,
            [
                json!({ "uri": "skill://refunds/SKILL.md", "name": "refunds", "description": "Handles a refund", "mimeType": "text/markdown", "size": REFUNDS.len() }),
                json!({ "uri": "skill://refunds/templates", "name": "templates", "mimeType": "inode/directory" }),
            ]
        );
        let inner = json!({ "uri": "skill://refunds/templates/eu" });
        let inner = endpoint.ask(ask(revision, "resources/directory/read", &inner)).await.result();
        assert_eq!(inner["resources"][0]["uri"], "skill://refunds/templates/eu/x.bin");
        // The cursor of another folder, and of another list.
        params["uri"] = json!("skill://refunds/templates/eu");
        let foreign = promptshelf_core::cursor::encode(
            promptshelf_core::cursor::DerivedList::Directory,
            "skill://refunds/SKILL.md",
        );
        params["cursor"] = json!(foreign);
        assert_eq!(endpoint.ask(ask(revision, "resources/directory/read", &params)).await.error().1, -32602);

        let first = endpoint.ask(ask(revision, "skills/list", &json!({}))).await.result();
        assert_eq!(first["skills"].as_array().map(Vec::len), Some(1));
        let next = json!({ "cursor": first["nextCursor"] });
        let second = endpoint.ask(ask(revision, "skills/list", &next)).await.result();
        assert_eq!(
            (second["skills"][0]["frontmatter"]["name"].as_str(), second.get("nextCursor")),
            (Some("refunds"), None)
        );
        assert_eq!(endpoint.ask(ask(revision, "skills/list", &json!({ "cursor": "AAAA" }))).await.error().1, -32602);
    }
}

// req: S-123
#[tokio::test]
async fn skill_with_a_closed_file_is_hidden_as_a_whole() {
    let rule = |folders: &[&str], prompts: &[&str]| {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let access = Access { roles: vec!["billing".into()], ..Access::default() };
        let origin = Origin::new(SourceText::new("promptshelf.toml", ""));
        AccessRule { prompts: texts(prompts), folders: texts(folders), ..AccessRule::new(access, origin) }
    };
    for rule in [rule(&["skills/refunds/templates/eu"], &[]), rule(&[], &["refunds"])] {
        let endpoint = endpoint(Definitions { access: vec![rule], ..definitions() });
        for revision in REVISIONS {
            let list = endpoint.ask(ask(revision, "skills/list", &json!({}))).await.result();
            assert_eq!(list["skills"].as_array().map(Vec::len), Some(1), "{list}");
            assert_eq!(list["skills"][0]["frontmatter"]["name"], "code-review");
            for (method, uri) in [
                ("skills/get", "skill://refunds/SKILL.md"),
                ("resources/directory/read", "skill://refunds"),
                ("resources/read", "skill://refunds/SKILL.md"),
                ("resources/read", "skill://refunds/templates/a%20b.md"),
                ("resources/read", "skill://refunds/templates/eu/x.bin"),
            ] {
                let hidden = endpoint.ask(ask(revision, method, &json!({ "uri": uri }))).await.json();
                let absent = uri.replace("refunds", "absents");
                let missing = endpoint.ask(ask(revision, method, &json!({ "uri": absent }))).await.json();
                let expected = missing.to_string().replace("absents", "refunds");
                assert_eq!(hidden.to_string(), expected, "hidden equals missing");
            }
            let resources = endpoint.ask(ask(revision, "resources/list", &json!({}))).await.result();
            assert_eq!(resources["resources"].as_array().map(Vec::len), Some(1), "{resources}");
        }
    }
}

#[tokio::test]
async fn library_without_skills_declares_the_extension_for_the_first_one() {
    let endpoint = Endpoint::new();
    for revision in REVISIONS {
        let extensions = capabilities(&endpoint, revision).await["extensions"].clone();
        assert_eq!(extensions, json!({ "io.modelcontextprotocol/skills": { "directoryRead": true } }));
        assert_eq!(endpoint.ask(ask(revision, "skills/list", &json!({}))).await.result()["skills"], json!([]));
    }
}

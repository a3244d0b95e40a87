//! Access control of the page's library API: every caller at every route.

use std::fmt::Write as _;

use promptshelf::http::auth::digest_of;
use serde_json::Value;

use super::get;
use crate::program::{Folder, Server, library};

/// A library with many hidden prompts, whose names also occur in less obvious places: in a suggestion, in a circle of
/// includes, and in files that cannot be parsed.
const LIBRARY: &[(&str, &str)] = &[
    ("open.md", "---\ndescription: Open\ntags: [all]\n---\nOpen.\n"),
    (
        "secret/hidden.md",
        "---\ndescription: Hidden\ntags: [clandestine]\naccess: { roles: [editor] }\narguments:\n  - { name: where, type: \
         text, default: basement }\n---\nHidden {{ where }}.\n",
    ),
    (
        "shown.md",
        "---\ndescription: Shown\naccess: { scopes: [\"prompts:write\"], visible: true }\narguments:\n  - { name: \
         place, type: text, default: attic }\n---\nShown {{ place }}.\n",
    ),
    ("near.md", "---\ndescription: Near\n---\n{{ prompt(\"secret-hiden\") }}\n"),
    ("unreadable.md", "---\ndescription: x\naccess: { users: [nobody] }\nsecret: [basement\n---\nbasement\n"),
];

/// Words that only callers with access to the hidden prompts may receive.
const SECRETS: [&str; 4] = ["hidden", "hiden", "clandestine", "basement"];

/// Callers, with the settings of their tokens.
const CALLERS: [(&str, &str); 6] = [
    ("anonymous", ""),
    ("stranger", ""),
    ("reader", "scopes = [\"prompts:read\"]"),
    ("writer", "scopes = [\"prompts:read\", \"prompts:write\"]"),
    ("editor", "scopes = [\"prompts:read\"], roles = [\"editor\"]"),
    ("lacking", "scopes = [\"else\"]"),
];

const ROUTES: [&str; 11] = [
    "/",
    "/assets/js/main.js",
    "/sign-in",
    "/library/changes",
    "/library/facts",
    "/library/prompts",
    "/library/prompts/open",
    "/library/prompts/shown",
    "/library/prompts/secret-hidden",
    "/library/clients",
    "/library/diagnostics",
];

fn signing_in(rule: &str) -> Folder {
    let mut settings = String::from("[auth]\nrequired-scopes = [\"prompts:read\"]\ntokens = [\n");
    for (name, rights) in CALLERS.iter().skip(2) {
        let digest: String = digest_of(name).iter().map(|byte| format!("{byte:02x}")).collect();
        writeln!(settings, "  {{ name = \"{name}\", sha256 = \"{digest}\", {rights} }},").expect("a string");
    }
    settings.push_str("]\n");
    let folder = library(LIBRARY);
    std::fs::write(folder.path().join("server.toml"), settings).expect("written");
    std::fs::write(folder.path().join("prompts/promptshelf.toml"), rule).expect("written");
    folder
}

/// Returns the status, the error of the challenge, and the body.
fn ask(server: &Server, who: &str, path: &str) -> (u16, String, String) {
    let bearer = format!("Bearer {who}");
    let headers: &[(&str, &str)] = if who == "anonymous" { &[] } else { &[("Authorization", &bearer)] };
    let mut answer = get(server, path, headers);
    let challenge = answer.headers().get("www-authenticate").and_then(|value| value.to_str().ok());
    let challenge = challenge.unwrap_or_default().to_owned();
    let policy = answer.headers().get("content-security-policy").expect("a policy");
    assert!(policy.to_str().is_ok_and(|policy| policy.ends_with("connect-src 'self'")), "{policy:?}");
    (answer.status().as_u16(), challenge, answer.body_mut().read_to_string().expect("text"))
}

fn json(body: &str) -> Value {
    serde_json::from_str(body).unwrap_or_else(|_| panic!("JSON, and no {body}"))
}

// req: S-16
#[test]
fn callers_get_exactly_their_permitted_prompts() {
    let server = Server::of(&signing_in(""), &[]);
    for (who, _) in CALLERS {
        for path in ROUTES {
            let (status, challenge, body) = ask(&server, who, path);
            let case = format!("{who} at {path}: {status} {challenge} {body}");
            let expected = match (who, path) {
                (_, "/" | "/assets/js/main.js" | "/sign-in") => 200,
                ("anonymous" | "stranger", _) => 401,
                ("lacking", _) => 403,
                ("reader" | "editor", "/library/prompts/shown") => 403,
                ("reader" | "writer", "/library/prompts/secret-hidden") => 404,
                _ => 200,
            };
            assert_eq!(status, expected, "{case}");
            match (who, expected) {
                ("anonymous", 401) => assert_eq!(challenge, "Bearer scope=\"prompts:read\"", "{case}"),
                (_, 401) => assert!(challenge.starts_with("Bearer error=\"invalid_token\""), "{case}"),
                ("lacking", 403) => assert!(challenge.ends_with("scope=\"prompts:read\""), "{case}"),
                (_, 403) => {
                    let all = "Bearer error=\"insufficient_scope\", scope=\"prompts:read prompts:write\"";
                    assert_eq!(challenge, all, "{case}");
                }
                _ => assert_eq!(challenge, "", "{case}"),
            }
            let is_of_the_library = path.starts_with("/library/") && !path.ends_with("secret-hidden");
            if is_of_the_library && who != "editor" {
                assert!(SECRETS.iter().all(|secret| !body.contains(secret)), "{case}");
            }
            assert!(
                !body.contains("attic") || who == "writer",
                "what stands in a prompt is for who may use it: {case}"
            );
        }
    }
}

#[test]
fn lists_and_counts_are_per_caller() {
    let server = Server::of(&signing_in(""), &[]);
    let names = |who: &str| -> Vec<String> {
        let list = json(&ask(&server, who, "/library/prompts").2);
        let prompts = list["prompts"].as_array().expect("a list");
        prompts.iter().filter_map(|prompt| Some(prompt["name"].as_str()?.to_owned())).collect()
    };
    assert_eq!(names("reader"), ["open", "shown"]);
    assert_eq!(names("writer"), ["open", "shown"]);
    assert_eq!(names("editor"), ["open", "secret-hidden", "shown"]);
    assert_eq!(json(&ask(&server, "editor", "/library/facts").2)["caller"], "editor");
    let unknown = |name: &str| ask(&server, "reader", &format!("/library/prompts/{name}"));
    let (hidden, missing) = (unknown("secret-hidden"), unknown("secret-nothing"));
    assert_eq!(hidden.2.replace("hidden", "nothing"), missing.2, "hidden and missing are the same word for word");
    assert_eq!((hidden.0, hidden.1), (missing.0, missing.1));
    // The client table only lists prompts that the caller may use.
    let clients = |who: &str| ask(&server, who, "/library/clients").2;
    assert!(clients("editor").contains("secret-hidden") && !clients("editor").contains("shown"));
    assert!(clients("writer").contains("shown"));
}

// req: S-16
#[test]
fn diagnostics_are_shown_to_permitted_callers_only() {
    let diagnostics = |server: &Server, who: &str| json(&ask(server, who, "/library/diagnostics").2);
    let silent = Server::of(&signing_in(""), &[]);
    for who in ["reader", "writer", "editor"] {
        let response = diagnostics(&silent, who);
        assert_eq!((&response["withheld"], &response["total"]), (&Value::Bool(true), &Value::from(0)), "{who}");
        assert_eq!(response["diagnostics"], Value::Array(Vec::new()), "{who}");
    }
    drop(silent);
    // Without `scopes`, `visible` is a mistake in the library's own file.
    let rule = "[[access]]\ndiagnostics = true\nroles = [\"editor\"]\nvisible = true";
    let ruled = Server::of(&signing_in(rule), &[]);
    assert_eq!(diagnostics(&ruled, "writer")["withheld"], true);
    let response = diagnostics(&ruled, "editor");
    let text = response.to_string();
    assert!(text.contains("secret-hiden") && text.contains("basement"), "{text}");
    let own = response["diagnostics"].as_array().expect("a list").iter().find(|one| one["path"] == "promptshelf.toml");
    assert_eq!(own.expect("the mistake")["lines"], Value::Array(Vec::new()), "tokens of others may stand there");
    drop(ruled);
    let rule = "[[access]]\ndiagnostics = true\nscopes = [\"prompts:write\"]\nvisible = true";
    let visible = Server::of(&signing_in(rule), &[]);
    assert_eq!(diagnostics(&visible, "writer")["withheld"], false);
    let (status, challenge, _) = ask(&visible, "reader", "/library/diagnostics");
    assert_eq!(status, 403);
    assert!(challenge.contains("insufficient_scope") && challenge.contains("prompts:write"), "{challenge}");
}

#[test]
fn rules_apply_without_sign_in() {
    let server = Server::of(&library(LIBRARY), &[]);
    for path in ROUTES.iter().filter(|path| path.starts_with("/library/")) {
        let (status, _, body) = ask(&server, "anonymous", path);
        let expected = match *path {
            "/library/prompts/shown" => 403,
            "/library/prompts/secret-hidden" => 404,
            _ => 200,
        };
        assert_eq!(status, expected, "{path}: {body}");
        let secrets = SECRETS.iter().any(|secret| body.contains(secret));
        assert!(path.ends_with("secret-hidden") || !secrets, "{path}: {body}");
    }
    let response = json(&ask(&server, "anonymous", "/library/diagnostics").2);
    assert_eq!(response["withheld"], true);
}

#[test]
fn limits_apply_to_the_page_api() {
    let settings = "[limits]\nrequests-per-minute = 3\nsubscriptions = 1\n";
    let server = Server::of(&library(&[("open.md", "Open."), ("../server.toml", settings)]), &[]);
    let statuses: Vec<u16> = ["prompts", "prompts/open", "diagnostics", "facts", "clients", "changes"]
        .map(|path| ask(&server, "anonymous", &format!("/library/{path}")).0)
        .into();
    assert_eq!(statuses, [200, 200, 200, 429, 429, 429]);
    assert!(get(&server, "/library/facts", &[]).headers().contains_key("retry-after"));
    assert_eq!(ask(&server, "anonymous", "/").0, 200, "the page itself has no limit");
}

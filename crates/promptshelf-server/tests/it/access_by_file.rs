//! Access by file: in random libraries with random rules, no byte and no name of a closed file reaches a caller by any
//! method or revision, and everything else stays readable.

mod icons;
mod plan;

use std::sync::Arc;

use axum::{
    body::{Body, to_bytes},
    http::Request,
};
use promptshelf_mcp::{HttpOptions, HttpService};
use promptshelf_server::Library;
use promptshelf_service::{Caller, Identity};
use promptshelf_source::Files;
use proptest::prelude::*;
use serde_json::{Value, json};
use tower::Service as _;

use plan::{FILES, Plan, UNSERVED, bytes_of, plan, token};

const REVISIONS: &[&str] = &["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];

fn callers() -> Vec<(Vec<&'static str>, Caller)> {
    let roles: [Vec<&'static str>; 4] = [vec![], vec!["one"], vec!["two"], vec!["one", "two"]];
    let known = roles.into_iter().map(|roles| {
        let key = format!("{roles:?}");
        let identity = Identity {
            key,
            name: "ada".into(),
            roles: roles.iter().map(|role| (*role).into()).collect(),
            ..Identity::default()
        };
        (roles, Caller::authenticated(Arc::new(identity)))
    });
    [(vec![], Caller::anonymous())].into_iter().chain(known).collect()
}

/// Sends one request in one revision, and returns the response.
async fn send(service: &HttpService, caller: &Caller, revision: &str, method: &str, mut params: Value) -> String {
    let is_modern = revision == "2026-07-28";
    let name = params.get("name").or(params.get("uri")).and_then(Value::as_str).map(str::to_owned);
    if is_modern {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": revision,
            "io.modelcontextprotocol/clientCapabilities": {},
        });
    }
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
    let mut request = Request::post("/mcp")
        .header("host", "localhost")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", revision);
    if is_modern {
        request = request.header("mcp-method", method);
        if let Some(name) = name {
            request = request.header("mcp-name", name);
        }
    }
    let mut request = request.body(Body::from(body)).expect("a valid request");
    request.extensions_mut().insert(caller.clone());
    let response = service.clone().call(request).await.expect("no request fails");
    let bytes = to_bytes(Body::new(response.into_body()), usize::MAX).await.expect("a complete body");
    String::from_utf8(bytes.into()).expect("UTF-8")
}

/// The callers' view of one library.
struct Tried<'p> {
    plan: &'p Plan,
    service: HttpService,
    library: Library,
    count: std::cell::Cell<usize>,
}

impl Tried<'_> {
    fn may(&self, roles: &[&str], required: &[&str]) -> bool {
        required.iter().all(|role| roles.contains(role))
    }

    /// Sends a request and checks the response. `granted` are prompt files and partials whose text the response may
    /// contain.
    async fn ask(&self, who: &(Vec<&str>, Caller), method: &str, params: Value, granted: &[&str]) -> String {
        self.count.set(self.count.get() + 1);
        let revision = REVISIONS[self.count.get() % REVISIONS.len()];
        let answer = send(&self.service, &who.1, revision, method, params.clone()).await;
        let case = format!("{:?} {method} {params} in {revision}: {answer}", who.0);
        // What the caller has sent may be repeated.
        let mut names = answer.clone();
        let mut sent = vec![params["uri"].clone(), params["name"].clone(), params["ref"]["name"].clone()];
        sent.extend(params["context"]["arguments"].as_object().into_iter().flat_map(|it| it.values().cloned()));
        sent.extend(params["arguments"].as_object().into_iter().flat_map(|it| it.values().cloned()));
        for value in sent.iter().filter_map(Value::as_str).filter(|value| !value.is_empty()) {
            // The name of a link is the last part of its URI.
            let last = value.rsplit('/').next().unwrap_or(value);
            names = names.replace(value, "").replace(last, "");
        }
        // So may the text of an open prompt file, which can name others.
        for file in self.plan.prompt_files().filter(|file| self.may(&who.0, &self.plan.roles(file))) {
            let (front, text) = plan::text_of(file);
            names = if front.is_empty() { names } else { names.replace(front, "") };
            names = names.replace(text, "");
        }
        for file in FILES {
            if !self.may(&who.0, &self.plan.roles(file)) {
                assert!(!answer.contains(&bytes_of(file)), "bytes of {file}: {case}");
                assert!(!names.contains(token(file)), "name of {file}: {case}");
            }
        }
        for file in UNSERVED.iter().filter(|file| !(file.ends_with(".pem") || file.ends_with(".MD"))) {
            assert!(!answer.contains(&bytes_of(file)) && !names.contains(token(file)), "{file}: {case}");
        }
        for file in self.plan.prompt_files() {
            let may_use = self.may(&who.0, &self.plan.prompt_roles(file));
            let may_read = self.may(&who.0, &self.plan.roles(file));
            let is_granted = granted.contains(&file) || (may_use && method == "prompts/get");
            assert!(is_granted || may_read || !answer.contains(&bytes_of(file)), "text of {file}: {case}");
            assert!(may_use || !names.contains(token(file)), "name of {file}: {case}");
        }
        answer
    }

    async fn check(&self) {
        let plan = self.plan;
        let mut values: Vec<String> = Vec::new();
        for file in FILES.iter().chain(UNSERVED).copied().chain(plan.prompt_files()) {
            values.extend(plan.paths(file));
            values.extend(plan.paths(file).iter().map(|path| format!("library:///{path}")));
            values.extend(plan.uris(file));
            values.push(token(file).to_owned());
        }
        for who in &callers() {
            for list in ["prompts/list", "resources/list", "resources/templates/list"] {
                self.ask(who, list, json!({}), &[]).await;
            }
            for (prompt, file) in plan.prompts() {
                let granted: &[&str] = if prompt == "zzpg" { &["zzpa.md", "zzph.md"] } else { &[] };
                let has_argument = ["zzpb", "zzpc", "zzpd", "zzpi", "zzpj", "zzpl"].contains(&prompt);
                // A part of all values for each caller, because a case takes seconds otherwise.
                let (start, step) = if has_argument { (self.count.get() % 3, 3) } else { (0, values.len()) };
                for value in values.iter().skip(start).step_by(step) {
                    let arguments = if has_argument { json!({ "which": value }) } else { json!({}) };
                    let params = json!({ "name": prompt, "arguments": arguments });
                    let answer = self.ask(who, "prompts/get", params, granted).await;
                    let may = self.may(&who.0, &plan.prompt_roles(file));
                    assert!(may || answer.contains("error"), "{prompt}: {answer}");
                }
                for typed in ["", "zz"] {
                    let reference = json!({ "type": "ref/prompt", "name": prompt });
                    let params = json!({ "ref": reference, "argument": { "name": "which", "value": typed } });
                    self.ask(who, "completion/complete", params, &[]).await;
                }
            }
            let catalog = self.library.catalog();
            for template in catalog.templates() {
                for variable in template.variables() {
                    let reference = json!({ "type": "ref/resource", "uri": template.uri() });
                    let params = json!({ "ref": reference, "argument": { "name": variable.name(), "value": "" } });
                    // Half of a name, as the author wrote it, names no file yet.
                    if !template.uri().starts_with("pair:") {
                        self.ask(who, "completion/complete", params.clone(), &[]).await;
                    }
                    for (name, value) in [("a", "closed"), ("b", "zzbb")] {
                        let mut params = params.clone();
                        params["context"] = json!({ "arguments": { name: value } });
                        self.ask(who, "completion/complete", params, &[]).await;
                    }
                }
            }
            for value in values.iter().filter(|value| value.contains("://")) {
                self.ask(who, "resources/read", json!({ "uri": value }), &[]).await;
            }
            self.check_service(who).await;
        }
    }

    /// Following and versions, and that nothing is closed without a rule.
    async fn check_service(&self, who: &(Vec<&'static str>, Caller)) {
        let service = self.library.service();
        for file in FILES {
            let may = self.may(&who.0, &self.plan.roles(file));
            for uri in self.plan.uris(file) {
                let case = format!("{:?} {uri}", who.0);
                assert_eq!(service.follow(&who.1, &uri).is_ok(), may, "follow: {case}");
                assert_eq!(service.view(&who.1).version(&uri).await.is_some(), may, "version: {case}");
                assert_eq!(service.read(&who.1, &uri).await.is_ok(), may, "read: {case}");
            }
        }
        let overview = service.overview(&who.1).expect("no limits");
        let listed: Vec<&str> = overview.listed().map(|prompt| prompt.name().as_str()).collect();
        for (prompt, file) in self.plan.prompts() {
            let may = self.may(&who.0, &self.plan.prompt_roles(file));
            assert_eq!(listed.contains(&prompt), may, "{:?} {prompt} {listed:?}", who.0);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    // req: S-15, S-19, S-46, S-47, S-48, S-49, S-50
    #[test]
    fn closed_files_reach_no_caller_by_any_method(plan in plan()) {
        let folder = tempfile::tempdir().expect("a folder");
        plan.write(folder.path());
        let source = Files::folder(folder.path().join("library"));
        source.grant_roots([folder.path().join("outer")]);
        let library = Library::builder().source(source).build().expect("a library");
        let errors: Vec<_> = library.diagnostics().iter().filter(|found| found.is_error()).cloned().collect();
        assert!(errors.is_empty(), "{errors:?}");
        let service = library.server().http(HttpOptions::default());
        let tried = Tried { plan: &plan, service, library, count: Default::default() };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(tried.check());
    }
}

//! Access rules: every caller, every prompt and every method.

use std::sync::Arc;

use promptshelf_core::{Prompt, RawArguments, Variables, cursor::ListKind};
use promptshelf_service::{Caller, Reference, Rejection, Service, Visibility};

use crate::library::{definitions, demand, known, prompt, rule, service};

fn callers() -> Vec<(&'static str, Caller)> {
    vec![
        ("local", Caller::local()),
        ("anonymous", Caller::anonymous()),
        ("without roles", known("eve", &[], &[])),
        ("ada", known("ada", &[], &[])),
        ("editor", known("eve", &[], &["editor"])),
        ("writer", known("eve", &["prompts:read", "prompts:write"], &[])),
        ("half", known("eve", &["prompts:write"], &[])),
        ("git", known("eve", &["git"], &[])),
    ]
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Expected {
    Open,
    Scopes,
    Hidden,
}

/// The expected decision, derived independently of the implementation: for each prompt the admitted callers, and its
/// visibility to others.
fn expected(caller: &str, prompt: &str) -> Expected {
    let (welcome, shown): (&[&str], bool) = match prompt {
        "open" | "picker" | "attaching" | "referring" => return Expected::Open,
        "for-ada" | "filed" => (&["ada"], false),
        "for-editors" | "tagged" => (&["editor"], false),
        "scoped" => (&["writer", "half"], false),
        "shown" => (&["writer"], true),
        "git-commit" => (&["git"], false),
        other => panic!("{other}"),
    };
    match (caller == "local" || welcome.contains(&caller), shown) {
        (true, _) => Expected::Open,
        (false, true) => Expected::Scopes,
        (false, false) => Expected::Hidden,
    }
}

fn listed(service: &Service, caller: &Caller, list: ListKind) -> Vec<String> {
    let page = service.list(caller, list, None).expect("a page");
    let name = |index: usize| match list {
        ListKind::Prompts => page.view().catalog().prompts()[index].name().to_string(),
        ListKind::Resources => page.view().catalog().resources()[index].uri().to_owned(),
        ListKind::ResourceTemplates => page.view().catalog().templates()[index].uri().to_owned(),
    };
    page.shown().map(name).collect()
}

// req: P17, S-14
#[tokio::test]
async fn rules_hold_for_all_callers_prompts_and_methods() {
    let service = service();
    for (who, caller) in callers() {
        let listed = listed(&service, &caller, ListKind::Prompts);
        let overview = service.overview(&caller).expect("an overview");
        for prompt in definitions().prompts {
            let name = prompt.name.as_str();
            let case = format!("{who} and {name}");
            let is_it = |found: &Arc<Prompt>| found.name().as_str() == name;
            let wanting = Rejection::InsufficientScope { scopes: vec!["prompts:read".into(), "prompts:write".into()] };
            let unknown = Rejection::UnknownPrompt { name: name.to_owned() };
            let expected = expected(who, name);
            assert_eq!(listed.iter().any(|known| known == name), expected != Expected::Hidden, "list: {case}");
            let (shown, usable) = (overview.listed().any(is_it), overview.usable().any(is_it));
            assert_eq!((shown, usable), (expected != Expected::Hidden, expected == Expected::Open), "overview: {case}");

            let got = service.get(&caller, name, &RawArguments::new()).await.map(drop);
            let argument = if name == "picker" { "uri" } else { "x" };
            let completed = service.complete(&caller, Reference::Prompt(name), argument, "", &Variables::new()).await;
            let opened = service.open(&caller, name).map(drop);
            let described = service.describe(&caller, name).map(drop);
            let completed = completed.map(drop);
            for (method, outcome) in [("get", got), ("complete", completed), ("open", opened), ("describe", described)]
            {
                match (expected, outcome) {
                    (Expected::Hidden, outcome) => assert_eq!(outcome, Err(unknown.clone()), "{method}: {case}"),
                    (Expected::Scopes, outcome) => assert_eq!(outcome, Err(wanting.clone()), "{method}: {case}"),
                    (Expected::Open, Err(Rejection::UnknownArgument { .. } | Rejection::UnusableArguments { .. }))
                        if matches!(name, "attaching" | "referring") => {}
                    (Expected::Open, outcome) => assert_eq!(outcome, Ok(()), "{method}: {case}"),
                }
            }
        }
    }
}

// req: P17, R-13, S-44
#[tokio::test]
async fn hidden_equals_missing() {
    let service = service();
    let caller = known("eve", &[], &[]);
    let get =
        async |name: &str| service.get(&caller, name, &RawArguments::new()).await.expect_err("no answer").to_string();
    assert_eq!(get("for-ada").await.replace("for-ada", "no-such"), get("no-such").await);
    let read = async |uri: &str| service.read(&caller, uri).await.expect_err("no answer").to_string();
    assert_eq!(read("docs://closed/a").await.replace("closed/a", "no/such"), read("docs://no/such").await);
    let complete = |uri: &str| {
        crate::now(service.complete(&caller, Reference::Resource(uri), "name", "", &Variables::new()))
            .expect_err("none")
            .to_string()
    };
    assert_eq!(complete("docs://closed/a").replace("closed/a", "no/such"), complete("docs://no/such"));
}

/// All URIs under which a restricted file could be read, in all spellings.
// req: S-15
#[tokio::test]
async fn uri_spelling_does_not_bypass_rules() {
    let service = service();
    let closed = [
        "docs://closed/a",
        "docs://closed/alias",
        // The same file by its library URI, and by another spelling of it.
        "library:///aliased.txt",
        "library:///%61liased.txt",
        "library:///secret/plan.txt",
        "library:///s%65cret/plan.txt",
        "library:///secret%2Fplan.txt",
        "notes://private",
        "notes://priv%61te",
        "notes://PRIVATE",
    ];
    for (who, caller) in callers() {
        for uri in closed {
            let may = who == "local"
                || match uri.starts_with("library:///s") {
                    true => who == "ada",
                    false => who == "editor",
                };
            assert_eq!(service.read(&caller, uri).await.is_ok(), may, "read: {who} {uri}");
            assert_eq!(service.view(&caller).version(uri).await.is_some(), may, "version: {who} {uri}");
            assert_eq!(service.view(&caller).serves(uri), may, "serves: {who} {uri}");
        }
        for uri in ["docs://open", "library:///open.txt", "notes://public"] {
            assert!(service.read(&caller, uri).await.is_ok(), "read: {who} {uri}");
        }
        let may_list = matches!(who, "local" | "editor");
        let resources = listed(&service, &caller, ListKind::Resources);
        assert_eq!(resources.iter().any(|uri| uri.contains("closed")), may_list, "{who}: {resources:?}");
    }
}

// req: E8, R-4, X11
#[tokio::test]
async fn completion_and_attachments_respect_rules() {
    let service = service();
    for (who, caller) in callers() {
        let values = |argument: &str| {
            crate::now(service.complete(&caller, Reference::Prompt("picker"), argument, "", &Variables::new()))
                .expect("suggestions")
                .into_value()
                .values
        };
        assert_eq!(values("uri").len(), if matches!(who, "local" | "editor") { 3 } else { 1 }, "{who}");
        assert_eq!(values("path").len(), if matches!(who, "local" | "ada") { 2 } else { 1 }, "{who}");
        let attached = service.get(&caller, "attaching", &RawArguments::new()).await;
        assert_eq!(attached.is_ok(), matches!(who, "local" | "editor"), "{who}");
    }
}

// req: S-19
#[tokio::test]
async fn links_respect_rules() {
    let mut definitions = definitions();
    for (name, uri) in
        [("to-open", "docs://open"), ("to-closed", "docs://closed/a"), ("to-alias", "library:///aliased.txt")]
    {
        let linking = promptshelf_core::PromptDefinition::template(name, format!("{{{{ link('{uri}') }}}}"));
        definitions.prompts.push(linking.description("LINKING").into());
    }
    let service =
        Service::new(promptshelf_core::CatalogHandle::new(promptshelf_core::check(definitions, None).catalog));
    for (who, caller) in callers() {
        for (prompt, may) in [
            ("to-open", true),
            ("to-closed", who == "local" || who == "editor"),
            ("to-alias", who == "local" || who == "editor"),
        ] {
            let mut answer = service.get(&caller, prompt, &RawArguments::new()).await.expect("a link");
            answer.resolve_links(1_000).await;
            let [message] = &*answer.value().messages else { panic!("{:?}", answer.value().messages) };
            let promptshelf_core::ContentBlock::Link(link) = &message.content else { panic!("{message:?}") };
            assert_eq!(link.target.is_some(), may, "{who}: {prompt}");
        }
    }
}

// req: F8, X10
#[test]
fn pages_and_cursors_reveal_only_visible_prompts() {
    let mut definitions = definitions();
    definitions.policy.page_size = 1;
    let checked = promptshelf_core::check(definitions, None);
    let service = Service::new(promptshelf_core::CatalogHandle::new(checked.catalog));
    for (who, caller) in callers() {
        let (mut seen, mut cursor) = (Vec::new(), None);
        loop {
            let page = service.list(&caller, ListKind::Prompts, cursor.as_deref()).expect("a page");
            let shown: Vec<usize> = page.shown().collect();
            assert_eq!(shown.len(), 1, "{who}");
            seen.push(page.view().catalog().prompts()[shown[0]].name().to_string());
            let Some(next) = page.into_value().page.next_cursor else { break };
            let last = promptshelf_core::cursor::decode(ListKind::Prompts, &next).expect("ours");
            assert_eq!(Some(&last), seen.last(), "{who}");
            cursor = Some(next);
        }
        let all = seen.iter().filter(|name| expected(who, name) != Expected::Hidden).count();
        assert_eq!(seen.len(), all, "{who}");
        assert!(seen.contains(&"open".to_owned()) && seen.contains(&"picker".to_owned()), "{who}: {seen:?}");
    }
}

// req: G4, R-6, X29
#[test]
fn cache_scope_is_private_if_answers_vary() {
    let visibility = |service: &Service, caller: &Caller| service.view(caller).visibility().clone();
    let restricted = service();
    assert_ne!(visibility(&restricted, &Caller::anonymous()), Visibility::Public);
    assert_ne!(visibility(&restricted, &known("ada", &[], &[])), visibility(&restricted, &known("eve", &[], &[])));
    assert_eq!(visibility(&restricted, &known("eve", &[], &[])), visibility(&restricted, &known("mallory", &[], &[])));

    let mut open = definitions();
    open.access.clear();
    open.prompts.retain(|prompt| prompt.access.is_none());
    let open = Service::new(promptshelf_core::CatalogHandle::new(promptshelf_core::check(open, None).catalog));
    assert_eq!(visibility(&open, &Caller::anonymous()), Visibility::Public);
    assert_eq!(visibility(&open, &Caller::local()), Visibility::Public);
    assert_ne!(visibility(&open, &known("ada", &[], &[])), Visibility::Public, "who signed in gets what others do not");
}

// req: S-22
#[test]
fn invalid_pattern_closes_everything() {
    let mut definitions = definitions();
    definitions.access.push(promptshelf_core::AccessRule {
        prompts: vec!["[".into()],
        ..crate::library::rule(crate::library::demand(&[], &["admin"], &[]))
    });
    let checked = promptshelf_core::check(definitions, None);
    assert!(checked.diagnostics.iter().any(promptshelf_core::Diagnostic::is_error));
    let service = Service::new(promptshelf_core::CatalogHandle::new(checked.catalog));
    assert_eq!(listed(&service, &known("ada", &["git"], &["editor"]), ListKind::Prompts), Vec::<String>::new());
}

#[test]
fn changed_rule_changes_list() {
    let catalog = |definitions| promptshelf_core::check(definitions, None).catalog;
    let handle = promptshelf_core::CatalogHandle::new(catalog(definitions()));
    assert!(!handle.replace(catalog(definitions())).prompts);
    let mut others = definitions();
    // A rule about resources, and one about prompts.
    others.access.pop();
    let change = handle.replace(catalog(others.clone()));
    assert!(change.resources && !change.prompts, "{change:?}");
    others.access.remove(0);
    let change = handle.replace(catalog(others));
    assert!(change.prompts && !change.resources, "{change:?}");
}

// req: S-14, S-44
#[test]
fn skill_is_as_closed_as_its_prompt() {
    let visible = promptshelf_core::Access { visible: true, ..demand(&["read"], &[], &[]) };
    let skills = [
        prompt("open").skill(),
        prompt("closed").access(demand(&[], &["editor"], &[])).skill(),
        prompt("shown").access(visible).skill(),
    ];
    let service = crate::service(crate::prompts(skills));
    let editor = known("eve", &["read"], &["editor"]);
    for (caller, closed, shown) in
        [(known("eve", &[], &[]), false, false), (editor, true, true), (Caller::local(), true, true)]
    {
        let listed = service.list_skills(&caller, None).expect("a page");
        let names: Vec<String> = listed.value().skills.iter().map(|skill| skill.name().to_owned()).collect();
        assert_eq!(names.contains(&"closed".to_owned()), closed, "{names:?}");
        for (name, is_open) in [("open", true), ("closed", closed), ("shown", shown)] {
            let file = service.skill(&caller, &format!("skill://{name}/SKILL.md")).map(drop);
            let folder = service.skill_folder(&caller, &format!("skill://{name}"), None).map(drop);
            if is_open {
                assert_eq!((file, folder), (Ok(()), Ok(())), "{name}");
            } else if name == "shown" {
                let wanting = Err(Rejection::InsufficientScope { scopes: vec!["read".to_owned()] });
                assert_eq!((&file, &folder), (&wanting, &wanting));
            } else {
                let text = |result: Result<(), Rejection>| result.expect_err("hidden").to_string().replace(name, "no");
                let none = "skill://no/SKILL.md";
                assert_eq!(text(file), text(service.skill(&caller, none).map(drop)));
                assert_eq!(text(folder), text(service.skill_folder(&caller, "skill://no", None).map(drop)));
            }
        }
    }
}

// req: S-44
#[test]
fn diagnostics_are_for_those_who_may_see_everything() {
    let open = || crate::prompts([prompt("open")]);
    let closed = || crate::prompts([prompt("closed").access(demand(&[], &["editor"], &[]))]);
    let ruled = |access| {
        let rule = promptshelf_core::AccessRule { diagnostics: true, ..rule(access) };
        promptshelf_core::Definitions { access: vec![rule], ..open() }
    };
    let visible = promptshelf_core::Access { visible: true, ..demand(&["debug"], &[], &[]) };
    let wanting = || Err(Rejection::InsufficientScope { scopes: vec!["debug".to_owned()] });
    let (nobody, ada) = (Caller::anonymous(), known("ada", &["debug"], &["author"]));
    let rows = [
        ("open", open(), Ok(true), Ok(false)),
        ("closed", closed(), Ok(false), Ok(false)),
        ("for authors", ruled(demand(&[], &["author"], &[])), Ok(false), Ok(true)),
        ("for others", ruled(demand(&[], &["other"], &[])), Ok(false), Ok(false)),
        ("with a scope", ruled(visible), wanting(), Ok(true)),
    ];
    for (case, definitions, of_nobody, of_ada) in rows {
        let service = crate::service(definitions);
        assert_eq!(service.sees_diagnostics(&nobody), of_nobody, "{case}");
        assert_eq!(service.sees_diagnostics(&ada), of_ada, "{case}");
        assert_eq!(service.sees_diagnostics(&Caller::local()), Ok(true), "{case}");
    }
}

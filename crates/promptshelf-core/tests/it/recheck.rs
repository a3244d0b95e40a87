//! Checks with a previous catalog: parts that are reused, kept or dropped when definitions change.

use std::sync::Arc;

use promptshelf_core::{
    Access, ArgumentDefinition, Body, BrokenFile, Catalog, CatalogHandle, Change, Code, CompletionSource, Definitions,
    Label, LibraryFile, MimeType, Origin, PromptDefinition, Requirements, ResourceBody, ResourceContent,
    ResourceDefinition, SourceText, check,
};

/// A library as a source provides it, in successive versions.
#[derive(Clone, Default)]
struct Library(Definitions);

impl Library {
    fn with(&self, path: &str, template: &str) -> Library {
        let mut library = self.without(path);
        let mut prompt = PromptDefinition::template(path.trim_end_matches(".md"), "").description("A prompt");
        prompt.origin = Origin::new(SourceText::new(path, template));
        prompt.body = Body::Template { range: 0..template.len() };
        library.0.prompts.push(prompt.into());
        library
    }

    fn without(&self, path: &str) -> Library {
        let mut library = self.clone();
        library.0.prompts.retain(|prompt| prompt.origin.source.path != path);
        library
    }

    fn edit(&self, path: &str, edit: impl FnOnce(&mut PromptDefinition)) -> Library {
        let mut library = self.clone();
        let found = library.0.prompts.iter_mut().find(|prompt| prompt.origin.source.path == path);
        let prompt = Arc::make_mut(found.expect("it is there"));
        let text = prompt.origin.source.text.clone();
        prompt.origin = Origin::new(SourceText::new(path, text));
        edit(prompt);
        library
    }

    fn partial(&self, path: &str, text: &str) -> Library {
        let mut library = self.clone();
        library.0.partials.insert(path.into(), SourceText::new(path, text));
        library
    }

    fn file(&self, path: &str, text: &str) -> Library {
        let mut library = self.clone();
        let body = ResourceBody::Text(text.into());
        let file =
            LibraryFile { path: path.into(), mime_type: MimeType::plain_text(), body, has_mark: false, modified: None };
        library.0.files.insert(path.into(), Arc::new(file));
        library
    }

    fn resource(&self, uri: &str) -> Library {
        let mut library = self.clone();
        let content = ResourceContent::Fixed(ResourceBody::Text("x".into()));
        let origin = Origin::new(SourceText::new("promptshelf.toml", ""));
        library.0.resources.push(ResourceDefinition::from_source(uri, content, origin));
        library
    }

    fn check(&self, previous: Option<&Catalog>) -> (Catalog, Vec<Code>) {
        let checked = check(self.0.clone(), previous);
        (checked.catalog, checked.diagnostics.iter().map(|found| found.code).collect())
    }
}

fn names(catalog: &Catalog) -> Vec<&str> {
    catalog.prompts().iter().map(|prompt| prompt.name().as_str()).collect()
}

fn is_same(name: &str, before: &Catalog, after: &Catalog) -> bool {
    match (before.find(name), after.find(name)) {
        (Some(before), Some(after)) => Arc::ptr_eq(before, after),
        _ => false,
    }
}

#[test]
fn broken_edit_keeps_the_last_good_prompt() {
    let good = Library::default().with("a.md", "Good.").with("b.md", "B.");
    let (first, _) = good.check(None);
    let (second, found) = good.with("a.md", "{{ broken").check(Some(&first));
    assert_eq!(found, [Code::TemplateSyntax]);
    assert_eq!(names(&second), ["a", "b"]);
    assert!(is_same("a", &first, &second) && is_same("b", &first, &second));

    let (third, found) = good.with("a.md", "{{ broken").check(Some(&second));
    assert_eq!(found, [Code::TemplateSyntax], "it is reported again");
    assert!(is_same("a", &first, &third), "and it stays for as long as it takes");

    let (fourth, found) = good.with("a.md", "Better.").check(Some(&third));
    assert_eq!(found, []);
    assert!(!is_same("a", &first, &fourth));
}

#[test]
fn unreadable_file_keeps_its_prompts() {
    let good = Library::default().with("a.md", "Good.").with("b.md", "B.");
    let (first, _) = good.check(None);
    let mut unreadable = good.without("a.md");
    unreadable.0.broken.push(BrokenFile::new("a.md", Requirements::Known(None)));
    let (second, _) = unreadable.check(Some(&first));
    assert!(is_same("a", &first, &second));
    assert_eq!(names(&unreadable.check(None).0), ["b"], "without a good version there is nothing to keep");
}

#[test]
fn broken_edit_that_restricts_access_takes_effect() {
    let access = |role: &str| Some(Access { roles: vec![role.to_owned()], ..Access::default() });
    let with = |access: Option<Access>, template: &str| {
        Library::default().with("a.md", template).edit("a.md", |prompt| prompt.access = access.map(Arc::new))
    };
    let after = |before: Option<Access>, now: Library| {
        let (first, _) = with(before, "Good.").check(None);
        names(&now.check(Some(&first)).0).len()
    };
    let changed = |requirements: Requirements| {
        let mut library = Library::default();
        library.0.broken.push(BrokenFile::new("a.md", requirements));
        library
    };
    for (before, now, stays) in [
        (None, None, true),
        (None, access("a"), false),
        (access("a"), access("a"), true),
        (access("a"), access("b"), false),
        (access("a"), None, true),
    ] {
        assert_eq!(after(before.clone(), with(now.clone(), "{{ broken")), usize::from(stays), "{before:?} {now:?}");
        assert_eq!(
            after(before.clone(), changed(Requirements::Known(now.clone()))),
            usize::from(stays),
            "{before:?} {now:?}"
        );
    }
    assert_eq!(after(None, changed(Requirements::Unknown)), 0);
}

#[test]
fn broken_file_keeps_no_prompt_of_another_source() {
    let named = |name: &str| Library::default().with("a.md", "Good.").edit("a.md", |prompt| prompt.name = name.into());
    let both = |first: Library, second: Library| {
        let mut definitions = first.0.of_source(0);
        definitions.merge(second.0.of_source(1));
        Library(definitions)
    };
    let (first, _) = both(named("one"), named("two")).check(None);
    assert_eq!(names(&first), ["one", "two"]);
    let mut broken = Library::default();
    broken.0.broken.push(BrokenFile::new("a.md", Requirements::Known(None)));
    assert_eq!(names(&both(broken.clone(), Library::default()).check(Some(&first)).0), ["one"]);
    assert_eq!(names(&both(Library::default(), broken).check(Some(&first)).0), ["two"]);
}

#[test]
fn removed_file_drops_its_prompt() {
    let good = Library::default().with("a.md", "A.").with("b.md", "B.");
    let (first, _) = good.check(None);
    assert_eq!(names(&good.without("a.md").check(Some(&first)).0), ["b"]);
}

#[test]
fn broken_rename_keeps_the_old_name() {
    let good = Library::default().with("a.md", "A.");
    let (first, _) = good.check(None);
    let renamed = good.with("a.md", "{{ broken").edit("a.md", |prompt| prompt.name = "z".into());
    assert_eq!(names(&renamed.check(Some(&first)).0), ["a"]);
}

#[test]
fn good_prompt_takes_the_name_of_a_broken_one() {
    let good = Library::default().with("a.md", "A.");
    let (first, _) = good.check(None);
    let renamed = good.with("a.md", "{{ broken").with("b.md", "B.");
    let renamed =
        renamed.edit("a.md", |prompt| prompt.name = "z".into()).edit("b.md", |prompt| prompt.name = "a".into());
    let (second, _) = renamed.check(Some(&first));
    assert_eq!(names(&second), ["a"]);
    assert_eq!(second.find("a").expect("it is there").source().path, "b.md");
}

// req: B3, X28
#[test]
fn duplicate_names_keep_only_what_was_served() {
    let good = Library::default().with("a.md", "A.");
    let (first, _) = good.check(None);
    let twice = good.with("b.md", "B.").edit("b.md", |prompt| prompt.name = "a".into());
    let (second, found) = twice.check(Some(&first));
    assert_eq!(found, [Code::DuplicateName, Code::DuplicateName]);
    assert_eq!(names(&second), ["a"]);
    assert_eq!(second.find("a").expect("it is there").source().path, "a.md");
    assert!(names(&twice.check(None).0).is_empty());
    // Neither of the files has the name any longer.
    let moved = twice.edit("a.md", |prompt| prompt.name = "x".into()).with("c.md", "C.");
    let moved = moved.edit("b.md", |prompt| prompt.name = "x".into());
    let (third, _) = moved.check(Some(&second));
    assert_eq!(names(&third), ["c"]);
}

#[test]
fn unchanged_prompt_is_reused_with_its_warnings() {
    let library = Library::default()
        .partial("_p", "{{ x }}")
        .file("f.txt", "F")
        .with("A__b.md", "{% include '_p' %}{{ attach('f.txt') }}{{ role('user') }}")
        .edit("A__b.md", |prompt| {
            prompt.arguments = vec![
                ArgumentDefinition::new("x").complete(CompletionSource::Paths(["a".to_owned()].into())),
                ArgumentDefinition::new("unused"),
            ];
        });
    let (first, found) = library.check(None);
    assert_eq!(found, [Code::UnportableName, Code::UnusedArgument]);
    let (second, repeated) = library.check(Some(&first));
    assert!(is_same("A__b", &first, &second));
    assert_eq!(found, repeated);
}

#[test]
fn changed_partial_rebuilds_its_prompts() {
    let library = Library::default().partial("_p", "{% include '_q' %}").partial("_q", "Q");
    let library = library.with("a.md", "{% include '_p' %}").with("b.md", "B.");
    let (first, _) = library.check(None);
    let (second, found) = library.partial("_q", "{{ nothing }}").check(Some(&first));
    assert_eq!(found, [Code::UndeclaredArgument]);
    assert!(is_same("a", &first, &second), "a broken partial keeps the last good prompt");
    let (third, _) = library.partial("_q", "QQ").check(Some(&second));
    assert!(!is_same("a", &first, &third) && is_same("b", &first, &third));
}

#[test]
fn changed_attachment_rebuilds_its_prompts() {
    let library = Library::default().file("f.txt", "One").with("a.md", "{{ attach('f.txt') }}");
    let (first, _) = library.check(None);
    let (second, _) = library.file("f.txt", "Two").check(Some(&first));
    assert!(!is_same("a", &first, &second));
    let mut gone = library.clone();
    gone.0.files.clear();
    let (third, found) = gone.check(Some(&second));
    assert_eq!(found, [Code::MissingFile]);
    assert!(is_same("a", &second, &third));
}

#[test]
fn removed_resource_is_reported_for_unchanged_prompts() {
    let library = Library::default().with("a.md", "{{ attach('docs://x') }}");
    let (first, found) = library.resource("docs://x").check(None);
    assert_eq!(found, []);
    let (second, found) = library.check(Some(&first));
    assert_eq!(found, [Code::UnknownResource]);
    assert!(is_same("a", &first, &second));
}

#[test]
fn removed_completion_file_is_reported() {
    let library = Library::default().with("a.md", "{{ x }}").edit("a.md", |prompt| {
        prompt.arguments = vec![ArgumentDefinition::new("x").complete(CompletionSource::File("f.txt".into()))];
    });
    let (first, found) = library.file("f.txt", "F").check(None);
    assert_eq!(found, []);
    assert_eq!(library.check(Some(&first)).1, [Code::MissingFile]);
}

#[test]
fn changed_limits_rebuild_every_prompt() {
    let library = Library::default().with("a.md", "A.");
    let (first, _) = library.check(None);
    let mut tighter = library.clone();
    tighter.0.policy.budget.output_bytes = 1;
    let (second, _) = tighter.check(Some(&first));
    assert!(!is_same("a", &first, &second));
    assert!(crate::render(&rename(&second), &promptshelf_core::RawArguments::new()).is_err());
}

/// The same catalog with its prompt renamed to `it`, the name that `render` uses.
fn rename(catalog: &Catalog) -> Catalog {
    let prompt = PromptDefinition::template("it", "A.").description("x");
    let policy = catalog.policy().clone();
    check(Definitions { policy, ..Definitions::from_iter([prompt]) }, Some(catalog)).catalog
}

#[test]
fn changed_definition_in_code_is_rebuilt() {
    let mut one = Library::default().with("a.md", "{{ x }} more");
    Arc::make_mut(&mut one.0.prompts[0]).arguments = vec![ArgumentDefinition::new("x")];
    let (first, _) = one.check(None);
    for edit in [
        |prompt: &mut PromptDefinition| prompt.title = Some("T".into()),
        |prompt: &mut PromptDefinition| prompt.tags = vec!["t".into()],
        |prompt: &mut PromptDefinition| prompt.arguments[0].required = true,
        |prompt: &mut PromptDefinition| prompt.body = Body::Template { range: 0..8 },
    ] {
        let mut other = one.clone();
        edit(Arc::make_mut(&mut other.0.prompts[0]));
        let (second, _) = other.check(Some(&first));
        assert!(!is_same("a", &first, &second));
    }
}

/// Returns the change that observers receive when one library replaces another.
fn change(from: &Library, to: &Library) -> Change {
    let handle = CatalogHandle::new(from.check(None).0);
    let next = to.check(Some(&handle.current())).0;
    handle.replace(next)
}

#[test]
fn text_change_leaves_the_list_unchanged() {
    let library = Library::default().with("a.md", "A.");
    let difference = change(&library, &library.with("a.md", "Other."));
    assert_eq!(
        (difference.prompts, difference.resources, difference.contents, difference.generation),
        (false, false, true, 1)
    );
}

#[test]
fn listed_field_change_changes_the_list() {
    let library = Library::default().with("a.md", "{{ x }}").edit("a.md", |prompt| {
        prompt.arguments = vec![ArgumentDefinition::new("x")];
    });
    for edit in [
        |prompt: &mut PromptDefinition| prompt.title = Some("T".into()),
        |prompt: &mut PromptDefinition| prompt.description = Some("D".into()),
        |prompt: &mut PromptDefinition| {
            static CONTACT: Label = Label::text("contact", "Whom to ask").listed();
            prompt.labels = [(&CONTACT, vec!["team-a".to_owned()])].into_iter().collect();
        },
        |prompt: &mut PromptDefinition| prompt.arguments[0].required = true,
        |prompt: &mut PromptDefinition| prompt.arguments[0].description = Some("D".into()),
        |prompt: &mut PromptDefinition| prompt.name = "z".into(),
    ] {
        assert!(change(&library, &library.edit("a.md", edit)).prompts);
    }
    for edit in [
        |prompt: &mut PromptDefinition| {
            prompt.arguments[0].constraints.get_or_insert_default().pattern = Some("x".into());
        },
        |prompt: &mut PromptDefinition| prompt.version = Some("2".into()),
        |prompt: &mut PromptDefinition| prompt.tags = vec!["t".into()],
    ] {
        assert!(!change(&library, &library.edit("a.md", edit)).prompts);
    }
    assert!(change(&library, &library.with("b.md", "B.")).prompts);
    assert!(change(&library, &library.without("a.md")).prompts);
    assert!(!change(&library, &library.with("a.md", "{{ broken")).prompts);
    assert!(change(&library, &library.resource("docs://x")).resources);
    assert!(!change(&library, &library.resource("docs://x")).prompts);
}

#[test]
fn edited_file_leaves_the_resource_list_unchanged() {
    let before = Library::default().resource("docs://x");
    let mut after = before.clone();
    after.0.resources[0].size = Some(9);
    after.0.resources[0].annotations.last_modified = "1970-01-01T00:00:00Z".parse().ok();
    let difference = change(&before, &after);
    assert_eq!((difference.resources, difference.contents), (false, true));
    after.0.resources[0].annotations.priority = Some(0.5);
    assert!(change(&before, &after).resources);
}

#[test]
fn added_prompt_leaves_the_resource_list_unchanged_under_access_rules() {
    let role = |role: &str| Some(Arc::new(Access { roles: vec![role.to_owned()], ..Access::default() }));
    let before = Library::default().resource("docs://x").with("b.md", "B.").edit("b.md", |it| it.access = role("one"));
    let after = before.with("a.md", "A.").edit("a.md", |it| it.access = role("two"));
    let difference = change(&before, &after);
    assert!(difference.prompts && !difference.resources, "{difference:?}");
    assert!(!change(&before, &before.edit("b.md", |it| it.access = role("two"))).resources);
    assert!(change(&before, &before.edit("b.md", |it| it.access = role("two"))).prompts);
}

#[test]
fn broken_prompt_of_a_revision_does_not_keep_its_version() {
    let of = |text: &str, is_revision| {
        let caller = PromptDefinition::template("caller", "{{ prompt('callee') }}").description("d");
        let callee = PromptDefinition::template("callee", text).description("d");
        Definitions { is_revision, ..Definitions::from_iter([caller, callee]) }
    };
    let names = |catalog: &Catalog| catalog.prompts().iter().map(|it| it.name().to_string()).collect::<Vec<_>>();
    let before = check(of("one", true), None).catalog;
    assert_eq!(names(&before), ["callee", "caller"]);
    assert_eq!(names(&check(of("{{ nme }}", false), Some(&before)).catalog), ["callee", "caller"]);
    let after = check(of("{{ nme }}", true), Some(&before));
    let anew = check(of("{{ nme }}", true), None);
    assert_eq!((names(&after.catalog), after.diagnostics), (names(&anew.catalog), anew.diagnostics));
    assert_eq!(names(&after.catalog), [""; 0]);
}

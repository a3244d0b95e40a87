//! The check of skills: folders with a `SKILL.md`, and prompts with `skill: true`.
//!
//! A folder or prompt that cannot be a skill is reported, and stays a prompt.

use std::{collections::BTreeMap, sync::Arc};

use super::skill_text::{self, Fault, MAX_DESCRIPTION};
use crate::{
    catalog::Catalog,
    content::{Meta, MimeType, ResourceBody},
    definition::{LibraryFile, Origin, ResourceContent, ResourceDefinition, SkillSource},
    diagnostic::{Code, Diagnostic},
    prompt::Prompt,
    resource::{Address, CheckedContent, Resource},
    skill::{MANIFEST, Skill, SkillFile, Skills, uri_of},
};

/// Limits of the extension for one skill: files, and bytes of all files.
const MAX_FILES: usize = 512;
const MAX_BYTES: usize = 16 << 20;

const MAX_NAME: usize = 64;

/// Returns the valid skills of a catalog, without their requirements, each with the index of its prompt. Their
/// `SKILL.md` becomes a resource of the catalog.
pub(super) fn collect(
    catalog: &mut Catalog,
    previous: Option<&Skills>,
    found: &mut Vec<Diagnostic>,
) -> Vec<(usize, Skill)> {
    let mut skills: BTreeMap<String, (usize, Skill)> = BTreeMap::new();
    let mut refused = Vec::new();
    let namespace = catalog.files.namespace.clone();
    let path_of = |name: &str| path_of(namespace.as_deref(), name);
    for (index, prompt) in catalog.prompts.iter().enumerate() {
        let Some(source) = &prompt.definition.skill else { continue };
        let skill = match source {
            SkillSource::Folder(frontmatter) => of_folder(catalog, prompt, frontmatter, path_of, previous, found),
            SkillSource::Prompt => of_prompt(prompt, path_of, previous, &mut refused),
        };
        let is_taken = |skill: Skill| match catalog.resources.find_declared(skill.uri()) {
            _ if skills.contains_key(skill.name()) => {
                let message = format!("another skill has the name `{}` already", skill.name());
                Err(Fault(message, "give one of them another name"))
            }
            Some(_) => {
                let message = format!("the library declares a resource `{}` of its own", skill.uri());
                Err(Fault(message, "remove the resource: the skill declares it"))
            }
            None => Ok(skill),
        };
        match skill.and_then(is_taken) {
            Ok(skill) => {
                skills.insert(skill.name.clone(), (index, skill));
            }
            Err(Fault(reason, help)) => {
                let location = prompt.definition.origin.locate("name");
                let message = format!("this is not served as a skill: {reason}");
                refused.push(Diagnostic::warning(Code::InvalidSkill, location, message).help(help));
            }
        }
    }
    found.extend(refused);
    let skills: Vec<_> = skills.into_values().collect();
    if !skills.is_empty() {
        let own = skills.iter().map(|(index, skill)| Arc::new(resource(&catalog.prompts[*index], skill)));
        let mut fixed: Vec<_> = catalog.resources.fixed.iter().cloned().chain(own).collect();
        fixed.sort_by(|one, other| one.uri().cmp(other.uri()));
        catalog.resources.fixed = fixed.into();
    }
    skills
}

pub(super) fn add(catalog: &mut Catalog, skills: Vec<(usize, Skill)>) {
    if skills.is_empty() {
        return;
    }
    let skills: Vec<Skill> = skills
        .into_iter()
        .map(|(index, skill)| Skill { access: catalog.access_of_skill(index, &skill), ..skill })
        .collect();
    for skill in &skills {
        if let Ok(place) = catalog.resources.fixed.binary_search_by(|resource| resource.uri().cmp(skill.uri())) {
            // The table was created for this catalog, and is not shared yet.
            if let Some(access) = Arc::get_mut(&mut catalog.access) {
                access.restrict_resource(place, &skill.access);
            }
        }
    }
    catalog.skills = Arc::new(Skills(skills.into_iter().map(|skill| (skill.path.clone(), Arc::new(skill))).collect()));
}

fn of_folder(
    catalog: &Catalog,
    prompt: &Prompt,
    frontmatter: &Arc<Meta>,
    path_of: impl Fn(&str) -> String,
    previous: Option<&Skills>,
    found: &[Diagnostic],
) -> Result<Skill, Fault> {
    let path = &*prompt.source().path;
    let folder = path.strip_suffix(MANIFEST).unwrap_or_default();
    let folder_name = folder.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let text = |key: &str| frontmatter.get(key).and_then(serde_json::Value::as_str).unwrap_or_default();
    let name = text("name");
    if name.is_empty() || text("description").trim().is_empty() {
        let message = "its front matter lacks a `name` or a `description`".to_owned();
        return Err(Fault(message, "write both; clients show them before they read the skill"));
    }
    check_name(name)?;
    if name != folder_name {
        let message = format!("its name is `{name}`, and its folder is called `{folder_name}`");
        return Err(Fault(message, "give both the same name"));
    }
    if text("description").chars().count() > MAX_DESCRIPTION {
        let message = format!("its description has more than {MAX_DESCRIPTION} characters");
        return Err(Fault(message, "shorten the description"));
    }
    let is_unread = |found: &&Diagnostic| {
        let place = &*found.location.source.path;
        let is_left_out = matches!(found.code, Code::Outside | Code::TooLarge | Code::Unreadable | Code::NotUtf8);
        (is_left_out && place.starts_with(folder) && place != path) || (found.code == Code::TooMany && place == ".")
    };
    if let Some(unread) = found.iter().find(is_unread) {
        let message =
            format!("its file `{}` cannot be read, and a skill is served as a whole", unread.location.source.path);
        return Err(Fault(message, "correct or remove the file"));
    }
    let links = &catalog.files.links;
    let home = links.place(folder.trim_end_matches('/'));
    let skill_path = path_of(name);
    let previous = previous.and_then(|previous| previous.0.get(&skill_path));
    let mut files = BTreeMap::new();
    let mut add = |below: &str, file: Arc<LibraryFile>| {
        let before = previous.and_then(|previous| previous.files.get(below));
        let file = with_mark(file, before);
        files.insert(below.to_owned(), SkillFile::new(&skill_path, below, file, before));
    };
    add(MANIFEST, manifest(prompt, &prompt.source().text));
    for (path, file) in
        catalog.files.by_path.range(folder.to_owned()..).take_while(|(path, _)| path.starts_with(folder))
    {
        let is_inside = links.place(path).strip_prefix(&*home).is_some_and(|rest| rest.starts_with('/'));
        if !is_inside {
            let message = format!("`{path}` is a link that leads out of the skill's folder");
            return Err(Fault(message, "copy the file into the folder"));
        }
        if file.is_served() {
            add(&path[folder.len()..], Arc::clone(file));
        }
    }
    if files.len() > MAX_FILES {
        let message = format!("it has {} files; the limit of the protocol is {MAX_FILES}", files.len());
        return Err(Fault(message, "remove files, or split the skill"));
    }
    let bytes: u64 = files.values().map(SkillFile::size).sum();
    if bytes > MAX_BYTES as u64 {
        let message = format!("its files have {bytes} bytes; the limit of the protocol is {MAX_BYTES}");
        return Err(Fault(message, "make its files smaller, or split the skill"));
    }
    Ok(skill(name, skill_path, Arc::clone(frontmatter), files))
}

fn of_prompt(
    prompt: &Prompt,
    path_of: impl Fn(&str) -> String,
    previous: Option<&Skills>,
    found: &mut Vec<Diagnostic>,
) -> Result<Skill, Fault> {
    let name = prompt.name().as_str().to_ascii_lowercase().replace(['_', '.'], "-");
    check_name(&name)?;
    let (text, frontmatter) = skill_text::of(prompt, &name, found)?;
    let path = path_of(&name);
    let before = previous.and_then(|previous| previous.0.get(&path)?.files.get(MANIFEST));
    // An unchanged text keeps its allocation, by which its digest is known.
    let text = match before.map(|before| &before.file().body) {
        Some(ResourceBody::Text(known)) if **known == *text => Arc::clone(known),
        _ => Arc::from(text),
    };
    let file = SkillFile::new(&path, MANIFEST, manifest(prompt, &text), before);
    Ok(skill(&name, path, Arc::new(frontmatter), BTreeMap::from([(MANIFEST.to_owned(), file)])))
}

fn skill(name: &str, path: String, frontmatter: Arc<Meta>, files: BTreeMap<String, SkillFile>) -> Skill {
    let uri = uri_of(&path, MANIFEST);
    Skill { name: name.to_owned(), path, uri, frontmatter, files, access: Vec::new() }
}

/// Returns the path of a skill. The namespace comes first and the name stays as it is: the front matter, which has the
/// name too, is served verbatim.
fn path_of(namespace: Option<&str>, name: &str) -> String {
    namespace.map_or_else(|| name.to_owned(), |namespace| format!("{namespace}/{name}"))
}

fn check_name(name: &str) -> Result<(), Fault> {
    let is_valid = !name.is_empty()
        && name.len() <= MAX_NAME
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        && !name.starts_with('-')
        && !name.ends_with('-')
        && !name.contains("--");
    if is_valid {
        return Ok(());
    }
    let message = format!("the name `{name}` is not the name of a skill");
    Err(Fault(message, "use 1 to 64 lower-case letters, digits and single hyphens between them"))
}

/// Returns a file with all of its bytes: skills are copied to clients unchanged.
fn with_mark(file: Arc<LibraryFile>, before: Option<&SkillFile>) -> Arc<LibraryFile> {
    const MARK: char = '\u{feff}';
    let ResourceBody::Text(text) = &file.body else { return file };
    if !file.has_mark || text.starts_with(MARK) {
        return file;
    }
    // An unchanged text keeps its allocation, by which its digest is known.
    let body = match before.map(|before| &before.file().body) {
        Some(ResourceBody::Text(known)) if known.strip_prefix(MARK) == Some(&**text) => Arc::clone(known),
        _ => Arc::from(format!("{MARK}{text}")),
    };
    Arc::new(LibraryFile { body: ResourceBody::Text(body), ..LibraryFile::clone(&file) })
}

/// Returns the `SKILL.md` as a file. Its path is that of the prompt's file, whose access rules apply to it.
fn manifest(prompt: &Prompt, text: &Arc<str>) -> Arc<LibraryFile> {
    Arc::new(LibraryFile {
        path: prompt.source().path.clone(),
        mime_type: markdown(),
        body: ResourceBody::Text(Arc::clone(text)),
        has_mark: false,
        modified: prompt.definition.origin.modified,
    })
}

fn markdown() -> MimeType {
    MimeType::parse("text/markdown").unwrap_or_else(MimeType::plain_text)
}

/// Returns the `SKILL.md` of a skill as a resource, for clients without the extension.
fn resource(prompt: &Prompt, skill: &Skill) -> Resource {
    let file =
        skill.files.get(MANIFEST).map_or_else(|| manifest(prompt, &Arc::from("")), |file| Arc::clone(file.file()));
    let mut origin = Origin::new(Arc::clone(prompt.source()));
    origin.from = prompt.definition.origin.from;
    let content = ResourceContent::LibraryFile(file.path.clone());
    let definition = ResourceDefinition {
        name: skill.name.clone(),
        description: skill.description().map(str::to_owned),
        ..ResourceDefinition::from_source(skill.uri(), content, origin)
    };
    Resource {
        definition,
        address: Address::Uri(Arc::from(skill.uri())),
        variables: Vec::new(),
        mime_type: markdown(),
        content: CheckedContent::File(file),
    }
}

//! Random libraries on disk, and the names of their files, derived independently of the implementation.

use std::{fmt::Write as _, path::Path};

use proptest::{prelude::*, sample::subsequence};

/// Files by their names in the test: paths inside the library, or below the root `outer`, which is elsewhere. The last
/// part of each name occurs nowhere else.
pub(super) const FILES: &[&str] = &[
    "open/zzaa.txt",
    "closed/zzbb.txt",
    "closed/deep/zzcc.txt",
    "notes/zzdd.txt",
    "_project/zzff.txt",
    "_project/sub/zzgg.txt",
    "outer/zzhh.txt",
    "outer/sub/zzii.txt",
];

/// Files that nothing serves.
pub(super) const UNSERVED: &[&str] =
    &["open/zzba.txt.bak", "closed/zzbo.txt.ORIG", "zzke.pem", "zzmd.MD", "notes/zzno.txt.1"];

/// Prompt files: path, front matter, text.
const PROMPTS: &[(&str, &str, &str)] = &[
    ("zzpa.md", "", "{{ attach('closed/zzbb.txt') }}"),
    ("zzpb.md", "arguments: [{name: which, complete: {files: '**/*'}}]", "{{ attach(which) }}"),
    ("zzpc.md", "arguments: [{name: which}]", "{{ attach('closed/' ~ which ~ '.txt') }}"),
    ("zzpd.md", "arguments: [{name: which, complete: {files: 'closed/**'}}]", "{{ link(which) }}"),
    ("zzpe.md", "", "{{ link('closed/deep/zzcc.txt') }}"),
    ("zzpf.md", "", "{% include '_part/zzee.md' %}"),
    ("zzpg.md", "", "{{ prompt('zzpa') }} {{ prompt('zzph') }}"),
    ("zzph.md", "access: {roles: [one]}", "Nothing else."),
    ("zzpi.md", "arguments: [{name: which, complete: {resources: '*'}}]", "{{ attach(which) }}"),
    (
        "zzpj.md",
        "arguments: [{name: which, complete: {files: '**/*', root: project}}]",
        "{{ attach('file:///' ~ which) }}",
    ),
    ("zzpl.md", "arguments: [{name: which, complete: [closed/zzbb.txt, 'doc://bb']}]", "{{ link(which) }}"),
    ("closed/zzpk.md", "", "A prompt in a folder."),
    ("zzpm.md", "", "{{ attach('open/zzaa.txt') }}{{ attach('notes/zzdd.txt') }}"),
];

/// Symbolic links, each with its target from its own folder, and the prefix that it stands for.
const LINKS: &[(&str, &str, &str)] = &[
    ("shown", "closed", "closed"),
    ("open/zzlk.txt", "../closed/zzbb.txt", "closed/zzbb.txt"),
    ("_project/zzln.txt", "sub/zzgg.txt", "_project/sub/zzgg.txt"),
    ("zzpr.md", "closed/zzpk.md", "closed/zzpk.md"),
];

/// Declarations of resources, by the scheme of their URIs.
const RESOURCES: &[(&str, &str)] = &[
    ("doc://bb", "uri = 'doc://bb'\nfile = 'closed/zzbb.txt'"),
    ("doc://ff", "uri = 'doc://ff'\nfile = 'zzff.txt'\nroot = 'project'"),
    ("doc://hh", "uri = 'doc://hh'\nfile = 'zzhh.txt'\nroot = 'outer'"),
    ("all", "uri = 'all:///{+path}'\nfiles = '{open,closed,shown}/**/*.txt'"),
    (
        "file",
        "uri-template = 'file:///{+path}'\nfile = '{+path}'\nroot = 'project'\nvariables = [{name = 'path', complete = {files = '**/*', root = 'project'}}]",
    ),
    (
        "alt",
        "uri-template = 'alt:///{+path}'\nfile = '{+path}'\nroot = 'project'\nvariables = [{name = 'path', complete = ['zzff.txt', 'sub/zzgg.txt']}]",
    ),
    (
        "lib",
        "uri-template = 'lib:///{+path}'\nfile = '{+path}'\nvariables = [{name = 'path', complete = {files = '**/*'}}]",
    ),
    (
        "out",
        "uri-template = 'out:///{name}{?kind}'\nfile = '{name}.txt'\nroot = 'outer'\nvariables = [{name = 'name', complete = ['zzhh']}]",
    ),
    (
        "logs",
        "uri-template = 'logs://x{?n}'\nfile = '{n}.txt'\nroot = 'project'\nvariables = [{name = 'n', default = 'zzff'}]",
    ),
    ("proj", "uri-template = 'proj:///{+path}'\nfile = '_project/{+path}'"),
    (
        "pair",
        "uri-template = 'pair://{a}/{b}'\nfile = '{a}/{b}.txt'\nvariables = [{name = 'a', complete = ['closed']}, {name = 'b', complete = ['zzbb']}]",
    ),
];

/// Parts of rules: a key of `[[access]]`, and a pattern.
const RULES: &[(&str, &str)] = &[
    ("folders", "closed"),
    ("folders", "_project"),
    ("folders", "project"),
    ("folders", "outer/sub"),
    ("folders", "shown"),
    ("folders", "open"),
    ("folders", "_project/sub"),
    ("resources", "doc://bb"),
    ("resources", "doc://*"),
    ("resources", "all:///shown/*"),
    ("resources", "file:///zzff.txt"),
    ("resources", "file:///zzln.txt"),
    ("resources", "alt:///sub/*"),
    ("resources", "library:///closed/*"),
    ("resources", "library:///open/zzlk.txt"),
    ("resources", "library:///notes/zz%64d.txt"),
    ("resources", "lib:///closed/*"),
    ("resources", "lib:///zzph.md"),
    ("resources", "out:///zzhh"),
    ("resources", "out:///zzhh?kind=1"),
    ("resources", "logs://x"),
    ("resources", "proj:///sub/*"),
    ("resources", "pair://closed/zzbb"),
    ("prompts", "zzpa"),
    ("prompts", "closed-zzpk"),
    ("prompts", "zzpr"),
];

/// A library.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    prompts: Vec<usize>,
    links: Vec<usize>,
    resources: Vec<usize>,
    /// Indexes of the parts of rules, each with the role that it requires.
    rules: Vec<(usize, &'static str)>,
}

pub(super) fn plan() -> impl Strategy<Value = Plan> {
    let some = |length: usize| subsequence((0..length).collect::<Vec<_>>(), 0..=length);
    let rules = (subsequence((0..RULES.len()).collect::<Vec<_>>(), 1..=4), prop::collection::vec(any::<bool>(), 4));
    (some(PROMPTS.len()), some(LINKS.len()), some(RESOURCES.len()), rules).prop_map(
        |(mut prompts, links, resources, (rules, roles))| {
            // A prompt that calls others needs them.
            if prompts.contains(&6) {
                prompts.extend([0, 7]);
                prompts.sort_unstable();
                prompts.dedup();
            }
            let role = |is_one: bool| if is_one { "one" } else { "two" };
            let rules = rules.into_iter().zip(roles).map(|(rule, is_one)| (rule, role(is_one))).collect();
            Plan { prompts, links, resources, rules }
        },
    )
}

/// The bytes of a file.
pub(super) fn bytes_of(file: &str) -> String {
    format!("bytes-of-{}-end", token(file).replace("zz", "yy"))
}

/// The part of a file's name that occurs nowhere else.
pub(super) fn token(file: &str) -> &str {
    let name = file.rsplit('/').next().unwrap_or(file);
    name.split('.').next().unwrap_or(name)
}

/// The front matter and the text of a prompt file.
pub(super) fn text_of(file: &str) -> (&'static str, &'static str) {
    PROMPTS.iter().find(|(path, ..)| *path == file).map(|(_, front, text)| (*front, *text)).expect("a prompt file")
}

fn write(folder: &Path, path: &str, text: &str) {
    let path = folder.join(path);
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("created");
    std::fs::write(path, text).expect("written");
}

impl Plan {
    /// Writes the library into `folder/library`, with a root in `folder/outer`.
    pub(super) fn write(&self, folder: &Path) {
        let library = folder.join("library");
        for file in FILES.iter().chain(UNSERVED) {
            let root = if file.starts_with("outer/") { folder } else { &library };
            write(root, file, &bytes_of(file));
        }
        write(&library, "_part/zzee.md", &bytes_of("_part/zzee.md"));
        for (path, front, text) in self.prompts.iter().map(|index| PROMPTS[*index]) {
            let text = format!("---\ndescription: Tests\n{front}\n---\n{} {text}\n", bytes_of(path));
            write(&library, path, &text);
        }
        for (link, target, place) in self.links.iter().map(|index| LINKS[*index]) {
            if library.join(place).exists() {
                std::os::unix::fs::symlink(target, library.join(link)).expect("linked");
            }
        }
        let mut manifest = "[roots]\nproject = '_project'\nouter = '../outer'\n".to_owned();
        for (_, text) in self.resources.iter().map(|index| RESOURCES[*index]) {
            write!(manifest, "[[resources]]\n{text}\n").expect("written");
        }
        for ((key, pattern), role) in self.rules.iter().map(|(index, role)| (RULES[*index], role)) {
            write!(manifest, "[[access]]\n{key} = ['{pattern}']\nroles = ['{role}']\n").expect("written");
        }
        write(&library, "promptshelf.toml", &manifest);
    }

    /// The names of all prompts, each with the name of its file. A file is one prompt, however many links lead to it.
    pub(super) fn prompts(&self) -> Vec<(&'static str, &'static str)> {
        let files = self.prompts.iter().map(|index| PROMPTS[*index].0);
        files.map(|file| (if file == "closed/zzpk.md" { "closed-zzpk" } else { token(file) }, file)).collect()
    }

    /// The names that rules can have for the prompt of a file, those of links to it included.
    fn names(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let linked = self.has_link("zzpr.md").then_some(("zzpr", "closed/zzpk.md"));
        self.prompts().into_iter().chain(linked)
    }

    pub(super) fn prompt_files(&self) -> impl Iterator<Item = &'static str> {
        self.prompts.iter().map(|index| PROMPTS[*index].0)
    }

    fn has_prompt(&self, file: &str) -> bool {
        self.prompts.iter().any(|index| PROMPTS[*index].0 == file)
    }

    fn has_link(&self, link: &str) -> bool {
        let has = self.links.iter().any(|index| LINKS[*index].0 == link);
        has && (link != "zzpr.md" || self.has_prompt("closed/zzpk.md"))
    }

    /// All paths of a file.
    pub(super) fn paths(&self, file: &str) -> Vec<String> {
        let mut paths = vec![file.to_owned()];
        for (link, _, place) in LINKS.iter().filter(|(link, ..)| self.has_link(link)) {
            if file == *place {
                paths.push((*link).to_owned());
            } else if let Some(rest) = file.strip_prefix(place).filter(|rest| rest.starts_with('/')) {
                paths.push(format!("{link}{rest}"));
            }
        }
        paths
    }

    /// The URIs that the library declares for a file.
    pub(super) fn uris(&self, file: &str) -> Vec<String> {
        let mut uris = Vec::new();
        for path in self.paths(file) {
            let text = path.strip_suffix(".txt");
            let project = path.strip_prefix("_project/");
            let is_inside = !path.starts_with("outer/");
            for (scheme, _) in self.resources.iter().map(|index| RESOURCES[*index]) {
                match scheme {
                    "doc://bb" if path == "closed/zzbb.txt" => uris.push(scheme.to_owned()),
                    "doc://ff" if path == "_project/zzff.txt" => uris.push(scheme.to_owned()),
                    "doc://hh" if path == "outer/zzhh.txt" => uris.push(scheme.to_owned()),
                    "all" if text.is_some() && ["open/", "closed/", "shown/"].iter().any(|it| path.starts_with(it)) => {
                        uris.push(format!("all:///{path}"));
                    }
                    "file" | "alt" | "proj" => uris.extend(project.map(|rest| format!("{scheme}:///{rest}"))),
                    "lib" if is_inside => uris.push(format!("lib:///{path}")),
                    "out" => {
                        let name = text.and_then(|text| text.strip_prefix("outer/")).filter(|it| !it.contains('/'));
                        uris.extend(name.iter().flat_map(|it| [format!("out:///{it}"), format!("out:///{it}?kind=1")]));
                    }
                    "logs" => {
                        let name = text.and_then(|text| text.strip_prefix("_project/")).filter(|it| !it.contains('/'));
                        uris.extend(name.map(|name| format!("logs://x?n={name}")));
                        uris.extend((name == Some("zzff")).then(|| "logs://x".to_owned()));
                    }
                    "pair" if is_inside => {
                        let parts = text.and_then(|text| text.split_once('/')).filter(|(_, rest)| !rest.contains('/'));
                        uris.extend(parts.map(|(a, b)| format!("pair://{a}/{b}")));
                    }
                    _ => {}
                }
            }
        }
        uris
    }

    /// The roles that all have to be had to read a file, by its rules.
    pub(super) fn roles(&self, file: &str) -> Vec<&'static str> {
        let paths = self.paths(file);
        let mut uris = self.uris(file);
        uris.extend(paths.iter().map(|path| format!("library:///{path}")));
        let fits = |key: &str, pattern: &str| match key {
            "folders" => {
                let folder = pattern.replace("project", "_project").replace("__", "_");
                let place = self.paths(&folder);
                let folders = [vec![folder], self.folder_place(pattern)].concat();
                paths.iter().any(|path| {
                    folders
                        .iter()
                        .chain(&place)
                        .any(|it| path.strip_prefix(&**it).is_some_and(|it| it.starts_with('/')))
                })
            }
            "resources" => uris.iter().any(|uri| match pattern.replace("%64", "d").strip_suffix('*') {
                Some(start) => uri.starts_with(start),
                None => *uri == pattern.replace("%64", "d"),
            }),
            _ => self.names().any(|(name, of)| of == file && name == pattern),
        };
        let rules = self.rules.iter().filter(|(rule, _)| fits(RULES[*rule].0, RULES[*rule].1));
        rules.map(|(_, role)| *role).chain((file == "zzph.md").then_some("one")).collect()
    }

    /// The folder that a linked folder leads to.
    fn folder_place(&self, folder: &str) -> Vec<String> {
        (folder == "shown" && self.has_link("shown")).then(|| "closed".to_owned()).into_iter().collect()
    }

    /// The roles that all have to be had to use the prompt of a file: rules for URIs are about its raw text.
    pub(super) fn prompt_roles(&self, file: &str) -> Vec<&'static str> {
        let rules = self.rules.iter().copied().filter(|(rule, _)| RULES[*rule].0 != "resources").collect();
        Plan { rules, ..self.clone() }.roles(file)
    }
}

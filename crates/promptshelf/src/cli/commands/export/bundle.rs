//! `promptshelf export --mcpb`: a library and this program as one file that desktop clients install.
//!
//! Format: MCPB manifest 0.3 (MANIFEST.md and the schema of the npm package `@anthropic-ai/mcpb` 2.1.2, read 2026-11), a
//! zip archive with `manifest.json`.

use std::{
    collections::HashSet,
    fs::File,
    io::{self, Read, Seek, Write},
    path::{Path, PathBuf},
};

use clap::Args;
use promptshelf_core::{About, Catalog, CompletionSource, Icon};
use promptshelf_source::{MemoryTree, read_served_tree, syntax::LIBRARY_FILE};
use serde_json::{Value, json};
use tempfile::NamedTempFile;
use zip::{CompressionMethod, DateTime, ZipWriter, write::SimpleFileOptions};

use super::plugin::{DEFAULT_VERSION, description, name};
use crate::{
    commands::private_files,
    exit::{Exit, Failure},
    output::file_json,
};

/// A bundle for desktop clients.
#[derive(Debug, Args)]
pub(crate) struct BundleArguments {
    /// Write the library and this program to one file (.mcpb), which desktop clients install
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["names", "format", "plugin", "to", "values", "literal", "server_json"]
    )]
    pub(crate) mcpb: Option<PathBuf>,

    /// Accept this file although it looks like a key, a token, a database or settings of an operator; repeatable
    #[arg(long, value_name = "FILE", requires = "mcpb")]
    pub(crate) include: Vec<String>,

    /// The promptshelf program in the bundle, for another platform [default: this one]
    #[arg(long, value_name = "FILE", requires = "mcpb")]
    pub(crate) program: Option<PathBuf>,
}

const LIBRARY: &str = "library";

#[derive(Clone, Copy)]
struct Platform {
    name: &'static str,
    program: &'static str,
}

const LINUX: Platform = Platform { name: "linux", program: "server/promptshelf" };

const MACOS: Platform = Platform { name: "darwin", program: "server/promptshelf" };

const WINDOWS: Platform = Platform { name: "win32", program: "server/promptshelf.exe" };

/// The first bytes of programs: ELF, PE, and Mach-O for one or several processors.
const FORMATS: &[(&[u8], Platform)] =
    &[(b"\x7fELF", LINUX), (b"MZ", WINDOWS), (b"\xcf\xfa\xed\xfe", MACOS), (b"\xca\xfe\xba\xbe", MACOS)];

/// Writes the bundle of a library. An existing file stays.
pub(super) fn write(to: &Path, arguments: &BundleArguments, catalog: &Catalog, folder: &Path) -> Result<(), Failure> {
    let (program, about) = (arguments.program.as_deref(), catalog.about());
    // What is left out is not served, and `export` reports the errors of the library.
    let (tree, _) = read_served_tree(folder).map_err(|error| Failure::new(Exit::Library, error.to_string()))?;
    let served = served(catalog);
    let tree: MemoryTree = tree
        .iter()
        .filter(|(path, _)| served.contains(*path))
        .map(|(path, file)| (path.to_owned(), file.clone()))
        .collect();
    private_files::refuse(tree.iter().map(|(path, file)| (path, file.bytes())), &arguments.include)?;
    let program = match program {
        Some(program) => program.to_owned(),
        None => std::env::current_exe()?,
    };
    let failure = |path: &Path, error: &io::Error| Failure::new(Exit::Failed, format!("{}: {error}", path.display()));
    if to.exists() {
        let message = format!("{} already exists and was not changed", to.display());
        return Err(Failure::new(Exit::Failed, message));
    }
    let (platform, mut file) = open(&program)?;
    let parent = match to.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let mut temporary = NamedTempFile::new_in(parent).map_err(|error| failure(to, &error))?;
    let manifest = manifest(about, folder, platform);
    archive(temporary.as_file_mut(), &manifest, platform, &mut file, &tree).map_err(|error| failure(to, &error))?;
    readable(temporary.as_file()).map_err(|error| failure(to, &error))?;
    temporary.persist_noclobber(to).map(drop).map_err(|error| failure(to, &error.error))
}

/// Returns the paths of the files that are served, those that they refer to, and the settings of the library.
fn served(catalog: &Catalog) -> HashSet<String> {
    let mut paths: HashSet<String> = HashSet::from([LIBRARY_FILE.to_owned()]);
    let mut icons: Vec<&Icon> = catalog.about().icons.iter().collect();
    for prompt in catalog.prompts().iter() {
        paths.insert(prompt.source().path.to_string());
        paths.extend(prompt.includes().map(|source| source.path.to_string()));
        paths.extend(prompt.attachments().map(|(_, file)| file.path.clone()));
        for argument in prompt.arguments() {
            match argument.completion() {
                Some(CompletionSource::File(path)) => {
                    paths.insert(path.clone());
                }
                Some(CompletionSource::Paths(found)) => paths.extend(found.iter().cloned()),
                _ => {}
            }
        }
        icons.extend(prompt.icons());
    }
    for resource in catalog.resources().iter().chain(catalog.templates()) {
        icons.extend(resource.icons());
    }
    paths.extend(icons.into_iter().filter_map(|icon| Some(icon.file.as_ref()?.to_string())));
    for skill in catalog.skills().after(None) {
        paths.extend(skill.files().map(|file| file.file().path.clone()));
    }
    paths.extend(catalog.declared_file_paths().map(str::to_owned));
    let is_referred_to = |path: &&str| {
        let uri = catalog.file(path).map(|file| file.uri());
        uri.is_some_and(|uri| catalog.find_library_file(&uri).is_some())
    };
    paths.extend(catalog.file_paths().filter(is_referred_to).map(str::to_owned));
    paths
}

fn open(program: &Path) -> Result<(Platform, File), Failure> {
    let failure = |error: io::Error| Failure::new(Exit::Failed, format!("the program {}: {error}", program.display()));
    let mut file = File::open(program).map_err(failure)?;
    let mut start = [0; 4];
    file.read_exact(&mut start).map_err(failure)?;
    file.rewind().map_err(failure)?;
    let found = FORMATS.iter().find(|(bytes, _)| start.starts_with(bytes));
    let Some((_, platform)) = found else {
        let message = format!("{} is not a program for Linux, macOS or Windows", program.display());
        return Err(Failure::new(Exit::Usage, message).help("name the promptshelf program of the platform"));
    };
    Ok((*platform, file))
}

fn manifest(about: &About, folder: &Path, platform: Platform) -> Value {
    let name = name(about, folder);
    let mut manifest = json!({
        "manifest_version": "0.3",
        "name": name,
        "version": about.version.as_deref().unwrap_or(DEFAULT_VERSION),
        "description": description(about, &name),
        "author": { "name": about.title.as_deref().unwrap_or(&name) },
        "server": {
            "type": "binary",
            "entry_point": platform.program,
            "mcp_config": {
                "command": format!("${{__dirname}}/{}", platform.program),
                "args": ["serve", "--stdio", format!("${{__dirname}}/{LIBRARY}")],
            },
        },
        // The texts of listed prompts are static; these are rendered with arguments.
        "prompts_generated": true,
        "compatibility": { "platforms": [platform.name] },
        // The published packages of the program, for hosts that start one of them in place of the copy.
        "_meta": { "dev.promptshelf": { "packages": {
            "npm": concat!("promptshelf@", env!("CARGO_PKG_VERSION")),
            "pypi": concat!("promptshelf==", env!("CARGO_PKG_VERSION")),
            "oci": concat!("ghcr.io/promptshelf/promptshelf:", env!("CARGO_PKG_VERSION")),
        } } },
    });
    for (key, value) in [("display_name", &about.title), ("homepage", &about.website_url)] {
        if let Some(value) = value {
            manifest[key] = json!(value);
        }
    }
    manifest
}

/// Writes the archive. The same input gives the same bytes.
fn archive(
    to: &mut File,
    manifest: &Value,
    platform: Platform,
    program: &mut File,
    tree: &MemoryTree,
) -> io::Result<()> {
    let mut zip = ZipWriter::new(to);
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Deflated)
        .last_modified_time(DateTime::default())
        .unix_permissions(0o644);
    zip.start_file("manifest.json", options)?;
    writeln!(zip, "{}", file_json(manifest))?;
    zip.start_file(platform.program, options.unix_permissions(0o755))?;
    io::copy(program, &mut zip)?;
    for (path, file) in tree.iter() {
        zip.start_file(format!("{LIBRARY}/{path}"), options)?;
        zip.write_all(file.bytes())?;
    }
    zip.finish()?.sync_all()
}

/// Makes a temporary file readable as other files are: it is the user's alone at first.
#[cfg(unix)]
fn readable(file: &File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;

    file.set_permissions(std::fs::Permissions::from_mode(0o644))
}

#[cfg(not(unix))]
fn readable(_: &File) -> io::Result<()> {
    Ok(())
}

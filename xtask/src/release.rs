//! `cargo xtask release`: the files of a release, below one folder.
//!
//! For each target: an archive with the program, completions, manual pages and systemd units, and a Debian package.
//! For all archives in the folder: checksums, a bill of materials, a Homebrew formula and a Scoop manifest. With
//! `SOURCE_DATE_EPOCH`, by default the time of the last commit, the same input gives the same bytes.

mod debian;
mod manifests;
mod sbom;

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail, ensure};

use crate::{prepare, repository::Repository, terminal::Program};

/// What to make.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The target triple
    #[arg(long, value_name = "TRIPLE", default_value = HOST)]
    target: String,
    /// A binary for the target, in place of a release build
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// A binary that runs on this machine, to write completions and manual pages [default: the one for the target]
    #[arg(long, value_name = "FILE")]
    tool: Option<PathBuf>,
    /// The folder of the release
    #[arg(long, value_name = "DIR", default_value = "target/dist")]
    to: PathBuf,
    /// Compress little, for tests.
    #[arg(skip)]
    is_fast: bool,
}

/// The file with the checksums of all others.
const SUMS: &str = "SHA256SUMS";

const HOST: &str = "x86_64-unknown-linux-gnu";

/// A release in one version.
struct Release<'r> {
    repository: &'r Repository,
    version: String,
    /// Seconds since 1970 for the times of files.
    epoch: String,
    to: PathBuf,
    /// The level of compression, 1 to 9.
    level: u8,
}

/// The files of one target, before they are packed.
struct Staged {
    target: String,
    /// The folder, with the name that the archive unpacks to.
    folder: PathBuf,
}

/// Makes a release.
pub(crate) fn run(repository: &Repository, options: &Options) -> Result<()> {
    let binary = match &options.binary {
        Some(binary) => binary.clone(),
        None => built(repository, &options.target)?,
    };
    let mut release = Release::new(repository, &repository.root.join(&options.to))?;
    release.level = if options.is_fast { 1 } else { 9 };
    let staged = release.stage(&options.target, &binary, options.tool.as_deref().unwrap_or(&binary))?;
    release.pack(&staged)?;
    if options.target.contains("linux") {
        debian::package(&release, &staged)?;
    }
    fs::remove_dir_all(&staged.folder)?;
    release.describe(&options.target)?;
    for file in release.files()? {
        println!("{}", release.to.join(file).display());
    }
    Ok(())
}

/// Makes a release from the debug binary, and checks it as a person would who installs it. The step of `cargo xtask test`.
pub(crate) fn check(repository: &Repository) -> Result<()> {
    for program in ["dpkg-deb", "strip", "zip"] {
        prepare::install_debian(repository, program, if program == "strip" { "binutils" } else { program })?;
    }
    let to = repository.root.join("target/dist-check");
    prepare::build(repository)?;
    fs::remove_dir_all(&to).ok();
    fs::create_dir_all(&to)?;
    let binary = to.join("promptshelf");
    let stripped = binary.display().to_string();
    // Debug information would take most of the time to compress.
    Program::new("strip", &to).args(&["-o", &stripped, &repository.binary().display().to_string()]).run()?;
    // Programs for Windows are not built here; its archive and manifest are made from any file.
    let other = to.join("promptshelf.exe");
    fs::write(&other, "not a program")?;
    for (target, binary) in [(HOST, &binary), ("x86_64-pc-windows-msvc", &other)] {
        let options = Options {
            target: target.to_owned(),
            binary: Some(binary.clone()),
            tool: Some(repository.binary()),
            to: to.join("dist"),
            is_fast: true,
        };
        run(repository, &options)?;
    }
    let dist = to.join("dist");
    let release = Release::new(repository, &dist)?;
    Program::new("sha256sum", &dist).args(&["--check", "--strict", SUMS]).run()?;
    let archive = format!("promptshelf-{}-{HOST}", release.version);
    Program::new("tar", &dist).args(&["-xzf", &format!("{archive}.tar.gz")]).run()?;
    let unpacked = dist.join(&archive);
    let version = Program::new(unpacked.join("promptshelf"), &dist).args(&["--version", "--json"]).read()?;
    let version: serde_json::Value = serde_json::from_str(&version)?;
    ensure!(version["version"] == *release.version, "the archive has version {}", version["version"]);
    for path in ["LICENSE-MIT", "completions/promptshelf.bash", "man/man1/promptshelf.1", "systemd/promptshelf.service"]
    {
        ensure!(unpacked.join(path).is_file(), "the archive lacks {path}");
    }
    let deb = format!("promptshelf_{}_amd64.deb", release.version);
    let contents = Program::new("dpkg-deb", &dist).args(&["--contents", &deb]).read()?;
    for path in ["./usr/bin/promptshelf", "./usr/share/man/man1/promptshelf.1.gz", "systemd/system/promptshelf.service"]
    {
        ensure!(contents.contains(path), "the Debian package lacks {path}");
    }
    let packages = sbom::packages(&dist, &release.version, HOST)?;
    ensure!(packages.contains(&"tokio".to_owned()), "the bill of materials lacks tokio");
    ensure!(!packages.contains(&"promptshelf-testkit".to_owned()), "the bill of materials has packages of tests");
    for (file, words) in [("promptshelf.rb", "sha256 \""), ("promptshelf.json", "\"hash\": \"")] {
        ensure!(fs::read_to_string(dist.join(file))?.contains(words), "{file} has no checksum");
    }
    Ok(fs::remove_dir_all(&to)?)
}

/// Builds the program for a target.
fn built(repository: &Repository, target: &str) -> Result<PathBuf> {
    prepare::install_target(repository, target)?;
    let line = ["build", "--release", "--locked", "--package", "promptshelf", "--target", target];
    let mut cargo = Program::cargo(&repository.root).args(&line);
    // Build scripts find the C compilers of these targets by their names, and cargo does not.
    match target {
        "x86_64-unknown-linux-musl" => prepare::install_debian(repository, "musl-gcc", "musl-tools")?,
        "aarch64-unknown-linux-gnu" if cfg!(not(target_arch = "aarch64")) => {
            const LINKER: &str = "aarch64-linux-gnu-gcc";
            prepare::install_debian(repository, LINKER, "gcc-aarch64-linux-gnu")?;
            cargo = cargo.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", LINKER);
        }
        _ => {}
    }
    cargo.run()?;
    Ok(repository.root.join("target").join(target).join("release").join(program_of(target)))
}

fn program_of(target: &str) -> &'static str {
    if target.contains("windows") { "promptshelf.exe" } else { "promptshelf" }
}

impl<'r> Release<'r> {
    fn new(repository: &'r Repository, to: &Path) -> Result<Release<'r>> {
        let mut packages = repository.metadata["packages"].as_array().into_iter().flatten();
        let package = packages.find(|package| package["name"] == "promptshelf").context("no package promptshelf")?;
        let version = package["version"].as_str().context("a package without a version")?.to_owned();
        let epoch = match std::env::var("SOURCE_DATE_EPOCH") {
            Ok(epoch) => epoch,
            Err(_) => {
                let printed = Program::new("git", &repository.root).args(&["log", "-1", "--format=%ct"]).read()?;
                printed.trim().to_owned()
            }
        };
        fs::create_dir_all(to)?;
        Ok(Release { repository, version, epoch, to: to.to_owned(), level: 9 })
    }

    fn stage(&self, target: &str, binary: &Path, tool: &Path) -> Result<Staged> {
        let root = &self.repository.root;
        let folder = self.to.join(format!("promptshelf-{}-{target}", self.version));
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        for part in ["completions", "man/man1", "systemd"] {
            fs::create_dir_all(folder.join(part))?;
        }
        let copy = |from: &Path, to: &str| -> Result<()> {
            fs::copy(from, folder.join(to)).with_context(|| format!("{} cannot be copied", from.display()))?;
            Ok(())
        };
        copy(binary, program_of(target))?;
        for file in ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"] {
            copy(&root.join(file), file)?;
        }
        for unit in ["promptshelf.service", "promptshelf-sync@.service"] {
            copy(&root.join("deploy").join(unit), &format!("systemd/{unit}"))?;
        }
        for (shell, file) in [
            ("bash", "promptshelf.bash"),
            ("elvish", "promptshelf.elv"),
            ("fish", "promptshelf.fish"),
            ("powershell", "_promptshelf.ps1"),
            ("zsh", "_promptshelf"),
        ] {
            let script = Program::new(tool, root).args(&["completions", shell]).read()?;
            fs::write(folder.join("completions").join(file), script)?;
        }
        let manual = folder.join("man/man1").display().to_string();
        Program::new(tool, root).args(&["man", &manual]).run()?;
        Ok(Staged { target: target.to_owned(), folder })
    }

    /// Packs the staged files: as zip for Windows, otherwise as tar.
    fn pack(&self, staged: &Staged) -> Result<()> {
        let name = staged.folder.file_name().and_then(|name| name.to_str()).context("a folder with a name")?;
        if staged.target.contains("windows") {
            let archive = format!("{name}.zip");
            fs::remove_file(self.to.join(&archive)).ok();
            return Program::new("zip", &self.to).args(&["-q", "-X", "-r", &archive, name]).run();
        }
        let time = format!("--mtime=@{}", self.epoch);
        let archive = format!("{name}.tar.gz");
        let line =
            ["--sort=name", "--owner=0", "--group=0", "--numeric-owner", &time, "--use-compress-program=gzip -n"];
        Program::new("tar", &self.to).args(&line).args(&["-cf", &archive, name]).run()
    }

    /// Writes the files about all archives in the folder.
    fn describe(&self, target: &str) -> Result<()> {
        sbom::write(self, target)?;
        let is_archive = |file: &String| file.ends_with(".tar.gz") || file.ends_with(".zip");
        let archives = self.digests(self.files()?.into_iter().filter(is_archive).collect())?;
        let archives: Vec<(&str, &str)> = archives.lines().filter_map(|line| line.split_once("  ")).collect();
        manifests::write(self, &archives)?;
        let others = self.files()?.into_iter().filter(|file| file != SUMS).collect();
        Ok(fs::write(self.to.join(SUMS), self.digests(others)?)?)
    }

    /// Returns the digests of files, one a line, as `sha256sum` writes and checks them.
    fn digests(&self, files: Vec<String>) -> Result<String> {
        files.iter().fold(Program::new("sha256sum", &self.to), Program::arg).read()
    }

    /// The names of the files of the release, sorted.
    fn files(&self) -> Result<Vec<String>> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.to)? {
            let entry = entry?;
            match entry.file_name().into_string() {
                Ok(name) if entry.file_type()?.is_file() => files.push(name),
                Ok(_) => {}
                Err(name) => bail!("{} is not UTF-8", name.display()),
            }
        }
        files.sort();
        Ok(files)
    }
}

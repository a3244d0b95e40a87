//! `cargo xtask release`: everything that is published for a version, below one folder.
//!
//! The program is built once for each target, and the same bytes go into every package: archive, npm, wheel, Debian
//! package, image, bundle. Texts of packages are templates in `packaging/`. With `SOURCE_DATE_EPOCH`, by default the time
//! of the last commit, the same input gives the same bytes.

mod sbom;

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use crate::{prepare, repository::Repository, terminal::Program};

/// What to make.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The folder to write to; the results of an earlier call in it are replaced
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// A target triple; repeatable [default: those that can be built on Linux; with --quick the one of x86-64 Linux]
    #[arg(long, value_name = "TRIPLE")]
    pub(crate) target: Vec<String>,
    /// Build without optimization, to try the packages
    #[arg(long)]
    pub(crate) quick: bool,
    /// Take the program from DIR/TRIPLE/promptshelf[.exe], where there is one, instead of building it
    #[arg(long, value_name = "DIR")]
    pub(crate) binaries: Option<PathBuf>,
}

/// A platform, as each kind of package names it.
struct Platform {
    triple: &'static str,
    npm: (&'static str, &'static str),
    wheel: &'static [&'static str],
    /// The architecture of the Debian package, and of the image; empty if there are none.
    debian: &'static str,
    /// The names of Homebrew's blocks.
    brew: Option<(&'static str, &'static str)>,
}

const QUICK: &str = "x86_64-unknown-linux-musl";

/// The platforms of a release. The first three can be built on Linux.
const PLATFORMS: &[Platform] = &[
    Platform {
        triple: QUICK,
        npm: ("linux", "x64"),
        wheel: &["manylinux_2_17_x86_64", "manylinux2014_x86_64", "musllinux_1_1_x86_64"],
        debian: "amd64",
        brew: Some(("linux", "intel")),
    },
    Platform {
        triple: "aarch64-unknown-linux-musl",
        npm: ("linux", "arm64"),
        wheel: &["manylinux_2_17_aarch64", "manylinux2014_aarch64", "musllinux_1_1_aarch64"],
        debian: "arm64",
        brew: Some(("linux", "arm")),
    },
    Platform { triple: "x86_64-pc-windows-gnu", npm: ("win32", "x64"), wheel: &["win_amd64"], debian: "", brew: None },
    Platform {
        triple: "aarch64-apple-darwin",
        npm: ("darwin", "arm64"),
        wheel: &["macosx_11_0_arm64"],
        debian: "",
        brew: Some(("macos", "arm")),
    },
    Platform {
        triple: "x86_64-apple-darwin",
        npm: ("darwin", "x64"),
        wheel: &["macosx_10_12_x86_64"],
        debian: "",
        brew: Some(("macos", "intel")),
    },
];

impl Platform {
    fn program(&self) -> &'static str {
        if self.triple.contains("windows") { "promptshelf.exe" } else { "promptshelf" }
    }
}

const SUMS: &str = "SHA256SUMS";
/// The most bytes of the optimized program.
const MOST_BYTES: u64 = 35_000_000;
const DOWNLOADS: &str = "https://github.com/promptshelf/promptshelf/releases/download";
/// The certificate authorities of the image.
const AUTHORITIES: &str = "/etc/ssl/certs/ca-certificates.crt";
/// `tar` without anything of this machine. `TIME` is in its environment.
const TAR: &str = "tar --sort=name --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --mtime=@$TIME";

/// A release in one version.
struct Release<'r> {
    repository: &'r Repository,
    out: PathBuf,
    version: String,
    commit: String,
    /// Seconds since 1970 for the times of files.
    epoch: String,
    quick: bool,
}

/// Makes a release.
pub(crate) fn run(repository: &Repository, options: &Options) -> Result<()> {
    let release = Release::new(repository, options)?;
    let platforms = platforms(options)?;
    for name in ["archives", "npm", "pypi", "deb", "oci", "crates", "homebrew", "scoop", "stage"] {
        fs::remove_dir_all(release.out.join(name)).ok();
        fs::create_dir_all(release.out.join(name))?;
    }
    let mut programs = Vec::new();
    for platform in &platforms {
        let given = options.binaries.as_ref().map(|it| it.join(platform.triple).join(platform.program()));
        let program = match given.filter(|program| program.is_file()) {
            Some(program) => repository.root.join(program),
            None => release.built(platform)?,
        };
        programs.push((*platform, program));
    }
    let texts = release.texts(&programs)?;
    let mut bundles = Vec::new();
    for (platform, program) in &programs {
        release.archive(platform, program, &texts)?;
        bundles.push(release.bundle(platform, program)?);
        release.npm_platform(platform, program)?;
        release.wheel(platform, program)?;
        if !platform.debian.is_empty() {
            release.debian(platform, program, &texts)?;
        }
    }
    release.npm(&platforms)?;
    release.image(&programs)?;
    release.crates()?;
    release.manifests(&platforms, &bundles)?;
    sbom::write(&release, &platforms.iter().map(|platform| platform.triple).collect::<Vec<_>>())?;
    fs::remove_dir_all(release.out.join("stage"))?;
    release.sh(
        &release.out,
        &format!("rm -f {SUMS}; find . -type f ! -name .{SUMS} | sed 's|^\\./||' | LC_ALL=C sort | xargs sha256sum >.{SUMS}; mv .{SUMS} {SUMS}"),
        &[],
    )?;
    println!("{} has the release {}", release.out.display(), release.version);
    Ok(())
}

/// Installs the npm packages and the wheel with the debug binary, and serves them to the official client. The step of `cargo
/// xtask test`.
pub(crate) fn check_quickly(repository: &Repository) -> Result<()> {
    prepare::build(repository)?;
    let Some(platform) = PLATFORMS.iter().find(|platform| runs_here(platform)) else {
        println!("there are no packages for this platform");
        return Ok(());
    };
    let out = repository.target().join("packages");
    fs::remove_dir_all(&out).ok();
    let release = Release::new(repository, &Options { out, target: Vec::new(), quick: true, binaries: None })?;
    for kind in ["npm", "pypi"] {
        fs::create_dir_all(release.out.join(kind))?;
    }
    let program = release.out.join(platform.program());
    // Debug information would take most of the time to compress.
    Program::new("strip", &release.out).arg("-o").arg(&program).arg(repository.binary()).run()?;
    release.npm_platform(platform, &program)?;
    release.npm(&[platform])?;
    release.wheel(platform, &program)?;
    installed(repository, &release.out, &["--quick"])
}

/// Makes a release of an unoptimized program and installs everything as its users do; compiles the published crates alone;
/// and makes the optimized release twice from different target folders, for the same bytes. The part of `cargo xtask nightly`.
pub(crate) fn check(repository: &Repository) -> Result<()> {
    let out = repository.target().join("packages");
    let options = Options { out: out.clone(), target: Vec::new(), quick: true, binaries: None };
    run(repository, &options)?;
    prepare::install(&repository.peers().join("release"))?;
    installed(repository, &out, &[])?;
    check_crates(repository, &out)?;
    let mut sums = Vec::new();
    for folder in ["release-one", "release-two"] {
        let out = repository.target().join(format!("packages-{folder}"));
        let target = repository.target().join(folder);
        Program::new(std::env::current_exe()?, &repository.root)
            .args(&["release", "--target", QUICK, "--out"])
            .arg(&out)
            .env("CARGO_TARGET_DIR", &target.display().to_string())
            .run()?;
        sums.push(fs::read_to_string(out.join(SUMS))?);
        let bytes = fs::metadata(target.join(QUICK).join("dist/promptshelf"))?.len();
        println!("the program has {bytes} bytes");
        ensure!(bytes <= MOST_BYTES, "the program has {bytes} bytes, more than {MOST_BYTES}");
        fs::remove_dir_all(target)?;
    }
    let differing: Vec<&str> = sums[0].lines().filter(|line| !sums[1].lines().any(|it| it == *line)).collect();
    ensure!(differing.is_empty(), "another build gives other bytes:\n{}", differing.join("\n"));
    println!("two builds have the same {} files", sums[0].lines().count());
    Ok(())
}

fn installed(repository: &Repository, out: &Path, more: &[&str]) -> Result<()> {
    prepare::install_peers(repository)?;
    let python = prepare::install_python(&repository.peers().join("release"))?;
    let script = prepare::node(repository).arg("release/release.mjs").arg("--dist").arg(out);
    script.arg("--python").arg(&python).args(more).run()
}

/// Compiles the command from the published files of all crates, as `cargo install` does on the day of a release, and serves
/// with it.
fn check_crates(repository: &Repository, out: &Path) -> Result<()> {
    // Outside of the workspace, to which cargo would count them.
    let root = std::env::temp_dir().join(format!("promptshelf-crates-{}", std::process::id()));
    fs::create_dir_all(&root)?;
    // As the release was built, so that what does not belong to the workspace is compiled already.
    let mut install = Program::cargo(&root).args(&["install", "--debug", "--root", "installed", "--target", QUICK]);
    for entry in fs::read_dir(out.join("crates"))? {
        let file = entry?.path();
        Program::new("tar", &root).arg("-xzf").arg(&file).run()?;
        let folder = file.file_stem().and_then(|name| name.to_str()).context("a crate with a name")?;
        let name = folder.rsplit_once('-').map_or(folder, |(name, _)| name);
        if name == "promptshelf" {
            install = install.args(&["--path", folder]);
        } else {
            let path = root.join(folder).display().to_string();
            install = install.arg("--config").arg(format!("patch.crates-io.{name}.path = {path:?}"));
        }
    }
    let install = install.env("CARGO_TARGET_DIR", &repository.target().display().to_string());
    without_paths(install, repository, QUICK).run()?;
    let printed = Program::new(root.join("installed/bin/promptshelf"), &root)
        .args(&["list", "--json"])
        .arg(repository.root.join("examples/library"))
        .read()?;
    ensure!(printed.contains("git-commit"), "the command of the crate lists {printed}");
    Ok(fs::remove_dir_all(root)?)
}

/// Sets what keeps paths of this machine out of a program.
fn without_paths(cargo: Program, repository: &Repository, triple: &str) -> Program {
    let home = std::env::var("HOME").unwrap_or_default();
    let cargo_home = std::env::var("CARGO_HOME").unwrap_or_else(|_| format!("{home}/.cargo"));
    let root = &repository.root;
    let mut places = vec![(cargo_home, "/cargo"), (root.display().to_string(), "/promptshelf")];
    if repository.target() != root.join("target") {
        places.push((repository.target().display().to_string(), "/promptshelf/target"));
    }
    let flags = |flag: &str, between: &str| {
        places.iter().map(|(from, to)| format!("{flag}={from}={to}")).collect::<Vec<_>>().join(between)
    };
    // No panic runs through C, and only debuggers read these tables there: a quarter of a megabyte.
    let tables = if triple.contains("linux") { "-fno-asynchronous-unwind-tables " } else { "" };
    cargo
        .env("CARGO_PROFILE_DEV_DEBUG", "0")
        .env("CARGO_PROFILE_DEV_STRIP", "symbols")
        .env("CARGO_ENCODED_RUSTFLAGS", &flags("--remap-path-prefix", "\u{1f}"))
        .env(&format!("CFLAGS_{}", triple.replace('-', "_")), &format!("{tables}{}", flags("-ffile-prefix-map", " ")))
}

/// Whether programs for a platform run on this machine.
fn runs_here(platform: &Platform) -> bool {
    let os = platform.triple.replace("darwin", "macos");
    platform.triple.starts_with(std::env::consts::ARCH) && os.contains(std::env::consts::OS)
}

fn platforms(options: &Options) -> Result<Vec<&'static Platform>> {
    if options.target.is_empty() {
        return Ok(PLATFORMS[..if options.quick { 1 } else { 3 }].iter().collect());
    }
    let mut platforms = Vec::new();
    for triple in &options.target {
        let Some(platform) = PLATFORMS.iter().find(|platform| platform.triple == triple) else {
            let known: Vec<&str> = PLATFORMS.iter().map(|platform| platform.triple).collect();
            bail!("{triple} is no target of a release: expected {}", known.join(", "));
        };
        if !platforms.iter().any(|other: &&Platform| other.triple == triple) {
            platforms.push(platform);
        }
    }
    Ok(platforms)
}

impl<'r> Release<'r> {
    fn new(repository: &'r Repository, options: &Options) -> Result<Release<'r>> {
        let mut packages = repository.metadata["packages"].as_array().into_iter().flatten();
        let package = packages.find(|package| package["name"] == "promptshelf").context("no package promptshelf")?;
        let git = |words: &[&str]| Program::new("git", &repository.root).args(words).read();
        let out = std::path::absolute(&options.out)?;
        fs::create_dir_all(&out)?;
        // Not the programs themselves: `dpkg-deb` and `strip` are parts of larger packages.
        for (program, package) in [("dpkg-deb", "dpkg"), ("zip", "zip"), ("npm", "npm")] {
            prepare::install_debian(repository, program, package)?;
        }
        Ok(Release {
            repository,
            out,
            version: package["version"].as_str().context("a package without a version")?.to_owned(),
            commit: git(&["rev-parse", "HEAD"])?.trim().to_owned(),
            epoch: match std::env::var("SOURCE_DATE_EPOCH") {
                Ok(epoch) => epoch,
                Err(_) => git(&["log", "-1", "--format=%ct"])?.trim().to_owned(),
            },
            quick: options.quick,
        })
    }

    /// Builds the program for a platform, with the profile `dist` or unoptimized.
    fn built(&self, platform: &Platform) -> Result<PathBuf> {
        let (repository, triple) = (self.repository, platform.triple);
        let root = &repository.root;
        prepare::install_target(repository, triple)?;
        let mut cargo = Program::cargo(root);
        match triple {
            QUICK => prepare::install_debian(repository, "musl-gcc", "musl-tools")?,
            // Debian has no C compiler with musl for it: zig is one for every target.
            "aarch64-unknown-linux-musl" => {
                let python = prepare::install_python(&root.join("packaging/cross"))?;
                let bin = python.parent().context("a folder of programs")?.display().to_string();
                let path = std::env::var("PATH").unwrap_or_default();
                cargo = Program::new(format!("{bin}/cargo-zigbuild"), root)
                    .env("PATH", &format!("{bin}:{path}"))
                    .env("CARGO_ZIGBUILD_PYTHON_PATH", &python.display().to_string())
                    .arg("zigbuild");
            }
            "x86_64-pc-windows-gnu" => {
                prepare::install_debian(repository, "x86_64-w64-mingw32-gcc", "gcc-mingw-w64-x86-64")?;
            }
            _ => {}
        }
        if triple != "aarch64-unknown-linux-musl" {
            cargo = cargo.arg("rustc");
        }
        let profile = if self.quick { "dev" } else { "dist" };
        if self.quick {
            // Unoptimized programs read the page from the checkout otherwise.
            cargo = cargo.args(&["--features", "embedded-page"]);
        }
        let cargo = cargo.args(&["--locked", "--package", "promptshelf", "--bin", "promptshelf"]);
        let cargo = cargo.args(&["--profile", profile, "--target", triple]).env("PROMPTSHELF_COMMIT", &self.commit);
        // A megabyte of relocations becomes 20 kB; the linker of Debian has it for this processor only.
        let cargo = match triple {
            QUICK => cargo.args(&["--", "-C", "link-arg=-Wl,-z,pack-relative-relocs"]),
            _ => cargo,
        };
        // C has macros for the time of its compilation.
        let cargo = cargo.env("SOURCE_DATE_EPOCH", &self.epoch);
        without_paths(cargo, repository, triple).run()?;
        let folder = if self.quick { "debug" } else { "dist" };
        Ok(repository.target().join(triple).join(folder).join(platform.program()))
    }

    /// Writes the texts that every archive has, and returns their folder.
    fn texts(&self, programs: &[(&Platform, PathBuf)]) -> Result<PathBuf> {
        let root = &self.repository.root;
        let texts = self.folder("texts")?;
        let tool = match programs.iter().find(|(platform, _)| runs_here(platform)) {
            Some((_, program)) => program.clone(),
            None => {
                prepare::build(self.repository)?;
                self.repository.binary()
            }
        };
        for folder in ["completions", "man/man1", "systemd"] {
            fs::create_dir_all(texts.join(folder))?;
        }
        for (shell, file) in [
            ("bash", "promptshelf.bash"),
            ("elvish", "promptshelf.elv"),
            ("fish", "promptshelf.fish"),
            ("powershell", "_promptshelf.ps1"),
            ("zsh", "_promptshelf"),
        ] {
            let script = Program::new(&tool, root).args(&["completions", shell]).read()?;
            fs::write(texts.join("completions").join(file), script)?;
        }
        Program::new(&tool, root).arg("man").arg(texts.join("man/man1")).run()?;
        self.sh(
            root,
            "cp README.md CHANGELOG.md LICENSE-APACHE LICENSE-MIT \"$1\"; cp deploy/*.service \"$1/systemd\"",
            &[&texts],
        )?;
        Ok(texts)
    }

    /// Packs the program with the texts: as zip for Windows, otherwise as tar.
    fn archive(&self, platform: &Platform, program: &Path, texts: &Path) -> Result<()> {
        let name = format!("promptshelf-{}-{}", self.version, platform.triple);
        let folder = self.folder(&format!("pack/{name}"))?;
        let script = "cp -r \"$1/.\" .; cp \"$2\" .; chmod 755 promptshelf*";
        self.sh(&folder, script, &[texts, program])?;
        let script = if platform.triple.contains("windows") {
            zip_script("../../archives/$1.zip", "\"$1\"")
        } else {
            format!("{TAR} -c \"$1\" | gzip -n -{} >\"../../archives/$1.tar.gz\"", self.level())
        };
        self.sh(&self.out.join("stage/pack"), &script, &[Path::new(&name)])
    }

    /// Writes a bundle for desktop clients, which asks for the folder of prompts. Returns its file name and digest.
    fn bundle(&self, platform: &Platform, program: &Path) -> Result<(String, String)> {
        let folder = self.folder("bundle")?;
        fs::create_dir_all(folder.join("server"))?;
        let values = [("PROGRAM", platform.program()), ("OS", platform.npm.0)];
        fs::write(
            folder.join("manifest.json"),
            self.filled(include_str!("../../packaging/mcpb/manifest.json"), &values),
        )?;
        let file = format!("promptshelf-{}-{}.mcpb", self.version, platform.triple);
        self.sh(
            &folder,
            &format!(
                "cp \"$1\" server; chmod 755 server/*; cp \"$2\"/LICENSE-* .; {}",
                zip_script("../../archives/$3", ".")
            ),
            &[program, &self.repository.root, Path::new(&file)],
        )?;
        let digest = self.digest(&self.out.join("archives").join(&file))?;
        Ok((file, digest))
    }

    /// Packs the npm package with the program of a platform.
    fn npm_platform(&self, platform: &Platform, program: &Path) -> Result<()> {
        let folder = self.folder("npm-platform")?;
        let (os, cpu) = platform.npm;
        let package = self.filled(include_str!("../../packaging/npm/platform.json"), &[("OS", os), ("CPU", cpu)]);
        fs::write(folder.join("package.json"), package)?;
        let script = "mkdir bin; cp \"$1\" bin; chmod 755 bin/*; cp \"$2\"/LICENSE-* .; npm pack --silent --pack-destination ../../npm";
        self.sh(&folder, script, &[program, &self.repository.root])
    }

    /// Packs the npm package `promptshelf`, which starts the program of its platform.
    fn npm(&self, platforms: &[&Platform]) -> Result<()> {
        let folder = self.folder("npm-main")?;
        let names: Vec<String> = platforms.iter().map(|it| format!("{}-{}", it.npm.0, it.npm.1)).collect();
        let mut package: Value =
            serde_json::from_str(&self.filled(include_str!("../../packaging/npm/package.json"), &[]))?;
        for name in &names {
            package["optionalDependencies"][format!("@promptshelf/{name}")] = json!(self.version);
        }
        fs::write(folder.join("package.json"), serde_json::to_string_pretty(&package)? + "\n")?;
        let launcher = include_str!("../../packaging/npm/promptshelf.js");
        fs::write(folder.join("promptshelf.js"), self.filled(launcher, &[("PLATFORMS", &names.join(", "))]))?;
        fs::write(folder.join("README.md"), include_str!("../../packaging/README.md"))?;
        let script = "chmod 755 promptshelf.js; cp \"$1\"/LICENSE-* .; npm pack --silent --pack-destination ../../npm";
        self.sh(&folder, script, &[&self.repository.root])
    }

    /// Packs a wheel with the program. Maturin cannot pack a program that is built already.
    fn wheel(&self, platform: &Platform, program: &Path) -> Result<()> {
        let python = prepare::install_python(&self.repository.root.join("packaging/pypi"))?;
        let folder = self.folder("wheel")?;
        let info = folder.join(format!("promptshelf-{}.dist-info", self.version));
        let scripts = folder.join(format!("promptshelf-{}.data/scripts", self.version));
        fs::create_dir_all(&info)?;
        fs::create_dir_all(&scripts)?;
        let about =
            self.filled(include_str!("../../packaging/pypi/METADATA"), &[]) + include_str!("../../packaging/README.md");
        fs::write(info.join("METADATA"), about)?;
        let mut wheel = self.filled(include_str!("../../packaging/pypi/WHEEL"), &[]);
        platform.wheel.iter().for_each(|tag| wheel.push_str(&format!("Tag: py3-none-{tag}\n")));
        fs::write(info.join("WHEEL"), wheel)?;
        let script = "cp \"$1\" \"$2\"; chmod 755 \"$2\"/*; mkdir \"$3/licenses\"; cp \"$4\"/LICENSE-* \"$3/licenses\"; \
            \"$5\" -m wheel pack --dest-dir ../../pypi .";
        self.sh(&folder, script, &[program, &scripts, &info, &self.repository.root, &python])
    }

    fn debian(&self, platform: &Platform, program: &Path, texts: &Path) -> Result<()> {
        let folder = self.folder("deb")?;
        let control = self.filled(include_str!("../../packaging/deb.control"), &[("DEB", platform.debian)]);
        fs::create_dir_all(folder.join("DEBIAN"))?;
        fs::write(folder.join("DEBIAN/control"), control)?;
        let script = format!(
            r#"cd usr
            install -D -m 755 "$1" bin/promptshelf
            install -D -m 644 "$2/completions/promptshelf.bash" share/bash-completion/completions/promptshelf
            install -D -m 644 "$2/completions/promptshelf.fish" share/fish/vendor_completions.d/promptshelf.fish
            install -D -m 644 "$2/completions/_promptshelf" share/zsh/vendor-completions/_promptshelf
            install -D -m 644 "$2/LICENSE-MIT" share/doc/promptshelf/copyright
            install -D -m 644 "$2/systemd/promptshelf-sync@.service" lib/systemd/user/promptshelf-sync@.service
            mkdir -p lib/systemd/system share/man/man1
            sed 's|/usr/local/bin/promptshelf|/usr/bin/promptshelf|' "$2/systemd/promptshelf.service" >lib/systemd/system/promptshelf.service
            cp "$2"/man/man1/* share/man/man1
            gzip -n -9 share/man/man1/*
            cd ..
            dpkg-deb --root-owner-group -Zgzip -z{} --build . "../../deb/$3""#,
            self.level()
        );
        fs::create_dir_all(folder.join("usr"))?;
        let file = format!("promptshelf_{}_{}.deb", self.version, platform.debian);
        self.sh(&folder, &script, &[program, texts, Path::new(&file)])
    }

    /// Writes the image as an OCI layout: a layer with the program and certificate authorities, for each architecture.
    fn image(&self, programs: &[(&Platform, PathBuf)]) -> Result<()> {
        let created = Program::new("date", &self.out)
            .args(&["-u", "+%Y-%m-%dT%H:%M:%SZ", "-d", &format!("@{}", self.epoch)])
            .read()?;
        let blobs = self.out.join("oci/blobs/sha256");
        fs::create_dir_all(&blobs)?;
        let blob = |file: &Path| -> Result<(String, String)> {
            let (digest, size) = (self.digest(file)?, fs::metadata(file)?.len().to_string());
            fs::rename(file, blobs.join(&digest))?;
            Ok((digest, size))
        };
        let mut manifests = Vec::new();
        for (platform, program) in programs.iter().filter(|(platform, _)| !platform.debian.is_empty()) {
            let folder = self.folder("image")?;
            let script = format!(
                r#"[ -s "$3" ] || {{ echo "no certificate authorities in $3; on Debian: apt-get install ca-certificates" >&2; exit 1; }}
                install -D -m 755 "$1" root/usr/local/bin/promptshelf
                install -D -m 644 "$3" "root/$3"
                install -D -m 644 -t root/usr/share/doc/promptshelf "$2"/LICENSE-*
                echo 'promptshelf:x:65532:65532::/nonexistent:/sbin/nologin' >root/etc/passwd
                mkdir root/prompts root/tmp
                {TAR} -C root -cf layer ."#
            );
            self.sh(&folder, &script, &[program, &self.repository.root, Path::new(AUTHORITIES)])?;
            let layer = folder.join("layer");
            let diff_id = self.digest(&layer)?;
            self.sh(&folder, &format!("gzip -n -{} layer", self.level()), &[])?;
            let (layer, layer_size) = blob(&folder.join("layer.gz"))?;
            let values = [
                ("OCI", platform.debian),
                ("CREATED", created.trim()),
                ("COMMIT", &self.commit),
                ("DIFF_ID", &diff_id),
            ];
            let file = folder.join("json");
            fs::write(&file, self.filled(include_str!("../../packaging/oci/config.json"), &values))?;
            let (config, config_size) = blob(&file)?;
            let values = [
                ("CONFIG_SIZE", config_size.as_str()),
                ("CONFIG", &config),
                ("LAYER_SIZE", &layer_size),
                ("LAYER", &layer),
            ];
            fs::write(&file, self.filled(include_str!("../../packaging/oci/manifest.json"), &values))?;
            let (digest, size) = blob(&file)?;
            manifests.push(json!({
                "mediaType": "application/vnd.oci.image.manifest.v1+json",
                "digest": format!("sha256:{digest}"),
                "size": size.parse::<u64>()?,
                "platform": { "architecture": platform.debian, "os": "linux" },
                "annotations": { "org.opencontainers.image.ref.name": self.version },
            }));
        }
        // A tag names one manifest: with several architectures, an index of them.
        if manifests.len() > 1 {
            for manifest in &mut manifests {
                manifest.as_object_mut().context("an object")?.remove("annotations");
            }
            let file = self.out.join("stage/index");
            fs::write(&file, self.index(&manifests))?;
            let (digest, size) = blob(&file)?;
            manifests = vec![json!({
                "mediaType": "application/vnd.oci.image.index.v1+json",
                "digest": format!("sha256:{digest}"),
                "size": size.parse::<u64>()?,
                "annotations": { "org.opencontainers.image.ref.name": self.version },
            })];
        }
        fs::write(self.out.join("oci/index.json"), self.index(&manifests))?;
        Ok(fs::write(self.out.join("oci/oci-layout"), "{\"imageLayoutVersion\":\"1.0.0\"}\n")?)
    }

    fn index(&self, manifests: &[Value]) -> String {
        let media_type = "application/vnd.oci.image.index.v1+json";
        format!("{}\n", json!({ "schemaVersion": 2, "mediaType": media_type, "manifests": manifests }))
    }

    /// Packs the crates that are published. The nightly part `release` also compiles them from these files.
    fn crates(&self) -> Result<()> {
        let packages = self.repository.metadata["packages"].as_array().into_iter().flatten();
        let names: Vec<&str> =
            packages.filter(|it| it["publish"].is_null()).filter_map(|it| it["name"].as_str()).collect();
        let mut cargo =
            Program::cargo(&self.repository.root).args(&["package", "--quiet", "--no-verify", "--allow-dirty"]);
        for name in &names {
            cargo = cargo.args(&["--package", name]);
        }
        cargo.run()?;
        for name in names {
            let file = format!("{name}-{}.crate", self.version);
            fs::copy(self.repository.target().join("package").join(&file), self.out.join("crates").join(&file))?;
        }
        Ok(())
    }

    /// Writes the files that name others: the registry entry, the installers, the Homebrew formula and the Scoop manifest.
    fn manifests(&self, platforms: &[&Platform], bundles: &[(String, String)]) -> Result<()> {
        let mut entry: Value = serde_json::from_str(&self.filled(include_str!("../../packaging/server.json"), &[]))?;
        let packages = entry["packages"].as_array_mut().context("packages of server.json")?;
        packages.extend(bundles.iter().map(|(file, digest)| {
            json!({
                "registryType": "mcpb",
                "identifier": format!("{DOWNLOADS}/v{}/{file}", self.version),
                "version": self.version,
                "fileSha256": digest,
                "transport": { "type": "stdio" },
            })
        }));
        fs::write(self.out.join("server.json"), serde_json::to_string_pretty(&entry)? + "\n")?;
        fs::write(self.out.join("install.ps1"), include_str!("../../packaging/install.ps1"))?;
        self.sh(&self.repository.root, "install -m 755 packaging/install.sh \"$1\"", &[&self.out])?;
        let mut systems = String::new();
        let mut scoop: Value = serde_json::from_str(
            &self.filled(include_str!("../../packaging/scoop.json"), &[("DOWNLOADS", DOWNLOADS)]),
        )?;
        let mut has_windows = false;
        for platform in platforms {
            let kind = if platform.brew.is_some() { "tar.gz" } else { "zip" };
            let file = format!("promptshelf-{}-{}.{kind}", self.version, platform.triple);
            let digest = self.digest(&self.out.join("archives").join(&file))?;
            let url = format!("{DOWNLOADS}/v{}/{file}", self.version);
            if let Some((system, processor)) = platform.brew {
                systems.push_str(&format!(
                    "\n  on_{system} do\n    on_{processor} do\n      url \"{url}\"\n      sha256 \"{digest}\"\n    end\n  end\n"
                ));
            } else {
                has_windows = true;
                scoop["architecture"]["64bit"]["hash"] = json!(digest);
            }
        }
        if !has_windows {
            scoop.as_object_mut().context("an object")?.shift_remove("architecture");
        }
        let formula = self.filled(include_str!("../../packaging/homebrew.rb"), &[("SYSTEMS", &systems)]);
        fs::write(self.out.join("homebrew/promptshelf.rb"), formula)?;
        Ok(fs::write(self.out.join("scoop/promptshelf.json"), serde_json::to_string_pretty(&scoop)? + "\n")?)
    }

    /// Fills a template: `@NAME@` becomes the value, and `@VERSION@` the version.
    fn filled(&self, template: &str, values: &[(&str, &str)]) -> String {
        let mut text = template.replace("@VERSION@", &self.version);
        for (name, value) in values {
            text = text.replace(&format!("@{name}@"), value);
        }
        text
    }

    /// Returns a new folder for files that are packed.
    fn folder(&self, name: &str) -> Result<PathBuf> {
        let folder = self.out.join("stage").join(name);
        fs::remove_dir_all(&folder).ok();
        fs::create_dir_all(&folder)?;
        Ok(folder)
    }

    /// Runs a script of the shell in a folder, with these arguments, until a command fails.
    fn sh(&self, folder: &Path, script: &str, arguments: &[&Path]) -> Result<()> {
        let sh = Program::new("sh", folder).env("SOURCE_DATE_EPOCH", &self.epoch).env("TIME", &self.epoch);
        arguments.iter().fold(sh.args(&["-euc", script, "sh"]), Program::arg).run_quietly()
    }

    fn digest(&self, file: &Path) -> Result<String> {
        let printed = Program::new("sha256sum", &self.out).arg(file).read()?;
        Ok(printed.split(' ').next().unwrap_or_default().to_owned())
    }

    /// The level of compression: a release is made once, and downloaded often.
    fn level(&self) -> u8 {
        if self.quick { 1 } else { 9 }
    }
}

/// Returns a script that packs files of a folder, sorted and with the time of the release.
fn zip_script(archive: &str, files: &str) -> String {
    format!(
        "find {files} -exec touch -h -d @$TIME {{}} +; find {files} -type f | LC_ALL=C sort | TZ=UTC zip -q -X -@ \"{archive}\""
    )
}

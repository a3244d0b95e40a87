//! The Debian package, made by `dpkg-deb`.

use std::{fs, path::Path};

use anyhow::{Context, Result};

use super::{Release, Staged};
use crate::terminal::Program;

/// Makes the package from the staged files. Programs for musl have no dependencies.
pub(super) fn package(release: &Release<'_>, staged: &Staged) -> Result<()> {
    let architecture = match staged.target.split('-').next() {
        Some("aarch64") => "arm64",
        Some("x86_64") => "amd64",
        other => anyhow::bail!("no Debian architecture is known for {other:?}"),
    };
    let root = release.to.join("debian");
    if root.exists() {
        fs::remove_dir_all(&root)?;
    }
    let put = |from: &str, to: &str| -> Result<()> {
        let to = root.join(to);
        fs::create_dir_all(to.parent().context("a folder above")?)?;
        fs::copy(staged.folder.join(from), &to).with_context(|| format!("{from} cannot be copied"))?;
        Ok(())
    };
    put("promptshelf", "usr/bin/promptshelf")?;
    put("completions/promptshelf.bash", "usr/share/bash-completion/completions/promptshelf")?;
    put("completions/promptshelf.fish", "usr/share/fish/vendor_completions.d/promptshelf.fish")?;
    put("completions/_promptshelf", "usr/share/zsh/vendor-completions/_promptshelf")?;
    put("LICENSE-MIT", "usr/share/doc/promptshelf/copyright")?;
    put("systemd/promptshelf-sync@.service", "usr/lib/systemd/user/promptshelf-sync@.service")?;
    let unit = fs::read_to_string(staged.folder.join("systemd/promptshelf.service"))?;
    fs::create_dir_all(root.join("usr/lib/systemd/system"))?;
    fs::write(
        root.join("usr/lib/systemd/system/promptshelf.service"),
        unit.replace("/usr/local/bin/promptshelf", "/usr/bin/promptshelf"),
    )?;
    let manual = root.join("usr/share/man/man1");
    fs::create_dir_all(&manual)?;
    for page in fs::read_dir(staged.folder.join("man/man1"))? {
        let page = page?;
        fs::copy(page.path(), manual.join(page.file_name()))?;
    }
    let pages: Vec<String> = names(&manual)?;
    let mut line = vec!["-n", "-9"];
    line.extend(pages.iter().map(String::as_str));
    Program::new("gzip", &manual).args(&line).run()?;
    fs::create_dir_all(root.join("DEBIAN"))?;
    fs::write(root.join("DEBIAN/control"), control(release, staged, architecture)?)?;
    let file = format!("promptshelf_{}_{architecture}.deb", release.version);
    Program::new("dpkg-deb", &release.to)
        .args(&["--root-owner-group", "-Zgzip", &format!("-z{}", release.level), "--build", "debian", &file])
        .env("SOURCE_DATE_EPOCH", &release.epoch)
        .run()?;
    Ok(fs::remove_dir_all(&root)?)
}

fn control(release: &Release<'_>, staged: &Staged, architecture: &str) -> Result<String> {
    let depends = match newest_glibc(&fs::read(staged.folder.join("promptshelf"))?) {
        Some((major, minor)) => format!("Depends: libc6 (>= {major}.{minor}), libgcc-s1\n"),
        None => String::new(),
    };
    Ok(format!(
        "Package: promptshelf\nVersion: {}\nArchitecture: {architecture}\n{depends}Maintainer: The promptshelf \
         developers <promptshelf@users.noreply.github.com>\nSection: net\nPriority: optional\nHomepage: \
         https://github.com/promptshelf/promptshelf\nDescription: Model Context Protocol prompt server\n Serves a \
         folder of prompt files to MCP clients, with a web page, a terminal client\n and tools for authors.\n",
        release.version
    ))
}

/// Returns the newest version of the C library whose symbols a program uses.
fn newest_glibc(program: &[u8]) -> Option<(u32, u32)> {
    let text = String::from_utf8_lossy(program);
    let versions = text.split("GLIBC_").skip(1).filter_map(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let mut parts = rest[..end].split('.').map(str::parse);
        Some((parts.next()?.ok()?, parts.next()?.ok()?))
    });
    versions.max()
}

fn names(folder: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        names
            .push(entry?.file_name().into_string().map_err(|name| anyhow::anyhow!("{} is not UTF-8", name.display()))?);
    }
    names.sort();
    Ok(names)
}

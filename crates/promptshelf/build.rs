//! What the linker is told beside what cargo tells it.
//!
//! The program is position-independent, so that addresses in it are set when it
//! starts. Where each of them is to be found takes 24 bytes, a megabyte in all;
//! packed (RELR) it takes 13 kB. The loader of glibc knows that since 2.36, and
//! a program that is linked so does not start with an older one: it is asked for
//! only where the machine that builds has such a loader.

use std::{env, process::Command};

/// The first glibc whose loader knows packed relocations.
const FIRST: (u32, u32) = (2, 36);

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let set = |name: &str| env::var(name).unwrap_or_default();
    let is_glibc = set("CARGO_CFG_TARGET_OS") == "linux" && set("CARGO_CFG_TARGET_ENV") == "gnu";
    if is_glibc && set("HOST") == set("TARGET") && glibc().is_some_and(|version| version >= FIRST) {
        // A linker that does not know it warns and goes on.
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// This machine's version, out of `glibc 2.36`.
fn glibc() -> Option<(u32, u32)> {
    let said = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?.stdout;
    let said = String::from_utf8(said).ok()?;
    let (major, minor) = said.trim().strip_prefix("glibc ")?.split_once('.')?;
    let minor = minor.split('.').next()?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

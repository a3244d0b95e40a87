//! Tells the program what it is built for and from: the target, and the commit of a release.

use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=PROMPTSHELF_COMMIT");
    // The first thread has 1 MiB of stack on Windows, which some commands need more than, and 8 MiB elsewhere.
    if env::var_os("CARGO_CFG_WINDOWS").is_some() {
        let is_msvc = env::var("CARGO_CFG_TARGET_ENV").is_ok_and(|it| it == "msvc");
        println!("cargo::rustc-link-arg-bins={}", if is_msvc { "/STACK:8388608" } else { "-Wl,--stack,8388608" });
    }
    println!("cargo::rustc-env=PROMPTSHELF_TARGET={}", env::var("TARGET").unwrap_or_default());
    // A published crate has no repository around it, but this file.
    let published = || {
        let text = fs::read_to_string(".cargo_vcs_info.json").ok()?;
        let (_, rest) = text.split_once("\"sha1\": \"")?;
        Some(rest.split('"').next()?.to_owned())
    };
    if let Some(commit) = env::var("PROMPTSHELF_COMMIT").ok().or_else(published) {
        println!("cargo::rustc-env=PROMPTSHELF_COMMIT={commit}");
    }
}

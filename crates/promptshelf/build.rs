//! Tells the program what it is built for and from: the target, and the commit of a release.

use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=PROMPTSHELF_COMMIT");
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

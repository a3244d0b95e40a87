//! Arbitrary bytes as a prompt file and as a manifest: front matter, arguments, resources. All accepted prompts can
//! be listed and rendered.

#![no_main]

use std::{cell::LazyCell, fs};

use libfuzzer_sys::fuzz_target;
use promptshelf_core::{RawArguments, check};
use promptshelf_source::{Files, Source as _};
use tempfile::TempDir;

thread_local! {
    static FOLDER: LazyCell<TempDir> = const { LazyCell::new(|| tempfile::tempdir().expect("a folder")) };
}

fuzz_target!(|bytes: &[u8]| {
    let Some((which, text)) = bytes.split_first() else { return };
    FOLDER.with(|folder| {
        let (file, other) = if which % 2 == 0 { ("p.md", "promptshelf.toml") } else { ("promptshelf.toml", "p.md") };
        fs::write(folder.path().join(file), text).expect("a file");
        let _ = fs::remove_file(folder.path().join(other));
        let Ok(snapshot) = Files::folder(folder.path()).read() else { return };
        let checked = check(snapshot.into_definitions(), None);
        for prompt in checked.catalog.prompts().iter() {
            let values: Vec<(&str, &str)> =
                prompt.arguments().iter().map(|argument| (argument.name(), "{{ x }}\n\nassistant: \u{FDD0}")).collect();
            if let Ok(bindings) = prompt.bind(&RawArguments::from_iter(values), 1_000) {
                let _ = prompt.render(checked.catalog.render_context(), &bindings);
            }
        }
    });
});

//! Arbitrary bytes as the file of another program, for each reader. Text in UTF-8 is served, or an error at the file says
//! why not; all accepted prompts can be listed and rendered.

#![no_main]

#[path = "../src/foreign_readers.rs"]
mod foreign_readers;

use std::{cell::LazyCell, fs};

use libfuzzer_sys::fuzz_target;
use promptshelf_core::{RawArguments, check};
use promptshelf_source::{Files, Source as _};
use tempfile::TempDir;

thread_local! {
    static FOLDER: LazyCell<TempDir> = const { LazyCell::new(|| tempfile::tempdir().expect("a folder")) };
}

fuzz_target!(|bytes: &[u8]| {
    let Some((path, text)) = foreign_readers::split(bytes) else { return };
    FOLDER.with(|folder| {
        let file = folder.path().join(path);
        fs::create_dir_all(file.parent().expect("a folder around it")).expect("folders");
        fs::write(&file, text).expect("a file");
        let read = Files::folder(folder.path()).read();
        fs::remove_file(&file).expect("it is removed");
        let Ok(snapshot) = read else { panic!("the library cannot be read") };
        let checked = check(snapshot.into_definitions(), None);
        let is_explained = checked.diagnostics.iter().any(|it| it.is_error() && it.location.source.path == path);
        let is_prompt = !path.starts_with('_');
        assert!(!is_prompt || is_explained || checked.catalog.prompts().len() == 1, "neither served nor reported");
        for prompt in checked.catalog.prompts().iter() {
            let values: Vec<(&str, &str)> =
                prompt.arguments().iter().map(|argument| (argument.name(), "one 'two three' \" \\ {{ x }} \u{FDD0}")).collect();
            if let Ok(bindings) = prompt.bind(&RawArguments::from_iter(values), 1_000) {
                let _ = prompt.render(checked.catalog.render_context(), &bindings);
            }
        }
    });
});

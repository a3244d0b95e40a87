//! Attached files whose content contradicts their name.

use std::fs;

use crate::program::{Folder, library, run};

const JPEG: &[u8] = &[0xFF, 0xD8, 0xFF, 0xE0, 0, 0x10, b'J', b'F', b'I', b'F', 0];
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";

fn attaching(file: &str, bytes: &[u8]) -> Folder {
    let prompt = |name: &str| format!("---\ndescription: {name}\n---\nLook:\n{{{{ attach(\"{file}\") }}}}\n");
    let folder = library(&[("one.md", &prompt("One")), ("two.md", &prompt("Two"))]);
    fs::write(folder.path().join("prompts").join(file), bytes).expect("a written file");
    folder
}

#[test]
fn content_mismatch_is_reported_at_each_attach() {
    for (file, bytes, implied, found) in [
        ("chart.png", JPEG, "image/png", "image/jpeg"),
        ("chart.txt", PNG, "text/plain", "image/png"),
        ("chart.json", PNG, "application/json", "image/png"),
    ] {
        let folder = attaching(file, bytes);
        let checked = run(&folder, &["check", "prompts"]);
        let message = format!(
            "warning[content-mismatch]: `{file}` is attached here: the file name implies {implied}, but the content is {found}"
        );
        for prompt in ["one.md", "two.md"] {
            assert!(checked.contains(&format!("{message}\n --> prompts/{prompt}:5:11\n")), "{checked}");
        }
        assert!(checked.starts_with("exit code: 0\n") && checked.contains("2 prompts, 2 warnings"), "{checked}");
        // The type of the content is sent, so a client shows the image.
        let got = run(&folder, &["get", "prompts", "one", "--json"]);
        assert!(got.contains("\"type\": \"image\"") && got.contains(&format!("\"mimeType\": \"{found}\"")), "{got}");
    }
}

#[test]
fn file_that_no_prompt_attaches_is_reported_itself() {
    let folder = library(&[("one.md", "---\ndescription: One\n---\nHi.\n")]);
    fs::write(folder.path().join("prompts/chart.png"), JPEG).expect("a written file");
    let checked = run(&folder, &["check", "prompts"]);
    let expected = "warning[content-mismatch]: the file name implies image/png, but the content is image/jpeg\n--> prompts/chart.png\n";
    assert!(checked.contains(expected), "{checked}");
}

#[test]
fn broken_image_is_an_error_at_its_attach() {
    for (file, text) in [
        ("chart.png", "version https://git-lfs.github.com/spec/v1\noid sha256:00\n"),
        ("chart.jpg", "<!doctype html><title>Not found</title>"),
        ("beep.wav", "not found"),
    ] {
        let folder = attaching(file, text.as_bytes());
        let checked = run(&folder, &["check", "prompts"]);
        let expected = format!("error[invalid-media]: `{file}` is attached here: the file name implies");
        assert!(checked.starts_with("exit code: 1\n") && checked.contains(&expected), "{checked}");
        assert!(checked.contains("\n --> prompts/two.md:5:11\n"), "{checked}");
        let got = run(&folder, &["get", "prompts", "one"]);
        assert!(got.starts_with("exit code: 7\n"), "{got}");
    }
}

#[test]
fn text_cannot_be_attached_as_an_image() {
    let call = "attach(\"note.txt\", mime=\"image/png\")";
    let prompt = format!("---\ndescription: One\n---\nLook:\n{{{{ {call} }}}}\n");
    let folder = library(&[("one.md", &prompt), ("note.txt", "Milk.\n")]);
    let checked = run(&folder, &["check", "prompts"]);
    let expected =
        "error[invalid-media]: `note.txt` is text, and cannot be attached as image/png\n --> prompts/one.md:5:11\n";
    assert!(checked.starts_with("exit code: 1\n") && checked.contains(expected), "{checked}");
}

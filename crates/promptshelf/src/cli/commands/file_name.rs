//! File names for prompts. The name of a prompt is text of an author or a server, and can be any path.

/// The longest name of a file without its ending, in bytes; below the limit of every file system.
const MAX_BYTES: usize = 128;

pub(super) fn check_file_name(name: &str) -> Result<(), String> {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '+' | '@' | '=' | ',');
    if name.len() > MAX_BYTES {
        return Err(format!("the name is longer than {MAX_BYTES} bytes"));
    }
    if let Some(c) = name.chars().find(|c| !is_plain(*c)) {
        return Err(format!("a file name cannot contain {c:?}"));
    }
    if name.starts_with('-') {
        return Err("a name that begins with `-` is an option on a command line".to_owned());
    }
    if name.starts_with('.') || promptshelf_source::check_tree_path(&format!("{name}.md")).is_err() {
        return Err("the name is not a file name on every system".to_owned());
    }
    Ok(())
}

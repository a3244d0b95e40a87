//! The words that start this program again on a machine without it in PATH.

use std::{env, path::Path, sync::OnceLock};

/// Returns the words that start the program as this process was started: `npx -y promptshelf` and `uvx promptshelf` for
/// their caches, otherwise `promptshelf`.
#[must_use]
pub fn words() -> &'static [&'static str] {
    static WORDS: OnceLock<&[&str]> = OnceLock::new();
    WORDS.get_or_init(|| {
        let runs_npx = env::var_os("npm_command").is_some_and(|command| command == "exec");
        env::current_exe().map_or(INSTALLED, |program| started(&program, runs_npx))
    })
}

/// Returns the same words as a command line, for people.
#[must_use]
pub fn command() -> String {
    words().join(" ")
}

const INSTALLED: &[&str] = &["promptshelf"];

/// `npx` runs programs of its cache (`_npx`) and of the project, `uvx` those of its cache (`archive-v0`).
fn started(program: &Path, runs_npx: bool) -> &'static [&'static str] {
    let has = |folder: &str| program.components().any(|part| part.as_os_str() == folder);
    if has("node_modules") && (runs_npx || has("_npx")) {
        &["npx", "-y", "promptshelf"]
    } else if has("archive-v0") {
        &["uvx", "promptshelf"]
    } else {
        INSTALLED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_of_caches_are_started_by_their_package_managers() {
        let words = |program: &str, runs_npx| started(Path::new(program), runs_npx).join(" ");
        let cached = "/h/.npm/_npx/1f/node_modules/@promptshelf/linux-x64/bin/promptshelf";
        assert_eq!(words(cached, false), "npx -y promptshelf");
        let project = "/p/node_modules/@promptshelf/linux-x64/bin/promptshelf";
        assert_eq!(words(project, true), "npx -y promptshelf");
        assert_eq!(words(project, false), "promptshelf");
        assert_eq!(words("/h/.cache/uv/archive-v0/x/bin/promptshelf", false), "uvx promptshelf");
        assert_eq!(words("/h/.local/share/uv/tools/promptshelf/bin/promptshelf", false), "promptshelf");
        assert_eq!(words("/usr/bin/promptshelf", true), "promptshelf");
    }
}

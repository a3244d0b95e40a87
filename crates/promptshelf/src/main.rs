//! The `promptshelf` program. `promptshelf --help` says what it does.

fn main() -> std::process::ExitCode {
    promptshelf_cli::run()
}

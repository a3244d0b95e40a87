//! The `promptshelf` program. `promptshelf --help` says what it does.

/// The C library's allocator gives the memory of a large answer back to the system, and asks for it
/// anew for the next one: with a hundred kilobytes, that took twice as long as everything else.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    promptshelf_cli::run()
}

//! Runs the guarded paths repeatedly, for callgrind: `bench-guard all <times>`, or one of them with its number instead of
//! `all`. Without arguments it lists the guarded paths.

use std::hint::black_box;

use anyhow::{Context, Result};
use bench_guard::{FOLDERS, PATHS, Path, Shelf, runtime};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

fn main() -> Result<()> {
    let mut words = std::env::args().skip(1);
    let Some(number) = words.next() else {
        for (name, _) in PATHS {
            println!("{name}");
        }
        return Ok(());
    };
    let times = words.next().context("usage: bench-guard <number or all> <times>")?.parse()?;
    let all: Vec<Path> = PATHS.iter().chain(FOLDERS).copied().collect();
    let chosen = match number.as_str() {
        "all" => PATHS,
        number => std::slice::from_ref(all.get(number.parse::<usize>()?).context("there is no such path")?),
    };
    // One core keeps all work on this thread; callgrind does not count others.
    let mut one = CpuSet::new();
    let own = sched_getaffinity(None)?;
    one.set((0..CpuSet::MAX_CPU).find(|core| own.is_set(*core)).context("there is no core")?);
    sched_setaffinity(None, &one)?;
    let runtime = runtime()?;
    let _inside = runtime.enter();
    let shelf = Shelf::new()?;
    for (_, path) in chosen {
        // One-time initialization is not counted.
        path(&shelf);
        counted_by_callgrind(*path, &shelf, times);
        written_by_callgrind(times);
    }
    Ok(())
}

/// The only function in which callgrind counts; it is selected by name.
#[inline(never)]
fn counted_by_callgrind(path: fn(&Shelf), shelf: &Shelf, times: usize) {
    for _ in 0..times {
        black_box(path)(black_box(shelf));
    }
}

/// The function after which callgrind writes its counts. Another one, because callgrind does not write after a
/// function that turns the counting off.
#[inline(never)]
fn written_by_callgrind(times: usize) {
    black_box(times);
}

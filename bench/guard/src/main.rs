//! Walks one hot path so many times, for callgrind: `bench-guard <number> <times>`.
//! Without anything, it says which paths there are.

use std::hint::black_box;

use anyhow::{Context, Result};
use bench_guard::{PATHS, Path, Shelf};

fn main() -> Result<()> {
    let mut words = std::env::args().skip(1);
    let Some(number) = words.next() else {
        for (name, _) in PATHS {
            println!("{name}");
        }
        return Ok(());
    };
    let times = words.next().context("usage: bench-guard <number> <times>")?.parse()?;
    let (_, path): Path = *PATHS.get(number.parse::<usize>()?).context("there is no such path")?;
    let shelf = Shelf::new()?;
    // What is made once is not counted.
    path(&shelf);
    counted_by_callgrind(path, &shelf, times);
    Ok(())
}

/// The only function in which callgrind counts; it is looked for by its name.
#[inline(never)]
fn counted_by_callgrind(path: fn(&Shelf), shelf: &Shelf, times: usize) {
    for _ in 0..times {
        black_box(path)(black_box(shelf));
    }
}

//! Timings of the hot paths, for tuning: `cargo bench --package bench-guard`.

use bench_guard::{FOLDERS, PATHS, Shelf, runtime};

fn main() {
    divan::main();
}

#[divan::bench(args = PATHS.iter().chain(FOLDERS).map(|(name, _)| *name))]
fn path(bencher: divan::Bencher<'_, '_>, name: &str) {
    let runtime = runtime().expect("a runtime");
    let _inside = runtime.enter();
    let shelf = Shelf::new().expect("the library has no mistake");
    let (_, path) = PATHS.iter().chain(FOLDERS).find(|(known, _)| *known == name).expect("it is one of them");
    bencher.bench_local(|| path(&shelf));
}

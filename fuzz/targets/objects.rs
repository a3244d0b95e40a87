//! Arbitrary bytes as what git prints of a commit: the list of its tree, and the commit with its signature.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| promptshelf_git::read_printed(bytes));

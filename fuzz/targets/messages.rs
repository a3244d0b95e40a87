//! Arbitrary bytes as the body of an HTTP request, in every protocol revision.

#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let body = Bytes::copy_from_slice(bytes);
    for revision in [None, Some("2025-03-26"), Some("2025-11-25"), Some(shelf::MODERN)] {
        if let Some(answer) = shelf::post(shelf::headers(revision), body.clone()) {
            answer.check();
        }
    }
});

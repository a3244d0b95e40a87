//! Tests with the real program `git` and real repositories.

//! Runs the tests of prompt files, and compares messages with golden files.
//!
//! A [`TestSuite`] selects test cases of a catalog and runs them against a [`TestTarget`], which renders and
//! completes as the tested server does. [`junit`] turns outcomes into a JUnit report. Nothing here prints.

mod expect;
mod golden;
mod junit;
mod outcome;
mod suite;
mod target;

pub use self::{
    golden::transcript,
    junit::junit,
    outcome::{Mismatch, TestError, TestOutcome},
    suite::{TestCase, TestSuite},
    target::{TargetError, TestTarget},
};

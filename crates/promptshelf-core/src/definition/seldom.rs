//! What is said of few definitions, and takes no room in the others.

use std::{
    fmt,
    ops::{Deref, DerefMut},
};

/// Something that has a state in which nothing is said.
pub trait Silent: Default + 'static {
    /// That state, the same as [`Default`] makes.
    fn silent() -> &'static Self;

    /// Whether this is that state.
    fn is_silent(&self) -> bool;
}

impl<T: 'static> Silent for Vec<T> {
    fn silent() -> &'static Vec<T> {
        const { &Vec::new() }
    }

    fn is_silent(&self) -> bool {
        self.is_empty()
    }
}

/// Parts of a definition that most definitions leave out: of a large library
/// they would be most of what is kept. Read, they are as they were said or
/// silent; written to, they come to be.
#[derive(Clone)]
pub struct Seldom<T>(Option<Box<T>>);

impl<T: Silent> Seldom<T> {
    /// Gives back the room of what says nothing.
    pub fn settle(&mut self) {
        if self.0.as_deref().is_some_and(T::is_silent) {
            self.0 = None;
        }
    }
}

impl<T> Default for Seldom<T> {
    fn default() -> Seldom<T> {
        Seldom(None)
    }
}

impl<T: Silent> From<T> for Seldom<T> {
    fn from(said: T) -> Seldom<T> {
        Seldom((!said.is_silent()).then(|| Box::new(said)))
    }
}

impl<T: Silent> Deref for Seldom<T> {
    type Target = T;

    fn deref(&self) -> &T {
        match &self.0 {
            Some(said) => said,
            None => T::silent(),
        }
    }
}

impl<T: Silent> DerefMut for Seldom<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.get_or_insert_default()
    }
}

impl<T: Silent + PartialEq> PartialEq for Seldom<T> {
    fn eq(&self, other: &Seldom<T>) -> bool {
        **self == **other
    }
}

impl<T: Silent + fmt::Debug> fmt::Debug for Seldom<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

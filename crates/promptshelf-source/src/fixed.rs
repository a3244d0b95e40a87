//! A source of definitions made in code.

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use promptshelf_core::{Code, Definitions, Diagnostic, Icon, Location, SourceText};

use crate::{
    error::SourceError,
    source::{Fingerprint, ReloadSignal, Snapshot, Source, WatchGuard, Watchers},
};

/// Definitions made in code. They can be replaced, which requests a reload from every watcher.
///
/// Clones share one state. Icons that no client could load are left out with a warning.
///
/// ```
/// use promptshelf_core::{Definitions, PromptDefinition};
/// use promptshelf_source::{Fixed, Loader};
///
/// let hello = PromptDefinition::template("hello", "Say hello.").description("Greets");
/// let source = Fixed::new(Definitions::from_iter([hello]));
/// let loader = Loader::open(vec![Box::new(source)]).unwrap();
/// assert!(loader.handle().current().find("hello").is_some());
/// ```
#[derive(Clone, Debug, Default)]
pub struct Fixed(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// With the number of replacements.
    state: Mutex<(Definitions, u64)>,
    watchers: Watchers,
}

impl Fixed {
    /// Creates a source with these definitions.
    #[must_use]
    pub fn new(definitions: Definitions) -> Fixed {
        let state = Mutex::new((without_bad_icons(definitions), 0));
        Fixed(Arc::new(Inner { state, watchers: Watchers::default() }))
    }

    /// Replaces all definitions, and requests a reload.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// use promptshelf_core::{Definitions, PromptDefinition};
    /// use promptshelf_source::{Fixed, Loader};
    ///
    /// let source = Fixed::default();
    /// let loader = Loader::open(vec![Box::new(source.clone())]).unwrap();
    /// let prompts = vec![PromptDefinition::template("hello", "Say hello.")];
    /// source.replace(Definitions::from_iter(prompts));
    /// loader.reload().await.unwrap();
    /// assert!(loader.handle().current().find("hello").is_some());
    /// # }
    /// ```
    pub fn replace(&self, definitions: Definitions) {
        {
            let mut state = self.lock();
            *state = (without_bad_icons(definitions), state.1 + 1);
        }
        self.0.watchers.request();
    }

    fn lock(&self) -> MutexGuard<'_, (Definitions, u64)> {
        self.0.state.lock()
    }
}

/// Removes icons that no client could load, with a warning: the prompt works without them.
fn without_bad_icons(mut definitions: Definitions) -> Definitions {
    let Definitions { about, prompts, resources, diagnostics, .. } = &mut definitions;
    let mut check = |icons: &mut Vec<Icon>, whose: &str, location: &Location| {
        icons.retain(|icon| {
            let fault = icon.fault();
            let message = fault.iter().map(|fault| format!("{whose}: {fault}"));
            diagnostics.extend(message.map(|it| Diagnostic::warning(Code::InvalidValue, location.clone(), it)));
            fault.is_none()
        });
    };
    check(&mut about.icons, "the server", &Location::file(&SourceText::new("", "")));
    for prompt in prompts {
        // Mutable access copies the definition if it is shared.
        if prompt.icons.iter().any(|icon| icon.fault().is_some()) {
            let (name, location) = (prompt.name.clone(), prompt.origin.locate("icons"));
            check(&mut Arc::make_mut(prompt).icons, &name, &location);
        }
    }
    for resource in resources {
        check(&mut resource.icons, &resource.uri, &resource.origin.locate("icons"));
    }
    definitions
}

impl Source for Fixed {
    fn read(&self) -> Result<Snapshot, SourceError> {
        let (definitions, number) = self.lock().clone();
        Ok(Snapshot::new(Fingerprint::new(number), definitions))
    }

    fn watch(&self, signal: ReloadSignal) -> WatchGuard {
        self.0.watchers.add(signal)
    }
}

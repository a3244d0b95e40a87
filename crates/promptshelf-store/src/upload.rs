//! Contents that are stored before the proposal that refers to them.

use crate::{
    StoreError,
    database::Mode,
    input,
    model::Digest,
    store::Store,
    tables::blob::{self, Contents},
};

impl Store {
    /// Stores contents for later proposals, and returns the digest of each, in their order. [`Store::gc`] removes those
    /// that no proposal refers to.
    ///
    /// # Errors
    ///
    /// [`StoreError::InvalidInput`] for a content that is too large for a file, and errors of the database.
    pub async fn add_contents(&self, contents: Vec<Vec<u8>>) -> Result<Vec<Digest>, StoreError> {
        contents.iter().try_for_each(|content| input::content(content))?;
        let digests: Vec<Digest> = contents.iter().map(|content| Digest::of(content)).collect();
        let contents: Contents = digests.iter().copied().zip(contents.into_iter().map(Into::into)).collect();
        let mut transaction = self.database().begin(Mode::Write).await?;
        let result = blob::write(&mut transaction, &contents).await;
        transaction.finish(result).await?;
        Ok(digests)
    }
}

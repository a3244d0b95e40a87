//! Tokens of the store.

use http::Method;
use promptshelf_store::{NewToken, TokenInfo};
use serde::Deserialize;
use serde_json::json;

use super::connection::{Remote, Request};
use crate::commands::channels::answer::Answer;

#[derive(Deserialize)]
struct Tokens {
    tokens: Vec<TokenInfo>,
}

#[derive(Deserialize)]
struct CreatedToken {
    token: String,
    info: TokenInfo,
}

impl Remote {
    pub(in crate::commands::channels) async fn tokens(&self) -> Answer<Vec<TokenInfo>> {
        let Tokens { tokens } = self.get("tokens", vec![]).await?;
        Ok(tokens)
    }

    pub(in crate::commands::channels) async fn create_token(&self, new: &NewToken) -> Answer<(String, TokenInfo)> {
        let CreatedToken { token, info } = self.call(Request::new(Method::POST, "tokens").body(&json!(new))).await?;
        Ok((token, info))
    }

    pub(in crate::commands::channels) async fn revoke_token(&self, id: u64) -> Answer<TokenInfo> {
        self.call(Request::new(Method::DELETE, &format!("tokens/{id}"))).await
    }
}

//! The client at servers that require sign-in: OAuth with a browser that the tests simulate.

mod client_credentials;
pub(crate) mod realm;

use std::{
    collections::HashMap,
    fs,
    pin::Pin,
    sync::{Arc, Mutex},
    thread,
};

use http::Method;
use promptshelf::client::{
    ApiClient, ApiRequest, BrowserOpener, Client, ClientError, ConnectOptions, CredentialError, CredentialStore,
    Endpoint, SignIn, SignInPage,
};

use self::realm::{Behaviour, Realm};
use crate::{
    program::{PATIENCE, library, promptshelf, shown},
    terminal::{CTRL_D, Terminal},
};

/// A credential store in memory.
#[derive(Default)]
struct Memory(Mutex<HashMap<String, String>>);

impl CredentialStore for Memory {
    fn load(&self, server: &str) -> Result<Option<String>, CredentialError> {
        Ok(self.0.lock().expect("no panic").get(server).cloned())
    }

    fn save(&self, server: &str, secret: &str) -> Result<(), CredentialError> {
        self.0.lock().expect("no panic").insert(server.to_owned(), secret.to_owned());
        Ok(())
    }

    fn clear(&self, server: &str) -> Result<bool, CredentialError> {
        Ok(self.0.lock().expect("no panic").remove(server).is_some())
    }
}

/// Opens a page, follows its redirects to the end, and returns the text of the last page.
fn browse(url: &str) -> String {
    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let mut page = agent.get(url).call().expect("a page");
    page.body_mut().read_to_string().expect("text")
}

/// A browser whose user consents at once.
#[derive(Default)]
struct TestBrowser {
    /// A page to open first, derived from the page's URL, which contains the redirect URI.
    before: Option<fn(&str) -> String>,
    seen: Arc<Mutex<Vec<String>>>,
}

impl BrowserOpener for TestBrowser {
    fn open(&self, page: SignInPage) -> Pin<Box<dyn Future<Output = bool> + Send + '_>> {
        let (before, seen) = (self.before, Arc::clone(&self.seen));
        thread::spawn(move || {
            let opened = before.map(|before| browse(&before(&page.url)));
            let last = browse(&page.url);
            seen.lock().expect("no panic").extend(opened.into_iter().chain([last]));
        });
        Box::pin(std::future::ready(true))
    }
}

fn sign_in(store: &Arc<Memory>, browser: Option<TestBrowser>) -> SignIn {
    let sign_in = SignIn::new(Arc::clone(store) as Arc<dyn CredentialStore>);
    match browser {
        Some(browser) => sign_in.browser(Arc::new(browser)),
        None => sign_in,
    }
}

async fn connect(realm: &Realm, store: &Arc<Memory>, browser: Option<TestBrowser>) -> Result<Client, ClientError> {
    let sign_in = sign_in(store, browser);
    ConnectOptions::new().sign_in(sign_in).connect(&Endpoint::url(realm.mcp())).await
}

// req: Q14
#[tokio::test]
async fn sign_in_lasts_for_later_runs() {
    let (realm, store) = (Realm::start(Behaviour::default()), Arc::default());
    assert!(matches!(connect(&realm, &store, None).await, Err(ClientError::AuthenticationRequired)));
    let client = connect(&realm, &store, Some(TestBrowser::default())).await.expect("a sign-in");
    assert_eq!(client.all_prompts().await.expect("a list").len(), 2);
    assert!(client.has_signed_in());
    let later = connect(&realm, &store, None).await.expect("stored credentials");
    assert_eq!(later.all_prompts().await.expect("a list").len(), 2);
    assert!(!later.has_signed_in() && later.has_stored_credentials().await);
    let recorded = realm.recorded();
    assert_eq!((recorded.registered.len(), recorded.authorized.len(), recorded.exchanged.len()), (1, 1, 1));
    assert_eq!((&recorded.authorized[0]["resource"], &recorded.exchanged[0]["resource"]), (&realm.mcp(), &realm.mcp()));
    assert_eq!(recorded.authorized[0]["scope"], "read");
    assert_eq!(recorded.registered[0]["application_type"], "native");
}

/// The metadata is then at its well-known URL (specification 2025-11-25, *Protected Resource Metadata Discovery*).
#[tokio::test]
async fn refusal_without_challenge_requires_sign_in() {
    let behaviour = Behaviour { no_challenge: true, ..Behaviour::default() };
    let (realm, store) = (Realm::start(behaviour), Arc::default());
    assert!(matches!(connect(&realm, &store, None).await, Err(ClientError::AuthenticationRequired)));
    let client = connect(&realm, &store, Some(TestBrowser::default())).await.expect("a sign-in");
    assert_eq!(client.all_prompts().await.expect("a list").len(), 2);
}

#[tokio::test]
async fn expired_token_is_renewed_with_client_secret() {
    let behaviour = Behaviour { expired_tokens: true, secrets: true, ..Behaviour::default() };
    let (realm, store) = (Realm::start(behaviour), Arc::default());
    connect(&realm, &store, Some(TestBrowser::default())).await.expect("a sign-in");
    let later = connect(&realm, &store, None).await.expect("a renewed token");
    later.all_prompts().await.expect("a list");
    let recorded = realm.recorded();
    assert_eq!(recorded.authorized.len(), 1);
    let renewed = recorded.exchanged.last().expect("at least one");
    assert_eq!((renewed["grant_type"].as_str(), &renewed["resource"]), ("refresh_token", &realm.mcp()));
    // `client-1:between us`, form-encoded before Base64.
    let basic = Some("Basic Y2xpZW50LTE6YmV0d2Vlbit1cw==".to_owned());
    assert!(recorded.basic.iter().all(|sent| *sent == basic), "{:?}", recorded.basic);
}

// req: Q17
#[tokio::test]
async fn missing_scopes_are_requested_with_the_granted_ones() {
    let (realm, store) = (Realm::start(Behaviour::default()), Arc::default());
    let client = connect(&realm, &store, Some(TestBrowser::default())).await.expect("a sign-in");
    client.get("open", &[].into()).await.expect("it may");
    client.get("written", &[].into()).await.expect("sign-in with more scopes");
    {
        let recorded = realm.recorded();
        let scopes: Vec<&str> = recorded.authorized.iter().map(|request| request["scope"].as_str()).collect();
        assert_eq!(scopes, ["read", "read write"]);
        let registered: Vec<_> = recorded.registered.iter().map(|client| client["scope"].clone()).collect();
        assert_eq!(registered, ["read", "read write"], "some servers hold a client to what it was registered for");
    }
    let background =
        connect(&realm, &store, Some(TestBrowser::default())).await.expect("stored credentials").without_sign_in();
    background.get("written", &[].into()).await.expect("stored credentials");
}

// req: Q17
#[tokio::test]
async fn api_uses_the_sign_in_of_the_endpoint() {
    let (realm, store) = (Realm::start(Behaviour::default()), Arc::default());
    let list = async |browser: Option<TestBrowser>| {
        let server = realm.mcp().parse().expect("the URL of a server");
        let client = ApiClient::new(server, None, Some(&sign_in(&store, browser)), PATIENCE).await?;
        let path = "api/v1/channels".to_owned();
        let request = ApiRequest { method: Method::GET, path, query: Vec::new(), headers: Vec::new(), body: None };
        client.send(&request).await.map(|response| (response.status, response.body))
    };
    assert!(matches!(list(None).await, Err(ClientError::AuthenticationRequired)));
    connect(&realm, &store, Some(TestBrowser::default())).await.expect("a sign-in");
    let scope = match list(None).await {
        Err(ClientError::Forbidden { scope }) => scope,
        other => panic!("{other:?}"),
    };
    assert_eq!(scope.as_deref(), Some("write"));
    let expected = (200, br#"{"items":[],"next":null}"#.to_vec());
    assert_eq!(list(Some(TestBrowser::default())).await.expect("a sign-in with more scopes"), expected);
    assert_eq!(list(None).await.expect("stored credentials"), expected);
    let scopes: Vec<String> = realm.recorded().authorized.iter().map(|request| request["scope"].clone()).collect();
    assert_eq!(scopes, ["read", "read write"]);
}

// req: Q17
#[tokio::test]
async fn refused_scopes_are_not_requested_again() {
    let (realm, store) = (Realm::start(Behaviour { grants_nothing: true, ..Behaviour::default() }), Arc::default());
    let client = connect(&realm, &store, Some(TestBrowser::default())).await.expect("a sign-in");
    for _ in 0..2 {
        let refused = client.get("written", &[].into()).await;
        assert!(
            matches!(&refused, Err(ClientError::Forbidden { scope: Some(scope) }) if scope == "write"),
            "{refused:?}"
        );
    }
    assert_eq!(realm.recorded().authorized.len(), 2);
    // A client without sign-in never opens a browser.
    let background =
        connect(&realm, &store, Some(TestBrowser::default())).await.expect("stored credentials").without_sign_in();
    assert!(matches!(background.get("written", &[].into()).await, Err(ClientError::Forbidden { .. })));
    assert_eq!(realm.recorded().authorized.len(), 2);
}

// req: Q15, S-42
#[tokio::test]
async fn response_of_another_issuer_is_rejected() {
    let (realm, store) = (Realm::start(Behaviour { wrong_issuer: true, ..Behaviour::default() }), Arc::default());
    let refused = connect(&realm, &store, Some(TestBrowser::default())).await;
    assert!(
        matches!(&refused, Err(ClientError::SignInFailed { reason: why, .. }) if why.contains("evil.example")),
        "{refused:?}"
    );
    assert!(store.0.lock().expect("no panic").is_empty());
    assert!(realm.recorded().exchanged.is_empty());
}

/// A server may move to another authorization server, which must not get the credentials of the old one.
// req: Q16
#[tokio::test]
async fn credentials_are_sent_to_their_own_issuer_only() {
    let behaviour = Behaviour { secrets: true, ..Behaviour::default() };
    let (realm, store) = (Realm::start(behaviour), Arc::<Memory>::default());
    connect(&realm, &store, Some(TestBrowser::default())).await.expect("a sign-in");
    for stored in store.0.lock().expect("no panic").values_mut() {
        let ours = format!("\"issuer\":\"{}\"", realm.mcp().trim_end_matches("/mcp"));
        assert!(stored.contains(&ours), "{stored}");
        *stored = stored.replace(&ours, "\"issuer\":\"https://before.example\"");
    }
    connect(&realm, &store, Some(TestBrowser::default())).await.expect("a second sign-in");
    let recorded = realm.recorded();
    assert_eq!((recorded.registered.len(), recorded.authorized.len()), (2, 2));
    let grants: Vec<&str> = recorded.exchanged.iter().map(|request| request["grant_type"].as_str()).collect();
    assert_eq!(
        grants,
        ["authorization_code", "authorization_code"],
        "stored credentials of another issuer are not used"
    );
    assert_eq!(recorded.authorized[1]["client_id"], "client-2");
}

/// A server that stops to publish its authorization server would otherwise receive the refresh token itself, at the
/// default endpoints of its own origin.
// req: S-72
#[tokio::test]
async fn refresh_token_is_not_sent_to_default_endpoints() {
    let behaviour = Behaviour { expired_tokens: true, ..Behaviour::default() };
    let (realm, store) = (Realm::start(behaviour), Arc::default());
    connect(&realm, &store, Some(TestBrowser::default())).await.expect("a sign-in");
    let renewed =
        || realm.recorded().exchanged.iter().filter(|request| request["grant_type"] == "refresh_token").count();
    let before = renewed();
    realm.withhold_metadata(true);
    for _ in 0..2 {
        let refused = connect(&realm, &store, None).await;
        assert!(matches!(refused, Err(ClientError::AuthenticationRequired)), "{refused:?}");
    }
    assert_eq!(renewed(), before);
    realm.withhold_metadata(false);
    connect(&realm, &store, None).await.expect("the refresh token is still stored");
    let after = renewed();
    assert!(after > before);
    // A record without an issuer, as of a sign-in at default endpoints, is never renewed.
    for stored in store.0.lock().expect("no panic").values_mut() {
        *stored = stored.replace(&format!("\"issuer\":\"{}\"", realm.issuer()), "\"issuer\":null");
    }
    assert!(matches!(connect(&realm, &store, None).await, Err(ClientError::AuthenticationRequired)));
    assert_eq!(renewed(), after);
}

// req: S-72
#[tokio::test]
async fn refresh_token_is_not_sent_to_a_server_that_claims_its_issuer() {
    let (real, store) = (Realm::start(Behaviour { expired_tokens: true, ..Behaviour::default() }), Arc::default());
    connect(&real, &store, Some(TestBrowser::default())).await.expect("a sign-in");
    // The server has become hostile since.
    let claimed_issuer = Some(real.issuer().to_owned());
    let hostile = Realm::start(Behaviour { claimed_issuer, ..Behaviour::default() });
    let credentials = store.0.lock().expect("no panic").remove(&real.mcp()).expect("they are stored");
    store.0.lock().expect("no panic").insert(hostile.mcp(), credentials);
    let refused = connect(&hostile, &store, None).await;
    assert!(matches!(refused, Err(ClientError::AuthenticationRequired)), "{refused:?}");
    assert_eq!(hostile.recorded().basic.len(), 0, "the refresh token was sent");
    // Without the issuer itself nothing is renewed.
    let away = Some("http://127.0.0.1:1".to_owned());
    let hostile = Realm::start(Behaviour { claimed_issuer: away, ..Behaviour::default() });
    let moved = |stored: String| stored.replace(real.issuer(), "http://127.0.0.1:1");
    let credentials = store.0.lock().expect("no panic").drain().next().expect("they are stored").1;
    store.0.lock().expect("no panic").insert(hostile.mcp(), moved(credentials));
    connect(&hostile, &store, None).await.expect_err("an ended token");
    assert_eq!(hostile.recorded().basic.len(), 0, "the refresh token was sent");
}

// req: S-73
#[tokio::test]
async fn configured_secret_is_not_sent_to_a_server_that_claims_its_issuer() {
    let real = Realm::start(Behaviour::default());
    let claimed_issuer = Some(real.issuer().to_owned());
    let hostile = Realm::start(Behaviour { claimed_issuer, ..Behaviour::default() });
    let sign_in = SignIn::new(Arc::<Memory>::default()).browser(Arc::new(TestBrowser::default()));
    let sign_in = sign_in.client("team").client_secret("a secret", Some(real.issuer().to_owned()));
    let refused = ConnectOptions::new().sign_in(sign_in).connect(&Endpoint::url(hostile.mcp())).await;
    assert!(refused.is_err(), "{refused:?}");
    assert!(hostile.recorded().basic.is_empty() && hostile.recorded().authorized.is_empty());
    assert!(!real.recorded().basic.is_empty(), "the issuer itself was asked");
}

// req: S-72
#[tokio::test]
async fn access_token_is_used_to_its_end_without_metadata() {
    let (realm, store) = (Realm::start(Behaviour::default()), Arc::default());
    connect(&realm, &store, Some(TestBrowser::default())).await.expect("a sign-in");
    realm.withhold_metadata(true);
    let later = connect(&realm, &store, None).await.expect("the stored access token");
    assert_eq!(later.all_prompts().await.expect("a list").len(), 2);
    assert_eq!(realm.recorded().exchanged.len(), 1);
}

// req: S-73
#[tokio::test]
async fn configured_secret_is_sent_to_its_issuer_only() {
    let realm = Realm::start(Behaviour::default());
    let signed_in = async |issuer: Option<&str>| {
        let sign_in = SignIn::new(Arc::<Memory>::default()).browser(Arc::new(TestBrowser::default()));
        let sign_in = sign_in.client("team").client_secret("a secret", issuer.map(str::to_owned));
        ConnectOptions::new().sign_in(sign_in).connect(&Endpoint::url(realm.mcp())).await.map(drop)
    };
    for issuer in [None, Some("https://id.example")] {
        let refused = signed_in(issuer).await;
        assert!(
            matches!(&refused, Err(ClientError::SignInFailed { reason, .. }) if reason.contains(realm.issuer())),
            "{refused:?}"
        );
    }
    realm.withhold_metadata(true);
    signed_in(Some(realm.issuer())).await.expect_err("default endpoints have no issuer");
    assert!(realm.recorded().authorized.is_empty() && realm.recorded().basic.is_empty());
    realm.withhold_metadata(false);
    signed_in(Some(realm.issuer())).await.expect("its own issuer");
    assert_eq!(realm.recorded().basic, [Some("Basic dGVhbTphK3NlY3JldA==".to_owned())]);
}

// req: S-75, Q14
#[tokio::test]
async fn metadata_without_s256_is_refused() {
    for methods in [serde_json::Value::Null, serde_json::json!([]), serde_json::json!(["plain"])] {
        let behaviour = Behaviour { challenge_methods: Some(methods), ..Behaviour::default() };
        let (realm, store) = (Realm::start(behaviour), Arc::default());
        let refused = connect(&realm, &store, Some(TestBrowser::default())).await;
        assert!(
            matches!(&refused, Err(ClientError::SignInFailed { reason, .. }) if reason.contains("S256")),
            "{refused:?}"
        );
        assert!(realm.recorded().registered.is_empty() && realm.recorded().authorized.is_empty());
    }
}

#[tokio::test]
async fn denied_consent_ends_the_sign_in() {
    let (realm, store) = (Realm::start(Behaviour { denies_consent: true, ..Behaviour::default() }), Arc::default());
    let refused = connect(&realm, &store, Some(TestBrowser::default())).await;
    assert!(
        matches!(&refused, Err(ClientError::SignInFailed { reason: why, .. }) if why.contains("Not today")),
        "{refused:?}"
    );
    assert!(realm.recorded().exchanged.is_empty());
}

// req: Q14, S-41
#[tokio::test]
async fn only_https_and_loopback_pages_are_opened() {
    for page in ["http://example.com/authorize", "file:///etc/passwd", "javascript:alert(1)"] {
        let behaviour = Behaviour { page: Some(page.to_owned()), ..Behaviour::default() };
        let (realm, store) = (Realm::start(behaviour), Arc::default());
        let browser = TestBrowser::default();
        let seen = Arc::clone(&browser.seen);
        let refused = connect(&realm, &store, Some(browser)).await;
        assert!(
            matches!(&refused, Err(ClientError::SignInFailed { reason: why, .. }) if why.contains("not https")),
            "{refused:?}"
        );
        assert!(seen.lock().expect("no panic").is_empty());
    }
}

// req: S-42
#[tokio::test]
async fn forged_redirects_are_rejected() {
    /// Returns a redirect that another page or program could send to the port.
    fn forged(page: &str) -> String {
        let (_, query) = page.split_once('?').expect("one value");
        let back = query.split('&').find_map(|pair| pair.strip_prefix("redirect_uri=")).expect("one value");
        let back = back.replace("%3A", ":").replace("%2F", "/");
        format!("{back}?code=stolen&state=guessed")
    }
    let (realm, store) = (Realm::start(Behaviour::default()), Arc::default());
    let browser = TestBrowser { before: Some(forged), ..TestBrowser::default() };
    connect(&realm, &store, Some(browser)).await.expect("the right answer is still taken");
    assert_eq!(realm.recorded().exchanged[0]["code"], "0");
}

// req: Q18
#[tokio::test]
async fn configured_token_prevents_sign_in() {
    let (realm, store) = (Realm::start(Behaviour::default()), Arc::<Memory>::default());
    let target = Endpoint::url(realm.mcp()).bearer("wrong").expect("it is this machine");
    let sign_in = SignIn::new(store).browser(Arc::new(TestBrowser::default()));
    let refused = ConnectOptions::new().sign_in(sign_in).connect(&target).await;
    assert!(matches!(refused, Err(ClientError::AuthenticationRequired)));
    assert!(realm.recorded().authorized.is_empty());
    assert_eq!(Endpoint::url("http://example.com/mcp").sign_in_url(), None);
}

// req: S-43
#[test]
fn sign_in_and_out_at_a_terminal() {
    let realm = Realm::start(Behaviour::default());
    let folder = library(&[]);
    let state = folder.path().join("state");
    let line = |words: &[&str]| {
        let mut command = promptshelf();
        command.args(words).current_dir(folder.path()).env("XDG_STATE_HOME", &state);
        command
    };
    let url = realm.mcp();
    let list = ["list", "--url", &url];
    let refused = shown(line(&list), "");
    assert!(
        refused.starts_with("exit code: 12\n") && refused.contains(&format!("promptshelf sign-in {url}")),
        "{refused}"
    );

    let mut terminal = Terminal::start(line(&list));
    terminal.wait_for(&format!("{url} requires sign-in at {}.", realm.host()));
    terminal.wait_for("Enter opens the page");
    terminal.press(CTRL_D);
    assert_eq!(terminal.end().0, Some(11));

    let mut terminal = Terminal::start(line(&list));
    terminal.wait_for("Enter opens the page");
    terminal.press("\r");
    terminal.wait_for("Otherwise open it yourself:\r\n\r\n  ");
    let page = terminal.wait_for("\r\n");
    assert!(browse(page.trim()).contains("You are signed in."));
    terminal.wait_for("written");
    assert_eq!(terminal.end().0, Some(0));

    assert!(shown(line(&list), "").starts_with("exit code: 0\n"));
    let again = shown(line(&["sign-in", &url]), "");
    assert!(again.contains("already signed in"), "{again}");
    let files: Vec<_> =
        fs::read_dir(state.join("promptshelf/sign-in")).expect("a folder of credentials").flatten().collect();
    let stored =
        files.iter().find(|file| file.path().extension().is_some_and(|it| it == "json")).expect("stored credentials");
    let mode = std::os::unix::fs::PermissionsExt::mode(&stored.metadata().expect("a file").permissions());
    assert_eq!(mode & 0o777, 0o600);
    let forbidden = shown(line(&["get", "written", "--url", &url]), "");
    let help = format!("promptshelf sign-in {url} --scope write");
    assert!(forbidden.starts_with("exit code: 12\n") && forbidden.contains(&help), "{forbidden}");

    let out = shown(line(&["sign-out", &url]), "");
    assert!(out.contains("signed out of"), "{out}");
    assert!(shown(line(&["sign-out", &url]), "").contains("not signed in"));
    assert!(shown(line(&list), "").starts_with("exit code: 12\n"));
    assert!(shown(line(&["sign-in", "prompts"]), "").starts_with("exit code: 2\n"));
}

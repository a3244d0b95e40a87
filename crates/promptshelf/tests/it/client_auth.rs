//! Our client at servers that require sign-in: OAuth in a browser, whose part the tests play.

mod realm;

use std::{
    collections::HashMap,
    fs,
    pin::Pin,
    sync::{Arc, Mutex},
    thread,
};

use promptshelf::client::{
    BrowserOpener, Client, ClientError, ConnectOptions, CredentialError, CredentialStore, Endpoint, SignIn, SignInPage,
};

use self::realm::{Realm, Ways};
use crate::{
    program::{library, promptshelf, shown},
    terminal::{CTRL_D, Terminal},
};

/// Keeps sign-ins in memory.
#[derive(Default)]
struct Memory(Mutex<HashMap<String, String>>);

impl CredentialStore for Memory {
    fn load(&self, server: &str) -> Result<Option<String>, CredentialError> {
        Ok(self.0.lock().expect("nobody panics with it").get(server).cloned())
    }

    fn save(&self, server: &str, secret: &str) -> Result<(), CredentialError> {
        self.0.lock().expect("nobody panics with it").insert(server.to_owned(), secret.to_owned());
        Ok(())
    }

    fn clear(&self, server: &str) -> Result<bool, CredentialError> {
        Ok(self.0.lock().expect("nobody panics with it").remove(server).is_some())
    }
}

/// Opens a page, follows its redirects to the end, and returns the text of the last page.
fn browse(url: &str) -> String {
    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let mut page = agent.get(url).call().expect("there is a page");
    page.body_mut().read_to_string().expect("it is text")
}

/// A person with a browser.
#[derive(Default)]
struct Person {
    /// A page to open first, derived from the page's URL, which contains the redirect URI.
    before: Option<fn(&str) -> String>,
    seen: Arc<Mutex<Vec<String>>>,
}

impl BrowserOpener for Person {
    fn open(&self, page: SignInPage) -> Pin<Box<dyn Future<Output = bool> + Send + '_>> {
        let (before, seen) = (self.before, Arc::clone(&self.seen));
        thread::spawn(move || {
            let opened = before.map(|before| browse(&before(&page.url)));
            let last = browse(&page.url);
            seen.lock().expect("nobody panics with it").extend(opened.into_iter().chain([last]));
        });
        Box::pin(std::future::ready(true))
    }
}

async fn connect(realm: &Realm, vault: &Arc<Memory>, person: Option<Person>) -> Result<Client, ClientError> {
    let sign_in = SignIn::new(Arc::clone(vault) as Arc<dyn CredentialStore>);
    let sign_in = match person {
        Some(person) => sign_in.browser(Arc::new(person)),
        None => sign_in,
    };
    ConnectOptions::new().sign_in(sign_in).connect(&Endpoint::url(realm.mcp())).await
}

// req: Q14
#[tokio::test]
async fn sign_in_lasts_for_later_runs() {
    let (realm, vault) = (Realm::start(Ways::default()), Arc::default());
    assert!(matches!(connect(&realm, &vault, None).await, Err(ClientError::AuthenticationRequired)));
    let client = connect(&realm, &vault, Some(Person::default())).await.expect("somebody signs in");
    assert_eq!(client.all_prompts().await.expect("it lists").len(), 2);
    assert!(client.has_signed_in());
    let later = connect(&realm, &vault, None).await.expect("nobody has to sign in again");
    assert_eq!(later.all_prompts().await.expect("it lists").len(), 2);
    assert!(!later.has_signed_in() && later.has_stored_credentials().await);
    let book = realm.book();
    assert_eq!((book.registered.len(), book.authorized.len(), book.exchanged.len()), (1, 1, 1));
    assert_eq!((&book.authorized[0]["resource"], &book.exchanged[0]["resource"]), (&realm.mcp(), &realm.mcp()));
    assert_eq!(book.authorized[0]["scope"], "read");
    assert_eq!(book.registered[0]["application_type"], "native");
}

#[tokio::test]
async fn a_token_that_has_ended_is_renewed_with_the_clients_secret() {
    let ways = Ways { short: true, secrets: true, ..Ways::default() };
    let (realm, vault) = (Realm::start(ways), Arc::default());
    connect(&realm, &vault, Some(Person::default())).await.expect("somebody signs in");
    let later = connect(&realm, &vault, None).await.expect("it is renewed");
    later.all_prompts().await.expect("it lists");
    let book = realm.book();
    assert_eq!(book.authorized.len(), 1);
    let renewed = book.exchanged.last().expect("there is one");
    assert_eq!((renewed["grant_type"].as_str(), &renewed["resource"]), ("refresh_token", &realm.mcp()));
    // `client-1:between us`, as a form writes it.
    let basic = Some("Basic Y2xpZW50LTE6YmV0d2Vlbit1cw==".to_owned());
    assert!(book.basic.iter().all(|sent| *sent == basic), "{:?}", book.basic);
}

// req: Q17
#[tokio::test]
async fn missing_scopes_are_requested_with_the_granted_ones() {
    let (realm, vault) = (Realm::start(Ways::default()), Arc::default());
    let client = connect(&realm, &vault, Some(Person::default())).await.expect("somebody signs in");
    client.get("open", &[].into()).await.expect("it may");
    client.get("written", &[].into()).await.expect("somebody has signed in for more");
    {
        let book = realm.book();
        let scopes: Vec<&str> = book.authorized.iter().map(|asked| asked["scope"].as_str()).collect();
        assert_eq!(scopes, ["read", "read write"]);
        let registered: Vec<_> = book.registered.iter().map(|client| client["scope"].clone()).collect();
        assert_eq!(registered, ["read", "read write"], "some servers hold a client to what it was registered for");
    }
    let background = connect(&realm, &vault, Some(Person::default())).await.expect("it is kept").without_sign_in();
    background.get("written", &[].into()).await.expect("it is kept");
}

// req: Q17
#[tokio::test]
async fn refused_scopes_are_not_requested_again() {
    let (realm, vault) = (Realm::start(Ways { stingy: true, ..Ways::default() }), Arc::default());
    let client = connect(&realm, &vault, Some(Person::default())).await.expect("somebody signs in");
    for _ in 0..2 {
        let refused = client.get("written", &[].into()).await;
        assert!(
            matches!(&refused, Err(ClientError::Forbidden { scope: Some(scope) }) if scope == "write"),
            "{refused:?}"
        );
    }
    assert_eq!(realm.book().authorized.len(), 2);
    // In the background no person is asked.
    let background = connect(&realm, &vault, Some(Person::default())).await.expect("it is kept").without_sign_in();
    assert!(matches!(background.get("written", &[].into()).await, Err(ClientError::Forbidden { .. })));
    assert_eq!(realm.book().authorized.len(), 2);
}

// req: Q15, S-42
#[tokio::test]
async fn response_of_another_issuer_is_rejected() {
    let (realm, vault) = (Realm::start(Ways { wrong_issuer: true, ..Ways::default() }), Arc::default());
    let refused = connect(&realm, &vault, Some(Person::default())).await;
    assert!(
        matches!(&refused, Err(ClientError::SignInFailed { reason: why, .. }) if why.contains("evil.example")),
        "{refused:?}"
    );
    assert!(vault.0.lock().expect("nobody panics with it").is_empty());
    assert!(realm.book().exchanged.is_empty());
}

/// A server may move to another authorization server, which must not get the credentials of the old one.
// req: Q16
#[tokio::test]
async fn credentials_are_sent_to_their_own_issuer_only() {
    let ways = Ways { secrets: true, ..Ways::default() };
    let (realm, vault) = (Realm::start(ways), Arc::<Memory>::default());
    connect(&realm, &vault, Some(Person::default())).await.expect("somebody signs in");
    for kept in vault.0.lock().expect("nobody panics with it").values_mut() {
        let ours = format!("\"issuer\":\"{}\"", realm.mcp().trim_end_matches("/mcp"));
        assert!(kept.contains(&ours), "{kept}");
        *kept = kept.replace(&ours, "\"issuer\":\"https://before.example\"");
    }
    connect(&realm, &vault, Some(Person::default())).await.expect("somebody signs in again");
    let book = realm.book();
    assert_eq!((book.registered.len(), book.authorized.len()), (2, 2));
    let grants: Vec<&str> = book.exchanged.iter().map(|asked| asked["grant_type"].as_str()).collect();
    assert_eq!(grants, ["authorization_code", "authorization_code"], "what was kept is not used");
    assert_eq!(book.authorized[1]["client_id"], "client-2");
}

#[tokio::test]
async fn denied_consent_ends_the_sign_in() {
    let (realm, vault) = (Realm::start(Ways { declines: true, ..Ways::default() }), Arc::default());
    let refused = connect(&realm, &vault, Some(Person::default())).await;
    assert!(
        matches!(&refused, Err(ClientError::SignInFailed { reason: why, .. }) if why.contains("Not today")),
        "{refused:?}"
    );
    assert!(realm.book().exchanged.is_empty());
}

// req: Q14, S-41
#[tokio::test]
async fn only_safe_pages_are_opened() {
    for page in ["http://example.com/authorize", "file:///etc/passwd", "javascript:alert(1)"] {
        let ways = Ways { page: Some(page.to_owned()), ..Ways::default() };
        let (realm, vault) = (Realm::start(ways), Arc::default());
        let person = Person::default();
        let seen = Arc::clone(&person.seen);
        let refused = connect(&realm, &vault, Some(person)).await;
        assert!(
            matches!(&refused, Err(ClientError::SignInFailed { reason: why, .. }) if why.contains("not https")),
            "{refused:?}"
        );
        assert!(seen.lock().expect("nobody panics with it").is_empty());
    }
}

// req: S-42
#[tokio::test]
async fn strangers_at_the_port_are_turned_away() {
    /// What another page or program could send to the port.
    fn forged(page: &str) -> String {
        let (_, query) = page.split_once('?').expect("it has one");
        let back = query.split('&').find_map(|pair| pair.strip_prefix("redirect_uri=")).expect("it has one");
        let back = back.replace("%3A", ":").replace("%2F", "/");
        format!("{back}?code=stolen&state=guessed")
    }
    let (realm, vault) = (Realm::start(Ways::default()), Arc::default());
    let person = Person { before: Some(forged), ..Person::default() };
    connect(&realm, &vault, Some(person)).await.expect("the right answer is still taken");
    assert_eq!(realm.book().exchanged[0]["code"], "0");
}

// req: Q18
#[tokio::test]
async fn a_token_of_ones_own_leaves_no_room_for_signing_in() {
    let (realm, vault) = (Realm::start(Ways::default()), Arc::<Memory>::default());
    let target = Endpoint::url(realm.mcp()).bearer("wrong").expect("it is this machine");
    let sign_in = SignIn::new(vault).browser(Arc::new(Person::default()));
    let refused = ConnectOptions::new().sign_in(sign_in).connect(&target).await;
    assert!(matches!(refused, Err(ClientError::AuthenticationRequired)));
    assert!(realm.book().authorized.is_empty());
    assert_eq!(Endpoint::url("http://example.com/mcp").sign_in_url(), None);
}

// req: S-43
#[test]
fn a_person_at_a_terminal_signs_in_and_out() {
    let realm = Realm::start(Ways::default());
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
    let files: Vec<_> = fs::read_dir(state.join("promptshelf/sign-in")).expect("it is there").flatten().collect();
    let kept = files.iter().find(|file| file.path().extension().is_some_and(|it| it == "json")).expect("it is kept");
    let mode = std::os::unix::fs::PermissionsExt::mode(&kept.metadata().expect("it is a file").permissions());
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

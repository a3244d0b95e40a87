//! The API for programs: prompts by channel and version, events, and Langfuse's read API.

mod events;
mod langfuse;
mod prompts;
mod sources;
mod usage;

use std::{collections::HashMap, sync::Arc};

use axum::{
    Router,
    body::Body,
    http::{HeaderMap, StatusCode},
};
use promptshelf_core::Access;
use promptshelf_server::{
    Library,
    api::Versions,
    channels::{FollowOptions, Follower, LibraryChecker, StoreHandle},
    http::{
        Channel, Options,
        auth::{SignIn, SignInOptions, StaticToken, digest_of},
        router_with_channels,
    },
};
use promptshelf_store::{Actor, Change, ChannelName, Publish, RevisionKind, Store, StoreUrl};
use serde_json::Value;
use tempfile::TempDir;
use tokio::task::JoinSet;

use crate::{TIMEOUT, get, send, text};

/// The callers: name, scopes, roles.
const CALLERS: [(&str, &[&str], &[&str]); 4] = [
    ("ada", &[], &["editor"]),
    ("bob", &[], &[]),
    ("rita", &["library:read"], &[]),
    ("root", &["library:admin", "library:read"], &[]),
];

/// A server of channels in a SQLite store, without sockets.
struct Site {
    router: Router,
    default: Library,
    store: Store,
    _following: JoinSet<()>,
    _folder: TempDir,
}

/// A response whose body was read.
#[derive(Debug)]
struct Answer {
    status: u16,
    headers: HeaderMap,
    body: String,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    #[track_caller]
    fn expect(self, status: u16) -> Answer {
        assert_eq!(self.status, status, "{self:?}");
        self
    }

    /// The detail of a problem with this status.
    #[track_caller]
    fn detail(self, status: u16) -> String {
        self.expect(status).json()["detail"].as_str().expect("a problem").to_owned()
    }
}

async fn answer(router: &Router, path: &str, headers: &[(&str, &str)]) -> Answer {
    let request = headers.iter().fold(get(path), |request, (name, value)| request.header(*name, *value));
    let (status, headers, body) = send(router, request, "").await;
    Answer { status: StatusCode::as_u16(&status), headers, body: text(body).await }
}

fn sign_in() -> SignIn {
    signed_in(&CALLERS)
}

/// The sign-in of callers with a name, scopes and roles, whose tokens are `psk_NAME`.
pub(crate) fn signed_in(callers: &[(&str, &[&str], &[&str])]) -> SignIn {
    let token = |(name, scopes, roles): &(&str, &[&str], &[&str])| StaticToken {
        name: (*name).to_owned(),
        sha256: digest_of(&format!("psk_{name}")),
        scopes: scopes.iter().map(|scope| (*scope).to_owned()).collect(),
        roles: roles.iter().map(|role| (*role).to_owned()).collect(),
        expires: None,
    };
    let mut options = SignInOptions::default();
    options.tokens = callers.iter().map(token).collect();
    SignIn::new(options)
}

/// Publishes files to a channel: path and content, an empty one for no file.
pub(crate) async fn publish(store: &Store, channel: &str, files: &[(&str, &str)]) -> u64 {
    let channel: ChannelName = channel.parse().expect("a name");
    let base = store.head(&channel).await.map_or(0, |head| head.revision);
    let present = match base {
        0 => Vec::new(),
        _ => store.files(&channel, None).await.expect("files").1,
    };
    let digest = |path: &str| present.iter().find(|file| file.path == path).map(|file| file.digest);
    let changes = files.iter().map(|(path, content)| Change {
        path: (*path).to_owned(),
        before: digest(path),
        after: (!content.is_empty()).then(|| content.as_bytes().into()),
    });
    let publish = Publish {
        channel,
        base,
        kind: RevisionKind::Publish,
        message: "A change".to_owned(),
        proposal: None,
        expected: None,
        emergency: None,
        changes: changes.collect(),
        dry_run: false,
    };
    let actor = Actor { name: "ada".to_owned(), may_publish: true, may_administer: true, review_roles: None };
    let published = store.publish(publish, &actor, Arc::new(LibraryChecker::new())).await.expect("it is valid");
    published.proposal.revision.expect("it is published")
}

impl Site {
    /// Serves channels, the first one by default. `signed_in` adds sign-in.
    async fn of(channels: &[(&str, &[(&str, &str)])], signed_in: bool, access: &[(&str, &str)]) -> Site {
        let folder = TempDir::new().expect("a folder");
        let url: StoreUrl = format!("sqlite:{}", folder.path().join("team.db").display()).parse().expect("a URL");
        let store = Store::create(&url).await.expect("a store");
        for (channel, files) in channels {
            publish(&store, channel, files).await;
        }
        let handle = StoreHandle::new(url);
        let mut following = JoinSet::new();
        let mut served = Vec::new();
        for (name, _) in channels {
            let options = FollowOptions::new(handle.clone(), name.parse().expect("a name"));
            let follower = Follower::start(options).await.expect("the channel exists");
            let builder = Library::builder().source(follower.source().clone());
            let library = builder.build().expect("a library");
            served.push(Channel {
                name: (*name).to_owned(),
                library: library.clone(),
                monitor: follower.monitor().clone(),
            });
            following.spawn(follower.run(library.loader().clone()));
        }
        let mut options = Options::default();
        options.sign_in = signed_in.then(sign_in);
        options.versions = Some(Versions::new(handle, Vec::new()));
        // The default channel can be one of several sources, here without a name.
        let role = |role: &str| Arc::new(Access { roles: vec![role.to_owned()], ..Access::default() });
        options.channel_access =
            access.iter().map(|(channel, needed)| ((*channel).to_owned(), role(needed))).collect::<HashMap<_, _>>();
        options.source_access = options.channel_access.remove("");
        let router = router_with_channels(&served[0], &served[1..], &options);
        Site { router, default: served[0].library.clone(), store, _following: following, _folder: folder }
    }

    async fn get(&self, path: &str) -> Answer {
        answer(&self.router, path, &[]).await
    }

    async fn get_as(&self, caller: &str, path: &str) -> Answer {
        answer(&self.router, path, &[("authorization", &format!("Bearer psk_{caller}"))]).await
    }

    /// Opens a stream.
    async fn stream(&self, path: &str, headers: &[(&str, &str)]) -> Body {
        let request = headers.iter().fold(get(path), |request, (name, value)| request.header(*name, *value));
        let (status, headers, body) = send(&self.router, request, "").await;
        assert_eq!(status, StatusCode::OK);
        assert_eq!(headers["content-type"], "text/event-stream");
        body
    }

    /// Waits until the default channel serves a revision.
    async fn serves(&self, revision: u64) {
        let mut reports = self.default.loader().reports();
        let waiting = reports.wait_for(|report| report.generation == revision);
        tokio::time::timeout(TIMEOUT, waiting).await.expect("it is served").expect("the loader lives");
    }
}

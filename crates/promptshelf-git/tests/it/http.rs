//! Smart HTTP with credentials: `git http-backend` behind a small server.

use std::{
    fs,
    path::PathBuf,
    process::Stdio,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{Request, State},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use base64::Engine as _;
use promptshelf_git::{Credentials, GitError, GitSource};
use promptshelf_testkit::{folder::executable, git::git};
use tokio::{io::AsyncWriteExt as _, process::Command};

use crate::sample::{Sample, loaded};

const SECRET: &str = "s3cret-t0ken";

#[derive(Clone)]
struct Backend {
    root: PathBuf,
    /// The values of `Authorization` that were received.
    seen: Arc<Mutex<Vec<String>>>,
}

/// Runs `git http-backend` as a CGI program.
async fn answer(State(backend): State<Backend>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body: Bytes = axum::body::to_bytes(body, 16 << 20).await.unwrap();
    let text = |headers: &HeaderMap, name| {
        headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
    };
    let authorization = text(&parts.headers, header::AUTHORIZATION);
    let expected = base64::engine::general_purpose::STANDARD.encode(format!("ada:{SECRET}"));
    backend.seen.lock().unwrap().push(authorization.clone());
    if authorization != format!("Basic {expected}") {
        let challenge = [(header::WWW_AUTHENTICATE, "Basic realm=\"git\"")];
        return (StatusCode::UNAUTHORIZED, challenge, "sign in").into_response();
    }
    let mut command = Command::new("git");
    command.arg("http-backend").env("GIT_PROJECT_ROOT", &backend.root).env("GIT_HTTP_EXPORT_ALL", "1");
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("REQUEST_METHOD", parts.method.as_str());
    command.env("PATH_INFO", parts.uri.path()).env("QUERY_STRING", parts.uri.query().unwrap_or_default());
    command
        .env("CONTENT_TYPE", text(&parts.headers, header::CONTENT_TYPE))
        .env("CONTENT_LENGTH", body.len().to_string());
    command.env("HTTP_CONTENT_ENCODING", text(&parts.headers, header::CONTENT_ENCODING));
    let protocol = parts.headers.get("git-protocol").and_then(|value| value.to_str().ok()).unwrap_or_default();
    command.env("GIT_PROTOCOL", protocol);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let writing = tokio::spawn(async move { stdin.write_all(&body).await.ok() });
    let output = child.wait_with_output().await.unwrap().stdout;
    writing.await.unwrap();
    let end = output.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap();
    let mut response = Response::builder();
    for line in std::str::from_utf8(&output[..end]).unwrap().lines() {
        let (name, value) = line.split_once(':').unwrap();
        match name {
            "Status" => response = response.status(value.trim().split(' ').next().unwrap().parse::<u16>().unwrap()),
            name => response = response.header(name, value.trim()),
        }
    }
    response.body(Body::from(output[end + 4..].to_vec())).unwrap()
}

// req: S-140
#[tokio::test(flavor = "multi_thread")]
async fn credentials_open_a_repository_and_are_never_shown() {
    let sample = Sample::new(&[("a.md", "One")]);
    git(&sample.bare(), &["config", "uploadpack.allowFilter", "true"], b"");
    let seen = Arc::new(Mutex::new(Vec::new()));
    let backend = Backend { root: sample.path().to_owned(), seen: Arc::clone(&seen) };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let app = Router::new().fallback(answer).with_state(backend);
    tokio::spawn(async move { axum::serve(listener, app).await });
    let file = sample.path().join("credentials");
    let source = |credentials: Credentials, cache: &str| {
        let mut options = sample.options("");
        options.address = format!("git+http://{address}/bare.git#main").parse().unwrap();
        options.credentials = credentials;
        options.cache = sample.path().join(cache);
        GitSource::new(options).unwrap()
    };
    let from_file = || Credentials::File(file.clone());

    fs::write(&file, "ada:wr0ng-s3cret\n").unwrap();
    let wrong = source(from_file(), "wrong").refresh().await.unwrap_err();
    let none = source(Credentials::None, "none").refresh().await.unwrap_err();
    for error in [&wrong, &none] {
        assert!(matches!(error, GitError::Remote { .. }), "{error}");
        let shown = format!("{error} {error:?}");
        assert!(shown.contains("the server requires valid credentials"), "{shown}");
        assert!(!shown.contains("wr0ng"), "{shown}");
    }
    fs::write(&file, format!("ada:{SECRET}\n")).unwrap();
    let good = source(from_file(), "good");
    good.refresh().await.unwrap();
    assert_eq!(loaded(&good).0, ["a"]);
    sample.commit(&[("b.md", "B")]);
    good.refresh().await.unwrap();
    assert_eq!(loaded(&good).0, ["a", "b"]);
    // A helper of the operator.
    let script = format!("#!/bin/sh\necho username=ada\necho password={SECRET}\n");
    let script = executable(sample.path().join("helper.sh"), script);
    source(Credentials::Helper(script.display().to_string()), "helper").refresh().await.unwrap();
    // Nothing on disk has the secret, besides the files of the operator.
    let mut search = std::process::Command::new("grep");
    search.args(["--recursive", "--files-with-matches", SECRET]).arg(sample.path());
    let found = search.output().unwrap();
    let found = String::from_utf8(found.stdout).unwrap();
    let mut found: Vec<&str> = found.lines().filter_map(|line| line.rsplit('/').next()).collect();
    found.sort_unstable();
    assert_eq!(found, ["credentials", "helper.sh"]);
    assert!(seen.lock().unwrap().iter().any(String::is_empty), "git signs in when it is asked to");
    // Credentials do not leave the machine without encryption.
    let mut options = sample.options("");
    options.address = "git+http://git.example/a.git".parse().unwrap();
    options.credentials = from_file();
    let error = GitSource::new(options).unwrap().refresh().await.unwrap_err();
    assert!(error.to_string().contains("without encryption"), "{error}");
}

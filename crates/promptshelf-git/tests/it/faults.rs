//! Repositories that are away or empty, commits with errors, limits, and servers that hang.

use std::{fs, time::Duration};

use promptshelf_git::{GitError, GitSource, OnErrors};
use promptshelf_source::{Files, Loader, Source};
use promptshelf_testkit::git::Repository;
use tokio::io::AsyncReadExt as _;

use crate::sample::{Sample, files, loaded, served};

const BROKEN: &str = "---\narguments: 7\n---\nText";

#[tokio::test]
async fn unknown_references_and_folders_are_named() {
    let sample = Sample(Repository::empty("sha1"));
    let error = |fragment: &str| {
        let source = sample.source(fragment);
        async move { source.refresh().await.unwrap_err().to_string() }
    };
    assert_eq!(error("#main").await, "the repository has no commit: push one first");
    let commit = sample.commit(&[("a.md", "One"), ("team/b.md", "B")]);
    assert_eq!(error("#mian").await, "the repository has no branch or tag \"mian\"; it has main");
    assert!(error(&format!("#{}", &commit[..12])).await.contains("a commit needs all of its 40 digits"));
    let none = "1234567890123456789012345678901234567890";
    assert!(error(&format!("#{none}")).await.contains("the server has no such commit"));
    assert!(error("#main:temm").await.starts_with("the repository has no folder \"temm\" at commit"));
    assert!(error("#main:a.md").await.contains("a file is at this path"));
    fs::remove_dir_all(sample.bare()).unwrap();
    assert!(error("#main").await.contains("the repository does not exist"));
}

#[tokio::test]
async fn last_good_commit_survives_a_restart_without_the_repository() {
    let sample = Sample::new(&[("a.md", "One")]);
    let first = sample.source("#main");
    first.refresh().await.unwrap();
    fs::rename(sample.bare(), sample.path().join("gone.git")).unwrap();
    let second = sample.source("#main");
    for source in [&first, &second] {
        assert!(matches!(source.refresh().await, Err(GitError::Remote { .. })));
        let state = source.state();
        assert!(state.problem.is_some() && state.behind_since.is_some());
        assert_eq!(loaded(source).0, ["a"]);
    }
    fs::rename(sample.path().join("gone.git"), sample.bare()).unwrap();
    second.refresh().await.unwrap();
    assert_eq!((second.state().problem, second.state().behind_since), (None, None));
    // A damaged copy is made again.
    let cache = fs::read_dir(sample.path().join("cache")).unwrap().next().unwrap().unwrap().path();
    fs::remove_dir_all(cache.join("repository.git/objects")).unwrap();
    fs::write(cache.join("record.json"), "{").unwrap();
    fs::write(cache.join("repository.git/config"), "[core]\n").unwrap();
    let third = sample.source("#main");
    third.refresh().await.unwrap();
    assert_eq!(served(&third), served(&first));
}

// req: S-384
#[tokio::test]
async fn commit_has_the_prompts_and_findings_of_its_folder() {
    let text = "---\nname: fix\ndescription: Fixes: all\n---\nFix $0 and {{args}}\n";
    let files: Vec<(String, String)> = [
        // The layouts that `export --plugin` writes, and files of other programs.
        ".claude-plugin/marketplace.json",
        "plugins/a/.claude-plugin/plugin.json",
        "plugins/a/commands/fix-a.md",
        "plugins/a/skills/pdf-a/SKILL.md",
        "gemini/gemini-extension.json",
        "gemini/commands/git/fix-b.toml",
        ".agents/plugins/marketplace.json",
        "plugins/c/.codex-plugin/plugin.json",
        "plugins/c/skills/pdf-c/SKILL.md",
        ".cursor-plugin/marketplace.json",
        "plugins/d/.cursor-plugin/plugin.json",
        "plugins/d/commands/fix-d.md",
        ".claude/commands/fix-e.md",
        ".claude/commands/long.markdown",
        ".claude/skills/f/skill.MD",
        ".claude/settings.json",
        ".cursor/rules/style.mdc",
        "AGENTS.md",
        "own.md",
    ]
    .into_iter()
    .map(|path| {
        let name = path.rsplit('/').next().unwrap_or(path).split('.').next().unwrap_or_default();
        let text = match path.rsplit('.').next() {
            Some("json") => "{\"name\":\"x\"}".to_owned(),
            Some("toml") => "description = \"d\"\nprompt = \"Fix {{args}}\"\n".to_owned(),
            _ if path == "own.md" => "---\ndescription: d\n---\nText\n".to_owned(),
            _ => text.replace("name: fix", &format!("name: {name}")),
        };
        (path.to_owned(), text)
    })
    .collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let sample = Sample(Repository::empty("sha1"));
    fs::create_dir_all(sample.work().join(".claude/commands")).unwrap();
    for (link, target) in [("loop", "."), ("fix-e2.md", "fix-e.md"), ("none.md", "nothing.md")] {
        std::os::unix::fs::symlink(target, sample.work().join(".claude/commands").join(link)).unwrap();
    }
    sample.commit(&files);
    let source = sample.source("#main");
    source.refresh().await.unwrap();
    let read = |source: Box<dyn Source>| {
        let loader = Loader::open(vec![source]).unwrap();
        let catalog = loader.handle().current();
        let prompts = catalog.prompts().iter().map(|prompt| {
            let arguments: Vec<&str> = prompt.arguments().iter().map(promptshelf_core::Argument::name).collect();
            format!("{} {arguments:?}", prompt.name())
        });
        let mut findings: Vec<String> = loader.diagnostics().iter().map(ToString::to_string).collect();
        findings.sort();
        (prompts.collect::<Vec<_>>(), findings)
    };
    let folder = read(Box::new(Files::folder(sample.work())));
    let commit = read(Box::new(source.source().clone()));
    assert_eq!(commit, folder);
    let (prompts, findings) = folder;
    assert_eq!(
        prompts,
        [
            "fix-a [\"arg1\"]",
            "fix-d []",
            "fix-e [\"arg1\"]",
            "git-fix-b [\"args\"]",
            "own []",
            "pdf-a [\"arg1\"]",
            "pdf-c []"
        ]
    );
    for part in
        ["`.cursor/rules/style.mdc`", "`.claude/commands/long.markdown`", "`.claude/skills/f/skill.MD`", "cycle"]
    {
        assert!(findings.iter().any(|found| found.contains(part)), "{part}: {findings:#?}");
    }
}

// req: S-144
#[tokio::test]
async fn commit_with_errors_keeps_the_last_good_one() {
    let sample = Sample::new(&[("a.md", "One"), ("b.md", BROKEN)]);
    let source = sample.source("#main");
    assert!(source.refresh().await.is_ok(), "nothing is served yet: invalid prompts are left out");
    assert_eq!(loaded(&source).0, ["a"]);
    let good = sample.commit(&[("b.md", "B")]);
    source.refresh().await.unwrap();
    assert_eq!(loaded(&source).0, ["a", "b"]);
    sample.commit(&[("a.md", BROKEN), ("b.md", "B2")]);
    for _ in 0..2 {
        let error = source.refresh().await.unwrap_err();
        assert!(error.to_string().contains("it brings new errors into the library: a.md:2:"), "{error}");
    }
    assert_eq!((served(&source), loaded(&source).0), (good.clone(), vec!["a".to_owned(), "b".to_owned()]));
    // After a restart too.
    let again = sample.source("#main");
    assert!(matches!(again.refresh().await, Err(GitError::Refused { .. })));
    assert_eq!(served(&again), good);
    let mut options = sample.options("#main");
    options.on_errors = OnErrors::LeaveOut;
    let lenient = GitSource::new(options).unwrap();
    lenient.refresh().await.unwrap();
    assert_eq!(loaded(&lenient).0, ["b"]);
    sample.commit(&[("promptshelf.toml", "nmae = \"x\"\n")]);
    assert!(matches!(lenient.refresh().await, Err(GitError::Load { .. })));
    assert_eq!(loaded(&lenient).0, ["b"]);
}

// req: S-260
#[tokio::test]
async fn commit_is_refused_for_what_it_makes_worse_only() {
    let sample = Sample::new(&[("a.md", "One"), ("b.md", BROKEN), ("_c.md", "{% if %}")]);
    let mut source = sample.source("#main");
    source.refresh().await.unwrap();
    // Whatever the commit does elsewhere, and also after a restart.
    for (number, files) in [
        [("a.md", "Two")].as_slice(),
        &[("a.md", "Three"), ("b.md", "---\ndescription: Note: colon\n---\nT"), ("new.md", "New")],
        &[("moved/a.md", "Moved")],
    ]
    .into_iter()
    .enumerate()
    {
        let commit = sample.commit(files);
        if number == 1 {
            source = sample.source("#main");
        }
        source.refresh().await.unwrap();
        assert_eq!(served(&source), commit);
    }
    let good = served(&source);
    // A new mistake is one, in a new file, in a served one, and in a shared part.
    for (path, text, place) in [
        ("worse.md", BROKEN, "worse.md:2:"),
        ("a.md", "{{ nobody }}", "a.md:1:"),
        ("promptshelf.toml", "[[resources]]\nuri = \"x://y\"\nfile = \"none.md\"\n", "promptshelf.toml:"),
    ] {
        sample.commit(&[(path, text)]);
        for source in [source.clone(), sample.source("#main")] {
            let error = source.refresh().await.unwrap_err().to_string();
            assert!(error.contains(place) && !error.contains("b.md"), "{error}");
            assert_eq!(served(&source), good);
        }
        sample.git(&["revert", "--no-edit", "HEAD"]);
        sample.push("HEAD:refs/heads/main");
    }
    source.refresh().await.unwrap();
    assert_eq!(loaded(&source).0, ["a", "moved-a", "new"]);
}

// req: S-143
#[tokio::test]
async fn limits_of_files_bytes_and_transfers_are_kept() {
    let sample = Sample::new(&[("a.md", "One"), ("b.md", "B"), ("large.txt", &"x".repeat(5_000))]);
    let with = async |change: fn(&mut promptshelf_git::GitLimits)| {
        let mut options = sample.options("#main");
        options.cache = sample.path().join(format!("cache-{:p}", change as *const ()));
        change(&mut options.limits);
        let source = GitSource::new(options).unwrap();
        (source.refresh().await.err(), source)
    };
    let (error, source) = with(|limits| limits.file_bytes = 4_999).await;
    assert!(error.is_none(), "{error:?}");
    let fault = "! it has 5000 bytes; the limit of the server is 4999";
    assert_eq!(files(&source).last().unwrap().1, fault);
    for change in
        [(|limits| limits.files = 2) as fn(&mut promptshelf_git::GitLimits), |limits| limits.total_bytes = 5_000]
    {
        let (error, _) = with(change).await;
        assert!(matches!(error, Some(GitError::TooLarge { .. })), "{error:?}");
    }
}

// req: S-143
#[tokio::test]
async fn server_that_hangs_or_sends_too_much_is_cut_off() {
    let sample = Sample::new(&[("a.md", "One")]);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("git+http://{}/a.git#main", listener.local_addr().unwrap());
    let mut options = sample.options("");
    options.address = address.parse().unwrap();
    // Long enough for git to start on a busy machine: without a connection the test would not end.
    options.timeout = Duration::from_secs(5);
    let source = GitSource::new(options).unwrap();
    let (result, mut connection) = tokio::join!(source.refresh(), async { listener.accept().await.unwrap().0 });
    assert!(matches!(result, Err(GitError::TimedOut { .. })), "{result:?}");
    // The helper that git started for HTTP has ended too.
    let mut request = Vec::new();
    let ended = tokio::time::timeout(Duration::from_secs(60), connection.read_to_end(&mut request));
    assert!(ended.await.is_ok() && request.starts_with(b"GET /a.git/info/refs"));
    // Three megabytes that cannot be compressed.
    let mut state = 1_u64;
    let next = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        state.to_be_bytes()[0]
    };
    fs::write(sample.work().join("large.bin"), (0..3_000_000).map(next).collect::<Vec<u8>>()).unwrap();
    sample.commit(&[]);
    let mut options = sample.options("#main");
    options.limits.transfer_bytes = 1_000_000;
    let source = GitSource::new(options).unwrap();
    let mut packs = Vec::new();
    for _ in 0..2 {
        let error = source.poll().await.unwrap_err();
        assert!(error.to_string().contains("more than 1000000 bytes"), "{error}");
        let mut folders = fs::read_dir(sample.path().join("cache")).unwrap().map(|entry| entry.unwrap().path());
        let folder =
            folders.find_map(|path| Some(path.join("repository.git/objects/pack")).filter(|path| path.exists()));
        let folder = folder.unwrap();
        let names = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        assert!(names.into_iter().all(|name| !name.starts_with("tmp_")), "an incomplete pack stays on disk");
        packs.push(folder.metadata().unwrap().modified().unwrap());
    }
    assert_eq!(packs[0], packs[1], "the second poll fetches nothing");
}

//! The command `export`: plugins with skills, bundles for desktop clients, and entries of registries.

use std::{fs, io::Read, path::Path};

use serde_json::{Value, json};

use crate::program::{Folder, library, promptshelf};

const MANIFEST: &str = "[server]\nname = \"Team prompts\"\ntitle = \"Team\"\nversion = \"1.2.0\"\ndescription = \"Prompts \
                        of the team\"\nwebsite-url = \"https://example.com/\"\n";
const IMAGE: &[u8] = b"\x89PNG\r\n\x1a\n\0\xff";

fn team() -> Folder {
    let folder = library(&[
        ("promptshelf.toml", MANIFEST),
        ("review.md", "---\ndescription: Reviews\narguments: [{name: code}]\n---\nReview {{ code }}\n"),
        ("refunds/SKILL.md", "---\nname: refunds\ndescription: Handles a refund\n---\nUse `logo.png`.\n"),
    ]);
    fs::write(folder.path().join("prompts/refunds/logo.png"), IMAGE).expect("a file");
    fs::write(folder.path().join("program"), b"\x7fELF and more").expect("a file");
    folder
}

/// Runs an export, and returns its exit code and stderr.
fn export(folder: &Folder, arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = promptshelf();
    command.arg("export").args(arguments).args(["-l", "prompts"]).current_dir(folder.path());
    let done = command.output().expect("a process");
    (done.status.code(), String::from_utf8_lossy(&done.stderr).into_owned())
}

/// Validates a document against the official schema in a fixture.
#[track_caller]
fn assert_valid(schema: &str, document: &Value) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/schemas");
    let (mut schemas, mut compiler) = (boon::Schemas::new(), boon::Compiler::new());
    compiler.enable_format_assertions();
    compiler.add_resource(schema, json_of(&folder.join(schema))).expect("a schema");
    let index = compiler.compile(schema, &mut schemas).expect("a valid schema");
    if let Err(error) = schemas.validate(document, index) {
        panic!("{error:#}");
    }
    // A schema that accepts everything would prove nothing.
    let mut broken = document.clone();
    broken["version"] = json!(1);
    assert!(schemas.validate(&broken, index).is_err());
}

fn json_of(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).expect("a file")).expect("JSON")
}

#[test]
fn plugins_of_codex_and_cursor_have_skills_with_their_files() {
    let folder = team();
    assert_eq!(export(&folder, &["--plugin", "codex", "--to", "codex"]).0, Some(0));
    let root = folder.path().join("codex");
    let market = json_of(&root.join(".agents/plugins/marketplace.json"));
    assert_eq!(market["plugins"][0]["source"], json!({ "source": "local", "path": "./plugins/team-prompts" }));
    let plugin = root.join("plugins/team-prompts");
    let manifest = json_of(&plugin.join(".codex-plugin/plugin.json"));
    assert_eq!((&manifest["version"], &manifest["skills"]), (&json!("1.2.0"), &json!("./skills/")));
    assert!(fs::read_to_string(plugin.join("skills/review/SKILL.md")).is_ok_and(|text| text.contains("Review [code]")));
    assert_eq!(fs::read(plugin.join("skills/refunds/logo.png")).expect("a file"), IMAGE);

    assert_eq!(export(&folder, &["--plugin", "cursor", "--to", "cursor"]).0, Some(0));
    let root = folder.path().join("cursor");
    let market = json_of(&root.join(".cursor-plugin/marketplace.json"));
    let plugin = root.join(market["plugins"][0]["source"].as_str().expect("a path"));
    assert_eq!(json_of(&plugin.join(".cursor-plugin/plugin.json"))["name"], "team-prompts");
    assert!(plugin.join("commands/review.md").exists() && !plugin.join("commands/refunds.md").exists());
    assert!(plugin.join("skills/refunds/SKILL.md").exists());
}

// req: S-216
#[test]
fn bundle_has_the_manifest_the_program_and_the_library() {
    let folder = team();
    folder.write("prompts/server.toml", "secret = true\n");
    let bundle = |name: &str| export(&folder, &["--mcpb", name, "--program", "program"]);
    assert_eq!(bundle("a.mcpb").0, Some(0));
    let bytes = fs::read(folder.path().join("a.mcpb")).expect("a file");
    let mut archive = zip::ZipArchive::new(std::io::Cursor::new(&bytes)).expect("an archive");
    let names: Vec<String> = archive.file_names().map(|name| name.expect("a name").into_owned()).collect();
    for name in ["manifest.json", "server/promptshelf", "library/review.md", "library/refunds/logo.png"] {
        assert!(names.iter().any(|found| found == name), "{names:?}");
    }
    assert!(!names.iter().any(|name| name.contains("server.toml")), "{names:?}");
    assert_eq!(
        archive.by_name("server/promptshelf").expect("a file").unix_mode().map(|mode| mode & 0o777),
        Some(0o755)
    );
    let mut text = String::new();
    archive.by_name("manifest.json").expect("a file").read_to_string(&mut text).expect("text");
    let manifest: Value = serde_json::from_str(&text).expect("JSON");
    assert_valid("mcpb-manifest-v0.3.json", &manifest);
    assert_eq!((&manifest["name"], &manifest["version"]), (&json!("team-prompts"), &json!("1.2.0")));
    assert_eq!(manifest["server"]["mcp_config"]["command"], "${__dirname}/server/promptshelf");
    assert_eq!(manifest["server"]["mcp_config"]["args"], json!(["serve", "--stdio", "${__dirname}/library"]));
    assert_eq!(
        (&manifest["prompts_generated"], &manifest["compatibility"]["platforms"]),
        (&json!(true), &json!(["linux"]))
    );

    let package = &manifest["_meta"]["dev.promptshelf"]["packages"]["npm"];
    assert_eq!(package, &json!(format!("promptshelf@{}", env!("CARGO_PKG_VERSION"))));

    assert_eq!(bundle("b.mcpb").0, Some(0));
    assert_eq!(fs::read(folder.path().join("b.mcpb")).expect("a file"), bytes, "the same input gives the same bytes");
    let (code, message) = bundle("a.mcpb");
    assert!(code == Some(1) && message.contains("already exists"), "{message}");
    fs::write(folder.path().join("program"), "#!/bin/sh\n").expect("a file");
    assert!(bundle("c.mcpb").1.contains("not a program for Linux, macOS or Windows"));
    let left: Vec<_> =
        fs::read_dir(folder.path()).expect("a folder").flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(left.len(), 4, "{left:?}");
}

#[test]
fn entry_of_a_registry_names_servers_and_bundles() {
    let folder = team();
    assert_eq!(export(&folder, &["--mcpb", "team.mcpb", "--program", "program"]).0, Some(0));
    let name = ["--server-name", "io.github.ada/team-prompts"];
    let run = |file: &str, more: &[&str]| export(&folder, &[&["--server-json", file][..], &name, more].concat());
    let url = "https://example.com/releases/team.mcpb";
    let all = ["--remote", "https://example.com/mcp", "--bundle", "team.mcpb", url];
    assert_eq!(run("server.json", &all), (Some(0), String::new()));
    let entry = json_of(&folder.path().join("server.json"));
    let digest = entry["packages"][0]["fileSha256"].as_str().expect("a digest");
    assert!(digest.len() == 64 && digest.bytes().all(|c| c.is_ascii_hexdigit()), "{digest}");
    let expected = json!({
        "$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
        "name": "io.github.ada/team-prompts",
        "title": "Team",
        "description": "Prompts of the team",
        "version": "1.2.0",
        "websiteUrl": "https://example.com/",
        "packages": [{
            "registryType": "mcpb",
            "identifier": url,
            "version": "1.2.0",
            "fileSha256": digest,
            "transport": { "type": "stdio" },
        }],
        "remotes": [{ "type": "streamable-http", "url": "https://example.com/mcp" }],
    });
    assert_eq!(entry, expected);
    assert_valid("server-2025-12-11.json", &entry);
    let (code, message) = run("server.json", &all);
    assert!(code == Some(1) && message.contains("already exists"), "{message}");
    for (more, code, words) in [
        (&["--remote", "http://example.com/mcp"][..], 2, "public URL"),
        (&["--remote", "https://ada:secret@example.com/mcp"], 2, "name or password"),
        (&["--bundle", "program", url], 1, "not a zip archive"),
        (&["--bundle", "team.mcpb", "https://example.com/team.zip"], 2, "`mcp`"),
    ] {
        let (found, message) = run("other.json", more);
        assert!(found == Some(code) && message.contains(words) && !message.contains("secret"), "{more:?}: {message}");
        assert!(!folder.path().join("other.json").exists(), "{more:?}");
    }
    // Without a server the entry names the packages of this program, which serve the folder.
    assert_eq!(run("packages.json", &[]), (Some(0), String::new()));
    let entry = json_of(&folder.path().join("packages.json"));
    assert_valid("server-2025-12-11.json", &entry);
    let packages = entry["packages"].as_array().expect("packages");
    let named: Vec<_> = packages.iter().map(|it| (it["registryType"].as_str(), it["identifier"].as_str())).collect();
    let image = format!("ghcr.io/promptshelf/promptshelf:{}", env!("CARGO_PKG_VERSION"));
    let expected = [("npm", "promptshelf"), ("pypi", "promptshelf"), ("oci", &image)];
    assert_eq!(named, expected.map(|(registry, name)| (Some(registry), Some(name))));
    folder.write("prompts/promptshelf.toml", "");
    let (_, message) = run("other.json", &all);
    assert!(message.contains("set `version`"), "{message}");
}

//! Skills of several sources in one list.

use serde_json::{Value, json};

use super::{Workplace, eventually};

const SKILL: &str = "---\nname: pdf\ndescription: Reads PDF files\n---\nUse `extra.md`.\n";

// req: S-228
#[test]
fn skills_of_sources_are_joined_under_the_rules_of_each() {
    let source = |name: &str, more: &str| {
        format!("[[source]]\nname = \"{name}\"\nkind = \"folder\"\npath = \"{name}\"\n{more}\n")
    };
    let settings = source("a", "")
        + &source("b", "prefix = \"\"\n")
        + &source("closed", "access = { roles = [\"staff\"] }\n")
        + &source("ruled", "");
    let mut files = vec![];
    let folders = ["a", "b", "closed", "ruled"];
    let paths: Vec<[String; 2]> =
        folders.iter().map(|folder| ["SKILL", "extra"].map(|file| format!("{folder}/pdf/{file}.md"))).collect();
    for [skill, extra] in &paths {
        files.extend([(skill.as_str(), SKILL), (extra.as_str(), "Pages")]);
    }
    // The library's own rule has the URI that it has without other sources.
    let rule = "[[access]]\nresources = [\"skill://pdf/extra.md\"]\nroles = [\"staff\"]\n";
    files.push(("ruled/promptshelf.toml", rule));
    let place = Workplace::new(&files, &settings);
    let server = place.serve();
    let ask = |method: &str, params: Value| server.request(method, &params).1;
    let listed = || ask("skills/list", json!({}))["result"]["skills"].clone();
    let skills = eventually(listed, |skills| skills.as_array().is_some_and(|skills| skills.len() > 1));
    let uris: Vec<_> = skills.as_array().into_iter().flatten().map(|skill| skill["uri"].clone()).collect();
    assert_eq!(uris, ["skill://a/pdf/SKILL.md", "skill://b/pdf/SKILL.md"]);
    assert_eq!(skills[0]["frontmatter"]["name"], "pdf", "the front matter is served verbatim");
    assert_eq!(skills[0]["resources"][1]["uri"], "skill://a/pdf/extra.md");

    let skill = ask("skills/get", json!({ "uri": "skill://b/pdf/SKILL.md" }));
    assert_eq!(skill["result"]["skill"], skills[1], "{skill}");
    let folder = ask("resources/directory/read", json!({ "uri": "skill://b/pdf" }));
    assert_eq!(folder["result"]["resources"].as_array().map(Vec::len), Some(2), "{folder}");
    let extra = ask("resources/read", json!({ "uri": "skill://b/pdf/extra.md" }));
    assert_eq!(extra["result"]["contents"][0]["text"], "Pages", "{extra}");
    for hidden in ["skill://closed/pdf/SKILL.md", "skill://ruled/pdf/SKILL.md", "skill://pdf/SKILL.md", "skill://a/pdf"]
    {
        assert!(ask("skills/get", json!({ "uri": hidden }))["error"].is_object(), "{hidden}");
        let read = ask("resources/read", json!({ "uri": hidden }));
        assert!(read["error"].is_object(), "{hidden}: {read}");
    }
    for hidden in ["skill://ruled/pdf/extra.md", "skill://closed/pdf/extra.md", "skill://a/b/pdf/extra.md"] {
        let read = ask("resources/read", json!({ "uri": hidden }));
        assert!(read["error"].is_object(), "{hidden}: {read}");
    }
}

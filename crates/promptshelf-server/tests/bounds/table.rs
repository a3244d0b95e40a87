//! A table of crafted requests for every operation, with a bound for each 100 kB of request.

use std::{collections::HashMap, fmt, time::Duration};

use axum::http::Method;
use serde_json::{Value, json};

use super::{Cost, HELLO, SLOWER, Site, cost};

/// The processor time and the memory for each 100 kB of a request, and what a request of a few bytes may take in any case.
const PROCESSOR: Duration = Duration::from_millis(500);
const MEMORY: usize = 50 << 20;
const SMALL: (Duration, usize) = (Duration::from_millis(25), 4 << 20);

const MODERN: &str = "2026-07-28";

/// The size of crafted bodies.
const SIZE: usize = 100_000;

/// Slow builds send a part of the hostile files to each operation, another one each time.
const PART: usize = if cfg!(debug_assertions) { 10 } else { 1 };

/// A request of an operation: an ordinary one, or one that was made to cost much.
struct Crafted {
    headers: Vec<(&'static str, &'static str)>,
    path: String,
    body: String,
}

impl fmt::Debug for Crafted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = &self.body[..self.body.floor_char_boundary(120)];
        write!(f, "{} ({} bytes): {shown}", &self.path[..self.path.floor_char_boundary(120)], self.body.len())
    }
}

/// The shapes of requests.
#[derive(Clone, Copy)]
enum Shape {
    /// No body: the query is crafted.
    Query,
    /// A body whose members are read and stored only.
    Body(fn() -> Value),
    /// A body with files, which are checked or analysed.
    Files(fn(Vec<Value>) -> Value),
}

fn sides(changes: Vec<Value>) -> Value {
    json!({ "after": { "changes": { "channel": "production", "changes": changes } } })
}

fn rendering(changes: Vec<Value>) -> Value {
    json!({ "after": { "changes": { "channel": "production", "changes": changes } }, "prompt": "p", "arguments": { "a": "ab".repeat(10_000) } })
}

fn unsaved(changes: Vec<Value>) -> Vec<Value> {
    let change = |change: Value| json!({ "path": change["path"], "content": change["content"] });
    changes.into_iter().map(change).collect()
}

fn analysis(changes: Vec<Value>) -> Value {
    json!({ "path": "p.md", "changes": unsaved(changes), "arguments": { "a": "ab".repeat(10_000) }, "tests": true,
        "complete": { "line": 3, "character": 1 }, "hover": { "line": 3, "character": 1 } })
}

/// Returns the shape of an operation of the API; `None` fails the test, so that a new operation gets one.
fn shape(operation: &str) -> Option<Shape> {
    use Shape::{Body, Files, Query};
    Some(match operation.split_once(" /api/v1")? {
        ("GET" | "DELETE", _) => Query,
        ("POST", "/check") => Files(|changes| json!({ "channel": "production", "changes": changes })),
        ("POST", "/compare") => Files(sides),
        ("POST", "/compare/renderings") => Files(rendering),
        ("POST", "/channels/{channel}/analysis" | "/folder/analysis") => Files(analysis),
        ("POST", "/channels/{channel}/rename") => {
            Files(|changes| json!({ "from": "hello.md", "to": "bye.md", "changes": unsaved(changes) }))
        }
        ("POST", "/channels/{channel}/proposals") | ("PUT", "/proposals/{id}") => {
            Files(|changes| json!({ "base": 1, "message": "x", "dryRun": true, "changes": changes }))
        }
        ("POST", "/prompts/{name}/render") => Body(|| {
            let arguments: HashMap<String, String> =
                (0..6_000).map(|number| (format!("a{number}"), "x".to_owned())).collect();
            json!({ "arguments": arguments })
        }),
        ("PUT", "/folder/files/{path}") => Body(|| json!({ "content": { "text": HELLO.repeat(500) } })),
        ("POST", "/tokens") => {
            Body(|| json!({ "name": "t", "scopes": vec!["library:read"; 5_000], "roles": vec!["r"; 5_000] }))
        }
        ("PUT", "/channels/{channel}/policy") => Body(|| {
            json!({ "approvals": 1, "fourEyes": true, "checks": "errors", "tests": false, "evaluations": vec!["e"; 10_000],
                "noRegression": false, "roles": { "propose": vec!["r"; 10_000], "review": [], "publish": [], "administer": [] } })
        }),
        ("POST", "/channels/{channel}/contents") => Body(|| json!({ "paths": vec!["hello.md"; 5_000] })),
        ("POST", "/channels/{channel}/uploads") => Body(|| json!({ "contents": vec![json!({ "text": "x" }); 7_000] })),
        ("PUT", "/channels/{channel}/uploads/{digest}") => Body(|| json!("x".repeat(SIZE))),
        ("POST", "/channels/{channel}/evaluations") => {
            Body(|| json!({ "evaluation": "e", "scores": {}, "cases": vec![json!({}); 20_000] }))
        }
        ("POST", "/channels/{channel}/promote") => {
            Body(|| json!({ "from": "production", "prompts": vec!["hello"; 9_000], "message": "x", "dryRun": true }))
        }
        ("POST", "/channels/{channel}/rollback") => {
            Body(|| json!({ "to": 1, "message": "x".repeat(SIZE), "dryRun": true }))
        }
        ("POST", "/proposals/{id}/comments") => Body(|| json!({ "digest": "0".repeat(64), "text": "x".repeat(SIZE) })),
        ("POST", "/proposals/{id}/publish" | "/proposals/{id}/reviews")
        | ("POST", "/channels/{channel}/rollouts" | "/channels/{channel}/rollouts/finish")
        | ("PATCH", "/channels/{channel}/rollouts")
        | ("POST", "/webhooks/dead-letters/{id}/redelivery" | "/sources/{source}/refresh" | "/folder/rename") => {
            Body(|| json!({ "message": "x".repeat(SIZE) }))
        }
        _ => return None,
    })
}

fn file(path: &str, text: &str) -> Value {
    json!({ "path": path, "before": null, "content": { "text": text } })
}

fn prompt(front: &str, body: &str) -> Vec<Value> {
    vec![file("p.md", &format!("---\ndescription: Crafted\n{front}---\n{body}\n"))]
}

fn lines(line: impl Fn(usize) -> String, count: usize) -> String {
    (0..count).map(line).collect()
}

/// Files that were made to cost much when they are read, checked, tested or rendered.
fn hostile_files() -> Vec<Vec<Value>> {
    let argument = |more: &str| format!("arguments:\n  - {{ name: a{more} }}\n");
    let many = |line: fn(usize) -> String, count: usize| format!("arguments:\n{}", lines(line, count));
    vec![
        prompt(&argument(", pattern: \"(?:a{1,1000}){1,100}b\""), "{{ a }}"),
        prompt(&argument(", pattern: \"[ab]*a[ab]{3000}c\""), "{{ a }}"),
        prompt(&many(|n| format!("  - {{ name: a{n}, pattern: '\\w{{50}}{n}' }}\n"), 2_500), "x"),
        prompt(
            &many(|n| format!("  - {{ name: a{n}, ask: true, when: 'a{} * 9999' }}\n", n.max(1) - 1), 2_000),
            "{{ a0 }}",
        ),
        prompt(
            &many(|n| format!("  - {{ name: argument{n:05} }}\n"), 1_500),
            &lines(|n| format!("{{{{ unknown{n:05} }}}} "), 2_500),
        ),
        prompt(
            &format!(
                "{}    examples: [{}]\n",
                "arguments:\n  - name: a\n    pattern: \"[ab]*a[ab]{3000}c\"\n",
                "abababababab, ".repeat(5_000)
            ),
            "{{ a }}",
        ),
        prompt(&argument(""), "{% for i in range(1000) %}{% for j in range(1000) %}{{ a }}{% endfor %}{% endfor %}"),
        prompt(&argument(""), &"{% if a %}".repeat(5_000)),
        prompt(&argument(""), &format!("{{{{ {}a{} }}}}", "(".repeat(40_000), ")".repeat(40_000))),
        prompt(&argument(""), &"{{ a|replace('a', a) }}".repeat(4_000)),
        prompt(
            &format!("{}tests:\n{}", argument(""), "  - { arguments: { a: x }, contains: [y] }\n".repeat(2_000)),
            "{{ a }}",
        ),
        prompt("", &lines(|n| format!("{{% include \"_missing{n}.md\" %}}"), 2_500)),
        prompt("", &lines(|n| format!("{{{{ prompt(\"missing{n}\") }}}}"), 3_000)),
        prompt(&lines(|n| format!("unknown{n}: x\n"), 6_000), "x"),
        prompt(&format!("tags: {}{}\n", "[".repeat(20_000), "]".repeat(20_000)), "x"),
        prompt(
            &format!("a: &a [x]\n{}", lines(|n| format!("b{n}: &b{n} [*a, *a, *a, *a, *a, *a, *a, *a]\n"), 1_500)),
            "x",
        ),
        vec![file(
            "promptshelf.toml",
            &lines(|n| format!("[[access]]\nprompts = [\"*{n}*a*b*c*\"]\nroles = [\"x\"]\n"), 1_800),
        )],
        vec![file(
            "promptshelf.toml",
            &lines(|n| format!("[[resources]]\nuri = \"x://{{a}}/{n}\"\nfile = \"missing{n}\"\n"), 1_500),
        )],
        (0..1_200).map(|n| file(&format!("p{n}.md"), "---\ndescription: x\n---\nx")).collect(),
        lines(|n| format!("{}\n", n % 10), 1).chars().map(|_| file(&"d/".repeat(200), "x")).collect(),
        (0..60)
            .map(|n| {
                file(&format!("c{n}.md"), &format!("{{{{ prompt(\"c{}\") }}}}{{{{ prompt(\"c{}\") }}}}", n + 1, n + 1))
            })
            .collect(),
    ]
}

/// Other shapes of the same: many small things instead of a large one, things that refer to each other, nesting, and the
/// formats of other programs.
fn hostile_shapes() -> Vec<Vec<Value>> {
    let text = |path: &str, text: String| vec![file(path, &text)];
    let each = |count: usize, of: &dyn Fn(usize) -> (String, String)| -> Vec<Value> {
        let files = (0..count).map(of);
        files.map(|(path, text)| file(&path, &text)).collect()
    };
    let argument = "arguments:\n  - { name: a }\n";
    let body = |body: String| prompt(argument, &body);
    vec![
        // Partials that include each other, twice each.
        each(40, &|n| {
            let next = format!("{{% include \"_p{}.md\" %}}", n + 1);
            let path = if n == 0 { "p.md".to_owned() } else { format!("_p{n}.md") };
            (path, if n == 39 { "x".to_owned() } else { format!("{next}{next}") })
        }),
        // One partial for many prompts.
        [
            each(600, &|n| (format!("p{n}.md"), "{% include \"_big.md\" %}".to_owned())),
            text("_big.md", "{{ a }}".repeat(5_000)),
        ]
        .concat(),
        [
            each(400, &|n| (format!("p{n}.md"), "{{ attach(\"big.txt\") }}".to_owned())),
            text("big.txt", "x".repeat(60_000)),
        ]
        .concat(),
        body("{% macro m(n) %}{{ m(n) }}{{ m(n) }}{% endmacro %}{{ m(1) }}".to_owned()),
        body("{{ 'x' * 1000000000 }}".to_owned()),
        body("{{ a|indent(1000000000) }}{{ a|center(1000000000) }}{{ [1]|tojson(indent=1000000000) }}".to_owned()),
        body("{{ '%1000000000d'|format(1) }}{{ a|batch(1000000000) }}{{ a|slice(1000000000) }}".to_owned()),
        body("{% for i in range(100000000000) %}x{% endfor %}".to_owned()),
        body("{% for a in 'xxxxxxxxxx' %}".repeat(30) + "x" + &"{% endfor %}".repeat(30)),
        body("{{ a|sort|unique|sort|join|upper|lower|title|reverse }}".repeat(1_500)),
        body(format!("{{{{ {} }}}}", "a|upper|\n".repeat(9_000) + "lower")),
        body(format!("{{{{ {} }}}}", "not\n".repeat(20_000) + "a")),
        body(format!("{{{{ {} }}}}", "a.\n".repeat(30_000) + "b")),
        body(format!("{{{{ [{}] }}}}", "a,\n".repeat(30_000))),
        body("{{ a\n".repeat(20_000)),
        body("{# \n".repeat(25_000)),
        body("[".repeat(90_000)),
        body("*a _b ".repeat(15_000)),
        body("<a><!--".repeat(12_000)),
        body("`".repeat(90_000)),
        body("> ".repeat(45_000)),
        body("- ".repeat(45_000)),
        body("\u{202e}".repeat(30_000)),
        body("e\u{301}".repeat(30_000)),
        prompt(&format!("description: {}\n", "x".repeat(90_000)), "x"),
        prompt(&format!("x: {}a{}\n", "{a: ".repeat(10_000), "}".repeat(10_000)), "x"),
        prompt(&format!("x:\n{}", lines(|n| format!("{}- \n", " ".repeat(n % 500)), 1_000)), "x"),
        prompt(
            &format!("arguments:\n  - {{ name: a, enum: [{}] }}\n", lines(|n| format!("v{n}, "), 12_000)),
            "{{ a }}",
        ),
        prompt(&format!("arguments:\n{}", "  - { name: a }\n".repeat(5_000)), "{{ a }}"),
        prompt(&format!("tags: [{}]\n", lines(|n| format!("t{n}, "), 12_000)), "x"),
        prompt(
            "arguments:\n  - { name: a, pattern: '(?i)(\\w{0,60}\\d){0,30}é$', default: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa }\n",
            "{{ a }}",
        ),
        prompt("arguments:\n  - { name: a, pattern: '((a?){40}){40}(a{40}){40}' }\n", "{{ a }}"),
        prompt("arguments:\n  - { name: a, pattern: '(\\p{L}|\\p{N}|.){500}' }\n", "{{ a }}"),
        prompt(
            &format!(
                "arguments:\n{}",
                lines(
                    |n| format!(
                        "  - {{ name: a{n}, ask: true, when: \"a0 == 'x' or {}\" }}\n",
                        "(a0 ~ a0 ~ a0) in a0 or ".repeat(20) + "a0"
                    ),
                    150
                )
            ),
            "{{ a0 }}",
        ),
        prompt(
            &format!("{argument}tests:\n{}", "  - { arguments: { a: \"x\" }, golden: g }\n".repeat(2_000)),
            "{{ a }}",
        ),
        prompt(
            &format!("{argument}tests:\n{}", format!("  - {{ contains: [{}] }}\n", "x, ".repeat(300)).repeat(80)),
            &"x".repeat(10_000),
        ),
        // Chains and rings of replacements.
        each(900, &|n| (format!("r{n}.md"), format!("---\ndeprecated: {{ use: r{} }}\n---\nx", (n + 1) % 900))),
        // Rules and names, each with each.
        [
            each(400, &|n| (format!("d{}/p{n}.md", n % 20), "x".to_owned())),
            text(
                "promptshelf.toml",
                lines(
                    |n| {
                        let folders: Vec<String> =
                            (n * 10..n * 10 + 10).map(|n| format!("\"d{n}\", \"**/*{n}*\"")).collect();
                        format!("[[access]]\nfolders = [{}]\nroles = [\"x\"]\n", folders.join(", "))
                    },
                    200,
                ),
            ),
        ]
        .concat(),
        text("promptshelf.toml", format!("[[access]]\nprompts = [\"{}\"]\nroles = [\"x\"]\n", "{a,b}".repeat(15_000))),
        text("promptshelf.toml", format!("[[access]]\nprompts = [\"{}\"]\nroles = [\"x\"]\n", "**/".repeat(25_000))),
        text(
            "promptshelf.toml",
            format!("[[access]]\nprompts = [\"{}\"]\nroles = [\"x\"]\n", "{a,".repeat(30_000) + &"}".repeat(30_000)),
        ),
        text("promptshelf.toml", "a.".repeat(40_000) + "b = 1\n"),
        text("promptshelf.toml", format!("a = {}{}\n", "[".repeat(40_000), "]".repeat(40_000))),
        text("promptshelf.toml", lines(|n| format!("[t{n}]\n"), 12_000)),
        text(
            "promptshelf.toml",
            lines(
                |n| {
                    format!(
                        "[[resources]]\nuri = \"x://{{a}}{{b}}{{c}}{{d}}{{e}}{{f}}/{n}\"\nfile = \"{{a}}{{b}}{{c}}{{d}}{{e}}{{f}}\"\n"
                    )
                },
                700,
            ),
        ),
        // Templates and files, each with each.
        [
            each(700, &|n| (format!("d/{n}.txt"), "x".to_owned())),
            text(
                "promptshelf.toml",
                "[[access]]\nfolders = [\"d\"]\nroles = [\"x\"]\n".to_owned()
                    + &lines(
                        |n| format!("[[resources]]\nuri-template = \"x{n}://{{+path}}\"\nfile = \"d/{{+path}}\"\n"),
                        700,
                    ),
            ),
        ]
        .concat(),
        // Lists that share their parts.
        body(
            ["a", "b"]
                .map(|name| {
                    format!("{{% set {name} = [1] %}}") + &format!("{{% set {name} = [{name}, {name}] %}}").repeat(28)
                })
                .concat()
                + "{{ a == b }}{{ a in [b] }}{{ [a, b]|sort|length }}{{ [a, b]|unique|length }}{{ [a, b]|min is none }}",
        ),
        // Copies and moves of each file to each other one.
        each(700, &|n| (format!("open{n}.md"), "---\ndescription: x\naccess: { roles: [x] }\n---\nsame".to_owned())),
        // Folders and skills.
        each(900, &|n| (format!("s{n}/SKILL.md"), "---\nname: x\ndescription: x\n---\nx".to_owned())),
        each(900, &|n| (format!("s/{n}.md"), "See [x](SKILL.md) and [y](../s/0.md).".to_owned())),
        each(100, &|n| (format!("{}x.md", "d/".repeat(n)), "x".to_owned())),
        each(900, &|n| (format!("n{n}.md"), "---\nname: same\n---\nx".to_owned())),
        each(900, &|n| (format!("{n}/same.md"), "x".to_owned())),
        // Formats of other programs.
        text("p.prompt", format!("---\nmodel: x\n---\n{}x{}", "{{#if a}}".repeat(4_000), "{{/if}}".repeat(4_000))),
        text("p.prompt", "{{#each a}}{{>p}}{{/each}}".repeat(3_000)),
        text(
            "p.prompt",
            format!("---\ninput:\n  schema: {}string{}\n---\n{{{{a}}}}", "{a: ".repeat(5_000), "}".repeat(5_000)),
        ),
        text("p.prompty", format!("---\ninputs: {}1{}\n---\n{{{{a}}}}", "[".repeat(20_000), "]".repeat(20_000))),
        text(".gemini/commands/p.toml", format!("prompt = \"\"\"{}\"\"\"\n", "{{args}} !{x} @{y} ".repeat(4_000))),
        text(".claude/commands/p.md", "$ARGUMENTS $1 @x !`y` ".repeat(4_000)),
        text("p.yaml", "- ".repeat(45_000)),
        text("p.json", "[".repeat(90_000)),
    ]
}

/// Bodies that fit no operation.
fn malformed() -> Vec<String> {
    let keys = lines(|n| format!("\"k{n}\":{n},"), SIZE / 12);
    vec![
        "[".repeat(SIZE),
        "{\"a\":".repeat(SIZE / 5),
        format!("{{{keys}\"a\":1}}"),
        format!("\"{}\"", "\\u0041".repeat(SIZE / 6)),
        format!("[{}1]", "1e308,".repeat(SIZE / 6)),
    ]
}

fn filled(path: &str) -> String {
    [
        ("{channel}", "production"),
        ("{path}", "hello.md"),
        ("{number}", "1"),
        ("{id}", "1"),
        ("{name}", "hello"),
        ("{source}", "x"),
    ]
    .iter()
    .fold(path.to_owned(), |path, (name, value)| path.replace(name, value))
}

/// Asserts that a crafted request costs no more than its size permits, or five times an ordinary one.
#[track_caller]
fn assert_bounded(operation: &str, request: &Crafted, plain: Cost, crafted: Cost) {
    let size = request.path.len() + request.body.len();
    let processor = (PROCESSOR.mul_f64(size as f64 / SIZE as f64) + SMALL.0) * SLOWER + plain.processor * 5;
    let memory = MEMORY / SIZE * size + SMALL.1 + plain.memory * 5;
    assert!(crafted.processor <= processor, "{operation}: {crafted:?}, at most {processor:?}: {request:?}");
    assert!(crafted.memory <= memory, "{operation}: {crafted:?}, at most {memory}: {request:?}");
}

async fn measured(site: &Site, method: &Method, request: &Crafted) -> Cost {
    cost(site.call(method, &request.path, &request.headers, request.body.clone())).await.1
}

async fn operations(site: &Site) -> Vec<(String, String)> {
    let document: Value = serde_json::from_slice(
        &site.call(&Method::GET, "/api/v1/openapi.json", &[], String::new()).await.expect(200).body,
    )
    .expect("a document");
    let paths = document["paths"].as_object().expect("paths").iter();
    let all = paths.flat_map(|(path, item)| {
        item.as_object().expect("operations").keys().map(|method| (method.to_uppercase(), path.clone()))
    });
    all.collect()
}

// req: S-279
#[tokio::test]
async fn table_has_every_operation() {
    let all = operations(&Site::new(&[]).await).await;
    assert!(all.len() > 40, "{all:?}");
    for (method, path) in all {
        assert!(shape(&format!("{method} {path}")).is_some(), "{method} {path} has no row in this table");
    }
}

// req: S-279
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crafted_requests_of_the_api_are_bounded() {
    let site = Site::new(&[]).await;
    let files = [hostile_files(), hostile_shapes()].concat();
    for (number, (method, path)) in operations(&site).await.into_iter().enumerate() {
        let operation = format!("{method} {path}");
        let shape = shape(&operation).unwrap_or_else(|| panic!("{operation} has no row in this table"));
        let method: Method = method.parse().expect("a method");
        let request = |query: &str, body: String| Crafted {
            headers: vec![("if-match", "*")],
            path: format!("{}{query}", filled(&path)),
            body,
        };
        let (plain, crafted) = match shape {
            Shape::Query => {
                let queries = [
                    "?limit=10000".to_owned(),
                    format!("?cursor={}", "YQ".repeat(3_000)),
                    format!("?text={}", "a".repeat(6_000)),
                    format!("?{}", "a=1&".repeat(1_500)),
                    format!("?version=1&rendered=true&arguments.who={}", "a".repeat(6_000)),
                    "?version=18446744073709551615".to_owned(),
                ];
                (String::new(), queries.iter().map(|query| request(query, String::new())).collect())
            }
            Shape::Body(body) => ("{}".to_owned(), vec![request("", body().to_string())]),
            Shape::Files(body) => {
                let files = files.iter().skip(number % PART).step_by(PART);
                let crafted = files.map(|files| request("", body(files.clone()).to_string())).collect();
                (body(vec![file("p.md", HELLO)]).to_string(), crafted)
            }
        };
        let mut crafted: Vec<Crafted> = crafted;
        if !matches!(shape, Shape::Query) {
            crafted.extend(malformed().into_iter().map(|body| request("", body)));
        }
        let plain = measured(&site, &method, &request("", plain)).await;
        for request in crafted {
            assert_bounded(&operation, &request, plain, measured(&site, &method, &request).await);
        }
    }
}

/// The methods of MCP that a client can call.
const METHODS: [&str; 18] = [
    "initialize",
    "ping",
    "prompts/list",
    "prompts/get",
    "completion/complete",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "resources/subscribe",
    "resources/unsubscribe",
    "resources/directory/read",
    "skills/list",
    "skills/get",
    "server/discover",
    "subscriptions/listen",
    "logging/setLevel",
    "tools/list",
    "tools/call",
];

#[test]
fn table_has_every_method() {
    let source = include_str!("../../../promptshelf-mcp/src/dispatch.rs");
    let words = source.split('"').filter(|word| word.contains('/') && !word.contains([' ', '\n', '.', ':']));
    let methods: Vec<&str> = words.filter(|word| word.chars().all(|c| c.is_ascii_alphabetic() || c == '/')).collect();
    assert!(methods.len() > 10, "{methods:?}");
    for method in methods {
        assert!(METHODS.contains(&method), "{method} has no row in this table");
    }
}

// req: S-279
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crafted_messages_pages_and_webhooks_are_bounded() {
    let texts: Vec<(String, String)> = hostile_files()
        .iter()
        .enumerate()
        .filter(|(_, files)| files.len() == 1 && files[0]["path"] == "p.md")
        .map(|(n, files)| (format!("p{n}.md"), files[0]["content"]["text"].as_str().expect("a text").to_owned()))
        .collect();
    let values = lines(|n| format!("value {n:05}, "), 20_000);
    let values =
        format!("---\ndescription: Many\narguments:\n  - {{ name: a, complete: [{values}] }}\n---\n{{{{ a }}}}\n");
    let files = texts.iter().map(|(path, text)| (path.as_str(), text.as_str()));
    let files: Vec<(&str, &str)> = files.chain([("values.md", values.as_str())]).collect();
    let site = Site::new(&files).await;
    let names: Vec<String> = texts.iter().map(|(path, _)| path.trim_end_matches(".md").to_owned()).collect();
    for method in METHODS {
        // A stream of notifications is a method of the newest revision only.
        let is_modern = method == "subscriptions/listen";
        let headers = match is_modern {
            true => vec![("mcp-protocol-version", MODERN), ("mcp-method", method)],
            false => vec![("mcp-protocol-version", "2025-06-18")],
        };
        let message = |mut params: Value| {
            if is_modern {
                params["_meta"] = json!({ "io.modelcontextprotocol/protocolVersion": MODERN,
                    "io.modelcontextprotocol/clientCapabilities": {} });
            }
            let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
            Crafted { headers: headers.clone(), path: "/mcp".to_owned(), body }
        };
        let plain = measured(&site, &Method::POST, &message(json!({ "name": "hello" }))).await;
        let values = [
            "ab".repeat(SIZE / 2),
            "[".repeat(SIZE),
            "1,".repeat(SIZE / 2),
            "ä".repeat(SIZE / 2),
            "\u{200b}".repeat(SIZE / 3),
        ];
        let mut crafted: Vec<Crafted> = Vec::new();
        for name in &names {
            for value in &values {
                crafted.push(message(json!({ "name": name, "arguments": { "a": value } })));
            }
        }
        let many: serde_json::Map<String, Value> =
            (0..1_000).map(|n| (format!("b{n}"), json!("x".repeat(90)))).collect();
        crafted.push(message(json!({ "name": "hello", "arguments": many })));
        let words = "lueavl 01 ".repeat(90);
        for (name, argument, typed) in
            [("hello", "who", "a".repeat(SIZE)), ("values", "a", words), ("values", "a", "value0".repeat(5))]
        {
            let argument = json!({ "name": argument, "value": typed });
            crafted.push(message(json!({ "ref": { "type": "ref/prompt", "name": name }, "argument": argument })));
        }
        let uris = |text: &str, count| lines(|n| format!("library:{text}{n} "), count);
        for uris in [uris("", 8_000), uris(&"../".repeat(300), 100)] {
            let uris: Vec<&str> = uris.split_whitespace().collect();
            crafted.push(message(
                json!({ "notifications": { "promptsListChanged": true, "resourceSubscriptions": uris } }),
            ));
        }
        crafted.push(message(json!({ "uri": format!("library:{}", "a/../".repeat(SIZE / 5)) })));
        crafted.push(message(json!({ "cursor": "a".repeat(SIZE) })));
        crafted.push(message(json!({ "name": "find_prompt", "arguments": { "query": "a b ".repeat(SIZE / 4) } })));
        crafted.extend(malformed().into_iter().map(|body| Crafted {
            headers: headers.clone(),
            path: "/mcp".to_owned(),
            body,
        }));
        for request in crafted {
            assert_bounded(method, &request, plain, measured(&site, &Method::POST, &request).await);
        }
    }
    let of_page = [
        "/library/clients",
        "/library/diagnostics",
        "/library/facts",
        "/library/prompts",
        "/library/prompts/hello",
        "/library/starters",
        "/",
    ];
    let of_programs = ["/api/public/v2/prompts", "/api/public/v2/prompts/hello", "/healthz", "/readyz"];
    for path in of_page.into_iter().chain(of_programs) {
        let plain = Crafted { headers: Vec::new(), path: path.to_owned(), body: String::new() };
        let plain = measured(&site, &Method::GET, &plain).await;
        for query in [format!("?{}", "a=1&".repeat(1_500)), format!("?name={}", "a".repeat(6_000))] {
            let request = Crafted { headers: Vec::new(), path: format!("{path}{query}"), body: String::new() };
            assert_bounded(path, &request, plain, measured(&site, &Method::GET, &request).await);
        }
    }
    for body in malformed() {
        let request = Crafted {
            headers: vec![("x-hub-signature-256", "sha256=00")],
            path: "/api/v1/hooks/forge".to_owned(),
            body,
        };
        let plain = Crafted { body: String::new(), headers: Vec::new(), path: request.path.clone() };
        let plain = measured(&site, &Method::POST, &plain).await;
        assert_bounded("webhook", &request, plain, measured(&site, &Method::POST, &request).await);
    }
}

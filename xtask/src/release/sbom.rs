//! The bill of materials in the format CycloneDX 1.6: the packages that the program is built from, for the
//! targets of a release.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::Release;
use crate::terminal::Program;

pub(super) fn write(release: &Release<'_>, targets: &[&str]) -> Result<()> {
    let mut cargo = Program::cargo(&release.repository.root).args(&["metadata", "--format-version", "1", "--locked"]);
    for target in targets {
        cargo = cargo.args(&["--filter-platform", target]);
    }
    let metadata: Value = serde_json::from_str(&cargo.read()?)?;
    let packages: BTreeMap<&str, &Value> =
        list(&metadata["packages"]).filter_map(|package| Some((package["id"].as_str()?, package))).collect();
    let nodes: BTreeMap<&str, &Value> =
        list(&metadata["resolve"]["nodes"]).filter_map(|node| Some((node["id"].as_str()?, node))).collect();
    let root = packages.iter().find(|(_, package)| package["name"] == "promptshelf").map(|(id, _)| *id);
    let root = root.context("no package promptshelf")?;
    let mut found = BTreeSet::from([root]);
    let mut open = vec![root];
    let mut edges = Vec::new();
    while let Some(id) = open.pop() {
        let mut below = Vec::new();
        for dependency in nodes.get(id).map(|node| list(&node["deps"])).into_iter().flatten() {
            // Without a kind it is part of the program; the others are for builds and tests.
            let is_normal = list(&dependency["dep_kinds"]).any(|kind| kind["kind"].is_null());
            if let (true, Some(pkg)) = (is_normal, dependency["pkg"].as_str()) {
                below.push(purl(packages[pkg]));
                if found.insert(pkg) {
                    open.push(pkg);
                }
            }
        }
        below.sort();
        edges.push(json!({ "ref": purl(packages[id]), "dependsOn": below }));
    }
    edges.sort_by_key(|edge| edge["ref"].as_str().map(str::to_owned));
    let components: Vec<Value> = found.iter().filter(|id| **id != root).map(|id| component(packages[id])).collect();
    let bill = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": { "component": { "type": "application", "bom-ref": purl(packages[root]), "name": "promptshelf",
            "version": release.version, "purl": purl(packages[root]) } },
        "components": components,
        "dependencies": edges,
    });
    let text = format!("{}\n", serde_json::to_string_pretty(&bill)?);
    Ok(fs::write(release.out.join("promptshelf.cdx.json"), text)?)
}

fn component(package: &Value) -> Value {
    let mut component = json!({
        "type": "library",
        "bom-ref": purl(package),
        "name": package["name"],
        "version": package["version"],
        "purl": purl(package),
    });
    if let Some(license) = package["license"].as_str() {
        // Old manifests write `MIT/Apache-2.0`.
        component["licenses"] = json!([{ "expression": license.replace('/', " OR ") }]);
    }
    component
}

fn purl(package: &Value) -> String {
    let text = |key: &str| package[key].as_str().unwrap_or_default().replace('+', "%2B");
    format!("pkg:cargo/{}@{}", text("name"), text("version"))
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

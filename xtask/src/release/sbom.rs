//! The bill of materials in the format CycloneDX 1.6: the packages that the program is built from, for a target.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::Release;
use crate::terminal::Program;

fn file_name(version: &str, target: &str) -> String {
    format!("promptshelf-{version}-{target}.cdx.json")
}

pub(super) fn write(release: &Release<'_>, target: &str) -> Result<()> {
    let line = ["metadata", "--format-version", "1", "--locked", "--filter-platform", target];
    let metadata: Value = serde_json::from_str(&Program::cargo(&release.repository.root).args(&line).read()?)?;
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
    Ok(fs::write(release.to.join(file_name(&release.version, target)), text)?)
}

/// Returns the names of the packages in the bill of a target.
pub(super) fn packages(folder: &Path, version: &str, target: &str) -> Result<Vec<String>> {
    let bill: Value = serde_json::from_str(&fs::read_to_string(folder.join(file_name(version, target)))?)?;
    Ok(list(&bill["components"]).filter_map(|one| one["name"].as_str().map(str::to_owned)).collect())
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

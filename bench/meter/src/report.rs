//! What was measured, as a page with charts.

use std::{collections::BTreeMap, fmt::Write as _, fs, time::Duration};

use anyhow::{Context, Result};

use crate::{Plan, attack::Attack, chart, growth::Growth, message::Era, rows::Figure, server::Kind};

/// Writes the page: a whole run into `docs`, a part of one beside what was built.
pub(crate) fn write(plan: &Plan, figures: &[Figure], growth: &Growth, attack: Option<&Attack>) -> Result<()> {
    let whole = !plan.quick && plan.only.is_empty() && plan.peers.is_none();
    let folder = if whole { plan.root.join("docs") } else { plan.target.join("report") };
    fs::create_dir_all(folder.join("performance"))?;
    let mut page = String::new();
    head(plan, whole, &mut page)?;
    compared(figures, &mut page)?;
    grown(growth, &mut page)?;
    if let Some(attack) = attack {
        attacked(attack, &mut page)?;
    }
    for (name, chart) in charts(growth) {
        fs::write(folder.join("performance").join(format!("{name}.svg")), chart)?;
        writeln!(page, "![{}](performance/{name}.svg)\n", name.replace('-', " "))?;
    }
    let path = folder.join("performance.md");
    fs::write(&path, page.trim_end().to_owned() + "\n")
        .with_context(|| format!("{} cannot be written", path.display()))?;
    println!("written: {}", path.display());
    Ok(())
}

fn head(plan: &Plan, whole: bool, page: &mut String) -> Result<()> {
    let processor = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let processor = processor.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let processor = processor.map_or("unknown", |(_, name)| name);
    let pinned = match plan.cores {
        Some((server, load)) => format!("servers on core {server}, load on core {load}"),
        None => "one core for everything, so that latencies mean little".to_owned(),
    };
    writeln!(
        page,
        "# Performance\n\n\
         Written by `cargo xtask bench`{}; not edited by hand.\n\n\
         **How it was measured.** Processor {processor}; {pinned}; requests over loopback, HTTP/1.1, connections kept, \
         one request at a time on each; {} turns of {:?} for each figure, the servers in turns. Before a server is \
         measured, its answer is checked; while it is, every answer has to have status 200 and the first one's length. \
         *CPU* is the processor time of the server (user and kernel, from `/proc/PID/stat`) for 10,000 requests. \
         *Ratio* is that time divided by the bare handler's in the same turn, and the median of the turns: that is \
         what compares; the times are this machine's.\n\n\
         *bare* is an axum handler that parses the envelope with serde, puts strings together or copies a page, and \
         checks nothing. *rmcp*, *python* and *typescript* are the official SDKs' low-level servers without sessions \
         and with JSON answers, *fastmcp* is FastMCP in the same mode; versions are in `bench/`.\n",
        if whole { "" } else { " with options, and so only a part or a short run" },
        plan.turns(),
        plan.time(),
    )?;
    Ok(())
}

fn compared(figures: &[Figure], page: &mut String) -> Result<()> {
    let mut tables: BTreeMap<(usize, bool), Vec<&Figure>> = BTreeMap::new();
    let mut order: Vec<&str> = Vec::new();
    for figure in figures {
        if !order.contains(&figure.row.as_str()) {
            order.push(&figure.row);
        }
        let at = order.iter().position(|row| *row == figure.row).unwrap_or_default();
        tables.entry((at, figure.wire == "stdio")).or_default().push(figure);
    }
    for ((at, stdio), figures) in tables {
        writeln!(page, "## {}{}\n", order[at], if stdio { ", over stdio" } else { "" })?;
        writeln!(page, "| server | era | at once | ratio | CPU ms / 10,000 | median | p99 | p99 ratio | memory MB |")?;
        writeln!(page, "|---|---|---|---|---|---|---|---|---|")?;
        for figure in figures {
            let name = figure.kind.name();
            let name = if figure.kind == Kind::Promptshelf { format!("**{name}**") } else { name.to_owned() };
            let era = if figure.era == Era::Modern { "modern" } else { "legacy" };
            writeln!(
                page,
                "| {name} | {era} | {} | {:.2} | {:.0} | {} | {} | {:.2} | {:.0} |",
                figure.at_once,
                figure.ratio,
                figure.cpu.as_secs_f64() * 1_000.0,
                shown(figure.median),
                shown(figure.p99),
                figure.p99_ratio,
                figure.memory as f64 / 1e6,
            )?;
        }
        page.push('\n');
    }
    Ok(())
}

fn grown(growth: &Growth, page: &mut String) -> Result<()> {
    if !growth.sizes.is_empty() {
        let files = |bytes: u64| bytes as f64 / 1e6;
        writeln!(
            page,
            "## Growth\n\nOne server, libraries of different sizes, on all cores. *Reading* is plainly reading the same files.\n"
        )?;
        writeln!(
            page,
            "| prompts | files MB | reading | first answer | times reading | memory MB (most) | CPU ratio of `prompts/get` to the smallest | edit to `list_changed` |"
        )?;
        writeln!(page, "|---|---|---|---|---|---|---|---|")?;
        let smallest = growth.sizes[0].request.as_secs_f64();
        for size in &growth.sizes {
            writeln!(
                page,
                "| {} | {:.1} | {} | {} | {:.1} | {:.0} ({:.0}) | {:.2} | {} |",
                size.prompts,
                files(size.bytes),
                shown(size.reading),
                shown(size.loading),
                size.loading.as_secs_f64() / size.reading.as_secs_f64(),
                files(size.memory),
                files(size.most_memory),
                size.request.as_secs_f64() / smallest,
                shown(size.edit),
            )?;
        }
        page.push('\n');
    }
    if let Some(crowd) = &growth.crowd {
        writeln!(
            page,
            "**{} open subscriptions** take {} bytes each. From the first that hears of a change to the last it takes {}; \
             writing as much to as many sockets, and hearing it there, takes {}.\n",
            crowd.streams,
            crowd.bytes_each,
            shown(crowd.telling),
            shown(crowd.writing),
        )?;
    }
    if let Some(start) = &growth.start {
        writeln!(
            page,
            "**Start.** `serve --stdio` on the example library gives its first answer after {}, {:.1} times as long as \
             `/bin/true` and reading the files ({}). The binary has {:.1} MB.\n",
            shown(start.answer),
            start.answer.as_secs_f64() / start.least.as_secs_f64(),
            shown(start.least),
            start.binary as f64 / 1e6,
        )?;
    }
    Ok(())
}

fn attacked(attack: &Attack, page: &mut String) -> Result<()> {
    writeln!(
        page,
        "## Under attack\n\n\
         16 callers with tokens ask `prompts/get` 20 times a second each, with the default limits and the audit on; in \
         turns alone, and while the hostile callers below do what they can. Latencies count from when a request was due.\n"
    )?;
    writeln!(page, "| valid callers | answered | median | p99 | worst |\n|---|---|---|---|---|")?;
    for (name, served) in [("alone", &attack.alone), ("under attack", &attack.attacked)] {
        let [median, p99, worst] = [50, 99, 100].map(|percent| shown(served.seen.percentile(percent)));
        let answered = served.seen.latencies.len();
        writeln!(page, "| {name} | {answered} of {} | {median} | {p99} | {worst} |", served.asked)?;
    }
    let seconds = attack.time.as_secs_f64();
    writeln!(page, "\n| hostile callers | connections | answered | refused or closed, a second | kB a second |")?;
    writeln!(page, "|---|---|---|---|---|")?;
    for done in &attack.done {
        let (refused, bytes) = (done.refused as f64 / seconds, done.bytes as f64 / seconds / 1e3);
        writeln!(page, "| {} | {} | {} | {refused:.0} | {bytes:.0} |", done.kind, done.connections, done.answered)?;
    }
    writeln!(page, "\nThe server held at most {:.0} MB.\n", attack.memory as f64 / 1e6)?;
    Ok(())
}

fn charts(growth: &Growth) -> Vec<(&'static str, String)> {
    if growth.sizes.is_empty() {
        return Vec::new();
    }
    let bars = |of: fn(&crate::growth::Size) -> f64| -> Vec<(String, f64)> {
        growth.sizes.iter().map(|size| (size.prompts.to_string(), of(size))).collect()
    };
    let milliseconds = |time: Duration| time.as_secs_f64() * 1_000.0;
    let mut charts = vec![
        (
            "request",
            chart::bars("CPU of 10,000 prompts/get in ms, by prompts", &bars(|s| s.request.as_secs_f64() * 1e3)),
        ),
        (
            "loading",
            chart::bars(
                "first answer in times of reading, by prompts",
                &bars(|s| s.loading.as_secs_f64() / s.reading.as_secs_f64()),
            ),
        ),
        ("memory", chart::bars("memory in MB, by prompts", &bars(|s| s.memory as f64 / 1e6))),
        ("edit", chart::bars("edit to list_changed in ms, by prompts", &bars(|s| s.edit.as_secs_f64() * 1e3))),
    ];
    if let Some(crowd) = &growth.crowd {
        let both = [
            ("told".to_owned(), milliseconds(crowd.telling)),
            ("plain writing".to_owned(), milliseconds(crowd.writing)),
        ];
        charts.push(("subscriptions", chart::bars("telling all subscriptions, in ms", &both)));
    }
    charts
}

/// A time with three digits.
fn shown(time: Duration) -> String {
    let micros = time.as_secs_f64() * 1e6;
    match micros {
        ..1e3 => format!("{micros:.0} µs"),
        ..1e6 => format!("{:.1} ms", micros / 1e3),
        _ => format!("{:.2} s", micros / 1e6),
    }
}

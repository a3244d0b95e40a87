//! The report as a Markdown page with charts.

use std::{collections::BTreeMap, fmt::Write as _, fs, time::Duration};

use anyhow::{Context, Result};

use crate::{
    Plan, attack::Attack, channels::Channels, chart, growth::Growth, load::Seen, message::Era, rows::Measurement,
    server::Kind,
};

/// Writes the page: a complete run into `docs`, a partial one into the target folder.
pub(crate) fn write(
    plan: &Plan,
    measurements: &[Measurement],
    growth: &Growth,
    channels: Option<&Channels>,
    attack: Option<&Attack>,
) -> Result<()> {
    let whole = !plan.quick && plan.only.is_empty() && plan.peers.is_none();
    let folder = if whole { plan.root.join("docs") } else { plan.target.join("report") };
    fs::create_dir_all(folder.join("performance"))?;
    let mut page = String::new();
    head(plan, whole, &mut page)?;
    compared(measurements, &mut page)?;
    grown(growth, &mut page)?;
    if let Some(channels) = channels {
        followed(channels, &mut page)?;
    }
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
        None => "one core for servers and load, so latencies are not meaningful".to_owned(),
    };
    writeln!(
        page,
        "# Performance\n\n\
         Written by `cargo xtask bench`{}; not edited by hand.\n\n\
         **Method.** Processor {processor}; {pinned}; HTTP/1.1 over loopback on persistent connections with one request \
         at a time on each; {} turns of {:?} for each measurement, the servers in turns. A server's result is validated before \
         the measurement; during it every response must have status 200 and the same length. *CPU* is the server's user and \
         kernel time (`/proc/PID/stat`) for 10,000 requests. *Ratio* is that time divided by the bare handler's in the same \
         turn, median of the turns, and in parentheses the lowest and the highest. Compare ratios: absolute times depend on the machine.\n\n\
         *bare* is an axum handler that parses the envelope with serde, concatenates strings or copies a page, and \
         validates nothing. *rmcp*, *python* and *typescript* are the official SDKs' low-level servers without sessions \
         and with JSON responses, *fastmcp* is FastMCP in the same mode; versions are in `bench/`.\n",
        if whole { "" } else { " with options: a partial or short run" },
        plan.turns(),
        plan.time(),
    )?;
    Ok(())
}

fn compared(measurements: &[Measurement], page: &mut String) -> Result<()> {
    let mut tables: BTreeMap<(usize, bool), Vec<&Measurement>> = BTreeMap::new();
    let mut order: Vec<&str> = Vec::new();
    for measurement in measurements {
        if !order.contains(&measurement.row.as_str()) {
            order.push(&measurement.row);
        }
        let at = order.iter().position(|row| *row == measurement.row).unwrap_or_default();
        tables.entry((at, measurement.wire == "stdio")).or_default().push(measurement);
    }
    for ((at, stdio), measurements) in tables {
        writeln!(page, "## {}{}\n", order[at], if stdio { ", over stdio" } else { "" })?;
        writeln!(page, "| server | era | concurrency | ratio | CPU ms / 10,000 | median | p99 | memory MB |")?;
        writeln!(page, "|---|---|---|---|---|---|---|---|")?;
        for measurement in measurements {
            let name = measurement.kind.name();
            let name = if measurement.kind == Kind::Promptshelf { format!("**{name}**") } else { name.to_owned() };
            let era = if measurement.era == Era::Modern { "modern" } else { "legacy" };
            writeln!(
                page,
                "| {name} | {era} | {} | {:.2} ({:.2}–{:.2}) | {:.0} | {} | {} | {:.0} |",
                measurement.at_once,
                measurement.ratio,
                measurement.spread.0,
                measurement.spread.1,
                measurement.cpu.as_secs_f64() * 1_000.0,
                shown(measurement.median),
                shown(measurement.p99),
                measurement.memory as f64 / 1e6,
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
            "## Growth\n\nOne server on all cores, with libraries of different sizes. *Reading* is the time to read the same files sequentially.\n"
        )?;
        writeln!(
            page,
            "| prompts | files MB | reading | first response | ratio to reading | memory MB (peak) | CPU ratio of `prompts/get` to the smallest | edit to `list_changed` |"
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
    if let Some(subscriptions) = &growth.subscriptions {
        writeln!(
            page,
            "**{} open subscriptions** take {} bytes each. A change reaches the last one {} after the first; writing the \
             same amount to as many plain sockets takes {}.\n",
            subscriptions.streams,
            subscriptions.bytes_each,
            shown(subscriptions.notifying),
            shown(subscriptions.writing),
        )?;
    }
    if let Some(start) = &growth.start {
        writeln!(
            page,
            "**Start.** `serve --stdio` on the example library sends its first response after {}, {:.1} times the time of \
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
         A channel of an SQLite store, with default limits and the audit enabled. 40 callers send eight `prompts/get` a \
         second each, 8 programs ask for a prompt four times a second, 4 authors check a change and 4 have one analysed in \
         the editor twice a second; in turns alone and together with the hostile callers below, which have \
         `library:propose`. The server has 1,024 open files and all cores; hostile callers use what server and valid \
         callers leave of one. Latencies count from the time at which a request was due.\n"
    )?;
    writeln!(page, "| valid callers | answered | median | p99 | worst |\n|---|---|---|---|---|")?;
    for (name, (door, served)) in attack.turns() {
        let [median, p99, worst] = [50, 99, 100].map(|percent| shown(served.seen.percentile(percent)));
        let answered = served.seen.latencies.len();
        writeln!(page, "| {door}, {name} | {answered} of {} | {median} | {p99} | {worst} |", served.asked)?;
    }
    let seconds = attack.time.as_secs_f64();
    writeln!(page, "\n| hostile callers | connections | answered | refused or closed per second | kB per second |")?;
    writeln!(page, "|---|---|---|---|---|")?;
    for done in &attack.done {
        let (refused, bytes) = (done.refused as f64 / seconds, done.bytes as f64 / seconds / 1e3);
        writeln!(page, "| {} | {} | {} | {refused:.0} | {bytes:.0} |", done.kind, done.connections, done.answered)?;
    }
    writeln!(
        page,
        "\nPeak memory of the server: {:.0} MB. Clients can occupy {:.0} MB by the limits, besides the library and \
         rendering.\n",
        attack.memory as f64 / 1e6,
        crate::attack::BOUND as f64 / 1e6
    )?;
    Ok(())
}

fn followed(channels: &Channels, page: &mut String) -> Result<()> {
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    writeln!(
        page,
        "## Channels\n\nA library of 103 files, eight replicas and the database on all cores of this machine. PostgreSQL \
         notifies replicas; without LISTEN, and on SQLite, they compare revisions once a second. A publish checks the whole tree.\n"
    )?;
    writeln!(
        page,
        "| store | publish, median (p99) | start of a publish to `list_changed` of a replica, median (p99) | publishes a second, 1 writer | {} writers | memory MB of a replica |",
        crate::channels::WRITERS,
    )?;
    writeln!(page, "|---|---|---|---|---|---|")?;
    for followed in &channels.followed {
        let of = |seen: &Seen| format!("{} ({})", shown(seen.percentile(50)), shown(seen.percentile(99)));
        writeln!(
            page,
            "| {} | {} | {} | {:.0} | {:.0} | {:.0} |",
            followed.store,
            of(&followed.publishing),
            of(&followed.followed),
            followed.rates.0,
            followed.rates.1,
            megabytes(followed.memory),
        )?;
    }
    let (before, during) = (&channels.outage.before, &channels.outage.during);
    let rate = |seen: &Seen| seen.latencies.len() as f64 / seen.elapsed.as_secs_f64();
    writeln!(
        page,
        "\n**The database stops.** A replica answers {:.0} `prompts/get` a second (p99 {}) while PostgreSQL answers, and {:.0} (p99 {}) \
         after it was stopped; no request fails.\n",
        rate(before),
        shown(before.percentile(99)),
        rate(during),
        shown(during.percentile(99)),
    )?;
    let large = channels.large;
    writeln!(
        page,
        "\n**{} files.** `promptshelf init` stores the folder in PostgreSQL in {}. A server sends its first response {} after its \
         start with the channel and {} with the folder, and holds {:.0} and {:.0} MB.\n",
        large.files,
        shown(large.storing),
        shown(large.channel),
        shown(large.folder),
        megabytes(large.memory.0),
        megabytes(large.memory.1),
    )?;
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
                "first response as a multiple of reading, by prompts",
                &bars(|s| s.loading.as_secs_f64() / s.reading.as_secs_f64()),
            ),
        ),
        ("memory", chart::bars("memory in MB, by prompts", &bars(|s| s.memory as f64 / 1e6))),
        ("edit", chart::bars("edit to list_changed in ms, by prompts", &bars(|s| s.edit.as_secs_f64() * 1e3))),
    ];
    if let Some(subscriptions) = &growth.subscriptions {
        let both = [
            ("notifying".to_owned(), milliseconds(subscriptions.notifying)),
            ("plain writing".to_owned(), milliseconds(subscriptions.writing)),
        ];
        charts.push(("subscriptions", chart::bars("notifying all subscriptions, in ms", &both)));
    }
    charts
}

/// Formats a duration with three digits.
fn shown(time: Duration) -> String {
    let micros = time.as_secs_f64() * 1e6;
    match micros {
        ..1e3 => format!("{micros:.0} µs"),
        ..1e6 => format!("{:.1} ms", micros / 1e3),
        _ => format!("{:.2} s", micros / 1e6),
    }
}

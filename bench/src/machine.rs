//! When, where and with which versions the run was made.

use std::fs;
use std::process::Command;
use std::thread;

/// The crates whose versions matter to the results.
const CRATES: [&str; 6] =
    ["governor", "quanta", "dashmap", "leaky-bucket", "throttlecrab", "tokio"];

/// One line of Markdown for each fact.
pub(crate) fn describe() -> String {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split_whitespace().take(3).collect::<Vec<_>>().join(" ");
    let facts = [
        format!("- date: {}", answer_of("date", "+%F")),
        format!("- machine: {}, {} cores, load before the run {load}", processor(), cores()),
        format!("- compiler: {}", answer_of("rustc", "--version")),
        format!("- crates: {}", versions()),
    ];
    facts.join("\n")
}

fn processor() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    model.map_or_else(|| "unknown processor".to_owned(), |(_, name)| name.to_owned())
}

fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

fn answer_of(program: &str, argument: &str) -> String {
    let output = Command::new(program).arg(argument).output();
    let answer = output.ok().and_then(|output| String::from_utf8(output.stdout).ok());
    answer.map_or_else(|| "unknown".to_owned(), |answer| answer.trim().to_owned())
}

/// As the lock file has them; a crate that is there twice appears twice.
fn versions() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.lock");
    let lock = fs::read_to_string(path).unwrap_or_default();
    let packages = lock.split("[[package]]").filter_map(name_and_version);
    let wanted = packages.filter(|(name, _)| CRATES.contains(name));
    wanted.map(|(name, version)| format!("{name} {version}")).collect::<Vec<_>>().join(", ")
}

fn name_and_version(package: &str) -> Option<(&str, &str)> {
    let field =
        |name| package.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = "));
    Some((field("name")?.trim_matches('"'), field("version")?.trim_matches('"')))
}

//! What the kernel tells about this process, and children that measure apart from the rest.

use std::fs;
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};

/// Runs this program again with a child's command and returns the numbers it prints.
pub(crate) fn ask<const ANSWERS: usize>(arguments: &[&str]) -> anyhow::Result<[u64; ANSWERS]> {
    let output = Command::new(std::env::current_exe()?)
        .args(arguments)
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot start the child {arguments:?}"))?;
    ensure!(output.status.success(), "the child {arguments:?} failed: {}", output.status);
    let text = String::from_utf8(output.stdout)?;
    let numbers = text.split_whitespace().map(str::parse).collect::<Result<Vec<u64>, _>>()?;
    numbers.try_into().ok().with_context(|| format!("the child {arguments:?} printed {text:?}"))
}

/// A line of `/proc/self/status` that counts kB, as `VmRSS`, in bytes.
pub(crate) fn memory_bytes(line: &str) -> anyhow::Result<u64> {
    memory_bytes_of(std::process::id(), line)
}

/// The same of another process.
pub(crate) fn memory_bytes_of(process: u32, line: &str) -> anyhow::Result<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let kilobytes = number_after(&status, line).with_context(|| format!("no {line} in status"))?;
    Ok(kilobytes * 1_024)
}

/// How long this thread was ready and had no core, in ns; 0 where the kernel does not tell.
pub(crate) fn queued_ns() -> u64 {
    fs::read_to_string("/proc/thread-self/schedstat")
        .ok()
        .and_then(|times| times.split_whitespace().nth(1)?.parse().ok())
        .unwrap_or(0)
}

/// The processor time of all living threads of this process.
pub(crate) fn cpu_ns() -> anyhow::Result<u64> {
    cpu_ns_of(std::process::id())
}

/// The same of another process.
pub(crate) fn cpu_ns_of(process: u32) -> anyhow::Result<u64> {
    let mut sum = 0;
    for thread in fs::read_dir(format!("/proc/{process}/task"))? {
        // One that has ended since is not among the living.
        let Ok(times) = fs::read_to_string(thread?.path().join("schedstat")) else { continue };
        let run_time = times.split_whitespace().next().context("schedstat is empty")?;
        sum += run_time.parse::<u64>()?;
    }
    Ok(sum)
}

/// This thread's number.
pub(crate) fn thread_id() -> anyhow::Result<u64> {
    let link = fs::read_link("/proc/thread-self")?;
    let number = link.file_name().and_then(|name| name.to_str()).context("no thread number")?;
    Ok(number.parse()?)
}

/// The processor time of one thread of this process.
pub(crate) fn thread_cpu_ns(thread: u64) -> anyhow::Result<u64> {
    let times = fs::read_to_string(format!("/proc/self/task/{thread}/schedstat"))?;
    Ok(times.split_whitespace().next().context("schedstat is empty")?.parse()?)
}

fn number_after(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.split_whitespace().next()?.parse().ok()
}

//! Measures how queues drain at their limits: `cargo run --release -p tollgate-bench --bin drain`.

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    tollgate_bench::run_drain(&arguments)
}

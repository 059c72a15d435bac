//! Calls over HTTP, end to end: `cargo run --release -p tollgate-bench --bin calls`.

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    tollgate_bench::run_calls(&arguments)
}

//! Measures limits in stores that processes share: `cargo run --release -p tollgate-bench --bin shared -- URL…`.

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    tollgate_bench::run_shared(&arguments)
}

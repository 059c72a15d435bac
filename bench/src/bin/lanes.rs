//! Measures the scheduler of lanes: `cargo run --release -p tollgate-bench --bin lanes`.

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    tollgate_bench::run_lanes(&arguments)
}

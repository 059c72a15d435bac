//! Measures steps of machines beside plain calls: `cargo run --release -p tollgate-bench --bin flows`.

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    tollgate_bench::run_flows(&arguments)
}

//! Measures the embedded store: `cargo run --release -p tollgate-bench --bin store`.

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    tollgate_bench::run_store(&arguments)
}

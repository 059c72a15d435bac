//! Measures designs of durable lanes on PostgreSQL: `cargo run --release -p tollgate-bench --bin designs -- URL`.

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    tollgate_bench::run_designs(&arguments)
}

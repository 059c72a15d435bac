//! Compares limiters: `cargo run --release -p tollgate-bench --bin limiters [-- --quick]`.

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    tollgate_bench::run(&arguments)
}

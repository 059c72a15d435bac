//! Compares the server with one that does nothing: `cargo run --release -p tollgate-bench --bin http`.

fn main() -> anyhow::Result<()> {
    tollgate_bench::run_http()
}

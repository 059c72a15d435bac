//! The command `tollgate`.

use std::process::ExitCode;
use tollgate_server::cli::{Environment, run};

fn main() -> ExitCode {
    run(std::env::args_os(), Environment::read()).into()
}

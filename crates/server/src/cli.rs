//! The command `tollgate`: what it takes, what it returns to the shell.

mod descriptors;
mod log;
mod output;
mod serve;
mod signals;

use clap::{Parser, Subcommand};
use log::LogFormat;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::process::ExitCode;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// It did what it was asked.
    Done,
    /// It was refused: by a limit, by a server.
    Refused,
    /// It could not run.
    Failed,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Done => 0,
            Exit::Refused => 1,
            Exit::Failed => 2,
        })
    }
}

/// What the command takes from the environment.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    /// `TOLLGATE_TOKEN`: what callers must show.
    pub token: Option<OsString>,
    /// `TOLLGATE_LOG`: which lines are logged, as in `info` or `tollgate_engine=debug`.
    pub log: Option<OsString>,
}

impl Environment {
    /// Reads the variables of this process.
    pub fn read() -> Self {
        let variable = std::env::var_os;
        Self { token: variable("TOLLGATE_TOKEN"), log: variable("TOLLGATE_LOG") }
    }
}

/// Durable flow control for outbound API calls.
///
/// Without a command it serves.
#[derive(Debug, Parser)]
#[command(name = "tollgate", version, args_conflicts_with_subcommands = true)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    serve: ServeArguments,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Answers over HTTP until it is stopped.
    ///
    /// Callers show the token that TOLLGATE_TOKEN holds; a server that can be reached from other
    /// machines does not start without one. TOLLGATE_LOG says which lines are logged, as in `info`
    /// or `tollgate_engine=debug`.
    Serve(ServeArguments),
}

#[derive(Debug, clap::Args)]
struct ServeArguments {
    /// Where to listen.
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:8655", value_parser = address)]
    listen: SocketAddr,
    /// How log lines look.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = LogFormat::Text)]
    log: LogFormat,
}

/// Runs the command that `arguments` name; the first is the name of the program.
pub fn run(arguments: impl IntoIterator<Item = OsString>, environment: Environment) -> Exit {
    let Arguments { command, serve } = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(message) => return output::usage(&message),
    };
    let ran = match command {
        Some(Command::Serve(serve)) => serve::serve(&serve, &environment),
        None => serve::serve(&serve, &environment),
    };
    match ran {
        Ok(()) => Exit::Done,
        Err(error) => {
            output::failure(&error);
            Exit::Failed
        }
    }
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        "give an address and a port, as in 127.0.0.1:8655, 0.0.0.0:8655 or [::1]:8655".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_arguments_make_sense() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn serving_is_what_it_does_without_a_command() {
        let parse = |arguments: &[&str]| {
            let Arguments { command, serve } = Arguments::try_parse_from(arguments).unwrap();
            match command {
                Some(Command::Serve(serve)) => serve.listen,
                None => serve.listen,
            }
        };
        assert_eq!(parse(&["tollgate"]).to_string(), "127.0.0.1:8655");
        assert_eq!(parse(&["tollgate", "serve"]).to_string(), "127.0.0.1:8655");
        assert_eq!(parse(&["tollgate", "--listen", "[::1]:1"]).to_string(), "[::1]:1");
        assert_eq!(parse(&["tollgate", "serve", "--listen", "[::1]:1"]).to_string(), "[::1]:1");
    }
}

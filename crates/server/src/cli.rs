//! The command `tollgate`: what it takes, what it returns to the shell.

mod backup;
mod copy;
mod demo;
mod descriptors;
mod dev;
mod export;
mod in_force;
mod log;
mod operate;
mod output;
mod serve;
mod shown;
mod signals;
mod store;
mod token;
mod torture;

use crate::access::Role;
pub use crate::config::Environment;
use crate::config::{DEFAULTS, LogFormat, ServerWire, StoreUrl};
use clap::{CommandFactory, Parser, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

/// How a command ended: of several things, as the worst of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
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
    /// Callers show the token that TOLLGATE_TOKEN holds, or one of the configuration; a server that can
    /// be reached from other machines does not start without any. TOLLGATE_LOG says which lines are
    /// logged, as in `info` or `tollgate_engine=debug`. Flags win over the environment, and that over
    /// the file.
    #[command(
        after_help = "Examples:\n  tollgate serve\n  tollgate serve --data /var/lib/tollgate --listen 127.0.0.1:8655 --log json\n  tollgate serve --store postgres://tollgate@db/tollgate\n  tollgate serve --store redis://127.0.0.1:6379 --prefix tollgate"
    )]
    Serve(ServeArguments),
    /// Answers on this machine alone, as QStash's development server does, and keeps what it is told.
    ///
    /// Applications with @upstash/qstash and QSTASH_DEV=true find it by themselves; for others it prints what
    /// to set. It asks for no token and sends to any address; all else is as `serve` does it.
    #[command(after_help = "Examples:\n  tollgate dev\n  tollgate dev --port 8090 --data ./dev")]
    Dev(DevArguments),
    /// Shows what limits do, in a quarter of a minute: APIs that enforce theirs, and tenants with too much to send.
    ///
    /// Both ways side by side: at once, and again on every 429; and through Tollgate. All of it is on this
    /// machine, in a folder that goes with it; the console is open on it. Ends by itself.
    #[command(after_help = "Examples:\n  tollgate demo\n  tollgate demo --stay")]
    Demo(DemoArguments),
    /// Prints the settings: every one, with its default and what it means.
    #[command(after_help = "Example:\n  tollgate config > tollgate.toml")]
    Config,
    /// Makes tokens for callers.
    #[command(subcommand)]
    Token(TokenCommand),
    /// Looks after a data folder.
    #[command(subcommand)]
    Store(StoreCommand),
    /// Copies a data folder while a server uses it, and checks the copy.
    ///
    /// All that was answered before the command began is in the copy, which opens as after a crash
    /// since then. The server is not asked and not held up. Ends with 0 if there is a sound copy, 1
    /// if the target is taken or the folder is damaged, 2 if it could not be made; then nothing is
    /// left at the target.
    #[command(after_help = "Example:\n  tollgate backup ./tollgate-data ./copy")]
    Backup(BackupArguments),
    /// Makes a data folder of a backup, and checks it.
    ///
    /// The backup stays as it is. Ends with 0 if there is a sound folder, 1 if the folder is in use
    /// or not empty or the backup is damaged, 2 if it could not be made; then nothing is left there.
    #[command(after_help = "Example:\n  tollgate restore ./copy ./tollgate-data")]
    Restore(RestoreArguments),
    /// Tries to make the store lose something on this disk.
    ///
    /// A child works at a store in a new folder and is killed (SIGKILL) at random, again and again;
    /// each time all that it was answered must be there, and what it was not answered whole or not
    /// at all. A kill leaves what the system holds in memory: what a power cut would take, this
    /// cannot show. Ends with 0 if nothing was lost and 1 if something was; then the folder is kept.
    #[command(after_help = "Example:\n  tollgate torture /mnt/disk --seconds 60")]
    Torture(TortureArguments),
    #[command(flatten)]
    Operate(operate::OperateCommand),
    /// Writes what a shell needs to complete commands.
    #[command(
        after_help = "Example:\n  tollgate completions bash > /etc/bash_completion.d/tollgate"
    )]
    Completions {
        /// Which shell.
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
    /// The child of `torture`.
    #[command(hide = true)]
    TortureLoad,
}

#[derive(Debug, Subcommand)]
enum TokenCommand {
    /// Makes a token: shows it once, and the lines for the configuration file, which hold its hash.
    #[command(
        after_help = "Example:\n  tollgate token new --name ci --role enqueue --namespace acme"
    )]
    New(NewTokenArguments),
}

#[derive(Debug, clap::Args)]
struct NewTokenArguments {
    /// Who will use it: written into the history of what it changes.
    #[arg(long, value_name = "NAME")]
    name: String,
    /// What it may do: read, enqueue, work or admin. May be given several times.
    #[arg(long = "role", value_name = "ROLE", required = true)]
    roles: Vec<Role>,
    /// The namespace it is bound to.
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,
    /// Says it in JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum StoreCommand {
    /// Reads a data folder that no server uses, all of it, and changes nothing.
    ///
    /// Every checksum is checked, every record decoded and applied, every call's body looked for.
    /// Ends with 0 if all is sound, 1 if something is damaged, 2 if that could not be found out.
    #[command(after_help = "Example:\n  tollgate store check ./tollgate-data")]
    Check(CheckArguments),
    /// Writes all that a data folder holds as lines of JSON, one fact a line.
    ///
    /// The folder is one that no server uses; of one in use, make a backup and export that. Ends with
    /// 0 if the export is whole, 1 if the folder is damaged or the file is there already, 2 if it
    /// could not be written.
    #[command(after_help = "Example:\n  tollgate store export ./copy --output all.ndjson")]
    Export(ExportArguments),
    /// Makes a data folder of an export.
    ///
    /// What it then holds exports as the same lines. Ends with 0 if the folder is there, 1 if a line
    /// is wrong or the folder is taken, 2 if it could not be made; then nothing is left there.
    #[command(after_help = "Example:\n  tollgate store import all.ndjson ./tollgate-data")]
    Import(ImportArguments),
    /// Copies all that a data folder holds into a database, where many servers share it.
    ///
    /// The folder is one that no server uses, and stays as it is; nobody has used the schema yet. History
    /// stays behind. Ends with 0 if all of it is there, 1 if the folder is damaged or the schema is in
    /// use, 2 if it could not be copied; then nothing of it is there.
    #[command(
        after_help = "Example:\n  tollgate store copy ./tollgate-data postgres://tollgate@db/tollgate"
    )]
    Copy(CopyArguments),
}

#[derive(Debug, clap::Args)]
struct CheckArguments {
    /// The folder.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Says it in JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct ExportArguments {
    /// The folder.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Writes to a new file, not to the standard output.
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Says in JSON what came of it, once it is in a file.
    #[arg(long, requires = "output")]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct ImportArguments {
    /// What `export` wrote; `-` for the standard input.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The data folder: nothing is there yet, or an empty folder.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Says in JSON what came of it.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct CopyArguments {
    /// The folder.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// The database: postgres://….
    #[arg(value_name = "URL")]
    url: StoreUrl,
    /// The schema [default: tollgate].
    #[arg(long, value_name = "NAME")]
    prefix: Option<String>,
    /// Says in JSON what came of it.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct BackupArguments {
    /// The data folder.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Where the copy is to be: nothing is there yet, or an empty folder.
    #[arg(value_name = "TARGET")]
    target: PathBuf,
    /// Says in JSON what came of it.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct RestoreArguments {
    /// What `backup` made.
    #[arg(value_name = "BACKUP")]
    backup: PathBuf,
    /// The data folder: nothing is there yet, or an empty folder.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Says in JSON what came of it.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct TortureArguments {
    /// Where to make a folder for it; up to 1 GB is used.
    #[arg(value_name = "DIR", default_value = ".")]
    folder: PathBuf,
    /// Stops after so long.
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=SECONDS_MAX))]
    seconds: u64,
    /// Stops after so many kills, if that comes first.
    #[arg(long, value_name = "N")]
    rounds: Option<u64>,
    /// Chooses what is done and about when it is killed; by default another each time.
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Says in JSON what came of it.
    #[arg(long)]
    json: bool,
}

/// Half of the longest lease: none ends while it is watched.
const SECONDS_MAX: u64 = 12 * 60 * 60;

#[derive(Debug, clap::Args)]
struct ServeArguments {
    /// The configuration file; `tollgate config` prints one with every setting. SIGHUP reads it again.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Where limits, calls and what was spent are kept; made if there is no such folder [default:
    /// ./tollgate-data].
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Keeps limits in memory instead: they start anew when the server does.
    #[arg(long, conflicts_with = "data")]
    memory: bool,
    /// Keeps all that in a database that other servers share instead: postgres://…; or limits alone, in
    /// redis://… or nats://…. TOLLGATE_STORE shows no password to those who list processes.
    #[arg(long, value_name = "URL", conflicts_with_all = ["data", "memory"])]
    store: Option<StoreUrl>,
    /// What keys begin with in Redis, the schema in PostgreSQL, the bucket in NATS [default: tollgate].
    #[arg(long, value_name = "NAME")]
    prefix: Option<String>,
    /// Where to listen [default: 127.0.0.1:8655].
    #[arg(long, value_name = "ADDR:PORT")]
    listen: Option<String>,
    /// The certificate for TLS, in PEM: a chain, the server's own first.
    #[arg(long, value_name = "FILE")]
    tls_cert: Option<PathBuf>,
    /// The certificate's private key, in PEM.
    #[arg(long, value_name = "FILE")]
    tls_key: Option<PathBuf>,
    /// How log lines look [default: text].
    #[arg(long, value_name = "FORMAT", value_enum)]
    log: Option<LogFormat>,
}

#[derive(Debug, clap::Args)]
struct DevArguments {
    /// The port on 127.0.0.1 [default: QSTASH_DEV_PORT, or 8080].
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// Where messages and all else are kept; made if there is no such folder [default: ./tollgate-dev].
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
struct DemoArguments {
    /// The port on 127.0.0.1; if another server is there, any.
    #[arg(long, value_name = "PORT", default_value_t = 8655)]
    port: u16,
    /// Keeps the server until Ctrl-C, to look around in the console.
    #[arg(long)]
    stay: bool,
}

impl ServeArguments {
    /// The settings that flags say.
    fn said(&self) -> ServerWire {
        let said = ServerWire {
            listen: self.listen.clone(),
            data: self.data.clone(),
            memory: self.memory.then_some(true),
            store: self.store.clone(),
            prefix: self.prefix.clone(),
            log_format: self.log,
            tls_cert: self.tls_cert.clone(),
            tls_key: self.tls_key.clone(),
            ..ServerWire::default()
        };
        said.with_place_meant()
    }
}

/// Runs the command that `arguments` name; the first is the name of the program.
pub fn run(arguments: impl IntoIterator<Item = OsString>, environment: Environment) -> Exit {
    let Arguments { command, serve } = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(message) => return output::usage(&message),
    };
    let ran = match command {
        Some(Command::Serve(serve)) => serve::serve(&serve, &environment),
        Some(Command::Dev(arguments)) => dev::dev(&arguments, &environment),
        Some(Command::Demo(arguments)) => demo::demo(&arguments),
        Some(Command::Config) => {
            output::text(DEFAULTS);
            Ok(Exit::Done)
        }
        Some(Command::Token(TokenCommand::New(arguments))) => token::new(&arguments),
        Some(Command::Store(StoreCommand::Check(check))) => store::check(&check),
        Some(Command::Store(StoreCommand::Export(arguments))) => export::export(&arguments),
        Some(Command::Store(StoreCommand::Import(arguments))) => export::import(&arguments),
        Some(Command::Store(StoreCommand::Copy(arguments))) => copy::copy(&arguments, &environment),
        Some(Command::Backup(arguments)) => backup::backup(&arguments),
        Some(Command::Restore(arguments)) => backup::restore(&arguments),
        Some(Command::Torture(arguments)) => torture::torture(&arguments),
        Some(Command::TortureLoad) => torture::work(),
        Some(Command::Operate(command)) => operate::operate(command, &environment),
        Some(Command::Completions { shell }) => completions(shell),
        None => serve::serve(&serve, &environment),
    };
    match ran {
        Ok(exit) => exit,
        Err(error) => {
            output::failure(&error);
            Exit::Failed
        }
    }
}

fn completions(shell: clap_complete::Shell) -> anyhow::Result<Exit> {
    let mut command = Arguments::command();
    clap_complete::generate(shell, &mut command, "tollgate", &mut output::lines());
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_make_sense() {
        Arguments::command().debug_assert();
    }

    /// All commands that do something, with the words that name them.
    fn commands() -> Vec<(String, clap::Command)> {
        fn below(name: &str, command: &clap::Command, all: &mut Vec<(String, clap::Command)>) {
            let mut parts = command.get_subcommands().filter(|it| !it.is_hide_set()).peekable();
            if parts.peek().is_none() {
                all.push((name.to_owned(), command.clone()));
            }
            for part in parts {
                below(&format!("{name} {}", part.get_name()), part, all);
            }
        }
        let mut all = Vec::new();
        below("tollgate", &Arguments::command(), &mut all);
        assert!(all.len() > 40, "{}", all.len());
        all
    }

    /// The words of a line as a shell has them, without what is redirected.
    fn words(line: &str) -> Vec<String> {
        let ends =
            |line: &str| [" > ", " || ", "   #"].iter().filter_map(|end| line.find(end)).min();
        let line = &line[..ends(line).unwrap_or(line.len())];
        let mut words = vec![String::new()];
        let mut is_quoted = false;
        for letter in line.trim().chars() {
            match letter {
                '\'' => is_quoted = !is_quoted,
                ' ' if !is_quoted => words.push(String::new()),
                other => words.last_mut().unwrap().push(other),
            }
        }
        words
    }

    fn is_understood(line: &str) {
        if let Err(error) = Arguments::try_parse_from(words(line)) {
            panic!("{line}: {error}");
        }
    }

    #[test]
    fn every_command_has_an_example_that_is_understood() {
        for (name, command) in commands() {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let examples: Vec<_> = help.lines().filter(|line| line.starts_with("  ")).collect();
            assert!(!examples.is_empty(), "{name} has no example");
            for example in examples {
                assert!(example.trim().starts_with(&name), "{name}: {example}");
                is_understood(example);
            }
        }
    }

    #[test]
    fn the_documents_know_every_command_and_no_other() {
        let document = include_str!("../../../docs/cli.md");
        let blocks = document.split("```").skip(1).step_by(2);
        let lines: Vec<_> = blocks
            .filter_map(|block| block.strip_prefix("sh\n"))
            .flat_map(str::lines)
            .filter(|line| line.starts_with("tollgate "))
            .collect();
        for (name, _) in commands() {
            let is_shown =
                lines.iter().any(|line| line.starts_with(&format!("{name} ")) || *line == name);
            assert!(is_shown, "docs/cli.md does not show {name}");
        }
        lines.into_iter().for_each(is_understood);
    }

    #[test]
    fn serving_is_what_it_does_without_a_command() {
        let parse = |arguments: &[&str]| {
            let Arguments { command, serve } = Arguments::try_parse_from(arguments).unwrap();
            match command {
                Some(Command::Serve(serve)) => serve.listen,
                None => serve.listen,
                Some(other) => panic!("{other:?}"),
            }
        };
        assert_eq!(parse(&["tollgate"]), None);
        assert_eq!(parse(&["tollgate", "serve"]), None);
        assert_eq!(parse(&["tollgate", "--listen", "[::1]:1"]).unwrap(), "[::1]:1");
        assert_eq!(parse(&["tollgate", "serve", "--listen", "[::1]:1"]).unwrap(), "[::1]:1");
    }
}

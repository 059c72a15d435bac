//! A reader who does what a page says: a server of its own, a shell, and what was learned on the way.

use super::answer::Learned;
use super::database::Database;
use super::page::Block;
use super::text::{ids, is_alike, says_the_same};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use tempfile::TempDir;

/// Where pages say that the server is.
const WRITTEN: [&str; 2] = ["localhost:8655", "127.0.0.1:8655"];

/// Where pages say that a database is.
const WRITTEN_DATABASE: &str = "postgres://tollgate@db/tollgate";

/// Folders of a whole machine, and what stands for them in the reader's own.
const FOLDERS: [(&str, &str); 4] = [
    ("/var/lib/tollgate", "tollgate-data"),
    ("/backup/", "backup-"),
    ("/mnt/disk", "."),
    ("/etc/bash_completion.d/", "completes-"),
];

/// What comes before each block of commands. Variables last from one block to the next. What a page says
/// to start is running already; building, testing and the demonstration are not for here. What goes on until
/// it is ended gets a second.
const BEFORE: &str = r#"
set -aeo pipefail
! [ -f "$READER/variables" ] || . "$READER/variables"
tollgate() {
  case $1 in
    serve|dev|demo) ;;
    events) timeout 1 tollgate "$@" || [ $? = 124 ] ;;
    torture) command tollgate torture "$2" --seconds 1 ;;
    *) command tollgate "$@" ;;
  esac
}
curl() {
  local code=0 most=30
  case " $* " in *' -N '*) most=1 ;; esac
  command curl -sS --max-time $most -D "$READER/head" "$@" || code=$?
  cat "$READER/head" >>"$READER/heads"
  # A stream does not end by itself.
  [ $code = 0 ] || [ $most$code = 128 ]
}
"#;

const AFTER: &str = "\nexport -p >\"$READER/variables\"\n";

/// Commands that are not for a page's server.
const LEFT_OUT: [&str; 2] = ["cargo ", "./test"];

pub(crate) struct Reader {
    server: Child,
    address: String,
    /// Where the server keeps all, if it is not in a folder, or what all is copied to.
    database: Option<Database>,
    folder: TempDir,
    learned: Learned,
    /// What the last commands printed, and the heads of the answers they got.
    printed: String,
    heads: Vec<String>,
    /// Problems that came and were not shown yet.
    refused: Vec<u16>,
}

impl Drop for Reader {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

impl Reader {
    /// One whose server has a folder.
    pub(crate) fn new() -> Self {
        Self::with(tempfile::tempdir().unwrap(), None, ["--data", "tollgate-data"])
    }

    /// One whose server has a folder, and who has a PostgreSQL beside it.
    pub(crate) fn beside_a_database() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let database = Database::start(folder.path());
        Self::with(folder, Some(database), ["--data", "tollgate-data"])
    }

    /// One whose server has a PostgreSQL of its own.
    pub(crate) fn in_a_database() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let database = Database::start(folder.path());
        let url = database.url();
        Self::with(folder, Some(database), ["--store", &url])
    }

    fn with(folder: TempDir, database: Option<Database>, kept_in: [&str; 2]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
        command.args(["serve", "--listen", "127.0.0.1:0"]).args(kept_in);
        command.current_dir(&folder).env_remove("TOLLGATE_TOKEN").env("TOLLGATE_LOG", "warn");
        // Pages push to the server itself, for a reader has nothing else that listens.
        command.env("TOLLGATE_PUSH_ALLOW_ADDRESSES", "127.0.0.1");
        let mut server = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let line = BufReader::new(server.stdout.take().unwrap()).lines().next().unwrap().unwrap();
        let address = line.strip_prefix("tollgate listens on http://").unwrap().to_owned();
        let (learned, printed) = (Learned::default(), String::new());
        let (heads, refused) = (Vec::new(), Vec::new());
        Self { server, address, database, folder, learned, printed, heads, refused }
    }

    /// Does what a block says, or compares it with what came of those before it.
    pub(crate) fn take(&mut self, block: &Block) -> Result<(), String> {
        if !block.is_answer || block.language == "sh" {
            self.nothing_is_left_unsaid()?;
        }
        let text = block.text.as_str();
        if let Some(file) = &block.file {
            fs::write(self.path().join(file), text).unwrap();
            return Ok(());
        }
        match (block.language.split(',').next().unwrap_or_default(), block.is_answer) {
            ("sh", _) => self.run(text),
            ("json", true) => self.answered(text),
            ("json", false) => values(text).map(drop),
            ("http", true) => self.answered_with_head(text),
            ("text" | "", true) => self.told(text),
            ("bash", _) => self.done("bash", &["-n"], text),
            ("toml", _) => self.applied(text),
            ("yaml", _) => read_yaml(text),
            ("sql", _) => self.asked(text),
            ("js", _) => self.done("node", &["--input-type=module"], text),
            ("python", _) => self.done("python3", &["-"], text),
            // Rust is compiled by the doctests.
            ("rust" | "text" | "", _) => Ok(()),
            (language, _) => Err(format!("nobody knows what to do with {language:?}")),
        }
    }

    fn run(&mut self, text: &str) -> Result<(), String> {
        let is_for_us = |line: &&str| !LEFT_OUT.iter().any(|command| line.starts_with(command));
        let lines: Vec<&str> = text.lines().filter(is_for_us).collect();
        let heads = self.path().join("heads");
        fs::write(&heads, "").unwrap();
        let output = self.spawn("bash", &["-s"], &format!("{BEFORE}{}{AFTER}", lines.join("\n")));
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        self.printed = String::from_utf8_lossy(&output.stdout).into_owned();
        let heads = fs::read_to_string(heads).unwrap().replace('\r', "");
        self.heads = heads.split_terminator("\n\n").map(str::to_owned).collect();
        self.refused = self.heads.iter().map(|head| status(head)).filter(|it| *it >= 400).collect();
        self.remember();
        let said = format!("{}{error}", self.printed);
        if output.status.success() { Ok(()) } else { Err(format!("{}: {said}", output.status)) }
    }

    /// Puts leases and receipts of answers into the variables that pages use for them.
    fn remember(&self) {
        let Ok(values) = values(&self.printed) else { return };
        let mut lines = String::new();
        for value in &values {
            let leases = value["calls"].as_array().into_iter().flatten().map(|call| &call["lease"]);
            let names = ["LEASE", "OTHER"].into_iter().zip(leases);
            for (name, text) in names.chain([("RECEIPT", &value["receipt"])]) {
                lines.extend(text.as_str().map(|text| format!("export {name}='{text}'\n")));
            }
        }
        let mut options = fs::OpenOptions::new();
        let file = options.append(true).create(true).open(self.path().join("variables"));
        file.unwrap().write_all(lines.as_bytes()).unwrap();
    }

    fn answered(&mut self, text: &str) -> Result<(), String> {
        let (shown, came) = (values(text)?, values(&self.printed)?);
        if came.len() < shown.len() {
            return Err(format!("only {} answers came: {}", came.len(), self.printed));
        }
        for (shown, came) in shown.iter().zip(&came[came.len() - shown.len()..]) {
            self.learned.compare(shown, came).map_err(|fault| format!("{fault}\n{came}"))?;
            let problem = shown["status"].as_u64().and_then(|status| u16::try_from(status).ok());
            self.refused.retain(|status| Some(*status) != problem);
        }
        Ok(())
    }

    fn answered_with_head(&mut self, text: &str) -> Result<(), String> {
        let (head, body) = text.split_once("\n\n").unwrap_or((text, ""));
        let came = self.heads.last().cloned().unwrap_or_default();
        if status(head) != status(&came) {
            return Err(format!("the answer is {came}"));
        }
        let has = |line: &str| came.lines().any(|other| is_alike(line, other));
        if let Some(line) = head.lines().skip(1).find(|line| !has(line)) {
            return Err(format!("{line:?} is not in {came}"));
        }
        self.answered(body)?;
        self.refused.retain(|refused| *refused != status(head));
        Ok(())
    }

    fn told(&mut self, text: &str) -> Result<(), String> {
        let is_stream = self.heads.iter().any(|head| head.contains("text/event-stream"));
        let is_cut = text.lines().next() != self.printed.lines().next() && text.contains("# HELP");
        if is_stream || is_cut {
            return Ok(());
        }
        if !says_the_same(text, &self.printed) {
            return Err(format!("it said\n{}", self.printed));
        }
        for (shown, came) in ids(text).zip(ids(&self.printed)) {
            self.learned.learn(shown, came);
        }
        Ok(())
    }

    /// Fails if a problem came that the page does not show.
    pub(crate) fn nothing_is_left_unsaid(&mut self) -> Result<(), String> {
        match std::mem::take(&mut self.refused).as_slice() {
            [] => Ok(()),
            refused => Err(format!("above, answers were {refused:?}: {}", self.printed)),
        }
    }

    fn applied(&mut self, text: &str) -> Result<(), String> {
        fs::write(self.path().join("page.toml"), self.here(text)).unwrap();
        self.run("tollgate apply page.toml")
    }

    /// Runs SQL as a reader would, with `psql`.
    fn asked(&mut self, text: &str) -> Result<(), String> {
        let url = self.database.as_ref().ok_or("the page has no database")?.url();
        self.done("psql", &[&url, "-qtA", "-v", "ON_ERROR_STOP=1"], text)
    }

    fn done(&mut self, program: &str, arguments: &[&str], text: &str) -> Result<(), String> {
        let Output { status, stdout, stderr } = self.spawn(program, arguments, text);
        self.printed = String::from_utf8_lossy(&stdout).into_owned();
        let error = String::from_utf8_lossy(&stderr);
        if status.success() { Ok(()) } else { Err(format!("{status}: {}{error}", self.printed)) }
    }

    fn spawn(&self, program: &str, arguments: &[&str], text: &str) -> Output {
        let commands = Path::new(env!("CARGO_BIN_EXE_tollgate")).parent().unwrap();
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.path());
        command.env("PATH", format!("{}:{path}", commands.display()));
        command.env("READER", self.path()).env("TOLLGATE_URL", format!("http://{}", self.address));
        // Nobody is asked but the server.
        command.env_remove("TOLLGATE_TOKEN").env("NO_PROXY", "*").env("no_proxy", "*");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut running = command.spawn().unwrap_or_else(|why| panic!("{program}: {why}"));
        let text = self.learned.told(&self.here(text));
        running.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        running.wait_with_output().unwrap()
    }

    /// A text of the page with the server and the folders that are here.
    fn here(&self, text: &str) -> String {
        let server = WRITTEN.map(|written| (written, self.address.as_str()));
        let database = self.database.as_ref().map(Database::url);
        let database = database.iter().map(|url| (WRITTEN_DATABASE, url.as_str()));
        let places = server.into_iter().chain(database).chain(FOLDERS);
        places.fold(text.to_owned(), |text, (written, here)| text.replace(written, here))
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// The JSON documents of a text, one behind the other.
fn values(text: &str) -> Result<Vec<Value>, String> {
    let values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    values.collect::<Result<_, _>>().map_err(|fault| format!("{fault} in {text}"))
}

fn read_yaml(text: &str) -> Result<(), String> {
    serde_saphyr::from_str::<Value>(text).map(drop).map_err(|fault| fault.to_string())
}

/// The status in a head; 0 if there is none.
fn status(head: &str) -> u16 {
    head.split_whitespace().nth(1).and_then(|status| status.parse().ok()).unwrap_or_default()
}

//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use crate::reading_args::ReadingArgs;
use clap::{Args, Parser, Subcommand, ValueEnum};
use tenaz_client::limits as client_limits;
use tenaz_engine::{JobTime, NoTime, Workload};
use tenaz_runtime::format::{DecimalMark, Format};

use crate::cluster_args::{GatewayArgs, WorkerArgs};
use crate::screen::MessageFormat;
use crate::supervision_args::{BrokerNodeArgs, ChaosArgs, DownArgs, ProbeArgs, StatusArgs, SupervisorArgs, UpArgs};
use crate::transport_args::TransportArgs;

/// Answers analytical questions over large CSV exports, in one pass.
#[derive(Debug, Parser)]
#[command(
    name = "tenaz",
    version,
    about,
    after_help = "Examples:\n  tenaz demo\n  tenaz generate coffee --scale 0.05 --out data\n  tenaz run coffee --data data\n  tenaz run coffee --data data --query q1 --format csv > q1.csv\n  tenaz sql --data my_csv_files\n  tenaz sql --data my_csv_files \"SELECT count(*) FROM orders\"\n\nResults go to standard output, everything else to standard error.\nExit codes: 0 done, 1 the work failed, 2 wrong usage, 75 try again later, 130 stopped."
)]
pub(crate) struct Cli {
    /// Say nothing on standard error but errors.
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Generate a little coffee data, ask all questions, and show the answers.
    Demo(DemoArgs),
    /// Generate data in the layout of a real data set, the same for the same seed.
    Generate(GenerateArgs),
    /// Answer the questions of a workload from the CSV files of a directory.
    Run(RunArgs),
    /// The same on a cluster: send the files to a gateway, and fetch the answers.
    Submit(SubmitArgs),
    /// Answer your own questions from the CSV files of a directory; without a question, list the tables and open a shell.
    Sql(SqlArgs),
    /// The same on a page in the browser: ask, look at rows and charts, drop files; without a cluster.
    Ui(UiArgs),
    /// Write a workload file for the CSV files of a directory, to edit and run.
    Init(InitArgs),
    /// Show the stages in which a workload's questions are answered.
    Explain(ExplainArgs),
    /// Start a whole cluster on this machine, and keep it alive.
    Up(UpArgs),
    /// Show who of a cluster runs, who leads, and which jobs there are.
    Status(StatusArgs),
    /// Stop a cluster in order; nothing stays behind.
    Down(DownArgs),
    /// Kill, pause and restart processes of a running cluster, on purpose.
    Chaos(ChaosArgs),
    /// Take jobs, data and questions of clients over HTTP, and hand out results: one of many.
    Gateway(GatewayArgs),
    /// Work on the jobs of a cluster: one of many, on any machine.
    Worker(WorkerArgs),
    /// Keep the processes of a cluster alive: one of several, of which one leads.
    Supervisor(SupervisorArgs),
    /// A private RabbitMQ node that supervisors can watch; `tenaz up` starts it.
    #[command(hide = true)]
    Broker(BrokerNodeArgs),
    /// Ask a process of a cluster how it is, for health checks.
    #[command(hide = true)]
    Probe(ProbeArgs),
    /// Write a completion script for a shell.
    Completions(CompletionsArgs),
    /// Write the manual pages into a directory, for packages.
    #[command(hide = true)]
    Man(ManArgs),
}

impl Command {
    /// What this command writes to standard error.
    pub(crate) fn message_format(&self) -> MessageFormat {
        match self {
            Self::Run(args) => args.output.message_format,
            Self::Submit(args) => args.output.message_format,
            Self::Sql(args) => args.output.message_format,
            _ => MessageFormat::Text,
        }
    }
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  tenaz demo\n  tenaz demo --chaos\n\nWith --chaos a small cluster of this machine answers the questions while its workers, gateways, supervisors and its broker\nare killed, and the fingerprints of the answers are compared with those of an undisturbed run."
)]
pub(crate) struct DemoArgs {
    /// On a cluster, while its processes are killed. Needs RabbitMQ on this machine.
    #[arg(long)]
    pub(crate) chaos: bool,
    /// How long the chaos lasts.
    #[arg(long = "for", value_name = "TIME", value_parser = crate::cluster_args::duration, default_value = "20s", requires = "chaos")]
    pub(crate) duration: Duration,
    /// How much data: 1 is the volume of the real data set.
    #[arg(long, value_name = "F", default_value_t = 0.005)]
    pub(crate) scale: f64,
    /// Another seed gives other data.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Working threads [default: one per core].
    #[arg(long, value_name = "N", env = "TENAZ_THREADS", value_parser = threads)]
    pub(crate) threads: Option<usize>,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  tenaz generate coffee --out data\n  tenaz generate coffee --scale 0.05 --seed 7 --out data"
)]
pub(crate) struct GenerateArgs {
    /// Which data set.
    #[arg(value_name = "coffee|steam|books", value_parser = dataset)]
    pub(crate) dataset: tenaz_generate::Dataset,
    /// Where to write the files; the directory is made if it is missing.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// How much data, from 0.0001 to 10: 1 is the volume of the real data set.
    #[arg(long, value_name = "F", default_value_t = 1.0)]
    pub(crate) scale: f64,
    /// Another seed gives other data.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Writing threads [default: one per core].
    #[arg(long, value_name = "N", env = "TENAZ_THREADS", value_parser = threads)]
    pub(crate) threads: Option<usize>,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  tenaz run coffee --data data\n  tenaz run coffee --data data --query q1,q3 --out results\n  tenaz run coffee --data data --query q4 --format json\n  tenaz run my/workload.toml --data exports --strict\n\nWith --out, every answer goes to <query>.<format>, the counts and fingerprints to summary.json, and bad records,\nif there are any, to rejects.csv. The fingerprint of an answer is the SHA-256 of its CSV form."
)]
pub(crate) struct RunArgs {
    /// A bundled workload (coffee, …) or the path of a workload file.
    #[arg(value_name = "WORKLOAD")]
    pub(crate) workload: String,
    /// The directory with the CSV files.
    #[arg(long, value_name = "DIR", env = "TENAZ_DATA")]
    pub(crate) data: PathBuf,
    /// Only these queries [default: all].
    #[arg(long, value_name = "Q1,Q2", value_delimiter = ',')]
    pub(crate) query: Vec<String>,
    #[command(flatten)]
    pub(crate) time: TimeArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) engine: EngineArgs,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  tenaz submit coffee --data data --gateway http://localhost:8080 --out results\n  tenaz submit coffee --data data --gateway http://one:8080,http://two:8080 --query q1 --format csv\n  tenaz submit coffee --data data --gateway http://localhost:8080 --resume 0123456789abcdef --out results\n  tenaz submit --gateway http://localhost:8080 --cancel 0123456789abcdef\n\nWrites what `tenaz run` writes. Any gateway will do, and another one takes over when it fails. A job outlives its client:\n--resume goes on from any machine that has the same files, and sends only what is missing."
)]
pub(crate) struct SubmitArgs {
    /// A bundled workload (coffee, …) or the path of a workload file.
    #[arg(value_name = "WORKLOAD", required_unless_present_any = ["resume", "cancel"])]
    pub(crate) workload: Option<String>,
    /// The directory with the CSV files.
    #[arg(long, value_name = "DIR", env = "TENAZ_DATA", required_unless_present_any = ["resume", "cancel"])]
    pub(crate) data: Option<PathBuf>,
    /// The gateways, http://HOST:PORT; one is chosen at random, the others are there when it fails.
    #[arg(long, value_name = "URL,URL", env = "TENAZ_GATEWAY", value_delimiter = ',', required = true)]
    pub(crate) gateway: Vec<String>,
    /// Only these queries [default: all].
    #[arg(long, value_name = "Q1,Q2", value_delimiter = ',')]
    pub(crate) query: Vec<String>,
    /// Go on with this job.
    #[arg(long, value_name = "JOB")]
    pub(crate) resume: Option<String>,
    /// End this job, and forget it.
    #[arg(long, value_name = "JOB", conflicts_with = "resume")]
    pub(crate) cancel: Option<String>,
    /// Leave when the data is sent; the job's name goes to standard output, and --resume fetches the answers.
    #[arg(long)]
    pub(crate) detach: bool,
    /// Leave the job on the cluster after its answers were fetched, until it expires.
    #[arg(long)]
    pub(crate) keep: bool,
    #[command(flatten)]
    pub(crate) time: TimeArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    /// The token that the gateways ask for.
    #[arg(long, value_name = "TOKEN", env = "TENAZ_TOKEN", hide_env_values = true)]
    pub(crate) token: Option<String>,
    /// A file with the token in its first line, instead of --token.
    #[arg(long, value_name = "FILE", env = "TENAZ_TOKEN_FILE", conflicts_with = "token")]
    pub(crate) token_file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) transport: TransportArgs,
    /// Fail at the first bad record.
    #[arg(long)]
    pub(crate) strict: bool,
    /// How chunks travel [default: none to this machine, zstd to others].
    #[arg(long, value_enum, value_name = "METHOD", env = "TENAZ_COMPRESS")]
    pub(crate) compress: Option<CompressArg>,
    /// Chunks in flight.
    #[arg(long, value_name = "N", env = "TENAZ_PARALLEL", default_value_t = client_limits::DEFAULT_PARALLEL as u16, value_parser = clap::value_parser!(u16).range(1..=client_limits::MAX_PARALLEL as i64))]
    pub(crate) parallel: u16,
    /// Seconds without any gateway being of use, after which to give up with exit code 75.
    #[arg(long, value_name = "SECONDS", env = "TENAZ_PATIENCE", default_value = "60", value_parser = seconds)]
    pub(crate) patience: Duration,
    /// Memory for the answers' rows; what does not fit goes to temporary files. Bytes, or with K, M, G.
    #[arg(long, value_name = "SIZE", env = "TENAZ_MEMORY", value_parser = size, default_value = "256M")]
    pub(crate) memory: usize,
    /// Bytes of a chunk, from 1K to 8M; answers do not depend on it [default: as the gateway says].
    #[arg(long, value_name = "SIZE", value_parser = sent_chunk_size)]
    pub(crate) chunk_size: Option<usize>,
    /// Slices of the keys, from 1 to 256; answers do not depend on it [default: by the size of the data].
    #[arg(long, value_name = "P", env = "TENAZ_PARTITIONS", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) partitions: Option<u16>,
}

/// How chunks travel.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum CompressArg {
    /// As they are.
    None,
    /// Nearly free, saves a quarter.
    Lz4,
    /// Saves more than half.
    Zstd,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  tenaz sql --data exports\n  tenaz sql --data exports \"SELECT city, count(*) AS n FROM customers GROUP BY city ORDER BY n DESC\"\n  tenaz sql --data exports --file questions.sql --out results\n  echo \"SELECT * FROM orders LIMIT 5\" | tenaz sql --data exports --format csv\n  tenaz sql --data exports --types zip=text,orders.price='decimal(12,2)' \"SELECT sum(price) FROM orders\"\n  tenaz sql --data exports --gateway http://localhost:8080 \"SELECT count(*) FROM orders\"\n\nEvery CSV file is a table (orders.csv is orders), and so is every folder of files of the same shape. Delimiter, header,\nnames and types are guessed from a sample; --types overrules. Several queries, separated by ; are answered in one pass;\na comment in front, `-- name: best_sellers`, names a query. SHOW TABLES, DESCRIBE t, SUMMARIZE t, EXPLAIN SELECT …\nand COPY (SELECT …) TO 'file.csv' are queries, too; CREATE VIEW v AS … is for those behind it. now() is fixed for a job (--now)."
)]
pub(crate) struct SqlArgs {
    /// The query, or several separated by `;`; `-` reads standard input.
    #[arg(value_name = "SQL", conflicts_with = "file", allow_hyphen_values = true, value_parser = parse_question)]
    pub(crate) sql: Option<String>,
    /// The directory with the CSV files, or one file, plain or compressed; `-` reads data from standard input.
    #[arg(long, value_name = "DIR", env = "TENAZ_DATA")]
    pub(crate) data: PathBuf,
    /// Read the queries from this file; `-` is standard input.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// A value for `$NAME` in the queries: a number, a date, a text; may be given several times.
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) set: Vec<String>,
    /// Types of columns, where the guess is wrong: int, decimal(P,S), float, timestamp, date, bool or text; `*` is every column.
    /// Behind a colon, how values are written: date:%d.%m.%Y, timestamp:%s, decimal(12,2):comma, bool:ja/nein.
    #[arg(long, value_name = "COLUMN=TYPE,…")]
    pub(crate) types: Vec<String>,
    #[command(flatten)]
    pub(crate) time: TimeArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) engine: EngineArgs,
    /// Ask on a cluster: its gateways, http://HOST:PORT.
    #[arg(long, value_name = "URL,URL", value_delimiter = ',')]
    pub(crate) gateway: Vec<String>,
    /// The token that the gateways ask for.
    #[arg(long, value_name = "TOKEN", env = "TENAZ_TOKEN", hide_env_values = true)]
    pub(crate) token: Option<String>,
    /// A file with the token in its first line, instead of --token.
    #[arg(long, value_name = "FILE", env = "TENAZ_TOKEN_FILE", conflicts_with = "token")]
    pub(crate) token_file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) transport: TransportArgs,
    #[command(flatten)]
    pub(crate) reading: ReadingArgs,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  tenaz ui --data exports\n  tenaz ui\n\nThe page is served on this machine only, and its address holds a token. Files that are dropped onto the page stay on this\nmachine, in a temporary directory that is removed at the end."
)]
pub(crate) struct UiArgs {
    /// The directory with the CSV files, or one file [default: none; files can be dropped onto the page].
    #[arg(long, value_name = "DIR", env = "TENAZ_DATA")]
    pub(crate) data: Option<PathBuf>,
    /// Where to listen; the port 0 is any that is free.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub(crate) listen: std::net::SocketAddr,
    /// Print the address of the page, and do not open it.
    #[arg(long)]
    pub(crate) no_open: bool,
    /// Types of columns, where the guess is wrong, as for `tenaz sql`.
    #[arg(long, value_name = "COLUMN=TYPE,…")]
    pub(crate) types: Vec<String>,
    #[command(flatten)]
    pub(crate) engine: EngineArgs,
    #[command(flatten)]
    pub(crate) reading: ReadingArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  tenaz init exports\n  tenaz run exports/workload.toml --data exports")]
pub(crate) struct InitArgs {
    /// The directory with the CSV files.
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// The file to write; `-` is standard output [default: workload.toml in the directory].
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Replace the file if it is there.
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) reading: ReadingArgs,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct OutputArgs {
    /// Write answers, summary.json and rejects.csv into this directory instead of to standard output.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Write the only answer to this file; its ending says the format: .csv, .tsv, .json, .ndjson, .md, .xlsx, .arrow,
    /// .arrows (a stream).
    #[arg(long, short = 'o', value_name = "FILE", conflicts_with = "out")]
    pub(crate) output: Option<PathBuf>,
    /// The format of the answers [default: table on standard output, csv in a directory].
    #[arg(long, value_name = "FORMAT", env = "TENAZ_FORMAT", value_parser = format)]
    pub(crate) format: Option<Format>,
    /// Show answers of two columns, of which the second is a number, as bars.
    #[arg(long, conflicts_with_all = ["format", "out", "output"])]
    pub(crate) chart: bool,
    /// Write numbers with a decimal comma, and CSV with semicolons, as spreadsheets of many countries read them. Fingerprints stay those
    /// of the CSV with points.
    #[arg(long, conflicts_with = "chart")]
    pub(crate) write_decimal_comma: bool,
    /// Bad records are no failure, however many there are [default: exit code 1 if more than 1 % of a table is rejected].
    #[arg(long, env = "TENAZ_ACCEPT_REJECTS", hide_env_values = true)]
    pub(crate) accept_rejects: bool,
    /// Rows shown of each answer in a table on standard output; 0 shows all.
    #[arg(long, value_name = "N", default_value_t = 40)]
    pub(crate) rows: u64,
    /// Rows of a query without ORDER BY go to standard output in the order of its file, not as they become known.
    #[arg(long)]
    pub(crate) sorted: bool,
    /// What standard error has: text for people, or a JSON record on every line for programs.
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t, hide_possible_values = true)]
    pub(crate) message_format: MessageFormat,
}

impl OutputArgs {
    /// What is usual for jobs that commands make by themselves: a few rows of each answer on standard output.
    pub(crate) fn usual() -> Self {
        Self {
            out: None,
            output: None,
            format: None,
            chart: false,
            write_decimal_comma: false,
            accept_rejects: false,
            rows: 12,
            sorted: false,
            message_format: MessageFormat::Text,
        }
    }
}

impl OutputArgs {
    /// The mark in the numbers of answers.
    pub(crate) fn decimal_mark(&self) -> DecimalMark {
        if self.write_decimal_comma { DecimalMark::Comma } else { DecimalMark::Point }
    }
}

/// What `now()` is.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct TimeArgs {
    /// What now(), today() and their like are, such as 2025-06-30 or 2025-06-30T12:00:00Z [default: when the job begins].
    #[arg(long, value_name = "TIME", env = "TENAZ_NOW", value_parser = time)]
    pub(crate) now: Option<JobTime>,
}

impl TimeArgs {
    /// Fixes the time of a job: as said here, else as its workload file says, else by the clock.
    pub(crate) fn fix(&self, workload: &mut Workload) {
        workload.time = Some(self.now.or(workload.time).unwrap_or_else(JobTime::of_clock));
    }
}

fn time(text: &str) -> Result<JobTime, String> {
    text.parse().map_err(|error: NoTime| error.to_string())
}

#[derive(Debug, Args)]
pub(crate) struct EngineArgs {
    /// Working threads [default: one per core].
    #[arg(long, value_name = "N", env = "TENAZ_THREADS", value_parser = threads)]
    pub(crate) threads: Option<usize>,
    /// Fail at the first bad record.
    #[arg(long)]
    pub(crate) strict: bool,
    /// Memory for rows at rest; what does not fit goes to temporary files. Bytes, or with K, M, G.
    #[arg(long, value_name = "SIZE", env = "TENAZ_MEMORY", value_parser = size, default_value = "256M")]
    pub(crate) memory: usize,
    /// Bytes of a chunk, the unit of work; answers do not depend on it [default: by the size of the data].
    #[arg(long, value_name = "SIZE", env = "TENAZ_CHUNK_SIZE", value_parser = chunk_size)]
    pub(crate) chunk_size: Option<usize>,
    /// Slices of the keys, from 1 to 256; answers do not depend on it [default: by the size of the data].
    #[arg(long, value_name = "P", env = "TENAZ_PARTITIONS", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) partitions: Option<u16>,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  tenaz explain coffee --query q4\n  tenaz explain coffee --format dot | dot -Tsvg > coffee.svg"
)]
pub(crate) struct ExplainArgs {
    /// A bundled workload (coffee, …) or the path of a workload file.
    #[arg(value_name = "WORKLOAD")]
    pub(crate) workload: String,
    /// Only these queries [default: all].
    #[arg(long, value_name = "Q1,Q2", value_delimiter = ',')]
    pub(crate) query: Vec<String>,
    #[command(flatten)]
    pub(crate) time: TimeArgs,
    /// How to show the stages.
    #[arg(long, value_enum, default_value_t = ExplainFormat::Text)]
    pub(crate) format: ExplainFormat,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum ExplainFormat {
    /// For reading.
    Text,
    /// For Graphviz.
    Dot,
    /// For programs.
    Json,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  tenaz completions bash > ~/.local/share/bash-completion/completions/tenaz")]
pub(crate) struct CompletionsArgs {
    /// The shell.
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// The directory; it is made if it is missing.
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
}

pub(crate) fn format(text: &str) -> Result<Format, String> {
    Format::ALL.iter().copied().find(|f| f.name() == text).ok_or_else(|| {
        let names: Vec<&str> = Format::ALL.iter().map(|f| f.name()).collect();
        match text {
            "parquet" => {
                "this tenaz was built without it; build with `cargo build --release --features parquet`".to_owned()
            }
            _ => format!("write one of {}", names.join(", ")),
        }
    })
}

fn dataset(text: &str) -> Result<tenaz_generate::Dataset, String> {
    text.parse().map_err(|e: tenaz_generate::Error| e.to_string())
}

pub(crate) fn threads(text: &str) -> Result<usize, String> {
    let most = tenaz_runtime::limits::MAX_THREADS;
    match text.parse() {
        Ok(n) if (1..=most).contains(&n) => Ok(n),
        _ => Err(format!("write a number from 1 to {most}")),
    }
}

pub(crate) fn size(text: &str) -> Result<usize, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        _ => return Err("write bytes, or a number with K, M or G, such as 256M".to_owned()),
    };
    let number: Option<usize> = digits.parse().ok().and_then(|n: usize| n.checked_mul(1 << shift));
    number.filter(|n| *n > 0).ok_or_else(|| "write bytes, or a number with K, M or G, such as 256M".to_owned())
}

fn chunk_size(text: &str) -> Result<usize, String> {
    match size(text)? {
        n if n <= 1 << 30 => Ok(n),
        _ => Err("a chunk has at most 1G".to_owned()),
    }
}

/// A chunk that gateways take.
pub(crate) fn sent_chunk_size(text: &str) -> Result<usize, String> {
    match size(text)? {
        n if (client_limits::MIN_CHUNK_BYTES..=client_limits::MAX_CHUNK_BYTES).contains(&n) => Ok(n),
        _ => Err("a chunk that is sent has from 1K to 8M".to_owned()),
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().and_then(|seconds: f64| Duration::try_from_secs_f64(seconds).ok());
    seconds.ok_or_else(|| "write a number of seconds".to_owned())
}

/// A question may begin with a comment (`-- name: sales`), but a lone word with dashes is an option that there is not.
fn parse_question(text: &str) -> Result<String, String> {
    let is_word = text.starts_with("--") && text.len() > 2 && !text.contains(char::is_whitespace);
    if is_word { Err("there is no such option, and it asks nothing".to_owned()) } else { Ok(text.to_owned()) }
}

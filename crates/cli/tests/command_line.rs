//! What a user meets: exit codes, one clear sentence for everything that goes wrong, and no litter.
#![allow(clippy::unwrap_used)]

mod program;
mod shop;

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};

use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Decimal128Type, Int64Type};
use datafusion::arrow::ipc::reader::FileReader;
use program::{Finished, command, files, generated, run_coffee, tenaz};
use shop::{Shop, TRANSACTIONS, transaction};

const AT: &str = "2024-02-02 12:00:00";

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Two rows for q1, with everything that needs care in some format.
fn quirky_shop() -> Shop {
    let shop = Shop::new();
    let lines = [
        transaction("\"a,b | \"\"c\"\" \\ d\"", "1", "1.0", "75.5", AT),
        transaction("", "1", "1.0", "76.0", AT),
        transaction("é\tñ", "1", "1.0", "100.125", AT),
    ];
    shop.lines("transactions/transactions_202401.csv", TRANSACTIONS, lines);
    shop
}

/// The rows of q1 on that data, sorted.
const QUIRKY: [(Option<&str>, &str); 3] =
    [(None, "76.000"), (Some("a,b | \"c\" \\ d"), "75.500"), (Some("é\tñ"), "100.125")];

#[test]
fn every_help_shows_examples() {
    for command in ["", "demo", "generate", "run", "submit", "explain"] {
        let help = tenaz(command.split(' ').filter(|word| !word.is_empty()).chain(["--help"])).must(0);
        assert!(help.text().contains("Example") && help.text().contains("  tenaz "), "{command:?}: {}", help.text());
    }
}

#[test]
fn wrong_usage_exits_2_and_says_what_to_write() {
    let shop = Shop::new();
    let data = text(shop.path());
    tenaz(["run", "coffee", "--data", data, "--query", "q2_solt"]).must(2).says(&[
        "no query \"q2_solt\"",
        "did you mean q2_sold?",
        "q1, q2_sold, q2_profit, q3, q4",
    ]);
    tenaz(["run", "cofee", "--data", data]).must(2).says(&["no workload \"cofee\"", "coffee"]);
    tenaz(["explain", "coffee", "--query", "nothing"]).must(2).says(&["no query \"nothing\"", "q1"]);
    for scale in ["0", "11", "0.00001", "-1", "NaN"] {
        let out = shop.at("generated");
        let done = tenaz(["generate", "coffee", &format!("--scale={scale}"), "--out", text(&out)]).must(2);
        done.says(&["scale", "0.0001 to 10"]);
        assert!(!out.exists(), "nothing is made for a scale of {scale}");
    }
    for format in ["csv", "tsv", "json", "arrow"] {
        let done = tenaz(["run", "coffee", "--data", data, "--format", format]).must(2);
        assert!(done.out.is_empty());
        done.says(&["5 answers do not fit into one", "--query", "--out"]);
    }
    for (more, part) in [
        (["--format", "xml"], "table, csv, tsv, json, ndjson, markdown, arrow"),
        (["--threads", "0"], "from 1 to 256"),
        (["--memory", "lots"], "such as 256M"),
        (["--chunk-size", "2G"], "at most 1G"),
        (["--partitions", "0"], "1..=256"),
    ] {
        let done = tenaz(["run", "coffee", "--data", data, more[0], more[1]]).must(2);
        assert!(done.err.contains(part), "{}", done.err);
    }
    let done = tenaz(["frobnicate"]).must(2);
    assert!(done.err.contains("unrecognized subcommand"), "{}", done.err);
    tenaz(["run", "coffee"]).must(2);
}

#[test]
fn data_that_is_not_there_exits_1_and_is_named() {
    let shop = Shop::new();
    tenaz(["run", "coffee", "--data", "/no/such/place"]).must(1).says(&["there is no directory /no/such/place"]);
    let file = shop.at("stores/stores.csv");
    tenaz(["run", "coffee", "--data", text(&file)]).must(1).says(&["there is no directory"]);
    fs::remove_dir_all(shop.at("users")).unwrap();
    let data = text(shop.path());
    tenaz(["run", "coffee", "--data", data]).must(1).says(&["no file for table users", "users/*.csv", data]);
    tenaz(["run", "coffee", "--data", data, "--query", "q1"]).must(0);
    fs::create_dir(shop.at("stores/more.csv")).unwrap();
    tenaz(["run", "coffee", "--data", data, "--query", "q3"]).must(1).says(&["stores/more.csv is a directory"]);
    tenaz(["run", "no/workload.toml", "--data", data]).must(1).says(&["cannot read no/workload.toml", "No such file"]);
}

#[cfg(unix)]
#[test]
fn a_file_that_cannot_be_read_exits_1_is_named_and_leaves_no_results() {
    let shop = Shop::new();
    let out = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("/no/such/target", shop.at("transactions/transactions_202402.csv")).unwrap();
    let done = run_coffee(shop.path(), out.path(), &[]).must(1);
    done.says(&["cannot read", "transactions/transactions_202402.csv", "No such file or directory"]);
    assert_eq!(files(out.path()).len(), 0);
}

#[test]
fn an_output_directory_that_cannot_be_one_exits_1_before_any_work() {
    let shop = Shop::new();
    let file = shop.at("stores/stores.csv");
    let before = fs::read(&file).unwrap();
    run_coffee(shop.path(), &file, &[]).must(1).says(&["cannot make the directory", text(&file)]);
    assert_eq!(fs::read(&file).unwrap(), before, "the file is as it was");
}

#[test]
fn a_failed_run_leaves_old_results_alone_and_no_new_or_temporary_files() {
    let shop = quirky_shop();
    let out = tempfile::tempdir().unwrap();
    run_coffee(shop.path(), out.path(), &[]).must(0);
    let before = files(out.path());
    // The failure comes at the end of a table's last file, when rows have already been worked on.
    shop.file("transactions/transactions_999999.csv", "wrong,header\n");
    run_coffee(shop.path(), out.path(), &[]).must(1);
    assert_eq!(files(out.path()), before);
    let fresh = shop.at("results");
    run_coffee(shop.path(), &fresh, &[]).must(1);
    assert_eq!(files(&fresh).len(), 0);
}

#[test]
fn a_result_that_cannot_be_written_fails_the_run_without_litter() {
    let shop = quirky_shop();
    let out = tempfile::tempdir().unwrap();
    // A directory stands where a result should go, so the rename at the very end fails.
    fs::create_dir_all(out.path().join("q3.csv/in-the-way")).unwrap();
    let done = run_coffee(shop.path(), out.path(), &["--quiet"]).must(1);
    done.says(&["cannot write", "q3.csv"]);
    let left: Vec<String> = files(out.path()).into_keys().filter(|name| name.contains(".part")).collect();
    assert!(left.is_empty(), "{left:?}");
    assert!(!out.path().join("summary.json").exists(), "a summary would say that all is well");
}

#[test]
fn stale_rejects_are_removed_by_a_run_without_any() {
    let shop = Shop::new();
    let out = tempfile::tempdir().unwrap();
    shop.lines("transactions/transactions_202401.csv", TRANSACTIONS, ["bad"]);
    run_coffee(shop.path(), out.path(), &[]).must(0);
    assert!(out.path().join("rejects.csv").exists());
    shop.lines("transactions/transactions_202401.csv", TRANSACTIONS, [""]);
    run_coffee(shop.path(), out.path(), &[]).must(0);
    let names: Vec<String> = files(out.path()).into_keys().collect();
    assert_eq!(names, ["q1.csv", "q2_profit.csv", "q2_sold.csv", "q3.csv", "q4.csv", "summary.json"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_exits_1_with_one_sentence() {
    let shop = quirky_shop();
    let data = text(shop.path());
    for args in [
        &["run", "coffee", "--data", data, "--quiet"][..],
        &["run", "coffee", "--data", data, "--quiet", "--query", "q1", "--format", "csv"],
        &["run", "coffee", "--data", data, "--quiet", "--query", "q3", "--format", "arrow"],
        &["explain", "coffee"],
        &["completions", "zsh"],
    ] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let done = Finished::new(command(args).stdout(full).stderr(Stdio::piped()).output().unwrap());
        done.must(1).says(&["cannot write to standard output: No space left on device"]);
    }
}

#[test]
fn a_reader_that_has_gone_is_no_failure() {
    let data = tempfile::tempdir().unwrap();
    generated(data.path(), "0.0005", "1");
    let data = text(data.path());
    for args in [
        &["run", "coffee", "--data", data, "--quiet"][..],
        &["run", "coffee", "--data", data, "--quiet", "--query", "q1", "--format", "csv"],
        &["run", "coffee", "--data", data, "--quiet", "--query", "q4", "--format", "json"],
        &["run", "coffee", "--data", data, "--quiet", "--query", "q4", "--format", "arrow"],
        &["run", "coffee", "--data", data, "--quiet", "--format", "markdown"],
        &["explain", "coffee"],
        &["completions", "bash"],
        &["--help"],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let done = Finished::new(command(args).stdout(writer).stderr(Stdio::piped()).output().unwrap());
        assert_eq!(done.must(0).err, "", "{args:?}");
    }
}

/// A table of so many files that no machine reads them before a signal arrives.
#[cfg(unix)]
fn endless_shop() -> Shop {
    let shop = Shop::new();
    let mut text = format!("{TRANSACTIONS}\nthe one bad record\n");
    let line = format!("{}\n", transaction("0123456789abcdef0123456789abcdef", "1", "1.0", "75.0", AT));
    text.extend(std::iter::repeat_n(line, 20_000));
    shop.file("transactions/transactions_000000.csv", text);
    for n in 1..3000 {
        let link = shop.at(&format!("transactions/transactions_{n:06}.csv"));
        std::os::unix::fs::symlink("transactions_000000.csv", link).unwrap();
    }
    shop
}

#[cfg(unix)]
fn send(signal: &str, process: u32) {
    let sent = Command::new("sh").args(["-c", &format!("kill -{signal} {process}")]).status().unwrap();
    assert!(sent.success());
}

#[cfg(unix)]
#[test]
fn ctrl_c_in_the_middle_of_a_run_exits_130_and_leaves_no_files() {
    let shop = endless_shop();
    let (out, temp) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for signal in ["INT", "TERM"] {
        let mut command =
            command(["run", "coffee", "--query", "q3,q4", "--data", text(shop.path()), "--out", text(out.path())]);
        let mut child = command.env("TMPDIR", temp.path()).stderr(Stdio::piped()).spawn().unwrap();
        let mut talk = BufReader::new(child.stderr.take().unwrap());
        // The first bad record on the screen proves that records are being worked on.
        let mut line = String::new();
        talk.read_line(&mut line).unwrap();
        assert!(line.starts_with("rejected: transactions/transactions_0"), "{line}");
        send(signal, child.id());
        let mut rest = String::new();
        talk.read_to_string(&mut rest).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(130), "{rest}");
        assert!(rest.ends_with("tenaz: stopped\n"), "{rest}");
        assert_eq!(files(out.path()).len(), 0);
        assert_eq!(files(temp.path()).len(), 0);
    }
}

#[cfg(unix)]
#[test]
fn a_stream_that_nobody_reads_any_more_ends_the_work_early() {
    let shop = endless_shop();
    let mut command =
        command(["run", "coffee", "--quiet", "--query", "q1", "--format", "csv", "--data", text(shop.path())]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut rows = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    rows.read_line(&mut line).unwrap();
    assert_eq!(line, "transaction_id,final_amount\n");
    drop(rows);
    let done = Finished::new(child.wait_with_output().unwrap());
    assert_eq!(done.must(0).err, "");
}

#[test]
fn quiet_says_nothing_on_standard_error_but_which_records_are_missing() {
    let shop = quirky_shop();
    shop.lines("users/users_202402.csv", shop::USERS, ["bad"]);
    let out = tempfile::tempdir().unwrap();
    let quiet = run_coffee(shop.path(), out.path(), &["--quiet"]).must(0);
    let expected = "the answers are without the only record of users, which was rejected (1 field count)\n";
    assert_eq!(quiet.err, expected);
    let loud = run_coffee(shop.path(), out.path(), &[]).must(0);
    assert!(loud.out.is_empty(), "with --out nothing goes to standard output");
    assert!(
        loud.err.contains("rejected: users/users_202402.csv, line 2: expected 4 fields, found 1: bad"),
        "{}",
        loud.err
    );
    assert!(loud.err.ends_with(expected), "{}", loud.err);
    assert!(loud.err.contains("sha256 ") && loud.err.contains("9 records = 8 accepted + 1 rejected"), "{}", loud.err);
}

#[test]
fn the_environment_sets_defaults_and_flags_overrule_it() {
    let shop = quirky_shop();
    let mut by_name = command(["run", "coffee", "--query", "q1"]);
    by_name.env("TENAZ_DATA", shop.path()).env("TENAZ_FORMAT", "csv");
    let done = Finished::new(by_name.output().unwrap()).must(0);
    assert!(done.text().starts_with("transaction_id,final_amount\n"));
    let done = Finished::new(by_name.args(["--format", "ndjson"]).output().unwrap()).must(0);
    assert!(done.text().starts_with('{'));
    let done = Finished::new(by_name.env("TENAZ_THREADS", "many").output().unwrap()).must(2);
    assert!(done.err.contains("from 1 to 256"), "{}", done.err);
}

type Row = (Option<String>, String);

fn written(shop: &Shop, format: &str) -> Vec<u8> {
    let out = tempfile::tempdir().unwrap();
    run_coffee(shop.path(), out.path(), &["--query", "q1", "--format", format]).must(0);
    fs::read(out.path().join(format!("q1.{format}"))).unwrap()
}

fn quirky_rows() -> Vec<Row> {
    QUIRKY.iter().map(|(id, amount)| (id.map(str::to_owned), (*amount).to_owned())).collect()
}

#[test]
fn csv_and_tsv_quote_what_needs_quotes() {
    let shop = quirky_shop();
    let csv = "transaction_id,final_amount\n,76.000\n\"a,b | \"\"c\"\" \\ d\",75.500\né\tñ,100.125\n";
    assert_eq!(String::from_utf8(written(&shop, "csv")).unwrap(), csv);
    let tsv = "transaction_id\tfinal_amount\n\t76.000\n\"a,b | \"\"c\"\" \\ d\"\t75.500\n\"é\tñ\"\t100.125\n";
    assert_eq!(String::from_utf8(written(&shop, "tsv")).unwrap(), tsv);
}

#[test]
fn json_and_ndjson_parse_back_to_the_same_rows() {
    let shop = quirky_shop();
    let json = String::from_utf8(written(&shop, "json")).unwrap();
    let lines = String::from_utf8(written(&shop, "ndjson")).unwrap();
    let array: Vec<serde_json::Value> = serde_json::from_str(&json).unwrap();
    let objects: Vec<serde_json::Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(array, objects);
    let rows: Vec<Row> = array
        .iter()
        .map(|row| {
            assert!(row["final_amount"].is_number());
            (row["transaction_id"].as_str().map(str::to_owned), format!("{:.3}", row["final_amount"].as_f64().unwrap()))
        })
        .collect();
    assert_eq!(rows, quirky_rows());
    assert!(json.contains("\"final_amount\":76.000"), "all digits of a decimal are kept: {json}");
    assert_eq!(written(&Shop::new(), "json"), b"[]\n", "no rows are an empty array");
    assert_eq!(written(&Shop::new(), "ndjson"), b"");
}

#[test]
fn markdown_escapes_what_would_break_its_table() {
    let markdown = String::from_utf8(written(&quirky_shop(), "markdown")).unwrap();
    let expected = "| transaction_id | final_amount |\n| --- | ---: |\n|  | 76.000 |\n\
                    | a,b \\| \"c\" \\\\ d | 75.500 |\n| é\tñ | 100.125 |\n";
    assert_eq!(markdown, expected);
}

#[test]
fn a_table_shows_every_cell_in_its_column() {
    let table = String::from_utf8(written(&quirky_shop(), "table")).unwrap();
    let cells = |line: &str| -> Vec<String> { line.split(['│', '┆']).map(|cell| cell.trim().to_owned()).collect() };
    let found: Vec<Vec<String>> = table.lines().filter(|line| line.starts_with('│')).map(cells).collect();
    let row = |id: &str, amount: &str| vec![String::new(), id.to_owned(), amount.to_owned(), String::new()];
    let expected = [
        row("transaction_id", "final_amount"),
        row("", "76.000"),
        row("a,b | \"c\" \\ d", "75.500"),
        row("é ñ", "100.125"),
    ];
    assert_eq!(found, expected, "{table}");
}

#[test]
fn arrow_parses_back_to_the_same_rows_and_types() {
    let bytes = written(&quirky_shop(), "arrow");
    let reader = FileReader::try_new(std::io::Cursor::new(bytes), None).unwrap();
    assert_eq!(reader.schema().field(1).data_type(), &DataType::Decimal128(15, 3));
    let batches: Vec<RecordBatch> = reader.map(|batch| batch.unwrap()).collect();
    let mut rows: Vec<Row> = Vec::new();
    for batch in &batches {
        let (ids, amounts) = (batch.column(0).as_string_view(), batch.column(1).as_primitive::<Decimal128Type>());
        for row in 0..batch.num_rows() {
            rows.push((ids.is_valid(row).then(|| ids.value(row).to_owned()), amounts.value_as_string(row)));
        }
    }
    assert_eq!(rows, quirky_rows());
    let out = tempfile::tempdir().unwrap();
    run_coffee(quirky_shop().path(), out.path(), &["--query", "q4", "--format", "arrow"]).must(0);
    let reader = FileReader::try_new(File::open(out.path().join("q4.arrow")).unwrap(), None).unwrap();
    assert_eq!(reader.schema().field(2).data_type(), &DataType::Int64);
    let counts: i64 =
        reader.map(|b| b.unwrap().column(2).as_primitive::<Int64Type>().values().iter().sum::<i64>()).sum();
    assert_eq!(counts, 0, "nobody in users bought anything");
}

#[test]
fn a_stream_holds_the_rows_of_the_file_in_any_order() {
    let data = tempfile::tempdir().unwrap();
    generated(data.path(), "0.001", "3");
    let out = tempfile::tempdir().unwrap();
    run_coffee(data.path(), out.path(), &[]).must(0);
    for query in ["q1", "q3"] {
        let streamed =
            tenaz(["run", "coffee", "--data", text(data.path()), "--query", query, "--format", "csv"]).must(0);
        let file = fs::read_to_string(out.path().join(format!("{query}.csv"))).unwrap();
        let (mut lines, mut expected): (Vec<&str>, Vec<&str>) =
            (streamed.text().lines().collect(), file.lines().collect());
        assert_eq!(lines.remove(0), expected.remove(0), "the header comes first");
        if query == "q1" {
            lines.sort_unstable();
        }
        assert_eq!(lines, expected, "{query}");
        assert!(!lines.is_empty());
    }
}

#[test]
fn the_screen_shows_every_answer_with_a_footer_and_tells_of_rows_left_out() {
    let data = tempfile::tempdir().unwrap();
    generated(data.path(), "0.001", "3");
    let shown = tenaz(["run", "coffee", "--data", text(data.path()), "--rows", "2"]).must(0);
    for query in ["q1", "q2_sold", "q2_profit", "q3", "q4"] {
        assert!(shown.text().contains(&format!("{query}: ")), "{}", shown.text());
    }
    assert!(shown.text().contains("… and 16 more rows"), "{}", shown.text());
    assert!(shown.text().contains("\n18 rows, "), "{}", shown.text());
    let all = tenaz(["run", "coffee", "--data", text(data.path()), "--rows", "0", "--query", "q2_sold"]).must(0);
    assert!(!all.text().contains("more rows") && all.text().contains("2025-06"), "{}", all.text());
}

#[test]
fn generate_writes_the_same_bytes_again_for_the_same_seed_only() {
    let dirs = [(); 3].map(|()| tempfile::tempdir().unwrap());
    generated(dirs[0].path(), "0.0002", "1");
    generated(dirs[1].path(), "0.0002", "1");
    generated(dirs[2].path(), "0.0002", "2");
    let [first, second, other] = dirs.each_ref().map(|dir| files(dir.path()));
    assert_eq!(first.len(), 76);
    assert!(first == second);
    assert!(first != other);
    generated(dirs[2].path(), "0.0002", "1");
    assert!(first == files(dirs[2].path()), "files of an earlier run are replaced");
}

#[test]
fn demo_answers_all_questions_and_leaves_nothing_behind() {
    let temp = tempfile::tempdir().unwrap();
    let demo =
        Finished::new(command(["demo", "--scale", "0.0005"]).env("TMPDIR", temp.path()).output().unwrap()).must(0);
    for query in ["q1: ", "q2_sold: ", "q2_profit: ", "q3: ", "q4: "] {
        assert!(demo.text().contains(query), "{}", demo.text());
    }
    assert!(demo.err.contains("tenaz generate coffee"), "it says what to do next: {}", demo.err);
    assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 0);
}

#[test]
fn completions_are_a_script_for_the_shell() {
    let script = tenaz(["completions", "bash"]).must(0);
    assert!(script.text().contains("complete -F _tenaz"), "{}", script.text());
    let mut check = Command::new("bash").arg("-n").stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut check.stdin.take().unwrap(), &script.out).unwrap();
    let checked = check.wait_with_output().unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
}

#[test]
fn explain_json_names_every_stage_and_dot_is_a_graph() {
    let json = tenaz(["explain", "coffee", "--format", "json"]).must(0);
    let job: serde_json::Value = serde_json::from_slice(&json.out).unwrap();
    assert_eq!(job["workload"], "coffee");
    let scans: Vec<&str> = job["scans"].as_array().unwrap().iter().map(|s| s.as_str().unwrap()).collect();
    let mut once = scans.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), scans.len(), "every table is read once: {scans:?}");
    assert_eq!(once, ["menu_items", "stores", "transaction_items", "transactions", "users"]);
    let stages = job["stages"].as_array().unwrap().len();
    let dot = tenaz(["explain", "coffee", "--format", "dot"]).must(0);
    let dot = dot.text();
    assert!(dot.starts_with("digraph ") && dot.trim_end().ends_with('}'), "{dot}");
    assert_eq!(dot.matches('{').count(), dot.matches('}').count());
    assert!(dot.matches("->").count() >= stages - 1, "{dot}");
    let one = tenaz(["explain", "coffee", "--query", "q1"]).must(0);
    assert!(one.text().contains("rows of q1") && !one.text().contains("rows of q3"), "{}", one.text());
}

//! Questions about tables, values for parameters, and answers in files, with the real binary.
#![allow(clippy::unwrap_used)]

mod program;

use program::tenaz;
use tempfile::TempDir;

fn data() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let orders = "Id,City,Amount,Day,Paid\n1,Rome,2.50,2025-01-01,true\n2,Oslo,10.00,2025-02-01,false\n3,,4.00,2025-03-01,true\n4,Rome,,2025-04-01,\n";
    std::fs::write(dir.path().join("orders.csv"), orders).unwrap();
    std::fs::write(dir.path().join("cities.csv"), "name,country\nRome,IT\nOslo,NO\n").unwrap();
    dir
}

fn answer(dir: &TempDir, more: &[&str]) -> String {
    let arguments = [&["sql", "--data", dir.path().to_str().unwrap(), "--format", "csv"], more].concat();
    tenaz(arguments).must(0).text().to_owned()
}

#[test]
fn tables_and_columns_are_shown_by_questions() {
    let dir = data();
    let tables = answer(&dir, &["SHOW TABLES"]);
    assert_eq!(tables, "name,columns,files,bytes\ncities,2,cities.csv,29\norders,5,orders.csv,126\n");
    let columns = answer(&dir, &["describe Orders;"]);
    assert_eq!(
        columns,
        "column,type,header,nulls\nid,int,Id,\ncity,text,City,\namount,\"decimal(15,2)\",Amount,\nday,date,Day,\npaid,bool,Paid,\n"
    );
    let wrong = tenaz(["sql", "--data", dir.path().to_str().unwrap(), "DESCRIBE order"]).must(2);
    assert!(wrong.err.contains("there is no table \"order\"; did you mean orders?"), "{}", wrong.err);
}

#[test]
fn a_table_is_summed_up_column_by_column() {
    let dir = data();
    let expected = "column,type,records,nulls,distinct,min,q25,median,q75,max\n\
        id,int,4,0,4,1,1.75,2.5,3.25,4\n\
        city,text,4,1,2,Oslo,,,,Rome\n\
        amount,\"decimal(15,2)\",4,1,3,2.50,3.25,4.000,7.0,10.00\n\
        day,date,4,0,4,2025-01-01,,,,2025-04-01\n\
        paid,bool,4,1,2,false,,,,true\n";
    assert_eq!(answer(&dir, &["SUMMARIZE orders"]), expected);
    assert_eq!(
        answer(&dir, &["SUMMARIZE orders", "--threads", "2", "--chunk-size", "16", "--partitions", "3"]),
        expected
    );
}

#[test]
fn parameters_have_values() {
    let dir = data();
    let question = "SELECT count(*) AS n FROM orders WHERE day >= $since AND city = $city";
    assert_eq!(answer(&dir, &[question, "--set", "since=2025-02-01", "--set", "city=Rome"]), "n\n1\n");
    let missing = tenaz(["sql", "--data", dir.path().to_str().unwrap(), question, "--set", "city=Rome"]).must(2);
    missing.says(&["$since has no value; add --set since=VALUE"]);
}

#[test]
fn the_ending_of_a_file_says_the_format() {
    let dir = data();
    let question = "SELECT id, city FROM orders WHERE id < 3 ORDER BY id";
    let write = |name: &str| {
        let path = dir.path().join(name);
        let data = dir.path().join("orders.csv");
        let done = tenaz(["sql", "--data", data.to_str().unwrap(), question, "-o", path.to_str().unwrap()]);
        (done, std::fs::read(path).ok())
    };
    for (name, expected) in [
        ("answer.csv", "Id,City\n1,Rome\n2,Oslo\n"),
        ("answer.tsv", "Id\tCity\n1\tRome\n2\tOslo\n"),
        ("answer.ndjson", "{\"Id\":1,\"City\":\"Rome\"}\n{\"Id\":2,\"City\":\"Oslo\"}\n"),
    ] {
        let (done, bytes) = write(name);
        done.must(0);
        assert_eq!(String::from_utf8(bytes.unwrap()).unwrap(), expected);
    }
    let (done, bytes) = write("answer.arrow");
    done.must(0);
    assert!(bytes.unwrap().starts_with(b"ARROW1"));
    let (done, bytes) = write("answer.docx");
    done.must(2).says(&["answer.docx: its ending says no format"]);
    assert_eq!(bytes, None);
}

#[test]
fn answers_never_overwrite_the_data_that_they_are_made_of() {
    let dir = data();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let before = std::fs::read(path("orders.csv")).unwrap();
    let into_file = ["sql", "--data", &path("orders.csv"), "-o", &path("orders.csv"), "SELECT id FROM orders"];
    let refused = tenaz(into_file).must(2);
    assert!(refused.err.contains("would be overwritten"), "{}", refused.err);
    let question = "-- name: orders\nSELECT id FROM orders";
    let (data, dotted) = (path(""), path("."));
    let into_directory = ["sql", "--data", &data, "--out", &dotted, question];
    let refused = tenaz(into_directory).must(2);
    assert!(refused.err.contains("orders.csv") && refused.err.contains("would be overwritten"), "{}", refused.err);
    assert_eq!(std::fs::read(path("orders.csv")).unwrap(), before);
    // Another name beside it is fine.
    tenaz(["sql", "--data", &path("orders.csv"), "-o", &path("ids.csv"), "SELECT id FROM orders"]).must(0);
    assert_eq!(std::fs::read_to_string(path("ids.csv")).unwrap(), "Id\n1\n2\n3\n4\n");
}

#[test]
fn a_mistyped_option_is_no_question() {
    let dir = data();
    let place = dir.path().to_str().unwrap();
    let refused = tenaz(["sql", "--data", place, "--leniant"]).must(2);
    assert!(refused.err.contains("--leniant") && refused.err.contains("no such option"), "{}", refused.err);
    let answer = answer(&dir, &["-- how many\nSELECT count(*) AS n FROM orders"]);
    assert_eq!(answer, "n\n4\n");
}

#[test]
fn the_time_of_a_job_is_fixed_and_told() {
    let dir = data();
    let question = "SELECT count(*) AS n, now() AS moment, current_timestamp AS same, localtimestamp AS local, current_date AS day, \
                    today() AS today FROM orders WHERE day > now() - INTERVAL '60 days'";
    let asked = |now: &str| answer(&dir, &[question, "--now", now]);
    let head = "n,moment,same,local,day,today\n";
    let time = "2025-04-15 12:00:00";
    assert_eq!(asked("2025-04-15T12:00:00Z"), format!("{head}2,{time},{time},{time},2025-04-15,2025-04-15\n"));
    let midnight = "2025-04-16 00:00:00";
    assert_eq!(
        asked("2025-04-15T22:00:00-02:00"),
        format!("{head}2,{midnight},{midnight},{midnight},2025-04-16,2025-04-16\n")
    );
    let wrong = tenaz(["sql", "--data", dir.path().to_str().unwrap(), "SELECT now()", "--now", "soon"]).must(2);
    assert!(wrong.err.contains("\"soon\" is no time; write 2025-06-30"), "{}", wrong.err);
}

#[test]
fn a_job_can_be_repeated_with_the_time_in_its_summary() {
    let dir = data();
    let (first, second) = (dir.path().join("first"), dir.path().join("second"));
    let run = |out: &std::path::Path, more: &[&str]| {
        let (data, out) = (dir.path().join("orders.csv"), out.to_str().unwrap().to_owned());
        let question = "SELECT id, now() AS moment FROM orders";
        tenaz([&["sql", "--data", data.to_str().unwrap(), question, "--out", &out], more].concat()).must(0);
    };
    run(&first, &[]);
    let now = program::summary(&first)["now"].as_str().unwrap().to_owned();
    assert!(now.ends_with('Z'), "{now}");
    run(&second, &["--now", &now]);
    assert_eq!(program::summary(&second)["now"], program::summary(&first)["now"]);
    assert_eq!(std::fs::read(first.join("q1.csv")).unwrap(), std::fs::read(second.join("q1.csv")).unwrap());
}

#[test]
fn a_workload_file_may_fix_the_time_and_the_command_overrules_it() {
    let dir = data();
    let workload = "name = \"shop\"\nnow = \"2025-01-31\"\n[[table]]\nname = \"cities\"\nfiles = \"cities.csv\"\ncolumns = [{ name = \"name\", type = \"text\" }, { name = \"country\", type = \"text\" }]\n[[query]]\nname = \"day\"\nsql = \"SELECT DISTINCT today() AS day FROM cities\"\n";
    let file = dir.path().join("workload.toml");
    std::fs::write(&file, workload).unwrap();
    let (file, data) = (file.to_str().unwrap(), dir.path().to_str().unwrap());
    let run = |more: &[&str]| {
        let done = tenaz([&["run", file, "--data", data, "--format", "csv"], more].concat()).must(0);
        done.text().to_owned()
    };
    assert_eq!(run(&[]), "day\n2025-01-31\n");
    assert_eq!(run(&["--now", "2025-02-01"]), "day\n2025-02-01\n");
    std::fs::write(dir.path().join("wrong.toml"), workload.replace("2025-01-31", "2025-31-01")).unwrap();
    let wrong = dir.path().join("wrong.toml");
    tenaz(["run", wrong.to_str().unwrap(), "--data", data]).must(1).says(&["wrong.toml:2:", "is no time"]);
}

#[test]
fn the_median_of_a_summary_is_that_of_median() {
    let dir = data();
    let median = answer(&dir, &["SELECT median(id) AS i, median(amount) AS a FROM orders"]);
    let summary = answer(&dir, &["SUMMARIZE orders"]);
    let shown: Vec<&str> = summary.lines().skip(1).map(|line| line.rsplit(',').nth(2).unwrap()).collect();
    let expected: Vec<&str> = median.lines().nth(1).unwrap().split(',').collect();
    assert_eq!([shown[0], shown[2]], [expected[0], expected[1]], "{summary}\n{median}");
}

/// TPC-H's question 15, on tables of our own.
#[test]
fn a_file_may_create_views_and_drop_them() {
    let dir = data();
    let file = dir.path().join("questions.sql");
    let text = "create view revenue (city, total) as\n    select city, sum(amount) from orders group by city;\n\n\
                -- name: best\nselect country, total from cities, revenue\nwhere name = city and total = (select max(total) from revenue)\norder by country;\n\n\
                drop view revenue;\n";
    std::fs::write(&file, text).unwrap();
    let file = file.to_str().unwrap();
    assert_eq!(answer(&dir, &["--file", file]), "country,total\nNO,10.00\n");
    // A mistake in a view is shown where it stands.
    std::fs::write(file, text.replace("sum(amount)", "sum(amuont)")).unwrap();
    let wrong = tenaz(["-q", "sql", "--data", dir.path().to_str().unwrap(), "--file", file]).must(1);
    assert!(wrong.err.contains("questions.sql:2:22:") && wrong.err.contains("amount"), "{}", wrong.err);
}

#[test]
fn an_answer_can_be_copied_to_a_file_and_never_over_data() {
    let dir = data();
    let run = |text: &str, more: &[&str]| {
        let mut command = program::command([&["-q", "sql", "--data", ".", text], more].concat());
        program::Finished::new(command.current_dir(dir.path()).output().unwrap())
    };
    let done =
        run("COPY (SELECT id FROM orders WHERE id < 3 ORDER BY id) TO 'out/ids.tsv'; SELECT 1 AS one", &[]).must(0);
    assert_eq!(std::fs::read_to_string(dir.path().join("out/ids.tsv")).unwrap(), "Id\n1\n2\n");
    assert!(done.text().contains("one") && !done.text().contains("Id"), "{}", done.text());
    let alone = run("COPY (SELECT id FROM orders) TO 'ids' (FORMAT ndjson)", &["--format", "csv"]).must(0);
    assert_eq!(alone.text(), "");
    assert_eq!(std::fs::read_to_string(dir.path().join("ids")).unwrap().lines().count(), 4);
    run("COPY (SELECT id FROM orders) TO 'orders.csv'", &[]).must(2).says(&["orders.csv is read by this question"]);
    run("COPY (SELECT id FROM orders) TO 'x.docx'", &[]).must(2).says(&["its ending says no format"]);
    run("COPY orders TO 'x.csv'", &[]).must(1).says(&["write COPY (SELECT …) TO 'file.csv'"]);
    run("COPY (SELECT 1) TO 'x.csv'; SELECT 2", &["--format", "csv"]).must(2).says(&["beside COPY statements"]);
}

#[test]
fn a_question_can_be_explained() {
    let dir = data();
    let text = answer(&dir, &["EXPLAIN SELECT count(*) FROM orders"]);
    assert!(text.starts_with("plan\nread orders once for stage 0\n"), "{text}");
    assert!(text.contains("=> rows of q1"), "{text}");
}

#[test]
fn dirty_columns_are_read_as_far_as_they_can_be() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("t.csv"), "n,d\n1,31/12/2025\n2,2025-11-30\n3,soon\n4, 01/02/2025 \n5,\n6,12\n")
        .unwrap();
    let question = "SELECT n, try_to_date(d, '%d/%m/%Y', '%Y-%m-%d') AS day, try_to_timestamp(d, '%Y-%m-%d') AS moment, \
                    try_to_date(d) AS plain, TRY_CAST(d AS INT) AS number FROM t ORDER BY n";
    let expected = "n,day,moment,plain,number\n1,2025-12-31,,,\n2,2025-11-30,2025-11-30 00:00:00,2025-11-30,\n3,,,,\n\
                    4,2025-02-01,,,\n5,,,,\n6,,,,12\n";
    assert_eq!(answer(&dir, &["--types", "d=text", question]), expected);
    let wrong = tenaz(["-q", "sql", "--data", dir.path().to_str().unwrap(), "SELECT try_to_date(n) FROM t"]).must(1);
    wrong.says(&["try_to_date takes a text and formats"]);
}

#[test]
fn an_answer_of_two_columns_is_drawn_as_bars() {
    let dir = data();
    let question = "SELECT city, count(*) AS n FROM orders GROUP BY city ORDER BY n DESC, city";
    let data = dir.path().to_str().unwrap();
    let done = tenaz(["-q", "sql", "--data", data, "--chart", question]).must(0);
    let bars: Vec<usize> = done.text().lines().map(|line| line.matches('█').count()).filter(|bar| *bar > 0).collect();
    assert_eq!(bars, [60, 30, 30], "{}", done.text());
    let wrong = tenaz(["-q", "sql", "--data", data, "--chart", "SELECT city FROM orders"]).must(1);
    wrong.says(&["a chart needs an answer of two columns"]);
}

#[test]
fn arrow_goes_through_a_pipe_as_a_stream() {
    let dir = data();
    let done =
        tenaz(["-q", "sql", "--data", dir.path().to_str().unwrap(), "--format", "arrows", "SELECT id FROM orders"])
            .must(0);
    let read = datafusion::arrow::ipc::reader::StreamReader::try_new(&done.out[..], None).unwrap();
    assert_eq!(read.map(|batch| batch.unwrap().num_rows()).sum::<usize>(), 4);
}

//! `tenaz sql` and `tenaz init`, with the real binary.

#![allow(clippy::unwrap_used, clippy::print_stderr)] // A test may panic, and says so when it is skipped.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

fn dir(files: &[(&str, &str)]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    dir
}

/// A shop: orders in a folder of monthly files, customers and products in files of their own.
fn shop() -> TempDir {
    dir(&[
        (
            "orders/2024-01.csv",
            "Order ID,customer,product,quantity,placed at\n1,10,A,2,2024-01-05 10:00:00\n2,11,B,1,2024-01-09 11:30:00\n",
        ),
        (
            "orders/2024-02.csv",
            "Order ID,customer,product,quantity,placed at\n3,10,B,3,2024-02-01 09:00:00\n4,12,A,1,2024-02-02 12:00:00\n",
        ),
        ("customers.csv", "id;name;zip\n10;Ana;01067\n11;\"Bo; Jr.\";50998\n12;Cem;10115\n"),
        ("products.csv", "code,title,price\nA,Latte,3.50\nB,\"Tea, green\",2.25\n"),
    ])
}

fn tenaz(arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_tenaz"))
        .args(arguments)
        .env_remove("TENAZ_DATA")
        .env_remove("TENAZ_FORMAT")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that does not want the input may have ended already.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn data(dir: &TempDir) -> &str {
    dir.path().to_str().unwrap()
}

/// What a query answers, as CSV.
fn answer(dir: &TempDir, sql: &str, more: &[&str]) -> String {
    let output = tenaz(&[&["sql", "--data", data(dir), "--format", "csv", sql], more].concat(), "");
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

/// What is said about a command that fails with this code.
fn failure(code: i32, arguments: &[&str], input: &str) -> String {
    let output = tenaz(arguments, input);
    assert_eq!(output.status.code(), Some(code), "{}{}", text(&output.stdout), text(&output.stderr));
    assert_eq!(text(&output.stdout), "");
    text(&output.stderr)
}

const JOIN: &str = "SELECT c.name, p.title, sum(o.quantity * p.price) AS total
    FROM orders o JOIN customers c ON o.customer = c.id JOIN products p ON p.code = o.product
    GROUP BY c.name, p.title ORDER BY total DESC, c.name";

#[test]
fn three_tables_are_joined_whatever_the_number_of_partitions() {
    let shop = shop();
    let expected =
        "name,title,total\nAna,Latte,7.00\nAna,\"Tea, green\",6.75\nCem,Latte,3.50\nBo; Jr.,\"Tea, green\",2.25\n";
    for more in [&[][..], &["--partitions", "3", "--threads", "2", "--chunk-size", "64"]] {
        assert_eq!(answer(&shop, JOIN, more), expected);
    }
}

#[test]
fn windows_unions_subqueries_and_ctes_are_answered() {
    let shop = shop();
    let sql = "WITH ranked AS (SELECT order_id, product, row_number() OVER (PARTITION BY product ORDER BY placed_at) AS n FROM orders)
        SELECT order_id, n FROM ranked WHERE product = (SELECT max(code) FROM products)
        UNION ALL SELECT id, 0 FROM customers WHERE zip LIKE '0%' ORDER BY 1";
    assert_eq!(answer(&shop, sql, &[]), "Order ID,n\n2,1\n3,2\n10,0\n");
}

#[test]
fn a_query_that_fails_on_the_data_is_named() {
    let shop = shop();
    let sql = "-- name: broken\nSELECT sum(1 / (quantity - 2)) FROM orders;";
    let said = failure(1, &["sql", "--data", data(&shop), sql], "");
    assert!(
        said.contains("broken: orders/2024-01.csv, line 2: division by zero, in 1 / (quantity - 2), where"),
        "{said}"
    );
    let sql = "-- name: late\nSELECT 1 / (count(*) - 4) FROM orders;";
    let said = failure(1, &["sql", "--data", data(&shop), sql], "");
    assert!(said.contains("late: division by zero, in 1 / (count(*) - 4), where"), "{said}");
}

#[test]
fn several_queries_are_answered_in_one_pass_and_may_have_names() {
    let shop = shop();
    let out = shop.path().join("results");
    let sql = "SELECT count(*) AS n FROM orders; -- a comment; with a semicolon\n-- name: sold\nSELECT sum(quantity) AS s, ';' AS x FROM orders;";
    let output = tenaz(&["sql", "--data", data(&shop), sql, "--out", out.to_str().unwrap()], "");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let read = |name: &str| std::fs::read_to_string(out.join(name)).unwrap();
    assert_eq!(read("q1.csv"), "n\n4\n");
    assert_eq!(read("sold.csv"), "s,x\n7,;\n");
    let summary: serde_json::Value = serde_json::from_str(&read("summary.json")).unwrap();
    // Both queries read the orders, which were read once.
    assert_eq!(summary["tables"]["orders"]["records"], 4);
    assert_eq!(summary["tables"].as_object().unwrap().len(), 1);
}

#[test]
fn queries_come_from_an_argument_a_file_or_standard_input() {
    let shop = shop();
    let sql = "SELECT max(price) AS m FROM products";
    let file = shop.path().join("q.sql");
    std::fs::write(&file, format!("-- the dearest\n{sql};\n")).unwrap();
    let base = ["sql", "--data", data(&shop), "--format", "csv"];
    for (more, input) in [
        (&[sql][..], ""),
        (&["--file", file.to_str().unwrap()], ""),
        (&["-"], sql),
        (&["--file", "-"], sql),
        (&[], sql),
    ] {
        let output = tenaz(&[&base, more].concat(), input);
        assert_eq!(text(&output.stdout), "m\n3.50\n", "{more:?}: {}", text(&output.stderr));
    }
}

#[test]
fn without_a_query_the_tables_are_listed() {
    let shop = shop();
    let output = tenaz(&["sql", "--data", data(&shop)], "");
    assert!(output.status.success());
    let expected = "customers (customers.csv, 52 B)
  id    int
  name  text
  zip   text

products (products.csv, 53 B)
  code   text
  title  text
  price  decimal(15,2)

orders (orders/*.csv, 2 files, 174 B)
  order_id   int
  customer   int
  product    text
  quantity   int
  placed_at  timestamp
";
    let listed = text(&output.stdout);
    let without_sizes =
        |text: &str| text.lines().map(|l| l.rsplit_once(", ").map_or(l, |(l, _)| l).to_owned()).collect::<Vec<_>>();
    assert_eq!(without_sizes(&listed), without_sizes(expected));
    assert!(text(&output.stderr).contains("SELECT * FROM customers LIMIT 10"));
    let output = tenaz(&["sql", "--data", data(&shop), "--format", "csv"], "");
    assert!(text(&output.stdout).starts_with("table,column,type,files\ncustomers,id,int,customers.csv\n"));
}

#[test]
fn types_are_overruled_and_wrong_ones_name_the_nearest() {
    let dir = dir(&[("t.csv", "code,v\n12,1.5\n13,2.5\n")]);
    assert_eq!(answer(&dir, "SELECT sum(code) AS s FROM t", &[]), "s\n25\n");
    let joined = "SELECT code || '!' AS c, v FROM t ORDER BY c";
    assert_eq!(answer(&dir, joined, &["--types", "code=text,t.v=decimal(12,3)"]), "c,v\n12!,1.500\n13!,2.500\n");
    let wrong = failure(2, &["sql", "--data", data(&dir), "SELECT 1", "--types", "cod=text"], "");
    assert_eq!(wrong, "tenaz: --types cod=text: there is no column \"cod\"; did you mean code?\n");
}

#[test]
fn a_later_record_that_does_not_fit_names_the_cure() {
    let mut csv = String::from("id,v\n");
    for id in 0..2_000_000 {
        // Where no sample is taken.
        let v = if id == 200_000 { "abc" } else { "7" };
        csv.push_str(&format!("{id},{v}\n"));
    }
    let dir = dir(&[("t.csv", &csv)]);
    let count = "SELECT count(*) AS n, count(DISTINCT v) AS d FROM t";
    let output = tenaz(&["sql", "--data", data(&dir), "--format", "csv", count], "");
    assert_eq!(text(&output.stdout), "n,d\n1999999,1\n");
    let said = text(&output.stderr);
    assert!(said.contains("rejected: t.csv, line 200002: column v: \"abc\" is not a whole number"), "{said}");
    assert!(
        said.contains("1 record does not fit the types, which are guessed from a sample where --types says nothing"),
        "{said}"
    );
    assert!(said.contains("to keep them add --types t.v=text\n"), "{said}");
    let last = "the answers are without 1 of 2,000,000 records of t, which was rejected (1 not int)";
    assert!(said.lines().last().unwrap().starts_with(last), "{said}");
    let strict = failure(1, &["sql", "--data", data(&dir), "--out", data(&dir), "--strict", count], "");
    assert!(strict.contains("add --types t.v=text"), "{strict}");
    assert_eq!(answer(&dir, count, &["--types", "t.v=text"]), "n,d\n2000000,2\n");
}

#[test]
fn mistakes_show_their_place_and_the_nearest_names() {
    let shop = shop();
    for (sql, expected) in [
        (
            "SELECT name,\n  pric\nFROM products",
            "query:1:8: there is no column \"name\"; there are code, title, price\n  1 | SELECT name,\n    |        ^^^^\n",
        ),
        (
            "SELECT title,\n  p.pric\nFROM products p",
            "query:2:5: there is no column \"pric\" in p; did you mean price?\n  2 |   p.pric\n    |     ^^^^\n",
        ),
        (
            "SELECT x.price FROM products pr",
            "query:1:8: there is no table or alias \"x\" here; there are pr\n  1 | SELECT x.price FROM products pr\n    |        ^\n",
        ),
        (
            "SELECT 1; SELECT 2 FROM custmers",
            "query:1:25: there is no table \"custmers\"; did you mean customers?\n  1 |           SELECT 2 FROM custmers\n    |                         ^^^^^^^^\n",
        ),
        ("SELECT summ(price) FROM products", "query:1:8: there is no function \"summ\"; did you mean sum?\n"),
        (
            "SELECT year(placed_at) FROM orders",
            "query:1:8: there is no function \"year\"; write extract(year FROM x)\n",
        ),
        (
            "SELECT product FROM orders a, orders b",
            "query:1:8: the column \"product\" is in more than one table; say which with the table's name or alias in front: t.product\n",
        ),
        (
            "SELECT price + title FROM products",
            "query:1:14: Cannot coerce arithmetic expression decimal(15, 2) + text to valid types\n",
        ),
        ("SELECT sum(title) FROM products", "query:1:8: the function 'sum' does not take a value of type text\n"),
        (
            "SELECT title FORM products",
            "query:1:19: expected end of statement, found products; did you mean FROM instead of FORM?\n",
        ),
        ("SELECT (price FROM products", "query:1:15: expected ), found FROM\n"),
        ("SELECT count(* FROM products", "query:1:16: expected ), found FROM\n"),
        ("SELECT 'open", "query:1:8: Unterminated string literal\n  1 | SELECT 'open\n    |        ^\n"),
        ("SELCT 1", "query:1:1: a query starts with SELECT, WITH or VALUES, not with SELCT; did you mean SELECT?\n"),
        (
            "SELECT * FROM products WHERE title = \"Latte\"",
            "query:1:38: there is no column \"Latte\"; for a text write single quotes: 'Latte'\n",
        ),
        (
            "SELECT title, price FROM products GROUP BY title",
            "query:1:15: products.price must be in GROUP BY, or inside an aggregate function such as max(products.price)\n",
        ),
    ] {
        let said = failure(1, &["sql", "--data", data(&shop), sql], "");
        let said = said.strip_prefix("tenaz: ").unwrap_or(&said);
        assert!(said.starts_with(expected), "{sql}\nsaid:\n{said}expected:\n{expected}");
    }
}

#[test]
fn statements_that_are_no_questions_are_refused() {
    let shop = shop();
    for sql in [
        "CREATE TABLE x AS SELECT 1",
        "INSERT INTO orders VALUES (1)",
        "CREATE VIEW",
        "EXPLAIN",
        "SET a = 1",
        "DROP TABLE orders",
        "SELECT 1; DELETE FROM orders",
    ] {
        let said = failure(1, &["sql", "--data", data(&shop), sql], "");
        assert!(said.contains("is not possible: only queries can be asked"), "{said}");
    }
    let said = failure(1, &["sql", "--data", data(&shop), "SELECT * INTO x FROM orders"], "");
    assert!(said.contains("only queries"), "{said}");
}

#[test]
fn what_init_writes_is_run_as_it_is() {
    let shop = shop();
    let output = tenaz(&["init", data(&shop)], "");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let file = shop.path().join("workload.toml");
    let out = shop.path().join("results");
    let run = ["run", file.to_str().unwrap(), "--data", data(&shop), "--out", out.to_str().unwrap()];
    let output = tenaz(&run, "");
    assert!(output.status.success(), "{}", text(&output.stderr));
    for (query, records) in [("records_of_orders", 4), ("records_of_customers", 3), ("records_of_products", 2)] {
        let answer = std::fs::read_to_string(out.join(format!("{query}.csv"))).unwrap();
        assert_eq!(answer, format!("records\n{records}\n"), "{query}");
    }
    let said = failure(2, &["init", data(&shop)], "");
    assert!(said.contains("workload.toml is already there; add --force"), "{said}");
    assert!(tenaz(&["init", data(&shop), "--force"], "").status.success());
    let shown = tenaz(&["init", data(&shop), "--out", "-"], "");
    assert_eq!(text(&shown.stdout), std::fs::read_to_string(&file).unwrap());
}

#[test]
fn directories_without_tables_are_clear_errors() {
    let empty = dir(&[]);
    let said = failure(1, &["sql", "--data", data(&empty), "SELECT 1"], "");
    assert!(said.starts_with("tenaz: there are no CSV files in "), "{said}");
    assert_eq!(failure(1, &["init", data(&empty)], ""), said);
    let said = failure(1, &["sql", "--data", "/no/such/place"], "");
    assert_eq!(said, "tenaz: there is no directory /no/such/place\n");
    let hollow = dir(&[("a.csv", ""), ("b.csv", "x\n1\n")]);
    let output = tenaz(&["sql", "--data", data(&hollow), "--format", "csv", "SELECT x FROM b"], "");
    assert_eq!(text(&output.stdout), "x\n1\n");
    assert!(text(&output.stderr).starts_with("note: a.csv is empty: a table without records"));
    let said = failure(1, &["sql", "--data", data(&hollow), "--file", "/no/such.sql"], "");
    assert!(said.starts_with("tenaz: cannot read /no/such.sql: "), "{said}");
}

#[test]
fn the_real_samples_answer_questions() {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    if !samples.is_dir() {
        eprintln!("skipped: there are no samples in {}", samples.display());
        return;
    }
    for (set, sql, expected) in [
        ("steam", "SELECT count(*) AS n FROM games", "n\n10\n"),
        ("steam", "SELECT count(*) AS n, count(DISTINCT review_score) AS s FROM reviews", "n,s\n1500,2\n"),
        ("books", "SELECT count(*) AS n FROM books_data", "n\n400\n"),
        (
            "books",
            "SELECT count(*) AS n FROM books_rating r JOIN ratings_sentiment_labels l ON l.id = r.id AND l.\"row\" = 0",
            "n\n1\n",
        ),
        ("coffee", "SELECT count(*) AS n, sum(price) AS p FROM menu_items", "n,p\n8,66.5\n"),
        (
            "coffee",
            "SELECT s.state, count(*) AS n FROM transactions t JOIN stores s ON s.store_id = t.store_id \
             JOIN users u ON u.user_id = t.user_id GROUP BY s.state ORDER BY n DESC LIMIT 0",
            "state,n\n",
        ),
    ] {
        let data = samples.join(set);
        let output = tenaz(&["sql", "--data", data.to_str().unwrap(), "--format", "csv", sql], "");
        assert_eq!(text(&output.stdout), expected, "{sql}: {}", text(&output.stderr));
        assert!(!text(&output.stderr).contains("rejected:"), "{}", text(&output.stderr));
    }
}

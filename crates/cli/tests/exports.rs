//! Exports as programs write them, answered at the first try by the real binary: right, or with a word about what is not.
#![allow(clippy::unwrap_used)]

mod program;

use std::io::Write;

use program::Finished;
use tempfile::TempDir;

fn sql(bytes: &[u8], question: &str, more: &[&str]) -> Finished {
    let dir = file(bytes);
    let path = dir.path().join("t.csv");
    ask(path.to_str().unwrap(), question, more)
}

fn file(bytes: &[u8]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("t.csv"), bytes).unwrap();
    dir
}

fn ask(data: &str, question: &str, more: &[&str]) -> Finished {
    let arguments = [&["sql", "--data", data, "--format", "csv", question], more].concat();
    Finished::new(program::command(arguments).env_remove("TENAZ_ACCEPT_REJECTS").output().unwrap())
}

/// All rows of a file, sorted by the first column, which must be read without any record being rejected.
#[track_caller]
fn rows(bytes: &[u8]) -> (String, String) {
    let done = sql(bytes, "SELECT * FROM t ORDER BY 1", &[]).must(0);
    assert!(done.err.contains(" + 0 rejected"), "{}", done.err);
    (done.text().to_owned(), done.err.clone())
}

#[test]
fn excel_writes_sep_semicolons_decimal_commas_and_utf_16() {
    let (found, _) =
        rows("\u{feff}sep=;\r\nProduktTyp;Menge;Preis\r\nKaffee;3;\"1.234,50\"\r\nTee;12;0,99\r\n".as_bytes());
    assert_eq!(found, "ProduktTyp,Menge,Preis\nKaffee,3,1234.50\nTee,12,0.99\n");
    let text = "\u{feff}ID\tName\tBetrag\r\n1\tMüller\t1,50\r\n2\tGröße\t2,25\r\n";
    let wide: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_eq!(rows(&wide).0, "ID,Name,Betrag\n1,Müller,1.50\n2,Größe,2.25\n");
}

#[test]
fn paypal_and_sqlcmd_are_read_as_they_write() {
    let paypal = "\u{feff}\"Datum\",\"Brutto\"\r\n\"31.03.2025\",\"19,99\"\r\n\r\n\"01.04.2025\",\"1.200,00\"\r\n";
    assert_eq!(rows(paypal.as_bytes()).0, "Datum,Brutto\n2025-03-31,19.99\n2025-04-01,1200.00\n");
    let sqlcmd = "id,name\r\n--,----\r\n1,a\r\n2,b\r\n\r\n(2 rows affected)\r\n";
    assert_eq!(rows(sqlcmd.as_bytes()).0, "id,name\n1,a\n2,b\n");
}

#[test]
fn a_bank_writes_lines_above_the_table_and_a_sum_below_it() {
    let text = "\"Kontonummer:\";\"DE12 3456 / Girokonto\";\r\n\"Kontostand:\";\"1.234,56 EUR\";\r\n\r\n\
        \"Buchungstag\";\"Text\";\"Empf\u{e4}nger\";\"Betrag\"\r\n\"31.03.2025\";\"Lastschrift\";\"Stadtwerke\";\"-85,10\"\r\n\
        \"28.03.2025\";\"Gutschrift\";\"Arbeitgeber\";\"2.500,00\"\r\n\"Summe\";\"\";\"\";\"2.414,90\"\r\n";
    let latin: Vec<u8> = text.chars().map(|c| c as u32 as u8).collect();
    let (found, said) = rows(&latin);
    let expected = "Buchungstag,Text,Empfänger,Betrag\n2025-03-28,Gutschrift,Arbeitgeber,2500.00\n2025-03-31,Lastschrift,Stadtwerke,-85.10\n";
    assert_eq!(found, expected);
    assert!(said.contains("read as windows-1252") && said.contains("the first 3 lines are no records"), "{said}");
    assert!(
        said.contains("the last record sums others up") && said.contains("t: lines of totals, left out: 1"),
        "{said}"
    );
    let kept = sql(&latin, "SELECT count(*) AS n FROM t", &["--totals", "keep"]).must(0);
    assert_eq!(kept.text(), "n\n3\n");
}

#[test]
fn databases_write_their_dumps_with_backslashes() {
    // MySQL's SELECT … INTO OUTFILE, and PostgreSQL's COPY … TO.
    let (found, said) = rows(b"1\tAnn\t\\N\tone\\\ntwo\n2\tBob\\tTab\t3.50\tC:\\\\dir\n3\t\\N\t4.25\t\"x\n");
    assert_eq!(found, "c1,c2,c3,c4\n1,Ann,,\"one\ntwo\"\n2,Bob\tTab,3.50,C:\\dir\n3,,4.25,\"\"\"x\"\n");
    assert!(said.contains("a backslash escapes the next character"), "{said}");
    let (found, _) = rows(b"id,active\n1,t\n2,f\n");
    assert_eq!(found, "id,active\n1,true\n2,false\n");
}

#[test]
fn sap_psql_and_mysql_draw_their_tables() {
    let sap = "------------------------------\n|Material  |Menge     |Datum     |\n------------------------------\n\
        |MAT-001  |  1.200,00|31.12.2025|\n|MAT-002   |    99,50-|01.01.2026|\n------------------------------\n\
        |*         |  1.100,50|          |\n------------------------------\n";
    let expected = "Material,Menge,Datum\nMAT-001,1200.00,2025-12-31\nMAT-002,-99.50,2026-01-01\n";
    assert_eq!(rows(sap.as_bytes()).0, expected);
    let psql = " id | name | amount \n----+------+--------\n  1 | a    |   5.50\n  2 | b    |   6.25\n(2 rows)\n\n";
    assert_eq!(rows(psql.as_bytes()).0, "id,name,amount\n1,a,5.50\n2,b,6.25\n");
    let mysql = "+----+------+\n| id | name |\n+----+------+\n|  1 | a    |\n|  2 | b    |\n+----+------+\n";
    assert_eq!(rows(mysql.as_bytes()).0, "id,name\n1,a\n2,b\n");
}

#[test]
fn records_end_with_whatever_ends_them() {
    assert_eq!(rows(b"id,name\r1,Ann\r2,Bob\r").0, "id,name\n1,Ann\n2,Bob\n");
    let (found, said) = rows(b"id,name\r\n1,Ann\r2,Bob\r\n3,Cy\r\n");
    assert_eq!(found, "id,name\n1,Ann\n2,Bob\n3,Cy\n");
    assert!(said.contains("a lone carriage return"), "{said}");
}

#[test]
fn a_workload_that_skips_the_header_reads_records_that_end_with_carriage_returns() {
    let dir = file(b"id,name\r1,Ann\r2,Bob\r");
    let workload = "name = \"w\"\n[[table]]\nname = \"t\"\nfiles = \"t.csv\"\nheader = \"skip\"\ncolumns = [\n\
        { name = \"id\", type = \"int\" }, { name = \"name\", type = \"text\" },\n]\n\
        [[query]]\nname = \"q\"\nsql = \"SELECT count(*) AS n FROM t\"\n";
    std::fs::write(dir.path().join("w.toml"), workload).unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let done = program::tenaz(["run", &path("w.toml"), "--data", &path(""), "--format", "csv"]).must(0);
    assert_eq!(done.text(), "n\n2\n");
}

#[test]
fn headers_are_found_below_other_lines_and_over_several() {
    let (found, said) = rows(b"Report,,\nFrom 2025-01-01,To 2025-03-31,\nid,name,amount\n1,a,5\n2,b,6\n");
    assert_eq!(found, "id,name,amount\n1,a,5\n2,b,6\n");
    assert!(said.contains("line 3 is the header"), "{said}");
    let (found, said) = rows(b"id,sales,,costs,\n,Q1,Q2,Q1,Q2\n1,10,20,5,6\n2,11,21,7,8\n");
    assert_eq!(found, "id,sales Q1,sales Q2,costs Q1,costs Q2\n1,10,20,5,6\n2,11,21,7,8\n");
    assert!(said.contains("lines 1 and 2 are one header"), "{said}");
    let (found, _) = rows(b"28/02/2008,0:10:00\n28/02/2008,0:20:00\n");
    assert_eq!(found, "c1,c2\n2008-02-28,0:10:00\n2008-02-28,0:20:00\n");
    let (_, said) = rows(b"name,city\nAnn,Rome\nBob,Oslo\n");
    assert!(said.contains("the first record is taken for their names (--header no reads it as data)"), "{said}");
}

#[test]
fn a_second_table_in_a_file_is_never_mixed_in_without_a_word() {
    let done =
        sql(b"id,name\n1,a\n2,b\n3,c\n\ncity,country\nRome,IT\nOslo,NO\n", "SELECT * FROM t ORDER BY 1", &[]).must(1);
    assert_eq!(done.text(), "id,name\n1,a\n2,b\n3,c\n");
    assert!(done.err.contains("line 6 seems to begin a second table (city,country)"), "{}", done.err);
    assert!(done.err.lines().last().unwrap().contains("without 3 of 6 records of t"), "{}", done.err);
    let done = sql(b"id,name\n1,a\n2,b\n\nx,y,z\n4,5,6\n7,8,9\n1,1,1\n", "SELECT * FROM t ORDER BY 1", &[]).must(1);
    assert_eq!(done.text(), "id,name\n1,a\n2,b\n");
}

#[test]
fn a_header_that_comes_again_is_left_out_wherever_it_stands() {
    let mut text = "id,amount\n".to_owned();
    for id in 0..300_000 {
        if id % 70_000 == 1 {
            text.push_str("id,amount\n");
        }
        text.push_str(&format!("{id},{id}.5\n"));
    }
    let done = sql(text.as_bytes(), "SELECT count(*) AS n, max(id) AS m FROM t", &[]).must(0);
    assert_eq!(done.text(), "n,m\n300000,299999\n");
    assert!(done.err.contains("t: repeated headers, left out: 5"), "{}", done.err);
}

#[test]
fn names_keep_their_letters_and_numbers_their_digits() {
    let csv = b"ProductType,UnitPrice,Order Date\nA,0.166023,2025-01-01\nB,12,2025-01-02\n";
    assert_eq!(rows(csv).0, "ProductType,UnitPrice,Order Date\nA,0.166023,2025-01-01\nB,12,2025-01-02\n");
    let question =
        "SELECT producttype, max(UNITPRICE) AS top FROM t WHERE ProductType <> 'x' GROUP BY ProductType ORDER BY 1";
    let done = sql(csv, question, &[]).must(0);
    assert_eq!(done.text(), "ProductType,top\nA,0.166023\nB,12.000000\n");
    // As rows that are sorted, and as rows that are not.
    let inner = "SELECT s.UnitPrice, u.producttype AS kind FROM (SELECT * FROM t) s JOIN t u USING (producttype)";
    let lines = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(lines(sql(csv, inner, &[]).must(0).text()), ["0.166023,A", "12,B", "UnitPrice,kind"]);
    let dir = file(csv);
    let question = "SELECT ProductType, unitprice FROM t WHERE producttype = 'B'";
    let json = program::tenaz(["sql", "--data", dir.path().to_str().unwrap(), "--format", "ndjson", question]).must(0);
    assert_eq!(json.text(), "{\"ProductType\":\"B\",\"UnitPrice\":12}\n");
}

#[test]
fn a_workload_file_keeps_what_was_guessed() {
    let dir = file(b"ProductType,UnitPrice\nA,0.166023\nB,12\n");
    let data = dir.path().to_str().unwrap();
    program::tenaz(["init", data]).must(0);
    let workload = dir.path().join("workload.toml");
    let text = std::fs::read_to_string(&workload).unwrap().replace("SELECT count(*) AS records", "SELECT *");
    std::fs::write(&workload, text).unwrap();
    let done = program::tenaz(["run", workload.to_str().unwrap(), "--data", data, "--format", "csv"]).must(0);
    let mut lines: Vec<&str> = done.text().lines().collect();
    lines[1..].sort_unstable();
    assert_eq!(lines, ["ProductType,UnitPrice", "A,0.166023", "B,12"]);
}

#[test]
fn types_are_overruled_for_all_columns_at_once() {
    let done = sql(b"id;amount\n1;1.234,50\n2;7\n", "SELECT * FROM t ORDER BY 1", &["--types", "*=text"]).must(0);
    assert_eq!(done.text(), "id,amount\n1,\"1.234,50\"\n2,7\n");
}

#[test]
fn an_empty_file_is_an_empty_table() {
    assert_eq!(sql(b"", "SELECT count(*) AS n FROM t", &[]).must(0).text(), "n\n0\n");
    assert_eq!(sql(b"id,name\n", "SELECT * FROM t", &[]).must(0).text(), "id,name\n");
}

#[test]
fn what_is_rejected_is_the_last_word_and_much_of_it_is_a_failure() {
    let ragged = b"id,name,amount\n1,a,5\n2,b\n3,c,7,8\n4,d,9\n";
    for quiet in [&[][..], &["--quiet"]] {
        let done = sql(ragged, "SELECT id FROM t ORDER BY 1", quiet).must(1);
        assert_eq!(done.text(), "id\n1\n4\n");
        let last = "tenaz: the answers are without 2 of 4 records of t, which were rejected (2 field count)";
        assert!(done.err.lines().last().unwrap().starts_with(last), "{}", done.err);
        let accepted = sql(ragged, "SELECT id FROM t", &[quiet, &["--accept-rejects"]].concat()).must(0);
        assert!(accepted.err.lines().last().unwrap().starts_with(&last[7..]), "{}", accepted.err);
    }
    let lenient = sql(ragged, "SELECT count(amount) AS n, count(*) AS all FROM t", &["--lenient"]).must(0);
    assert_eq!(lenient.text(), "n,all\n3,4\n");
    assert!(lenient.err.contains("records with too few fields, padded: 1"), "{}", lenient.err);
    assert!(lenient.err.contains("records with too many fields, cut: 1"), "{}", lenient.err);
}

#[test]
fn a_column_that_is_text_because_of_a_few_values_is_said_with_its_cure() {
    let mut text = "id,amount\n".to_owned();
    (0..100).for_each(|id| text.push_str(&format!("{id},{id}.5\n")));
    text.push_str("100,unbekannt\n");
    let done = sql(text.as_bytes(), "SELECT count(*) AS n FROM t", &[]).must(0);
    let note =
        "t.amount is text because 1 of 101 sampled values is no number, such as \"unbekannt\" (--null 'unbekannt'";
    assert!(done.err.contains(note), "{}", done.err);
    let cured = sql(text.as_bytes(), "SELECT sum(amount) AS s FROM t", &["--null", "unbekannt"]).must(0);
    assert_eq!(cured.text(), "s\n5000.0\n");
}

#[test]
fn standard_input_may_be_compressed() {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packer.write_all(b"id,v\n1,a\n2,b\n").unwrap();
    let arguments = ["sql", "--data", "-", "--format", "csv", "SELECT count(*) AS n FROM stdin"];
    let mut child = program::command(arguments);
    let mut child = child.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(&packer.finish().unwrap()).unwrap();
    let done = Finished::new(child.wait_with_output().unwrap()).must(0);
    assert_eq!(done.text(), "n\n2\n");
}

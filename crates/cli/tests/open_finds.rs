//! What users found that was read wrong without a word: each is right now, or is said.
#![allow(clippy::unwrap_used)]

mod program;

use program::Finished;

/// Asks about `t.csv`, and gives back the answer and what was said.
fn sql(bytes: &[u8], question: &str, more: &[&str]) -> Finished {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.csv");
    std::fs::write(&path, bytes).unwrap();
    let arguments = [&["sql", "--data", path.to_str().unwrap(), "--format", "csv", question], more].concat();
    Finished::new(program::command(arguments).env_remove("TENAZ_ACCEPT_REJECTS").output().unwrap())
}

#[track_caller]
fn rows(bytes: &[u8], more: &[&str]) -> (String, String) {
    let done = sql(bytes, "SELECT * FROM t ORDER BY 1", more).must(0);
    assert!(done.err.contains(" + 0 rejected"), "{}", done.err);
    (done.text().to_owned(), done.err.clone())
}

#[track_caller]
fn said(text: &str, what: &str) {
    assert!(text.contains(what), "{what:?} is not said:\n{text}");
}

#[test]
fn google_analytics_sums_up_without_a_label() {
    let csv = b"# ----------------------------------------\n# Pages and screens\n# Start date: 20250101\n\
        # ----------------------------------------\nPage,Views,Users\n,60,25\n/home,40,20\n/about,20,15\n";
    let (found, err) = rows(csv, &[]);
    assert_eq!(found, "Page,Views,Users\n/about,20,15\n/home,40,20\n");
    said(&err, "a record without a label is the sum of the others, and is left out: ,60,25");
    assert_eq!(rows(csv, &["--totals", "keep"]).0.lines().count(), 4);
    let (found, err) = rows(b"Page,Views\n/home,40\n/about,20\n,99\n", &[]);
    assert_eq!(found.lines().count(), 4, "no sum, so it stays");
    said(&err, "only one record has no value in its first column");
}

#[test]
fn a_point_that_may_stand_between_thousands_is_said_or_decided_by_other_columns() {
    let (found, err) = rows(b"id;n\n1;1.234\n2;5.678\n", &[]);
    assert_eq!(found, "id,n\n1,1.234\n2,5.678\n");
    said(&err, "t.n: the point in 1.234 is read as a decimal point (--decimal-comma yes reads 1234)");
    assert_eq!(rows(b"id;n\n1;1.234\n2;5.678\n", &["--decimal-comma", "yes"]).0, "id,n\n1,1234\n2,5678\n");
    assert_eq!(rows(b"id;n;p\n1;1.234;0,5\n2;567;12,25\n", &[]).0, "id,n,p\n1,1234,0.5\n2,567,12.25\n");
    let (_, err) = rows(b"id;n;p\n1;1.234;0.5\n2;5.678;12.25\n", &[]);
    assert!(!err.contains("decimal point"), "another column shows it: {err}");
}

#[test]
fn codes_that_look_like_numbers_with_exponents_stay_text() {
    let (found, err) = rows(b"sku,n\n1E5,1\n2E7,2\n12345,3\n", &[]);
    assert_eq!(found, "sku,n\n12345,3\n1E5,1\n2E7,2\n");
    said(&err, "t.sku is text because 1E5 may be a code (--types \"t.sku=float\" reads numbers)");
    assert_eq!(sql(b"x\n1e+05\n2.5E3\n", "SELECT sum(x) AS s FROM t", &[]).must(0).text(), "s\n102500.0\n");
}

#[test]
fn files_of_a_directory_that_are_not_read_are_named() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["orders.csv", "more.txt", "old.xlsx", "README.md"] {
        std::fs::write(dir.path().join(name), "id,n\n1,2\n").unwrap();
    }
    let done = program::tenaz(["sql", "--data", dir.path().to_str().unwrap(), "SELECT count(*) FROM orders"]).must(0);
    said(&done.err, "more.txt, old.xlsx are not read: in a directory only .csv, .tsv, .tab and .psv files are");
    assert!(!done.err.contains("README"), "{}", done.err);
    std::fs::remove_file(dir.path().join("orders.csv")).unwrap();
    let done = program::tenaz(["sql", "--data", dir.path().to_str().unwrap(), "SELECT 1"]);
    said(&done.err, "more.txt");
}

#[test]
fn nulls_in_columns_of_numbers_and_dates_have_many_spellings_which_are_said() {
    let (found, err) = rows(b"id,n,day\n1,-,2025-01-01\n2,NaN,-\n3,2.5,#N/A\n", &[]);
    assert_eq!(found, "id,n,day\n1,,2025-01-01\n2,,\n3,2.5,\n");
    said(&err, "t: #N/A, -, NaN are read as null in n, day");
    let (found, _) = rows(b"id;n\n1;-\n2;1.234,50\n3;#WERT!\n", &[]);
    assert_eq!(found, "id,n\n1,\n2,1234.50\n3,\n");
    assert_eq!(rows(b"id,word\n1,-\n2,x\n", &[]).0, "id,word\n1,-\n2,x\n", "texts keep them");
}

#[test]
fn dates_begin_with_the_day_where_money_is_in_pounds() {
    let csv = "Date,Amount\n03/04/2025,£12.50\n05/06/2025,\"£1,200.00\"\n";
    let (found, err) = rows(csv.as_bytes(), &[]);
    assert_eq!(found, "Date,Amount\n2025-04-03,12.50\n2025-06-05,1200.00\n");
    said(&err, "03/04/2025 is read as 2025-04-03 (--date-order mdy reads it the other way)");
    let (found, _) = rows("Date,Amount (£)\n03/04/2025,12.50\n".as_bytes(), &[]);
    assert_eq!(found, "Date,Amount (£)\n2025-04-03,12.50\n");
    let (found, _) = rows(b"Date,Amount\n03/04/2025,$12.50\n", &[]);
    assert_eq!(found, "Date,Amount\n2025-03-04,12.50\n");
}

#[test]
fn indian_groups_excel_formulas_and_exponents_with_commas_are_read() {
    let (found, _) = rows(b"id,amount\n1,\"1,23,456.00\"\n2,\"12,34,56,789.50\"\n3,100.00\n", &[]);
    assert_eq!(found, "id,amount\n1,123456.00\n2,123456789.50\n3,100.00\n");
    let (found, err) = rows(b"zip,n\n=\"00123\",1\n=\"04567\",2\n", &[]);
    assert_eq!(found, "zip,n\n00123,1\n04567,2\n");
    said(&err, "t.zip: =\"00123\" is read as the text 00123");
    let (found, _) = rows(b"id;x\n1;1,5E+3\n2;2,5E-1\n", &[]);
    assert_eq!(found, "id,x\n1,1500.0\n2,0.25\n");
}

#[test]
fn a_quote_that_is_closed_in_a_later_record_is_said() {
    let csv = b"id,name,n\n1,\"Ann,5\n2,Bob,6\n3,Cy\",7\n4,Dan,8\n";
    let done = sql(csv, "SELECT count(*) AS n FROM t", &[]);
    said(&done.err, "line 2: a quoted field goes on for 3 lines that look like records");
    let csv = b"id,name,n\n1,\"Ann,5\n2,Bob,6\n3,\"Cy\",7\n4,Dan,8\n";
    let done = sql(csv, "SELECT count(*) AS n FROM t", &[]).must(1);
    said(&done.err, "1 text after quote");
    let done = sql(csv, "SELECT id, name FROM t ORDER BY 1", &["--lenient"]).must(0);
    assert_eq!(done.text(), "id,name\n1,\"\"\"Ann\"\n2,Bob\n3,Cy\n4,Dan\n");
    said(&done.err, "records with stray quotes, taken literally: 1");
}

#[test]
fn names_with_spaces_and_signs_are_shown_and_match() {
    let csv = b"Order Date,Unit Price (USD),Name\n2025-01-02,5.50,a\n2025-01-03,6.50,b\n";
    assert_eq!(rows(csv, &[]).0.lines().next(), Some("Order Date,Unit Price (USD),Name"));
    for question in [
        "SELECT \"Order Date\", max(\"Unit Price (USD)\") AS top FROM t GROUP BY \"Order Date\" ORDER BY \"order date\"",
        "SELECT order_date, max(unit_price_usd) AS top FROM t GROUP BY 1 ORDER BY ORDER_DATE",
        "SELECT x.\"Order Date\", max(x.Unit_Price_USD) AS top FROM t x GROUP BY x.\"Order Date\" ORDER BY 1",
    ] {
        let done = sql(csv, question, &[]).must(0);
        assert_eq!(done.text(), "Order Date,top\n2025-01-02,5.50\n2025-01-03,6.50\n", "{question}");
    }
    let own = "SELECT name AS \"Order Date\" FROM t ORDER BY \"Order Date\" DESC";
    assert_eq!(sql(csv, own, &[]).must(0).text(), "Order Date\nb\na\n", "the query's own name is the query's");
    assert_eq!(rows(b"a,a,A b\n1,2,3\n", &[]).0, "a,a_2,A b\n1,2,3\n");
}

#[test]
fn types_take_formats() {
    let csv = b"id,day,at,amount,paid\n1,20251231,1735689599,\"1.234,5\",ja\n2,20260101,0,\"0,5\",nein\n";
    let types = "day=date:%Y%m%d,at=timestamp:%s,amount=decimal(12,2):comma,paid=bool:ja/nein";
    let (found, _) = rows(csv, &["--types", types]);
    assert_eq!(
        found,
        "id,day,at,amount,paid\n1,2025-12-31,2024-12-31 23:59:59,1234.50,true\n2,2026-01-01,1970-01-01 00:00:00,0.50,false\n"
    );
    let done = sql(csv, "SELECT 1", &["--types", "day=date:%Y%q"]).must(2);
    said(&done.err, "there is no %q");
}

#[test]
fn zones_fractions_and_words_for_truth_are_read_and_what_is_lost_is_said() {
    let (found, err) = rows(b"at,ok\n2025-01-31 23:30:00 PST,tak\n2025-07-01 08:00:00 PDT,nie\n", &[]);
    assert_eq!(found, "at,ok\n2025-02-01 07:30:00,true\n2025-07-01 15:00:00,false\n");
    said(&err, "t.at: times have a zone and are read in UTC: 2025-01-31 23:30:00 PST is 2025-02-01 07:30:00");
    let (found, err) = rows(b"id,at\n1,2025-01-01 10:00:00.123456789\n", &[]);
    assert_eq!(found, "id,at\n1,2025-01-01 10:00:00.123456\n");
    said(&err, "digits beyond microseconds are dropped");
    assert_eq!(rows(b"id,flag\n1,0\n2,1\n", &[]).0, "id,flag\n1,0\n2,1\n", "0 and 1 are numbers, and can be summed up");
}

#[test]
fn a_column_of_country_numbers_or_dates_that_is_text_because_of_a_few_values_is_said() {
    let mut text = "id;amount;day\n".to_owned();
    for id in 10..60 {
        text.push_str(&format!("{id};{id},50;{}.03.2025\n", id % 28 + 1));
    }
    text.push_str("99;offen;bald\n");
    let done = sql(text.as_bytes(), "SELECT count(*) AS n FROM t", &[]).must(0);
    said(&done.err, "t.amount is text because 1 of 51 sampled values is no number, such as \"offen\" (--null 'offen'");
    said(&done.err, "t.day is text because 1 of 29 sampled values is no date, such as \"bald\"");
    let cured = sql(text.as_bytes(), "SELECT sum(amount) AS s FROM t", &["--null", "offen,bald"]).must(0);
    assert_eq!(cured.text(), "s\n1750.00\n");
}

#[test]
fn google_ads_surveymonkey_and_datev_are_read_as_they_write() {
    let ads = b"Campaign report\n\"January 1, 2025 - January 31, 2025\"\nCampaign,Clicks,Cost\nBrand,\"1,200\",\"$1,234.50\"\n\
        Generic,300,$200.00\nTotal: Account,\"1,500\",\"$1,434.50\"\nTotal: Campaigns,\"1,500\",\"$1,434.50\"\n";
    let (found, err) = rows(ads, &[]);
    assert_eq!(found, "Campaign,Clicks,Cost\nBrand,1200,1234.50\nGeneric,300,200.00\n");
    said(&err, "t: lines of totals, left out: 2");
    let survey = b"Respondent ID,Start,Which?,,Comment\n,,Tea,Coffee,Open-Ended Response\n1001,01/31/2025,Tea,,nice\n\
        1002,02/01/2025,,Coffee,\n1003,02/02/2025,Tea,Coffee,bad\n";
    let (found, err) = rows(survey, &[]);
    assert!(
        found.starts_with(
            "Respondent ID,Start,Which? Tea,Which? Coffee,Comment Open-Ended Response\n1001,2025-01-31,Tea"
        )
    );
    said(&err, "lines 1 and 2 are one header");
    let datev = "\"EXTF\";700;21;\"Buchungsstapel\"\nUmsatz;Kennzeichen;Konto;Text\n119,00;\"S\";1200;\"Rechnung 1\"\n1.190,50;\"H\";1200;\"x\"\n";
    let (found, err) = rows(datev.as_bytes(), &[]);
    assert!(found.starts_with("Umsatz,Kennzeichen,Konto,Text\n119.00,S,1200,Rechnung 1\n1190.50,H"), "{found}");
    said(&err, "the first line says what DATEV has exported");
}

#[test]
fn what_is_dropped_or_missing_is_said() {
    let (_, err) = rows("k,v\na,$5.00\nb,€6.00\n".as_bytes(), &[]);
    said(&err, "t.v: numbers have unlike units ($, €), which are dropped");
    let (_, err) = rows(b"1,a\n2,b\n", &[]);
    said(&err, "no names of columns were found, so they are c1, c2");
    let (_, err) = rows(b"Tag;n\n31.01.25;1\n01.02.25;2\n", &[]);
    assert!(!err.contains("the other way"), "31 is a day: {err}");
    let (_, err) = rows(b"v\n1\n2\n\n4\n", &[]);
    said(&err, "blank lines between the values are no records, and no nulls");
    let (_, err) = rows(b"\"id,\"\"name\"\"\"\n\"1,\"\"Ann\"\"\"\n\"2,\"\"Bob\"\"\"\n", &[]);
    said(&err, "so the file was quoted twice");
    let done = sql(b"[{\"a\":1},{\"a\":2}]", "SELECT 1", &[]);
    said(&done.err, "this is a JSON document, not CSV");
}

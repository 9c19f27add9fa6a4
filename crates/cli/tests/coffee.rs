//! The coffee answers against an independent oracle, byte for byte, on generated, real and handmade data.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod oracle;
mod program;
mod shop;

use std::fs;
use std::path::Path;

use program::{generated, run_coffee, summary};
use shop::{ITEMS, Shop, TRANSACTIONS, USERS, item, transaction};

/// Runs all five questions and compares every file.
#[track_caller]
fn agrees_with_the_oracle(data: &Path, more: &[&str]) -> Vec<(&'static str, String)> {
    let out = tempfile::tempdir().unwrap();
    run_coffee(data, out.path(), more).must(0);
    let expected = oracle::expected(data);
    for (query, text) in &expected {
        let found = fs::read_to_string(out.path().join(format!("{query}.csv"))).unwrap();
        assert_eq!(found, *text, "{query}");
    }
    expected.into_iter().collect()
}

fn answer<'a>(answers: &'a [(&'static str, String)], query: &str) -> &'a str {
    answers.iter().find(|(name, _)| *name == query).map(|(_, text)| text.as_str()).unwrap()
}

#[test]
fn generated_data_gives_the_oracles_answers() {
    for seed in ["1", "20240229"] {
        let data = tempfile::tempdir().unwrap();
        generated(data.path(), "0.002", seed);
        let answers = agrees_with_the_oracle(data.path(), &[]);
        assert!(answers.iter().all(|(_, text)| text.lines().count() > 10), "the data is too small to prove anything");
    }
}

#[test]
fn the_real_samples_give_the_oracles_answers() {
    let data = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data/coffee"));
    if !data.is_dir() {
        eprintln!("skipped: the real samples are not at {}", data.display());
        return;
    }
    agrees_with_the_oracle(data, &[]);
    agrees_with_the_oracle(data, &["--chunk-size", "1000", "--partitions", "5"]);
}

#[test]
fn both_ends_of_hours_years_and_the_amount_are_in_and_their_neighbours_out() {
    let shop = Shop::new();
    let cases = [
        ("opens", "75.0", "2024-03-01 06:00:00", true),
        ("closes", "75.000", "2024-03-01 23:00:00", true),
        ("too-early", "75.0", "2024-03-01 05:59:59", false),
        ("too-late", "75.0", "2024-03-01 23:00:01", false),
        ("exact", "75", "2024-03-01 12:00:00", true),
        ("just-under", "74.999", "2024-03-01 12:00:00", false),
        ("last-of-2023", "99.5", "2023-12-31 22:59:59", false),
        ("midnight-2023", "99.5", "2023-12-31 23:59:59", false),
        ("first-of-2024", "99.5", "2024-01-01 06:00:00", true),
        ("last-of-2025", "99.5", "2025-12-31 23:00:00", true),
        ("midnight-2025", "99.5", "2025-12-31 23:59:59", false),
        ("first-of-2026", "99.5", "2026-01-01 06:00:00", false),
    ];
    let mut lines: Vec<String> =
        cases.iter().map(|(id, amount, at, _)| transaction(id, "1", "1.0", amount, at)).collect();
    // The years hold for users, too, where no hour is asked for; the halves change between June and July.
    lines.push(transaction("start", "2", "1.0", "1.0", "2024-01-01 00:00:00"));
    lines.push(transaction("end", "2", "1.0", "1.0", "2025-12-31 23:59:59"));
    lines.push(transaction("before", "2", "1.0", "1.0", "2023-12-31 23:59:59"));
    lines.push(transaction("after", "2", "1.0", "1.0", "2026-01-01 00:00:00"));
    lines.push(transaction("june", "2", "1.0", "1.0", "2025-06-30 23:00:00"));
    lines.push(transaction("july", "2", "1.0", "2.0", "2025-07-01 06:00:00"));
    shop.lines("transactions/transactions_202401.csv", TRANSACTIONS, lines);
    shop.lines("users/users_202401.csv", USERS, ["1,female,1990-01-02,2023-07-01 00:00:00"]);
    shop.lines(
        "transaction_items/transaction_items_202401.csv",
        ITEMS,
        [
            item("1", "5", "5.0", "2023-12-31 23:59:59"),
            item("2", "1", "1.0", "2024-01-01 00:00:00"),
            item("3", "2", "2.0", "2025-12-31 23:59:59"),
            item("1", "5", "5.0", "2026-01-01 00:00:00"),
        ],
    );
    let answers = agrees_with_the_oracle(shop.path(), &[]);
    let q1 = answer(&answers, "q1");
    for (id, _, _, is_in) in cases {
        assert_eq!(q1.contains(&format!("\n{id},")), is_in, "{id}");
    }
    assert_eq!(
        answer(&answers, "q2_sold"),
        "year_month_created_at,item_name,sellings_qty\n2024-01,Latte,1\n2025-12,Mocha,2\n"
    );
    assert!(answer(&answers, "q3").contains("2025-H1,Beta,1.000\n2025-H2,Alpha,99.500\n2025-H2,Beta,2.000\n"));
    assert!(answer(&answers, "q4").ends_with("Beta,1990-01-02,4\n"));
}

#[test]
fn ties_go_to_the_smallest_id() {
    let shop = Shop::new();
    shop.lines(
        "transaction_items/transaction_items_202401.csv",
        ITEMS,
        [
            // February: 3 and 2 tie in quantity and in money; the same item twice in one transaction counts twice.
            item("3", "2", "4.5", "2024-02-01 10:00:00"),
            item("2", "1", "2.25", "2024-02-01 10:00:00"),
            item("2", "1", "2.25", "2024-02-01 10:00:00"),
            item("1", "1", "4.499", "2024-02-01 10:00:00"),
        ],
    );
    let buys = |store: &str, user: &str, times: usize| -> Vec<String> {
        vec![transaction("t", store, user, "1.0", "2024-05-05 12:00:00"); times]
    };
    // Numbers, not texts, decide: 9 comes before 10.
    let mut lines = [buys("1", "10.0", 2), buys("1", "9.0", 2), buys("1", "11.0", 2), buys("1", "7.0", 3)].concat();
    // The third of Beta is user 5, who is not in users: the place stays empty.
    lines.extend(
        [buys("2", "4.0", 3), buys("2", "", 9), buys("2", "6.0", 4), buys("2", "5.0", 3), buys("2", "8.0", 3)].concat(),
    );
    shop.lines("transactions/transactions_202401.csv", TRANSACTIONS, lines);
    let born = |id: u32| format!("{id},female,19{id:02}-01-01,2023-07-01 00:00:00");
    shop.lines("users/users_202401.csv", USERS, [4, 6, 7, 8, 9, 10, 11].map(born));
    let answers = agrees_with_the_oracle(shop.path(), &["--partitions", "4"]);
    assert!(answer(&answers, "q2_sold").ends_with("\n2024-02,Latte,2\n"));
    assert!(answer(&answers, "q2_profit").ends_with("\n2024-02,Latte,4.500\n"));
    let expected = "store_name,birthdate,purchases_qty\nAlpha,1907-01-01,3\nAlpha,1909-01-01,2\nAlpha,1910-01-01,2\n\
                    Beta,1906-01-01,4\nBeta,1904-01-01,3\n";
    assert_eq!(answer(&answers, "q4"), expected);
}

#[test]
fn nulls_drop_a_row_only_from_the_questions_that_need_the_column() {
    let shop = Shop::new();
    let at = "2024-02-02 12:00:00";
    shop.lines(
        "transactions/transactions_202401.csv",
        TRANSACTIONS,
        [
            transaction("", "1", "1.0", "80.0", at),
            transaction("no-store", "", "1.0", "81.0", at),
            transaction("no-user", "1", "", "82.0", at),
            transaction("no-amount", "1", "2.0", "", at),
            transaction("no-time", "1", "1.0", "83.0", ""),
        ],
    );
    shop.lines(
        "transaction_items/transaction_items_202401.csv",
        ITEMS,
        [item("", "9", "9.0", at), item("1", "", "9.0", at), item("2", "1", "", at), item("3", "7", "7.0", "")],
    );
    shop.lines("users/users_202401.csv", USERS, ["1,,,", ",male,2000-01-01,", "2,male,2001-02-03,"]);
    let answers = agrees_with_the_oracle(shop.path(), &[]);
    assert_eq!(answer(&answers, "q1"), "transaction_id,final_amount\n,80.000\nno-store,81.000\nno-user,82.000\n");
    assert_eq!(answer(&answers, "q2_sold"), "year_month_created_at,item_name,sellings_qty\n2024-02,Latte,1\n");
    assert_eq!(answer(&answers, "q2_profit"), "year_month_created_at,item_name,profit_sum\n2024-02,Espresso,9.000\n");
    assert_eq!(answer(&answers, "q3"), "year_half_created_at,store_name,tpv\n2024-H1,Alpha,162.000\n");
    assert_eq!(answer(&answers, "q4"), "store_name,birthdate,purchases_qty\nAlpha,,1\nAlpha,2001-02-03,1\n");
}

#[test]
fn oddly_written_files_are_read_as_what_they_mean() {
    let shop = Shop::new();
    let at = "2024-02-02 12:00:00";
    let plain = transaction("plain", "1", "29454.0", "79.515", at);
    // Files: CRLF with a byte order mark; quotes around everything and no last newline; empty; header only, cut short.
    shop.file("transactions/transactions_202401.csv", format!("\u{feff}{TRANSACTIONS}\r\n{plain}\r\n\r\n{plain}\r\n"));
    let quoted =
        format!("\"quoted, \"\"twice\"\"\nand broken\",\"2\",\"1\",\"\",\"29454.0\",\"1\",\"0\",\"75.25\",\"{at}\"");
    shop.file("transactions/transactions_202402.csv", format!("{TRANSACTIONS}\n{quoted}"));
    shop.file("transactions/transactions_202403.csv", "");
    shop.file("transactions/transactions_202404.csv", TRANSACTIONS);
    shop.file("users/users_202401.csv", format!("\u{feff}{USERS}\r\n29454,male,1999-12-31,2023-07-01 00:00:00"));
    shop.file("users/users_202402.csv", "");
    shop.file("transaction_items/transaction_items_202401.csv", "");
    for more in [&[][..], &["--chunk-size", "64"], &["--chunk-size", "1", "--threads", "3"]] {
        let answers = agrees_with_the_oracle(shop.path(), more);
        let expected =
            "transaction_id,final_amount\nplain,79.515\nplain,79.515\n\"quoted, \"\"twice\"\"\nand broken\",75.250\n";
        assert_eq!(answer(&answers, "q1"), expected);
        assert_eq!(
            answer(&answers, "q4"),
            "store_name,birthdate,purchases_qty\nAlpha,1999-12-31,2\nBeta,1999-12-31,1\n"
        );
        assert_eq!(answer(&answers, "q2_sold"), "year_month_created_at,item_name,sellings_qty\n");
    }
}

#[test]
fn data_without_a_single_record_gives_empty_answers() {
    let shop = Shop::new();
    shop.file("stores/stores.csv", "").file("menu_items/menu_items.csv", "");
    let answers = agrees_with_the_oracle(shop.path(), &["--partitions", "3"]);
    assert!(answers.iter().all(|(_, text)| text.lines().count() == 1));
    let out = tempfile::tempdir().unwrap();
    run_coffee(shop.path(), out.path(), &[]).must(0);
    assert_eq!(summary(out.path())["queries"]["q3"]["rows"], 0);
    assert_eq!(summary(out.path())["tables"]["transactions"]["records"], 0);
}

//! Asking, as a person does it: by mouse, by keyboard, again after a reload.

use std::fmt::Write as _;

use serde_json::json;

use crate::browser::Browser;
use crate::served::Served;

const ORDERS: &str = "id,city,amount,placed\n1,Rome,10.50,2025-01-05\n2,Oslo,2.25,2025-01-09\n3,Rome,1234567890123.01,2025-02-01\n4,,7.00,2025-02-02\n";

/// The texts of the cells of a column, from the first row on.
fn column(browser: &Browser, place: usize) -> Vec<String> {
    let script = "return [...document.querySelectorAll('.grid .row')].map((row) => row.querySelectorAll('[role=gridcell]')[arguments[0]]?.textContent.trim())";
    let cells = browser.script(script, &[json!(place)]);
    cells.as_array().unwrap().iter().map(|cell| cell.as_str().unwrap_or_default().to_owned()).collect()
}

/// Drops files of this content onto the page.
pub(crate) fn drop_files(browser: &Browser, files: &[(&str, &str)]) {
    let script = "const transfer = new DataTransfer(); \
        for (const [name, text] of arguments[0]) transfer.items.add(new File([text], name)); \
        document.querySelector('.ask').dispatchEvent(new DragEvent('drop', { bubbles: true, cancelable: true, dataTransfer: transfer }));";
    browser.wait_for("the page", "document.querySelector('.ask') !== null");
    browser.script(script, &[json!(files)]);
}

#[test]
fn three_questions_over_dropped_files_by_mouse_alone() {
    let Some(browser) = Browser::start() else { return };
    let served = Served::start(None, &[]);
    browser.open(&served.url);
    browser.wait_for_text("There are no tables yet");
    browser.screenshot("ask-empty-desktop");
    drop_files(&browser, &[("orders.csv", ORDERS), ("cities.csv", "city,country\nRome,IT\nOslo,NO\n")]);
    // First: a click on a table.
    browser.click_text("orders");
    browser.wait_for_text("4 rows");
    assert_eq!(column(&browser, 1), ["Rome", "Oslo", "Rome", "null"]);
    assert_eq!(column(&browser, 2)[2], "1234567890123.01", "no digit of money is lost");
    // Second: another one.
    browser.click_text("cities");
    browser.wait_for_text("2 rows");
    assert_eq!(column(&browser, 1), ["NO", "IT"], "an answer without an order is sorted by its columns");
    // Third: what was asked before, and the answer in another order.
    browser.click(".history li:nth-child(2) button");
    browser.click("#run");
    browser.wait_for_text("4 rows");
    browser.click(".grid .head [role=columnheader]:nth-child(3)");
    browser.wait_for("the sorted rows", "document.querySelector('[aria-sort=ascending]') !== null && document.querySelector('.grid .row [role=gridcell]')?.textContent.trim() === '2'");
    assert_eq!(column(&browser, 2), ["2.25", "7.00", "10.50", "1234567890123.01"]);
    browser.is_clean();
}

#[test]
fn by_keyboard_alone_with_completion_and_a_mistake_at_its_place() {
    let Some(browser) = Browser::start() else { return };
    let data = tempfile::tempdir().unwrap();
    std::fs::write(data.path().join("orders.csv"), ORDERS).unwrap();
    let served = Served::start(Some(data.path()), &[]);
    browser.open(&served.url);
    browser.wait_for_text("Ask about these tables");
    let focus = "document.activeElement?.id";
    for _ in 0..40 {
        if browser.script(&format!("return {focus}"), &[]) == "sql" {
            break;
        }
        browser.press(&["\u{e004}"]);
    }
    assert_eq!(browser.script(&format!("return {focus}"), &[]), "sql", "Tab leads to the question");
    browser.type_keys("SELECT city, sum(amuont) AS total FROM orders GROUP BY city ORDER BY city");
    browser.press(&["\u{e00c}"]);
    browser.wait_for_text("amuont");
    let wrong = browser.wait_for("the mistake", "document.querySelector('.colours .wrong')?.textContent");
    assert_eq!(wrong, "amuont");
    browser.screenshot("ask-mistake-desktop");
    // Ctrl+A, then typed anew, with a completion taken by Enter.
    browser.press(&["\u{e009}", "a"]);
    browser.type_keys("SELECT city, sum(amo");
    browser.wait_for(
        "a completion",
        "document.querySelector('.offer [aria-selected=true]')?.textContent.startsWith('amount')",
    );
    browser.press(&["\u{e007}"]);
    browser.type_keys(") AS total FROM orders GROUP BY city ORDER BY city");
    browser.press(&["\u{e00c}"]);
    browser.press(&["\u{e009}", "\u{e007}"]);
    browser.wait_for_text("3 rows");
    assert_eq!(column(&browser, 1), ["2.25", "1234567890133.51", "7.00"]);
    // To the table, and in it.
    browser.script("document.querySelector('.grid').focus()", &[]);
    browser.press(&["\u{e015}"]);
    browser.press(&["\u{e014}"]);
    browser.wait_for(
        "the active cell",
        "document.querySelector('.grid .active')?.textContent.trim() === '1234567890133.51'",
    );
    browser.is_clean();
}

#[test]
fn a_reload_keeps_tables_history_and_job() {
    let Some(browser) = Browser::start() else { return };
    let served = Served::start(None, &[]);
    browser.open(&served.url);
    drop_files(&browser, &[("orders.csv", ORDERS)]);
    browser.click_text("orders");
    browser.wait_for_text("4 rows");
    browser.reload();
    browser.wait_for_text("Asked before");
    browser.wait_for_text("orders");
    browser.click_text("Jobs");
    browser.wait_for_text("1 job");
    browser.click(".job-line");
    browser.wait_for_text("Ledger");
    browser.wait_for_text("✓ even");
    browser.wait_for("the fingerprint", "document.querySelector('.print')?.title.length === 64");
    browser.is_clean();
}

#[test]
fn a_million_rows_are_scrolled_through_and_a_running_job_is_cancelled() {
    let Some(browser) = Browser::start() else { return };
    let data = tempfile::tempdir().unwrap();
    let mut text = String::from("n,s\n");
    (0..200_000).for_each(|n| writeln!(text, "{n},row {n}").unwrap());
    std::fs::write(data.path().join("many.csv"), text).unwrap();
    let served = Served::start(Some(data.path()), &["--threads", "1"]);
    browser.open(&served.url);
    browser.wait_for_text("Ask about these tables");
    browser.click("#sql");
    browser.type_into(
        "#sql",
        "SELECT a.n * 5 + b.k AS n, s FROM many a CROSS JOIN (VALUES (0),(1),(2),(3),(4)) AS b(k) ORDER BY 1 ",
    );
    browser.press(&["\u{e00c}"]);
    browser.click("#run");
    browser.wait_for_text("1\u{202f}000\u{202f}000 rows");
    browser.script("document.querySelector('.grid').focus()", &[]);
    browser.press(&["\u{e009}", "\u{e010}"]);
    browser.wait_for(
        "the last row",
        "[...document.querySelectorAll('.grid .row')].at(-1)?.textContent.includes('999999')",
    );
    let rows = browser.script("return document.querySelectorAll('.grid .row').length", &[]);
    assert!(rows.as_u64().unwrap() < 100, "only the rows in view exist: {rows}");
    // Something that takes too long.
    browser.press(&["\u{e009}", "\u{e011}"]);
    browser.click("#sql");
    browser.press(&["\u{e009}", "a"]);
    browser.type_into("#sql", "SELECT count(*) FROM many a JOIN many b ON a.n % 7 = b.n % 7 WHERE a.s <> b.s || 'x' ");
    browser.press(&["\u{e00c}"]);
    browser.click("#run");
    browser.click("#cancel");
    browser.wait_for_text("cancelled");
    browser.wait_for_text("Nothing is kept of it");
    browser.is_clean();
}

#[test]
fn the_page_of_a_gateway_offers_the_bundled_workloads() {
    let module = concat!(env!("CARGO_MANIFEST_DIR"), "/../ui/assets/app/ask/cluster_question.js");
    let text = std::fs::read_to_string(module).unwrap();
    let list = text.split("const WORKLOADS = [").nth(1).unwrap().split("\n];").next().unwrap();
    let offered: Vec<&str> = list.split("['").skip(1).map(|entry| entry.split('\'').next().unwrap()).collect();
    assert_eq!(offered, tenaz_engine::bundled_names());
}

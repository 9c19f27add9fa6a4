//! Screenshots of every view of `tenaz ui`, on a desktop and on a phone, in light and in dark.

use std::process::Command;

use crate::browser::Browser;
use crate::served::Served;

const SIZES: [(&str, u32, u32, &str); 2] = [("desktop", 1280, 800, "light"), ("phone", 400, 850, "dark")];

/// Nothing is wider than the window.
fn fits(browser: &Browser, view: &str) {
    let width = browser.script("return [document.documentElement.scrollWidth, innerWidth]", &[]);
    assert!(width[0].as_u64() <= width[1].as_u64(), "{view} is wider than the window: {width}");
}

#[test]
fn every_view_at_two_sizes() {
    let Some(browser) = Browser::start() else { return };
    let data = tempfile::tempdir().unwrap();
    let mut generate = Command::new(env!("CARGO_BIN_EXE_tenaz"));
    let made = generate.args(["generate", "coffee", "--scale", "0.002", "--out"]).arg(data.path()).output().unwrap();
    assert!(made.status.success());
    // A record that is rejected, so that there is one to be seen.
    let broken = data.path().join("stores/stores.csv");
    let text = std::fs::read_to_string(&broken).unwrap() + "not a number,x\n";
    std::fs::write(&broken, text).unwrap();
    let served = Served::start(Some(data.path()), &[]);
    for (name, width, height, scheme) in SIZES {
        browser.resize(width, height);
        browser.prefer(scheme);
        browser.open(&served.url);
        browser.reload();
        browser.wait_for_text("coffee");
        browser.screenshot(&format!("ask-tables-{name}"));
        let sql = "SELECT s.store_name, sum(t.final_amount) AS turnover, count(*) AS bills\nFROM transactions t JOIN stores s USING (store_id)\nGROUP BY 1 ORDER BY 2 DESC";
        browser.click("#sql");
        browser.press(&["\u{e009}", "a"]);
        browser.script("document.execCommand('insertText', false, arguments[0])", &[sql.into()]);
        browser.click("#run");
        browser.wait_for(
            "an answer",
            "document.querySelector('.grid .row') !== null && document.querySelector('.print') !== null",
        );
        fits(&browser, "ask");
        browser.screenshot(&format!("ask-answer-{name}"));
        browser.click_text("Chart");
        browser.wait_for("a chart", "document.querySelector('.plot canvas') !== null");
        browser.screenshot(&format!("ask-chart-{name}"));
        browser.click_text("Plan");
        browser.wait_for("a plan", "document.querySelectorAll('.plan .node').length > 3");
        browser.screenshot(&format!("ask-plan-{name}"));
        browser.click_text("Rejected");
        browser.wait_for_text("stores.csv");
        browser.screenshot(&format!("ask-rejects-{name}"));
        browser.click(".run-line a");
        browser.wait_for_text("Ledger");
        fits(&browser, "job");
        browser.screenshot(&format!("job-{name}"));
        browser.click_text("Jobs");
        browser.wait_for("a job", "document.querySelector('.job-line') !== null");
        fits(&browser, "jobs");
        browser.screenshot(&format!("jobs-{name}"));
        browser.click_text("Process");
        browser.wait_for_text("This is one process");
        fits(&browser, "cluster");
        browser.screenshot(&format!("process-{name}"));
    }
    browser.is_clean();
}

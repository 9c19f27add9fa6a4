//! Names, cells and error texts that would be markup or script anywhere else stay text.

use serde_json::json;

use crate::asking::drop_files;
use crate::browser::Browser;
use crate::served::Served;

const SCRIPT: &str = "<img src=x onerror=\"window.stolen=1\"><script>window.stolen=1</script>";

#[test]
fn hostile_names_cells_and_errors_stay_text() {
    let Some(browser) = Browser::start() else { return };
    let served = Served::start(None, &[]);
    browser.open(&served.url);
    let name = "<img src=x onerror=window.stolen=1>.csv";
    let field = SCRIPT.replace('"', "\"\"");
    let csv = format!("\"{field}\",n\n\"{field}\",1\n\"=HYPERLINK(\"\"x\"\")\",2\njavascript:alert(1),3\n");
    drop_files(&browser, &[(name, &csv)]);
    browser.click(".tables button.name");
    browser.wait_for_text("3 rows");
    let cell = browser.wait_for("the cell", "document.querySelector('.grid .row [role=gridcell]')?.textContent.trim()");
    assert_eq!(cell, json!(SCRIPT));
    let header =
        browser.wait_for("the header", "document.querySelector('.grid .head [role=columnheader]')?.textContent.trim()");
    assert!(header.as_str().unwrap().contains("onerror"), "{header}");
    // A mistake whose text repeats what was typed.
    browser.click("#sql");
    browser.press(&["\u{e009}", "a"]);
    browser.type_into("#sql", "SELECT \"<script>window.stolen=1</script>\" FROM nowhere ");
    browser.press(&["\u{e00c}"]);
    browser.click("#run");
    browser.wait_for("the mistake", "document.querySelector('#sql-mistake')?.textContent.length > 20");
    // The same texts as names of views and jobs in the address.
    for fragment in ["#/<img src=x onerror=window.stolen=1>", "#/job/<script>window.stolen=1<%2Fscript>"] {
        browser.open(&format!("{}/{fragment}?token={}", served.origin(), served.token()));
        browser.wait_for("the page", "document.querySelector('.empty strong') !== null");
    }
    assert_eq!(browser.script("return window.stolen ?? null", &[]), json!(null), "a script has run");
    assert_eq!(browser.script("return document.querySelectorAll('#page img, #page script').length", &[]), json!(0));
    browser.is_clean();
}

#[test]
fn the_policy_stops_what_the_page_would_never_do() {
    let Some(browser) = Browser::start() else { return };
    let served = Served::start(None, &[]);
    browser.open(&served.url);
    browser.wait_for_text("There are no tables yet");
    browser.is_clean();
    let tried = browser.script(
        "const tried = []; \
         try { document.body.innerHTML = '<b>x</b>'; tried.push('markup'); } catch {} \
         const script = document.createElement('script'); \
         try { script.textContent = 'window.stolen = 1'; document.head.append(script); } catch {} \
         const inline = document.createElement('div'); \
         try { inline.setAttribute('onclick', 'window.stolen = 1'); document.body.append(inline); inline.click(); } catch {} \
         if (window.stolen) tried.push('script'); \
         return tried;",
        &[],
    );
    assert_eq!(tried, json!([]));
}

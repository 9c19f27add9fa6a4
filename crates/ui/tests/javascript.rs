//! The pure modules of the page, tested by Node's own test runner where Node 20 or later is installed.
#![allow(clippy::unwrap_used)]
#![allow(clippy::print_stderr, reason = "a skipped test says so")]

use std::process::Command;

#[test]
fn the_pure_modules_pass_their_tests() {
    let version =
        Command::new("node").arg("--version").output().ok().and_then(|done| String::from_utf8(done.stdout).ok());
    let major =
        version.as_deref().and_then(|text| text.trim().strip_prefix('v')?.split('.').next()?.parse::<u32>().ok());
    if major.is_none_or(|major| major < 20) {
        eprintln!("skipped: Node 20 or later is not installed, so the page's modules are not tested");
        return;
    }
    let tests = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/javascript");
    let files = std::fs::read_dir(tests).unwrap().map(|entry| entry.unwrap().path());
    let files: Vec<_> = files.filter(|path| path.to_str().unwrap().ends_with(".test.js")).collect();
    let done = Command::new("node").arg("--test").args(&files).output().unwrap();
    let out = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success(), "{out}\n{}", String::from_utf8_lossy(&done.stderr));
    assert!(out.contains("# fail 0") || out.contains("fail 0"), "{out}");
}

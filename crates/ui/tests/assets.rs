//! The embedded files as a whole.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

const ASSETS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/assets");

/// Bytes that a browser may have to fetch before the page is there.
const MAX_COMPRESSED_BYTES: usize = 300 * 1024;

fn files_below(dir: &Path, files: &mut BTreeSet<String>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files_below(&path, files);
        } else {
            files.insert(path.strip_prefix(ASSETS).unwrap().to_str().unwrap().to_owned());
        }
    }
}

#[test]
fn every_file_is_embedded() {
    let mut expected = BTreeSet::new();
    files_below(Path::new(ASSETS), &mut expected);
    expected.retain(|file| file != "page.html" && file != "vendor/vendored.json");
    let embedded: BTreeSet<String> = tenaz_ui::assets().iter().map(|asset| asset.path.to_owned()).collect();
    assert_eq!(embedded, expected);
}

#[test]
fn the_page_is_small() {
    let compressed: usize = tenaz_ui::assets().iter().map(|asset| asset.gzip.len()).sum();
    assert!(compressed <= MAX_COMPRESSED_BYTES, "{compressed} bytes compressed");
}

#[test]
fn every_library_comes_with_its_licence_and_version() {
    let text = fs::read_to_string(format!("{ASSETS}/vendor/vendored.json")).unwrap();
    let packages: serde_json::Value = serde_json::from_str(&text).unwrap();
    let mut listed = BTreeSet::from(["vendored.json".to_owned()]);
    for package in packages.as_array().unwrap() {
        assert!(package["version"].as_str().unwrap().split('.').count() == 3, "{package}");
        let files: Vec<String> = package["files"].as_object().unwrap().keys().cloned().collect();
        assert!(files.iter().any(|file| file.ends_with("/LICENSE")), "{package}");
        listed.extend(files);
    }
    let mut present = BTreeSet::new();
    files_below(Path::new(&format!("{ASSETS}/vendor")), &mut present);
    let present: BTreeSet<String> = present.iter().map(|file| file.replacen("vendor/", "", 1)).collect();
    assert_eq!(present, listed, "vendored.json names every file; scripts/vendored checks them against the registry");
}

#[test]
fn nothing_of_ours_names_another_origin_or_makes_markup_of_text() {
    for asset in tenaz_ui::assets().iter().filter(|asset| !asset.path.starts_with("vendor/")) {
        let text = std::str::from_utf8(asset.bytes).unwrap().replace("http://www.w3.org/2000/svg", "");
        for forbidden in
            ["http://", "https://", "innerHTML", "outerHTML", "insertAdjacentHTML", "dangerouslySetInnerHTML", "eval("]
        {
            assert!(!text.contains(forbidden), "{forbidden} in {}", asset.path);
        }
    }
}

//! Features that do not compile alone: `./test` compiles each, and this sees to it that none is
//! left out.

use std::fs;
use std::path::Path;

fn read(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    fs::read_to_string(root.join(path)).unwrap()
}

/// The names below `[features]`.
fn features(manifest: &str) -> Vec<&str> {
    let table = manifest.split("[features]\n").nth(1).unwrap_or_default();
    let lines = table.lines().take_while(|line| !line.starts_with('['));
    lines.filter_map(|line| Some(line.split_once(" = ")?.0)).collect()
}

#[test]
fn every_feature_of_the_library_is_compiled_alone() {
    let manifest = read("crates/tollgate/Cargo.toml");
    let script = read("test");
    let features = features(&manifest);
    assert!(features.contains(&"tower"), "{features:?}");
    for feature in features.into_iter().filter(|feature| *feature != "default") {
        let alone = format!("-p tollgate --features {feature}\"");
        assert!(script.contains(&alone), "./test does not compile {feature} alone");
    }
}

//! `tollgate demo`: it shows something at once, ends by itself, and what goes through Tollgate is never
//! refused.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

#[test]
fn the_demo_ends_by_itself_and_nothing_through_tollgate_is_refused() {
    let mut demo = Command::new(env!("CARGO_BIN_EXE_tollgate"))
        .args(["demo", "--port", "0"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(demo.stdout.take().unwrap());
    let mut first = String::new();
    lines.read_line(&mut first).unwrap();
    assert!(first.starts_with("three APIs"), "{first}");
    let mut rest = String::new();
    lines.read_to_string(&mut rest).unwrap();
    assert!(demo.wait().unwrap().success(), "{rest}");
    let naive = rest.lines().find(|line| line.starts_with("naïvely: ") && line.contains("429"));
    let naive = naive.unwrap_or_else(|| panic!("{rest}"));
    let refused: u64 = naive.split(' ').nth(1).unwrap().parse().unwrap();
    assert!(refused > 100, "sent at once, most are refused: {naive}");
    assert!(rest.contains("through Tollgate: 0 refused, 0 given up"), "{rest}");
    let ours = rest.lines().filter(|line| line.starts_with("  through Tollgate"));
    let ours: Vec<&str> = ours.collect();
    for (line, calls) in ours.iter().zip([310, 140, 360]) {
        assert!(line.ends_with(&format!("{calls} of {calls}, 0 × 429")), "{line}");
    }
    assert_eq!(ours.len(), 3, "{rest}");
}

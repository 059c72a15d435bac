//! A scene as a drawing: a bar for each half second, a stroke for each call.
//!
//! All lengths are whole tenths of a pixel, so that a drawing is the same wherever it is made.

use super::scene::{IDLE, LENGTH, ONE_BY_ONE, Scene, most_within};
use std::fmt::Write;

const WIDTH: u64 = 7_200;
const HEIGHT: u64 = 2_400;
/// The field in which bars stand.
const LEFT: u64 = 400;
const RIGHT: u64 = 7_040;
const TOP: u64 = 520;
const BOTTOM: u64 = 1_900;
/// Where strokes stand, below the bars.
const STROKES: u64 = 1_940;
const STROKE_HEIGHT: u64 = 90;

const BAR: u64 = 500;
/// The interval that all pictures are measured by.
const MEASURE: u64 = 4_000;

/// Colours for pages that are light and for pages that are dark.
const STYLE: &str = "  <style>
    .sheet { fill: #ffffff; } .idle { fill: #eef1f4; } .bar { fill: #2a6fbb; } .call { stroke: #2a6fbb; }
    .line { stroke: #d0d7de; } .base { stroke: #57606a; }
    text { font: 13px system-ui, sans-serif; fill: #24292f; } .small { font-size: 11px; fill: #57606a; }
    .middle { text-anchor: middle; } .end { text-anchor: end; }
    @media (prefers-color-scheme: dark) {
      .sheet { fill: #0d1117; } .idle { fill: #161b22; } .bar { fill: #58a6ff; } .call { stroke: #58a6ff; }
      .line { stroke: #30363d; } .base { stroke: #9198a1; } text { fill: #e6edf3; } .small { fill: #9198a1; }
    }
  </style>
";

/// The picture of a scene as SVG.
pub(super) fn draw(scene: &Scene, admitted: &[u64]) -> String {
    let bars: Vec<u64> = (0..LENGTH / BAR)
        .map(|nth| admitted.iter().filter(|at| **at / BAR == nth).count())
        .map(|count| u64::try_from(count).unwrap())
        .collect();
    let highest = bars.iter().copied().max().unwrap_or_default().next_multiple_of(10);
    let mut svg = String::new();
    begin(&mut svg, scene, admitted);
    field(&mut svg, highest);
    for (nth, count) in (0..).zip(&bars).filter(|(_, count)| **count > 0) {
        let (from, to) = (across(nth * BAR) + 8, across((nth + 1) * BAR) - 8);
        let top = up(*count, highest);
        box_of(&mut svg, "bar", [from, top, to - from, BOTTOM - top]);
    }
    for at in admitted {
        let x = across(*at);
        line(&mut svg, "call", [x, STROKES, x, STROKES + STROKE_HEIGHT]);
    }
    svg.push_str("</svg>\n");
    svg
}

/// The sheet, the title, and what the picture is in words.
fn begin(svg: &mut String, scene: &Scene, admitted: &[u64]) {
    let (width, height, title) = (tenths(WIDTH), tenths(HEIGHT), scene.title);
    let most = most_within(admitted, MEASURE);
    let told = format!("{} admitted, at most {most} in any 4 seconds", admitted.len());
    let size = format!("viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\"");
    let label = "role=\"img\" aria-labelledby=\"title text\"";
    writeln!(svg, "<svg xmlns=\"http://www.w3.org/2000/svg\" {size} {label}>").unwrap();
    writeln!(svg, "  <title id=\"title\">{title}</title>").unwrap();
    let scene = "Admissions of calls that come one by one for two seconds, then under a steady overload, \
                 then of none for six seconds, then under an overload again";
    writeln!(svg, "  <desc id=\"text\">{scene}: {told}.</desc>").unwrap();
    svg.push_str(STYLE);
    box_of(svg, "sheet", [0, 0, WIDTH, HEIGHT]);
    text(svg, "", [LEFT - 240, 230], title);
    text(svg, "small", [LEFT - 240, 410], "admitted in each half second");
    text(svg, "small end", [RIGHT, 230], &told);
}

/// The axes, and the time in which nobody asks.
fn field(svg: &mut String, highest: u64) {
    let (from, to) = (across(IDLE.start), across(IDLE.end));
    box_of(svg, "idle", [from, TOP, to - from, BOTTOM - TOP]);
    text(svg, "small middle", [u64::midpoint(from, to), TOP + 200], "nobody asks");
    text(svg, "small middle", [across(ONE_BY_ONE / 2), TOP + 200], "a few");
    line(svg, "line", [across(ONE_BY_ONE), TOP, across(ONE_BY_ONE), BOTTOM]);
    for count in [0, highest / 2, highest] {
        let y = up(count, highest);
        line(svg, if count == 0 { "base" } else { "line" }, [LEFT, y, RIGHT, y]);
        text(svg, "small end", [LEFT - 60, y + 40], &count.to_string());
    }
    for second in (0..=LENGTH / 1_000).step_by(4) {
        let label = format!("{second} s");
        text(svg, "small middle", [across(second * 1_000), STROKES + 280], &label);
    }
}

fn across(at: u64) -> u64 {
    LEFT + (RIGHT - LEFT) * at / LENGTH
}

fn up(count: u64, highest: u64) -> u64 {
    BOTTOM - (BOTTOM - TOP) * count / highest.max(1)
}

fn tenths(length: u64) -> String {
    if length.is_multiple_of(10) {
        (length / 10).to_string()
    } else {
        format!("{}.{}", length / 10, length % 10)
    }
}

fn box_of(svg: &mut String, class: &str, place: [u64; 4]) {
    let [x, y, width, height] = place.map(tenths);
    let place = format!("x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"");
    writeln!(svg, "  <rect class=\"{class}\" {place}/>").unwrap();
}

fn line(svg: &mut String, class: &str, place: [u64; 4]) {
    let [x, y, to_x, to_y] = place.map(tenths);
    let place = format!("x1=\"{x}\" y1=\"{y}\" x2=\"{to_x}\" y2=\"{to_y}\"");
    writeln!(svg, "  <line class=\"{class}\" {place}/>").unwrap();
}

fn text(svg: &mut String, class: &str, place: [u64; 2], words: &str) {
    let [x, y] = place.map(tenths);
    writeln!(svg, "  <text class=\"{class}\" x=\"{x}\" y=\"{y}\">{words}</text>").unwrap();
}

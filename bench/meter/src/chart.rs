//! Bar charts as self-contained SVG.

use std::fmt::Write as _;

const WIDTH: f64 = 640.0;
const LABEL: f64 = 130.0;
const BAR: f64 = 28.0;

/// Creates a chart with one bar for each number.
pub(crate) fn bars(title: &str, numbers: &[(String, f64)]) -> String {
    let most = numbers.iter().map(|(_, number)| *number).fold(f64::MIN_POSITIVE, f64::max);
    let height = 40.0 + BAR * numbers.len() as f64;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" \
         font-size=\"13\" role=\"img\"><title>{title}</title><rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\
         <text x=\"8\" y=\"20\" font-weight=\"bold\">{title}</text>"
    );
    for (at, (label, number)) in numbers.iter().enumerate() {
        let y = 32.0 + BAR * at as f64;
        let long = (WIDTH - LABEL - 90.0) * number / most;
        let middle = y + 15.0;
        // Writing to a `String` cannot fail.
        let _ = write!(
            svg,
            "<text x=\"{}\" y=\"{middle}\" text-anchor=\"end\">{label}</text><rect x=\"{LABEL}\" y=\"{y}\" \
             width=\"{long:.1}\" height=\"20\" fill=\"#3465a4\"/><text x=\"{:.1}\" y=\"{middle}\">{number:.1}</text>",
            LABEL - 8.0,
            LABEL + long + 6.0,
        );
    }
    svg + "</svg>\n"
}

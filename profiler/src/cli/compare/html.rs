//! A report as one HTML file: sentences, tables, and the flame graph of the difference. It loads nothing and runs no script.

use super::report::Report;
use crate::cli::table::Align;
use emberscope_export::{html_frame, html_text};

const STYLE: &str = "body{font:15px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:80rem;padding:0 1rem;color:#222;background:#fff}\
h1{font-size:1.3rem}h2{font-size:1.1rem;margin-top:2rem}table{border-collapse:collapse;font-size:13px;width:100%}\
th,td{padding:.25rem .6rem;text-align:left;border-bottom:1px solid #ddd;vertical-align:top;overflow-wrap:anywhere}\
th{white-space:nowrap}.r{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}\
iframe{border:1px solid #ddd;width:100%;height:80vh}p.note{color:#555;font-size:13px}";

/// The page.
pub fn write(report: &Report, svg: &[u8]) -> Vec<u8> {
    let title = html_text(&report.title);
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\n<style>{STYLE}</style></head>\n\
         <body><h1>{title}</h1>\n<ul>"
    );
    for line in &report.verdict {
        out.push_str(&format!("<li>{}</li>\n", html_text(line)));
    }
    out.push_str("</ul>\n");
    for section in &report.sections {
        out.push_str(&format!("<h2>{}</h2>\n<table><thead><tr>", section.title));
        let class = |align: Align| if align == Align::Right { " class=\"r\"" } else { "" };
        for (name, align) in &section.columns {
            out.push_str(&format!("<th scope=\"col\"{}>{name}</th>", class(*align)));
        }
        out.push_str("</tr></thead><tbody>\n");
        for row in &section.rows {
            let cells = row.iter().zip(&section.columns);
            let cells =
                cells.map(|(text, (_, align))| format!("<td{}>{}</td>", class(*align), html_text(text)));
            out.push_str(&format!("<tr>{}</tr>\n", cells.collect::<String>()));
        }
        out.push_str("</tbody></table>\n");
        if section.cut > 0 {
            out.push_str(&format!("<p class=\"note\">and {} more</p>\n", section.cut));
        }
    }
    out.push_str("<h2>Flame graph of the difference, tasks alone: red is more on the right</h2>\n");
    let mut out = out.into_bytes();
    out.extend(html_frame(svg));
    for note in &report.notes {
        out.extend(format!("\n<p class=\"note\">{}</p>", html_text(note)).bytes());
    }
    out.extend(b"</body></html>\n");
    out
}

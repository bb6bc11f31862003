//! A picture as a page: one HTML file that shows an SVG flame graph, to mail or to put on a web server.
//!
//! In: the SVG and a title. Out: a page with the SVG as a document of its own inside (a `data:` frame, whose origin is none:
//! names in the picture that would be script are script of nothing). Nothing is loaded from anywhere.

/// The page.
pub fn page(svg: &[u8], title: &str) -> Vec<u8> {
    let title = escaped(title);
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\n\
         <style>html,body,iframe{{margin:0;border:0;padding:0;display:block;width:100%;height:100%}}</style></head>\n\
         <body>"
    )
    .into_bytes();
    out.extend(frame(svg));
    out.extend(b"</body></html>\n");
    out
}

/// Text as HTML has it, in an element and in an attribute.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// The picture as an element of a page, which has no size of its own.
pub fn frame(svg: &[u8]) -> Vec<u8> {
    let mut out = b"<iframe title=\"Flame graph\" src=\"data:image/svg+xml;charset=utf-8,".to_vec();
    for byte in svg {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' => out.push(*byte),
            b'-' | b'_' | b'.' | b'~' | b'!' | b'*' | b'(' | b')' | b';' | b':' | b',' | b'/' | b'='
            | b'+' => {
                out.push(*byte);
            }
            // All that ends an attribute or a URL, and what a URL loses: line breaks, which scripts need.
            other => out.extend(format!("%{other:02X}").bytes()),
        }
    }
    out.extend(b"\"></iframe>");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_picture_is_whole_and_names_stay_text() {
        let svg = "<svg>\n// \"quoted\" '#' 100 % é\n<script>alert(1)</script></svg>";
        let page = String::from_utf8(page(svg.as_bytes(), "<b> & app")).unwrap();
        assert!(page.contains("<title>&lt;b&gt; &amp; app</title>") && !page.contains("<script"), "{page}");
        let (_, url) = page.split_once("charset=utf-8,").unwrap();
        let mut bytes = url.split_once('"').unwrap().0.bytes();
        let mut back = Vec::new();
        while let Some(byte) = bytes.next() {
            let mut digit = || char::from(bytes.next().unwrap()).to_digit(16).unwrap() as u8;
            back.push(if byte == b'%' { digit() * 16 + digit() } else { byte });
        }
        assert_eq!(String::from_utf8(back).unwrap(), svg);
    }
}

//! Pages: what they mark as code, apart from what they say about it.

/// A stretch of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Code {
    /// Its first line, from 1.
    pub line: usize,
    /// Without its indentation.
    pub text: String,
}

/// Whether a text is a page: it has a fence, a heading above prose, literal blocks, or names between backticks in sentences.
pub fn is_page(text: &str) -> bool {
    let lines: Vec<&str> = text.lines().collect();
    let has_fence =
        lines.iter().any(|line| line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~"));
    let underlined = |pair: &[&str]| {
        pair[1].len() >= 3
            && !pair[0].trim().is_empty()
            && ["=", "-", "~"].iter().any(|sign| pair[1].replace(sign, "").is_empty())
    };
    let span = lines.iter().any(|line| names_code(line));
    let literal = lines.iter().any(|line| line.ends_with("::"));
    let indented = lines
        .windows(3)
        .any(|rows| is_sentence(rows[0]) && rows[1].trim().is_empty() && rows[2].starts_with("    "));
    has_fence || span || literal || indented || lines.windows(2).any(underlined)
}

/// A name between backticks among words.
fn names_code(line: &str) -> bool {
    let outside: Vec<&str> = line.split('`').step_by(2).collect();
    let plain = outside.iter().flat_map(|text| text.split_whitespace()).filter(|word| {
        word.len() > 1 && word.trim_end_matches([',', '.', ':', ';']).chars().all(char::is_alphabetic)
    });
    let is_item = line.trim_start().starts_with(['-', '*']);
    outside.len() >= 2
        && plain.count() >= 2
        && (is_item || is_sentence(line) || !line.contains(['=', '|', '>']))
}

/// Words rather than settings: it has several plain ones, and begins as a sentence or a point of a list does.
fn is_sentence(line: &str) -> bool {
    let line = line.trim_start_matches(['-', '*', '+', ' ']);
    let plain = line
        .split_whitespace()
        .filter(|word| word.trim_end_matches([',', '.', ':', ';']).chars().all(char::is_alphabetic));
    plain.count() >= 3 && !line.starts_with(['$', '#', '/'])
}

/// The page's code blocks: between fences, and indented by four blanks or a tabulator behind an empty line.
pub fn code(text: &str) -> Vec<Code> {
    let mut blocks: Vec<Code> = Vec::new();
    let mut fence: Option<&str> = None;
    let mut open = false;
    let mut after_empty = true;
    for (index, line) in text.lines().enumerate() {
        let trimmed = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|mark| trimmed.starts_with(mark));
        match (fence, mark) {
            (None, Some(mark)) => {
                fence = Some(mark);
                open = false;
            }
            (Some(began), Some(mark)) if began == mark => {
                fence = None;
                open = false;
            }
            _ => {
                let indented = line.strip_prefix("    ").or_else(|| line.strip_prefix('\t'));
                let is_item = trimmed.starts_with(['-', '*', '+']) && trimmed[1..].starts_with(' ');
                let is_code = fence.is_some() || indented.is_some() && !is_item && (open || after_empty);
                let line = if fence.is_some() { line } else { indented.unwrap_or(line) };
                let keeps = is_code || open && line.trim().is_empty();
                if keeps {
                    keep(&mut blocks, open, index + 1, line);
                }
                open = keeps;
            }
        }
        after_empty = trimmed.is_empty();
    }
    blocks
}

/// Adds a line to the last part, or begins one with it where none is open.
fn keep(parts: &mut Vec<Code>, open: bool, number: usize, line: &str) {
    if !open {
        parts.push(Code { line: number, text: String::new() });
    }
    if let Some(part) = parts.last_mut() {
        part.text += line;
        part.text.push('\n');
    }
}

/// Lines outside code blocks between empty lines, where none of them is a sentence.
pub fn paragraphs(text: &str) -> Vec<Code> {
    let mut found: Vec<Code> = Vec::new();
    let (mut fenced, mut open) = (false, false);
    for (index, line) in text.lines().enumerate() {
        let is_fence = line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~");
        fenced ^= is_fence;
        let is_code =
            !(fenced || is_fence || line.trim().is_empty() || !open && line.starts_with([' ', '\t']));
        if is_code {
            keep(&mut found, open, index + 1, line);
        }
        open = is_code;
    }
    found.retain(|paragraph| !paragraph.text.lines().any(|line| is_sentence(line) || line.contains('`')));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_what_is_marked_as_code() {
        let page = "Say nohz_full=x.\n\n    a b\n\n    c\n\nText:\n\n```sh\nd\n```\nend\n";
        let blocks: Vec<(usize, String)> =
            code(page).into_iter().map(|block| (block.line, block.text)).collect();
        assert_eq!(blocks, [(3, "a b\n\nc\n\n".to_owned()), (10, "d\n".to_owned())]);
        assert!(is_page(page));
        assert!(!is_page("echo `nproc` > /tmp/x\nisolcpus=1\n"));
    }
}

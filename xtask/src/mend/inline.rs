//! Snapshots that stand in the source of a test, as a literal behind `@`: insta writes new ones into a file beside the source
//! and leaves the rest to a program of its own, which need not be there.

use anyhow::{Context, Result, anyhow};
use serde_json::Value;

/// A new snapshot for the assertion that ends on or after a line.
#[derive(Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// From 1.
    pub line: usize,
    /// What was found.
    pub text: String,
}

/// The snapshots of the last run that a pending file holds, a line of JSON each; those that matched have no text.
pub fn read(pending: &str) -> Result<Vec<Snapshot>> {
    let lines = pending.lines().map(serde_json::from_str).collect::<Result<Vec<Value>, _>>()?;
    let last = lines.last().map(|line| line["run_id"].clone());
    let of_last_run = lines.iter().filter(|line| Some(&line["run_id"]) == last.as_ref());
    let snapshots = of_last_run.filter_map(|line| {
        let text = line["new"]["snapshot"].as_str()?.trim_matches('\n').to_owned();
        Some(Snapshot { line: usize::try_from(line["line"].as_u64()?).ok()?, text })
    });
    Ok(snapshots.collect())
}

/// `source` with these snapshots in the place of its own.
pub fn put(source: &str, snapshots: &[Snapshot]) -> Result<String> {
    let mut sorted: Vec<&Snapshot> = snapshots.iter().collect();
    // From the end, so that lines before keep their numbers.
    sorted.sort_by_key(|snapshot| std::cmp::Reverse(snapshot.line));
    sorted.dedup_by_key(|snapshot| snapshot.line);
    sorted.into_iter().try_fold(source.to_owned(), |source, snapshot| {
        replaced(&source, snapshot).with_context(|| format!("at line {}", snapshot.line))
    })
}

fn replaced(source: &str, snapshot: &Snapshot) -> Result<String> {
    let line: usize = source.split_inclusive('\n').take(snapshot.line.saturating_sub(1)).map(str::len).sum();
    let no_literal = || anyhow!("no literal behind `@`");
    let start = line + source[line..].find('@').ok_or_else(no_literal)? + 1;
    let hashes =
        source[start..].strip_prefix('r').map_or(0, |rest| rest.chars().take_while(|c| *c == '#').count());
    let is_raw = source[start..].starts_with('r');
    let opened = start + usize::from(is_raw) + hashes;
    let quote = format!("\"{}", "#".repeat(hashes));
    if !source[opened..].starts_with('"') || !is_raw && source[opened + 1..].contains("\\\"") {
        return Err(anyhow!("the literal behind `@` is not one that can be replaced: write it as r\"\""));
    }
    let length = source[opened + 1..].find(&quote).ok_or_else(no_literal)?;
    let end = opened + 1 + length + quote.len();
    let indentation: String = source[line..].chars().take_while(|c| *c == ' ').collect();
    Ok(format!("{}{}{}", &source[..start], literal(&snapshot.text, &indentation), &source[end..]))
}

/// As insta reads it: lines between two breaks, each behind the indentation of the assertion.
fn literal(text: &str, indentation: &str) -> String {
    let hashes = if text.contains('"') { "#" } else { "" };
    if !text.contains('\n') {
        return format!("r{hashes}\"{text}\"{hashes}");
    }
    let indented = text
        .lines()
        .map(|line| if line.is_empty() { "\n".to_owned() } else { format!("\n{indentation}{line}") });
    format!("r{hashes}\"{}\n{indentation}\"{hashes}", indented.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = r##"fn test() {
    insta::assert_snapshot!(one(), @r"
    a
    b
    ");
    insta::assert_snapshot!(
        two(),
        @r#"say "x""#
    );
}
"##;

    #[test]
    fn what_stood_in_the_source_is_replaced() {
        let snapshots = [
            Snapshot { line: 2, text: "c\n\nd \"quoted\"".into() },
            Snapshot { line: 6, text: "new".into() },
        ];
        let mended = put(SOURCE, &snapshots).unwrap();
        let expected = SOURCE
            .replace("@r\"\n    a\n    b\n    \"", "@r#\"\n    c\n\n    d \"quoted\"\n    \"#")
            .replace("@r#\"say \"x\"\"#", "@r\"new\"");
        assert_eq!(mended, expected);
    }

    #[test]
    fn the_last_run_counts() {
        let line = |run: &str, line: u32, text: &str| {
            format!(
                "{{\"run_id\":\"{run}\",\"line\":{line},\"new\":{{\"snapshot\":\"{text}\"}},\"old\":null}}\n"
            )
        };
        let matched = "{\"run_id\":\"2\",\"line\":9,\"new\":null,\"old\":null}\n";
        let pending = line("1", 2, "old") + &line("2", 3, "\\nnew\\n") + matched;
        assert_eq!(read(&pending).unwrap(), [Snapshot { line: 3, text: "new".into() }]);
        assert!(read("no JSON").is_err());
    }

    #[test]
    fn an_assertion_without_a_literal_is_an_error() {
        let snapshot = |line| [Snapshot { line, text: "x".into() }];
        assert!(put("fn a() {}\n", &snapshot(1)).is_err());
        assert!(put("check!(@x)\n", &snapshot(1)).is_err());
    }
}

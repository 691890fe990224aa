//! New files as a patch: what is in it can be read before it is applied, and nothing is written over.

/// A file that the patch adds.
pub(super) fn added(path: &str, text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let body: String = lines.iter().map(|line| format!("+{line}\n")).collect();
    format!("--- /dev/null\n+++ b/{path}\n@@ -0,0 +1,{} @@\n{body}", lines.len())
}

/// The files below words that patch(1) passes over.
pub(super) fn patch(words: &str, files: &[String]) -> String {
    format!("{words}\n\n{}", files.concat())
}

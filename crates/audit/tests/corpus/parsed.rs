//! The corpus' form (README.md beside this file), read: the tests of `audit` and `cargo xtask bench check` include this file.

/// Begins a case.
const MARK: &str = "%% ";

/// For which kernel a case is that names none.
const KERNEL: &str = "6.12";

/// A recipe, and whether each line of it does what it says.
pub struct Case {
    pub right: bool,
    /// The version of the kernel that it is for.
    pub kernel: String,
    pub why: String,
    pub text: String,
}

/// The cases of a file.
///
/// # Errors
/// A line that is none of the form, in words.
pub fn cases(text: &str) -> Result<Vec<Case>, String> {
    let mut cases: Vec<Case> = Vec::new();
    for line in text.lines() {
        if let Some(head) = line.strip_prefix(MARK) {
            cases.push(
                case(head)
                    .ok_or_else(|| format!("{line}: not `right` or `wrong`, a kernel, | and a reason"))?,
            );
            continue;
        }
        let case = cases.last_mut().ok_or_else(|| format!("{line}: stands before the first case"))?;
        case.text += line;
        case.text.push('\n');
    }
    Ok(cases)
}

fn case(head: &str) -> Option<Case> {
    let (what, why) = head.split_once('|')?;
    let mut words = what.split_whitespace();
    let right = match words.next()? {
        "right" => true,
        "wrong" => false,
        _ => return None,
    };
    let kernel = words.next().unwrap_or(KERNEL).to_owned();
    Some(Case { right, kernel, why: why.trim().to_owned(), text: String::new() })
}

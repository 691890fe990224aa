//! Names for the numbers of a field, from the `__print_symbolic()` of its event's `print fmt`.

/// Numbers and what the kernel calls them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Labels(Vec<(u64, String)>);

impl Labels {
    /// Those that `print` has for `field`; none where it prints the number.
    pub fn parse(print: &str, field: &str) -> Option<Self> {
        let (_, rest) = print.split_once(&format!("__print_symbolic(REC->{field},"))?;
        let mut labels = Vec::new();
        let mut rest = rest.trim_start();
        while let Some(pair) = rest.strip_prefix('{') {
            let (number, text) = pair.split_once(',')?;
            let (text, after) = text.trim_start().strip_prefix('"')?.split_once('"')?;
            labels.extend(value(number).map(|number| (number, text.to_owned())));
            rest = after.trim_start().strip_prefix('}')?.trim_start_matches([',', ' ']);
        }
        Some(Self(labels))
    }

    pub fn of(&self, number: u64) -> Option<&str> {
        self.0.iter().find(|(one, _)| *one == number).map(|(_, text)| text.as_str())
    }
}

/// The value of `4`, `0x4` or `(1 << 2)`. The kernel has put numbers in place of most names.
fn value(expression: &str) -> Option<u64> {
    let expression = expression.trim().trim_matches(['(', ')']).trim();
    match expression.split_once("<<") {
        Some((number, places)) => literal(number)?.checked_shl(u32::try_from(literal(places)?).ok()?),
        None => literal(expression),
    }
}

fn literal(text: &str) -> Option<u64> {
    let text = text.trim().trim_matches(['(', ')']).trim_end_matches(['u', 'U', 'l', 'L']);
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRINT: &str = r#" "success=%d dependency=%s", REC->success, __print_symbolic(REC->dependency, { 0, "NONE" }, { (1 << 0), "POSIX_TIMER" }, { 0x4UL, "SCHED" }, { SOMETHING, "x" }, { (1 << 3), "CLOCK_UNSTABLE" })"#;

    #[test]
    fn numbers_have_names_and_unknown_ones_none() {
        let labels = Labels::parse(PRINT, "dependency").unwrap();
        let names = [0, 1, 4, 8, 2].map(|number| labels.of(number));
        assert_eq!(names, [Some("NONE"), Some("POSIX_TIMER"), Some("SCHED"), Some("CLOCK_UNSTABLE"), None]);
        assert_eq!(Labels::parse(PRINT, "success"), None);
    }

    #[test]
    fn shifts_too_far_and_cut_texts_are_no_numbers() {
        assert_eq!((value("(1 << 64)"), value("1 <<"), value("-1")), (None, None, None));
        assert_eq!(Labels::parse("__print_symbolic(REC->a, { 0, \"N", "a"), None);
    }
}

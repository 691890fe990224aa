//! Names that somebody may have meant.

use std::cmp::Reverse;

/// Names shown.
const MOST: usize = 4;
/// Of 100, how alike a name must be.
const LEAST: usize = 60;

/// The hint for a name that is not there: those of `names` that `asked` may have been meant to be, the likeliest first, or
/// `otherwise` where none is like it.
pub fn did_you_mean<'a>(asked: &str, names: impl Iterator<Item = &'a str>, otherwise: &str) -> String {
    match alike(asked, names).as_slice() {
        [] => otherwise.to_owned(),
        alike => format!("did you mean {}?", alike.join(", ")),
    }
}

/// Names that hold what was asked for, then those that share most of their letter pairs with it.
fn alike<'a>(asked: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut found: Vec<(usize, &str)> =
        names.map(|name| (likeness(asked, name), name)).filter(|(likeness, _)| *likeness >= LEAST).collect();
    let mut likeliest = || {
        let (place, _) =
            found.iter().enumerate().max_by_key(|(_, (likeness, name))| (*likeness, Reverse(*name)))?;
        Some(found.swap_remove(place).1)
    };
    (0..MOST).map_while(|_| likeliest()).collect()
}

fn likeness(asked: &str, name: &str) -> usize {
    if asked.len() > 2 && name.contains(asked) {
        return 1000;
    }
    let pairs = |text: &str| -> Vec<(char, char)> { text.chars().zip(text.chars().skip(1)).collect() };
    let (own, theirs) = (pairs(asked), pairs(name));
    let common = own.iter().filter(|pair| theirs.contains(pair)).count();
    2 * 100 * common / (own.len() + theirs.len()).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_mistyped_or_cut_is_found() {
        let names = ["getppid", "pipe-self", "pipe-other", "kc-preempt-rt", "rn-guest-steal", "steal"];
        let hint = |asked| did_you_mean(asked, names.into_iter(), "none");
        assert_eq!(hint("getpid"), "did you mean getppid?");
        assert_eq!(hint("pipe"), "did you mean pipe-other, pipe-self?");
        assert_eq!(hint("kc-preemt-rt"), "did you mean kc-preempt-rt?");
        assert_eq!(hint("guest-steal"), "did you mean rn-guest-steal, steal?");
        assert_eq!(hint("fifo"), "none");
        assert_eq!(hint(""), "none");
    }
}

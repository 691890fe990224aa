//! Patterns for names, as systemd-boot has them: `*`, `?`, `[a-c]`, and what stands behind a backslash as it is.

/// A piece of a pattern.
enum Piece {
    /// Any characters, none too.
    Any,
    /// One of some ranges; `?` is all of them.
    One(Vec<(char, char)>),
}

/// Whether all of a name fits. No name does where the pattern is not whole: a `[` without its end.
pub(super) fn fits(pattern: &str, name: &str) -> bool {
    let Some(pieces) = pieces(pattern) else { return false };
    let name: Vec<char> = name.chars().collect();
    let (mut piece, mut place) = (0, 0);
    // The last star, and what is behind the characters that it has taken so far.
    let mut star = None;
    while place < name.len() {
        match pieces.get(piece) {
            Some(Piece::Any) => {
                piece += 1;
                star = Some((piece, place));
            }
            Some(Piece::One(ranges))
                if ranges.iter().any(|(first, last)| (first..=last).contains(&&name[place])) =>
            {
                (piece, place) = (piece + 1, place + 1);
            }
            _ => match star {
                None => return false,
                Some((behind, taken)) => {
                    (piece, place) = (behind, taken + 1);
                    star = Some((behind, place));
                }
            },
        }
    }
    pieces[piece..].iter().all(|piece| matches!(piece, Piece::Any))
}

fn pieces(pattern: &str) -> Option<Vec<Piece>> {
    let mut rest = pattern.chars();
    let mut all = Vec::new();
    while let Some(c) = rest.next() {
        all.push(match c {
            '*' => Piece::Any,
            '?' => Piece::One(vec![('\0', char::MAX)]),
            '[' => {
                let (set, behind) = rest.as_str().split_once(']')?;
                rest = behind.chars();
                Piece::One(ranges(set))
            }
            '\\' => rest.next().map(|c| Piece::One(vec![(c, c)]))?,
            c => Piece::One(vec![(c, c)]),
        });
    }
    Some(all)
}

/// Of `a-cx` those from a to c, and x.
fn ranges(set: &str) -> Vec<(char, char)> {
    let all: Vec<char> = set.chars().collect();
    let mut rest = all.as_slice();
    let mut ranges = Vec::new();
    while let [first, behind @ ..] = rest {
        let (last, behind) = match behind {
            ['-', last, behind @ ..] => (last, behind),
            _ => (first, behind),
        };
        ranges.push((*first, *last));
        rest = behind;
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_fits_whole_names() {
        for (pattern, name) in [
            ("a.conf", "a.conf"),
            ("*", ""),
            ("a*", "a"),
            ("a*c.conf", "abcc.conf"),
            ("?aa.conf", "aaa.conf"),
            ("[a-b]*", "bbb"),
            ("[xa-c-]", "-"),
            ("\\*", "*"),
            ("*a*b*c*", "xaxbxc"),
            ("**", "x"),
        ] {
            assert!(fits(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [
            ("a", "a.conf"),
            ("", "a"),
            ("?", ""),
            ("a*c", "abcd"),
            ("[a-b]", "c"),
            ("[a", "a"),
            ("\\*", "a"),
            ("*.conf", "a.efi"),
            ("a\\", "a"),
        ] {
            assert!(!fits(pattern, name), "{pattern} {name}");
        }
        let (stars, long) = ("*a".repeat(50) + "b", "a".repeat(5000));
        assert!(!fits(&stars, &long), "it ends");
    }
}

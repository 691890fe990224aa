//! Where a process was before it went into a partition that is no unit of systemd's: it stands in the name of a group
//! within the partition, which children inherit. So whoever takes the partition away knows where to all of them go back.

/// What such a name begins with.
const HEAD: &str = "from:";
/// No name is longer.
const LONGEST: usize = 255;

/// The name of the group for processes from the group `path`, below the top one; none for the top group itself, and
/// where the name would be too long.
pub fn origin_name(path: &str) -> Option<String> {
    let path = path.trim_matches('/');
    let name = format!("{HEAD}{}", path.replace('%', "%25").replace('/', "%2f"));
    (!path.is_empty() && name.len() <= LONGEST).then_some(name)
}

/// The path in such a name; none for another name, and for one that leads elsewhere.
pub fn origin_of(name: &str) -> Option<String> {
    let path = name.strip_prefix(HEAD)?.replace("%2f", "/").replace("%25", "%");
    let is_plain = |part: &str| !part.is_empty() && part != "." && part != "..";
    path.split('/').all(is_plain).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn no_name_leads_out_of_the_control_groups() {
        for name in ["from:", "from:..%2fetc", "from:a%2f%2fb", "robot", "from:%2fa"] {
            assert_eq!(origin_of(name), None, "{name}");
        }
        assert_eq!((origin_name("/"), origin_name(&"x".repeat(251))), (None, None));
    }

    proptest! {
        #[test]
        fn an_origin_comes_back_from_its_name(path in "[a-z%@:.]{0,6}x(/[a-z%2f25]{0,6}y){0,3}") {
            prop_assert_eq!(origin_name(&format!("/{path}")).and_then(|name| origin_of(&name)), Some(path));
        }
    }
}

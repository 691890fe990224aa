//! Users by their names: passwd(5). Those of a directory service are not there.

use sysroot::SysRoot;

/// User and group of the user with that name.
pub fn find(root: &SysRoot, name: &str) -> Option<(u32, u32)> {
    let text = root.read("/etc/passwd");
    text.value()?.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next()? == name).then_some(())?;
        let mut numbers = fields.skip(1).map(|field| field.parse().ok());
        Some((numbers.next()??, numbers.next()??))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_found_by_its_whole_name() {
        let text = "root:x:0:0:root:/root:/bin/sh\nsensor:x:998:997::/:/usr/sbin/nologin\nbroken:x:a:b\n";
        let tree = sysroot::Tree::whole([("/etc/passwd".to_owned(), text.as_bytes().to_vec())]);
        let find = |name| find(&SysRoot::of(tree.clone()), name);
        assert_eq!(find("sensor"), Some((998, 997)));
        assert_eq!(find("root"), Some((0, 0)));
        for name in ["sens", "", "broken", "nobody"] {
            assert_eq!(find(name), None, "{name}");
        }
    }
}

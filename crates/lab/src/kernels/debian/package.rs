//! What `apt-cache show` says: paragraphs of fields, deb822(5).

/// A package of the lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Package {
    pub name: String,
    pub version: String,
    /// The names of what it depends on; of alternatives the first.
    pub depends: Vec<String>,
    /// Bytes to download.
    pub size: Option<u64>,
}

impl Package {
    /// The first paragraph. Nothing where one of name and version is missing.
    pub fn parse(text: &str) -> Option<Self> {
        let paragraph = text.split("\n\n").next()?;
        let field = |name: &str| {
            let value = |line: &str| Some(line.strip_prefix(name)?.strip_prefix(':')?.trim().to_owned());
            paragraph.lines().find_map(value)
        };
        let depends = field("Depends").unwrap_or_default();
        let first = |item: &str| item.split_whitespace().next().map(str::to_owned);
        Some(Self {
            name: field("Package")?,
            version: field("Version")?,
            depends: depends.split(',').filter_map(first).collect(),
            size: field("Size").and_then(|size| size.parse().ok()),
        })
    }

    /// The image that a meta package stands for.
    pub fn image(&self) -> Option<&str> {
        self.dependency("linux-image-")
    }

    /// The first of what it depends on whose name begins so.
    pub fn dependency(&self, prefix: &str) -> Option<&str> {
        self.depends.iter().map(String::as_str).find(|name| name.starts_with(prefix))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_first_paragraph_is_read() {
        let text = "Package: linux-image-rt-amd64\nSource: linux-signed-amd64 (6.1.192+2)\nVersion: 6.1.192-2\n\
            Depends: linux-image-6.1.0-56-rt-amd64 (= 6.1.192-2), kmod | busybox\nSize: 1488\n\n\
            Package: linux-image-rt-amd64\nVersion: 6.1.176-1\n";
        let package = Package::parse(text).unwrap();
        assert_eq!(package.version, "6.1.192-2");
        assert_eq!(package.depends, ["linux-image-6.1.0-56-rt-amd64", "kmod"]);
        assert_eq!(package.image(), Some("linux-image-6.1.0-56-rt-amd64"));
        assert_eq!(package.size, Some(1488));
        assert_eq!(Package::parse(""), None);
        assert_eq!(Package::parse("Package: x\n"), None);
    }

    proptest! {
        #[test]
        fn any_text_is_answered(text in "(Package|Version|Depends|Size|[ :,|\n]|[a-z0-9])*") {
            let _ = Package::parse(&text);
        }
    }
}

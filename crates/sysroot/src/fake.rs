//! Trees that unit tests make up, here and in crates above.

use crate::SysRoot;

/// A directory that goes with its last user.
pub struct FakeTree {
    _directory: tempfile::TempDir,
    /// The tree, to be read.
    pub root: SysRoot,
}

impl FakeTree {
    /// A tree with these files.
    #[allow(clippy::unwrap_used)]
    pub fn new<T: AsRef<[u8]>>(files: &[(&str, T)]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = SysRoot::at(directory.path());
        let tree = Self { _directory: directory, root };
        files.iter().for_each(|(path, bytes)| tree.write(path, bytes));
        tree
    }

    /// A tree without files.
    pub fn empty() -> Self {
        Self::new::<&str>(&[])
    }

    /// Writes one file, in directories made for it.
    #[allow(clippy::unwrap_used)]
    pub fn write(&self, path: &str, bytes: impl AsRef<[u8]>) {
        let path = self.root.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
}

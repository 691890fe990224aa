//! Documents of one JSON file, which a command leaves in a directory: costs (`cost`), ways (`ways`).

use std::path::Path;

use serde::de::DeserializeOwned;

use crate::store_error::StoreError;

/// What to do about a document that this program does not know.
pub(crate) const NEWER: &str = "use the worstcase that wrote it, or a newer one";

/// A kind of document.
pub(crate) struct Kind {
    /// The file's name.
    pub file: &'static str,
    /// What it holds: `record of costs`.
    pub name: &'static str,
    /// What to do about a file that is none.
    pub hint: &'static str,
    /// The newest version that this program reads.
    pub version: u32,
    /// The longest file that is read.
    pub longest: u64,
}

impl Kind {
    /// Reads what a command left in a directory, or the file itself. None where there is none. `number` gives the version, which every
    /// version of the document has in `V`.
    pub fn load<V: DeserializeOwned, T: DeserializeOwned>(
        &self,
        path: &Path,
        number: fn(V) -> u32,
    ) -> Option<Result<T, StoreError>> {
        let file = if path.is_dir() { path.join(self.file) } else { path.to_owned() };
        let is_it = file.file_name().is_some_and(|name| name == self.file) && file.exists();
        is_it.then(|| self.read(&file, number))
    }

    fn read<V: DeserializeOwned, T: DeserializeOwned>(
        &self,
        file: &Path,
        number: fn(V) -> u32,
    ) -> Result<T, StoreError> {
        let text = files::read(file, self.longest).map_err(|error| StoreError::of(error, self.hint))?;
        let version = number(crate::json::read(&text).map_err(|error| self.refused(file, error))?);
        if version > self.version {
            let reason = format!("it has version {version}, this program reads up to {}", self.version);
            return Err(StoreError::new("read", file, reason, NEWER));
        }
        // A word that this program does not know, as of a place, needs no new version.
        let unknown = |error| StoreError::new("read", file, format!("it cannot be read: {error}"), NEWER);
        crate::json::read(&text).map_err(unknown)
    }

    /// That `file` is none of this kind.
    pub fn refused(&self, file: &Path, why: impl std::fmt::Display) -> StoreError {
        StoreError::new("read", file, format!("it is no {}: {why}", self.name), self.hint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Deserialize)]
    struct Head {
        some_version: u32,
    }

    #[derive(Debug, Deserialize)]
    struct Some {
        word: bool,
    }

    const KIND: Kind =
        Kind { file: "some.json", name: "record of some", hint: "give another", version: 2, longest: 100 };

    #[test]
    fn a_document_is_read_refused_or_newer() {
        let directory = tempfile::tempdir().unwrap();
        let load = |path: &Path| KIND.load::<Head, Some>(path, |head| head.some_version);
        assert!(load(directory.path()).is_none(), "there is none");
        let file = directory.path().join("some.json");
        let says = |text: &str| {
            std::fs::write(&file, text).unwrap();
            let found = [load(directory.path()), load(&file)].map(Option::unwrap);
            found.map(|read| read.map(|some| some.word).map_err(|error| (error.reason, error.hint)))
        };
        assert_eq!(says(r#"{"some_version": 2, "word": true}"#), [Ok(true), Ok(true)]);
        for (text, reason, hint) in [
            (r#"{"some_version": 3}"#, "it has version 3, this program reads up to 2", NEWER),
            ("{}", "it is no record of some: missing field `some_version`", "give another"),
            (r#"{"some_version": 1, "word": 7}"#, "it cannot be read: invalid type", NEWER),
        ] {
            for found in says(text) {
                let (why, what) = found.unwrap_err();
                assert!(why.starts_with(reason) && what == hint, "{why}: {what}");
            }
        }
    }
}

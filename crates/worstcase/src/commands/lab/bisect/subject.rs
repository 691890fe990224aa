//! What is searched: kernel parameters, kernels or symbols.

use std::path::{Path, PathBuf};

use clap::Args;
use lab::bisect::Subject;
use lab::{kernels, parameters};

use failure::{Error, Result};

/// The arguments below, for those that exclude them.
pub const NAMES: [&str; 9] =
    ["kernel", "kernels", "source", "base", "fragments", "good", "bad", "words", "append"];

/// One of three questions.
#[derive(Args)]
pub struct Asked {
    /// Search kernel parameters of this kernel: a name from `lab kernels list`, or the path of an image (with a `/`)
    #[arg(long, value_name = "NAME|PATH", conflicts_with_all = ["kernels", "source"])]
    kernel: Option<String>,

    /// Search the step between two kernels of this list, from good to bad
    #[arg(long, value_name = "NAME,NAME,...", value_delimiter = ',', conflicts_with_all = ["source", "words"])]
    kernels: Vec<String>,

    /// Search symbols: kernels are built from this source, as `lab kernels build` does
    #[arg(long, value_name = "TREE|debian", conflicts_with = "words")]
    source: Option<String>,

    /// What all fragments are put onto: tinyconfig, defconfig or a whole configuration
    #[arg(long, value_name = "tinyconfig|defconfig|FILE", default_value = "tinyconfig", requires = "source")]
    base: String,

    /// A fragment of both set-ups; can be given several times
    #[arg(long = "fragment", value_name = "FILE", requires = "source")]
    fragments: Vec<PathBuf>,

    /// The good set-up: kernel parameters, a kernel of the list [default: the first], or a fragment's file
    #[arg(long, value_name = "GOOD", allow_hyphen_values = true)]
    good: Option<String>,

    /// The bad set-up: kernel parameters, a kernel of the list [default: the last], or a fragment's file
    #[arg(long, value_name = "BAD", allow_hyphen_values = true, conflicts_with = "words")]
    bad: Option<String>,

    /// Kernel parameters of which the bad set-up has all: a file of them, or the words themselves
    #[arg(long, value_name = "FILE|WORDS", allow_hyphen_values = true)]
    words: Option<String>,

    /// Kernel parameters of both set-ups; can be given several times
    #[arg(long, value_name = "WORDS", allow_hyphen_values = true)]
    append: Vec<String>,
}

impl Asked {
    /// What differs between good and bad.
    pub fn subject(&self) -> Result<Subject> {
        match (&self.kernel, &self.source) {
            (Some(kernel), _) => self.words(kernel),
            (None, Some(source)) => self.symbols(source),
            (None, None) if !self.kernels.is_empty() => self.list(),
            (None, None) => Err(Error::new(
                "there is nothing to search",
                "name --kernel with --good and --bad or --words, --kernels, --source, or --resume",
            )),
        }
    }

    fn appended(&self) -> Result<Vec<String>> {
        Ok(parameters::split_all(&self.append)?)
    }

    fn words(&self, kernel: &str) -> Result<Subject> {
        let side = |own: Option<&str>| -> Result<Vec<String>> {
            Ok([self.appended()?, parameters::split(own.unwrap_or_default())?].concat())
        };
        let good = side(self.good.as_deref())?;
        let bad = match (&self.words, &self.bad) {
            (Some(words), _) => [good.clone(), listed(words)?].concat(),
            (None, bad) => side(bad.as_deref())?,
        };
        super::super::warn_of(&good, kernel);
        super::super::warn_of(&bad, kernel);
        Ok(Subject::words(kernel.to_owned(), &good, &bad))
    }

    fn list(&self) -> Result<Subject> {
        let place = |name: &Option<String>, else_place: usize| match name {
            None => Ok(else_place),
            Some(name) => self.kernels.iter().position(|kernel| kernel == name).ok_or_else(|| {
                Error::new(format!("{name} is not in the list"), "the list goes from good to bad")
            }),
        };
        let (good, bad) = (place(&self.good, 0)?, place(&self.bad, self.kernels.len() - 1)?);
        if good >= bad {
            return Err(Error::new("the list has nothing between good and bad", "it goes from good to bad"));
        }
        Ok(Subject::Kernels { names: self.kernels[good..=bad].to_vec(), words: self.appended()? })
    }

    fn symbols(&self, source: &str) -> Result<Subject> {
        let (Some(good), Some(bad)) = (&self.good, &self.bad) else {
            return Err(Error::new(
                "symbols are searched between two fragments",
                "name their files with --good and --bad",
            ));
        };
        let read = |path: &Path| kernels::Asked::read(path);
        let both =
            self.fragments.iter().map(|path| read(path)).collect::<std::result::Result<Vec<_>, _>>()?;
        let (good, bad) = (read(good.as_ref())?, read(bad.as_ref())?);
        let onto = (source.to_owned(), self.base.clone());
        Ok(Subject::symbols(onto, &both, &good, &bad, self.appended()?)?)
    }
}

/// No list of kernel parameters is longer, in bytes.
const LONGEST: u64 = 1 << 20;

/// The parameters in the file of that name, without comments; the parameters themselves where there is no such file. A
/// comment begins with a `#` at the beginning of a parameter and ends with its line.
fn listed(words: &str) -> Result<Vec<String>> {
    let path = Path::new(words);
    if !path.is_file() {
        return Ok(parameters::split(words)?);
    }
    let text = files::read_text(path, LONGEST)
        .map_err(|error| Error::new(error, "give a file of kernel parameters"))?;
    let uncommented = |line: &str| {
        let comment =
            machine::command_line::words(line).find(|(place, _)| line[place.clone()].starts_with('#'));
        comment.map_or(line.to_owned(), |(place, _)| line[..place.start].to_owned())
    };
    let lines: Vec<String> = text.lines().map(uncommented).collect();
    Ok(parameters::split_all(&lines)?)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn words_come_from_a_file_or_as_they_are() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("words");
        fs::write(&file, "preempt=none # the suspect\n\n# nothing\nnosmt quiet\n").unwrap();
        assert_eq!(listed(file.to_str().unwrap()).unwrap(), ["preempt=none", "nosmt", "quiet"]);
        assert_eq!(listed("a b=1").unwrap(), ["a", "b=1"]);
        fs::write(&file, "dyndbg=\"file #1 +p\" quiet # it's \"open\n").unwrap();
        assert_eq!(listed(file.to_str().unwrap()).unwrap(), ["dyndbg=\"file #1 +p\"", "quiet"]);
        assert!(listed("quiet -- single").unwrap_err().message.contains("for init"));
    }
}

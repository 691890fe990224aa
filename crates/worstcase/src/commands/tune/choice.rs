//! The file of choice: what a machine is to apply at each boot. It holds what to choose, not what to write, because the
//! numbers of interrupts and threads are others at each boot.

use std::path::{Path, PathBuf};

use clap::Args;
use tune::Plan;
use tune::journal::Begin;

use super::selection::Selection;
use failure::{Error, Result};

/// Where the file is unless said otherwise.
pub const CHOICE: &str = "/etc/worstcase/tune.toml";

/// No choice is longer.
const LONGEST: u64 = 1 << 20;

const HINT: &str = "its keys are profile, isolate, only, except, and a table [settings] of paths and values";

/// What is to be changed: as options say, or as a file does.
#[derive(Args)]
pub struct Choice {
    #[command(flatten)]
    options: Selection,

    /// Take rules, CPUs and profile from this file instead of options [default where no FILE is given:
    /// /etc/worstcase/tune.toml]
    #[arg(
        long,
        value_name = "FILE",
        num_args = 0..=1,
        default_missing_value = CHOICE,
        conflicts_with_all = ["profile", "isolate", "only", "except"]
    )]
    file: Option<PathBuf>,
}

impl Choice {
    /// As options say.
    pub fn of(options: Selection) -> Self {
        Self { options, file: None }
    }

    /// What is chosen.
    pub fn selection(&self) -> Result<Selection> {
        self.file.as_deref().map_or_else(|| Ok(self.options.clone()), read)
    }

    /// The options that choose the same, for another command.
    pub fn arguments(&self) -> String {
        match &self.file {
            Some(path) => format!(" --file {}", path.display()),
            None => self.options.arguments(),
        }
    }

    /// The file's text, or what one that says the same as the options holds.
    pub fn text(&self) -> Result<String> {
        match &self.file {
            Some(path) => whole_text(path),
            None => Ok(text(&self.options)),
        }
    }

    /// What the journal says of the choice: the file, profiles and CPUs.
    pub fn begun(&self) -> Result<Begin> {
        let Selection { profile, isolate, .. } = self.selection()?;
        Ok(Begin {
            choice: self.file.as_deref().map(|path| whole(path).display().to_string()),
            profile: profile.iter().map(ToString::to_string).collect(),
            isolate: isolate.map(|cpus| cpus.to_string()),
            ..Begin::default()
        })
    }

    /// What would be written on this machine, or on the one whose files are at `root`.
    pub fn plan(&self, root: Option<&Path>) -> Result<Plan> {
        let selection = self.selection()?;
        selection.plan(root).map_err(|error| match &self.file {
            Some(path) => Error::new(format!("{}: {}", path.display(), error.message), error.hint),
            None => error,
        })
    }
}

/// The path as another process must name it.
pub fn whole(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf())
}

/// The selection that the file at `path` holds.
pub fn read(path: &Path) -> Result<Selection> {
    parse(&whole_text(path)?).map_err(|why| unreadable(path, why, HINT))
}

/// What stands in the file at `path`.
fn whole_text(path: &Path) -> Result<String> {
    let text = files::read_text(path, LONGEST);
    text.map_err(|error| unreadable(path, error.source, "worstcase tune persist writes one"))
}

fn unreadable(path: &Path, why: impl std::fmt::Display, hint: &str) -> Error {
    Error::new(format!("read {}: {why}", path.display()), hint)
}

/// The selection that `text` holds, or what is wrong with it.
fn parse(text: &str) -> std::result::Result<Selection, String> {
    let selection: Selection = toml::from_str(text).map_err(|error| error.to_string().trim().to_owned())?;
    if !selection.only.is_empty() && !selection.except.is_empty() {
        return Err("only and except cannot both be given".to_owned());
    }
    selection.settings.keys().try_for_each(|path| check_path(path))?;
    Ok(selection)
}

/// Nothing else can be put back by its value alone.
fn check_path(path: &str) -> std::result::Result<(), String> {
    match tune::is_setting(path) {
        true => Ok(()),
        false => {
            Err(format!("`{path}` in [settings] is no file below /proc or /sys, nor /dev/cpu_dma_latency"))
        }
    }
}

/// The file's text, which [`read`] gives back as `selection`.
pub fn text(selection: &Selection) -> String {
    let list = |key: &str, words: Vec<String>| match words.as_slice() {
        [] => String::new(),
        words => {
            format!("{key} = [{}]\n", words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(", "))
        }
    };
    let mut text = HEAD.to_owned();
    text += &list("profile", selection.profile.iter().map(ToString::to_string).collect());
    text += &selection.isolate.iter().map(|cpus| format!("isolate = \"{cpus}\"\n")).collect::<String>();
    text += &list("only", selection.only.clone());
    text += &list("except", selection.except.clone());
    let settings = selection.settings.iter();
    let settings: String =
        settings.map(|(path, value)| format!("{} = {}\n", quoted(path), quoted(value))).collect();
    match settings.is_empty() {
        true => text,
        false => text + "\n[settings]\n" + &settings,
    }
}

const HEAD: &str = "\
# What worstcase changes at each boot. worstcase tune plan --file shows what that comes to now.
# Keys: profile, isolate, only, except, as the options of tune plan; files of the kernel with values of your own go into
# a table [settings], as in \"/proc/sys/vm/swappiness\" = \"1\".
";

/// A string of TOML: JSON escapes the same, but for one character.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

#[cfg(test)]
mod tests {
    use audit::Profile;

    use super::*;

    #[test]
    fn a_file_says_what_options_say() {
        let all = "profile = [\"isolated\", \"rt\"]\nisolate = \"2-3\"\nonly = [\"rn-thp\"]\n\
                   [settings]\n\"/proc/sys/vm/swappiness\" = \"1\"\n";
        let selection = parse(all).unwrap();
        assert_eq!(selection.profile, [Profile::Isolated, Profile::Rt]);
        assert_eq!(selection.isolate, Some("2-3".parse().unwrap()));
        assert_eq!(selection.only, ["rn-thp"]);
        assert_eq!(selection.settings["/proc/sys/vm/swappiness"], "1");
        assert_eq!(parse(""), Ok(Selection::default()), "nothing is chosen: the defaults of the options");
    }

    #[test]
    fn what_is_written_is_read_back() {
        let odd = "a \"word\"\\ with\ttab, \u{7f}\u{1} and \u{e9}";
        let selection = Selection {
            profile: vec![Profile::Poll],
            isolate: Some("1,3-5".parse().unwrap()),
            except: vec!["rn-thp".into(), odd.into()],
            settings: [("/sys/a*b".to_owned(), odd.to_owned()), ("/proc/x".to_owned(), "1".to_owned())]
                .into(),
            ..Selection::default()
        };
        assert_eq!(parse(&text(&selection)), Ok(selection));
        assert_eq!(parse(&text(&Selection::default())), Ok(Selection::default()));
    }

    #[test]
    fn what_is_no_choice_is_refused_with_the_reason() {
        for (text, why) in [
            ("isolated = \"2\"", "unknown field `isolated`"),
            ("isolate = \"3-2\"", "3-2"),
            ("profile = [\"fast\"]", "fast"),
            ("only = [\"a\"]\nexcept = [\"b\"]", "only and except"),
            ("[settings]\n\"/etc/passwd\" = \"1\"", "`/etc/passwd` in [settings] is no file below"),
            ("[settings]\n\"/proc/../etc/passwd\" = \"1\"", "is no file below"),
            ("[settings]\n\"/proc/sys/vm/swappiness\" = 1", "expected a string"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}

//! Debian's own tools: which packages there are, and their download. apt-get(8), apt-cache(8), apt.conf(5).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Package;
use crate::kernels::cache::{failed, write};
use crate::kernels::program::{Program, only};
use crate::kernels::{Architecture, Cache};
use crate::{Error, input};

const APT_GET: Program = Program { name: "apt-get", hint: ELSEWHERE };
const APT_CACHE: Program = Program { name: "apt-cache", hint: ELSEWHERE };

const ELSEWHERE: &str =
    "fetching works on Debian and its relatives; elsewhere: worstcase lab kernels add NAME --image FILE";

/// Package lists to ask: the system's, or the cache's own.
#[derive(Debug)]
pub(crate) struct Apt {
    own: Option<OwnLists>,
}

/// Lists in the cache: for another architecture, and where nobody may or did update the system's.
#[derive(Debug)]
struct OwnLists {
    configuration: PathBuf,
    lists: PathBuf,
}

impl Apt {
    /// The system's lists, as they are.
    pub fn of_system() -> Self {
        Self { own: None }
    }

    /// The cache's own, from the system's sources. They are only read from here: nothing is ever installed.
    pub fn of_cache(cache: &Cache, architecture: Architecture) -> Result<Self, Error> {
        let directory = cache.make(&format!(".apt/{architecture}"))?;
        let lists = directory.join("lists");
        for needed in [lists.join("partial"), directory.join("cache/archives/partial")] {
            files::Directory::make(&needed).map_err(|error| failed("create", &needed, &error.source))?;
        }
        let configuration = directory.join("apt.conf");
        for (path, text) in [
            (&configuration, configuration_for(&directory, architecture)),
            (&directory.join("status"), String::new()),
        ] {
            if input::text(path).ok().as_deref() != Some(&text) {
                write(path, text.as_bytes())?;
            }
        }
        Ok(Self { own: Some(OwnLists { configuration, lists }) })
    }

    /// Whether they were ever read from the archive.
    pub fn has_lists(&self) -> bool {
        let Some(own) = &self.own else { return true };
        let names = fs::read_dir(&own.lists).into_iter().flatten().filter_map(Result::ok);
        names.into_iter().any(|entry| entry.file_name().to_string_lossy().contains("_Packages"))
    }

    /// Reads them from the archive. Sources that fail are no error for apt-get, and none here while there are others.
    pub fn update(&self) -> Result<(), Error> {
        const HINT: &str = "is there a network, and are the package sources right?";
        let updated = APT_GET.run(self.command(APT_GET).args(["-q", "update"]));
        let said = updated.map_err(|error| with_hint(error, HINT))?;
        if self.has_lists() {
            return Ok(());
        }
        Err(Error::new(format!("apt-get update brought no package lists: {}", said.complaints)).hint(HINT))
    }

    /// The package that would be installed; nothing if the lists have none of that name.
    pub fn show(&self, name: &str) -> Result<Option<Package>, Error> {
        let mut show = self.command(APT_CACHE);
        show.args(["-q", "--no-all-versions", "show", name]);
        let output = show.output().map_err(|error| APT_CACHE.not_started(&error))?;
        // For a name that it does not know it fails or takes the name for a pattern.
        let package = Package::parse(&String::from_utf8_lossy(&output.stdout));
        Ok(package.filter(|package| package.name == name))
    }

    /// The names that begin so.
    pub fn names(&self, prefix: &str) -> Result<Vec<String>, Error> {
        let names = APT_CACHE.output(self.command(APT_CACHE).args(["pkgnames", prefix]))?;
        Ok(names.lines().map(str::to_owned).collect())
    }

    /// Downloads the package into a directory, in which there is no other of its name.
    pub fn download(&self, package: &Package, into: &Path) -> Result<PathBuf, Error> {
        let what = format!("{}={}", package.name, package.version);
        let mut download = self.command(APT_GET);
        download.args(["-q", "download", &what]).current_dir(into);
        APT_GET
            .output(&mut download)
            .map_err(|error| with_hint(error, "is there a network, and room on the disk?"))?;
        let archive = only(into, &format!("{}_", package.name));
        let (path, _) =
            archive.ok_or_else(|| Error::new(format!("apt-get download left no package of {what}")))?;
        Ok(path)
    }

    fn command(&self, program: Program) -> Command {
        let mut command = program.command();
        if let Some(own) = &self.own {
            command.arg("-c").arg(&own.configuration);
        }
        command
    }
}

fn with_hint(error: Error, hint: &str) -> Error {
    if error.hint.is_some() { error } else { error.hint(hint) }
}

/// Read after the system's own configuration: sources, keys and proxies stay as they are there, lists and caches are in
/// `directory`, and what the system does after its own updates is not done.
fn configuration_for(directory: &Path, architecture: Architecture) -> String {
    let directory = directory.display();
    format!(
        "#clear APT::Update::Post-Invoke;\n\
         #clear APT::Update::Post-Invoke-Success;\n\
         #clear APT::Architectures;\n\
         APT::Architecture \"{architecture}\";\n\
         APT::Architectures {{ \"{architecture}\"; }};\n\
         Dir::State \"{directory}\";\n\
         Dir::State::lists \"{directory}/lists\";\n\
         Dir::State::status \"{directory}/status\";\n\
         Dir::Cache \"{directory}/cache\";\n\
         Dir::Cache::pkgcache \"\";\n\
         Dir::Cache::srcpkgcache \"\";\n\
         Acquire::Languages \"none\";\n"
    )
}

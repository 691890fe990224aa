//! `worstcase lab kernels`: what guests can boot, and how it gets there.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand, ValueEnum};
use lab::kernels::{
    self, Addition, Architecture, Asked, Base, Build, Built, Cache, Flavour, Kernel, Source, Wanted,
};

use crate::output::{self, Stream};
use failure::{Error, Result};

/// Keep kernels for guests: fetch Debian's, add and build others
///
/// They are in $WORSTCASE_CACHE, else $XDG_CACHE_HOME/worstcase/kernels, else ~/.cache/worstcase/kernels: one directory
/// each, which can be deleted. Nothing is installed.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    worstcase lab kernels fetch debian                 this release's kernel\n  \
    worstcase lab kernels fetch debian --flavour rt    with PREEMPT_RT\n  \
    worstcase lab kernels fetch xen                    Debian's Xen, for --under\n  \
    worstcase lab kernels add mine --image bzImage     one of your own\n  \
    worstcase lab kernels list                         what is there")]
pub struct Kernels {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    List(List),
    Fetch(Fetch),
    Add(Add),
    Build(Builds),
}

/// Show the kernels that guests can boot
#[derive(Args)]
struct List {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Download a kernel of a distribution, with its modules, or Debian's Xen
///
/// By apt's own tools, from this machine's package sources.
#[derive(Args)]
struct Fetch {
    /// The distribution; or xen, the hypervisor, which is kept beside the kernels
    #[arg(value_name = "DISTRIBUTION")]
    what: Fetched,

    /// As in 6.1 for the newest one of 6.1, or 6.1.0-56 for that one; 4.17 of Xen [default: the distribution's own]
    #[arg(long)]
    version: Option<String>,

    /// Debian's build: plain, rt, cloud
    #[arg(long, default_value_t = Flavour::Plain)]
    flavour: Flavour,

    /// amd64 or arm64 [default: this machine's]
    #[arg(long, value_name = "ARCHITECTURE")]
    arch: Option<Architecture>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Fetched {
    Debian,
    Xen,
}

/// Copy a kernel of one's own
#[derive(Args)]
struct Add {
    /// Its name in the cache
    name: String,

    /// bzImage (amd64), or Image or Image.gz (arm64)
    #[arg(long, value_name = "FILE")]
    image: PathBuf,

    /// Its modules: the directory with modules.order, or the one that they were installed to
    #[arg(long, value_name = "DIR")]
    modules: Option<PathBuf>,

    /// Its configuration
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// Build a kernel from its source, a base and fragments
///
/// Every symbol that the fragments ask for is verified in the configuration before anything is compiled.
#[derive(Args)]
struct Builds {
    /// Its name in the cache, and the end of its release
    name: String,

    /// The source's tree, or Debian's package of it: debian, debian-6.12
    #[arg(long, value_name = "TREE|debian")]
    source: String,

    /// Lines like CONFIG_HZ_1000=y, put onto the base; of several the last one wins
    #[arg(long = "fragment", value_name = "FILE", required = true, num_args = 1..)]
    fragments: Vec<PathBuf>,

    /// What the fragments are put onto: tinyconfig, defconfig or a whole configuration
    #[arg(long, value_name = "tinyconfig|defconfig|FILE", default_value = "tinyconfig")]
    base: String,

    /// Build it although symbols did not arrive
    #[arg(long)]
    allow_dropped: bool,
}

impl Kernels {
    /// Does what its verb says.
    pub fn run(self) -> Result<ExitCode> {
        let cache = Cache::of_user()?;
        match self.verb {
            Verb::List(list) => list.run(&cache),
            Verb::Fetch(fetch) => fetch.run(&cache),
            Verb::Add(add) => add.run(&cache),
            Verb::Build(build) => build.run(&cache),
        }
    }
}

impl List {
    fn run(self, cache: &Cache) -> Result<ExitCode> {
        let entries = cache.entries()?;
        let mut found = Vec::new();
        let mut broken = Vec::new();
        for entry in entries {
            match entry.kernel {
                Ok(kernel) => found.push(kernel),
                Err(error) => broken.push(format!("{} is no kernel: {error}", entry.name)),
            }
        }
        let text = if self.json {
            serde_json::to_string(&found).map_err(|error| Error::new(error, ""))? + "\n"
        } else {
            table(&found, output::stated_width(Stream::Output).unwrap_or(usize::MAX))
        };
        output::final_data(&text)?;
        broken.iter().for_each(|warning| output::warning(warning));
        if found.is_empty() && !self.json {
            output::words(&format!("no kernel in {}", cache.directory().display()));
            output::words("  hint: worstcase lab kernels fetch debian --flavour rt");
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Fetch {
    fn run(self, cache: &Cache) -> Result<ExitCode> {
        if matches!(self.what, Fetched::Xen) {
            return self.xen(cache);
        }
        let architecture = self.arch.or_else(Architecture::own).ok_or_else(|| {
            Error::new("guests cannot be what this machine is", "name one by --arch: amd64, arm64")
        })?;
        let wanted = Wanted { version: self.version, flavour: self.flavour, architecture };
        text(&kernels::fetch(cache, &wanted, &mut output::words)?)
    }

    /// There is one build of it.
    fn xen(self, cache: &Cache) -> Result<ExitCode> {
        if self.flavour != Flavour::Plain || self.arch.is_some_and(|arch| arch != Architecture::Amd64) {
            return Err(Error::new(
                "of Debian's Xen the lab has one build, for amd64",
                "worstcase lab kernels fetch xen --version 4.17",
            ));
        }
        text(&kernels::fetch_xen(cache, self.version.as_deref(), &mut output::words)?)
    }
}

impl Add {
    fn run(self, cache: &Cache) -> Result<ExitCode> {
        let Self { name, image, modules, config } = self;
        text(&kernels::add(cache, &Addition { name, image, modules, config }, &mut output::words)?)
    }
}

impl Builds {
    fn run(self, cache: &Cache) -> Result<ExitCode> {
        let fragments = self.fragments.iter().map(|path| Asked::read(path));
        let build = Build {
            source: Source::named(&self.source),
            base: Base::named(&self.base)?,
            fragments: fragments.collect::<std::result::Result<_, _>>()?,
            name: self.name,
            allow_dropped: self.allow_dropped,
        };
        let Built { kernel, dropped } = kernels::build(cache, &build, &mut output::words)?;
        for dropped in dropped {
            output::warning(&format!("{dropped}"));
        }
        text(&kernel)
    }
}

/// What now is in the cache.
fn text(kernel: &Kernel) -> Result<ExitCode> {
    output::final_data(&format!("{}: {} ({})\n", kernel.name, kernel.release, kernel.origin))?;
    Ok(ExitCode::SUCCESS)
}

/// One line a kernel; what is wider is cut, and marked.
fn table(kernels: &[Kernel], width: usize) -> String {
    let widest = |head: &str, text: fn(&Kernel) -> &str| {
        kernels.iter().map(|kernel| text(kernel).chars().count()).chain([head.len()]).max().unwrap_or(0)
    };
    let name = widest("name", |kernel| &kernel.name);
    let release = widest("release", |kernel| &kernel.release);
    let mut text = String::new();
    let mut row = |cells: [&str; 4]| {
        let line = format!("{:name$}  {:5}  {:release$}  {}", cells[0], cells[1], cells[2], cells[3]);
        let line = report::text::clip(&line, width);
        let _ = writeln!(text, "{}", line.trim_end());
    };
    if !kernels.is_empty() {
        row(["name", "arch", "release", "from"]);
    }
    for kernel in kernels {
        row([&kernel.name, kernel.architecture.name(), &kernel.release, &kernel.origin]);
    }
    text
}

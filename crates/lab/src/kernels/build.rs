//! A kernel built from source, a base and fragments: every symbol that was asked for is in it, or it is not built.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use machine::KernelConfig;
use machine::kernel_config::{Dropped, Fragment, Setting, dropped};

use super::add::copy;
use super::cache::{Draft, LONGEST_CONFIG, Lock, check_name, failed, remove, write};
use super::program::{Program, last_lines};
use super::source::{Source, Unpacked};
use super::{Asked, Base, Cache, Kernel, Progress, image, merge};
use crate::{Error, input};

const MAKE: Program = Program { name: "make", hint: PACKAGES };

/// What kbuild calls, as programs.
const PROGRAMS: [&str; 6] = ["make", "gcc", "ld", "flex", "bison", "bc"];

const PACKAGES: &str = "apt-get install build-essential flex bison bc libelf-dev libssl-dev xz-utils";

/// What a failed build says, and what to do then.
const SIGNS: [(&str, &str); 4] = [
    (
        "No space left on device",
        "a build takes up to 1 GB: make room, or name another directory by WORSTCASE_CACHE",
    ),
    ("gelf.h", PACKAGES),
    ("libelf", PACKAGES),
    ("openssl/", PACKAGES),
];

/// Lines of the log that a failed build prints.
const LAST_LINES: usize = 8;

/// How often a build reports its progress.
const PROGRESS_EVERY: Duration = Duration::from_secs(30);

/// What stands in every image in place of date, user, machine and count, so that equal inputs give equal images.
const IDENTITY: [(&str, &str); 4] = [
    ("KBUILD_BUILD_TIMESTAMP", "Thu Jan  1 00:00:00 UTC 1970"),
    ("KBUILD_BUILD_USER", "worstcase"),
    ("KBUILD_BUILD_HOST", "lab"),
    ("KBUILD_BUILD_VERSION", "1"),
];

/// A kernel to build.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Build {
    /// What it is to be called; its release ends so too.
    pub name: String,
    /// Where its source is.
    pub source: Source,
    /// What the fragments are put onto.
    pub base: Base,
    /// What is asked for; the last fragment that names a symbol wins.
    pub fragments: Vec<Asked>,
    /// Build it although symbols did not arrive.
    pub allow_dropped: bool,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Built {
    /// The kernel in the cache.
    pub kernel: Kernel,
    /// What was asked for and is not in its configuration; empty unless that was allowed.
    pub dropped: Vec<Dropped>,
}

/// Builds the kernel, or takes it from the cache where it was built from the same inputs. A build that was interrupted
/// goes on where it was.
pub fn build(cache: &Cache, asked: &Build, progress: &mut Progress<'_>) -> Result<Built, Error> {
    check_name(&asked.name)?;
    let fragment = merge::join(&asked.fragments)?;
    programs_are_there()?;
    let source = asked.source.unpack(cache, progress)?;
    let inputs = inputs(&source, asked, &fragment);
    let lock = cache.lock(&asked.name, progress)?;
    if let Some(kernel) = built_before(cache, &asked.name, inputs.as_deref()) {
        let dropped = kernel.config.as_deref().map(read_config).transpose()?;
        return Ok(Built {
            dropped: dropped.map(|config| dropped_of(&fragment, &config)).unwrap_or_default(),
            kernel,
        });
    }
    let directory = start(cache, &asked.name, inputs.as_deref())?;
    let kbuild = Kbuild { source: &source.directory, output: &directory, name: &asked.name, lock: &lock };
    progress(&format!("configuring {}", asked.name));
    let config = configure(&kbuild, &asked.base, &fragment)?;
    let dropped = dropped_of(&fragment, &config);
    if !dropped.is_empty() && !asked.allow_dropped {
        return Err(did_not_arrive(asked, &fragment, &dropped));
    }
    kbuild.compile(&config, progress)?;
    let draft = cache.draft(&asked.name, &lock)?;
    let kernel = collect(&kbuild, &config, asked, &source, &draft)?;
    let kernel = draft.publish(&kernel)?;
    remove(&directory)?;
    Ok(Built { kernel, dropped })
}

fn dropped_of(fragment: &Fragment, config: &KernelConfig) -> Vec<Dropped> {
    dropped(fragment, config)
}

fn programs_are_there() -> Result<(), Error> {
    let missing = PROGRAMS.into_iter().filter(|&name| !Program { name, hint: PACKAGES }.is_there());
    let missing: Vec<&str> = missing.collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(Error::new(format!("building a kernel needs {}, not on this machine", missing.join(", ")))
        .hint(PACKAGES))
}

/// All that an image follows from, the compiler aside; nothing where the source is a tree that can change.
fn inputs(source: &Unpacked, asked: &Build, fragment: &Fragment) -> Option<String> {
    let base = match &asked.base {
        Base::File(file) => merge::onto(&KernelConfig::parse(&file.text), &Fragment::default()),
        base => format!("{}\n", base.name()),
    };
    let settings = merge::onto(&KernelConfig::default(), fragment);
    Some(format!("{}\n{}\n{base}\n{settings}", source.identity.as_ref()?, asked.name))
}

const INPUTS: &str = "inputs";

fn built_before(cache: &Cache, name: &str, inputs: Option<&str>) -> Option<Kernel> {
    let kernel = cache.present(name)?;
    let before = input::text(&kernel.image.with_file_name(INPUTS)).ok()?;
    (Some(before.as_str()) == inputs && kernel.is_intact()).then_some(kernel)
}

/// The directory that is built in: what an earlier process left of a build from the same inputs, else empty.
fn start(cache: &Cache, name: &str, inputs: Option<&str>) -> Result<PathBuf, Error> {
    let directory = cache.make(".builds")?.join(name);
    let path = directory.join(INPUTS);
    if inputs.is_some() && input::text(&path).ok().as_deref() == inputs {
        return Ok(directory);
    }
    remove(&directory)?;
    fs::create_dir(&directory).map_err(|error| failed("create", &directory, &error))?;
    write(&path, inputs.unwrap_or_default().as_bytes())?;
    Ok(directory)
}

/// Makes the configuration: the base, the fragments onto it, and what follows from them.
fn configure(kbuild: &Kbuild<'_>, base: &Base, fragment: &Fragment) -> Result<KernelConfig, Error> {
    let path = kbuild.output.join(".config");
    let base = match base {
        Base::File(file) => KernelConfig::parse(&file.text),
        made => {
            kbuild.run(made.name())?;
            read_config(&path)?
        }
    };
    write(&path, merge::onto(&base, fragment).as_bytes())?;
    kbuild.run("olddefconfig")?;
    read_config(&path)
}

fn read_config(path: &Path) -> Result<KernelConfig, Error> {
    let text = files::read_text(path, LONGEST_CONFIG).map_err(|error| failed("read", path, &error.source))?;
    Ok(KernelConfig::parse(&text))
}

fn did_not_arrive(asked: &Build, fragment: &Fragment, dropped: &[Dropped]) -> Error {
    let lines: Vec<String> = dropped.iter().map(|dropped| format!("  {dropped}")).collect();
    Error::new(format!(
        "{} of {} symbols that the fragments ask for did not arrive in the configuration of {}; nothing is built\n{}",
        dropped.len(),
        fragment.len(),
        asked.name,
        lines.join("\n")
    ))
    .hint("this kernel has no such symbol, or what it depends on is off; --allow-dropped builds all the same")
}

/// Takes image, configuration and modules out of a finished build; paths are relative to the draft.
fn collect(
    kbuild: &Kbuild<'_>,
    config: &KernelConfig,
    asked: &Build,
    source: &Unpacked,
    draft: &Draft<'_>,
) -> Result<Kernel, Error> {
    let built = kbuild.output.join(kbuild.run("image_name")?.trim());
    let known = image::recognise(&built)?;
    let to = draft.path();
    copy(&built, &to.join("image"))?;
    for (from, name) in [(".config", "config"), (LOG, LOG), (INPUTS, INPUTS)] {
        copy(&kbuild.output.join(from), &to.join(name))?;
    }
    let release = kbuild.run("kernelrelease")?.trim().to_owned();
    let modules = has_modules(config).then(|| install_modules(kbuild, &release, to)).transpose()?;
    let what =
        source.identity.as_ref().map(|identity| format!("Debian package {}", identity.replace('_', " ")));
    let fragments: Vec<&str> = asked.fragments.iter().map(|fragment| fragment.name.as_str()).collect();
    Ok(Kernel {
        name: asked.name.clone(),
        architecture: known.architecture,
        release,
        image: "image".into(),
        sha256: None,
        unpacked: None,
        modules,
        config: Some("config".into()),
        origin: format!(
            "{}, {} + {}",
            what.unwrap_or_else(|| source.directory.display().to_string()),
            asked.base.name(),
            fragments.join(" + ")
        ),
        hypervisor: false,
    })
}

fn has_modules(config: &KernelConfig) -> bool {
    config.settings().any(|(_, setting)| *setting == Setting::Module)
}

fn install_modules(kbuild: &Kbuild<'_>, release: &str, to: &Path) -> Result<PathBuf, Error> {
    let installed = to.join("installed");
    let path = format!("INSTALL_MOD_PATH={}", installed.display());
    // depmod's tables are not needed, and kmod need not be there.
    MAKE.output(kbuild.make().args([&path, "INSTALL_MOD_STRIP=1", "DEPMOD=true", "modules_install"]))?;
    let modules = installed.join("lib/modules").join(release);
    fs::rename(&modules, to.join("modules")).map_err(|error| failed("move", &modules, &error))?;
    remove(&installed)?;
    Ok("modules".into())
}

const LOG: &str = "build.log";

/// One build of one source, outside of its tree.
struct Kbuild<'a> {
    source: &'a Path,
    output: &'a Path,
    name: &'a str,
    lock: &'a Lock,
}

impl Kbuild<'_> {
    /// `make` with nothing from the user's environment that would change what is built.
    fn make(&self) -> Command {
        let mut make = MAKE.command();
        make.env_clear().env("LC_ALL", "C").envs(IDENTITY);
        for kept in ["PATH", "HOME", "TMPDIR"] {
            std::env::var_os(kept).map(|value| make.env(kept, value));
        }
        make.arg("-C").arg(self.source).arg(format!("O={}", self.output.display()));
        make.arg(format!("LOCALVERSION=-{}", self.name));
        make
    }

    /// Makes a target that is made at once, and gives back what was printed.
    fn run(&self, target: &str) -> Result<String, Error> {
        MAKE.output(self.make().args(["-s", target]))
    }

    /// Makes the image, and modules if there are any, on all CPUs; what is said goes to the log.
    fn compile(&self, config: &KernelConfig, progress: &mut Progress<'_>) -> Result<(), Error> {
        let path = self.output.join(LOG);
        let _ = fs::remove_file(&path);
        let log = files::create_new(&path, files::READABLE);
        let log = log.map_err(|error| failed(error.operation, &path, &error.source))?;
        let both = log.try_clone().map_err(|error| failed("create", &path, &error))?;
        let mut make = self.make();
        let jobs = std::thread::available_parallelism().map_or(1, usize::from);
        let image = if config.get("X86").is_some() { "bzImage" } else { "Image" };
        make.arg(format!("-j{jobs}")).arg(image).args(has_modules(config).then_some("modules"));
        // What make starts outlives a make that is killed: until all of it has ended, the name stays locked.
        sys::process::pass_on(&mut make, self.lock.share()?);
        let mut child = make.stdout(log).stderr(both).spawn().map_err(|error| MAKE.not_started(&error))?;
        let mut last = Instant::now();
        let status = loop {
            if let Some(status) =
                child.try_wait().map_err(|error| failed("wait for make in", self.output, &error))?
            {
                break status;
            }
            std::thread::sleep(Duration::from_millis(100));
            if last.elapsed() >= PROGRESS_EVERY {
                last = Instant::now();
                progress(&format!("building {}: {} steps so far", self.name, steps(&path)));
            }
        };
        if status.success() { Ok(()) } else { Err(self.build_failed(&path)) }
    }

    fn build_failed(&self, path: &Path) -> Error {
        let log = input::read(path).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let last = last_lines(&log, LAST_LINES);
        let error = Error::new(format!("building {} failed: {}\n{last}", self.name, path.display()));
        let hint = SIGNS.iter().find(|(sign, _)| log.contains(sign)).map(|(_, hint)| *hint);
        error.hint(hint.unwrap_or("the log says what failed first"))
    }
}

/// The lines of a log: one a file that was compiled, linked or made.
fn steps(log: &Path) -> usize {
    input::read(log).map_or(0, |text| text.iter().filter(|&&byte| byte == b'\n').count())
}

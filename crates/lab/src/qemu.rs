//! QEMU's command line: a guest's machine as data.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use units::Bytes;

use crate::Error;
use crate::boot::device::{Board, Device};
use crate::boot::disk::of_ram_disk;
use crate::boot::guest::{Guest, Time};
use crate::boot::under;
use crate::initramfs::programs;
use crate::kernels::Architecture;

/// What differs between the machines of two architectures.
#[derive(Debug)]
pub(crate) struct Machine {
    /// The emulator.
    program: &'static str,
    /// The Debian package that brings it.
    package: &'static str,
    /// The machine and its devices.
    board: &'static [&'static str],
    /// Others, and the kernel's word for each, for devices that ask for them.
    boards: &'static [(Board, &'static [&'static str], Option<&'static str>)],
    /// The CPU in instruction time: without instructions that return random numbers or whose length depends on the emulator, and
    /// without five-level page tables, which cost the host time and change no path (equal records with and without).
    steady_cpu: &'static str,
    /// The CPU in wall time.
    cpu: &'static str,
    /// The same where cores have several threads, which QEMU's processors of AMD have not.
    cpu_with_siblings: &'static str,
    /// The kernel's `console=`.
    console: &'static str,
    /// The port for results, in the guest.
    pub port: &'static str,
    /// QEMU's option for that port.
    port_device: &'static [&'static str],
    /// The clock source that a guest must have.
    pub clock_source: &'static str,
    /// Words that every kernel gets.
    words: &'static [&'static str],
}

const AMD64: Machine = Machine {
    program: "qemu-system-x86_64",
    package: "qemu-system-x86",
    board: &["-machine", "pc"],
    boards: &[
        (Board::WithTimers, &["-machine", "q35"], None),
        (Board::WithIommu, &["-machine", "q35", "-device", "intel-iommu"], Some("intel_iommu=on")),
    ],
    steady_cpu: "max,-rdrand,-rdseed,-erms,-fsrm,-la57",
    cpu: "max",
    cpu_with_siblings: "max,vendor=GenuineIntel",
    console: "ttyS0",
    port: "/dev/ttyS1",
    port_device: &["-serial", "chardev:results"],
    clock_source: "tsc",
    words: &["tsc=reliable"],
};

const ARM64: Machine = Machine {
    program: "qemu-system-aarch64",
    package: "qemu-system-arm",
    board: &["-machine", "virt,gic-version=3"],
    boards: &[],
    steady_cpu: "cortex-a57",
    cpu: "cortex-a57",
    cpu_with_siblings: "cortex-a57",
    console: "ttyAMA0",
    port: "/dev/ttyS0",
    port_device: &["-device", "pci-serial,chardev=results"],
    clock_source: "arch_sys_counter",
    words: &[],
};

/// The machine for `architecture`.
pub(crate) fn machine(architecture: Architecture) -> &'static Machine {
    match architecture {
        Architecture::Amd64 => &AMD64,
        Architecture::Arm64 => &ARM64,
    }
}

/// An emulator on this machine.
#[derive(Clone, Debug)]
pub(crate) struct Emulator {
    /// Where it is.
    pub path: PathBuf,
    /// `QEMU 7.2.22`.
    pub version: String,
}

impl Emulator {
    /// Finds the one for `architecture` and asks for its version.
    pub fn find(architecture: Architecture) -> Result<Self, Error> {
        let Machine { program, package, .. } = machine(architecture);
        let path = programs::find(program.as_ref()).ok_or_else(|| {
            Error::new(format!("{program} is not installed: guests run in QEMU"))
                .hint(format!("apt-get install {package}"))
        })?;
        let output = Command::new(&path).arg("--version").output();
        let output = output.map_err(|error| Error::new(format!("run {}: {error}", path.display())))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let version = text.split_once("version ").and_then(|(_, rest)| rest.split_whitespace().next());
        Ok(Self { path, version: format!("QEMU {}", version.unwrap_or("of unknown version")) })
    }
}

/// QEMU's `-cpu`.
pub(crate) fn cpu_model(guest: &Guest) -> &str {
    let machine = machine(guest.kernel.architecture);
    if let Some(model) = &guest.cpu_model {
        return model;
    }
    if guest.under.is_some() {
        return under::CPU;
    }
    match guest.time {
        Time::Instructions => machine.steady_cpu,
        Time::Wall if guest.threads_per_core > 1 => machine.cpu_with_siblings,
        Time::Wall => machine.cpu,
    }
}

/// What a serial port writes to a file.
#[derive(Clone, Debug)]
pub(crate) enum Port {
    /// The console.
    Console(String),
    /// The results: a person sits at the console.
    Results(String),
}

/// Files that QEMU is given by their descriptors.
#[derive(Clone, Debug)]
pub(crate) struct Files {
    /// The kernel.
    pub kernel: String,
    /// The hypervisor under it.
    pub hypervisor: Option<String>,
    /// The guest's root.
    pub initramfs: String,
    /// The file of one of the two serial ports; QEMU's standard input and output are the other.
    pub port: Port,
    /// A disk's image.
    pub disk: Option<String>,
    /// A plugin, with its arguments.
    pub plugin: Option<String>,
}

/// A clock that counts instructions and moves to the next event where the CPU halts. QEMU's first thread moves it; woken
/// just while the CPU's thread comes to its halt, it would reckon with a clock that is not up to date. While QEMU records
/// for a replay each of the two waits for the other at that place. The recording itself is thrown away. (QEMU's
/// docs/devel/replay.rst.)
const STEADY_CLOCK: &str = "shift=0,sleep=off,rr=record,rrfile=/dev/null";

/// QEMU's arguments.
pub(crate) fn arguments(guest: &Guest, files: &Files) -> Vec<OsString> {
    let machine = machine(guest.kernel.architecture);
    let mut all: Vec<OsString> = Vec::new();
    let mut put = |words: &[&str]| all.extend(words.iter().map(|word| OsString::from(*word)));
    put(&["-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-nic", "none"]);
    put(other_board(guest).map_or(machine.board, |(board, _)| board));
    put(&["-cpu", cpu_model(guest), "-m", &mebibytes(guest.memory), "-smp", &topology(guest)]);
    match guest.time {
        Time::Instructions => {
            put(&["-accel", "tcg", "-icount", STEADY_CLOCK, "-seed", "1"]);
            put(&["-rtc", "base=2020-01-01T00:00:00,clock=vm"]);
        }
        Time::Wall => put(&["-accel", "tcg,thread=multi", "-rtc", "base=utc"]),
    }
    match &files.port {
        Port::Console(console) => {
            put(&["-chardev", &format!("file,id=console,path={console}")]);
            put(&["-chardev", "stdio,id=results,signal=off"]);
        }
        Port::Results(results) => {
            put(&["-chardev", "stdio,id=console,mux=on,signal=off", "-mon", "chardev=console"]);
            put(&["-chardev", &format!("file,id=results,path={results}")]);
        }
    }
    put(&["-serial", "chardev:console"]);
    put(machine.port_device);
    if let Some(disk) = &files.disk {
        put(&["-drive", &format!("file={disk},if=virtio,format=raw,cache=unsafe")]);
    }
    if guest.devices.iter().any(|device| device.socket().is_some()) {
        // The process at the other end reads and writes what the guest has for the device.
        let memory = format!("memory-backend-memfd,id=shared,share=on,size={}", mebibytes(guest.memory));
        put(&["-object", &memory, "-machine", "memory-backend=shared"]);
    }
    for device in &guest.devices {
        device.arguments().iter().for_each(|word| put(&[word]));
    }
    if let Some(plugin) = &files.plugin {
        put(&["-plugin", plugin]);
    }
    let words = words(guest).join(" ");
    match (&guest.under, &files.hypervisor) {
        (Some(under), Some(hypervisor)) => {
            put(&["-initrd", &modules(&files.kernel, &words, &files.initramfs)]);
            put(&["-append", &under.command_line(), "-kernel", hypervisor]);
        }
        _ => put(&["-initrd", &files.initramfs, "-append", &words, "-kernel", &files.kernel]),
    }
    all
}

/// The modules of a multiboot image, as `-initrd` takes them: each with its words, a comma between two, a comma in one twice.
/// They lie in the guest's memory with their paths, which so have one length whatever the descriptors are: Xen looks for their
/// ends.
fn modules(kernel: &str, words: &str, initramfs: &str) -> String {
    let [kernel, initramfs] = [kernel, initramfs].map(|path| match path.rsplit_once('/') {
        Some((directory, descriptor)) => format!("{directory}{descriptor:/>8}"),
        None => path.to_owned(),
    });
    format!("{kernel} {},{initramfs}", words.replace(',', ",,"))
}

/// Refuses devices for which no board is known, and those that are not there.
pub(crate) fn check_devices(guest: &Guest) -> Result<(), Error> {
    if guest.time == Time::Instructions && guest.devices.iter().any(Device::is_of_the_host) {
        return Err(Error::new(
            "a guest with lines or a cable of the host is not reproducible: what comes over them comes when it will",
        )
        .hint("use --time wall"));
    }
    guest.devices.iter().filter_map(Device::socket).try_for_each(check_socket)?;
    let asks = guest.devices.iter().any(|device| device.board() != Board::Usual);
    if asks && other_board(guest).is_none() {
        let architecture = guest.kernel.architecture;
        return Err(Error::new(format!("guests for {architecture} have no board with this device"))
            .hint("use an amd64 guest, or --device edu-uio"));
    }
    Ok(())
}

/// Whether there is such a socket. Nothing is tried: a process that serves one guest would take this for it.
fn check_socket(socket: &Path) -> Result<(), Error> {
    std::fs::metadata(socket).map(drop).map_err(|error| {
        Error::new(format!("find {}: {error}", socket.display()))
            .hint("start the process that has the GPIO lines (vhost-user-gpio) first")
    })
}

/// The board and the word of a guest whose devices ask for one.
fn other_board(guest: &Guest) -> Option<(&'static [&'static str], Option<&'static str>)> {
    let asked = guest.devices.iter().map(|device| device.board()).find(|board| *board != Board::Usual)?;
    let known = machine(guest.kernel.architecture).boards.iter().find(|(board, ..)| *board == asked);
    known.map(|(_, board, word)| (*board, *word))
}

/// CPUs, and which of them are siblings.
fn topology(guest: &Guest) -> String {
    match guest.threads_per_core {
        1 => guest.processors.to_string(),
        threads => format!("{},threads={threads}", guest.processors),
    }
}

fn mebibytes(size: Bytes) -> String {
    format!("{}M", size.0.div_ceil(1 << 20))
}

/// The kernel's command line: what the lab needs, then what the user asks for.
fn words(guest: &Guest) -> Vec<String> {
    let machine = machine(guest.kernel.architecture);
    // A panic restarts the machine at once, which ends QEMU.
    let console = if guest.under.is_some() { under::CONSOLE } else { machine.console };
    let mut words = vec![format!("console={console}")];
    // The tests of ciphers at boot are nearly half of all that a kernel of Debian does until process 1 starts.
    words.extend(["rdinit=/init", "panic=-1", "quiet", "cryptomgr.notests"].map(str::to_owned));
    words.extend(machine.words.iter().map(|word| (*word).to_owned()));
    if guest.time == Time::Instructions {
        words.extend(["nokaslr", "norandmaps"].map(str::to_owned));
    }
    if let (Time::Instructions, Some(size), None) = (guest.time, guest.disk, &guest.kernel.modules) {
        words.extend(of_ram_disk(size).map(|parameter| format!("brd.{parameter}")));
    }
    words.extend(other_board(guest).and_then(|(_, word)| word).map(str::to_owned));
    words.extend(guest.words.iter().cloned());
    words
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::boot::Device;
    use crate::scripted::kernel;

    fn guest(time: Time, modules: Option<&str>) -> Guest {
        let mut kernel = kernel("plain");
        kernel.modules = modules.map(PathBuf::from);
        Guest {
            kernel,
            under: None,
            words: vec!["threadirqs".into()],
            processors: 1,
            threads_per_core: 1,
            cpu_model: None,
            memory: Bytes::from_mebibytes(512),
            time,
            devices: Vec::new(),
            disk: Some(Bytes::from_mebibytes(64)),
            system: None,
            binary: "worstcase".into(),
            programs: Vec::new(),
            command: vec!["worstcase".into()],
            time_limit: Duration::from_secs(1),
        }
    }

    #[test]
    fn a_ram_disk_that_is_built_in_gets_its_size_on_the_boot_line() {
        let sized = |guest: &Guest| words(guest).contains(&"brd.rd_size=65536".to_owned());
        assert!(sized(&guest(Time::Instructions, None)));
        assert!(
            !sized(&guest(Time::Instructions, Some("modules"))),
            "a module gets its size when it is loaded"
        );
        assert!(!sized(&guest(Time::Wall, None)), "a virtio disk has a size of its own");
        let words = words(&guest(Time::Instructions, None));
        assert_eq!(words.last().map(String::as_str), Some("threadirqs"), "the user's words come last");
    }

    #[test]
    fn a_device_brings_the_board_that_it_needs_and_is_refused_where_none_is_known() {
        let of = |device, architecture| {
            let mut guest = guest(Time::Instructions, Some("modules"));
            guest.devices = vec![device];
            guest.kernel.architecture = architecture;
            guest
        };
        let board = |guest: &Guest| {
            let files = Files {
                kernel: String::new(),
                hypervisor: None,
                initramfs: String::new(),
                port: Port::Console(String::new()),
                disk: None,
                plugin: None,
            };
            let all: Vec<String> =
                arguments(guest, &files).iter().map(|word| word.to_string_lossy().into_owned()).collect();
            let value =
                |pair: &[String]| matches!(&*pair[0], "-machine" | "-device").then(|| pair[1].clone());
            all.windows(2).filter_map(value).collect::<Vec<_>>()
        };
        let amd64 = |device| of(device, Architecture::Amd64);
        assert_eq!(board(&guest(Time::Instructions, None)), ["pc"]);
        assert_eq!(board(&amd64(Device::EduUio)), ["pc", "edu"]);
        assert_eq!(board(&amd64(Device::Hpet)), ["q35"]);
        assert_eq!(board(&amd64(Device::EduVfio)), ["q35", "intel-iommu", "edu"], "the IOMMU comes first");
        let has_word = |guest: &Guest| words(guest).contains(&"intel_iommu=on".to_owned());
        assert!(has_word(&amd64(Device::EduVfio)) && !has_word(&amd64(Device::EduUio)));
        assert!(check_devices(&of(Device::EduUio, Architecture::Arm64)).is_ok());
        for device in [Device::EduVfio, Device::Hpet] {
            let error = check_devices(&of(device, Architecture::Arm64)).unwrap_err();
            assert!(error.message.contains("no board with this device"), "{error}");
        }
        let gpio = Device::Gpio("/nowhere/socket".into());
        assert_eq!(
            board(&amd64(gpio.clone())),
            ["pc", "memory-backend=shared", "vhost-user-gpio-pci,chardev=lines"]
        );
        let refused = |time| check_devices(&Guest { time, ..amd64(gpio.clone()) }).unwrap_err().message;
        assert!(refused(Time::Instructions).contains("not reproducible"));
        assert!(refused(Time::Wall).contains("find /nowhere/socket"));
    }
}

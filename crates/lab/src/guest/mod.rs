//! Process 1 of a guest: mounts, loads modules, runs the command in an empty directory, sends what came of it.
//!
//! Nothing of the lab runs while the command is silent: what it prints leaves as it comes, its files when it has ended. What the kernel made of its parameters is read twice: before, for the command's record, and
//! after, when more modules may be loaded.

mod command;
mod disk;
mod mounts;
pub(crate) mod plan;
mod port;
mod relay;
pub(crate) mod symbols;
mod system;

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use record::{KernelParameter, Lab};
use rustix::termios;
use sysroot::SysRoot;

use crate::parameters::is_ours;
use command::Ran;
use plan::{Binding, Module, Plan};
use port::Port;

const CLOCK_SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

pub use symbols::SYMBOLS;
pub use system::ARGUMENT;

/// A file, or output, of more bytes does not come back whole.
const LONGEST: u64 = 256 << 20;

/// What goes wrong in a guest, in words for the host.
type Result<T> = std::result::Result<T, String>;

/// Whether this is the first process of a guest of the lab.
pub fn is_process_one() -> bool {
    sys::process::own_pid().is_init() && Path::new(plan::PATH).is_file()
}

/// The whole life of process 1. Returns only where the machine cannot be switched off; the kernel panics then.
pub fn main() -> ExitCode {
    end_with(live)
}

/// What is left to do in a guest with a system of its own, when that is up.
pub fn command() -> ExitCode {
    end_with(|plan| run(plan, &disk::place()))
}

/// Writes the kernel's symbols into the current directory: the command of a guest that is asked for nothing else.
pub fn write_symbols() -> ExitCode {
    match symbols::write() {
        Ok(()) => ExitCode::SUCCESS,
        Err(words) => {
            let _ = writeln!(std::io::stderr(), "{words}");
            ExitCode::FAILURE
        }
    }
}

/// Does what the plan says, sends what came of it, and switches the machine off.
fn end_with(run: impl FnOnce(&Plan) -> Result<Ran>) -> ExitCode {
    let sent = read_plan().and_then(|plan| {
        let ran = run(&plan);
        send(&plan, ran)
    });
    if let Err(words) = sent {
        say(&format!("worstcase lab: {words}"));
    }
    say(&format!("worstcase lab: {}", sys::machine::power_off()));
    ExitCode::FAILURE
}

fn send(plan: &Plan, ran: Result<Ran>) -> Result<()> {
    let taken =
        serde_json::to_vec(&parameters(plan)).map_err(|error| format!("write parameters: {error}"))?;
    let mut port = match ran {
        Ok(ran) => ran.send()?,
        Err(words) => {
            let mut port = Port::open(&plan.port)?;
            port.send(|sender| sender.failure(&words))?;
            port
        }
    };
    port.send(|sender| sender.parameters(&taken))?;
    port.close()
}

/// What the kernel made of the parameters that were asked for.
fn parameters(plan: &Plan) -> Vec<KernelParameter> {
    let asked: Vec<String> = plan.lab.words.iter().filter(|word| !is_ours(word)).cloned().collect();
    machine::taken::taken(&SysRoot::live(), &asked)
}

/// What the command's record is to say of the guest.
fn description(plan: &Plan) -> Result<String> {
    let lab = Lab { parameters: Some(parameters(plan)), ..plan.lab.clone() };
    serde_json::to_string(&lab).map_err(|error| format!("write what the record is to say: {error}"))
}

fn read_plan() -> Result<Plan> {
    let text = fs::read(plan::PATH).map_err(|error| format!("read {}: {error}", plan::PATH))?;
    record::json::read(&text).map_err(|error| format!("read {}: {error}", plan::PATH))
}

fn live(plan: &Plan) -> Result<Ran> {
    mounts::mount_all()?;
    sys::machine::set_host_name("lab").map_err(|error| error.to_string())?;
    plan.modules.iter().try_for_each(load)?;
    plan.bindings.iter().try_for_each(bind)?;
    mounts::mount_of_modules();
    let directory = disk::directory(plan.disk.as_ref())?;
    // As the init of any system does. What needs it says so where a kernel has none.
    let _ = sys::net::switch_loopback_on();
    check_clock(plan)?;
    command::install_applets();
    match &plan.init {
        Some(init) => Err(system::hand_over(init)),
        None => run(plan, &directory),
    }
}

fn run(plan: &Plan, directory: &Path) -> Result<Ran> {
    let lab = description(plan)?;
    match plan.terminal {
        Some(size) => command::at_the_console(plan, &lab, directory, size),
        None => {
            say(plan::BEGINS);
            command::run(plan, &lab, directory)
        }
    }
}

fn load(module: &Module) -> Result<()> {
    let path = Module::path(&module.name);
    let file = File::open(&path).map_err(|error| format!("open {}: {error}", path.display()))?;
    let loaded = sys::machine::load_module(file, &module.name, &module.parameters);
    loaded.map_err(|error| format!("load module {}: {error}", module.name))
}

fn bind(Binding { driver, id }: &Binding) -> Result<()> {
    let path = Path::new("/sys/bus/pci/drivers").join(driver).join("new_id");
    fs::write(&path, id).map_err(|error| format!("write {}: {error}", path.display()))
}

/// Waits until the kernel has settled on its clock source: x86 measures the TSC for a second first, and one that takes
/// it for unstable falls back to a clock that costs a system call to read.
fn check_clock(plan: &Plan) -> Result<()> {
    const PAUSE: Duration = Duration::from_millis(10);
    let Some(wanted) = &plan.clock_source else { return Ok(()) };
    let chosen = || SysRoot::live().read(CLOCK_SOURCE);
    for _ in 0..500 {
        if chosen().value() == Some(wanted) {
            return Ok(());
        }
        std::thread::sleep(PAUSE);
    }
    Err(format!("the guest's clock source is {:?}, and not {wanted}", chosen()))
}

/// Writes a line to the console and waits until it is out, so that nothing of it disturbs what comes next.
fn say(line: &str) {
    if let Ok(mut console) = OpenOptions::new().write(true).open("/dev/console") {
        let _ = writeln!(console, "{line}");
        let _ = termios::tcdrain(&console);
    }
}

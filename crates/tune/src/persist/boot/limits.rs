//! What no boot loader can help: a kernel that does not look at its line, and one that cuts it off.

use machine::command_line::Word;
use record::Fact;
use survey::{Survey, Value};
use sysroot::SysRoot;
use units::CpuList;

use super::word::line;
use crate::error::{Error, Result};

/// Kernels that take no word of the loader's (arch/*/Kconfig): all words, or all but their own.
const FORCED: [&str; 2] = ["CMDLINE_FORCE", "CMDLINE_OVERRIDE"];

/// COMMAND_LINE_SIZE of most architectures, without the end: taken where a system's own is not known.
const USUAL: i64 = 2047;

pub(super) fn refuse_forced_line(root: &SysRoot) -> Result<()> {
    let survey = Survey::new(root.clone(), CpuList::new());
    let Fact::Value(config) = survey.kernel_config() else { return Ok(()) };
    match FORCED.into_iter().find(|symbol| config.value_of(symbol) == "y") {
        None => Ok(()),
        Some(symbol) => {
            let reason = format!("CONFIG_{symbol}=y: this kernel has its line within and looks at no other");
            let hint = "put the words into CONFIG_CMDLINE and build the kernel anew";
            Err(Error::new("set", "the kernel command line".as_ref(), reason, hint))
        }
    }
}

/// With what the loader puts on the line by itself, as `BOOT_IMAGE=`: what the line has now and its files do not.
pub(super) fn refuse_long_line(root: &SysRoot, before: &[Word], words: &[Word]) -> Result<()> {
    let survey = Survey::new(root.clone(), CpuList::new());
    let current = root.read("/proc/cmdline").value().map_or(0, |line| line.len() as i64);
    let longest = match survey.read("boot.room").value {
        Fact::Value(Value::Number(room)) => room + current,
        _ => USUAL,
    };
    let own = (current - line(before).len() as i64).max(0);
    let length = line(words).len() as i64 + own;
    if length <= longest {
        return Ok(());
    }
    let reason = format!("it would have {length} bytes, and this kernel cuts off all above {longest}");
    Err(Error::new("set", "the kernel command line".as_ref(), reason, "leave words out"))
}

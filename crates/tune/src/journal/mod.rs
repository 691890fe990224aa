//! What was changed, written down before it is changed: the state directory, the lines, what they come to.

mod history;
mod line;
mod machine;
mod state;

pub use history::{History, Taken};
pub use line::{Begin, Line, Outcome, Read, read};
pub(crate) use line::{sum, whole, written};
pub use state::{Journal, Lock, State, Store};

/// Which boot of the machine this is, for [`Begin`]; empty where it is unknown.
pub fn boot_id() -> String {
    sysroot::SysRoot::live().read("/proc/sys/kernel/random/boot_id").value().cloned().unwrap_or_default()
}

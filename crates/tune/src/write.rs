//! One write of a setting, read back.

use control::Kernel;
use record::Fact;
use rustix::io::Errno;

use crate::Target;
use crate::journal::Outcome;

/// Writes and reads back. A write that is refused and changed something all the same counts as what is read.
pub(crate) fn write(kernel: &mut dyn Kernel, target: &Target, old: &str, new: &str) -> Outcome {
    let answer = target.kind().write(kernel, new);
    match (target.value(&kernel.root()), answer) {
        (Fact::Value(now), Err(errno)) if target.same(&now, old) => Outcome::Refused(errno.raw_os_error()),
        (Fact::Value(now), _) => read_back(target, old, new, now),
        (_, Err(errno)) => Outcome::Refused(errno.raw_os_error()),
        (Fact::Unreadable(errno), Ok(())) => Outcome::Refused(errno),
        (Fact::Absent | Fact::Unsupported, Ok(())) => Outcome::Refused(Errno::NOENT.raw_os_error()),
    }
}

fn read_back(target: &Target, old: &str, new: &str, now: String) -> Outcome {
    if now == new {
        Outcome::Exact
    } else if target.same(&now, new) {
        Outcome::Equal(now)
    } else if target.same(&now, old) {
        Outcome::Ignored
    } else {
        Outcome::Clamped(now)
    }
}

//! Container, namespaces and CPU quotas around this program.

use record::Place;

use crate::{quotas, survey};
use sysroot::SysRoot;

/// The user namespace that the kernel itself made, include/linux/proc_ns.h.
const FIRST_USER_NAMESPACE: &str = "user:[4026531837]";

pub(super) fn place(root: &SysRoot) -> Place {
    Place {
        container: survey::container_of(root).0,
        user_namespace: root.link("/proc/self/ns/user").map(|link| link != FIRST_USER_NAMESPACE),
        cpu_quotas: quotas::limits(root),
    }
}

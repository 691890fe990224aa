//! The CPU that a thread runs on, read without a system call: rseq(2), getcpu(2).
//!
//! The kernel writes the CPU's number into a thread's registered rseq area each time it returns to the thread on another
//! CPU (`include/uapi/linux/rseq.h`, Linux 4.18). glibc 2.35 and later register one for every thread and `sched_getcpu`
//! reads it; with other C libraries the area is registered here. Without rseq, `sched_getcpu` goes through the vDSO
//! where the architecture has getcpu there (`rdpid`, `lsl` on x86), and is a system call elsewhere.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::clock::survives_without_system_calls;

/// The number of rseq(2); not every C library's table has it.
const RSEQ: Option<libc::c_long> = if cfg!(target_arch = "x86_64") {
    Some(334)
} else if cfg!(target_arch = "x86") {
    Some(386)
} else if cfg!(target_arch = "arm") {
    Some(398)
} else if cfg!(any(target_arch = "powerpc", target_arch = "powerpc64")) {
    Some(387)
} else if cfg!(target_arch = "s390x") {
    Some(383)
} else if cfg!(any(
    target_arch = "aarch64",
    target_arch = "riscv32",
    target_arch = "riscv64",
    target_arch = "loongarch64"
)) {
    Some(293)
} else {
    None
};

/// Whether the CPU waits for an event or a time by `wfet` (Armv8.7), as the kernel says (Linux 5.19). getauxval(3),
/// `AT_HWCAP2`, `HWCAP2_WFXT` (arch/arm64/include/uapi/asm/hwcap.h).
#[cfg(target_arch = "aarch64")]
pub fn has_timed_wait() -> bool {
    rustix::param::linux_hwcap().1 & 1 << 31 != 0
}

/// Whether the kernel has the timer make events that end a `wfe`. getauxval(3), `AT_HWCAP`, `HWCAP_EVTSTRM`.
#[cfg(target_arch = "aarch64")]
pub fn has_event_stream() -> bool {
    rustix::param::linux_hwcap().0 & 1 << 2 != 0
}

/// The first 32 bytes of `struct rseq`, which every kernel that has the call takes.
#[repr(C, align(32))]
struct Area {
    cpu_id_start: AtomicU32,
    cpu_id: AtomicU32,
    critical_section: [u32; 2],
    flags: u32,
    padding: [u32; 3],
}

/// Guards aborted critical sections, of which this area has none: any number that is the same at both calls.
const SIGNATURE: libc::c_ulong = 0x5305_3053;

thread_local! {
    // In the thread's own memory, so that a thread that is about to measure allocates nothing.
    static AREA: Area = const {
        Area {
            cpu_id_start: AtomicU32::new(0),
            // RSEQ_CPU_ID_UNINITIALIZED
            cpu_id: AtomicU32::new(u32::MAX),
            critical_section: [0; 2],
            flags: 0,
            padding: [0; 3],
        }
    };
}

/// The calling thread's area while the kernel writes to it. It stays in its thread: a pointer is not `Send`.
struct Registered(*const Area);

/// Why an area could not be registered.
enum Refused {
    /// The C library has registered its own.
    ByTheLibrary,
    /// The kernel has none, or it is forbidden here.
    ByTheKernel,
}

impl Registered {
    fn new() -> Result<Self, Refused> {
        let number = RSEQ.ok_or(Refused::ByTheKernel)?;
        let area = AREA.with(std::ptr::from_ref);
        // SAFETY: the area lives as long as the thread, and `drop` takes it from the kernel before the thread ends.
        let result = unsafe { libc::syscall(number, area, size_of::<Area>(), 0, SIGNATURE) };
        let errno = std::io::Error::last_os_error().raw_os_error();
        match (result, errno) {
            (0, _) => Ok(Self(area)),
            (_, Some(libc::EINVAL | libc::EBUSY)) => Err(Refused::ByTheLibrary),
            _ => Err(Refused::ByTheKernel),
        }
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        const UNREGISTER: libc::c_int = 1;
        if let Some(number) = RSEQ {
            // SAFETY: the area that this thread registered.
            unsafe { libc::syscall(number, self.0, size_of::<Area>(), UNREGISTER, SIGNATURE) };
        }
    }
}

/// Reads the calling thread's CPU without a system call. Prepared by the thread that reads.
pub struct CpuReader {
    own: Option<Registered>,
}

/// How a [`CpuReader`] reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From an rseq area of its own.
    OwnArea,
    /// By the C library's `sched_getcpu`: from the library's rseq area, or through the vDSO.
    Library,
}

impl CpuReader {
    /// For the calling thread. None where only a system call could tell; `library_is_quiet` is what
    /// [`library_is_quiet`] answered in this process.
    pub fn prepare(library_is_quiet: bool) -> Option<Self> {
        match Registered::new() {
            Ok(own) => Some(Self { own: Some(own) }),
            Err(Refused::ByTheLibrary) => Some(Self { own: None }),
            Err(Refused::ByTheKernel) => library_is_quiet.then_some(Self { own: None }),
        }
    }

    /// How it reads.
    pub fn way(&self) -> Way {
        if self.own.is_some() { Way::OwnArea } else { Way::Library }
    }

    /// The number of the CPU that the calling thread runs on now.
    #[inline]
    pub fn now(&self) -> u32 {
        match &self.own {
            // SAFETY: the thread's own memory, which the kernel writes to only between two instructions.
            Some(own) => unsafe { (*own.0).cpu_id.load(Ordering::Relaxed) },
            // SAFETY: takes nothing.
            None => unsafe { libc::sched_getcpu() as u32 },
        }
    }
}

/// Whether the C library's `sched_getcpu` makes no system call, tried in a child that may make none. False where that
/// cannot be tried.
pub fn library_is_quiet() -> bool {
    let read = || {
        // SAFETY: takes nothing.
        std::hint::black_box(unsafe { libc::sched_getcpu() });
    };
    read();
    survives_without_system_calls(read) == Some(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::{affinity, set_affinity};
    use units::{CpuId, CpuList};

    /// Reads on each CPU that this thread may be moved to.
    fn follows(reader: &CpuReader) {
        let all = affinity(0).unwrap();
        for CpuId(cpu) in all.iter() {
            set_affinity(0, &CpuList::from_iter([CpuId(cpu)])).unwrap();
            assert_eq!(reader.now(), cpu, "{:?}", reader.way());
        }
        set_affinity(0, &all).unwrap();
    }

    #[test]
    fn the_cpu_is_read_wherever_the_thread_is_moved() {
        let quiet = library_is_quiet();
        let read = std::thread::spawn(move || CpuReader::prepare(quiet).map(|reader| follows(&reader)));
        if read.join().unwrap().is_none() {
            println!("skipped: the CPU can only be read by a system call: needs CONFIG_RSEQ");
        }
        follows(&CpuReader { own: None });
    }

    /// The test that the file is about, for this process and for one whose C library registers no area.
    #[test]
    fn an_area_of_ones_own_is_registered_where_the_library_has_none() {
        const MARK: &str = "WORSTCASE_TEST_OWN_AREA";
        if std::env::var_os(MARK).is_some() {
            let reader = CpuReader::prepare(false).map(|reader| (follows(&reader), reader.way()).1);
            assert_eq!(reader, Some(Way::OwnArea));
            // Given back: it can be registered again.
            assert!(Registered::new().is_ok());
            return;
        }
        let mut again = std::process::Command::new(std::env::current_exe().unwrap());
        again.args(["--exact", "cpu::tests::an_area_of_ones_own_is_registered_where_the_library_has_none"]);
        again.env(MARK, "1").env("GLIBC_TUNABLES", "glibc.pthread.rseq=0");
        let output = again.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(text.contains("1 passed"), "{text}");
        if Registered::new().is_err_and(|refused| matches!(refused, Refused::ByTheKernel)) {
            return println!("skipped: no rseq(2) here: needs CONFIG_RSEQ");
        }
        assert!(output.status.success(), "{text}");
    }
}

//! What a thread or process has used: getrusage(2).

/// Page faults and context switches of the calling thread since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Faults without I/O.
    pub minor_faults: u64,
    /// Faults with I/O.
    pub major_faults: u64,
    /// Switches by sleeping.
    pub voluntary: u64,
    /// Switches by being pre-empted.
    pub involuntary: u64,
}

/// Of the calling thread. `RUSAGE_THREAD`, getrusage(2).
pub fn thread() -> Usage {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the kernel fills the structure; zeros are valid where it does not.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
        usage.assume_init()
    };
    Usage {
        minor_faults: usage.ru_minflt as u64,
        major_faults: usage.ru_majflt as u64,
        voluntary: usage.ru_nvcsw as u64,
        involuntary: usage.ru_nivcsw as u64,
    }
}

impl std::ops::Sub for Usage {
    type Output = Self;
    fn sub(self, before: Self) -> Self {
        Self {
            minor_faults: self.minor_faults.saturating_sub(before.minor_faults),
            major_faults: self.major_faults.saturating_sub(before.major_faults),
            voluntary: self.voluntary.saturating_sub(before.voluntary),
            involuntary: self.involuntary.saturating_sub(before.involuntary),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn touching_new_memory_is_counted_as_faults() {
        let before = thread();
        let mut pages = vec![0_u8; 4 << 20];
        pages.iter_mut().step_by(4096).for_each(|byte| *byte = std::hint::black_box(1));
        assert!((thread() - before).minor_faults >= 2);
        drop(std::hint::black_box(pages));
    }
}

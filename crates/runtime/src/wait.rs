//! How a core waits while nothing is ready: it looks again, pauses in user space, or sleeps in the kernel.

use std::sync::atomic::{AtomicU32, Ordering, fence};

/// Whether this CPU has an instruction that pauses until a time: `tpause` (x86-64, CPUID 7.0 ECX bit 5) or `wfet` (arm64 from
/// Armv8.7 on); or `wfe` (arm64), where the kernel has the timer end it every 100 us (CONFIG_ARM_ARCH_TIMER_EVTSTREAM). Without
/// that, `wfe` ends with the next interrupt, which on a CPU without a tick may be a second away.
pub fn can_pause() -> bool {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        // SAFETY: CPUID is there on all x86-64; leaf 7 answers zeros where it is not.
        #[allow(unused_unsafe, reason = "older compilers want it")]
        let leaf = unsafe { std::arch::x86_64::__cpuid_count(7, 0) };
        leaf.ecx & 1 << 5 != 0
    }
    #[cfg(target_arch = "aarch64")]
    {
        sys::cpu::has_timed_wait() || sys::cpu::has_event_stream()
    }
    #[cfg(not(any(all(target_arch = "x86_64", not(miri)), target_arch = "aarch64")))]
    {
        false
    }
}

/// Pauses until the counter reaches `until`, at most the kernel's limit (`umwait_control/max_time`, 100000 ticks), or
/// sooner. On arm64 without `wfet` up to 100 us, whatever `until` says. The caller looks again.
pub fn pause(until: u64) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if can_pause() {
        // `tpause ecx` with 1 in the register: state C0.1, the quick one.
        // SAFETY: the CPU has the instruction; it changes flags only.
        unsafe {
            std::arch::asm!(
                ".byte 0x66, 0x0f, 0xae, 0xf1",
                in("ecx") 1,
                in("eax") until as u32,
                in("edx") (until >> 32) as u32,
                options(nomem, nostack)
            );
        }
        return;
    }
    #[cfg(target_arch = "aarch64")]
    {
        if sys::cpu::has_timed_wait() {
            // `wfet x0`. SAFETY: the CPU has the instruction; it changes nothing.
            unsafe { std::arch::asm!(".inst 0xd5031000", in("x0") until, options(nomem, nostack)) };
        } else if can_pause() {
            // SAFETY: waits for an event; Linux's event stream of the timer makes one every 100 us (10 kHz).
            unsafe { std::arch::asm!("wfe", options(nomem, nostack)) };
        } else {
            std::hint::spin_loop();
        }
    }
    #[cfg(not(target_arch = "aarch64"))]
    {
        let _ = until;
        std::hint::spin_loop();
    }
}

/// Sleeps while `word` is 1, at most `nanos`. One of the two ends of a flag and what it guards: the caller stored 1, then
/// looked once more for work.
pub fn sleep(word: &AtomicU32, nanos: u64) {
    sys::futex::wait(word, 1, nanos);
}

/// Wakes who sleeps on `word`, where somebody does. The fence orders what was sent before the look.
#[inline]
pub fn wake(word: &AtomicU32) {
    fence(Ordering::SeqCst);
    if word.load(Ordering::Relaxed) == 1 && word.swap(0, Ordering::Relaxed) == 1 {
        sys::futex::wake(word);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn a_sleeper_is_woken_and_nobody_is_called_for_one_who_is_awake() {
        let word = AtomicU32::new(1);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(20));
                wake(&word);
            });
            let start = Instant::now();
            while word.load(Ordering::Relaxed) == 1 && start.elapsed() < Duration::from_secs(10) {
                sleep(&word, 1_000_000_000);
            }
        });
        assert_eq!(word.load(Ordering::Relaxed), 0);
        wake(&word);
    }

    #[test]
    fn a_pause_ends() {
        if !can_pause() {
            println!("skipped: this CPU has neither tpause nor wfet nor wfe with an event stream");
        }
        pause(crate::clock::counter().unwrap_or(0) + 1_000);
    }
}

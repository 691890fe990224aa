//! What takes the CPU from threads that should never leave user space, read from the trace while it is recorded.

use explain::guard::Takings;
use failure::{Error, Result};
use sys::clock::Clock;
use sysroot::SysRoot;
use trace::live::{Form, Instance};
use trace::{Item, Losses, Symbols};
use units::{CpuId, CpuList, Nanos};

use crate::RING;

/// Whose events are wanted.
#[derive(Clone, Copy, Debug)]
enum Of {
    /// Those of the threads, and of interrupts on top of them.
    Threads,
    /// Of whatever runs on any CPU: a thread may be moved.
    Any,
    /// Of the threads, which are woken by others.
    Woken,
}

/// An event, whose it is wanted of, and what is not seen without it.
const EVENTS: [(&str, Of, &str); 34] = [
    ("sched/sched_switch", Of::Any, "other threads"),
    ("sched/sched_waking", Of::Woken, "who delays a thread that is woken"),
    ("sched/sched_migrate_task", Of::Woken, "where a thread goes that is moved"),
    ("raw_syscalls/sys_enter", Of::Threads, "system calls"),
    ("raw_syscalls/sys_exit", Of::Threads, "system calls"),
    ("exceptions/page_fault_user", Of::Threads, "page faults"),
    ("exceptions/page_fault_kernel", Of::Threads, "page faults"),
    ("irq/irq_handler_entry", Of::Threads, "interrupts of devices"),
    ("irq/irq_handler_exit", Of::Threads, "interrupts of devices"),
    ("irq/softirq_entry", Of::Threads, "softirqs"),
    ("irq/softirq_exit", Of::Threads, "softirqs"),
    ("nmi/nmi_handler", Of::Threads, "non-maskable interrupts"),
    ("csd/csd_function_entry", Of::Threads, "what calls of other CPUs do"),
    ("timer/hrtimer_expire_entry", Of::Threads, "what timers do"),
    ("ipi/ipi_entry", Of::Threads, ""),
    ("ipi/ipi_exit", Of::Threads, ""),
    ("irq_vectors/local_timer_entry", Of::Threads, ""),
    ("irq_vectors/local_timer_exit", Of::Threads, ""),
    ("irq_vectors/reschedule_entry", Of::Threads, ""),
    ("irq_vectors/reschedule_exit", Of::Threads, ""),
    ("irq_vectors/call_function_entry", Of::Threads, ""),
    ("irq_vectors/call_function_exit", Of::Threads, ""),
    ("irq_vectors/call_function_single_entry", Of::Threads, ""),
    ("irq_vectors/call_function_single_exit", Of::Threads, ""),
    ("irq_vectors/irq_work_entry", Of::Threads, ""),
    ("irq_vectors/irq_work_exit", Of::Threads, ""),
    ("irq_vectors/thermal_apic_entry", Of::Threads, ""),
    ("irq_vectors/thermal_apic_exit", Of::Threads, ""),
    ("irq_vectors/error_apic_entry", Of::Threads, ""),
    ("irq_vectors/error_apic_exit", Of::Threads, ""),
    ("irq_vectors/threshold_apic_entry", Of::Threads, ""),
    ("irq_vectors/threshold_apic_exit", Of::Threads, ""),
    ("irq_vectors/x86_platform_ipi_entry", Of::Threads, ""),
    ("irq_vectors/x86_platform_ipi_exit", Of::Threads, ""),
];

/// The trace of some threads. Dropped, the instance is removed.
pub struct Guard {
    instance: Instance,
    symbols: Symbols,
    takings: Takings,
    lost: Losses,
    absent: Vec<String>,
    cpus: CpuList,
}

impl Guard {
    /// Makes the instance for threads that run on these CPUs. Nothing is recorded before [`Guard::start`]: enabling events
    /// interrupts all CPUs.
    ///
    /// # Errors
    /// There is no tracefs, or the kernel refuses.
    pub fn begin(tids: &[i32], cpus: &CpuList) -> Result<Self> {
        trace::live::clear();
        let (symbols, nameless) = crate::named(Symbols::live(&SysRoot::live()));
        let mut instance = Instance::make(None).map_err(Error::from)?;
        instance.write("tracing_on", "0").map_err(Error::from)?;
        instance.write("buffer_size_kb", &(RING.0 >> 10).to_string()).map_err(Error::from)?;
        let any = |field: &str| {
            let all: Vec<String> = tids.iter().map(|tid| format!("{field} == {tid}")).collect();
            all.join(" || ")
        };
        let (threads, woken) = (any("common_pid"), any("pid"));
        let mut absent = Vec::from_iter(nameless);
        // Their names; how long they took is in raw_syscalls, which has all of them.
        if instance.enable_all("syscalls", "sys_enter_", &threads).is_err() {
            absent.push("names of system calls".to_owned());
        }
        for (event, of, without) in EVENTS {
            let filter = match of {
                Of::Threads => Some(threads.as_str()),
                Of::Any => None,
                Of::Woken => Some(woken.as_str()),
            };
            let is_there = instance.has(event) && instance.enable(event, filter).is_ok();
            if !is_there && !without.is_empty() && !absent.iter().any(|said| said == without) {
                absent.push(without.to_owned());
            }
        }
        if !instance.has("irq_vectors/local_timer_entry") && !instance.has("ipi/ipi_entry") {
            absent.push("IPIs and the interrupt of the timer".to_owned());
        }
        if absent.iter().any(|said| said == EVENTS[0].2) {
            let hint = "mount tracefs, or run as root with a kernel that has CONFIG_EVENT_TRACING";
            return Err(Error::new("the kernel does not record sched_switch", hint));
        }
        instance.open(Form::Binary).map_err(Error::from)?;
        let takings = Takings::of(tids);
        Ok(Self { instance, symbols, takings, lost: Losses::default(), absent, cpus: cpus.clone() })
    }

    /// Lets the kernel record, and says since when, on `CLOCK_MONOTONIC`.
    ///
    /// # Errors
    /// What the kernel answered.
    pub fn start(&mut self) -> Result<Nanos> {
        let began = Nanos(Clock::Monotonic.now());
        self.takings.begin(began);
        self.instance.write("tracing_on", "1").map_err(Error::from)?;
        Ok(began)
    }

    /// Reads what was recorded since: all that happened before this was called.
    ///
    /// # Errors
    /// What the kernel answered.
    pub fn look(&mut self) -> Result<()> {
        let Self { instance, symbols, takings, lost, cpus, .. } = self;
        let mut see = |item: &Item<'_>| match item {
            Item::Event(event) => takings.see(event, symbols),
            // Another CPU's are not about these threads.
            Item::Lost(one)
                if one.cpu.is_some_and(|cpu: CpuId| !cpus.contains(cpu) && !takings.is_on(cpu)) => {}
            Item::Lost(one) => {
                lost.add(one);
                takings.lose(one.cpu);
            }
        };
        instance.each(&mut see).map_err(Error::from)
    }

    /// What was taken, as far as it was read.
    pub fn takings(&mut self) -> &mut Takings {
        &mut self.takings
    }

    /// Events that were overwritten before they were read.
    pub fn lost(&self) -> &Losses {
        &self.lost
    }

    /// What this kernel does not show.
    pub fn absent(&self) -> &[String] {
        &self.absent
    }
}

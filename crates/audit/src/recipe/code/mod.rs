//! Programs in C and Python that ask for policies, priorities, locked memory, CPUs and timers themselves: calls with arguments that
//! the kernel or the C library refuses, or that do something else than the program's comments say.

mod calls;
mod memory;
mod scheduling;
mod timing;

use super::reading::Reading;
use super::{Remark, RemarkId};
use calls::{Call, without_comments};

/// A program: its text without comments, and the calls in it that touch latency.
struct Program<'a> {
    /// Line by line as `text`.
    code: String,
    text: &'a str,
    calls: Vec<Call>,
}

impl Program<'_> {
    fn all<'b>(&'b self, name: &'b str) -> impl Iterator<Item = &'b Call> {
        self.calls.iter().filter(move |call| call.name == name)
    }

    fn calls_any(&self, name: &str) -> bool {
        self.all(name).next().is_some()
    }

    /// The line, from 1, of a place in the code.
    fn line_at(&self, at: usize) -> usize {
        self.code[..at].matches('\n').count() + 1
    }

    fn error(&self, line: usize, id: RemarkId, message: impl Into<String>) -> Remark {
        Remark::error(line, id, self.text.lines().nth(line - 1).unwrap_or_default(), message)
    }

    /// Each `NAME = VALUE`, where the name ends so: its line, and what stands behind the sign up to the end of the expression.
    fn assigned(&self, name: &str) -> Vec<(usize, &str)> {
        let value = |at: usize| {
            let rest = self.code[at + name.len()..].trim_start().strip_prefix('=')?;
            let end = rest.find([';', ',', '}', '\n']).unwrap_or(rest.len());
            let value = rest[..end].trim();
            (!value.is_empty() && !rest.starts_with('=')).then(|| (self.line_at(at), value))
        };
        self.code.match_indices(name).filter_map(|(at, _)| value(at)).collect()
    }
}

/// What the calls of a text come to; nothing where there are none.
pub fn read(text: &str) -> Reading {
    let code = without_comments(text);
    let calls = calls::find(&code);
    let program = Program { code, text, calls };
    if program.calls.is_empty() && !program.code.contains("cpu_dma_latency") {
        return Reading::default();
    }
    let mut remarks = scheduling::remarks(&program);
    remarks.extend(memory::remarks(&program));
    remarks.extend(timing::remarks(&program));
    Reading { settings: program.calls.len(), remarks, ..Reading::default() }
}

/// The value of a product of whole numbers, as `30 * 1000 * 1000ULL`.
fn literal(text: &str) -> Option<i128> {
    let factor = |text: &str| {
        let digits = text.trim().trim_start_matches('(').trim_end_matches(')').replace(['_', '\''], "");
        let digits = digits.trim_end_matches(['u', 'U', 'l', 'L']);
        digits.parse::<i128>().ok()
    };
    text.split('*').map(factor).try_fold(1_i128, |product, factor| product.checked_mul(factor?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(text: &str) -> usize {
        read(text).remarks.len()
    }

    #[test]
    fn calls_that_do_what_they_say_are_fine() {
        for fine in [
            "struct sched_param p = { .sched_priority = 80 };\nif (sched_setscheduler(0, SCHED_FIFO, &p) == -1) perror(\"x\");",
            "mlockall(MCL_CURRENT | MCL_FUTURE);\nbuffer = malloc(4096);",
            "p.sched_priority = 0;\nsched_setscheduler(0, SCHED_BATCH, &p);",
            "cpu_set_t set;\nCPU_ZERO(&set);\nCPU_SET(3, &set); // CPU 3\nsched_setaffinity(0, sizeof(set), &set);",
            "clock_gettime(CLOCK_MONOTONIC, &next);\nnext.tv_nsec += 1000000;\nif (next.tv_nsec >= 1000000000) { next.tv_sec++; next.tv_nsec -= 1000000000; }\nclock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);",
            "pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);\npthread_attr_setschedpolicy(&attr, SCHED_FIFO);\npthread_attr_setschedparam(&attr, &param);\npthread_create(&t, &attr, f, NULL);",
            "attr.sched_runtime = 2 * 1000 * 1000; // 2 ms\nattr.sched_deadline = 10 * 1000 * 1000; // 10 ms\nsched_setattr(0, &attr, 0);",
            "import os\nos.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(80))\nos.sched_setaffinity(0, {3})",
            "fd = open(\"/dev/cpu_dma_latency\", O_WRONLY);\nwrite(fd, &zero, sizeof(zero));\npause();\nclose(fd);",
            "pthread_mutexattr_setprotocol(&a, PTHREAD_PRIO_INHERIT);\npthread_mutex_init(&m, &a);",
        ] {
            assert_eq!(read(fine).remarks, [], "{fine}");
            assert!(read(fine).settings > 0 || fine.contains("cpu_dma_latency"), "{fine}");
        }
    }

    #[test]
    fn calls_that_are_refused_are_errors() {
        for text in [
            "struct sched_param p = { .sched_priority = 0 };\nsched_setscheduler(0, SCHED_FIFO, &p);",
            "p.sched_priority = 100;\npthread_setschedparam(t, SCHED_RR, &p);",
            "p.sched_priority = 20;\nsched_setscheduler(0, SCHED_OTHER, &p);",
            "p.sched_priority = sched_get_priority_max(SCHED_FIFO) + 1;\nsched_setscheduler(0, SCHED_FIFO, &p);",
            "sched_setscheduler(SCHED_FIFO, 0, &p);",
            "sched_setscheduler(0, SCHED_DEADLINE, &p);",
            "os.sched_setscheduler(0, os.SCHED_FIFO, 80)",
            "os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(0))",
            "mlockall(MCL_ONFAULT);",
            "mlockall(0);",
            "mlockall(MCL_FUTURE);",
            "CPU_SET(3, &set);\nsched_setaffinity(0, sizeof(set), &set);",
            "CPU_ZERO(&set);\nCPU_SET(3, &set); // CPU 2\n",
            "CPU_ZERO(&set);\nCPU_SET(3, &set);\nsched_setaffinity(0, &set, sizeof(set));",
            "sched_setattr(0, &attr);",
            "attr.sched_runtime = 20000000;\nattr.sched_deadline = 10000000;\nsched_setattr(0, &attr, 0);",
            "attr.sched_runtime = 2000; // 2 ms\nsched_setattr(0, &attr, 0);",
        ] {
            assert_eq!(wrong(text), 1, "{text}: {:?}", read(text).remarks);
        }
    }

    #[test]
    fn calls_that_do_something_else_are_errors() {
        for text in [
            "pthread_attr_setschedpolicy(&attr, SCHED_FIFO);\npthread_attr_setschedparam(&attr, &param);\npthread_create(&t, &attr, f, NULL);",
            "pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);\npthread_attr_setschedpolicy(&attr, SCHED_FIFO);\npthread_create(&t, NULL, f, NULL);",
            "pthread_attr_setschedparam(&attr, &param);\npthread_attr_setschedpolicy(&attr, SCHED_FIFO);\npthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);",
            "if (pthread_setschedparam(t, SCHED_FIFO, &p) == -1) perror(\"x\");",
            "mlockall(MCL_CURRENT);\nbuffer = malloc(1 << 20);",
            "mlockall(MCL_CURRENT | MCL_FUTURE);\nexecvp(argv[1], argv + 1);",
            "clock_gettime(CLOCK_MONOTONIC, &next);\nclock_nanosleep(CLOCK_MONOTONIC, 0, &next, NULL);",
            "clock_gettime(CLOCK_REALTIME, &next);\nclock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);",
            "clock_nanosleep(CLOCK_MONOTONIC_RAW, TIMER_ABSTIME, &next, NULL);",
            "clock_gettime(CLOCK_MONOTONIC, &next);\nwhile (1) { next.tv_nsec += 1000000;\nclock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL); }",
            "struct timespec ts = { .tv_sec = 0, .tv_nsec = 2000000000 };\nclock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL);",
            "its.it_interval.tv_nsec = 1000000;\ntimerfd_settime(fd, 0, &its, NULL);",
            "prctl(PR_SET_TIMERSLACK, 0);",
            "/* exact 1 kHz, no drift */\nfor (;;) { work();\nclock_nanosleep(CLOCK_MONOTONIC, 0, &period, NULL); }",
            "fd = open(\"/dev/cpu_dma_latency\", O_RDONLY);",
            "fd = open(\"/dev/cpu_dma_latency\", O_WRONLY);\nwrite(fd, &zero, 4);\nclose(fd);",
            "open('/dev/cpu_dma_latency', 'wb').write(b'\\0\\0\\0\\0')",
            "pthread_mutexattr_setprotocol(&a, PTHREAD_PRIO_INHERIT);\npthread_mutex_init(&m, NULL);",
        ] {
            assert_eq!(wrong(text), 1, "{text}: {:?}", read(text).remarks);
        }
    }
}

//! CPUs that come and go while the kernel records.

use units::CpuList;

/// Which CPUs were online, and of which that changed.
#[derive(Debug)]
pub struct Cpus {
    online: CpuList,
    changed: CpuList,
}

impl Cpus {
    /// With those that are online now.
    pub fn new(online: CpuList) -> Self {
        Self { online, changed: CpuList::new() }
    }

    /// Looks again. Where the list cannot be read it is empty, and says nothing.
    pub fn look(&mut self, online: CpuList) {
        if online.is_empty() || online == self.online {
            return;
        }
        let came_or_went = online.difference(&self.online).union(&self.online.difference(&online));
        self.changed = self.changed.union(&came_or_went);
        self.online = online;
    }

    /// What is not known of them, given those whose buffers the kernel does not have. Nothing ran on a CPU that was offline
    /// all the time.
    pub fn unknown(&self, without_buffer: &CpuList) -> Vec<String> {
        let lacking = without_buffer.intersection(&self.online).difference(&self.changed);
        let words = |cpus: &CpuList, why: &str| {
            (!cpus.is_empty()).then(|| format!("all events of {}: {why}", cpus.named()))
        };
        let changed = words(&self.changed, "it went offline or came online meanwhile");
        let lacking = words(&lacking, "the kernel has no buffer for it");
        changed.into_iter().chain(lacking).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpus(text: &str) -> CpuList {
        text.parse().unwrap()
    }

    #[test]
    fn a_cpu_that_goes_offline_or_comes_back_is_said_and_one_that_stays_offline_is_not() {
        let mut seen = Cpus::new(cpus("0-1"));
        seen.look(cpus("0-1"));
        seen.look(CpuList::new());
        assert_eq!(seen.unknown(&cpus("2-3")), Vec::<String>::new(), "CPUs 2 and 3 are offline");
        seen.look(cpus("0"));
        seen.look(cpus("0-1"));
        assert_eq!(
            seen.unknown(&cpus("2-3")),
            ["all events of CPU 1: it went offline or came online meanwhile"]
        );
    }

    #[test]
    fn a_cpu_that_is_online_and_has_no_buffer_is_said() {
        let seen = Cpus::new(cpus("0-1"));
        assert_eq!(seen.unknown(&cpus("1")), ["all events of CPU 1: the kernel has no buffer for it"]);
    }
}

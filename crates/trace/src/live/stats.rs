//! What the kernel counts of a buffer: `per_cpu/cpuN/stats`.

/// The counts of one CPU's buffer since it was made, all in events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// In it now.
    pub entries: u64,
    /// Overwritten before they were read.
    pub overrun: u64,
    /// Lost because interrupts came in while the buffer was full of events that were being written.
    pub commit_overrun: u64,
    /// Not recorded because the buffer was full, where it does not overwrite.
    pub dropped: u64,
    /// Read.
    pub read: u64,
}

impl Stats {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let value = |key: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(": "))?;
            line.trim().parse().ok()
        };
        Some(Self {
            entries: value("entries")?,
            overrun: value("overrun")?,
            commit_overrun: value("commit overrun")?,
            // Linux 3.6 and 3.4.
            dropped: value("dropped events").unwrap_or_default(),
            read: value("read events").unwrap_or_default(),
        })
    }

    /// All that was to be recorded and is not there.
    pub fn lost(&self) -> u64 {
        self.overrun.saturating_add(self.commit_overrun).saturating_add(self.dropped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_and_a_text_without_them_is_none() {
        let text = "entries: 7\noverrun: 3\ncommit overrun: 1\nbytes: 70\noldest event ts:  1.0\nnow ts: 2.0\ndropped events: 2\nread events: 9\n";
        let stats = Stats::parse(text).unwrap();
        assert_eq!(stats, Stats { entries: 7, overrun: 3, commit_overrun: 1, dropped: 2, read: 9 });
        assert_eq!(stats.lost(), 6);
        assert_eq!(Stats::parse("entries: 7\n"), None);
    }
}

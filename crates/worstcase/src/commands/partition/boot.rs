//! The words of a kernel command line that set CPUs apart from the start (Documentation/admin-guide/kernel-parameters.txt): what a
//! running system cannot change any more, the tick and RCU's callbacks above all.

use machine::KernelConfig;
use record::Fact;
use units::CpuList;

/// A word, what it does, and the option without which the kernel has no use for it.
struct Word {
    text: &'static str,
    does: &'static str,
    needs: Option<&'static str>,
}

const WORDS: [Word; 4] = [
    Word {
        // A flag replaces the default, so that `domain` must stand beside `managed_irq` (kernel/sched/isolation.c).
        text: "isolcpus=managed_irq,domain,{rt}",
        does: "no balancing of load, no interrupts that the kernel places itself",
        needs: Some("CPU_ISOLATION"),
    },
    Word {
        text: "nohz_full={rt}",
        does: "no tick while one thread runs; threads and timers of the kernel elsewhere",
        needs: Some("NO_HZ_FULL"),
    },
    Word { text: "rcu_nocbs={rt}", does: "callbacks of RCU elsewhere", needs: Some("RCU_NOCB_CPU") },
    Word { text: "irqaffinity={others}", does: "interrupts of devices elsewhere", needs: None },
];

/// A parameter on the kernel command line, and why it is left out, if it is.
#[derive(Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The word.
    pub word: String,
    /// What it does.
    pub does: &'static str,
    /// The option that the kernel lacks.
    pub lacks: Option<&'static str>,
}

/// The words that set `rt` apart from `others`. Where the kernel's configuration cannot be read none is left out.
pub fn words(rt: &CpuList, others: &CpuList, config: &Fact<KernelConfig>) -> Vec<Wanted> {
    let lacks = |symbol: &&str| config.value().is_some_and(|config| config.value_of(symbol) != "y");
    let filled = |text: &str| text.replace("{rt}", &rt.to_string()).replace("{others}", &others.to_string());
    let of =
        |word: &Word| Wanted { word: filled(word.text), does: word.does, lacks: word.needs.filter(lacks) };
    WORDS.iter().map(of).collect()
}

/// They on one line, and below it what each is for.
pub fn text(wanted: &[Wanted]) -> (String, String) {
    let taken = wanted.iter().filter(|one| one.lacks.is_none());
    let line = taken.map(|one| one.word.clone()).collect::<Vec<_>>().join(" ");
    let reason = |one: &Wanted| match one.lacks {
        None => format!("{}: {}\n", one.word, one.does),
        Some(symbol) => format!("left out: {}: this kernel has no CONFIG_{symbol}\n", one.word),
    };
    (line, wanted.iter().map(reason).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(config: Fact<&str>) -> (String, String) {
        let config = config.map(KernelConfig::parse);
        text(&words(&"2-3".parse().unwrap(), &"0-1".parse().unwrap(), &config))
    }

    #[test]
    fn what_the_kernel_cannot_do_is_left_out_and_said() {
        let (line, reasons) = of(Fact::Value("CONFIG_CPU_ISOLATION=y\nCONFIG_RCU_NOCB_CPU=y\n"));
        assert_eq!(line, "isolcpus=managed_irq,domain,2-3 rcu_nocbs=2-3 irqaffinity=0-1");
        assert!(
            reasons.contains("left out: nohz_full=2-3: this kernel has no CONFIG_NO_HZ_FULL"),
            "{reasons}"
        );
    }

    #[test]
    fn of_a_kernel_that_says_nothing_all_is_asked() {
        let (line, _) = of(Fact::Absent);
        assert_eq!(line, "isolcpus=managed_irq,domain,2-3 nohz_full=2-3 rcu_nocbs=2-3 irqaffinity=0-1");
    }
}

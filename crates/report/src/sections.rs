//! The longest sections with interrupts or preemption off in a guest's run.

use microscope::{Context, Off, Section};
use record::Unit;
use units::Nanos;

use crate::style::{Style, Tone};
use crate::text::{count_of, harmless, named_row, wrap};

/// The unit of a guest in instruction time.
const UNIT: Unit = Unit::Instructions;

/// What a kernel's sections are good for, below the tables.
const WORDS: &str = "The longest of all sections of this run, in instructions: a bound for this kernel over the code that ran, and no \
    other. Code that did not run can keep interrupts or preemption off for longer. What interrupted a section is not counted in \
    it; interrupts are sections of their own, by their entries. A wake-up waits for the section that it meets, its own interrupt, others that \
    come, and the switch; a kernel without full preemption also goes on between its preemption points, which no section shows. Instructions \
    are not time, and other CPUs, which a section may wait for, are not there.";

/// Where the second table is the first.
const NO_COUNT: &str = "Not known: how long preemption was off. It was off nowhere but where interrupts were, so this kernel does not seem to \
    count (CONFIG_PREEMPT_COUNT).";

/// The sections under one load; `left_out` more functions began some.
pub fn text(load: &str, sections: &[Section], left_out: usize, style: &Style) -> String {
    let head = format!("{}: longest sections by the function that began them", harmless(load));
    let mut lines = vec![style.paint(Tone::Strong, &head)];
    for (off, title) in [(Off::Interrupts, "interrupts off"), (Off::Preemption, "preemption off")] {
        let of: Vec<&Section> = sections.iter().filter(|section| section.off == off).collect();
        lines.push(format!("{:>12}  {:>9}  {title}", "instructions", "times"));
        if of.is_empty() {
            lines.push(format!("{:>12}  none was seen", ""));
        }
        for section in of {
            let head =
                format!("{:>12}  {:>9}  ", UNIT.figure(section.length), UNIT.figure(Nanos(section.times)));
            lines.push(named_row(&head, &name(section), style.width.saturating_sub(25).max(30), ""));
        }
    }
    if counts_nothing(sections) {
        lines.extend(wrap("", NO_COUNT, 0, style.width));
    }
    if left_out > 0 {
        lines.push(format!("{} not shown: --longest", count_of(left_out as u64, "shorter row")));
    }
    lines.iter().map(|line| line.trim_end().to_owned() + "\n").collect()
}

/// Whether preemption was off nowhere but where interrupts were: no kernel that counts is so.
fn counts_nothing(sections: &[Section]) -> bool {
    let of = |off: Off| {
        let of = sections.iter().filter(move |section| section.off == off);
        of.map(|section| (&section.owner, section.length)).collect::<Vec<_>>()
    };
    of(Off::Interrupts) == of(Off::Preemption)
}

/// What is below the tables.
pub fn words(style: &Style) -> String {
    wrap("", WORDS, 0, style.width).iter().map(|line| line.clone() + "\n").collect()
}

/// `rmqueue_bulk in stress, called by get_page_from_freelist: most of it in free_one_page`.
fn name(section: &Section) -> String {
    let context = match &section.context {
        Context::Interrupt { name } => format!("in interrupt {name}"),
        Context::Softirq => "in softirq".to_owned(),
        Context::Nmi => "in NMI".to_owned(),
        Context::Thread { name } | Context::Program { name } => format!("in {name}"),
        Context::Halted | Context::NotRecorded => String::new(),
    };
    let mut words = format!("{} {context}", section.owner).trim_end().to_owned();
    if !section.function.is_empty() && section.function != section.owner {
        words.push_str(&format!(": most of it in {}", section.function));
    }
    harmless(&words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(off: Off, owner: &str, length: u64) -> Section {
        Section {
            off,
            length: Nanos(length),
            interrupted: Nanos(7),
            owner: owner.into(),
            path: vec!["dd".into(), owner.into()],
            context: Context::Thread { name: "dd".into() },
            function: "clear_page_rep".into(),
            times: 3,
            sum: Nanos(3 * length),
            calls: microscope::Tree::default(),
        }
    }

    #[test]
    fn a_kernel_that_does_not_count_is_said_to_be_unknown() {
        let shown = |sections: &[Section]| text("io", sections, 2, &Style::default());
        let both = [section(Off::Interrupts, "one", 40), section(Off::Preemption, "two", 90)];
        let text = shown(&both);
        assert!(text.contains("one in dd: most of it in clear_page_rep") && text.contains(" 90 "), "{text}");
        assert!(text.contains("2 shorter rows not shown") && !text.contains("Not known"), "{text}");
        let same = [section(Off::Interrupts, "one", 40), section(Off::Preemption, "one", 40)];
        assert!(shown(&same).contains("Not known: how long preemption was off"), "{}", shown(&same));
    }
}

//! What harms the figures of the responder on GPIO lines.

use crate::WarningId as Id;
use crate::{Fact, Scenario, Warning};

use super::{GpioSeries, GpioSetup};

/// Warnings about the thread that answered edges.
pub(super) fn of_scenario(setup: &GpioSetup, scenario: &Scenario) -> Vec<Warning> {
    let of = |gpio: &GpioSeries| {
        [
            no_edges(setup, gpio),
            line_failed(setup, gpio),
            edges_lost(setup, gpio),
            stamps_unusable(setup, gpio),
            backlog(setup, gpio),
            thread_as_it_is(setup, gpio),
            monitor_failed(gpio),
            monitor_missed(gpio),
        ]
    };
    scenario.series.iter().filter_map(|series| series.gpio()).flat_map(of).flatten().collect()
}

fn no_edges(setup: &GpioSetup, gpio: &GpioSeries) -> Option<Warning> {
    (gpio.expected == 0).then(|| {
        let edge = if setup.rises { "rising" } else { "falling" };
        Warning::inconclusive(
            Id::NoEdges,
            format!("no {edge} edge came on {} after the warm-up", setup.input),
            "check wires and levels; the other edge is --pulse CHIP:LINE,falling",
        )
    })
}

fn line_failed(setup: &GpioSetup, gpio: &GpioSeries) -> Option<Warning> {
    gpio.line_failed.as_ref().map(|why| {
        Warning::inconclusive(
            Id::LineFailed,
            format!("{} or {} was of use no more: {why}", setup.input, setup.output),
            "was the chip's driver unbound or its device unplugged? measure again",
        )
    })
}

fn edges_lost(setup: &GpioSetup, gpio: &GpioSeries) -> Option<Warning> {
    let missed = gpio.missed.summary().count;
    (missed > 0).then(|| {
        Warning::note(
            Id::EdgesLost,
            format!(
                "{missed} of {} edges on {} were never answered: the kernel's queue was full",
                gpio.expected, setup.input
            ),
            "they count as missed; the thread was late by the whole queue, or edges came faster than answers",
        )
    })
}

fn stamps_unusable(setup: &GpioSetup, gpio: &GpioSeries) -> Option<Warning> {
    (gpio.unstamped > 0).then(|| {
        Warning::inconclusive(
            Id::StampsUnusable,
            format!("{} edges on {} have a stamp of another clock", gpio.unstamped, setup.input),
            "kernels before 5.7 stamp by CLOCK_REALTIME, and some chips by a clock of their own: use another",
        )
    })
}

fn backlog(setup: &GpioSetup, gpio: &GpioSeries) -> Option<Warning> {
    (gpio.backlog > 0).then(|| {
        Warning::note(
            Id::EdgesEarly,
            format!("{} of {} edges on {} came before the one before was answered", gpio.backlog, gpio.expected, setup.input),
            "glitches or a period shorter than the response: a series resistor and a short cable, or a longer period",
        )
    })
}

fn thread_as_it_is(setup: &GpioSetup, gpio: &GpioSeries) -> Option<Warning> {
    let wanted = setup.irq_priority?;
    let seen = match &gpio.interrupt {
        Fact::Value(thread) if thread.priority == u32::from(u8::from(wanted)) => return None,
        Fact::Value(thread) => format!("{} had priority {}", thread.name, thread.priority),
        Fact::Unreadable(errno) => format!("that was refused: {}", units::errno_in_words(*errno)),
        Fact::Absent | Fact::Unsupported => "there was none".into(),
    };
    Some(Warning::inconclusive(
        Id::InterruptThreadDiffers,
        format!("the thread of the interrupt of {} was to have priority {wanted}: {seen}", setup.input),
        "needs root; leave --irq-priority out where the interrupt has no thread",
    ))
}

fn monitor_failed(gpio: &GpioSeries) -> Option<Warning> {
    let monitor = gpio.monitor.as_ref()?;
    let problem = match &monitor.problem {
        Some(problem) => problem.clone(),
        None if monitor.samples == 0 => format!("the monitor at {} measured no answer", monitor.address),
        None => return None,
    };
    Some(Warning::inconclusive(
        Id::MonitorFailed,
        problem,
        "check the wires from the answer's line to the monitor and its console; measure again",
    ))
}

fn monitor_missed(gpio: &GpioSeries) -> Option<Warning> {
    let monitor = gpio.monitor.as_ref().filter(|monitor| monitor.overruns > 0)?;
    Some(Warning::inconclusive(
        Id::MonitorMissed,
        format!("the monitor at {} missed {} answers or periods", monitor.address, monitor.overruns),
        "its longest answer says nothing of those: Zephyr's latmon waits 1 ms at most; a longer period, other wires",
    ))
}

#[cfg(test)]
mod tests {
    use units::Nanos;

    use super::*;
    use crate::instrument::gpio::{InterruptThread, Monitored};
    use crate::verdict::tests::{doubts, scenario};
    use crate::{Effect, Own, Setup};

    fn ids(setup: GpioSetup, gpio: GpioSeries) -> Vec<(Id, Effect)> {
        let mut scenario = scenario(&[5_000]);
        scenario.head.planned.setup = Setup::Gpio(setup);
        scenario.series[0].own = Own::Gpio(gpio);
        doubts(&scenario)
    }

    #[test]
    fn each_sort_of_trouble_on_the_lines_has_its_doubt() {
        let plain = crate::instrument::gpio::tests::setup;
        let good = || GpioSeries { expected: 9, ..GpioSeries::default() };
        assert_eq!(ids(plain(), good()), []);
        let inconclusive = |id| vec![(id, Effect::Inconclusive)];
        assert_eq!(ids(plain(), GpioSeries::default()), inconclusive(Id::NoEdges));
        assert_eq!(ids(plain(), GpioSeries { unstamped: 1, ..good() }), inconclusive(Id::StampsUnusable));
        let failed = GpioSeries { line_failed: Some("No such device".into()), ..good() };
        assert_eq!(ids(plain(), failed), inconclusive(Id::LineFailed));
        assert_eq!(ids(plain(), GpioSeries { backlog: 1, ..good() }), [(Id::EdgesEarly, Effect::Note)]);
        let mut lost = good();
        lost.missed.record(Nanos(9));
        assert_eq!(ids(plain(), lost), [(Id::EdgesLost, Effect::Note)]);
    }

    #[test]
    fn a_thread_that_was_not_raised_and_a_monitor_that_left_make_a_pass_inconclusive() {
        let raised =
            || GpioSetup { irq_priority: "90".parse().ok(), ..crate::instrument::gpio::tests::setup() };
        let with = |interrupt| GpioSeries { expected: 9, interrupt, ..GpioSeries::default() };
        let thread = |priority| {
            Fact::Value(InterruptThread { interrupt: 55, name: "irq/55-worstcase-in".into(), priority })
        };
        assert_eq!(ids(raised(), with(thread(90))), []);
        for other in [thread(50), Fact::Absent] {
            assert_eq!(ids(raised(), with(other)), [(Id::InterruptThreadDiffers, Effect::Inconclusive)]);
        }
        let monitored = |monitor| GpioSeries { expected: 9, monitor: Some(monitor), ..GpioSeries::default() };
        let setup = crate::instrument::gpio::tests::setup;
        assert_eq!(
            ids(setup(), monitored(Monitored::default())),
            [(Id::MonitorFailed, Effect::Inconclusive)]
        );
        let missed = Monitored { samples: 9, overruns: 1, ..Monitored::default() };
        assert_eq!(ids(setup(), monitored(missed)), [(Id::MonitorMissed, Effect::Inconclusive)]);
        assert_eq!(ids(setup(), monitored(Monitored { samples: 9, ..Monitored::default() })), []);
    }
}

//! The options of `--probe gpio`, and how GPIO lines are named on command lines.

use clap::Args;
use failure::Error;
use record::InstrumentPlan;
use record::instrument::gpio::{GpioSetup, MonitorSetup, Pin};
use units::{Nanos, Priority};

use super::{Common, Options, refuse};
use crate::lengths::between;

const GPIO: &str = "GPIO lines (--probe gpio)";

/// A line and its edge, as in `gpiochip0:23,falling`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The line.
    pub pin: Pin,
    /// The edge that was named: rising, or not.
    pub rises: Option<bool>,
}

/// Which lines are answered, and how.
#[derive(Args, Clone, Debug)]
pub struct GpioOptions {
    /// Line whose edges are answered: CHIP:LINE[,rising|falling], as in gpiochip0:23 [default: rising]
    #[arg(long, value_name = "PIN", help_heading = GPIO)]
    pulse: Option<Line>,

    /// Line of the answers: high, low for each answer, and high again at once, as latmus does
    #[arg(long, value_name = "PIN", help_heading = GPIO)]
    ack: Option<Line>,

    /// Priority for the thread of the line's interrupt, 1 to 99 (root)
    #[arg(long, value_name = "N", help_heading = GPIO)]
    irq_priority: Option<Priority>,

    /// Have a monitor make the edges, one each --interval, and report: an ADDRESS[:PORT] of latmon or of worstcase
    /// monitor, or `broadcast` for one that announces itself
    #[arg(long, value_name = "WHERE", help_heading = GPIO)]
    monitor: Option<String>,

    /// Keep each answer back so long, spinning: to try a measurement against a truth that is known
    #[arg(long, value_name = "TIME", value_parser = kept_back, help_heading = GPIO)]
    answer_delay: Option<Nanos>,
}

impl Options for GpioOptions {
    fn given(&self) -> Vec<(&'static str, bool)> {
        vec![
            ("--pulse", self.pulse.is_some()),
            ("--ack", self.ack.is_some()),
            ("--irq-priority", self.irq_priority.is_some()),
            ("--monitor", self.monitor.is_some()),
            ("--answer-delay", self.answer_delay.is_some()),
        ]
    }

    fn plan(&self, common: &Common) -> Result<InstrumentPlan, Error> {
        let interval = common.intervals.single("gpio")?;
        let unmonitored = common.intervals.are_given() && self.monitor.is_none();
        let foreign = [("--samples", common.has_samples), ("--interval", unmonitored)];
        refuse(&foreign, "--probe gpio: its thread is woken by edges")?;
        self.setup(interval).map(InstrumentPlan::Gpio)
    }
}

impl GpioOptions {
    /// What is asked of the instrument; a monitor makes an edge each `interval`.
    fn setup(&self, interval: Nanos) -> Result<GpioSetup, Error> {
        let hint =
            "gpioinfo (package gpiod) lists chips and lines; docs/respond.md has the pins of usual boards";
        let (Some(pulse), Some(ack)) = (&self.pulse, &self.ack) else {
            return Err(Error::new("--probe gpio needs --pulse CHIP:LINE and --ack CHIP:LINE", hint));
        };
        if ack.rises == Some(true) {
            let message = "--ack: the answer is a falling edge, as latmus makes it";
            return Err(Error::new(message, "leave the edge out"));
        }
        if pulse.pin == ack.pin {
            return Err(Error::new(format!("--pulse and --ack are both {}", ack.pin), "they are two wires"));
        }
        Ok(GpioSetup {
            input: pulse.pin.clone(),
            rises: pulse.rises.unwrap_or(true),
            output: ack.pin.clone(),
            delay: self.answer_delay.unwrap_or_default(),
            irq_priority: self.irq_priority,
            monitor: self.monitor_setup(interval)?,
        })
    }

    fn monitor_setup(&self, period: Nanos) -> Result<Option<MonitorSetup>, Error> {
        let Some(named) = &self.monitor else { return Ok(None) };
        if period.0 % 1_000 != 0 || period > Nanos::from_secs(1) {
            let message =
                format!("--interval {period}: monitors make a pulse each 1us to 1s, in whole microseconds");
            return Err(Error::new(message, "choose another period"));
        }
        let address = match named.as_str() {
            "broadcast" => named.clone(),
            _ => wire::latmon::session::address(named)
                .map_err(|problem| {
                    let hint = "its console shows it; names are not looked up";
                    Error::new(format!("--monitor {named}: {problem}"), hint)
                })?
                .to_string(),
        };
        Ok(Some(MonitorSetup { address, period }))
    }
}

impl std::str::FromStr for Line {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (place, edge) = text.split_once(',').map_or((text, None), |(place, edge)| (place, Some(edge)));
        let rises = match edge {
            None => None,
            Some("rising" | "rising-edge") => Some(true),
            Some("falling" | "falling-edge") => Some(false),
            Some(other) => return Err(format!("`{other}` is neither rising nor falling")),
        };
        let (chip, line) = place.rsplit_once(':').ok_or("a line is CHIP:LINE, as in gpiochip0:23")?;
        let line = line.parse().map_err(|_| format!("`{line}` is not the number of a line"))?;
        let chip = match chip {
            "" => return Err("a line is CHIP:LINE, as in gpiochip0:23".into()),
            path if path.starts_with('/') => path.into(),
            name => format!("/dev/{name}"),
        };
        Ok(Self { pin: Pin { chip, line }, rises })
    }
}

/// A delay of answers.
fn kept_back(text: &str) -> Result<Nanos, String> {
    between(text, Nanos::ZERO, Nanos::from_millis(100), "0s to 100ms")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_a_chip_a_number_and_perhaps_an_edge() {
        let pin = |chip: &str, line| Pin { chip: chip.into(), line };
        let read = |text: &str| text.parse::<Line>().map(|line| (line.pin, line.rises));
        assert_eq!(read("gpiochip0:23"), Ok((pin("/dev/gpiochip0", 23), None)));
        assert_eq!(read("/dev/gpiochip4:1,falling"), Ok((pin("/dev/gpiochip4", 1), Some(false))));
        assert_eq!(read("gpiochip0:23,rising-edge"), Ok((pin("/dev/gpiochip0", 23), Some(true))));
        for wrong in ["23", "gpiochip0", "gpiochip0:", "gpiochip0:x", ":1", "gpiochip0:1,both", "", ","] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}

//! Quantities that a sentence or comment states, beside what the values of the line really mean to their readers: a day, and 24
//! seconds; 64 MiB, and 64 KiB; core 3, and a mask of CPUs 0 and 1. What a value means stands in `quantities.toml`.

mod meant;
mod said;

use std::collections::BTreeSet;

use units::CpuList;

use super::intent::{Explained, explained};
use super::{Remark, RemarkId};
use meant::{Quantity, Sense};

/// What is wrong with the values of a text for what is said of them.
pub fn remarks(text: &str) -> Vec<Remark> {
    let all = explained(text);
    let of = |explained: &Explained| match explained.program {
        "" => meant::of(explained.statement),
        program => meant::of(&format!("{program} {}", explained.statement)),
    };
    let values: Vec<Vec<meant::Meant>> = all.iter().map(of).collect();
    let is_pinned =
        |meant: &&meant::Meant| matches!(meant.quantity, Quantity::Cpus(..) | Quantity::Priority(_));
    let is_alone = values.iter().flatten().filter(is_pinned).count() == 1;
    all.iter()
        .zip(&values)
        .filter_map(|(explained, values)| of_statement(explained, values, is_alone))
        .collect()
}

/// The CPUs on which a line lets something run, where it names them.
pub fn cpus_that_run(line: &str) -> Option<CpuList> {
    meant::of(line).into_iter().find_map(|meant| match meant.quantity {
        Quantity::Cpus(cpus, Sense::On) => Some(cpus),
        _ => None,
    })
}

/// CPUs that lines name beyond those that the machine has.
pub fn beyond(text: &str, processors: u32) -> Vec<Remark> {
    let of = |(index, line): (usize, &str)| {
        let found = meant::of(line).into_iter().find_map(|meant| match meant.quantity {
            Quantity::Cpus(cpus, _) => cpus.iter().find(|cpu| cpu.0 >= processors),
            _ => None,
        })?;
        let message =
            format!("CPU {found} does not exist here: the last is {}", processors.saturating_sub(1));
        Some(Remark::error(index + 1, RemarkId::Malformed, line, message))
    };
    // `N` is the last CPU, whichever that is.
    let is_code = |line: &&str| !line.trim_start().starts_with('#') && !line.contains("-N");
    text.lines().enumerate().filter(|(_, line)| is_code(line)).filter_map(of).collect()
}

/// What the comment of a statement, and that of the whole text, say of its values; CPUs and priorities of the whole text are those of
/// the only line that has one.
fn of_statement(explained: &Explained, values: &[meant::Meant], is_alone: bool) -> Option<Remark> {
    let all: Vec<&Quantity> = values.iter().map(|meant| &meant.quantity).collect();
    let both = match explained.comment.contains(explained.head.trim()) {
        true => explained.comment.clone(),
        false => format!("{} {}", explained.comment, explained.head),
    };
    values.iter().find_map(|meant| {
        let said = match meant.quantity {
            Quantity::Cpus(..) | Quantity::Priority(_) if is_alone && explained.comment.trim().is_empty() => {
                &explained.head
            }
            Quantity::Cpus(..) | Quantity::Priority(_) => &explained.comment,
            _ => &both,
        };
        let message = differs(said, meant, &all)?;
        let id = match meant.quantity {
            Quantity::Cpus(..) | Quantity::Share => RemarkId::Contradiction,
            _ => RemarkId::Malformed,
        };
        Some(Remark::error(explained.line, id, explained.statement, message))
    })
}

/// How a value differs from what the words say of it.
fn differs(said: &str, meant: &meant::Meant, all: &[&Quantity]) -> Option<String> {
    let shown = meant.shown.as_str();
    match &meant.quantity {
        Quantity::Time(length) if meant.period => {
            other_period(said, *length, all, shown).or_else(|| time(said, *length, all, shown))
        }
        Quantity::Time(length) => time(said, *length, all, shown),
        Quantity::Bytes(size) => bytes(said, *size, all, shown),
        Quantity::Cpus(cpus, sense) => other_cpus(said, cpus, *sense, all, shown),
        Quantity::Share => {
            let is_pinned = all.iter().any(|other| matches!(other, Quantity::Cpus(..)));
            if is_pinned { None } else { share(said, shown) }
        }
        Quantity::Priority(priority) => other_priority(said, *priority),
        Quantity::Nice(nice) => said::nice(said)
            .contains(&-nice)
            .then_some(*nice)
            .filter(|nice| *nice != 0)
            .map(|nice| format!("the nice value is {nice} here, and the text says {}", -nice)),
        Quantity::Limit(limit) => {
            let limits = said::limits(said);
            let [wanted] = limits.as_slice() else { return None };
            let is_below = (1..=99).contains(wanted) && (0..*wanted).contains(limit) && !says(said, &OTHERS);
            is_below.then(|| format!("allows priorities up to {limit} here, and the text says {wanted}"))
        }
        Quantity::Percent(share) => {
            let percents = said::percents(said);
            let [percent] = percents.as_slice() else { return None };
            let is_near = |other: f64| (percent - other).abs() < 0.6;
            let is_said = is_near(*share) || is_near(100.0 - share);
            (!is_said).then(|| format!("{shown} us are {share} % of a second, and the text says {percent} %"))
        }
        Quantity::Pages(size) => {
            let sizes: Vec<u64> = said::bytes(said).into_iter().filter(|size| *size != 2 << 20).collect();
            let [wanted] = sizes.as_slice() else { return None };
            let is_said = wanted.abs_diff(*size) * 10 <= *wanted;
            let is_of_pages = *wanted > 16 << 20 && says(said, &["2 mib", "2 mb", "2mib", "2mb", "2m pages"]);
            (is_of_pages && !is_said).then(|| {
                format!("{shown} pages are {}, and the text says {}", shown_size(*size), shown_size(*wanted))
            })
        }
        Quantity::Rate(power, noun) => {
            let rate = said::rates(said).into_iter().find(|(name, _)| name == noun)?.1;
            let period = 2_f64.powi(*power);
            let is_other = (period * rate - 1.0).abs() > 0.01;
            is_other.then(|| format!("{power} is one in {period} s, and the text says {rate} a second"))
        }
        Quantity::Frames(frames, rate) => {
            let of_rate = |said: &u64| *rate == Some(*said) && frames != said;
            let said = said::frames(said).into_iter().find(of_rate)?;
            Some(format!("asks for {frames} frames: the number of frames stands first, as {said}/{frames}"))
        }
    }
}

/// Whether two lengths are the same number in units of 1000 times another size.
fn is_slip(a: u64, b: u64) -> bool {
    let (small, large) = (a.min(b), a.max(b));
    small > 0
        && [1_000, 1_000_000, 1_000_000_000].iter().any(|factor| small.checked_mul(*factor) == Some(large))
}

/// The time that a text states where `length`, in nanoseconds, is it but for the unit.
pub fn slip(text: &str, length: u64) -> Option<units::Nanos> {
    let times = said::times(text);
    let is_said = times.contains(&length);
    times.into_iter().find(|time| !is_said && is_slip(*time, length)).map(units::Nanos)
}

/// The only time of the words is a period, and the line's is another one.
fn other_period(said: &str, length: u64, all: &[&Quantity], shown: &str) -> Option<String> {
    let times: BTreeSet<u64> = said::times(said).into_iter().collect();
    let lengths = all.iter().filter(|quantity| matches!(quantity, Quantity::Time(_))).count();
    let periods = said::periods(said);
    let ([period], 1, 1) = (periods.as_slice(), times.len(), lengths) else { return None };
    let is_short = |time: u64| (1..1_000_000_000).contains(&time);
    (length != *period && is_short(length) && is_short(*period)).then(|| {
        let (length, period) = (units::Nanos(length), units::Nanos(*period));
        format!("{shown} is {length} here, and the text says {period}")
    })
}

fn time(said: &str, length: u64, all: &[&Quantity], shown: &str) -> Option<String> {
    let times: BTreeSet<u64> = said::times(said).into_iter().collect();
    if times.contains(&length) {
        return None;
    }
    // A time that another value of the line states is not meant of this one.
    let times: Vec<u64> = times.into_iter().filter(|time| !all.contains(&&Quantity::Time(*time))).collect();
    // Seconds where minutes, hours or days are meant.
    let is_whole = length % 1_000_000_000 == 0;
    let is_other = |time: u64| {
        is_whole && [60, 3_600, 86_400].iter().any(|factor| length.checked_mul(*factor) == Some(time))
    };
    // A day is 24 hours, too.
    let is_day = |time: u64| time == 86_400_000_000_000 && length == 24_000_000_000;
    let slipped = |time: &&u64| is_slip(**time, length) || is_other(**time) || is_day(**time);
    let time = times.iter().find(slipped)?;
    Some(format!("{shown} is {} here, and the text says {}", units::Nanos(length), units::Nanos(*time)))
}

fn bytes(said: &str, size: u64, all: &[&Quantity], shown: &str) -> Option<String> {
    let sizes = said::bytes(said);
    let is_near = |a: u64, b: u64| a.abs_diff(b) * 10 <= a.max(b);
    let is_said =
        |size: u64| all.iter().any(|other| matches!(other, Quantity::Bytes(other) if is_near(*other, size)));
    if size == 0 || sizes.iter().any(|size| is_said(*size)) {
        return None;
    }
    let slipped = |said: &&u64| {
        let (small, large) = (size.min(**said), size.max(**said));
        [1 << 10, 1 << 20, 1_u64 << 30]
            .iter()
            .any(|factor| small.checked_mul(*factor).is_some_and(|up| is_near(up, large)))
    };
    let said = sizes.iter().find(slipped)?;
    Some(format!("{shown} is {} here, and the text says {}", shown_size(size), shown_size(*said)))
}

fn shown_size(bytes: u64) -> String {
    let units = ["bytes", "KiB", "MiB", "GiB"];
    let mut size = bytes;
    let mut unit = 0;
    while size >= 1024 && size % 1024 == 0 && unit + 1 < units.len() {
        size /= 1024;
        unit += 1;
    }
    format!("{size} {}", units[unit])
}

/// Words with which a sentence speaks of more than what the line does.
const OTHERS: [&str; 16] = [
    " not ",
    "n't",
    "instead",
    "isolated",
    "except",
    "other",
    "leave",
    "above",
    "below",
    "than",
    "between",
    "rest",
    "housekeeping",
    "everything else",
    "remaining",
    "sibling",
];

/// Words that keep something off the CPUs they name.
const AWAY: [&str; 9] =
    ["away from", "off ", "avoid", "spare", "ban", "from cpu", "from core", "keep ", "free "];

fn says(said: &str, words: &[&str]) -> bool {
    let lower = said.to_lowercase();
    words.iter().any(|word| lower.contains(word))
}

/// The CPUs that the words name are not those of the value.
fn other_cpus(said: &str, cpus: &CpuList, sense: Sense, all: &[&Quantity], shown: &str) -> Option<String> {
    let named = said::cpus(said);
    let [named] = named.as_slice() else { return None };
    let is_other = says(said, &OTHERS) || cpus.is_empty();
    let lists = all.iter().filter(|quantity| matches!(quantity, Quantity::Cpus(..))).count();
    let is_away = says(said, &AWAY);
    let differs = match (sense, is_away) {
        (Sense::On, false) | (Sense::Off, true) => cpus.intersection(named).is_empty(),
        (Sense::On, true) => return None,
        (Sense::Off, false) => return None,
        (Sense::Either, _) => {
            (is_away || says(said, &["isolat", "take"])) && cpus.intersection(named).is_empty()
        }
    };
    // The same numbers, as a range for a list or the other way round.
    let is_range =
        sense != Sense::Off && cpus != named && numbers(shown) == ends(said) && numbers(shown).len() == 2;
    // A number that the words have and the value, too: in a mask it is another CPU.
    let is_number =
        named.len() == 1 && shown == named.to_string() && cpus != named && sense == Sense::On && !is_away;
    if lists > 1 || !(differs && !is_other || is_number || is_range && !is_away) {
        return None;
    }
    Some(match named.to_string() == shown {
        true => format!("is a mask, in which {shown} is CPU {cpus}: CPU {named} is {:x}", mask(named)),
        false => format!("names CPU {cpus}, and the text CPU {named}"),
    })
}

/// The numbers of a list, whatever stands between them.
fn numbers(list: &str) -> Vec<u32> {
    list.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse().ok()).collect()
}

/// The numbers behind the only word for CPUs in a text.
fn ends(said: &str) -> Vec<u32> {
    let lower = said.to_lowercase();
    let names = ["cpus ", "cores "];
    let Some((at, name)) = names.iter().find_map(|name| Some((lower.find(name)?, name))) else {
        return Vec::new();
    };
    let rest = &lower[at + name.len()..];
    let end = rest.find(|c: char| !(c.is_ascii_digit() || "-, andto".contains(c))).unwrap_or(rest.len());
    numbers(&rest[..end])
}

fn mask(cpus: &CpuList) -> u128 {
    cpus.iter().filter(|cpu| cpu.0 < 128).map(|cpu| 1_u128 << cpu.0).sum()
}

/// Words that bind something to the CPUs they name.
const BINDS: [&str; 9] =
    ["pin", "bind", "bound", "only on", "run on", "runs on", "dedicated", "exclusive", "tied"];

/// CPUs that are named by numbers, where the value is an amount of CPU time.
fn share(said: &str, shown: &str) -> Option<String> {
    let cpus = said::cpus(said);
    let named = cpus.first().filter(|_| says(said, &BINDS) && !says(said, &[" not ", "n't "]))?;
    Some(format!("{shown} is how much CPU time there is, on any CPU: the text says CPU {named}"))
}

fn other_priority(said: &str, priority: i64) -> Option<String> {
    let named = said::priorities(said);
    let [said_priority] = named.as_slice() else { return None };
    let is_other = says(said, &OTHERS) || !(1..=99).contains(said_priority) || says(said, &["away", "up to"]);
    (!is_other && priority != *said_priority)
        .then(|| format!("the priority is {priority} here, and the text says {said_priority}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_are_what_is_said_are_fine() {
        for fine in [
            "# every millisecond\ncyclictest -m -i 1000 -p 80\n",
            "Run it a whole day: cyclictest -m -p 90 -D 24h\n",
            "# run at 1 kHz for 10 s\ncyclictest -i 1000 -D 10\n",
            "# 500 us of 1 ms\nkernel.sched_rt_runtime_us=500\n",
            "# Let the daemon lock 64 MiB\n[Service]\nLimitMEMLOCK=64M\n",
            "# on CPU 3\ntaskset -c 3 ./x\n",
            "# on CPU 3 and 4\ntaskset -c 4 ./x\n",
            "# CPU 2\ntaskset 4 ./x\n",
            "# CPUs 0 and 1\ntaskset 3 ./x\n",
            "# keep it away from CPU 3\ntaskset -c 0 ./x\n",
            "# keep irqbalance away from cores 2 and 3\nIRQBALANCE_BANNED_CPULIST=2-3\n",
            "# one thread of each core (16 CPUs)\ntaskset -c 0-3 ./x\n",
            "# priority 80\nchrt -f 80 ./x\n",
            "Pin it to cores 2 and 3: docker run --cpuset-cpus=2,3 --cpus=2 x\n",
            "Real-time tasks get 90 % of each second:\nkernel.sched_rt_runtime_us = 900000\n",
            "4 GiB as 2 MiB pages:\nvm.nr_hugepages = 2048\n",
            "To allow priorities up to 95:\n@realtime - rtprio 98\n",
            "# 10 below priority 80\nchrt -f 70 ./x\n",
            "Two CPUs' time for the container, not pinned to cores 2 and 3: docker run --cpus=2 x\n",
        ] {
            assert_eq!(remarks(fine), [], "{fine}");
        }
    }

    #[test]
    fn values_that_mean_something_else_than_is_said_are_errors() {
        for wrong in [
            "# every millisecond\ncyclictest -m -i 1 -p 80\n",
            "To run the loop once every 500 us: cyclictest -p 80 -m -i 5000\n",
            "Let it use cores 4-7 only: docker run --cpuset-cpus=4,7 app\n",
            "Run it for 2 days: cyclictest -m -p 90 -D 2\n",
            "Every 250 ms, for an hour: cyclictest -m -p 90 -i 250 -D 1h\n",
            "Run it a whole day: cyclictest -m -p 90 -D 24\n",
            "# period 2 ms\nrtla timerlat top -p 2\n",
            "# Let it lock 1 GiB\n[Service]\nUser=x\nLimitMEMLOCK=1048576\n",
            "# 256 MiB\n@rt - memlock 268435456\n",
            "Pin it to core 5: taskset 5 ./servo\n",
            "# core 4\ntaskset 4 ./x\n",
            "# on CPU 3\ntaskset -c 2 ./x\n",
            "# core 3 measures\ncyclictest -m -p 90 -a 2 -t 1\n",
            "# FIFO 80\nchrt -f 90 ./x\n",
            "# keep irqbalance away from cores 4 and 5\nIRQBALANCE_BANNED_CPUS=4,5\n",
            "Bind the container to cores 4 and 5: docker run --cpus=2 x\n",
            "# servo 1 ms\nSERVO_PERIOD = 1000\n",
            "# half a second: 500 ms\necho 500 > /proc/sys/kernel/sched_rt_runtime_us\n",
            "# nice -10 for the group\n@audio - nice 10\n",
            "Leave 5 % of each second to others:\nkernel.sched_rt_runtime_us = 980000\n",
            "4 GiB as 2 MiB pages:\nvm.nr_hugepages = 1024\n",
            "To allow priorities up to 95:\n@realtime - rtprio 59\n",
            "Lock 64 MiB: docker run --ulimit memlock=64 app\n",
            "# 16 Sync messages per second\nlogSyncInterval 16\n",
            "A 128-frame buffer: PIPEWIRE_LATENCY=48000/128 pw-jack x\n",
        ] {
            assert_eq!(remarks(wrong).len(), 1, "{wrong}: {:?}", remarks(wrong));
        }
    }

    #[test]
    fn cpus_beyond_the_machine_are_errors() {
        assert_eq!(beyond("taskset -c 4 ./x\n# cpu 9\nisolcpus=2-3\n", 4).len(), 1);
    }
}

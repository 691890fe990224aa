//! The claims in words.

use units::Nanos;

use super::{Claim, Claims, LEAST_EFFECTIVE, LEAST_FOR_RATE, Refused};
use crate::{LabTime, Record};

/// What practice asks of a test for a worst case, EVL: a day under load.
pub const CUSTOMARY: Nanos = Nanos::from_secs(24 * 3600);
/// Runs shorter than this are a first look.
pub const FIRST_LOOK: Nanos = Nanos::from_secs(600);

impl Refused {
    /// Why, to follow "no extrapolation:".
    pub fn reason(self) -> String {
        match self {
            Self::NotEstimated => "too few activations to see whether late ones come in clusters".into(),
            Self::TooFew => format!("worth fewer than {LEAST_EFFECTIVE} independent activations"),
            Self::NotAlike => "latencies changed during the run".into(),
            Self::Incomplete => "figures are missing".into(),
        }
    }
}

impl Claims {
    /// One sentence for the terminal. Empty where nothing is claimed about anything.
    pub fn sentence(&self) -> String {
        if self.series.is_empty() {
            return String::new();
        }
        let all = match self.series.len() {
            1 => format!("{} activations", self.fewest()),
            _ => self.per_series(),
        };
        if self.fewest() == 0 {
            let place =
                if self.series.iter().all(|claim| claim.activations == 0) { "" } else { " on some CPUs" };
            return format!("Not one activation was measured{place}.");
        }
        let uneven = self.series.iter().filter(|claim| claim.says.refused == Some(Refused::NotAlike));
        match (self.run.effective, uneven.clone().count(), uneven.clone().next()) {
            (Some(effective), 1, Some(one)) => {
                // What was measured under one load alone needs no name for it: idle is what its reader calls "no load".
                let is_alone = self.series.iter().all(|other| other.load == one.load);
                let place = match one.cpu.filter(|_| is_alone) {
                    Some(cpu) => format!("CPU {cpu}"),
                    None => self.place(one),
                };
                format!(
                    "{all}, worth about {} independent ones. {place} changed during the run: rarer delays are not estimated.",
                    rounded(effective)
                )
            }
            (Some(effective), 2.., _) => format!(
                "{all}, worth about {} independent ones. Latencies changed during the run in {} of {} places (a CPU under a load): rarer delays are not \
                 estimated.",
                rounded(effective),
                uneven.count(),
                self.series.len()
            ),
            (Some(effective), ..) => {
                format!(
                    "{all}, worth about {} independent ones: rarer delays can be missed.",
                    rounded(effective)
                )
            }
            (None, ..) if self.run.refused == Some(Refused::Incomplete) => {
                format!("{all}, and figures are missing: rarer delays are not estimated.")
            }
            (None, ..) => format!("{all}: too few to see more than what happened in this run."),
        }
    }
}

impl Claims {
    /// `1000 activations per CPU and load`, with all that series differ in; the fewest and the most, where periods differ or a
    /// run was cut short.
    fn per_series(&self) -> String {
        let differ =
            |same: fn(&Claim, &Claim) -> bool| self.series.iter().any(|other| !same(&self.series[0], other));
        let periods = differ(|one, other| one.interval == other.interval);
        let fewest = self.fewest();
        // Threads of one length begin and end a few activations apart.
        let is_more = |most: &u64| *most > fewest.saturating_add(fewest / 100).saturating_add(1);
        let most = self.series.iter().map(|claim| claim.activations).max().filter(is_more);
        let most = most.map_or(String::new(), |most| format!(" to {most}"));
        let also =
            [(periods, "period"), (differ(|one, other| one.cstates == other.cstates), "C-state policy")];
        let mut per = vec!["CPU", "load"];
        per.extend(also.into_iter().filter(|(differ, _)| *differ).map(|(_, what)| what));
        let last = per.pop().unwrap_or_default();
        format!("{fewest}{most} activations per {} and {last}", per.join(", "))
    }
}

impl Claims {
    /// `cpu on CPU 1`, or `cpu 100us restrict on CPU 1` where periods and C-state policies differ.
    pub fn place(&self, claim: &Claim) -> String {
        let cpu = claim.cpu.map_or_else(String::new, |cpu| format!(" on CPU {cpu}"));
        self.column(claim) + &cpu
    }

    /// The same without the CPU, as a column of the table is headed.
    pub fn column(&self, claim: &Claim) -> String {
        let differ = |same: fn(&Claim, &Claim) -> bool| self.series.iter().any(|other| !same(claim, other));
        let mut words = vec![claim.load.clone()];
        if differ(|one, other| one.interval == other.interval) {
            words.push(claim.interval.to_string());
        }
        if differ(|one, other| one.cstates == other.cstates) {
            words.push(claim.cstates.to_string());
        }
        words.join(" ")
    }

    /// For what the evidence speaks, and for what it does not.
    pub fn bounds(&self, record: &Record) -> (String, String) {
        bounds(record, self)
    }
}

fn bounds(record: &Record, claims: &Claims) -> (String, String) {
    let Some((worst, ..)) = record.worst() else { return Default::default() };
    let unit = record.header.machine.unit();
    let (worst, loads) = (unit.with_name(worst), loads(record).join(", "));
    let lab = record.header.machine.lab.as_ref();
    if lab.is_some_and(|lab| lab.time == LabTime::Wall) {
        return (
            format!("counts and findings under {loads}: what ran, where, as what, and what was lost"),
            "any latency: its clock is that of the emulator's host".into(),
        );
    }
    let beyond = beyond(claims, lab.is_some());
    let seen = match lab {
        Some(_) => format!("{worst} under {loads}, in one draw of {} activations a load", claims.fewest()),
        None => format!("{worst} on {} under {loads}", record.header.plan.cpus.named()),
    };
    let plan = &record.header.plan;
    let greatest = plan.instrument.words().greatest;
    if let Some(not_of) = plan.instrument.not_claimed() {
        return (format!("{greatest}, {seen}"), format!("{not_of}: {}", custom(record)));
    }
    let speaks_for = format!("{greatest}, {seen}; {beyond}");
    let not = match lab {
        Some(lab) => format!(
            "a bound: another seed draws another maximum, and {} count too",
            lab.not_modelled.join(", ")
        ),
        None => format!("a bound, or for loads that were not run: {}", custom(record)),
    };
    (speaks_for, not)
}

/// What is said of latencies above the highest observed.
fn beyond(claims: &Claims, lab: bool) -> String {
    let run = &claims.run;
    let Some(once_in) = run.once_in else {
        let reason = run.refused.map_or_else(String::new, |refused| format!(": {}", refused.reason()));
        return format!("no extrapolation{reason}");
    };
    let times = if lab { "of the guest's time " } else { "" };
    let rate = match run.one_in {
        Some(odds) => format!(", at most one activation in {} is later", rounded(odds)),
        None => format!("; fewer than {LEAST_FOR_RATE} activations give no rate per activation"),
    };
    let alone = if claims.series.len() == 1 { "" } else { " on a CPU under a load" };
    format!(
        "at 95 % confidence a later wake-up comes no more often than once in {} {times}on average{alone}{rate}",
        once_in.rounded()
    )
}

fn custom(record: &Record) -> String {
    let longest = record.scenarios.iter().map(|scenario| scenario.length).max().unwrap_or_default();
    let (length, count) = (longest.rounded(), loads(record).len());
    let loads = if count == 1 { "1 load".into() } else { format!("{count} loads") };
    if longest < FIRST_LOOK {
        format!("{length} under {loads} is a first look; 24 h under load is customary for a worst case")
    } else if longest < CUSTOMARY {
        format!("{length} under {loads} is a test; 24 h under load is customary for a worst case")
    } else {
        format!("{length} under {loads} is customary practice, not proof; rarer events remain")
    }
}

fn loads(record: &Record) -> Vec<&str> {
    let mut loads = Vec::new();
    for scenario in &record.scenarios {
        let load = scenario.head.planned.load.as_str();
        if !loads.contains(&load) {
            loads.push(load);
        }
    }
    loads.into_iter().map(|load| record.load_name(load)).collect()
}

/// Two figures that count, the rest zeros: what is only about right must not look exact.
pub fn rounded(count: u64) -> u64 {
    let unit = 10_u64.pow(count.checked_ilog10().unwrap_or_default().saturating_sub(1));
    count.saturating_add(unit / 2) / unit * unit
}

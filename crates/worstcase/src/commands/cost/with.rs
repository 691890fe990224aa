//! `worstcase cost --with`: rounds without settings and rounds with them in turn, so that what else happens on the machine meets
//! both alike.

use std::path::Path;

use operation::measure;
use record::cost::{Cost, Turn};
use record::store::RunDirectory;
use sys::signal::Signals;
use tune::State;
use tune::journal::Lock;

use crate::commands::cost_rounds::{Progress, counters, whole};
use crate::commands::tune::Selection;
use crate::commands::tune::trial::{Setting, parsed, refuse_parameters, with_settings};
use failure::Result;

/// Below the run's directory: the records of the two set-ups.
const WITHOUT: &str = "without";
const WITH: &str = "with";

/// Settings that can be written here, and the lock of their journal. It is held for the whole time: nobody else is to change
/// settings between two rounds.
pub struct Settings {
    texts: Vec<String>,
    parsed: Vec<Setting>,
    state: State,
    lock: Lock,
}

impl Settings {
    /// Reads them and refuses what no round could write.
    pub fn ready(texts: &[String], state: &Path) -> Result<Self> {
        let parsed = parsed(texts)?;
        refuse_parameters(&parsed)?;
        let state = State::of_machine(whole(state)?);
        let lock = state.lock()?;
        // With the values that are there already, which also says whether each would change something.
        with_settings((&state, &lock), &Selection::default(), &[], &parsed, || Ok(()))?;
        Ok(Self { texts: texts.to_vec(), parsed, state, lock })
    }
}

/// Measures `cost` without the settings and with them. Both have the counters of the whole time.
pub fn in_turn(
    settings: &Settings,
    cost: &Cost,
    files: &Path,
    directory: &RunDirectory,
    signals: &Signals,
) -> Result<(Cost, Cost)> {
    let set_up = |on: bool, name: &str| {
        let turn = Turn { settings: settings.texts.clone(), on };
        let cost = Cost { turn: Some(turn), ..cost.clone() };
        let directory = RunDirectory::create(&directory.path().join(name))?;
        // So that a run that is killed in its first round leaves what it was about to do.
        directory.write_cost(&cost)?;
        Ok::<_, failure::Error>(SetUp { cost, directory })
    };
    let mut set_ups = [set_up(false, WITHOUT)?, set_up(true, WITH)?];
    let before = counters(&cost.plan);
    let files = whole(files)?;
    'rounds: for round in 1..=cost.plan.rounds {
        let mut order = [0, 1];
        cost.plan.seed.stream(&format!("order of set-ups in round {round}")).shuffle(&mut order);
        for at in order {
            if !set_ups[at].round(round, settings, &files, signals)? {
                break 'rounds;
            }
        }
    }
    let after = counters(&cost.plan);
    let interrupted = set_ups.iter().find_map(|set_up| set_up.cost.interrupted.clone());
    for SetUp { cost, directory } in &mut set_ups {
        cost.evidence = Some(machine::evidence_between(&before, &after));
        cost.interrupted.clone_from(&interrupted);
        directory.write_cost(cost)?;
    }
    let [without, with] = set_ups.map(|set_up| set_up.cost);
    Ok((without, with))
}

struct SetUp {
    cost: Cost,
    directory: RunDirectory,
}

impl SetUp {
    /// Measures a round in this set-up, and leaves the machine as it was. False where a signal ended it.
    fn round(&mut self, round: u32, settings: &Settings, files: &Path, signals: &Signals) -> Result<bool> {
        let Settings { parsed, state, lock, .. } = settings;
        let is_on = self.cost.turn.as_ref().is_some_and(|turn| turn.on);
        let (on, rewritten): (&[Setting], &[Setting]) = if is_on { (parsed, &[]) } else { (&[], parsed) };
        let mut progress = Progress::new(&self.directory);
        let work = || measure::round(&mut self.cost, round, files, signals, &mut progress);
        let goes_on = with_settings((state, lock), &Selection::default(), on, rewritten, work);
        progress.end();
        goes_on
    }
}

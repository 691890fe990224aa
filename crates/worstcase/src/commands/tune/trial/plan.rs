//! What a trial or a search measures.

use std::path::{Path, PathBuf};

use experiment::{Arm, Design, Kind as Measured, stolen};
use lab::boot::Guest;
use lab::kernels::{Kernel, Needed};
use lab::limits;
use lab::measure::{patience, worstcase};
use lab::parameters::INERT;
use lab::state::{Kind, KnownKernel, Plan};
use record::instrument::timer::TimerPlan;
use record::{CommandLoad, InstrumentPlan, LabTime, Out, Record, Request, Unit, Wake};
use serde::{Deserialize, Serialize};
use units::{Bytes, CpuList, Nanos, Seed};

use super::block::Block;
use super::setting::Setting;
use crate::options::INTERVALS;
use failure::Result;

/// The directory of what operations take, in that of a block's record.
const COST: &str = "cost";

/// An experiment and where it is made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct TrialPlan {
    /// Whether a set that suffices is searched.
    pub search: bool,
    /// What is tried.
    pub design: Design,
    /// What each block is measured under.
    pub conditions: Conditions,
    /// By what.
    pub place: Place,
}

/// What each block is measured under.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Conditions {
    /// The load, as the record calls it.
    pub load: String,
    /// The command that it is, if it is not of the catalogue.
    pub load_command: Option<String>,
    /// How long a block is, in nanoseconds.
    pub duration: Nanos,
    /// How long the load runs before that, the settings written already.
    pub warm_up: Nanos,
    /// The period of the activations.
    pub interval: Nanos,
    /// What wakes the measuring threads.
    pub wake: Wake,
    /// CPUs that are measured; none for all.
    pub cpus: Option<CpuList>,
    /// Profiles of rules, as they were given.
    pub profile: Vec<String>,
    /// CPUs for real time alone.
    pub isolate: Option<CpuList>,
    /// Whether each block measures what operations take too.
    #[serde(default)]
    pub cost: bool,
    /// Whether wake-ups that the host of this virtual machine delayed are set apart.
    #[serde(default)]
    pub without_steal: bool,
}

/// By what blocks are measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// By this machine, which ran this kernel.
    Here {
        /// `uname -r`.
        release: String,
    },
    /// By guests, one a block.
    Guests(Box<GuestSetup>),
}

/// What guests are made of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct GuestSetup {
    /// The kernel's name in the cache, or its image's path.
    pub kernel: String,
    /// What it was then, in files of former versions.
    #[serde(default, rename = "told", skip_serializing)]
    pub known: Option<KnownKernel>,
    /// What their clocks count.
    pub time: LabTime,
    /// Kernel parameters of all of them.
    pub words: Vec<String>,
    /// CPUs.
    pub processors: u32,
    /// Memory.
    pub memory: Bytes,
    /// A disk for loads that write.
    pub disk: Option<Bytes>,
    /// Programs of this machine that they have.
    pub programs: Vec<PathBuf>,
}

impl TrialPlan {
    /// The settings.
    pub fn settings(&self) -> Result<Vec<Setting>> {
        self.design.settings.iter().map(|text| Setting::parse(text)).collect()
    }

    /// What figures count.
    pub fn unit(&self) -> Unit {
        match &self.place {
            Place::Here { .. } => Unit::Microseconds,
            Place::Guests(guests) => guests.time.unit(),
        }
    }

    fn setup(&self) -> std::result::Result<&GuestSetup, lab::Error> {
        match &self.place {
            Place::Guests(setup) => Ok(setup),
            Place::Here { .. } => Err(lab::Error::new("this machine measures, and no guest")),
        }
    }

    /// The block of `arm`, which leaves its record in `out`. `state` is where the journal of settings is.
    pub fn block(&self, arm: &Arm, seed: Seed, out: &Path, state: Option<&Path>) -> Result<Block> {
        let (on, rewritten) = self.written(arm)?;
        let Conditions { profile, isolate, .. } = self.conditions.clone();
        let state = state.map(Path::to_path_buf);
        let cost = self.conditions.cost.then(|| out.join(COST));
        Ok(Block { state, on, rewritten, profile, isolate, cost, request: self.request(seed, out) })
    }

    fn request(&self, seed: Seed, out: &Path) -> Request {
        let Conditions { load, load_command, duration, warm_up, interval, wake, cpus, .. } =
            self.conditions.clone();
        let request = Request {
            instrument: InstrumentPlan::Timer(TimerPlan::every(interval, wake)),
            loads: vec![load],
            command: load_command.map(|command| CommandLoad { command, proof: None }),
            cpus,
            duration: Some(duration),
            warm_up,
            seed: Some(seed),
            out: Some(Out::Directory(out.to_owned())),
            explain: self.conditions.without_steal.then_some(stolen::EXPLAINED),
            ..Request::default()
        };
        Request { priority: request.priority.filter(|_| wake != Wake::Deadline), ..request }
    }

    /// The kernel parameters that tell `arm` from others. The control arm has one that nobody reads.
    pub fn parameters(&self, arm: &Arm) -> Result<Vec<String>> {
        let settings = self.settings()?.into_iter().enumerate();
        let words: Vec<(usize, Setting)> = settings.filter(|(_, setting)| setting.is_parameter()).collect();
        Ok(match arm {
            Arm::Control if !words.is_empty() => vec![INERT.to_owned()],
            Arm::Control => Vec::new(),
            Arm::With(_) => {
                let on = words.into_iter().filter(|(place, _)| arm.has(*place));
                on.map(|(_, setting)| setting.to_string()).collect()
            }
        })
    }

    /// The settings of the running system that `arm` has on, and those that it rewrites to what they say already: in every
    /// arm but off each is written in one way or the other, so that two of them differ by values alone.
    fn written(&self, arm: &Arm) -> Result<(Vec<String>, Vec<String>)> {
        let settings = self.settings()?.into_iter().enumerate();
        let settings = settings.filter(|(_, setting)| *arm != Arm::off() && !setting.is_parameter());
        let (on, rewritten): (Vec<_>, Vec<_>) = settings.partition(|(place, _)| arm.has(*place));
        let text = |settings: Vec<(usize, Setting)>| {
            settings.into_iter().map(|(_, setting)| setting.to_string()).collect()
        };
        Ok((text(on), text(rewritten)))
    }
}

impl Plan for TrialPlan {
    /// 2: settings that are off are rewritten in every arm, and rounds are compared. Blocks of version 1 are not like those.
    const FORMER: (&'static str, u32) = ("trial.json", 2);

    fn kind(&self) -> Kind {
        if self.search { Kind::Search } else { Kind::Trial }
    }

    fn former_kernel(&mut self) -> Option<(String, KnownKernel)> {
        let Place::Guests(setup) = &mut self.place else { return None };
        let name = Path::new(&setup.kernel).file_name()?.to_string_lossy().into_owned();
        Some((name, setup.known.take()?))
    }

    fn check(&self) -> std::result::Result<(), lab::Error> {
        // A trial compares each setting with control at once.
        let comparisons = if self.search { 1 } else { self.design.settings.len() };
        self.design.check(comparisons)?;
        let Conditions { duration, warm_up, interval, .. } = self.conditions;
        limits::check_length(duration, warm_up)?;
        if !INTERVALS.contains(&interval) || duration < interval {
            return Err(lab::Error::new(format!("no block of {duration} has a period of {interval}"))
                .hint("periods are 10us to 1h, and shorter than a block"));
        }
        if self.conditions.without_steal && self.design.measure == Measured::Maxima {
            return Err(lab::Error::new("the maxima of seconds are not known without what the host took")
                .hint("let quantile or exceedances decide, or leave out --without-steal"));
        }
        match &self.place {
            Place::Guests(guests) => limits::check_size(guests.processors, guests.memory, guests.disk),
            Place::Here { .. } => Ok(()),
        }
    }

    fn name(&self, arm: &Arm) -> String {
        arm.to_string()
    }

    /// On this machine each block is measured by itself.
    fn place(&self, block: &experiment::Block) -> String {
        match &self.place {
            Place::Here { .. } => format!("phase-{}/round-{}/{}", block.phase, block.round, block.arm),
            Place::Guests(_) => lab::kept::name(&self.name(&block.arm), block.seed),
        }
    }

    /// Each block measures both, in the same set-up.
    fn cost_place(&self, block: &experiment::Block) -> String {
        format!("{}/{COST}", self.place(block))
    }

    fn kernel(&self, _: &Arm) -> std::result::Result<Needed, lab::Error> {
        Ok(Needed::Named(self.setup()?.kernel.clone()))
    }

    fn guest(
        &self,
        arm: &Arm,
        seed: Seed,
        kernel: &Kernel,
        binary: &Path,
    ) -> std::result::Result<Guest, lab::Error> {
        let GuestSetup { time, words, processors, memory, disk, programs, .. } = self.setup()?;
        let block = self.block(arm, seed, Path::new("."), None)?;
        Ok(Guest {
            kernel: kernel.clone(),
            under: None,
            words: words.iter().cloned().chain(self.parameters(arm)?).collect(),
            processors: *processors,
            threads_per_core: 1,
            cpu_model: None,
            memory: *memory,
            time: *time,
            devices: Vec::new(),
            disk: *disk,
            system: None,
            binary: binary.to_path_buf(),
            programs: programs.clone(),
            command: worstcase(block.arguments()?),
            time_limit: patience(self.conditions.duration + self.conditions.warm_up),
        })
    }

    fn loads(&self) -> &[String] {
        std::slice::from_ref(&self.conditions.load)
    }

    fn judged(&self, record: Record) -> std::result::Result<Record, failure::Error> {
        if self.conditions.without_steal { stolen::without_steal(record) } else { Ok(record) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lab::state::State;
    use record::time::UtcTime;

    fn plan() -> TrialPlan {
        let settings = ["threadirqs", "/proc/sys/vm/swappiness=10", "rn-thp"].map(str::to_owned).to_vec();
        let design = Design {
            settings,
            blocks: 7,
            most_blocks: None,
            seed: Seed(7),
            smallest_effect: 0.2,
            measure: Measured::Quantile,
            threshold: None,
        };
        let conditions = Conditions {
            load: "cpu".into(),
            load_command: None,
            duration: Nanos::from_secs(1),
            warm_up: Nanos::from_millis(200),
            interval: Nanos::from_millis(1),
            wake: Wake::Timerfd,
            cpus: None,
            profile: vec!["rt".into()],
            isolate: Some("1".parse().unwrap()),
            cost: false,
            without_steal: false,
        };
        TrialPlan { search: false, design, conditions, place: Place::Here { release: "6.1".into() } }
    }

    fn block(arm: &Arm) -> Block {
        plan().block(arm, Seed(9), Path::new("there"), None).unwrap()
    }

    /// As options refuse it.
    #[test]
    fn what_no_option_takes_is_refused_in_a_file_too() {
        let with = |change: fn(&mut TrialPlan)| {
            let mut plan = plan();
            plan.design.blocks = 12;
            change(&mut plan);
            plan.check()
        };
        assert!(with(|_| {}).is_ok());
        for change in [
            |plan: &mut TrialPlan| plan.conditions.duration = Nanos(u64::MAX),
            |plan: &mut TrialPlan| plan.conditions.warm_up = Nanos(u64::MAX),
            |plan: &mut TrialPlan| plan.conditions.interval = Nanos(1),
            |plan: &mut TrialPlan| plan.conditions.interval = Nanos::from_secs(9),
        ] {
            assert!(with(change).is_err());
        }
    }

    #[test]
    fn each_arm_writes_what_is_its_own() {
        let written = |arm: &Arm| (block(arm).on.join(" "), block(arm).rewritten.join(" "));
        let (file, rule) = ("/proc/sys/vm/swappiness=10", "rn-thp");
        let both = format!("{file} {rule}");
        assert_eq!(written(&Arm::off()), (String::new(), String::new()));
        assert_eq!(written(&Arm::all(3)), (both.clone(), String::new()));
        assert_eq!(written(&Arm::only(2)), (rule.to_owned(), file.to_owned()));
        assert_eq!(written(&Arm::only(0)), (String::new(), both));
        assert_eq!(block(&Arm::Control), block(&Arm::only(0)), "they differ by a kernel parameter");
        let words = |arm: &Arm| plan().parameters(arm).unwrap();
        assert_eq!([words(&Arm::all(3)), words(&Arm::only(0))], [["threadirqs"], ["threadirqs"]]);
        assert_eq!(words(&Arm::Control), ["worstcase.control=1"]);
        assert!(words(&Arm::off()).is_empty() && words(&Arm::only(1)).is_empty());
    }

    #[test]
    fn a_block_passes_what_it_is_measured_under() {
        let [argument, message] = block(&Arm::off()).arguments().unwrap();
        let sent: Block = serde_json::from_str(&message).unwrap();
        assert_eq!((argument.as_str(), &sent), ("__block", &block(&Arm::off())));
        let Request { loads, duration, warm_up, seed, instrument, out, .. } = sent.request;
        assert_eq!(
            (loads, seed, out),
            (vec!["cpu".to_owned()], Some(Seed(9)), Some(Out::Directory("there".into())))
        );
        assert_eq!((duration, warm_up), (Some(Nanos::from_secs(1)), Nanos::from_millis(200)));
        assert_eq!(instrument, InstrumentPlan::Timer(TimerPlan::every(Nanos::from_millis(1), Wake::Timerfd)));
        assert_eq!((sent.profile, sent.isolate), (vec!["rt".to_owned()], "1".parse().ok()));
    }

    #[test]
    fn the_kernel_of_a_former_version_s_guests_is_known() {
        let setup = serde_json::json!({ "guests": {
            "kernel": "./bzImage", "told": { "release": "6.1", "origin": "an image" }, "time": "instructions",
            "words": [], "processors": 1, "memory": Bytes::from_mebibytes(512), "disk": null, "programs": [],
        }});
        let mut former = TrialPlan { place: serde_json::from_value(setup).unwrap(), ..plan() };
        let (name, kernel) = former.former_kernel().unwrap();
        assert_eq!((name.as_str(), kernel.release.as_str()), ("bzImage", "6.1"));
        assert!(!serde_json::to_string(&former).unwrap().contains("told"));
    }

    /// As the version before wrote it.
    #[test]
    fn a_trial_of_a_former_version_is_still_read() {
        let directory = tempfile::tempdir().unwrap();
        let state = State::new(plan(), "0.1.0", UtcTime(0));
        let mut former = serde_json::to_value(&state).unwrap();
        let fields = former.as_object_mut().unwrap();
        fields.retain(|name, _| !["kind", "kernels", "schema_version"].contains(&name.as_str()));
        fields.insert("schema-version".into(), 2.into());
        let path = directory.path().join(TrialPlan::FORMER.0);
        std::fs::write(&path, former.to_string()).unwrap();
        assert_eq!(State::load(directory.path(), Kind::Trial).unwrap(), state);
        let error = State::<TrialPlan>::load(directory.path(), Kind::Search).unwrap_err();
        assert!(error.message.ends_with("it is a trial, no search"), "{error}");
        former["schema-version"] = 1.into();
        std::fs::write(&path, former.to_string()).unwrap();
        let error = State::<TrialPlan>::load(directory.path(), Kind::Trial).unwrap_err();
        assert!(error.message.contains("version 1, not 2"), "{error}");
        assert!(error.hint.unwrap().contains("begin anew"));
    }
}

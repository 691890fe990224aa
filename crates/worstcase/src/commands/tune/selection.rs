//! Which rules are to pass, and what that comes to.

use std::collections::BTreeMap;
use std::path::Path;

use audit::emit::Parameters;
use audit::{Division, Profile, Request, Rules};
use clap::Args;
use serde::Deserialize;
use survey::Survey;
use sysroot::SysRoot;
use tune::Plan;
use units::CpuList;

use super::requests::{idle, own, requests};
use crate::commands::check;
use crate::commands::check::subject::{root_at, set, survey_of};
use failure::{Error, Result};

/// What is to be changed. A file of choice has the same fields.
#[derive(Args, Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Selection {
    /// What you run: isolated, poll or general; stock, rt or evl; guest or host; several with commas [default: what the machine is]
    #[arg(long, value_name = "PROFILE", value_delimiter = ',')]
    pub(super) profile: Vec<Profile>,

    /// CPUs that are, or are to be, isolated [default: those that the kernel isolates]
    #[arg(long, value_name = "CPUS")]
    pub(super) isolate: Option<CpuList>,

    /// Only these rules or layers. Rules that cost safety, security or CPUs, or change the whole machine without a measured
    /// gain, are left out unless they are named here
    #[arg(long, value_name = "RULE", value_delimiter = ',')]
    pub(super) only: Vec<String>,

    /// All but these rules or layers
    #[arg(long, value_name = "RULE", value_delimiter = ',', conflicts_with = "only")]
    pub(super) except: Vec<String>,

    /// Files of the kernel, with `*` for any part of a name, and what somebody wants in them whatever rules say.
    #[arg(skip)]
    pub(super) settings: BTreeMap<String, String>,

    /// Whether a command named the rules, so that rules that ask for nothing need no line.
    #[arg(skip)]
    #[serde(skip)]
    pub(super) silent: bool,
}

/// Kernel parameters that give CPUs apart what a running kernel cannot.
const OF_CPUS: [&str; 4] = ["isolcpus=", "nohz_full=", "rcu_nocbs=", "irqaffinity="];

impl Selection {
    /// These rules, for CPUs that are to be for real time alone.
    pub fn of_rules(rules: &[&str], cpus: CpuList) -> Self {
        let only = rules.iter().map(|&rule| rule.to_owned()).collect();
        Self { profile: vec![Profile::Isolated], isolate: Some(cpus), only, silent: true, ..Self::default() }
    }

    /// What would be written on this machine, or on the one whose files are at `path`.
    pub fn plan(&self, path: Option<&Path>) -> Result<Plan> {
        self.plan_for(&root_at(path)?)
    }

    /// The CPUs that are named.
    pub(super) fn isolated(&self) -> CpuList {
        self.isolate.clone().unwrap_or_default()
    }

    /// The options for a trial of some of the rules: ` --isolate 2-3`.
    pub(super) fn for_trial(&self) -> String {
        let profile: Vec<String> = self.profile.iter().map(ToString::to_string).collect();
        let profile = (!profile.is_empty()).then(|| format!(" --profile {}", profile.join(",")));
        let isolate = self.isolate.as_ref().map(|cpus| format!(" --isolate {cpus}"));
        profile.into_iter().chain(isolate).collect()
    }

    /// The same choice for another command: ` --isolate 2-3 --only rn-thp`.
    pub(super) fn arguments(&self) -> String {
        let list = |name: &str, rules: &[String]| {
            (!rules.is_empty()).then(|| format!(" {name} {}", rules.join(",")))
        };
        let rules = [list("--only", &self.only), list("--except", &self.except)];
        self.for_trial() + &rules.into_iter().flatten().collect::<String>()
    }

    /// How the CPUs of the machine at `root` are divided.
    pub(super) fn division(&self, root: &SysRoot) -> Result<Division> {
        let survey = survey_of(root, self.isolate.as_ref())?;
        Ok(Division::new(survey.isolated().clone(), &set(&survey, "cpus.online")))
    }

    /// That every rule and layer that is named is there.
    pub fn check_rules(&self) -> Result<()> {
        let rules = Rules::built_in().map_err(|error| Error::new(error, ""))?;
        [&self.only, &self.except].into_iter().try_for_each(|named| check::ids(&rules, named).map(drop))
    }

    /// The words that failed rules ask for on the kernel command line of the machine at `root`. What costs safety or security is
    /// among them only where its rule is named.
    pub fn parameters(&self, root: &SysRoot) -> Result<Parameters> {
        let rules = Rules::built_in().map_err(|error| Error::new(error, ""))?;
        let (only, except) = (check::ids(&rules, &self.only)?, check::ids(&rules, &self.except)?);
        let survey = survey_of(root, self.isolate.as_ref())?;
        let request = Request { profiles: self.profile.clone(), rules: only };
        let mut audit = audit::audit(&survey, rules.all(), &request);
        audit.findings.retain(|finding| !except.contains(&finding.rule));
        Ok(audit::emit::parameters(&audit, &rules, &self.only))
    }

    /// What a running kernel cannot change for the CPUs that `--isolate` names, and the next boot could; none where rules are
    /// named, or no CPUs are.
    pub(super) fn next_boot(&self, root: &SysRoot, all: bool) -> Result<Option<String>> {
        let named = self.isolate.as_ref().filter(|cpus| !cpus.is_empty() && self.only.is_empty());
        let Some(cpus) = named else { return Ok(None) };
        let words = self.parameters(root)?.words;
        let command = format!("worstcase tune persist --boot{}", self.for_trial());
        let is_of_cpus = |word: &&String| OF_CPUS.iter().any(|name| word.starts_with(name));
        let shown: Vec<&str> =
            words.iter().filter(|word| all || is_of_cpus(word)).map(String::as_str).collect();
        let among = if shown.len() < words.len() { "among them " } else { "" };
        let mut text = match (words.len(), shown.is_empty()) {
            (0, _) => String::new(),
            (count, true) => format!("After a reboot: {count} more ({command})\n"),
            (count, false) => {
                format!("After a reboot: {count} more, {among}{} ({command})\n", shown.join(" "))
            }
        };
        if !words.iter().any(|word| word.starts_with("nohz_full=")) {
            text += &format!(
                "A thread that polls needs nohz_full={cpus} too, which stops the tick and makes the way into the kernel longer: \
                 --profile poll\n"
            );
        }
        Ok(Some(text))
    }

    /// What would be written on the machine at `root`.
    pub(super) fn plan_for(&self, root: &SysRoot) -> Result<Plan> {
        let (requests, real_time) = self.requests_for(root)?;
        Ok(tune::plan(root, &requests, &real_time))
    }

    /// What is asked for on the machine at `root`, and its CPUs for real time.
    pub(super) fn requests_for(&self, root: &SysRoot) -> Result<(Vec<tune::Request>, CpuList)> {
        let rules = Rules::built_in().map_err(|error| Error::new(error, ""))?;
        let (only, except) = (check::ids(&rules, &self.only)?, check::ids(&rules, &self.except)?);
        let survey = survey_of(root, self.isolate.as_ref())?;
        let request = Request { profiles: self.profile.clone(), rules: only };
        let audit = audit::audit(&survey, rules.all(), &request);
        let in_vain = idle(&audit, &self.only).filter(|_| !self.silent);
        let of_rules = requests(&audit, &rules, &self.only).into_iter().chain(in_vain);
        let of_rules = of_rules.filter(|request| !except.contains(&request.rule));
        Ok((own(&self.settings).chain(of_rules).collect(), real_time(&survey)))
    }

    /// The CPUs for real time of the machine at `root`.
    pub(super) fn real_time(&self, root: &SysRoot) -> Result<CpuList> {
        Ok(real_time(&survey_of(root, self.isolate.as_ref())?))
    }
}

/// Those set apart, else all.
fn real_time(survey: &Survey) -> CpuList {
    let isolated = survey.isolated().clone();
    if isolated.is_empty() { set(survey, "cpus.online") } else { isolated }
}

//! Which rules are to pass, and what that comes to.

use std::collections::BTreeMap;
use std::path::Path;

use audit::emit::Parameters;
use audit::{Profile, Request, Rules};
use clap::Args;
use serde::Deserialize;
use survey::Survey;
use sysroot::SysRoot;
use tune::Plan;
use units::CpuList;

use super::requests::{idle, own, requests, reserved_cost};
use crate::commands::check;
use crate::commands::check::subject::{root_at, set, survey_of};
use crate::error::{CommandError, Result};

/// What is to be changed. A file of choice has the same fields.
#[derive(Args, Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Selection {
    /// What you run: isolated, poll or general; stock, rt or evl; guest or host; several with commas [default: what the machine is]
    #[arg(long, value_name = "PROFILE", value_delimiter = ',')]
    pub(super) profile: Vec<Profile>,

    /// CPUs that are, or are to be, for real time alone [default: those that the kernel isolates]
    #[arg(long, value_name = "CPUS")]
    pub(super) isolate: Option<CpuList>,

    /// Only these rules or layers; what costs safety, security or CPUs, and changes of the whole machine without a measured gain, only where their rule is named here
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

    /// That every rule and layer that is named is there.
    pub fn check_rules(&self) -> Result<()> {
        let rules = Rules::built_in().map_err(|error| CommandError::new(error, ""))?;
        [&self.only, &self.except].into_iter().try_for_each(|named| check::ids(&rules, named).map(drop))
    }

    /// The words that failed rules ask for on the kernel command line of the machine at `root`. What costs safety or security is
    /// among them only where its rule is named.
    pub fn parameters(&self, root: &SysRoot) -> Result<Parameters> {
        let rules = Rules::built_in().map_err(|error| CommandError::new(error, ""))?;
        let (only, except) = (check::ids(&rules, &self.only)?, check::ids(&rules, &self.except)?);
        let survey = survey_of(root, self.isolate.as_ref())?;
        let request = Request { profiles: self.profile.clone(), rules: only };
        let mut audit = audit::audit(&survey, rules.all(), &request);
        let mut reserved = Vec::new();
        audit.findings.retain(|finding| {
            let cost = rules.get(&finding.rule).filter(|rule| !rule.cure.boot.is_empty());
            let cost = cost.and_then(reserved_cost).filter(|_| !self.only.contains(&finding.rule));
            let is_failed = finding.outcome == audit::Outcome::Failed;
            reserved
                .extend(cost.iter().filter(|_| is_failed).map(|cost| (finding.rule.clone(), cost.clone())));
            cost.is_none() && !except.contains(&finding.rule)
        });
        let mut words = audit::emit::parameters(&audit, &rules);
        words.left_out.extend(reserved);
        Ok(words)
    }

    /// What a running kernel cannot change for the CPUs that `--isolate` names, and the next boot could; none where rules are
    /// named, or no CPUs are.
    pub(super) fn next_boot(&self, root: &SysRoot) -> Result<Option<String>> {
        let named = self.isolate.as_ref().filter(|cpus| !cpus.is_empty() && self.only.is_empty());
        let Some(cpus) = named else { return Ok(None) };
        let words = self.parameters(root)?.words;
        let mut text = match words.len() {
            0 => String::new(),
            count => format!(
                "after a reboot: {count} more (worstcase tune persist --words writes them): {}\n",
                words.join(" ")
            ),
        };
        if !words.iter().any(|word| word.starts_with("nohz_full=")) {
            text += &format!(
                "for a thread that polls also nohz_full={cpus}, which stops the tick and makes the way into the kernel longer: \
                 --profile poll asks for it\n"
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
        let rules = Rules::built_in().map_err(|error| CommandError::new(error, ""))?;
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

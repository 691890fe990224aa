//! CPUs for real time and CPUs for everything else.

use serde::{Deserialize, Serialize};
use units::CpuList;

/// Which CPUs are set apart.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct Division {
    /// For real time: `{isolated}`.
    pub isolated: CpuList,
    /// For everything else: `{housekeeping}`.
    pub housekeeping: CpuList,
}

impl Division {
    /// `isolated` of the CPUs that are `online`.
    pub fn new(isolated: CpuList, online: &CpuList) -> Self {
        Self { housekeeping: online.difference(&isolated), isolated }
    }

    /// `text` with `{isolated}`, `{housekeeping}`, `{isolated-mask}` and `{housekeeping-mask}` replaced; where no CPU is
    /// set apart, by words in capitals for the reader to replace.
    pub fn fill(&self, text: &str) -> String {
        if self.isolated.is_empty() {
            return text
                .replace("{isolated}", "CPUS")
                .replace("{housekeeping}", "OTHER-CPUS")
                .replace("{isolated-mask}", "MASK")
                .replace("{housekeeping-mask}", "OTHER-MASK");
        }
        text.replace("{isolated}", &self.isolated.to_string())
            .replace("{housekeeping}", &self.housekeeping.to_string())
            .replace("{isolated-mask}", &self.isolated.to_mask())
            .replace("{housekeeping-mask}", &self.housekeeping.to_mask())
    }

    /// Whether `text` speaks of CPUs that are set apart.
    pub fn is_needed_by(text: &str) -> bool {
        ["{isolated", "{housekeeping"].iter().any(|word| text.contains(word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_set_apart_is_left_to_the_reader() {
        assert_eq!(Division::default().fill("isolcpus=domain,{isolated}"), "isolcpus=domain,CPUS");
    }

    #[test]
    fn words_are_filled_in() {
        let division = Division::new("2-3".parse().unwrap(), &"0-3".parse().unwrap());
        assert_eq!(division.fill("isolcpus=domain,{isolated}"), "isolcpus=domain,2-3");
        assert_eq!(division.fill("{housekeeping} {housekeeping-mask} {isolated-mask}"), "0-1 3 c");
        assert!(Division::is_needed_by("each:/sys/cpu{isolated}/x") && !Division::is_needed_by("quiet"));
    }
}

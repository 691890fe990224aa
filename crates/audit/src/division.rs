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
            .replace("{isolated-mask}", &mask(&self.isolated))
            .replace("{housekeeping-mask}", &mask(&self.housekeeping))
    }

    /// Whether `text` speaks of CPUs that are set apart.
    pub fn is_needed_by(text: &str) -> bool {
        ["{isolated", "{housekeeping"].iter().any(|word| text.contains(word))
    }
}

/// In hexadecimal, groups of 32 CPUs with commas between them, as the kernel prints and takes masks (lib/bitmap.c).
fn mask(cpus: &CpuList) -> String {
    let highest = cpus.iter().next_back().map_or(0, |cpu| cpu.0);
    let mut groups = vec![0_u32; highest as usize / 32 + 1];
    for cpu in cpus.iter() {
        groups[cpu.0 as usize / 32] |= 1 << (cpu.0 % 32);
    }
    let mut texts = groups.iter().rev();
    let first = texts.next().map(|group| format!("{group:x}"));
    first.into_iter().chain(texts.map(|group| format!("{group:08x}"))).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_as_the_kernel_prints_them() {
        let mask = |list: &str| mask(&list.parse().unwrap());
        assert_eq!(mask(""), "0");
        assert_eq!(mask("0-3"), "f");
        assert_eq!(mask("2-3"), "c");
        assert_eq!(mask("32"), "1,00000000");
        assert_eq!(mask("0,35,64"), "1,00000008,00000001");
    }

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

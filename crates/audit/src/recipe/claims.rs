//! What the sentences of a whole page claim, beside what its lines do: CPUs that are said to be isolated, clocks with two masters,
//! files that another release reads.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use machine::grammar;
use serde::Deserialize;
use units::CpuList;

use super::{Remark, RemarkId, ideas, prose, quantities};

/// What a text claims, and what its lines do; see the head of `claims.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    phrases: BTreeMap<String, Vec<String>>,
    claim: Vec<Claim>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Claim {
    #[serde(default)]
    line: Vec<Vec<String>>,
    #[serde(default)]
    starts: Vec<String>,
    #[serde(default)]
    also: Vec<Vec<String>>,
    #[serde(default)]
    before: Vec<Vec<String>>,
    #[serde(default)]
    says: Vec<String>,
    #[serde(default)]
    unless: Vec<String>,
    text: String,
    instead: Option<String>,
}

/// The table; empty if the file that stands in the program were wrong, which a test excludes.
static TABLE: LazyLock<Table> =
    LazyLock::new(|| read().unwrap_or_else(|_| Table { phrases: BTreeMap::new(), claim: Vec::new() }));

fn read() -> serde_json::Result<Table> {
    let json = machine::packed::text(include_bytes!(concat!(env!("OUT_DIR"), "/claims.json.gz")));
    record::json::read(json.as_bytes())
}

/// What is wrong with the lines of a text for what the text says of them.
pub fn remarks(text: &str) -> Vec<Remark> {
    let lower = text.to_lowercase();
    let page = Page { text, stemmed: ideas::stemmed(&lower), lower };
    let mut remarks: Vec<Remark> = TABLE.claim.iter().filter_map(|claim| claim.remark(&page)).collect();
    remarks.extend([interrupts_on_isolated(&page), other_profile(&page)].into_iter().flatten());
    remarks.extend(outside_isolated(&page));
    remarks
}

impl Claim {
    fn remark(&self, page: &Page) -> Option<Remark> {
        let (number, line) = match self.starts.is_empty() {
            true => page.line(|line| has_each(line, &self.line) && prose::advises(line))?,
            false => page.start_of(&self.starts)?,
        };
        let others = || page.text.lines().enumerate().filter(|(index, _)| index + 1 != number);
        let has_other = self.also.is_empty() || others().any(|(_, line)| has_each(line, &self.also));
        let above = || others().take_while(|(index, _)| index + 1 < number);
        let has_before = self.before.is_empty() || above().any(|(_, line)| has_each(line, &self.before));
        let is_said = self.says.is_empty() || page.claims(&self.says);
        let is_one = has_other && has_before && is_said && !page.has(&self.unless);
        is_one.then(|| error((number, line), &*self.text).perhaps_instead(self.instead.as_deref()))
    }
}

/// Whether a line has one of each group.
fn has_each(line: &str, groups: &[Vec<String>]) -> bool {
    groups.iter().all(|group| group.iter().any(|sign| line.contains(sign.as_str())))
}

struct Page<'a> {
    text: &'a str,
    lower: String,
    stemmed: String,
}

impl<'a> Page<'a> {
    /// Whether it has one of the phrases, of which those with `@` are groups.
    fn has(&self, phrases: &[String]) -> bool {
        phrases.iter().any(|phrase| match phrase.strip_prefix('@').and_then(|name| TABLE.phrases.get(name)) {
            Some(group) => self.has(group),
            None => self.lower.contains(phrase.as_str()),
        })
    }

    fn says(&self, phrases: &[&str]) -> bool {
        phrases.iter().any(|phrase| self.lower.contains(phrase))
    }

    /// Whether a sentence has one of the phrases, and denies nothing before it.
    fn claims(&self, phrases: &[String]) -> bool {
        phrases.iter().any(|phrase| match phrase.strip_prefix('@').and_then(|name| TABLE.phrases.get(name)) {
            Some(group) => self.claims(group),
            None => ideas::claims(&self.stemmed, phrase),
        })
    }

    /// The first line that `is` so, from 1.
    fn line(&self, is: impl Fn(&str) -> bool) -> Option<(usize, &'a str)> {
        self.text.lines().enumerate().find(|(_, line)| is(line)).map(|(index, line)| (index + 1, line))
    }

    /// The line that starts one of these services.
    fn start_of(&self, services: &[String]) -> Option<(usize, &'a str)> {
        self.line(|line| {
            let words: Vec<&str> = line.split([' ', '`', '"']).collect();
            let starts = words.contains(&"systemctl")
                && words.iter().any(|word| matches!(*word, "enable" | "start" | "restart" | "unmask"));
            starts
                && words
                    .iter()
                    .any(|word| services.iter().any(|service| service == word.trim_end_matches(".service")))
        })
    }

    /// The CPUs of the text's isolcpus=, where it has one list only.
    fn isolated(&self) -> Option<CpuList> {
        let ends = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`');
        let mut lists = self.text.match_indices("isolcpus=").filter_map(|(at, sign)| {
            let value = self.text[at + sign.len()..].split(ends).next()?;
            let first = value.find(|c: char| c.is_ascii_digit())?;
            grammar::cpu_list(value[first..].trim_end_matches(['.', ',', ';', ')']), None, None).ok()
        });
        let first = lists.next().filter(|list| !list.is_empty())?;
        lists.all(|list| list == first).then_some(first)
    }
}

fn error((line, shown): (usize, &str), message: impl Into<String>) -> Remark {
    Remark::error(line, RemarkId::Contradiction, shown, message)
}

/// Interrupts that are sent to isolated CPUs by a text that wants them elsewhere.
fn interrupts_on_isolated(page: &Page) -> Option<Remark> {
    let isolated = page.isolated()?;
    let wants_none = page.says(&[
        "no device interrupt",
        "see no interrupt",
        "no interrupts on",
        "interrupts off the",
        "interrupts away from",
        "keep the isolated core clean",
        "irqs away from",
        "irqs off the",
    ]);
    let line = page.line(|line| {
        written_mask(line).is_some_and(|cpus| !cpus.is_empty() && cpus.difference(&isolated).is_empty())
    })?;
    wants_none.then(|| error(line, format!("sends the interrupt to the isolated CPUs {isolated}")))
}

/// The CPUs of `echo MASK > .../smp_affinity`, through tee or not.
fn written_mask(line: &str) -> Option<CpuList> {
    let (_, value) = line.split_once("echo ")?;
    let value = value.split_whitespace().next()?.trim_matches(['"', '\'']);
    let end = |c: char| c.is_whitespace() || matches!(c, '`' | '"' | ';');
    let path = line.split(end).find(|word| word.contains("smp_affinity"))?;
    match path.ends_with("_list") {
        true => grammar::cpu_list(value, None, None).ok(),
        false => CpuList::from_mask(value.trim_start_matches("0x")),
    }
}

/// Files of variables that tuned's profiles read, each its own.
fn other_profile(page: &Page) -> Option<Remark> {
    const PROFILES: [&str; 4] =
        ["realtime-virtual-guest", "realtime-virtual-host", "cpu-partitioning", "realtime"];
    let file = |profile: &str| format!("/etc/tuned/{profile}-variables.conf");
    let written: Vec<&str> =
        PROFILES.into_iter().filter(|profile| page.text.contains(&file(profile))).collect();
    let [written] = written.as_slice() else { return None };
    let line = page.line(|line| line.contains("tuned-adm profile "))?;
    let (_, chosen) = line.1.split_once("tuned-adm profile ")?;
    let chosen = chosen.split([' ', '`', '"']).next()?;
    let is_other = PROFILES.contains(&chosen) && chosen != *written;
    is_other.then(|| error(line, format!("the profile reads {}", file(chosen))))
}

/// Commands that a sentence or comment puts on the isolated CPUs, with none of these in their list.
fn outside_isolated(page: &Page) -> Vec<Remark> {
    let Some(isolated) = page.isolated() else { return Vec::new() };
    let (mut said, mut fenced) = (String::new(), false);
    let mut remarks = Vec::new();
    for (index, line) in page.text.lines().enumerate() {
        let trimmed = line.trim();
        let is_sentence = prose::introduces(trimmed) || trimmed.starts_with('#');
        let lower = format!("{said} {trimmed}").to_lowercase();
        let is_meant = lower.contains("isolated c") || lower.contains("isolated p");
        let is_other = [
            "housekeeping",
            "non-isolated",
            "not isolated",
            "away from",
            "off the isolated",
            "everything else",
            "keep",
            "outside",
        ]
        .iter()
        .any(|word| lower.contains(word));
        let is_kept_off = [
            "away from the isolated",
            "off the isolated",
            "not on the isolated",
            "outside the isolated",
            "housekeeping c",
        ]
        .iter()
        .any(|phrase| lower.contains(phrase))
            && !["everything else", "other", "rest", "irq", "interrupt"]
                .iter()
                .any(|word| lower.contains(word));
        let inside = quantities::cpus_that_run(trimmed)
            .filter(|list| is_kept_off && !list.is_empty() && list.difference(&isolated).is_empty());
        if let Some(list) = inside {
            let message = format!("runs on the isolated CPUs {list}: the text keeps it off them");
            remarks.push(error((index + 1, line), message));
        }
        let list = quantities::cpus_that_run(trimmed).filter(|_| is_meant && !is_other);
        if let Some(list) = list.filter(|list| !list.is_empty() && list.intersection(&isolated).is_empty()) {
            let message = format!("runs on CPUs {list}: isolated are {isolated}");
            remarks.push(error((index + 1, line), message));
        }
        fenced ^= trimmed.starts_with("```");
        if is_sentence {
            said = trimmed.to_owned();
        } else if !(trimmed.is_empty() || fenced || trimmed.ends_with('\\')) {
            said.clear();
        }
    }
    remarks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_well_formed() {
        let table = read().unwrap();
        let phrases = table.claim.iter().flat_map(|claim| claim.says.iter().chain(&claim.unless));
        for phrase in phrases.chain(table.phrases.values().flatten()) {
            assert_eq!(*phrase, phrase.to_lowercase());
            let name = phrase.strip_prefix('@').filter(|name| *name != "reboot");
            assert!(name.is_none_or(|name| table.phrases.contains_key(name)), "{phrase}");
        }
        assert!(table.claim.iter().all(|claim| claim.line.is_empty() != claim.starts.is_empty()));
    }

    #[test]
    fn claims_that_hold_are_fine() {
        for fine in [
            "isolcpus=2-3\nRun it on the isolated CPUs:\ntaskset -c 2 ./loop\n",
            "isolcpus=2-3\n# keep the shell off the isolated CPUs\ntaskset -c 0 bash\n",
            "phc2sys -s eth0 -c CLOCK_REALTIME -w\nsystemctl disable --now systemd-timesyncd\n",
            "ptp4l -i eth0 -S -m with software time stamps\n",
            "echo 1 > /proc/irq/9/smp_affinity\nsystemctl disable --now irqbalance\n",
            "# /etc/tuned/realtime-variables.conf\nisolated_cores=2\ntuned-adm profile realtime\n",
            "Raspberry Pi OS Bookworm: /boot/firmware/cmdline.txt\n",
        ] {
            assert_eq!(remarks(fine), [], "{fine}");
        }
    }

    #[test]
    fn claims_that_lines_do_not_keep_are_errors() {
        for wrong in [
            "isolcpus=2-3\nRun it on the isolated CPUs:\ntaskset -c 0 ./loop\n",
            "isolcpus=3 so that CPU 3 sees no interrupts on it:\necho 8 > /proc/irq/9/smp_affinity\nno interrupts on it\n",
            "phc2sys -s eth0 -c CLOCK_REALTIME -w\nsystemctl enable --now systemd-timesyncd\n",
            "The hardware clock follows:\nptp4l -i eth0 -S -m\n",
            "Let the system clock follow the NIC:\nphc2sys -s CLOCK_REALTIME -c eth0 -w\n",
            "echo 1 > /proc/irq/9/smp_affinity\nsystemctl enable --now irqbalance\n",
            "# /etc/tuned/cpu-partitioning-variables.conf\nisolated_cores=2\ntuned-adm profile realtime\n",
            "Raspberry Pi OS Bookworm: write it to /boot/cmdline.txt\n",
            "The stock kernel of Debian:\nRTIRQ_NAME_LIST=\"snd\"\n",
            "Ubuntu 24.04:\ndocker run --cpu-rt-runtime=95000 x\n",
        ] {
            assert_eq!(remarks(wrong).len(), 1, "{wrong}: {:?}", remarks(wrong));
        }
    }
}

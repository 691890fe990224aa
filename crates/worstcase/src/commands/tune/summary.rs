//! A plan at a glance: alike changes in one line, the likeliest gain first, and what to try first.

use std::cmp::Reverse;

use audit::{Division, Gain, Grade, Rules};
use report::next;
use tune::plan::BY_NAME;
use tune::{Plan, Step};
use units::{CpuList, InOrder};

use super::requests::OWN;
use super::selection::Selection;
use super::shown::{conflicts, lines, paragraphs, refusals};
use crate::commands::applied;
use crate::output::{self, Stream};

/// How many changes are proposed for a trial.
const TRIED: usize = 3;

/// Columns in front of the price: gain, change, writes, rule.
const GAIN: usize = 6;
const CHANGE: usize = 42;
/// On the narrowest terminal.
const LEAST_CHANGE: usize = 16;
const WRITES: usize = 6;

/// Writes that one rule asks for.
struct Group<'a> {
    rule: &'a str,
    gain: Option<Gain>,
    is_measured: bool,
    change: String,
    writes: usize,
    /// What it costs; empty for nothing that is known.
    price: String,
}

/// The groups, those that are likely to gain most first.
fn groups<'a>(plan: &'a Plan, rules: &Rules, division: &Division) -> Vec<Group<'a>> {
    let mut groups: Vec<Group> = Vec::new();
    for step in &plan.steps {
        let Some(rule) = step.rules.first() else { continue };
        match groups.iter_mut().find(|group| group.rule == rule) {
            Some(group) => group.writes += 1,
            None => groups.push(group(rule, step, rules, division)),
        }
    }
    groups.order_by_key(|group| Reverse((group.rule == OWN, group.gain, group.is_measured)));
    groups
}

fn group<'a>(name: &'a str, step: &Step, rules: &Rules, division: &Division) -> Group<'a> {
    let rule = rules.get(name);
    let change = rule.map(|rule| rule.change.as_ref().unwrap_or(&rule.title));
    let change =
        change.map_or_else(|| format!("{} to {}", step.target, step.new), |change| filled(change, division));
    let costs: Vec<&str> = rule.iter().flat_map(|rule| rule.costs.values()).map(String::as_str).collect();
    Group {
        rule: name,
        gain: rule.and_then(|rule| rule.gain),
        is_measured: rule.is_some_and(|rule| rule.evidence == Grade::Measured),
        change,
        writes: 1,
        price: costs.join("; "),
    }
}

/// With this machine's CPUs; one of them is no plural.
fn filled(change: &str, division: &Division) -> String {
    let sets = [("{isolated}", &division.isolated), ("{housekeeping}", &division.housekeeping)];
    let single =
        sets.iter().filter(|(_, cpus)| cpus.len() == 1).fold(change.to_owned(), |text, (name, _)| {
            text.replace(&format!("CPUs {name}"), &format!("CPU {name}"))
        });
    division.fill(&single)
}

/// The plan of `selection` for people. `arguments` are those that ask for it again; none where it is another machine's, where
/// there is nothing to type here.
pub fn summary(
    plan: &Plan,
    rules: &Rules,
    selection: &Selection,
    division: &Division,
    next_boot: &str,
    arguments: Option<&str>,
) -> String {
    let style = output::style(Stream::Output);
    let groups = groups(plan, rules, division);
    let mut text = head(&groups, plan.steps.len(), &selection.isolated());
    if !groups.is_empty() {
        text += &table(&groups, style.width);
    }
    if !next_boot.is_empty() {
        text += &paragraphs(next_boot);
    }
    text += &left(plan, selection);
    text += &conflicts(plan);
    if let Some(arguments) = arguments.filter(|_| !groups.is_empty()) {
        text.push('\n');
        let commands = match applied::is_applied() {
            true => beside_applied(),
            false => commands(&groups, selection, arguments),
        };
        text.extend(next::steps(&commands, &style).into_iter().map(|line| line + "\n"));
    }
    text
}

/// `To isolate CPUs 2-3: 9 changes (490 writes), all undone by worstcase tune undo.`
fn head(groups: &[Group], writes: usize, isolated: &CpuList) -> String {
    let aim = if isolated.is_empty() { String::new() } else { format!("To isolate {}: ", isolated.named()) };
    match groups.len() {
        0 => "Nothing would be changed.\n".to_owned(),
        count => {
            lines(
                &format!(
                    "{aim}{} ({}), all undone by worstcase tune undo.",
                    counted(count, "change"),
                    counted(writes, "write")
                ),
                0,
            ) + "\n"
        }
    }
}

fn table(groups: &[Group], width: usize) -> String {
    let rule = groups.iter().map(|group| group.rule.chars().count()).max().unwrap_or(0);
    // What the other columns leave, and no more than is needed.
    let longest = groups.iter().map(|group| group.change.chars().count()).max().unwrap_or(0);
    let room = width.saturating_sub(2 + GAIN + 2 + 2 + WRITES + 2 + rule);
    let column = longest.clamp(LEAST_CHANGE, CHANGE).min(room.max(LEAST_CHANGE));
    let price = 2 + GAIN + 2 + column + 2 + WRITES + 2 + rule + 2;
    // Too narrow for prices in a column of their own: each stands below its change.
    let below = price + 24 > width;
    let title = if below { "" } else { "price" };
    let mut text = format!(
        "  {:<GAIN$}  {:<column$}  {:>WRITES$}  {:<rule$}  {title}",
        "gain", "change", "writes", "rule"
    )
    .trim_end()
    .to_owned()
        + "\n";
    for group in groups {
        let gain = group.gain.map_or("-", Gain::name);
        let change = report::paragraph(&group.change, 0, column);
        let mut change = change.lines();
        let first = change.next().unwrap_or_default();
        let row =
            format!("  {gain:<GAIN$}  {first:<column$}  {:>WRITES$}  {:<rule$}", group.writes, group.rule);
        let more: String = change.map(|line| format!("{:1$}{line}\n", "", 2 + GAIN + 2)).collect();
        if below {
            text += &(row.trim_end().to_owned() + "\n" + &more);
            if !group.price.is_empty() {
                text += &lines(&format!("price: {}", group.price), 2 + GAIN + 2);
            }
        } else {
            let words = if group.price.is_empty() { "-" } else { &group.price };
            let prices = report::paragraph(words, 0, width - price);
            let indent = " ".repeat(price);
            let heads = std::iter::once(format!("{row}  ")).chain(std::iter::repeat(indent));
            text.extend(heads.zip(prices.lines()).map(|(head, line)| head + line + "\n"));
            text += &more;
        }
    }
    text
}

/// What stays as it is: counted, or listed where its rules were named.
fn left(plan: &Plan, selection: &Selection) -> String {
    if !selection.only.is_empty() {
        return refusals(&plan.refusals);
    }
    let (by_name, others): (Vec<_>, Vec<_>) =
        plan.refusals.iter().partition(|refusal| refusal.why_not.contains(BY_NAME));
    let mut text = String::new();
    if !others.is_empty() {
        text += &lines(
            &format!(
                "Left as it is, because it cannot be changed while the system runs: {} (reasons: --all)",
                others.len()
            ),
            0,
        );
    }
    let mut rules: Vec<&str> = by_name.iter().map(|refusal| refusal.rule.as_str()).collect();
    rules.dedup();
    if !rules.is_empty() {
        let why = "because they cost safety or security, or change the whole machine";
        text += &lines(&format!("Left out {why}, unless --only names them: {}", rules.join(", ")), 0);
    }
    text
}

/// A trial of those that are likely to gain most, and what writes them all.
fn commands(groups: &[Group], selection: &Selection, arguments: &str) -> Vec<(String, String)> {
    let tried: Vec<&str> =
        groups.iter().filter(|group| group.gain.is_some()).take(TRIED).map(|group| group.rule).collect();
    let as_root = if rustix::process::geteuid().is_root() { "" } else { "as root: " };
    let apply = (format!("worstcase tune apply{arguments}"), format!("{as_root}write them all"));
    if tried.is_empty() {
        return vec![apply];
    }
    let purpose = match tried.len() {
        1 => format!("{as_root}measure whether it helps"),
        count => format!(
            "{as_root}measure whether the first {} help, each by itself",
            if count == 2 { "two" } else { "three" }
        ),
    };
    vec![(format!("worstcase tune trial{} {}", selection.for_trial(), tried.join(" ")), purpose), apply]
}

/// Both a trial and what is applied want the settings as they were.
fn beside_applied() -> Vec<(String, String)> {
    vec![
        ("worstcase tune status".to_owned(), "what is applied already".to_owned()),
        ("worstcase tune undo".to_owned(), "take it back, before a trial or an apply of these".to_owned()),
    ]
}

/// `1 change`, `2 changes`.
fn counted(count: usize, of: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {of}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use tune::Target;

    fn plan_of(steps: &[(&str, &str)]) -> Plan {
        let step = |(rule, path): &(&str, &str)| Step {
            rules: vec![(*rule).to_owned()],
            target: Target::File((*path).to_owned()),
            old: "1".into(),
            new: "0".into(),
            why: String::new(),
            effects: vec!["throughput: slower".into()],
        };
        Plan { steps: steps.iter().map(step).collect(), ..Plan::default() }
    }

    #[test]
    fn alike_changes_are_one_line_and_the_likeliest_gain_comes_first() {
        let rules = Rules::built_in().unwrap();
        let division = Division::new("2-3".parse().unwrap(), &"0-3".parse().unwrap());
        let slabs: Vec<String> =
            (0..430).map(|number| format!("/sys/kernel/slab/{number}/cpu_partial")).collect();
        let mut steps: Vec<(&str, &str)> =
            slabs.iter().map(|path| ("kc-slub-cpu-partial", path.as_str())).collect();
        steps.extend([("rn-cstate-per-cpu", "/a"), ("rn-thp", "/b"), ("rn-irq-affinity", "/c")]);
        let plan = plan_of(&steps);
        let groups = groups(&plan, &rules, &division);
        let found: Vec<(&str, usize)> = groups.iter().map(|group| (group.rule, group.writes)).collect();
        assert_eq!(
            filled("send to CPUs {isolated}", &Division::new("1".parse().unwrap(), &"0-1".parse().unwrap())),
            "send to CPU 1"
        );
        let wanted =
            [("rn-cstate-per-cpu", 1), ("rn-irq-affinity", 1), ("rn-thp", 1), ("kc-slub-cpu-partial", 430)];
        assert_eq!(found, wanted, "measured before what was not, large before medium before small");
        assert_eq!(groups[1].change, "move interrupts to CPUs 0-1");
        let text = summary(&plan, &rules, &Selection::default(), &division, "", Some(" --isolate 2-3"));
        assert!(text.contains("worstcase tune trial rn-cstate-per-cpu rn-irq-affinity rn-thp"), "{text}");
        assert!(text.contains("4 changes (433 writes)"), "{text}");
        let width = output::style(output::Stream::Output).width;
        assert!(text.lines().all(|line| line.chars().count() <= width), "{text}");
    }

    #[test]
    fn each_change_keeps_its_price_whole_at_every_width() {
        let group = |price: &str| Group {
            rule: "rn-systemd-slices",
            gain: Some(Gain::Medium),
            is_measured: false,
            change: "keep services of the system on the other CPUs".into(),
            writes: 3,
            price: price.into(),
        };
        let groups = [group("services and users have fewer CPUs"), group(""), group("none of it is free")];
        for width in 60..200 {
            let text = table(&groups, width);
            let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(text.lines().all(|line| line.chars().count() <= width), "{width}: {text}");
            let rows = text.lines().filter(|line| line.contains("rn-systemd-slices")).count();
            assert_eq!(rows, 3, "{width}: {text}");
            for price in ["services and", "fewer CPUs", "none of"] {
                assert!(words.contains(price), "{width}: {text}");
            }
        }
    }
}

//! What each instruction of a guest's worst wake-ups was for: causes by function, and the account of the worst.

use explain::cures;
use microscope::{Account, Comparison, Context, Named, Piece, Row, SHORT, rows};
use record::{Class, Unit};
use units::Nanos;

use crate::style::{Style, Tone};
use crate::text::{clip_inside, count_of, harmless, longest, named_row, percent};

/// Causes that are listed, the rest is one line.
const CAUSES: usize = 8;
/// Pieces and functions of the worst wake-up that are listed.
const PIECES: usize = 16;
const FUNCTIONS: usize = 24;
/// The unit of a guest in instruction time.
const UNIT: Unit = Unit::Instructions;

/// The accounts of the worst wake-ups under one load, the worst first; `not_found` more were not found when the guest ran again.
pub fn text(load: &str, accounts: &[Account], not_found: usize, style: &Style) -> String {
    let (Some(worst), Some(least)) = (accounts.first(), accounts.last()) else {
        return format!("{}: none of {} was found\n", harmless(load), count_of(not_found as u64, "wake-up"));
    };
    let head = format!(
        "{}: the {} worst wake-ups were {} to {} late",
        harmless(load),
        accounts.len(),
        UNIT.figure(least.latency),
        UNIT.with_name(worst.latency)
    );
    let mut lines = vec![style.paint(Tone::Strong, &head)];
    if not_found > 0 {
        lines.push(format!("  {} more not found", count_of(not_found as u64, "wake-up")));
    }
    lines.push(String::new());
    lines.extend(causes(accounts, style));
    lines.push(String::new());
    lines.extend(account(worst, style));
    lines.iter().map(|line| line.trim_end().to_owned() + "\n").collect()
}

/// Contradictions that are listed.
const CONTRADICTIONS: usize = 8;

/// The worst wake-ups of a load's traced repetition by the trace and by their instructions, the worst first; `not_found` more were not
/// found when the guest ran again.
pub fn compared(
    load: &str,
    median: Nanos,
    comparisons: &[Comparison],
    not_found: usize,
    style: &Style,
) -> String {
    let hits = count_of(comparisons.len() as u64, "traced wake-up");
    let head = format!("{}: {hits} by the trace and by their instructions", harmless(load));
    let mut lines = vec![style.paint(Tone::Strong, &head)];
    if not_found > 0 {
        lines.push(format!("  {} more not found", count_of(not_found as u64, "wake-up")));
    }
    if !comparisons.is_empty() {
        lines.push(String::new());
        lines.extend(each_compared(comparisons, style));
        lines.push(String::new());
        lines.extend(all_compared(median, comparisons));
    }
    lines.iter().map(|line| line.trim_end().to_owned() + "\n").collect()
}

fn each_compared(comparisons: &[Comparison], style: &Style) -> Vec<String> {
    let width = (style.width.saturating_sub(34) / 2).clamp(20, 44);
    let mut lines = vec![format!(
        "{:>12}  {:width$}  {:width$}    same   other",
        "instructions", "main cause by the trace", "by instructions"
    )];
    for one in comparisons {
        let of = |length: Nanos| percent(length.0, one.latency.0);
        let [trace, seen] =
            [&one.by_trace, &one.by_instructions].map(|named| clip_inside(&named_words(named), width));
        let mark = if one.agrees { ' ' } else { '!' };
        lines.push(format!(
            "{:>12}  {trace:width$} {mark}{seen:width$}  {:>5} %  {:>4} %",
            UNIT.figure(one.latency),
            of(one.same),
            of(one.other)
        ));
    }
    lines
}

fn named_words(named: &Named) -> String {
    let sort = match named.class {
        Class::Rival => "rival",
        Class::Usual => "each wake-up",
        class => cures::of(class).words,
    };
    match harmless(&named.culprit) {
        culprit if culprit.is_empty() => sort.to_owned(),
        culprit => format!("{culprit}: {sort}"),
    }
}

fn all_compared(median: Nanos, comparisons: &[Comparison]) -> Vec<String> {
    let sum = |of: fn(&Comparison) -> Nanos| comparisons.iter().fold(0, |sum, one| sum + of(one).0);
    let all = sum(|one| one.latency);
    let share = |of: fn(&Comparison) -> Nanos| percent(sum(of), all);
    let above: u64 = comparisons.iter().map(|one| one.above(median).0).sum();
    let named: u64 = comparisons.iter().map(|one| one.named_above(median).0).sum();
    let agree = comparisons.iter().filter(|one| one.agrees).count();
    let pieces: u32 = comparisons.iter().map(|one| one.pieces).sum();
    let contradicted = comparisons.iter().flat_map(|one| &one.contradicted);
    let count = contradicted.clone().count();
    let others = if agree < comparisons.len() { "; ! marks the others" } else { "" };
    let mut lines = vec![
        format!("main cause: the same in {agree} of {}{others}", comparisons.len()),
        format!(
            "time: {} % named as it was, {} % at the edge of what is, {} % recording the trace, {} % not known, {} % \
             named otherwise",
            share(|one| one.same),
            share(|one| one.edges),
            share(|one| one.recording),
            share(|one| one.unknown),
            share(|one| one.other)
        ),
        match above {
            0 => format!("nothing is above the untraced median of {} but recording", UNIT.with_name(median)),
            _ => format!(
                "above the untraced median of {}, without recording: {}, {} % of it named",
                UNIT.with_name(median),
                UNIT.figure(Nanos(above)),
                percent(named, above)
            ),
        },
        format!(
            "pieces of {} or more: {count} of {pieces} contradicted by their instructions",
            UNIT.with_name(SHORT)
        ),
    ];
    lines.extend(contradicted.take(CONTRADICTIONS).map(|one| {
        format!(
            "  at {}, {}: {}; ran: {}",
            UNIT.figure(one.at),
            UNIT.figure(one.length),
            harmless(&one.by_trace),
            harmless(&one.by_instructions)
        )
    }));
    lines
}

/// Causes of a tail that are named.
const HEAVIEST: usize = 3;

/// What the tails of several arms consist of: arm, load, and the accounts of its worst wake-ups, the worst first.
pub fn tails(tails: &[(String, String, Vec<Account>)], style: &Style) -> String {
    let room = tails.iter().map(|(arm, load, _)| arm.chars().count() + load.chars().count() + 2).max();
    let room = room.unwrap_or_default().clamp(9, 36);
    let width = style.width.saturating_sub(room + 23).clamp(24, 90);
    let head = "What the worst wake-ups consist of, the heaviest causes first";
    let mut lines = vec![style.paint(Tone::Strong, head)];
    lines.push(format!("{:room$}  {:>12}  share  cause", "", "instructions"));
    for (arm, load, accounts) in tails {
        let name = clip_inside(&format!("{}  {}", harmless(arm), harmless(load)), room);
        let Some((worst, least)) = accounts.first().zip(accounts.last()) else {
            lines.push(format!("{name:room$}  {:>12}", "not found"));
            continue;
        };
        let all = rows(accounts);
        let time = all.iter().fold(0, |sum, row| sum + row.time.0);
        let lateness = [format!("{} to", UNIT.figure(least.latency)), UNIT.figure(worst.latency)];
        for place in 0..HEAVIEST.min(all.len()).max(lateness.len()) {
            let name = if place == 0 { name.as_str() } else { "" };
            let lateness = lateness.get(place).map_or("", String::as_str);
            let head = format!("{name:room$}  {lateness:>12}  ");
            lines.push(all.get(place).map_or_else(
                || head.clone(),
                |one| {
                    let share = (100 * one.time.0 + time / 2) / time.max(1);
                    named_row(&format!("{head}{share:>3} %  "), &words(one), width, "")
                },
            ));
        }
    }
    lines.iter().map(|line| line.trim_end().to_owned() + "\n").collect()
}

fn causes(accounts: &[Account], style: &Style) -> Vec<String> {
    let all = rows(accounts);
    let time = all.iter().fold(0, |sum, row| sum + row.time.0);
    let width = style.width.saturating_sub(41).clamp(20, 76);
    let mut lines =
        vec![format!("{:width$}  hits  {:>12}    share  {:>10}", "cause", "instructions", "worst")];
    let line = |name: &str, hits: String, sum: u64, worst: String| {
        let (figure, share) = (UNIT.figure(Nanos(sum)), percent(sum, time));
        named_row("", name, width, &format!("  {hits:>4}  {figure:>12}  {share:>5} %  {worst:>10}"))
    };
    for row in all.iter().take(CAUSES) {
        lines.push(line(&words(row), row.hits.to_string(), row.time.0, UNIT.figure(row.worst)));
    }
    let rest = all.iter().skip(CAUSES).fold(0, |sum, row| sum + row.time.0);
    if rest > 0 {
        let name = count_of(all.len().saturating_sub(CAUSES) as u64, "smaller cause");
        lines.push(line(&name, String::new(), rest, String::new()));
    }
    lines.push(line("sum", accounts.len().to_string(), time, String::new()));
    lines
}

/// `clear_page_rep in stress: preemption off`.
fn words(row: &Row) -> String {
    let sort = match row.class {
        Class::Usual => "on the way of each wake-up",
        Class::Rival => "thread of the same or a higher priority",
        class => cures::of(class).words,
    };
    let context = context(&row.context);
    match harmless(&row.culprit) {
        culprit if culprit.is_empty() => format!("{context}: {sort}"),
        culprit if matches!(row.context, Context::Halted | Context::NotRecorded) => {
            format!("{culprit}: {sort}")
        }
        culprit => format!("{culprit} in {context}: {sort}"),
    }
}

fn context(context: &Context) -> String {
    match context {
        Context::Halted => "halted".into(),
        Context::Nmi => "NMI".into(),
        Context::Interrupt { name } => harmless(name.trim_start_matches("sysvec_")),
        Context::Softirq => "softirq".into(),
        Context::Thread { name } => harmless(name),
        Context::Program { name } => format!("{}'s program", harmless(name)),
        Context::NotRecorded => "not recorded".into(),
    }
}

fn account(account: &Account, style: &Style) -> Vec<String> {
    let mut lines = vec![format!("The worst, {}:", UNIT.with_name(account.latency))];
    lines.extend(pieces(account, style));
    let interrupts = UNIT.figure(account.interrupts_off);
    lines.push(match account.preemption_off.zip(account.allowed_by_nothing) {
        Some((preemption, allowed)) => format!(
            "  at one time: interrupts off {interrupts}, preemption off {}; reschedule wanted and allowed by nothing {}",
            UNIT.figure(preemption),
            UNIT.figure(allowed)
        ),
        None => format!(
            "  at one time: interrupts off {interrupts}; preemption not known: this kernel does not count (CONFIG_PREEMPT_COUNT)"
        ),
    });
    let (right, all) = account.readings;
    if right < all {
        lines.push(format!("  doubtful: {right} of {all} readings of the clock lie where the count says"));
    }
    lines.push(String::new());
    lines.push("instructions       own  function, below its callers".to_owned());
    lines.extend(calls(account, style));
    lines
}

fn pieces(account: &Account, style: &Style) -> Vec<String> {
    let longest = longest(account.pieces.iter().map(|piece| piece.length), PIECES);
    let room = style.width.saturating_sub(26).clamp(30, 90);
    let (mut lines, mut at) = (Vec::new(), Nanos::ZERO);
    for (place, piece) in account.pieces.iter().enumerate() {
        if longest.contains(&place) {
            let (head, tail) =
                (format!("  {:>10}  ", UNIT.figure(at)), format!("  {:>10}", UNIT.figure(piece.length)));
            lines.push(named_row(&head, &piece_words(piece), room, &tail));
        }
        at += piece.length;
    }
    let hidden = account.pieces.len().saturating_sub(PIECES);
    if hidden > 0 {
        lines.push(format!("  and {}", count_of(hidden as u64, "shorter piece")));
    }
    lines
}

/// `runnable: dd, interrupts off, count 2: zap_pte_range`.
fn piece_words(piece: &Piece) -> String {
    let mut words = format!("{}: {}", piece.stage.words(), context(&piece.context));
    if piece.interrupts_off {
        words.push_str(", interrupts off");
    }
    if piece.preempt_count > 0 {
        words.push_str(&format!(", preempt_count {:x}", piece.preempt_count));
    }
    if piece.is_wanted {
        words.push_str(", reschedule wanted");
    }
    if !piece.function.is_empty() {
        words.push_str(&format!(": {}", harmless(&piece.function)));
    }
    words
}

/// The heaviest calls, each below its caller.
fn calls(account: &Account, style: &Style) -> Vec<String> {
    let mut totals = Vec::new();
    account.calls.walk(&mut |_, node| totals.push(node.total));
    totals.sort_unstable_by(|a, b| b.cmp(a));
    let least = totals.get(FUNCTIONS).map_or(0, |total| total + 1).max(account.latency.0 / 100);
    let (mut lines, mut hidden) = (Vec::new(), 0_u64);
    account.calls.walk(&mut |path, node| {
        if node.total < least {
            hidden += 1;
            return;
        }
        let name = harmless(path.last().copied().unwrap_or_default());
        let indent = " ".repeat(path.len().saturating_sub(1).min(30));
        let (total, own) = (UNIT.figure(Nanos(node.total)), UNIT.figure(Nanos(node.own)));
        let head = format!("  {total:>10}{own:>10}  {indent}");
        lines.push(named_row(&head, &name, style.width.saturating_sub(head.len()).max(20), ""));
    });
    if hidden > 0 {
        lines.push(format!("  and {} with less", count_of(hidden, "function")));
    }
    lines
}

//! ethtool(8): behind an option and the interface stand pairs of a name and a value.

use super::nearest::nearest_of;

/// What stands behind an option: `on`, numbers.
#[derive(Clone, Copy, PartialEq)]
enum Takes {
    Switch,
    Number,
    Text,
}

/// Options with the names behind them.
type Settings = (&'static [&'static str], &'static [(&'static str, Takes)]);

const COALESCE: [(&str, Takes); 27] = [
    ("adaptive-rx", Takes::Switch),
    ("adaptive-tx", Takes::Switch),
    ("rx-usecs", Takes::Number),
    ("rx-frames", Takes::Number),
    ("rx-usecs-irq", Takes::Number),
    ("rx-frames-irq", Takes::Number),
    ("tx-usecs", Takes::Number),
    ("tx-frames", Takes::Number),
    ("tx-usecs-irq", Takes::Number),
    ("tx-frames-irq", Takes::Number),
    ("stats-block-usecs", Takes::Number),
    ("pkt-rate-low", Takes::Number),
    ("rx-usecs-low", Takes::Number),
    ("rx-frames-low", Takes::Number),
    ("tx-usecs-low", Takes::Number),
    ("tx-frames-low", Takes::Number),
    ("pkt-rate-high", Takes::Number),
    ("rx-usecs-high", Takes::Number),
    ("rx-frames-high", Takes::Number),
    ("tx-usecs-high", Takes::Number),
    ("tx-frames-high", Takes::Number),
    ("sample-interval", Takes::Number),
    ("cqe-mode-rx", Takes::Switch),
    ("cqe-mode-tx", Takes::Switch),
    ("tx-aggr-max-bytes", Takes::Number),
    ("tx-aggr-max-frames", Takes::Number),
    ("tx-aggr-time-usecs", Takes::Number),
];

const SETTINGS: [Settings; 6] = [
    (&["-C", "--coalesce"], &COALESCE),
    (
        &["--set-eee"],
        &[
            ("eee", Takes::Switch),
            ("advertise", Takes::Text),
            ("tx-lpi", Takes::Switch),
            ("tx-timer", Takes::Number),
        ],
    ),
    (
        &["-G", "--set-ring"],
        &[
            ("rx", Takes::Number),
            ("rx-mini", Takes::Number),
            ("rx-jumbo", Takes::Number),
            ("tx", Takes::Number),
            ("rx-buf-len", Takes::Number),
            ("cqe-size", Takes::Number),
            ("tx-push", Takes::Switch),
            ("rx-push", Takes::Switch),
            ("tx-push-buf-len", Takes::Number),
            ("tcp-data-split", Takes::Text),
            ("hds-thresh", Takes::Number),
        ],
    ),
    (
        &["-L", "--set-channels"],
        &[
            ("rx", Takes::Number),
            ("tx", Takes::Number),
            ("other", Takes::Number),
            ("combined", Takes::Number),
        ],
    ),
    (
        &["-s", "--change"],
        &[
            ("speed", Takes::Number),
            ("lanes", Takes::Number),
            ("duplex", Takes::Text),
            ("port", Takes::Text),
            ("mdix", Takes::Text),
            ("autoneg", Takes::Text),
            ("advertise", Takes::Text),
            ("phyad", Takes::Number),
            ("xcvr", Takes::Text),
            ("wol", Takes::Text),
            ("sopass", Takes::Text),
            ("msglvl", Takes::Text),
            ("master-slave", Takes::Text),
        ],
    ),
    (&["-A", "--pause"], &[("autoneg", Takes::Switch), ("rx", Takes::Switch), ("tx", Takes::Switch)]),
];

/// Options that stand alone before the interface.
const OPTIONS: [&str; 62] = [
    "-a",
    "--show-pause",
    "-A",
    "--pause",
    "-c",
    "--show-coalesce",
    "-C",
    "--coalesce",
    "-g",
    "--show-ring",
    "-G",
    "--set-ring",
    "-i",
    "--driver",
    "-d",
    "--register-dump",
    "-e",
    "--eeprom-dump",
    "-E",
    "--change-eeprom",
    "-k",
    "--show-features",
    "--show-offload",
    "-K",
    "--features",
    "--offload",
    "-p",
    "--identify",
    "-P",
    "--show-permaddr",
    "-r",
    "--negotiate",
    "-s",
    "--change",
    "-S",
    "--statistics",
    "-t",
    "--test",
    "-T",
    "--show-time-stamping",
    "-l",
    "--show-channels",
    "-L",
    "--set-channels",
    "-m",
    "--module-info",
    "--show-priv-flags",
    "--set-priv-flags",
    "--show-eee",
    "--set-eee",
    "-n",
    "-u",
    "--show-nfc",
    "-N",
    "-U",
    "--config-nfc",
    "-x",
    "-X",
    "-w",
    "-Q",
    "--phy-statistics",
    "-h",
];

/// Options that are known besides, none of which is near another.
const RARE: [&str; 30] = [
    "-f",
    "-W",
    "-D",
    "--json",
    "-j",
    "-I",
    "--include-statistics",
    "--debug",
    "--all",
    "--version",
    "--help",
    "--set-phy-tunable",
    "--get-phy-tunable",
    "--set-tunable",
    "--get-tunable",
    "--reset",
    "--show-fec",
    "--set-fec",
    "--per-queue",
    "--cable-test",
    "--cable-test-tdr",
    "--monitor",
    "--show-rxfh",
    "--set-rxfh-indir",
    "--rxfh",
    "--set-dump",
    "--get-dump",
    "--show-module",
    "--set-module",
    "--set-plca-cfg",
];

/// What is wrong with the arguments.
pub fn fault(arguments: &[&str]) -> Option<String> {
    let first = arguments.first()?;
    let is_open = |text: &str| text.contains(['$', '<', '{', '%', '[']) || text.contains("...");
    if first.starts_with('-') && !is_open(first) && !OPTIONS.contains(first) && !RARE.contains(first) {
        let is_near = nearest_of(first, OPTIONS.into_iter().filter(|option| option.starts_with("--")));
        let is_short = !first.starts_with("--");
        return match is_near {
            Some(meant) => Some(format!("ethtool has no {first}: {meant} is meant")),
            None => is_short.then(|| format!("ethtool has no {first}")),
        };
    }
    let shows = [
        ("-c", "-C"),
        ("--show-coalesce", "--coalesce"),
        ("-k", "-K"),
        ("-g", "-G"),
        ("-l", "-L"),
        ("-a", "-A"),
        ("--show-eee", "--set-eee"),
    ];
    if let Some((option, sets)) = shows.into_iter().find(|(option, _)| option == first) {
        let extra = arguments.get(2).filter(|word| !word.starts_with(['-', '|', '>']));
        if extra.is_some() {
            return Some(format!("{option} only shows: {sets} sets"));
        }
    }
    features(arguments).or_else(|| settings(arguments))
}

/// `-K DEVICE gro off`.
fn features(arguments: &[&str]) -> Option<String> {
    let at = arguments.iter().position(|argument| matches!(*argument, "-K" | "--features" | "--offload"))?;
    let pairs = arguments.get(at + 2..)?.chunks(2);
    pairs.into_iter().find_map(|pair| match pair {
        ["eee", ..] => Some("-K has offloads only: --set-eee sets eee".to_owned()),
        [name, "on" | "off"] if !name.contains('=') => None,
        [name, value] if value.contains(['$', '<', '{']) || name.contains(['$', '<', '{']) => None,
        pair => Some(format!("-K takes pairs of a feature and on or off, not `{}`", pair.join(" "))),
    })
}

/// `-C DEVICE rx-usecs 0`.
fn settings(arguments: &[&str]) -> Option<String> {
    let (at, option, names) = SETTINGS.iter().find_map(|(options, names)| {
        let at = arguments.iter().position(|argument| options.contains(argument))?;
        Some((at, options[0], *names))
    })?;
    let pairs = arguments.get(at + 2..)?;
    if pairs.iter().any(|word| word.contains(['$', '<', '{', '[']) || word.contains("...")) {
        return None;
    }
    if pairs.is_empty() {
        return Some(format!("{option} is given nothing to set"));
    }
    pairs.chunks(2).find_map(|pair| {
        let Some((_, takes)) = names.iter().find(|(name, _)| *name == pair[0]) else {
            let meant = nearest_of(pair[0], names.iter().map(|(name, _)| *name));
            let meant = meant.map_or_else(String::new, |meant| format!(": {meant} is meant"));
            return Some(format!("{option} has no {}{meant}", pair[0]));
        };
        let Some(value) = pair.get(1) else { return Some(format!("{} is given no value", pair[0])) };
        let fits = match takes {
            Takes::Switch => matches!(*value, "on" | "off"),
            Takes::Number => value.bytes().all(|byte| byte.is_ascii_digit()) || value.starts_with("0x"),
            Takes::Text => true,
        };
        (!fits).then(|| match takes {
            Takes::Switch => format!("{} is on or off, not `{value}`", pair[0]),
            _ => format!("{} takes a number, not `{value}`", pair[0]),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(command: &str) -> Option<String> {
        fault(&command.split(' ').collect::<Vec<_>>())
    }

    #[test]
    fn settings_of_interfaces_are_pairs_of_known_names() {
        for fine in [
            "-C eth0 adaptive-rx off rx-usecs 0 tx-usecs 0",
            "--set-eee eth0 eee off",
            "-K eth0 gro off ntuple on",
            "-G eth0 rx 256",
            "-L eth0 combined 1",
            "-c eth0",
            "-A eth0 rx off tx off",
            "-C $IF rx-usecs $N",
            "eth0",
            "-T eth0",
        ] {
            assert_eq!(of(fine), None, "{fine}");
        }
        for wrong in [
            "-C eth0 rx-usec 0",
            "-C eth0 adaptive-rx 0",
            "-C eth0 interrupts 0",
            "--set-eee eth0 off",
            "-K eth0 gro=off",
            "-L eth0 queues 1",
            "-Z eth0",
            "--set-eeee eth0 eee off",
            "-C eth0 rx-usecs",
        ] {
            assert!(of(wrong).is_some(), "{wrong}");
        }
    }
}

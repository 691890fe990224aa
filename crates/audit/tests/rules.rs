//! Every rule that ships: it parses, names facts that somebody reads, and says where it comes from.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use audit::Rules;

/// The form of a fact's name (`machine::survey`).
fn is_fact(name: &str) -> bool {
    let plain = |text: &str| {
        !text.is_empty() && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
    };
    let symbol = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    match name.split_once(':') {
        Some(("config", rest)) => symbol(rest),
        Some(("boot" | "sysctl", rest)) => !rest.is_empty() && !rest.contains(['=', '/', ' ']),
        Some(("file" | "choice" | "cpus" | "each", rest)) => rest.starts_with('/'),
        Some(_) => false,
        None => plain(name),
    }
}

#[test]
fn every_rule_that_ships_is_whole() {
    let rules = Rules::built_in().unwrap();
    let faults = rules.faults(is_fact);
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

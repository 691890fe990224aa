//! Other forms of an account.

use crate::account::Account;

/// Folded stacks, a line each: `thread;caller;function instructions`, as flame graphs are made from.
pub fn folded(accounts: &[Account]) -> String {
    let mut all = crate::Tree::default();
    for account in accounts {
        account.calls.walk(&mut |path, node| {
            if node.own > 0 {
                all.add(path.iter().copied(), node.own);
            }
        });
    }
    let mut text = String::new();
    all.walk(&mut |path, node| {
        if node.own > 0 {
            let path: Vec<String> = path.iter().map(|name| name.replace([';', ' '], "_")).collect();
            text.push_str(&format!("{} {}\n", path.join(";"), node.own));
        }
    });
    text
}

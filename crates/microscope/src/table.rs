//! Causes over several late wake-ups.

use std::collections::BTreeMap;

use record::Class;
use serde::Serialize;
use units::{InOrder, Nanos};

use crate::account::{Account, Cause};
use crate::context::Context;

/// One cause in all wake-ups that have it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// The sort.
    pub class: Class,
    /// The function.
    pub culprit: String,
    /// The context in which it took longest.
    pub context: Context,
    /// Wake-ups.
    pub hits: u32,
    /// In all.
    pub time: Nanos,
    /// In one wake-up.
    pub worst: Nanos,
}

/// Causes of `accounts` by sort and function, the heaviest first.
pub fn rows(accounts: &[Account]) -> Vec<Row> {
    let mut all: BTreeMap<(Class, &str), Vec<&Cause>> = BTreeMap::new();
    for account in accounts {
        for cause in &account.causes {
            all.entry((cause.class, cause.culprit())).or_default().push(cause);
        }
    }
    let mut rows: Vec<Row> =
        all.into_iter().filter_map(|((class, culprit), causes)| row(class, culprit, &causes)).collect();
    rows.order_by(|a, b| b.time.cmp(&a.time).then_with(|| a.culprit.cmp(&b.culprit)));
    rows
}

fn row(class: Class, culprit: &str, causes: &[&Cause]) -> Option<Row> {
    let worst = causes.iter().max_by_key(|cause| cause.length)?;
    Some(Row {
        class,
        culprit: culprit.to_owned(),
        context: worst.context.clone(),
        hits: causes.len() as u32,
        time: Nanos(causes.iter().map(|cause| cause.length.0).sum()),
        worst: worst.length,
    })
}

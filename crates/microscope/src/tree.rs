//! Callers and what they called, with instructions.

use std::collections::BTreeMap;
use units::InOrder;

/// A function in a tree of calls.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Node {
    /// Instructions in it and in what it called.
    pub total: u64,
    /// Instructions in it alone.
    pub own: u64,
    /// What it called, by name.
    pub callees: BTreeMap<String, Node>,
}

/// Trees of calls, one beside the other.
pub type Tree = Node;

impl Node {
    /// Adds `instructions` to the last function of `path`, which begins with the outermost.
    pub fn add<'a>(&mut self, path: impl IntoIterator<Item = &'a str>, instructions: u64) {
        let mut node = self;
        node.total += instructions;
        for name in path {
            if !node.callees.contains_key(name) {
                node.callees.insert(name.to_owned(), Self::default());
            }
            let Some(callee) = node.callees.get_mut(name) else { return };
            callee.total += instructions;
            node = callee;
        }
        node.own += instructions;
    }

    /// The deepest function under which more than half of all instructions are, and its callers; the outermost first.
    pub fn heaviest_path(&self) -> Vec<&str> {
        let mut path = Vec::new();
        let mut node = self;
        let is_heavy = |callee: &&Self| callee.total > self.total / 2;
        while let Some((name, callee)) = node.callees.iter().find(|(_, callee)| is_heavy(callee)) {
            path.push(name.as_str());
            node = callee;
        }
        path
    }

    /// Calls `visit` for each function with its callers, the outermost first, the heaviest callee before others.
    pub fn walk<'a>(&'a self, visit: &mut impl FnMut(&[&'a str], &'a Self)) {
        self.walk_below(&mut Vec::new(), visit);
    }

    fn walk_below<'a>(&'a self, path: &mut Vec<&'a str>, visit: &mut impl FnMut(&[&'a str], &'a Self)) {
        let mut callees: Vec<_> = self.callees.iter().collect();
        callees.order_by_key(|(_, callee)| std::cmp::Reverse(callee.total));
        for (name, callee) in callees {
            path.push(name);
            visit(path, callee);
            callee.walk_below(path, visit);
            path.pop();
        }
    }
}

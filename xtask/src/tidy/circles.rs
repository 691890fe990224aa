//! Files of a crate that use each other in a circle.
//!
//! What a module takes from those that it stands in (`super`) is no arrow: a parent and its children may know each other. Names that
//! another module hands on (`pub use`) count for that one, and a method counts for nobody: the source names no file there.

use std::collections::{BTreeMap, BTreeSet};

use super::{Finding, Tree};

/// Places in a crate, as `["event", "pool"]`.
type Module<'a> = Vec<&'a str>;

/// A file of a crate.
struct File<'a> {
    path: &'a str,
    /// Without what belongs to tests.
    code: String,
}

/// A crate's files by their modules. The root is none of them: it hands on what all others have.
type Modules<'a> = BTreeMap<Module<'a>, File<'a>>;

pub fn files(tree: &Tree) -> Vec<Finding> {
    let mut crates: BTreeMap<&str, Modules<'_>> = BTreeMap::new();
    for source in tree.sources.iter().filter(|source| !source.is_test_file()) {
        if let Some((package, module)) = place(&source.path) {
            let code = source.code().flat_map(|(_, line)| [line, "\n"]).collect();
            crates.entry(package).or_default().insert(module, File { path: &source.path, code });
        }
    }
    crates.values().flat_map(of_crate).collect()
}

/// `crates/a/src/b/c.rs` is `b::c` in `crates/a`.
fn place(path: &str) -> Option<(&str, Module<'_>)> {
    let (package, inside) = path.strip_suffix(".rs")?.split_once("/src/")?;
    let mut module: Module<'_> = inside.split('/').collect();
    if matches!(module.last(), Some(&("mod" | "lib" | "main"))) {
        module.pop();
    }
    (!module.is_empty()).then_some((package, module))
}

fn of_crate(modules: &Modules<'_>) -> Vec<Finding> {
    let arrows: BTreeMap<&Module<'_>, BTreeSet<&Module<'_>>> =
        modules.iter().map(|(module, file)| (module, used(module, &file.code, modules))).collect();
    let reached: BTreeMap<_, _> = modules.keys().map(|module| (module, reachable(module, &arrows))).collect();
    let mut findings = Vec::new();
    let mut listed = BTreeSet::new();
    for (module, file) in modules {
        let circle: Vec<&Module<'_>> =
            reached[module].iter().filter(|other| reached[**other].contains(module)).copied().collect();
        if !circle.is_empty() && listed.insert(circle.clone()) {
            let names: Vec<String> = circle.iter().map(|module| module.join("::")).collect();
            findings.push(Finding::new(file.path, 0, format!("use each other: {}", names.join(", "))));
        }
    }
    findings
}

/// All modules that arrows lead to from `start`; itself only by a circle.
fn reachable<'a>(
    start: &'a Module<'a>,
    arrows: &BTreeMap<&'a Module<'a>, BTreeSet<&'a Module<'a>>>,
) -> BTreeSet<&'a Module<'a>> {
    let mut reached = BTreeSet::new();
    let mut open = vec![start];
    while let Some(module) = open.pop() {
        open.extend(arrows[module].iter().filter(|next| reached.insert(**next)));
    }
    reached
}

/// The modules that a file names, those that it stands in left out.
fn used<'a>(module: &Module<'a>, code: &'a str, modules: &'a Modules<'a>) -> BTreeSet<&'a Module<'a>> {
    let mut used = BTreeSet::new();
    for (place, word) in words(code) {
        let (base, rest) = match word {
            "crate" => (Vec::new(), place + word.len()),
            "super" => above(module, code, place),
            _ if modules.contains_key(&[module.as_slice(), &[word]].concat()) => (module.clone(), place),
            _ => continue,
        };
        let from_word = !matches!(word, "crate" | "super");
        let tails = if from_word { paths(&code[rest..]) } else { tails(&code[rest..]) };
        for tail in tails {
            let whole = [base.as_slice(), &tail].concat();
            let named = (1..=whole.len()).rev().find_map(|length| modules.get_key_value(&whole[..length]));
            used.extend(named.map(|(named, _)| named));
        }
    }
    used.retain(|other| !module.starts_with(other));
    used
}

/// The first words of paths, with their places.
fn words(code: &str) -> impl Iterator<Item = (usize, &str)> {
    code.match_indices("::").filter_map(|(end, _)| {
        let before = &code[..end];
        let start = before.rfind(|c: char| !is_of_name(c)).map_or(0, |place| place + 1);
        (start < end && !before[..start].ends_with("::")).then(|| (start, &before[start..]))
    })
}

fn is_of_name(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// What `super::super` is, seen from `module`, and where it ends.
fn above<'a>(module: &Module<'a>, code: &str, place: usize) -> (Module<'a>, usize) {
    let (mut base, mut end) = (module.clone(), place);
    while code[end..].strip_prefix("::").unwrap_or(&code[end..]).starts_with("super") {
        end += code[end..].find("super").unwrap_or_default() + "super".len();
        base.pop();
    }
    (base, end)
}

/// What follows a module: `::a::b`, `::{a, b::c}`.
fn tails(code: &str) -> Vec<Module<'_>> {
    code.strip_prefix("::").map_or_else(|| vec![Vec::new()], paths)
}

/// All paths that a tree of them consists of.
fn paths(code: &str) -> Vec<Module<'_>> {
    if let Some(list) = code.strip_prefix('{') {
        return entries(list).into_iter().flat_map(|entry| paths(entry.trim_start())).collect();
    }
    let end = code.find(|c: char| !is_of_name(c)).unwrap_or(code.len());
    let rest = tails(&code[end..]);
    rest.into_iter().map(|tail| [&[&code[..end]], tail.as_slice()].concat()).collect()
}

/// The entries of a list in braces, whose opening brace is gone.
fn entries(list: &str) -> Vec<&str> {
    let (mut depth, mut begin, mut entries) = (0_usize, 0, Vec::new());
    for (place, character) in list.char_indices() {
        match character {
            '{' => depth += 1,
            '}' if depth == 0 => {
                entries.push(&list[begin..place]);
                break;
            }
            '}' => depth -= 1,
            ',' if depth == 0 => {
                entries.push(&list[begin..place]);
                begin = place + 1;
            }
            _ => {}
        }
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::super::tests::tree;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        super::files(&tree(files)).into_iter().map(|finding| finding.what).collect()
    }

    #[test]
    fn files_that_use_each_other_are_found_whatever_the_path_looks_like() {
        let circle = [
            ("crates/a/src/lib.rs", "mod one; mod two; mod three;"),
            ("crates/a/src/one.rs", "use std::fmt;\nuse crate::{two::{Deep, Other}, four};"),
            ("crates/a/src/two.rs", "fn f() { crate::three::g() }"),
            ("crates/a/src/three.rs", "use super::one::Thing;"),
            ("crates/a/src/four.rs", "use crate::five::A;"),
            ("crates/a/src/five.rs", ""),
        ];
        assert_eq!(found(&circle), ["use each other: one, three, two"]);
        assert_eq!(found(&circle[..3]), [] as [&str; 0]);
    }

    #[test]
    fn a_child_may_use_its_parents_and_a_circle_through_a_parent_is_found() {
        let forms = ("crates/a/src/recipe/forms/mod.rs", "mod chrony;\nfn read() { chrony::read() }");
        let chrony =
            ("crates/a/src/recipe/forms/chrony.rs", "use super::lines;\nuse super::super::{Remark, places};");
        let places = ("crates/a/src/recipe/places.rs", "use super::Remark;");
        let recipe =
            ("crates/a/src/recipe/mod.rs", "mod forms; mod places;\nfn x() { forms::read(); places::y() }");
        assert_eq!(found(&[forms, chrony, places, recipe]), [] as [&str; 0]);
        let places = ("crates/a/src/recipe/places.rs", "use super::{Remark, forms};");
        let expected = ["use each other: recipe::forms, recipe::forms::chrony, recipe::places"];
        assert_eq!(found(&[forms, chrony, places, recipe]), expected);
    }

    #[test]
    fn tests_of_a_file_may_use_what_they_want() {
        let one = ("crates/a/src/one.rs", "use crate::two::A;\n");
        let two = ("crates/a/src/two.rs", "#[cfg(test)]\nmod tests {\n    use crate::one::B;\n}\n");
        assert_eq!(found(&[one, two]), [] as [&str; 0]);
    }
}

//! The grammar of wants and conditions: what it takes, what it refuses and in which words, and that no text panics.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use audit::{Condition, Division, Want};
use proptest::prelude::*;
use survey::{Item, Value};
use units::CpuList;

fn division() -> Division {
    Division::new("2-3".parse().unwrap(), &"0-3".parse().unwrap())
}

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

fn cpus(list: &str) -> Value {
    Value::Cpus(list.parse().unwrap())
}

fn list(values: &[&str]) -> Value {
    Value::List(
        values.iter().map(|value| Item { name: format!("n-{value}"), value: (*value).to_owned() }).collect(),
    )
}

fn holds(want: &str, value: Value) -> bool {
    want.parse::<Want>().unwrap().holds(&value, &division()).unwrap()
}

#[test]
fn wants_hold_for_what_they_say() {
    for (want, value) in [
        ("= y", text("y")),
        ("= always on", text("always on")),
        ("= 10", Value::Number(10)),
        ("= yes", Value::Flag(true)),
        ("= 0", Value::Flag(false)),
        ("= 2-3", cpus("3,2")),
        ("not y", text("n")),
        ("not 0", Value::Number(1)),
        ("one of never madvise", text("madvise")),
        ("one of 1 2", Value::Number(2)),
        ("<= 10", Value::Number(10)),
        ("< 10", Value::Number(9)),
        (">= -1", Value::Number(-1)),
        ("> 10", Value::Number(11)),
        (">= 6.12", text("6.12.1-rt4")),
        ("<= 6.12", text("6.12.99")),
        ("< 6.12", text("6.9.3")),
        (">= 10", text("250")),
        ("present", text("")),
        ("none", list(&[])),
        ("none", cpus("")),
        ("all = performance", list(&["performance", "performance"])),
        ("all = performance", list(&[])),
        ("any = y", list(&["n", "y"])),
        ("all <= 10", list(&["3", "10"])),
        ("all within {housekeeping}", list(&["0", "0-1"])),
        ("within {housekeeping}", cpus("1")),
        ("within 0-1", Value::Number(1)),
        ("disjoint {isolated}", cpus("0-1")),
        ("covers {isolated}", cpus("1-3")),
        ("covers {isolated}", text("2,3")),
        ("contains domain", text("managed_irq,domain,2-3")),
        ("lacks domain", text("managed_irq,2-3")),
        ("contains n-a", list(&["a"])),
    ] {
        assert!(holds(want, value.clone()), "`{want}` is to hold for {value:?}, and does not");
    }
    for (want, value) in [
        ("= y", text("m")),
        ("= 10", Value::Number(11)),
        ("= 2", cpus("2-3")),
        ("not y", text("y")),
        ("one of never madvise", text("always")),
        ("<= 10", Value::Number(11)),
        (">= 6.12", text("6.6.30")),
        ("> 6.12", text("6.12.5")),
        ("< 6.12", text("6.12.5")),
        ("absent", text("")),
        ("none", list(&["a"])),
        ("all = performance", list(&["performance", "powersave"])),
        ("any = y", list(&[])),
        ("within {housekeeping}", cpus("1-2")),
        ("disjoint {isolated}", cpus("3")),
        ("covers {isolated}", cpus("2")),
        ("contains main", text("domain")),
    ] {
        assert!(!holds(want, value.clone()), "`{want}` is not to hold for {value:?}, and does");
    }
}

#[test]
fn a_value_of_another_kind_is_neither_right_nor_wrong() {
    for (want, value, words) in [
        ("<= 10", text("many"), "`many` is not a number or a version"),
        ("= x", list(&["x"]), "`n-x: x` is not a single value"),
        ("all = x", text("x"), "`x` is not a list"),
        ("within 0-1", text("all"), "`all` is not a list of CPUs"),
        ("= maybe", Value::Flag(true), "`maybe` is not yes or no"),
        ("none", Value::Number(0), "`0` is not a list or a set"),
        ("contains 1", cpus("1"), "`1` is not a text or a list"),
    ] {
        let want: Want = want.parse().unwrap();
        let mismatch = want.holds(&value, &division()).unwrap_err();
        assert_eq!(mismatch.to_string(), words, "what `{want}` says of {value:?}");
    }
}

#[test]
fn what_is_no_want_is_refused_in_words() {
    for (want, why) in [
        ("", "it is empty"),
        ("y", "it begins with `y`"),
        ("=y", "it begins with `=y`"),
        ("=", "a word must follow `=`"),
        ("one of never", "`one of` needs two words or more"),
        ("one never madvise", "`of` must follow `one`"),
        ("<= ten", "`ten` is neither a number nor a version"),
        ("<= 6..12", "`6..12` is neither a number nor a version"),
        ("present now", "nothing can follow `present`"),
        ("all present", "`present` cannot be asked of an item"),
        ("all any = y", "`any = y` cannot be asked of an item"),
        ("all", "it is empty"),
        ("within", "CPUs must follow"),
        ("within 3-1", "runs backwards"),
        ("within {others}", "is not a CPU list"),
    ] {
        let error = want.parse::<Want>().unwrap_err().to_string();
        assert!(error.contains(why), "`{want}` is refused with `{error}`, which does not say `{why}`");
    }
}

#[test]
fn conditions_are_a_fact_and_a_want() {
    let condition: Condition = "boot:isolcpus contains domain".parse().unwrap();
    assert_eq!(
        (condition.fact.as_str(), condition.want.to_string().as_str()),
        ("boot:isolcpus", "contains domain")
    );
    let error = "kernel".parse::<Condition>().unwrap_err().to_string();
    assert!(error.starts_with("`kernel` is not a condition: write a fact's name"), "{error}");
    let error = "kernel 6.12".parse::<Condition>().unwrap_err().to_string();
    assert!(error.starts_with("in the condition `kernel 6.12`: `6.12` is not a want"), "{error}");
}

fn any_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<bool>().prop_map(Value::Flag),
        any::<i64>().prop_map(Value::Number),
        "[0-9a-z.,{} -]{0,12}|.{0,8}".prop_map(Value::Text),
        proptest::collection::btree_set(0_u32..256, 0..5)
            .prop_map(|set| Value::Cpus(set.into_iter().collect::<CpuList>())),
        proptest::collection::vec(".{0,6}", 0..4).prop_map(|values| {
            Value::List(values.into_iter().map(|value| Item { name: value.clone(), value }).collect())
        }),
    ]
}

fn any_want() -> impl Strategy<Value = String> {
    let word = "[a-z0-9_.{}-]{1,8}( [a-z0-9]{1,4})?";
    let number = "-?[0-9]{1,20}|[0-9]{1,3}(\\.[0-9]{1,3}){1,3}";
    let simple = prop_oneof![
        ("(=|not|contains|lacks)", word).prop_map(|(head, word)| format!("{head} {word}")),
        ("one of", word, word).prop_map(|(head, one, two)| format!("{head} {one} {two}")),
        ("(<|<=|>|>=)", number).prop_map(|(head, limit)| format!("{head} {limit}")),
        ("(within|disjoint|covers)", "(\\{isolated\\}|\\{housekeeping\\}|[0-9]{1,2}(-9[0-9])?)")
            .prop_map(|(head, cpus)| format!("{head} {cpus}")),
        Just("none".to_owned()),
    ];
    prop_oneof![
        simple.clone(),
        ("(all|any)", simple).prop_map(|(head, want)| format!("{head} {want}")),
        "(present|absent|anything)".prop_map(|word| word),
        ".{0,20}",
    ]
}

proptest! {
    #[test]
    fn no_text_panics_and_what_parses_is_printed_as_it_is_read(text in any_want(), value in any_value()) {
        let _ = text.parse::<Condition>();
        let Ok(want) = text.parse::<Want>() else { return Ok(()) };
        prop_assert_eq!(want.to_string().parse::<Want>(), Ok(want.clone()));
        let held = want.holds(&value, &division());
        if let Want::Not(word) = &want {
            let equal = Want::Equal(word.clone()).holds(&value, &division());
            prop_assert_eq!(held, equal.map(|equal| !equal));
        }
        let _ = (want.failing(&value, &division()), want.needs_division(), want.holds_for_absent());
    }

    #[test]
    fn sets_of_cpus_stand_to_each_other_as_sets_do(set in proptest::collection::btree_set(0_u32..5, 0..5)) {
        let value = Value::Cpus(set.iter().copied().collect());
        let held = |want: &str| holds(want, value.clone());
        prop_assert_eq!(held("within {isolated}"), set.iter().all(|cpu| (2..=3).contains(cpu)));
        prop_assert_eq!(held("disjoint {isolated}"), set.iter().all(|cpu| !(2..=3).contains(cpu)));
        prop_assert_eq!(held("covers {isolated}"), set.contains(&2) && set.contains(&3));
    }
}

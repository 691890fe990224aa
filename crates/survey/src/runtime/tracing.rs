//! Tracers and trace events that were left on (Documentation/trace/ftrace.rst).

use record::Fact;
use sysroot::SysRoot;

use crate::survey::{NamedFact, Survey, fact};
use crate::value::{Item, Reading, Value, item, reading};

pub(super) const FACTS: &[NamedFact] =
    &[fact("tracing.active", "instances of ftrace with a tracer or events on", active)];

const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// Instances whose tracer is not `nop` or that have events enabled; absent where the file system is not mounted.
fn active(survey: &Survey) -> Reading {
    let mounted =
        PLACES.into_iter().find(|place| survey.root.read(&format!("{place}/current_tracer")) != Fact::Absent);
    let Some(place) = mounted else { return reading(Fact::Absent, PLACES[0]) };
    let value = tracer(&survey.root, place).map(|_| {
        let instances =
            survey.root.directories(&format!("{place}/instances")).value().cloned().unwrap_or_default();
        let instances = instances.into_iter().map(|name| (name.clone(), format!("{place}/instances/{name}")));
        let all = [("top".to_owned(), place.to_owned())].into_iter().chain(instances);
        Value::List(
            all.filter_map(|(name, directory)| of_instance(&survey.root, &name, &directory)).collect(),
        )
    });
    reading(value, &format!("{place}/{{current_tracer,set_event}}"))
}

fn tracer(root: &SysRoot, directory: &str) -> Fact<String> {
    root.read(&format!("{directory}/current_tracer"))
}

fn of_instance(root: &SysRoot, name: &str, directory: &str) -> Option<Item> {
    let tracer = tracer(root, directory).value().cloned().unwrap_or_default();
    let events = root.read(&format!("{directory}/set_event"));
    let events = events.value().map_or(0, |text| text.lines().filter(|line| !line.trim().is_empty()).count());
    let tracer = (!matches!(tracer.as_str(), "nop" | "")).then(|| format!("tracer {tracer}"));
    let events = (events > 0).then(|| format!("{events} events"));
    let active: Vec<String> = tracer.into_iter().chain(events).collect();
    (!active.is_empty()).then(|| item(name, active.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Isolated, shown};
    use sysroot::FakeTree;

    #[test]
    fn tracers_and_events_are_reported_by_instance() {
        let tree = FakeTree::new(&[
            ("/sys/kernel/tracing/current_tracer", "nop"),
            ("/sys/kernel/tracing/set_event", ""),
            ("/sys/kernel/tracing/instances/a/current_tracer", "osnoise"),
            ("/sys/kernel/tracing/instances/b/current_tracer", "nop"),
            ("/sys/kernel/tracing/instances/b/set_event", "sched:sched_switch\nirq:irq_handler_entry\n"),
        ]);
        assert_eq!(shown(&tree, Isolated::None, "tracing.active"), "a: tracer osnoise, b: 2 events");
    }

    #[test]
    fn the_old_place_serves_and_no_place_is_absent() {
        assert_eq!(shown(&FakeTree::empty(), Isolated::None, "tracing.active"), "absent");
        let tree = FakeTree::new(&[("/sys/kernel/debug/tracing/current_tracer", "function")]);
        assert_eq!(shown(&tree, Isolated::None, "tracing.active"), "top: tracer function");
    }
}

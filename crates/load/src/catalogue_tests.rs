use super::*;
use crate::LoadPlan;
use units::Seed;

fn shipped() -> Catalogue {
    Catalogue::shipped().unwrap()
}

fn stressors(name: &str, cpus: &str) -> Vec<(String, u32)> {
    let cpus = cpus.parse().unwrap();
    let load = shipped().get(name).unwrap().clone();
    load.stressors.iter().map(|stressor| (stressor.name(), stressor.count(&cpus))).collect()
}

#[test]
fn every_file_parses_under_its_own_name_and_says_where_it_comes_from() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../loads");
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        let load = shipped().get(name).unwrap().clone();
        for text in [&load.title, &load.disturbs, &load.source] {
            assert!(!text.is_empty(), "{name}");
        }
    }
}

#[test]
fn no_load_is_shown_under_the_name_of_another() {
    let catalogue = shipped();
    let mut single = 0;
    for load in catalogue.loads() {
        let [stressor] = &load.stressors[..] else { continue };
        let name = stressor.name();
        assert!(name == load.name || catalogue.get(&name).is_err(), "{} is shown as {name}", load.name);
        single += 1;
    }
    assert!(single > 5, "{single}");
}

#[test]
fn loads_of_s0_are_those_of_its_table() {
    let owned = |list: &[(&str, u32)]| {
        list.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect::<Vec<_>>()
    };
    assert_eq!(stressors("idle", "0-3"), []);
    assert_eq!(stressors("hdd", "0-3"), owned(&[("hdd", 4)]));
    assert_eq!(stressors("vm", "0-3"), owned(&[("vm", 4)]));
    assert_eq!(stressors("full", "0-3"), owned(&[("cpu", 4), ("io", 4), ("vm", 4), ("hdd", 4)]));
    let does = |name: &str, index: usize| shipped().get(name).unwrap().stressors[index].work.about().does;
    assert!(does("hdd", 0).contains("1 MiB"), "{}", does("hdd", 0));
    for (load, index) in [("vm", 0), ("full", 2), ("full", 3)] {
        assert!(does(load, index).contains(" 4 KiB"), "{}", does(load, index));
    }
}

#[test]
fn what_s0_does_not_print_is_said_to_be_inferred() {
    for (name, inferred) in [("cpu", true), ("io", true), ("vm", false), ("hdd", false), ("full", false)] {
        assert_eq!(shipped().get(name).unwrap().inferred.is_some(), inferred, "{name}");
    }
}

#[test]
fn programs_are_kept_ordinary_and_on_their_cpus() {
    let catalogue = shipped();
    for load in catalogue.loads() {
        for stressor in &load.stressors {
            if let Work::Program(program) = &stressor.work {
                let words = program.arguments.join(" ");
                assert!(words.contains("--sched other --taskset {cpulist}"), "{}: {words}", load.name);
                assert!(program.package.is_some(), "{}: its package is not named", load.name);
                for step in &program.steps {
                    let real_time =
                        ["cyclic", "schedpolicy", "hrtimers", "mutex", "softlockup", "resched", "madvise"];
                    assert!(!real_time.contains(&step.as_str()), "{}: {step}", load.name);
                }
            }
        }
    }
}

#[test]
fn a_mistake_in_a_file_is_refused() {
    let parse = |text: &str| toml::from_str::<Load>(text);
    let head = "name = 'x'\ntitle = 'x'\ndisturbs = 'x'\nsource = 'x'\n";
    let with = |stressor: &str| parse(&format!("{head}[[stressor]]\n{stressor}"));
    assert!(with("workers = 2\nwork.cpu = {}").is_ok());
    assert!(with("workers = 'per-core'\nwork.cpu = {}").is_err());
    assert!(with("workers = 2\nwork.gpu = {}").is_err());
    assert!(with("workers = 2\nwork.vm = { bytes = 1, stride = 2 }").is_err());
    assert!(with("workers = 2\nwork.cpu = {}\neverywere = true").is_err());
    assert!(with("workers = 2\nwork.crowd = { priority = 100, pause = '1ms', busy = '1us' }").is_err());
    assert!(parse(&format!("{head}hint = 'x'")).is_err());
}

#[test]
fn an_unknown_load_is_answered_with_those_that_exist() {
    let text = shipped().get("hdds").unwrap_err().to_string();
    assert!(text.contains("`hdds`") && text.contains("scary-grinder"), "{text}");
}

#[test]
fn a_plan_survives_its_way_to_the_supervisor() {
    let mut loads = shipped().loads().to_vec();
    loads.push(Load::from_command("sleep 1; echo {cpus}"));
    for load in loads {
        let mut plan = LoadPlan::new(load, "0-1,7".parse().unwrap(), Seed(5));
        let sent = serde_json::to_vec(&plan).unwrap();
        assert!(!sent.contains(&b'\n'), "{}", plan.load.name);
        plan.executable = Default::default();
        assert_eq!(serde_json::from_slice::<LoadPlan>(&sent).unwrap(), plan);
    }
}

#[test]
fn an_explanation_says_what_each_stressor_does() {
    let explained = shipped().get("scary-grinder").unwrap().explain();
    assert_eq!(explained.stressors.len(), 2);
    assert!(explained.stressors[1].contains("128 MiB"), "{explained:?}");
    assert!(shipped().get("cpu").unwrap().explain().remarks[0].contains("A.1"));
}

#[test]
fn a_load_that_cannot_run_is_refused_before_it_starts() {
    let refused = |load: Load, cpus: &str| {
        crate::start(LoadPlan::new(load, cpus.parse().unwrap(), Seed(0))).unwrap_err().to_string()
    };
    let get = |name: &str| shipped().get(name).unwrap().clone();
    assert!(refused(get("hdd"), "0").contains("--load-dir"));
    assert!(refused(get("cpu"), "").contains("--load-cpus"));
    let mut load = get("stress-ng-cpu");
    if let Work::Program(program) = &mut load.stressors[0].work {
        program.program = "no-such-stress-ng".into();
    }
    let text = refused(load, "0");
    assert!(text.contains("no-such-stress-ng was not found") && text.contains("package stress-ng"), "{text}");
}

#[test]
fn a_name_that_is_empty_is_called_so() {
    let said = Catalogue::shipped().unwrap().get("").unwrap_err().to_string();
    assert!(said.starts_with("the name of a load is empty") && said.contains("idle"), "{said}");
}

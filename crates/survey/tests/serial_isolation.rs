//! What the kernel makes of the words that set a CPU apart, in guests with and without them.
#![allow(clippy::unwrap_used)]

use guest_tests::Guests;
use survey::Survey;
use sysroot::SysRoot;
use units::CpuList;

static SET_APART: Guests =
    Guests::new("debian-6.1-amd64", "isolcpus=1 nohz_full=1 rcu_nocbs=1").processors(2);
static ORDINARY: Guests = Guests::new("debian-6.1-amd64", "quiet").processors(2);

/// The fact as it is shown, asked of this machine.
fn shown(fact: &str) -> String {
    let survey = Survey::new(SysRoot::live(), CpuList::new());
    survey.read(fact).value.to_string()
}

#[test]
fn a_cpu_that_is_set_apart_is_seen_to_be() {
    SET_APART.run(|| {
        assert_eq!(shown("cpus.online"), "0-1");
        for fact in ["cpus.isolated", "cpus.nohz_full", "cpus.rcu_nocbs"] {
            assert_eq!(shown(fact), "1", "{fact}");
        }
        assert_eq!(shown("cpus.init"), "0", "process 1 stays off an isolated CPU");
        let facts = machine::machine(&SysRoot::live());
        assert_eq!(facts.cpus.isolated.value().unwrap().to_string(), "1");
        assert_eq!(facts.cpus.nohz_full.value().unwrap().to_string(), "1");
    });
}

#[test]
fn a_cpu_that_is_not_set_apart_is_seen_not_to_be() {
    ORDINARY.run(|| {
        assert_eq!(shown("cpus.online"), "0-1");
        for fact in ["cpus.isolated", "cpus.nohz_full", "cpus.rcu_nocbs"] {
            assert_eq!(shown(fact), "", "{fact}");
        }
        assert_eq!(shown("cpus.init"), "0-1");
        let facts = machine::machine(&SysRoot::live());
        assert!(facts.cpus.isolated.value().unwrap().is_empty());
    });
}

/// Nothing that a guest has is lost on the survey: no fact is unreadable to root.
#[test]
fn root_reads_every_fact() {
    ORDINARY.run(|| {
        let survey = Survey::new(SysRoot::live(), CpuList::new());
        for fact in survey::named_facts() {
            let reading = survey.read(fact.name);
            let unreadable = matches!(reading.value, record::Fact::Unreadable(_));
            assert!(!unreadable, "{}: {:?} from {:?}", fact.name, reading.value, reading.from);
        }
    });
}

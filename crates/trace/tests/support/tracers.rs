//! The kernel's own measuring tracers, as root, on kernels that have them.

use std::collections::BTreeMap;
use std::time::Duration;

use record::Fact;
use sysroot::SysRoot;
use trace::live::place;
use trace::tracer::{Context, Kind, Plan, Running, Sample, Timerlat, available};
use units::{CpuId, Nanos};

const PERIOD: Nanos = Nanos(2_000_000);
const LOOK: Duration = Duration::from_millis(600);

/// The settings of the machine that the tracers have.
fn settings() -> Vec<Fact<String>> {
    let root = SysRoot::live();
    let top = place(&root).unwrap();
    let files = ["cpus", "timerlat_period_us", "period_us", "runtime_us", "stop_tracing_total_us"];
    let files = files.map(|file| format!("osnoise/{file}"));
    let all = files.into_iter().chain(["hwlat_detector/window".into(), "hwlat_detector/width".into()]);
    all.map(|file| root.read(&format!("{top}/{file}"))).collect()
}

fn samples(plan: &Plan) -> Vec<Sample> {
    let mut running = Running::start(plan).unwrap();
    std::thread::sleep(LOOK);
    let mut samples = Vec::new();
    running.each(&mut |sample| samples.push(*sample)).unwrap();
    assert!(running.losses().is_empty(), "{}", running.losses());
    running.stop().unwrap();
    samples
}

/// A kernel without a tracer says so, and what it lacks.
pub fn a_kernel_without_them_is_refused() {
    assert_eq!(available(&SysRoot::live()).unwrap(), []);
    for kind in Kind::ALL {
        let error = Running::start(&Plan::usual(kind, "0".parse().unwrap())).err().unwrap();
        assert!(error.reason.contains(kind.name()) && error.hint.contains("CONFIG_"), "{error}");
    }
}

/// Each period of timerlat has a sample of the interrupt and one of the thread, which is later; its settings are put back.
pub fn timerlat_measures_each_period_and_settings_are_put_back() {
    let before = settings();
    let plan = Timerlat::every("1".parse().unwrap(), PERIOD);
    let mut periods: BTreeMap<u64, Vec<(Context, Nanos)>> = BTreeMap::new();
    for sample in samples(&Plan::Timerlat(plan)) {
        let Sample::Timerlat { cpu, number, context, latency, .. } = sample else { panic!("{sample:?}") };
        assert_eq!(cpu, CpuId(1));
        periods.entry(number).or_default().push((context, latency));
    }
    let whole = periods.values().filter(|samples| samples.len() == 2).count();
    assert!(whole + 2 >= periods.len() && whole > 20, "{periods:?}");
    for samples in periods.values().filter(|samples| samples.len() == 2) {
        let [(Context::Interrupt, first), (Context::Thread, second)] = samples[..] else {
            panic!("{samples:?}")
        };
        assert!(first < second, "{samples:?}");
    }
    assert_eq!(settings(), before);
}

/// timerlat stops the instance itself when it meets a threshold.
pub fn timerlat_stops_at_a_threshold() {
    let least =
        Timerlat { stop_at_thread: Some(Nanos(1_000)), ..Timerlat::every("0".parse().unwrap(), PERIOD) };
    let running = Running::start(&Plan::Timerlat(least)).unwrap();
    std::thread::sleep(LOOK);
    assert!(running.has_stopped().unwrap());
}

/// What is out of range is refused with the range, and nothing is left.
pub fn a_period_out_of_range_is_refused() {
    let before = settings();
    let plan = Timerlat::every("0".parse().unwrap(), Nanos(50_000));
    let error = Running::start(&Plan::Timerlat(plan)).err().unwrap();
    assert!(error.path.ends_with("timerlat_period_us") && error.hint.contains("100 us"), "{error}");
    assert_eq!(settings(), before);
}

//! What is measured, in which order.

use record::RunPlan;
use record::samples::PlannedScenario;
use units::{CpuId, Seed};

/// The plan's scenarios in the order in which they are measured: as given for one pass; drawn by lot within each pass
/// where there are several, so that drift (heat, caches of files) does not fall on the same load every time.
pub fn planned(plan: &RunPlan) -> Vec<PlannedScenario> {
    let mut order = plan.seed.unwrap_or(Seed(0)).stream("order");
    let mut all = Vec::new();
    for repeat in 1..=plan.repeat {
        let mut pass = Vec::new();
        for &interval in &plan.intervals {
            for load in &plan.loads {
                for &cstates in &plan.cstates {
                    pass.push(PlannedScenario { load: load.clone(), interval, cstates, repeat });
                }
            }
        }
        if plan.repeat > 1 {
            order.shuffle(&mut pass);
        }
        all.extend(pass);
    }
    all
}

/// The CPU of each series; none for a thread that is not pinned.
pub fn series_cpus(plan: &RunPlan) -> Vec<Option<CpuId>> {
    plan.cpus.iter().map(|cpu| plan.pinned.contains(cpu).then_some(cpu)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::CStates;
    use units::Nanos;

    fn plan(repeat: u32) -> RunPlan {
        RunPlan {
            loads: vec!["idle".into(), "cpu".into(), "io".into()],
            intervals: vec![Nanos::from_millis(1)],
            cstates: vec![CStates::AsIs],
            seed: Some(Seed(5)),
            repeat,
            ..RunPlan::default()
        }
    }

    #[test]
    fn one_pass_goes_in_the_order_given() {
        let loads: Vec<_> = planned(&plan(1)).into_iter().map(|scenario| scenario.load).collect();
        assert_eq!(loads, ["idle", "cpu", "io"]);
    }

    #[test]
    fn several_passes_are_each_complete_and_drawn_from_the_seed() {
        let passes = planned(&plan(20));
        assert_eq!(passes, planned(&plan(20)));
        let order =
            |pass: &[PlannedScenario]| pass.iter().map(|scenario| scenario.load.clone()).collect::<Vec<_>>();
        let orders: std::collections::BTreeSet<_> = passes.chunks(3).map(order).collect();
        assert!(orders.len() > 1);
        for mut pass in orders {
            pass.sort_unstable();
            assert_eq!(pass, ["cpu", "idle", "io"]);
        }
    }
}

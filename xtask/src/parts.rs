//! Which tests wait: those that CI runs after the test command, and the parts of `--full`.

use anyhow::{Result, ensure};

/// Serial tests that `cargo xtask test --later` runs, as executable and the beginning of the test's path. What each is about
/// has another test that is not here; CI runs both commands.
pub const LATER: &[(&str, &str)] = &[
    ("serial_exposure", "a_command_is_judged"),
    ("serial_exposure", "what_reaches_the_disk"),
    ("serial_exposure", "workers_that_stand_still"),
    ("serial_in_guests", "explain::a_hog_and_an_interrupt"),
    ("serial_in_guests", "explain::a_hog_is_named_on_a_plain_kernel"),
    ("serial_in_guests", "explain::an_interrupt_of_another_cpu"),
    ("serial_in_guests", "explain::an_offline_cpu_hinders_no_trace"),
    ("serial_in_guests", "explain::kernel_code_that_is_not_preempted"),
    ("serial_in_guests", "explain::preemption_that_was_off"),
    ("serial_in_guests", "explain::throttling"),
    ("serial_in_guests", "guard::what_takes_a_core_is_named_on_6_12"),
    ("serial_in_guests", "guard::what_takes_a_core_is_named_on_6_1_rt"),
    ("serial_in_guests", "guest::a_clock_that_is_set"),
    ("serial_in_guests", "guest::the_time_until_settings"),
    ("serial_in_guests", "injected"),
    ("serial_in_guests", "kvm::parts_sum_to_the_latency_on_6_12"),
    ("serial_in_guests", "kvm::the_way_is_measured_and_laid_out_on_6_12"),
    ("serial_in_guests", "noise"),
    ("serial_in_guests", "partition::a_kernel_without_a_tick"),
    ("serial_in_guests", "partition::a_partition_is_proven"),
    ("serial_in_guests", "partition::where_cgroup_v1"),
    ("serial_in_guests", "starved"),
    ("serial_in_guests", "tune::debian_6_12::"),
    ("serial_in_guests", "tune::debian_6_12_rt::a_partition_outlives"),
    ("serial_in_guests", "tune::debian_6_12_rt::threads_of_interrupts"),
    ("serial_in_guests", "tune::debian_6_1::"),
    ("serial_in_guests", "tune::debian_6_1_rt::"),
    ("serial_on_host", "absurd"),
    ("serial_on_host", "calls::in_guests"),
    ("serial_on_host", "cost::each_signal"),
    ("serial_on_host", "cost::half_a_cpu"),
    ("serial_on_host", "evidence::throttling_is_found"),
    ("serial_on_host", "explain::a_softirq"),
    ("serial_on_host", "explain::an_interrupt_of_another_cpu"),
    ("serial_on_host", "kernels::a_cache_on_a_full_disk"),
    ("serial_on_host", "kernels::debians_kernels_are_fetched"),
    ("serial_on_host", "lab::a_disk_lies_under"),
    ("serial_on_host", "lab::a_guest_of_another_architecture"),
    ("serial_on_host", "lab::a_guest_that_is_killed"),
    ("serial_on_host", "lab::a_kernel_under_another_name"),
    ("serial_on_host", "lab::a_record_that_comes_back"),
    ("serial_on_host", "lab::two_runs_with_one_seed"),
    ("serial_on_host", "lab::what_came_of_a_guest"),
    ("serial_on_host", "lab::what_cannot_boot"),
    ("serial_on_host", "lab_ladder::a_ladder_that_was_interrupted"),
    ("serial_on_host", "lab_ladder::preempt_rt_is_far_below"),
    ("serial_on_host", "microscope::each_instruction"),
    ("serial_on_host", "neighbours::random"),
    ("serial_on_host", "network::a_hog_on_the_receivers_cpu"),
    ("serial_on_host", "network::raw_frames"),
    ("serial_on_host", "noise::a_gap_above"),
    ("serial_on_host", "noise::a_hog_is_as_long"),
    ("serial_on_host", "noise::pauses_are_no_noise"),
    ("serial_on_host", "robustness::figures::a_samples_file_holds"),
    ("serial_on_host", "robustness::figures::a_sweep_measures"),
    ("serial_on_host", "robustness::figures::one_seed_meets"),
    ("serial_on_host", "robustness::figures::phases_are_where"),
    ("serial_on_host", "robustness::formats::a_histogram_can_go"),
    ("serial_on_host", "robustness::formats::histograms"),
    ("serial_on_host", "robustness::formats::plain_lines"),
    ("serial_on_host", "robustness::interrupted::a_lost_terminal"),
    ("serial_on_host", "robustness::interrupted::a_run_without_a_planned_length"),
    ("serial_on_host", "robustness::interrupted::ctrl_c_before"),
    ("serial_on_host", "robustness::interrupted::cyclictest_lines"),
    ("serial_on_host", "robustness::interrupted::measure_tells"),
    ("serial_on_host", "robustness::interrupted::termination_ends"),
    ("serial_on_host", "robustness::killed::a_command_that_forks"),
    ("serial_on_host", "robustness::killed::hackbench"),
    ("serial_on_host", "robustness::killed::nothing_survives_parent"),
    ("serial_on_host", "robustness::killed::stress_ng"),
    ("serial_on_host", "robustness::killed::writers"),
    ("serial_on_host", "robustness::lost::a_disk_with_room"),
    ("serial_on_host", "robustness::lost::a_samples_file_that_grows"),
    ("serial_on_host", "trial::a_block_that_is_killed"),
    ("serial_on_host", "trial::a_trial_that_is_reported"),
    ("serial_on_host", "trial::a_trial_without_steal"),
    ("serial_on_host", "trial::raising_ktimers_above"),
    ("serial_on_host", "truth::a_live_look"),
    ("serial_on_host", "truth::a_stopped_process"),
    ("serial_on_host", "wake_path::no_way_is_delayed"),
    ("serial_on_host", "wake_path::timers_pass_through_a_thread_of_debians_real_time_kernel_6_12"),
    ("serial_supervision", "built_in_workers_do_not_survive"),
    ("serial_supervision", "nothing_survives_the_parent"),
    ("serial_trace_guests", "a_kernel_of_2022"),
    ("serial_trace_guests", "a_preempt_rt_kernel_of_2022"),
];

/// Integration tests whose names begin so run one after the other, one test at a time: they are root's, they measure
/// real threads, or they count what other tests would add to.
pub const SERIAL: &str = "serial_";

/// A part of `--full`: tests that are ignored otherwise, at most 80 minutes of them.
pub struct Part {
    /// What `--full` takes.
    pub name: &'static str,
    /// What is run.
    pub tests: &'static [Long],
}

/// Long tests.
#[derive(Clone, Copy)]
pub enum Long {
    /// Those of libraries and programs, and of integration tests that may run side by side.
    Simulations,
    /// Those of a serial executable whose paths begin so.
    Serial(&'static str, &'static str),
    /// Packages, equal builds, an offline build.
    Delivery,
    /// The runtime under ThreadSanitizer and Miri.
    Sanitized,
    /// Faults that are put in by hand, and whether the tests find them.
    Faults,
}

/// All parts, in their order.
pub const FULL: &[Part] = &[
    Part { name: "simulations", tests: &[Long::Simulations] },
    Part { name: "delivery", tests: &[Long::Delivery] },
    Part { name: "sanitized", tests: &[Long::Sanitized] },
    Part { name: "faults", tests: &[Long::Faults] },
    Part {
        name: "machine",
        tests: &[
            Long::Serial("serial_machine", "torture"),
            Long::Serial("serial_long_journal", ""),
            Long::Serial("serial_on_host", "evidence"),
            Long::Serial("serial_on_host", "killed"),
            Long::Serial("serial_on_host", "neighbours"),
        ],
    },
    Part {
        name: "guests",
        tests: &[
            Long::Serial("serial_in_guests", "tune"),
            Long::Serial("serial_in_guests", "partition"),
            Long::Serial("serial_in_guests", "gpio"),
            Long::Serial("serial_on_host", "gpio_wires"),
            Long::Serial("serial_on_host", "network_guests"),
            Long::Serial("serial_in_guests", "explain"),
            Long::Serial("serial_in_guests", "rtla"),
            Long::Serial("serial_in_guests", "ways"),
            Long::Serial("serial_in_guests", "xen"),
            Long::Serial("serial_on_host", "xen"),
            Long::Serial("serial_on_host", "arm64"),
        ],
    },
    // Four kernels, 4 to 23 minutes each.
    Part { name: "injected", tests: &[Long::Serial("serial_in_guests", "injected")] },
    // Four kernels under the microscope, with delays and under six loads.
    Part { name: "traced", tests: &[Long::Serial("serial_on_host", "traced")] },
    Part {
        name: "systems",
        tests: &[Long::Serial("serial_on_host", "persist_"), Long::Serial("serial_on_host", "systemd")],
    },
    Part {
        name: "lab",
        tests: &[
            Long::Serial("serial_on_host", "bisect"),
            Long::Serial("serial_on_host", "lab_"),
            Long::Serial("serial_on_host", "trial"),
        ],
    },
    Part { name: "kernels", tests: &[Long::Serial("serial_on_host", "kernels")] },
];

/// The part of that name, or all.
pub fn chosen(name: Option<&str>) -> Result<Vec<&'static Part>> {
    let chosen: Vec<_> = FULL.iter().filter(|part| name.is_none_or(|name| part.name == name)).collect();
    let names: Vec<_> = FULL.iter().map(|part| part.name).collect();
    ensure!(!chosen.is_empty(), "no such part: there are {}", names.join(", "));
    Ok(chosen)
}

/// Whether `--later` runs the test.
pub fn is_later(executable: &str, path: &str) -> bool {
    LATER.iter().any(|(of, begin)| *of == executable && path.starts_with(begin))
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;
    use crate::workspace;

    /// Files with a test that is too long for the test command.
    fn files_with_long_tests() -> Vec<PathBuf> {
        let is_long = |file: &PathBuf| std::fs::read_to_string(file).unwrap().contains("#[ignore = \"long");
        files().into_iter().filter(is_long).collect()
    }

    /// Executables and the texts of their files.
    fn sources_of_serial_tests() -> Vec<(String, String)> {
        let with_text = |file: PathBuf| {
            let (executable, _) = serial_module(&file)?;
            Some((executable, std::fs::read_to_string(&file).unwrap()))
        };
        files().into_iter().filter_map(with_text).collect()
    }

    fn files() -> Vec<PathBuf> {
        let mut directories = vec![workspace::root().join("crates")];
        let mut files = Vec::new();
        while let Some(directory) = directories.pop() {
            for entry in std::fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    directories.push(path);
                } else if path.extension().is_some_and(|extension| extension == "rs") {
                    files.push(path);
                }
            }
        }
        files
    }

    /// `tests/EXECUTABLE/MODULE/..` or `tests/EXECUTABLE.rs`; none where tests may run side by side.
    fn serial_module(file: &Path) -> Option<(String, String)> {
        let parts: Vec<_> = file.components().map(|part| part.as_os_str().to_string_lossy()).collect();
        let tests = parts.iter().position(|part| part == "tests")?;
        let without_end = |part: &str| part.trim_end_matches(".rs").to_owned();
        let executable = without_end(parts.get(tests + 1)?);
        let module = parts.get(tests + 2).map(|part| without_end(part)).unwrap_or_default();
        executable.starts_with(SERIAL).then_some((executable, module))
    }

    #[test]
    fn every_long_test_belongs_to_one_part() {
        let files = files_with_long_tests();
        assert!(files.len() > 20, "{files:?}");
        for file in files {
            let belongs = |tests: &&Long| match (tests, serial_module(&file)) {
                (Long::Simulations, None) => true,
                (Long::Serial(executable, begin), Some((of, module))) => {
                    *executable == of && module.starts_with(begin)
                }
                _ => false,
            };
            let parts = FULL.iter().flat_map(|part| part.tests).filter(belongs).count();
            assert_eq!(parts, 1, "{}", file.display());
        }
    }

    #[test]
    fn what_waits_is_a_test() {
        let sources = sources_of_serial_tests();
        for (executable, begin) in LATER {
            let name = begin.rsplit("::").find(|part| !part.is_empty()).unwrap_or_default();
            // Some modules are made by a macro, which is given their name.
            let is_there = sources.iter().any(|(of, text)| of == executable && text.contains(name));
            assert!(is_there, "{executable} has no {begin}");
        }
    }

    #[test]
    fn a_part_has_a_name_of_its_own() {
        assert_eq!(chosen(None).unwrap().len(), FULL.len());
        assert!(FULL.iter().all(|part| chosen(Some(part.name)).unwrap().len() == 1));
        assert!(chosen(Some("everything")).is_err());
    }
}

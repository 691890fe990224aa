//! What code is for.

/// One thing that the product can do.
#[derive(Debug)]
pub struct Capability {
    /// In the table.
    pub name: &'static str,
    /// How the paths of its files begin. A file belongs where the longest one fits.
    pub paths: &'static [&'static str],
}

/// All of them. `trial/`, `machine/src/survey/`, `report/src/ladder/` and `worstcase/src/run/` are of former commits.
pub const CAPABILITIES: [Capability; 21] = [
    Capability {
        name: "wake-ups: the timer probe, and what all probes share",
        paths: &[
            "crates/probe/",
            "crates/record/src/model/instrument/timer",
            "crates/report/src/instrument/timer",
            "crates/worstcase/src/instrument/timer",
        ],
    },
    Capability {
        name: "noise",
        paths: &[
            "crates/probe/src/noise",
            "crates/record/src/model/instrument/noise",
            "crates/report/src/instrument/noise",
            "crates/runner/src/beside/noise",
            "crates/worstcase/src/instrument/noise",
        ],
    },
    Capability {
        name: "responses: network, GPIO, echo, monitors",
        paths: &[
            "crates/wire/",
            "crates/probe/src/response",
            "crates/probe/src/gpio",
            "crates/record/src/model/instrument/response",
            "crates/record/src/model/instrument/gpio",
            "crates/record/src/monitor",
            "crates/report/src/instrument/response",
            "crates/report/src/instrument/gpio",
            "crates/runner/src/beside/respond",
            "crates/sys/src/gpio",
            "crates/sys/src/net",
            "crates/worstcase/src/commands/echo",
            "crates/worstcase/src/commands/monitor",
            "crates/worstcase/src/instrument/gpio",
            "crates/worstcase/src/instrument/network",
        ],
    },
    Capability {
        name: "costs: operations, calls, trade-offs",
        paths: &[
            "crates/operation/",
            "crates/probe/src/call",
            "crates/record/src/cost",
            "crates/record/src/model/instrument/call",
            "crates/report/src/cost",
            "crates/report/src/instrument/call",
            "crates/report/src/svg/trade",
            "crates/worstcase/src/commands/cost",
            "crates/worstcase/src/instrument/call",
        ],
    },
    Capability {
        name: "wake path: priorities of kernel threads",
        paths: &[
            "crates/wakepath/",
            "crates/record/src/wake_path",
            "crates/report/src/wake_path",
            "crates/worstcase/src/commands/check/wake",
        ],
    },
    Capability {
        name: "explanations: traces, causes, live watch, exports",
        paths: &[
            "crates/capture/",
            "crates/explain/",
            "crates/trace/",
            "crates/formats/src/trace",
            "crates/formats/src/perfetto",
            "crates/record/src/model/explanation",
            "crates/record/src/model/overview",
            "crates/report/src/explanation",
            "crates/report/src/overview",
            "crates/report/src/page/explanations",
            "crates/report/src/svg/lane",
            "crates/runner/src/traced",
            "crates/runner/src/tracer",
            "crates/worstcase/src/commands/explain",
        ],
    },
    Capability {
        name: "microscope of guests",
        paths: &[
            "crates/microscope/",
            "crates/plugin/",
            "crates/lab/src/microscope",
            "crates/report/src/microscope",
            "crates/worstcase/src/commands/lab/explain",
        ],
    },
    Capability {
        name: "runtime and its C interface",
        paths: &[
            "crates/runtime/",
            "crates/runtime-c/",
            "crates/capture/src/guard",
            "crates/explain/src/guard",
            "crates/worstcase/src/commands/guard",
        ],
    },
    Capability {
        name: "lab and experiments: guests, trial, search, bisection, ladder",
        paths: &[
            "crates/lab/",
            "crates/experiment/",
            "crates/trial/",
            "crates/report/src/experiment",
            "crates/report/src/ladder/",
            "crates/worstcase/src/commands/experiments",
            "crates/worstcase/src/commands/found_experiment",
            "crates/worstcase/src/commands/lab/",
            "crates/worstcase/src/commands/tune/trial",
        ],
    },
    Capability {
        name: "recipes: other people's files judged",
        paths: &[
            "crates/audit/src/recipe",
            "crates/machine/src/grammar",
            "crates/worstcase/src/commands/check/papers",
        ],
    },
    Capability {
        name: "rules: facts asked, judged, exported",
        paths: &[
            "crates/audit/",
            "crates/survey/",
            "crates/machine/src/survey/",
            "crates/report/src/findings",
            "crates/worstcase/src/commands/check/",
        ],
    },
    Capability {
        name: "machine read: live, directory, snapshot",
        paths: &["crates/machine/", "crates/sysroot/"],
    },
    Capability {
        name: "machine changed: settings, partitions, boot, undo",
        paths: &[
            "crates/control/",
            "crates/tune/",
            "crates/worstcase/src/commands/partition",
            "crates/worstcase/src/commands/tune",
        ],
    },
    Capability { name: "loads", paths: &["crates/load/"] },
    Capability {
        name: "records: types, journal, verdict, claims, formats",
        paths: &["crates/record/", "crates/formats/"],
    },
    Capability { name: "reports: tables, page, plots", paths: &["crates/report/"] },
    Capability {
        name: "runs: plan, scenarios, evidence",
        paths: &["crates/runner/", "crates/worstcase/src/run/"],
    },
    Capability { name: "commands, the rest", paths: &["crates/worstcase/"] },
    Capability { name: "system calls", paths: &["crates/sys/"] },
    Capability {
        name: "numbers, files, text, errors",
        paths: &[
            "crates/failure/",
            "crates/files/",
            "crates/histogram/",
            "crates/printable/",
            "crates/statistics/",
            "crates/units/",
        ],
    },
    Capability { name: "tools of the project (xtask)", paths: &["xtask/"] },
];

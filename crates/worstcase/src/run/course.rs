//! The course of a run: scenario after scenario, then the judgement.

use std::path::PathBuf;

use record::journal::Line;
use record::verdict::Verdict;
use record::{Record, Scenario, ScenarioEnd};

use super::display::Display;
use super::scenario;
use super::session::Session;
use crate::error::Result;
use crate::output;

/// Measures every scenario of the plan, or as many as the user and the machine let it, and judges the run.
pub fn run(mut session: Session, display: &mut dyn Display) -> Result<Outcome> {
    let planned = session.header.plan.scenarios();
    let mut scenarios: Vec<Scenario> = Vec::new();
    for (index, next) in planned.iter().enumerate() {
        if session.was_asked_to_end() {
            break;
        }
        let measured = match scenario::measure(&mut session, next, index, planned.len(), display) {
            Ok(measured) => measured,
            Err(error) if scenarios.is_empty() => return Err(error),
            Err(error) => {
                // What was measured before is worth its record.
                output::error(&error);
                session.outputs.lost(error.message);
                break;
            }
        };
        session.outputs.append(&Line::Ended(Box::new(measured.scenario.clone())));
        let watched = session.is_watched(display.ended(&measured.scenario));
        scenarios.push(measured.scenario);
        if !measured.go_on || !watched {
            break;
        }
    }
    let interrupted =
        session.asked_to_end || scenarios.iter().any(|scenario| scenario.end == ScenarioEnd::Interrupted);
    let (record, path) = session.outputs.finish(session.header, scenarios);
    Ok(Outcome { record, path, interrupted })
}

/// What a run left.
pub struct Outcome {
    /// The record, judged.
    pub record: Record,
    /// Where it is.
    pub path: Option<PathBuf>,
    /// Whether the user ended it.
    pub interrupted: bool,
}

impl Outcome {
    /// The exit code that the verdict asks for; 130 where the user ended the run before anything was measured. Output
    /// that was lost, as `shown` tells, is said here and is an error, unless the run has failed anyway.
    pub fn exit_code(&self, shown: Result<()>) -> u8 {
        let verdict = self.record.judgement.verdict;
        if let Err(error) = shown {
            output::error(&error);
            return verdict.max(Verdict::Error).exit_code();
        }
        if self.interrupted && !self.record.is_measured() {
            return 130;
        }
        verdict.exit_code()
    }
}

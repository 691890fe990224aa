//! A run: scenario after scenario, then the judgement.

use std::path::{Path, PathBuf};

use failure::{Error, Result};
use record::journal::Line;
use record::{Header, Record, Request, Scenario, ScenarioEnd};

use crate::observer::Observer;
use crate::plan::Means;
use crate::scenario;
use crate::session::Session;
use crate::traced;

/// A run that is prepared: its CPUs are claimed, its record is begun.
pub struct Run {
    session: Session,
}

impl Run {
    /// Looks at the machine, makes a plan of the request, and begins the record.
    ///
    /// # Errors
    /// What cannot be measured as asked, with a hint: nothing has been started then.
    pub fn prepare(request: Request, means: &Means) -> Result<Self> {
        Ok(Self { session: Session::begin(request, means)? })
    }

    /// What the record begins with: plan, machine.
    pub fn header(&self) -> &Header {
        &self.session.header
    }

    /// Where the record is written, if it is.
    pub fn path(&self) -> Option<&Path> {
        self.session.outputs.path()
    }

    /// Measures every scenario of the plan, or as many as the user and the machine let it, and judges the run.
    ///
    /// # Errors
    /// Where not even the first scenario can be measured. What fails later ends the run and stands in its record.
    pub fn measure(self, observer: &mut dyn Observer) -> Result<Outcome> {
        let mut session = self.session;
        let planned = session.header.plan.scenarios();
        let (mut scenarios, mut failure) = (Vec::<Scenario>::new(), None);
        for (index, next) in planned.iter().enumerate() {
            if session.was_asked_to_end() {
                break;
            }
            let measured = match scenario::measure(&mut session, next, index, planned.len(), None, observer) {
                Ok(measured) => measured,
                Err(error) if scenarios.is_empty() => return Err(error),
                Err(error) => {
                    // What was measured before is worth its record.
                    session.outputs.lost(error.message.clone());
                    failure = Some(error);
                    break;
                }
            };
            session.outputs.append(&Line::Ended(Box::new(measured.scenario.clone())));
            let watched = session.is_watched(observer.ended(&measured.scenario));
            scenarios.push(measured.scenario);
            if !measured.go_on || !watched {
                break;
            }
        }
        let interrupted =
            session.asked_to_end || scenarios.iter().any(|scenario| scenario.end == ScenarioEnd::Interrupted);
        let explanations = match session.explain {
            Some((wanted, make)) if !interrupted && failure.is_none() => {
                traced::explain(&mut session, &scenarios, wanted, make, observer)
            }
            _ => Vec::new(),
        };
        let (stop_failure, explanation_failure) = (session.stop_failure, session.explanation_failure);
        let explained = (explanations, explanation_failure.as_ref());
        let (record, path) = session.outputs.finish(session.header, scenarios, explained);
        Ok(Outcome { record, path, interrupted, failure, stop_failure, explanation_failure })
    }
}

/// What a run left.
pub struct Outcome {
    /// The record, judged.
    pub record: Record,
    /// Where it is, if it was written.
    pub path: Option<PathBuf>,
    /// Whether the user ended it.
    pub interrupted: bool,
    /// Why a scenario after the first could not be measured, which ended the run.
    pub failure: Option<Error>,
    /// Why the command for `stop_at` failed, which changes nothing in the record.
    pub stop_failure: Option<Error>,
    /// Why late wake-ups could not be explained, which changes no figure.
    pub explanation_failure: Option<Error>,
}

impl Outcome {
    /// The exit code that the verdict asks for; 130 where the user ended the run before anything was measured.
    pub fn exit_code(&self) -> u8 {
        if self.interrupted && !self.record.is_measured() {
            return 130;
        }
        self.record.judgement.verdict.exit_code()
    }
}

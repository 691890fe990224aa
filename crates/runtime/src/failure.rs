//! Calls that fail: what the caller gets back, and what error handlers are given.

use crate::event::Event;
use crate::model::{Error, ObjectId};

/// A call that did not take the event: here it is, still the caller's.
#[derive(Debug)]
pub struct Refused {
    /// Why.
    pub error: Error,
    /// The event; none where an error handler took it.
    pub event: Option<Event>,
}

/// The call in which an error arose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Allocation of an event.
    Allocate,
    /// A send.
    Send,
    /// Dispatch.
    Dispatch,
    /// Event groups.
    Group,
    /// The application's own, by [`crate::Here::fail`].
    Application,
}

/// What an error handler is given.
#[derive(Debug)]
pub struct Failure {
    /// What went wrong.
    pub error: Error,
    /// In which call.
    pub scope: Scope,
    /// The object that runs.
    pub object: Option<ObjectId>,
    /// The event that was not sent: taken here, it is the handler's.
    pub event: Option<Event>,
}

/// What an error handler makes of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handled {
    /// Nothing: the next handler is asked, the object's before the machine's.
    Pass,
    /// The call returns this.
    Return(Result<(), Error>),
}

//! Ways in which the machine can be broken on purpose, one for each invariant of the conformance suite.

/// What is broken. The numbers are those of the invariants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Breakage {
    /// Nothing.
    None = 0,
    /// Each eighth event that is freed is lost.
    LostEvents = 1,
    /// Events of atomic queues go to any core.
    AtomicAnywhere = 2,
    /// An event overtakes the one before it.
    Overtaking = 3,
    /// What ordered events send is sent as they end.
    Disordered = 4,
    /// An ordered event that sends nothing leaves its place empty.
    SkipBlocks = 5,
    /// The end of atomic processing drops the queue's next event.
    EndDrops = 6,
    /// Parallel queues use one core.
    NotParallel = 7,
    /// A core that was taken from a group goes on.
    MaskIgnored = 8,
    /// The lowest level first.
    PriorityReversed = 9,
    /// Weighted order is strict.
    Starving = 10,
    /// Local events wait behind others.
    LocalLate = 11,
    /// The newest event is taken out first.
    LastInFirstOut = 12,
    /// A stopped object goes on receiving.
    StopIgnored = 13,
    /// Sends of a start function are not held back.
    StartUnbuffered = 14,
    /// An object whose start failed runs.
    FailureIgnored = 15,
    /// A group's notifications are sent one event early.
    NotifiedEarly = 16,
    /// An aborted group sends its notifications too.
    AbortIgnored = 17,
    /// A batch counts as one event.
    BatchCountsOne = 18,
    /// One round more than was asked for.
    RoundTooMany = 19,
    /// Exit callbacks are left out where events were dropped.
    ExitLeftOut = 20,
    /// The machine's error handler comes before the object's.
    HandlersSwapped = 21,
    /// Timeouts fire early.
    TimerEarly = 22,
    /// A period begins when the event is acknowledged.
    TimerDrifts = 23,
    /// A pool that was empty stays so.
    ExhaustedForGood = 24,
    /// Events in removed queues are forgotten.
    TeardownLeaks = 25,
    /// Panics are not reported.
    PanicHidden = 26,
}

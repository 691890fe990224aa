//! Sleeps that end before their time or fail: what all instruments make of them.

use sys::Errno;
use sys::shared::Word;

use crate::board::{self, Recorder};

/// After so many wake-ups before their time in a row, nothing sleeps: signals come one by one, milliseconds apart.
const MOST: u32 = 1_000;

/// The sleep returned at once, again and again, and named no error.
pub const NO_SLEEP: Errno = Errno::ALREADY;

/// How many wake-ups in a row came before their time.
#[derive(Debug, Default)]
pub struct Early(u32);

impl Early {
    /// One more.
    ///
    /// # Errors
    /// [`NO_SLEEP`], where nothing sleeps.
    #[inline]
    pub fn again(&mut self, recorder: &mut Recorder<'_>) -> Result<(), Errno> {
        recorder.early();
        self.0 += 1;
        if self.0 < MOST { Ok(()) } else { Err(NO_SLEEP) }
    }

    /// One came in time.
    #[inline]
    pub fn reset(&mut self) {
        self.0 = 0;
    }
}

/// The run phase of a thread is over. Where a sleep failed it is over for all threads; `running` is the last reading of the
/// clock at which the run was not stopped.
#[inline]
pub fn finish(result: Result<(), Errno>, running: u64, board: &[Word], recorder: &mut Recorder<'_>) {
    if let Err(errno) = result {
        recorder.sleep_failed(errno);
        board::stop(board, running);
    }
    recorder.finish(running);
}

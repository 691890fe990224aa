//! How a waiter waits, whatever wakes it.

use failure::Result;

/// The waiter's end. It is made and used by the thread that waits.
pub trait Wait {
    /// A clock is to wake at `due` ([`sys::clock::Clock::Monotonic`]). Nothing where another thread does.
    ///
    /// # Errors
    /// What the kernel refused.
    fn arm(&mut self, _due: u64) -> Result<()> {
        Ok(())
    }

    /// Waits for it.
    ///
    /// # Errors
    /// What the kernel refused.
    fn wait(&mut self) -> Result<()>;
}

//! The thread that reads the rings goes before the load: what it does not read in time is overwritten.

use sys::schedule;

/// While it is there, its thread has the least nice value; what was there before comes back. A kernel that refuses it, refuses
/// tracing too.
#[derive(Debug)]
pub struct Urgent {
    former: i32,
}

impl Urgent {
    /// Of the calling thread; none where that cannot be.
    pub fn begin() -> Option<Self> {
        let former = schedule::nice().ok()?;
        schedule::set_nice(-20).ok()?;
        Some(Self { former })
    }
}

impl Drop for Urgent {
    fn drop(&mut self) {
        // A greater value is never refused.
        let _ = schedule::set_nice(self.former);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thread_is_as_nice_afterwards_as_it_was() {
        std::thread::spawn(|| {
            schedule::set_nice(3).unwrap();
            let Some(urgent) = Urgent::begin() else {
                return println!("skipped: needs privileges: a nice value below 0");
            };
            assert_eq!(schedule::nice().unwrap(), -20);
            drop(urgent);
            assert_eq!(schedule::nice().unwrap(), 3);
        })
        .join()
        .unwrap();
    }
}

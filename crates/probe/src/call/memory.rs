//! Calls that are no waits: a page that is touched, and a neighbour that changes the mapping of all.

use std::sync::{Arc, Mutex, PoisonError};

use failure::Error;
use sys::Errno;
use sys::clock::Clock;
use sys::mapping::{Mapping, page_size};

use super::engine::Call;
use super::partner::{Partner, Standing};

/// How long the measuring thread watches its clock while the neighbour works, in nanoseconds.
const WATCHED: u64 = 100_000;
/// Changes of a mapping that a neighbour makes at each order.
const CHANGES: usize = 4;

/// The first touch of a page.
pub(super) struct Touch {
    page: Mapping,
    is_locked: bool,
}

impl Touch {
    /// Of one that is locked, and there; or of one that the kernel has to give.
    pub fn begin(is_locked: bool) -> Result<Self, Error> {
        let mut page = Mapping::new(page_size())?;
        if !is_locked {
            page.unlock()?;
        }
        page.touch(1);
        Ok(Self { page, is_locked })
    }
}

impl Call for Touch {
    fn once(&mut self) -> Result<u64, Errno> {
        if !self.is_locked {
            self.page.forget().map_err(|error| error.errno)?;
        }
        let before = Clock::Monotonic.now();
        self.page.touch(page_size());
        Ok(Clock::Monotonic.now().saturating_sub(before))
    }
}

/// A neighbour on another CPU changes pages of the same process: the kernel has this CPU forget them. The value is the longest
/// gap between two readings of the clock.
pub(super) struct Shootdown {
    neighbour: Partner,
}

impl Shootdown {
    /// The neighbour takes and gives the right to write.
    pub fn by_rights(standing: Standing) -> Result<Self, Error> {
        let mut mapping = Mapping::new(page_size())?;
        mapping.touch(1);
        let mapping = Arc::new(Mutex::new(mapping));
        Self::begin(standing, move || {
            let mut mapping = mapping.lock().unwrap_or_else(PoisonError::into_inner);
            for _ in 0..CHANGES {
                let _ = mapping.protect(false).and_then(|()| mapping.protect(true));
                mapping.touch(page_size());
            }
        })
    }

    /// The neighbour maps pages, touches and unmaps them.
    pub fn by_mapping(standing: Standing) -> Result<Self, Error> {
        Self::begin(standing, || {
            for _ in 0..CHANGES {
                if let Ok(mut mapping) = Mapping::new(page_size()) {
                    mapping.touch(page_size());
                }
            }
        })
    }

    fn begin(standing: Standing, work: impl FnMut() + Send + 'static) -> Result<Self, Error> {
        Ok(Self { neighbour: Partner::start("neighbour", standing, work)? })
    }
}

impl Call for Shootdown {
    fn once(&mut self) -> Result<u64, Errno> {
        let clock = Clock::Monotonic;
        self.neighbour.orders.give();
        let mut last = clock.now();
        let (end, mut longest) = (last + WATCHED, 0);
        while last < end {
            let now = clock.now();
            longest = longest.max(now - last);
            last = now;
        }
        Ok(longest)
    }
}

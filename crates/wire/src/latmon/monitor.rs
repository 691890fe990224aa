//! The side of latmon: what a responder asks for, and what is sent to it.

use super::{Fault, MOST_CELLS, REQUEST, Request, Sample};

/// Reads what a responder asks for, in pieces of any size.
#[derive(Debug, Default)]
pub struct Requests {
    begun: Vec<u8>,
}

impl Requests {
    /// Takes the first bytes of what has come: how many, and what they complete. To be asked again with the rest: what
    /// follows a request is for after it.
    ///
    /// # Errors
    /// A request that cannot be served: the connection is to be closed, as latmon does.
    pub fn take(&mut self, bytes: &[u8]) -> Result<(usize, Option<Request>), Fault> {
        let taken = bytes.len().min(REQUEST - self.begun.len());
        self.begun.extend_from_slice(&bytes[..taken]);
        let Ok(whole) = <[u8; REQUEST]>::try_from(self.begun.as_slice()) else { return Ok((taken, None)) };
        self.begun.clear();
        Request::read(whole).map(|request| (taken, Some(request)))
    }

    /// The connection ended.
    ///
    /// # Errors
    /// In the middle of a request.
    pub fn end(&self) -> Result<(), Fault> {
        match self.begun.len() {
            0 => Ok(()),
            got => Err(Fault::Cut { what: "a request", got, wanted: REQUEST }),
        }
    }
}

/// What a monitor has measured and not sent. A record is due at least each second of time, with as many samples as there
/// are: latmus gives up after five without one.
#[derive(Clone, Debug)]
pub struct Bulk {
    sum: i64,
    min: i32,
    max: i32,
    overruns: u32,
    samples: u32,
    histogram: Vec<u32>,
}

impl Bulk {
    /// Of a run with a histogram of `cells` cells, [`MOST_CELLS`] at most.
    pub fn new(cells: u32) -> Self {
        let histogram = vec![0; cells.min(MOST_CELLS) as usize];
        Self { sum: 0, min: i32::MAX, max: 0, overruns: 0, samples: 0, histogram }
    }

    /// An answer came after `nanos`. What the frames cannot hold is as much as they can.
    pub fn answered(&mut self, nanos: u64) {
        let nanos = i32::try_from(nanos).unwrap_or(i32::MAX);
        self.sum = self.sum.saturating_add(nanos.into());
        (self.min, self.max) = (self.min.min(nanos), self.max.max(nanos));
        self.samples = self.samples.saturating_add(1);
        let last = self.histogram.len().saturating_sub(1);
        if let Some(cell) = self.histogram.get_mut((nanos as usize / 1_000).min(last)) {
            *cell = cell.saturating_add(1);
        }
    }

    /// An answer did not come, or came so late that it covered more periods.
    pub fn missed(&mut self, count: u32) {
        self.overruns = self.overruns.saturating_add(count);
    }

    /// The record that is due now; none where there is no sample to divide by: what was missed is in the next.
    pub fn record(&mut self) -> Option<Sample> {
        (self.samples > 0).then(|| {
            let sample = Sample {
                sum: self.sum,
                min: self.min,
                max: self.max,
                overruns: self.overruns,
                samples: self.samples,
            };
            (self.sum, self.min, self.max, self.overruns, self.samples) = (0, i32::MAX, 0, 0, 0);
            sample
        })
    }

    /// What answers a stop: a record of what is left, the terminator, the histogram.
    pub fn trailer(&mut self) -> Vec<u8> {
        let left = self.record();
        let mut bytes: Vec<u8> = left.iter().flat_map(|sample| sample.bytes()).collect();
        bytes.extend(Sample::terminator(std::mem::take(&mut self.overruns)).bytes());
        bytes.extend(self.histogram.iter().flat_map(|cell| cell.to_be_bytes()));
        bytes
    }
}

//! The instruments. To add one: a module beside [`crate::timer`] whose job is an [`OwnJob`], and its line in the list below.

use record::{Header, Setup};
use serde::{Deserialize, Serialize};

use crate::job::OwnJob;
use crate::{gpio::GpioJob, noise::NoiseJob, response::ResponseJob, timer::TimerJob};

/// The enum that has a variant an instrument.
macro_rules! jobs {
    ($($variant:ident, $job:ty;)+) => {
        /// What an instrument's threads do.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        pub enum Job {
            $(#[doc = concat!("As [`", stringify!($job), "`] says.")] $variant($job)),+
        }

        impl Job {
            /// What is to be done with `setup` in a run that begins with `header`.
            pub fn new(setup: &Setup, header: &Header) -> Self {
                match setup { $(Setup::$variant(own) => Self::$variant(<$job>::new(own, header))),+ }
            }

            pub(crate) fn own(&self) -> &dyn OwnJob {
                match self { $(Self::$variant(own) => own),+ }
            }
        }
    };
}

jobs! {
    Timer, TimerJob;
    Noise, NoiseJob;
    Response, ResponseJob;
    Gpio, GpioJob;
}

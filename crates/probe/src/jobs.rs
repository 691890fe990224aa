//! What the list of instruments becomes, which stands in the head of this crate.

/// The enum that has a variant an instrument.
macro_rules! jobs {
    ($($variant:ident, $job:ty;)+) => {
        /// What an instrument's threads do.
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        pub enum Job {
            $(#[doc = concat!("As [`", stringify!($job), "`] says.")] $variant($job)),+
        }

        impl Job {
            /// What is to be done with `setup` in a run that begins with `header`.
            pub fn new(setup: &record::Setup, header: &record::Header) -> Self {
                match setup { $(record::Setup::$variant(own) => Self::$variant(<$job>::new(own, header))),+ }
            }

            pub(crate) fn own(&self) -> &dyn $crate::job::OwnJob {
                match self { $(Self::$variant(own) => own),+ }
            }
        }
    };
}

pub(crate) use jobs;

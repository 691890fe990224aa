//! Files of the kernel that hold other values for a while.

use rustix::io::Errno;

use crate::Kernel;

/// A file and the value that it is to hold for a while.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Change {
    path: String,
    before: String,
    value: String,
}

/// Values of some files that belong together: made in one go, and put back in one go. Files whose values limit each other, as a
/// period and the part of it that is used, are written in the order that the kernel allows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes(Vec<Change>);

impl Changes {
    /// Reads what the files hold now, and remembers what they are to hold. Nothing is written yet.
    ///
    /// # Errors
    /// The file that cannot be read, with what it answered.
    pub fn plan(
        kernel: &impl Kernel,
        files: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, (String, record::Fact<String>)> {
        let root = kernel.root();
        let change = |(path, value): (String, String)| match root.read(&path) {
            record::Fact::Value(text) => {
                let before = text.trim().to_owned();
                Ok(Change { path, before, value })
            }
            fact => Err((path, fact)),
        };
        let changes = files.into_iter().map(change).collect::<Result<Vec<_>, _>>()?;
        Ok(Self(changes.into_iter().filter(|change| change.before != change.value).collect()))
    }

    /// Writes the values.
    ///
    /// # Errors
    /// The first file that the kernel refuses whatever was written before it, and what it answered. What was written stays
    /// written until [`Changes::put_back`].
    pub fn make(&self, kernel: &mut impl Kernel) -> Result<(), (String, Errno)> {
        write_all(kernel, self.0.iter().map(|change| (change.path.as_str(), change.value.as_str())))
    }

    /// Puts back what was there, where the file still holds the value of [`Changes::make`]: what somebody else has written
    /// meanwhile stays.
    ///
    /// # Errors
    /// As of [`Changes::make`].
    pub fn put_back(&self, kernel: &mut impl Kernel) -> Result<(), (String, Errno)> {
        let root = kernel.root();
        let is_ours = |change: &&Change| {
            root.read(&change.path).value().is_some_and(|text| text.trim() == change.value)
        };
        let ours: Vec<&Change> = self.0.iter().filter(is_ours).collect();
        write_all(kernel, ours.iter().map(|change| (change.path.as_str(), change.before.as_str())))
    }
}

/// Writes files; those that are refused once more after the others, as long as any is taken.
fn write_all<'a>(
    kernel: &mut impl Kernel,
    files: impl Iterator<Item = (&'a str, &'a str)>,
) -> Result<(), (String, Errno)> {
    let mut left: Vec<(&str, &str)> = files.collect();
    loop {
        let count = left.len();
        let mut refused = None;
        left.retain(|(path, value)| match kernel.write_file(path, value) {
            Ok(()) => false,
            Err(errno) => {
                refused.get_or_insert(((*path).to_owned(), errno));
                true
            }
        });
        match refused {
            None => return Ok(()),
            Some(refused) if left.len() == count => return Err(refused),
            Some(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::SliceProperty;
    use sysroot::{SysRoot, Tree};
    use units::{CpuList, Policy};

    /// A kernel with a period and a part of it, which is never longer.
    #[derive(Default)]
    struct MadeUp(BTreeMap<String, String>);

    impl Kernel for MadeUp {
        fn root(&self) -> SysRoot {
            let files = self.0.iter().map(|(path, text)| (path.clone(), text.clone().into_bytes()));
            SysRoot::of(Tree::whole(files))
        }
        fn write_file(&mut self, path: &str, value: &str) -> Result<(), Errno> {
            let number = |text: &String| text.trim().parse::<u64>().map_err(|_| Errno::INVAL);
            let mut files = self.0.clone();
            files.insert(path.to_owned(), value.to_owned());
            if number(&files["/proc/part"])? > number(&files["/proc/period"])? {
                return Err(Errno::INVAL);
            }
            self.0 = files;
            Ok(())
        }
        fn make_directory(&mut self, _: &str) -> Result<(), Errno> {
            Err(Errno::NOSYS)
        }
        fn remove_directory(&mut self, _: &str) -> Result<(), Errno> {
            Err(Errno::NOSYS)
        }
        fn set_affinity(&mut self, _: i32, _: &CpuList) -> Result<(), Errno> {
            Err(Errno::NOSYS)
        }
        fn set_scheduling(&mut self, _: i32, _: Policy, _: u32) -> Result<(), Errno> {
            Err(Errno::NOSYS)
        }
        fn swap(&mut self, _: &str, _: Option<i32>) -> Result<(), Errno> {
            Err(Errno::NOSYS)
        }
        fn service(&mut self, _: &str, _: bool) -> Result<(), Errno> {
            Err(Errno::NOSYS)
        }
        fn slice(&mut self, _: &str, _: SliceProperty, _: &str) -> Result<(), Errno> {
            Err(Errno::NOSYS)
        }
        fn limit_latency(&mut self, _: Option<u32>) -> Result<(), Errno> {
            Err(Errno::NOSYS)
        }
    }

    fn kernel(part: &str, period: &str) -> MadeUp {
        let file = |name: &str, value: &str| (format!("/proc/{name}"), format!("{value}\n"));
        MadeUp(BTreeMap::from([file("part", part), file("period", period)]))
    }

    fn planned(kernel: &MadeUp, part: &str, period: &str) -> Changes {
        let file = |name: &str, value: &str| (format!("/proc/{name}"), value.to_owned());
        Changes::plan(kernel, [file("part", part), file("period", period)]).unwrap()
    }

    fn values(kernel: &MadeUp) -> Vec<&str> {
        kernel.0.values().map(|text| text.trim()).collect()
    }

    #[test]
    fn values_that_limit_each_other_are_made_and_put_back_in_the_order_that_is_allowed() {
        for (part, period) in [("20", "30"), ("1", "2")] {
            let mut kernel = kernel("5", "10");
            let changes = planned(&kernel, part, period);
            changes.make(&mut kernel).unwrap();
            assert_eq!(values(&kernel), [part, period]);
            changes.put_back(&mut kernel).unwrap();
            assert_eq!(values(&kernel), ["5", "10"]);
        }
    }

    #[test]
    fn what_is_refused_whatever_was_written_before_is_an_error() {
        let mut kernel = kernel("5", "10");
        let changes = planned(&kernel, "40", "30");
        assert_eq!(changes.make(&mut kernel), Err(("/proc/part".to_owned(), Errno::INVAL)));
        changes.put_back(&mut kernel).unwrap();
        assert_eq!(values(&kernel), ["5", "10"]);
    }

    #[test]
    fn a_value_that_somebody_else_has_written_meanwhile_stays() {
        let mut kernel = kernel("5", "10");
        let changes = planned(&kernel, "6", "11");
        changes.make(&mut kernel).unwrap();
        kernel.write_file("/proc/period", "12").unwrap();
        changes.put_back(&mut kernel).unwrap();
        assert_eq!(values(&kernel), ["5", "12"]);
    }

    #[test]
    fn a_file_that_is_absent_is_named_and_nothing_is_written() {
        let files = [("/proc/absent".to_owned(), "1".to_owned())];
        let (path, fact) = Changes::plan(&kernel("5", "10"), files).unwrap_err();
        assert_eq!((path.as_str(), fact), ("/proc/absent", record::Fact::Absent));
    }
}

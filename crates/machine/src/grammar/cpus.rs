//! CPU lists as the kernel reads them (`bitmap_parselist` in lib/bitmap-str.c).

use units::{CpuList, KernelVersion};

/// Why the kernel does not take a list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CpuListFault {
    /// Not numbers, ranges and strides.
    #[error("`{0}` is no CPU, range or stride, as in 0-3,7 or 0-15:1/2")]
    Malformed(String),
    /// A range that runs backwards.
    #[error("`{0}` runs backwards")]
    Backwards(String),
    /// A CPU above the last one.
    #[error("`{0}` names a CPU that does not exist")]
    TooHigh(String),
}

/// The last CPU of a machine of which nothing is known.
const LAST: u32 = 1023;

/// The CPUs of a list: items with commas between them, empty ones skipped; `N` is the last CPU (since 5.13), `all` all of them
/// (since 5.14), `first-last:used/group` a stride. `last` is the machine's last CPU, where it is known.
///
/// # Errors
/// What the kernel does not take.
pub fn cpu_list(
    text: &str,
    last: Option<u32>,
    version: Option<KernelVersion>,
) -> Result<CpuList, CpuListFault> {
    let since = |minor| version.is_none_or(|version| version >= KernelVersion::new(5, minor));
    let mut cpus = CpuList::new();
    for item in text.split(',').filter(|item| !item.is_empty()) {
        let malformed = || CpuListFault::Malformed(item.to_owned());
        let end = last.unwrap_or(LAST);
        let number = |text: &str| match text {
            "N" if since(13) => Ok(end),
            digits if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                digits.parse().map_err(|_| malformed())
            }
            _ => Err(malformed()),
        };
        let (range, stride) =
            item.split_once(':').map_or((item, None), |(range, stride)| (range, Some(stride)));
        let (from, to) = match range.split_once('-') {
            _ if range.eq_ignore_ascii_case("all") && since(14) => (0, end),
            Some((from, to)) => (number(from)?, number(to)?),
            None if stride.is_some() => return Err(malformed()),
            None => (number(range)?, number(range)?),
        };
        let (used, group) = match stride.map(|stride| stride.split_once('/').ok_or_else(malformed)) {
            Some(stride) => stride.and_then(|(used, group)| Ok((number(used)?, number(group)?)))?,
            None => (1, 1),
        };
        if to < from {
            return Err(CpuListFault::Backwards(item.to_owned()));
        }
        if group == 0 || used > group {
            return Err(malformed());
        }
        if to > last.unwrap_or(units::MAX_CPUS - 1) {
            return Err(CpuListFault::TooHigh(item.to_owned()));
        }
        for first in (from..=to).step_by(group as usize) {
            (first..=to).take(used as usize).for_each(|cpu| cpus.insert(units::CpuId(cpu)));
        }
    }
    Ok(cpus)
}

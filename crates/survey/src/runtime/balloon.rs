//! Memory that a guest gives back to its host while it runs (virtio 1.2, "Traditional Memory Balloon Device").

use record::Fact;

use crate::survey::{NamedFact, Survey, fact};
use crate::value::{Item, Reading, item, list, reading};

pub(super) const FACTS: &[NamedFact] = &[
    fact("balloon.devices", "devices by which the host takes memory from this guest", |survey| {
        devices(survey, |_| Some("balloon".to_owned()))
    }),
    fact("balloon.reporting", "balloons that report free pages to the host by themselves", |survey| {
        devices(survey, |features| {
            let is_set = features.as_bytes().get(REPORTING) == Some(&b'1');
            is_set.then(|| "free page reporting".to_owned())
        })
    }),
];

const DEVICES: &str = "/sys/bus/virtio/devices";

/// VIRTIO_BALLOON_F_REPORTING (include/uapi/linux/virtio_balloon.h), the place in the file `features`.
const REPORTING: usize = 5;

/// VIRTIO_ID_BALLOON.
const BALLOON: &str = "0x0005";

/// Drivers of other hosts: VMware, Hyper-V (drivers/misc/vmw_balloon.c, drivers/hv/hv_balloon.c).
const OTHERS: [&str; 2] = ["vmw_balloon", "hv_balloon"];

/// Balloons with what `of` says of their features, which other hosts' drivers do not show.
fn devices(survey: &Survey, of: impl Fn(&str) -> Option<String>) -> Reading {
    let names = survey.root.list(DEVICES);
    if let Fact::Unreadable(errno) = names {
        return reading(Fact::Unreadable(errno), DEVICES);
    }
    let mut items: Vec<Item> = Vec::new();
    for name in names.value().into_iter().flatten() {
        let read = |file: &str| survey.root.read(&format!("{DEVICES}/{name}/{file}"));
        let is_bound = survey.root.exists(&format!("{DEVICES}/{name}/driver")).value().is_some();
        if read("device") == Fact::Value(BALLOON.to_owned()) && is_bound {
            let features = read("features").value().cloned().unwrap_or_default();
            items.extend(of(&features).map(|words| item(name, words)));
        }
    }
    let loaded =
        OTHERS.iter().filter(|name| survey.root.exists(&format!("/sys/module/{name}")).value().is_some());
    items.extend(loaded.filter_map(|name| Some(item(*name, of("")?))));
    list(items, DEVICES)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Isolated, shown};
    use sysroot::FakeTree;

    #[test]
    fn balloons_are_found_by_their_device() {
        let tree = FakeTree::new(&[
            ("/sys/bus/virtio/devices/virtio0/device", "0x0001"),
            ("/sys/bus/virtio/devices/virtio0/driver/x", ""),
            ("/sys/bus/virtio/devices/virtio3/device", "0x0005"),
            ("/sys/bus/virtio/devices/virtio3/driver/x", ""),
            ("/sys/bus/virtio/devices/virtio3/features", "0100000000000000"),
            ("/sys/bus/virtio/devices/virtio4/device", "0x0005"),
        ]);
        assert_eq!(shown(&tree, Isolated::None, "balloon.devices"), "virtio3: balloon");
        assert_eq!(shown(&tree, Isolated::None, "balloon.reporting"), "none");
        tree.write("/sys/bus/virtio/devices/virtio3/features", "0100010000000000");
        assert_eq!(shown(&tree, Isolated::None, "balloon.reporting"), "virtio3: free page reporting");
        assert_eq!(shown(&FakeTree::empty(), Isolated::None, "balloon.devices"), "none");
    }
}

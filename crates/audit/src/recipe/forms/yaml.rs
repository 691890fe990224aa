//! Files in YAML by what they are: compose files, Kubernetes, Ansible tasks, cloud-init.

use super::super::Target;
use super::super::reading::Reading;
use super::nodes;
use super::{automation, compose, kubernetes};

pub fn read(text: &str, target: Target) -> Option<Reading> {
    let top = nodes::parse(text)?;
    let mut reading = Reading::default();
    if top.get("services").is_some() {
        compose::read(&top, &mut reading);
    } else if top.get("kubelet-arg").is_some() {
        kubernetes::flags(&top, &mut reading);
    } else if kubernetes::is_one(&top) {
        kubernetes::read(&top, text, &mut reading);
    } else if text.starts_with("#cloud-config") {
        automation::cloud(&top, &mut reading, target);
    } else if top.items().iter().any(|task| task.get("name").is_some() || task.get("hosts").is_some()) {
        automation::ansible(&top, text, &mut reading, target);
    } else {
        return None;
    }
    Some(reading)
}

//! Compose files (the compose specification).

use machine::grammar::Kind;

use super::super::RemarkId;
use super::super::containers::is_namespaced;
use super::super::nearest::nearest_of;
use super::super::reading::Reading;
use super::nodes::{Node, capabilities, wrong};

/// Keys of a service (the compose specification).
const SERVICE: [&str; 91] = [
    "image",
    "build",
    "cap_add",
    "cap_drop",
    "ulimits",
    "cpuset",
    "cpus",
    "cpu_rt_runtime",
    "cpu_rt_period",
    "cpu_shares",
    "cpu_quota",
    "cpu_period",
    "cpu_count",
    "cpu_percent",
    "privileged",
    "devices",
    "sysctls",
    "security_opt",
    "ipc",
    "pid",
    "network_mode",
    "command",
    "entrypoint",
    "environment",
    "env_file",
    "volumes",
    "ports",
    "networks",
    "restart",
    "depends_on",
    "container_name",
    "deploy",
    "mem_limit",
    "memswap_limit",
    "mem_swappiness",
    "shm_size",
    "tmpfs",
    "user",
    "working_dir",
    "hostname",
    "labels",
    "logging",
    "healthcheck",
    "init",
    "runtime",
    "oom_score_adj",
    "cgroup_parent",
    "cgroup",
    "profiles",
    "stop_grace_period",
    "tty",
    "stdin_open",
    "annotations",
    "attach",
    "blkio_config",
    "configs",
    "credential_spec",
    "develop",
    "device_cgroup_rules",
    "dns",
    "dns_opt",
    "dns_search",
    "domainname",
    "expose",
    "extends",
    "external_links",
    "extra_hosts",
    "gpus",
    "group_add",
    "isolation",
    "label_file",
    "links",
    "mac_address",
    "mem_reservation",
    "models",
    "oom_kill_disable",
    "pids_limit",
    "platform",
    "post_start",
    "pre_stop",
    "provider",
    "pull_policy",
    "read_only",
    "scale",
    "secrets",
    "stop_signal",
    "storage_opt",
    "use_api_socket",
    "userns_mode",
    "uts",
    "volumes_from",
];

/// Services and their keys.
pub fn read(top: &Node, reading: &mut Reading) {
    for (_, service) in top.get("services").map(Node::entries).unwrap_or_default() {
        for (key, node) in service.entries() {
            reading.settings += 1;
            if SERVICE.contains(&key.as_str()) {
                service_key(key, node, reading);
            } else if !key.starts_with("x-") && key != "<<" {
                unknown(key, node, reading);
            }
        }
        capabilities(service.get("cap_add"), reading);
        ordinary_user(service, reading);
    }
}

/// A user who is not root has what `cap_add` adds in no set that counts (capabilities(7)): a limit has to allow the policy.
fn ordinary_user(service: &Node, reading: &mut Reading) {
    let user = service.get("user").and_then(Node::text).unwrap_or("root");
    let is_root =
        user.split(':').next().is_some_and(|user| matches!(user, "root" | "0")) || user.contains('$');
    let is_allowed = service.get("ulimits").is_some_and(|limits| limits.get("rtprio").is_some())
        || service.get("privileged").is_some();
    let Some(command) = service.get("command").filter(|_| !is_root && !is_allowed) else { return };
    let items: Vec<&str> = command.items().iter().filter_map(Node::text).collect();
    let text = command.text().map_or_else(|| items.join(" "), str::to_owned);
    let asks =
        text.contains("chrt ") && [" -f", " -r", "--fifo", "--rr"].iter().any(|option| text.contains(option));
    if asks {
        let message = format!(
            "{user} may not ask for real-time priorities: SYS_NICE counts for root alone, others need ulimits: rtprio"
        );
        wrong(reading, command.line, RemarkId::Contradiction, text, message);
    }
}

/// Keys that the specification does not have are refused.
fn unknown(key: &str, node: &Node, reading: &mut Reading) {
    let meant = if key.starts_with("cpuset") { Some("cpuset") } else { nearest_of(key, SERVICE.into_iter()) };
    let (id, message) = match meant {
        Some(meant) => (RemarkId::Misspelt, format!("there is no such key: {meant} is meant")),
        None => (RemarkId::Unknown, "a service has no such key, and the file is refused".to_owned()),
    };
    wrong(reading, node.line, id, key, message);
}

/// `deploy.resources`: shares, not CPUs.
fn resources(deploy: &Node, reading: &mut Reading) {
    for part in ["limits", "reservations"] {
        let Some(part) = deploy.get("resources").and_then(|resources| resources.get(part)) else { continue };
        for (key, node) in part.entries() {
            if !["cpus", "memory", "pids", "devices", "generic_resources"].contains(&key.as_str()) {
                let message = "resources have cpus, memory and pids: CPUs are named by cpuset of the service";
                wrong(reading, node.line, RemarkId::Unknown, key, message.to_owned());
            }
        }
    }
}

fn service_key(key: &str, node: &Node, reading: &mut Reading) {
    let text = node.text().unwrap_or_default();
    let is_open = text.contains("${");
    match key {
        "cap_add" | "cap_drop" | "security_opt" | "devices" if !text.is_empty() => {
            wrong(
                reading,
                node.line,
                RemarkId::Malformed,
                format!("{key}: {text}"),
                format!("takes a list: [{text}]"),
            );
        }
        "cpuset" if !is_open => {
            let fault = Kind::Cpus { optional: false }.fault(Some(text), None);
            if let Some(fault) = fault {
                wrong(reading, node.line, RemarkId::Malformed, format!("cpuset: {text}"), fault.message);
            }
        }
        "cpus" if !is_open && text.parse::<f64>().is_err() => {
            let message = "is how many CPUs' time there is; cpuset names CPUs".to_owned();
            wrong(reading, node.line, RemarkId::Malformed, format!("cpus: {text}"), message);
        }
        "deploy" => resources(node, reading),
        "sysctls" => {
            let listed =
                node.items().iter().filter_map(|item| Some((item.line, item.text()?.split('=').next()?)));
            let mapped = node.entries().iter().map(|(name, node)| (node.line, name.as_str()));
            for (line, name) in listed.chain(mapped).filter(|(_, name)| !is_namespaced(name)) {
                let message = "a container has its own settings only of net, fs.mqueue and System V IPC: the others are the host's, and are refused";
                wrong(reading, line, RemarkId::NoEffect, name, message.to_owned());
            }
        }
        "ulimits" => {
            for (name, limit) in node.entries() {
                let has = |bound: &str| limit.get(bound).is_some();
                if has("soft") != has("hard") {
                    let message = "a limit has soft and hard, or is one number".to_owned();
                    wrong(reading, limit.line, RemarkId::Malformed, name, message);
                }
                let bounds: Vec<&Node> = limit.entries().iter().map(|(_, node)| node).collect();
                let all = if bounds.is_empty() { vec![limit] } else { bounds };
                for bound in all.into_iter().filter(|bound| {
                    bound.text().is_some_and(|text| text.parse::<i64>().is_err() && !text.contains('$'))
                }) {
                    let text = bound.text().unwrap_or_default();
                    wrong(
                        reading,
                        bound.line,
                        RemarkId::Malformed,
                        format!("{name}: {text}"),
                        "takes a number, -1 for no limit".to_owned(),
                    );
                }
            }
        }
        _ => {}
    }
}

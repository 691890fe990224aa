//! Kubernetes and OpenShift: pods, the kubelet's settings, machine configurations, performance profiles.

use super::super::containers::is_namespaced;
use super::super::nearest::nearest_of;
use super::super::reading::Reading;
use super::super::statements::command_words;
use super::super::{RemarkId, keys};
use super::nodes::{Node, capabilities, unquoted, wrong};

/// Whether a document is one of these, or a container's part of one.
pub fn is_one(top: &Node) -> bool {
    let is_part = |key: &str| top.get("spec").is_some_and(|spec| spec.get(key).is_some());
    top.get("apiVersion").is_some()
        || top.get("kind").is_some()
        || is_part("containers")
        || top.get("resources").is_some_and(|part| part.get("limits").is_some())
}

/// What a document says.
pub fn read(top: &Node, text: &str, reading: &mut Reading) {
    match top.get("kind").and_then(Node::text) {
        Some("KubeletConfiguration") => kubelet(top, reading),
        Some("MachineConfig") => machine_config(top, reading),
        Some("PerformanceProfile") => performance_profile(top, reading),
        _ => {
            pod(top, reading);
            let is_meant = ["exclusiv", "static", "own core", "own CPU", "of its own", "inned"]
                .into_iter()
                .any(|word| text.contains(word));
            exclusive(top, is_meant, reading);
        }
    }
}

/// Options of the kubelet in the file of k3s and RKE2: `kubelet-arg: ["cpu-manager-policy=static"]`.
pub fn flags(top: &Node, reading: &mut Reading) {
    for item in top.items_of("kubelet-arg") {
        let Some((name, value)) = item.text().and_then(|text| text.split_once('=')) else { continue };
        match keys::is_known("kubelet-flag", name) {
            true => {
                reading.settings += 1;
                reading.remarks.extend(keys::value_remark(item.line, "kubelet-flag", name, value));
            }
            false => reading.unknown += 1,
        }
    }
}

fn kubelet(top: &Node, reading: &mut Reading) {
    let policy = top.get("cpuManagerPolicy").filter(|node| node.text() == Some("static"));
    let is_some = |text: &str| !matches!(text.trim(), "" | "0" | "0m");
    let reserves = |name: &str| {
        top.get(name).and_then(|node| quantity(node, "cpu")).is_some_and(|(_, text)| is_some(&text))
    };
    let is_list = top
        .get("reservedSystemCPUs")
        .is_some_and(|node| node.text().is_none_or(|text| !text.trim().is_empty()));
    let is_reserved = is_list || reserves("kubeReserved") || reserves("systemReserved");
    if let Some(node) = policy.filter(|_| !is_reserved) {
        let message = "needs CPUs of its own: without reservedSystemCPUs or cpu in kubeReserved or systemReserved the kubelet does not start".to_owned();
        wrong(reading, node.line, RemarkId::Contradiction, "cpuManagerPolicy: static", message);
    }
    for (key, node) in top.get("cpuManagerPolicyOptions").map(Node::entries).unwrap_or_default() {
        if let Some(text) = node.text().filter(|text| matches!(*text, "true" | "false") && !node.quoted) {
            let message = format!("is a map of texts: `{key}: \"{text}\"`; the kubelet refuses a bool");
            wrong(reading, node.line, RemarkId::Malformed, format!("{key}: {text}"), message);
        }
    }
    for (key, node) in top.entries() {
        reading.settings += 1;
        if let Some(text) = node.text() {
            reading.remarks.extend(keys::remark(node.line, "kubelet", "", key, text));
        }
    }
}

/// OpenShift's MachineConfig, each item of whose `kernelArguments` is words for the kernel command line.
fn machine_config(top: &Node, reading: &mut Reading) {
    let list = top.get("spec").and_then(|spec| spec.get("kernelArguments")).map(Node::items);
    let kind = top.get("spec").and_then(|spec| spec.get("kernelType"));
    if let Some((node, kind)) = kind.and_then(|node| Some((node, node.text()?))) {
        reading.settings += 1;
        if !matches!(kind, "default" | "realtime" | "64k-pages" | "") {
            let message = format!("is default, realtime or 64k-pages, not `{kind}`");
            wrong(reading, node.line, RemarkId::Malformed, format!("kernelType: {kind}"), message);
        }
    }
    for (line, text) in list.unwrap_or_default().iter().filter_map(|item| Some((item.line, item.text()?))) {
        reading.settings += 1;
        reading.statements.extend(command_words(line, text));
    }
}

/// Keys of a PerformanceProfile's specification (performanceprofile v2).
const PROFILE: [&str; 13] = [
    "additionalKernelArgs",
    "cpu",
    "globallyDisableIrqLoadBalancing",
    "hardwareTuning",
    "hugepages",
    "kernelPageSize",
    "machineConfigLabel",
    "machineConfigPoolSelector",
    "net",
    "nodeSelector",
    "numa",
    "realTimeKernel",
    "workloadHints",
];

/// OpenShift's PerformanceProfile: the node tuning operator makes a kubelet's settings and kernel parameters of it.
fn performance_profile(top: &Node, reading: &mut Reading) {
    let Some(spec) = top.get("spec") else { return };
    reading.settings += spec.entries().len();
    for (key, node) in spec.entries().iter().filter(|(key, _)| !PROFILE.contains(&key.as_str())) {
        let message = match nearest_of(key, PROFILE.into_iter()) {
            Some(meant) => format!("there is no such key: {meant} is meant"),
            None => "a profile has no such key: it is left out in silence".to_owned(),
        };
        wrong(reading, node.line, RemarkId::Misspelt, key, message);
    }
    let cpus = |name: &str| spec.get("cpu").and_then(|cpu| cpu.get(name));
    let list = |name: &str| {
        let node = cpus(name)?;
        Some((node, machine::grammar::cpu_list(node.text()?, None, None)))
    };
    for (name, (node, parsed)) in
        ["isolated", "reserved", "offlined"].into_iter().filter_map(|name| Some((name, list(name)?)))
    {
        if let Err(fault) = parsed {
            wrong(
                reading,
                node.line,
                RemarkId::Malformed,
                format!("{name}: {}", node.text().unwrap_or_default()),
                fault.to_string(),
            );
        }
    }
    if let (Some((node, Ok(isolated))), Some((_, Ok(reserved)))) = (list("isolated"), list("reserved")) {
        let both = isolated.intersection(&reserved);
        if !both.is_empty() {
            wrong(
                reading,
                node.line,
                RemarkId::Contradiction,
                "isolated",
                format!("CPU {both} is reserved, too"),
            );
        }
    }
    for name in ["realTimeKernel", "workloadHints", "net", "numa", "cpu"] {
        if let Some((node, text)) = spec.get(name).and_then(|node| Some((node, node.text()?))) {
            let message = "is an object with keys of its own, as enabled: true".to_owned();
            wrong(reading, node.line, RemarkId::Malformed, format!("{name}: {text}"), message);
        }
    }
    if let Some((node, policy)) = spec
        .get("numa")
        .and_then(|numa| numa.get("topologyPolicy"))
        .and_then(|node| Some((node, node.text()?)))
    {
        reading.remarks.extend(keys::remark(node.line, "kubelet", "", "topologyManagerPolicy", policy));
    }
    for (line, text) in spec
        .get("additionalKernelArgs")
        .map(Node::items)
        .unwrap_or_default()
        .iter()
        .filter_map(|item| Some((item.line, item.text()?)))
    {
        reading.statements.extend(command_words(line, text));
    }
}

/// Keys of a container (the Kubernetes API, v1).
const CONTAINER: [&str; 25] = [
    "name",
    "image",
    "command",
    "args",
    "workingDir",
    "ports",
    "env",
    "envFrom",
    "resources",
    "resizePolicy",
    "restartPolicy",
    "restartPolicyRules",
    "volumeMounts",
    "volumeDevices",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
    "terminationMessagePath",
    "terminationMessagePolicy",
    "imagePullPolicy",
    "securityContext",
    "stdin",
    "stdinOnce",
    "tty",
];

/// Exclusive CPUs are given to containers that ask for whole ones, the same as request and limit.
fn exclusive(top: &Node, is_meant: bool, reading: &mut Reading) {
    let alone = top.get("resources").map(|_| top);
    let spec = top.get("spec").and_then(|spec| spec.get("template")?.get("spec")).or_else(|| top.get("spec"));
    let containers = spec.and_then(|spec| spec.get("containers")).map(Node::items).unwrap_or_default();
    for container in containers.iter().chain(alone) {
        let cpu = |what: &str| quantity(container.get("resources")?.get(what)?, "cpu");
        let (Some((line, limit)), true) = (cpu("limits"), is_meant) else { continue };
        let is_whole = limit.parse::<u32>().is_ok() || limit.strip_suffix("000m").is_some();
        let differs = cpu("requests").is_some_and(|(_, request)| request != limit);
        if !is_whole || differs {
            let message = "is no whole number of CPUs, the same as request and limit: the container shares the pool and owns no CPU".to_owned();
            wrong(reading, line, RemarkId::NoEffect, format!("cpu: {limit}"), message);
        }
    }
}

/// A resource of a map in block or flow form.
fn quantity(node: &Node, name: &str) -> Option<(usize, String)> {
    if let Some((node, text)) = node.get(name).and_then(|node| Some((node, node.text()?))) {
        return Some((node.line, text.to_owned()));
    }
    let inner = node.text()?.strip_prefix('{')?.strip_suffix('}')?;
    let pairs = inner.split(',').filter_map(|pair| pair.split_once(':'));
    let value = pairs.into_iter().find(|(key, _)| unquoted(key) == name).map(|(_, value)| unquoted(value))?;
    Some((node.line, value))
}

fn pod(top: &Node, reading: &mut Reading) {
    reading.settings += usize::from(top.get("resources").is_some());
    let template =
        top.get("spec").and_then(|spec| spec.get("template")).and_then(|template| template.get("spec"));
    let spec = template.or_else(|| top.get("spec"));
    let context = spec.and_then(|spec| spec.get("securityContext")?.get("sysctls"));
    for setting in context.map(Node::items).unwrap_or_default() {
        if let Some(name) = setting.get("name").and_then(Node::text).filter(|name| !is_namespaced(name)) {
            let message =
                "a pod has its own settings only of net, fs.mqueue and System V IPC: the node's are refused";
            wrong(reading, setting.line, RemarkId::NoEffect, name, message.to_owned());
        }
    }
    runtime_class(top, spec, reading);
    if let Some(node) = spec.and_then(|spec| spec.get("securityContext")?.get("capabilities")) {
        let message = "belongs to the securityContext of a container: a pod's has no capabilities".to_owned();
        wrong(reading, node.line, RemarkId::NoEffect, "capabilities", message);
    }
    for container in spec.and_then(|spec| spec.get("containers")).map(Node::items).unwrap_or_default() {
        reading.settings += 1;
        for (key, node) in container.entries().iter().filter(|(key, _)| !CONTAINER.contains(&key.as_str())) {
            let message = match nearest_of(key, CONTAINER.into_iter()) {
                Some(meant) => format!("there is no such key: {meant} is meant"),
                None => "a container has no such key: the API refuses it, or leaves it out".to_owned(),
            };
            wrong(reading, node.line, RemarkId::Unknown, key, message);
        }
        capabilities(
            container.get("securityContext").and_then(|context| context.get("capabilities")?.get("add")),
            reading,
        );
    }
}

/// Annotations that CRI-O follows for the runtime class of the performance profile only.
fn runtime_class(top: &Node, spec: Option<&Node>, reading: &mut Reading) {
    let is_of_class = |name: &str| {
        ["cpu-load-balancing.", "cpu-quota.", "irq-load-balancing.", "cpu-c-states.", "cpu-freq-governor."]
            .iter()
            .any(|start| name.starts_with(start) && name.ends_with("crio.io"))
    };
    let annotations = top.get("metadata").and_then(|metadata| metadata.get("annotations")).map(Node::entries);
    let has_class = spec.is_some_and(|spec| spec.get("runtimeClassName").is_some());
    let found = annotations.unwrap_or_default().iter().find(|(name, _)| is_of_class(name) && !has_class);
    if let Some((name, node)) = found {
        let message = "needs runtimeClassName: performance-NAME: CRI-O passes over it otherwise".to_owned();
        wrong(reading, node.line, RemarkId::NoEffect, name, message);
    }
}

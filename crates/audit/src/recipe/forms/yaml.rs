//! YAML, as far as configuration files use it: maps, lists, flow lists and block texts. Compose files, pods, the kubelet's
//! settings, Ansible tasks, cloud-init.

use machine::grammar::Kind;

use super::super::containers::capability_fault;
use super::super::nearest::nearest_of;
use super::super::reading::Reading;
use super::super::statements::{Statement, command_words};
use super::super::{Remark, RemarkId, Target, keys};
use crate::Severity;

/// A value with the line that it begins on.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Node {
    line: usize,
    value: Value,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Value {
    Text(String),
    List(Vec<Node>),
    Map(Vec<(String, Node)>),
}

impl Node {
    fn get(&self, key: &str) -> Option<&Node> {
        let Value::Map(entries) = &self.value else { return None };
        entries.iter().find(|(name, _)| name == key).map(|(_, node)| node)
    }

    fn entries(&self) -> &[(String, Node)] {
        if let Value::Map(entries) = &self.value { entries } else { &[] }
    }

    fn items(&self) -> &[Node] {
        if let Value::List(items) = &self.value { items } else { &[] }
    }

    fn text(&self) -> Option<&str> {
        if let Value::Text(text) = &self.value { Some(text) } else { None }
    }
}

pub fn read(text: &str, target: Target) -> Option<Reading> {
    let rows: Vec<Row> = text.lines().enumerate().filter_map(|(index, line)| row(index + 1, line)).collect();
    let first = rows.first()?;
    let begins = first.text.starts_with("- ") || pair(first.text).is_some();
    let top = document(&mut Rows { rows: &rows, next: 0 }).filter(|_| begins)?;
    let mut reading = Reading::default();
    if top.get("services").is_some() {
        compose(&top, &mut reading);
    } else if top.get("kind").and_then(Node::text) == Some("KubeletConfiguration") {
        kubelet(&top, &mut reading);
    } else if top.get("kind").and_then(Node::text) == Some("MachineConfig") {
        machine_config(&top, &mut reading);
    } else if top.get("kind").and_then(Node::text) == Some("PerformanceProfile") {
        performance_profile(&top, &mut reading);
    } else if top.get("apiVersion").is_some() {
        pod(&top, &mut reading);
        let is_meant = ["exclusiv", "static"].into_iter().any(|word| text.contains(word));
        exclusive(&top, is_meant, &mut reading);
    } else if text.starts_with("#cloud-config") {
        cloud(&top, &mut reading, target);
    } else if top.items().iter().any(|task| task.get("name").is_some() || task.get("hosts").is_some()) {
        ansible(&top, &mut reading, target);
    } else {
        return None;
    }
    Some(reading)
}

struct Row<'a> {
    line: usize,
    indent: usize,
    text: &'a str,
}

fn row(line: usize, text: &str) -> Option<Row<'_>> {
    let trimmed = text.trim();
    let empty = trimmed.is_empty() || trimmed.starts_with('#') || trimmed == "---" || trimmed == "...";
    (!empty).then(|| Row { line, indent: text.len() - text.trim_start().len(), text: trimmed })
}

struct Rows<'a> {
    rows: &'a [Row<'a>],
    next: usize,
}

/// `key: value` or `key:`.
fn pair(text: &str) -> Option<(String, &str)> {
    let (key, value) = match text.split_once(": ") {
        Some((key, value)) => (key, value.trim()),
        None => (text.strip_suffix(':')?, ""),
    };
    let key = unquoted(key.trim());
    let is_key = !key.is_empty() && !key.contains([' ', '=', '{', '[', '>', '|', '$']);
    is_key.then_some((key, value))
}

fn unquoted(text: &str) -> String {
    let text = text.trim();
    let inner = ['"', '\''].iter().find_map(|quote| text.strip_prefix(*quote)?.strip_suffix(*quote));
    inner.unwrap_or_else(|| text.split(" #").next().unwrap_or(text).trim_end()).to_owned()
}

fn document(rows: &mut Rows) -> Option<Node> {
    let top = block(rows, 0, 0)?;
    (rows.next == rows.rows.len()).then_some(top)
}

/// How deep files nest at most.
const DEEPEST: usize = 32;

/// The map or list whose rows stand at the next row's column, which is at least `least`.
fn block(rows: &mut Rows, least: usize, depth: usize) -> Option<Node> {
    let first = rows.rows.get(rows.next).filter(|row| row.indent >= least && depth < DEEPEST)?;
    let (line, indent) = (first.line, first.indent);
    let is_list = first.text.starts_with("- ") || first.text == "-";
    let (mut items, mut entries) = (Vec::new(), Vec::new());
    while let Some(row) = rows.rows.get(rows.next).filter(|row| row.indent == indent) {
        match row.text.strip_prefix('-').filter(|rest| rest.is_empty() || rest.starts_with(' ')) {
            Some(rest) if is_list => items.push(item(rows, row, rest.trim_start(), depth)?),
            None if !is_list => {
                let (key, rest) = pair(row.text)?;
                rows.next += 1;
                entries.push((key, value(rows, row.line, rest, indent, depth)?));
            }
            _ => break,
        }
    }
    let value = if is_list { Value::List(items) } else { Value::Map(entries) };
    Some(Node { line, value })
}

/// What stands behind `- `: a scalar, or the first entry of a map whose others are indented as far.
fn item(rows: &mut Rows, row: &Row, rest: &str, depth: usize) -> Option<Node> {
    rows.next += 1;
    let column = row.indent + row.text.len() - rest.len();
    let Some((key, text)) = pair(rest).filter(|_| !rest.starts_with(['"', '\'', '['])) else {
        return value(rows, row.line, rest, row.indent, depth);
    };
    let mut entries = vec![(key, value(rows, row.line, text, column, depth)?)];
    while rows.rows.get(rows.next).is_some_and(|next| next.indent == column && !next.text.starts_with("- ")) {
        let row = &rows.rows[rows.next];
        let (key, text) = pair(row.text)?;
        rows.next += 1;
        entries.push((key, value(rows, row.line, text, column, depth)?));
    }
    Some(Node { line: row.line, value: Value::Map(entries) })
}

fn value(rows: &mut Rows, line: usize, rest: &str, indent: usize, depth: usize) -> Option<Node> {
    if rest.starts_with(['|', '>']) && rest.len() <= 2 {
        let mut text = String::new();
        while let Some(row) = rows.rows.get(rows.next).filter(|row| row.indent > indent) {
            text += row.text;
            text.push('\n');
            rows.next += 1;
        }
        return Some(Node { line: line + 1, value: Value::Text(text) });
    }
    if rest.is_empty() {
        let list_here =
            rows.rows.get(rows.next).is_some_and(|row| row.text.starts_with('-') && row.indent == indent);
        let least = if list_here { indent } else { indent + 1 };
        return block(rows, least, depth + 1).or(Some(Node { line, value: Value::Text(String::new()) }));
    }
    let value =
        match rest.strip_prefix('[').and_then(|inner| inner.split(" #").next()?.trim_end().strip_suffix(']'))
        {
            Some(inner) => Value::List(
                inner
                    .split(',')
                    .map(unquoted)
                    .filter(|text| !text.is_empty())
                    .map(|text| Node { line, value: Value::Text(text) })
                    .collect(),
            ),
            None => Value::Text(unquoted(rest)),
        };
    Some(Node { line, value })
}

fn wrong(reading: &mut Reading, line: usize, id: RemarkId, shown: impl Into<String>, message: String) {
    reading.remarks.push(Remark::new(line, id, Severity::Error, shown, message));
}

fn capabilities(list: Option<&Node>, reading: &mut Reading) {
    for item in list.into_iter().flat_map(Node::items) {
        if let Some((name, message)) = item.text().and_then(|name| Some((name, capability_fault(name)?))) {
            wrong(reading, item.line, RemarkId::Malformed, name, message);
        }
    }
}

/// Keys of a service (the compose specification).
const SERVICE: [&str; 52] = [
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
];

fn compose(top: &Node, reading: &mut Reading) {
    for (_, service) in top.get("services").map(Node::entries).unwrap_or_default() {
        for (key, node) in service.entries() {
            reading.settings += 1;
            if SERVICE.contains(&key.as_str()) {
                service_key(key, node, reading);
            } else if let Some(meant) = nearest_of(key, SERVICE.into_iter()) {
                wrong(
                    reading,
                    node.line,
                    RemarkId::Misspelt,
                    key,
                    format!("there is no such key: {meant} is meant"),
                );
            }
        }
        capabilities(service.get("cap_add"), reading);
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
        "ulimits" => {
            for (name, limit) in node.entries() {
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

fn kubelet(top: &Node, reading: &mut Reading) {
    let policy = top.get("cpuManagerPolicy").filter(|node| node.text() == Some("static"));
    let reserves = |name: &str| top.get(name).is_some_and(|node| quantity(node, "cpu").is_some());
    let is_reserved =
        top.get("reservedSystemCPUs").is_some() || reserves("kubeReserved") || reserves("systemReserved");
    if let Some(node) = policy.filter(|_| !is_reserved) {
        let message = "needs CPUs of its own: without reservedSystemCPUs or cpu in kubeReserved or systemReserved the kubelet does not start".to_owned();
        wrong(reading, node.line, RemarkId::Contradiction, "cpuManagerPolicy: static", message);
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

/// OpenShift's PerformanceProfile: the node tuning operator makes a kubelet's settings and kernel parameters of it.
fn performance_profile(top: &Node, reading: &mut Reading) {
    let Some(spec) = top.get("spec") else { return };
    reading.settings += spec.entries().len();
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

/// Exclusive CPUs are given to containers that ask for whole ones, the same as request and limit.
fn exclusive(top: &Node, is_meant: bool, reading: &mut Reading) {
    let spec = top.get("spec").and_then(|spec| spec.get("template")?.get("spec")).or_else(|| top.get("spec"));
    for container in spec.and_then(|spec| spec.get("containers")).map(Node::items).unwrap_or_default() {
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
    let template =
        top.get("spec").and_then(|spec| spec.get("template")).and_then(|template| template.get("spec"));
    let spec = template.or_else(|| top.get("spec"));
    for container in spec.and_then(|spec| spec.get("containers")).map(Node::items).unwrap_or_default() {
        reading.settings += 1;
        capabilities(
            container.get("securityContext").and_then(|context| context.get("capabilities")?.get("add")),
            reading,
        );
    }
}

fn cloud(top: &Node, reading: &mut Reading, target: Target) {
    for list in ["bootcmd", "runcmd"] {
        for item in top.get(list).map(Node::items).unwrap_or_default() {
            if let Some(text) = item.text() {
                reading.settings += 1;
                reading.add(super::super::read(text, target).moved(item.line - 1));
            }
        }
    }
    for file in top.get("write_files").map(Node::items).unwrap_or_default() {
        if let Some((content, text)) =
            file.get("content").and_then(|content| Some((content, content.text()?)))
        {
            reading.settings += 1;
            reading.add(super::super::read(text, target).moved(content.line - 1));
        }
    }
}

fn ansible(top: &Node, reading: &mut Reading, target: Target) {
    let nested = top.items().iter().flat_map(|play| play.get("tasks").map(Node::items).unwrap_or_default());
    for task in top.items().iter().chain(nested) {
        for (module, arguments) in task.entries() {
            let name = module.rsplit('.').next().unwrap_or(module);
            let text = |key: &str| arguments.get(key).and_then(Node::text).map(str::to_owned);
            match name {
                "sysctl" => {
                    reading.settings += 1;
                    let setting = text("name").zip(text("value"));
                    reading.statements.extend(setting.map(|(name, value)| Statement::Sysctl {
                        line: arguments.line,
                        name,
                        value,
                    }));
                }
                "shell" | "command" => {
                    let script = arguments.text().map(str::to_owned).or_else(|| text("cmd"));
                    if let Some(script) = script {
                        reading.settings += 1;
                        reading.add(super::super::read(&script, target).moved(arguments.line - 1));
                    }
                }
                _ => {}
            }
        }
    }
}

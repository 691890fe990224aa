//! What sets machines up from YAML: cloud-init and Ansible.

use super::super::reading::Reading;
use super::super::script::{Simple, commands, program};
use super::super::statements::Statement;
use super::super::{Remark, RemarkId, Target};
use super::dockerfile::only_limits;
use super::nodes::{Node, wrong};
use crate::Severity;

/// cloud-init's commands and files.
pub fn cloud(top: &Node, reading: &mut Reading, target: Target) {
    for list in ["bootcmd", "runcmd"] {
        for item in top.items_of(list) {
            reading.settings += 1;
            if let Some(text) = item.text() {
                if only_limits(text) {
                    let message =
                        "ends with the shell that runs it: services and logins keep their own limits";
                    wrong(reading, item.line, RemarkId::NoEffect, text.trim(), message.to_owned());
                }
                reading.add(super::super::read(text, target).moved(item.line - 1));
            }
            let words: Vec<String> =
                item.items().iter().filter_map(|word| word.text().map(str::to_owned)).collect();
            reading.add(without_shell(item.line, words));
        }
    }
    for item in top.items_of("write_files") {
        let text = |key: &str| item.get(key).and_then(|node| Some((node.line, node.text()?)));
        if let Some((line, content)) = text("content") {
            reading.settings += 1;
            reading.add(file(text("path").map(|(_, path)| path), line, content, target));
        }
    }
}

/// A file's content below its name.
fn file(path: Option<&str>, line: usize, content: &str, target: Target) -> Reading {
    let heading = path.map_or_else(String::new, |path| format!("# {path}\n"));
    let above = heading.lines().count();
    let mut inner = super::super::file(&format!("{heading}{content}"), target);
    // The name itself is judged where the text gives it.
    inner.remarks.retain(|remark| remark.line > above);
    match line.checked_sub(1 + above) {
        Some(lines) => inner.moved(lines),
        None => inner.at(line),
    }
}

/// A command that no shell sees: `>` and `|` are words of it.
fn without_shell(line: usize, words: Vec<String>) -> Reading {
    let mut reading = Reading::default();
    let is_operator = |word: &&String| matches!(word.as_str(), ">" | ">>" | "|" | "&&" | "||" | "<");
    let is_shell = matches!(program(&words), "sh" | "bash" | "dash");
    if let Some(sign) = words.iter().find(is_operator).filter(|_| !is_shell) {
        let message = format!("no shell runs this: {sign} is an argument of the program");
        reading.remarks.push(
            Remark::new(line, RemarkId::NoEffect, Severity::Error, words.join(" "), message)
                .instead("a shell that gets the line as one word"),
        );
        return reading;
    }
    reading.add(Reading::of_command(&Simple { line, words, ..Simple::default() }));
    reading
}

/// Modules whose tasks change a machine, and nothing that is judged here.
const MODULES: [&str; 22] = [
    "reboot",
    "apt",
    "apt_key",
    "apt_repository",
    "dnf",
    "yum",
    "package",
    "user",
    "group",
    "file",
    "stat",
    "template",
    "get_url",
    "cron",
    "mount",
    "assert",
    "debug",
    "setup",
    "replace",
    "grubby",
    "modprobe",
    "kernel_blacklist",
];

/// Tasks of Ansible.
pub fn ansible(top: &Node, text: &str, reading: &mut Reading, target: Target) {
    const LISTS: [&str; 4] = ["tasks", "handlers", "pre_tasks", "post_tasks"];
    let of_play = |play| LISTS.iter().flat_map(move |list| Node::items_of(play, list));
    let tasks: Vec<&Node> = top.items().iter().chain(top.items().iter().flat_map(of_play)).collect();
    for task in &tasks {
        for (module, arguments) in task.entries() {
            module_of(task, module, arguments, text, reading, target);
        }
    }
    reading.remarks.extend(not_written(text, &tasks));
}

fn module_of(task: &Node, module: &str, arguments: &Node, text: &str, reading: &mut Reading, target: Target) {
    let name = module.rsplit('.').next().unwrap_or(module);
    let argument = |key: &str| arguments.get(key).and_then(Node::text).map(str::to_owned);
    let node = |key: &str| arguments.get(key).and_then(|node| Some((node.line, node.text()?)));
    let is_absent = argument("state").as_deref() == Some("absent");
    let line = arguments.line;
    match name {
        "sysctl" if !is_absent => {
            reading.settings += 1;
            let setting = argument("name").or_else(|| argument("key")).zip(argument("value"));
            reading.statements.extend(setting.map(|(name, value)| Statement::Sysctl { line, name, value }));
            if let Some((line, path)) = node("sysctl_file") {
                reading.remarks.extend(super::super::places::of_file(line, path));
            }
        }
        "shell" | "command" | "raw" => {
            let script = arguments.text().map(str::to_owned).or_else(|| argument("cmd"));
            let Some(script) = script else { return };
            reading.settings += 1;
            if name == "command" {
                for simple in commands(&script) {
                    reading.add(run_by_ansible(line, &script, simple));
                }
            } else {
                reading.add(super::super::read(&script, target).moved(line - 1));
            }
        }
        "lineinfile" | "blockinfile" | "copy" if !is_absent => {
            let path = argument("path").or_else(|| argument("dest"));
            let content = ["line", "block", "content"].iter().find_map(|key| node(key));
            reading.settings += 1;
            if let Some((line, content)) = content {
                reading.add(file(path.as_deref(), line, content, target));
            }
        }
        "pam_limits" if !is_absent => {
            let column = |key: &str| argument(key).unwrap_or_else(|| "-".to_owned());
            let row = ["domain", "limit_type", "limit_item", "value"].map(column).join(" ");
            reading.add(file(None, line, &row, target).at(line));
        }
        "systemd" | "systemd_service" | "service" => {
            reading.settings += 1;
            reading.remarks.extend(started(task, arguments, text));
        }
        name if MODULES.contains(&name) => reading.settings += 1,
        _ => {}
    }
}

/// The module `command` runs a program without a shell.
fn run_by_ansible(line: usize, script: &str, simple: Simple) -> Reading {
    let redirects = !simple.targets.is_empty() || simple.reads.is_some();
    if !redirects {
        return Reading::of_command(&simple).at(line);
    }
    let mut reading = Reading::default();
    let message = "the module command runs no shell: > and | are arguments of the program".to_owned();
    wrong(&mut reading, line, RemarkId::NoEffect, script.trim(), message);
    reading
}

/// A service that is started or enabled by a task that is to keep it off.
fn started(task: &Node, arguments: &Node, text: &str) -> Option<Remark> {
    let said = task.get("name").and_then(Node::text).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    let before = lines.get(..task.line.saturating_sub(1)).unwrap_or_default();
    let comment: Vec<&str> =
        before.iter().rev().copied().take_while(|line| line.trim_start().starts_with('#')).collect();
    let lower = format!(" {} {said} ", comment.join(" ")).to_lowercase();
    let is_off = ["never run", " off", "disable", " no ", "stop ", "stays off", "must not run", "keep out"]
        .iter()
        .any(|phrase| lower.contains(phrase));
    let value = |key: &str| arguments.get(key).and_then(|node| Some((node, node.text()?)));
    let is_true = |text: &str| matches!(text.to_lowercase().as_str(), "true" | "yes" | "on" | "1");
    let starts = value("state").filter(|(_, state)| matches!(*state, "started" | "restarted"));
    let enables = value("enabled").filter(|(_, text)| is_true(text));
    let (node, shown) = enables.or(starts).filter(|_| is_off)?;
    let message = "starts the service, now or at each boot: the task is to keep it off";
    let remark = Remark::new(node.line, RemarkId::Contradiction, Severity::Error, shown.to_owned(), message);
    Some(remark.instead("state: stopped, enabled: false"))
}

/// /etc/default/grub is changed, the machine boots, and no task makes grub.cfg of it.
fn not_written(text: &str, tasks: &[&Node]) -> Option<Remark> {
    const WRITERS: [&str; 5] = ["update-grub", "grub-mkconfig", "grub2-mkconfig", "grubby", "update_grub"];
    let module = |task: &Node, wanted: &[&str]| {
        let named = |name: &str| wanted.contains(&name.rsplit('.').next().unwrap_or(name));
        task.entries().iter().find(|(name, _)| named(name)).map(|(_, node)| node.clone())
    };
    let edited = tasks.iter().find_map(|task| {
        let node = module(task, &["lineinfile", "blockinfile", "replace", "copy"])?;
        let path = node.get("path").or_else(|| node.get("dest"))?;
        (path.text()? == "/etc/default/grub").then_some(path.line)
    })?;
    let boots = tasks.iter().any(|task| module(task, &["reboot"]).is_some());
    let is_written = WRITERS.iter().any(|writer| text.contains(writer)) || text.contains("include");
    (boots && !is_written).then(|| {
        let message = "grub.cfg is made of this file: no task runs update-grub before the reboot";
        Remark::new(edited, RemarkId::NoEffect, Severity::Error, "/etc/default/grub", message)
            .instead("a task with update-grub, or grub2-mkconfig -o")
    })
}

#[cfg(test)]
mod tests {
    use crate::recipe::{Target, examine};

    fn messages(text: &str) -> (bool, Vec<String>) {
        let found = examine(text, Target::default());
        (found.is_understood(), found.remarks.into_iter().map(|remark| remark.message).collect())
    }

    #[test]
    fn tasks_that_do_what_they_say_are_fine() {
        for fine in [
            "- name: a\n  ansible.builtin.command: sysctl --system\n",
            "- name: irqbalance off\n  ansible.builtin.systemd:\n    name: irqbalance\n    enabled: false\n",
            "- name: limits\n  community.general.pam_limits:\n    domain: '@rt'\n    limit_type: '-'\n    limit_item: rtprio\n    value: '95'\n",
            "- name: file\n  copy:\n    dest: /etc/sysctl.d/9.conf\n    content: |\n      vm.swappiness = 1\n",
            "#cloud-config\nruncmd:\n  - [sysctl, --system]\n",
            "#cloud-config\nruncmd:\n  - [sh, -c, \"echo 0 > /proc/sys/kernel/timer_migration\"]\n",
        ] {
            assert_eq!(messages(fine), (true, Vec::new()), "{fine}");
        }
    }

    #[test]
    fn tasks_that_do_something_else_are_wrong() {
        for (wrong, part) in [
            ("- name: a\n  command: echo 1 > /proc/sys/vm/swappiness\n", "no shell"),
            (
                "- name: never run irqbalance\n  systemd:\n    name: irqbalance\n    enabled: true\n",
                "keep it off",
            ),
            (
                "- name: limits\n  pam_limits:\n    domain: '@rt'\n    limit_type: '-'\n    limit_item: rtprio\n    value: '150'\n",
                "0 to 99",
            ),
            (
                "- name: setting\n  sysctl:\n    name: vm.swappiness\n    value: '1'\n    sysctl_file: /etc/sysctl.d/rt\n",
                "end in .conf",
            ),
            (
                "- name: grub\n  lineinfile:\n    path: /etc/default/grub\n    line: GRUB_CMDLINE_LINUX=\"nosmt\"\n- name: boot\n  reboot:\n",
                "update-grub",
            ),
            ("#cloud-config\nruncmd:\n  - [echo, \"1\", \">\", /proc/irq/3/smp_affinity_list]\n", "no shell"),
        ] {
            let (_, found) = messages(wrong);
            assert!(found.iter().any(|message| message.contains(part)), "{wrong}: {found:?}");
        }
    }
}

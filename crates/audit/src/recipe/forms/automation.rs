//! What sets machines up from YAML: cloud-init and Ansible.

use super::super::Target;
use super::super::reading::Reading;
use super::super::statements::Statement;
use super::nodes::Node;

/// cloud-init's commands and files.
pub fn cloud(top: &Node, reading: &mut Reading, target: Target) {
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

/// Tasks of Ansible.
pub fn ansible(top: &Node, reading: &mut Reading, target: Target) {
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

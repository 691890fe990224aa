//! Each back-end on files as distributions write them: what is written comes back from the loader's reader, undo is the
//! identity to the byte, and what is not understood is refused.

mod effects;
mod grub;
mod loaders;
mod properties;

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use machine::boot_loader;
use sysroot::SysRoot;

use super::*;
use crate::persist::{Files, Live, STATE};

/// A system in a directory, with programs that are made up.
pub(super) struct Machine {
    directory: tempfile::TempDir,
    pub programs: Scripted,
}

/// Programs that do what the real ones do to files, as far as it is asked here.
#[derive(Default)]
pub(super) struct Scripted {
    root: PathBuf,
    pub names: Vec<&'static str>,
    pub ran: Vec<String>,
    /// U-Boot's environment.
    pub environment: BTreeMap<String, String>,
    pub fails: bool,
    /// The program during which the process is killed: before it did anything, or after.
    pub kills: Option<(usize, bool)>,
}

impl Programs for Scripted {
    fn has(&self, program: &str) -> bool {
        self.names.contains(&program)
    }

    fn run(&mut self, program: &str, arguments: &[&str]) -> io::Result<Answer> {
        self.ran.push(format!("{program} {}", arguments.join(" ")));
        let kill = self.kills.filter(|(number, _)| self.ran.len() == number + 1);
        if let Some((_, is_after)) = kill {
            self.kills = None;
            if is_after {
                let _ = self.run(program, arguments);
            }
            std::panic::panic_any(crate::scripted::Killed);
        }
        if self.fails {
            return Ok(Answer { complaints: "it fails here\n".into(), ..Answer::default() });
        }
        match (program, arguments) {
            ("grub-mkconfig" | "grub2-mkconfig", ["-o", path]) => self.make_menu(path),
            ("grub-editenv", [block, command, rest @ ..]) => self.edit_block(block, command, rest),
            ("fw_printenv", []) => {
                let line = |(name, value): (&String, &String)| format!("{name}={value}\n");
                Ok(said(&self.environment.iter().map(line).collect::<String>()))
            }
            ("fw_printenv", ["-n", name]) => match self.environment.get(*name) {
                Some(value) => Ok(said(&format!("{value}\n"))),
                None if self.has("libubootenv") => Ok(said("\n")),
                None => Ok(Answer::default()),
            },
            ("fw_setenv", [name, value]) => {
                self.environment.insert((*name).to_owned(), (*value).to_owned());
                Ok(said(""))
            }
            ("fw_setenv", [name]) => {
                self.environment.remove(*name);
                Ok(said(""))
            }
            ("bootctl", ["set-oneshot", _]) => Ok(said("")),
            other => panic!("{other:?}"),
        }
    }
}

fn said(text: &str) -> Answer {
    Answer { is_ok: true, output: text.to_owned(), complaints: String::new() }
}

impl Scripted {
    /// What grub-mkconfig does: sources the defaults and what is dropped in, and runs the scripts.
    fn make_menu(&self, path: &str) -> io::Result<Answer> {
        let script = "set -eu; cd \"$1\"; for file in etc/default/grub etc/default/grub.d/*.cfg; do\n\
            if [ -e \"$file\" ]; then . \"./$file\"; fi; done\n\
            export GRUB_CMDLINE_LINUX GRUB_CMDLINE_LINUX_DEFAULT\n\
            for script in etc/grub.d/*; do if [ -x \"$script\" ]; then \"./$script\"; fi; done > \"$2\"";
        let root = self.root.to_string_lossy().into_owned();
        let output = Command::new("sh").args(["-c", script, "sh", &root, path]).output()?;
        Ok(Answer {
            is_ok: output.status.success(),
            output: String::new(),
            complaints: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    }

    fn edit_block(&self, block: &str, command: &str, rest: &[&str]) -> io::Result<Answer> {
        let path = self.root.join(block.trim_start_matches('/'));
        let text = std::fs::read_to_string(&path)?;
        let name = rest.first().map_or("", |first| first.split('=').next().unwrap_or(first));
        let others = text.lines().filter(|line| name.is_empty() || !line.starts_with(&format!("{name}=")));
        let mut lines: Vec<&str> = others.filter(|line| !line.starts_with('#')).collect();
        if command == "list" {
            return Ok(said(&(lines.join("\n") + "\n")));
        }
        lines.extend(rest.iter().filter(|_| command == "set"));
        let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let text = format!("# GRUB Environment Block\n{lines}");
        std::fs::write(path, format!("{text:#<1024}"))?;
        Ok(said(""))
    }
}

impl Machine {
    pub fn new(files: &[(&str, &str)]) -> Self {
        // In memory where that is possible: each step waits for the disk.
        let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let programs = Scripted { root: directory.path().to_owned(), ..Scripted::default() };
        let machine = Self { directory, programs };
        files.iter().for_each(|(path, text)| machine.put(path, text));
        machine
    }

    pub fn with(mut self, programs: &[&'static str]) -> Self {
        self.programs.names.extend(programs);
        self
    }

    pub fn put(&self, path: &str, text: &str) {
        let at = self.at(path);
        std::fs::create_dir_all(at.parent().unwrap()).unwrap();
        std::fs::write(&at, text).unwrap();
        if text.starts_with("#!") {
            std::fs::set_permissions(&at, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
    }

    pub fn at(&self, path: &str) -> PathBuf {
        self.directory.path().join(path.trim_start_matches('/'))
    }

    pub fn text(&self, path: &str) -> String {
        std::fs::read_to_string(self.at(path)).unwrap()
    }

    pub fn root(&self) -> SysRoot {
        SysRoot::at(self.directory.path())
    }

    pub fn plan(&mut self, words: &str, manner: Manner) -> Result<Plan> {
        self.plan_of(&ParameterEdit::of(words)?, manner)
    }

    pub fn plan_of(&mut self, edit: &ParameterEdit, manner: Manner) -> Result<Plan> {
        plan(&self.root(), &mut self.programs, None, edit, manner)
    }

    pub fn on<T>(&mut self, work: impl FnOnce(&mut System<'_>) -> T) -> T {
        let root = self.root();
        let mut disk = Live::at(self.directory.path());
        let files = Files::at(&mut disk, STATE, "boot");
        work(&mut System { root, files, programs: &mut self.programs })
    }

    pub fn write(&mut self, plan: &Plan) -> Result<()> {
        self.on(|system| carry_out(system, plan))
    }

    pub fn persist(&mut self, words: &str, manner: Manner) -> Result<Plan> {
        let plan = self.plan(words, manner)?;
        self.write(&plan).map(|()| plan)
    }

    pub fn undo(&mut self) -> Undone {
        self.on(undo).unwrap().unwrap()
    }

    /// The line of the next boot.
    pub fn next(&self) -> String {
        let request = boot_loader::find(&self.root());
        line(&words_only(&request.value().unwrap_or_else(|| panic!("{request:?}")).words))
    }

    /// Every file but ours, with its mode.
    pub fn files(&self) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
        let mut files = BTreeMap::new();
        collect(self.directory.path(), &mut files);
        files.retain(|path, _| !path.starts_with(self.at("/var/lib/worstcase")));
        files
    }

    /// Words that are persisted come back from the reader, and undo finds every byte as it was.
    pub fn round_trip(&mut self, words: &str, manner: Manner) -> Plan {
        let (before, line) = (self.files(), self.next());
        let plan = self.persist(words, manner).unwrap();
        match manner {
            Manner::Default => assert_eq!(self.next(), super::line(&plan.merged.line)),
            Manner::Entry | Manner::Trial => {
                let request = boot_loader::find(&self.root()).value().cloned().unwrap();
                let own = back_end(plan.loader).unwrap().own;
                let own = own(&self.root(), &request).unwrap_or(request.words);
                assert_eq!(super::line(&words_only(&own)), super::line(&plan.merged.line));
            }
        }
        let undone = self.undo();
        assert!(undone.files.iter().all(|file| file.back.is_as_before()), "{undone:?}");
        assert!(undone.left.is_empty(), "{undone:?}");
        assert_eq!(self.files(), before);
        assert_eq!(self.next(), line);
        plan
    }

    /// Nothing is written; the error instead.
    pub fn refusal(&mut self, words: &str, manner: Manner) -> String {
        let before = self.files();
        let error = self.persist(words, manner).unwrap_err();
        assert_eq!(self.files(), before);
        format!("{error} ({})", error.hint)
    }
}

fn collect(directory: &Path, files: &mut BTreeMap<PathBuf, (u32, Vec<u8>)>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => collect(&path, files),
            false => {
                let mode = std::fs::metadata(&path).unwrap().permissions().mode();
                files.insert(path.clone(), (mode, std::fs::read(&path).unwrap()));
            }
        }
    }
}

//! Programs of the host that are put into a guest, with all that they need to run there.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::cpio::Archive;
use super::elf::{Elf, ElfError};
use crate::kernels::Architecture;
use crate::{Error, input};

/// Finds `program` as a shell does: a path as it is, a name in the directories of `PATH` and where administrators'
/// programs are.
pub fn find(program: &Path) -> Option<PathBuf> {
    if program.components().count() > 1 {
        return program.is_file().then(|| program.to_path_buf());
    }
    let directories = std::env::var_os("PATH").unwrap_or_default();
    let directories = std::env::split_paths(&directories).chain(["/usr/sbin".into(), "/sbin".into()]);
    directories.map(|directory| directory.join(program)).find(|path| path.is_file())
}

/// Puts the program at `from` under the path `to`, with its loader and libraries, or with its interpreter if it is a
/// script.
pub fn put(archive: &mut Archive, from: &Path, to: &Path, architecture: Architecture) -> Result<(), Error> {
    let bytes = input::read(from)?;
    if let Some(interpreter) = interpreter(&bytes) {
        archive.program(to, bytes);
        return put_once(archive, &interpreter, architecture);
    }
    let refused = |error: ElfError| Error::new(format!("put {} into the guest: {error}", from.display()));
    let elf = Elf::read(&bytes).map_err(refused)?;
    if elf.architecture != Some(architecture) {
        let message = format!("{} is not a program for {architecture}", from.display());
        return Err(Error::new(message).hint("name one that was built for the guest's architecture"));
    }
    archive.program(to, elf.stripped(&bytes));
    let Some(loader) = elf.interpreter else { return Ok(()) };
    for library in libraries(&loader, from, architecture)? {
        put_once_as_is(archive, &library)?;
    }
    put_once_as_is(archive, &loader)
}

fn put_once(archive: &mut Archive, program: &Path, architecture: Architecture) -> Result<(), Error> {
    if archive.contains(program) { Ok(()) } else { put(archive, program, program, architecture) }
}

fn put_once_as_is(archive: &mut Archive, file: &Path) -> Result<(), Error> {
    if !archive.contains(file) {
        let bytes = input::read(file)?;
        let stripped = Elf::read(&bytes).map(|elf| elf.stripped(&bytes));
        archive.program(file, stripped.unwrap_or(bytes));
    }
    Ok(())
}

/// The interpreter of a script: `#!/bin/sh -e` is run by /bin/sh. execve(2).
fn interpreter(bytes: &[u8]) -> Option<PathBuf> {
    let line = bytes.strip_prefix(b"#!")?.split(|&byte| byte == b'\n').next()?;
    let path = line.trim_ascii().split(|&byte| byte == b' ' || byte == b'\t').next()?;
    (!path.is_empty()).then(|| PathBuf::from(OsStr::from_bytes(path)))
}

/// The libraries of a dynamic program, as its loader finds them. ld.so(8), `--list`.
fn libraries(loader: &Path, program: &Path, architecture: Architecture) -> Result<Vec<PathBuf>, Error> {
    const HINT: &str = "give a static program, as `cargo xtask dist` builds them";
    let failed =
        |why: String| Error::new(format!("find the libraries of {}: {why}", program.display())).hint(HINT);
    if Architecture::own() != Some(architecture) {
        return Err(failed(format!(
            "it is dynamic, and this machine cannot load programs for {architecture}"
        )));
    }
    // A loader is run here, and runs what a program names as its auditor: rtld-audit(7).
    for run in [program, loader] {
        files::check_obeyed(run).map_err(|error| failed(error.to_string()))?;
    }
    let listed = Command::new(loader).arg("--list").arg(program).output();
    let listed = listed.map_err(|error| failed(format!("{}: {error}", loader.display())))?;
    if !listed.status.success() {
        return Err(failed(String::from_utf8_lossy(&listed.stderr).trim().to_owned()));
    }
    Ok(listed_paths(&String::from_utf8_lossy(&listed.stdout)))
}

/// `libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x...)`, or a path alone; the vDSO has none.
fn listed_paths(text: &str) -> Vec<PathBuf> {
    let path = |line: &str| {
        let found = line.split_once("=> ").map_or(line, |(_, found)| found).trim();
        let path = found.rsplit_once(" (0x").map_or(found, |(path, _)| path);
        path.starts_with('/').then(|| PathBuf::from(path))
    };
    text.lines().filter_map(path).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, chown};

    use super::*;

    #[test]
    fn a_dynamic_program_brings_its_loader_and_libraries() {
        let mut archive = Archive::default();
        let me = std::env::current_exe().unwrap();
        put(&mut archive, &me, Path::new("/init"), Architecture::own().unwrap()).unwrap();
        let loader = Elf::read(&fs::read(&me).unwrap()).unwrap().interpreter.unwrap();
        assert!(archive.contains(&loader));
        let text = String::from_utf8_lossy(&archive.bytes()).into_owned();
        assert!(text.contains("libc.so.6"), "the C library is there");
    }

    #[test]
    #[allow(clippy::print_stderr)]
    fn nothing_of_another_users_program_is_run_here() {
        let directory = tempfile::tempdir().unwrap();
        let (program, proof) = (directory.path().join("program"), directory.path().join("proof"));
        fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
        let put = || put(&mut Archive::default(), &program, Path::new("/x"), Architecture::own().unwrap());
        put().unwrap();
        let loader = directory.path().join("loader");
        fs::write(&loader, format!("#!/bin/sh\ntouch {}\n", proof.display())).unwrap();
        let runs = |mode| {
            fs::set_permissions(&loader, fs::Permissions::from_mode(mode)).unwrap();
            let found = libraries(&loader, &program, Architecture::own().unwrap());
            (found.is_ok(), fs::remove_file(&proof).is_ok())
        };
        assert_eq!(runs(0o755), (true, true), "ours");
        assert_eq!(runs(0o777), (false, false), "anybody may have written it");
        if chown(&program, Some(54_321), None).is_err() {
            return eprintln!("skipped: another user's file takes root to make");
        }
        assert!(put().unwrap_err().to_string().contains("another user owns it"));
        assert_eq!(runs(0o755), (false, false));
    }

    #[test]
    fn pipes_and_devices_are_no_programs() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
        for file in [&pipe, Path::new("/dev/zero")] {
            let error = put(&mut Archive::default(), file, Path::new("/x"), Architecture::Amd64).unwrap_err();
            assert!(error.to_string().ends_with("it is not a regular file"), "{error}");
        }
    }

    #[test]
    fn a_script_brings_its_interpreter() {
        assert_eq!(interpreter(b"#! /bin/sh -e\ntrue"), Some("/bin/sh".into()));
        assert_eq!(interpreter(b"#!\n"), None);
        assert_eq!(interpreter(b"\x7fELF"), None);
    }

    #[test]
    fn what_a_loader_lists_is_read() {
        let text = "\tlinux-vdso.so.1 (0x00007ffd)\n\tlibm.so.6 => /lib/x/libm.so.6 (0x00007f)\n\t/lib64/ld.so (0x7f)\n";
        assert_eq!(listed_paths(text), [Path::new("/lib/x/libm.so.6"), Path::new("/lib64/ld.so")]);
    }

    #[test]
    fn a_program_for_nothing_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("words");
        fs::write(&file, "words").unwrap();
        let error = put(&mut Archive::default(), &file, Path::new("/x"), Architecture::Amd64).unwrap_err();
        assert!(error.to_string().contains("no ELF program"), "{error}");
    }
}

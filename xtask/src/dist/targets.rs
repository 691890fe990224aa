//! Machines that a static binary is built for, and what each needs.

use std::path::PathBuf;
use std::process::Command;

use crate::command;

/// One target of the compiler.
pub struct Target {
    /// As `rustup target list` names it.
    pub triple: &'static str,
    /// Linkers, the first that is found is taken.
    linkers: &'static [&'static str],
    /// Debian packages that bring the linker and the static C library.
    pub packages: &'static [&'static str],
    /// Emulators that run what was built, where the processor cannot.
    emulators: &'static [&'static str],
}

/// All that we ship for. musl targets bring their own C library and are a bonus.
pub const ALL: [Target; 7] = [
    Target {
        triple: "x86_64-unknown-linux-gnu",
        linkers: &["cc", "x86_64-linux-gnu-gcc"],
        packages: &["gcc-x86-64-linux-gnu", "libc6-dev-amd64-cross"],
        emulators: &["qemu-x86_64-static", "qemu-x86_64"],
    },
    Target {
        triple: "x86_64-unknown-linux-musl",
        linkers: &["x86_64-linux-gnu-gcc", "cc"],
        packages: &["gcc-x86-64-linux-gnu"],
        emulators: &["qemu-x86_64-static", "qemu-x86_64"],
    },
    Target {
        triple: "aarch64-unknown-linux-gnu",
        linkers: &["aarch64-linux-gnu-gcc"],
        packages: &["gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross"],
        emulators: &["qemu-aarch64-static", "qemu-aarch64"],
    },
    Target {
        triple: "aarch64-unknown-linux-musl",
        linkers: &["aarch64-linux-gnu-gcc", "rust-lld"],
        packages: &["gcc-aarch64-linux-gnu"],
        emulators: &["qemu-aarch64-static", "qemu-aarch64"],
    },
    Target {
        triple: "armv7-unknown-linux-gnueabihf",
        linkers: &["arm-linux-gnueabihf-gcc"],
        packages: &["gcc-arm-linux-gnueabihf", "libc6-dev-armhf-cross"],
        emulators: &["qemu-arm-static", "qemu-arm"],
    },
    Target {
        triple: "riscv64gc-unknown-linux-gnu",
        linkers: &["riscv64-linux-gnu-gcc"],
        packages: &["gcc-riscv64-linux-gnu", "libc6-dev-riscv64-cross"],
        emulators: &["qemu-riscv64-static", "qemu-riscv64"],
    },
    Target {
        triple: "powerpc-unknown-linux-gnu",
        linkers: &["powerpc-linux-gnu-gcc"],
        packages: &["gcc-powerpc-linux-gnu", "libc6-dev-powerpc-cross"],
        emulators: &["qemu-ppc-static", "qemu-ppc"],
    },
];

impl Target {
    /// The target that this machine runs without an emulator, linked with glibc.
    pub fn native() -> Option<&'static Self> {
        ALL.iter().find(|target| target.is_native() && target.is_gnu())
    }

    /// Whether this machine's processor runs it.
    pub fn is_native(&self) -> bool {
        let architecture = self.triple.split('-').next().unwrap_or_default();
        architecture.starts_with(std::env::consts::ARCH)
    }

    /// Whether tests run what is built for it: on this machine, or in a guest of another architecture.
    pub fn is_for_tests(&self) -> bool {
        self.is_gnu() && (self.is_native() || self.triple.starts_with("aarch64"))
    }

    /// Whether it links with the C library that a package must bring.
    fn is_gnu(&self) -> bool {
        self.triple.contains("-gnu")
    }

    /// What Debian calls the architecture, where its packages are made from this target.
    pub fn debian(&self) -> Option<&'static str> {
        match self.triple {
            "x86_64-unknown-linux-gnu" => Some("amd64"),
            "aarch64-unknown-linux-gnu" => Some("arm64"),
            "armv7-unknown-linux-gnueabihf" => Some("armhf"),
            "riscv64gc-unknown-linux-gnu" => Some("riscv64"),
            "powerpc-unknown-linux-gnu" => Some("powerpc"),
            _ => None,
        }
    }

    /// Whether the compiler has the standard library for it.
    pub fn has_std(&self) -> bool {
        let query = ["--print", "target-libdir", "--target", self.triple];
        let Ok(directory) = command::output(Command::new("rustc").args(query)) else { return false };
        let entries = std::fs::read_dir(directory.trim()).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name()).any(|name| name.to_string_lossy().starts_with("libstd-"))
    }

    /// The linker to use.
    pub fn linker(&self) -> Option<&'static str> {
        self.linkers.iter().copied().find(|&linker| linker == "rust-lld" || command::find(linker).is_some())
    }

    /// Whether a linker is there, and with it the static C library that it is to link.
    pub fn links(&self) -> bool {
        let Some(linker) = self.linker() else { return false };
        if !self.is_gnu() {
            return true;
        }
        // A compiler answers with the bare name where it does not find the file.
        let answer = command::output(Command::new(linker).arg("-print-file-name=libc.a"));
        answer.is_ok_and(|path| PathBuf::from(path.trim()).is_file())
    }

    /// What runs it: nothing but itself where the processor does, else an emulator; none where there is none.
    pub fn emulator(&self) -> Option<Option<&'static str>> {
        if self.is_native() {
            return Some(None);
        }
        self.emulators.iter().copied().find(|emulator| command::find(emulator).is_some()).map(Some)
    }
}

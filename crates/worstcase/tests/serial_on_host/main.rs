//! The program from outside, on this machine: with its root, its time and its QEMU. Each part is a module of its own; one test
//! runs at a time.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod absurd;
mod agent;
mod arm64;
mod bisect;
mod boards;
mod calls;
mod check;
mod cost;
mod counters;
mod disk;
mod evidence;
mod evl;
mod explain;
#[path = "../gpio_kernels/mod.rs"]
mod gpio_kernels;
mod gpio_wires;
mod guard;
#[path = "../guarded/mod.rs"]
mod guarded;
#[path = "../injection/mod.rs"]
mod injection;
mod kernels;
mod killed;
mod lab;
mod lab_clock;
mod lab_ladder;
mod microscope;
mod neighbours;
mod network;
mod network_guests;
mod noise;
#[path = "../../../report/tests/integration/numbers.rs"]
mod numbers;
mod persist_boot;
mod persist_extlinux;
mod persist_grub;
mod persist_systemd_boot;
mod persist_u_boot;
mod readme;
mod robustness;
mod schemas;
mod support;
mod systemd;
mod traced;
mod trial;
mod truth;
mod tune;
#[path = "../../../record/tests/integration/validator/mod.rs"]
mod validator;
mod wake_path;
mod ways;
#[cfg(target_arch = "x86_64")]
mod xen;

//! The program in guests, by [`guest_tests::Guests`]: these tests have an executable of their own, because all of them are
//! started in every guest.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod explain;
mod gpio;
#[path = "../gpio_kernels/mod.rs"]
mod gpio_kernels;
mod guard;
#[path = "../guarded/mod.rs"]
mod guarded;
mod guest;
mod injected;
#[path = "../injection/mod.rs"]
mod injection;
#[cfg(target_arch = "x86_64")]
mod kvm;
mod noise;
mod partition;
mod rtla;
mod starved;
mod tune;
mod ways;
#[cfg(target_arch = "x86_64")]
mod xen;

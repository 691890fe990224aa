//! A plugin of QEMU that keeps what a guest's CPU did before wake-ups that are looked for.
//!
//! It is a library without the standard library, built by the build script of the crate around it. In instruction time a guest
//! has one CPU, and all callbacks come from its thread, one after the other; the last one comes when that thread has ended.
//! [`layout`] describes what it writes, [`arguments`] what it is asked for.
#![no_std]

mod abi;
mod arguments;
mod block;
#[path = "../src/clock.rs"]
#[allow(dead_code)]
mod clock;
mod guest;
#[path = "../src/layout.rs"]
#[allow(dead_code)]
mod layout;
mod machine;
mod output;
mod recorder;
#[path = "../src/sections.rs"]
#[allow(dead_code)]
mod sections;
mod translation;

use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicPtr, Ordering};

use arguments::Arguments;
use recorder::Recorder;

/// The one recorder of this process, made when the plugin is installed.
static RECORDER: AtomicPtr<Recorder> = AtomicPtr::new(ptr::null_mut());

/// The recorder, to a callback.
fn recorder() -> &'static mut Recorder {
    // SAFETY: `install` has made it before it registered a callback, it is never freed, and callbacks do not overlap: one CPU's
    // thread makes them, and no callback calls back into another that asks for it.
    unsafe { &mut *RECORDER.load(Ordering::Relaxed) }
}

/// Memory that is zero, for good: none where there is none.
fn allocate<T>(count: usize) -> Option<NonNull<T>> {
    // SAFETY: calloc gives memory of that size that is nobody else's, aligned for every type here, or nothing.
    NonNull::new(unsafe { abi::calloc(count, size_of::<T>()) }.cast())
}

/// What QEMU calls first.
#[unsafe(no_mangle)]
extern "C" fn qemu_plugin_install(
    id: abi::Id,
    info: *const *const c_char,
    count: c_int,
    arguments: *const *const c_char,
) -> c_int {
    // SAFETY: what QEMU says of itself begins with the name of its architecture, which ends with a zero.
    let name = unsafe { CStr::from_ptr(*info) };
    let Some(machine) = machine::ALL.iter().find(|machine| machine.name == name) else { return 1 };
    // SAFETY: QEMU gives so many strings that end with a zero, and keeps them during this call.
    let Some(arguments) = (unsafe { Arguments::read(count, arguments) }) else { return 1 };
    let Some(memory) = allocate::<Recorder>(1) else { return 1 };
    let Some(recorder) = Recorder::new(machine, arguments) else { return 1 };
    // SAFETY: the memory is large enough and nobody else's; the callbacks are registered after the recorder is in its place.
    unsafe {
        memory.write(recorder);
        RECORDER.store(memory.as_ptr(), Ordering::Relaxed);
        abi::qemu_plugin_register_vcpu_tb_trans_cb(id, translation::translated);
        abi::qemu_plugin_register_atexit_cb(id, ended, ptr::null_mut());
    }
    0
}

extern "C" fn ended(_: abi::Id, _: *mut c_void) {
    recorder().finish();
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: takes nothing and does not come back.
    unsafe { abi::abort() }
}

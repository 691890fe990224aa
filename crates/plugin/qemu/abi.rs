//! QEMU's plugin interface, version 1 (include/qemu/qemu-plugin.h of 6.0 to 8.2), and what of the C library is needed.

use core::ffi::{c_char, c_int, c_uint, c_void};

/// Which version of the interface this is written for: QEMU reads it before it calls anything.
#[unsafe(no_mangle)]
pub static qemu_plugin_version: c_int = 1;

/// A callback needs no registers: this interface has none to offer.
pub const NO_REGISTERS: c_int = 0;
/// The operation that QEMU does itself at an instruction.
pub const ADD: c_int = 0;

pub type Id = u64;
/// A block that is being translated, and an instruction of it.
pub type Handle = *mut c_void;

// SAFETY: as the header declares them. QEMU and the C library that it has loaded define them.
unsafe extern "C" {
    pub fn qemu_plugin_register_vcpu_tb_trans_cb(id: Id, callback: extern "C" fn(Id, Handle));
    pub fn qemu_plugin_register_vcpu_tb_exec_cb(
        block: Handle,
        callback: extern "C" fn(c_uint, *mut c_void),
        flags: c_int,
        data: *mut c_void,
    );
    pub fn qemu_plugin_register_vcpu_insn_exec_inline(
        instruction: Handle,
        operation: c_int,
        counter: *mut c_void,
        value: u64,
    );
    pub fn qemu_plugin_register_atexit_cb(
        id: Id,
        callback: extern "C" fn(Id, *mut c_void),
        data: *mut c_void,
    );
    pub fn qemu_plugin_tb_n_insns(block: Handle) -> usize;
    pub fn qemu_plugin_tb_vaddr(block: Handle) -> u64;
    pub fn qemu_plugin_tb_get_insn(block: Handle, number: usize) -> Handle;
    pub fn qemu_plugin_insn_data(instruction: Handle) -> *const u8;
    pub fn qemu_plugin_insn_size(instruction: Handle) -> usize;
    pub fn qemu_plugin_insn_haddr(instruction: Handle) -> *mut c_void;

    pub fn calloc(count: usize, size: usize) -> *mut c_void;
    pub fn open(path: *const c_char, flags: c_int, ...) -> c_int;
    pub fn write(file: c_int, bytes: *const c_void, length: usize) -> isize;
    pub fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
    pub fn abort() -> !;
}

/// open(2): for writing.
pub const WRITE_ONLY: c_int = 1;

//! From one stack to another: the registers that a called function must keep are pushed, the stack pointer is exchanged, and
//! the others are popped. All other registers are the caller's to save, by the calling convention.

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use std::arch::global_asm;

// x86-64, System V: rbx, rbp, r12 to r15. The control words of SSE and x87 are the core's: Rust never changes them, and a C
// program that does puts them back before it gives way. A new stack "returns" to the entry below, which finds function and
// argument in r12 and r13. `endbr64` is not needed: nothing jumps here indirectly but by `ret`.
#[cfg(target_arch = "x86_64")]
global_asm!(
    ".global worstcase_runtime_switch",
    "worstcase_runtime_switch:",
    "push rbp",
    "push rbx",
    "push r12",
    "push r13",
    "push r14",
    "push r15",
    "mov [rdi], rsp",
    "mov rsp, rsi",
    "pop r15",
    "pop r14",
    "pop r13",
    "pop r12",
    "pop rbx",
    "pop rbp",
    "ret",
    ".global worstcase_runtime_enter",
    "worstcase_runtime_enter:",
    "mov rdi, r13",
    "call r12",
    "ud2",
);

// arm64: x19 to x29, the link register, d8 to d15.
#[cfg(target_arch = "aarch64")]
global_asm!(
    ".global worstcase_runtime_switch",
    "worstcase_runtime_switch:",
    "sub sp, sp, #160",
    "stp x19, x20, [sp, #0]",
    "stp x21, x22, [sp, #16]",
    "stp x23, x24, [sp, #32]",
    "stp x25, x26, [sp, #48]",
    "stp x27, x28, [sp, #64]",
    "stp x29, x30, [sp, #80]",
    "stp d8, d9, [sp, #96]",
    "stp d10, d11, [sp, #112]",
    "stp d12, d13, [sp, #128]",
    "stp d14, d15, [sp, #144]",
    "mov x9, sp",
    "str x9, [x0]",
    "mov sp, x1",
    "ldp x19, x20, [sp, #0]",
    "ldp x21, x22, [sp, #16]",
    "ldp x23, x24, [sp, #32]",
    "ldp x25, x26, [sp, #48]",
    "ldp x27, x28, [sp, #64]",
    "ldp x29, x30, [sp, #80]",
    "ldp d8, d9, [sp, #96]",
    "ldp d10, d11, [sp, #112]",
    "ldp d12, d13, [sp, #128]",
    "ldp d14, d15, [sp, #144]",
    "add sp, sp, #160",
    "ret",
    ".global worstcase_runtime_enter",
    "worstcase_runtime_enter:",
    "mov x0, x20",
    "blr x19",
    "brk #1",
);

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
unsafe extern "C" {
    fn worstcase_runtime_switch(save: *mut *mut u8, load: *mut u8);
    fn worstcase_runtime_enter();
}

/// Leaves this stack, notes its end in `save`, and goes on where the stack that ends at `load` was left.
///
/// # Safety
/// `load` was written by a switch that was not come back to yet, or by [`prepare`]; `save` can be written.
#[inline(always)]
pub unsafe fn switch(save: *mut *mut u8, load: *mut u8) {
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    // SAFETY: the caller's promise.
    unsafe {
        worstcase_runtime_switch(save, load);
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        let _ = (save, load);
        std::process::abort()
    }
}

/// Lays a frame on a new stack that [`switch`] can load: it calls `entry(argument)`.
///
/// # Safety
/// `top` is the end of memory of at least 256 bytes that nobody else uses, aligned to 16.
pub unsafe fn prepare(top: *mut u8, entry: extern "C" fn(*mut u8) -> !, argument: *mut u8) -> *mut u8 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: nine words below the top. After `ret` the pointer is at top - 16, so that `call` leaves it as a function
    // expects it: 8 beyond a multiple of 16.
    unsafe {
        let frame = top.cast::<u64>().sub(9);
        // r15, r14, r13, r12, rbx, rbp, and where to return to.
        let enter = worstcase_runtime_enter as *const () as u64;
        let words = [0, 0, argument as u64, entry as *const () as u64, 0, 0, enter];
        words.iter().enumerate().for_each(|(index, word)| frame.add(index).write(*word));
        frame.cast()
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: twenty words below the top, which stays aligned to 16.
    unsafe {
        let frame = top.cast::<u64>().sub(20);
        (0..20).for_each(|index| frame.add(index).write(0));
        frame.write(entry as *const () as u64);
        frame.add(1).write(argument as u64);
        frame.add(11).write(worstcase_runtime_enter as *const () as u64);
        frame.cast()
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        let _ = (entry, argument);
        top
    }
}
